"""Run a coroutine function from blocking code, in an event loop of its own."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

__all__ = ["run_to_end"]

_Result = TypeVar("_Result")


def run_to_end(function: Callable[..., Awaitable[_Result]], *arguments: Any) -> _Result:
    """Run ``function(*arguments)`` in an event loop of its own, with this thread's context variables.

    If this thread already runs an event loop (a notebook, say), the new loop runs in another thread, because asyncio
    and trio do not nest loops; the running loop is blocked until then, as by any blocking call.

    >>> async def double(number): return 2 * number
    >>> run_to_end(double, 21)
    42
    """
    import anyio  # at the first call: 3 ms

    context = contextvars.copy_context()
    if (sniffio := sys.modules.get("sniffio")) is not None:
        # A context copied from a coroutine into this thread still names its library; anyio would refuse to start.
        context.run(sniffio.current_async_library_cvar.set, None)
    if not _runs_event_loop():
        return context.run(anyio.run, function, *arguments)
    outcome: list[_Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(anyio.run(function, *arguments))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=context.run, args=(run,), name="skillruntime-blocking")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def _runs_event_loop() -> bool:
    """Whether an event loop is running in this very thread."""
    # asyncio is not imported for this: without it none of its loops can be running, and its import is slow.
    asyncio = sys.modules.get("asyncio")
    try:
        if asyncio is None:
            raise RuntimeError
        asyncio.get_running_loop()
    except RuntimeError:
        trio = sys.modules.get("trio")
        return trio is not None and bool(trio.lowlevel.in_trio_run())
    return True
