"""Compile regular expressions for Python 3.11.0 to 3.11.4, such as that of Debian 12.

There, a possessive quantifier matches too little if its group can backtrack
(https://github.com/python/cpython/issues/106052): ``(?:a(?!b))*+``. An atomic group
around the greedy quantifier means the same and matches correctly. These releases no
longer change, so their private modules can be used.
"""

from __future__ import annotations

import _sre  # type: ignore[import-not-found]
import re
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

__all__ = ["compile_possessive"]


def compile_possessive(pattern: str | bytes, flags: int) -> re.Pattern[Any]:
    """Return the compiled *pattern*, its possessive quantifiers as atomic groups.

    >>> compile_possessive(r"/[*](?:[^*]|[*](?!/))*+[*]/", 0).findall("a /* b * c */")
    ['/* b * c */']
    """
    parsed = _parser.parse(pattern, flags)
    _replace_possessive(parsed)
    # As `_compiler.compile` does for a text; for a parsed pattern it leaves out the
    # text, which `Pattern.pattern` returns.
    state = parsed.state
    names: list[str | None] = [None] * state.groups
    for name, group in state.groupdict.items():
        names[group] = name
    compiled: re.Pattern[Any] = _sre.compile(
        pattern,
        flags | state.flags,
        _compiler._code(parsed, flags),
        state.groups - 1,
        state.groupdict,
        tuple(names),
    )
    return compiled


def _replace_possessive(parsed: Any) -> None:
    """Replace the possessive quantifiers of *parsed* and of its groups, in place."""
    for position, (operator, argument) in enumerate(parsed):
        _replace_inside(argument)
        if operator is _constants.POSSESSIVE_REPEAT:
            greedy = [(_constants.MAX_REPEAT, argument)]
            inside = _parser.SubPattern(parsed.state, greedy)
            parsed[position] = (_constants.ATOMIC_GROUP, inside)


def _replace_inside(argument: Any) -> None:
    """Replace the quantifiers of every group in the *argument* of an operator."""
    if isinstance(argument, _parser.SubPattern):
        _replace_possessive(argument)
    elif isinstance(argument, tuple | list):
        for part in argument:
            _replace_inside(part)
