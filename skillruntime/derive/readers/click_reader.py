"""What click's decorators declare, read as a command: the rules of ``option`` and ``argument``, one by one."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from skillruntime.derive.command import TEXT, Argument, Command, Unread, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.known_calls import items_of
from skillruntime.derive.interpreter.state import State
from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    ClassValue,
    EnumMember,
    ForeignCall,
    FunctionValue,
    Symbol,
    if_known,
    is_constant,
)
from skillruntime.derive.readers.argparse_arguments import to_json
from skillruntime.derive.readers.argparse_demands import add_demands_of_function, demands_command
from skillruntime.derive.readers.click_model import ClickCommandModel
from skillruntime.derive.readers.value_types import DATE_TIME, PATH, REFUSED_BY_CALLBACK, read_type, refuses_values
from skillruntime.derive.text_fields import first_paragraph, flattened

__all__ = ["fitting_default", "read_click", "read_click_type", "split_flags"]

_WORDS = ValueType({"type": "boolean"}, {"words": [[True, "true"], [False, "false"]]})
_TYPES = {
    "click.INT": ValueType({"type": "integer"}),
    "click.FLOAT": ValueType({"type": "number"}),
    "click.STRING": TEXT,
    "click.UNPROCESSED": TEXT,
    "click.BOOL": _WORDS,
    "click.UUID": ValueType({"type": "string", "format": "uuid"}),
    "click.Path": PATH,
    "click.File": PATH,
    # click's BOOL takes words, not a switch: ``--cache true`` (click.types.BoolParamType).
    "builtins.bool": _WORDS,
}


def read_click(state: State, model: ClickCommandModel, description: str = "") -> Command:
    """Return the command that *model* declares, with its commands below it."""
    # The docstring is that of the function, not of a decorator's wrapper.
    function = model.function.wrapped or model.function if model.function else None
    documented = ast.get_docstring(function.node) if function and not isinstance(function.node, ast.Lambda) else None
    described = if_known(model.named.get("help")) or if_known(model.named.get("short_help")) or documented
    # The help option's text is ``help``, else the docstring (click.decorators.command).
    command = Command("click", first_paragraph(_before_form_feed(described)) or description)
    used = {each.name for each in command.arguments}
    for made in model.declared:
        found = _read_parameter(state, made, command)
        if isinstance(found, Unread):
            command.unread.append(found)
        elif found is not None:
            name = _plain(found.name)
            # Two options may share one parameter of the function.
            while name in used:
                name += "_2"
            used.add(name)
            command.arguments.append(replace(found, name=name))
            if found.required and refuses_values(made.named.get("callback")):
                command.unread.append(Unread(found.shown, REFUSED_BY_CALLBACK, getattr(made.node, "lineno", None)))
    command.unread += [Unread(what, "it is computed", line) for what, line in model.unread]
    command.arguments = _with_flag_choices(command.arguments)
    if function is not None and not isinstance(function.node, ast.Lambda) and not model.is_group:
        plain = {each.name for each in command.arguments} - _filled(model.declared)
        add_demands_of_function(command, function.node, plain)
    if model.is_group:
        command.chooser = "command"
        runs_alone = model.named.get("invoke_without_command") is True
        if runs_alone and function is not None and not isinstance(function.node, ast.Lambda):
            runs_alone = not demands_command(function.node)
        command.chooser_required = not runs_alone
        for word, below in model.commands.items():
            if isinstance(below, ClickCommandModel):
                command.commands[word] = read_click(state, below)
            else:
                command.unread.append(Unread(word, "a command of another library"))
        if not command.commands:
            command.chooser = ""
            command.unread.append(Unread("commands", "none of them can be read"))
    return command


def _filled(declared: list[Any]) -> set[str]:
    """The names of parameters that may have a value without the command line."""
    return {
        split_flags([each for each in made.arguments if isinstance(each, str)])[0]
        for made in declared
        if isinstance(made, ForeignCall)
        and (made.named.get("default") not in (None, False) or {"envvar", "callback", "prompt"} & made.named.keys())
    }


def split_flags(declarations: list[str]) -> tuple[str, tuple[str, ...], str | None]:
    """Return the name, the flags, and the flag that says no, of click's declarations.

    >>> split_flags(["--shout/--no-shout", "-s"])
    ('shout', ('--shout', '-s'), '--no-shout')
    """
    flags: list[str] = []
    off: str | None = None
    name = ""
    for each in declarations:
        if re.fullmatch(r"[A-Za-z_]\w*", each):
            name = each
            continue
        # ``--shout/--no-shout``; flags that start with a slash are separated by a semicolon (click's documentation,
        # "Boolean Flags").
        separator = ";" if each.startswith("/") else "/"
        yes, _, no = (part.strip() for part in each.partition(separator))
        flags += [yes] if yes else []
        off = no or off
    if not name and flags:
        # click.core.Option._parse_decls: the flag with the longest prefix names the parameter.
        longest = max(flags, key=lambda flag: (len(re.match(r"^[^\w]*", flag)[0]), 0))  # type: ignore[index]  # matches ""
        name = longest.lstrip("-/+").replace("-", "_").lower()
    return name, tuple(flags), off


def _read_parameter(state: State, made: Any, command: Command) -> Argument | Unread | None:
    if not isinstance(made, ForeignCall):
        return Unread("an option", "it is computed")
    what = made.symbol.partition(".")[2]
    line = getattr(made.node, "lineno", None)
    declarations = [each for each in made.arguments if isinstance(each, str)]
    shown = declarations[0] if declarations else what
    # Eager: they print and exit before anything else happens.
    if what in ("version_option", "help_option"):
        return None
    # The decorator is applied under a condition.
    if what == "uncertain":
        return Unread(shown, "whether it is there depends on a condition", line)
    if what == "confirmation_option":
        return Argument("yes", ("--yes",), "nothing", required=True, description="Confirm the action")
    if what == "password_option" or len(declarations) != len(made.arguments) or "**" in made.named or not declarations:
        return Unread(shown, "it asks at a terminal" if what == "password_option" else "it is computed", line)
    # A class of its own may take any number of words; an eager callback usually prints and exits.
    if "cls" in made.named or ("callback" in made.named and made.named.get("is_eager") is True):
        if "cls" in made.named:
            return Unread(shown, "it is of a class of its own", line)
        return None
    if what == "argument":
        return _read_argument(state, made, declarations[0], line, command)
    return _read_option(state, made, declarations, line, command)


def _read_argument(
    state: State, made: ForeignCall, declared: str, line: int | None, command: Command
) -> Argument | Unread:
    named = made.named
    value = read_click_type(state, named.get("type"), named.get("default"))
    _note(command, declared, value)
    nargs = named.get("nargs", 1)
    if not isinstance(nargs, int):
        return Unread(declared, "the number of its values is computed", line)
    default = fitting_default(named.get("default"), value, nargs != 1)
    # click.core.Argument: required unless it has a default or takes any number of words.
    required = named.get("required", "default" not in named and nargs >= 0) is True
    description = flattened(named.get("help"))
    argument = Argument(declared.lower().replace("-", "_"), (), "value", value, required, default, description)
    # ``nargs=-1`` takes all words that are left; click allows one such argument.
    if nargs == -1:
        return replace(argument, takes="values", least=int(required), default=ABSENT)
    return argument if nargs == 1 else replace(argument, takes="values", length=nargs, least=nargs)


def _read_option(
    state: State, made: ForeignCall, declarations: list[str], line: int | None, command: Command
) -> Argument | Unread:
    named = made.named
    name, flags, off = split_flags(declarations)
    if not flags:
        return Unread(declarations[0], "it has no flag", line)
    default = named.get("default")
    # ``prompt=True`` reads from the terminal, which a tool does not have.
    asks = named.get("prompt", False) not in (None, False)
    required = named.get("required") is True or asks  # without it, it would ask at a terminal
    kind = named.get("type")
    argument = Argument(name, flags, required=required, description=_help(named, default))
    if named.get("count") is True:
        return replace(argument, takes="count", default=default if isinstance(default, int) else 0)
    is_flag = named.get("is_flag")
    if is_flag is UNKNOWN:
        return Unread(flags[0], "whether it takes a value is computed", line)
    # click.core.Option.__init__: a slash in the declaration, a flag value, or a boolean default makes a flag.
    if is_flag is None:
        is_flag = (
            off is not None or ("flag_value" in named and kind is None) or (isinstance(default, bool) and kind is None)
        )
        is_flag = is_flag and not (isinstance(default, bool) and off is None and "multiple" in named)
    if is_flag:
        known = default if isinstance(default, bool) else ABSENT
        # ``--upper`` with ``flag_value="upper"``: several flags set one parameter.
        if "flag_value" in named and named["flag_value"] is not True:
            constant = to_json(named["flag_value"])
            return replace(argument, takes="one_of", choices=((constant, flags[0]),), flags=(), default=ABSENT)
        return replace(argument, takes="nothing", off_flag=off, default=known if off else ABSENT, required=required)
    value = read_click_type(state, kind, default)
    _note(command, flags[0], value)
    nargs, multiple = named.get("nargs", 1), named.get("multiple", False)
    if isinstance(kind, tuple):
        # ``type=(str, int)``: JSON Schema could say it, the command line of a contract cannot.
        return Unread(flags[0], "it takes values of several kinds", line)
    if not isinstance(nargs, int) or not isinstance(multiple, bool):
        return Unread(flags[0], "the number of its values is computed", line)
    known = ABSENT if required else fitting_default(default, value, multiple or nargs != 1)
    argument = replace(argument, value=value, default=known, repeat=multiple)
    if nargs != 1:
        return replace(argument, takes="values", length=nargs, least=nargs)
    return replace(argument, takes="optional", bare=True) if "flag_value" in named else argument


def _help(named: dict[str, Any], default: Any) -> str:
    text = flattened(named.get("help"))
    if named.get("prompt") not in (None, False):
        text = text or (named["prompt"] if isinstance(named["prompt"], str) else "")
        if is_constant(default) and default is not None:
            text = f"{text} (usually {default})".strip()
    return text


def _note(command: Command, shown: str, value: ValueType) -> None:
    if "choices" in value.unsure:
        command.unread.append(Unread(shown, value.unsure))
    elif value.unsure:
        command.notes.append(f"{shown}: {value.unsure}; it is passed on as text")


def read_click_type(state: State, kind: Any, default: Any) -> ValueType:
    """Return what a click ``type=`` takes; without one, what the default is."""
    if kind is None:
        probe = default[0] if isinstance(default, list | tuple) and default else default
        match probe:
            case bool():
                # Without a type the default's type is the type (click.types.convert_type).
                return _WORDS
            case int():
                return _TYPES["click.INT"]
            case float():
                return _TYPES["click.FLOAT"]
            case _:
                return TEXT
    match kind:
        case Symbol(name=name) if name in _TYPES:
            return _TYPES[name]
        case ForeignCall(symbol=name) if name in ("click.Path", "click.File"):
            return PATH
        case ForeignCall(symbol="click.Choice"):
            return _read_choice(kind)
        case ForeignCall(symbol=("click.IntRange" | "click.FloatRange")):
            return _read_range(kind)
        case ForeignCall(symbol="click.DateTime"):
            given = kind.arguments[0] if kind.arguments else kind.named.get("formats")
            formats = items_of(given) if given is not None else None
            if isinstance(formats, list) and "%Y-%m-%d" in formats:
                return ValueType({"type": "string", "format": "date"})
            return ValueType({"type": "string"}) if given is not None else DATE_TIME
        case ForeignCall(symbol=name) if name.startswith("click.") and name.partition(".")[2] in (
            "STRING",
            "UNPROCESSED",
        ):
            return TEXT
        case FunctionValue() | ClassValue() | Symbol():
            return read_type(state, kind)
        case _:
            return ValueType(TEXT.schema, unsure="its type is computed")


def _read_choice(made: ForeignCall) -> ValueType:
    given = made.arguments[0] if made.arguments else made.named.get("choices")
    items = items_of(given)
    if items is UNKNOWN or not all(isinstance(item, str | EnumMember) for item in items):
        return ValueType(TEXT.schema, unsure="its choices are computed")
    # ``Choice(Colour)`` takes the members' names (click 8.2).
    words = [item.name if isinstance(item, EnumMember) else item for item in items]
    return ValueType({"type": "string", "enum": words}) if words else TEXT


def _read_range(made: ForeignCall) -> ValueType:
    kind = "integer" if made.symbol.endswith("IntRange") else "number"
    edges = dict(zip(("min", "max", "min_open", "max_open", "clamp"), made.arguments, strict=False)) | made.named
    schema: dict[str, Any] = {"type": kind}
    # A clamped range accepts any number, and changes it.
    if edges.get("clamp") is not True:
        for edge, closed in (("min", "minimum"), ("max", "maximum")):
            number = edges.get(edge)
            if isinstance(number, int | float):
                is_open = edges.get(f"{edge}_open") is True
                schema[f"exclusive{closed.capitalize()}" if is_open else closed] = number
    return ValueType(schema)


def fitting_default(default: Any, value: ValueType, is_many: bool) -> Any:
    """The default as an argument; ABSENT where there is none, or where it cannot be said."""
    plain = ABSENT if default is None or default is UNKNOWN else to_json(default)
    if plain is ABSENT or is_many != isinstance(plain, list):
        return ABSENT
    items = plain if is_many else [plain]
    kinds: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
    kind = str(value.schema.get("type"))
    for item in items:
        fits = isinstance(item, kinds.get(kind, object)) and (kind == "boolean" or not isinstance(item, bool))
        if not fits or ("enum" in value.schema and item not in value.schema["enum"]):
            return ABSENT
        if value.schema.get("format") == "path" and re.match(r"/|~|-$|.*\.\.", item):
            return ABSENT
    return plain


def _with_flag_choices(arguments: list[Argument]) -> list[Argument]:
    """Bring together flags that store their own value under one name (``flag_value``)."""
    merged: dict[str, Argument] = {}
    for argument in arguments:
        base = argument.name.removesuffix("_2")
        earlier = merged.get(base)
        if argument.takes == "one_of" and earlier is not None and earlier.takes == "one_of":
            text = "; ".join(each for each in (earlier.description, argument.description) if each)
            merged[base] = replace(earlier, choices=(*earlier.choices, *argument.choices), description=text)
        else:
            merged[argument.name] = argument
    return list(merged.values())


def _before_form_feed(text: Any) -> Any:
    """Click shows nothing of a docstring after a form feed."""
    return text.split("\f")[0].replace("\b", "") if isinstance(text, str) else None


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "argument"
