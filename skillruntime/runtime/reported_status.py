"""Read the ``status`` and ``errors`` that a result contains (the contract document, 31.2) for the envelope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillruntime.catalog.visibility import visible_line
from skillruntime.contract.response import STATUSES, Status
from skillruntime.errors import ErrorCode, SkillError
from skillruntime.runtime.activation import as_text
from skillruntime.runtime.error_responses import with_next_step

__all__ = ["data_of", "read_reported"]

# An error is always shown to the model, whatever the limits of its tokens: so a skill's own errors are short and few.
_MOST_ERRORS = 20
_MESSAGE, _ACTION, _DETAILS = 1_000, 500, 4_000  # characters; of the details as JSON
_DATA = 10_000  # characters of JSON beside the errors of a failure, which no limit of tokens cuts either


def read_reported(output: Any) -> tuple[Status, list[SkillError]]:
    """Return the status and the errors in *output*; without a status, success and no errors.

    An unknown code becomes ``TOOL_EXECUTION_FAILED``, with the original in ``details.code``; an error without a next
    step gets one.

    >>> status, errors = read_reported({"status": "failed", "errors": [{"code": "QUOTA", "message": "Used up"}]})
    >>> errors[0].message, errors[0].code.value, errors[0].details
    ('Used up', 'TOOL_EXECUTION_FAILED', {'code': 'QUOTA'})
    """
    if not isinstance(output, Mapping) or output.get("status") not in STATUSES:
        return "success", []
    status: Status = output["status"]
    listed = output.get("errors")
    errors = [_error_from(item) for item in listed[:_MOST_ERRORS]] if isinstance(listed, list) else []
    if status == "failed" and not errors:
        message = output.get("message")
        said = (
            _line(message, _MESSAGE)
            if isinstance(message, str) and message
            else "The skill reported a failure without a reason"
        )
        errors = [SkillError(ErrorCode.TOOL_EXECUTION_FAILED, said, recoverable=False)]
    return status, [with_next_step(error) for error in errors]


def data_of(output: Any, status: Status) -> Any:
    """Return the ``data`` of the envelope for *output*, which reported *status*.

    A failure's ``status`` and ``errors`` are fields of the envelope (31.2), so ``data`` does not repeat them. What
    succeeded, also in part, keeps them: ``output`` may require them, as the contract document's own example does.

    >>> data_of({"status": "failed", "errors": [{"code": "QUOTA"}], "used": 3}, "failed")
    {'used': 3}
    """
    if status != "failed":
        return output
    rest = {name: value for name, value in output.items() if name not in ("status", "errors")}
    if len(as_text(rest)) > _DATA:
        return {"cut": True}
    return rest or None


def _error_from(item: Any) -> SkillError:
    if not isinstance(item, Mapping):
        return SkillError(ErrorCode.TOOL_EXECUTION_FAILED, _line(str(item), _MESSAGE), recoverable=False)
    given: Any = item.get("code")
    details = dict(item["details"]) if isinstance(item.get("details"), Mapping) else {}
    try:
        code = ErrorCode(given)
    except ValueError:
        code = ErrorCode.TOOL_EXECUTION_FAILED
        if given is not None:
            details["code"] = given
    if len(as_text(details)) > _DETAILS:
        details = {"cut": True}
    action = item.get("suggested_action")
    return SkillError(
        code,
        _line(str(item.get("message") or "The skill gave no message"), _MESSAGE),
        recoverable=item.get("recoverable") is True,
        details=details or None,
        suggested_action=_line(action, _ACTION) if isinstance(action, str) else None,
    )


def _line(text: str, limit: int) -> str:
    from skillruntime.runtime.script_result import capped

    # Cut first: cleaning megabytes takes longer than the call may.
    return capped(visible_line(text[: 2 * limit]), limit)
