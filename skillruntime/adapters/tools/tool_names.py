"""Names of tools: what every provider takes (``^[a-zA-Z0-9_-]{1,64}$``), and which one
a model means.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from skillruntime.catalog.search.closest_names import closest_names

__all__ = [
    "CALL_PREFIXES",
    "MeantName",
    "mcp_names",
    "meant_name",
    "to_tool_name",
    "tool_names",
]

CALL_PREFIXES = frozenset({"functions", "function", "tools", "tool", "default_api"})
"""What models put before a tool's name: the namespaces of OpenAI's and Google's chat
templates, and their variants.
"""

LONGEST_NAME = 256
"""A longer name is meant by its exact spelling alone: MCP, "Tool Names", has 128
characters at most.
"""

# The strictest rule among OpenAI, Anthropic and Bedrock; Gemini also takes dots and
# colons.
_FITS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LENGTH = 64
_DIGEST = 8  # hexadecimal digits that keep two shortened names apart
# What models write for one another between words. Between two digits one stays: `v1_1`
# is not `v11`.
_SEPARATORS = re.compile(r"[-_./:\s]++", re.ASCII)
# `mcp__files__read`, `files.read`, `files/read`, `functions:read`: how clients and
# models qualify a name.
_PREFIX_ENDS = re.compile(r"__|[./:]")
_LOWER_CASE = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class MeantName:
    """The *name* that was meant; where none is certain, None and the *nearest* names,
    to suggest.

    *is_ambiguous* says that the *nearest* fit equally well.
    """

    name: str | None
    nearest: tuple[str, ...] = ()
    is_ambiguous: bool = False


def meant_name(
    sent: str,
    names: Collection[str],
    *,
    prefixes: Collection[str] | None = CALL_PREFIXES,
) -> MeantName:
    """Return which of *names*, all that the host knows, a model meant that wrote
    *sent*.

    An exact name wins. Else ASCII case and separators may differ, and one of *prefixes*
    may stand before the name. With None any prefix may, except one that stands before
    another name: for an MCP server, which its client has chosen. A name that differs by
    a letter, lacks a prefix, or could be two names is not put right.

    >>> names = ["pdf__extract", "read_file", "report-1", "report_1"]
    >>> meant_name("functions.pdf/extract", names).name
    'pdf__extract'
    >>> meant_name("ReadFile", names).name
    'read_file'
    >>> meant_name("docx/extract", names), meant_name("Report_1", names).name
    (MeantName(name=None, nearest=('pdf__extract',), is_ambiguous=False), None)
    >>> meant_name("mcp__files__read_file", names, prefixes=None).name
    'read_file'
    """
    if sent in names:
        return MeantName(sent)
    if len(sent) > LONGEST_NAME:
        return MeantName(None)
    names = {name for name in names if len(name) <= LONGEST_NAME}
    by_plain_name: dict[str, list[str]] = {}
    for name in sorted(names):
        by_plain_name.setdefault(_plain(name), []).append(name)
    # The longest first: `a__b` may be a name of its own, and `b` another tool.
    for prefix, candidate in [("", sent), *_without_prefixes(sent)]:
        if prefix and prefixes is not None:
            if _plain(prefix) not in map(_plain, prefixes):
                continue
        matches = [candidate]
        if candidate not in names:
            matches = by_plain_name.get(_plain(candidate), [])
        if not matches:
            continue
        if len(matches) > 1:
            return MeantName(None, tuple(matches[:3]), is_ambiguous=True)
        name = matches[0]
        if prefix and _has_rival(prefix, name, names, any_prefix=prefixes is None):
            break
        return MeantName(name)
    return MeantName(None, tuple(closest_names(sent, names, 3)))


def to_tool_name(name: str) -> str:
    """Return the tool name for the callable skill *name*; one that does not fit is
    shortened and gets a digest.

    >>> to_tool_name("pdf-processing/extract"), to_tool_name("daily-news-digest")
    ('pdf-processing__extract', 'daily-news-digest')
    >>> to_tool_name("résumé/read")
    'r_sum___read_f0066054'
    """
    plain = name.replace("/", "__")
    # Counting separators keeps "a/b" and "a__b" apart: the second one gets a digest.
    if _FITS.fullmatch(plain) and name.count("/") == plain.count("__"):
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return re.sub(r"[^a-zA-Z0-9_-]", "_", plain)[: _LENGTH - _DIGEST - 1] + "_" + digest


def mcp_names(names: Iterable[str]) -> dict[str, str]:
    """Return *names* by the tool name that MCP clients see, with ``_`` for ``-``, which
    some clients replace.

    If two names would become the same tool name, the one that has a ``-`` keeps it.

    >>> mcp_names(["unit-converter/km", "a-b", "a_b"])
    {'unit_converter__km': 'unit-converter/km', 'a-b': 'a-b', 'a_b': 'a_b'}
    """
    plain = tool_names(names)
    shown = [tool.replace("-", "_") for tool in plain]
    names_by_tool = {}
    for mcp_name, (tool, name) in zip(shown, plain.items(), strict=True):
        names_by_tool[mcp_name if shown.count(mcp_name) == 1 else tool] = name
    return names_by_tool


def tool_names(names: Iterable[str]) -> dict[str, str]:
    """Return *names* by tool name, to resolve what a model called.

    >>> tool_names(["pdf-processing/extract"])
    {'pdf-processing__extract': 'pdf-processing/extract'}

    Raises:
        ValueError: two names would share a tool name.
    """
    names_by_tool: dict[str, str] = {}
    for name in names:
        tool_name = to_tool_name(name)
        if names_by_tool.setdefault(tool_name, name) != name:
            raise ValueError(
                f"{name!r} and {names_by_tool[tool_name]!r} would both be the tool "
                f"{tool_name!r}"
            )
    return names_by_tool


def _without_prefixes(name: str) -> list[tuple[str, str]]:
    """Return each prefix that *name* can have, and what is behind it."""
    return [
        (name[: end.start()], name[end.end() :]) for end in _PREFIX_ENDS.finditer(name)
    ]


def _has_rival(
    prefix: str, found: str, names: Collection[str], *, any_prefix: bool
) -> bool:
    """Return whether *prefix*, which stood before the name of *found*, says that
    another of *names* may be meant.
    """
    parts = {_plain(part) for part in _PREFIX_ENDS.split(prefix)}
    for name in names:
        # `docx/extract` is not the tool `extract` where there is a `docx/merge`.
        known = _PREFIX_ENDS.split(name)[:-1]
        if not _PREFIX_ENDS.search(found) and not parts.isdisjoint(map(_plain, known)):
            return True
        # `docs/extract` is not, where there is a `docx/extract`, unless it is known
        # what `docs` is.
        if any_prefix and any(
            _plain(rest) == _plain(found) for _, rest in _without_prefixes(name)
        ):
            return True
    return False


def _plain(name: str) -> str:
    """Return *name* in lower case without separators, but for those between two
    digits.
    """
    plain = ""
    for part in _SEPARATORS.split(name.translate(_LOWER_CASE)):
        between_digits = plain[-1:].isdecimal() and part[:1].isdecimal()
        if between_digits:
            plain += "_"
        plain += part
    return plain
