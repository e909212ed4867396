"""What a typer application declares by its functions' signatures, read as a command."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from skillruntime.derive.command import Argument, Command, Unread, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.state import State, evaluate
from skillruntime.derive.interpreter.values import UNKNOWN, EnumMember, ForeignCall, FunctionValue, if_known
from skillruntime.derive.readers.annotations import Annotation, read_annotation
from skillruntime.derive.readers.argparse_demands import add_demands_of_function
from skillruntime.derive.readers.click_model import TyperModel
from skillruntime.derive.readers.click_reader import fitting_default, split_flags
from skillruntime.derive.readers.value_types import REFUSED_BY_CALLBACK, refuses_values
from skillruntime.derive.text_fields import first_paragraph, flattened

__all__ = ["read_typer"]

_NOTHING = ForeignCall("typer.Nothing", [], {}, ast.Pass())
_CONTEXTS = ("typer.Context", "click.Context", "typer.CallbackParam")


def read_typer(state: State, model: TyperModel, description: str = "", *, top: bool = True) -> Command:
    """Return the command that *model* declares, with its commands below it."""
    command = Command("click", first_paragraph(model.named.get("help")) or description)
    command.unread += [Unread(what, "it is computed", line) for what, line in model.unread]
    if model.callback is not None:
        _read_signature(state, model.callback, command)
    # A typer application with one command and no callback is that command (typer.main.get_command).
    if top and len(model.commands) == 1 and model.callback is None:
        function, named = next(iter(model.commands.values()))
        if isinstance(function, FunctionValue):
            return _read_command(state, function, named, command)
    named = model.callback_named or model.named
    invoked_alone = True in (named.get("invoke_without_command"), model.named.get("invoke_without_command"))
    command.chooser, command.chooser_required = "command", not invoked_alone
    for word, (below, below_named) in model.commands.items():
        if isinstance(below, TyperModel):
            command.commands[word] = read_typer(state, below, flattened(below_named.get("help")), top=False)
        else:
            command.commands[word] = _read_command(state, below, below_named, Command("click"))
    if not command.commands:
        command.chooser = ""
    return command


def _read_command(state: State, function: FunctionValue, named: dict[str, Any], command: Command) -> Command:
    documented = None if isinstance(function.node, ast.Lambda) else ast.get_docstring(function.node)
    command.description = first_paragraph(if_known(named.get("help")) or documented) or command.description
    plain = _read_signature(state, function, command)
    function = function.wrapped or function
    if not isinstance(function.node, ast.Lambda):
        add_demands_of_function(command, function.node, plain)
    return command


def _read_signature(state: State, function: FunctionValue, command: Command) -> set[str]:
    """Add the parameters of *function* to *command*; return those that have no value but from the command line."""
    plain: set[str] = set()
    function = function.wrapped or function
    signature = function.node.args
    positional = [*signature.posonlyargs, *signature.args]
    # Defaults belong to the last positional parameters (``ast.arguments``).
    missing: list[ast.expr | None] = [None] * (len(positional) - len(signature.defaults))
    pairs = list(zip(positional, [*missing, *signature.defaults], strict=True))
    pairs += list(zip(signature.kwonlyargs, signature.kw_defaults, strict=True))
    for parameter, default_node in pairs:
        annotation = read_annotation(state, parameter.annotation, function.scope)
        default = ABSENT if default_node is None else evaluate(state, default_node, function.scope)
        # typer passes these itself; they are not on the command line.
        if annotation.name in _CONTEXTS:
            continue
        made = [each for each in (default, *annotation.made) if isinstance(each, ForeignCall)]
        usual = default.arguments[0] if isinstance(default, ForeignCall) and default.arguments else default
        if usual in (None, False) and not any({"envvar", "callback", "prompt"} & each.named.keys() for each in made):
            plain.add(parameter.arg)
        found = _read_parameter(parameter.arg, annotation, default, parameter.lineno, command)
        if isinstance(found, Unread):
            command.unread.append(found)
        elif found is not None:
            command.arguments.append(found)
            if found.required and any(refuses_values(each.named.get("callback")) for each in made):
                command.unread.append(Unread(found.shown, REFUSED_BY_CALLBACK, parameter.lineno))
    return plain


def _read_parameter(
    name: str, annotation: Annotation, default: Any, line: int, command: Command
) -> Argument | Unread | None:
    made = next((each for each in annotation.made if each.symbol in ("typer.Option", "typer.Argument")), _NOTHING)
    declared = list(made.arguments)
    if isinstance(default, ForeignCall) and default.symbol in ("typer.Option", "typer.Argument"):
        made = default
        declared = list(made.arguments[1:])
        default = made.arguments[0] if made.arguments else made.named.get("default", ABSENT)
    # ``typer.Option(...)``: typer's sign for "required".
    if default is Ellipsis:
        default = ABSENT
    if any(not isinstance(each, str) for each in declared) or "**" in made.named:
        return Unread(name, "its declaration is computed", line)
    # A converter of the script's own: what it takes is not declared.
    if any(key in made.named for key in ("parser", "click_type")):
        return Unread(name, "its type is of the script's own", line)
    # ``--version`` and its like print and exit.
    if made.named.get("is_eager") is True and "callback" in made.named:
        return None
    value = annotation.value
    if "enum" not in value.schema and isinstance(default, EnumMember):
        return Unread(name, "its type cannot be read", line)
    value = _ranged(value, made.named)
    if value.unsure:
        command.notes.append(f"{name}: {value.unsure}; it is passed on as text")
    if isinstance(default, EnumMember):
        default = default.value
    # typer: a parameter without a default is an argument, one with a default an option.
    is_argument = made.symbol == "typer.Argument" or (made is _NOTHING and default is ABSENT)
    required = default is ABSENT
    argument = Argument(
        name,
        required=required,
        value=value,
        description=flattened(made.named.get("help")),
        default=ABSENT if required else fitting_default(default, value, annotation.many),
    )
    if is_argument:
        if annotation.many:
            length = annotation.length
            argument = replace(argument, takes="values", length=length, least=length or int(required))
        elif value.schema.get("type") == "boolean":
            argument = replace(argument, value=ValueType(value.schema, {"words": [[True, "true"], [False, "false"]]}))
        return argument
    return _as_option(argument, annotation, made, declared, default)


def _as_option(
    argument: Argument, annotation: Annotation, made: ForeignCall, declared: list[str], default: Any
) -> Argument | Unread:
    _, flags, off = split_flags(declared) if declared else ("", (), None)
    # typer.main.get_click_param: the parameter's name with dashes.
    long = "--" + argument.name.replace("_", "-")
    # See `click_reader`.
    if made.named.get("prompt") not in (None, False):
        argument = replace(argument, required=True, default=ABSENT)  # without it, it would ask at a terminal
    if made.named.get("count") is True:
        base = default if isinstance(default, int) else 0
        return replace(argument, flags=flags or (long,), takes="count", default=base, required=False)
    if argument.value.schema.get("type") == "boolean" and not annotation.many:
        if not flags and not off:
            # typer adds the opposite flag to every boolean option that names no flags itself.
            flags, off = (long,), f"--no-{long[2:]}"
        if not flags:
            flags, off = (off or long,), None
            return Unread(flags[0], "it can only be switched off")
        known = argument.default if off else ABSENT
        return replace(argument, flags=flags, takes="nothing", off_flag=off, default=known)
    argument = replace(argument, flags=flags or (long,))
    if annotation.many and annotation.length is not None:
        return replace(argument, takes="values", length=annotation.length, least=annotation.length)
    return replace(argument, repeat=True) if annotation.many else argument


def _ranged(value: ValueType, named: dict[str, Any]) -> ValueType:
    schema = dict(value.schema)
    if schema.get("type") not in ("integer", "number") or named.get("clamp") is True:
        return value
    for edge, keyword in (("min", "minimum"), ("max", "maximum")):
        number = named.get(edge, UNKNOWN)
        if isinstance(number, int | float):
            schema[keyword] = number
    return replace(value, schema=schema)
