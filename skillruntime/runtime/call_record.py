"""What a host is told of one thing that happened: a call, a skill loaded, a resource read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from skillruntime.contract.response import SkillResponse
from skillruntime.errors import SkillRuntimeError

__all__ = ["CallRecord", "Observer", "Operation", "around", "is_logging", "notify", "record_of", "start"]

_log = logging.getLogger("skillruntime.runtime")


class Operation(StrEnum):
    """What was done: the operation names of the GenAI conventions where there is one, else ours."""

    CALL = "execute_tool"
    LOAD = "load_skill"
    READ = "read_resource"


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One thing that happened, after it did: what an ``on_call`` observer is given.

    ``name`` is the callable's or the skill's; ``path`` the resource that was read. ``arguments`` are what the skill
    received, or, for a refused call, what was sent. ``response`` is the envelope; of a skill loaded or a resource read
    its ``data`` is left out. ``started`` is a point of ``time.time_ns()``, ``duration_ns`` is in nanoseconds.
    ``config`` is what the host passed along. Arguments and results may hold secrets: neither is in the ``repr``.
    """

    operation: Operation
    name: str
    started: int
    duration_ns: int
    response: SkillResponse = field(repr=False)
    arguments: Any = field(default=None, repr=False)
    path: str | None = None
    session_id: str | None = None
    config: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def status(self) -> str:
        """The envelope's: ``success``, ``partial_success`` or ``failed``."""
        return self.response.status

    @property
    def error_codes(self) -> tuple[str, ...]:
        """The codes of the envelope's errors, in their order."""
        return tuple(error.code.value for error in self.response.errors or ())

    @property
    def repairs(self) -> int:
        """How many slips in the arguments were mended."""
        return len((self.response.metadata or {}).get("repairs", ()))

    @property
    def version(self) -> str | None:
        """The version of the contract that was called, where it states one."""
        return (self.response.metadata or {}).get("version")


Observer = Callable[[CallRecord], object]
"""Is told of each record, in the thread and context of the call; what it returns or raises changes nothing.

One that also has a method ``around(name)`` is there while a skill runs: the context manager that it returns is entered
before the call and left after its record was told, so that what it sets (a current span) is set for the skill too.
"""

_NOBODY: Final[AbstractContextManager[object]] = nullcontext()


def around(observers: tuple[Observer, ...], name: str) -> AbstractContextManager[object]:
    """Return what is to be entered while *name* is called; an observer that fails there harms nobody."""
    surrounding = [enter for each in observers if (enter := getattr(each, "around", None)) is not None]
    return _entered(surrounding, name) if surrounding else _NOBODY


@contextmanager
def _entered(surrounding: list[Callable[[str], AbstractContextManager[object]]], name: str) -> Iterator[None]:
    stack = ExitStack()
    for enter in surrounding:
        try:
            stack.enter_context(enter(name))
        except Exception:
            _log.exception("An observer failed before %r was called", name)
    try:
        yield
    except BaseException as error:  # a cancellation: what was entered is told of it
        _leave(stack, name, error)
        raise
    else:
        _leave(stack, name, None)


def _leave(stack: ExitStack, name: str, error: BaseException | None) -> None:
    try:
        stack.__exit__(None if error is None else type(error), error, None if error is None else error.__traceback__)
    except Exception:
        _log.exception("An observer failed after %r was called", name)


def notify(observers: tuple[Observer, ...], record: CallRecord) -> None:
    """Tell the log and *observers* of *record*; one that raises is logged, and harms nobody."""
    if is_logging():
        what = f"{record.name} {record.path}" if record.path else record.name
        codes = ", ".join(record.error_codes)
        _log.debug(
            "%s %s: %s%s in %.1f ms", record.operation, what, record.status, codes and f" ({codes})", _ms(record)
        )
    for observer in observers:
        try:
            observer(record)
        except Exception:
            _log.exception("An observer failed on %r", record)


def is_logging() -> bool:
    """Whether the log wants to hear of each call."""
    return _log.isEnabledFor(logging.DEBUG)


def record_of(
    operation: Operation,
    name: str,
    started: tuple[int, int],
    error: SkillRuntimeError | None = None,
    *,
    path: str | None = None,
    session_id: str | None = None,
) -> CallRecord:
    """Return the record of a skill loaded or a resource read, which ended just now, with *error* or well."""
    response = SkillResponse("success") if error is None else SkillResponse.failed(*error.to_errors())
    arguments = {"name": name} if path is None else {"name": name, "path": path}
    duration = time.perf_counter_ns() - started[1]
    return CallRecord(operation, name, started[0], duration, response, arguments, path, session_id)


def start() -> tuple[int, int]:
    """Return the moment as `record_of` takes it: by the calendar, and by the clock that only goes forward."""
    return time.time_ns(), time.perf_counter_ns()


def _ms(record: CallRecord) -> float:
    return record.duration_ns / 1e6
