"""Test whether the descriptions make the right skill win: rank requests offline among
all descriptions, or ask a model that sees the catalog as agents do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.search.words import STOP_WORDS, stem, words_of
from skillruntime.testing.trigger_tests.confused_pairs import ConfusedPair, PairCounter
from skillruntime.testing.trigger_tests.requests import Request
from skillruntime.testing.trigger_tests.word_ranking import WordRanking

if TYPE_CHECKING:
    from skillruntime.catalog.catalog import SkillCatalog

__all__ = ["LostRequest", "TriggerReport", "ask_model", "rank_requests"]

_MOST_WORDS = 8


@dataclass(frozen=True, slots=True)
class LostRequest:
    """A request that another skill wins; ``rank`` is the rank of the right skill, from
    1, or ``None`` if it is not found; ``winner`` is None if a model chose no skill.
    """

    request: Request
    winner: str | None
    rank: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the request as a JSON object."""
        return {
            "request": self.request.text,
            "skill": self.request.skill,
            "winner": self.winner,
            "rank": self.rank,
            "path": self.request.path,
        }


@dataclass(frozen=True, slots=True)
class TriggerReport:
    """The result of ranking requests. ``unknown`` are requests for skills that the
    catalog does not have, or that no model may choose; ``missing_words`` are words of a
    skill's requests that stand in no description, with the number of its requests that
    have them.
    """

    requests: int
    right: int
    lost: tuple[LostRequest, ...]
    pairs: tuple[ConfusedPair, ...]
    missing_words: dict[str, dict[str, int]]
    unknown: tuple[Request, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every request is won by its skill."""
        return not self.lost

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "ok": self.ok,
            "requests": self.requests,
            "right": self.right,
            "lost": [each.to_dict() for each in self.lost],
            "confused_pairs": [pair.to_dict() for pair in self.pairs],
            "missing_words": self.missing_words,
            "unknown_skills": sorted({str(each.skill) for each in self.unknown}),
        }


def rank_requests(catalog: SkillCatalog, requests: Sequence[Request]) -> TriggerReport:
    """Rank the skills of *catalog* for *requests* by names and descriptions, the only
    texts that a model sees when it chooses.

    A ranking cannot say that no skill fits: requests for none are left out, and are for
    `ask_model`.
    """
    catalog = catalog.for_model()
    ranking = _ranking_of(catalog)
    pairs = PairCounter(ranking, len(catalog))
    known, unknown = _split(catalog, requests)
    lost: list[LostRequest] = []
    number = 0
    for request in known:
        if request.skill is None:
            continue
        number += 1
        ranked = ranking.ranked(request.text)
        pairs.add_ranked(request.skill, ranked)
        names = [name for name, _ in ranked]
        if not names:
            lost.append(LostRequest(request, None))
        elif names[0] != request.skill:
            rank = None
            if request.skill in names:
                rank = names.index(request.skill) + 1
            lost.append(LostRequest(request, names[0], rank))
    pairs.add_alike()
    return TriggerReport(
        number,
        number - len(lost),
        tuple(lost),
        pairs.likely_pairs(),
        _missing_words(catalog, known),
        tuple(unknown),
    )


def ask_model(
    model: Any,
    catalog: SkillCatalog,
    requests: Sequence[Request],
    progress: Callable[[int], None] | None = None,
) -> TriggerReport:
    """Return which skills *model*, a chat model of LangChain, loads for *requests*: it
    sees the catalog as agents do, and one tool, ``load_skill``.
    """
    catalog = catalog.for_model()
    known, unknown = _split(catalog, requests)
    chooser = model.bind_tools([_LOAD_SKILL])
    prompt = catalog.to_prompt()
    lost: list[LostRequest] = []
    pairs = PairCounter(_ranking_of(catalog), len(catalog))
    for number, request in enumerate(known):
        if progress is not None:
            progress(number)
        answer = chooser.invoke([("system", prompt), ("user", request.text)])
        chosen = _chosen(answer)
        if _is_right(request, chosen):
            continue
        lost.append(LostRequest(request, chosen))
        if chosen in catalog and request.skill is not None:
            pairs.add_lost(request.skill, str(chosen))
    return TriggerReport(
        len(known),
        len(known) - len(lost),
        tuple(lost),
        pairs.all_pairs(),
        _missing_words(catalog, known),
        tuple(unknown),
    )


_LOAD_SKILL = {
    "title": "load_skill",
    "description": "Load a skill by its name, before using it.",
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string", "description": "The name of the skill."}},
}


def _chosen(answer: Any) -> str | None:
    for call in getattr(answer, "tool_calls", ()):
        if call["name"] == "load_skill":
            return str(call["args"].get("name", "")) or None
    return None


def _is_right(request: Request, chosen: str | None) -> bool:
    if request.skill is not None:
        return chosen == request.skill
    if request.not_skill is not None:
        return chosen != request.not_skill
    return chosen is None


def _split(
    catalog: SkillCatalog, requests: Sequence[Request]
) -> tuple[list[Request], list[Request]]:
    """Return the requests for skills of *catalog* or for none, and the others."""
    known = []
    unknown = []
    for request in requests:
        if request.skill is None or request.skill in catalog:
            known.append(request)
        else:
            unknown.append(request)
    return known, unknown


def _ranking_of(catalog: SkillCatalog) -> WordRanking:
    """Return a ranking of the names and descriptions, as a model reads them."""
    texts = {}
    for name, metadata in catalog.items():
        texts[name] = f"{name} {metadata.description}"
    return WordRanking(texts)


def _words(catalog: SkillCatalog, name: str) -> set[str]:
    """Return the meaningful words of a skill's name and description."""
    metadata = catalog[name]
    words = words_of(f"{name} {metadata.description}")
    return {word for word in words if word not in STOP_WORDS and len(word) > 2}


def _missing_words(
    catalog: SkillCatalog, requests: Sequence[Request]
) -> dict[str, dict[str, int]]:
    """Return, for each skill, the words of at least two of its requests, or of all of
    them, that stand in no description.
    """
    described: set[str] = set()
    for name in catalog:
        described |= {stem(word) for word in _words(catalog, name)}
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    numbers: Counter[str] = Counter()
    for request in requests:
        if request.skill is None:
            continue
        numbers[request.skill] += 1
        for word in set(words_of(request.text)):
            is_plain = word.isalpha() and len(word) > 2 and word not in STOP_WORDS
            if is_plain and stem(word) not in described:
                counted[request.skill][word] += 1
    found: dict[str, dict[str, int]] = {}
    for name, words in sorted(counted.items()):
        least = min(2, numbers[name])
        frequent = {
            word: number
            for word, number in words.most_common(_MOST_WORDS)
            if number >= least
        }
        if frequent:
            found[name] = frequent
    return found
