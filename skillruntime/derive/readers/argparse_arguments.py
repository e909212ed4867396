"""What a parser was asked, read as arguments: the rules of argparse's ``add_argument``, one by one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from skillruntime.derive.command import TEXT, Argument, Unread, ValueType
from skillruntime.derive.command_line import ABSENT, Takes
from skillruntime.derive.interpreter.known_calls import items_of
from skillruntime.derive.interpreter.state import State
from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    ClassValue,
    EnumMember,
    FunctionValue,
    PathText,
    Symbol,
    is_constant,
)
from skillruntime.derive.readers.argparse_model import Asked, ParserModel
from skillruntime.derive.readers.value_types import PATH, read_type
from skillruntime.derive.text_fields import expanded

__all__ = ["NO_EFFECT", "Read", "read_argument", "to_json"]

NO_EFFECT = "(has no effect: it is on by default)"
NEVER_ACCEPTED = "it is required, and none of its choices can be given as text"
_NARGS = {"OPTIONAL": "?", "ZERO_OR_MORE": "*", "ONE_OR_MORE": "+", "REMAINDER": "...", "PARSER": "A..."}
# The actions whose constructor sets ``nargs=0`` (argparse.py 3.11, lines 924-1103): they never take a word.
_SWITCHES = ("store_true", "store_false", "store_const", "append_const")
_ACTIONS = {
    "argparse.BooleanOptionalAction": "optional_boolean",
    "argparse._StoreAction": "store",
    "argparse._StoreTrueAction": "store_true",
    "argparse._StoreFalseAction": "store_false",
    "argparse._StoreConstAction": "store_const",
    "argparse._AppendAction": "append",
    "argparse._AppendConstAction": "append_const",
    "argparse._ExtendAction": "extend",
    "argparse._CountAction": "count",
    "argparse._HelpAction": "help",
    "argparse._VersionAction": "version",
}


class Read:
    """One argument as argparse knows it: its ``dest`` and its kind in addition to what others see."""

    __slots__ = ("action", "argument", "const", "dest")

    def __init__(self, argument: Argument, dest: str, action: str, const: Any = None) -> None:
        self.argument, self.dest, self.action, self.const = argument, dest, action, const


def read_argument(state: State, parser: ParserModel, asked: Asked, prefixes: str) -> Read | Unread | None:
    """Return the argument that was declared, what could not be read of it, or None for ``--help`` and its like."""
    found = _read_argument(state, parser, asked, prefixes)
    has_name = bool(asked.arguments) and all(isinstance(each, str) for each in asked.arguments)
    if isinstance(found, Unread) and asked.certain and has_name and found.reason != NEVER_ACCEPTED:
        # A positional that may not be left out, or ``required=True``: the parser refuses every call without it.
        named = asked.named
        is_flag = any(isinstance(each, str) and each[:1] in prefixes for each in asked.arguments)
        optional = named.get("nargs") in ("?", "*", "...") or "**" in named
        is_needed = named.get("required") is True if is_flag else not optional
        return replace(found, is_needed=is_needed)
    return found


def _read_argument(state: State, parser: ParserModel, asked: Asked, prefixes: str) -> Read | Unread | None:
    shown = next((each for each in asked.arguments if isinstance(each, str)), "an argument")
    named = _with_registered(parser, asked.named) if parser.registered else asked.named
    # ``add_argument(*names)``: which flags there are decides everything else, so nothing is guessed.
    if any(not isinstance(each, str) for each in asked.arguments):
        return Unread(shown, "its name is computed", asked.line)
    # ``add_argument("--x", **options)`` with unknown options: any of them may change what the flag takes.
    if "**" in named:
        return Unread(shown, "its options are computed", asked.line)
    action = _action(named.get("action", "store"), named)
    # Both print and exit (`_HelpAction`, `_VersionAction`): no call of the script with them does its work.
    if action in ("help", "version"):
        return None
    if not action:
        return Unread(shown, "its action is computed", asked.line)
    if not asked.certain:
        return Unread(shown, "whether it is there depends on a condition", asked.line)
    flags = tuple(asked.arguments)
    # `add_argument` (line 1419): the first name decides; without a prefix character it is positional.
    is_option = bool(flags) and flags[0][:1] in prefixes and flags[0][:1] != ""
    dest = named.get("dest")
    if not isinstance(dest, str):
        if not flags:
            return Unread(shown, "its name is computed", asked.line)
        # `_get_optional_kwargs` (line 1560): the first long flag names the destination, dashes become underscores.
        dest = _dest(flags, prefixes) if is_option else flags[0]
    if not is_option:
        flags = ()
    nargs = named.get("nargs")
    if isinstance(nargs, Symbol):
        # ``nargs=argparse.REMAINDER``: the constants of argparse are texts (lines 96-102).
        nargs = _NARGS.get(nargs.name.rpartition(".")[2], UNKNOWN)
    if not isinstance(nargs, str | int | None):
        return Unread(shown, "the number of its values is computed", asked.line)
    # ``nargs=-1`` takes no word (`_get_nargs_pattern`, line 2337), and argparse refuses 0 for an action that stores.
    if isinstance(nargs, int) and nargs < 1 and action not in _SWITCHES:
        return Unread(shown, f"it is declared with {nargs} values", asked.line)
    argument = Argument(dest, flags, group=asked.group)
    if action in _SWITCHES or action in ("count", "optional_boolean"):
        return _read_switch(parser, argument, action, named)
    return _read_valued(state, parser, named, asked.line, argument, action, nargs)


def _with_registered(parser: ParserModel, named: dict[str, Any]) -> dict[str, Any]:
    """Put what the script registered under a name in the place of the name."""
    known = {key: parser.registered.get((key, named[key])) for key in ("type", "action") if _is_name(named.get(key))}
    return named | {key: value for key, value in known.items() if value is not None}


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def _action(value: Any, named: dict[str, Any]) -> str:
    """The action by its name; a class of the script's own stores its value somehow, or is a switch."""
    match value:
        case str():
            return value
        case Symbol(name=name) if name in _ACTIONS:
            return _ACTIONS[name]
        case ClassValue() if "nargs" not in named and (known := _action_above(value)):
            return known
        case ClassValue() if value.descends_from("argparse.Action", "argparse._StoreAction", "argparse._AppendAction"):
            # A class of the script's own that calls itself a switch stores something when its flag is there.
            if named.get("nargs") == 0:
                return "store_true"
            try:
                constructor = value.find("__init__")
            except KeyError:
                return "store"
            node = constructor.node if isinstance(constructor, FunctionValue) else None
            defaults = [*node.args.defaults, *node.args.kw_defaults] if node else []
            # ``def __init__(self, option_strings, dest, nargs=0, ...)``: the constructor decides what the flag takes.
            sets_nargs = any(getattr(default, "value", None) in (0, "?", "*", "+") for default in defaults)
            return "" if sets_nargs and "nargs" not in named else "store"
        case _:
            return ""


