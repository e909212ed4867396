"""Node scripts that declare their options as literals to ``util.parseArgs``."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import Any

from skillruntime.derive.command import Argument, Command, Reading, Unread
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.checks import Test, refuse
from skillruntime.derive.text_fields import plain_name

__all__ = ["read_node"]

CHECKS_LIMIT = 200
"""Conditions of a script that are looked at."""

CONDITION_LIMIT = 400
"""Characters of a condition and of what follows it."""

_STRING = r"\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'|`(?:[^`\\]++|\\.)*+`"
# A text that is not closed ends with its line, or with the script.
_ANY_STRING = r"\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?|`(?:[^`\\]++|\\.)*+`?"
_COMMENT = re.compile(rf"({_ANY_STRING})|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)", re.DOTALL)
_BRACKET = re.compile(rf"[()\[\]{{}}]|{_ANY_STRING}", re.DOTALL)
_LITERAL = re.compile(rf"\s*(?:({_STRING})|(true|false|null|undefined|\d++))\s*(?=[,)\]}}]|\Z)", re.DOTALL)
_PARSE_ARGS = re.compile(r"(?<![\w.])(?:util\.)?parseArgs\(")
_ENTRY = re.compile(r"[\s,]*[\"']?([\w-]++)[\"']?\s*:\s*\{([^{}]*+)\}")
_REFUSES = re.compile(r"process\.exit\((?!0?\))|process\.exitCode=[1-9]|\bthrow|\b(?:usage|die|fail|error|help)\(")
_PLACE = re.compile(
    r"!(?:\w++\.)?positionals\[(\d)\]|(?<!\w)!?(?:\w++\.)?positionals\.length(?:(?:<|!==?)([1-9])|===?0)?"
)


def read_node(text: str) -> Reading | None:
    """Return what the Node script *text* declares; None where it declares nothing that is known."""
    if "parseArgs" not in text:
        return None
    code = _COMMENT.sub(lambda match: match[1] or "", text)
    # A script's own ``function parseArgs(argv)`` is not the one of ``node:util``.
    match = _PARSE_ARGS.search(code) if re.search(r"[\"'](?:node:)?util[\"']", code) else None
    if match is None or re.search(r"\bfunction parseArgs\b", code):
        return None
    return _read_parse_args(code, match)


def _inside(code: str, start: int, limit: int | None = None) -> str:
    """Return what is in the brackets that open at *start*; all that follows where they are not closed."""
    depth = 0
    end = len(code) if limit is None else min(start + limit, len(code))
    for match in _BRACKET.finditer(code, start, end):
        depth += (match[0] in "([{") - (match[0] in ")]}")
        if depth == 0:
            return code[start + 1 : match.start()]
    return code[start + 1 : end]


def _literal(code: str) -> Any:
    """Return the literal that *code* starts with; ABSENT where it starts with something else."""
    match = _LITERAL.match(code)
    if match is None or (match[1] and match[1][0] == "`" and "${" in match[1]):
        return ABSENT
    if match[1] is None:
        return {"true": True, "false": False}.get(match[2])
    return re.sub(r"\\(.)", lambda each: {"n": "\n", "t": "\t"}.get(each[1], each[1]), match[1][1:-1])


def _read_parse_args(code: str, match: re.Match[str]) -> Reading:
    """``util.parseArgs({options, allowPositionals})``: every option is declared, positionals are only allowed."""
    command = Command("parseArgs")
    config = _inside(code, match.end() - 1)
    options = _options(code, config)
    if options is None:
        command.unread.append(Unread("options", "they are computed", is_needed=True))
        return Reading(command, "parseArgs", "medium")
    index = 0
    while entry := _ENTRY.match(options, index):
        index = entry.end()
        argument = _declared_option(entry[1], entry[2])
        if argument is None:
            command.unread.append(Unread(f"--{entry[1]}", "its declaration is computed"))
        elif entry[1] not in ("help", "version"):
            command.arguments.append(argument)
    if options[index:].strip(" \t\r\n,"):
        command.unread.append(Unread("options", "some are computed"))
    # Node refuses positionals by default where ``strict`` is (util.parseArgs).
    if re.search(r"\ballowPositionals\b(?!\s*:\s*false)|\bstrict\s*:\s*false", config):
        command.arguments.append(Argument("positionals", (), "values"))
    before = code[max(0, match.start() - CONDITION_LIMIT) : match.start()]
    # ``const { values: { input } } = parseArgs(...)``: tests of it would be tests of any variable.
    if re.search(r"\bvalues\s*:\s*\{[^{}]*\}[^;{}]*\}\s*=\s*$", before):
        command.unread.append(Unread("arguments", "its values are taken apart"))
    is_values = code.startswith(".values", match.end() + len(config) + 1)
    holder = re.search(r"(\w+)\s*=\s*$" if is_values else r"\bvalues\s*:\s*(\w+)[^=;]*=\s*$", before)
    _read_checks(code, command, holder[1] if holder else "values")
    return Reading(command, "parseArgs", "medium")


def _options(code: str, config: str) -> str | None:
    """Return the inside of the options' object, wherever it is written; None where it is not a literal."""
    named = re.search(r"\boptions\b\s*(?::\s*(\w+|\{))?", config)
    if named is None:
        return "" if config.strip().startswith("{") else None
    if named[1] == "{":
        return _inside(config, named.end() - 1)
    stated = re.search(rf"\b(?:const|let|var)\s+{named[1] or 'options'}\s*=\s*\{{", code)
    return _inside(code, stated.end() - 1) if stated else None


