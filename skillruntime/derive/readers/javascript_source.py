"""A JavaScript source as its syntax tree, with the literals in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import tree_sitter_javascript
from tree_sitter import Language, Node

from skillruntime.derive.interpreter.values import UNKNOWN
from skillruntime.derive.readers.syntax_tree import parse_within_limit, text_of

__all__ = [
    *("arguments_of", "calls_of", "chained_calls", "constants_of", "literal"),
    *("nodes_of", "owner_of", "parse"),
]

_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}
_ESCAPES = {"n": "\n", "t": "\t"}
_MAX_DEPTH = 30


@cache
def _language() -> Language:
    return Language(tree_sitter_javascript.language())


# At the end of a file of these, tree-sitter's recovery takes the square of their number, and calls nothing back:
# ``||a=>;`` over 19 KB took 8 seconds. No script that runs has one, outside its texts.
_WITHOUT_BODY = re.compile(r"=>\s*(?:[;,)\]}:?.*%=&|>^]|$)")
_WITHOUT_BODY_LIMIT = 200


def parse(source: str) -> Node | None:
    """Return the root of the syntax tree of *source*; None where parsing takes too long."""
    if len(_WITHOUT_BODY.findall(source)) > _WITHOUT_BODY_LIMIT:
        return None
    return parse_within_limit(_language(), source.encode("utf-8", "replace"))


def nodes_of(node: Node, *kinds: str) -> Iterator[Node]:
    """Yield the nodes of these *kinds* below *node*, in the order of the source."""
    pending = [node]
    while pending:
        each = pending.pop()
        if each.type in kinds:
            yield each
        pending += reversed(each.named_children)


def calls_of(root: Node) -> Iterator[tuple[str, Node]]:
    """Yield each call with the last name of what is called: ``option`` for ``program.option(...)``."""
    for node in nodes_of(root, "call_expression"):
        function = node.child_by_field_name("function")
        if function is not None and function.type == "member_expression":
            function = function.child_by_field_name("property")
        yield text_of(function), node


def chained_calls(root: Node) -> list[tuple[str, Node]]:
    """Return the calls of *root* in the order in which they run: in a chain the inner one is the first."""
    return sorted(calls_of(root), key=lambda each: (each[1].child_by_field_name("function") or each[1]).end_byte)


def owner_of(call: Node) -> Node | None:
    """Return what the method of *call* belongs to: ``program`` in ``program.option(...)``."""
    function = call.child_by_field_name("function")
    return function.child_by_field_name("object") if function is not None else None


def arguments_of(call: Node, names: dict[str, Any]) -> list[Any]:
    """Return the values of the arguments of *call*; *names* are constants that they may name."""
    arguments = call.child_by_field_name("arguments")
    return [literal(each, names) for each in arguments.named_children if each.type != "comment"] if arguments else []


def constants_of(root: Node) -> dict[str, Any]:
    """Return the known values of what is declared, by name."""
    names: dict[str, Any] = {}
    for node in nodes_of(root, "variable_declarator"):
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        # A destructured name has no value of its own here.
        if name is not None and name.type == "identifier" and value is not None and len(names) < 200:
            names[text_of(name)] = literal(value, names)
    return names


def literal(node: Node | None, names: dict[str, Any], depth: int = 0) -> Any:
    """Return the value of a literal; UNKNOWN for everything else.

    >>> literal(parse("({type: 'string', multiple: true})").named_children[0].named_children[0], {})
    {'type': 'string', 'multiple': True}
    """
    if node is None or depth > _MAX_DEPTH:
        return UNKNOWN
    match node.type:
        case "parenthesized_expression":
            return literal(node.named_children[0], names, depth + 1) if node.named_children else UNKNOWN
        case "string":
            return re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), text_of(node)[1:-1])
        # A template without substitutions is a plain text.
        case "template_string" if not any(each.type == "template_substitution" for each in node.named_children):
            return text_of(node)[1:-1]
        case "number":
            return _number(text_of(node))
        case "unary_expression" if text_of(node).startswith("-"):
            value = literal(node.named_children[-1], names, depth + 1)
            return -value if isinstance(value, int | float) else UNKNOWN
        case "true" | "false" | "null" | "undefined":
            return _CONSTANTS[node.type]
        case "identifier":
            return _CONSTANTS.get(text_of(node), names.get(text_of(node), UNKNOWN))
        case "array":
            return [literal(each, names, depth + 1) for each in node.named_children if each.type != "comment"]
        case "object":
            return _object(node, names, depth)
        # Long help texts are often joined from lines.
        case "binary_expression" if text_of(node.child_by_field_name("operator")) == "+":
            sides = [literal(node.child_by_field_name(side), names, depth + 1) for side in ("left", "right")]
            return sides[0] + sides[1] if all(isinstance(each, str) for each in sides) else UNKNOWN
    return UNKNOWN


def _object(node: Node, names: dict[str, Any], depth: int) -> Any:
    made: dict[str, Any] = {}
    for each in node.named_children:
        if each.type == "shorthand_property_identifier":
            made[text_of(each)] = names.get(text_of(each), UNKNOWN)
        elif each.type == "pair":
            key, value = each.child_by_field_name("key"), each.child_by_field_name("value")
            if key is None or key.type == "computed_property_name":
                return UNKNOWN
            made[text_of(key).strip("'\"")] = literal(value, names, depth + 1)
        # ``{...defaults, a: 1}`` has more members than are written here.
        elif each.type != "comment":  # a spread or a method
            return UNKNOWN
    return made


def _number(text: str) -> Any:
    try:
        return int(text.replace("_", ""), 0)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return UNKNOWN