def _action_above(kind: ClassValue) -> str:
    """The action of argparse's own that *kind* is made from, where it leaves that one's constructor alone."""
    # An action that overrides the constructor may set any ``nargs``; one that only overrides ``__call__`` keeps its
    # parent's.
    if isinstance(kind.names.get("__init__"), FunctionValue):
        return ""
    for base in kind.bases:
        if isinstance(base, Symbol) and base.name in _ACTIONS:
            return _ACTIONS[base.name]
        if isinstance(base, ClassValue) and (known := _action_above(base)):
            return known
    return ""


def _dest(flags: tuple[str, ...], prefixes: str) -> str:
    long = next((flag for flag in flags if len(flag) > 1 and flag[1] in prefixes), flags[0])
    return long.lstrip(prefixes).replace("-", "_")


def _default(parser: ParserModel, dest: str, named: dict[str, Any], otherwise: Any) -> Any:
    value = named.get("default", parser.named.get("argument_default", otherwise))
    # `set_defaults` (line 1400) wins over the argument's own default, whichever came first.
    value = parser.defaults.get(dest, value)
    return UNKNOWN if isinstance(value, Symbol) else value


def _read_switch(parser: ParserModel, argument: Argument, action: str, named: dict[str, Any]) -> Read:
    unset = {"store_true": False, "store_false": True}.get(action)
    default = _default(parser, argument.name, named, unset)
    description = expanded(named.get("help"), default, argument.name)
    # The value that the flag stores; `_StoreTrueAction` (line 982) and its opposite fix it.
    const = {"store_true": True, "store_false": False}.get(action, to_json(named.get("const")))
    flag = next((each for each in argument.flags if len(each) > 2), argument.flags[0] if argument.flags else "")
    takes: Takes = "nothing"
    off, known, required = None, ABSENT, named.get("required") is True
    match action:
        case "count":
            # `_CountAction` adds one to the default for each flag: no call can reach a number below it.
            takes, required = "count", False
            known = default if isinstance(default, int) and not isinstance(default, bool) else 0
        case "optional_boolean":
            # `BooleanOptionalAction` (line 885) adds ``--no-x`` for each long flag.
            off = f"{flag[:2]}no-{flag[2:]}"
            known = default if isinstance(default, bool) else ABSENT
        case "store_true" if default is True:
            description = f"{description} {NO_EFFECT}".strip()
    argument = Argument(
        argument.name,
        argument.flags,
        takes,
        required=required,
        default=known,
        description=description,
        off_flag=off,
        group=argument.group,
    )
    return Read(argument, argument.name, action, const if action != "append_const" else ABSENT)


