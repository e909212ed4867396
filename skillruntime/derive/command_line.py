"""Validated arguments -> the words of the command line that the script itself parses to
the same values.

The words are handed to the process as a list; no shell reads them. What a script's
parser could not read back, such as a list item that it would take for a flag, is
refused and never sent differently. ``run.command_line`` of a contract is the document
of a `CommandLine`.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
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
"""The default of a parameter that has none: ``None`` is one."""

WORD_LIMIT = 100_000
"""Characters of one word; Linux takes 131,072 bytes."""

TOTAL_LIMIT = 1_000_000
"""Characters of all words together."""

COUNT_LIMIT = 100
"""How often a counted flag is repeated."""

_BY_HAND = ("getopts", "words", "places")
# These take the word after a flag as its value even if it starts with a dash; argparse
# and parseArgs do not.
_NEXT_WORD_IS_THE_VALUE = ("click", *_BY_HAND)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument as the script's parser knows it; without ``flag`` it is positional.

    ``takes``: ``"value"``; ``"nothing"`` (a switch; ``off_flag`` says no);
    ``"optional"`` (a value, or ``true`` for the bare flag); ``"values"`` (several
    words, ``length`` of them if that is fixed); ``"rest"`` (all words that are left,
    flags too); ``"count"`` (the flag as often as the number says). ``repeat``: the flag
    is given once per item. ``encode`` says how a value is written: ``"text"``,
    ``"json"``, or ``{"words": [[true, "yes"], [false, "no"]]}``. A value that equals
    ``default`` is left out: the script knows it.
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
        """Return the parameter that *document* writes; raises `InvalidSkillError`."""
        known = {each.name for each in fields(cls)}
        if (
            not isinstance(document, Mapping)
            or not isinstance(document.get("name"), str)
            or set(document) - known
        ):
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
        """Return the parameter as a JSON object, without what it leaves unsaid."""
        return {
            each.name: value
            for each in fields(self)
            if (value := getattr(self, each.name)) != each.default
        }


@dataclass(frozen=True, slots=True)
class CommandLine:
    """How a script is called: its parameters in order, and its commands by the value
    that chooses one.

    ``parser`` is what reads the words, for each has its own ways with a value that
    starts with a dash: ``"words"`` is a script that takes them one by one, ``"places"``
    one that does so by their number.
    """

    parser: Parser = "argparse"
    parameters: tuple[Parameter, ...] = ()
    chooser: str | None = None
    commands: Mapping[str, CommandLine] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: Any) -> CommandLine:
        """Return the command line that *document* writes.

        Raises:
            InvalidSkillError: it is none.
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
        return cls(
            parser,
            tuple(Parameter.from_dict(each) for each in document.get("parameters", ())),
            document.get("chooser"),
            {
                name: cls.from_dict({"parser": parser, **each})
                for name, each in document.get("commands", {}).items()
            },
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the command line as a JSON object."""
        document: dict[str, Any] = {
            "parser": self.parser,
            "parameters": [each.to_dict() for each in self.parameters],
        }
        if self.chooser:
            document["chooser"] = self.chooser
            document["commands"] = {
                name: command.to_dict() for name, command in self.commands.items()
            }
        return document


def to_argv(command_line: CommandLine, arguments: Mapping[str, Any]) -> list[str]:
    """Return the command-line words for *arguments*, which must fit the contract.

    >>> parameters = (Parameter("path"), Parameter("limit", "--limit"), Parameter("q", "-q", "nothing"))
    >>> to_argv(CommandLine("argparse", parameters), {"path": "-", "limit": -3, "q": True})
    ['--limit=-3', '-q', '-']

    Raises:
        SkillInputError: a value cannot be said to this parser; one error per parameter.
    """
    faults: list[SkillError] = []
    words = _words(command_line, arguments, faults)
    if sum(len(word) for word in words) > TOTAL_LIMIT and not faults:
        faults.append(
            _fault(
                "",
                f"the arguments are longer than {TOTAL_LIMIT:,} characters together",
                None,
            )
        )
    if faults:
        raise SkillInputError(
            "The arguments cannot be written as the script's command line",
            skill_errors=faults,
        )
    return words


class _UnsayableError(ValueError):
    """A value that the parser would read as something else."""


_Place = tuple[Parameter, list[str] | None]


def _words(
    line: CommandLine, arguments: Mapping[str, Any], faults: list[SkillError]
) -> list[str]:
    options, places = _said_words(line, arguments, faults)
    # A flag that takes as many words as follow goes first: the next flag ends its
    # words. ``--tags a b --limit 3 file``: argparse would take ``file`` for a tag if
    # the open flag came last.
    options = sorted(
        (option for option in options if option[1]), key=lambda option: not option[0]
    )
    is_open = bool(options) and options[-1][0]
    words = [word for _, said in options for word in said]
    before = len(words)
    words = _with_places(line, words, places, is_open, faults)
    chosen = arguments.get(line.chooser) if line.chooser else None
    if chosen is None:
        return words
    if is_open and len(words) == before:
        name = next(
            p.name
            for p in line.parameters
            if p.takes in ("values", "optional") and p.name in arguments
        )
        faults.append(
            _fault(
                name,
                "it would take the command that follows as a value",
                arguments[name],
            )
        )
    return [*words, str(chosen), *_words(line.commands[chosen], arguments, faults)]


def _with_places(
    line: CommandLine,
    options: list[str],
    places: list[_Place],
    is_open: bool,
    faults: list[SkillError],
) -> list[str]:
    """Return the words of the *options*, of which the last takes more where it
    *is_open*, and of the places.
    """
    words = _in_place(places, faults)
    # Such a script reads positions: flags are looked for among the words, so they
    # follow them.
    if line.parser == "places":
        return [*words, *options]
    for parameter, said in places:
        if parameter.takes == "rest" and said:
            # argparse takes the words that are left from the first positional on, and
            # ``--`` would be one of them.
            first = words[: len(words) - len(said)] or words[: parameter.flag is None]
            if any(map(_is_flag, first)) or (is_open and first):
                faults.append(
                    _fault(
                        parameter.name,
                        "its first word would be read as a flag, or its value",
                        said,
                    )
                )
            return [*options, *words]
    is_risky = line.parser != "words" and (is_open or any(map(_is_flag, words)))
    return [*options, *(["--"] if words and is_risky else []), *words]


def _said_words(
    line: CommandLine, arguments: Mapping[str, Any], faults: list[SkillError]
) -> tuple[list[tuple[bool, list[str]]], list[_Place]]:
    """Return the words of each option, with whether it would take more, and those of
    each place.
    """
    options: list[tuple[bool, list[str]]] = []
    places: list[_Place] = []
    # An option that takes all that follows.
    last: list[_Place] = []
    for parameter in line.parameters:
        value = arguments.get(parameter.name)
        try:
            if parameter.takes == "rest" and parameter.flag is not None:
                last += (
                    [
                        (
                            parameter,
                            [parameter.flag, *_place(parameter, value, line.parser)],
                        )
                    ]
                    if value
                    else []
                )
            elif parameter.flag is None:
                places.append(
                    (
                        parameter,
                        None
                        if value is None
                        else _place(parameter, value, line.parser),
                    )
                )
            elif value is not None and not _is_default(value, parameter):
                options.append(_option(line, parameter, value))
        except _UnsayableError as error:
            faults.append(_fault(parameter.name, str(error), value))
    return options, [*places, *last]


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-"


def _option(
    line: CommandLine, parameter: Parameter, value: Any
) -> tuple[bool, list[str]]:
    """Return the words of one option, and whether it would take further words too."""
    flag = parameter.flag or ""
    match parameter.takes:
        case "nothing":
            chosen = flag if value is True else parameter.off_flag
            return False, [chosen] if chosen else []
        case "count":
            return False, [flag] * _times(parameter, value)
        case "optional" if value is True:
            return True, [flag]
    items = value if parameter.repeat else [value]
    _refuse_separator(items, line.parser)
    if parameter.takes != "values":
        is_optional = parameter.takes == "optional"
        return False, [
            word
            for item in items
            for word in _said(line, flag, _text(parameter, item), is_optional)
        ]
    words: list[str] = []
    for group in items:
        values = _values(line, parameter, group)
        if len(items) == len(values) == 1 and _is_flag(values[0]):
            return False, _attached(line, flag, values[0])
        words += [flag, *values]
    return parameter.length is None, words


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


def _said(line: CommandLine, flag: str, text: str, attach: bool) -> list[str]:
    is_risky = attach or _is_flag(text)
    # The next word is the value in any case, so a dash is not a reason to attach it.
    is_next = line.parser in _NEXT_WORD_IS_THE_VALUE and not (
        attach and line.parser not in _BY_HAND
    )
    return [flag, text] if is_next or not is_risky else _attached(line, flag, text)


def _attached(line: CommandLine, flag: str, text: str) -> list[str]:
    """The flag and its value as one word: ``--x=5`` or ``-x5``, for POSIX attaches to a
    short flag without a sign.
    """
    # argparse splits at the first ``=`` of any flag (line 2246).
    if (len(flag) > 2 and flag[0] == flag[1]) or line.parser == "argparse":
        return [f"{flag}={text}"]
    # ``-x`` with an attached empty text is the bare flag.
    if not text:
        raise _UnsayableError("it cannot be empty")
    return [flag + text]


def _refuse_separator(values: Any, parser: str) -> None:
    """Refuse ``--`` as a value: argparse (in Python 3.11) drops it, even where it is
    attached to its flag.
    """
    pending = values if isinstance(values, list | tuple) else [values]
    if parser == "argparse" and any(
        each == "--" or (isinstance(each, list) and "--" in each) for each in pending
    ):
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
    """Return the positional words; what was left out before one that was given is
    filled with its default.
    """
    # Trailing positionals that say nothing more than the default are left out.
    while places and not _is_needed(*places[-1]):
        places = places[:-1]
    words: list[str] = []
    for index, (parameter, given) in enumerate(places):
        if given is None and parameter.default not in (ABSENT, None):
            given = _place(parameter, parameter.default)
        if (
            given is None
            and parameter.takes == "value"
            and any(later for _, later in places[index + 1 :])
        ):
            reason = (
                "it is positional: the arguments after it can be given only with it"
            )
            faults.append(_fault(parameter.name, reason, None))
        words += given or []
    return words


def _is_needed(parameter: Parameter, given: list[str] | None) -> bool:
    default = parameter.default
    return bool(given) and (
        default in (ABSENT, None) or given != _place(parameter, default)
    )


def _is_default(value: Any, parameter: Parameter) -> bool:
    # ``True == 1`` in Python, but they are not the same argument.
    return type(value) is type(parameter.default) and bool(value == parameter.default)


def _is_negative_number(word: str, line: CommandLine) -> bool:
    """Whether argparse takes *word* for a number: it does, unless one of its flags
    looks like one.
    """
    # The expression of `_negative_number_matcher` (argparse.py 3.11, line 1381).
    if line.parser != "argparse" or not re.fullmatch(r"-\d+|-\d*\.\d+", word):
        return False
    # `_has_negative_number_optionals`: with a flag like ``-1`` every negative number is
    # a flag.
    return not any(re.match(r"-\d", each.flag) for each in line.parameters if each.flag)


def _text(parameter: Parameter, value: Any) -> str:
    text = (
        json.dumps(value, ensure_ascii=False)
        if parameter.encode == "json"
        else _plain(value)
    )
    if isinstance(parameter.encode, Mapping):
        pairs = parameter.encode.get("words", ())
        text = next(
            (
                word
                for known, word in pairs
                if known == value and type(known) is type(value)
            ),
            text,
        )
    # The system ends each word at its first NUL (``execve``).
    if "\0" in text:
        raise _UnsayableError("it cannot contain a NUL character")
    # Half of a surrogate pair has no UTF-8 form.
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _UnsayableError("it contains half of a surrogate pair")
    if len(text) > WORD_LIMIT:
        raise _UnsayableError(f"it is longer than {WORD_LIMIT:,} characters")
    return text


def _plain(value: Any) -> str:
    match value:
        case str():
            return value
        # Scripts that read JSON want ``true``; what argparse converts has words of its
        # own.
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
    """Return the name of the tool that the script at this path is.

    >>> tool_name("scripts/fill_form.py")
    'fill-form'
    """
    stem = posixpath.splitext(posixpath.basename(script))[0]
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or "script"
