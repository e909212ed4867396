"""Which statements of a script can matter to its command line, and its functions, tables and imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Relevance", "dotted", "nodes_of"]

_TOUCHING = frozenset(
    (
        *("sys.exit", "exit", "quit", "os._exit", "SystemExit"),
        *("unittest.main", "pytest.main", "absltest.main", "fire.Fire"),
    )
)
"""Calls that end the script, and calls that read ``sys.argv`` themselves."""

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CHANGES = ("append", "update", "add", "extend", "pop", "clear", "insert", "remove", "setdefault")


@dataclass(frozen=True, slots=True)
class _Summary:
    """What a statement mentions: names, whether it may end something, whether it has to do with the command line."""

    names: frozenset[str]
    leaves: bool
    breaks: bool
    touches: bool
    table: str = ""
    """The name that a constant, or a table of a few, is given."""


class Relevance:
    """A module, examined once for all its traces."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.constants: dict[str, ast.expr] = {}
        self.imports: dict[str, str] = {}
        """The full names of what is imported anywhere in the module, by the local name."""
        self.argv: set[int] = set()
        self.visited: set[int] = set()
        self.texts: list[ast.expr] = []
        """The texts that may contain a usage line."""
        self.counters: set[str] = set()
        """Names that hold a position: what they hold matters, though it is not a word."""
        self._summarys: dict[int, _Summary] = {}
        self._touching: dict[str, bool] = {}
        self._reach: dict[str, frozenset[str]] = {}
        self.classes: list[ast.ClassDef] = []
        changed: set[str] = set()
        for node in nodes_of(tree):
            kind = type(node)
            if kind is ast.Constant:
                if isinstance(node.value, str) and "usage" in node.value.lower():
                    self.texts.append(node)
            elif kind is ast.JoinedStr or (kind is ast.BinOp and isinstance(node.op, ast.Add)):
                self.texts.append(node)
            elif kind is ast.Import:
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    self.imports[alias.asname or top] = alias.name if alias.asname else top
            elif kind is ast.ImportFrom:
                self.imports |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif kind is ast.Attribute:
                match node:
                    case ast.Attribute(value=ast.Name(id="sys"), attr="argv"):
                        self.argv.add(id(node))
                    case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in _CHANGES:
                        changed.add(name)
            elif kind is ast.Subscript:
                match node:
                    case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                        changed.add(name)
                    case ast.Subscript(slice=ast.Name(id=index) | ast.BinOp(left=ast.Name(id=index))):
                        self.counters.add(index)
            elif kind is ast.While or kind is ast.AugAssign or kind is ast.Global:
                match node:
                    case ast.While(test=ast.Compare(left=ast.Name(id=index))):
                        self.counters.add(index)
                    case ast.AugAssign(target=ast.Name(id=name)):
                        changed.add(name)
                    case ast.Global(names=names):
                        changed.update(names)
        for statement in tree.body:
            match statement:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self.functions[name] = statement
                case ast.ClassDef():
                    self.classes.append(statement)
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    if name in self.constants:
                        changed.add(name)
                    self.constants[name] = value
        # A constant that is changed somewhere is not constant.
        for name in changed:
            self.constants.pop(name, None)

    def matters(self, statement: ast.stmt, known: set[str], shared: set[str]) -> bool:
        """Whether *statement* must be followed.

        It may end something, mentions *known* names or of the words, or calls a function that does, or that mentions
        the names which all functions *share*.
        """
        # A trace does not follow objects: words in a class are reported as not followed.
        if isinstance(statement, ast.ClassDef):
            return False
        summary = self._summary(statement)
        if summary.table and self.constants.get(summary.table) is getattr(statement, "value", None):
            return False  # it is looked up on demand
        if summary.leaves or summary.breaks or summary.touches or summary.table or not known.isdisjoint(summary.names):
            return True
        called = [name for name in summary.names if name in self.functions]
        return any(self.touches(name) or not shared.isdisjoint(self.reach(name)) for name in called)

    def reach(self, name: str) -> frozenset[str]:
        """Return the names that the function *name* mentions, and those it calls."""
        if name not in self.functions:
            return frozenset()
        if name not in self._reach:
            self._reach[name] = frozenset()  # for a function that calls itself
            own = self._summary(self.functions[name]).names
            self._reach[name] = own.union(*(self.reach(each) for each in own - {name}))
        return self._reach[name]

    def mentions(self, node: ast.stmt, names: set[str]) -> bool:
        """Whether *node*, a function or a class, mentions one of *names* that is not a parameter of its own."""
        own = node.args if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None
        parameters = {each.arg for each in [*own.posonlyargs, *own.args, *own.kwonlyargs]} if own else set()
        return not (names - parameters).isdisjoint(self._summary(node).names)

    def touches(self, name: str) -> bool:
        """Whether the function *name* has to do with the command line, or may end the script."""
        if name not in self.functions:
            return False
        if name not in self._touching:
            # Most functions of a script compute; following them would cost a hundred times what their declarations
            # need.
            self._touching[name] = False  # for a function that calls itself
            summary = self._summary(self.functions[name])
            self._touching[name] = summary.touches or any(self.touches(each) for each in summary.names - {name})
        return self._touching[name]

    def _summary(self, node: ast.stmt) -> _Summary:
        if (known := self._summarys.get(id(node))) is not None:
            return known
        names: set[str] = set()
        leaves = isinstance(node, ast.Return | ast.Raise)
        breaks = isinstance(node, ast.Break | ast.Continue)
        touches = isinstance(node, ast.ImportFrom) and node.module == "sys"
        pending: list[Any] = list(node.__dict__.values())
        while pending:
            each: Any = pending.pop()
            kind = type(each)
            if kind is list:
                pending += each
            elif isinstance(each, ast.stmt):
                inner = self._summary(each)
                names |= inner.names
                leaves, breaks, touches = leaves or inner.leaves, breaks or inner.breaks, touches or inner.touches
            elif kind is ast.Name:
                names.add(each.id)
            elif isinstance(each, ast.Constant):
                touches = touches or (isinstance(each.value, str) and "usage" in each.value.lower())
            elif isinstance(each, ast.AST):
                touches = touches or id(each) in self.argv
                touches = touches or (isinstance(each, ast.Call) and dotted(each.func) in _TOUCHING)
                pending += each.__dict__.values()
        touches = touches or not names.isdisjoint(("argv", "SystemExit", "__doc__"))
        if isinstance(node, _FUNCTIONS):
            leaves = breaks = False
        table = ""
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_plain(node.value):
            table = dotted(node.targets[0])
        found = _Summary(frozenset(names), leaves, breaks and not isinstance(node, _LOOPS), touches, table)
        self._summarys[id(node)] = found
        return found


def nodes_of(node: ast.AST) -> Iterator[Any]:
    """Yield *node* and all below it: `ast.walk`, in half the time."""
    pending: list[Any] = [node]
    while pending:
        node = pending.pop()
        yield node
        for value in node.__dict__.values():
            if type(value) is list:
                pending += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                pending.append(value)


def _is_plain(node: ast.expr) -> bool:
    """Whether it is a constant, or a table of a few."""
    match node:
        case ast.Dict(keys=items) | ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return len(items) <= 40
    return isinstance(node, ast.Constant)


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` as it is written; nothing where it is not a dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
