"""Node scripts: the parser that they declare their options to, ``util.parseArgs``, or the words taken by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from tree_sitter import Node

from skillruntime.derive.command import Argument, Command, Unread
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.values import UNKNOWN
from skillruntime.derive.readers.argv_script import read_argv
from skillruntime.derive.readers.commander_reader import read_commander
from skillruntime.derive.readers.javascript_source import (
    arguments_of,
    calls_of,
    constants_of,
    literal,
    nodes_of,
    parse,
)
from skillruntime.derive.readers.javascript_to_python import to_python
from skillruntime.derive.readers.minimist_reader import read_minimist
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.readers.syntax_tree import text_of
from skillruntime.derive.readers.yargs_reader import read_yargs
from skillruntime.derive.text_fields import flattened

__all__ = ["read_node"]

_MENTIONS = re.compile(r"\bargv\b|\bDeno\.args\b|\bparseArgs\b|\bcommander\b|\byargs\b")
_OTHER_PARSERS = {"minimist", "meow", "cac", "arg", "sade", "mri", "command-line-args", "citty", "oclif", "@oclif/core"}
# ``!positionals[1]``, ``!positionals.length``, ``positionals.length < 2``, ``positionals.length === 0``.
_MISSING_PLACE = re.compile(
    r"!\s*(?:\w+\.)?positionals\[(?P<index>\d)\]|positionals\.length\s*<\s*(?P<least>\d)"
    r"|!\s*(?:\w+\.)?positionals\.length|positionals\.length\s*===?\s*0"
    r"|positionals\.length\s*!==?\s*(?P<exact>\d)"
)
# ``!values.name``, ``!args.values.file?.length``, ``values["name"] === undefined``, and ``!name`` taken out of them.
_MISSING_VALUE = re.compile(
    r"""^\s*(!)?\s*((?:\w+\.)*values)?(?:\??\.)?(?:(\w+)|\[['"]([\w-]+)['"]\])(?:\??\.length)?\s*"""
    r"""(===?\s*(?:undefined|null|''|""|0))?\s*$"""
)
_HOLDS_VALUES = re.compile(r"(\w+)\s*=\s*(?:util\.)?parseArgs\([^;]{0,4000}?\)\.values\b")
_VALUE_USED = re.compile(r"""\bvalues(?:\??\.(\w+)|\[['"]([\w-]+)['"]\])""")
_LOOKED_UP = re.compile(r"\s*!\s*(?:\w+\.)*values\[(\w+)\]\s*$")


def read_node(text: str, neighbours: object = None) -> Reading | None:
    """Return what the Node script *text* takes; None where it takes nothing that can be read."""
    if not _MENTIONS.search(text) or is_minified(text):
        return None
    root = parse(text)
    description = _description(text)
    if root is None:
        unread = Unread("arguments", "the script takes too long to parse")
        return Reading(Command("places", description, unread=[unread]), "process.argv", "low")
    names = constants_of(root)
    modules = _modules(root)
    own = {text_of(each.child_by_field_name("name")) for each in nodes_of(root, "function_declaration")}
    # A script's own ``function parseArgs(argv)`` is not the one of ``node:util``.
    if "parseArgs" not in own and modules & {"util", "node:util"} and (call := _call(root, "parseArgs")) is not None:
        return _read_parse_args(root, call, names, description)
    # The name in a comment or a text is not an import.
    if "commander" in modules:
        return read_commander(root, names, description)
    if modules & {"yargs", "yargs/yargs"}:
        return read_yargs(root, names, description)
    if "minimist" in modules and (reading := read_minimist(root, names, description)) is not None:
        return reading
    # Other parsers are packages with declarations of their own, which would be read as words taken by hand.
    if modules & _OTHER_PARSERS or not re.search(r"\bargv\b|\bDeno\.args\b", text):
        return None
    if root.has_error:
        unread = Unread("arguments", "the file does not parse as JavaScript")
        return Reading(Command("places", description, unread=[unread]), "process.argv", "low")
    reading = read_argv(to_python(root), "process.argv", description)
    if reading is None:
        return None
    command = reading.command
    if not (command.arguments or command.commands or command.unread):
        # A library that looks for a flag when it is called does not show that from its own file.
        command.unread.append(Unread("arguments", "process.argv is used, and none of its words is read"))
    lines = text.splitlines()
    command.unread = [replace(each, reason=_in_javascript(each, lines)) for each in command.unread]
    return reading


def _in_javascript(unread: Unread, lines: list[str]) -> str:
    """Return why it is unread, with the line of the script for what was read of its translation."""
    line = lines[unread.line - 1] if unread.line and unread.line <= len(lines) else ""
    shown = re.split(r"\{|`", line)[0].strip()[:60]
    reason = unread.reason.replace("sys.argv", "process.argv")
    return re.sub(r"`.*`", lambda _: f"`{shown}`", reason) if shown else reason


def is_minified(text: str) -> bool:
    """Whether *text* is the output of a bundler: few lines, and long ones.

    A bundled file of 180 KB took 370 ms, and declares nothing that is still recognisable.
    """
    return len(text) > 20_000 and len(text) > 300 * (text.count("\n") + 1)


def _modules(root: Node) -> set[str]:
    """Return the modules that are imported, by ``import`` or ``require``."""
    found = {str(literal(each.child_by_field_name("source"), {})) for each in nodes_of(root, "import_statement")}
    required = [arguments_of(call, {}) for name, call in calls_of(root) if name in ("require", "import")]
    return found | {str(each[0]) for each in required if each}


def _call(root: Node, name: str) -> Node | None:
    return next((call for known, call in calls_of(root) if known == name), None)


def _description(text: str) -> str:
    match = re.match(r"(?:#![^\n]*\n)?\s*/\*\*?(.*?)\*/", text, re.DOTALL)
    lines = [line.strip(" *\t") for line in match[1].splitlines()] if match else []
    paragraph: list[str] = []
    for line in lines:
        if paragraph and (not line or line.startswith("@") or re.match(r"(?i)usage", line)):
            break
        if line and not line.startswith("@"):
            paragraph.append(line)
    return flattened(" ".join(paragraph))


def _read_parse_args(root: Node, call: Node, names: dict[str, Any], description: str) -> Reading:
    """``util.parseArgs({options, allowPositionals})``: every option is declared, positionals are only allowed."""
    command = Command("parseArgs", description)
    given = arguments_of(call, names)
    config = given[0] if given and isinstance(given[0], dict) else None
    options = config.get("options", {}) if config else UNKNOWN
    if not isinstance(options, dict):
        command.unread.append(Unread("options", "they are computed"))
        return Reading(command, "parseArgs", "medium")
    for name, option in options.items():
        if not isinstance(option, dict) or option.get("type") not in ("string", "boolean"):
            command.unread.append(Unread(f"--{name}", "its declaration is computed"))
            continue
        if name == "help":
            continue
        flags = (f"--{name}", *([f"-{option['short']}"] if isinstance(option.get("short"), str) else []))
        plain = re.sub(r"\W+", "_", name)
        if option["type"] == "boolean":
            command.arguments.append(Argument(plain, flags, "nothing"))
        else:
            many = option.get("multiple") is True
            default = option.get("default", ABSENT)
            known = default if isinstance(default, list if many else str) else ABSENT
            command.arguments.append(Argument(plain, flags, repeat=many, default=known))
    # Node refuses positionals by default where ``strict`` is (util.parseArgs).
    if (config and config.get("allowPositionals") is True) or "positionals" in text_of(root):
        command.arguments.append(Argument("positionals", (), "values"))
        command.notes.append("positionals: what each place means is not declared")
    _demand(root, command, names)
    return Reading(command, "parseArgs", "medium")


def _places_taken_out(root: Node) -> dict[str, int]:
    """Return the variables that hold a word by its place: ``const [file, out] = positionals``."""
    found: dict[str, int] = {}
    for node in nodes_of(root, "variable_declarator"):
        name, value = node.child_by_field_name("name"), text_of(node.child_by_field_name("value"))
        if name is not None and name.type == "array_pattern" and re.fullmatch(r"(?:\w+\.)*positionals", value):
            plain = enumerate(name.named_children)
            found |= {text_of(each): place for place, each in plain if each.type == "identifier"}
    # ``const { positionals: [file] } = parseArgs(...)``.
    for node in nodes_of(root, "pair_pattern"):
        inside = node.child_by_field_name("value")
        if inside is not None and inside.type == "array_pattern" and text_of(node).startswith("positionals"):
            plain = enumerate(inside.named_children)
            found |= {text_of(each): place for place, each in plain if each.type == "identifier"}
    return found


def _looped(node: Node, variable: str, names: dict[str, Any]) -> list[str]:
    """Return the literals that the loop around *node* gives *variable*."""
    outer = node.parent
    while outer is not None and outer.type != "for_in_statement":
        outer = outer.parent
    if outer is None or text_of(outer.child_by_field_name("left")) != variable:
        return []
    listed = literal(outer.child_by_field_name("right"), names)
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def _demand(root: Node, command: Command, names: dict[str, Any]) -> None:
    """Mark what the script refuses to run without: ``if (!values.name || !positionals[0]) process.exit(1)``."""
    least = 0
    needed: set[str] = set()
    by_place = _places_taken_out(root)
    taken_out = {text_of(each) for each in nodes_of(root, "shorthand_property_identifier_pattern")}
    holders = set(_HOLDS_VALUES.findall(text_of(root)))
    doubts: list[str] = []
    for node in nodes_of(root, "if_statement"):
        body = text_of(node.child_by_field_name("consequence"))
        test = text_of(node.child_by_field_name("condition"))[1:-1]
        if not re.search(r"\bprocess\.exit\((?!0)|\bthrow\b|\busage\(|\bdie\(|\bfail\(", body):
            continue
        # ``args = parseArgs({...}).values``: what holds them has a name of its own.
        test = re.sub(rf"\b(?:{'|'.join(holders)})(?=\.|\[)", "values", test) if holders else test
        for each in test.split("||"):
            # ``if (!values.file && !values.url)`` demands one of several.
            if "&&" in each:
                asked = [match[3] or match[4] for part in each.split("&&") if (match := _MISSING_VALUE.match(part))]
                switches = {one.name for one in command.arguments}
                if len(asked) == each.count("&&") + 1 and "||" not in test and switches >= {*asked}:
                    command.one_of.append(asked)
                elif len(asked) == each.count("&&") + 1:
                    doubts.append(each)
            # ``for (const key of ["from", "to"]) if (!values[key]) ...``.
            elif (match := _LOOKED_UP.match(each)) and (listed := _looped(node, match[1], names)):
                needed.update(listed)
            elif (match := _MISSING_VALUE.match(each)) and match[3] in by_place and not match[2]:
                least = max(least, by_place[match[3]] + 1)
            elif match := _MISSING_PLACE.search(each):
                # ``!positionals[1]`` asks for two, as ``positionals.length < 2`` does.
                least = max(least, int(match["least"] or match["exact"] or int(match["index"] or 0) + 1))
            elif (
                (match := _MISSING_VALUE.match(each)) and (match[1] or match[5]) and (match[2] or match[3] in taken_out)
            ):
                needed.add(match[3] or match[4])
            else:
                doubts.append(each)
    defaults = {each.name for each in command.arguments if each.default is not ABSENT}
    for index, argument in enumerate(command.arguments):
        if not argument.flags and least:
            command.arguments[index] = replace(argument, required=True, least=least)
        elif argument.flags[:1] and argument.flags[0].lstrip("-") in needed and argument.name not in defaults:
            command.arguments[index] = replace(argument, required=True)
    # A test of what a value says, of one that every call has.
    given = {each.name for each in command.arguments if each.required}
    for each in doubts:
        used = {match[1] or match[2] for match in _VALUE_USED.finditer(each)} | {*re.findall(r"\w+", each)} & taken_out
        if used & given or (least and ("positionals" in each or {*re.findall(r"\w+", each)} & by_place.keys())):
            name = next(iter(sorted(used & given)), "positionals")
            command.unread.append(Unread(name, f"the test `{each.strip()[:60]}` was not understood"))
            return
