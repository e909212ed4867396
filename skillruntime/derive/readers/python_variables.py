"""Find the environment variables of a Python script.

The law: a variable is needed only if each run without an error looks it up without a
default. A variable that a condition, a handler or a settings file may affect only
counts as read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from skillruntime.derive.readers.python_endings import refusal
from skillruntime.derive.readers.python_nodes import Function, Nodes
from skillruntime.derive.readers.python_script import parse_python
from skillruntime.derive.readers.python_values import dotted

__all__ = ["python_variables"]

_ENVIRON = ("os.environ", "environ")
_LOOKS_UP = ("get", "pop", "setdefault")
_GETS = ("os.getenv", "getenv")
# Both set variables of any name: the second is of python-dotenv.
_FILLS = ("os.environ.update", "environ.update", "load_dotenv", "dotenv.load_dotenv")
_CATCHES = ("KeyError", "LookupError", "Exception", "BaseException")
_EXITS = ("sys.exit", "exit", "quit", "os._exit", "SystemExit")

_After = Literal["goes on", "returns", "may end"]
"""The state behind a statement: it is reached; the function may have been left; the
script may have ended.
"""


def python_variables(text: str) -> tuple[list[str], list[str]]:
    """Return the variables that the script *text* needs, and all that it reads."""
    tree = parse_python(text)
    if tree is None:
        return [], []
    nodes = Nodes(tree)
    everything = nodes.all(tree)
    read = list(dict.fromkeys(filter(None, map(_read, everything))))
    set_here = set(filter(None, map(_set, everything)))
    if any(_name(call) in _FILLS for call in nodes.of(ast.Call)):
        return [], read
    functions = {each.name: each for each in tree.body if isinstance(each, Function)}
    walk = _Walk(functions, nodes)
    walk.body(tree.body)
    needed = [name for name in walk.found if name not in set_here]
    return needed, read


def _name(call: ast.Call) -> str:
    return dotted(call.func)


def _read(node: ast.AST) -> str | None:
    """Return the variable whose value or presence *node* reads."""
    match node:
        case ast.Subscript(value=owner, slice=ast.Constant(value=str(name))) if (
            dotted(owner) in _ENVIRON
        ):
            return name
        case ast.Compare(
            left=ast.Constant(value=str(name)),
            ops=[ast.In() | ast.NotIn()],
            comparators=[owner],
        ) if dotted(owner) in _ENVIRON:
            return name
        case ast.Call(args=[ast.Constant(value=str(name)), *_]) if _looks_up(node):
            return name
    return None


def _looks_up(call: ast.Call) -> bool:
    owner, _, method = _name(call).rpartition(".")
    if owner in _ENVIRON and method in _LOOKS_UP:
        return True
    return _name(call) in _GETS


def _set(node: ast.AST) -> str | None:
    """Return the variable that the script sets, or removes, in *node*."""
    match node:
        case ast.Subscript(
            value=owner,
            slice=ast.Constant(value=str(name)),
            ctx=ast.Store() | ast.Del(),
        ) if dotted(owner) in _ENVIRON:
            return name
        case ast.Call(args=[ast.Constant(value=str(name)), *_]) if (
            _name(node).endswith(".setdefault") or _name(node) == "os.putenv"
        ):
            return name
    return None


@dataclass(slots=True)
class _Walk:
    """Walks the statements that every run reaches, in their order."""

    functions: Mapping[str, Function]
    nodes: Nodes
    found: dict[str, None] = field(default_factory=dict)
    walked: set[str] = field(default_factory=set)
    endings: dict[str, bool] = field(default_factory=dict)
    """Whether each function may end the script without an error."""

    def body(self, statements: list[ast.stmt]) -> _After:
        for statement in statements:
            after = self.statement(statement)
            if after != "goes on":
                return after
        return "goes on"

    def statement(self, statement: ast.stmt) -> _After:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return "goes on"
            case ast.ClassDef(body=inner):
                return self.body(inner)
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=inner):
                return self.body(inner)
            case ast.With() | ast.AsyncWith():
                return self.with_block(statement)
            case ast.Try() | ast.TryStar():
                return self.try_block(statement)
            case ast.If(test=first) | ast.While(test=first) | ast.Match(subject=first):
                return self.condition(statement, first)
            case ast.For(iter=first) | ast.AsyncFor(iter=first):
                return self.condition(statement, first)
        after = self.expressions(statement)
        if isinstance(statement, ast.Return) and after == "goes on":
            return "returns"
        if isinstance(statement, ast.Raise):
            return "may end"
        return after

    def with_block(self, statement: ast.With | ast.AsyncWith) -> _After:
        for item in statement.items:
            after = self.expressions(item.context_expr)
            if after != "goes on":
                return after
            # ``with suppress(KeyError)``: what is inside is not demanded.
            if dotted(getattr(item.context_expr, "func", None)).endswith("suppress"):
                return self.behind(statement.body)
        return self.body(statement.body)

    def try_block(self, statement: ast.Try | ast.TryStar) -> _After:
        handlers = [handler.type for handler in statement.handlers]
        if any(map(_catches_lookup, handlers)):
            return self.behind([statement])
        return self.body([*statement.body, *statement.orelse, *statement.finalbody])

    def condition(self, statement: ast.stmt, first: ast.expr) -> _After:
        after = self.expressions(first)
        if after != "goes on":
            return after
        if not isinstance(statement, ast.If):
            return self.behind([statement])
        for body in (statement.body, statement.orelse):
            if body and not self.refuses(body):
                after = self.behind(body)
                if after != "goes on":
                    return after
        return "goes on"

    def refuses(self, body: list[ast.stmt]) -> bool:
        """Return whether every successful run avoids *body*: ``if not args.input:
        parser.error(...)``.
        """
        # A plain ``return`` ends a successful run: ``print("nothing to do"); return``.
        last = body[-1]
        if isinstance(last, ast.Return) and last.value is None:
            return False
        return bool(refusal(body, self.functions))

    def behind(self, statements: list[ast.stmt]) -> _After:
        """Return the state behind *statements*, which may be unreachable."""
        nodes: list[ast.AST] = []
        for statement in statements:
            nodes += [statement, *self.nodes.own(statement)]
        if any(map(self.may_end, nodes)):
            return "may end"
        if any(isinstance(node, ast.Return) for node in nodes):
            return "returns"
        return "goes on"

    def may_end(self, node: ast.AST) -> bool:
        """Return whether *node* is a call that may end the script without an error."""
        if isinstance(node, ast.Raise):
            return dotted(node.exc) == "SystemExit"
        if not isinstance(node, ast.Call):
            return False
        name = _name(node)
        if name in _EXITS:
            return not refusal([ast.Expr(node)])
        if name not in self.functions:
            return False
        if name not in self.endings:
            self.endings[name] = False  # of a function that calls itself
            inside = self.nodes.own(self.functions[name])
            self.endings[name] = any(map(self.may_end, inside))
        return self.endings[name]

    def expressions(self, node: ast.AST) -> _After:
        """Record the variables that evaluating *node* looks up, and follow its calls of
        the script's functions.
        """
        for part in _evaluated(node):
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
                name = _read(part)
                if name is not None:
                    self.found[name] = None
            if not isinstance(part, ast.Call):
                continue
            called = _name(part)
            if called in self.functions and called not in self.walked:
                self.walked.add(called)
                if self.body(self.functions[called].body) == "may end":
                    return "may end"
            elif self.may_end(part):
                return "may end"
        return "goes on"


def _catches_lookup(kind: ast.expr | None) -> bool:
    """Return whether a handler of exceptions of *kind* catches the ``KeyError`` of an
    unset variable.
    """
    if kind is None:
        return True
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(dotted(each).rpartition(".")[2] in _CATCHES for each in kinds)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield *node* and the expressions in it that are evaluated whenever it is,
    arguments before their call.
    """
    inner: list[ast.AST]
    match node:
        case ast.Lambda():
            inner = []
        case ast.BoolOp(values=[first, *_]) | ast.IfExp(test=first):
            inner = [first]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            inner = [node.generators[0].iter]
        case _:
            inner = list(ast.iter_child_nodes(node))
    for each in inner:
        yield from _evaluated(each)
    yield node
