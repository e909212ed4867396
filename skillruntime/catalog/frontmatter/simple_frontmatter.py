"""Read simple frontmatter without YAML, in a tenth of the time. 19 of 20 real skills
have simple frontmatter.

Law: if `scan` returns a summary and the text is valid YAML, `summarize` returns the
same summary. In every other case `scan` returns ``None``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from skillruntime.catalog.discovery.summary import BOOLEANS, FLAGS, Summary
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["scan"]

# Quantifiers are possessive (``++``, ``*+``): the text that a part has matched is never
# matched in another way. A skipped value closes all quotes and brackets that it opens,
# so that it cannot extend into the next field. Its continuation lines are indented;
# only the closing brackets of JSON may be at the left margin.
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
# If a word contains a quote, or if there may be a comment, an anchor or a tag, YAML
# reads the frontmatter.
_FLOW_TEXT = r"""[^\[\]{}"'\#&*!\n]++|\n(?=[ \n\]}])"""
_FLOW_QUOTED = rf"""(?:(?<=[\[{{, \n])|(?<=["']:)){_QUOTED}"""
_FLOW = r"(?!)"
for _depth in range(5):  # JSON in real frontmatters nests four deep
    _FLOW = rf"[\[{{](?:{_FLOW_TEXT}|{_FLOW_QUOTED}|{_FLOW})*+[\]}}]"
_START = r"""[^\s"'\[\]{}>|*&!%\#`@,?:-]"""  # the first character of any plain text
_PLAIN = rf"{_START}(?:[^:\#\t\n]++|:(?![ \n])|(?<!\ )\#)*+(?:\#[^\t\n]*+)?"
# A line of a value: text, a list item, a nested key.
_LINE = rf"""
    (?: \ ++\#.*+
      | (?:\ ++(?:-\ ++)?|-\ ++) (?:[A-Za-z_][\w.-]*+:(?=[ \n])\ *+)?
        (?:{_QUOTED}|{_FLOW}|[|>][+-]?|{_PLAIN})?
    )?\ *+\n"""
_BLOCK = r"[|>].*+(?:\n(?:\ .*+|(?=\n)))*+"
# A value that is read. No indented text and no list at the left margin may follow and
# continue it.
_TEXT = rf"""
    (?:\ *+\n)?\ ++( {_START}.*+(?:\n\ ++(?=[^\s\#]).*+)*+
       | (?:"[^"]*+(?<!\\)"|'[^']*+'|"(?:[^"\\]++|\\.)*+"|'(?:[^']++|'')*+')\ *+
       | {_BLOCK} )\n++(?![ -])"""
_WORD = r"""\ ++([\w.+-]++|"[\w.+-]*+"|'[\w.+-]*+')\ *+\n++(?![ -])"""
_UNREAD = rf"\ ++{_BLOCK}\n(?!-) | (?:\ ++{_START}.*+\n|(?=[ \n])) (?:{_LINE})*+"
_KEYS_READ = "name|description|version|disable-model-invocation|user-invocable"
# The next field, after comments and empty lines. What is skipped stands once in the
# expression, because compiling it takes as long as reading a hundred skills.
_NEXT = lazy_pattern(
    rf"""
    (?:(?:\#.*+)?\n)*+
    (?: name:{_TEXT} | description:{_TEXT} | version:{_WORD}
      | disable-model-invocation:{_WORD} | user-invocable:{_WORD}
      | (?:(metadata)|(?!(?:{_KEYS_READ}):)[A-Za-z_][\w-]*+): (?: {_UNREAD} )
    )?""",
    re.ASCII | re.VERBOSE,
)
_NAME, _DESCRIPTION, _STATED_VERSION, _MODEL, _USER, _METADATA = range(1, 7)
_VERSION = lazy_pattern(
    r"""(?:"([\w.+-]+)"|'([\w.+-]+)'|([0-9A-Za-z][\w.+-]*)) *$""", re.ASCII
)
_PLAIN_VERSION = lazy_pattern(r"[\w.+-]*", re.ASCII)
_FIELD = lazy_pattern(r"( ++)[A-Za-z_][\w.-]*+:(?: ++[^\s#|>].*| *+)", re.ASCII)
_ITEM = lazy_pattern(r" ++- ++[^\s#|>&*!?{\[\"':,%@`-][^:#]*+", re.ASCII)
# A line that ends the document, or could be intended as a comment or another field.
_NOT_CONTINUED = lazy_pattern(r"---|\.\.\.|#|[A-Za-z_][\w.-]*+[ \t]*+:")
_KEY = lazy_pattern(r"^[A-Za-z_][\w-]*+(?=:)", re.MULTILINE | re.ASCII)
_KEYS_NEEDED = ("name", "description")
_ESCAPE = lazy_pattern(r"\\(.)", re.DOTALL)  # YAML reads an escaped line end
# The escapes that real files use; YAML reads all others (YAML 1.2.2, section 5.7).
_YAML_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "t": "\t"}
_UNPRINTABLE = lazy_pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff"
    "\x85\u2028\u2029]"
)


def scan(block: str, *, is_visible: bool = False) -> Summary | None:
    """Return the summary of simple frontmatter, or ``None`` if YAML is required to read
    it. With *is_visible* the block is known to have no hidden character.

    >>> scan("name: pdf\\ndescription: Read PDFs\\nmetadata:\\n  version: '1.0'")
    Summary(name='pdf', description='Read PDFs', version='1.0', flags=0)
    >>> scan("name: pdf\\ndescription: *alias")
    """
    # The characters that YAML forbids are hidden ones.
    if not is_visible and _UNPRINTABLE.search(block):
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
                return None  # the YAML reader reports duplicate keys
            if which == _METADATA:
                values[which] = block[field.end(which) + 1 : position]
            else:
                values[which] = field[which]
    if values[_NAME] is None or values[_DESCRIPTION] is None:
        # The key may be written in another case, or the frontmatter may not be a
        # mapping.
        keys = _KEY.findall(block)
        others = [key for key in keys if key not in _KEYS_NEEDED]
        if not keys or any(key.lower() in _KEYS_NEEDED for key in others):
            return None
    return _summary_of(values)


