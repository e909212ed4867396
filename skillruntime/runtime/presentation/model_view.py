"""An answer as a model reads it: what a script wrote to stderr is left out where its
output says enough.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from skillruntime.contract.response import SkillResponse

__all__ = ["for_model", "without_data"]

_Data = TypeVar("_Data")
_NOTHING_PRINTED: tuple[Any, ...] = (None, {"stdout": ""})


def for_model(response: SkillResponse[_Data]) -> SkillResponse[_Data]:
    """Return *response* as a model reads it: with ``metadata.stderr`` only where the
    call failed, or where the script printed nothing on stdout.

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
    """Return a failed *response* without its data, of which a model reads a page by
    itself.
    """
    metadata = dict(response.metadata or {})
    metadata.pop("page", None)
    return dataclasses.replace(response, data=None, metadata=metadata or None)
