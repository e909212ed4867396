"""An exception as the errors of the envelope: the one place where what went wrong becomes what a model is told."""

from __future__ import annotations

import dataclasses
import logging

from skillruntime.contract.response import handle_skill_error
from skillruntime.errors import ErrorCode, SkillError, SkillRuntimeError

__all__ = ["to_errors", "unwrapped"]

_log = logging.getLogger("skillruntime.runtime")


def to_errors(error: Exception, name: str) -> list[SkillError]:
    """Return what a model is told of *error*, which ended the call of *name*.

    An error of our family says what it has to say. Anything else that nobody foresaw is a bug: it goes to the log with
    its traceback, and the model learns its type alone.
    """
    match unwrapped(error):
        case SkillRuntimeError() as ours:
            return list(ours.to_errors())
        case TimeoutError():
            # It was raised by work that has ended, not by our deadline: nothing of it goes on.
            action = "Try again, or ask for less at once"
            return [SkillError(ErrorCode.TOOL_TIMEOUT, "Something the skill waited for timed out", True, None, action)]
        case unforeseen:
            _log.error("%s failed with an unexpected exception", name, exc_info=unforeseen)
            action = "Tell the user that the skill failed inside; the same call will most likely fail again"
            told = handle_skill_error(unforeseen, {}).errors or []
            return [dataclasses.replace(item, suggested_action=action) for item in told]


def unwrapped(error: Exception) -> Exception:
    """Return the one exception inside a group (a task group wraps its own so), or *error* itself."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
