"""The host's decision about one run of an untrusted skill's script, on exactly the
files that will run; and the run.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.skill import Skill
from skillruntime.contract.document.form import may_be_repeated
from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA
from skillruntime.contract.schemas.subschemas import declared_properties
from skillruntime.errors import AccessDeniedError, ToolTimeoutError
from skillruntime.runtime.call import Prepared
from skillruntime.runtime.files.named_files import CopiedFile, NamedFiles
from skillruntime.runtime.files.skill_copy import copy_skill
from skillruntime.runtime.grants import Grants, requirements_of

if TYPE_CHECKING:
    # Imports packaging, which only scripts need.
    from skillruntime.runtime.scripts.readiness import Missing

__all__ = ["Approval", "Approve", "not_trusted_error", "run_approved"]


@dataclass(frozen=True, slots=True)
class Approval:
    """What ``approve=`` decides on: running a ``script`` of an untrusted ``skill`` with
    these arguments.

    ``digest`` identifies the files that will run and their contract: they were copied
    before the host is asked, and only the copy runs. A host that keeps an approval
    keeps the digest with it. ``grants`` are those of the call; ``asks`` is what the
    contract asks for, and ``missing`` is what the script still lacks. ``environment``
    names the variables that the script asks for.
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
    """What of the workspace will be copied for the script, with its size."""
    confidence: str | None = None
    """How reliable a contract is that was read from the script: ``"high"``,
    ``"medium"`` or ``"low"``; None for a written contract.
    """


Answer = bool | str | Grants
"""True or False; the digest that was approved (another one is a refusal); or grants for
this call, which approve it.
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
    # Loaded already: a script is about to run.
    from skillruntime.runtime.scripts.readiness import (
        missing_dotfiles,
        refuse_if_missing,
    )
    from skillruntime.runtime.scripts.runner import ScriptRunner

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
            # The files as the caller named them, not the paths of their copies.
            arguments=prepared.accepted.arguments,
            environment=(*required.environment, *required.optional),
            digest=code.digest,
            grants=known,
            asks=required.to_dict(),
            # Read from the copy, because the requirements may change with the files.
            missing=(
                *runner.missing(prepared.grants, code),
                *missing_dotfiles(named.dotfiles, skill.name),
            ),
            files=named.copied,
            confidence=target.contract.to_dict().get("derived", {}).get("confidence"),
        )
        # The deadline starts after the approval, because a person may be asked.
        granted = prepared.grants | await _ask(approve, request)
        if granted != prepared.grants:
            named = await _named_files(prepared, granted | runner.grants)
        if lacking := missing_dotfiles(named.dotfiles, skill.name):
            refuse_if_missing((*runner.missing(granted, code), *lacking))
        say = partial(_how_to_grant_more, skill.name, granted | known)
        warnings = named.warnings(lambda paths: say(dotfiles=paths))
        if not named.copied and _works_in_the_workspace(prepared):
            warnings.append(f"{_NO_FILES}. {say(files=('.',))}")
        if warnings:
            prepared.execution["warnings"] = warnings
        return await _run_within_deadline(prepared._replace(grants=granted, code=code))


_NO_FILES = (
    "The script saw no file of the workspace: it has no parameter that could name one"
)


def _works_in_the_workspace(prepared: Prepared) -> bool:
    """Return whether a script that has no parameters would find something in the
    workspace, if it worked there: it may report that there is nothing.
    """
    workspace = prepared.workspace.workspace
    references = prepared.target.contract.input.references
    if workspace.given is None or declared_properties(references, [WHOLE_SCHEMA]):
        return False
    return any(True for _ in workspace.directory.iterdir())


def _how_to_grant_more(
    skill: str,
    grants: Grants,
    *,
    dotfiles: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
) -> str:
    """Return how the host grants this to *skill* in addition to *grants*, which another
    sentence would replace.
    """
    from skillruntime.runtime.scripts.readiness import how_to_grant

    return how_to_grant(
        skill,
        grants.environment,
        network=grants.network,
        dotfiles=(*grants.dotfiles, *dotfiles),
        files=(*grants.files, *files),
    )


async def _named_files(prepared: Prepared, grants: Grants) -> NamedFiles:
    """Return what of the workspace will be copied for the call."""
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
    with anyio.move_on_after(prepared.timeout):
        return await prepared.target.runner(
            prepared.arguments, prepared.context(deadline)
        )
    raise _timed_out(prepared)


def _timed_out(prepared: Prepared) -> ToolTimeoutError:
    is_repeatable = may_be_repeated(prepared.target.contract.annotations)
    # A plain function runs on in its thread (Python cannot kill a thread), so the model
    # must not repeat it blindly.
    promised = getattr(prepared.target.runner, "stops_when_cancelled", False)
    has_stopped = bool(prepared.execution.get("stopped", promised))
    message = f"The skill did not finish within {prepared.timeout:g} s"
    if has_stopped:
        message += " and was stopped"
    if "output" in prepared.execution:
        message += "; what it had printed is in data"
    if has_stopped or is_repeatable:
        action = "Try again, or ask for less at once"
    else:
        action = (
            "It may still be running and take effect: check before calling again, or "
            "ask the user"
        )
    return ToolTimeoutError(
        message,
        details={"timeout_seconds": prepared.timeout, "stopped": has_stopped},
        suggested_action=action,
        recoverable=has_stopped or is_repeatable,
    )


async def _ask(approve: Approve, request: Approval) -> Grants:
    """Ask the host, and return what it grants beyond the grants of *request*.

    Raises:
        AccessDeniedError: it did not approve, or it approved other files than those
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
