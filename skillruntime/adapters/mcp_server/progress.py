"""Progress of a call, for clients that ask for it.

A client that sends a progress token may wait longer than its usual limit as long as
notifications arrive (2025-11-25, lifecycle, "Timeouts").
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

__all__ = ["reporting_progress"]

_Answer = TypeVar("_Answer")
_SECONDS = 1  # between two notifications


async def reporting_progress(
    session: Any, call: Callable[[], Awaitable[_Answer]]
) -> _Answer:
    """Return the answer of *call*; while it runs, report every second to the client how
    many seconds have passed.

    How much is left is unknown, so no total is sent. Of a request without a progress
    token the session of the SDK sends nothing.
    """
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_report, session)
        answer = await call()
        tasks.cancel_scope.cancel()
    return answer


async def _report(session: Any) -> None:
    seconds = 0
    while True:
        await session.report_progress(seconds, message=f"running for {seconds} s")
        await anyio.sleep(_SECONDS)
        seconds += _SECONDS
