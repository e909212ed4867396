"""How a script reports that it was called wrongly: it shows its usage, complains, and ends."""

from __future__ import annotations

import ast
import re

from skillruntime.derive.interpreter.relevance import dotted, nodes_of

__all__ = ["exits_with_error", "gives_up", "only_complains", "shows_usage"]

_USAGE = re.compile(r"(?i)\busage\b\s*(?::|is\b|$|\n)")
_COMPLAINTS = (
    "UsageError",
    "BadParameter",
    "BadArgumentUsage",
    "BadOptionUsage",
    "MissingParameter",
    "ClickException",
    *("ArgumentError", "ArgumentTypeError", "ValueError"),
)
_OUTPUT = ("print", "write", "error", "log", "warning")
_COMPLAINT = re.compile(
    r"(?i)unknown|invalid|unrecogni[sz]ed|unsupported|not supported|please|missing|must be|expected|required"
)


def shows_usage(node: ast.AST) -> bool:
    """Whether the text at *node* says how the script is used."""
    for each in nodes_of(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and _USAGE.search(each.value):
            return True
        if isinstance(each, ast.Name) and (each.id == "__doc__" or "usage" in each.id.lower()):
            return True
    return False


def only_complains(body: list[ast.stmt], *, instead: list[ast.stmt]) -> bool:
    """Whether *body* only prints something and ends, or only prints a complaint where *instead* does the work."""
    ends = bool(body) and (isinstance(body[-1], ast.Return) or _is_call(body[-1], "exit", "quit"))
    printed = body[:-1] if ends else body
    if not printed or not all(_is_call(each, *_OUTPUT) for each in printed):
        return False
    return ends or (bool(instead) and any(_COMPLAINT.search(ast.unparse(each)) for each in printed))


def exits_with_error(body: list[ast.stmt]) -> bool:
    """Whether *body* ends the script as one that was called wrongly.

    ``parser.error`` and ``ctx.fail`` do so by themselves; after ``print_help`` scripts exit or return.
    """
    calls = [each.value.func for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)]
    methods = [each for each in calls if isinstance(each, ast.Attribute)]
    if any(each.attr in ("print_help", "print_usage", "fail") or _is_parser_error(each) for each in methods):
        return True
    match body[-1]:
        # ``raise SystemExit``, ``raise typer.Exit`` and ``sys.exit`` say by their status whether it is an error.
        case (
            ast.Raise(exc=ast.Call(func=function, args=given, keywords=named))
            | ast.Expr(value=ast.Call(func=function, args=given, keywords=named))
        ) if dotted(function).rpartition(".")[2] in ("SystemExit", "exit", "quit", "Exit", "_exit"):
            status = [*given, *(each.value for each in named)][:1]
            return any(not (isinstance(each, ast.Constant) and each.value in (0, None)) for each in status)
        case ast.Raise(exc=ast.Call(func=function)):
            return dotted(function).rpartition(".")[2] in _COMPLAINTS
        # ``sys.exit(main())``: what ``main`` returns is the status.
        case ast.Return(value=ast.Constant(value=int(status))):
            return not isinstance(status, bool) and status != 0
    return False


def _is_parser_error(function: ast.Attribute) -> bool:
    return function.attr == "error" and "log" not in dotted(function.value).lower()


def gives_up(body: list[ast.stmt]) -> bool:
    """Whether an ``except`` clause ends the script or the function."""
    last = body[-1]
    if isinstance(last, ast.Raise | ast.Return) or shows_usage(last):
        return True
    return _is_call(last, "exit", "quit", "_exit")


def _is_call(node: ast.stmt, *names: str) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return dotted(node.value.func).rpartition(".")[2] in names
