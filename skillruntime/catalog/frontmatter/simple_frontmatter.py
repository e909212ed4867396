"""Reads simple frontmatter without YAML: that of 19 of 20 real skills, in a tenth of
the time.

Law: if `scan` returns a summary and the text is YAML, `summarize` returns the same;
else it returns ``None``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from skillruntime.catalog.discovery.summary import BOOLEANS, FLAGS, Summary

__all__ = ["scan"]

# Quantifiers are possessive (``++``, ``*+``): what a part has taken is never matched in
# another way. A value of which nothing is read: it closes all quotes and brackets that
# it opens, so that it cannot extend into the next field. What continues it is indented;
# only the brackets that close JSON may be at the left margin. YAML 1.2.2, section 5.7;
# libyaml refuses surrogates and what is not a character
_ESCAPED = (
    r"\\(?:[0abtnvfre\ \"/\\N_LP]|x[0-9a-fA-F]{2}"
    r"|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})"
)
_QUOTED = rf"""(?:"(?:[^"\\\n]++|{_ESCAPED}|\n(?=[ \n]))*+"|'(?:[^'\n]++|''|\n(?=[ \n]))*+')"""
_FLOW = r"(?!)"
for _ in range(5):  # JSON in real frontmatters nests four deep
    # A quote inside a word, and the signs of comments, anchors and tags, are left to
    # YAML.
    _FLOW = rf"""[\[{{](?:[^\[\]{{}}"'\#&*!\n]++|\n(?=[ \n\]}}])|(?:(?<=[\[{{, \n])|(?<=["']:)){_QUOTED}|{_FLOW})*+[\]}}]"""
_START = r"""[^\s"'\[\]{}>|*&!%\#`@,?:-]"""  # of a plain text, whatever follows
# A line of a value: text, a list item, a nested key.
_LINE = rf"""
    (?: \ ++\#.*+
      | (?:\ ++(?:-\ ++)?|-\ ++) (?:[A-Za-z_][\w.-]*+:(?=[ \n])\ *+)?
        (?:{_QUOTED}|{_FLOW}|[|>][+-]?|{_START}(?:[^:\#\t\n]++|:(?![ \n])|(?<!\ )\#)*+(?:\#[^\t\n]*+)?)?
    )?\ *+\n"""
_BLOCK = r"[|>].*+(?:\n(?:\ .*+|(?=\n)))*+"
# A value that is read. Nothing continues it: neither indented text nor a list at the
# left margin.
_TEXT = rf"""
    (?:\ *+\n)?\ ++( {_START}.*+(?:\n\ ++(?=[^\s\#]).*+)*+
       | (?:"[^"]*+(?<!\\)"|'[^']*+'|"(?:[^"\\]++|\\.)*+"|'(?:[^']++|'')*+')\ *+
       | {_BLOCK} )\n++(?![ -])"""
_WORD = r"""\ ++([\w.+-]++|"[\w.+-]*+"|'[\w.+-]*+')\ *+\n++(?![ -])"""
_UNREAD = rf"\ ++{_BLOCK}\n(?!-) | (?:\ ++{_START}.*+\n|(?=[ \n])) (?:{_LINE})*+"
# The next field that is read, after any that are not. What one match has taken, no
# other one looks at again.
_NEXT = re.compile(
    rf"""
    (?: (?!(?:name|description|version|disable-model-invocation|user-invocable|metadata):)[A-Za-z_][\w-]*+:
        (?: {_UNREAD} )
      | (?:\#.*+)?\n
    )*+
    (?: name:{_TEXT} | description:{_TEXT} | version:{_WORD}
      | disable-model-invocation:{_WORD} | user-invocable:{_WORD}
      | metadata:((?: {_UNREAD} ))
    )?""",
    re.ASCII | re.VERBOSE,
)
_NAME, _DESCRIPTION, _STATED_VERSION, _MODEL, _USER, _METADATA = range(1, 7)
_VERSION = re.compile(
    r"""(?:"([\w.+-]+)"|'([\w.+-]+)'|([0-9A-Za-z][\w.+-]*)) *$""", re.ASCII
)
_PLAIN_VERSION = re.compile(r"[\w.+-]*", re.ASCII)
_FIELD = re.compile(r"( ++)[A-Za-z_][\w.-]*+:(?: ++[^\s#|>].*| *+)", re.ASCII)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)  # an escaped line end is left to YAML too
# The escapes that real files use; every other one (YAML 1.2.2, section 5.7) is left to
# YAML.
_YAML_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "t": "\t"}
_PRINTABLE_ASCII = b"\t\n" + bytes(range(32, 127))
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff\x85\u2028\u2029]"
)


def scan(block: str) -> Summary | None:
    """Return the summary of simple frontmatter, or ``None`` if YAML is required to read
    it.

    >>> scan("name: pdf\\ndescription: Read PDFs\\nmetadata:\\n  version: '1.0'")
    Summary(name='pdf', description='Read PDFs', version='1.0', flags=0)
    >>> scan("name: pdf\\ndescription: *alias")
    """
    # Both run in C, the first one three times as fast; the pattern decides where
    # `isprintable` differs from YAML.
    if block.isascii():
        if block.encode().translate(None, _PRINTABLE_ASCII):
            return None
    elif not block.replace("\n", " ").isprintable() and _UNPRINTABLE.search(block):
        return None
    if block[-1:] != "\n":
        block += "\n"
    values: list[str | None] = [None] * 7
    position, end = 0, len(block)
    while position < end:
        field = _NEXT.match(block, position)
        if field is None or field.end() == position:
            return None
        position = field.end()
        which = field.lastindex
        if which:
            if values[which] is not None:
                return None  # YAML reports a key that is there twice
            values[which] = field[which]
    return _summary_of(values)


