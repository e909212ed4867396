"""The constants of a Python script: literals, names that are assigned once, enumerations. No call is followed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "UNKNOWN",
    "Called",
    "Enumeration",
    "Function",
    "Member",
    "Scope",
    "Symbol",
    "dotted",
    "evaluate",
    "is_constant",
    "own_nodes",
]

Function = ast.FunctionDef | ast.AsyncFunctionDef

UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda self: "UNKNOWN"})()
"""What cannot be read."""

DEPTH_LIMIT = 40
"""How deep expressions and names that refer to names are read."""

SIZE_LIMIT = 2_000
"""Items of a list, or characters of a text times twenty, that are computed."""

_BUILTINS = frozenset({"int", "float", "str", "bool", "list", "tuple", "set", "dict", "frozenset", "open"})
_COPIES: dict[str, Callable[[Any], Any]] = {
    "list": list, "tuple": list, "sorted": sorted, "set": list, "frozenset": list, "str": str, "int": int, "float": float
}  # fmt: skip
_READING = frozenset({"keys", "values", "items", "get", "index", "count", "copy", "split", "join", "strip", "lower", "upper",
                      "format", "replace", "title", "rstrip", "lstrip", "exists", "is_file", "startswith", "endswith"})  # fmt: skip
"""Methods that change nothing."""

_TEXT_METHODS = frozenset(
    {"split", "join", "strip", "lower", "upper", "format", "replace", "title", "rstrip", "lstrip"}
)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name of another module, in full: ``argparse.ArgumentParser``, ``builtins.int``."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """A call of a symbol that is not followed: ``click.Choice(["a", "b"])``."""

    name: str
    arguments: list[Any]
    named: dict[str, Any]
    node: ast.Call


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an enumeration of the script."""

    name: str
    value: Any
    is_text: bool


@dataclass(frozen=True, slots=True, eq=False)
class Enumeration:
    """An enumeration of the script, with the members whose values are constants."""

    name: str
    members: tuple[Member, ...]


@dataclass(slots=True)
class Scope:
    """The names of a module, a function or a class: what is assigned to each, or a value that is known."""

    parent: Scope | None = None
    written: dict[str, list[ast.AST | None]] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    """Names of what may have been changed where it is: a list that grows is not the list that was written down."""

    @classmethod
    def of(cls, node: ast.Module | Function | ast.ClassDef, parent: Scope | None) -> Scope:
        """Return the scope of *node*."""
        scope = cls(parent)
        if isinstance(node, ast.Module):
            scope.known["__doc__"] = ast.get_docstring(node, clean=False)
        if isinstance(node, Function):
            for each in [
                *node.args.posonlyargs,
                *node.args.args,
                *node.args.kwonlyargs,
                node.args.vararg,
                node.args.kwarg,
            ]:
                if each is not None:
                    scope.written[each.arg] = [None]
        for each in own_nodes(node):
            scope._note(each)
        scope.changed = {name for each in ast.walk(node) for name in _changed(each)}
        return scope

    def _note(self, node: ast.AST) -> None:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self.written.setdefault(name, []).append(value)
            # Also the targets of the assignments above: only a name that is stored once is a constant.
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                self.written.setdefault(name, []).append(None)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.written.setdefault(name, []).append(node)
            case ast.Import(names=names):
                for alias in names:
                    top = alias.name.partition(".")[0]
                    self.imported[alias.asname or top] = alias.name if alias.asname else top
            case ast.ImportFrom(module=module, names=names):
                for alias in names:
                    self.imported[alias.asname or alias.name] = f"{module or ''}.{alias.name}"

    def find(self, name: str, depth: int = 0) -> Any:
        """Return the value of *name*."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.known:
                return scope.known[name]
            if name in scope.written:
                return UNKNOWN if name in scope.changed else scope._written(name, depth)
            if name in scope.imported:
                return Symbol(scope.imported[name])
            scope = scope.parent
        return Symbol(f"builtins.{name}") if name in _BUILTINS else UNKNOWN

    def _written(self, name: str, depth: int) -> Any:
        values = [each for each in self.written[name] if each is not None]
        # An assignment is noted with its value and, for its target, without.
        stores = len(self.written[name]) - len(values)
        # Each name is read once, and one that refers to itself is unknown.
        self.known[name] = UNKNOWN
        if len(values) == 1 and stores <= 1:
            value = values[0]
            if isinstance(value, ast.ClassDef):
                self.known[name] = _read_class(value, self, depth + 1)
            elif isinstance(value, Function):
                self.known[name] = value
            else:
                self.known[name] = evaluate(value, self, depth + 1)
        return self.known[name]


def _changed(node: ast.AST) -> list[str]:
    """Return the names whose values *node* may change."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method not in _READING:
            return [_root(value)]
        case (
            ast.Subscript(value=value, ctx=ast.Store() | ast.Del())
            | ast.Attribute(value=value, ctx=ast.Store() | ast.Del())
        ):
            return [_root(value)]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
    return []


