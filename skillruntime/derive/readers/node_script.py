"""Node scripts that declare their options: ``util.parseArgs`` and commander, where they are literals."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from skillruntime.derive.command import TEXT, Argument, Command, Reading, Unread
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.checks import Test, refuse
from skillruntime.derive.readers.javascript_text import JavaScript
from skillruntime.derive.readers.python_values import UNKNOWN
from skillruntime.derive.text_fields import flattened, plain_name

__all__ = ["read_node"]

_REFUSES = re.compile(r"process\.exit\((?!0?\))|process\.exitCode=[1-9]|\bthrow|\b(?:usage|die|fail|error|help)\(")
_PLACE = re.compile(r"!(?:\w+\.)?positionals\[(\d)\]|!?(?:\w+\.)?positionals\.length(?:(?:<|!==?)([1-9])|===?0)?")
_FLAG = re.compile(r"(?:(-\w)[ ,|]++)?(--[\w-]++)(?:[ =]([<\[])([^<>\[\]]++)[>\]])?")
_PLAIN = ("option", "requiredOption", "argument", "arguments", "description", "command")
_OPEN = (
    "addOption",
    "addArgument",
    "addCommand",
    "executableDir",
    "allowUnknownOption",
    "allowExcessArguments",
    "passThroughOptions",
)


def read_node(text: str) -> Reading | None:
    """Return what the Node script *text* declares; None where it declares nothing that is known."""
    if "parseArgs" not in text and "commander" not in text:
        return None
    code = JavaScript.of(text)
    modules = {each.text for each in code.tokens if each.kind == "text"}
    if modules & {"util", "node:util"}:
        for index in range(len(code.tokens)):
            # A script's own ``function parseArgs(argv)`` is not the one of ``node:util``.
            if code.at(index) == "parseArgs" and code.at(index + 1) == "(":
                return None if code.at(index - 1) == "function" else _read_parse_args(code, index + 1)
    return _read_commander(code) if "commander" in modules else None


def _read_parse_args(code: JavaScript, index: int) -> Reading:
    """``util.parseArgs({options, allowPositionals})``: every option is declared, positionals are only allowed."""
    command = Command("parseArgs")
    given = code.arguments(index)
    config = given[0] if given and isinstance(given[0], dict) else {}
    options = config.get("options", {} if given and isinstance(given[0], dict) else UNKNOWN)
    if not isinstance(options, dict):
        command.unread.append(Unread("options", "they are computed", is_needed=True))
        return Reading(command, "parseArgs", "medium")
    for name, option in options.items():
        if not isinstance(option, dict) or option.get("type") not in ("string", "boolean"):
            command.unread.append(Unread(f"--{name}", "its declaration is computed"))
        elif name not in ("help", "version"):
            command.arguments.append(_declared_option(name, option))
    # Node refuses positionals by default where ``strict`` is (util.parseArgs).
    if config.get("allowPositionals") is not None or config.get("strict") is False:
        command.arguments.append(Argument("positionals", (), "values"))
    holder = _holder(code, index)
    # ``const { values: { input } } = parseArgs(...)``: tests of it would be tests of any variable.
    if holder == "{":
        command.unread.append(Unread("arguments", "its values are taken apart"))
    _read_checks(code, command, re.escape(holder))
    return Reading(command, "parseArgs", "medium")


def _holder(code: JavaScript, index: int) -> str:
    """Return the name that holds the values: ``args = parseArgs(...).values``, ``{ values: args } = ...``."""
    end = code.closing.get(index, index)
    if code.shown(end + 1, end + 3) == ".values" and code.at(index - 2) == "=":
        return code.at(index - 3)
    for place in range(max(index - 60, 0), index):
        if code.at(place) == "values" and code.at(place + 1) == ":":
            return code.at(place + 2)
    return "values"


def _declared_option(name: str, option: dict[str, Any]) -> Argument:
    flags = (f"--{name}", *([f"-{option['short']}"] if isinstance(option.get("short"), str) else []))
    default = option.get("default", ABSENT)
    if option["type"] == "boolean":
        return Argument(plain_name(name), flags, "nothing", has_hidden_default=default not in (ABSENT, False))
    many = option.get("multiple") is True
    known = default if isinstance(default, list if many else str) else ABSENT
    hidden = default is not ABSENT and known is ABSENT
    return Argument(plain_name(name), flags, repeat=many, default=known, has_hidden_default=hidden)


def _read_checks(code: JavaScript, command: Command, holder: str) -> None:
    """Require what the script refuses to run without: ``if (!values.name || !positionals[0]) process.exit(1)``."""
    names = {each.flags[0].lstrip("-"): each.name for each in command.arguments if each.flags}
    reference = re.compile(rf"(?:\w+\.)?{holder}(?:\.(\w++)|\[\"([\w-]++)\"\])(?:\?\.length)?")
    for index in range(len(code.tokens)):
        if code.at(index) != "if" or index + 1 not in code.closing:
            continue
        end = code.closing[index + 1]
        # The body is a block, or a statement.
        last = code.closing.get(end + 1, 0) if code.at(end + 1) == "{" else end + 12
        if not _REFUSES.search(code.shown(end + 1, min(last + 1, end + 200))):
            continue
        shown = code.shown(index + 2, end)
        for least in [int(match[1] or match[2] or 0) + (match[1] is not None) for match in _PLACE.finditer(shown)]:
            for number, each in enumerate(command.arguments):
                if not each.flags:
                    command.arguments[number] = replace(each, required=True, least=max(least, each.least, 1))
        tests = [_to_test(_PLACE.sub("false", part), reference, names) for part in shown.split("||")]
        refuse(command, [("or", tests)], shown, filled=set(), outer={})


def _to_test(shown: str, reference: re.Pattern[str], names: dict[str, str]) -> Test:
    """Return a part of a condition as a test: ``!values.name``, ``values.mode === "fast"``, and both by ``&&``."""
    if "&&" in shown:
        return ("and", [_to_test(each, reference, names) for each in shown.split("&&")])
    if shown == "false":
        return ("or", [])
    plain = shown.removeprefix("!")
    left, how, right = re.fullmatch(r"(.*?)(?:([!=]==?)(.*))?", plain, re.DOTALL).groups()  # type: ignore[union-attr]  # it matches anything
    found = reference.fullmatch(left)
    used = frozenset(names.get(one or other, "/") for one, other in reference.findall(shown))
    if found is None or (right and not re.fullmatch(r"undefined|null|\"[^\"]*\"", right)):
        return ("unknown", used or frozenset({"/"}))
    name = names.get(found[1] or found[2], "/")
    test: Test = ("given", name)
    if how:
        value = right[1:-1] if right.startswith('"') else None
        test = ("compare", "!=" if how.startswith("!") else "==", ("name", name), ("value", value))
    return ("not", test) if shown.startswith("!") else test


def _read_commander(code: JavaScript) -> Reading:
    """Commander's ``.option``, ``.requiredOption``, ``.argument`` and ``.command``, of the program and its commands."""
    program = Command("commander")
    # What the call that ends at a token gives, and what names hold.
    by_call: dict[int, Command] = {}
    by_name: dict[str, Command] = {"program": program}
    for index in range(len(code.tokens)):
        if code.at(index) == "new" and code.at(index + 1) == "Command" and code.at(index - 1) == "=":
            by_name[code.at(index - 2)] = program
        if code.at(index) != "." or code.at(index + 2) != "(" or index + 2 not in code.closing:
            continue
        start = index - 1
        receiver = by_call.get(start, by_name.get(code.at(start)))
        # ``new Command().name(...)``.
        if receiver is None and start in code.opening and code.at(code.opening[start] - 1) == "Command":
            receiver = program
        if receiver is None:
            continue
        name = code.at(index + 1)
        made = _called(program, receiver, name, code.arguments(index + 2))
        by_call[code.closing[index + 2]] = made
        # ``const add = program.command("add").option(...)``.
        while start in code.opening and code.at(code.opening[start] - 2) == ".":
            start = code.opening[start] - 3
        if code.at(start - 1) == "=" and made is not program:
            by_name[code.at(start - 2)] = made
    _read_checks(code, program, r"(?:program\.opts\(\)|options|opts)")
    return Reading(program, "commander", "medium")


