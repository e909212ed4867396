"""What a ``type=`` of a script's argument takes: known converters, and functions of a known shape."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.command import TEXT, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.python_values import Called, Enumeration, Member, Symbol, dotted

__all__ = ["DATE_TIME", "INTEGER", "NUMBER", "PATH", "fits", "read_type", "refuses_values", "to_json"]

PATH = ValueType({"type": "string", "format": "path"})
INTEGER = ValueType({"type": "integer"})
NUMBER = ValueType({"type": "number"})
DATE_TIME = ValueType({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}:\d{2})?$"})
"""The formats of click's `DateTime` where none are given, and of typer's ``datetime``."""

_JSON = ValueType({"type": ["object", "array", "number", "boolean", "null"]}, "json")
_PATHS = (
    "pathlib.Path",
    "pathlib.PurePath",
    "os.path.abspath",
    "os.path.realpath",
    "os.path.expanduser",
    "os.path.normpath",
)
_TEXTS = ("builtins.str.lower", "builtins.str.upper", "builtins.str.strip", "builtins.ascii", "builtins.repr")
_KNOWN = {
    "builtins.str": TEXT,
    "builtins.int": INTEGER,
    "builtins.float": NUMBER,
    "decimal.Decimal": NUMBER,
    # ``bool("False")`` is true: only the empty text is false.
    "builtins.bool": ValueType({"type": "boolean"}, {"words": [[True, "True"], [False, ""]]}),
    "json.loads": _JSON,
    "datetime.date.fromisoformat": ValueType({"type": "string", "format": "date"}),
    "uuid.UUID": ValueType({"type": "string", "format": "uuid"}),
    "argparse.FileType": PATH,
    "builtins.open": PATH,
    **dict.fromkeys(_PATHS, PATH),
    **dict.fromkeys(_TEXTS, TEXT),
}
_CONVERTERS = {"int": INTEGER, "float": NUMBER, "Path": PATH, "pathlib.Path": PATH}
_KINDS: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


def read_type(value: Any) -> ValueType:
    """Return what the converter *value* takes; text, and ``unsure``, where it is unknown."""
    match value:
        case None:
            return TEXT
        # Known by its full name, however the script imported it.
        case Symbol(name=name) | Called(name=name) if name in _KNOWN:
            return _KNOWN[name]
        case ast.FunctionDef():
            return _read_function(value) or ValueType(TEXT.schema, unsure=f"{value.name}() converts it")
        # `_get_value` (argparse.py, line 2521) calls the enumeration with the text.
        case Enumeration(members=members):
            texts = [member.value for member in members if isinstance(member.value, str)]
            return (
                ValueType({"type": "string", "enum": texts})
                if texts
                else ValueType(TEXT.schema, unsure="it is computed")
            )
        case Symbol(name=name):
            return ValueType(TEXT.schema, unsure=f"{name.rpartition('.')[2]}() converts it")
        case _:
            return ValueType(TEXT.schema, unsure="its type is computed")


def refuses_values(value: Any) -> bool:
    """Whether *value*, a converter or callback of the script, may refuse what it is given."""
    return isinstance(value, ast.FunctionDef) and any(
        isinstance(each, ast.Raise)
        or (isinstance(each, ast.Call) and dotted(each.func).rpartition(".")[2] in ("int", "float", "strptime"))
        for each in ast.walk(value)
    )


def _read_function(node: ast.FunctionDef) -> ValueType | None:
    """Read a function of one parameter by its shape; None where the shape is not known."""
    parameters = [*node.args.posonlyargs, *node.args.args]
    if len(parameters) != 1:
        return None
    if words := _boolean_words(node):
        return ValueType({"type": "boolean"}, {"words": [[True, words[0]], [False, words[1]]]})
    # ``def positive(text): value = int(text); ...; return value``: its text is only converted, once.
    name = parameters[0].arg
    uses = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    quoted = {
        id(inner) for each in ast.walk(node) if isinstance(each, ast.Raise | ast.JoinedStr) for inner in ast.walk(each)
    }
    kinds: list[ValueType] = []
    for each in ast.walk(node):
        match each:
            case ast.Call(func=function, args=[ast.Name(id=same) as used]) if (
                same == name and dotted(function) in _CONVERTERS
            ):
                kinds.append(_CONVERTERS[dotted(function)])
                quoted.add(id(used))
    if len(kinds) == 1 and all(id(each) in quoted for each in uses):
        return kinds[0]
    return None


def _boolean_words(node: ast.FunctionDef) -> tuple[str, str] | None:
    """The words that a function like ``str2bool`` takes for yes and no: both are listed in its tests."""
    words: set[Any] = set()
    returns = {
        each.value.value
        for each in ast.walk(node)
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Constant)
    }
    for each in ast.walk(node):
        if isinstance(each, ast.Compare):
            words |= {
                item.value for one in each.comparators for item in ast.walk(one) if isinstance(item, ast.Constant)
            }
    if not {True, False} <= returns:
        return None
    pairs = (("true", "false"), ("yes", "no"), ("y", "n"), ("1", "0"), ("True", "False"))
    return next((pair for pair in pairs if words >= set(pair)), None)


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
    """Whether *value*, one value and no list, is what *schema* of a `ValueType` takes."""
    kind = str(schema.get("type"))
    if not isinstance(value, _KINDS.get(kind, object)) or (isinstance(value, bool) and kind != "boolean"):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    # A default outside the workspace is the script's business: declared, it would make a call fail that leaves it out.
    if schema.get("format") == "path":
        return (
            isinstance(value, str)
            and value[:1] not in ("/", "~")
            and ".." not in value
            and value != "-"
            and value[1:2] != ":"
        )
    return True
