"""Read frontmatter that is not valid YAML, field by field: valid fields as YAML, the
others as plain text. Pure.

The usual error is a colon in an unquoted sentence (``description: Use when: ...``).
Such a field keeps its quotes, backslashes and continuation lines; an error in one field
does not affect the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from skillruntime.catalog.frontmatter.yaml_reader import YamlFault, read_yaml
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["Repaired", "repair_block", "split_fields"]

_FIELD = lazy_pattern(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*)|$)")
# This detects three of four invalid fields without a parser: bold text is not an alias,
# `@` and the backtick are reserved (YAML 1.2.2, section 5.3), and a plain text cannot
# contain a colon followed by a space.
_NOT_YAML = lazy_pattern(
    r"[\w.-]+[ \t]*:[ \t]+(?:\*\*|[@`]|[^\W\d_](?:[^:#]|:(?! )|(?<! )#)*: )"
)
# A field that YAML certainly reads as this text: it begins with a letter and has no
# character that is special in YAML, or it is in quotes and contains no quote, backslash
# or control character.
_PLAIN_FIELD = lazy_pattern(
    r"[A-Za-z_][\w.-]*+: ++(?:([A-Za-z][\w ,.()/-]*+)"
    r"|\"([ !#-\[\]-~]*+)\"|'([ -&(-~]*+)')",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Repaired:
    """The fields, and the names of the fields that were read as plain text or dropped."""

    fields: dict[str, Any]
    as_text: tuple[str, ...]
    dropped: tuple[str, ...]


def repair_block(block: str) -> Repaired:
    """Return the fields of *block*, each parsed separately.

    >>> block = "name: pdf\\ndescription: Say \\"hi\\" when: C:\\\\Users\\n  comes up"
    >>> repair_block(block).fields
    {'name': 'pdf', 'description': 'Say "hi" when: C:\\\\Users comes up'}
    """
    fields: dict[str, Any] = {}
    as_texts: list[str] = []
    dropped: list[str] = []
    for key, lines in split_fields(block):
        if len(lines) == 1:
            plain = _PLAIN_FIELD.fullmatch(lines[0])
            if plain:
                text = plain[plain.lastindex or 1]
                fields[key] = text.strip() if plain[1] else text
                continue
        value = _as_yaml(lines)
        if isinstance(value, dict) and list(value) == [key]:
            fields[key] = value[key]
            continue
        text = _as_text(lines)
        if text is None:
            dropped.append(key)
        else:
            fields[key] = text
            as_texts.append(key)
    return Repaired(fields, tuple(as_texts), tuple(dropped))


def split_fields(block: str) -> list[tuple[str, list[str]]]:
    """Return the top-level keys of *block*, each with its own line and the continuation
    lines.
    """
    fields: list[tuple[str, list[str]]] = []
    for line in block.split("\n"):
        start = _FIELD.match(line)
        if start:
            fields.append((start.group(1), [line]))
        elif fields and not line.startswith("#"):
            fields[-1][1].append(line)
    return fields


def _as_yaml(lines: list[str]) -> Any:
    """Return the value of one field, parsed as YAML; ``None`` if it is not valid."""
    if _NOT_YAML.match(lines[0]):
        return None
    try:
        return read_yaml("\n".join(lines)).value
    except YamlFault:
        return None


def _as_text(lines: list[str]) -> str | None:
    """Return the value of one field as plain text; ``None`` if it is a list or a
    mapping.

    Lines are joined as YAML folds a plain scalar: a line break becomes a space, an
    empty line becomes a line break (YAML 1.2.2, section 7.3.3).
    """
    start = _FIELD.match(lines[0])
    first = ""
    if start and start.group(2):
        first = start.group(2).strip()
    rest = [line.strip() for line in lines[1:]]
    # A block scalar header (YAML 1.2.2, section 8.1.1): its lines are valid even if the
    # rest of the block is not.
    if re.fullmatch(r"[|>][+-]?\d?[+-]?", first):
        if first[0] == "|":
            return "\n".join(rest).strip()
        return _folded(rest)
    # The lines below are list items or keys: a structure, which cannot be read as text.
    if not first and any(re.match(r"(- |[\w.-]+:(\s|$))", line) for line in rest):
        return None
    return _unquoted(_folded([first, *rest])) or None


def _folded(lines: list[str]) -> str:
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n".join(" ".join(paragraph) for paragraph in paragraphs if paragraph)


def _unquoted(text: str) -> str:
    """Remove the quotes around the whole value, and an opening quote that is never
    closed.
    """
    quote = text[:1]
    if quote not in ("'", '"'):
        return text
    if len(text) > 1 and text.endswith(quote):
        # `"He said "hi""`: the author quoted the whole value and forgot to escape the
        # inner quotes.
        content = text[1:-1]
    elif quote not in text[1:]:
        # `"never closed`: an unmatched quote has no meaning.
        content = text[1:]
    else:
        return text
    if quote == '"':
        return content.replace('\\"', '"')
    # A single quote is escaped by doubling it (YAML 1.2.2, section 7.3.2).
    return content.replace("''", "'")