def _called(program: Command, receiver: Command, name: str, given: list[Any]) -> Command:
    """Record a method of commander on *receiver*, and return the command that it gives."""
    first = given[0] if given else UNKNOWN
    if name in _OPEN:
        program.unread.append(Unread("arguments", f"the call of {name}() is not read", is_needed=name == "addCommand"))
    elif name not in _PLAIN:
        return receiver
    elif not isinstance(first, str) or not first.strip():
        if name != "description":
            receiver.unread.append(Unread("arguments", f"what {name}() is given is computed", is_needed=True))
    elif name == "command":
        word, *places = first.split()
        made = Command("commander", arguments=[_place(each, []) for each in places])
        receiver.chooser = "command"
        receiver.commands[word] = made
        # A command with a description here is a program of its own.
        if len(given) > 1 and not isinstance(given[1], dict):
            program.unread.append(Unread(word, "the command is another program", is_needed=True))
        elif len(given) > 1 and given[1].get("isDefault") is not None:
            receiver.chooser_required = False
        return made
    elif name == "description":
        receiver.description = flattened(first)
    elif name in ("argument", "arguments"):
        places = [first] if name == "argument" else first.split()
        receiver.arguments += [_place(each, given) for each in places]
    elif (argument := _option(first, given, required=name == "requiredOption")) is None:
        receiver.unread.append(Unread(first[:60], "its declaration is not plain"))
    elif argument.name not in ("help", "version"):
        receiver.arguments.append(argument)
    return receiver


def _place(declared: str, given: list[Any]) -> Argument:
    required = not declared.startswith("[")
    many = "..." in declared
    default = given[2] if len(given) > 2 and isinstance(given[2], str) and not many else ABSENT
    return Argument(
        plain_name(declared.strip("<>[].")),
        takes="values" if many else "value",
        required=required and default is ABSENT,
        default=ABSENT if required else default,
        description=flattened(given[1]) if len(given) > 1 else "",
        least=int(required),
    )


def _option(declared: str, given: list[Any], *, required: bool) -> Argument | None:
    match = _FLAG.fullmatch(declared.strip())
    # A third argument that is a function converts the value, and may refuse it.
    if match is None or (required and len(given) > 2 and given[2] is UNKNOWN):
        return None
    flags = tuple(flag for flag in (match[2], match[1]) if flag)
    text = flattened(given[1]) if len(given) > 1 else ""
    default = given[2] if len(given) > 2 else ABSENT
    argument = Argument(plain_name(match[2]), flags, description=text, has_hidden_default=default is not ABSENT)
    if match[3] is None:
        return replace(argument, takes="nothing")
    if "..." in match[4]:
        return replace(argument, value=TEXT, required=required, repeat=True)
    known = default if isinstance(default, str) and not required else ABSENT
    bare = match[3] == "["
    # With a default it is never missing, so it is not required.
    required = required and default is ABSENT
    return replace(argument, takes="optional" if bare else "value", required=required, default=known, bare=bare)
