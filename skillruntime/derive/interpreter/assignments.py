"""Assignments to names, attributes and items, and what they leave unknown."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.interpreter.known_calls import MAX_TEXT, items_of
from skillruntime.derive.interpreter.operators import are_hashable
from skillruntime.derive.interpreter.state import ScriptError, State, evaluate, kept
from skillruntime.derive.interpreter.trace import Trace
from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    ClassValue,
    ForeignCall,
    InstanceValue,
    Model,
    Scope,
    is_constant,
    is_open,
    make_open,
)
from skillruntime.derive.interpreter.word_operations import BY_HAND
from skillruntime.derive.interpreter.words import Word, Words

__all__ = ["bind", "bind_name", "remove", "unpacked"]


def bind(state: State, target: ast.expr, value: Any, scope: Scope) -> None:
    """Assign *value* to *target*."""
    match target:
        case ast.Name():
            bind_name(state, target.id, value, scope)
        case ast.Tuple() | ast.List():
            for each, item in zip(target.elts, unpacked(state, target.elts, value, target), strict=True):
                bind(state, each, item, scope)
        case ast.Starred():
            bind(state, target.value, value, scope)
        case ast.Attribute():
            if state.trace is not None:
                _trace_attribute(state.trace, target, value)
            _bind_attribute(state, evaluate(state, target.value, scope), target.attr, value)
        case ast.Subscript():
            _bind_item(state, target, value, scope)


def bind_name(state: State, name: str, value: Any, scope: Scope) -> None:
    """Assign *value* to a name of *scope*, or of the module where a ``global`` statement says so."""
    module = scope.module() if name in scope.outside else scope
    if module is not scope:
        before = module.names.get(name, value)
        # A trace takes one path at a time, so what it assigns there holds there.
        is_certain = state.uncertain == 0 or state.trace is not None
        module.names[name] = value if is_certain else kept(value, before)
    else:
        scope.names[name] = value
    if state.trace is not None:
        state.trace.bound(module, name, value)


def _bind_attribute(state: State, owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, InstanceValue | ClassValue):
        before = owner.names.get(name, UNKNOWN)
        owner.names[name] = kept(value, before) if state.is_doubtful(owner) else value
    elif isinstance(owner, dict) and state.trace is not None:
        if state.is_doubtful(owner):
            make_open(owner)
        else:
            owner[name] = value
    # ``action = parser.add_argument("--x"); action.required = True``.
    elif isinstance(owner, ForeignCall):  # an argparse action: its attributes are what it was declared with
        owner.named[name] = UNKNOWN if state.uncertain else value
    elif isinstance(owner, Model):
        owner.bind(name, value)


def _trace_attribute(trace: Trace, target: ast.Attribute, value: Any) -> None:
    if isinstance(value, Words):
        trace.lose("the words are kept where they cannot be followed", target)
    if id(target) in trace.relevance.argv:
        trace.lose("the script changes sys.argv", target)
    role = trace.touch(value, target)
    if role is not None:
        role.names[(".", target.attr)] = None


def _bind_item(state: State, target: ast.Subscript, value: Any, scope: Scope) -> None:
    owner = evaluate(state, target.value, scope)
    if state.trace is not None:
        if isinstance(owner, Words):
            state.trace.lose("the script changes sys.argv", target)
        state.trace.touch(value, target)
    if not isinstance(owner, list | dict):
        return
    key = UNKNOWN if isinstance(target.slice, ast.Slice) else evaluate(state, target.slice, scope)
    if isinstance(key, Word) and key.text is not None:
        key = key.text
    fits = isinstance(owner, dict) and is_constant(key) and are_hashable([key]) and len(owner) < MAX_TEXT
    fits = fits or (isinstance(owner, list) and isinstance(key, int) and -len(owner) <= key < len(owner))
    # A change under a condition leaves the whole container unknown: what it held before may be there or not.
    if fits and not state.is_doubtful(owner) and not is_open(owner):
        owner[key] = value
    elif state.trace is None or isinstance(owner, dict):
        make_open(owner)


def remove(state: State, target: ast.expr, scope: Scope) -> None:
    """Follow ``del target``."""
    if not isinstance(target, ast.Subscript):
        bind(state, target, UNKNOWN, scope)
        return
    owner = evaluate(state, target.value, scope)
    key = UNKNOWN if isinstance(target.slice, ast.Slice) else evaluate(state, target.slice, scope)
    if state.trace is not None and isinstance(owner, Words):
        state.trace.lose(BY_HAND, target)
    if not isinstance(owner, list | dict):
        return
    if not is_constant(key) or state.is_doubtful(owner) or is_open(owner):
        make_open(owner)
        return
    try:
        del owner[key]
    except (KeyError, IndexError, TypeError):
        make_open(owner)


def unpacked(state: State, targets: list[ast.expr], value: Any, node: ast.AST) -> list[Any]:
    """Return one value for each of *targets*; the one with a star gets a list of those that are left."""
    star = next((index for index, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
    items: Any = items_of(value) if isinstance(value, list | tuple | str | InstanceValue) else UNKNOWN
    trace = state.trace
    if trace is not None and isinstance(value, Words):
        trace.expect(len(targets) - (star is not None), len(value))
    if items is UNKNOWN or (len(items) != len(targets) if star is None else len(items) < len(targets) - 1):
        # CPython: "not enough values to unpack".
        if trace is not None and items is not UNKNOWN and not isinstance(value, str):
            raise ScriptError("ValueError")
        if trace is not None:
            trace.touch(value, node)
        return [UNKNOWN] * len(targets)
    if star is not None:
        end = len(items) - (len(targets) - star - 1)
        middle = Words(items[star:end]) if isinstance(value, Words) else list(items[star:end])
        items = [*items[:star], middle, *items[end:]]
    if trace is not None:
        for index, (each, target) in enumerate(zip(items, targets, strict=True)):
            if index != star:
                trace.touch(each, target)
                trace.read(each, target)
    return list(items)