def _summary_of(values: list[str | None]) -> Summary | None:
    name, description, version = (
        values[_NAME],
        values[_DESCRIPTION],
        values[_STATED_VERSION],
    )
    metadata = values[_METADATA]
    if name is None or description is None:
        return None  # or written in another case
    name, description = _text(name), _text(description)
    if name is None or description is None:
        return None
    version = version and version.strip("\"' ")
    # Most metadata states no version; a backslash could write the word in another way.
    if metadata and ("version" in metadata or "\\" in metadata):
        value, _, below = metadata.partition("\n")
        stated = _metadata_version(value.strip(" "), f"\n{below}")
        if stated is None:
            return None
        version = stated or version
    flags = 0
    if values[_MODEL] or values[_USER]:
        stated_flags = _flags_of(values[_MODEL], values[_USER])
        if stated_flags is None:
            return None
        flags = stated_flags
    return _new_summary(Summary, (name, description, version or None, flags))


def _flags_of(*words: str | None) -> int | None:
    """Return the flags for the values of the two fields that hide a skill; ``None`` if
    one is not a boolean.
    """
    flags = 0
    for (hides, flag), word in zip(FLAGS.values(), words, strict=True):
        if word:
            stated = BOOLEANS.get(word.strip("\"' ").lower())
            if stated is None:
                return None
            if stated is hides:
                flags |= flag
    return flags


_new_summary = tuple.__new__
"""Without the function in Python that a named tuple has for it."""


def _metadata_version(value: str, below: str) -> str | None:
    """Return ``metadata.version``, or ``""`` if there is none; ``None`` if YAML is
    required to read it.
    """
    # A list at the left margin, or a JSON number: not a mapping.
    if "\n-" in below:
        return None
    if value or below.lstrip()[:1] == "{":
        return _json_version(value + below)
    if "version:" not in below:
        return ""
    lines = [line for line in below.split("\n") if line]
    indents = {field and field[1] for field in map(_FIELD.fullmatch, lines)}
    indent = indents.pop()
    if indents or indent is None:
        return None  # YAML reads what is not one field on each line
    stated = [
        line[len(indent) + 8 :].lstrip(" ")
        for line in lines
        if line.startswith(f"{indent}version:")
    ]
    if not stated:
        return ""
    version = _VERSION.match(stated[0])
    return (
        version.group(version.lastindex or 0) if len(stated) == 1 and version else None
    )


def _json_version(text: str) -> str | None:
    """Return the version in a JSON object: 19 % of real skills have one as the value of
    ``metadata``.

    JSON means the same in YAML.
    """
    try:
        fields = _json_decoder()(text)
    except (ValueError, RecursionError):
        return None
    version = fields.get("version", "") if isinstance(fields, dict) else None
    return (
        version
        if isinstance(version, str) and _PLAIN_VERSION.fullmatch(version)
        else None
    )


@cache
def _json_decoder() -> Callable[[str], Any]:
    import json  # its import takes as long as reading a hundred skills

    return json.JSONDecoder(parse_int=str, parse_float=str).decode


def _text(value: str) -> str | None:
    """Return the text of a scalar that is plain, quoted, or a block."""
    if value[0] in "\"'":
        return None if "\n" in value else _quoted_text(value.rstrip(" "))
    if value[0] in "|>":
        header, *below = value.split("\n")
        return _block_text(header, below)
    if "\n" in value:
        lines = [line.strip(" ") for line in value.split("\n")]
        return " ".join(lines) if all(map(_is_plain, lines)) else None
    return value.rstrip(" ") if _is_plain(value) else None


def _is_plain(line: str) -> bool:
    """Whether nothing in *line* ends a plain scalar."""
    return (
        ": " not in line and " #" not in line and "\t" not in line and line[-1] != ":"
    )


def _quoted_text(value: str) -> str | None:
    """Return what is in the quotes of *value*; ``None`` if an escape is left to
    YAML.
    """
    inside = value[1:-1]
    if value[:1] == "'":
        return inside.replace("''", "'")
    if "\\" not in inside:
        return inside
    if any(escape not in _YAML_ESCAPES for escape in _ESCAPE.findall(inside)):
        return None
    return _ESCAPE.sub(lambda escape: _YAML_ESCAPES[escape.group(1)], inside)


def _block_text(header: str, below: list[str]) -> str | None:
    """Return a block scalar (YAML 1.2.2, section 8.1) whose lines are all at one
    indentation; else ``None``.

    Trailing line breaks are not exact, because name and description are stripped.
    """
    # A header with an indentation indicator (`|2`) is rare: YAML reads it.
    if header.rstrip(" ") not in ("|", ">", "|-", ">-", "|+", ">+") or not below:
        return None
    indent = len(below[0]) - len(below[0].lstrip(" "))
    margin, lines = below[0][:indent], [line[indent:] for line in below]
    if (
        not indent
        or any(not line.startswith(margin) for line in below)
        or any(line[:1] in " \t" for line in lines)
    ):
        return None
    return ("\n" if header[0] == "|" else " ").join(lines)
