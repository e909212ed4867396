"""The host's decision about one run of an untrusted skill's script, on exactly the files that will run."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.skill import Skill
from skillruntime.errors import AccessDeniedError
from skillruntime.runtime.grants import Grants

if TYPE_CHECKING:
    from skillruntime.runtime.readiness import Missing  # imports packaging, which only scripts need

__all__ = ["Answer", "Approval", "Approve", "ask", "not_trusted"]


@dataclass(frozen=True, slots=True)
class Approval:
    """What ``approve=`` decides on: running a ``script`` of an untrusted ``skill`` with these arguments.

    ``digest`` identifies the files that will run and their contract: a copy was made of them before, and nothing else
    runs. A host that keeps an approval keeps the digest with it. ``grants`` are those of the call; ``asks`` is what the
    contract asks for, and ``missing`` what the script still lacks. ``environment`` names the variables it asks for.
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
    confidence: str | None = None
    """How far a contract that was read from the script is reliable: ``"high"``, ``"medium"`` or ``"low"``; None for a
    written contract."""


Answer = bool | str | Grants
"""True or False; the digest that was approved (another one is a refusal); or grants for this call, which approve it."""

Approve = Callable[[Approval], Answer | Awaitable[Answer]]


async def ask(approve: Approve, request: Approval) -> Grants:
    """Ask the host, and return what it grants beyond the grants of *request*.

    Raises:
        AccessDeniedError: it did not approve, or it approved other files than those that would run.
    """
    answer = approve(request)
    answered = await answer if inspect.isawaitable(answer) else answer
    if isinstance(answered, Grants):
        return answered
    if answered is True or (isinstance(answered, str) and answered == request.digest):
        return Grants()
    # A truthy object (a dict, a coroutine left unawaited) is not an approval.
    changed = isinstance(answered, str) and len(answered) == len(request.digest)
    raise AccessDeniedError(
        f"The files of the untrusted skill {request.skill.name!r} have changed since {request.script} was approved"
        if changed
        else f"The host did not approve running {request.script} of the untrusted skill {request.skill.name!r}",
        suggested_action="Do not repeat the call; ask the user how to continue without it",
    )


def not_trusted(name: str, script: str) -> AccessDeniedError:
    """Return the error of an untrusted script where the host has no ``approve=``."""
    return AccessDeniedError(
        f"The skill {name.partition('/')[0]!r} comes from an untrusted directory, so its script is not run",
        details={"script": script},
        suggested_action="Tell the user: the host can approve it (approve=...); it runs in a sandbox then",
    )
