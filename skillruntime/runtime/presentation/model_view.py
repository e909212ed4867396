"""Shorten an answer for a model: leave out a script's stderr if its output says
enough.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from skillruntime.contract.response import SkillResponse

__all__ = ["for_model", "without_data"]

_Data = TypeVar("_Data")
_NOTHING_PRINTED: tuple[Any, ...] = (None, {"stdout": ""})


def for_model(response: SkillResponse[_Data]) -> SkillResponse[_Data]:
    """Return *response* for a model, with ``metadata.stderr`` only if the call failed
    or the script printed nothing on stdout.

    >>> metadata = {"skill": "lint", "stderr": "3 files"}
    >>> for_model(SkillResponse("success", data=[1], metadata=metadata)).metadata
    {'skill': 'lint'}
    """
    metadata = response.metadata
    if not metadata or "stderr" not in metadata:
        return response
    if not response.ok or response.data in _NOTHING_PRINTED:
        return response
    shown = {name: value for name, value in metadata.items() if name != "stderr"}
    return dataclasses.replace(response, metadata=shown)


def without_data(response: SkillResponse[Any]) -> SkillResponse[Any]:
    """Return a failed *response* without its data, which a model reads separately, page
    by page.
    """
    metadata = dict(response.metadata or {})
    metadata.pop("page", None)
    return dataclasses.replace(response, data=None, metadata=metadata or None)
