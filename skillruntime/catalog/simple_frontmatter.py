"""Reads simple frontmatter without YAML: that of 90 of 100 real skills, in a fifth of the time.

Law: if `scan` returns a summary and the text is YAML, `summarize` returns the same; else it returns ``None``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from skillruntime.catalog.summary import BOOLEANS, FLAGS, Summary

__all__ = ["plain_text", "scan"]

# One field at the left margin: its key, the rest of its line, and the lines that continue it. Or an empty line.
_FIELD = re.compile(r"([A-Za-z_][\w-]*):(?: +(.*))?((?:\n(?:[ -].*)?)*)(?:\n|\Z)|(?:#.*)?(?:\n|\Z)", re.ASCII)
# How nearly all skills begin: a name, and a description on one line that nothing continues.
_START = re.compile(
    r"""name: +(["']?)([A-Za-z][\w-]*)\1 *\ndescription: +(?:"""
    r"""([^\W\d_](?:[^:#\t\n]++|:(?![ \n])|(?<! )\#)*+)|"([^"\\\n]++)" *|'([^'\n]++)' *)\n(?![ \n-])"""
)
# Any field that a catalog needs, in the same form.
_SIMPLE = re.compile(
    r"""(name|description|version|user-invocable|disable-model-invocation): +(?:"""
    r"""([^\W\d_](?:[^:#\t\n]++|:(?![ \n])|(?<! )\#)*+|[0-9][\w.+-]*+ *)|"([^"\\\n]++)" *|'([^'\n]++)' *)\n(?![ \n-])"""
)
# A quoted description over several lines. libyaml reads on at the left margin too, where real ones continue.
_LONG = re.compile(r"""description: +("(?:[^"\\]++|\\.)*+"|'(?:[^']++|'')*+') *\n(?![ \n-])""")
# What a line of it cannot be: the end of the document, or what a repair of broken YAML would read as a field.
_NO_TEXT = re.compile(r"\n(?:---|\.\.\.|[A-Za-z_][\w.-]*[ \t]*:(?=[ \t\n]))")
# A value that cannot extend into the next field: it closes all quotes and brackets that it opens. The possessive
# quantifiers (``++``, ``*+``) prevent exponential backtracking on a bracket that is never closed. What continues a
# value below its line is indented; only the brackets that close JSON may be at the left margin.
_ESCAPED = (  # YAML 1.2.2, section 5.7; libyaml refuses surrogates and what is not a character
    r"\\(?:[0abtnvfre \"/\\N_LP]|x[0-9a-fA-F]{2}"
    r"|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})"
)
_DOUBLE = rf'"(?:[^"\\\n]++|{_ESCAPED}|\n(?=[ \n]))*+"'
_SINGLE = r"'(?:[^'\n]++|''|\n(?=[ \n]))*+'"
_QUOTED = rf"(?:{_DOUBLE}|{_SINGLE})"
_FLOW = r"(?!)"
for _ in range(5):  # JSON in real frontmatters nests four deep
    # A quote inside a word, and the signs of comments, anchors and tags, are left to YAML.
    _FLOW = (
        rf"""[\[{{](?:[^\[\]{{}}"'\#&*!\n]++|\n(?=[ \n\]}}])|(?:(?<=[\[{{, \n])|(?<=["']:)){_QUOTED}|{_FLOW})*+[\]}}]"""
    )
_PLAIN = r"""[^\s"'\[\]{}>|*&!%\#`@,?:-]"""
_TEXT = rf"{_PLAIN}(?:[^:\#\t\n]++|:(?![ \n])|(?<!\ )\#)*+(?:\#[^\t\n]*+)?"
_NESTED_KEY = r"[A-Za-z_][\w.-]*+:(?=[ \n])"
# A line below a key: text, a list item, a nested key. Each part is in it once: it takes milliseconds to compile.
_LINE = (
    rf"""(?:\ +\#[^\t\n]*+|(?:\ +(?:-\ +)?|-\ +)(?:{_NESTED_KEY}\ *+)?"""
    rf"""(?:{_QUOTED}|{_FLOW}|[|>][+-]?|{_TEXT})?)?\ *+\n"""
)
_BLOCK = r"\ +[|>][^\n]*+\n(?:(?:\ [^\n]*+)?\n)*+(?!-)"
_CLOSED = rf"(?:(?:\ +(?:{_QUOTED}|{_FLOW}|{_PLAIN}[^\t\n]*+))?\ *+\n(?:{_LINE})*+|{_BLOCK})"
_UNREAD_KEY = r"(?!(?:name|description|version|disable-model-invocation|user-invocable):)[A-Za-z_][\w-]*+:"
# All the fields, comments and empty lines from here on that no catalog needs; `metadata` has only a version to read.
_UNREAD = re.compile(rf"(?:{_UNREAD_KEY}{_CLOSED}|(?:\#[^\n]*+)?\n)*+", re.ASCII)
_ONE_QUOTED = re.compile(r'(?:"[^"\\]*(?:\\.[^"\\]*)*"|\'[^\']*(?:\'\'[^\']*)*\')\Z')
_VERSION = re.compile(r"""(?:"([\w.+-]+)"|'([\w.+-]+)'|([0-9A-Za-z][\w.+-]*)) *$""", re.ASCII)
_PLAIN_VERSION = re.compile(r"[\w.+-]*", re.ASCII)
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_METADATA_VERSION = re.compile(r"\n( +)version:(?![^ \n]) *(.*)")
_CONTINUED_VERSION = re.compile(r"\n( +)version:[^\n]*\n[ \n]*(?<=\n)\1 +\S")
_INDENT = re.compile(r"\n( *)\S")
_ESCAPE = re.compile(r"\\(.)")
# The escapes that real files use; every other one (YAML 1.2.2, section 5.7) is left to YAML.
_YAML_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "t": "\t"}
_WANTED = frozenset({"name", "description", "version", "metadata", *FLAGS})
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff\x85\u2028\u2029]")


