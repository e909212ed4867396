"""Node scripts that declare their options as literals to ``util.parseArgs``."""

from __future__ import annotations

import re

from skillruntime.derive.command import Argument, Command, Reading, Unread
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.text_fields import plain_name

__all__ = ["read_node"]

# A text that is not closed ends with its line, or with the script.
_STRING = r"\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?|`(?:[^`\\]++|\\.)*+`?"
_COMMENT = re.compile(
    rf"({_STRING})|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)", re.DOTALL
)
_BRACKET = re.compile(rf"[()\[\]{{}}]|{_STRING}", re.DOTALL)
_TEXT = re.compile(r"\bdefault\s*:\s*(?:\"([^\"\\]*+)\"|'([^'\\]*+)')\s*(?:,|\Z)")
_PARSE_ARGS = re.compile(r"(?<![\w.])(?:util\.)?parseArgs\(")
_ENTRY = re.compile(r"[\s,]*[\"']?([\w-]++)[\"']?\s*:\s*\{([^{}]*+)\}")
_REFUSES = re.compile(
    r"\bprocess\.exit\(\s*+(?!0?\))|\bprocess\.exitCode\s*+=|\bthrow\b"
)


def read_node(text: str) -> Reading | None:
    """Return what the Node script *text* declares; None where it declares nothing that
    is known.
    """
    if "parseArgs" not in text:
        return None
    code = _COMMENT.sub(lambda match: match[1] or "", text)
    # A script's own ``function parseArgs(argv)`` is not the one of ``node:util``.
    match = (
        _PARSE_ARGS.search(code)
        if re.search(r"[\"'](?:node:)?util[\"']", code)
        else None
    )
    if match is None or re.search(r"\bfunction parseArgs\b", code):
        return None
    return _read_parse_args(code, match)


def _inside(code: str, start: int) -> str:
    """Return the content of the brackets that open at *start*; all the rest if they are
    not closed.
    """
    depth = 0
    for match in _BRACKET.finditer(code, start):
        depth += (match[0] in "([{") - (match[0] in ")]}")
        if depth == 0:
            return code[start + 1 : match.start()]
    return code[start + 1 :]


def _read_parse_args(code: str, match: re.Match[str]) -> Reading:
    """``util.parseArgs({options, allowPositionals})``: every option is declared,
    positionals are only allowed.
    """
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
            command.unread.append(
                Unread(f"--{entry[1]}", "its declaration is computed")
            )
        elif entry[1] not in ("help", "version"):
            command.arguments.append(argument)
    if options[index:].strip(" \t\r\n,"):
        command.unread.append(Unread("options", "some are computed"))
    # Node refuses positionals by default where ``strict`` is (util.parseArgs).
    if re.search(r"\ballowPositionals\b(?!\s*:\s*false)|\bstrict\s*:\s*false", config):
        command.arguments.append(Argument("positionals", (), "values"))
    # It declares neither which options are required nor how many positionals.
    if _REFUSES.search(code):
        command.unread.append(
            Unread("arguments", "what the script refuses is not followed")
        )
    return Reading(command, "parseArgs", "medium")


def _options(code: str, config: str) -> str | None:
    """Return the inside of the options' object, wherever it is written; None where it
    is not a literal.
    """
    named = re.search(r"\boptions\b\s*(?::\s*(\w+|\{))?", config)
    if named is None:
        return "" if config.strip().startswith("{") else None
    if named[1] == "{":
        return _inside(config, named.end() - 1)
    stated = re.search(
        rf"\b(?:const|let|var)\s+{named[1] or 'options'}\s*=\s*\{{", code
    )
    return _inside(code, stated.end() - 1) if stated else None


def _declared_option(name: str, stated: str) -> Argument | None:
    kind = re.search(r"\btype\s*:\s*[\"'](string|boolean)[\"']", stated)
    if kind is None:
        return None
    short = re.search(r"\bshort\s*:\s*[\"'](\w)[\"']", stated)
    flags = (f"--{name}", *([f"-{short[1]}"] if short else []))
    is_hidden = re.search(r"\bdefault\s*:(?!\s*false)", stated) is not None
    if kind[1] == "boolean":
        return Argument(
            plain_name(name), flags, "nothing", has_hidden_default=is_hidden
        )
    many = re.search(r"\bmultiple\s*:\s*true", stated) is not None
    text = None if many else _TEXT.search(stated)
    known = ABSENT if text is None else text[1] or text[2] or ""
    return Argument(
        plain_name(name),
        flags,
        repeat=many,
        default=known,
        has_hidden_default=is_hidden,
    )
