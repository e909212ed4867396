"""What a ``type=`` of a script's argument takes: known converters, and functions of a known shape."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.command import TEXT, ValueType
from skillruntime.derive.interpreter.relevance import dotted
from skillruntime.derive.interpreter.state import State, evaluate
from skillruntime.derive.interpreter.values import (
    BoundMethod,
    ClassValue,
    ForeignCall,
    FunctionValue,
    Symbol,
    is_constant,
)

__all__ = ["DATE_TIME", "PATH", "REFUSED_BY_CALLBACK", "read_type", "refuses_values"]

PATH = ValueType({"type": "string", "format": "path"})
DATE_TIME = ValueType({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}:\d{2})?$"})
"""The formats of click's `DateTime` where none are given, and of typer's ``datetime``."""

_INTEGER = ValueType({"type": "integer"})
_NUMBER = ValueType({"type": "number"})
_DATE = ValueType({"type": "string", "format": "date"})
_JSON = ValueType({"type": ["object", "array", "number", "boolean", "null"]}, "json")
_LITERAL = ValueType({"type": ["object", "array", "number", "boolean", "null"]}, "python")

_KNOWN = {
    "builtins.str": TEXT,
    "builtins.int": _INTEGER,
    "builtins.float": _NUMBER,
    "decimal.Decimal": _NUMBER,
    "fractions.Fraction": _NUMBER,
    # ``bool("False")`` is true: only the empty text is false.
    "builtins.bool": ValueType({"type": "boolean"}, {"words": [[True, "True"], [False, ""]]}),
    "json.loads": _JSON,
    "yaml.safe_load": _JSON,
    "ast.literal_eval": _LITERAL,
    "datetime.date.fromisoformat": _DATE,
    "uuid.UUID": ValueType({"type": "string", "format": "uuid"}),
    # It knows y, yes, t, true, on, 1 and their opposites (distutils/util.py).
    "distutils.util.strtobool": ValueType({"type": "boolean"}, {"words": [[True, "true"], [False, "false"]]}),
    **dict.fromkeys(("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath"), PATH),
    **dict.fromkeys(("os.path.abspath", "os.path.realpath", "os.path.expanduser", "os.path.normpath"), PATH),
    **dict.fromkeys((f"builtins.str.{name}" for name in ("lower", "upper", "strip", "title", "casefold")), TEXT),
    **dict.fromkeys(("datetime.datetime.fromisoformat", "ipaddress.ip_address", "re.compile", "os.fsencode"), TEXT),
    **dict.fromkeys(("os.path.expandvars", "shlex.split", "urllib.parse.urlparse", "dateutil.parser.parse"), TEXT),
}
REFUSED_BY_CALLBACK = "its callback may refuse the value"
_TESTS_OF_PATHS = ("exists", "isfile", "isdir", "is_file", "is_dir")


def read_type(state: State, value: Any) -> ValueType:
    """Return what the converter *value* takes; text, and ``unsure``, where it is unknown."""
    match value:
        case None:
            return TEXT
        # Known by its full name, however the script imported it.
        case Symbol(name=name) if name in _KNOWN:
            return _KNOWN[name]
        case ForeignCall(symbol="argparse.FileType"):
            return PATH
        # ``type=str.lower`` of a text keeps it a text.
        case BoundMethod(receiver=str()):
            return TEXT
        # A function of the script is read by its shape, never called.
        case FunctionValue():
            return _read_function(state, value) or ValueType(TEXT.schema, unsure=f"{value.name}() converts it")
        # ``type=Colour``.
        case ClassValue() if value.members:
            return _read_enum(value)
        case Symbol(name=name):
            # A foreign converter may take any text.
            return ValueType(TEXT.schema, unsure=f"{name.rpartition('.')[2]}() converts it")
        case _:
            return ValueType(TEXT.schema, unsure="its type is computed")


def refuses_values(value: Any) -> bool:
    """Whether *value* is a function of the script that may refuse what it is given."""
    return isinstance(value, FunctionValue) and any(
        isinstance(each, ast.Raise)
        or (isinstance(each, ast.Call) and dotted(each.func).rpartition(".")[2] in ("int", "float", "strptime"))
        for each in ast.walk(value.node)
    )


def _read_enum(kind: ClassValue) -> ValueType:
    """An enumeration is called with the text: only members whose value is text can be meant."""
    # `_get_value` (argparse.py, line 2521) calls the enumeration with the text.
    texts = [member.value for member in kind.members.values() if isinstance(member.value, str)]
    if texts:
        return ValueType({"type": "string", "enum": texts})
    return ValueType(TEXT.schema, unsure=f"text cannot be a {kind.name}")


def _read_function(state: State, function: FunctionValue) -> ValueType | None:
    """Read a function of one parameter by its shape; None where the shape is not known."""
    node = function.node
    parameters = [*node.args.posonlyargs, *node.args.args][1 if function.receiver is not None else 0 :]
    if not parameters:
        return None
    name = parameters[0].arg
    if isinstance(node, ast.Lambda):
        return _read_expression(state, node.body, name, function)
    body = [each for each in node.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
        return _read_expression(state, body[0].value, name, function)
    # ``str2bool``, as it is copied from script to script.
    if words := _boolean_words(node, name):
        return ValueType({"type": "boolean"}, {"words": [[True, words[0]], [False, words[1]]]})
    return _read_converted_once(state, node, name, function)


def _read_expression(state: State, node: ast.expr, name: str, function: FunctionValue) -> ValueType | None:
    match node:
        # ``lambda text: text``.
        case ast.Name(id=same) if same == name:
            return TEXT
        # ``lambda text: int(text)``.
        case ast.Call(func=called, args=[inner], keywords=[]) if _is(inner, name):
            known = evaluate(state, called, function.scope)
            return _KNOWN.get(known.name) if isinstance(known, Symbol) else None
        case ast.Call(func=ast.Name(id="bool"), args=[ast.Call(func=ast.Name(id="int"), args=[inner])]) if _is(
            inner, name
        ):
            return ValueType({"type": "boolean"}, {"words": [[True, "1"], [False, "0"]]})
        case ast.Call(func=ast.Name(id="bool"), args=[inner]):
            return _read_expression(state, inner, name, function)
        case ast.Call(func=ast.Attribute(value=inner, attr=("expanduser" | "resolve" | "absolute")), args=[]):
            found = _read_expression(state, inner, name, function)
            return found if found is PATH else None
        case ast.Call(func=ast.Attribute(value=inner, attr=("lower" | "upper" | "strip")), args=[]) if _is(inner, name):
            return TEXT
        case ast.Call(func=ast.Attribute(value=inner, attr="date"), args=[]):
            return _read_expression(state, inner, name, function)
        case ast.Call(func=ast.Attribute(attr="strptime"), args=[inner, pattern]) if _is(inner, name):
            return _DATE if evaluate(state, pattern, function.scope) == "%Y-%m-%d" else TEXT
        case ast.Compare(left=left, ops=[op], comparators=[right]) if _is_lowered(left, name):
            return _read_comparison(state, op, right, function)
    return _read_split(state, node, name, function)


def _read_comparison(state: State, op: ast.cmpop, right: ast.expr, function: FunctionValue) -> ValueType | None:
    """``text.lower() == "true"``, or ``in`` a list of words."""
    known = evaluate(state, right, function.scope)
    words = [known] if isinstance(known, str) and isinstance(op, ast.Eq) else known
    if (
        not isinstance(op, ast.Eq | ast.In)
        or not isinstance(words, list | tuple)
        or not words
        or not is_constant(words)
    ):
        return None
    # The word that reads best in a log, of those that the function accepts.
    yes = "true" if "true" in words else words[0]
    # Any word that is not listed means no.
    no = next((word for word in ("false", "no", "0") if word not in words), None)
    if not isinstance(yes, str) or no is None:
        return None
    return ValueType({"type": "boolean"}, {"words": [[True, yes], [False, no]]})


def _read_split(state: State, node: ast.expr, name: str, function: FunctionValue) -> ValueType | None:
    """``text.split(",")``, alone or with each part converted."""
    item: Any = {"type": "string"}
    match node:
        case ast.Call(func=ast.Name(id=("list" | "tuple" | "set" | "frozenset")), args=[inner], keywords=[]):
            return _read_split(state, inner, name, function)
        # ``list(map(int, text.split(",")))``.
        case ast.Call(func=ast.Name(id="map"), args=[converter, inner]):
            converted = read_type(state, evaluate(state, converter, function.scope))
            item, node = (None if converted.unsure or converted.encode != "text" else converted.schema), inner
        case (
            ast.ListComp(elt=element, generators=[each])
            | ast.GeneratorExp(elt=element, generators=[each])
            | ast.SetComp(elt=element, generators=[each])
        ) if isinstance(each.target, ast.Name):
            part = each.target.id
            stripped = ast.unparse(element).replace(f"{part}.strip()", part)
            inner_function = ast.parse(stripped, mode="eval").body
            converted_ = _read_expression(state, inner_function, part, function)
            if converted_ is None or converted_.encode != "text" or any(_mentions(test, "len") for test in each.ifs):
                return None
            item, node = converted_.schema, each.iter
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="split"), args=[separator]) if _is_stripped(inner, name):
            text = evaluate(state, separator, function.scope)
            if isinstance(text, str) and text and isinstance(item, dict):
                # An item with the separator in it would become two.
                if item == {"type": "string"} and len(text) == 1:
                    item = {"type": "string", "pattern": "^[^" + ("\\" if text in "\\^]-" else "") + text + "]*$"}
                return ValueType({"type": "array", "items": dict(item), "minItems": 1}, {"join": text})
    return None


def _boolean_words(node: ast.AST, name: str) -> tuple[str, str] | None:
    """The words that a function like ``str2bool`` takes for yes and no: both are listed in its tests."""
    words: list[str] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Compare) and _is_lowered(each.left, name, bare=True):
            for compared in each.comparators:
                listed = compared.elts if isinstance(compared, ast.Tuple | ast.List | ast.Set) else [compared]
                words += [
                    item.value for item in listed if isinstance(item, ast.Constant) and isinstance(item.value, str)
                ]
    for yes, no in (("true", "false"), ("yes", "no"), ("y", "n"), ("1", "0"), ("True", "False")):
        if yes in words and no in words:
            return yes, no
    return None


def _read_converted_once(state: State, node: ast.AST, name: str, function: FunctionValue) -> ValueType | None:
    """A function that passes its text to one known converter, whole, and otherwise only quotes or tests it."""
    uses = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    wrapped: list[ast.AST] = []
    kinds: list[ValueType] = []
    for each in ast.walk(node):
        if isinstance(each, ast.Assign) and any(_is(target, name) for target in each.targets):
            return None
        if isinstance(each, ast.Call) and len(each.args) == 1 and _is(each.args[0], name):
            called = evaluate(state, each.func, function.scope)
            if isinstance(called, Symbol) and called.name in _KNOWN and called.name != "builtins.str":
                kinds.append(_KNOWN[called.name])
                wrapped.append(each.args[0])
            elif isinstance(called, Symbol) and called.name.removeprefix("os.path.") in _TESTS_OF_PATHS:
                kinds.append(PATH)
                wrapped.append(each.args[0])
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "strptime":
            if len(each.args) == 2 and _is(each.args[0], name):
                known = evaluate(state, each.args[1], function.scope) == "%Y-%m-%d"
                kinds.append(_DATE if known else TEXT)
                wrapped.append(each.args[0])
        elif isinstance(each, ast.Raise | ast.JoinedStr):
            wrapped += ast.walk(each)
        elif isinstance(each, ast.Return) and each.value is not None and _is(each.value, name):
            wrapped.append(each.value)
    # The text may only be converted, quoted in a message or returned; any other use may change it.
    if not kinds or any(kind is not kinds[0] for kind in kinds) or any(use not in wrapped for use in uses):
        return None
    # ``if value < 0: raise ArgumentTypeError``: the range is part of the type.
    if kinds[0] in (_INTEGER, _NUMBER):
        return ValueType(dict(kinds[0].schema) | _range(state, node, function))
    return kinds[0]


def _range(state: State, node: ast.AST, function: FunctionValue) -> dict[str, Any]:
    """The range outside which the function raises, where it says so in plain comparisons."""
    found: dict[str, Any] = {}
    for each in ast.walk(node):
        if not (isinstance(each, ast.If) and each.body and isinstance(each.body[0], ast.Raise) and not each.orelse):
            continue
        match each.test:
            case ast.BoolOp(op=ast.Or(), values=tests):
                pass
            case ast.UnaryOp(
                op=ast.Not(), operand=ast.Compare(left=low, ops=[ast.LtE(), ast.LtE()], comparators=[_, high])
            ):
                for key, edge in (("minimum", low), ("maximum", high)):
                    number = evaluate(state, edge, function.scope)
                    found |= {key: number} if isinstance(number, int | float) else {}
                continue
            case other:
                tests = [other]
        for test in tests:
            match test:
                case ast.Compare(left=ast.Name(), ops=[op], comparators=[right]):
                    number = evaluate(state, right, function.scope)
                    keys = {
                        ast.Lt: "minimum",
                        ast.LtE: "exclusiveMinimum",
                        ast.Gt: "maximum",
                        ast.GtE: "exclusiveMaximum",
                    }
                    key_ = keys.get(type(op))
                    if key_ and isinstance(number, int | float) and not isinstance(number, bool):
                        found[key_] = number
    return found


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _mentions(node: ast.AST, name: str) -> bool:
    return any(_is(each, name) for each in ast.walk(node))


def _is_lowered(node: ast.AST, name: str, *, bare: bool = False) -> bool:
    """Whether *node* is the text in lower case, stripped or not."""
    if _is(node, name):
        return bare
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=("lower" | "strip" | "casefold")), args=[]):
            return _is_lowered(inner, name, bare=True)
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return _is(inner, name)
    return False


def _is_stripped(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="strip"), args=[]):
            return _is(inner, name)
    return _is(node, name)
