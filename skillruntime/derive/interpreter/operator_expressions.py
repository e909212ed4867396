"""Operators on what is known: arithmetic, conditions and comparisons."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.interpreter.known_calls import call_method
from skillruntime.derive.interpreter.operators import ARITHMETIC, COMPARISONS, SETS, is_costly
from skillruntime.derive.interpreter.state import ScriptError, State, decide, doubting, evaluate
from skillruntime.derive.interpreter.values import UNKNOWN, PathText, Scope, is_constant, is_open
from skillruntime.derive.interpreter.word_operations import add, compare
from skillruntime.derive.interpreter.words import Converted, Count, Word, holds_words

__all__ = ["attempt", "binary", "binary_expression", "boolean_expression", "comparison", "unary_expression"]


def binary_expression(state: State, node: ast.BinOp, scope: Scope) -> Any:
    """Return the value of ``left + right`` and its like."""
    left, right = evaluate(state, node.left, scope), evaluate(state, node.right, scope)
    return binary(state, node.op, left, right, node)


def binary(state: State, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    """Return the result of an arithmetic operator."""
    if state.trace is not None and (holds_words(left) or holds_words(right)):
        return add(state.trace, op, left, right, node)
    # ``pathlib``: a path divided by a text is a path.
    if isinstance(left, PathText) and isinstance(op, ast.Div):
        return PathText(f"{left}/{right}") if isinstance(right, str) else UNKNOWN
    if isinstance(left, list) and isinstance(right, list) and type(op) in SETS:
        return call_method(left, SETS[type(op)], [right], {})
    function = ARITHMETIC.get(type(op))
    # Lists and dictionaries may hold records and unknown values; joining them looks at none.
    is_sum = isinstance(op, ast.Add | ast.BitOr) and type(left) is type(right) and isinstance(left, list | dict)
    if function is None or not (is_sum or (is_constant(left) and is_constant(right))):
        return UNKNOWN
    if is_costly(left, op, right):
        return UNKNOWN
    try:
        return function(left, right)
    except (TypeError, ValueError, ArithmeticError, KeyError, IndexError):  # 1 / 0, "%d" % "x", "%(a)s" % {}
        return UNKNOWN


def boolean_expression(state: State, node: ast.BoolOp, scope: Scope) -> Any:
    """Return the value of ``a and b`` or ``a or b``, as far as its operands are known."""
    stops_at = isinstance(node.op, ast.Or)
    first: Any = None
    for index, each in enumerate(node.values):
        if first is None:
            value = evaluate(state, each, scope)
        else:  # whether this operand is reached depends on the unknown ones before it
            with doubting(state, node, index):
                value = attempt(state, each, scope)
        known = decide(state, value)
        if known is stops_at:
            # ``a && undefined`` is false whatever ``a`` is.
            if first is None or isinstance(value, bool) or value is None:
                return value
            break
        if known is UNKNOWN and first is None:
            first = value
    if first is None:
        return value
    # ``name = sys.argv[1] or "x"``: the default is not used for a word that is there.
    return first if stops_at and isinstance(first, Word | Converted) else UNKNOWN


def attempt(state: State, node: ast.expr, scope: Scope) -> Any:
    """Return the value of *node*, which may not be reached: an error in it does not end the script."""
    try:
        return evaluate(state, node, scope)
    except ScriptError:
        return UNKNOWN


def unary_expression(state: State, node: ast.UnaryOp, scope: Scope) -> Any:
    """Return the value of ``not a``, ``-a`` or ``+a``."""
    value = evaluate(state, node.operand, scope)
    if isinstance(node.op, ast.Not):
        known = decide(state, value)
        return UNKNOWN if known is UNKNOWN else not known
    if isinstance(value, int | float):
        if state.trace is not None and isinstance(value, Count):
            state.trace.outcome.takes_all = True
        match node.op:
            case ast.USub():
                return -value
            case ast.UAdd():
                return +value
    return UNKNOWN


def comparison(state: State, node: ast.Compare, scope: Scope) -> Any:
    """Return the value of ``a < b == c``."""
    left = evaluate(state, node.left, scope)
    result: Any = True
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = evaluate(state, right_node, scope)
        # ``"city" in options``: the key is looked up even where no word has been put into the table.
        looked_up = isinstance(left, str) and isinstance(right, dict) and isinstance(op, ast.In | ast.NotIn)
        if state.trace is not None and (looked_up or holds_words(left) or holds_words(right)):
            found = compare(state.trace, op, left, right, node)
        else:
            found = _compared(op, left, right)
        if found is False:
            return False
        if found is UNKNOWN:
            if state.trace is None:
                return UNKNOWN
            result = UNKNOWN
        left = right
    return result


def _compared(op: ast.cmpop, left: Any, right: Any) -> Any:
    # Records are compared by identity with None alone: it is the one value that no record equals.
    if isinstance(op, ast.Is | ast.IsNot) and right is None and left is not UNKNOWN:
        return (left is None) is isinstance(op, ast.Is)
    if isinstance(op, ast.In | ast.NotIn) and isinstance(right, dict) and is_constant(left) and not is_open(right):
        try:
            return (left in right) is isinstance(op, ast.In)
        except TypeError:
            return UNKNOWN
    if type(op) not in COMPARISONS or not is_constant(left) or not is_constant(right):
        return UNKNOWN
    try:
        return bool(COMPARISONS[type(op)](left, right))
    except TypeError:
        return UNKNOWN
