"""Read the words of a call in the usage line that a script writes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillruntime.derive.readers.usage import called_with

__all__ = ["usage_words"]

_STATED = re.compile(r"\busage\b[ \t]*:[ \t]*", re.IGNORECASE)
_OPTIONAL = re.compile(r"\[[^\[\]]*\](?:\.{3})?")
_WORD = re.compile(r"<[^<>]*>(?:\.{3})?|\([^()]*\)|\S+")
_ENDS = frozenset({"|", ";", ">", ">>", "<", "&&", "#"})
"""Words behind which another command or a file follows."""

_MOST_NESTED = 5
_MOST_WORDS = 20


def usage_words(lines: Iterable[str], script: str) -> list[str]:
    """Return the words that a call of *script* needs according to the first usage line
    among *lines*, or the line under its heading; empty if there is none. A placeholder
    becomes a text in lower case.

    >>> usage_words(["Usage: x/merge.py add <in dir> TO [--top N]"], "merge.py")
    ['add', 'in_dir', 'to']
    """
    is_heading = False
    for line in lines:
        stated = _STATED.search(line)
        if stated is None and not is_heading:
            continue
        is_heading = stated is not None and stated.end() == len(line.rstrip())
        shown = line[stated.end() :] if stated else line
        behind = called_with(shown.strip(), script)
        if behind:
            return _needed_words(behind)
    return []


def _needed_words(shown: str) -> list[str]:
    """Return the words of *shown* that cannot be left out."""
    for _ in range(_MOST_NESTED):
        shown = _OPTIONAL.sub(" ", shown)
    words = []
    for word in _WORD.findall(shown)[:_MOST_WORDS]:
        if word in _ENDS:
            break
        words.append(_word(word))
    return [word for word in words if word and word not in ("-h", "--help")]


def _word(shown: str) -> str:
    """Return the word to send for *shown*: of several alternatives the first."""
    plain = shown.removesuffix("...").strip("\"'<>(){}[]$`")
    first = re.split(r"[|,]", plain)[0].strip(" .")
    is_placeholder = shown.startswith("<") or first.isupper()
    if first.startswith("/"):
        first = first.rpartition("/")[2]
    if is_placeholder:
        return re.sub(r"\s+", "_", first).lower()
    return first.partition(" ")[0]
