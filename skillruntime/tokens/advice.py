"""Where a skill spends tokens with little use, and what a change would save.

Advice is never an error: each piece says how many tokens it would save, and how often
they are paid (``when``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
        """Return the JSON object; ``tokens`` is what would be saved."""
        fields = ("rule", "skill", "path", "line", "tokens", "when", "message", "hint")
        return {
            name: value for name in fields if (value := getattr(self, name)) is not None
        }


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
    >>> found = advise("pdf-tools", "PDF tools: a skill for PDF tools. Merges PDF files.", "", {}, path="SKILL.md",
    ...     count=lambda text: count(text).tokens)
    >>> found[0].rule, found[0].tokens
    ('description-repeats-name', 9)
    """
    found = [
        *_description(name, description, path, count),
        *_body(name, body, path, count, first_line),
        *(
            advice
            for tool, schema in schemas.items()
            for advice in _schema(name, tool, schema, path, count)
        ),
    ]
    # By rule and message too, so that two runs print the same order, and a diff of them
    # is empty.
    return sorted(
        found, key=lambda advice: (-advice.tokens, advice.rule, advice.message)
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

_OPENERS = re.compile(
    r"^(?:this|the|an?)\s+(?:\w+\s+)?skill\s+(?:that|which|for|to|is used|provides?|helps?|should be used)\b"
    r"(?:\s+\w+ing)?\s*",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"\b(api|reference|examples?|troubleshooting|faq|appendix|glossary|changelog|options|parameters|templates?|schema)\b",
    re.IGNORECASE,
)
# Sections with these titles are needed in every use and stay in the body, however long.
_ALWAYS_NEEDED = re.compile(
    r"\b(rules?|invariants?|critical|workflows?|steps?|process|procedure|instructions?|overview|when|never|must|"
    r"navigation|index|quick ?start|checklist)\b",
    re.IGNORECASE,
)


def _description(
    name: str, description: str, path: str, count: Callable[[str], int]
) -> Iterator[Advice]:
    tokens = count(description)
    # Authors write the name as words: "PDF tools" for pdf-tools.
    spoken = re.escape(name).replace(r"\-", r"[\s_-]+")
    again = re.match(
        rf"(?:the\s+)?{spoken}\s*(?:skill)?\s*(?:[:.,—–-]|is\b)\s*",
        description,
        re.IGNORECASE,
    )
    rest = description[again.end() :] if again else description
    opener = _OPENERS.match(rest)
    if opener:
        rest = rest[opener.end() :]
    rest = re.sub(rf"^{spoken}\s*[.:,]\s*", "", rest, flags=re.IGNORECASE)
    when = "every conversation"
    if (saved := tokens - count(rest)) > 0 and rest != description:
        opening = _quoted(description[: len(description) - len(rest)])
        message = f"the description opens with {opening}, which only repeats the name"
        hint = "start with what it does, then when to use it"
        yield Advice(
            "description-repeats-name", name, path, None, saved, when, message, hint
        )
    if tokens > _DESCRIPTION * 6 // 5:
        message = (
            f"the description is {tokens:,} tokens; the format suggests about "
            f"{_DESCRIPTION}"
        )
        hint = (
            "keep what it does, when to use it and the words that users say; move the "
            "rest to the body"
        )
        yield Advice(
            "description-long",
            name,
            path,
            None,
            tokens - _DESCRIPTION,
            when,
            message,
            hint,
        )


def _body(
    name: str, body: str, path: str, count: Callable[[str], int], first_line: int
) -> Iterator[Advice]:
    total = count(body)
    # A section to move and as much again that stays: below that, two files cost more
    # requests than they save.
    if total < 2 * _SECTION:
        return
    parts = [(count(section.text), section) for section in _whole_sections(body)]
    movable = [
        (tokens, section)
        for tokens, section in parts
        if tokens >= _SECTION and _is_movable(section, tokens, total)
    ]
    movable.sort(key=lambda part: (-part[0], part[1].line))
    when = "each activation"
    for tokens, section in movable[
        :5
    ]:  # more than five per skill would bury the large ones
        line = section.line + first_line - 1
        message = (
            f"the section {_quoted(section.title)} is {tokens:,} of the body's "
            f"{total:,} tokens"
        )
        hint = (
            f"move it to references/{_slug(section.title)}.md and leave one line that "
            "says when to read it"
        )
        yield Advice(
            "section-to-reference",
            name,
            path,
            line,
            tokens - _POINTER,
            when,
            message,
            hint,
        )
    if total > _BODY and not movable:
        message = (
            f"the body is {total:,} tokens; the format recommends fewer than {_BODY:,}"
        )
        hint = "split it: keep what every use needs, move the rest to references/"
        yield Advice("body-long", name, path, None, total - _BODY, when, message, hint)


def _whole_sections(body: str) -> list[Section]:
    """Return the sections at the level that divides the body, each with its
    subsections.
    """
    parts = sections(body)
    levels = sorted({part.level for part in parts if part.level})
    # A single heading above all others is the body's title and divides nothing.
    level = next(
        (at for at in levels if sum(part.level == at for part in parts) > 1),
        (levels[1:] or levels or [1])[0],
    )
    whole: list[Section] = []
    for part in parts:
        if part.level > level and whole and whole[-1].level == level:
            before = whole[-1]
            whole[-1] = Section(
                before.title, before.level, before.line, before.text + part.text
            )
        else:
            whole.append(part)
    return whole


def _is_movable(section: Section, tokens: int, total: int) -> bool:
    """Whether a section is reference material: by its title, or because it is large and
    mostly code and tables.
    """
    # Level 0 is what precedes the first heading: the introduction.
    if section.level == 0 or _ALWAYS_NEEDED.search(section.title):
        return False
    return bool(_REFERENCE.search(section.title)) or (
        total >= 2_000 and tokens * 4 >= total and _share_looked_up(section.text) > 0.6
    )


def _share_looked_up(text: str) -> float:
    looked_up, inside = 0, False
    for line in text.splitlines():
        fence = line.lstrip().startswith(("```", "~~~"))
        if fence or inside or line.lstrip().startswith("|"):
            looked_up += len(line)
        inside = inside != fence
    return looked_up / max(len(text), 1)


def _schema(
    skill: str,
    tool: str,
    schema: Mapping[str, Any],
    path: str,
    count: Callable[[str], int],
) -> Iterator[Advice]:
    when = "every request"
    for where, description in _descriptions(schema, ""):
        limit, rule = (_PARAMETER, "parameter") if where else (_DESCRIPTION, "tool")
        if (tokens := count(description)) > limit:
            message = (
                f"the description of {tool}{where or ' itself'} is {tokens:,} tokens; "
                f"a model needs about {limit}"
            )
            hint = (
                "keep what the model needs to decide; move the rest to "
                f"{FOR_PEOPLE[1]}, which is not sent to it"
            )
            yield Advice(
                f"{rule}-description-long",
                skill,
                path,
                None,
                tokens - limit,
                when,
                message,
                hint,
            )


def _descriptions(schema: Any, where: str) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, Mapping):
        return
    if isinstance(text := schema.get("description"), str):
        yield where, text
    properties = schema.get("properties")
    for name, part in (properties if isinstance(properties, Mapping) else {}).items():
        yield from _descriptions(part, f"{where}/{name}")
    yield from _descriptions(schema.get("items"), f"{where}/0")


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "details"


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return f"'{text if len(text) <= 60 else text[:57] + '...'}'"
