"""Evaluate the constants of a Python script: literals, names that are assigned once,
enumerations. Calls are not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from skillruntime.derive.readers.python_nodes import Function, Nodes

__all__ = [
    "UNKNOWN",
    "Called",
    "Enumeration",
    "Member",
    "Scope",
    "Source",
    "Symbol",
    "dotted",
    "evaluate",
    "is_constant",
    "items_of",
    "once_for_each",
]

_Read = TypeVar("_Read")

UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda self: "UNKNOWN"})()
"""A value that cannot be read."""

DEPTH_LIMIT = 40
"""The deepest nesting of expressions, and of names that refer to names, that is
read.
"""

SIZE_LIMIT = 2_000
"""The most values in a list, including nested lists, and lines of a text, that are
computed.
"""

_BUILTINS = frozenset(
    {"int", "float", "str", "bool", "list", "tuple", "set", "dict", "frozenset", "open"}
)
_LISTING = ("list", "tuple", "sorted", "set", "frozenset")
_READING = frozenset(
    [
        "keys",
        "values",
        "items",
        "get",
        "index",
        "count",
        "copy",
        "exists",
        "startswith",
        "endswith",
        "split",
        "join",
        "strip",
        "lower",
        "upper",
        "format",
        "replace",
        "title",
        "rstrip",
        "lstrip",
    ]
)
"""Methods that change nothing."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name of another module, in full: ``argparse.ArgumentParser``,
    ``builtins.int``.
    """

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
    """An enumeration of the script."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed script, with the facts that its readers need, which are collected
    once.
    """

    tree: ast.Module
    nodes: Nodes
    scope: Scope
    functions: list[Function]
    mentioning: Mapping[str, list[Function]]
    """The functions that mention each name or attribute, other than in a function
    below.
    """

    @classmethod
    def of(cls, tree: ast.Module) -> Source:
        """Return *tree* with its nodes."""
        nodes = Nodes(tree)
        functions: list[Function] = nodes.of(ast.FunctionDef, ast.AsyncFunctionDef)
        mentioning: dict[str, list[Function]] = {}
        for function in functions:
            for name in _mentioned(function, nodes):
                mentioning.setdefault(name, []).append(function)
        return cls(tree, nodes, Scope.of_module(tree, nodes), functions, mentioning)

    def functions_about(self, words: frozenset[str]) -> set[Function]:
        """Return the functions that mention one of *words*, directly or through another
        function.
        """
        found: set[Function] = set()
        pending = [*words]
        known = set(words)
        while pending:
            for function in self.mentioning.get(pending.pop(), ()):
                found.add(function)
                if function.name not in known:
                    known.add(function.name)
                    pending.append(function.name)
        return found


def _mentioned(function: Function, nodes: Nodes) -> set[str]:
    """Return the names and attributes in *function*, without those in functions below
    it.
    """
    found = {name.id for name in nodes.own_of(function, ast.Name)}
    found.update(each.attr for each in nodes.own_of(function, ast.Attribute))
    inner: list[Function] = nodes.own_of(
        function, ast.FunctionDef, ast.AsyncFunctionDef
    )
    found.update(each.name for each in inner)
    return found


@dataclass(slots=True)
class Scope:
    """The names of a module, a function, a class or a loop, each with its assignment or
    its known value.
    """

    nodes: Nodes
    parent: Scope | None = None
    known: dict[str, Any] = field(default_factory=dict)
    node: ast.AST | None = None
    """The node that contains the names; it is searched when the first name is
    requested.
    """
    written: dict[str, list[ast.AST]] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    """How often each name is assigned, in any way."""
    imported: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    """Names of values that the module may change in place: a list that grows differs
    from the list in the source.
    """

    @classmethod
    def of_module(cls, tree: ast.Module, nodes: Nodes) -> Scope:
        """Return the scope of *tree*, which has these *nodes*."""
        changed = _changed_names(nodes)
        known = {"__doc__": ast.get_docstring(tree, clean=False)}
        return cls(nodes, None, known, tree, changed=changed)

    @classmethod
    def of(cls, node: ast.AST, parent: Scope) -> Scope:
        """Return the scope of *node*, a function or class."""
        return cls(parent.nodes, parent, node=node, changed=parent.changed)

    def again(self, known: dict[str, Any]) -> Scope:
        """Return the same scope with other values: values known for one call may not
        hold for another.
        """
        self._look()
        return replace(self, known=known)

    def _look(self) -> None:
        if self.node is not None:
            for each in self.nodes.own_of(self.node, *_BINDING):
                self._note(each)
            self.node = None

    def _note(self, node: ast.AST) -> None:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self.written.setdefault(name, []).append(value)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                self.stored[name] = self.stored.get(name, 0) + 1
            case (
                ast.ClassDef(name=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                self.written.setdefault(name, []).append(node)
            case ast.Import(names=names):
                for alias in names:
                    if alias.asname:
                        self.imported[alias.asname] = alias.name
                    else:
                        top = alias.name.partition(".")[0]
                        self.imported[top] = top
            case ast.ImportFrom(module=module, names=names):
                for alias in names:
                    full = f"{module or ''}.{alias.name}"
                    self.imported[alias.asname or alias.name] = full

    def find(self, name: str, depth: int = 0) -> Any:
        """Return the value of *name*."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.known:
                return scope.known[name]
            scope._look()
            if name in scope.written or name in scope.stored:
                return scope._read(name, depth + 1)
            if name in scope.imported:
                return Symbol(scope.imported[name])
            scope = scope.parent
        return Symbol(f"builtins.{name}") if name in _BUILTINS else UNKNOWN

    def _read(self, name: str, depth: int) -> Any:
        # Each name is read once, and a name that refers to itself is unknown.
        self.known[name] = UNKNOWN
        values = self.written.get(name, [])
        is_stored_again = self.stored.get(name, 0) > 1
        if len(values) != 1 or is_stored_again or name in self.changed:
            return UNKNOWN
        self.known[name] = evaluate(values[0], self, depth)
        return self.known[name]


