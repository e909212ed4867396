"""Scripts with fire: the functions that it is given are the declaration (python-fire, "The Python Fire Guide").

Fire reads each value as a Python literal and ignores annotations, so each value is sent as one (``--name='text'``),
and every parameter by its flag. Functions and classes of the file are read; of all else the words stay one list.
"""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.contract.docstring import documented
from skillruntime.derive.command import Argument, Command, Unread, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.relevance import dotted, nodes_of
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.text_fields import first_paragraph

__all__ = ["read_fire"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ANY: dict[str, Any] = {"type": ["string", "number", "boolean", "array", "object"]}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "Path": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array", "items": {}},
    "dict": {"type": "object"},
}


class _NotPlain(Exception):  # noqa: N818  # an answer, not an error
    """The component cannot be read: why."""


def read_fire(tree: ast.Module) -> Reading | None:
    """Return what *tree* gives ``fire.Fire``; None where it does not call it."""
    call = next((each for each in nodes_of(tree) if isinstance(each, ast.Call) and _is_fire(each)), None)
    if call is None:
        return None
    description = first_paragraph(ast.get_docstring(tree))
    try:
        command = _read(tree, call)
    except _NotPlain as reason:
        unread = Unread("arguments", str(reason), call.lineno, is_needed=True)
        command = Command("words", unread=[unread])
    command.description = command.description or description
    return Reading(command, "fire", "medium")


def _is_fire(call: ast.Call) -> bool:
    return dotted(call.func) in ("fire.Fire", "Fire")


def _read(tree: ast.Module, call: ast.Call) -> Command:
    given = [*call.args, *(each.value for each in call.keywords if each.arg == "component")]
    if any(each.arg not in ("component", "name", "serialize") for each in call.keywords) or len(given) > 1:
        raise _NotPlain("fire is given words of its own")
    functions = {each.name: each for each in tree.body if isinstance(each, _Function)}
    if not given:  # all functions of the module, but for the one that calls fire
        own = {name: each for name, each in functions.items() if call not in ast.walk(each)}
        return _commands(own, Command("words"), is_method=False)
    classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    match given[0]:
        case ast.Name(id=name) if name in functions:
            return _command(functions[name], is_method=False)
        case ast.Name(id=name) if name in classes:
            return _class(classes[name], is_made=False)
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]) if name in classes:
            return _class(classes[name], is_made=True)
        case ast.Dict(keys=keys, values=values):
            pairs = list(zip(keys, values, strict=True))
            found = {
                key.value: functions[value.id]
                for key, value in pairs
                if isinstance(key, ast.Constant)
                and isinstance(key.value, str)
                and isinstance(value, ast.Name)
                and value.id in functions
            }
            if len(found) == len(pairs):
                return _commands(found, Command("words"), is_method=False)
    raise _NotPlain("what fire is given is not a function or class of this file")


def _class(node: ast.ClassDef, *, is_made: bool) -> Command:
    if node.decorator_list or node.keywords or any(dotted(each) != "object" for each in node.bases):
        raise _NotPlain(f"{node.name} may have methods from elsewhere")
    methods = {each.name: each for each in node.body if isinstance(each, _Function)}
    outer = Command("words")
    if "__init__" in methods and not is_made:
        outer = _command(methods["__init__"], is_method=True)
    outer.description = first_paragraph(ast.get_docstring(node))
    # ``self.ingest = Ingest()``: its methods are commands of a group.
    outer.unread += [
        Unread(target.attr, "fire takes a public attribute for a group of commands", each.lineno)
        for each in ast.walk(methods.get("__init__", ast.Pass()))
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call)
        for target in each.targets
        if isinstance(target, ast.Attribute) and dotted(target.value) == "self" and target.attr[:1] != "_"
    ]
    return _commands(methods, outer, is_method=True)


def _commands(functions: dict[str, _Function], outer: Command, *, is_method: bool) -> Command:
    public = {name: each for name, each in functions.items() if not name.startswith("_")}
    outer.commands = {name: _command(each, is_method=is_method) for name, each in public.items()}
    names = {each.name for each in outer.arguments}
    # Fire gives a flag to the first callable that knows it.
    if not public or any(each.name in names for inner in outer.commands.values() for each in inner.arguments):
        raise _NotPlain("it has no commands, or their parameters are also those of the class")
    outer.chooser = "command"
    return outer


def _command(node: _Function, *, is_method: bool) -> Command:
    made = [dotted(each) for each in node.decorator_list]
    given = node.args
    if given.vararg or given.kwarg or given.posonlyargs or set(made) - {"staticmethod", "classmethod"}:
        raise _NotPlain(f"the signature of {node.name}() is not plain")
    summary, described = documented(ast.get_docstring(node) or "")
    command = Command("words", first_paragraph(summary))
    defaults: list[ast.expr | None] = [None] * (len(given.args) - len(given.defaults)) + [*given.defaults]
    pairs = [*zip(given.args, defaults, strict=True)][int(is_method and "staticmethod" not in made) :]
    for each, default in [*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]:
        command.arguments.append(_argument(each, default, described.get(each.arg, "")))
    return command


def _argument(parameter: ast.arg, default: ast.expr | None, description: str) -> Argument:
    known: Any = ABSENT
    if isinstance(default, ast.Constant) and isinstance(default.value, str | int | float):
        known = default.value
    annotation = parameter.annotation.value if isinstance(parameter.annotation, ast.Subscript) else parameter.annotation
    kind = dotted(annotation).rpartition(".")[2] if annotation is not None else type(known).__name__
    value = ValueType(_SCHEMAS.get(kind.lower() if kind in ("List", "Dict") else kind, _ANY), "python")
    flags = (f"--{parameter.arg}=",)
    return Argument(parameter.arg, flags, value=value, required=default is None, default=known, description=description)