def scan(block: str) -> Summary | None:
    """Return the summary of simple frontmatter, or ``None`` if YAML is required to read it.

    >>> scan("name: pdf\\ndescription: Read PDFs\\nmetadata:\\n  version: '1.0'")
    Summary(name='pdf', description='Read PDFs', version='1.0', flags=0)
    >>> scan("name: pdf\\ndescription: *alias")
    """
    # `isprintable` runs in C; the pattern decides about the few characters on which the two differ.
    if not block.replace("\n", " ").isprintable() and _UNPRINTABLE.search(block):
        return None
    if block[-1:] != "\n":
        block += "\n"
    if block.startswith("metadata:"):  # rare, and all others begin after a line
        return None
    found: dict[str, str] = {}
    position, end = 0, len(block)
    start = _START.match(block)
    if start is not None:
        _, name, plain, double, single = start.groups()
        found["name"], found["description"] = name, plain or double or single
        position = start.end()
    while True:
        after = _UNREAD.match(block, position).end()  # type: ignore[union-attr]  # it matches nothing, too
        metadata = block.find("\nmetadata:", max(position - 1, 0), after) + 1
        if metadata:
            if "metadata" in found or block.find("\nmetadata:", metadata, after) >= 0:
                return None
            found["metadata"] = ""
            # Most metadata states no version; a backslash could write the word in another way.
            if block.find("version", metadata, after) >= 0 or block.find("\\", metadata, after) >= 0:
                text, position = _metadata_text(block, metadata)
                if text is None:
                    return None
                found["metadata"] = text
                continue
        position = after
        if position == end:
            break
        simple = _SIMPLE.match(block, position)
        if simple is not None:
            key, plain, double, single = simple.groups()
            if key in found:
                return None
            found[key] = plain.rstrip(" ") if plain else double or single
            position = simple.end()
            continue
        key, field = _read_field(block, position)
        # An unusual field, or a duplicate key: YAML reports it.
        if field is None or key in found:
            return None
        found[key], position = field
    if not found:  # perhaps no mapping at all
        return None
    for key in ("name", "description"):
        # In another case it counts too, with a diagnostic.
        if key not in found and f"\n{key}" in f"\n{block.lower()}":
            return None
    flags = 0
    for key, (hides, flag) in FLAGS.items():
        if key in found:
            stated = BOOLEANS.get(found[key].lower())
            if stated is None:
                return None
            if stated is hides:
                flags |= flag
    version = found.get("metadata") or found.get("version") or None
    if version and (" " in version or "\t" in version):  # it is put on one line, without spaces around it
        return None
    return _new_summary(Summary, (found.get("name", ""), found.get("description", ""), version, flags))


_new_summary = tuple.__new__
"""Without the function in Python that a named tuple has for it."""


def _metadata_text(block: str, position: int) -> tuple[str | None, int]:
    """Return the version in the metadata at *position*, ``None`` if YAML is required, and the end of the field."""
    field = _FIELD.match(block, position)
    if field is None:
        return None, position
    return _metadata_version(field.group(2), field.group(3)), field.end()


def _read_field(block: str, position: int) -> tuple[str, tuple[str, int] | None]:
    """Return the key, text and end of the field at *position*; ``None`` for the latter if YAML is required."""
    if block.startswith("description:", position):
        long = _LONG.match(block, position)
        if long is not None and not _NO_TEXT.search(long.group(1)):
            first, *below = long.group(1).split("\n")
            text = _quoted_text(_folded(first, below))
            return "description", None if text is None else (text, long.end())
    field = _FIELD.match(block, position)
    if field is None:
        return "", None
    key, value, below = field.groups()
    if key not in _WANTED:
        return key or "", None
    text = _metadata_version(value, below) if key == "metadata" else _text(value, below)
    return key, None if text is None else (text, field.end())


