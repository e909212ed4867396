"""Run a coroutine function from blocking code, in an event loop of its own."""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["run_to_end"]

_Result = TypeVar("_Result")


def run_to_end(function: Callable[..., Awaitable[_Result]], *arguments: Any) -> _Result:
    """Run ``function(*arguments)`` in an event loop of its own, with this thread's
    context variables.

    If this thread already runs an event loop (a notebook, say), the new loop runs in
    another thread, because asyncio and trio do not nest loops; the running loop is
    blocked until then, as by any blocking call.

    >>> async def double(number): return 2 * number
    >>> run_to_end(double, 21)
    42
    """
    import anyio.from_thread  # at the first call: 3 ms

    if _runs_event_loop():
        with anyio.from_thread.start_blocking_portal() as portal:
            return portal.call(function, *arguments)
    context = contextvars.copy_context()
    if (sniffio := sys.modules.get("sniffio")) is not None:
        # A context copied from a coroutine into this thread still names its library;
        # anyio would refuse to start.
        context.run(sniffio.current_async_library_cvar.set, None)
    return context.run(anyio.run, function, *arguments)


def _runs_event_loop() -> bool:
    """Return whether an event loop is running in this very thread."""
    # Do not import asyncio or trio here. The import is slow, and a library that is not
    # imported has no running event loop.
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:
        # AttributeError: another thread is importing it just now.
        with suppress(RuntimeError, AttributeError):
            asyncio.get_running_loop()
            return True
    trio = sys.modules.get("trio")
    if trio is None:
        return False
    with suppress(AttributeError):
        return bool(trio.lowlevel.in_trio_run())
    return False
