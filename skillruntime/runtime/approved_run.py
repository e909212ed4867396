"""Run a prepared call; an untrusted script from a copy of its skill's files, once the host has approved just these."""

from __future__ import annotations

import dataclasses
from typing import Any

from skillruntime.runtime.approval import Approval, Approve, ask, not_trusted
from skillruntime.runtime.call import Prepared
from skillruntime.runtime.deadline import run_within_deadline
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
        return await run_within_deadline(prepared)
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
        return await run_within_deadline(dataclasses.replace(prepared, grants=granted, code=code))
