"""How skills are tested."""

from __future__ import annotations

from dataclasses import dataclass

from skillruntime.runtime.grants import Grants

__all__ = ["SkillTests"]


@dataclass(frozen=True, slots=True)
class SkillTests:
    """The options of the tests. *trust* runs scripts without a sandbox, from a copy.
    *network* and *environment* are granted to each script. *seconds* is the time for
    one skill, and *calls* the most calls that are generated for one callable. With
    *record*, calls and what they gave are written to ``tests/cases.yaml`` of their
    skill, for its author to read. *only* names the skills, or the callables of skills, that are
    tested; empty for all.
    """

    trust: bool = False
    network: bool = False
    environment: tuple[str, ...] = ()
    seconds: float = 60.0
    calls: int = 200
    sandbox: str = "auto"
    record: bool = False
    only: tuple[str, ...] = ()

    @property
    def grants(self) -> Grants:
        """The grants of each script."""
        return Grants(self.network, self.environment)

    def has_skill(self, name: str) -> bool:
        """Return whether the skill *name*, or one of its callables, is tested."""
        if not self.only:
            return True
        return any(only.partition("/")[0] == name for only in self.only)

    def has_callable(self, skill: str, name: str) -> bool:
        """Return whether the callable *name* of *skill* is tested."""
        return not self.only or skill in self.only or name in self.only

    def options(self, directory: str) -> list[str]:
        """Return the options with which ``skillruntime call`` repeats a call."""
        found = ["--skills", directory, "--trust" if self.trust else "--yes"]
        if self.network and not self.trust:
            found.append("--network")
        for name in self.environment:
            found += ["--env", name]
        return found