def _declared_option(name: str, stated: str) -> Argument | None:
    kind = re.search(r"\btype\s*:\s*[\"'](string|boolean)[\"']", stated)
    if kind is None:
        return None
    short = re.search(r"\bshort\s*:\s*[\"'](\w)[\"']", stated)
    flags = (f"--{name}", *([f"-{short[1]}"] if short else []))
    usual = re.search(r"\bdefault\s*:", stated)
    default = _literal(stated[usual.end() :]) if usual else None
    if kind[1] == "boolean":
        return Argument(plain_name(name), flags, "nothing", has_hidden_default=default not in (None, False))
    many = re.search(r"\bmultiple\s*:\s*true", stated) is not None
    known = default if isinstance(default, str) and not many else ABSENT
    hidden = usual is not None and known is ABSENT
    return Argument(plain_name(name), flags, repeat=many, default=known, has_hidden_default=hidden)


def _read_checks(code: str, command: Command, holder: str) -> None:
    """Require what the script refuses to run without: ``if (!values.name || !positionals[0]) process.exit(1)``."""
    names = {each.flags[0].lstrip("-"): each.name for each in command.arguments if each.flags}
    reference = re.compile(rf"(?:\w+\.)?{holder}(?:\.(\w++)|\[\"([\w-]++)\"\])(?:\?\.length)?")
    for match in islice(re.finditer(r"\bif\s*\(", code), CHECKS_LIMIT):
        condition = _inside(code, match.end() - 1, CONDITION_LIMIT)
        following = code[match.end() + len(condition) + 1 :][:CONDITION_LIMIT].lstrip()
        # The body is a block, or a statement.
        body = _inside(following, 0) if following.startswith("{") else following.partition(";")[0].partition("\n")[0]
        if not _REFUSES.search(re.sub(r"\s", "", body)):
            continue
        shown = re.sub(r"\s", "", condition).replace("'", '"')
        for least in [int(each[1] or each[2] or 0) + (each[1] is not None) for each in _PLACE.finditer(shown)]:
            for number, argument in enumerate(command.arguments):
                if not argument.flags:
                    command.arguments[number] = replace(argument, required=True, least=max(least, argument.least, 1))
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