def _summary_of(values: list[str | None]) -> Summary | None:
    name = _text(values[_NAME] or "''")
    description = _text(values[_DESCRIPTION] or "''")
    if name is None or description is None:
        return None
    version = values[_STATED_VERSION]
    if version:
        version = version.strip("\"' ")
    metadata = values[_METADATA]
    # Most metadata does not state a version; a backslash could be part of an escaped
    # key.
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
    a value is not a boolean.
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
    # A list at the left margin, or a JSON number, is not a mapping.
    if "\n-" in below:
        return None
    if value or below.lstrip()[:1] == "{":
        return _json_version(value + below)
    if "version:" not in below:
        return ""
    lines = [line for line in below.split("\n") if line]
    indent = _mapping_indent(lines)
    if indent is None:
        return None
    key = f"{' ' * indent}version:"
    stated = [
        line.removeprefix(key).lstrip(" ") for line in lines if line.startswith(key)
    ]
    if not stated:
        return ""
    version = _VERSION.match(stated[0])
    if version is None or len(stated) > 1:
        return None
    return version.group(version.lastindex or 0)


def _mapping_indent(lines: list[str]) -> int | None:
    """Return the indentation of a mapping with one field or list item on each line,
    also in nested mappings and lists; ``None`` if YAML is required to read *lines*.
    """
    levels: list[tuple[int, bool]] = []
    opens = True  # whether the previous line is a key without a value
    for line in lines:
        field = _FIELD.fullmatch(line)
        is_item = field is None
        if is_item and not _ITEM.fullmatch(line):
            return None
        level = (len(line) - len(line.lstrip(" ")), is_item)
        if opens and (not levels or level[0] > levels[-1][0]):
            levels.append(level)
        else:
            while levels and levels[-1][0] > level[0]:
                levels.pop()
            if not levels or levels[-1] != level:
                return None
        opens = field is not None and line.rstrip(" ").endswith(":")
    if not levels or levels[0][1] or not levels[0][0]:
        return None
    return levels[0][0]


def _json_version(text: str) -> str | None:
    """Return the version in a JSON object: 19 % of real skills have one as the value of
    ``metadata``.

    JSON has the same meaning in YAML.
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
    import json  # importing json takes as long as reading a hundred skills

    return json.JSONDecoder(parse_int=str, parse_float=str).decode


def _text(value: str) -> str | None:
    """Return the text of a plain, quoted or block scalar."""
    if value[0] in "\"'":
        return _quoted_text(value.rstrip(" "))
    if value[0] in "|>":
        header, *below = value.split("\n")
        return _block_text(header, below)
    if "\n" in value:
        lines = [line.strip(" ") for line in value.split("\n")]
        return " ".join(lines) if all(map(_is_plain, lines)) else None
    return value.rstrip(" ") if _is_plain(value) else None


def _is_plain(line: str) -> bool:
    """Return whether all of *line* can be part of a plain scalar."""
    if ": " in line or " #" in line:
        return False
    return "\t" not in line and line[-1] != ":"


def _quoted_text(value: str) -> str | None:
    """Return the text in the quotes of *value*; ``None`` if YAML is required to read
    it.

    White space at both ends may differ, because name and description are stripped.
    """
    content = value[1:-1]
    if "\n" in content:
        if "\t" in content:
            return None
        lines = content.split("\n")
        if any(map(_NOT_CONTINUED.match, lines[1:])):
            return None
        content = _folded([line.strip(" ") for line in lines])
    if value[:1] == "'":
        return content.replace("''", "'")
    if "\\" not in content:
        return content
    if any(escape not in _YAML_ESCAPES for escape in _ESCAPE.findall(content)):
        return None
    return _ESCAPE.sub(lambda escape: _YAML_ESCAPES[escape.group(1)], content)


def _folded(lines: list[str]) -> str:
    """Return *lines* folded into one text (YAML 1.2.2, section 6.5): a line break
    becomes a space, and each empty line becomes a line break.
    """
    text = lines[0]
    is_after_empty = False
    for line in lines[1:]:
        if not line:
            text += "\n"
        elif is_after_empty:
            text += line
        else:
            text += f" {line}"
        is_after_empty = not line
    return text


def _block_text(header: str, below: list[str]) -> str | None:
    """Return a block scalar (YAML 1.2.2, section 8.1); ``None`` if YAML is required to
    read it.

    Trailing line breaks may differ, because name and description are stripped.
    """
    # A header with an indentation indicator (`|2`) is rare: YAML reads it.
    if header.rstrip(" ") not in ("|", ">", "|-", ">-", "|+", ">+"):
        return None
    texts = [line for line in below if line.strip(" ")]
    if not texts:
        return None
    indent = len(texts[0]) - len(texts[0].lstrip(" "))
    margin = texts[0][:indent]
    if not indent or not all(line.startswith(margin) for line in texts):
        return None
    first = below.index(texts[0])
    # YAML refuses a tab in the indentation, and leading blank lines with more spaces.
    if texts[0][indent] == "\t" or any(len(line) > indent for line in below[:first]):
        return None
    lines = [line[indent:] for line in below]
    if header[0] == "|":
        return "\n".join(lines)
    # YAML folds deeper indented lines differently.
    if any(line[:1] in (" ", "\t") for line in lines):
        return None
    return _folded(lines)