# The only kinds of nodes that bind names: most nodes are of others.
_BINDING = (
    ast.Assign,
    ast.AnnAssign,
    ast.Name,
    ast.arg,
    ast.ClassDef,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Import,
    ast.ImportFrom,
)


def _changed_names(nodes: Nodes) -> set[str]:
    """Return the names whose values one of *nodes* may change."""
    changed: set[str] = set()
    for call in nodes.of(ast.Call):
        method = call.func
        if isinstance(method, ast.Attribute) and method.attr not in _READING:
            changed.add(_root(method.value))
    parts: list[ast.Subscript | ast.Attribute] = nodes.of(ast.Subscript, ast.Attribute)
    for part in parts:
        if not isinstance(part.ctx, ast.Load):
            changed.add(_root(part.value))
    statements: list[ast.Global | ast.Nonlocal] = nodes.of(ast.Global, ast.Nonlocal)
    for statement in statements:
        changed.update(statement.names)
    return changed


def _root(node: ast.expr) -> str:
    """Return the name at the root of *node*: ``m`` in ``m["a"].get("b")``."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def once_for_each(read: Callable[[Function], _Read]) -> Callable[[Function], _Read]:
    """Return *read*, which searches a complete function, with cached answers: many
    arguments may name the same function.
    """
    known: WeakKeyDictionary[Function, _Read] = WeakKeyDictionary()

    @wraps(read)
    def once(function: Function) -> _Read:
        if function not in known:
            known[function] = read(function)
        return known[function]

    return once


def dotted(node: ast.AST | None) -> str:
    """Return the dotted name that *node* denotes; empty if it is something else."""
    if isinstance(node, ast.Name):
        return node.id
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def is_constant(value: Any) -> bool:
    """Return whether *value* has no unknown part."""
    if isinstance(value, list | tuple):
        return all(map(is_constant, value))
    return isinstance(value, str | int | float | Member | range | None)


def items_of(value: Any) -> Any:
    """Return the items of a loop over *value*; UNKNOWN if there are too many or they
    cannot be read.
    """
    if isinstance(value, Enumeration):
        return list(value.members)
    if isinstance(value, list | tuple | dict | range) and len(value) <= SIZE_LIMIT:
        return list(value)
    return UNKNOWN


def evaluate(node: ast.AST | None, scope: Scope, depth: int = 0) -> Any:
    """Return the value of *node*: a constant, a `Symbol`, a `Called`, an enumeration, a
    function, or UNKNOWN.
    """
    reader = _READERS.get(type(node))
    if reader is None or depth > DEPTH_LIMIT:
        return UNKNOWN
    value = reader(node, scope, depth + 1)
    # ``a = [b, b]``, ``b = [c, c]``: each line doubles the values.
    return value if _weight(value, SIZE_LIMIT) <= SIZE_LIMIT else UNKNOWN


def _weight(value: Any, most: int) -> int:
    """Return how many values are in *value*, or any number above *most*."""
    if isinstance(value, str):
        return len(value) // 50
    total = 1
    if isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            total += _weight(each, most - total)
            if total > most:
                break
    return total


def _class(node: ast.ClassDef, scope: Scope, depth: int) -> Any:
    bases = [evaluate(base, scope, depth) for base in node.bases]
    names = [base.name for base in bases if isinstance(base, Symbol)]
    if not any(name.endswith("Enum") for name in names):
        # ``class Parser(argparse.ArgumentParser)``.
        if len(names) == 1 and names[0].startswith("argparse."):
            return Symbol(names[0])
        return UNKNOWN
    is_text = "enum.StrEnum" in names or "builtins.str" in names
    members = []
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            value = evaluate(statement.value, scope, depth)
            members.append(Member(dotted(statement.targets[0]), value, is_text))
    return Enumeration(tuple(members))


def _attribute(node: ast.Attribute, scope: Scope, depth: int) -> Any:
    return _attribute_of(evaluate(node.value, scope, depth), node.attr)


def _attribute_of(value: Any, name: str) -> Any:
    match value:
        case Symbol(name=owner):
            return Symbol(f"{owner}.{name}")
        case Enumeration(members=members):
            return next((each for each in members if each.name == name), UNKNOWN)
        case Member() if name == "value":
            return value.value
        case Member() if name == "name":
            return value.name
    return UNKNOWN


def _list(node: ast.List | ast.Tuple | ast.Set, scope: Scope, depth: int) -> Any:
    items = [evaluate(each, scope, depth) for each in node.elts]
    return tuple(items) if isinstance(node, ast.Tuple) else items


def _dict(node: ast.Dict, scope: Scope, depth: int) -> Any:
    made: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        known = evaluate(key, scope, depth)
        if not isinstance(known, str | int | float | Member):
            return UNKNOWN
        made[known] = evaluate(value, scope, depth)
    return made


def _joined(node: ast.JoinedStr, scope: Scope, depth: int) -> Any:
    parts: list[Any] = []
    for part in node.values:
        # A part with a format, ``{price:.2f}``, cannot be read.
        if isinstance(part, ast.FormattedValue) and part.format_spec is None:
            part = part.value
        parts.append(evaluate(part, scope, depth))
    if all(isinstance(part, str | int) for part in parts):
        return "".join(map(str, parts))
    return UNKNOWN


def _binary(node: ast.BinOp, scope: Scope, depth: int) -> Any:
    left, right = evaluate(node.left, scope, depth), evaluate(node.right, scope, depth)
    if not isinstance(node.op, ast.Add) or type(left) is not type(right):
        return UNKNOWN
    if isinstance(left, str | list | tuple | int | float):
        return left + right
    return UNKNOWN


def _negative(node: ast.UnaryOp, scope: Scope, depth: int) -> Any:
    value = evaluate(node.operand, scope, depth)
    if isinstance(node.op, ast.USub) and isinstance(value, int | float):
        return -value
    return UNKNOWN


def _call(node: ast.Call, scope: Scope, depth: int) -> Any:
    arguments = [evaluate(argument, scope, depth) for argument in node.args]
    if isinstance(node.func, ast.Attribute):
        # The owner is evaluated once: in ``p.x().x().x()`` each call would double the
        # work.
        owner = evaluate(node.func.value, scope, depth)
        if isinstance(owner, dict):
            return _view_of(owner, node.func.attr)
        function = _attribute_of(owner, node.func.attr)
    else:
        function = evaluate(node.func, scope, depth)
    name = dotted(node.func)
    if name in _LISTING and len(arguments) == 1:
        return _listed(name, arguments[0])
    if name == "range" and _are_of_a_range(arguments):
        return range(*arguments)
    if not isinstance(function, Symbol):
        return UNKNOWN
    named = {
        keyword.arg or "**": evaluate(keyword.value, scope, depth)
        for keyword in node.keywords
    }
    return Called(function.name, arguments, named, node)


def _view_of(table: dict[Any, Any], method: str) -> Any:
    match method:
        case "keys":
            return list(table)
        case "values":
            return list(table.values())
        case "items":
            return list(table.items())
    return UNKNOWN


def _listed(function: str, value: Any) -> Any:
    """Return the result of ``list(value)``, ``sorted(value)`` and similar calls."""
    items = items_of(value)
    if function != "sorted" or items is UNKNOWN:
        return items
    if all(isinstance(item, str) for item in items):
        return sorted(items)
    return UNKNOWN


def _are_of_a_range(arguments: list[Any]) -> bool:
    if not 0 < len(arguments) < 4:
        return False
    if not all(type(argument) is int for argument in arguments):
        return False
    return len(arguments) < 3 or arguments[2] != 0


_READERS: dict[type[Any], Callable[[Any, Scope, int], Any]] = {
    ast.Constant: lambda node, scope, depth: node.value,
    ast.Name: lambda node, scope, depth: scope.find(node.id, depth),
    ast.FunctionDef: lambda node, scope, depth: node,
    ast.AsyncFunctionDef: lambda node, scope, depth: node,
    ast.ClassDef: _class,
    ast.Attribute: _attribute,
    ast.List: _list,
    ast.Tuple: _list,
    ast.Set: _list,
    ast.Dict: _dict,
    ast.JoinedStr: _joined,
    ast.BinOp: _binary,
    ast.UnaryOp: _negative,
    ast.Call: _call,
}
