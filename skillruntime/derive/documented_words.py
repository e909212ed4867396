"""The words of a documented call, read by an argparse parser that is made from the contract's command line."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from skillruntime.derive.command_line import CommandLine, Parameter
from skillruntime.derive.documented_calls import Word

__all__ = ["ParsedWords", "parse_words", "stands_for_many", "stands_for_one"]

_CERTAIN_PLACEHOLDER = re.compile(r"[<>{}$`\[\]…*]|\.\.\.")
# ``FILE``, ``path/to/x``, ``your-name``, ``xxx``.
_PLACEHOLDER = re.compile(r"^[A-Z][A-Z0-9_-]+$|^(?:[Yy]our|YOUR|my|/?path/to)\b|^[xX]{2,}$|^\.+/?$")
# ``$@``, ``${ARGS[@]}``, ``$OPTIONS``, ``<options>``, ``[args]``: any number of words.
_MANY = re.compile(
    r"^\$|\$[@*]|\[[@*]\]|\.\.\.|…|(?i:^[<{\[](?:[\w -]*\b)?(?:args?|arguments?|options?|flags?|params?)[>}\]])"
)
_COMMAND = "the command and its words"


class _NotParsedError(Exception):
    """The words do not fit the command line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _NotParsedError(message)


class _Text(str):
    """A word's text that knows its place: argparse passes it on as it is."""

    __slots__ = ("word",)
    word: Word


@dataclass(slots=True)
class ParsedWords:
    """What the words of a call give, by parameter, and what the script's parser would refuse."""

    given: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    unknown: list[Word] = field(default_factory=list)
    surplus: list[Word] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    wrong_command: tuple[Word, list[str]] | None = None
    wrong_choices: list[tuple[str, Word, list[Any]]] = field(default_factory=list)
    schema: Mapping[str, Any] = field(default_factory=dict)

    def to_arguments(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and values that the words mean, as the contract's arguments."""
        for name, value in self.given.items():
            schema = self.schema.get("properties", {}).get(name, {})
            encode = self.parameters[name].encode if name in self.parameters else "text"
            if isinstance(value, list):
                yield name, [_value(each, schema.get("items", {}), encode) for each in value]
            else:
                yield name, _value(value, schema, encode) if isinstance(value, str) else value


def stands_for_one(word: str) -> bool:
    """Whether *word* is written in place of a value: ``<file>``, ``$NAME``, ``OUTPUT``, ``path/to/file``."""
    return _CERTAIN_PLACEHOLDER.search(word) is not None or _PLACEHOLDER.search(word) is not None


def stands_for_many(word: str) -> bool:
    """Whether *word* may be any number of words, flags included: ``$ARGS``, ``<options>``."""
    return _MANY.search(word) is not None


def parse_words(
    words: Iterable[Word], line: CommandLine, flags: Mapping[str, str], schema: Mapping[str, Any]
) -> ParsedWords | None:
    """Return what *words* mean on *line*; *flags* names the parameter of every flag, *schema* is the input's."""
    parsed = ParsedWords(schema=schema)
    texts: list[_Text] = []
    for word in words:
        texts.append(_Text(word.text))
        texts[-1].word = word
    while True:
        parsed.parameters |= {each.name: each for each in line.parameters}
        try:
            values, rest = _parser(line, flags, _required(parsed.schema)).parse_known_args(texts)
        except _NotParsedError:
            # Something is missing: what is there is read all the same.
            values, rest = _parser(line, flags, frozenset()).parse_known_args(texts)
        found = {name: value for name, value in vars(values).items() if value not in (None, [])}
        below = found.pop(_COMMAND, [])
        parsed.given |= found
        for text in rest:
            is_flag = re.fullmatch(r"--[\w.-]+(?:=.*)?|-[A-Za-z]\w*", text) is not None
            word = Word(text.partition("=")[0] if is_flag else text, text.word.line, text.word.column)  # type: ignore[attr-defined]  # it is one of *texts*
            (parsed.unknown if is_flag else parsed.surplus).append(word)
        if not below or not line.chooser:
            break
        command, texts = below[0], below[1:]
        if command not in line.commands:
            # ``start/stop`` and ``start,stop`` show several calls.
            several = re.split(r"[/,|]", command)
            if not (stands_for_one(command) or all(each in line.commands for each in several)):
                parsed.wrong_command = (command.word, list(line.commands))
            return parsed
        parsed.given[line.chooser] = str(command)
        parsed.schema = _branch(parsed.schema, parsed.given)
        line = line.commands[command]
    parsed.missing = [name for name in _required(parsed.schema) if name not in parsed.given]
    _check_choices(parsed)
    return parsed


def _parser(line: CommandLine, flags: Mapping[str, str], required: Iterable[str]) -> _Parser:
    parser = _Parser(add_help=False, allow_abbrev=line.parser == "argparse")
    for each in line.parameters:
        many = each.takes == "values"
        if each.flag is None:
            is_needed = each.name in required
            nargs = each.length if many and each.length else ("+" if is_needed else "*") if many else None
            parser.add_argument(each.name, nargs=nargs if nargs or is_needed else "?")
            continue
        own = [flag for flag, name in flags.items() if name == each.name and flag != each.off_flag]
        if each.takes == "nothing":
            parser.add_argument(*own, dest=each.name, action="store_const", const=True)
            if each.off_flag:
                parser.add_argument(each.off_flag, dest=each.name, action="store_const", const=False)
        elif each.takes == "count":
            parser.add_argument(*own, dest=each.name, action="count")
        elif each.takes == "optional":
            parser.add_argument(*own, dest=each.name, nargs="?", const=True)
        else:
            length: Any = (each.length or "+") if many else None
            parser.add_argument(*own, dest=each.name, nargs=length, action="append" if each.repeat else "store")
    if line.chooser:
        parser.add_argument(_COMMAND, nargs=argparse.REMAINDER)
    return parser


def _required(schema: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(schema.get("required", ()))


def _branch(schema: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the command that is called."""
    for each in schema.get("oneOf", ()):
        chosen = {name: value["const"] for name, value in each["properties"].items() if "const" in value}
        if all(given.get(name, const) == const for name, const in chosen.items()):
            return {**each, "oneOf": schema["oneOf"]}
    return schema


def _check_choices(parsed: ParsedWords) -> None:
    for name, value in parsed.given.items():
        schema = parsed.schema.get("properties", {}).get(name, {})
        # A list has its choices in its items.
        choices = schema.get("enum") or schema.get("items", {}).get("enum") or []
        for text in value if isinstance(value, list) else [value]:
            several = re.split(r"[/,|]", text) if isinstance(text, str) else []
            if choices and not all(each in map(str, choices) or stands_for_one(each) for each in several):
                word = text.word if isinstance(text, _Text) else Word(text, 0, 0)
                parsed.wrong_choices.append((name, word, list(choices)))


def _value(text: str, schema: Mapping[str, Any], encode: str | Mapping[str, Any]) -> Any:
    """Return the value that the word *text* means under *schema*; the text itself where it means no other."""
    if isinstance(encode, Mapping):
        return next((value for value, word in encode["words"] if word == text), str(text))
    named = next((each for each in schema.get("enum", ()) if str(each) == text), None)
    if named is not None:
        return named
    if encode == "json" or schema.get("type") in ("integer", "number", "boolean"):
        try:
            return json.loads(text)
        except ValueError:
            pass
    return str(text)
