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

# Quantifiers are possessive (``++``, ``*+``): the text that a part has matched is never
# matched in another way. A value of which nothing is read closes all quotes and
# brackets that it opens, so that it cannot extend into the next field. The lines that
# continue it are indented; only the brackets that close JSON may be at the left margin.
#
# The escapes of YAML 1.2.2, section 5.7; libyaml refuses surrogates and numbers that
# are not a character.
_ESCAPED = (
    r"\\(?:[0abtnvfre\ \"/\\N_LP]|x[0-9a-fA-F]{2}"
    r"|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})"
)
_DOUBLE_QUOTED = rf'"(?:[^"\\\n]++|{_ESCAPED}|\n(?=[ \n]))*+"'
_SINGLE_QUOTED = r"'(?:[^'\n]++|''|\n(?=[ \n]))*+'"
_QUOTED = f"(?:{_DOUBLE_QUOTED}|{_SINGLE_QUOTED})"
# A quote inside a word, and the signs of comments, anchors and tags, are left to YAML.
_FLOW_TEXT = r"""[^\[\]{}"'\#&*!\n]++|\n(?=[ \n\]}])"""
_FLOW_QUOTED = rf"""(?:(?<=[\[{{, \n])|(?<=["']:)){_QUOTED}"""
_FLOW = r"(?!)"
for _ in range(5):  # JSON in real frontmatters nests four deep
    _FLOW = rf"[\[{{](?:{_FLOW_TEXT}|{_FLOW_QUOTED}|{_FLOW})*+[\]}}]"
_START = r"""[^\s"'\[\]{}>|*&!%\#`@,?:-]"""  # of a plain text, whatever follows
_PLAIN = rf"{_START}(?:[^:\#\t\n]++|:(?![ \n])|(?<!\ )\#)*+(?:\#[^\t\n]*+)?"
# A line of a value: text, a list item, a nested key.
_LINE = rf"""
    (?: \ ++\#.*+
      | (?:\ ++(?:-\ ++)?|-\ ++) (?:[A-Za-z_][\w.-]*+:(?=[ \n])\ *+)?
        (?:{_QUOTED}|{_FLOW}|[|>][+-]?|{_PLAIN})?
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
_KEYS_READ = "name|description|version|disable-model-invocation|user-invocable|metadata"
# The next field that is read, after any that are not. Text that one match has taken is
# not looked at again by another.
_NEXT = re.compile(
    rf"""
    (?: (?!(?:{_KEYS_READ}):) [A-Za-z_][\w-]*+:
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
    "[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff"
    "\x85\u2028\u2029]"
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
    position = 0
    end = len(block)
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
    name = values[_NAME]
    description = values[_DESCRIPTION]
    if name is None or description is None:
        return None  # or the key is written in another case
    name = _text(name)
    description = _text(description)
    if name is None or description is None:
        return None
    version = values[_STATED_VERSION]
    if version:
        version = version.strip("\"' ")
    metadata = values[_METADATA]
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
    # As `Summary(...)`, but in C.
    return _new_summary(Summary, (name, description, version or None, flags))


def _flags_of(*words: str | None) -> int | None:
    """Return the flags for the values of the two fields that hide a skill; ``None`` if
    one is not a boolean.
    """
    flags = 0
    for (hides, flag), word in zip(FLAGS.values(), words, strict=True):
        if not word:
            continue
        stated = BOOLEANS.get(word.strip("\"' ").lower())
        if stated is None:
            return None
        if stated is hides:
            flags |= flag
    return flags


_new_summary = tuple.__new__


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
        return None  # YAML reads a mapping that is not one field on each line
    key = f"{indent}version:"
    stated = [
        line.removeprefix(key).lstrip(" ") for line in lines if line.startswith(key)
    ]
    if not stated:
        return ""
    version = _VERSION.match(stated[0])
    if version is None or len(stated) > 1:
        return None
    return version.group(version.lastindex or 0)


def _json_version(text: str) -> str | None:
    """Return the version in a JSON object: 19 % of real skills have one as the value of
    ``metadata``.

    JSON means the same in YAML.
    """
    try:
        fields = _json_decoder()(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    version = fields.get("version", "")
    if not isinstance(version, str) or not _PLAIN_VERSION.fullmatch(version):
        return None
    return version


@cache
def _json_decoder() -> Callable[[str], Any]:
    import json  # its import takes as long as reading a hundred skills

    return json.JSONDecoder(parse_int=str, parse_float=str).decode


def _text(value: str) -> str | None:
    """Return the text of a scalar that is plain, quoted, or a block."""
    if value[0] in "\"'":
        if "\n" in value:
            return None
        return _quoted_text(value.rstrip(" "))
    if value[0] in "|>":
        header, *below = value.split("\n")
        return _block_text(header, below)
    if "\n" in value:
        lines = [line.strip(" ") for line in value.split("\n")]
        return " ".join(lines) if all(map(_is_plain, lines)) else None
    return value.rstrip(" ") if _is_plain(value) else None


def _is_plain(line: str) -> bool:
    """Return whether nothing in *line* ends a plain scalar."""
    if ": " in line or " #" in line:
        return False
    return "\t" not in line and line[-1] != ":"


def _quoted_text(value: str) -> str | None:
    """Return the text in the quotes of *value*; ``None`` if an escape is left to
    YAML.
    """
    content = value[1:-1]
    if value[:1] == "'":
        return content.replace("''", "'")
    if "\\" not in content:
        return content
    if any(escape not in _YAML_ESCAPES for escape in _ESCAPE.findall(content)):
        return None
    return _ESCAPE.sub(lambda escape: _YAML_ESCAPES[escape.group(1)], content)


def _block_text(header: str, below: list[str]) -> str | None:
    """Return a block scalar (YAML 1.2.2, section 8.1) whose lines are all at one
    indentation; else ``None``.

    Trailing line breaks are not exact, because name and description are stripped.
    """
    # A header with an indentation indicator (`|2`) is rare: YAML reads it.
    if header.rstrip(" ") not in ("|", ">", "|-", ">-", "|+", ">+") or not below:
        return None
    indent = len(below[0]) - len(below[0].lstrip(" "))
    if not indent:
        return None
    margin = below[0][:indent]
    if not all(line.startswith(margin) for line in below):
        return None
    lines = [line[indent:] for line in below]
    # An empty line, or one that is indented deeper, is folded in another way.
    if any(line[:1] in " \t" for line in lines):
        return None
    if header[0] == "|":
        return "\n".join(lines)
    return " ".join(lines)
