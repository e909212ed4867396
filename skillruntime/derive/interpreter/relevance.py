"""Which statements of a script can matter to its command line, and its functions, tables and imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skillruntime.derive.interpreter.values import Symbol

__all__ = ["Relevance", "dotted", "nodes_of"]

_TOUCHING = frozenset(
    (
        *("sys.exit", "exit", "quit", "os._exit", "SystemExit"),
        *("unittest.main", "pytest.main", "absltest.main", "fire.Fire"),
    )
)
"""Calls that end the script, and calls that read ``sys.argv`` themselves."""

_LAST_NAMES = frozenset(each.rpartition(".")[2] for each in _TOUCHING)
_TOUCHING_NAMES = frozenset(("argv", "SystemExit", "__doc__"))
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CHANGES = frozenset(("append", "update", "add", "extend", "pop", "clear", "insert", "remove", "setdefault"))
_LEAVES = frozenset((ast.Name, ast.Constant, ast.alias, ast.expr_context, ast.operator, ast.cmpop))
_PLAIN_FIELDS = frozenset(
    (
        *("ctx", "op", "ops", "kind", "type_comment", "type_ignores", "conversion", "simple", "is_async", "level"),
        *("id", "attr", "arg", "name", "names", "asname", "module", "rest", "kwd_attrs"),
    )
)
_CHILDREN: dict[type, tuple[str, ...]] = {
    kind: tuple(field for field in kind._fields if field not in _PLAIN_FIELDS)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind._fields and kind not in _LEAVES
}
"""The fields of each node that may hold nodes; names and constants, half of a script's nodes, have none."""

_STATEMENTS = frozenset(kind for kind in _CHILDREN if issubclass(kind, ast.stmt)) | {ast.Pass, ast.Break, ast.Continue}


@dataclass(slots=True)
class _Summary:
    """What a statement mentions: names, whether it may end something, whether it has to do with the command line."""

    names: set[str]
    leaves: bool
    breaks: bool
    touches: bool
    table: str = ""
    """The name that a constant, or a table of a few, is given."""
    always: bool | None = None
    """Whether the statement matters whatever is known; None until that is asked."""
    reach: frozenset[str] = frozenset()
    """The names that the functions it calls mention."""


