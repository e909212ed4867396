"""Convert a command that was read to the document of a contract: its input schema, and
how arguments become words.
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
    """Return *command* with names that are distinct on all levels, because one object
    holds the arguments of all levels.

    An argument that a command below declares in the same way is shared by both; a
    different argument of the same name gets another name.
    """
    if not command.chooser:
        return command
    below = [
        argument for inner in command.all_commands() for argument in inner.arguments
    ]
    taken = {argument.name for argument in (*command.arguments, *below)} | outer
    command.chooser = _free_name(taken, [command.chooser, "command", "subcommand"])
    for number, argument in enumerate(command.arguments):
        namesakes = [other for other in below if other.name == argument.name]
        if namesakes and not _is_shared(command, argument, namesakes):
            name = _free_name(taken, [f"main_{argument.name}"])
            command.arguments[number] = replace(argument, name=name)
            _rename_in_rules(command, argument.name, name)
    outer |= {command.chooser, *(argument.name for argument in command.arguments)}
    command.commands = {
        name: with_distinct_names(inner, outer)
        for name, inner in command.commands.items()
    }
    return command


def _rename_in_rules(command: Command, old: str, new: str) -> None:
    """Rename an argument in the rules of *command*."""
    command.one_of = [
        [new if name == old else name for name in names] for names in command.one_of
    ]
    # A premise is a schema, and the name may stand anywhere in it.
    command.implied = [
        implication
        for implication in command.implied
        if old not in implication.names and old not in repr(implication.premises)
    ]


def _is_shared(command: Command, argument: Argument, namesakes: list[Argument]) -> bool:
    """Return whether one value can be given to *argument* and to its *namesakes* in the
    commands below.
    """
    # argparse has one namespace, in which a command's value overwrites the outer one;
    # click has a namespace for each level.
    if command.parser != "argparse":
        return False
    return all(_form(argument) == _form(other) for other in namesakes)


def _form(argument: Argument) -> tuple[Any, ...]:
    return (
        argument.takes,
        argument.length,
        argument.repeat,
        argument.value,
        bool(argument.flags),
    )


def _free_name(taken: set[str], names: list[str]) -> str:
    """Return the first of *names* that is not *taken*, or the last with a number."""
    numbered = [f"{names[-1]}_{number}" for number in range(2, 99)]
    return next(name for name in [*names, *numbered] if name not in taken)


def to_input_schema(command: Command) -> dict[str, Any]:
    """Return the schema of the arguments; commands become a ``oneOf`` that the chooser
    distinguishes.
    """
    if not command.chooser:
        return _object(*_members(command))
    described = [
        f"{name}: {inner.description}"
        for name, inner in command.commands.items()
        if inner.description
    ]
    chooser: dict[str, Any] = {"type": "string", "enum": list(command.commands)}
    # A hundred commands with a paragraph each would cost more tokens than everything
    # else.
    if described and sum(map(len, described)) < 2_000:
        chooser["description"] = "; ".join(described)
    return {
        "type": "object",
        "properties": {command.chooser: chooser},
        "required": [command.chooser],
        "oneOf": [_object(*members) for members in _branches(command)],
        "discriminator": {"propertyName": command.chooser},
    }


_Members = tuple[dict[str, Any], list[str], list[Any]]


def _branches(command: Command) -> Iterator[_Members]:
    """Yield the members of each path through the commands and their subcommands."""
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
    arguments = command.arguments
    properties = {argument.name: _property(argument) for argument in arguments}
    # Two arguments of a script may have one name, but `required` lists each name once
    # (JSON Schema 2020-12, 6.5.3).
    required = dict.fromkeys(
        argument.name for argument in arguments if argument.required
    )
    rules: list[Any] = []
    for number, needs_one in command.exclusive.items():
        members = [argument for argument in arguments if argument.group == number]
        # JSON Schema has no keyword for "at most one of", so each pair is excluded.
        rules += [{"not": _both(one, other)} for one, other in combinations(members, 2)]
        if needs_one:
            rules.append({"anyOf": [_given(member) for member in members]})
    for names in command.one_of:
        members = [argument for argument in arguments if argument.name in names]
        rules.append({"anyOf": [_given(member, is_true=True) for member in members]})
    for implication in command.implied:
        members = [each for each in arguments if each.name in implication.names]
        given = [_given(member, is_true=True) for member in members]
        premise: Any = {"allOf": list(implication.premises)}
        if len(implication.premises) == 1:
            premise = implication.premises[0]
        then = given[0] if len(given) == 1 else {"anyOf": given}
        rules.append({"if": premise, "then": then})
    return properties, list(required), rules


def _given(argument: Argument, *, is_true: bool = False) -> dict[str, Any]:
    """Return the schema of calls that give *argument*; with *is_true*, a switch must be
    true.
    """
    schema: dict[str, Any] = {}
    # A switch that is false is not on the command line, so it excludes nothing.
    if argument.takes == "nothing" and (argument.off_flag is None or is_true):
        schema["properties"] = {argument.name: {"const": True}}
    schema["required"] = [argument.name]
    return schema


def _both(one: Argument, other: Argument) -> dict[str, Any]:
    left, right = _given(one), _given(other)
    both: dict[str, Any] = {"required": [one.name, other.name]}
    properties = left.get("properties", {}) | right.get("properties", {})
    if properties:
        both["properties"] = properties
    return both


def _property(argument: Argument) -> dict[str, Any]:
    schema = _value_schema(argument)
    default, description = argument.default, argument.description
    is_switch = argument.takes == "nothing"
    is_optional = argument.off_flag is None and not argument.required
    if is_switch and is_optional and default is ABSENT:
        default = False
    # A filled-in default would exclude the other members of the group.
    if argument.group is not None and not is_switch and default is not ABSENT:
        if str(default) not in description:
            description = f"{description} (default: {default})".strip()
        default = ABSENT
    if description:
        schema["description"] = description
    if default is not ABSENT:
        schema["default"] = default
    return schema


def _value_schema(argument: Argument) -> dict[str, Any]:
    """Return the schema of the value of *argument*, as a list if the flag may be
    repeated.
    """
    item = dict(argument.value.schema)
    match argument.takes:
        case "nothing":
            return {"type": "boolean"}
        case "count":
            base = argument.default if isinstance(argument.default, int) else 0
            return {"type": "integer", "minimum": base, "maximum": base + COUNT_LIMIT}
        case "values" | "rest":
            item = {"type": "array", "items": item}
            least = argument.least if argument.length is None else argument.length
            if least:  # ``minItems: 0`` has no effect
                item["minItems"] = least
            if argument.length is not None:
                item["maxItems"] = argument.length
        case "optional" if argument.bare:
            # `--color` without a value is sent as true.
            item = {"anyOf": [item, {"const": True}]}
    if not argument.repeat:
        return item
    schema: dict[str, Any] = {"type": "array", "items": item}
    # A required flag must be given at least once.
    if argument.required:
        schema["minItems"] = 1
    return schema


def to_command_line(command: Command) -> CommandLine:
    """Return the command line that converts arguments of the schema to words."""
    return CommandLine(
        command.parser,
        tuple(map(_parameter, command.arguments)),
        command.chooser or None,
        {name: to_command_line(inner) for name, inner in command.commands.items()},
    )


def _parameter(argument: Argument) -> Parameter:
    # In a log, the long flag is easier to understand.
    long_flags = [flag for flag in argument.flags if len(flag) > 2]
    flags = [*long_flags, *argument.flags]
    default = argument.default
    # A group's member is always written if it is sent, even with its default. Only a
    # counted flag starts from its default.
    if argument.group is not None and argument.takes != "count":
        default = ABSENT
    return Parameter(
        argument.name,
        flags[0] if flags else None,
        argument.takes,
        argument.off_flag,
        argument.length,
        argument.repeat,
        argument.value.encode,
        default,
    )
