"""The metadata that a catalog needs of a skill: name, description, version, permitted users. Pure.

There are two readers. `scan` reads simple frontmatter without YAML, that of 93 of 100 real skills (96 of those that
are valid YAML), and returns ``None`` as soon as it is not certain. `summarize` takes the fields from YAML, or from its
repair. Law: if `scan` returns a summary and the text is YAML, `summarize` returns the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from skillruntime.catalog.root_snapshot import HIDDEN_FROM_MODEL, HIDDEN_FROM_USER
from skillruntime.catalog.visible_text import hidden_characters, is_visible, listed_kinds, visible_line, visible_text
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["Summary", "judge", "plain_text", "scan", "summarize"]

MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_USABLE_NAME = 256
"""The maximum length of a name; if it is longer, the directory name is used."""


class Summary(NamedTuple):
    """The metadata of one skill. An empty ``name`` or ``description`` is missing."""

    name: str
    description: str
    version: str | None
    flags: int


# One field at the left margin: its key, the rest of its line, and the lines that continue it. Or an empty line.
_FIELD = re.compile(r"([A-Za-z_][\w-]*):(?: +(.*))?((?:\n(?:[ -].*)?)*)(?:\n|\Z)|(?:#.*)?(?:\n|\Z)", re.ASCII)
# A value that cannot extend into the next field: it closes all quotes and brackets that it opens. The possessive
# quantifiers (``++``, ``*+``) prevent exponential backtracking on a bracket that is never closed.
_QUOTED = r"""(?:"[^"\\]*(?:\\.[^"\\]*)*"|'[^']*(?:''[^']*)*')"""
_LIST = rf"""\[(?:[^\[\]{{}}"'#&*!]++|(?<=[\[, ]){_QUOTED})*+\]"""
_CLOSED = re.compile(rf"""(?:{_QUOTED}|{_LIST}|[^\s"'\[\]{{}}>|*&!%#`@,?:-][^\t\n]*)? *\Z""")
_CLOSED_LINES = re.compile(
    rf"""(?:\n(?: *|\ +\#[^\t\n]*|(?:\ +(?:-\ +)?|-\ +)(?:[A-Za-z_][\w.-]*:(?=\ |\n|\Z)\ *)?"""
    # No quote or bracket may open after a key. Lines of a block scalar are checked like any other line.
    rf"""(?:{_QUOTED}|{_LIST}|[|>][+-]?|[^\s"'\[\]{{}}>|*&!%#`@,?:-](?!.*:\ +["'\[{{>|*&!])[^\t\n]*)?\ *)"""
    r"""(?=\n|\Z))*+\Z""",
    re.ASCII,
)
_VERSION = re.compile(r"""(?:"([\w.+-]+)"|'([\w.+-]+)'|([0-9A-Za-z][\w.+-]*)) *$""", re.ASCII)
_PLAIN_VERSION = re.compile(r"[\w.+-]*", re.ASCII)
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_METADATA_VERSION = re.compile(r"\n( +)version: +(.*)")
_INDENT = re.compile(r"\n( *)\S")
_ESCAPE = re.compile(r"\\(.)")
# The escapes that real files use; every other one (YAML 1.2.2, section 5.7) is left to YAML.
_YAML_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "t": "\t"}
_FLAGS = {"disable-model-invocation": (True, HIDDEN_FROM_MODEL), "user-invocable": (False, HIDDEN_FROM_USER)}
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}  # the words of YAML 1.1
_WANTED = frozenset({"name", "description", "version", "metadata", *_FLAGS})
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
    found: dict[str, str] = {}
    position, end = 0, len(block)
    while position < end:
        field = _FIELD.match(block, position)
        if field is None:
            return None
        position = field.end()
        key, value, below = field.groups()
        if key not in _WANTED:
            if key and not _is_closed(value, below):
                return None
            continue
        # A duplicate key: YAML reports it.
        if key in found:
            return None
        text = _metadata_version(value, below) if key == "metadata" else _text(value, below)
        if text is None:
            return None
        found[key] = text
    name, description = found.get("name"), found.get("description")
    if not name or not description:
        return None
    flags = 0
    if len(found) > 2:
        for key, (hides, flag) in _FLAGS.items():
            if key in found:
                stated = _BOOLEANS.get(found[key].lower())
                if stated is None:
                    return None
                if stated is hides:
                    flags |= flag
    return Summary(name, description, found.get("metadata") or found.get("version") or None, flags)


def _is_closed(value: str | None, below: str) -> bool:
    """Whether a field that nothing here reads ends where it seems to end."""
    if value and value[0] in "|>":
        return "\n-" not in below
    if value and not _CLOSED.match(value):
        return False
    return not below or _CLOSED_LINES.match(below) is not None


def _metadata_version(value: str | None, below: str) -> str | None:
    """Return ``metadata.version``, or ``""`` if there is none; ``None`` if YAML is required to read it."""
    # A list at the left margin, or a JSON number: not a mapping.
    if "\n-" in below:
        return None
    if value or below.lstrip()[:1] == "{":
        return _json_version(f"{value or ''}{below}")
    if not _CLOSED_LINES.match(below):
        return None
    if "version:" not in below:
        return ""
    indents = _INDENT.findall(below)
    # The first key decides the indentation; a line further left is not valid YAML.
    if min(indents, default="") != indents[0]:
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
    for line in below:
        if not line:
            breaks += 1
            continue
        if line[0] != " " or "\t" in line or not line.strip(" "):
            return ""
        text += ("\n" * breaks or " ") + line.strip(" ")
        breaks = 0
    return text


def _quoted_text(value: str) -> str | None:
    if not _CLOSED.match(value) or len(value) < 2:
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
    if indent == 0 or not first.strip(" "):
        return None
    margin = first[:indent]
    lines: list[str] = []
    for line in below:
        if not line:
            lines.append("")
        elif line.startswith(margin) and not line.isspace():
            lines.append(line[indent:])
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


def summarize(fields: Mapping[str, Any], path: str, found: list[Diagnostic]) -> Summary:
    """Return the summary of *fields*, read leniently; each deviation from the format is added to *found*."""
    version: str | None = None
    metadata = fields.get("metadata")
    # The format allows a version only here; the top-level field is an old habit.
    if isinstance(metadata, dict) and isinstance(metadata.get("version"), str):
        version = metadata["version"].strip() or None
    if version is None and isinstance(fields.get("version"), str):
        version = fields["version"].strip() or None
    flags = 0
    for key, (hides, flag) in _FLAGS.items():
        value = fields.get(key)
        stated = _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else None
        if stated is hides:
            flags |= flag
        elif stated is None and value:
            found.append(_warning("not-a-boolean", path, f"{key} is neither true nor false; ignored"))
    name = _field(fields, "name", path, found)
    if not isinstance(name, str):
        if name is not None:
            found.append(_warning("name-not-text", path, "`name` is not a string; using the directory name"))
        name = ""
    description = _field(fields, "description", path, found)
    if isinstance(description, list) and all(isinstance(each, str) for each in description):
        found.append(_warning("description-not-text", path, "`description` is a list; its items were joined"))
        description = " ".join(description)
    if not isinstance(description, str):
        if description is not None:
            found.append(_warning("description-not-text", path, "`description` is not a string"))
        description = ""
    return Summary(name, description, visible_line(version) or None if version else None, flags)


def _field(fields: Mapping[str, Any], key: str, path: str, found: list[Diagnostic]) -> Any:
    """Return a field by its name, or by its name in another case if there is exactly one."""
    if key in fields:
        return fields[key]
    others = [other for other in fields if other.lower() == key]
    if len(others) != 1:
        return None
    found.append(_warning("key-case", path, f"the key is spelled {others[0]!r} instead of {key!r}"))
    return fields[others[0]]


def judge(summary: Summary, directory: str, path: str, found: list[Diagnostic]) -> Summary | None:
    """Return *summary* with a usable name, or ``None`` if it is not a valid skill.

    *directory* is the name of the skill's directory. Lenient, as the Agent Skills guide for clients recommends: a name
    that is too long, malformed or different from the directory is a warning; a missing description is an error.
    """
    name, description, version, flags = summary
    description = description.strip()
    if not is_visible(description):
        hidden = hidden_characters(description)
        if hidden:
            found.append(_warning("hidden-characters", path, f"the description has {listed_kinds(hidden)}; removed"))
        description = visible_text(description).strip()
    if not description:
        hint = "say what the skill does and when to use it"
        found.append(
            Diagnostic("description-missing", Severity.ERROR, path, "there is no description; skipped", hint=hint)
        )
        return None
    name = name.strip()
    if name == directory and _is_well_formed(name) and len(description) <= MAX_DESCRIPTION:
        same = name is summary.name and description is summary.description
        return summary if same else Summary(name, description, version, flags)
    # NFKC as in skills-ref, so that a full-width name equals its ASCII form.
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
    if not is_usable(name):
        fallback = unicodedata.normalize("NFKC", directory)
        what = "there is no name" if not name else f"the name {name[:80]!a} cannot be used"
        if not is_usable(fallback):
            found.append(Diagnostic("name-missing", Severity.ERROR, path, f"{what}; skipped"))
            return None
        found.append(_warning("name-missing" if not name else "name-form", path, f"{what}; using the directory name"))
        name = fallback
    elif not _is_well_formed(name):
        what = "lowercase letters, digits and single hyphens between them"
        found.append(_warning("name-form", path, f"the name {name!r} is not well formed", hint=f"use {what}"))
    if len(name) > MAX_NAME:
        found.append(
            _warning("name-length", path, f"the name has {len(name)} characters; at most {MAX_NAME} are allowed")
        )
    if name != unicodedata.normalize("NFKC", directory):
        message = f"the name {name!r} differs from the directory name {directory!r}"
        found.append(_warning("name-mismatch", path, message))
    if len(description) > MAX_DESCRIPTION:
        message = f"the description has {len(description)} characters; at most {MAX_DESCRIPTION} are allowed"
        found.append(_warning("description-length", path, message))
    return Summary(name, description, version, flags)


def is_usable(name: str) -> bool:
    """Whether a model can call a skill by this name: one line of printable text that is not a path."""
    # Names become parts of paths and of tool names.
    is_path = "/" in name or "\\" in name or not name.strip(".")
    return len(name) <= MAX_USABLE_NAME and name.isprintable() and is_visible(name) and not is_path


_ASCII_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def _is_well_formed(name: str) -> bool:
    if len(name) > MAX_NAME:
        return False
    if _ASCII_NAME.fullmatch(name):
        return True
    return (
        not name.isascii()
        and name == name.lower()
        and all(part and part.isalnum() for part in name.split("-"))
        and unicodedata.is_normalized("NFKC", name)
    )


def _warning(rule: str, path: str, message: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic(rule, Severity.WARNING, path, message, hint=hint)
