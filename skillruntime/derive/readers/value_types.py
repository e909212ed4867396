"""What a ``type=`` of a script's argument takes: known converters, and functions of a
known shape.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skillruntime.derive.command import TEXT, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.python_values import (
    Called,
    Enumeration,
    Function,
    Member,
    Symbol,
    all_nodes,
    dotted,
    once_for_each,
)

__all__ = [
    "INTEGER",
    "NUMBER",
    "PATH",
    "fits",
    "ranged",
    "read_type",
    "refuses_values",
    "to_json",
]

PATH = ValueType({"type": "string", "format": "path"})
INTEGER = ValueType({"type": "integer"})
NUMBER = ValueType({"type": "number"})
_KNOWN = {
    **dict.fromkeys(("builtins.str", "builtins.str.lower", "builtins.str.upper"), TEXT),
    "builtins.int": INTEGER,
    "builtins.float": NUMBER,
    "decimal.Decimal": NUMBER,
    # ``bool("False")`` is true: only the empty text is false.
    "builtins.bool": ValueType(
        {"type": "boolean"}, {"words": [[True, "True"], [False, ""]]}
    ),
    "json.loads": ValueType(
        {"type": ["object", "array", "number", "boolean", "null"]}, "json"
    ),
    "datetime.date.fromisoformat": ValueType({"type": "string", "format": "date"}),
    "uuid.UUID": ValueType({"type": "string", "format": "uuid"}),
    **dict.fromkeys(("pathlib.Path", "argparse.FileType", "builtins.open"), PATH),
    **{f"os.path.{each}": PATH for each in ("abspath", "realpath", "expanduser")},
}
_KINDS: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def read_type(value: Any) -> ValueType:
    """Return what the converter *value* takes; text, and ``unsure``, where it is
    unknown.
    """
    match value:
        case None:
            return TEXT
        # Known by its full name, however the script imported it.
        case Symbol(name=name) | Called(name=name) if name in _KNOWN:
            return _KNOWN[name]
        case ast.FunctionDef(name=name):
            return _read_function(value) or ValueType(
                TEXT.schema, unsure=f"{name}() converts it"
            )
        # `_get_value` (argparse.py, line 2521) calls the enumeration with the text.
        case Enumeration(members=members) if texts := [
            each.value for each in members if isinstance(each.value, str)
        ]:
            return ValueType({"type": "string", "enum": texts})
        case Symbol(name=name):
            return ValueType(
                TEXT.schema, unsure=f"{name.rpartition('.')[2]}() converts it"
            )
    return ValueType(TEXT.schema, unsure="its type is computed")


def ranged(value: ValueType, edges: Mapping[str, Any]) -> ValueType:
    """Return *value*, a number, from ``min`` to ``max`` of *edges*; an open or clamping
    range is not declared.
    """
    if (
        value.schema.get("type") not in ("integer", "number")
        or {"clamp", "min_open", "max_open"} & edges.keys()
    ):
        return value
    limits = (("minimum", edges.get("min")), ("maximum", edges.get("max")))
    return replace(
        value,
        schema={
            **value.schema,
            **{name: edge for name, edge in limits if type(edge) in (int, float)},
        },
    )


def refuses_values(value: Any) -> bool:
    """Whether *value*, a converter or callback of the script, may refuse what it is
    given.
    """
    return isinstance(value, Function) and _may_refuse(value)


@once_for_each
def _may_refuse(function: Function) -> bool:
    nodes = all_nodes(function)
    calls = {
        dotted(each.func).rpartition(".")[2]
        for each in nodes
        if isinstance(each, ast.Call)
    }
    return bool(calls & {"int", "float", "strptime"}) or any(
        isinstance(each, ast.Raise) for each in nodes
    )


@once_for_each
def _read_function(node: Function) -> ValueType | None:
    """Read a function of one parameter by its shape; None where the shape is not
    known.
    """
    nodes = all_nodes(node)
    # ``def positive(text): value = int(text); ...``: beside messages its text is only
    # converted, once.
    name = node.args.args[0].arg if node.args.args else ""
    quoted = [each for each in nodes if isinstance(each, ast.Raise | ast.JoinedStr)]
    aside = {id(inner) for each in quoted for inner in all_nodes(each)}
    uses = [
        each
        for each in nodes
        if isinstance(each, ast.Name) and each.id == name and id(each) not in aside
    ]
    for each in nodes:
        if (
            isinstance(each, ast.Call)
            and len(each.args) == 1
            and uses == [each.args[0]]
        ):
            return {"int": INTEGER, "float": NUMBER, "Path": PATH}.get(
                dotted(each.func)
            )
    return None


def to_json(value: Any) -> Any:
    """Return the constant *value* as a JSON value; ABSENT where it is none."""
    match value:
        case Member():
            return to_json(value.value)
        case None | bool() | int() | str():
            return value
        case float():
            # JSON has neither NaN nor infinity (RFC 8259, section 6).
            return value if value == value and abs(value) != float("inf") else ABSENT
        case list() | tuple():
            items = [to_json(item) for item in value]
            return ABSENT if any(item is ABSENT for item in items) else items
    return ABSENT


def fits(value: Any, schema: Any) -> bool:
    """Whether *value*, one value and not a list, is what *schema* of a `ValueType`
    takes.
    """
    kind = str(schema.get("type"))
    if not isinstance(value, _KINDS.get(kind, object)) or (
        isinstance(value, bool) and kind != "boolean"
    ):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    # A default outside the workspace is the script's business: declared, it would make
    # a call fail that leaves it out.
    is_outside = isinstance(value, str) and (
        value[:1] in ("/", "~") or ".." in value or value == "-" or value[1:2] == ":"
    )
    return schema.get("format") != "path" or not is_outside
