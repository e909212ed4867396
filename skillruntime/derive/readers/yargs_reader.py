"""Node scripts that declare their options and commands to yargs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tree_sitter import Node

from skillruntime.derive.command import TEXT, Argument, Command, Unread, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.values import UNKNOWN, if_known
from skillruntime.derive.readers.javascript_source import arguments_of, calls_of, chained_calls, literal, owner_of
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.readers.syntax_tree import text_of
from skillruntime.derive.text_fields import flattened

__all__ = ["read_yargs"]

_NUMBER = ValueType({"type": "number"})
_TYPES = ("string", "boolean", "number", "array", "count")
_OF_YARGS = re.compile(r"\byargs\b|\)$|^\w$")


def read_yargs(root: Node, names: dict[str, Any], description: str) -> Reading:
    """Yargs's ``.option``, ``.options``, ``.positional`` and ``.command``, of the program and its commands."""
    program = Command("yargs", description)
    declared = [call for name, call in calls_of(root) if name == "command"]
    commands = [_command(call, names) for call in declared]
    if any(each is None for each in commands) or any(name == "commandDir" for name, _ in calls_of(root)):
        program.unread.append(Unread("commands", "some of yargs's commands are not read", is_needed=True))
        return Reading(program, "yargs", "medium")
    builders = [node for each in declared for node in _parts(each)[2:]]
    outside = ((what, call) for what, call in chained_calls(root) if not any(_is_in(call, each) for each in builders))
    _declare(program, outside, names)
    if not commands and (least := _least_words(root, names)):
        program.arguments.append(Argument("words", (), "values", required=True, least=least))
    if commands:
        program.chooser = "command"
        program.commands = {name: command for each in commands if each is not None for name, command in [each]}
    return Reading(program, "yargs", "medium")


def _least_words(root: Node, names: dict[str, Any]) -> int:
    """Return how many words ``.demandCommand(2)`` demands, one where it says none (yargs, docs/api.md)."""
    given = next((arguments_of(call, names) for what, call in chained_calls(root) if what == "demandCommand"), None)
    return 0 if given is None else given[0] if given and isinstance(given[0], int) else 1


def _is_in(node: Node, outer: Node) -> bool:
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def _parts(call: Node) -> list[Node]:
    """Return what ``command`` is given: its line, its description, what declares its options, and what it runs.

    ``.command({command: "get <url>", describe: "...", builder: y => ..., handler})`` says the same by names.
    """
    listed = call.child_by_field_name("arguments")
    given = [each for each in listed.named_children if each.type != "comment"] if listed is not None else []
    if len(given) != 1 or given[0].type != "object":
        return given
    pairs = {text_of(each.child_by_field_name("key")): each for each in given[0].named_children if each.type == "pair"}
    keys = ("command", ("describe", "description", "desc"), "builder", "handler")
    found = (
        next((pairs[key] for key in ([each] if isinstance(each, str) else each) if key in pairs), None) for each in keys
    )
    return [value for each in found if each is not None and (value := each.child_by_field_name("value")) is not None]


def _command(call: Node, names: dict[str, Any]) -> tuple[str, Command] | None:
    """Return the name and the arguments of a command; None where its line is computed, or it is the program's own."""
    parts = _parts(call)
    line = literal(parts[0], names) if parts else UNKNOWN
    # ``["get <url>", "g"]``: an alias.
    line = line[0] if isinstance(line, list) and line else line
    if not isinstance(line, str) or not line.strip() or line.lstrip().startswith(("$0", "*")):
        return None
    name, *places = line.split()
    text = literal(parts[1], names) if len(parts) > 1 else ""
    command = Command("yargs", flattened(text) if isinstance(text, str) else "")
    for each in places:
        many = ".." in each
        required = each.startswith("<")
        plain = re.sub(r"\W+", "_", each.strip("<>[].").partition("|")[0]).strip("_")
        command.arguments.append(
            Argument(plain, (), "values" if many else "value", required=required, least=int(required and many))
        )
    if len(parts) > 2:
        builder = parts[2]
        if builder.type == "object":
            _declare_all(command, literal(builder, names))
        elif builder.type in ("arrow_function", "function_expression"):
            _declare(command, chained_calls(builder), names)
        else:
            command.unread.append(Unread("options", f"what {text_of(builder)[:40]} declares is not read"))
    return name, command


