"""Compile regular expressions at their first use.

A command uses only a few of the package's hundreds, and compiling one takes as long as
importing a small module.
"""

from __future__ import annotations

import re
import sys
from typing import Any, AnyStr, cast

__all__ = ["LazyPattern", "lazy_pattern"]

# Earlier releases have faulty possessive quantifiers.
_POSSESSIVE_SINCE = (3, 11, 5)
_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return *pattern* with the methods of `re.Pattern`, compiled at its first use.

    >>> word = lazy_pattern(r"[a-z]+")
    >>> word.findall("one two")
    ['one', 'two']
    """
    return cast("re.Pattern[AnyStr]", LazyPattern(pattern, flags))


class LazyPattern:
    """Has the methods of `re.Pattern`; the first use of one compiles the expression."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for an attribute that the instance lacks, so only the
        # first time.
        compiled = self.compiled()
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)

    def __repr__(self) -> str:
        return f"lazy_pattern({self.pattern!r})"

    def compiled(self) -> re.Pattern[Any]:
        """Return the compiled pattern."""
        if sys.version_info >= _POSSESSIVE_SINCE:
            return re.compile(self.pattern, self._flags)
        from skillruntime.possessive_patterns import compile_possessive

        return compile_possessive(self.pattern, self._flags)
