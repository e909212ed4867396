"""The options of one call: what a host may set in addition to a skill's name and its
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from skillruntime.runtime.grants import Grants

__all__ = ["CallOptions"]


class CallOptions(TypedDict, total=False):
    """The options of one call.

    ``version``: the version that the arguments were written for. ``timeout``: seconds;
    it replaces the contract's own. ``finish_reason``: why the model stopped, in its
    provider's words (``"length"``: its text was cut off). ``caller`` and ``config``
    reach the runner in its `CallContext`. ``call_id`` is the model's id of this tool
    call, ``message`` the id or number of the model's message that has it, and
    ``conversation`` by default the session's key. Where all three are known, a call
    that is made again is the same execution of a remote skill. An id alone says
    nothing: models use the same one in many messages. ``grants`` are what the host lets
    the script use in this call, in addition to the skill's own. ``let_through`` returns
    true for exceptions that belong to the host's control flow (an interrupt of
    LangGraph): those are raised to the caller instead of becoming a failed response.
    ``on_start`` is called just before the skill starts, when nothing refuses the call
    any more.
    """

    version: str | None
    timeout: float | None
    finish_reason: str | None
    caller: str | None
    config: Mapping[str, Any] | None
    call_id: str | None
    conversation: str | None
    message: str | None
    grants: Grants | None
    let_through: Callable[[Exception], bool] | None
    on_start: Callable[[], None] | None