def _read_valued(
    state: State,
    parser: ParserModel,
    named: dict[str, Any],
    line: int | None,
    argument: Argument,
    action: str,
    nargs: str | int | None,
) -> Read | Unread | None:
    value = read_type(state, named.get("type"))
    if named.get("type") is UNKNOWN:
        value = ValueType(TEXT.schema, unsure="its type is computed")
    if "choices" in named and named["choices"] is not None:
        # `_check_value` (line 2547) compares the converted value, so choices are read after the type.
        choices = _choices(named["choices"], named.get("type"), value)
        if choices is None:
            parser.unread.append(Unread(argument.shown, "its choices are computed", line))
        elif not choices:
            return _never_given(parser, argument, named, line)
        else:
            value = replace(value, schema=choices, unsure="")
    if value.unsure:
        parser.notes.append(f"{argument.shown}: {value.unsure}; it is passed on as text")
    default = _default(parser, argument.name, named, None)
    # The destination holds a list, so its default must be one.
    is_many = action in ("append", "extend") or nargs in ("*", "+", "...", "A...") or isinstance(nargs, int)
    takes: Takes = "value"
    length, least = None, 0
    match nargs:
        case "?":
            takes = "optional" if argument.flags else "value"
        case "*" | "+":
            takes, least = "values", int(nargs == "+")
        case "..." | "A...":
            takes = "rest"
        case int():
            takes, length, least = "values", nargs, nargs
    # `_ExtendAction` (line 1249) calls ``list.extend``: with one word it adds its letters.
    if action == "extend" and takes == "value" and value.encode == "text" and not value.unsure:
        return Unread(argument.shown, "it splits its text into single characters", line)
    repeat = action in ("append", "extend")
    if action == "extend":
        repeat = False
    known = _as_given(default, value, is_many)
    if repeat or action == "extend":
        # `_AppendAction` (line 1016) copies the default and appends.
        known = ABSENT  # what is given is added to it: it cannot be said by saying it again
        if isinstance(default, list | tuple) and default:
            parser.notes.append(f"{argument.shown}: what is given is added to the default {to_json(default)!r}")
    required = named.get("required") is True
    if not argument.flags:
        # `_get_positional_kwargs` (line 1544): a positional is required unless it may match no word.
        required = nargs not in ("?", "*", "...") and not (nargs == "*" and "default" in named)
    # Neither answer is safe: one refuses good calls, the other sends bad ones.
    if named.get("required") is UNKNOWN:
        parser.unread.append(Unread(argument.shown, "whether it is required is computed", line))
    description = expanded(named.get("help"), default, argument.name)
    # ``nargs="?"``: the bare flag stores ``const``, which has a meaning of its own where no text can express it.
    bare = takes == "optional" and not isinstance(named.get("const"), str | int | float | None)
    bare = bare or (takes == "optional" and isinstance(named.get("const"), bool))
    # Built in one step: a copy of a frozen dataclass takes five times as long, and scripts have many arguments.
    made = Argument(
        argument.name,
        argument.flags,
        takes,
        value,
        required,
        ABSENT if required else known,
        description,
        length,
        least,
        repeat,
        bare=bare,
        group=argument.group,
    )
    return Read(made, argument.name, action)


