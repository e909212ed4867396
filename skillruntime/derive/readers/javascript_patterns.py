"""What a JavaScript pattern takes apart, as Python assignments: ``const [a, b = 1, ...rest]``, ``const { x } =``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TypeAlias

from tree_sitter import Node

from skillruntime.derive.readers.javascript_methods import argv, item_of
from skillruntime.derive.readers.syntax_tree import text_of

__all__ = ["parameters_of", "unpacked", "unpacked_object"]

_Value: TypeAlias = Callable[[Node | None], ast.expr]


def unpacked(
    pattern: Node, source: Node | None, value: _Value, target: Callable[[Node | None], ast.expr]
) -> list[ast.stmt]:
    """``const [, , input, output = "x", ...rest] = process.argv``: a missing item is undefined."""
    whole = "argv"  # a usual name of the whole list, so it names none of the words
    made: list[ast.stmt] = [ast.Assign([ast.Name(whole, ast.Store())], value(source))]
    index = 0
    for each in pattern.children:
        if each.type == ",":
            index += 1
        # ``...rest`` takes what is left, which may be nothing.
        elif each.type == "rest_pattern":
            rest = ast.Subscript(ast.Name(whole), ast.Slice(ast.Constant(index)), ast.Load())
            made.append(ast.Assign([target(each.named_children[0])], rest))
        elif each.is_named and each.type != "comment":
            item: ast.expr = item_of(ast.Name(whole), index)
            name: Node | None = each
            # ``output = "x"``: the default is used for undefined.
            if each.type == "assignment_pattern":
                name = each.child_by_field_name("left")
                item = ast.BoolOp(ast.Or(), [item, value(each.child_by_field_name("right"))])
            made.append(ast.Assign([target(name)], item))
    return made


def unpacked_object(pattern: Node, source: Node | None, value: _Value, whole: str) -> list[ast.stmt]:
    """``const { argv } = require("process")``, ``const { input, output = "x" } = options``."""
    from_process = text_of(source) == "process" or re.fullmatch(
        r"""require\(["'](node:)?process["']\)""", text_of(source)
    )
    made: list[ast.stmt] = [] if from_process else [ast.Assign([ast.Name(whole, ast.Store())], value(source))]
    for each in pattern.named_children:
        name: Node | None = each.child_by_field_name("left") if each.type == "object_assignment_pattern" else each
        key = text_of(name)
        # ``{ input: path }`` names the variable ``path``.
        if each.type == "pair_pattern":
            key, name = text_of(each.child_by_field_name("key")), each.child_by_field_name("value")
        if name is None or name.type not in ("identifier", "shorthand_property_identifier_pattern"):
            continue
        item: ast.expr = ast.Attribute(ast.Name(whole, ast.Load()), key, ast.Load())
        if from_process:
            if key != "argv":
                continue
            item = argv()
        elif each.type == "object_assignment_pattern":
            item = ast.BoolOp(ast.Or(), [item, value(each.child_by_field_name("right"))])
        made.append(ast.Assign([ast.Name(text_of(name), ast.Store())], item))
    return made


def parameters_of(node: Node, value: _Value) -> ast.arguments:
    """Return the parameters of a function; each may be left out, and more may be given."""
    listed = node.child_by_field_name("parameters")
    one = node.child_by_field_name("parameter")
    found = listed.named_children if listed is not None else [one] if one is not None else []
    names: list[ast.arg] = []
    rest: ast.arg | None = None
    defaults: list[ast.expr] = []
    for number, each in enumerate(each for each in found if each.type != "comment"):
        if each.type == "rest_pattern":
            rest = ast.arg(text_of(each.named_children[0]))
            continue
        name = each.child_by_field_name("left") if each.type == "assignment_pattern" else each
        plain = name is not None and name.type == "identifier"
        names.append(ast.arg(text_of(name) if plain else f"_parameter_{number}"))
        # A parameter that a call leaves out is undefined.
        right = each.child_by_field_name("right")
        defaults.append(value(right) if right is not None else ast.Constant(None))
    # A call may give more than a function has parameters; the name cannot be one of the script's.
    return ast.arguments([], names, rest or ast.arg(""), [], [], None, defaults)
