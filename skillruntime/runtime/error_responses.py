"""Turn an exception, or a failure that a skill reported, into the errors of the
envelope.

Only this module decides what a model reads about a failure. A skill's own result may
hold a ``status`` and ``errors`` (the contract document, 31.2).
"""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from skillruntime.catalog.visibility import visible_line
from skillruntime.contract.response import STATUSES, Status, handle_skill_error
from skillruntime.errors import ErrorCode, SkillError, SkillRuntimeError
from skillruntime.runtime.presentation.activation import as_text

__all__ = [
    "SILENT",
    "TELL",
    "Refusals",
    "data_of",
    "read_reported",
    "repeated",
    "to_errors",
    "unwrapped",
    "with_next_step",
]

_LONGEST_SCHEMA = 600  # characters
# An error is always shown to the model, whatever the token limits, so a skill's own
# errors must be short and few.
_MOST_ERRORS = 20
_MESSAGE, _ACTION, _DETAILS = 1_000, 500, 4_000  # characters; of the details as JSON


def to_errors(error: Exception, name: str) -> list[SkillError]:
    """Convert *error*, which ended the call of *name*, to the errors that a model
    reads.

    An error of this library has its own message. Any other exception is a bug: it is
    logged with its traceback, and the model sees only its type.
    """
    match unwrapped(error):
        case SkillRuntimeError() as ours:
            return [with_next_step(item) for item in ours.to_errors()]
        case TimeoutError():
            # The skill's own code raised it and has ended, so nothing is still running;
            # the deadline of this call raises another error.
            action = "Try again, or ask for less at once"
            return [
                SkillError(
                    ErrorCode.TOOL_TIMEOUT,
                    "Something the skill waited for timed out",
                    True,
                    None,
                    action,
                )
            ]
        case unexpected:
            import logging

            logging.getLogger("skillruntime.runtime").error(
                "%s failed with an unexpected exception", name, exc_info=unexpected
            )
            return [
                with_next_step(item)
                for item in handle_skill_error(unexpected, {}).errors
            ]


def unwrapped(error: Exception) -> Exception:
    """Return the only exception inside a group, because a task group wraps its tasks'
    exceptions, or *error* itself.
    """
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


TELL = "Tell the user what the message says"
"""The next step if the skill itself reported a failure; a call adds the argument that
the message names.
"""

SILENT = "Tell the user that the skill failed and did not say why"
"""The next step if the failure has no message."""

_AT_FAULT = "Tell the user that the skill is at fault; other arguments will not help"
_NEXT_STEPS = {
    ErrorCode.INVALID_SKILL: _AT_FAULT,
    ErrorCode.INVALID_OUTPUT: _AT_FAULT,
    ErrorCode.INTERNAL_ERROR: "Tell the user that the skill failed inside; the same "
    "call will most likely fail again",
    ErrorCode.ACCESS_DENIED: "Tell the user that this was not allowed; do not repeat "
    "the call",
    ErrorCode.TOOL_NOT_AVAILABLE: "Tell the user what is missing",
    ErrorCode.TOOL_EXECUTION_FAILED: TELL,
}


def with_next_step(error: SkillError) -> SkillError:
    """Return *error* with a suggested action; an existing one is kept."""

    if error.suggested_action:
        return error
    action = _NEXT_STEPS.get(error.code)
    if action is None and error.recoverable:
        action = "Change what the message names, and call again"
    elif action is None:
        action = "Tell the user what it says"
    return dataclasses.replace(error, suggested_action=action)


class Refusals:
    """How often each call of a conversation was refused, by the digest of the call; the
    latest calls are remembered.
    """

    def __init__(self, most: int = 256) -> None:
        self._times: OrderedDict[str, int] = OrderedDict()
        self._most = most

    def count(self, call: str) -> int:
        """Count one more refusal of *call*, and return how many there were."""
        times = self._times.pop(call, 0) + 1
        self._times[call] = times
        if len(self._times) > self._most:
            self._times.popitem(last=False)
        return times


