"""Follows a script's statements from the top of the module to where its command line is parsed, without running it.

Names stand for constants, functions and records; what cannot be told is UNKNOWN, and what stands under a condition that
cannot be told is followed, and marked: nothing found there is certain.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from skillruntime.derive.calls import Left, Library, Neighbours, Returned
from skillruntime.derive.expressions import Exhausted
from skillruntime.derive.foreign_calls import items_of
from skillruntime.derive.imports import Imports
from skillruntime.derive.values import (
    UNKNOWN,
    BoundMethod,
    ClassValue,
    EnumMember,
    FunctionValue,
    Imported,
    InstanceValue,
    Model,
    Scope,
    Symbol,
    is_constant,
)

__all__ = ["Found", "Library", "Reader"]

_ENUMS = tuple(f"enum.{name}" for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"))


class Found(Exception):  # noqa: N818 - control flow: the reading is at its end
    """The command line is parsed here, by *value*."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Reader(Imports):
    """Follows one script."""

    def __init__(self, library: Library, made: tuple[str, ...] = (), neighbours: Neighbours | None = None) -> None:
        super().__init__(library, made, neighbours)
        self.module = Scope({"__name__": "__main__", "__file__": UNKNOWN, "__doc__": None})
        self.models: list[Model] = []

    def read(self, tree: ast.Module) -> None:
        """Follow the module from its top; raises `Found` where its command line is parsed."""
        self.module.names["__doc__"] = ast.get_docstring(tree, clean=False)
        with suppress(Returned):  # outside a function, where Python itself refuses it
            self.follow(tree.body, self.module)

    def follow(self, statements: Iterable[ast.stmt], scope: Scope) -> None:
        """Follow *statements* in their order."""
        pending = list(statements)
        for index, statement in enumerate(pending):
            if self.early.round:  # a round of a loop may have ended: what follows in it may not be reached
                self.early.round = False
                self._perhaps(pending[index:], scope)
                self.early.round = True
                return
            self.steps -= 1
            if self.steps < 0:
                raise Exhausted
            method = getattr(self, f"_follow_{type(statement).__name__.lower()}", None)
            if method is not None:
                method(statement, scope)

    def _follow_expr(self, node: ast.Expr, scope: Scope) -> None:
        self.evaluate(node.value, scope)

    def _follow_assign(self, node: ast.Assign, scope: Scope) -> None:
        value = self.evaluate(node.value, scope)
        for target in node.targets:
            self.bind(target, value, scope)

    def _follow_annassign(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self.bind(node.target, self.evaluate(node.value, scope), scope)

    def _follow_augassign(self, node: ast.AugAssign, scope: Scope) -> None:
        target = (
            ast.parse(ast.unparse(node.target), mode="eval").body if not isinstance(node.target, ast.Name) else None
        )
        left = ast.Name(node.target.id, ast.Load()) if isinstance(node.target, ast.Name) else target
        before = self.evaluate(left, scope)
        if isinstance(before, list) and isinstance(node.op, ast.Add):  # it changes the list that others hold, too
            self.call(BoundMethod(before, "extend"), [self.evaluate(node.value, scope)], {}, node)
            return
        value = self.evaluate(ast.BinOp(left or node.value, node.op, node.value), scope)
        self.bind(node.target, value, scope)

    def _follow_delete(self, node: ast.Delete, scope: Scope) -> None:
        for target in node.targets:
            self.remove(target, scope)

    def _follow_global(self, node: ast.Global, scope: Scope) -> None:
        scope.outside |= set(node.names)

    def _follow_nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            outer = scope.parent
            while outer is not None:
                if name in outer.names:
                    outer.names[name] = UNKNOWN
                    break
                outer = outer.parent

    def _follow_return(self, node: ast.Return, scope: Scope) -> None:
        raise Returned(self.evaluate(node.value, scope))

    def _follow_break(self, node: ast.Break, scope: Scope) -> None:
        raise Left(True)

    def _follow_continue(self, node: ast.Continue, scope: Scope) -> None:
        raise Left(False)

    def _follow_raise(self, node: ast.Raise, scope: Scope) -> None:
        if isinstance(node.exc, ast.Call):
            for each in node.exc.args:  # raise SystemExit(main())
                self.evaluate(each, scope)

    def _follow_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        value: Any = FunctionValue(node, scope, defaults=self.defaults_of(node.args, scope))
        for decorator in reversed(node.decorator_list):
            applied = self.evaluate(decorator, scope)
            if isinstance(applied, Symbol) and applied.name not in self.library:
                continue  # a decorator of another library: taken to keep the signature
            result = self.call(applied, [value], {}, decorator)
            value = value if result is UNKNOWN or result is None else result
        self.bind(ast.Name(node.name, ast.Store()), value, scope)

    _follow_asyncfunctiondef = _follow_functiondef

    def _follow_classdef(self, node: ast.ClassDef, scope: Scope) -> None:
        kind = ClassValue(node.name, [self.evaluate(base, scope) for base in node.bases], {}, node=node)
        body = Scope(kind.names, Scope({"__class__": kind}, scope))
        self.follow(node.body, body)
        if kind.descends_from(*_ENUMS):
            kind.members |= _members(node, kind)
        for decorator in node.decorator_list:
            self.evaluate(decorator, scope)
        scope.names[node.name] = kind

    def _follow_if(self, node: ast.If, scope: Scope) -> None:
        truth = self.truth(node.test, scope)
        if truth is not UNKNOWN:
            self.follow(node.body if truth else node.orelse, scope)
            return
        before = dict(scope.names)
        left = self._maybe(node.body, scope, (node, 0))
        after, scope.names = scope.names, dict(before)
        right = self._maybe(node.orelse, scope, (node, 1))
        if left or right:  # one branch ends here: what follows is what the other left behind
            scope.names = scope.names if left else after
            return
        for name, value in after.items():
            other = scope.names.get(name, value)
            same = other is value or (is_constant(value) and is_constant(other) and other == value)
            scope.names[name] = value if same else UNKNOWN

    def _perhaps(self, statements: list[ast.stmt], scope: Scope) -> None:
        """Follow *statements*, which may not be reached: a name that they give another value has none that is known."""
        before, rounds = dict(scope.names), (self.early.round, self.early.loop)
        self._maybe(statements, scope)
        self.early.round, self.early.loop = rounds[0], rounds[1] or self.early.loop
        for name, value in scope.names.items():
            if name in before and not isinstance(value, Model | InstanceValue):
                scope.names[name] = self._kept(value, before[name], True)

    def _maybe(self, statements: list[ast.stmt], scope: Scope, branch: tuple[ast.AST, int] | None = None) -> bool:
        """Follow *statements*, which may not be reached; whether they leave the block they stand in."""
        names, branches = scope.names, self.branches
        self.uncertain += 1
        self.branches = (*branches, branch or (ast.Pass(), 0))
        try:
            self.follow(statements, scope)
        except Returned as returned:
            if isinstance(returned.value, Model | InstanceValue):
                names["__maybe__"] = returned.value
            if not self.early.values:
                self.early.since = self.tick()
            self.early.values.append(returned.value)
            return True
        except Left as left:
            self.early.round = True
            self.early.loop |= left.is_break
            return True
        finally:
            self.uncertain -= 1
            self.branches = branches
        return bool(statements) and _leaves(statements[-1])

    def _follow_for(self, node: ast.For, scope: Scope) -> None:
        items = items_of(self.evaluate(node.iter, scope))
        if items is UNKNOWN:
            self.bind(node.target, UNKNOWN, scope)
            self._perhaps(node.body, scope)
            return
        outer, self.early.round, self.early.loop = (self.early.round, self.early.loop), False, False
        for item in items:
            self.bind(node.target, item, scope)
            try:
                if self.early.loop:
                    self._perhaps(node.body, scope)
                else:
                    self.follow(node.body, scope)
            except Left as left:
                if left.is_break:
                    break
            self.early.round = False
        self.early.round, self.early.loop = outer
        self.follow(node.orelse, scope)

    _follow_asyncfor = _follow_for

    def _follow_while(self, node: ast.While, scope: Scope) -> None:
        truth = self.truth(node.test, scope)
        if truth is UNKNOWN or truth:
            left = self.early.loop
            self._perhaps(node.body, scope)
            self.early.loop = left

    def _follow_with(self, node: ast.With, scope: Scope) -> None:
        for item in node.items:
            value = self.evaluate(item.context_expr, scope)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value, scope)
        self.follow(node.body, scope)

    _follow_asyncwith = _follow_with

    def _follow_try(self, node: ast.Try, scope: Scope) -> None:
        before = dict(scope.names)
        self.follow(node.body, scope)
        if any(not handler.body or not _leaves(handler.body[-1]) for handler in node.handlers):
            for name, value in scope.names.items():
                if name in before and not isinstance(value, Model | InstanceValue):
                    scope.names[name] = self._kept(value, before[name], True)
        for handler in node.handlers:
            inner = Scope(dict(before), scope.parent, scope.outside)
            if any(isinstance(each, ast.Import | ast.ImportFrom | ast.Assign) for each in handler.body):
                self._maybe([each for each in handler.body if not _leaves(each)], inner)
            for name, value in inner.names.items():
                known = scope.names.get(name, value)
                if value is before.get(name) or known is value or isinstance(known, Symbol | Imported):
                    continue
                if not (is_constant(value) and is_constant(known) and value == known):
                    scope.names[name] = UNKNOWN
        self.follow(node.orelse, scope)
        self.follow(node.finalbody, scope)

    def _follow_match(self, node: ast.Match, scope: Scope) -> None:
        for case in node.cases:
            self._perhaps(case.body, scope)


