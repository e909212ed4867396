"""How statements of a Python script end it: with a usage error, with an error of its
work, or not at all.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType

from skillruntime.derive.readers.python_values import Function, dotted

__all__ = ["leaves", "refusal"]

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
    if the script goes on.

    ``parser.error`` and ``ctx.fail`` do so by themselves; after ``print_help`` scripts
    exit or return.
    """
    statements = [part.value for part in body if isinstance(part, ast.Expr)]
    calls = [value for value in statements if isinstance(value, ast.Call)]
    if any(map(_is_usage_error, calls)):
        return "usage"
    match body[-1]:
        case ast.Return(value=value):
            return _returned(value, len(body) - 1, calls)
        case ast.Expr(value=ast.Call() as call) | ast.Raise(exc=ast.Call() as call):
            return _ended(call, functions)
    return ""


def _is_usage_error(call: ast.Call) -> bool:
    owner, _, name = dotted(call.func).rpartition(".")
    if name in ("print_help", "print_usage", "fail"):
        return True
    return name == "error" and owner != "" and "log" not in owner.lower()


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
    # ``sys.exit(run(args))``, ``sys.exit(0 if ok else 1)``: what the work came to.
    if isinstance(status, ast.IfExp):
        return ""
    if isinstance(status, ast.Call) and dotted(status.func).islower():
        return ""
    return "" if getattr(status, "value", "") in (0, None) else "work"


def _returned(value: ast.expr | None, before: int, calls: list[ast.Call]) -> str:
    """Return whether ``return value``, after so many statements, reports an error."""
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
    """Return whether nothing behind *body* is reached from it."""
    last = body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    if isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] in _EXITS:
        return True
    return isinstance(last, ast.Return | ast.Raise | ast.Continue)
