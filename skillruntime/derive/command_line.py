"""Convert validated arguments to the words of a command line that the script itself
parses to the same values.

The words are passed to the process as a list, without a shell. A value that the
script's parser could not read back, such as a list item that it would take for a flag,
is refused and never sent in another form. ``run.command_line`` of a contract is the
document of a `CommandLine`.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Any, Literal, get_args

from skillruntime.errors import (
    ErrorCode,
    InvalidSkillError,
    SkillError,
    SkillInputError,
)

__all__ = ["ABSENT", "CommandLine", "Parameter", "to_argv", "tool_name"]

Takes = Literal["value", "nothing", "optional", "values", "rest", "count"]
Parser = Literal["argparse", "click", "getopts", "words", "places", "parseArgs"]

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT"})()
"""The default of a parameter without a default, because ``None`` is a possible
default.
"""

WORD_LIMIT = 100_000
"""Characters of one word; Linux takes 131,072 bytes."""

TOTAL_LIMIT = 1_000_000
"""Characters of all words together."""

COUNT_LIMIT = 100
"""How often a counted flag is repeated."""

_BY_HAND = ("getopts", "words", "places")
# These parsers take the word after a flag as its value even if it starts with a dash;
# argparse and parseArgs do not.
_NEXT_WORD_IS_THE_VALUE = ("click", *_BY_HAND)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument as the script's parser sees it; without ``flag`` it is positional.

    ``takes``: ``"value"``; ``"nothing"`` (a switch; ``off_flag`` says no);
    ``"optional"`` (a value, or ``true`` for the bare flag); ``"values"`` (several
    words, ``length`` of them if that is fixed); ``"rest"`` (all remaining words,
    including flags); ``"count"`` (the flag, repeated as often as the number says).
    ``repeat``: the flag is given once per item. ``encode`` says how a value is written:
    ``"text"``, ``"json"``, or ``{"words": [[true, "yes"], [false, "no"]]}``. A value
    that equals ``default`` is left out, because the script uses it anyway.
    """

    name: str
    flag: str | None = None
    takes: Takes = "value"
    off_flag: str | None = None
    length: int | None = None
    repeat: bool = False
    encode: str | Mapping[str, Any] = "text"
    default: Any = ABSENT

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Parameter:
        """Parse *document* into a parameter; raises `InvalidSkillError`."""
        if not _is_parameter(document):
            raise InvalidSkillError(
                f"run.command_line: {str(document)[:80]!r} is not a parameter"
            )
        if document.get("takes", "value") not in get_args(Takes):
            raise InvalidSkillError(
                f"run.command_line: takes is {document['takes']!r}, not one of "
                f"{get_args(Takes)}"
            )
        return cls(**document)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameter as a JSON object, without unset fields."""
        document = {}
        for member in fields(self):
            value = getattr(self, member.name)
            if value != member.default:
                document[member.name] = value
        return document


def _is_parameter(document: Any) -> bool:
    """Return whether *document* is an object with a name and only known members."""
    if not isinstance(document, Mapping) or not isinstance(document.get("name"), str):
        return False
    return {member.name for member in fields(Parameter)}.issuperset(document)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """How a script is called: its parameters in order, and its commands by the value
    that chooses one.

    ``parser`` names the parser of the words, because parsers differ in how they read a
    value that starts with a dash: ``"words"`` is a script that takes the words one by
    one, ``"places"`` one that takes them by position.
    """

    parser: Parser = "argparse"
    parameters: tuple[Parameter, ...] = ()
    chooser: str | None = None
    commands: Mapping[str, CommandLine] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: Any) -> CommandLine:
        """Parse *document* into a command line.

        Raises:
            InvalidSkillError: *document* is not a command line.
        """
        if not isinstance(document, Mapping):
            raise InvalidSkillError(
                f"run.command_line is {type(document).__name__}, not an object"
            )
        parser = document.get("parser", "argparse")
        if parser not in get_args(Parser):
            raise InvalidSkillError(
                f"run.command_line: parser is {parser!r}, not one of {get_args(Parser)}"
            )
        parameters = map(Parameter.from_dict, document.get("parameters", ()))
        commands = {
            name: cls.from_dict({"parser": parser, **command})
            for name, command in document.get("commands", {}).items()
        }
        return cls(parser, tuple(parameters), document.get("chooser"), commands)

    def to_dict(self) -> dict[str, Any]:
        """Return the command line as a JSON object."""
        document: dict[str, Any] = {
            "parser": self.parser,
            "parameters": [parameter.to_dict() for parameter in self.parameters],
        }
        if self.chooser:
            document["chooser"] = self.chooser
            document["commands"] = {
                name: command.to_dict() for name, command in self.commands.items()
            }
        return document


def to_argv(command_line: CommandLine, arguments: Mapping[str, Any]) -> list[str]:
    """Return the command-line words for *arguments*, which must fit the contract.

    >>> limit = Parameter("limit", "--limit")
    >>> quiet = Parameter("quiet", "-q", "nothing")
    >>> line = CommandLine("argparse", (Parameter("path"), limit, quiet))
    >>> to_argv(line, {"path": "-", "limit": -3, "quiet": True})
    ['--limit=-3', '-q', '-']

    Raises:
        SkillInputError: a value cannot be written for this parser; one error per
            parameter.
    """
    faults: list[SkillError] = []
    words = _words(command_line, arguments, faults)
    if sum(len(word) for word in words) > TOTAL_LIMIT and not faults:
        why = f"the arguments are longer than {TOTAL_LIMIT:,} characters together"
        faults.append(_fault("", why, None))
    if faults:
        raise SkillInputError(
            "The arguments cannot be written as the script's command line",
            skill_errors=faults,
        )
    return words


class _UnsayableError(ValueError):
    """A value that the parser would read differently."""


@dataclass(frozen=True, slots=True)
class _Option:
    """The words of one option. An option that *is_open* would also take the following
    words as values.
    """

    words: list[str]
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """The words of one positional parameter; None if it was left out."""

    parameter: Parameter
    words: list[str] | None


def _words(
    line: CommandLine, arguments: Mapping[str, Any], faults: list[SkillError]
) -> list[str]:
    options, places = _options_and_places(line, arguments, faults)
    # A flag that takes all following words goes first, so that the next flag ends its
    # words. ``--tags a b --limit 3 file``: argparse would take ``file`` for a tag if
    # the open flag came last.
    options = [option for option in options if option.words]
    options.sort(key=lambda option: not option.is_open)
    is_open = bool(options) and options[-1].is_open
    option_words = list(chain.from_iterable(option.words for option in options))
    words = _with_places(line, option_words, places, is_open, faults)
    chosen = arguments.get(line.chooser) if line.chooser else None
    if chosen is None:
        return words
    if is_open and len(words) == len(option_words):
        name = _open_option(line, arguments)
        why = "it would take the command that follows as a value"
        faults.append(_fault(name, why, arguments[name]))
    return [*words, str(chosen), *_words(line.commands[chosen], arguments, faults)]


def _open_option(line: CommandLine, arguments: Mapping[str, Any]) -> str:
    """Return the name of the first option given that may take further words."""
    for parameter in line.parameters:
        if parameter.takes in ("values", "optional") and parameter.name in arguments:
            return parameter.name
    raise LookupError("no option is open")


def _with_places(
    line: CommandLine,
    options: list[str],
    places: list[_Place],
    is_open: bool,
    faults: list[SkillError],
) -> list[str]:
    """Return the words of the *options* and of the positional parameters. If *is_open*,
    the last option would take the words that follow it.
    """
    words = _in_place(_before_list(line, places), faults)
    # Such a script reads words by position, so the flags come after them.
    if line.parser == "places":
        return [*words, *options]
    for place in places:
        if place.parameter.takes == "rest" and place.words:
            # argparse takes all words from the first positional on, including ``--``.
            first = words[: len(words) - len(place.words)]
            if not first and place.parameter.flag is None:
                first = words[:1]
            if any(map(_is_flag, first)) or (is_open and first):
                why = "its first word would be read as a flag, or its value"
                faults.append(_fault(place.parameter.name, why, place.words))
            return [*options, *words]
    # A script that takes its words one by one would take ``--`` as one of them.
    if not words or line.parser == "words":
        return [*options, *words]
    if is_open or any(map(_is_flag, words)):
        return [*options, "--", *words]
    return [*options, *words]


def _options_and_places(
    line: CommandLine, arguments: Mapping[str, Any], faults: list[SkillError]
) -> tuple[list[_Option], list[_Place]]:
    """Return the options and the places, in the order of the parameters."""
    options: list[_Option] = []
    places: list[_Place] = []
    # Options that take all following words.
    last: list[_Place] = []
    for parameter in line.parameters:
        value = arguments.get(parameter.name)
        try:
            if parameter.flag is None:
                words = None
                if value is not None:
                    words = _place(parameter, value, line.parser)
                places.append(_Place(parameter, words))
            elif parameter.takes == "rest":
                if value:
                    words = _place(parameter, value, line.parser)
                    last.append(_Place(parameter, [parameter.flag, *words]))
            elif value is not None and not _is_default(value, parameter):
                options.append(_option(line, parameter, value))
        except _UnsayableError as error:
            faults.append(_fault(parameter.name, str(error), value))
    return options, [*places, *last]


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-"


def _option(line: CommandLine, parameter: Parameter, value: Any) -> _Option:
    flag = parameter.flag or ""
    match parameter.takes:
        case "nothing":
            chosen = flag if value is True else parameter.off_flag
            return _Option([chosen] if chosen else [])
        case "count":
            return _Option([flag] * _times(parameter, value))
        case "optional" if value is True:
            return _Option([flag], is_open=True)
    items = value if parameter.repeat else [value]
    _refuse_separator(items, line.parser)
    words: list[str] = []
    if parameter.takes != "values":
        attach = parameter.takes == "optional"
        for item in items:
            words += _flag_and_value(line, flag, _text(parameter, item), attach)
        return _Option(words)
    for group in items:
        values = _values(line, parameter, group)
        if len(items) == len(values) == 1 and _is_flag(values[0]):
            return _Option(_attached(line, flag, values[0]))
        words += [flag, *values]
    return _Option(words, is_open=parameter.length is None)


def _times(parameter: Parameter, value: Any) -> int:
    # ``-vvv``: the default is where argparse starts counting. A count above the limit
    # would be an attack.
    base = parameter.default if isinstance(parameter.default, int) else 0
    if not base <= int(value) <= base + COUNT_LIMIT:
        raise _UnsayableError(f"it is from {base} to {base + COUNT_LIMIT}")
    return int(value) - base


def _values(line: CommandLine, parameter: Parameter, group: Any) -> list[str]:
    words = _place(parameter, group)
    # argparse ends a list at the first word that looks like a flag (`_parse_optional`,
    # line 2229).
    if len(words) > 1 and line.parser not in ("click", "words", "places"):
        for word in words:
            if _is_flag(word) and not _is_negative_number(word, line):
                raise _UnsayableError(f"{word[:40]!r} would be read as a flag")
    return words


def _flag_and_value(line: CommandLine, flag: str, text: str, attach: bool) -> list[str]:
    is_by_hand = line.parser in _BY_HAND
    # The next word is the value in any case, so a value with a dash need not be
    # attached.
    if line.parser in _NEXT_WORD_IS_THE_VALUE and (is_by_hand or not attach):
        return [flag, text]
    if attach or _is_flag(text):
        return _attached(line, flag, text)
    return [flag, text]


def _attached(line: CommandLine, flag: str, text: str) -> list[str]:
    """Return the flag and its value as one word: ``--x=5``, or ``-x5`` because POSIX
    attaches a value to a short flag without a sign.
    """
    is_long = len(flag) > 2 and flag[0] == flag[1]
    # argparse splits at the first ``=`` of any flag (line 2246).
    if is_long or line.parser == "argparse":
        return [f"{flag}={text}"]
    # ``-x`` with an attached empty text is the bare flag.
    if not text:
        raise _UnsayableError("it cannot be empty")
    return [flag + text]


def _refuse_separator(values: Any, parser: str) -> None:
    """Refuse ``--`` as a value: argparse (in Python 3.11) drops it, even if it is
    attached to its flag.
    """
    if parser != "argparse":
        return
    for value in values if isinstance(values, list | tuple) else [values]:
        is_inside = isinstance(value, list) and "--" in value
        if value == "--" or is_inside:
            raise _UnsayableError("it cannot be '--', which ends the flags")


def _place(parameter: Parameter, value: Any, parser: str = "") -> list[str]:
    _refuse_separator(value, parser)
    if parameter.takes not in ("values", "rest"):
        return [_text(parameter, value)]
    if not isinstance(value, list | tuple):
        raise _UnsayableError("it is a list")
    if parameter.length is not None and len(value) != parameter.length:
        raise _UnsayableError(f"it has {parameter.length} items")
    return [_text(parameter, item) for item in value]


def _in_place(places: list[_Place], faults: list[SkillError]) -> list[str]:
    """Return the positional words. A positional that was left out before a given one
    gets its default.
    """
    # Trailing positionals that only repeat the default are left out.
    while places and not _is_needed(places[-1]):
        places = places[:-1]
    words: list[str] = []
    for index, place in enumerate(places):
        parameter, given = place.parameter, place.words
        if given is None and parameter.default not in (ABSENT, None):
            given = _place(parameter, parameter.default)
        if given is None and parameter.takes == "value":
            if any(later.words for later in places[index + 1 :]):
                why = (
                    "it is positional: the arguments after it can be given only with it"
                )
                faults.append(_fault(parameter.name, why, None))
        words += given or []
    return words


def _before_list(line: CommandLine, places: list[_Place]) -> list[_Place]:
    """Return *places* without the omitted ones right before a final list, for a script
    that reads words by position: its list holds all remaining words.
    """
    if line.parser != "places" or not places:
        return places
    *named, last = places
    if last.parameter.takes != "values":
        return places
    while named and named[-1].words is None and named[-1].parameter.default is ABSENT:
        named.pop()
    return [*named, last]


def _is_needed(place: _Place) -> bool:
    if not place.words:
        return False
    default = place.parameter.default
    return default in (ABSENT, None) or place.words != _place(place.parameter, default)


def _is_default(value: Any, parameter: Parameter) -> bool:
    # ``True == 1`` in Python, but they are not the same argument.
    return type(value) is type(parameter.default) and bool(value == parameter.default)


def _is_negative_number(word: str, line: CommandLine) -> bool:
    """Return whether argparse reads *word* as a negative number: it does unless one of
    its flags looks like a number.
    """
    # The expression of `_negative_number_matcher` (argparse.py 3.11, line 1381).
    if line.parser != "argparse" or not re.fullmatch(r"-\d+|-\d*\.\d+", word):
        return False
    # `_has_negative_number_optionals`: with a flag like ``-1`` every negative number is
    # a flag.
    return not any(
        parameter.flag and re.match(r"-\d", parameter.flag)
        for parameter in line.parameters
    )


def _text(parameter: Parameter, value: Any) -> str:
    text = _encoded(parameter.encode, value)
    # The system ends each word at its first NUL (``execve``).
    if "\0" in text:
        raise _UnsayableError("it cannot contain a NUL character")
    # Half of a surrogate pair has no UTF-8 form.
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _UnsayableError("it contains half of a surrogate pair")
    if len(text) > WORD_LIMIT:
        raise _UnsayableError(f"it is longer than {WORD_LIMIT:,} characters")
    return text


def _encoded(encode: str | Mapping[str, Any], value: Any) -> str:
    if encode == "json":
        return json.dumps(value, ensure_ascii=False)
    if isinstance(encode, Mapping):
        words: Iterable[tuple[Any, str]] = encode.get("words", ())
        for known, word in words:
            # ``True == 1`` in Python, but they are not the same argument.
            if known == value and type(known) is type(value):
                return word
    return _plain(value)


def _plain(value: Any) -> str:
    match value:
        case str():
            return value
        # Scripts that read JSON want ``true``; values that argparse converts have words
        # of their own.
        case bool() | None:
            return json.dumps(value)
        # JSON does not distinguish 3.0 from 3, but ``int("3.0")`` fails.
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case int() | float():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _fault(name: str, why: str, value: Any) -> SkillError:
    pointer = "/" + name.replace("~", "~0").replace("/", "~1") if name else ""
    details: dict[str, Any] = {"path": pointer, "expected": why}
    if value is not None:
        details["received"] = str(value)[:80]
    return SkillError(
        ErrorCode.INVALID_INPUT, f"{name or 'the arguments'}: {why}", True, details
    )


def tool_name(script: str) -> str:
    """Return the tool name of the script at this path.

    >>> tool_name("scripts/fill_form.py")
    'fill-form'
    """
    stem = posixpath.splitext(posixpath.basename(script))[0]
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "script"
