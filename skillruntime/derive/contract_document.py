"""A command that was read, as the document of a contract: its input schema, and how
arguments become words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from skillruntime.derive.command import Argument, Command
from skillruntime.derive.command_line import ABSENT, COUNT_LIMIT, CommandLine, Parameter

__all__ = ["to_command_line", "to_input_schema", "with_distinct_names"]


def with_distinct_names(
    command: Command, outer: frozenset[str] = frozenset()
) -> Command:
    """Return *command* with names that are distinct all the way down: one object holds
    the arguments of all levels.

    An argument that a command below declares in the same way is given to both; another
    of the same name gets one of its own.
    """
    if command.chooser:
        inside = [each for inner in command.all_commands() for each in inner.arguments]
        taken = {each.name for each in (*command.arguments, *inside)} | outer
        command.chooser = _free(taken, command.chooser, "command", "subcommand")
        for number, argument in enumerate(command.arguments):
            others = [each for each in inside if each.name == argument.name]
            # argparse lets a command's value overwrite the outer one, in one namespace;
            # click keeps one for each level.
            is_same = command.parser == "argparse" and all(
                _kind(argument) == _kind(each) for each in others
            )
            if others and not is_same:
                command.arguments[number] = replace(
                    argument, name=_free(taken, f"main_{argument.name}")
                )
        outer |= {command.chooser, *(each.name for each in command.arguments)}
        command.commands = {
            name: with_distinct_names(inner, outer)
            for name, inner in command.commands.items()
        }
    return command


def _kind(argument: Argument) -> tuple[Any, ...]:
    return (
        argument.takes,
        argument.length,
        argument.repeat,
        argument.value,
        bool(argument.flags),
    )


def _free(taken: set[str], *names: str) -> str:
    return next(
        each
        for each in (*names, *(f"{names[-1]}_{number}" for number in range(2, 99)))
        if each not in taken
    )


def to_input_schema(command: Command) -> dict[str, Any]:
    """Return the schema of the arguments; commands become a ``oneOf`` that the chooser
    distinguishes.
    """
    if not command.chooser:
        return _object(*_members(command))
    branches = [_object(*members) for members in _branches(command)]
    names = list(command.commands)
    described = [
        f"{name}: {each.description}"
        for name, each in command.commands.items()
        if each.description
    ]
    chooser: dict[str, Any] = {"type": "string", "enum": names}
    # A hundred commands with a paragraph each would cost more tokens than all else.
    if described and sum(map(len, described)) < 2_000:
        chooser["description"] = "; ".join(described)
    schema = {
        "type": "object",
        "properties": {command.chooser: chooser},
        "required": [command.chooser],
    }
    return schema | {
        "oneOf": branches,
        "discriminator": {"propertyName": command.chooser},
    }


_Members = tuple[dict[str, Any], list[str], list[Any]]


def _branches(command: Command) -> Iterator[_Members]:
    """Yield the members of each way through the commands."""
    properties, required, rules = _members(command)
    if not command.chooser:
        yield properties, required, rules
        return
    for name, inner in command.commands.items():
        for below, below_required, below_rules in _branches(inner):
            chosen = {command.chooser: {"const": name}}
            both = list(dict.fromkeys([command.chooser, *required, *below_required]))
            yield properties | chosen | below, both, [*rules, *below_rules]


def _object(
    properties: dict[str, Any], required: list[str], rules: list[Any]
) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if len(rules) == 1:
        schema |= rules[0]
    elif rules:
        schema["allOf"] = rules
    return schema | {"additionalProperties": False}


def _members(command: Command) -> _Members:
    properties = {each.name: _property(each) for each in command.arguments}
    # A name is required once (JSON Schema 2020-12, 6.5.3), though two arguments of a
    # script may have it.
    required = list(
        dict.fromkeys(each.name for each in command.arguments if each.required)
    )
    rules: list[Any] = []
    for number, needs_one in command.exclusive.items():
        members = [each for each in command.arguments if each.group == number]
        # JSON Schema has no "at most one of": each pair is excluded.
        rules += [{"not": _both(one, other)} for one, other in combinations(members, 2)]
        if needs_one:
            rules.append({"anyOf": [_used(each) for each in members]})
    for names in command.one_of:
        rules.append(
            {
                "anyOf": [
                    _used(each, is_true=True)
                    for each in command.arguments
                    if each.name in names
                ]
            }
        )
    return properties, required, rules


def _used(argument: Argument, *, is_true: bool = False) -> dict[str, Any]:
    """The schema of arguments in which *argument* is given; a switch must be true where
    *is_true* says so.
    """
    # A switch that is false is not on the command line, so it excludes nothing.
    is_switch = argument.takes == "nothing" and (argument.off_flag is None or is_true)
    constraint = {"properties": {argument.name: {"const": True}}} if is_switch else {}
    return {**constraint, "required": [argument.name]}


def _both(one: Argument, other: Argument) -> dict[str, Any]:
    left, right = _used(one), _used(other)
    both: dict[str, Any] = {"required": [one.name, other.name]}
    if properties := left.get("properties", {}) | right.get("properties", {}):
        both["properties"] = properties
    return both


def _property(argument: Argument) -> dict[str, Any]:
    schema = _value_schema(argument)
    default = argument.default
    if (
        argument.takes == "nothing"
        and default is ABSENT
        and argument.off_flag is None
        and not argument.required
    ):
        default = False
    text = argument.description
    # A default that was filled in would exclude the other members.
    if (
        argument.group is not None
        and default is not ABSENT
        and argument.takes != "nothing"
    ):
        if str(default) not in text:
            text = f"{text} (default: {default})".strip()
        default = ABSENT
    if text:
        schema = {**schema, "description": text}
    return schema if default is ABSENT else {**schema, "default": default}


def _value_schema(argument: Argument) -> dict[str, Any]:
    item = dict(argument.value.schema)
    match argument.takes:
        case "nothing":
            return {"type": "boolean"}
        case "count":
            base = argument.default if isinstance(argument.default, int) else 0
            return {"type": "integer", "minimum": base, "maximum": base + COUNT_LIMIT}
        case "values" | "rest":
            item = {"type": "array", "items": item}
            least = argument.length if argument.length is not None else argument.least
            # ``minItems: 0`` says nothing.
            item |= {"minItems": least} if least else {}
            item |= {"maxItems": argument.length} if argument.length is not None else {}
        case "optional" if argument.bare:
            item = {"anyOf": [item, {"const": True}]}
    if argument.repeat:
        item = {"type": "array", "items": item}
        # A required flag that may be repeated is given at least once.
        return item | ({"minItems": 1} if argument.required else {})
    return item


def to_command_line(command: Command) -> CommandLine:
    """Return how arguments of the schema become the words of the command line."""
    return CommandLine(
        command.parser,
        tuple(_parameter(each) for each in command.arguments),
        command.chooser or None,
        {name: to_command_line(inner) for name, inner in command.commands.items()},
    )


def _parameter(argument: Argument) -> Parameter:
    # The long flag says in a log what was meant.
    long = next(
        (each for each in argument.flags if len(each) > 2),
        argument.flags[0] if argument.flags else None,
    )
    default = (
        ABSENT
        if argument.group is not None and argument.takes != "count"
        else argument.default
    )
    return Parameter(
        argument.name,
        long,
        argument.takes,
        argument.off_flag,
        argument.length,
        argument.repeat,
        argument.value.encode,
        default,
    )
