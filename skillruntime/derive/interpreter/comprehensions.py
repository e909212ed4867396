"""Comprehensions, round by round; a trace keeps the words that a filter cannot be shown to drop."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.interpreter.assignments import bind
from skillruntime.derive.interpreter.known_calls import MAX_ITEMS, items_of
from skillruntime.derive.interpreter.operators import are_hashable
from skillruntime.derive.interpreter.state import State, decide, evaluate, unknown, use
from skillruntime.derive.interpreter.values import UNKNOWN, Scope, is_constant
from skillruntime.derive.interpreter.words import Words

__all__ = ["comprehension", "dict_comprehension"]


def comprehension(state: State, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope) -> Any:
    """Return the list that a comprehension makes."""
    first = node.generators[0]
    keeps = isinstance(node.elt, ast.Name) and isinstance(first.target, ast.Name) and node.elt.id == first.target.id
    found = _rounds(state, node.generators, scope)
    if found is None:
        return UNKNOWN
    of_words, scopes = found
    items: list[Any] = []
    for inner in scopes:
        value = evaluate(state, node.elt, inner) if keeps else use(state, node.elt, inner)
        if state.trace is not None and not keeps:
            state.trace.read(inner.names.get(getattr(first.target, "id", "")), node)
        items.append(value)
    if keeps and of_words:
        return Words(items)
    if isinstance(node, ast.SetComp) and state.trace is None:
        return list(dict.fromkeys(items)) if is_constant(items) and are_hashable(items) else UNKNOWN
    return items if isinstance(node, ast.GeneratorExp) else state.made_here(items)


def dict_comprehension(state: State, node: ast.DictComp, scope: Scope) -> Any:
    """Return the dictionary that a comprehension makes."""
    found = _rounds(state, node.generators, scope)
    if found is None:
        return UNKNOWN
    pairs = [(evaluate(state, node.key, inner), evaluate(state, node.value, inner)) for inner in found[1]]
    keys = [key for key, _ in pairs]
    if is_constant(keys) and are_hashable(keys):
        return dict(pairs)
    return unknown(state, node, [*keys, *(value for _, value in pairs)])


def _rounds(state: State, generators: list[ast.comprehension], scope: Scope) -> tuple[bool, list[Scope]] | None:
    """Return whether words are gone through, and a scope for each round; None where the rounds are unknown."""
    of_words = False
    rounds = [Scope(parent=scope, label=scope.label)]
    for generator in generators:
        following: list[Scope] = []
        for outer in rounds:
            source = evaluate(state, generator.iter, outer)
            of_words |= isinstance(source, Words)
            items = items_of(source)
            if items is UNKNOWN:
                unknown(state, generator.iter, source)
                return None
            for each in items:
                inner = Scope(parent=outer, label=scope.label)
                bind(state, generator.target, each, inner)
                holds = _all_hold(state, generator.ifs, inner)
                # A list of choices with an undecidable filter is not a list of choices.
                if (holds is UNKNOWN and state.trace is None) or len(following) >= MAX_ITEMS:
                    return None
                if holds is UNKNOWN or holds:  # a trace keeps a word whose test is undecidable
                    following.append(inner)
        rounds = following
    return of_words, rounds


def _all_hold(state: State, tests: list[ast.expr], scope: Scope) -> Any:
    """Return whether all *tests* hold, or UNKNOWN."""
    result: Any = True
    for test in tests:
        known = decide(state, evaluate(state, test, scope))
        if known is UNKNOWN:
            result = UNKNOWN
        elif not known:
            return False
    return result