def _metadata_version(value: str | None, below: str) -> str | None:
    """Return ``metadata.version``, or ``""`` if there is none; ``None`` if YAML is required to read it."""
    # A list at the left margin, or a JSON number: not a mapping.
    if "\n-" in below:
        return None
    if value or below.lstrip()[:1] == "{":
        return _json_version(f"{value or ''}{below}")
    if not _UNREAD.fullmatch(f"x:{below}\n"):
        return None
    if "version:" not in below:
        return ""
    indents = _INDENT.findall(below)
    # The first key decides the indentation; a line further left is not valid YAML, and a comment decides nothing.
    # A line further right continues the version.
    if not indents or min(indents) != indents[0] or "#" in below or _CONTINUED_VERSION.search(below):
        return None
    stated = [version for indent, version in _METADATA_VERSION.findall(below) if indent == indents[0]]
    versions = [_VERSION.match(each) for each in stated]
    if not versions:
        return ""
    return versions[0].group(versions[0].lastindex or 0) if len(versions) == 1 and versions[0] else None


def _json_version(text: str) -> str | None:
    """Return the version in a JSON object: 19 % of real skills have one as the value of ``metadata``.

    JSON means the same in YAML, except for merge keys. A comma before a closing bracket is valid in YAML only, and
    formatters write it.
    """
    if "<<" in text:
        return None
    decode = _json_decoder()
    try:
        fields = decode(text)
    except ValueError:
        try:
            fields = decode(_TRAILING_COMMA.sub("", text))
        except (ValueError, RecursionError):
            return None
    except RecursionError:
        return None
    version = fields.get("version", "") if isinstance(fields, dict) else None
    return version if isinstance(version, str) and _PLAIN_VERSION.fullmatch(version) else None


@cache
def _json_decoder() -> Callable[[str], Any]:
    import json  # its import takes as long as reading a hundred skills

    return json.JSONDecoder(parse_int=str, parse_float=str).decode


def _text(value: str | None, lines: str) -> str | None:
    """Return the text of a scalar that is plain, quoted, or a block."""
    below = lines.split("\n")[1:]
    while below and not below[-1].strip(" "):
        below.pop()
    if not value:
        if not below or below[0][:1] != " ":
            return None
        value, below = below[0].lstrip(" "), below[1:]
        if not value or value[0] in "|>":
            return None
    if value[0] in "|>":
        return _block_text(value, below)
    if value[0] in "\"'":
        return _quoted_text(_folded(value, below) if below else value.rstrip(" "))
    return plain_text(value, below)


def plain_text(value: str, below: list[str]) -> str | None:
    """Return the text of a plain scalar that begins with *value* (YAML 1.2.2, section 7.3.3), ``None`` if uncertain."""
    value = value.rstrip(" ")
    if not value or not (value[0].isalpha() or (value[0].isdigit() and _VERSION.match(value))) or not _is_plain(value):
        return None
    if not below:
        return value
    if any(line[:1] == "-" for line in below):
        return None
    lines = [value, *(line.strip(" ") for line in below)]
    return " ".join(lines) if all(line and line[0] != "#" and _is_plain(line) for line in lines) else None


def _is_plain(line: str) -> bool:
    """Whether nothing in *line* ends a plain scalar."""
    return ": " not in line and " #" not in line and "\t" not in line and line[-1] != ":"


def _folded(value: str, below: list[str]) -> str:
    """Return the folded lines of a quoted scalar (YAML 1.2.2, section 7.3.1); empty if YAML is required."""
    text = value.rstrip(" ")
    breaks = 0
    if "\t" in text:
        return ""
    for line in below:
        if not line.strip(" "):
            breaks += 1
            continue
        if "\t" in line:
            return ""
        text += ("\n" * breaks or " ") + line.strip(" ")
        breaks = 0
    return text


def _quoted_text(value: str) -> str | None:
    if not _ONE_QUOTED.match(value):
        return None
    inside = value[1:-1]
    if value[0] == "'":
        return inside.replace("''", "'")
    if "\\" not in inside:
        return inside
    if any(escape not in _YAML_ESCAPES for escape in _ESCAPE.findall(inside)):
        return None
    return _ESCAPE.sub(lambda escape: _YAML_ESCAPES[escape.group(1)], inside)


def _block_text(header: str, below: list[str]) -> str | None:
    """Return a block scalar (YAML 1.2.2, sections 8.1.2 and 8.1.3), ``None`` if its indentation is unclear.

    Trailing line breaks are not exact, because name and description are stripped.
    """
    # A header with an indentation indicator (`|2`) is rare: YAML reads it.
    if header.rstrip(" ") not in ("|", ">", "|-", ">-", "|+", ">+") or not below:
        return None
    first = below[0]
    indent = len(first) - len(first.lstrip(" "))
    if indent == 0 or not first.strip(" ") or first[indent] == "\t":
        return None
    margin = first[:indent]
    lines: list[str] = []
    for line in below:
        if not line:
            lines.append("")
        elif line.startswith(margin) and not line.isspace():
            lines.append(line[indent:])
        elif margin.startswith(line):
            lines.append("")
        else:
            return None
    if header[0] == "|":
        return "\n".join(lines)
    text = lines[0]
    breaks = 0
    was_deeper = text[0] in " \t"
    for line in lines[1:]:
        if not line:
            breaks += 1
            continue
        is_deeper = line[0] in " \t"  # breaks around more-indented lines are not folded
        text += ("\n" * (breaks + 1) if is_deeper or was_deeper else "\n" * breaks or " ") + line
        breaks, was_deeper = 0, is_deeper
    return text
