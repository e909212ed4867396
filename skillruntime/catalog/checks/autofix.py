"""Corrects the mechanical errors in a SKILL.md and changes nothing else. Pure.

Law: the result means the same to the lenient reader, the body keeps every character,
and a second run changes nothing. A file that is not UTF-8, or whose frontmatter cannot
be located, stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from skillruntime.catalog.checks.lint import lint, suggested_name
from skillruntime.catalog.frontmatter.field_repair import split_fields
from skillruntime.catalog.frontmatter.frontmatter import cut, read_frontmatter
from skillruntime.catalog.frontmatter.skill_frontmatter import SkillFrontmatter
from skillruntime.catalog.frontmatter.yaml_reader import YamlFault, read_yaml
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["Fixed", "fix"]

_MAX_ROUNDS = 8
_FORMAT = (
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
)
# Fields that clients read at the top level of the frontmatter; moved under metadata,
# they would be lost.
_CLIENT_WORDS = (
    "agent argument-hint context disable-model-invocation effort hooks inputs "
    "input_schema model parameters paths tools user-invocable when_to_use"
)
_CLIENT_FIELDS = frozenset(_CLIENT_WORDS.split())
_FORBIDDEN = lazy_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Fixed:
    """The corrected file, and a sentence for each correction; empty if there was
    nothing to correct.
    """

    data: bytes
    done: tuple[str, ...] = ()


def fix(data: bytes, directory: str) -> Fixed:
    """Return *data*, the SKILL.md of the skill in the directory named *directory*, with
    its mechanical errors corrected.

    >>> written = b"---\\nname: pdf\\ndescription: Use when: asked\\nversion: 1.0\\n---\\n"
    >>> fixed = fix(written, "pdf")
    >>> print(fixed.data.decode(), fixed.done)
    ---
    name: pdf
    description: 'Use when: asked'
    metadata:
      version: '1.0'
    ---
     ('description was put in quotes', 'version was moved under metadata')
    """
    done: tuple[str, ...] = ()
    for _ in range(_MAX_ROUNDS):  # correcting one error can reveal another
        fixed = _fix_once(data, directory)
        if fixed.data == data:
            break
        data = fixed.data
        done += fixed.done
    return Fixed(data, done)


def _fix_once(data: bytes, directory: str) -> Fixed:
    rules = {diagnostic.rule for diagnostic in lint(data, directory)}
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Fixed(data)
    parts = cut(data)
    fields = read_frontmatter(data).fields
    if parts.block is None or fields is None:
        return Fixed(data)
    # `cut` has already removed the byte-order mark and the text above the frontmatter;
    # the first two branches only report it.
    done: list[str] = []
    if "byte-order-mark" in rules:
        done.append("the byte-order mark was removed")
    if "text-before-frontmatter" in rules:
        done.append("the text above the frontmatter was removed")
    if "closing-dots" in rules:
        done.append("the frontmatter was closed with ---")
    tail = parts.tail
    if "closing-with-text" in rules:
        tail = f"\n{tail.lstrip()}"
        done.append("a line break was put after the closing ---")
    block = parts.block
    if _FORBIDDEN.search(block):
        block = _FORBIDDEN.sub("", block)
        done.append("control characters were removed")
    block = _fixed_fields(block, fields, directory, rules, done)
    if not done:
        return Fixed(data)
    new = f"---\n{block.rstrip()}\n---{tail}"
    # Keep the line endings of the file.
    if "\r\n" in text:
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    encoded = new.encode()
    if cut(encoded).body != parts.body:
        return Fixed(data)  # the correction would have moved the end of the frontmatter
    return Fixed(encoded, tuple(done))


def _fixed_fields(
    block: str, fields: dict[str, Any], directory: str, rules: set[str], done: list[str]
) -> str:
    pieces = dict(_pieces(block))
    for key in list(pieces):
        lower = key.lower()
        if key in _FORMAT or lower not in _FORMAT:
            continue
        if lower not in pieces:
            pieces[lower] = lower + pieces.pop(key)[len(key) :]
            done.append(f"{key} was renamed to {lower}")
    fields = {
        key.lower() if key.lower() in pieces else key: value
        for key, value in fields.items()
    }
    if "yaml-invalid" in rules:
        for key, piece in pieces.items():
            if isinstance(fields.get(key), str) and not _is_yaml(piece):
                pieces[key] = _field(key, fields[key])
                done.append(f"{key} was put in quotes")
    # The reference validator of the format refuses a flow list and warns about a block
    # list. Write either one as a string.
    is_list = isinstance(fields.get("allowed-tools"), list)
    if "allowed-tools-form" in rules or (is_list and "yaml-flow" in rules):
        tools = SkillFrontmatter(fields).allowed_tools
        pieces["allowed-tools"] = _field("allowed-tools", " ".join(tools))
        done.append("allowed-tools was written as one string")
    if rules & {"name-missing", "name-form", "name-mismatch"}:
        if _is_name_of(directory, fields.get("name")):
            pieces.pop("name", None)
            pieces = {"name": f"name: {directory}", **pieces}
            done.append(f"the name was set to the directory name, {directory}")
    _move_under_metadata(pieces, fields, done)
    return "\n".join(piece.rstrip("\n") for piece in pieces.values())


def _is_name_of(directory: str, stated: Any) -> bool:
    """Return whether the name of *directory* is what the author meant by the *stated*
    name.

    Only if the directory name is valid, and the stated name is missing or has the same
    words; otherwise the author must decide.
    """
    if suggested_name(directory) != directory:
        return False
    if not isinstance(stated, str) or not stated.strip():
        return True
    return suggested_name(stated) == directory


def _move_under_metadata(
    pieces: dict[str, str], fields: dict[str, Any], done: list[str]
) -> None:
    """Move the texts that the format does not know below ``metadata``."""
    moved: list[str] = []
    for key in pieces:
        if key in _FORMAT or key in _CLIENT_FIELDS:
            continue
        value = fields.get(key)
        if isinstance(value, str) and value.strip():
            moved.append(key)
    metadata = fields.get("metadata", {})
    if not moved or not isinstance(metadata, dict):
        return
    # Lines can be added to a block, but not to a mapping in braces.
    if metadata and not _is_block_mapping(pieces.get("metadata", "")):
        return
    piece = pieces.get("metadata", "metadata:").rstrip()
    first_entry = re.search(r"\n( +)\S", piece)
    indent = first_entry.group(1) if first_entry else "  "
    for key in moved:
        if key not in metadata:
            piece += f"\n{indent}{_field(key, fields[key])}"
            del pieces[key]
            done.append(f"{key} was moved under metadata")
    pieces["metadata"] = piece


def _pieces(block: str) -> list[tuple[str, str]]:
    return [(key, "\n".join(lines)) for key, lines in split_fields(block)]


def _is_yaml(piece: str) -> bool:
    try:
        return isinstance(read_yaml(piece).value, dict)
    except YamlFault:
        return False


def _is_block_mapping(piece: str) -> bool:
    return bool(re.match(r"metadata:[ \t]*\n +\S", piece)) and _is_yaml(piece)


def _field(key: str, value: str) -> str:
    """Return one field on one line, in single quotes: there YAML escapes only the quote
    (YAML 1.2.2, section 7.3.2).
    """
    line = " ".join(value.split()).replace("'", "''")
    return f"{key}: '{line}'"
