"""Scripts with docopt: their usage text is the declaration (docopt 0.6.2, README "Usage pattern format").

Commands, positional arguments, options and ``[options]`` are read. Other alternatives (``(a | b) <x>``) are a grammar
that no list of arguments says; then the words stay one list.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from skillruntime.derive.command import Argument, Command, Unread
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.relevance import dotted, nodes_of
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.text_fields import first_paragraph, flattened

__all__ = ["read_docopt"]

_USAGE = re.compile(r"(?im)^[^\n]*\busage:[ \t]*(.*(?:\n[ \t]+\S.*)*|(?:\n[ \t]*\S.*)+)")
_OPTION = re.compile(r"^[ \t]*(-{1,2}\w[^\n]*?)(?:[ \t]{2,}(\S[^\n]*(?:\n[ \t]{8,}[^-\s][^\n]*)*))?$", re.MULTILINE)
_DEFAULT = re.compile(r"\s*\[default:\s*([^\]]*)\]", re.IGNORECASE)
_TOKEN = re.compile(r"\[options\]|-{1,2}[\w-]+(?:=(?:<[^<>]*>|[\w-]+))?|<[^<>]*>|[\[\]()|]|\.\.\.|[^\s\[\]()|.]+")
_OTHER_WAYS = "its usage has alternatives that are not read"


def read_docopt(tree: ast.Module) -> Reading | None:
    """Return what the usage text of *tree* declares to docopt; None where it calls no docopt."""
    call = next((each for each in nodes_of(tree) if isinstance(each, ast.Call) and _is_docopt(each)), None)
    if call is None:
        return None
    text = _text(tree, call)
    command = Command("words", first_paragraph(text))
    usage = _USAGE.search(text)
    options = _options(text[: usage.start()] + text[usage.end() :]) if usage else {}
    lines = [line.split(maxsplit=1)[1:] for line in usage[1].strip().splitlines() if line.strip()] if usage else []
    if not lines or not all(_read_line(command, (line or [""])[0], options) for line in lines):
        command.arguments, command.commands, command.chooser = [], {}, ""
        command.unread = [Unread("arguments", _OTHER_WAYS, call.lineno, is_needed=True)]
    return Reading(command, "docopt", "medium")


def _is_docopt(call: ast.Call) -> bool:
    return dotted(call.func) in ("docopt", "docopt.docopt") and bool(call.args or call.keywords)


def _text(tree: ast.Module, call: ast.Call) -> str:
    given = call.args[0] if call.args else next((each.value for each in call.keywords if each.arg == "doc"), None)
    if isinstance(given, ast.Name):
        if given.id == "__doc__":
            return ast.get_docstring(tree) or ""
        assigned = (each for each in tree.body if isinstance(each, ast.Assign))
        given = next((each.value for each in assigned if ast.unparse(each.targets[0]) == given.id), None)
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""


def _options(text: str) -> dict[str, Argument]:
    """Return the options that are described below the usage, by each of their flags."""
    found: dict[str, Argument] = {}
    for match in _OPTION.finditer(text):
        flags = re.findall(r"(?<![\w<-])-{1,2}\w[\w-]*", match[1])
        takes_value = re.search(r"-\w[\w-]*[ =](?:<|[A-Z])", match[1]) is not None
        described = flattened(match[2] or "")
        default = _DEFAULT.search(described)
        argument = _option(flags, takes_value=takes_value)
        if default and takes_value:
            argument = replace(argument, default=default[1])
        found |= dict.fromkeys(flags, replace(argument, description=_DEFAULT.sub("", described).strip()))
    return found


def _option(flags: list[str], *, takes_value: bool) -> Argument:
    ordered = tuple(sorted(flags, key=len, reverse=True))
    name = ordered[0].lstrip("-").replace("-", "_")
    return Argument(name, ordered, "value" if takes_value else "nothing")


def _read_line(program: Command, line: str, options: dict[str, Argument]) -> bool:
    """Read one pattern of the usage into *program*, or into its command; return whether it is plain."""
    words = _TOKEN.findall(line)
    # ``(-h | --help)`` and ``--version`` end the program.
    flags = {each for each in words if each.startswith("-")}
    if flags and flags <= {"-h", "--help", "-V", "-v", "--version"} and not set(words) - flags - set("()[]|"):
        return True
    command = program
    while words and re.fullmatch(r"[a-z][\w-]*", words[0]):
        # A second line for the same command, or arguments beside commands.
        if command.arguments or (command is not program and not command.chooser and command.commands):
            return False
        command.chooser = "command" if command is program else "subcommand"
        command = command.commands.setdefault(words.pop(0), Command("words"))
    if command.arguments or command.commands:
        return False
    depth = 0
    is_value = False
    for number, word in enumerate(words):
        if is_value:
            is_value = False
            continue
        following = words[number + 1 : number + 3]
        if word in "[]":
            depth += 1 if word == "[" else -1
        elif word == "[options]":
            shown = ({each.name: each for each in options.values() if each.name not in ("help", "version")}).values()
            known = {each.name for each in command.arguments}
            command.arguments += [each for each in shown if each.name not in known]
        # ``[--json | --yaml]``: at most one of them.
        elif word == "|" and depth and all(each.startswith("-") for each in (words[number - 1], *following[:1])):
            continue
        elif word.startswith("-") and word.strip("-"):
            # ``-hso FILE`` is four words in one.
            if re.match(r"-\w{2}", word):
                return False
            flag, _, value = word.partition("=")
            known_option = options.get(flag) or _option([flag], takes_value=bool(value))
            # ``--top N``: only the text below the usage says that N is not an argument of its own.
            is_value = known_option.takes == "value" and not value
            argument = known_option if depth else replace(known_option, required=True, default=ABSENT)
            command.arguments = [each for each in command.arguments if each.name != argument.name]
            command.arguments.append(replace(argument, repeat="..." in following))
            if argument.required and argument.takes == "nothing":
                command.one_of.append([argument.name])
        elif re.fullmatch(r"<[^<>]*>|[A-Z][A-Z\d_-]*", word):
            many = "..." in following[:1] or following == ["]", "..."]
            name = re.sub(r"\W+", "_", word.strip("<>")).strip("_").lower()
            takes = "values" if many else "value"
            command.arguments.append(Argument(name, (), takes, required=not depth, least=int(many and not depth)))  # type: ignore[arg-type]  # one of two
        elif word != "...":
            return False
    names = [each.name for each in command.arguments]
    # ``[<prefix>] <file>``: one word is the second of them, which a list of places cannot say.
    needed = [each.required for each in command.arguments if not each.flags]
    return len(names) == len(set(names)) and needed == sorted(needed, reverse=True)
