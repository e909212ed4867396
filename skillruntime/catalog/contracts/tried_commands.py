"""Try the commands in a skill's texts on the contracts derived for its scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillruntime.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill

__all__ = ["TriedCommand", "refused_command", "tried_commands"]


@dataclass(frozen=True, slots=True)
class TriedCommand:
    """A command in the SKILL.md at ``path`` or in the usage of ``script``, and the
    reason why the derived contract refuses it. ``refusal`` is empty if the contract
    accepts the command.
    """

    path: str
    script: str
    command: str
    refusal: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the command as a JSON object, without an empty refusal."""
        document = {"script": self.script, "command": self.command}
        if self.refusal:
            document["refusal"] = self.refusal
        return document


def tried_commands(skill: Skill) -> list[TriedCommand]:
    """Try the commands of *skill* on the contracts derived for it, and return the
    results. *skill* has no written contracts.
    """
    from skillruntime.catalog.contracts.derived_contracts import derive_scripts

    derivations = derive_scripts(
        skill.resources(), skill.read_resource_bytes, skill=skill.name
    )
    tried: list[TriedCommand] = []
    for derivation in derivations.values():
        script = str(derivation.document["run"]["script"])
        for each in derivation.tried:
            path = skill.metadata.path
            tried.append(TriedCommand(path, script, each.command, each.refusal))
    return tried


def refused_command(tried: TriedCommand) -> Diagnostic:
    """Return the diagnostic for a refused command."""
    return Diagnostic(
        "command-refused",
        Severity.WARNING,
        tried.path,
        f"`{tried.command}` does not fit what {tried.script} declares: {tried.refusal}",
        hint="correct the command, or the script's parser",
    )
