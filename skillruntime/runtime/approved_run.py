"""Run a prepared call; an untrusted script from a copy of its skill's files, once the host has approved just these."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from skillruntime.errors import ToolTimeoutError
from skillruntime.runtime.approval import Approval, Approve, ask, not_trusted
from skillruntime.runtime.call import Prepared
from skillruntime.runtime.grants import requirements_of
from skillruntime.runtime.skill_copy import copy_skill

__all__ = ["run_approved"]


async def run_approved(prepared: Prepared, approve: Approve | None) -> Any:
    """Return the output of the call.

    Raises:
        AccessDeniedError: the script is untrusted, and the host did not approve it.
    """
    target = prepared.target
    if not target.needs_approval:
        return await _run_within_deadline(prepared)
    from skillruntime.runtime.scripts import ScriptRunner  # loaded already: a script is about to run

    if target.skill is None or approve is None or not isinstance(target.runner, ScriptRunner):
        raise not_trusted(target.name, str(target.contract.run["script"]))
    import anyio.to_thread

    # In a thread: a skill may have megabytes, and the event loop has other calls to serve.
    with await anyio.to_thread.run_sync(copy_skill, target.skill, target.contract) as code:
        asked = requirements_of(target.contract)
        request = Approval(
            prepared.request.name,
            target.skill,
            str(target.contract.run["script"]),
            prepared.arguments,
            (*asked.environment, *asked.optional),
            code.digest,
            prepared.grants | target.runner.grants,
            asked.to_dict(),
            # From the copy: what is missing may change with the files.
            target.runner.missing(prepared.grants, code),
            target.contract.to_dict().get("derived", {}).get("confidence"),
        )
        # The deadline starts afterwards, because a person may be asked.
        granted = prepared.grants | await ask(approve, request)
        return await _run_within_deadline(dataclasses.replace(prepared, grants=granted, code=code))


async def _run_within_deadline(prepared: Prepared) -> Any:
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
