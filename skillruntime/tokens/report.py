"""What each skill of a catalog costs in tokens, tier by tier, and what a session costs
compared with loading all.

Every figure is in tokens of one model, and the report says how they were counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillruntime.errors import SkillRuntimeError
from skillruntime.tokens.advice import Advice, advise
from skillruntime.tokens.counter import Count, Model, count
from skillruntime.tokens.markdown_sections import sections
from skillruntime.tokens.schema_views import compact_json, for_model

# for the types only: tokens and catalog are one layer, and neither imports the other
if TYPE_CHECKING:
    from skillruntime.catalog.catalog import SkillCatalog
    from skillruntime.catalog.skill import Skill

__all__ = ["ResourceCost", "SectionCost", "SkillCost", "TokenReport", "measure"]


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


@dataclass(frozen=True, slots=True)
class TokenReport:
    """The costs of a catalog's skills; *catalog* is its prompt text in *style*,
    *method* how everything was counted.
    """

    model: str
    method: str
    exact: bool
    style: str
    catalog: int
    skills: tuple[SkillCost, ...]
    unreadable: tuple[tuple[str, str], ...] = ()

    def total(self, tier: str) -> int:
        """Return the tokens of all skills in *tier*: ``metadata``, ``body``,
        ``resource`` or ``schema``.
        """
        return sum(getattr(skill, tier) for skill in self.skills)

    @property
    def eager(self) -> int:
        """The tokens of loading everything at once: names, descriptions and bodies,
        without resources and schemas.
        """
        return self.total("metadata") + self.total("body")

    def session(self, activations: int) -> int:
        """Return the tokens of a session that activates so many skills: the catalog and
        as many average bodies.
        """
        if not self.skills:
            return self.catalog
        activations = min(activations, len(self.skills))
        return self.catalog + round(activations * self.total("body") / len(self.skills))

    @property
    def advice(self) -> list[Advice]:
        """All advice, the largest saving first."""
        return sorted(
            (one for skill in self.skills for one in skill.advice),
            key=lambda one: (-one.tokens, one.path),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the whole report as a JSON object."""
        above = (self.catalog - self.total("metadata")) / max(len(self.skills), 1)
        return {
            "unit": "tokens",
            "model": self.model,
            "method": self.method,
            "exact": self.exact,
            "style": self.style,
            "totals": {
                "skills": len(self.skills),
                "catalog": self.catalog,
                "catalog_above_metadata_per_skill": round(above, 2),
                **{
                    tier: self.total(tier)
                    for tier in ("metadata", "body", "resource", "schema")
                },
                "eager": self.eager,
                "session": {
                    str(activations): self.session(activations)
                    for activations in (1, 3, 10)
                },
            },
            "skills": [skill.to_dict() for skill in self.skills],
            "unreadable": [
                {"name": name, "reason": reason} for name, reason in self.unreadable
            ],
        }


def measure(
    catalog: SkillCatalog,
    *,
    model: Model = "gpt-4o",
    style: str = "compact",
    with_advice: bool = False,
    with_resources: bool = True,
    progress: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> TokenReport:
    """Return what the skills of *catalog* cost, those the model may see and those it
    may not.

    Every body is read, and every file of every skill unless *with_resources* is off.
    *progress* wraps the names as they are worked through. A skill that cannot be read
    is listed in ``unreadable`` and costs nothing.
    """

    def tokens(text: str) -> int:
        return count(text, model).tokens

    costs: list[SkillCost] = []
    unreadable: list[tuple[str, str]] = []
    for name in progress(list(catalog)):
        try:
            costs.append(
                _cost(catalog.activate(name), tokens, with_advice, with_resources)
            )
        # One broken skill must not cost the report of the others.
        except (SkillRuntimeError, OSError) as error:
            unreadable.append((name, str(error)))
    # Counted as one text, as it is sent: the sum of its entries would be a few tokens
    # off.
    prompt = count(catalog.to_prompt(style), model)
    method: Count = count("", model)
    label = model if isinstance(model, str) else method.method
    return TokenReport(
        label,
        method.method,
        method.exact,
        style,
        prompt.tokens,
        tuple(costs),
        tuple(unreadable),
    )


# How many sections of a body a report keeps: the largest.
_SECTIONS = 5


def _cost(
    skill: Skill, tokens: Callable[[str], int], with_advice: bool, with_resources: bool
) -> SkillCost:
    parts = [
        SectionCost(
            part.title or "(before the first heading)", part.line, tokens(part.text)
        )
        for part in sections(skill.body)
    ]
    largest = sorted(parts, key=lambda part: (-part.tokens, part.line))[:_SECTIONS]
    tools = [
        (name, each.description, each.input.document)
        for name, each in skill.contracts.items()
    ]
    path = skill.metadata.path
    advice: Sequence[Advice] = ()
    if with_advice:
        schemas = {
            name: {**schema, "description": said}
            for name, said, schema in tools
            if not isinstance(schema, bool)
        }
        first = _first_line(path, skill.body)
        advice = advise(
            skill.name,
            skill.description,
            skill.body,
            schemas,
            path=path,
            count=tokens,
            first_line=first,
        )
    return SkillCost(
        name=skill.name,
        path=path,
        metadata=tokens(skill.name) + tokens(skill.description),
        body=tokens(skill.body),
        sections=tuple(largest),
        resources=tuple(_resources(skill, tokens)) if with_resources else (),
        schemas=tuple(
            (name, tokens(_definition(name, said, schema)))
            for name, said, schema in tools
        ),
        advice=tuple(advice),
    )


def _resources(skill: Skill, tokens: Callable[[str], int]) -> Iterable[ResourceCost]:
    for resource in skill.resources():
        try:
            text: str | None = skill.read_resource(resource.path)
        except (SkillRuntimeError, OSError, UnicodeError):
            # a picture or an archive: it has bytes, and no tokens before it is read
            text = None
        yield ResourceCost(
            resource.path, resource.bytes, None if text is None else tokens(text)
        )


def _definition(name: str, description: str, schema: Any) -> str:
    """Return a tool's definition as JSON: what every provider receives, before its own
    framing.
    """
    return compact_json(
        {"name": name, "description": description, "parameters": for_model(schema)}
    )


def _first_line(path: str, body: str) -> int:
    """Return the line of the file that its body begins on; 1 if the body is not found
    in it.
    """
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 1
    # From the end: the body is the rest of the file, and frontmatter may quote its
    # first words.
    start = text.rfind(body.replace("\r\n", "\n")) if body else -1
    return text.count("\n", 0, start) + 1 if start > 0 else 1
