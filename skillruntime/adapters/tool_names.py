"""Names of callable skills as every provider takes them for a tool: ``^[a-zA-Z0-9_-]{1,64}$``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

__all__ = ["to_tool_name", "tool_names"]

# The strictest rule among OpenAI, Anthropic and Bedrock; Gemini also takes dots and colons.
_FITS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LENGTH = 64
_DIGEST = 8  # hexadecimal digits that keep two shortened names apart


def to_tool_name(name: str) -> str:
    """Return the tool name for the callable skill *name*; one that does not fit is shortened and gets a digest.

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


def tool_names(names: Iterable[str]) -> dict[str, str]:
    """Return *names* by tool name, to resolve what a model called.

    >>> tool_names(["pdf-processing/extract"])
    {'pdf-processing__extract': 'pdf-processing/extract'}

    Raises:
        ValueError: two names would share a tool name.
    """
    found: dict[str, str] = {}
    for name in names:
        tool_name = to_tool_name(name)
        if found.setdefault(tool_name, name) != name:
            raise ValueError(f"{name!r} and {found[tool_name]!r} would both be the tool {tool_name!r}")
    return found
