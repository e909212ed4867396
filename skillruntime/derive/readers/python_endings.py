"""Decide how statements of a Python script end it: with a usage error, with another
error, or not at all.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from skillruntime.derive.readers.python_nodes import Function, Nodes
from skillruntime.derive.readers.python_values import dotted

__all__ = ["Endings", "leaves", "refusal"]

_USAGE_ERRORS = (
    "UsageError",
    "BadParameter",
    "BadArgumentUsage",
    "BadOptionUsage",
    "MissingParameter",
    "ClickException",
    "ArgumentError",
    "ArgumentTypeError",
)
_EXITS = ("SystemExit", "exit", "quit", "Exit", "_exit")
_OUTPUT = (
    "print",
    "echo",
    "secho",
    "write",
    "error",
    "warning",
    "critical",
    "exception",
    "info",
)


def refusal(
    body: list[ast.stmt], functions: Mapping[str, Function] = MappingProxyType({})
) -> str:
    """Return how *body* ends the script with an error, ``"usage"`` or ``"work"``; empty
    if the script continues.

    ``parser.error`` and ``ctx.fail`` end it by themselves; ``print_help`` does not
    count, because a script that only shows its help does not refuse the call.
    """
    statements = [part.value for part in body if isinstance(part, ast.Expr)]
    calls = [value for value in statements if isinstance(value, ast.Call)]
    if any(map(_is_usage_error, calls)):
        return "usage"
    if any(map(_shows_help, calls)) and leaves(body):
        return "usage"
    match body[-1]:
        case ast.Return(value=value):
            return _returned(value, len(body) - 1, calls)
        case ast.Expr(value=ast.Call() as call) | ast.Raise(exc=ast.Call() as call):
            return _ended(call, functions)
    return ""


def _is_usage_error(call: ast.Call) -> bool:
    owner, _, name = dotted(call.func).rpartition(".")
    if name == "fail":
        return True
    return name == "error" and owner != "" and "log" not in owner.lower()


def _shows_help(call: ast.Call) -> bool:
    return dotted(call.func).rpartition(".")[2] in ("print_help", "print_usage")


def _ended(call: ast.Call, functions: Mapping[str, Function]) -> str:
    """Return how *call*, the last statement or the error that it raises, ends the
    script.
    """
    name = dotted(call.func).rpartition(".")[2]
    if name in _EXITS:
        return _exited(call)
    if name in functions:
        return refusal(functions[name].body)
    if name in _USAGE_ERRORS:
        return "usage"
    return "work" if name == "ValueError" else ""


def _exited(call: ast.Call) -> str:
    """Return whether the status of ``raise SystemExit``, ``raise typer.Exit`` or
    ``sys.exit`` says that it is an error.
    """
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not given:
        return ""
    status = given[0]
    # ``sys.exit(run(args))``, ``sys.exit(0 if ok else 1)``: the result of the work.
    if isinstance(status, ast.IfExp):
        return ""
    if isinstance(status, ast.Call) and dotted(status.func).islower():
        return ""
    return "" if getattr(status, "value", "") in (0, None) else "work"


def _returned(value: ast.expr | None, before: int, calls: list[ast.Call]) -> str:
    """Return whether ``return value``, after this many statements, reports an error."""
    if value is not None and not isinstance(value, ast.Constant):
        return ""
    status = None if value is None else value.value
    # ``sys.exit(main())``: what ``main`` returns is the status.
    if status is not None:
        return "work" if type(status) is int and status != 0 else ""
    # ``print("--input is required"); return``; ``print(json.dumps(index)); return`` has
    # done its work.
    messages = [call for call in calls if call.args and _is_output(call)]
    if before == 0 or len(messages) != before:
        return ""
    for call in messages:
        if not isinstance(call.args[0], ast.Constant | ast.JoinedStr):
            return ""
    return "work"


def _is_output(call: ast.Call) -> bool:
    return dotted(call.func).rpartition(".")[2] in _OUTPUT


def leaves(body: list[ast.stmt]) -> bool:
    """Return whether *body* always leaves, so that the statements behind it are not
    reached.
    """
    match body[-1] if body else None:
        case ast.Expr(value=ast.Call(func=function)):
            return dotted(function).rpartition(".")[2] in _EXITS
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.If(body=inner, orelse=rest):
            return leaves(inner) and leaves(rest)
        case ast.With(body=inner):
            return leaves(inner)
        case ast.Try(body=inner, handlers=handlers, orelse=rest, finalbody=last):
            if leaves(last):
                return True
            ways = [rest or inner, *(handler.body for handler in handlers)]
            return all(map(leaves, ways))
    return False


@dataclass(frozen=True, slots=True)
class Endings:
    """Decides which statements of a script may end it, or their function, without an
    error.
    """

    nodes: Nodes
    called: Mapping[ast.Call, str]
    """The dotted name of the function in each call."""
    leaving: list[int]
    """The positions of the calls and ``return`` statements that do so."""

    @classmethod
    def of(cls, functions: Mapping[str, Function], nodes: Nodes) -> Endings:
        """Return the endings of the script that has these *functions* and *nodes*."""
        called = {call: dotted(call.func) for call in nodes.of(ast.Call)}
        exits = [
            call for call, name in called.items() if _ends_with_success(call, name)
        ]
        positions = nodes.positions(exits)
        # The calls of these functions may end the script too; the functions that call
        # them are not followed.
        ending = {
            name
            for name, function in functions.items()
            if nodes.has_own_at(function, positions)
        }
        leaving: list[ast.AST] = [*exits]
        leaving += [call for call, name in called.items() if name in ending]
        leaving += [each for each in nodes.of(ast.Return) if not _returns_error(each)]
        return cls(nodes, called, nodes.positions(leaving))

    def may_leave(self, body: list[ast.stmt]) -> bool:
        """Return whether not every call reaches the statements behind *body*."""
        return any(self.nodes.has_own_at(each, self.leaving) for each in body)


def _returns_error(node: ast.Return) -> bool:
    value = getattr(node.value, "value", None)
    return type(value) is int and value != 0


def _ends_with_success(call: ast.Call, name: str) -> bool:
    return name.rpartition(".")[2] in _EXITS and not _exited(call)
