"""Read the words of a call in the usage line that a script writes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillruntime.derive.readers.usage import called_with

__all__ = ["usage_words"]

_WORD = re.compile(r"\[[^\[\]]*\](?:\.{3})?|<[^<>]*>(?:\.{3})?|\S+")
_STATED = re.compile(r"\busage\b[ \t]*:[ \t]*", re.IGNORECASE)
_MOST_WORDS = 20


def usage_words(lines: Iterable[str], script: str) -> list[str]:
    """Return the words that a call of *script* needs according to the first of *lines*
    that shows one; empty if none does. A placeholder becomes a text in lower case.

    >>> usage_words(["Usage: x/merge.py add <in dir> TO [--top N]"], "merge.py")
    ['add', 'in_dir', 'to']
    """
    for line in lines:
        behind = called_with(_STATED.sub("", line, count=1).strip(), script)
        if behind is None:
            continue
        words = [_word(each) for each in _WORD.findall(behind)]
        needed = [word for word in words if word]
        if needed:
            return needed[:_MOST_WORDS]
    return []


def _word(shown: str) -> str:
    """Return the word to send for *shown*; empty if it may be left out. Of several
    alternatives, return the first.
    """
    if shown.startswith("["):
        return ""
    plain = shown.removesuffix("...").strip("\"'<>(){}")
    first = re.split(r"[|,]", plain)[0].strip(" .")
    is_placeholder = shown.startswith("<") or first.isupper()
    if first.startswith("/"):
        first = first.rpartition("/")[2]
    if is_placeholder:
        return re.sub(r"\s+", "_", first).lower()
    return first
