"""What a typer application declares by its functions' signatures, read as a command."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.derive.command import TEXT, Argument, Command, Reading, Unread, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.click_reader import calls_at_top, fitting_default, split_flags
from skillruntime.derive.readers.python_checks import apply_checks, checks_of_function
from skillruntime.derive.readers.python_values import (
    UNKNOWN,
    Called,
    Enumeration,
    Member,
    Scope,
    Symbol,
    dotted,
    evaluate,
)
from skillruntime.derive.readers.value_types import DATE_TIME, PATH, read_type, refuses_values
from skillruntime.derive.text_fields import first_paragraph, flattened

__all__ = ["read_typer"]

_LISTS = (
    "List",
    "list",
    "Sequence",
    "Iterable",
    "Set",
    "set",
    "Tuple",
    "tuple",
    "FrozenSet",
    "frozenset",
    "Collection",
)
_NAMED = {
    "datetime.datetime": DATE_TIME,
    "datetime.date": ValueType({"type": "string", "format": "date"}),
    **dict.fromkeys((f"typer.File{end}" for end in ("Text", "TextWrite", "BinaryRead", "BinaryWrite")), PATH),
    "builtins.bool": ValueType({"type": "boolean"}),
}
_DECLARED = ("typer.Option", "typer.Argument")
_CONTEXTS = ("typer.Context", "click.Context", "typer.CallbackParam")
_COMPUTED = ValueType(TEXT.schema, unsure="its type is computed")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True, eq=False)
class _Application:
    """A ``typer.Typer``: functions and applications by the word that chooses them."""

    named: dict[str, Any]
    commands: dict[str, tuple[_Function | _Application, dict[str, Any]]] = field(default_factory=dict)
    callback: _Function | None = None
    unread: list[Unread] = field(default_factory=list)
    is_below: bool = False


@dataclass(frozen=True, slots=True)
class _Annotation:
    """``value`` is the type of one value; ``length`` that of a tuple of one type; ``made`` what ``Annotated`` adds."""

    value: ValueType = TEXT
    name: str = ""
    many: bool = False
    length: int | None = None
    made: tuple[Called, ...] = ()


def read_typer(tree: ast.Module, scope: Scope) -> Reading | None:
    """Return the command of the application that is called, or that has most below it; None where there is none."""
    applications = _find_applications(tree, scope)
    description = first_paragraph(ast.get_docstring(tree))
    for call in calls_at_top(tree):
        if evaluate(call.func, scope) == Symbol("typer.run") and call.args:
            function = evaluate(call.args[0], scope)
            if isinstance(function, _Function):
                return Reading(_read_command(function, {}, Command("click", description), scope), "typer")
    called = [applications[dotted(each.func)] for each in calls_at_top(tree) if dotted(each.func) in applications]
    tops = called or [each for each in applications.values() if not each.is_below]
    if not tops:
        return None
    top = max(tops, key=lambda each: len(each.commands))
    return Reading(_read_application(top, description, scope, 0), "typer")


def _find_applications(tree: ast.Module, scope: Scope) -> dict[str, _Application]:
    found: dict[str, _Application] = {}
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                known = evaluate(value, scope)
                if isinstance(known, Called) and known.name == "typer.Typer":
                    found[name] = _Application(dict(known.named))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for decorator in statement.decorator_list:
                    _hang(decorator, statement, scope, found)
    for call in calls_at_top(tree):
        owner, _, what = dotted(call.func).rpartition(".")
        if what != "add_typer" or owner not in found:
            continue
        named = {str(each.arg): evaluate(each.value, scope) for each in call.keywords}
        below = found.get(dotted(call.args[0])) if call.args else None
        word = named.get("name") or (below.named.get("name") if below else None)
        if below is None or not isinstance(word, str):
            found[owner].unread.append(Unread("commands", "they are computed", call.lineno))
        else:
            below.is_below = True
            found[owner].commands[word] = (below, named)
    return found


def _hang(decorator: ast.expr, function: _Function, scope: Scope, found: dict[str, _Application]) -> None:
    call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
    owner, _, what = dotted(call.func).rpartition(".")
    if owner not in found:
        return
    arguments = [evaluate(each, scope) for each in call.args]
    named = {str(each.arg): evaluate(each.value, scope) for each in call.keywords}
    if what == "callback":
        found[owner].callback = function
        found[owner].named |= named
    elif what == "command":
        given = arguments[0] if arguments else named.get("name")
        word = given if isinstance(given, str) else function.name.lower().replace("_", "-")
        if given is UNKNOWN:
            found[owner].unread.append(Unread("a command", "its name is computed", function.lineno))
        found[owner].commands[word] = (function, named)


def _read_application(application: _Application, description: str, scope: Scope, depth: int) -> Command:
    command = Command("click", first_paragraph(application.named.get("help")) or description)
    command.unread += application.unread
    if application.callback is not None:
        _read_signature(application.callback, command, scope)
    # A typer application with one command and no callback is that command (typer.main.get_command).
    if depth == 0 and len(application.commands) == 1 and application.callback is None:
        only, named = next(iter(application.commands.values()))
        if isinstance(only, _Function):
            return _read_command(only, named, command, scope)
    command.chooser, command.chooser_required = "command", application.named.get("invoke_without_command") is not True
    for word, (below, named) in application.commands.items() if depth < 20 else ():
        if isinstance(below, _Application):
            command.commands[word] = _read_application(below, flattened(named.get("help")), scope, depth + 1)
        else:
            command.commands[word] = _read_command(below, named, Command("click"), scope)
    if not command.commands:
        command.chooser = ""
        command.unread.append(Unread("commands", "none of them can be read", is_needed=True))
    return command


def _read_command(function: _Function, named: dict[str, Any], command: Command, scope: Scope) -> Command:
    help_text = named.get("help")
    documented = help_text if isinstance(help_text, str) else ast.get_docstring(function)
    command.description = first_paragraph(documented) or command.description
    plain = _read_signature(function, command, scope)
    names = {each.name for each in command.arguments}
    apply_checks(command, checks_of_function(function, names), names - plain)
    return command


def _read_signature(function: _Function, command: Command, scope: Scope) -> set[str]:
    """Add the parameters of *function* to *command*; return those that have no value but from the command line."""
    plain: set[str] = set()
    signature = function.args
    positional = [*signature.posonlyargs, *signature.args]
    # Defaults belong to the last positional parameters (``ast.arguments``).
    missing: list[ast.expr | None] = [None] * (len(positional) - len(signature.defaults))
    pairs = list(zip(positional, [*missing, *signature.defaults], strict=True))
    pairs += list(zip(signature.kwonlyargs, signature.kw_defaults, strict=True))
    for parameter, default_node in pairs:
        annotation = _read_annotation(parameter.annotation, scope)
        default = ABSENT if default_node is None else evaluate(default_node, scope)
        # typer passes these itself; they are not on the command line.
        if annotation.name in _CONTEXTS:
            continue
        made = [each for each in (default, *annotation.made) if isinstance(each, Called)]
        usual = default.arguments[0] if isinstance(default, Called) and default.arguments else default
        if usual in (None, False) and not any({"envvar", "callback", "prompt"} & each.named.keys() for each in made):
            plain.add(parameter.arg)
        found = _read_parameter(parameter.arg, annotation, default, parameter.lineno, command)
        if isinstance(found, Unread):
            command.unread.append(found)
        elif found is not None:
            command.arguments.append(found)
            if found.required and any(refuses_values(each.named.get("callback")) for each in made):
                reason = "its callback may refuse the value"
                command.unread.append(Unread(found.shown, reason, parameter.lineno))
    return plain


def _read_parameter(
    name: str, annotation: _Annotation, default: Any, line: int, command: Command
) -> Argument | Unread | None:
    made = next((each for each in annotation.made if each.name in _DECLARED), None)
    declared = list(made.arguments) if made else []
    if isinstance(default, Called) and default.name in _DECLARED:
        made = default
        first, *declared = made.arguments or [made.named.get("default", ABSENT)]
        default = first
    named = made.named if made else {}
    # ``typer.Option(...)``: typer's sign for "required".
    required = default in (Ellipsis, ABSENT)
    # A converter of the script's own: what it takes is not declared.
    if not all(isinstance(each, str) for each in declared) or {"**", "parser", "click_type"} & named.keys():
        return Unread(name, "its declaration is computed", line, is_needed=required)
    # ``--version`` and its like print and exit.
    if named.get("is_eager") is True and "callback" in named:
        return None
    value = _ranged(annotation.value, named)
    if value.unsure:
        command.notes.append(f"{name}: {value.unsure}; it is passed on as text")
    default = default.value if isinstance(default, Member) else default
    known = ABSENT if required else fitting_default(default, value, annotation.many)
    argument = Argument(name, required=required, value=value, description=flattened(named.get("help")), default=known)
    # typer: a parameter without a default is an argument, one with a default an option.
    if made.name == "typer.Option" if made else not required:
        return _as_option(argument, annotation, named, declared, default)
    return _as_argument(argument, annotation)


def _as_argument(argument: Argument, annotation: _Annotation) -> Argument:
    if annotation.many:
        least = annotation.length or int(argument.required)
        return replace(argument, takes="values", length=annotation.length, least=least)
    if argument.value.schema.get("type") == "boolean":
        words = {"words": [[True, "true"], [False, "false"]]}
        return replace(argument, value=ValueType(argument.value.schema, words))
    return argument


def _as_option(
    argument: Argument, annotation: _Annotation, named: dict[str, Any], declared: list[str], default: Any
) -> Argument | Unread:
    _, flags, off = split_flags(declared) if declared else ("", (), None)
    # typer.main.get_click_param: the parameter's name with dashes.
    long = "--" + argument.name.replace("_", "-")
    # ``prompt=True`` reads from the terminal, which a tool does not have.
    if named.get("prompt") not in (None, False):
        argument = replace(argument, required=True, default=ABSENT)
    if named.get("count") is True:
        base = default if type(default) is int else 0
        return replace(argument, flags=flags or (long,), takes="count", default=base, required=False)
    if argument.value.schema.get("type") == "boolean" and not annotation.many:
        # typer adds the opposite flag to every boolean option that names no flags itself.
        if not flags and not off:
            flags, off = (long,), f"--no-{long[2:]}"
        if not flags:
            return Unread(off or long, "it can only be switched off")
        return replace(
            argument, flags=flags, takes="nothing", off_flag=off, default=argument.default if off else ABSENT
        )
    argument = replace(argument, flags=flags or (long,))
    if annotation.many and annotation.length is not None:
        return replace(argument, takes="values", length=annotation.length, least=annotation.length)
    return replace(argument, repeat=True) if annotation.many else argument


def _ranged(value: ValueType, named: dict[str, Any]) -> ValueType:
    schema = dict(value.schema)
    if schema.get("type") not in ("integer", "number") or named.get("clamp") is True:
        return value
    for edge, keyword in (("min", "minimum"), ("max", "maximum")):
        if isinstance(named.get(edge), int | float):
            schema[keyword] = named[edge]
    return replace(value, schema=schema)


def _read_annotation(node: ast.expr | None, scope: Scope) -> _Annotation:
    """Return what the annotation *node* says; text, and ``unsure``, where it is unknown."""
    match node:
        case None:
            return _Annotation()
        case ast.Constant(value=None):
            return _Annotation(name="None")
        # A postponed annotation, ``"Path | None"`` (PEP 563).
        case ast.Constant(value=str(text)):
            try:
                return _read_annotation(ast.parse(text, mode="eval").body, scope)
            except (SyntaxError, ValueError):
                return _Annotation(_COMPUTED)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _either([_read_annotation(each, scope) for each in (left, right)])
        case ast.Subscript(value=outer, slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _subscripted(dotted(outer).rpartition(".")[2], parts, scope)
    value = evaluate(node, scope)
    if isinstance(value, Symbol):
        # ``list`` without a type of its items: texts (typer).
        if value.name.rpartition(".")[2] in _LISTS and value.name.startswith(("builtins.", "typing.")):
            return _Annotation(TEXT, value.name, many=True)
        return _Annotation(_NAMED.get(value.name) or read_type(value), value.name)
    return _Annotation(read_type(value) if isinstance(value, Enumeration) else _COMPUTED)


def _either(parts: list[_Annotation]) -> _Annotation:
    kept = [part for part in parts if part.name != "None"]
    return kept[0] if len(kept) == 1 else _Annotation(ValueType(TEXT.schema, unsure="it may have one of several types"))


def _subscripted(outer: str, parts: list[ast.expr], scope: Scope) -> _Annotation:
    match outer:
        # ``Optional[int]`` is ``int | None`` (PEP 484).
        case "Optional":
            return _read_annotation(parts[0], scope)
        case "Union":
            return _either([_read_annotation(part, scope) for part in parts])
        # ``Annotated[int, typer.Option(...)]`` (PEP 593).
        case "Annotated":
            made = [evaluate(part, scope) for part in parts[1:]]
            return replace(
                _read_annotation(parts[0], scope), made=tuple(each for each in made if isinstance(each, Called))
            )
        case "Literal":
            values = [evaluate(part, scope) for part in parts]
            if all(isinstance(value, str) for value in values):
                return _Annotation(ValueType({"type": "string", "enum": values}), "Literal")
        # ``tuple[int, int]`` takes two words, ``tuple[int, ...]`` any number.
        case "Tuple" | "tuple":
            kinds = [_read_annotation(part, scope) for part in parts if evaluate(part, scope) is not Ellipsis]
            if len({repr(kind.value) for kind in kinds}) == 1:
                return replace(kinds[0], many=True, length=len(kinds) if len(kinds) == len(parts) else None)
        case _ if outer in _LISTS:
            return replace(_read_annotation(parts[0], scope), many=True)
    return _Annotation(_COMPUTED)
