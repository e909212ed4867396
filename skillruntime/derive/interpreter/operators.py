"""Operators of a script's expressions, on constants only, and only where the result stays small."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from skillruntime.derive.interpreter.known_calls import MAX_TEXT
from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    BoundMethod,
    ClassValue,
    EnumMember,
    FunctionValue,
    Symbol,
    is_open,
)

__all__ = ["ARITHMETIC", "COMPARISONS", "CONVERSIONS", "SETS", "are_hashable", "is_costly", "truth"]

COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}

SETS: dict[type[ast.operator], str] = {ast.BitOr: "union", ast.BitAnd: "intersection", ast.Sub: "difference"}
"""The methods of sets that these operators call: sets are represented by lists, where the operators would fail."""

CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda value: value, 115: str, 114: repr, 97: ascii}
"""What ``!s``, ``!r`` and ``!a`` of an f-string do, by the number that ``ast`` gives them."""


def truth(value: Any) -> Any:
    """Return whether *value* is true, or UNKNOWN."""
    # ``if yaml:`` depends on what is installed.
    if value is UNKNOWN or isinstance(value, Symbol | BoundMethod) or is_open(value):
        return UNKNOWN
    if isinstance(value, str | list | tuple | dict | set | int | float | bytes | range) or value is None:
        return bool(value)
    return True if isinstance(value, FunctionValue | ClassValue | EnumMember) else UNKNOWN


def are_hashable(items: list[Any]) -> bool:
    """Whether all *items* can be keys."""
    try:
        for item in items:
            hash(item)
    except TypeError:
        return False
    return True


def is_costly(left: Any, op: ast.operator, right: Any) -> bool:
    """Whether the result could be huge, though what it is made of is not."""
    sizes = [len(each) for each in (left, right) if isinstance(each, str | list | tuple | bytes | dict)]
    numbers = [abs(each) for each in (left, right) if isinstance(each, int)]
    match op:
        case ast.Mult() if sizes and numbers:
            return sizes[0] * numbers[0] > MAX_TEXT
        case ast.Add() if sizes:
            return sum(sizes) > MAX_TEXT
        # ``1 << 20`` is a size; ``2 ** 10**9`` is an attack.
        case ast.Pow() | ast.LShift():
            return not all(number <= 64 for number in numbers) and not (
                len(numbers) == 2 and numbers[1] <= 16 and numbers[0] < 10_000
            )
        # ``"%99999d" % x``.
        case ast.Mod() if isinstance(left, str):
            return re.search(r"\d{4}|\*", left) is not None
        case _:
            return any(number.bit_length() > 512 for number in numbers)
