"""Read the values that the ``type=`` of a script's argument accepts: known converters,
and functions of a known shape.
"""

from __future__ import annotations

import ast
from math import isfinite
from typing import Any

from skillruntime.derive.command import TEXT, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.python_nodes import Function, all_nodes
from skillruntime.derive.readers.python_values import (
    Called,
    Enumeration,
    Member,
    Symbol,
    dotted,
    once_for_each,
)

__all__ = [
    "INTEGER",
    "NUMBER",
    "PATH",
    "fits",
    "read_type",
    "refuses_values",
    "to_json",
]

PATH = ValueType({"type": "string", "format": "path"})
INTEGER = ValueType({"type": "integer"})
NUMBER = ValueType({"type": "number"})
_KNOWN = {
    "builtins.str": TEXT,
    "builtins.str.lower": TEXT,
    "builtins.str.upper": TEXT,
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
    "pathlib.Path": PATH,
    "argparse.FileType": PATH,
    "builtins.open": PATH,
    "os.path.abspath": PATH,
    "os.path.realpath": PATH,
    "os.path.expanduser": PATH,
}
_CONVERTERS = {"int": INTEGER, "float": NUMBER, "Path": PATH}
_KINDS: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def read_type(value: Any) -> ValueType:
    """Return the values that the converter *value* accepts; for an unknown converter,
    text with ``unsure`` set.
    """
    match value:
        case None:
            return TEXT
        # Known by its full name, however the script imported it.
        case Symbol(name=name) | Called(name=name) if name in _KNOWN:
            return _KNOWN[name]
        case ast.FunctionDef(name=name):
            return _read_function(value) or _converted_by(name)
        case Enumeration(members=members):
            # `_get_value` (argparse.py, line 2521) calls the enumeration with the text.
            texts = [each.value for each in members if isinstance(each.value, str)]
            if texts:
                return ValueType({"type": "string", "enum": texts})
        case Symbol(name=name):
            return _converted_by(name.rpartition(".")[2])
    return ValueType(TEXT.schema, unsure="its type is computed")


def _converted_by(name: str) -> ValueType:
    return ValueType(TEXT.schema, unsure=f"{name}() converts it")


def refuses_values(value: Any) -> bool:
    """Return whether *value*, a converter or callback of the script, may refuse its
    argument.
    """
    return isinstance(value, Function) and _may_refuse(value)


@once_for_each
def _may_refuse(function: Function) -> bool:
    for node in all_nodes(function):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call):
            name = dotted(node.func).rpartition(".")[2]
            if name in ("int", "float", "strptime"):
                return True
    return False


@once_for_each
def _read_function(node: Function) -> ValueType | None:
    """Read the type that a function with one parameter converts to; None if its shape
    is unknown.
    """
    nodes = all_nodes(node)
    parameter = node.args.args[0].arg if node.args.args else ""
    # ``def positive(text): value = int(text); ...``: except in messages, the text is
    # used once, to convert it.
    in_messages: set[int] = set()
    for part in nodes:
        if isinstance(part, ast.Raise | ast.JoinedStr):
            in_messages.update(map(id, all_nodes(part)))
    uses = [
        part for part in nodes if isinstance(part, ast.Name) and part.id == parameter
    ]
    uses = [use for use in uses if id(use) not in in_messages]
    for part in nodes:
        if isinstance(part, ast.Call) and len(part.args) == 1 and uses == part.args:
            return _CONVERTERS.get(dotted(part.func))
    return None


def to_json(value: Any) -> Any:
    """Return the constant *value* as a JSON value; ABSENT if that is impossible."""
    match value:
        case Member():
            return to_json(value.value)
        case None | bool() | int() | str():
            return value
        case float():
            # JSON has neither NaN nor infinity (RFC 8259, section 6).
            return value if isfinite(value) else ABSENT
        case list() | tuple():
            items = [to_json(item) for item in value]
            if not any(item is ABSENT for item in items):
                return items
    return ABSENT


def fits(value: Any, schema: Any) -> bool:
    """Return whether the single *value* fits *schema*, the schema of a `ValueType`."""
    kind = str(schema.get("type"))
    if not isinstance(value, _KINDS.get(kind, object)):
        return False
    if isinstance(value, bool) and kind != "boolean":
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if schema.get("format") == "path" and isinstance(value, str):
        return _is_inside(value)
    return True


def _is_inside(path: str) -> bool:
    """Return whether *path* is inside the workspace.

    A default outside it is not declared: otherwise a call that leaves the argument out
    would fail.
    """
    if path.startswith(("/", "~")) or path[1:2] == ":":
        return False
    return path != "-" and ".." not in path
