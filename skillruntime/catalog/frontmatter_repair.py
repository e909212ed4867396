"""Reads frontmatter that is not valid YAML field by field: valid fields as YAML, the others as plain text.

The usual error is a colon in an unquoted sentence (``description: Use when: ...``). Such a field is read as text, with
its quotes, backslashes and continuation lines. An error in one field does not affect the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from skillruntime.catalog.simple_frontmatter import plain_text
from skillruntime.catalog.yaml_reader import YamlFault, load_yaml

__all__ = ["Repaired", "as_text", "repair_block", "split_fields"]

_FIELD = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*)|$)")
# Three of four broken fields, without a parser: bold text is not an alias, `@` and the backtick are reserved (YAML
# 1.2.2, section 5.3), and a colon ends a plain text that may not contain one.
_NOT_YAML = re.compile(r"[\w.-]+[ \t]*:[ \t]+(?:\*\*|[@`]|[^\W\d_](?:[^:#]|:(?! )|(?<! )#)*: )")


@dataclass(frozen=True, slots=True)
class Repaired:
    """The fields, and the names of those that were read as plain text or had to be dropped."""

    fields: dict[str, Any]
    as_text: tuple[str, ...]
    dropped: tuple[str, ...]


def repair_block(block: str) -> Repaired:
    """Return the fields of *block*, each parsed separately.

    >>> repair_block("name: pdf\\ndescription: Say \\"hi\\" when: C:\\\\Users\\n  comes up").fields
    {'name': 'pdf', 'description': 'Say "hi" when: C:\\\\Users comes up'}
    """
    fields: dict[str, Any] = {}
    as_texts: list[str] = []
    dropped: list[str] = []
    for key, lines in split_fields(block):
        plain = plain_text(lines[0].partition(":")[2].lstrip(" "), lines[1:])
        if plain is not None:  # nearly every field; parsing each as YAML takes three times as long
            fields[key] = plain
            continue
        try:
            value = None if _NOT_YAML.match(lines[0]) else load_yaml("\n".join(lines)).value
        except YamlFault:
            value = None
        if isinstance(value, dict) and list(value) == [key]:
            fields[key] = value[key]
            continue
        text = as_text(lines)
        if text is None:
            dropped.append(key)
        else:
            fields[key] = text
            as_texts.append(key)
    return Repaired(fields, tuple(as_texts), tuple(dropped))


def split_fields(block: str) -> list[tuple[str, list[str]]]:
    """Return the top-level keys of *block*, each with its lines: the line of the key and those that continue it."""
    fields: list[tuple[str, list[str]]] = []
    for line in block.split("\n"):
        start = _FIELD.match(line)
        if start:
            fields.append((start.group(1), [line]))
        elif fields and not line.startswith("#"):
            fields[-1][1].append(line)
    return fields


def as_text(lines: list[str]) -> str | None:
    """Return the value of one field as plain text; ``None`` if it is a list or a mapping.

    Lines are joined as YAML folds a plain scalar: one break is a space, an empty line is a break (section 7.3.3).
    """
    start = _FIELD.match(lines[0])
    first = (start.group(2) or "").strip() if start else ""
    rest = [line.strip() for line in lines[1:]]
    # A block scalar header (YAML 1.2.2, section 8.1.1): its lines are valid even if the rest of the block is not.
    if re.fullmatch(r"[|>][+-]?\d?[+-]?", first):
        return "\n".join(rest).strip() if first[0] == "|" else _folded(rest)
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
    """Remove the quotes around the whole value, and an opening quote that is never closed."""
    quote = text[:1]
    if quote not in ("'", '"'):
        return text
    # `"He said "hi""`: the author quoted the whole value and forgot to escape the inner quotes.
    if len(text) > 1 and text.endswith(quote):
        inside = text[1:-1]
    # `"never closed`: without its partner the quote has no meaning.
    elif quote not in text[1:]:
        inside = text[1:]
    else:
        return text
    # A single quote is escaped by doubling it (YAML 1.2.2, section 7.3.2).
    return inside.replace('\\"', '"') if quote == '"' else inside.replace("''", "'")