def _members(node: ast.ClassDef, kind: ClassValue) -> dict[str, EnumMember]:
    """The members of the enumeration *kind*: what its body assigns, in that order, known or not."""
    is_text = kind.descends_from("builtins.str", "enum.StrEnum")
    found: dict[str, EnumMember] = {}
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for name in [each.id for each in targets if isinstance(each, ast.Name) and not each.id.startswith("_")]:
            value = kind.names.get(name, UNKNOWN)
            if isinstance(statement, ast.Assign) and _is_auto(statement.value):
                value = name.lower() if kind.descends_from("enum.StrEnum") else len(found) + 1
            if not isinstance(value, FunctionValue):
                found[name] = EnumMember(node.name, name, value, is_text, _text(kind, name, value))
    return found


def _text(kind: ClassValue, name: str, value: Any) -> Any:
    """What ``str()`` makes of a member: its value or its name where ``__str__`` says no more than that."""
    try:
        shown = kind.find("__str__")
    except KeyError:
        if kind.descends_from("enum.StrEnum"):
            return value
        return f"{kind.name}.{name}" if kind.bases == [Symbol("enum.Enum")] else UNKNOWN
    body = shown.node.body if isinstance(shown, FunctionValue) and isinstance(shown.node, ast.FunctionDef) else []
    match body[-1:]:
        case [ast.Return(value=ast.Attribute(value=ast.Name(id="self"), attr=attribute))]:
            return {"value": value, "_value_": value, "name": name, "_name_": name}.get(attribute, UNKNOWN)
    return UNKNOWN


def _is_auto(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "auto"


def _leaves(statement: ast.stmt) -> bool:
    """Whether nothing after *statement* is reached."""
    if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        name = ast.unparse(statement.value.func)
        return name in ("sys.exit", "exit", "quit", "os._exit") or name.endswith((".exit", ".error"))
    return False
