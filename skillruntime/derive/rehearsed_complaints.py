"""How a script says that it was called wrongly: it tells its usage, complains, and leaves."""

from __future__ import annotations

import ast
import re

from skillruntime.derive.rehearsed_source import dotted

__all__ = ["gives_up", "only_complains", "tells_usage"]

_USAGE = re.compile(r"(?i)\busage\b\s*(?::|is\b|$|\n)")
_SAYS = ("print", "write", "error", "log", "warning")
_COMPLAINT = re.compile(
    r"(?i)unknown|invalid|unrecogni[sz]ed|unsupported|not supported|please|missing|must be|expected|required"
)


def tells_usage(node: ast.AST) -> bool:
    """Whether what is said at *node* is how the script is used."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and _USAGE.search(each.value):
            return True
        if isinstance(each, ast.Name) and (each.id == "__doc__" or "usage" in each.id.lower()):
            return True
    return False


def only_complains(body: list[ast.stmt], *, instead: list[ast.stmt]) -> bool:
    """Whether nothing is done but to say something and to leave, or that something is wrong, *instead* of work."""
    leaves = bool(body) and (isinstance(body[-1], ast.Return) or _is_call(body[-1], "exit", "quit"))
    said = body[:-1] if leaves else body
    if not said or not all(_is_call(each, *_SAYS) for each in said):
        return False
    return leaves or (bool(instead) and any(_COMPLAINT.search(ast.unparse(each)) for each in said))


def _is_call(node: ast.stmt, *names: str) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return dotted(node.value.func).rpartition(".")[2] in names


def gives_up(body: list[ast.stmt]) -> bool:
    """Whether a handler does not go on with what it caught."""
    last = body[-1]
    if isinstance(last, ast.Raise | ast.Return) or tells_usage(last):
        return True
    return _is_call(last, "exit", "quit", "_exit")
