"""Functions and methods of JavaScript, as the Python expressions that do the same with a list of words."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tree_sitter import Node

from skillruntime.derive.readers.syntax_tree import text_of

__all__ = [
    "COMPARISONS",
    "FUNCTIONS",
    "LIST_METHODS",
    "METHODS",
    "OPERATORS",
    "argv",
    "called",
    "for_each_call",
    "item_of",
    "pairs_of",
    "slice_of",
]

OPERATORS: dict[str, type[ast.operator]] = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "%": ast.Mod}
COMPARISONS: dict[str, type[ast.cmpop]] = {
    "===": ast.Eq,
    "==": ast.Eq,
    "!==": ast.NotEq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
    "in": ast.In,
}

METHODS = {
    "toLowerCase": "lower",
    "toUpperCase": "upper",
    "trim": "strip",
    "startsWith": "startswith",
    "push": "append",
}
FUNCTIONS = {
    **dict.fromkeys(("parseInt", "Number.parseInt"), "node.parseInt"),
    **dict.fromkeys(("parseFloat", "Number", "Number.parseFloat"), "node.Number"),
    **dict.fromkeys(("isNaN", "Number.isNaN"), "node.isNaN"),
    **dict.fromkeys(("Number.isFinite", "isFinite"), "node.isFinite"),
    **dict.fromkeys(("Number.isInteger", "Number.isSafeInteger"), "node.isInteger"),
    "Object.keys": "list",
    "String": "str",
    "JSON.parse": "node.JSON.parse",
    "path.resolve": "node.path.resolve",
    "resolve": "node.path.resolve",
    **dict.fromkeys(("process.exit", "Deno.exit"), "sys.exit"),
    "Array.from": "list",
    **dict.fromkeys(
        ("fs.readFileSync", "readFileSync", "fs.readFile", "readFile", "fs.promises.readFile"), "node.fs.readFile"
    ),
}


def argv() -> ast.expr:
    """Return ``["node", *sys.argv]``: Node puts its own path in front."""
    words = ast.Attribute(ast.Name("sys", ast.Load()), "argv", ast.Load())
    return ast.List([ast.Constant("node"), ast.Starred(words, ast.Load())], ast.Load())


def called(name: str, arguments: list[ast.expr]) -> ast.expr:
    return ast.Call(ast.parse(name, mode="eval").body, arguments, [])


def item_of(owner: ast.expr, index: int) -> ast.expr:
    """Return ``owner[index]``, which is undefined where there is none."""
    # The test on the length also records that so many words are expected.
    test = ast.Compare(ast.Call(ast.Name("len", ast.Load()), [owner], []), [ast.Gt()], [ast.Constant(index)])
    return ast.IfExp(test, ast.Subscript(owner, ast.Constant(index), ast.Load()), ast.Constant(None))


def slice_of(owner: ast.expr, given: list[ast.expr]) -> ast.expr:
    return ast.Subscript(owner, ast.Slice(*given[:2]), ast.Load())


def _index_of(owner: ast.expr, given: list[ast.expr]) -> ast.expr | None:
    if len(given) != 1:
        return None
    found = ast.Call(ast.Attribute(owner, "index", ast.Load()), given, [])
    return ast.IfExp(ast.Compare(given[0], [ast.In()], [owner]), found, ast.Constant(-1))


def _shift(owner: ast.expr, given: list[ast.expr]) -> ast.expr:
    first = ast.Call(ast.Attribute(owner, "pop", ast.Load()), [ast.Constant(0)], [])
    test = ast.Compare(ast.Call(ast.Name("len", ast.Load()), [owner], []), [ast.Gt()], [ast.Constant(0)])
    return ast.IfExp(test, first, ast.Constant(None))


def _matching(owner: ast.expr, given: list[ast.expr]) -> ast.ListComp | None:
    """Return the items for which a function holds, or None for a function that is not one expression."""
    if len(given) != 1 or not isinstance(given[0], ast.Lambda) or len(given[0].args.args) != 1:
        return None
    name = given[0].args.args[0].arg
    rounds = ast.comprehension(ast.Name(name, ast.Store()), owner, [given[0].body], 0)
    return ast.ListComp(ast.Name(name, ast.Load()), [rounds])


def _find(owner: ast.expr, given: list[ast.expr]) -> ast.expr | None:
    found = _matching(owner, given)
    return None if found is None else called("node.item", [found, ast.Constant(0)])


def _function(node: ast.expr) -> ast.expr:
    """Return what ``.map(Number)`` calls."""
    known = FUNCTIONS.get(ast.unparse(node)) if isinstance(node, ast.Name | ast.Attribute) else None
    return node if known is None else ast.parse(known, mode="eval").body


def _includes(owner: ast.expr, given: list[ast.expr]) -> ast.expr | None:
    return ast.Compare(given[0], [ast.In()], [owner]) if len(given) == 1 else None


def _some(owner: ast.expr, given: list[ast.expr]) -> ast.expr | None:
    found = _matching(owner, given)
    return None if found is None else ast.Compare(called("len", [found]), [ast.Gt()], [ast.Constant(0)])


def pairs_of(arguments: Node | None) -> list[list[Node]]:
    """Return the keys and values of ``new Map([["on", on], ["off", off]])``; nothing for any other argument."""
    listed = arguments.named_children[0] if arguments is not None and arguments.named_children else None
    pairs = [each.named_children for each in listed.named_children] if listed and listed.type == "array" else []
    return pairs if all(len(each) == 2 for each in pairs) else []


LIST_METHODS: dict[str, Callable[[ast.expr, list[ast.expr]], ast.expr | None]] = {
    **dict.fromkeys(("slice", "substring"), slice_of),
    "reduce": lambda owner, given: called("node.reduce", [owner, *given]) if len(given) == 2 else None,
    "indexOf": _index_of,
    "shift": _shift,
    "filter": _matching,
    **dict.fromkeys(("has", "hasOwnProperty", "includes"), _includes),
    "find": _find,
    "some": _some,
    "at": lambda owner, given: called("node.item", [owner, given[0]]) if len(given) == 1 else None,
    "join": lambda owner, given: ast.Call(
        ast.Attribute(given[0] if given else ast.Constant(","), "join", ast.Load()), [owner], []
    ),
    "map": lambda owner, given: called("map", [_function(given[0]), owner]) if len(given) == 1 else None,
}


def for_each_call(node: Node) -> tuple[Node, Node] | None:
    """Return the list and the function of ``list.forEach(function)``."""
    function = node.child_by_field_name("function") if node.type == "call_expression" else None
    given = node.child_by_field_name("arguments")
    if function is None or given is None or text_of(function.child_by_field_name("property")) != "forEach":
        return None
    owner = function.child_by_field_name("object")
    callback = given.named_children[0] if given.named_children else None
    if owner is None or callback is None or callback.type not in ("arrow_function", "function_expression"):
        return None
    return owner, callback
