"""Render metadata as the list of skills for a model, within a token budget, with a
report. Pure.

Laws: the text never exceeds the budget; the same skills give the same bytes; no
metadata can close a tag or open a section.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from skillruntime.catalog.skill import SkillMetadata
from skillruntime.catalog.visibility import visible_line
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["STYLES", "Rendered", "estimate_tokens", "render"]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The ``text``, its ``tokens``, the ``budget`` (``None`` if there was none), and
    how each skill is listed.

    ``included`` skills are listed in full, ``shortened`` ones with their first
    sentence, ``name_only`` ones by name, ``omitted`` ones not at all; each is a sorted
    tuple of names. ``estimated``: the tokens are an estimate.
    """

    text: str
    tokens: int
    budget: int | None
    included: tuple[str, ...]
    shortened: tuple[str, ...] = ()
    name_only: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Style:
    """One form of the list: the text before, between and after the skills, and how one
    skill is written.

    ``verbatim`` descriptions keep their line breaks; ``none`` is the text of an empty
    list.
    """

    before: str
    after: str
    between: str
    write: Callable[[str, str, str], str]
    more: Callable[[int], str]
    verbatim: bool = False
    none: str = ""


_ESSENTIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# A full stop must be followed by a space, so that "v1.5" does not end a sentence;
# Chinese has no spaces.
_SENTENCE = lazy_pattern(r"[.!?](?=\s)|[。!?]")
_MORE = "{} more skills are not listed; find them with search_skills."


def _without_tags(text: str) -> str:
    """Return *text* on one line in which no tag can begin or end."""
    # Only "<" opens a tag; escaping ">" and "&" as well would cost tokens in every
    # description.
    return visible_line(text).replace("<", "&lt;")


def _xml(text: str) -> str:
    text = visible_line(text)
    for character, entity in _ESSENTIAL.items():
        text = text.replace(character, entity)
    return text


def compact_entry(name: str, description: str, path: str = "") -> str:
    """Return the line of one skill, in which no tag can begin or end."""
    entry = f"- {_without_tags(name)}"
    if description:
        entry += f": {_without_tags(description)}"
    return entry


def _markdown_entry(name: str, description: str, path: str) -> str:
    entry = f"- **{_without_tags(name)}**"
    if description:
        entry += f": {_without_tags(description)}"
    return entry


def _xml_entry(name: str, description: str, path: str) -> str:
    content = f"<name>{_xml(name)}</name>"
    if description:
        content += f"<description>{_xml(description)}</description>"
    return f"<skill>{content}</skill>"


def _json_entry(name: str, description: str, path: str) -> str:
    document = {"name": visible_line(name)}
    if description:
        document["description"] = visible_line(description)
    # The JSON list can be embedded in HTML or XML, where "</" would close a tag.
    return json.dumps(document, ensure_ascii=False).replace("<", "\\u003c")


def _reference_entry(name: str, description: str, path: str) -> str:
    from html import escape  # as skills-ref does; its import costs a start 2 ms

    lines = ["<skill>", "<name>", escape(name), "</name>"]
    if description:
        lines += ["<description>", escape(description), "</description>"]
    return "\n".join([*lines, "<location>", path, "</location>", "</skill>"])


