"""What a host may say about one call, beside its name and arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

__all__ = ["CallOptions"]


class CallOptions(TypedDict, total=False):
    """What a host may say about one call, beside its name and arguments.

    ``version``: the version the arguments were written for. ``timeout``: seconds; it replaces the contract's own.
    ``finish_reason``: why the model stopped (``"length"``: its text was cut off). ``caller`` and ``config`` reach the
    runner in its `CallContext`. ``let_through`` names the exceptions that are no failure of the skill but the host's
    own control flow (an agent's interrupt): those are raised, not enveloped.
    """

    version: str | None
    timeout: float | None
    finish_reason: str | None
    caller: str | None
    config: Mapping[str, Any] | None
    let_through: Callable[[Exception], bool] | None
