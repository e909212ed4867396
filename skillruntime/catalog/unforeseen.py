"""Contain an unforeseen exception to one skill: the skill is refused with a message,
the log has the traceback, and reading continues with the other skills.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from skillruntime.errors import InvalidSkillError, SkillRuntimeError

__all__ = ["refusing_unforeseen"]

_log = logging.getLogger("skillruntime.catalog")


@contextmanager
def refusing_unforeseen(path: str) -> Iterator[None]:
    """Turn an unforeseen exception into an `InvalidSkillError` while the skill at
    *path* is read.

    Code that goes through skills catches `SkillRuntimeError`, so nothing else is
    needed: anyone may have written the files of a skill.
    """
    try:
        yield
    except (SkillRuntimeError, MemoryError):
        raise
    except Exception as error:
        # The exception is also an error in this library, so it is logged.
        _log.exception("%s could not be read", path)
        raise InvalidSkillError(
            f"The skill at {path!r} cannot be read ({type(error).__name__})",
            suggested_action="Continue without this skill",
        ) from None
