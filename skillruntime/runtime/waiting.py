"""Wait in an event loop, or without one. A coroutine that waits only with these
functions runs in both: awaited in a loop, or by `run_here` in its caller's thread,
where each wait blocks the thread. So a blocking call of a script does not need an event
loop, whose import takes a quarter of a command's start.
"""

from __future__ import annotations

import math
import select
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = [
    "DeadlinePassed",
    "in_thread",
    "readable",
    "run_here",
    "seconds_left",
    "shielded",
    "sleep",
]

_Result = TypeVar("_Result")


class DeadlinePassed(BaseException):
    """The deadline of `run_here` passed; a BaseException, so that ``except Exception``
    does not catch it.
    """


class _Blocking(threading.local):
    """Whether this thread waits by blocking, and until when (`time.monotonic`)."""

    is_on = False
    deadline: float | None = None


_blocking = _Blocking()


def run_here(coroutine: Coroutine[Any, Any, _Result], seconds: float | None) -> _Result:
    """Run *coroutine* to its end in this thread, without an event loop.

    Raises:
        DeadlinePassed: a wait took longer than the *seconds* allow.
        RuntimeError: *coroutine* waits for something that needs an event loop.
    """
    before = _blocking.is_on, _blocking.deadline
    _blocking.is_on = True
    _blocking.deadline = None if seconds is None else time.monotonic() + seconds
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: _Result = end.value
        return result
    finally:
        coroutine.close()
        _blocking.is_on, _blocking.deadline = before
    raise RuntimeError("the coroutine waits for an event loop")


async def in_thread(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Run *function* and return its result: in a thread, so that the loop is not
    blocked, or without a loop in this thread.
    """
    if _blocking.is_on:
        return function(*arguments)
    import anyio.to_thread

    return await anyio.to_thread.run_sync(function, *arguments)


def seconds_left() -> float | None:
    """Return the seconds until the deadline of this task or thread; None if it has
    none.
    """
    if _blocking.is_on:
        deadline = _blocking.deadline
        return None if deadline is None else deadline - time.monotonic()
    import anyio

    left = anyio.current_effective_deadline() - anyio.current_time()
    return left if math.isfinite(left) else None


async def sleep(seconds: float) -> None:
    """Wait for *seconds*."""
    await readable((), seconds)


async def readable(
    descriptors: Sequence[int], seconds: float | None = None
) -> Sequence[int]:
    """Wait until some of *descriptors* are readable, and return these; return none
    after *seconds*.
    """
    if _blocking.is_on:
        return _readable_here(descriptors, seconds)
    import anyio

    with anyio.move_on_after(seconds):
        if not descriptors:
            await anyio.sleep_forever()
        # An epoll descriptor is itself readable when one of its descriptors is, so one
        # task can wait for all of them.
        with select.epoll() as poll:
            for descriptor in descriptors:
                poll.register(descriptor, select.EPOLLIN)
            await anyio.wait_readable(poll.fileno())
            return [descriptor for descriptor, _ in poll.poll(0)]
    return ()


def _readable_here(descriptors: Sequence[int], seconds: float | None) -> Sequence[int]:
    limit, is_deadline = seconds, False
    if _blocking.deadline is not None:
        left = max(0.0, _blocking.deadline - time.monotonic())
        if limit is None or left < limit:
            limit, is_deadline = left, True
    with select.epoll() as poll:
        for descriptor in descriptors:
            poll.register(descriptor, select.EPOLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(limit)]
    if not ready and is_deadline:
        raise DeadlinePassed
    return ready


@contextmanager
def shielded(seconds: float) -> Iterator[None]:
    """Protect this block from deadlines and cancellations for *seconds*; after that the
    block ends quietly.
    """
    if not _blocking.is_on:
        import anyio

        with anyio.move_on_after(seconds, shield=True):
            yield
        return
    before, _blocking.deadline = _blocking.deadline, time.monotonic() + seconds
    try:
        yield
    except DeadlinePassed:
        return
    finally:
        _blocking.deadline = before
