"""How a script reports that it was called wrongly: it shows its usage, complains, and ends."""

from __future__ import annotations

import ast
import re

from skillruntime.derive.interpreter.relevance import dotted, nodes_of

__all__ = ["gives_up", "only_complains", "shows_usage"]

_USAGE = re.compile(r"(?i)\busage\b\s*(?::|is\b|$|\n)")
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
