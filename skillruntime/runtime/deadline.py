"""Run a prepared call inside its deadline, and say what became of it when that passed."""

from __future__ import annotations

import time
from typing import Any

from skillruntime.errors import ToolTimeoutError
from skillruntime.runtime.call import Prepared

__all__ = ["run_within_deadline"]


async def run_within_deadline(prepared: Prepared) -> Any:
    """Run the call; the only place that waits for a skill."""
    import anyio

    deadline = None if prepared.timeout is None else time.monotonic() + prepared.timeout
    with anyio.move_on_after(prepared.timeout):
        return await prepared.target.runner(prepared.arguments, prepared.context(deadline))
    raise _timed_out(prepared)


def _timed_out(prepared: Prepared) -> ToolTimeoutError:
    annotations = prepared.target.contract.annotations
    is_repeatable = bool(annotations.get("idempotent") or annotations.get("read_only"))
    # A plain function runs on in its thread (Python cannot kill a thread), so the model must not repeat it blindly.
    promised = getattr(prepared.target.runner, "stops_when_cancelled", False)
    has_stopped = bool(prepared.execution.get("stopped", promised))
    if has_stopped or is_repeatable:
        action = "Try again, or ask for less at once"
    else:
        action = "It may still be running and take effect: check before calling again, or ask the user"
    return ToolTimeoutError(
        f"The skill did not finish within {prepared.timeout:g} s" + (" and was stopped" if has_stopped else ""),
        details={"timeout_seconds": prepared.timeout, "stopped": has_stopped},
        suggested_action=action,
        recoverable=has_stopped or is_repeatable,
    )