def _declare(command: Command, calls: Iterable[tuple[str, Node]], names: dict[str, Any]) -> None:
    options: dict[str, Any] = {}
    needed: list[str] = []
    for what, call in calls:
        given = arguments_of(call, names)
        listed = given[:1] if given and isinstance(given[0], str) else given[0] if given else UNKNOWN
        plain = [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []
        if what == "positional" and len(given) > 1 and isinstance(given[0], str) and isinstance(given[1], dict):
            _describe_place(command, given[0], given[1])
        elif what in ("option", "options"):
            declared = given[0] if len(given) == 1 else {plain[0]: given[1]} if plain and len(given) == 2 else UNKNOWN
            if isinstance(declared, dict) and declared:
                options |= {name: _with(options.get(name), option) for name, option in declared.items()}
            else:
                command.unread.append(Unread("an option", "its declaration is computed"))
        elif what == "demandOption":
            needed += plain
        # ``.choices("unit", ["m", "ft"])`` and ``.number("depth")`` say what members of a declaration say.
        elif (what in _TYPES or (what in ("choices", "default", "describe") and len(given) > 1)) and _OF_YARGS.search(
            text_of(owner_of(call))
        ):
            said = {"type": what} if what in _TYPES else {what: given[1]}
            options |= {name: _with(options.get(name, {}), said) for name in plain}
    if options:
        _declare_all(command, options)
    command.arguments = [
        replace(each, required=True, default=ABSENT) if each.name in needed else each for each in command.arguments
    ]


def _with(option: Any, more: Any) -> Any:
    return {**option, **more} if isinstance(option, dict) and isinstance(more, dict) else more


def _declare_all(command: Command, options: Any) -> None:
    if not isinstance(options, dict) or not options:
        command.unread.append(Unread("an option", "its declaration is computed"))
        return
    for name, option in options.items():
        argument = _yargs_option(name, option) if isinstance(name, str) and isinstance(option, dict) else None
        if argument is None:
            command.unread.append(Unread(str(name), "its declaration is computed"))
        else:
            command.arguments.append(argument)


def _describe_place(command: Command, name: str, option: dict[str, Any]) -> None:
    """Take the type, the choices and the description that ``.positional`` declares for a word of the line."""
    plain = re.sub(r"\W+", "_", name)
    found = _yargs_option(name, {"type": "string", **option})
    command.arguments = [
        replace(each, value=found.value, description=found.description)
        if found is not None and each.name == plain and not each.flags
        else each
        for each in command.arguments
    ]


def _yargs_option(name: str, option: dict[str, Any]) -> Argument | None:
    kind = option.get("type")
    if UNKNOWN in (kind, option.get("choices"), option.get("demandOption")):
        return None
    described = (if_known(option.get(key)) for key in ("describe", "description", "desc"))
    text = flattened(next(filter(None, described), None))
    plain = re.sub(r"\W+", "_", name)
    required = option.get("demandOption") is True or option.get("demand") is True
    flags = (f"--{name}",)
    default = option.get("default", ABSENT)
    default = ABSENT if default is None or default is UNKNOWN or required else default
    if kind == "boolean":
        known = default if isinstance(default, bool) else ABSENT
        return Argument(
            plain, flags, "nothing", required=required, default=known, description=text, off_flag=f"--no-{name}"
        )
    if kind == "count":
        return Argument(plain, flags, "count", default=0, description=text)
    value = _NUMBER if kind == "number" else TEXT
    choices = option.get("choices")
    if isinstance(choices, list):
        if any(each is UNKNOWN for each in choices):
            return None
        value = ValueType({**value.schema, "enum": choices})
    elif kind is None and not isinstance(default, str):
        return None if default is ABSENT else _yargs_option(name, option | {"type": _kind_of(default)})
    many = kind == "array" or option.get("array") is True
    fits = isinstance(default, list if many else (int, float) if kind == "number" else str)
    return Argument(plain, flags, "value", value, required, default if fits else ABSENT, text, repeat=many)


def _kind_of(default: Any) -> str:
    return "boolean" if isinstance(default, bool) else "number" if isinstance(default, int | float) else "array"