STYLES = {
    "compact": Style(
        "Skills (load one by name before using it):\n",
        "",
        "\n",
        compact_entry,
        _MORE.format,
    ),
    "markdown": Style(
        "## Skills\n\n", "", "\n", _markdown_entry, ("\n" + _MORE).format
    ),
    "xml": Style(
        "<available_skills>\n",
        "\n</available_skills>",
        "\n",
        _xml_entry,
        lambda n: f"<more>{_MORE.format(n)}</more>",
    ),
    "json": Style(
        '{"skills": [',
        "]}",
        ",\n",
        _json_entry,
        lambda n: json.dumps({"more": n, "find": "search_skills"}),
    ),
    "reference": Style(
        "<available_skills>\n",
        "\n</available_skills>",
        "\n",
        _reference_entry,
        lambda n: f"<more>\n{_MORE.format(n)}\n</more>",
        verbatim=True,
        none="<available_skills>\n</available_skills>",
    ),
}


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens in *text*, rather too high than too low.

    One token for every three ASCII characters, one and a half for any other character.

    >>> estimate_tokens("Read PDF files")
    5
    """
    # Real English descriptions have 5.2 characters per token of o200k_base; 3 leaves a
    # margin for names and code.
    others = sum(map(len, re.findall(r"[^\x00-\x7f]+", text)))
    return -(-(len(text) - others) // 3) + -(-others * 3 // 2)


def render(
    skills: Iterable[SkillMetadata],
    budget_tokens: int | None = None,
    style: str = "compact",
    *,
    pins: Sequence[str] = (),
    count: Callable[[str], int] | None = None,
) -> Rendered:
    """Return the list of *skills* in at most *budget_tokens*, and how each is listed.

    If not all fit in full, the budget goes first to *pins*, then to the name of every
    skill, then to the first sentence of each description, then to full descriptions.
    The text says how many skills are missing.

    Raises:
        ValueError: the style is unknown, or the budget is negative.
    """
    form = STYLES.get(style)
    if form is None:
        raise ValueError(f"unknown style {style!r}; use one of {', '.join(STYLES)}")
    if budget_tokens is not None and budget_tokens < 0:
        raise ValueError(f"the budget must not be negative (got {budget_tokens})")
    counted = count or estimate_tokens
    ordered = sorted(skills, key=lambda skill: skill.name)
    entries = _Entries(form, ordered)
    characters = sum(len(skill.name) + len(skill.description) for skill in ordered)
    # The usual case: everything fits, and no entry has to be measured on its own.
    if (
        budget_tokens is None
        or characters <= _CHARACTERS_A_TOKEN * budget_tokens + 4_000
    ):
        everything = _Layout(entries, [_FULL] * len(ordered)).text()
        tokens = counted(everything)
        if budget_tokens is None or tokens <= budget_tokens:
            names = tuple(skill.name for skill in ordered)
            return Rendered(
                everything, tokens, budget_tokens, names, estimated=count is None
            )
    layout = _fit(entries, budget_tokens, frozenset(pins), counted)
    text = layout.text()
    return Rendered(
        text,
        counted(text),
        budget_tokens,
        included=layout.names(_FULL),
        shortened=layout.names(_SHORT),
        name_only=layout.names(_NAME),
        omitted=layout.names(_OMITTED),
        estimated=count is None,
    )


_OMITTED, _NAME, _SHORT, _FULL = range(4)
_CHARACTERS_A_TOKEN = 8
"""More characters per token than real descriptions have (5.2 in English). A longer list
is not counted as a whole, because that can take seconds.
"""
_MAX_MISSES = 64
"""After this many entries in a row that do not fit, the remaining ones are not
measured.
"""


class _Entries:
    """How each of *skills* is written in *form*."""

    def __init__(self, form: Style, skills: list[SkillMetadata]) -> None:
        self.form = form
        self.skills = skills
        # A description is asked for at several levels and in several layouts.
        self._descriptions: dict[int, str] = {}

    def entry(self, position: int, level: int) -> str:
        """Return one skill as it is written at *level*."""
        skill = self.skills[position]
        if level == _NAME:
            return self.form.write(skill.name, "", skill.path)
        text = self._description(position)
        if level == _SHORT:
            text = first_sentence(text)
        return self.form.write(skill.name, text, skill.path)

    def _description(self, position: int) -> str:
        text = self._descriptions.get(position)
        if text is None:
            text = self.skills[position].description
            if not self.form.verbatim:
                text = visible_line(text)
            self._descriptions[position] = text
        return text


@dataclass(slots=True)
class _Layout:
    """At which level each skill is listed."""

    entries: _Entries
    levels: list[int]

    def text(self) -> str:
        """Return the whole text."""
        form = self.entries.form
        if not self.levels:
            return form.none
        written = [
            self.entries.entry(position, level)
            for position, level in enumerate(self.levels)
            if level
        ]
        omitted = len(self.levels) - len(written)
        if omitted:
            written.append(form.more(omitted))
        return form.before + form.between.join(written) + form.after

    def names(self, level: int) -> tuple[str, ...]:
        return tuple(
            skill.name
            for skill, own in zip(self.entries.skills, self.levels, strict=True)
            if own == level
        )


def _fit(
    entries: _Entries, budget: int, pins: frozenset[str], count: Callable[[str], int]
) -> _Layout:
    """Return the fullest layout within *budget*.

    The layout is planned with the sum of the entries' tokens, then checked with the
    whole text, because tokens merge across entries. If the text exceeds the budget, the
    layout is planned again with a smaller allowance.
    """
    planner = _Planner(entries, pins, count)
    allowance = budget
    while True:
        layout = planner.plan(allowance)
        excess = count(layout.text()) - budget
        if excess <= 0:
            return layout
        if not any(layout.levels):
            return _Layout(_Entries(_NOTHING, entries.skills), layout.levels)
        # At least one token less each time, so the loop ends.
        allowance -= max(excess, 1)


class _Planner:
    """Plans layouts with the sum of the *entries*' tokens."""

    def __init__(
        self, entries: _Entries, pins: frozenset[str], count: Callable[[str], int]
    ) -> None:
        self._entries = entries
        self._count = count
        form = entries.form
        skills = entries.skills
        # Skills after the pins are in alphabetical order, so the text does not depend
        # on the file system.
        positions = range(len(skills))
        self._pinned = [at for at in positions if skills[at].name in pins]
        others = [at for at in positions if skills[at].name not in pins]
        self._order = self._pinned + others
        # Reserve the line about missing skills from the start, with the largest number
        # that it can contain.
        last_line = form.between + form.more(len(skills)) + form.after
        self._frame = count(form.before) + count(last_line)
        self._costs: dict[tuple[int, int], int] = {}

    def plan(self, allowance: int) -> _Layout:
        """Return the fullest layout whose entries have at most *allowance* tokens."""
        layout = _Layout(self._entries, [_OMITTED] * len(self._entries.skills))
        left = allowance - self._frame
        left = self._raise(layout, self._pinned, _FULL, left)
        left = self._raise(layout, self._order, _NAME, left)
        # Descriptions are added only if all names fit; otherwise measuring them would be
        # useless.
        if _OMITTED not in layout.levels:
            left = self._raise(layout, self._order, _SHORT, left)
            self._raise(layout, self._order, _FULL, left)
        # A description of one sentence is not shortened: report it as included.
        for position, level in enumerate(layout.levels):
            if level != _SHORT:
                continue
            short = self._entries.entry(position, _SHORT)
            if short == self._entries.entry(position, _FULL):
                layout.levels[position] = _FULL
        return layout

    def _raise(
        self, layout: _Layout, positions: list[int], level: int, left: int
    ) -> int:
        """List the skills at *positions* at *level*, as long as the *left* tokens
        suffice; return how many tokens remain.
        """
        misses = 0
        for position in positions:
            current = layout.levels[position]
            if current >= level:
                continue
            step = self._cost(position, level) - self._cost(position, current)
            if step <= left:
                layout.levels[position] = level
                left -= step
                misses = 0
                continue
            # A longer entry can fail while a later, shorter one still fits. Names are
            # the exception: a list with gaps would hide that the budget ended here.
            misses += 1
            if level == _NAME or misses > _MAX_MISSES:
                break
        return left

    def _cost(self, position: int, level: int) -> int:
        if level == _OMITTED:
            return 0
        key = (position, level)
        if key not in self._costs:
            entry = self._entries.entry(position, level)
            self._costs[key] = self._count(self._entries.form.between + entry)
        return self._costs[key]


_NOTHING = Style("", "", "", compact_entry, lambda n: "")


def first_sentence(text: str) -> str:
    """Return the first sentence of *text*, in English or Chinese.

    >>> first_sentence("Read PDF files, v1.5 too. Use when a PDF comes.")
    'Read PDF files, v1.5 too.'
    """
    stop = _SENTENCE.search(text)
    if stop is None:
        return text
    return text[: stop.end()]
