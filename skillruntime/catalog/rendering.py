"""Metadata -> the list of skills for a model, within a token budget, and a report.
Pure.

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
_SENTENCE = re.compile(r"[.!?](?=\s)|[。!?]")
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


def _compact_entry(name: str, description: str, path: str) -> str:
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
        _compact_entry,
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
    characters = sum(len(skill.name) + len(skill.description) for skill in ordered)
    # The usual case: everything fits, and no entry has to be measured on its own.
    if (
        budget_tokens is None
        or characters <= _CHARACTERS_A_TOKEN * budget_tokens + 4_000
    ):
        everything = _Layout(form, ordered, [_FULL] * len(ordered)).text()
        tokens = counted(everything)
        if budget_tokens is None or tokens <= budget_tokens:
            names = tuple(skill.name for skill in ordered)
            return Rendered(
                everything, tokens, budget_tokens, names, estimated=count is None
            )
    layout = _fit(form, ordered, budget_tokens, frozenset(pins), counted)
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
"""More than real descriptions have (5.2 in English): a longer list is not counted
whole, which can take seconds.
"""
_MAX_MISSES = 64
"""After so many entries in a row that do not fit, the rest of them is not measured."""


@dataclass(slots=True)
class _Layout:
    """At which level each skill is listed."""

    form: Style
    skills: list[SkillMetadata]
    levels: list[int]

    def entry(self, position: int, level: int) -> str:
        """Return one skill as it is written at *level*."""
        skill = self.skills[position]
        form = self.form
        if level == _NAME:
            return form.write(skill.name, "", skill.path)
        text = skill.description
        if not form.verbatim:
            text = visible_line(text)
        if level == _SHORT:
            text = first_sentence(text)
        return form.write(skill.name, text, skill.path)

    def text(self) -> str:
        """Return the whole text."""
        entries = [
            self.entry(position, level)
            for position, level in enumerate(self.levels)
            if level
        ]
        omitted = len(self.levels) - len(entries)
        if omitted:
            entries.append(self.form.more(omitted))
        if not self.levels:
            return self.form.none
        return self.form.before + self.form.between.join(entries) + self.form.after

    def names(self, level: int) -> tuple[str, ...]:
        return tuple(
            skill.name
            for skill, own in zip(self.skills, self.levels, strict=True)
            if own == level
        )


def _fit(
    form: Style,
    skills: list[SkillMetadata],
    budget: int,
    pins: frozenset[str],
    count: Callable[[str], int],
) -> _Layout:
    """Return the fullest layout within *budget*.

    It is planned with the sum of the entries' tokens, then checked with the whole text,
    because tokens merge across entries; if that exceeds the budget, it is planned again
    with a smaller allowance.
    """
    # Skills after the pins are in alphabetical order, so the text does not depend on
    # the file system.
    order = sorted(
        range(len(skills)),
        key=lambda position: (skills[position].name not in pins, position),
    )
    pinned = [position for position in order if skills[position].name in pins]
    allowance = budget
    measured = _Layout(form, skills, [])
    costs: dict[tuple[int, int], int] = {}

    def cost(position: int, level: int) -> int:
        if level == _OMITTED:
            return 0
        if (position, level) not in costs:
            costs[position, level] = count(
                form.between + measured.entry(position, level)
            )
        return costs[position, level]

    while True:
        layout = _Layout(form, skills, [_OMITTED] * len(skills))
        # The line about missing skills is reserved from the start, with the largest
        # number that it can contain.
        last_line = form.between + form.more(len(skills)) + form.after
        left = allowance - count(form.before) - count(last_line)
        for level, positions in (
            (_FULL, pinned),
            (_NAME, order),
            (_SHORT, order),
            (_FULL, order),
        ):
            # Descriptions are only for catalogs whose names all fit; without them each
            # would be measured for nothing.
            if level == _SHORT and _OMITTED in layout.levels:
                break
            misses = 0
            for position in positions:
                if layout.levels[position] >= level:
                    continue
                step = cost(position, level) - cost(position, layout.levels[position])
                if step <= left:
                    layout.levels[position] = level
                    left -= step
                    misses = 0
                    continue
                # A longer entry can fail while a later, shorter one still fits. Names
                # are the exception: a list with gaps would hide that the budget ended
                # here.
                misses += 1
                if level == _NAME or misses > _MAX_MISSES:
                    break
        # A description of one sentence is not shortened: report it as included.
        for position, own in enumerate(layout.levels):
            if own != _SHORT:
                continue
            if layout.entry(position, _SHORT) == layout.entry(position, _FULL):
                layout.levels[position] = _FULL
        excess = count(layout.text()) - budget
        if excess <= 0:
            return layout
        if not any(layout.levels):
            return _Layout(_NOTHING, skills, layout.levels)
        # At least one token less each time, so the loop ends.
        allowance -= max(excess, 1)


_NOTHING = Style("", "", "", _compact_entry, lambda n: "")


def first_sentence(text: str) -> str:
    """Return the first sentence of *text*, in English or Chinese.

    >>> first_sentence("Read PDF files, v1.5 too. Use when a PDF comes.")
    'Read PDF files, v1.5 too.'
    """
    stop = _SENTENCE.search(text)
    if stop is None:
        return text
    return text[: stop.end()]
