"""The token costs of one skill, part by part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillruntime.tokens.advice import Advice

__all__ = ["ResourceCost", "SectionCost", "SkillCost"]


@dataclass(frozen=True, slots=True)
class SectionCost:
    """A section of a body: its heading, its line in the body from 1, its tokens without
    its subsections'.
    """

    title: str
    line: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ResourceCost:
    """A file of a skill: ``tokens`` is None if it is not text."""

    path: str
    bytes: int
    tokens: int | None


@dataclass(frozen=True, slots=True)
class SkillCost:
    """One skill's tokens: ``metadata`` (name and description), ``body``, each resource,
    each tool's definition.
    """

    name: str
    path: str
    metadata: int
    body: int
    sections: tuple[SectionCost, ...] = ()
    resources: tuple[ResourceCost, ...] = ()
    schemas: tuple[tuple[str, int], ...] = ()
    advice: tuple[Advice, ...] = ()

    @property
    def resource(self) -> int:
        """The tokens of all its text files together."""
        # A file that is not text has no tokens that a model could read.
        return sum(resource.tokens or 0 for resource in self.resources)

    @property
    def schema(self) -> int:
        """The tokens of all its tools' definitions together."""
        return sum(tokens for _, tokens in self.schemas)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object; every number but ``line`` and ``bytes`` is in
        tokens.
        """
        document: dict[str, Any] = {
            "name": self.name,
            "path": self.path,
            "metadata": self.metadata,
            "body": self.body,
            "resource": self.resource,
            "schema": self.schema,
            "sections": [
                {"title": part.title, "line": part.line, "tokens": part.tokens}
                for part in self.sections
            ],
            "resources": [
                {"path": part.path, "bytes": part.bytes, "tokens": part.tokens}
                for part in self.resources
            ],
            "schemas": dict(self.schemas),
        }
        # Absent rather than empty: without ``--advise`` there was no search for any.
        if self.advice:
            document["advice"] = [advice.to_dict() for advice in self.advice]
        return document
