"""Node scripts that declare their options and commands to commander."""

from __future__ import annotations

import re
from typing import Any

from tree_sitter import Node

from skillruntime.derive.command import TEXT, Argument, Command, Unread
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.values import UNKNOWN
from skillruntime.derive.readers.javascript_source import arguments_of, calls_of, chained_calls, owner_of
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.readers.syntax_tree import text_of
from skillruntime.derive.text_fields import flattened

__all__ = ["read_commander"]

_DECLARED = ("option", "requiredOption", "argument", "addOption", "addArgument", "arguments", "description")


def read_commander(root: Node, names: dict[str, Any], description: str) -> Reading:
    """Commander's ``.option``, ``.requiredOption``, ``.argument`` and ``.command``, of the program and its commands."""
    program = Command("commander", description)
    commands: dict[str, Command] = {}
    # The command that a call makes or speaks of, by the call; variables that hold one, by name.
    by_call: dict[int, Command] = {}
    by_name: dict[str, Command] = {}
    called = {name for name, _ in calls_of(root)}
    if "command" in called and called & {"addCommand", "executableDir"}:
        return _unread_commands(program)
    for what, call in chained_calls(root):
        owner = owner_of(call)
        command = program
        if owner is not None:
            command = by_call.get(owner.id) or by_name.get(text_of(owner)) or program
        given = arguments_of(call, names)
        if what == "command":
            # A command of a command, and one that is a program of its own.
            line = given[0] if given else UNKNOWN
            if command is not program or not isinstance(line, str) or not line.strip() or _is_text(given[1:2]):
                return _unread_commands(program)
            name, *places = line.split()
            command = commands[name] = Command("commander", arguments=[_argument(each, []) for each in places])
            if len(given) > 1 and isinstance(given[1], dict):
                program.chooser_required = given[1].get("isDefault") is not True
        elif what in _DECLARED:
            _declare(command, what, given)
        by_call[call.id] = command
        declared = call.parent
        # ``const add = program.command("add").option(...)``.
        if declared is not None and declared.type == "variable_declarator" and command is not program:
            by_name[text_of(declared.child_by_field_name("name"))] = command
    if commands:
        program.chooser, program.commands = "command", commands
    return Reading(program, "commander", "medium")


def _is_text(given: list[Any]) -> bool:
    """Whether a command has a description as its second argument: then it is a program of its own."""
    return bool(given) and isinstance(given[0], str)


def _unread_commands(program: Command) -> Reading:
    program.arguments, program.commands = [], {}
    program.unread = [Unread("commands", "some of commander's commands are not read", is_needed=True)]
    return Reading(program, "commander", "medium")


def _declare(command: Command, what: str, given: list[Any]) -> None:
    first = given[0] if given else UNKNOWN
    if what == "description":
        command.description = flattened(first) or command.description
    elif what == "arguments" and isinstance(first, str):
        command.arguments += [_argument(each, []) for each in first.split()]
    elif what in ("addOption", "addArgument") or not isinstance(first, str):
        command.unread.append(Unread("an option", f"the call of {what}() is not read"))
    elif what == "argument":
        command.arguments.append(_argument(first, given))
    elif (argument := _option(first, given, required=what == "requiredOption")) is not None:
        command.arguments.append(argument)
    else:
        command.unread.append(Unread(first, "its declaration is not plain"))


def _argument(declared: str, given: list[Any]) -> Argument:
    required = not declared.startswith("[")
    many = "..." in declared
    name = re.sub(r"\W+", "_", declared.strip("<>[].")).strip("_")
    text = flattened(given[1]) if len(given) > 1 else ""
    default = given[2] if len(given) > 2 and isinstance(given[2], str) and not many else ABSENT
    return Argument(name, (), "values" if many else "value", TEXT, required, default, text, least=int(required))


def _option(declared: str, given: list[Any], *, required: bool) -> Argument | None:
    match = re.fullmatch(r"(?:(-\w)[ ,|]+)?(--[\w-]+)(?:[ =]([<\[])([\w.|-]+)[>\]])?", declared.strip())
    if match is None:
        return None
    flags = tuple(flag for flag in (match[2], match[1]) if flag)
    text = flattened(given[1]) if len(given) > 1 else ""
    name = re.sub(r"\W+", "_", match[2].lstrip("-"))
    if match[3] is None:
        return Argument(name, flags, "nothing", description=text)
    if "..." in match[4]:
        return Argument(name, flags, "value", TEXT, required, description=text, repeat=True)
    plain = given[2] if len(given) > 2 else ABSENT
    default = plain if isinstance(plain, str) and not required else ABSENT
    bare = match[3] == "["
    return Argument(name, flags, "optional" if bare else "value", TEXT, required, default, text, bare=bare)
