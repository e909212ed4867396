"""The patterns of a ``match`` statement."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.interpreter.assignments import bind_name
from skillruntime.derive.interpreter.state import State, evaluate, unknown
from skillruntime.derive.interpreter.values import UNKNOWN, Scope, is_constant
from skillruntime.derive.interpreter.word_operations import equal, is_literal
from skillruntime.derive.interpreter.words import Word, Words, holds_words

__all__ = ["fits"]


def fits(state: State, pattern: ast.pattern, value: Any, node: ast.Match, scope: Scope) -> Any:
    """Return whether *value* fits *pattern*, or UNKNOWN; the names in it are bound."""
    trace = state.trace
    match pattern:
        # A capture or ``_`` fits everything (PEP 634, "Capture patterns").
        case ast.MatchAs(pattern=inner, name=name):
            found = True if inner is None else fits(state, inner, value, node, scope)
            if name is not None and found is not False:
                if trace is not None and not isinstance(value, Words):
                    trace.touch(value, pattern)
                bind_name(state, name, value, scope)
            return found
        # Each alternative is tried, so that all literals are recorded.
        case ast.MatchOr(patterns=patterns):
            each_found = [fits(state, each, value, node, scope) for each in patterns]
            return True if True in each_found else UNKNOWN if UNKNOWN in each_found else False
        case ast.MatchValue(value=ast.Constant(value=str(literal))) if isinstance(value, Word) and trace is not None:
            return is_literal(trace, value, literal)
        # ``case Colour.RED`` compares with the value of the name (PEP 634, "Value patterns").
        case ast.MatchValue(value=constant):
            known = evaluate(state, constant, scope)
            if trace is not None and (holds_words(value) or holds_words(known)):
                return equal(trace, value, known, node)
            return bool(value == known) if is_constant(value) and is_constant(known) else UNKNOWN
        case ast.MatchSequence(patterns=patterns) if isinstance(value, list | tuple):
            return _fits_sequence(state, patterns, value, node, scope)
    return unknown(state, node, value)


def _fits_sequence(state: State, patterns: list[ast.pattern], value: Any, node: ast.Match, scope: Scope) -> Any:
    trace = state.trace
    star = next((index for index, each in enumerate(patterns) if isinstance(each, ast.MatchStar)), None)
    if trace is not None and isinstance(value, Words):
        trace.expect(len(patterns) - (star is not None), len(value))
        trace.outcome.takes_all = True
    # A sequence pattern fits by length first (PEP 634, "Sequence patterns").
    if len(value) != len(patterns) if star is None else len(value) < len(patterns) - 1:
        return False
    found: Any = True
    for index, pattern in enumerate(patterns):
        if isinstance(pattern, ast.MatchStar):
            rest = value[index : len(value) - (len(patterns) - 1 - index)]
            # ``*_`` binds nothing.
            if pattern.name is not None:
                bind_name(state, pattern.name, Words(rest) if isinstance(value, Words) else rest, scope)
            continue
        item = value[index if star is None or index < star else len(value) - len(patterns) + index]
        if trace is not None:
            trace.read(item, pattern)
        known = fits(state, pattern, item, node, scope)
        if known is False:
            return False
        found = UNKNOWN if known is UNKNOWN else found
    return found
