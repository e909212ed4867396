"""Ask the host about one run of an untrusted skill's script, with exactly the files
that will run; then run it.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.skill import Skill
from skillruntime.contract.document.form import may_be_repeated
from skillruntime.errors import AccessDeniedError, ToolTimeoutError
from skillruntime.runtime.call import Prepared
from skillruntime.runtime.files.named_files import CopiedFile, NamedFiles
from skillruntime.runtime.files.skill_copy import copy_skill
from skillruntime.runtime.grants import Grants, requirements_of
from skillruntime.runtime.waiting import DeadlinePassed, run_here

if TYPE_CHECKING:
    # Imports packaging, which only scripts need.
    from skillruntime.runtime.scripts.readiness import Missing
    from skillruntime.runtime.scripts.script_runner import ScriptRunner

__all__ = ["Approval", "Approve", "not_trusted_error", "run_approved", "run_plainly"]


@dataclass(frozen=True, slots=True)
class Approval:
    """The subject of an ``approve=`` decision: running a ``script`` of an untrusted
    ``skill`` with these arguments.

    ``digest`` identifies the files that will run and their contract: they were copied
    before the host is asked, and only the copy runs. A host that stores an approval
    must store the digest with it. ``grants`` are the grants of the call; ``asks`` are
    the contract's requirements, and ``missing`` lists what the script still lacks.
    ``environment`` names the variables that the script asks for.
    """

    name: str
    skill: Skill
    script: str
    arguments: Mapping[str, Any]
    environment: tuple[str, ...] = ()
    digest: str = ""
    grants: Grants = field(default_factory=Grants)
    asks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    files: tuple[CopiedFile, ...] = ()
    """The files of the workspace that will be copied for the script, with their
    sizes.
    """
    confidence: str | None = None
    """How reliable a contract is that was read from the script: ``"high"``,
    ``"medium"`` or ``"low"``; None for a written contract.
    """


Answer = bool | str | Grants
"""True or False; the approved digest (another digest is a refusal); or grants for this
call, which imply approval.
"""

Approve = Callable[[Approval], Answer | Awaitable[Answer]]


async def run_approved(prepared: Prepared, approve: Approve | None) -> Any:
    """Run the call and return its output; ask the host first if the script is
    untrusted.

    Raises:
        AccessDeniedError: the script is untrusted, and the host did not approve it.
    """
    target = prepared.target
    if not target.needs_approval:
        return await _run_within_deadline(prepared)
    # Already loaded, because a script is about to run.
    from skillruntime.runtime.left_out import LeftOut
    from skillruntime.runtime.scripts.readiness import refuse_if_missing
    from skillruntime.runtime.scripts.script_runner import ScriptRunner

    skill, runner = target.skill, target.runner
    script = str(target.contract.run["script"])
    if skill is None or approve is None or not isinstance(runner, ScriptRunner):
        raise not_trusted_error(target.name, script)
    import anyio.to_thread

    # Copy in a thread: a skill may have megabytes, and the event loop has other calls
    # to serve.
    with await anyio.to_thread.run_sync(copy_skill, skill, target.contract) as code:
        required = requirements_of(target.contract)
        known = prepared.grants | runner.grants
        named = await _named_files(prepared, known)
        request = Approval(
            prepared.request.name,
            skill,
            script,
            # The files under the caller's names, not the paths of their copies.
            arguments=prepared.accepted.arguments,
            environment=(*required.environment, *required.optional),
            digest=code.digest,
            grants=known,
            asks=required.to_dict(),
            # Read from the copy, because the requirements may change with the files.
            missing=runner.missing(prepared.grants, code, named.dotfiles),
            files=named.copied,
            confidence=target.contract.to_dict().get("derived", {}).get("confidence"),
        )
        # The deadline starts after the approval, because a person may be asked.
        granted = prepared.grants | await _ask(approve, request)
        if granted != prepared.grants:
            named = await _named_files(prepared, granted | runner.grants)
        if named.dotfiles:
            refuse_if_missing(runner.missing(granted, code, named.dotfiles))
        left_out = LeftOut(prepared, skill.name, granted | known, code)
        left_out.note(named)
        output = await _run_within_deadline(
            prepared._replace(grants=granted, code=code)
        )
        # After a failure the error reports it together with everything else that the
        # script lacked.
        left_out.note_unseen()
        return output


async def _named_files(prepared: Prepared, grants: Grants) -> NamedFiles:
    """Return the files of the workspace that will be copied for the call."""
    import anyio.to_thread

    from skillruntime.runtime.files.own_directory import CallFiles

    files = prepared.workspace
    if not isinstance(files, CallFiles):
        return NamedFiles()
    # In a thread: a directory may have thousands of files.
    return await anyio.to_thread.run_sync(files.look, grants)


async def _run_within_deadline(prepared: Prepared) -> Any:
    """Run the call within its timeout; only this function waits for a skill."""
    import anyio

    deadline = None
    if prepared.timeout is not None:
        deadline = time.monotonic() + prepared.timeout
    runner = prepared.target.runner
    limit = prepared.timeout
    if limit is not None:
        # The server enforces the deadline of a remote skill, and its answer comes
        # later.
        limit += getattr(runner, "grace", 0.0)
    with anyio.move_on_after(limit):
        prepared.note_start()
        return await runner(prepared.arguments, prepared.context(deadline))
    raise _timed_out(prepared)


def run_plainly(prepared: Prepared, runner: ScriptRunner) -> Any:
    """Run a script that needs no approval within its timeout, in this thread and
    without an event loop.
    """
    deadline = None
    if prepared.timeout is not None:
        deadline = time.monotonic() + prepared.timeout
    prepared.note_start()
    running = runner(prepared.arguments, prepared.context(deadline))
    try:
        return run_here(running, prepared.timeout)
    except DeadlinePassed:
        pass
    raise _timed_out(prepared)


def _timed_out(prepared: Prepared) -> ToolTimeoutError:
    is_repeatable = may_be_repeated(prepared.target.contract.annotations)
    # A plain function continues in its thread (Python cannot kill a thread), so the
    # model must not repeat it blindly.
    promised = getattr(prepared.target.runner, "stops_when_cancelled", False)
    has_stopped = bool(prepared.execution.get("stopped", promised))
    message = f"The skill did not finish within {prepared.timeout:g} s"
    if has_stopped:
        message += " and was stopped"
    details = {"timeout_seconds": prepared.timeout, "stopped": has_stopped}
    if "output" in prepared.execution:
        message += "; data is the part that it had printed by then"
        details["partial"] = True
    if has_stopped or is_repeatable:
        action = "Try again, or ask for less at once"
    else:
        action = (
            "It may still be running and take effect: check before calling again, or "
            "ask the user"
        )
    return ToolTimeoutError(
        message,
        details=details,
        suggested_action=action,
        recoverable=has_stopped or is_repeatable,
    )


async def _ask(approve: Approve, request: Approval) -> Grants:
    """Ask the host, and return its additional grants beyond those of *request*.

    Raises:
        AccessDeniedError: the host did not approve, or approved other files than those
            that would run.
    """
    answer = approve(request)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, Grants):
        return answer
    # Only True itself is an approval, no other value that counts as true, such as a
    # dict or a coroutine that was not awaited.
    if answer is True:
        return Grants()
    refusal = (
        f"The host did not approve running {request.script} of the untrusted skill "
        f"{request.skill.name!r}"
    )
    if isinstance(answer, str):
        if answer == request.digest:
            return Grants()
        if len(answer) == len(request.digest):
            refusal = (
                f"The files of {request.name!r} are not those that were approved: they "
                "changed, or the digest is another tool's"
            )
    raise AccessDeniedError(
        refusal,
        suggested_action="Do not repeat the call; ask the user how to continue without "
        "it",
    )


def not_trusted_error(name: str, script: str) -> AccessDeniedError:
    """Return the error for an untrusted script if the host has no ``approve=``."""
    return AccessDeniedError(
        f"The skill {name.partition('/')[0]!r} comes from an untrusted directory, so "
        "its script is not run",
        details={"script": script},
        suggested_action="Tell the user: the host can approve it (approve=...); it "
        "runs in a sandbox then",
    )
