"""A parser, as a whole, read as a command: what shares a destination is one argument,
what excludes itself a group.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace

from skillruntime.derive.command import Argument, Command, Unread
from skillruntime.derive.readers.argparse_arguments import (
    Read,
    long_flag,
    read_argument,
)
from skillruntime.derive.readers.argparse_parsers import Parser
from skillruntime.derive.readers.python_checks import HANDLERS
from skillruntime.derive.text_fields import first_paragraph, free_name, plain_name

__all__ = ["read_parser"]

EXCLUSIVE_LIMIT = 60
"""Members of an exclusive group that a contract can exclude from each other."""


def read_parser(parser: Parser, *, description: str = "") -> Command:
    """Return the command that *parser* declares, with its commands below it."""
    own = first_paragraph(parser.named.get("description")) or first_paragraph(
        parser.named.get("help")
    )
    command = Command("argparse", own or description)
    # ``prefix_chars="+/"``, and words that name files with more words: what a value may
    # be depends on them.
    if {"prefix_chars", "fromfile_prefix_chars"} & parser.named.keys():
        command.unread.append(
            Unread("arguments", "its flags start in its own way", is_needed=True)
        )
    reads: list[Read] = []
    for asked in parser.asked:
        found = read_argument(parser, asked)
        if isinstance(found, Unread):
            command.unread.append(found)
        elif found is not None:
            if found.argument.value.unsure:
                command.notes.append(
                    f"{found.argument.shown}: {found.argument.value.unsure}; it is "
                    "passed on as text"
                )
            reads.append(found)
    # The usual handler raises at the second use of a flag, so such a script does not
    # run at all.
    if parser.named.get("conflict_handler", "error") != "error":
        command.unread.append(
            Unread("arguments", "a later argument may replace an earlier one")
        )
    command.arguments = _merged(reads)
    _read_groups(parser, command)
    command.unread += parser.unread
    if parser.ignores_unknown:
        # Words that the parser does not know go to another program or parser
        # (`parse_known_args`, line 1875).
        command.notes.append("the script ignores unknown arguments (parse_known_args)")
    _read_commands(parser, command)
    _report_out_of_reach(command)
    function = next(
        (parser.defaults[key] for key in HANDLERS if key in parser.defaults), None
    )
    command.handler = (
        function.name
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        else ""
    )
    return command


def _read_groups(parser: Parser, command: Command) -> None:
    sizes = Counter(each.group for each in command.arguments if each.group is not None)
    for number, size in sizes.items():
        # JSON Schema excludes each pair by a rule of its own: a thousand members would
        # be half a million rules.
        if size > EXCLUSIVE_LIMIT:
            command.unread.append(
                Unread(
                    "arguments",
                    f"more than {EXCLUSIVE_LIMIT} of them exclude each other",
                )
            )
        # A group of one excludes nothing; only its ``required`` counts.
        elif size > 1 or parser.groups.get(number):
            command.exclusive[number] = parser.groups.get(number, False)


def _merged(reads: list[Read]) -> list[Argument]:
    """Bring together what shares a destination, and give everything a name of its
    own.
    """
    by_dest: dict[str, list[Read]] = {}
    for read in reads:
        by_dest.setdefault(read.dest, []).append(read)
    merged: list[Argument] = []
    taken: dict[str, int] = {}
    for number, (dest, group) in enumerate(by_dest.items()):
        for argument in _of_one_destination(dest, group, number):
            name = free_name(plain_name(argument.name), taken)
            merged.append(
                argument if argument.name == name else replace(argument, name=name)
            )
    return merged


def _of_one_destination(dest: str, group: list[Read], number: int) -> list[Argument]:
    """Return what shares the destination *dest*: one argument, or some that exclude
    each other.
    """
    if len(group) == 1:
        return [replace(group[0].argument, name=_name(group[0], dest))]
    actions = [read.action for read in group]
    named = [
        replace(read.argument, name=_name(read, dest, always=True)) for read in group
    ]
    # These add to the destination instead of replacing it, so several may be given.
    if any(
        action in ("append", "append_const", "extend", "count") for action in actions
    ):
        return named
    # The last one given would win: so at most one is. A number below zero is not one of
    # the parser's own groups.
    if all(each.group is None and not each.required and each.flags for each in named):
        return [replace(each, group=-1 - number) for each in named]
    return named


def _name(read: Read, dest: str, *, always: bool = False) -> str:
    """A switch that says no is named by its flag: what a person reads is "give this
    flag", not what it stores.
    """
    if read.argument.flags and (
        always or read.action in ("store_false", "store_const", "append_const")
    ):
        return long_flag(read.argument)
    return dest


def _report_out_of_reach(command: Command) -> None:
    """Report the positionals behind an open list that may be left out: it takes their
    words.
    """
    open_list = ""
    for each in command.arguments:
        if not each.flags:
            # `_match_arguments_partial` (line 2213) matches positionals as one greedy
            # regular expression.
            is_open = each.takes in ("values", "rest") and each.length is None
            if open_list and (is_open or not each.required):
                command.unread.append(
                    Unread(each.name, f"{open_list} takes its words", is_needed=True)
                )
            open_list = each.name if is_open else open_list
    # The subparsers action is a positional with ``nargs="A..."``.
    if open_list and command.chooser:
        command.unread.append(
            Unread(command.chooser, f"{open_list} takes its word", is_needed=True)
        )


def _read_commands(parser: Parser, command: Command) -> None:
    if parser.commands is None:
        return
    if not parser.commands:
        command.unread.append(
            Unread("commands", "none of them can be read", is_needed=True)
        )
        return
    # Without ``dest`` the name of the command is not stored, so any name will do for
    # ours.
    dest = parser.chooser.get("dest")
    command.chooser = plain_name(dest) if isinstance(dest, str) and dest else "command"
    command.commands = {
        word: read_parser(below) for word, below in parser.commands.items()
    }
