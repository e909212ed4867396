"""Turn an exception into the errors of the envelope: the only place that decides what a model reads of a failure."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict

from skillruntime.contract.response import handle_skill_error
from skillruntime.errors import ErrorCode, SkillError, SkillRuntimeError

__all__ = ["Refusals", "repeated", "to_errors", "unwrapped", "with_next_step"]

_LONGEST_SCHEMA = 160  # characters: the whole error has about 80 tokens


def to_errors(error: Exception, name: str) -> list[SkillError]:
    """Return what a model reads of *error*, which ended the call of *name*.

    An error of our family carries its own message. Any other exception is a bug: it goes to the log with
    its traceback, and the model learns its type alone.
    """
    match unwrapped(error):
        case SkillRuntimeError() as ours:
            return [with_next_step(item) for item in ours.to_errors()]
        case TimeoutError():
            # It was raised by work that has ended, not by this call's deadline: nothing is still running.
            action = "Try again, or ask for less at once"
            return [SkillError(ErrorCode.TOOL_TIMEOUT, "Something the skill waited for timed out", True, None, action)]
        case unforeseen:
            import logging

            logging.getLogger("skillruntime.runtime").error(
                "%s failed with an unexpected exception", name, exc_info=unforeseen
            )
            return [with_next_step(item) for item in handle_skill_error(unforeseen, {}).errors]


def unwrapped(error: Exception) -> Exception:
    """Return the one exception inside a group (a task group wraps its own so), or *error* itself."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


_AT_FAULT = "Tell the user that the skill is at fault; other arguments will not help"
_NEXT_STEPS = {
    ErrorCode.INVALID_SKILL: _AT_FAULT,
    ErrorCode.INVALID_OUTPUT: _AT_FAULT,
    ErrorCode.INTERNAL_ERROR: "Tell the user that the skill failed inside; the same call will most likely fail again",
    ErrorCode.ACCESS_DENIED: "Tell the user that this was not allowed; do not repeat the call",
    ErrorCode.TOOL_NOT_AVAILABLE: "Tell the user what is missing",
    ErrorCode.TOOL_EXECUTION_FAILED: "If the message names an argument, change that; else tell the user what it says",
}


def with_next_step(error: SkillError) -> SkillError:
    """Return *error* with something to do about it, where whoever raised or reported it said nothing."""
    if error.suggested_action:
        return error
    otherwise = "Change what the message names, and call again" if error.recoverable else "Tell the user what it says"
    return dataclasses.replace(error, suggested_action=_NEXT_STEPS.get(error.code, otherwise))


class Refusals:
    """How often each call of a conversation was refused, by the call's digest; the latest are remembered."""

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
    """Return *error* of a call that was refused *times* times: models resend a refused call unchanged.

    The second answer says that it is the second; from the third on it has other words, and the parameter's schema.

    >>> details = {"path": "/limit", "expected": {"type": "integer", "maximum": 10}}
    >>> error = SkillError(ErrorCode.PARAM_OUT_OF_RANGE, "11 is more than the maximum 10", True, details, "Send 10")
    >>> repeated(error, 2).suggested_action
    'This same call has been refused 2 times: change it, or ask the user. Send 10'
    >>> repeated(error, 3).message
    'You have sent these same arguments 3 times; /limit must fit the schema {"type":"integer","maximum":10}'
    """
    if times < 2:
        return error
    if times == 2:
        again = f"This same call has been refused {times} times: change it, or ask the user."
        action = f"{again} {error.suggested_action}" if error.suggested_action else again
        return dataclasses.replace(error, suggested_action=action)
    details = error.details or {}
    wrong = error.message
    if details.get("path") and details.get("expected"):
        schema = json.dumps(details["expected"], ensure_ascii=False, separators=(",", ":"), default=str)
        wrong = f"{details['path']} must fit the schema {schema[:_LONGEST_SCHEMA]}"
    message = f"You have sent these same arguments {times} times; {wrong}"
    action = "Send other arguments, or tell the user what is missing; the same ones are refused every time"
    return dataclasses.replace(error, message=message, suggested_action=action)
