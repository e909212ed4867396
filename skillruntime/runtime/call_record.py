"""The record of one event (a call, a skill loaded, a resource read), and the observers
that receive it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from skillruntime.contract.response import SkillResponse
from skillruntime.errors import SkillRuntimeError

if TYPE_CHECKING:
    from logging import Logger

    from skillruntime.runtime.call import CallRequest, Prepared

__all__ = [
    "CallRecord",
    "Observer",
    "Operation",
    "around",
    "is_logging",
    "notify",
    "record_of",
    "start",
]


class Operation(StrEnum):
    """The kind of event: OpenTelemetry's GenAI operation name if there is one, else our
    own.
    """

    CALL = "execute_tool"
    LOAD = "load_skill"
    READ = "read_resource"


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One finished event, which an ``on_call`` observer receives.

    ``name`` is the name of the callable or skill; ``path`` is the resource that was
    read. ``arguments`` are the arguments that the skill received or, for a refused
    call, those that were sent. ``response`` is the envelope, without ``data`` for a
    skill loaded or a resource read. ``started`` is in the unit of ``time.time_ns()``,
    ``duration_ns`` in nanoseconds. ``config`` is the host's own value; ``call_id`` is
    the model's id of the tool call, if the adapter knows it. Arguments and results may
    hold secrets: neither is in the ``repr``.
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
    call_id: str | None = None

    @classmethod
    def of(
        cls, request: CallRequest, prepared: Prepared | None, response: SkillResponse
    ) -> CallRecord:
        """Return the record of a call that has just ended; without *prepared* it was
        refused.
        """
        state = request.conversation_state
        return cls(
            Operation.CALL,
            str(request.name),
            request.started_at,
            round((time.perf_counter() - request.started) * 1e9),
            response,
            arguments=request.sent if prepared is None else prepared.arguments,
            session_id=None if state is None else state.id,
            config=request.options.get("config"),
            call_id=request.options.get("call_id"),
        )

    @property
    def status(self) -> str:
        """The envelope's status: ``success``, ``partial_success`` or ``failed``."""
        return self.response.status

    @property
    def error_codes(self) -> tuple[str, ...]:
        """The codes of the envelope's errors, in their order."""
        return tuple(error.code.value for error in self.response.errors)

    @property
    def repairs(self) -> int:
        """The number of repairs that the arguments needed."""
        return len((self.response.metadata or {}).get("repairs", ()))

    @property
    def version(self) -> str | None:
        """The version of the called contract, if it states one."""
        return (self.response.metadata or {}).get("version")


Observer = Callable[[CallRecord], object]
"""Receives each record, in the thread and context of the call; its result and its
exceptions do not affect the call.

An observer may also have a method ``around(name)`` that returns a context manager. It
is entered before the call and left after the record is delivered, so that its effect
(such as OpenTelemetry's current span) covers the run of the skill.
"""

_NOTHING: Final[AbstractContextManager[object]] = nullcontext()


def around(
    observers: tuple[Observer, ...], name: str
) -> AbstractContextManager[object]:
    """Return the context manager for a call of *name*; a failing observer is logged."""
    surrounding = []
    for observer in observers:
        enter = getattr(observer, "around", None)
        if enter is not None:
            surrounding.append(enter)
    if not surrounding:
        return _NOTHING
    return _entered(surrounding, name)


@contextmanager
def _entered(
    surrounding: list[Callable[[str], AbstractContextManager[object]]], name: str
) -> Iterator[None]:
    stack = ExitStack()
    for enter in surrounding:
        try:
            stack.enter_context(enter(name))
        except Exception:
            _log().exception("An observer failed before %r was called", name)
    try:
        yield
    except BaseException as error:
        # CancelledError is not an Exception, and a span must close for it too.
        _leave(stack, name, error)
        raise
    else:
        _leave(stack, name, None)


def _leave(stack: ExitStack, name: str, error: BaseException | None) -> None:
    try:
        if error is None:
            stack.close()
        else:
            stack.__exit__(type(error), error, error.__traceback__)
    except Exception:
        _log().exception("An observer failed after %r was called", name)


def notify(observers: tuple[Observer, ...], record: CallRecord) -> None:
    """Send *record* to the log and to *observers*; an observer that raises is
    logged.
    """
    if is_logging():
        subject = record.name
        if record.path:
            subject = f"{record.name} {record.path}"
        ending: str = record.status
        if record.error_codes:
            ending = f"{record.status} ({', '.join(record.error_codes)})"
        milliseconds = record.duration_ns / 1e6
        _log().debug(
            "%s %s: %s in %.1f ms", record.operation, subject, ending, milliseconds
        )
    for observer in observers:
        try:
            observer(record)
        except Exception:
            # an observer is the host's own code; its bug must not change the answer to
            # the model
            _log().exception("An observer failed on %r", record)


def is_logging() -> bool:
    """Return whether the log has a line for each call (level ``DEBUG``)."""
    return _log().isEnabledFor(10)  # `logging.DEBUG`


@cache
def _log() -> Logger:
    import logging  # at the first call, not when the library is imported: 4 ms

    return logging.getLogger("skillruntime.runtime")


def record_of(
    operation: Operation,
    name: str,
    started: tuple[int, int],
    error: SkillRuntimeError | None = None,
    *,
    path: str | None,
    session_id: str | None,
) -> CallRecord:
    """Return the record of loading a skill or reading a resource that has just ended,
    with *error* if it failed.
    """
    if error is None:
        response = SkillResponse("success")
    else:
        response = SkillResponse.failed(*error.to_errors())
    arguments = {"name": name}
    if path is not None:
        arguments["path"] = path
    wall_time, monotonic_time = started
    return CallRecord(
        operation,
        name,
        wall_time,
        time.perf_counter_ns() - monotonic_time,
        response,
        arguments,
        path=path,
        session_id=session_id,
    )


def start() -> tuple[int, int]:
    """Return the present moment for `record_of`, on two clocks: wall time and monotonic
    time, in nanoseconds.
    """
    # Wall time can jump (NTP), so durations are measured by the monotonic clock.
    return time.time_ns(), time.perf_counter_ns()
