"""Find the tool that a model means by the name it writes, and list the keys under which
models write a tool's name and arguments.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from skillruntime.contract.closest_names import closest_names
from skillruntime.errors import SkillNotFoundError
from skillruntime.lazy_patterns import lazy_pattern

# The key of the tool's name: OpenAI, Anthropic and Gemini write `name`, ReAct `action`,
# parallel calls `recipient_name`.
NAME_KEYS = frozenset(
    {
        "name",
        "tool",
        "tool_name",
        "toolName",
        "function",
        "function_name",
        "action",
        "recipient_name",
    }
)
# The key of the arguments: `arguments` (OpenAI), `input` (Anthropic), `args` (Gemini,
# LangChain), `action_input` (ReAct).
ARGUMENT_KEYS = frozenset(
    {
        "arguments",
        "parameters",
        "args",
        "input",
        "params",
        "kwargs",
        "tool_input",
        "toolInput",
        "action_input",
        "tool_args",
        "tool_arguments",
    }
)

CALL_PREFIXES = frozenset({"functions", "function", "tools", "tool", "default_api"})
"""The prefixes that models put before a tool's name: the namespaces of OpenAI's and
Google's chat templates, and their variants.
"""

LONGEST_NAME = 256
"""Longer names are only matched exactly; MCP, "Tool Names", allows 128 characters.
"""

# Separators of words, which models interchange. Between two digits a separator is kept:
# `v1_1` is not `v11`.
_SEPARATORS = lazy_pattern(r"[-_./:\s]++", re.ASCII)
# `mcp__files__read`, `files.read`, `files/read`, `functions:read`: how clients and
# models qualify a name.
_PREFIX_ENDS = lazy_pattern(r"__|[./:]")
_LOWER_CASE = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class MeantName:
    """The *name* that was meant, or, if none is certain, None and the *nearest* names
    for a suggestion.

    *is_ambiguous* says that all *nearest* names fit equally well.
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
    """Return which of *names*, all names that the host knows, a model meant by *sent*.

    An exact name wins. Otherwise ASCII case and separators may differ, and one of
    *prefixes* may precede the name. With None, for an MCP server that its client has
    chosen, any prefix is accepted except the prefix of another name. A name that
    differs by a letter, lacks a prefix, or could be two names is not corrected.

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
    # The longest name first: `a__b` may be a name itself, and `b` another tool.
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


def named_tool(
    sent: str,
    names: Collection[str],
    *,
    prefixes: Collection[str] | None = CALL_PREFIXES,
) -> str:
    """Return which of *names* a model meant by *sent*, as `meant_name` decides.

    Raises:
        SkillNotFoundError: *sent* matches none of *names*, or several.
    """
    # A hand-written agent loop passes the model's name unchecked; it may be null.
    if not isinstance(sent, str):
        raise SkillNotFoundError(f"A tool's name is a string; got {sent!r:.80}")
    meant = meant_name(sent, names, prefixes=prefixes).name
    if meant is None:
        raise unknown_tool(sent, names)
    return meant


def unknown_tool(sent: str, names: Collection[str]) -> SkillNotFoundError:
    """Return the error for the name *sent*, which does not certainly mean one of
    *names*; its suggested action is to call one of the closest names.
    """
    close = closest_names(sent, names, 3)
    if close:
        action = f"Did you mean {' or '.join(map(repr, close))}?"
    elif names:
        action = f"Call one of: {', '.join([*names][:10])}"
    else:
        action = "Answer without a tool; there is none"
    return SkillNotFoundError(
        f"There is no tool {sent[:80]!r}", suggested_action=action
    )


def is_name_of(name: str, tool: str) -> bool:
    """Return whether a model means *tool* by *name*; case, separators and a missing
    prefix do not matter.

    If both have a prefix, the prefixes must be the same.

    >>> is_name_of("functions.get_weather:0", "get-weather")
    True
    >>> is_name_of("get_news", "get_weather")
    False
    >>> is_name_of("extract", "pdf-processing/extract")
    True
    >>> is_name_of("docx/extract", "pdf/extract")
    False
    """
    # Kimi numbers its calls: `functions.get_weather:0`.
    name = re.sub(r":\d+$", "", name)
    name = _NAMESPACE.sub("", name)
    if folded(name) == folded(tool):
        return True
    parts_of_name = _PREFIX.split(name)
    parts_of_tool = _PREFIX.split(tool)
    if len(parts_of_name) > 1 and len(parts_of_tool) > 1:
        return False
    return folded(parts_of_name[-1]) == folded(parts_of_tool[-1])


# OpenAI's harmony and Gemini's Python put all tools into one namespace.
_NAMESPACE = lazy_pattern(r"^(?:functions|default_api)\.")
_PREFIX = lazy_pattern(r"[./:]|__")


def folded(text: str) -> str:
    """Return *text* without case and separators."""
    return re.sub(r"[\W_]", "", text).casefold()


def _without_prefixes(name: str) -> list[tuple[str, str]]:
    """Return each possible prefix of *name*, with the rest of the name."""
    return [
        (name[: end.start()], name[end.end() :]) for end in _PREFIX_ENDS.finditer(name)
    ]


def _has_rival(
    prefix: str, found: str, names: Collection[str], *, any_prefix: bool
) -> bool:
    """Return whether *prefix*, sent before the name *found*, shows that another of
    *names* may be meant.
    """
    parts = {_plain(part) for part in _PREFIX_ENDS.split(prefix)}
    for name in names:
        # `docx/extract` is not the tool `extract` if there is a `docx/merge`.
        known = _PREFIX_ENDS.split(name)[:-1]
        if not _PREFIX_ENDS.search(found) and not parts.isdisjoint(map(_plain, known)):
            return True
        # With any prefix, `docs/extract` is not `extract` if there is a `docx/extract`,
        # because `docs` is unknown.
        if any_prefix and any(
            _plain(rest) == _plain(found) for _, rest in _without_prefixes(name)
        ):
            return True
    return False


def _plain(name: str) -> str:
    """Return *name* in lower case without separators, except between two digits."""
    plain = ""
    for part in _SEPARATORS.split(name.translate(_LOWER_CASE)):
        between_digits = plain[-1:].isdecimal() and part[:1].isdecimal()
        if between_digits:
            plain += "_"
        plain += part
    return plain
