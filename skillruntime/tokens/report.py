"""Measure the tokens of each skill of a catalog, tier by tier, and compare a session
with loading everything.

Every figure is in tokens of one model, and the report says how they were counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillruntime.errors import SkillRuntimeError
from skillruntime.tokens.costs import ResourceCost, SectionCost, SkillCost
from skillruntime.tokens.counter import Count, KeptCounts, Model, count
from skillruntime.tokens.schema_views import compact_json, for_model

# For the types only: tokens and catalog are one layer, and neither imports the other.
if TYPE_CHECKING:
    from skillruntime.catalog.catalog import SkillCatalog
    from skillruntime.catalog.skill import Skill
    from skillruntime.tokens.advice import Advice

__all__ = ["ResourceCost", "SectionCost", "SkillCost", "TokenReport", "measure"]


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

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the costs of a conversation."""
        from skillruntime.tokens.report_page import report_summary

        return report_summary(self)

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
        """Return the tokens of a session that activates this many skills: the catalog
        and as many average bodies.
        """
        if not self.skills:
            return self.catalog
        activations = min(activations, len(self.skills))
        return self.catalog + round(activations * self.total("body") / len(self.skills))

    @property
    def advice(self) -> list[Advice]:
        """All advice, the largest saving first."""
        advice = itertools.chain.from_iterable(skill.advice for skill in self.skills)
        return sorted(advice, key=lambda saving: (-saving.tokens, saving.path))

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
                "metadata": self.total("metadata"),
                "body": self.total("body"),
                "resource": self.total("resource"),
                "schema": self.total("schema"),
                "eager": self.eager,
                "session": {
                    "1": self.session(1),
                    "3": self.session(3),
                    "10": self.session(10),
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
    with_sections: bool = True,
    keep: bool = False,
    progress: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> TokenReport:
    """Measure the tokens of all skills of *catalog*, including those hidden from the
    model.

    Every body is read, and every file of every skill unless *with_resources* is off.
    Without *with_sections* bodies are not divided into sections, which takes as long as
    everything else. With *keep* the counts are kept on disk for later reports of the
    same texts. *progress* wraps the names as they are worked through. A skill that
    cannot be read is listed in ``unreadable`` and costs nothing.
    """

    kept = KeptCounts(model) if keep and isinstance(model, str) else None

    def tokens(text: str) -> int:
        if kept is not None:
            return kept.count(text)
        return count(text, model).tokens

    parts = _Parts(with_sections, with_resources, with_advice)
    costs: list[SkillCost] = []
    unreadable: list[tuple[str, str]] = []
    for name in progress(list(catalog)):
        try:
            skill = catalog.activate(name)
            cost = _cost(skill, tokens, parts)
        except (SkillRuntimeError, OSError) as error:
            # One broken skill must not prevent the report of the others.
            unreadable.append((name, str(error)))
        else:
            costs.append(cost)
    # Counted as one text, as it is sent: the sum of its entries would be a few tokens
    # off.
    prompt = tokens(catalog.to_prompt(style))
    if kept is not None:
        kept.save()
    method: Count = count("", model)
    label = model if isinstance(model, str) else method.method
    return TokenReport(
        label,
        method.method,
        method.exact,
        style,
        prompt,
        tuple(costs),
        tuple(unreadable),
    )


# How many sections of a body a report keeps: the largest.
_SECTIONS = 5


class _Parts(NamedTuple):
    """The parts of a skill that are measured besides its name, description, body and
    tools.
    """

    sections: bool
    resources: bool
    advice: bool


def _cost(skill: Skill, tokens: Callable[[str], int], parts: _Parts) -> SkillCost:
    contracts = skill.contracts
    path = skill.metadata.path
    advice: Sequence[Advice] = ()
    if parts.advice:
        schemas: dict[str, Any] = {}
        for name, contract in contracts.items():
            schema = contract.input.document
            if not isinstance(schema, bool):
                schemas[name] = {**schema, "description": contract.description}
        from skillruntime.tokens.advice import advise  # the parser of Markdown

        advice = advise(
            skill.name,
            skill.description,
            skill.body,
            schemas,
            path=path,
            count=tokens,
            first_line=_first_line(path, skill.body),
        )
    definitions: list[tuple[str, int]] = []
    for name, contract in contracts.items():
        text = _definition(name, contract.description, contract.input.document)
        definitions.append((name, tokens(text)))
    return SkillCost(
        name=skill.name,
        path=path,
        metadata=tokens(skill.name) + tokens(skill.description),
        body=tokens(skill.body),
        sections=_largest_sections(skill.body, tokens) if parts.sections else (),
        resources=tuple(_resources(skill, tokens)) if parts.resources else (),
        schemas=tuple(definitions),
        advice=tuple(advice),
    )


def _largest_sections(
    body: str, tokens: Callable[[str], int]
) -> tuple[SectionCost, ...]:
    from skillruntime.tokens.markdown_sections import sections  # the parser of Markdown

    costs: list[SectionCost] = []
    for section in sections(body):
        title = section.title or "(before the first heading)"
        costs.append(SectionCost(title, section.line, tokens(section.text)))
    costs.sort(key=lambda part: (-part.tokens, part.line))
    return tuple(costs[:_SECTIONS])


def _resources(skill: Skill, tokens: Callable[[str], int]) -> Iterable[ResourceCost]:
    for resource in skill.resources():
        cost: int | None
        try:
            text = skill.read_resource(resource.path)
        except (SkillRuntimeError, OSError, UnicodeError):
            # A picture or an archive: it has bytes, and no tokens before it is read.
            cost = None
        else:
            cost = tokens(text)
        yield ResourceCost(resource.path, resource.bytes, cost)


def _definition(name: str, description: str, schema: Any) -> str:
    """Return a tool's definition as JSON, as every provider receives it before its own
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
    if not body:
        return 1
    # From the end: the body is the rest of the file, and frontmatter may quote its
    # first words.
    start = text.rfind(body.replace("\r\n", "\n"))
    if start < 0:
        return 1
    return text.count("\n", 0, start) + 1
