"""Decide the bars of a token report, for the page and the image alike: in the order in
which a conversation pays, or else the largest first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from skillruntime.tokens.advice import Advice
from skillruntime.tokens.costs import SkillCost

__all__ = [
    "LOADED",
    "Kind",
    "Report",
    "conversation_costs",
    "largest_first",
    "loaded_tokens",
    "skills_text",
]


class Report(Protocol):
    """The part of a `TokenReport` that its page and its image need."""

    @property
    def model(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    @property
    def catalog(self) -> int: ...
    @property
    def skills(self) -> tuple[SkillCost, ...]: ...
    @property
    def unreadable(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def advice(self) -> list[Advice]: ...
    @property
    def eager(self) -> int: ...
    def session(self, activations: int) -> int: ...
    def total(self, tier: str) -> int: ...


class Kind(NamedTuple):
    """One kind of tokens: the field of `SkillCost`, its name, and when it is paid."""

    tier: str
    name: str
    when: str


LOADED = (
    Kind("metadata", "name and description", "in every request"),
    Kind("body", "instructions", "when the skill is loaded"),
    Kind("schema", "tool definitions", "in every request, or when the skill is loaded"),
)
"""What a conversation pays for a loaded skill: the parts of its bar, in the order in
which they are paid. The files of a skill are left out: a conversation reads few of
them, and together they often have ten times the tokens of everything else.
"""


def conversation_costs(report: Report) -> list[tuple[str, int]]:
    """Return the bars of a conversation that loads more and more skills, and at last
    that of all instructions in every request: names and tokens.
    """
    number_of_skills = len(report.skills)
    bars = [("the list of skills alone", report.catalog)]
    for number in sorted({min(number, number_of_skills) for number in (1, 3, 10)}):
        if number == 0:
            continue
        bars.append((f"with {skills_text(number)} loaded", report.session(number)))
    bars.append(("everything at once", report.eager))
    return bars


def largest_first(skills: Iterable[SkillCost]) -> list[SkillCost]:
    """Return *skills* in the order of the length of their bars."""
    return sorted(skills, key=lambda skill: (-loaded_tokens(skill), skill.name))


def loaded_tokens(skill: SkillCost) -> int:
    """Return the tokens of *skill* in a conversation that has loaded it."""
    return sum(getattr(skill, kind.tier) for kind in LOADED)


def skills_text(number: int) -> str:
    """Return *number* with the word: ``1 skill``, ``1,200 skills``."""
    return f"{number:,} skill{'s' * (number != 1)}"
