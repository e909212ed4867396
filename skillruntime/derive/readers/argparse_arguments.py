"""Convert each call of ``add_argument`` to an argument, by the rules of argparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skillruntime.derive.command import TEXT, Argument, Unread, ValueType
from skillruntime.derive.command_line import ABSENT, Takes
from skillruntime.derive.readers.argparse_parsers import Asked, Parser
from skillruntime.derive.readers.python_values import (
    UNKNOWN,
    Enumeration,
    Member,
    Symbol,
    is_constant,
    items_of,
)
from skillruntime.derive.readers.value_types import (
    fits,
    read_type,
    refuses_values,
    to_json,
)
from skillruntime.derive.text_fields import expanded

__all__ = ["Read", "read_argument"]

_NARGS = {
    "OPTIONAL": "?",
    "ZERO_OR_MORE": "*",
    "ONE_OR_MORE": "+",
    "REMAINDER": "...",
    "PARSER": "A...",
}
# The actions whose constructor sets ``nargs=0`` (argparse.py 3.11, lines 924-1103):
# they never take a word.
_SWITCHES = (
    "store_true",
    "store_false",
    "store_const",
    "append_const",
    "count",
    "optional_boolean",
)
_ACTIONS = (*_SWITCHES, "store", "append", "extend")
_LEFT_OUT = ("?", "*", "...")
"""Values of ``nargs`` with which a positional may match no word."""
_ANY_VALUE = (TEXT.schema, {"type": "integer"}, {"type": "number"})


@dataclass(frozen=True, slots=True)
class Read:
    """One argument as argparse sees it, with its ``dest`` and its kind."""

    argument: Argument
    dest: str
    action: str
    const: Any = None


def read_argument(parser: Parser, asked: Asked) -> Read | Unread | None:
    """Return the declared argument, or the reason why it could not be read, or None for
    ``--help`` and the like.
    """
    named = asked.named
    texts = [name for name in asked.arguments if isinstance(name, str)]
    # The first name decides (`add_argument`, line 1419): without a dash it is
    # positional.
    is_option = bool(texts) and texts[0].startswith("-")
    nargs = named.get("nargs")
    if isinstance(nargs, Symbol):
        # ``nargs=argparse.REMAINDER``: the constants of argparse are texts (lines
        # 96-102).
        nargs = _NARGS.get(nargs.name.rpartition(".")[2], UNKNOWN)
    action = _action(named.get("action", "store"))
    # Both print and exit (`_HelpAction`, `_VersionAction`): no call of the script with
    # them does its work.
    if action in ("help", "version"):
        return None
    reason = _why_unread(asked, texts, action, nargs)
    if reason:
        # A positional that may not be left out, or ``required=True``: the parser
        # refuses every call without it.
        if is_option:
            is_needed = named.get("required") is True
        else:
            is_needed = bool(texts) and nargs not in _LEFT_OUT
        return Unread(
            texts[0] if texts else "an argument",
            reason,
            asked.line,
            is_needed=is_needed and asked.is_certain,
        )
    argument = Argument(
        _destination(named.get("dest"), texts, is_option=is_option),
        tuple(texts) if is_option else (),
        group=asked.group,
    )
    if action in _SWITCHES:
        return _read_switch(parser, argument, action, named)
    return _read_valued(parser, asked, argument, action, nargs)


def _destination(declared: Any, names: list[str], *, is_option: bool) -> str:
    if isinstance(declared, str):
        return declared
    if not is_option:
        return names[0]
    # `_get_optional_kwargs` (line 1560): the first long flag names the destination,
    # dashes become underscores.
    long_flags = [name for name in names if name.startswith("--")]
    return (long_flags or names)[0].lstrip("-").replace("-", "_")


def _why_unread(asked: Asked, texts: list[str], action: str, nargs: Any) -> str:
    """Return why the argument cannot be read; empty if it can."""
    named = asked.named
    # ``add_argument(*names)``: everything else depends on the flags, so do not guess.
    if len(texts) != len(asked.arguments):
        return "its name is computed"
    if not texts and not isinstance(named.get("dest"), str):
        return "its name is computed"
    # ``add_argument("--x", **options)`` with unknown options: any of them may change
    # what the flag takes.
    if "**" in named:
        return "its options are computed"
    if action not in _ACTIONS:
        return "its action is computed"
    if not asked.is_certain:
        return "whether it is there depends on a condition"
    if not isinstance(nargs, str | int | None):
        return "the number of its values is computed"
    if not _takes_whole_words(action, nargs, named.get("type")):
        return "it takes words in a way that cannot be declared"
    return ""


def _takes_whole_words(action: str, nargs: str | int | None, converter: Any) -> bool:
    """Return whether each word that the argument takes is one of its values."""
    if action in _SWITCHES:
        return nargs != "A..."
    if action == "extend" and nargs in (None, "?"):
        # `_ExtendAction` (line 1249) calls ``list.extend``: with one word it adds its
        # letters.
        return converter is not None
    # argparse refuses 0 for an action that stores, and ``nargs=-1`` takes no word
    # (`_get_nargs_pattern`, line 2337).
    if isinstance(nargs, int):
        return nargs > 0
    return nargs != "A..."


def _action(value: Any) -> str:
    if value == Symbol("argparse.BooleanOptionalAction"):
        return "optional_boolean"
    return value if isinstance(value, str) else ""


def _default(parser: Parser, dest: str, named: dict[str, Any], otherwise: Any) -> Any:
    value = named.get("default", parser.named.get("argument_default", otherwise))
    # `set_defaults` (line 1400) wins over the argument's own default, whichever came
    # first.
    value = parser.defaults.get(dest, value)
    return UNKNOWN if isinstance(value, Symbol) else value


def _read_switch(
    parser: Parser, argument: Argument, action: str, named: dict[str, Any]
) -> Read:
    # `_StoreTrueAction` (line 982) and its opposite fix both the value that the flag
    # stores and the one without it.
    const = to_json(named.get("const"))
    otherwise: bool | None = None
    if action in ("store_true", "store_false"):
        const = action == "store_true"
        otherwise = not const
    default = _default(parser, argument.name, named, otherwise)
    description = expanded(named.get("help"), default, argument.name)
    takes: Takes = "nothing"
    off, known, required = None, ABSENT, named.get("required") is True
    match action:
        case "count":
            # `_CountAction` adds one to the default for each flag: no call can reach a
            # number below it.
            takes, required = "count", False
            known = default if type(default) is int else 0
        case "optional_boolean":
            # `BooleanOptionalAction` (line 885) adds ``--no-x`` for each long flag.
            flag = long_flag(argument)
            off = f"{flag[:2]}no-{flag[2:]}"
            known = default if isinstance(default, bool) else ABSENT
        case "store_true" if default is True:
            description = f"{description} (has no effect: it is on by default)".strip()
    switch = replace(
        argument,
        takes=takes,
        required=required,
        default=known,
        description=description,
        off_flag=off,
        has_hidden_default=not isinstance(default, bool | None),
    )
    return Read(switch, argument.name, action, const)


def long_flag(argument: Argument) -> str:
    """Return the most descriptive flag: the first long one."""
    long_flags = [flag for flag in argument.flags if len(flag) > 2]
    flags = [*long_flags, *argument.flags, ""]
    return flags[0]


def _read_valued(
    parser: Parser, asked: Asked, argument: Argument, action: str, nargs: Any
) -> Read | Unread:
    named, shown = asked.named, argument.shown
    value = read_type(named.get("type"))
    if named.get("choices") is not None:
        # `_check_value` (line 2547) compares the converted value, so choices are read
        # after the type.
        choices = _choices_schema(named["choices"], named.get("type"), value)
        if choices is None:
            parser.unread.append(Unread(shown, "its choices are computed", asked.line))
        elif not choices:
            # Text is never equal to a number: without ``type=int`` no choice can match.
            return Unread(shown, "none of its choices can be given as text", asked.line)
        else:
            value = replace(value, schema=choices, unsure="")
    takes: Takes = "value"
    length, least = None, 0
    match nargs:
        case "?":
            takes = "optional" if argument.flags else "value"
        case "*" | "+":
            takes, least = "values", int(nargs == "+")
        case "...":
            takes = "rest"
        case int():
            takes, length, least = "values", nargs, nargs
    default = _default(parser, argument.name, named, None)
    # `append` adds to the default (`_AppendAction`, line 1016), so a call that sends
    # the default again would double it.
    known = ABSENT
    if action not in ("append", "extend"):
        # The destination of several words holds a list, so its default must be one.
        read_default = _list_as_given if takes in ("values", "rest") else _as_given
        known = read_default(default, value)
    required = named.get("required") is True
    if not argument.flags:
        # `_get_positional_kwargs` (line 1544): a positional is required unless it may
        # match no word.
        required = nargs not in _LEFT_OUT
    # Neither guess is safe: one refuses valid calls, the other sends invalid ones.
    if named.get("required") is UNKNOWN:
        reason = "whether it is required is computed"
        parser.unread.append(Unread(shown, reason, asked.line))
    # Every call sends a value, which the script's own function may refuse.
    is_any_value = required and value.schema in _ANY_VALUE
    if is_any_value and refuses_values(named.get("type")):
        reason = "its converter may refuse the value"
        parser.unread.append(Unread(shown, reason, asked.line))
    valued = replace(
        argument,
        takes=takes,
        value=value,
        required=required,
        default=ABSENT if required else known,
        description=expanded(named.get("help"), default, argument.name),
        length=length,
        least=least,
        repeat=action == "append",
        bare=takes == "optional" and _has_meaning_of_its_own(named.get("const")),
        # An empty default is as good as none: ``default=[]``.
        has_hidden_default=known is ABSENT and default not in (None, False, "", []),
    )
    return Read(valued, argument.name, action)


def _has_meaning_of_its_own(const: Any) -> bool:
    """Return whether the bare flag of ``nargs="?"``, which stores *const*, has a
    meaning that a text cannot express.
    """
    if isinstance(const, bool):
        return True
    return not isinstance(const, str | int | float | None)


def _choices_schema(
    choices: Any, converter: Any, base: ValueType
) -> dict[str, Any] | None:
    """Return the enum schema of *choices*; None if they cannot be read, ``{}`` if no
    command line can supply one.
    """
    known = base.schema.get("type")
    # ``choices=range(1, 11)`` is a range of integers; as an enum it would fill the
    # schema.
    if isinstance(choices, range) and choices.step == 1 and known == "integer":
        if not choices:
            return {}
        return {
            "type": "integer",
            "minimum": choices.start,
            "maximum": choices.stop - 1,
        }
    items = items_of(choices)
    if items is UNKNOWN or not is_constant(items):
        return None
    # argparse compares the text from the command line with the choices, and a plain
    # Enum member never equals a string, unless ``type=Colour`` converts the text.
    if not isinstance(converter, Enumeration):
        items = [item for item in items if not isinstance(item, Member) or item.is_text]
    plain = [item.value if isinstance(item, Member) else item for item in items]
    # An unknown converter may return anything; if all choices are texts, it is assumed
    # to return text.
    if base.unsure and not all(isinstance(item, str) for item in plain):
        return None
    if known not in ("string", "integer", "number"):
        return None
    fitting = dict.fromkeys(item for item in plain if fits(item, {"type": known}))
    if not fitting:
        return {}
    return {"type": known, "enum": list(fitting)}


def _as_given(default: Any, value: ValueType) -> Any:
    """Return the default in the form of a call's value; ABSENT if no value expresses
    it.
    """
    if default is None or default is UNKNOWN:
        return ABSENT
    plain = to_json(default)
    return plain if fits(plain, value.schema) else ABSENT


def _list_as_given(default: Any, value: ValueType) -> Any:
    """Return the items of the list *default* in the form of a call's values; ABSENT if
    one of them cannot be expressed.
    """
    # `_get_values` (line 2465) converts a default only where it is a text; the items of
    # a list stay as they are.
    if not isinstance(default, list | tuple):
        return ABSENT
    items = [_as_given(item, value) for item in default]
    return ABSENT if any(item is ABSENT for item in items) else items
