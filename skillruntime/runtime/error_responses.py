"""Turn an exception into the errors of the envelope: the only place that decides what a model reads of a failure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from skillruntime.contract.response import handle_skill_error
from skillruntime.errors import ErrorCode, SkillError, SkillRuntimeError

__all__ = ["repeated", "schema_at", "to_errors", "unwrapped", "with_next_step"]


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


def repeated(error: SkillError, times: int, schema: Any = None) -> SkillError:
    """Return *error* of a call that was refused *times* times, with a word on that: models resend it unchanged.

    From the third time on it says so in other words, with what the *schema* of the arguments asks for at that place.
    """
    path = (error.details or {}).get("path")
    if times < 3 or path is None:  # a refusal for which the arguments are not the reason has no schema to show
        again = f"This same call has been refused {times} times: change it, or ask the user."
        action = f"{again} {error.suggested_action}" if error.suggested_action else again
        return dataclasses.replace(error, suggested_action=action)
    wanted = json.dumps(schema_at(schema, str(path)), ensure_ascii=False, default=str)
    if len(wanted) > _LONGEST_SCHEMA:
        wanted = wanted[:_LONGEST_SCHEMA] + "..."
    return dataclasses.replace(
        error,
        message=f"These arguments were refused {times} times, and nothing was run: {error.message}",
        suggested_action=f"Do not send these arguments again. {path or 'They'} must fit this schema: {wanted}",
    )


_LONGEST_SCHEMA = 600  # characters


def schema_at(schema: Any, path: str) -> Any:
    """Return what *schema* says of the value at *path*, a JSON Pointer into the arguments, as far as it is plain."""
    found = schema
    for step in path.split("/")[1:]:
        if not isinstance(found, Mapping):
            return schema
        name = step.replace("~1", "/").replace("~0", "~")
        properties = found.get("properties")
        inner = properties.get(name) if isinstance(properties, Mapping) else None
        if inner is None and name.isdecimal():
            inner = found.get("items")
        if inner is None:
            return found
        found = inner
    return found
