"""The words of a documented call, read as the script's own parser would read them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skillruntime.derive.command_line import CommandLine, Parameter
from skillruntime.derive.shell_text import Word

__all__ = ["ParsedWords", "parse_words", "stands_for_many", "stands_for_one"]

_CERTAIN_PLACEHOLDER = re.compile(r"[<>{}$`\[\]…*]|\.\.\.")
# ``FILE``, ``path/to/x``, ``your-name``, ``xxx``.
_PLACEHOLDER = re.compile(r"^[A-Z][A-Z0-9_-]+$|^(?:[Yy]our|YOUR|my|/?path/to)\b|^[xX]{2,}$|^\.+/?$")
# ``$@``, ``${ARGS[@]}``, ``$OPTIONS``, ``<options>``, ``[args]``: any number of words.
_MANY = re.compile(
    r"^\$|\$[@*]|\[[@*]\]|\.\.\.|…|(?i:^[<{\[](?:[\w -]*\b)?(?:args?|arguments?|options?|flags?|params?)[>}\]])"
)


@dataclass(slots=True)
class ParsedWords:
    """What the words of a call give, by parameter, and what the script's parser would refuse."""

    given: dict[str, list[Word]] = field(default_factory=dict)
    switched: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, str] = field(default_factory=dict)
    unknown: list[Word] = field(default_factory=list)
    surplus: list[Word] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    wrong_command: tuple[Word, list[str]] | None = None
    wrong_choices: list[tuple[str, Word, list[Any]]] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    schema: Mapping[str, Any] = field(default_factory=dict)

    def to_arguments(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and values that the words mean, as the contract's arguments."""
        properties = self.schema.get("properties", {})
        yield from self.chosen.items()
        yield from self.switched.items()
        by_name = {each.name: each for each in self.parameters}
        for name, words in self.given.items():
            schema, parameter = properties.get(name, {}), by_name[name]
            if not words:
                if parameter.takes == "optional" and parameter.flag:
                    yield name, True
                continue
            is_list = parameter.repeat or parameter.takes in ("values", "rest")
            item = schema.get("items", {}) if is_list else schema
            values = [_value(word.text, item, parameter.encode) for word in words]
            yield name, values if is_list else values[-1]


def stands_for_one(word: str) -> bool:
    """Whether *word* is written in place of a value: ``<file>``, ``$NAME``, ``OUTPUT``, ``path/to/file``."""
    return _CERTAIN_PLACEHOLDER.search(word) is not None or _PLACEHOLDER.search(word) is not None


def stands_for_many(word: str) -> bool:
    """Whether *word* may be any number of words, flags included: ``$ARGS``, ``<options>``."""
    return _MANY.search(word) is not None


def parse_words(
    words: Iterable[Word], line: CommandLine, flags: Mapping[str, str], schema: Mapping[str, Any]
) -> ParsedWords:
    """Return what *words* mean on *line*; *flags* names the parameter of every flag, *schema* is the input's."""
    parsed = ParsedWords(schema=schema)
    remaining = list(words)
    positional: list[Word] = []
    while True:
        parsed.parameters += line.parameters
        remaining = _read_flags(remaining, line, flags, parsed, positional)
        if not line.chooser or not remaining:
            break
        word = remaining.pop(0)
        if word.text not in line.commands:
            # ``start/stop`` and ``start,stop`` show several calls.
            several = re.split(r"[/,|]", word.text)
            if not (stands_for_one(word.text) or all(each in line.commands for each in several)):
                parsed.wrong_command = (word, list(line.commands))
            # What follows is written for a command that is not known.
            return parsed
        parsed.chosen[line.chooser] = word.text
        line = line.commands[word.text]
    for branch in schema.get("oneOf", ()):
        if all(branch["properties"].get(name, {}).get("const") == word for name, word in parsed.chosen.items()):
            parsed.schema = branch
            break
    required = frozenset(parsed.schema.get("required", ()))
    parsed.surplus = _take_positionals(parsed, positional, required)
    held = parsed.given.keys() | parsed.switched.keys() | parsed.chosen.keys()
    parsed.missing = [name for name in parsed.schema.get("required", ()) if name not in held]
    _check_choices(parsed)
    return parsed


def _read_flags(
    words: list[Word],
    line: CommandLine,
    flags: Mapping[str, str],
    parsed: ParsedWords,
    positional: list[Word],
) -> list[Word]:
    """Sort *words* into flags with their values and *positional*; the words from a command on are returned."""
    by_name = {each.name: each for each in parsed.parameters}
    places = sum(each.flag is None and each.takes != "one_of" for each in line.parameters)
    taken, index = 0, 0
    while index < len(words):
        word = words[index]
        index += 1
        # After ``--`` every word is positional (POSIX, 12.2, guideline 10).
        if word.text == "--":
            positional += words[index:]
            return []
        if not _is_flag(word, line):
            # The first word after the positionals is the command.
            if line.chooser and taken >= places:
                return words[index - 1 :]
            positional.append(word)
            taken += 1
            continue
        flag, equals, attached = word.text.partition("=")
        name = _name_of(flag, flags, line)
        parameter = by_name.get(name)
        if parameter is None:
            if not _CERTAIN_PLACEHOLDER.search(flag) and re.fullmatch(r"--[\w.-]+|-[A-Za-z]\w*", flag):
                parsed.unknown.append(Word(flag, word.line, word.column))
            if index < len(words) and not attached and not _is_flag(words[index], line):
                index += 1  # its value, most likely: a word of an unknown flag is not a positional
            continue
        if parameter.takes == "nothing":
            parsed.switched[name] = flag != parameter.off_flag
        elif parameter.takes == "count":
            # ``-vvv`` is three.
            parsed.switched[name] = parsed.switched.get(name, 0) + max(
                len(flag.lstrip("-")) if flag[1] != "-" else 1, 1
            )
        elif parameter.takes == "one_of":
            parsed.switched[name] = next((value for value, known in parameter.choices if known == flag), True)
        elif equals:
            column = word.column + len(flag) + 1
            parsed.given.setdefault(name, []).append(Word(attached, word.line, column))
        elif flag not in flags and len(flag) > 2 and flag[1] != flag[0] and not _is_beginning(flag, flags):
            parsed.given.setdefault(name, []).append(Word(flag[2:], word.line, word.column + 2))  # ``-n5``
        else:
            values = parsed.given.setdefault(name, [])
            most = {"values": parameter.length or len(words), "rest": len(words)}.get(parameter.takes, 1)
            for _ in range(most):
                if index < len(words) and (parameter.takes == "rest" or not _is_flag(words[index], line)):
                    values.append(words[index])
                    index += 1
    return []


def _is_flag(word: Word, line: CommandLine) -> bool:
    text = word.text
    return len(text) > 1 and text[0] in line.prefixes and re.match(r"-\.?\d", text) is None


def _is_beginning(flag: str, flags: Mapping[str, str]) -> bool:
    return any(known.startswith(flag) for known in flags)


def _name_of(flag: str, flags: Mapping[str, str], line: CommandLine) -> str:
    if flag in flags:
        return flags[flag]
    # argparse takes an unambiguous beginning of a long flag (`_get_option_tuples`, argparse.py 3.11, line 2287).
    longer = {name for known, name in flags.items() if flag.startswith("--") and known.startswith(flag)}
    if len(longer) == 1 and line.parser == "argparse":
        return longer.pop()
    # ``-vvx`` is three flags, ``-n5`` a flag with its value (POSIX, 12.2, guideline 5).
    return flags.get(flag[:2], "") if len(flag) > 2 and flag[1] != flag[0] else ""


def _take_positionals(parsed: ParsedWords, words: list[Word], required: frozenset[str]) -> list[Word]:
    """Give each positional parameter its words, as argparse does; the words that are left over are returned.

    Every parameter leaves what the following ones must have (`_match_arguments_partial`, argparse.py 3.11, line 2213).
    """
    places = [each for each in parsed.parameters if each.flag is None and each.takes != "one_of"]
    least = [
        (each.length or 1) if each.takes in ("values", "rest") and each.name in required else int(each.name in required)
        for each in places
    ]
    remaining = list(words)
    for index, place in enumerate(places):
        free = len(remaining) - sum(least[index + 1 :])
        most = (place.length or len(remaining)) if place.takes in ("values", "rest") else 1
        amount = min(max(free, least[index]), most, len(remaining))
        if amount > 0:
            parsed.given[place.name] = remaining[:amount]
            remaining = remaining[amount:]
    return remaining


def _check_choices(parsed: ParsedWords) -> None:
    properties = parsed.schema.get("properties", {})
    for name, words in parsed.given.items():
        schema = properties.get(name, {})
        # A list has its choices in its items.
        choices = schema.get("enum") or schema.get("items", {}).get("enum")
        known = {str(each) for each in choices or ()}
        for word in words if choices else ():
            several = re.split(r"[/,|]", word.text)
            if not all(each in known or stands_for_one(each) for each in several):
                parsed.wrong_choices.append((name, word, list(choices)))


def _value(text: str, schema: Mapping[str, Any], encode: str | Mapping[str, Any]) -> Any:
    """Return the value that the word *text* means under *schema*; the text itself where it means no other."""
    match encode:
        case {"join": str(separator)}:
            items = schema.get("items", {})
            return [_value(each, items, "text") for each in text.split(separator)]
        case {"words": list(pairs)}:
            return next((value for value, word in pairs if word == text), text)
    kinds = schema.get("type")
    named = next((each for each in schema.get("enum", ()) if str(each) == text), None)
    if named is not None:
        return named
    if encode == "json" or kinds in ("integer", "number", "boolean"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