class Relevance:
    """A module, examined once for all its traces."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.constants: dict[str, ast.expr] = {}
        self.imports: dict[str, Symbol] = {}
        """What is imported anywhere in the module, by the local name."""
        self.argv: set[int] = set()
        self.visited: set[int] = set()
        self.shown: dict[ast.AST, bool] = {}
        """Whether the calls and ends that were met show the usage: each trace meets them again."""
        self.complaints: dict[int, bool] = {}
        """The same for blocks that only complain."""
        self.texts: list[ast.expr] = []
        """The texts that may contain a usage line."""
        self.assignments: list[ast.Assign] = []
        """Those that have to do with the command line."""
        self.counters: set[str] = set()
        """Names that hold a position: what they hold matters, though it is not a word."""
        self._summaries: dict[int, _Summary] = {}
        self._touching: dict[str, bool] = {}
        self._reach: dict[str, frozenset[str]] = {}
        self.classes: list[ast.ClassDef] = []
        self._changed: set[str] = set()
        # One pass over the tree: with several, it would take longer to look at a script than to parse it.
        for statement in tree.body:
            self._summarize(statement)
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
                        self._changed.add(name)
                    self.constants[name] = value
        # A constant that is changed somewhere is not constant.
        for name in self._changed:
            self.constants.pop(name, None)

    def matters(self, statement: ast.stmt, known: set[str], shared: set[str]) -> bool:
        """Whether *statement* must be followed.

        It may end something, mentions *known* names or of the words, or calls a function that does, or that mentions
        the names which all functions *share*.
        """
        # A trace does not follow objects: words in a class are reported as not followed.
        if isinstance(statement, ast.ClassDef):
            return False
        summary = self._summaries[id(statement)]
        if summary.table and self.constants.get(summary.table) is getattr(statement, "value", None):
            return False  # it is looked up on demand
        if summary.always is None:
            called = [name for name in summary.names if name in self.functions]
            ends = summary.leaves or summary.breaks or summary.touches or bool(summary.table)
            summary.always = ends or any(self.touches(name) for name in called)
            summary.reach = frozenset().union(*(self.reach(name) for name in called))
        return summary.always or not (known.isdisjoint(summary.names) and shared.isdisjoint(summary.reach))

    def reach(self, name: str) -> frozenset[str]:
        """Return the names that the function *name* mentions, and those it calls."""
        if name not in self.functions:
            return frozenset()
        if name not in self._reach:
            self._reach[name] = frozenset().union(*(each.names for each in self._followed_from(name)))
        return self._reach[name]

    def mentions(self, node: ast.stmt, names: set[str]) -> bool:
        """Whether *node*, a function or a class, mentions one of *names* that is not a parameter of its own."""
        own = node.args if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None
        parameters = {each.arg for each in [*own.posonlyargs, *own.args, *own.kwonlyargs]} if own else set()
        return not (names - parameters).isdisjoint(self._summaries[id(node)].names)

    def touches(self, name: str) -> bool:
        """Whether the function *name* has to do with the command line, or may end the script."""
        if name not in self.functions:
            return False
        if name not in self._touching:
            # Most functions of a script compute; following them would cost a hundred times what their declarations
            # need.
            self._touching[name] = any(each.touches for each in self._followed_from(name))
        return self._touching[name]

    def _followed_from(self, name: str) -> Iterator[_Summary]:
        """Yield the summaries of the function *name*, of those that it mentions, of those that they mention, ..."""
        pending, seen = [name], {name}
        while pending:
            summary = self._summaries[id(self.functions[pending.pop()])]
            yield summary
            further = (summary.names & self.functions.keys()) - seen
            seen |= further
            pending += further

    def _summarize(self, node: ast.stmt) -> _Summary:
        """Record what *node* and the statements in it mention, and what they say of the whole module."""
        kind: type = type(node)
        names: set[str] = set()
        leaves = kind is ast.Return or kind is ast.Raise
        breaks = kind is ast.Break or kind is ast.Continue
        touches = self._note_statement(node, kind)
        pending: list[Any] = [getattr(node, field) for field in _CHILDREN.get(kind, ())]
        while pending:
            each = pending.pop()
            kind = each.__class__
            if kind is ast.Name:
                names.add(each.id)
            elif kind is list:
                pending += each
            elif kind is ast.Constant:
                if each.value.__class__ is str and "usage" in each.value.lower():
                    touches = True
                    self.texts.append(each)
            elif kind in _STATEMENTS:
                inner = self._summarize(each)
                names |= inner.names
                leaves, breaks, touches = leaves or inner.leaves, breaks or inner.breaks, touches or inner.touches
            elif (fields := _CHILDREN.get(kind)) is not None:
                if kind in _NOTED:
                    touches = self._note_expression(each, kind) or touches
                for field in fields:
                    pending.append(getattr(each, field))
        touches = touches or not names.isdisjoint(_TOUCHING_NAMES)
        if isinstance(node, _FUNCTIONS):
            leaves = breaks = False
        table = ""
        if isinstance(node, ast.Assign):
            if touches:
                self.assignments.append(node)
            if len(node.targets) == 1 and _is_plain(node.value):
                table = dotted(node.targets[0])
        found = _Summary(names, leaves, breaks and not isinstance(node, _LOOPS), touches, table)
        self._summaries[id(node)] = found
        return found

    def _note_statement(self, node: Any, kind: type) -> bool:
        """Record the imports and changes that a statement makes; return whether it has to do with ``sys.argv``."""
        if kind is ast.Import:
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self.imports[alias.asname or top] = Symbol(alias.name if alias.asname else top)
        elif kind is ast.ImportFrom:
            for alias in node.names:
                self.imports[alias.asname or alias.name] = Symbol(f"{node.module}.{alias.name}")
            return bool(node.module == "sys")
        elif kind is ast.Global:
            self._changed.update(node.names)
        elif kind is ast.AugAssign:
            if isinstance(node.target, ast.Name):
                self._changed.add(node.target.id)
        elif kind is ast.While and isinstance(node.test, ast.Compare) and isinstance(node.test.left, ast.Name):
            self.counters.add(node.test.left.id)
        return False

    def _note_expression(self, node: Any, kind: type) -> bool:
        """Record what an expression says of names; return whether it has to do with ``sys.argv`` or ends the script."""
        if kind is ast.Attribute:
            if isinstance(node.value, ast.Name):
                if node.attr == "argv" and node.value.id == "sys":
                    self.argv.add(id(node))
                    return True
                if node.attr in _CHANGES:
                    self._changed.add(node.value.id)
        elif kind is ast.Call:
            function = node.func
            last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            return last in _LAST_NAMES and dotted(function) in _TOUCHING
        elif kind is ast.Subscript:
            index = node.slice.left if isinstance(node.slice, ast.BinOp) else node.slice
            if isinstance(node.value, ast.Name) and not isinstance(node.ctx, ast.Load):
                self._changed.add(node.value.id)
            elif isinstance(index, ast.Name):
                self.counters.add(index.id)
        elif kind is ast.JoinedStr or isinstance(node.op, ast.Add):
            self.texts.append(node)
        return False


_NOTED = frozenset((ast.Attribute, ast.Call, ast.Subscript, ast.JoinedStr, ast.BinOp))


def nodes_of(node: ast.AST) -> Iterator[Any]:
    """Yield *node* and all below it but operators and the names of imports: `ast.walk`, in a third of the time."""
    pending: list[Any] = [node]
    while pending:
        node = pending.pop()
        yield node
        for field in _CHILDREN.get(node.__class__, ()):
            value = getattr(node, field, None)
            if value.__class__ is list:
                pending += [each for each in value if each is not None]  # ``{**other}`` has no key
            elif value is not None:
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
