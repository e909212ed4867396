"""Find where a skill spends tokens with little use, and how many a change would save.

Advice is never an error: each piece says how many tokens it would save, and how often
they are paid (``when``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.tokens.markdown_sections import Section, sections
from skillruntime.tokens.schema_views import FOR_PEOPLE

__all__ = ["Advice", "advise"]


@dataclass(frozen=True, slots=True)
class Advice:
    """One saving: *tokens* fewer, each *when* (``every conversation``, ``each
    activation``, ``every request``).
    """

    rule: str
    skill: str
    path: str
    line: int | None
    tokens: int
    when: str
    message: str
    hint: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object; ``tokens`` is the number that would be saved."""
        fields = ("rule", "skill", "path", "line", "tokens", "when", "message", "hint")
        document = {field: getattr(self, field) for field in fields}
        return {field: value for field, value in document.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _Advisor:
    """Makes the advice about one skill; *count* counts tokens."""

    skill: str
    path: str
    count: Callable[[str], int]

    def advice(
        self,
        rule: str,
        tokens: int,
        when: str,
        *,
        message: str,
        hint: str,
        line: int | None = None,
    ) -> Advice:
        return Advice(rule, self.skill, self.path, line, tokens, when, message, hint)


def advise(
    name: str,
    description: str,
    body: str,
    schemas: Mapping[str, Mapping[str, Any]],
    *,
    path: str,
    count: Callable[[str], int],
    first_line: int = 1,
) -> list[Advice]:
    """Return what one skill could save, the largest saving first.

    *schemas* are the input schemas of its callable tools by name, *path* is that of its
    SKILL.md, *first_line* the line of it that the body begins on.

    >>> from skillruntime.tokens.counter import count
    >>> description = "PDF tools: a skill for PDF tools. Merges PDF files."
    >>> found = advise(
    ...     "pdf-tools",
    ...     description,
    ...     "",
    ...     {},
    ...     path="SKILL.md",
    ...     count=lambda text: count(text).tokens,
    ... )
    >>> found[0].rule, found[0].tokens
    ('description-repeats-name', 9)
    """
    advisor = _Advisor(name, path, count)
    advice = [
        *_on_description(advisor, description),
        *_on_body(advisor, body, first_line),
    ]
    for tool, schema in schemas.items():
        advice += _on_schema(advisor, tool, schema)
    # By rule and message too, so that two runs print the same order, and a diff of them
    # is empty.
    return sorted(
        advice, key=lambda saving: (-saving.tokens, saving.rule, saving.message)
    )


# The format's first tier: "metadata (about 100 tokens)", name and description together.
_DESCRIPTION = 100
# Its second: "instructions (fewer than 5,000 tokens recommended)".
_BODY = 5_000
# From this size a section is worth a file of its own; a line that says when to read it
# stays behind.
_SECTION = 600
_POINTER = 25
# Above this a parameter's description is documentation, not guidance for a call.
_PARAMETER = 40

_OPENERS = lazy_pattern(
    r"^(?:this|the|an?)\s+(?:\w+\s+)?skill\s+"
    r"(?:that|which|for|to|is used|provides?|helps?|should be used)\b"
    r"(?:\s+\w+ing)?\s*",
    re.IGNORECASE,
)
_REFERENCE = lazy_pattern(
    r"\b(api|reference|examples?|troubleshooting|faq|appendix|glossary|changelog"
    r"|options|parameters|templates?|schema)\b",
    re.IGNORECASE,
)
# Sections with these titles are needed in every use and stay in the body, however long.
_ALWAYS_NEEDED = lazy_pattern(
    r"\b(rules?|invariants?|critical|workflows?|steps?|process|procedure"
    r"|instructions?|overview|when|never|must|navigation|index|quick ?start"
    r"|checklist)\b",
    re.IGNORECASE,
)


def _on_description(advisor: _Advisor, description: str) -> Iterator[Advice]:
    tokens = advisor.count(description)
    when = "every conversation"
    rest = _without_opening(advisor.skill, description)
    saved = tokens - advisor.count(rest)
    if saved > 0 and rest != description:
        opening = _quoted(description[: len(description) - len(rest)])
        yield advisor.advice(
            "description-repeats-name",
            saved,
            when,
            message=(
                f"the description opens with {opening}, which only repeats the name"
            ),
            hint="start with what it does, then when to use it",
        )
    if tokens > _DESCRIPTION * 6 // 5:
        yield advisor.advice(
            "description-long",
            tokens - _DESCRIPTION,
            when,
            message=(
                f"the description is {tokens:,} tokens; the format suggests about "
                f"{_DESCRIPTION}"
            ),
            hint=(
                "keep what it does, when to use it and the words that users say; move "
                "the rest to the body"
            ),
        )


def _without_opening(name: str, description: str) -> str:
    """Return *description* without a beginning that only repeats the *name*."""
    # Authors write the name as words: "PDF tools" for pdf-tools.
    spoken = re.escape(name).replace(r"\-", r"[\s_-]+")
    rest = re.sub(
        rf"^(?:the\s+)?{spoken}\s*(?:skill)?\s*(?:[:.,—–-]|is\b)\s*",
        "",
        description,
        flags=re.IGNORECASE,
    )
    rest = _OPENERS.sub("", rest)
    return re.sub(rf"^{spoken}\s*[.:,]\s*", "", rest, flags=re.IGNORECASE)


def _on_body(advisor: _Advisor, body: str, first_line: int) -> Iterator[Advice]:
    total = advisor.count(body)
    # A section to move and as much again that stays: below that, two files cost more
    # requests than they save.
    if total < 2 * _SECTION:
        return
    movable: list[tuple[int, Section]] = []
    for section in _whole_sections(body):
        tokens = advisor.count(section.text)
        if tokens >= _SECTION and _is_movable(section, tokens, total):
            movable.append((tokens, section))
    movable.sort(key=lambda part: (-part[0], part[1].line))
    when = "each activation"
    # More than five per skill would bury the large ones.
    for tokens, section in movable[:5]:
        yield advisor.advice(
            "section-to-reference",
            tokens - _POINTER,
            when,
            message=(
                f"the section {_quoted(section.title)} is {tokens:,} of the body's "
                f"{total:,} tokens"
            ),
            hint=(
                f"move it to references/{_slug(section.title)}.md and leave one line "
                "that says when to read it"
            ),
            line=section.line + first_line - 1,
        )
    if total > _BODY and not movable:
        yield advisor.advice(
            "body-long",
            total - _BODY,
            when,
            message=(
                f"the body is {total:,} tokens; the format recommends fewer than "
                f"{_BODY:,}"
            ),
            hint="split it: keep what every use needs, move the rest to references/",
        )


def _whole_sections(body: str) -> list[Section]:
    """Return the sections at the level that divides the body, each with its
    subsections.
    """
    parts = sections(body)
    level = _dividing_level(parts)
    whole: list[Section] = []
    for part in parts:
        if part.level > level and whole and whole[-1].level == level:
            whole[-1] = replace(whole[-1], text=whole[-1].text + part.text)
        else:
            whole.append(part)
    return whole


def _dividing_level(parts: Iterable[Section]) -> int:
    """Return the highest heading level that occurs more than once; else the level below
    the title.
    """
    headings = Counter(part.level for part in parts if part.level)
    levels = sorted(headings)
    for level in levels:
        if headings[level] > 1:
            return level
    if len(levels) > 1:
        return levels[1]  # a single heading above all others is the body's title
    if levels:
        return levels[0]
    return 1


def _is_movable(section: Section, tokens: int, total: int) -> bool:
    """Return whether a section is reference material: by its title, or because it is
    large and mostly code and tables.
    """
    # Level 0 is the text before the first heading: the introduction.
    if section.level == 0 or _ALWAYS_NEEDED.search(section.title):
        return False
    if _REFERENCE.search(section.title):
        return True
    is_large = total >= 2_000 and tokens * 4 >= total
    return is_large and _share_looked_up(section.text) > 0.6


def _share_looked_up(text: str) -> float:
    """Return the share of *text* that is code and tables, which are looked up and not
    read.
    """
    looked_up = 0
    is_in_code = False
    for line in text.splitlines():
        stripped = line.lstrip()
        is_fence = stripped.startswith(("```", "~~~"))
        if is_fence or is_in_code or stripped.startswith("|"):
            looked_up += len(line)
        if is_fence:
            is_in_code = not is_in_code
    return looked_up / max(len(text), 1)


def _on_schema(
    advisor: _Advisor, tool: str, schema: Mapping[str, Any]
) -> Iterator[Advice]:
    for where, description in _descriptions(schema, ""):
        if where:
            limit = _PARAMETER
            rule = "parameter-description-long"
            described = f"{tool}{where}"
        else:
            limit = _DESCRIPTION
            rule = "tool-description-long"
            described = f"{tool} itself"
        tokens = advisor.count(description)
        if tokens <= limit:
            continue
        yield advisor.advice(
            rule,
            tokens - limit,
            "every request",
            message=(
                f"the description of {described} is {tokens:,} tokens; a model needs "
                f"about {limit}"
            ),
            hint=(
                "keep what the model needs to decide; move the rest to "
                f"{FOR_PEOPLE[1]}, which is not sent to it"
            ),
        )


def _descriptions(schema: Any, where: str) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, Mapping):
        return
    text = schema.get("description")
    if isinstance(text, str):
        yield where, text
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, part in properties.items():
            yield from _descriptions(part, f"{where}/{name}")
    yield from _descriptions(schema.get("items"), f"{where}/0")


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "details"


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    if len(text) > 60:
        text = f"{text[:57]}..."
    return f"'{text}'"
