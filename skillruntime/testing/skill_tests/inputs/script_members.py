"""Make a JSON document with the members that a Python script reads.

The source is only parsed. One object has all members: those that the script iterates
over are arrays of such objects, and so on, a few levels deep.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["document_with_members", "member_names"]

_DEPTH = 3
_MOST_MEMBERS = 60
_LONGEST = 100_000
_ITERATING = frozenset(
    {"enumerate", "len", "sorted", "list", "set", "sum", "max", "min"}
)
_OF_OBJECTS = frozenset({"get", "items", "keys", "values"})
_OF_TEXTS = frozenset({"lower", "upper", "strip", "split", "startswith", "replace"})


def document_with_members(modules: Iterable[ast.Module]) -> bytes | None:
    """Return a JSON object for the script in *modules*; None if it reads no members.

    >>> tree = ast.parse("print(data['rows']['n'] + 1)")
    >>> document_with_members([tree])
    b'{"n": 2, "rows": {"n": 3, "rows": {"n": 4, "rows": {}}}}'
    """
    kinds = _kinds_of_members(modules)
    if not kinds:
        return None
    members = dict([*kinds.items()][:_MOST_MEMBERS])
    for depth in range(_DEPTH, 0, -1):
        text = json.dumps(_object(members, depth, 2))
        if len(text) < _LONGEST:
            return text.encode()
    return None


def member_names(modules: Iterable[ast.Module]) -> set[str]:
    """Return the names of the members that the script in *modules* reads."""
    return {*_kinds_of_members(modules)}


def _kinds_of_members(modules: Iterable[ast.Module]) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for tree in modules:
        for node in ast.walk(tree):
            for name, kind in _members_in(node):
                if kinds.get(name, "text") == "text":
                    kinds[name] = kind
    return kinds


def _object(kinds: dict[str, str], depth: int, number: int) -> dict[str, Any]:
    """Return an object with a member of each name; *number* makes objects differ."""
    found: dict[str, Any] = {}
    for name, kind in kinds.items():
        match kind:
            case "array" if depth > 1:
                others = range(number + 1, number + 3)
                found[name] = [_object(kinds, depth - 1, other) for other in others]
            case "array":
                found[name] = []
            case "object" if depth > 1:
                found[name] = _object(kinds, depth - 1, number + 1)
            case "object":
                found[name] = {}
            case "number":
                found[name] = number
            case "boolean":
                found[name] = number % 2 == 0
            case _:
                found[name] = f"{name} {number}"
    return found


def _members_in(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names of the members that are read directly in *node*, with the kind of
    value that this use needs.
    """
    match node:
        case ast.For(iter=read) | ast.comprehension(iter=read):
            yield from _with_kind(read, "array")
        case ast.Call(func=ast.Name(id=function), args=[read, *_]):
            if function in _ITERATING:
                yield from _with_kind(read, "array")
        case ast.Call(func=ast.Attribute(value=read, attr=method)):
            if method in _OF_OBJECTS:
                yield from _with_kind(read, "object")
            elif method in _OF_TEXTS:
                yield from _with_kind(read, "text")
        case ast.Subscript(value=read):
            yield from _with_kind(read, "object")
        case ast.BinOp(left=left, right=right):
            if not isinstance(node.op, ast.Mod):
                kind = "text" if _is_text(left) or _is_text(right) else "number"
                for read in (left, right):
                    yield from _with_kind(read, kind)
        case ast.FormattedValue(value=read, format_spec=ast.JoinedStr()):
            yield from _with_kind(read, "number")
    if isinstance(node, ast.expr):
        yield from _with_kind(node, "text")


def _is_text(node: ast.expr) -> bool:
    """Return whether *node* is a text in the source."""
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
    return False


def _with_kind(read: ast.expr, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the name of the member that *read* takes; the default of ``get`` says the
    kind more surely than its use.
    """
    match read:
        case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Load()):
            yield name, kind
        case ast.Call(
            func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *rest]
        ):
            yield name, _kind_of(rest[0], kind) if rest else kind


def _kind_of(default: ast.expr, kind: str) -> str:
    match default:
        case ast.List():
            return "array"
        case ast.Dict():
            return "object"
        case ast.Constant(value=bool()):
            return "boolean"
        case ast.Constant(value=int() | float()):
            return "number"
        case ast.Constant(value=str()):
            return "text"
    return kind