def repeated(error: SkillError, times: int) -> SkillError:
    """Return the *error* of a call that was refused *times* times, worded so that the
    model does not resend the call unchanged.

    The second answer says how often the call was refused. The third and later ones are
    worded differently and describe the argument.

    >>> details = {"path": "/n", "expected": "at most 10"}
    >>> error = SkillError(
    ...     ErrorCode.PARAM_OUT_OF_RANGE, "11 is more than 10", True, details, "Send 10"
    ... )
    >>> repeated(error, 2).suggested_action
    'This same call has been refused 2 times: change it, or ask the user. Send 10'
    >>> repeated(error, 3).suggested_action
    'Do not send these arguments again. /n takes at most 10'
    """
    if times < 2:
        return error
    details = error.details or {}
    expected = details.get("expected")
    # A refusal that does not concern the arguments has no schema to show.
    if times == 2 or expected is None:
        action = (
            f"This same call has been refused {times} times: change it, or ask the "
            "user."
        )
        if error.suggested_action:
            action = f"{action} {error.suggested_action}"
        return dataclasses.replace(error, suggested_action=action)
    if not isinstance(expected, str):
        expected = json.dumps(expected, ensure_ascii=False, default=str)
    if len(expected) > _LONGEST_SCHEMA:
        expected = expected[:_LONGEST_SCHEMA] + "..."
    subject = details.get("path") or "The tool"
    return dataclasses.replace(
        error,
        message=f"These arguments were refused {times} times, and nothing was run: "
        f"{error.message}",
        suggested_action="Do not send these arguments again. "
        f"{subject} takes {expected}",
    )


def read_reported(output: Any) -> tuple[Status, list[SkillError]]:
    """Return the status and the errors in *output*; without a status, success and no
    errors.

    An unknown code becomes ``TOOL_EXECUTION_FAILED``, with the original in
    ``details.code``; an error without a next step gets one.

    >>> status, errors = read_reported(
    ...     {"status": "failed", "errors": [{"code": "QUOTA", "message": "Used up"}]}
    ... )
    >>> errors[0].message, errors[0].code.value, errors[0].details
    ('Used up', 'TOOL_EXECUTION_FAILED', {'code': 'QUOTA'})
    """
    if not isinstance(output, Mapping) or output.get("status") not in STATUSES:
        return "success", []
    status: Status = output["status"]
    errors = []
    listed = output.get("errors")
    if isinstance(listed, list):
        errors = [_error_from(item) for item in listed[:_MOST_ERRORS]]
    if status == "failed" and not errors:
        message = output.get("message")
        reason, action = "The skill reported a failure without a reason", SILENT
        if isinstance(message, str) and message:
            reason, action = _line(message, _MESSAGE), TELL
        failed = ErrorCode.TOOL_EXECUTION_FAILED
        errors = [SkillError(failed, reason, False, suggested_action=action)]
    return status, [with_next_step(error) for error in errors]


def data_of(output: Any, status: Status) -> Any:
    """Return the ``data`` of the envelope for *output*, which reported *status*.

    A failure's ``status`` and ``errors`` are fields of the envelope (contract document,
    31.2), so ``data`` does not repeat them. The output of a success, even a partial
    one, keeps them, because the contract's ``output`` may require them, as the contract
    document's own example does.

    >>> output = {"status": "failed", "errors": [{"code": "QUOTA"}], "used": 3}
    >>> data_of(output, "failed")
    {'used': 3}
    """
    if status != "failed":
        return output
    rest = {
        name: value
        for name, value in output.items()
        if name not in ("status", "errors")
    }
    return rest or None


def _error_from(item: Any) -> SkillError:
    if not isinstance(item, Mapping):
        return SkillError(
            ErrorCode.TOOL_EXECUTION_FAILED,
            _line(str(item), _MESSAGE),
            recoverable=False,
        )
    details = {}
    if isinstance(item.get("details"), Mapping):
        details = dict(item["details"])
    reported_code: Any = item.get("code")
    try:
        code = ErrorCode(reported_code)
    except ValueError:
        code = ErrorCode.TOOL_EXECUTION_FAILED
        if reported_code is not None:
            details["code"] = reported_code
    if len(as_text(details)) > _DETAILS:
        details = {"cut": True}
    message, action = item.get("message"), item.get("suggested_action")
    if isinstance(action, str):
        action = _line(action, _ACTION)
    elif message or code is not ErrorCode.TOOL_EXECUTION_FAILED:
        action = None  # that of the code
    else:
        action = SILENT
    return SkillError(
        code,
        _line(str(message or "The skill gave no message"), _MESSAGE),
        recoverable=item.get("recoverable") is True,
        details=details or None,
        suggested_action=action,
    )


def _line(text: str, limit: int) -> str:
    from skillruntime.runtime.scripts.result import capped

    # Truncate first: cleaning megabytes takes longer than the call may.
    return capped(visible_line(text[: 2 * limit]), limit)
