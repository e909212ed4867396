"""Summarize a skill's metadata for a catalog: name, description, version, permitted
users. Pure.

`summarize` takes the metadata from fields that were parsed by YAML or repaired;
`skillruntime.catalog.frontmatter.simple_frontmatter` reads simple frontmatter without
YAML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from skillruntime.catalog.discovery.root_snapshot import (
    HIDDEN_FROM_MODEL,
    HIDDEN_FROM_USER,
)
from skillruntime.catalog.visibility import (
    hidden_characters,
    is_visible,
    listed_kinds,
    visible_line,
    visible_text,
)
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["BOOLEANS", "FLAGS", "Summary", "judge", "notes_on_name", "summarize"]

MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_USABLE_NAME = 256
"""The maximum length of a name; if it is longer, the directory name is used."""


class Summary(NamedTuple):
    """The metadata of one skill. A missing ``name`` or ``description`` is empty."""

    name: str
    description: str
    version: str | None
    flags: int


FLAGS = {
    "disable-model-invocation": (True, HIDDEN_FROM_MODEL),
    "user-invocable": (False, HIDDEN_FROM_USER),
}
# YAML 1.2.2, section 10.2.1: these words mean a missing value. They do so even in
# quotes, because none of them describes or names a skill.
_NULLS = frozenset({"~", "null", "Null", "NULL"})
# A description of at least this length is none of these words, so its hash is not
# computed.
_SHORT = 5
# The words of YAML 1.1.
BOOLEANS = {
    "true": True,
    "yes": True,
    "on": True,
    "false": False,
    "no": False,
    "off": False,
}


def summarize(
    fields: Mapping[str, Any], path: str, findings: list[Diagnostic]
) -> Summary:
    """Return the summary of *fields*, read leniently; each deviation from the format is
    added to *findings*.
    """
    # The format allows a version only in the metadata; the top-level field is an old
    # habit.
    version = ""
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        version = _stripped(metadata.get("version"))
    if not version:
        version = _stripped(fields.get("version"))
    flags = _flags(fields, path, findings)
    name = _field(fields, "name", path, findings)
    if not isinstance(name, str):
        if name is not None:
            message = "`name` is not a string; using the directory name"
            findings.append(_warning("name-not-text", path, message))
        name = ""
    description = _field(fields, "description", path, findings)
    if isinstance(description, list):
        if all(isinstance(item, str) for item in description):
            message = "`description` is a list; its items were joined"
            findings.append(_warning("description-not-text", path, message))
            description = " ".join(description)
    if not isinstance(description, str):
        if description is not None:
            message = "`description` is not a string"
            findings.append(_warning("description-not-text", path, message))
        description = ""
    return Summary(name, description, visible_line(version) or None, flags)


def _stripped(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _flags(fields: Mapping[str, Any], path: str, findings: list[Diagnostic]) -> int:
    """Return the flags for the two fields that hide a skill from the model or the
    user.
    """
    flags = 0
    for key, (hides, flag) in FLAGS.items():
        value = fields.get(key)
        # A boolean is still text here, because discovery does not convert values: YAML
        # 1.1 has eleven spellings of each.
        stated = BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else None
        if stated is hides:
            flags |= flag
        elif stated is None and value:
            message = f"{key} is neither true nor false; ignored"
            findings.append(_warning("not-a-boolean", path, message))
    return flags


def _field(
    fields: Mapping[str, Any], key: str, path: str, findings: list[Diagnostic]
) -> Any:
    """Return the field *key*; if it is missing, the only field with this name in
    another case.
    """
    if key in fields:
        return fields[key]
    # `Name:` and `Description:` occur in real files.
    others = [other for other in fields if other.lower() == key]
    if len(others) != 1:
        return None
    message = f"the key is spelled {others[0]!r} instead of {key!r}"
    findings.append(_warning("key-case", path, message))
    return fields[others[0]]


def judge(
    summary: Summary,
    directory: str,
    path: str,
    findings: list[Diagnostic],
    *,
    is_visible: bool = False,
) -> Summary | None:
    """Return *summary* with a usable name, or ``None`` if it is not a valid skill.

    *directory* is the name of the skill's directory. With *is_visible* the summary is
    known to have no hidden character. Lenient, as the Agent Skills guide
    for clients recommends: a name that is too long, malformed or different from the
    directory's gets a warning; a missing description is an error.
    """
    description = summary.description.strip()
    if not is_visible:
        description = _without_hidden(description, path, findings)
    if len(description) < _SHORT and (not description or description in _NULLS):
        findings.append(
            Diagnostic(
                "description-missing",
                Severity.ERROR,
                path,
                "there is no description; skipped",
                hint="say what the skill does and when to use it",
            )
        )
        return None
    version = summary.version
    if version in _NULLS:
        version = None
    name = summary.name.strip()
    # Some generators write their language's null in quotes: `name: "null"`.
    if name in _NULLS:
        name = ""
    if not name.isascii():
        # As in skills-ref, so that a full-width name equals its ASCII form.
        name = _normalized(name)
    # Nearly every name matches the pattern, which is faster to test than `is_usable`.
    is_plain = len(name) <= MAX_USABLE_NAME and _ASCII_NAME.fullmatch(name)
    if is_plain or is_usable(name):
        # As `Summary(...)`, but in C.
        return _new_summary(Summary, (name, description, version, summary.flags))
    directory_name = _normalized(directory)
    if name:
        rule = "name-form"
        fault = f"the name {name[:80]!a} cannot be used"
    else:
        rule = "name-missing"
        fault = "there is no name"
    if not is_usable(directory_name):
        message = f"{fault}; skipped"
        findings.append(Diagnostic("name-missing", Severity.ERROR, path, message))
        return None
    findings.append(_warning(rule, path, f"{fault}; using the directory name"))
    return Summary(directory_name, description, version, summary.flags)


_new_summary = tuple.__new__


def _without_hidden(description: str, path: str, findings: list[Diagnostic]) -> str:
    """Return *description* without hidden characters and outer white space."""
    if is_visible(description):
        return description
    hidden = hidden_characters(description)
    if hidden:
        message = f"the description has {listed_kinds(hidden)}; removed"
        findings.append(_warning("hidden-characters", path, message))
    return visible_text(description).strip()


def notes_on_name(
    name: str, description: str, path: str, noted: Iterable[Diagnostic]
) -> list[Diagnostic]:
    """Return warnings about a *name* and a *description* that `judge` accepted.

    *noted* are the diagnostics that discovery kept; they show whether the name is the
    directory's. Discovery itself does not make or store these warnings, because they
    follow from the metadata, and half of the real skills have one.
    """
    findings: list[Diagnostic] = []
    if not _is_well_formed(name):
        is_directory_name = any(
            note.rule in ("name-missing", "name-form") for note in noted
        )
        if not is_directory_name:
            message = f"the name {name!r} is not well formed"
            hint = "use lowercase letters, digits and single hyphens between them"
            findings.append(_warning("name-form", path, message, hint=hint))
    if len(name) > MAX_NAME:
        message = f"the name has {len(name)} characters; at most {MAX_NAME} are allowed"
        findings.append(_warning("name-length", path, message))
    directory = path.rsplit("/", 2)[-2] if path.count("/") > 1 else ""
    if name != directory and name != _normalized(directory):
        message = f"the name {name!r} differs from the directory name {directory!r}"
        findings.append(_warning("name-mismatch", path, message))
    if len(description) > MAX_DESCRIPTION:
        message = (
            f"the description has {len(description)} characters; at most "
            f"{MAX_DESCRIPTION} are allowed"
        )
        findings.append(_warning("description-length", path, message))
    return findings


def is_usable(name: str) -> bool:
    """Return whether a model can call a skill by this name: one line of printable text
    that is not a path.
    """
    if len(name) > MAX_USABLE_NAME:
        return False
    # Names become parts of paths and of tool names.
    if "/" in name or "\\" in name or not name.strip("."):
        return False
    return name.isprintable() and is_visible(name)


_ASCII_NAME = lazy_pattern(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def _normalized(name: str) -> str:
    """Return *name* in NFKC."""
    if name.isascii():
        return name
    import unicodedata  # a shared library, which ASCII does not need

    return unicodedata.normalize("NFKC", name)


def _is_well_formed(name: str) -> bool:
    if len(name) > MAX_NAME:
        return False
    if name.isascii():
        return _ASCII_NAME.fullmatch(name) is not None
    if name != name.lower() or name != _normalized(name):
        return False
    return all(part.isalnum() for part in name.split("-"))


def _warning(rule: str, path: str, message: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic(rule, Severity.WARNING, path, message, hint=hint)