def _never_given(parser: ParserModel, argument: Argument, named: dict[str, Any], line: int | None) -> Unread | None:
    """A word cannot be one of the choices, as where they are numbers and no ``type`` makes numbers of words."""
    if named.get("required") is True or not argument.flags:
        return Unread(argument.shown, NEVER_ACCEPTED, line)
    parser.notes.append(f"{argument.shown}: none of its choices can be given as text, so it cannot be given at all")
    return None


def _choices(value: Any, kind: Any, base: ValueType) -> dict[str, Any] | None:
    """The schema of one of *value*; None where the choices cannot be read, empty where none can be given."""
    # ``choices=range(1, 11)`` is a range of integers; as an enumeration it would fill the schema.
    if isinstance(value, range) and value.step == 1 and base.schema.get("type") == "integer":
        return {"type": "integer", "minimum": value.start, "maximum": value.stop - 1} if len(value) else {}
    items = items_of(value)
    if items is UNKNOWN or not all(is_constant(item) for item in items):
        return None
    plain: list[Any] = []
    for item in items:
        if isinstance(item, EnumMember):
            # A plain enumeration's member equals no text, so without ``type=Colour`` it can never be chosen.
            if not (item.is_text or isinstance(kind, ClassValue)):
                continue
            item = item.value
        # A path compares equal to another path only, and a ``type=Path`` makes one of the word.
        plain.append(str(item) if isinstance(item, PathText) else item)
    known = base.schema.get("type")
    if base.unsure:
        # An unknown converter may return anything; where all choices are texts it is assumed to return text.
        kinds: tuple[type, ...] = (str,) if all(isinstance(item, str) for item in plain) else ()
    else:
        kinds = {"string": (str,), "integer": (int,), "number": (int, float)}.get(str(known), ())
    if not kinds:
        return None
    fitting = [item for item in plain if isinstance(item, kinds) and not isinstance(item, bool)]
    fitting = list(dict.fromkeys(fitting))
    return {"type": known, "enum": fitting} if fitting else {}


def _as_given(default: Any, value: ValueType, is_many: bool) -> Any:
    """The default as it would be given: text is converted as argparse does it; ABSENT where it cannot be said."""
    if default is None or default is UNKNOWN:
        return ABSENT
    # `_get_values` (line 2465) converts a default only where it is a text; the items of a list stay as they are.
    if is_many:
        if not isinstance(default, list | tuple):
            return ABSENT
        items = [_as_given(item, value, False) for item in default]
        return ABSENT if any(item is ABSENT for item in items) else items
    plain = to_json(default)
    kind = value.schema.get("type")
    try:
        match value.encode, kind, plain:
            # argparse converts a text default by the argument's type (`parse_known_args`, line 2135).
            case "json", _, str():
                return json.loads(plain)
            case {"join": str(separator)}, _, str():
                if value.schema["items"].get("type") != "string":
                    return ABSENT
                return plain.split(separator) if plain else ABSENT
            case {"words": list(pairs)}, _, str():
                return next((known for known, word in pairs if word.lower() == plain.lower()), ABSENT)
            case _, "integer", str():
                plain = int(plain)
            case _, "number", str():
                plain = float(plain)
    except ValueError:
        return ABSENT
    # A default outside the workspace is the script's business: declared, it would make a call fail that says nothing
    # of it.
    if value is PATH or value.schema.get("format") == "path":
        return plain if isinstance(plain, str) and re.match(r"(?!/|~|[A-Za-z]:|-$)(?!.*\.\.)", plain) else ABSENT
    kinds: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}
    fits = isinstance(plain, kinds.get(str(kind), object)) and (kind == "boolean" or not isinstance(plain, bool))
    if "enum" in value.schema and plain not in value.schema["enum"]:
        return ABSENT
    return plain if fits else ABSENT


def to_json(value: Any) -> Any:
    """Return the constant *value* as a JSON value; ABSENT where it is none."""
    match value:
        case EnumMember():
            return to_json(value.value)
        case str():
            return str(value)
        case None | bool() | int():
            return value
        case float():
            # JSON has neither NaN nor infinity (RFC 8259, section 6).
            return value if value == value and abs(value) != float("inf") else ABSENT
        case list() | tuple() | set():
            items = [to_json(item) for item in value]
            return ABSENT if any(item is ABSENT for item in items) else items
        case dict() if all(isinstance(key, str) for key in value):
            made = {key: to_json(item) for key, item in value.items()}
            return ABSENT if any(item is ABSENT for item in made.values()) else made
        case _:
            return ABSENT
