"""What an argparse script refuses after parsing: ``if not args.input and not args.url: parser.error(...)``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from skillruntime.derive.interpreter.relevance import dotted, nodes_of
from skillruntime.derive.readers.argparse_model import ParserModel

__all__ = ["demanded"]

_NAMESPACE = re.compile(r"^[ \t]*(\w+)[ ]*(?::[^=\n]+)?=[ ]*[^=\n]*\bparse_args\(", re.MULTILINE)
_ASSIGNED = re.compile(r"\b(\w+)\.(\w+)[ ]*[-+*/|&]?=(?!=)")
_COMPLAINS = frozenset(("error", "print_help", "print_usage"))


def demanded(tree: ast.Module, text: str, parser: ParserModel) -> list[list[str]]:
    """Return the groups of destinations of which the script demands one, a single one where it is required.

    A destination that has a default, or that the script assigns to, may be filled without the command line. *text* is
    the source of *tree*: names are found in it many times faster than by walking the tree.
    """
    tests = list(_refused(tree.body))
    names = set(_NAMESPACE.findall(text)) if tests else set()
    if not names:
        return []
    filled = {name for owner, name in _ASSIGNED.findall(text) if owner in names}
    # ``default=None`` is argparse's own.
    for asked in parser.asked:
        if asked.named.get("default") is not None or asked.named.get("action") not in (None, "store", "append"):
            flags = [each.lstrip("-").replace("-", "_") for each in asked.arguments if isinstance(each, str)]
            filled |= {str(asked.named["dest"])} if "dest" in asked.named else set(flags)
    filled |= parser.defaults.keys()
    found: list[list[str]] = []
    for test in tests:
        # ``if a or b: error`` refuses for each; ``if not a and not b`` where none is given.
        alternatives = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
        for each in alternatives:
            group = _missing(each, names)
            if group and filled.isdisjoint(group) and group not in found:
                found.append(group)
    return found


def _refused(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """Yield the conditions under which the script shows its usage; those inside other conditions are left out."""
    has_demand = any(isinstance(each, ast.If) and not each.orelse and _complains(each.body) for each in body)
    for statement in body:
        match statement:
            case ast.If(test=test, body=inner, orelse=[]) if _complains(inner):
                yield test
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=inner):
                yield from _refused(inner)
            # ``if args.version: print(...); return``: such a call demands nothing of what follows.
            case ast.If() if has_demand and any(map(_leaves, nodes_of(statement))):
                return
            case ast.FunctionDef(body=inner) | ast.AsyncFunctionDef(body=inner) | ast.Try(body=inner):
                yield from _refused(inner)


def _leaves(node: ast.AST) -> bool:
    return isinstance(node, ast.Return) or (
        isinstance(node, ast.Call) and dotted(node.func) in ("sys.exit", "exit", "quit")
    )


def _complains(body: list[ast.stmt]) -> bool:
    calls = [each.value.func for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)]
    return any(isinstance(each, ast.Attribute) and each.attr in _COMPLAINS for each in calls)


def _missing(test: ast.expr, names: set[str]) -> list[str]:
    """Return the destinations of which none is given where *test* holds; nothing where it says anything else."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(value=ast.Name(id=owner), attr=name)) if owner in names:
            return [name]
        case ast.Compare(
            left=ast.Attribute(value=ast.Name(id=owner), attr=name), ops=[ast.Is()], comparators=[ast.Constant(None)]
        ) if owner in names:
            return [name]
        case ast.BoolOp(op=ast.And(), values=values):
            inner = [_missing(each, names) for each in values]
        # ``not (args.a or args.b)``, ``not any([args.a, args.b])``.
        case ast.UnaryOp(
            op=ast.Not(),
            operand=ast.BoolOp(op=ast.Or(), values=values)
            | ast.Call(func=ast.Name(id="any"), args=[ast.List(elts=values) | ast.Tuple(elts=values)]),
        ):
            inner = [_missing(ast.UnaryOp(ast.Not(), each), names) for each in values]
        case _:
            return []
    return [name for group in inner for name in group] if all(len(each) == 1 for each in inner) else []
