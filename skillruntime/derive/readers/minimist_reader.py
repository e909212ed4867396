"""Node scripts with minimist: the few options that are declared to it, and the members that are used."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from tree_sitter import Node

from skillruntime.derive.command import TEXT, Argument, Command, Unread, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.values import UNKNOWN
from skillruntime.derive.readers.javascript_source import arguments_of, calls_of, literal, nodes_of
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.readers.syntax_tree import text_of

__all__ = ["read_minimist"]

_KNOWN_OPTIONS = {"string", "boolean", "alias", "default", "unknown", "stopEarly"}
_HELP = {"h", "help", "version", "V"}
_ENDS = re.compile(r"\bprocess\.exit\((?!0)|\bthrow\b|\busage\(|\bdie\(|\bfail\(")


def read_minimist(root: Node, names: dict[str, Any], description: str) -> Reading | None:
    """Return what the script of *root* takes; None where its call of minimist is not found."""
    call = _call(root)
    if call is None:
        return None
    command = Command("minimist", description)
    given = arguments_of(call, names)
    config = given[1] if len(given) > 1 else {}
    if not isinstance(config, dict) or config.keys() - _KNOWN_OPTIONS or "slice(2)" not in text_of(call):
        command.unread.append(Unread("options", "the call of minimist is computed"))
        return Reading(command, "minimist", "medium")
    members, result, is_kept = _members(root, call)
    if not is_kept:
        command.unread.append(Unread("arguments", "what minimist returns is passed on"))
    strings, booleans = _listed(config.get("string")), _listed(config.get("boolean"))
    aliases, defaults = config.get("alias", {}), config.get("default", {})
    if strings is None or booleans is None or not isinstance(aliases, dict) or not isinstance(defaults, dict):
        command.unread.append(Unread("options", "their declaration is computed"))
        return Reading(command, "minimist", "medium")
    groups = _groups([*strings, *booleans, *aliases, *defaults, *members], aliases)
    needed, least = _demands(root, result)
    for group in groups:
        if _HELP & set(group) or "_" in group:
            continue
        argument = _argument(group, set(strings), set(booleans), defaults)
        if argument.bare:
            command.unread.append(Unread(argument.shown, "whether it takes a value is not declared"))
        if needed & set(group) and argument.default is ABSENT:
            argument = replace(argument, required=True)
        command.arguments.append(argument)
    if "_" in members:
        command.arguments.append(Argument("words", (), "values", required=least > 0, least=least))
        command.unread.append(Unread("words", "how many the script needs is not declared"))
    return Reading(command, "minimist", "medium")


def _call(root: Node) -> Node | None:
    """Return the call of minimist, by the name that the script imports it under."""
    own = set()
    for node in nodes_of(root, "import_statement"):
        if literal(node.child_by_field_name("source"), {}) == "minimist":
            own |= {text_of(each) for each in nodes_of(node, "identifier")}
    for node in nodes_of(root, "variable_declarator"):
        if re.fullmatch(r"require\((['\"])minimist\1\)", text_of(node.child_by_field_name("value"))):
            own.add(text_of(node.child_by_field_name("name")))
    for name, call in calls_of(root):
        if name in own or re.fullmatch(r"require\((['\"])minimist\1\)", name):
            return call
    return None


def _members(root: Node, call: Node) -> tuple[list[str], str, bool]:
    """Return the members that are used, the variable that holds the result, and whether nothing else sees it."""
    holder = call.parent
    target = holder.child_by_field_name("name") if holder is not None and holder.type == "variable_declarator" else None
    if target is None:
        return [], "", False
    if target.type == "object_pattern":  # ``const { name, _: files } = minimist(...)``
        plain = all(each.type in _PLAIN_PATTERNS for each in target.named_children)
        keys = [
            text_of(each.child_by_field_name("key") or each.child_by_field_name("left") or each).strip("'\"")
            for each in target.named_children
        ]
        return list(dict.fromkeys(keys)), "", plain
    result = text_of(target)
    found: list[str] = []
    uses = 0
    for node in nodes_of(root, "member_expression", "subscript_expression"):
        if text_of(node.child_by_field_name("object")) != result:
            continue
        inner = node.child_by_field_name("property")
        name = text_of(inner) if inner is not None else literal(node.child_by_field_name("index"), {})
        # ``argv[key]`` may be any of them.
        if isinstance(name, str):
            uses += 1
            found.append(name)
    mentioned = sum(text_of(each) == result for each in nodes_of(root, "identifier", "shorthand_property_identifier"))
    return list(dict.fromkeys(found)), result, mentioned == uses + 1


_PLAIN_PATTERNS = ("shorthand_property_identifier_pattern", "pair_pattern", "object_assignment_pattern")


def _listed(value: Any) -> list[str] | None:
    """Return the names that ``string`` or ``boolean`` declares: one text or a list; None where they are computed."""
    listed = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        return None
    return listed


def _groups(names: list[str], aliases: dict[str, Any]) -> list[list[str]]:
    """Return the names of each option: minimist sets every alias with its option."""
    groups: dict[str, list[str]] = {}
    for name, others in aliases.items():
        listed = _listed(others) or []
        group = list(dict.fromkeys([name, *listed]))
        groups |= dict.fromkeys(group, group)
    return list({id(group): group for group in (groups.setdefault(name, [name]) for name in names)}.values())


def _argument(group: list[str], strings: set[str], booleans: set[str], defaults: dict[str, Any]) -> Argument:
    # The long name says what is meant; ``--n`` works for ``n`` too.
    names = sorted(group, key=len, reverse=True)
    plain = re.sub(r"\W+", "_", names[0])
    flags = tuple(f"--{each}" for each in names)
    default = next((defaults[each] for each in group if each in defaults), ABSENT)
    default = ABSENT if default is UNKNOWN or default is None else default
    if booleans & set(group) or isinstance(default, bool):
        known = default if isinstance(default, bool) else ABSENT
        return Argument(plain, flags, "nothing", default=known, off_flag=f"--no-{names[0]}")
    if strings & set(group) or isinstance(default, str):
        return Argument(plain, flags, default=default if isinstance(default, str) else ABSENT)
    if isinstance(default, int | float):
        return Argument(plain, flags, value=ValueType({"type": "number"}), default=default)
    # Without a declaration ``--name`` is true, and ``--name x`` is x.
    return Argument(plain, flags, "optional", TEXT, bare=True)


def _demands(root: Node, result: str) -> tuple[set[str], int]:
    """Return the members, and the number of words, that it ends without: ``if (!argv.name) process.exit(1)``."""
    needed: set[str] = set()
    least = 0
    if not result:
        return needed, least
    for node in nodes_of(root, "if_statement"):
        test = text_of(node.child_by_field_name("condition"))
        # ``&&`` demands one of several, which is not said here.
        if "&&" in test or not _ENDS.search(text_of(node.child_by_field_name("consequence"))):
            continue
        for each in test.removeprefix("(").removesuffix(")").split("||"):
            part = each.strip()
            if match := re.fullmatch(rf"!\s*{result}(?:\.(\w+)|\[['\"]([\w-]+)['\"]\])", part):
                needed.add(match[1] or match[2])
            elif match := re.fullmatch(rf"!\s*{result}\._\[(\d)\]|{result}\._\.length\s*<\s*(\d)", part):
                least = max(least, int(match[2]) if match[2] else int(match[1]) + 1)
            elif re.fullmatch(rf"!\s*{result}\._\.length|{result}\._\.length\s*===?\s*0", part):
                least = max(least, 1)
    return needed, least