def _root(node: ast.expr) -> str:
    """Return the name that *node* is a part of: ``m`` of ``m["a"].get("b")``."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def own_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below *root*, functions and classes in it without what is inside them, in the source's order."""
    pending = list(ast.iter_child_nodes(root))[::-1]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            pending += list(ast.iter_child_nodes(node))[::-1]


def dotted(node: ast.AST | None) -> str:
    """Return the name that *node* is, with its dots; nothing where it is something else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def is_constant(value: Any) -> bool:
    """Whether *value* has no part that is unknown."""
    if isinstance(value, list | tuple):
        return all(map(is_constant, value))
    if isinstance(value, dict):
        return all(map(is_constant, value)) and all(map(is_constant, value.values()))
    return isinstance(value, str | int | float | bool | Member | range) or value is None


def evaluate(node: ast.AST | None, scope: Scope, depth: int = 0) -> Any:
    """Return the value of the expression *node*: a constant, a `Symbol`, a `Called`, an enumeration, or UNKNOWN."""
    if node is None or depth > DEPTH_LIMIT:
        return UNKNOWN
    reader = _READERS.get(type(node))
    value = UNKNOWN if reader is None else reader(node, scope, depth + 1)
    # ``a = [b, b]``, ``b = [c, c]``: each line doubles what must be looked at.
    if isinstance(value, list | tuple | dict) and _weight(value, SIZE_LIMIT) > SIZE_LIMIT:
        return UNKNOWN
    return value


def _weight(value: Any, most: int) -> int:
    """Return how many values are in *value*, or any number above *most*."""
    if not isinstance(value, list | tuple | dict):
        return 1
    total = 1
    for each in value.values() if isinstance(value, dict) else value:
        total += _weight(each, most - total)
        if total > most:
            break
    return total


def _read_class(node: ast.ClassDef, scope: Scope, depth: int) -> Any:
    bases = [evaluate(base, scope, depth) for base in node.bases]
    names = [base.name for base in bases if isinstance(base, Symbol)]
    if not any(name.rpartition(".")[2] in ("Enum", "StrEnum", "IntEnum", "Flag") for name in names):
        # ``class Parser(argparse.ArgumentParser)``.
        return Symbol(names[0]) if len(names) == 1 and names[0].startswith("argparse.") else UNKNOWN
    is_text = "enum.StrEnum" in names or "builtins.str" in names
    members: list[Member] = []
    for each in node.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known = evaluate(value, scope, depth)
                # ``auto()`` of a `StrEnum` is the name in small letters.
                if isinstance(known, Called) and known.name == "enum.auto" and "enum.StrEnum" in names:
                    known = name.lower()
                members.append(Member(name, known, is_text))
    return Enumeration(node.name, tuple(members))


def _name(node: ast.Name, scope: Scope, depth: int) -> Any:
    return scope.find(node.id, depth)


def _attribute(node: ast.Attribute, scope: Scope, depth: int) -> Any:
    value = evaluate(node.value, scope, depth)
    if isinstance(value, Symbol):
        return Symbol(f"{value.name}.{node.attr}")
    if isinstance(value, Enumeration):
        return next((each for each in value.members if each.name == node.attr), UNKNOWN)
    if isinstance(value, Member) and node.attr in ("value", "name"):
        return value.value if node.attr == "value" else value.name
    return UNKNOWN


def _list(node: ast.List | ast.Tuple | ast.Set, scope: Scope, depth: int) -> Any:
    items: list[Any] = []
    for each in node.elts:
        if isinstance(each, ast.Starred):
            inner = evaluate(each.value, scope, depth)
            items += items_of(inner) if items_of(inner) is not UNKNOWN else [UNKNOWN]
        else:
            items.append(evaluate(each, scope, depth))
    return tuple(items) if isinstance(node, ast.Tuple) else items


def _dict(node: ast.Dict, scope: Scope, depth: int) -> Any:
    made: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        known = evaluate(key if key is not None else value, scope, depth)
        if key is None:
            if not isinstance(known, dict):
                return UNKNOWN
            made |= known
        elif isinstance(known, str | int | float | Member):
            made[known] = evaluate(value, scope, depth)
        else:
            return UNKNOWN
    return made


def _joined(node: ast.JoinedStr, scope: Scope, depth: int) -> Any:
    parts: list[str] = []
    for each in node.values:
        is_plain = isinstance(each, ast.FormattedValue) and each.format_spec is None
        known = evaluate(each.value if is_plain else each, scope, depth)  # type: ignore[attr-defined]  # is_plain says so
        if not isinstance(known, str | int | float):
            return UNKNOWN
        parts.append(str(known))
    return "".join(parts)


def _binary(node: ast.BinOp, scope: Scope, depth: int) -> Any:
    left, right = evaluate(node.left, scope, depth), evaluate(node.right, scope, depth)
    if not is_constant(left) or not is_constant(right) or isinstance(left, dict):
        return UNKNOWN
    if isinstance(left, tuple | list) != isinstance(right, tuple | list):
        return UNKNOWN
    try:
        match node.op:
            case ast.Add():
                return left + right if _size(left) + _size(right) <= SIZE_LIMIT else UNKNOWN
            case ast.Sub() if isinstance(left, int | float):
                return left - right
            case ast.Mult() if isinstance(left, int | float) and isinstance(right, int | float):
                return left * right if abs(left) < 1e15 and abs(right) < 1e15 else UNKNOWN
            case ast.Div() if isinstance(left, int | float):
                return left / right
    except (TypeError, ZeroDivisionError, OverflowError):
        pass
    return UNKNOWN


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) // 20
    return len(value) if isinstance(value, list | tuple) else 1


def _unary(node: ast.UnaryOp, scope: Scope, depth: int) -> Any:
    value = evaluate(node.operand, scope, depth)
    if isinstance(node.op, ast.USub) and isinstance(value, int | float):
        return -value
    return (not value) if isinstance(node.op, ast.Not) and is_constant(value) else UNKNOWN


def _subscript(node: ast.Subscript, scope: Scope, depth: int) -> Any:
    value, key = evaluate(node.value, scope, depth), evaluate(node.slice, scope, depth)
    try:
        return value[key] if isinstance(value, list | tuple | dict) and isinstance(key, str | int) else UNKNOWN
    except (KeyError, IndexError, TypeError):
        return UNKNOWN


def _comprehension(node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope, depth: int) -> Any:
    """``[each.value for each in Colour]``."""
    loop = node.generators[0]
    items = items_of(evaluate(loop.iter, scope, depth))
    if len(node.generators) > 1 or loop.ifs or items is UNKNOWN or not isinstance(loop.target, ast.Name):
        return UNKNOWN
    return [evaluate(node.elt, Scope(scope, known={loop.target.id: item}), depth) for item in items]


def _call(node: ast.Call, scope: Scope, depth: int) -> Any:
    arguments = [evaluate(each, scope, depth) for each in node.args]
    match node.func:
        case ast.Name(id=name) if name in _COPIES and len(arguments) == 1 and scope.find(name) in _FREE[name]:
            return _copied(name, arguments[0])
        case ast.Name(id="range") if 0 < len(arguments) < 4 and all(type(each) is int for each in arguments):
            return range(*arguments)
        case ast.Name(id="dict") if not arguments and all(each.arg for each in node.keywords):
            return {str(each.arg): evaluate(each.value, scope, depth) for each in node.keywords}
        case ast.Attribute(value=inner, attr="keys" | "values" | "items" as method) if not arguments:
            known = evaluate(inner, scope, depth)
            if isinstance(known, dict):
                return {"keys": list(known), "values": list(known.values()), "items": list(known.items())}[method]
        case ast.Attribute(value=inner, attr=method) if method in _TEXT_METHODS and is_constant(arguments):
            known = evaluate(inner, scope, depth)
            if isinstance(known, str) and _size(known) < SIZE_LIMIT:
                return _of_text(known, method, arguments)
    function = evaluate(node.func, scope, depth)
    if not isinstance(function, Symbol):
        return UNKNOWN
    named = {each.arg or "**": evaluate(each.value, scope, depth) for each in node.keywords}
    return Called(function.name, arguments, named, node)


_FREE = {name: (UNKNOWN, Symbol(f"builtins.{name}")) for name in _COPIES}
"""What the name of a builtin function means where the script does not use it for something else."""


def _copied(name: str, value: Any) -> Any:
    listed = items_of(value)
    given = listed if name in ("list", "tuple", "sorted", "set", "frozenset") else value
    # The text of an enumeration's member depends on the kind of enumeration.
    if given is UNKNOWN or not is_constant(given) or isinstance(given, Member):
        return UNKNOWN
    try:
        return _COPIES[name](given)
    except (TypeError, ValueError):
        return UNKNOWN


def _of_text(text: str, method: str, arguments: list[Any]) -> Any:
    if method == "format" or (method == "replace" and len(text) > 1_000):
        return UNKNOWN
    try:
        return getattr(text, method)(*arguments)
    except (TypeError, ValueError):
        return UNKNOWN


def items_of(value: Any) -> Any:
    """Return the items that a loop over *value* gives; UNKNOWN where they are too many or cannot be read."""
    if isinstance(value, Enumeration):
        return list(value.members)
    if isinstance(value, list | tuple | dict | range) and len(value) <= SIZE_LIMIT:
        return list(value)
    return UNKNOWN


_READERS: dict[type[ast.AST], Callable[[Any, Scope, int], Any]] = {
    ast.Constant: lambda node, scope, depth: node.value,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.List: _list,
    ast.Tuple: _list,
    ast.Set: _list,
    ast.Dict: _dict,
    ast.JoinedStr: _joined,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Subscript: _subscript,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.SetComp: _comprehension,
    ast.Call: _call,
}
