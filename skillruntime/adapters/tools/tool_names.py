"""Convert names to tool names that every provider accepts:
``^[a-zA-Z0-9_-]{1,64}$``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["mcp_names", "to_tool_name", "tool_names"]

# The strictest rule among OpenAI, Anthropic and Bedrock; Gemini also accepts dots and
# colons.
_FITS = lazy_pattern(r"[a-zA-Z0-9_-]{1,64}")
# `PLACE:skill` names a skill whose plain name another skill has; the catalog ensures
# that two such names stay different here.
_PLACED = lazy_pattern(r"[a-z0-9-]+:[^:/]+(?:/[^:]*)?")
_LENGTH = 64
_DIGEST = 8  # hexadecimal digits that keep two shortened names apart


def to_tool_name(name: str) -> str:
    """Return the tool name for the callable skill *name*; a name that does not fit is
    shortened and gets a digest.

    >>> to_tool_name("pdf-processing/extract"), to_tool_name("daily-news-digest")
    ('pdf-processing__extract', 'daily-news-digest')
    >>> to_tool_name("résumé/read")
    'r_sum___read_f0066054'
    >>> to_tool_name("plugin:tdd/run")  # no skill of that catalog is named plugin_tdd
    'plugin_tdd__run'
    """
    plain = name.replace("/", "__")
    if _PLACED.fullmatch(name):
        plain = plain.replace(":", "_")
    # Counting separators keeps "a/b" and "a__b" apart: the second one gets a digest.
    if _FITS.fullmatch(plain) and name.count("/") == plain.count("__"):
        return plain
    return _with_digest(plain, name)


def mcp_names(names: Iterable[str], functions: Collection[str] = ()) -> dict[str, str]:
    """Return *names* by the tool name that MCP clients see, with ``_`` instead of
    ``-``, which some clients replace. *functions* are the host's own. If several
    callables would have the same tool name, a function gets it, otherwise the skill
    whose name follows the format, which does not allow ``_``. So a skill's tool names
    do not depend on other installed skills. The others get a digest, because ``a-b``
    beside ``a_b`` would be one name to such a client.

    >>> mcp_names(["unit-converter/km", "a-b", "a_b"])
    {'unit_converter__km': 'unit-converter/km', 'a_b': 'a-b', 'a_b_648fa9b3': 'a_b'}
    >>> mcp_names(["a-b", "a_b"], functions=["a_b"])
    {'a_b_d44362d6': 'a-b', 'a_b': 'a_b'}
    """
    plain = tool_names(names)
    by_shown: dict[str, list[str]] = {}
    for tool, name in plain.items():
        by_shown.setdefault(tool.replace("-", "_"), []).append(name)

    def rank(name: str) -> tuple[bool, bool, str]:
        skill, _, tool = name.partition("/")
        is_function = skill in functions
        return (not is_function, "_" in skill and not is_function, tool)

    names_by_tool = {}
    for tool, name in plain.items():
        shown = tool.replace("-", "_")
        if name == min(by_shown[shown], key=rank):
            names_by_tool[shown] = name
        else:
            names_by_tool[_with_digest(shown, name)] = name
    return names_by_tool


def tool_names(names: Iterable[str]) -> dict[str, str]:
    """Return *names* by tool name, to resolve a model's calls.

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


def _with_digest(plain: str, name: str) -> str:
    """Return a tool name that begins with *plain*, and ends with a digest of *name*."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return re.sub(r"[^a-zA-Z0-9_-]", "_", plain)[: _LENGTH - _DIGEST - 1] + "_" + digest
