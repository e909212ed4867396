"""Read a complete parser as a command: arguments with the same destination become one
argument, exclusive ones a group.
"""

from __future__ import annotations

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
from skillruntime.derive.readers.python_nodes import Function
from skillruntime.derive.text_fields import first_paragraph, free_name, plain_name

__all__ = ["read_parser"]

EXCLUSIVE_LIMIT = 60
"""The most members of an exclusive group that a contract can exclude from each
other.
"""

_ADDING = ("append", "append_const", "extend", "count")


def read_parser(parser: Parser, *, description: str = "") -> Command:
    """Return the command that *parser* declares, with its commands below it."""
    own = first_paragraph(parser.named.get("description"))
    if not own:
        own = first_paragraph(parser.named.get("help"))
    command = Command("argparse", own or description)
    # ``prefix_chars="+/"``, and words that name files with more words: the possible
    # values depend on these.
    if {"prefix_chars", "fromfile_prefix_chars"} & parser.named.keys():
        reason = "its flags start in its own way"
        command.unread.append(Unread("arguments", reason, is_needed=True))
    command.arguments = _merged(_read_arguments(parser, command))
    # The usual handler raises at the second use of a flag, so such a script does not
    # run at all.
    if parser.named.get("conflict_handler", "error") != "error":
        reason = "a later argument may replace an earlier one"
        command.unread.append(Unread("arguments", reason))
    _read_groups(parser, command)
    command.unread += parser.unread
    if parser.ignores_unknown:
        # Words that the parser does not know go to another program or parser
        # (`parse_known_args`, line 1875).
        command.notes.append("the script ignores unknown arguments (parse_known_args)")
    _read_commands(parser, command)
    _report_out_of_reach(command)
    command.handler = _handler(parser)
    return command


def _read_arguments(parser: Parser, command: Command) -> list[Read]:
    """Return the arguments that *parser* declares; record in *command* the parts that
    could not be read.
    """
    reads: list[Read] = []
    for asked in parser.asked:
        read = read_argument(parser, asked)
        if read is None:
            continue
        if isinstance(read, Unread):
            command.unread.append(read)
            continue
        unsure = read.argument.value.unsure
        if unsure:
            note = f"{read.argument.shown}: {unsure}; it is passed on as text"
            command.notes.append(note)
        reads.append(read)
    return reads


def _handler(parser: Parser) -> str:
    """Return the name of the handler function that ``set_defaults`` names, if any."""
    for key in HANDLERS:
        if key in parser.defaults:
            function = parser.defaults[key]
            return function.name if isinstance(function, Function) else ""
    return ""


def _read_groups(parser: Parser, command: Command) -> None:
    groups = [argument.group for argument in command.arguments]
    for number, size in Counter(groups).items():
        if number is None:
            continue
        # JSON Schema needs a rule for each excluded pair: a thousand members would need
        # half a million rules.
        if size > EXCLUSIVE_LIMIT:
            reason = f"more than {EXCLUSIVE_LIMIT} of them exclude each other"
            command.unread.append(Unread("arguments", reason))
        # A group of one excludes nothing; only its ``required`` counts.
        elif size > 1 or parser.groups.get(number):
            command.exclusive[number] = parser.groups.get(number, False)


def _merged(reads: list[Read]) -> list[Argument]:
    """Return the arguments with distinct names; arguments with the same destination are
    merged.
    """
    by_dest: dict[str, list[Read]] = {}
    for read in reads:
        by_dest.setdefault(read.dest, []).append(read)
    merged: list[Argument] = []
    taken: dict[str, int] = {}
    for number, (dest, group) in enumerate(by_dest.items()):
        for argument in _of_one_destination(dest, group, number):
            name = free_name(plain_name(argument.name), taken)
            if name != argument.name:
                argument = replace(argument, name=name)
            merged.append(argument)
    return merged


def _of_one_destination(dest: str, group: list[Read], number: int) -> list[Argument]:
    """Return the arguments for the destination *dest*: one argument, or several that
    exclude each other.
    """
    if len(group) == 1:
        return [replace(group[0].argument, name=_name(group[0], dest))]
    arguments = [
        replace(read.argument, name=_name(read, dest, always=True)) for read in group
    ]
    # These add to the destination instead of replacing it, so several may be given.
    if any(read.action in _ADDING for read in group):
        return arguments
    if not all(_may_exclude_others(argument) for argument in arguments):
        return arguments
    # The last given argument would win, so allow at most one. A negative number
    # distinguishes this group from the parser's own.
    return [replace(argument, group=-1 - number) for argument in arguments]


def _may_exclude_others(argument: Argument) -> bool:
    if argument.required or not argument.flags:
        return False
    return argument.group is None


def _name(read: Read, dest: str, *, always: bool = False) -> str:
    """Return the name of an argument: of its destination, or *always* of its flag."""
    if not read.argument.flags:
        return dest
    # A negative switch is named by its flag, because people read "give this flag", not
    # what it stores.
    if always or read.action in ("store_false", "store_const", "append_const"):
        return long_flag(read.argument)
    return dest


def _report_out_of_reach(command: Command) -> None:
    """Report the optional positionals behind an open list, which takes their words."""
    open_list = ""
    for argument in command.arguments:
        if argument.flags:
            continue
        # `_match_arguments_partial` (line 2213) matches positionals as one greedy
        # regular expression.
        is_open = argument.takes in ("values", "rest") and argument.length is None
        if open_list and (is_open or not argument.required):
            reason = f"{open_list} takes its words"
            command.unread.append(Unread(argument.name, reason, is_needed=True))
        if is_open:
            open_list = argument.name
    # The subparsers action is a positional with ``nargs="A..."``.
    if open_list and command.chooser:
        reason = f"{open_list} takes its word"
        command.unread.append(Unread(command.chooser, reason, is_needed=True))


def _read_commands(parser: Parser, command: Command) -> None:
    if parser.commands is None:
        return
    if not parser.commands:
        reason = "none of them can be read"
        command.unread.append(Unread("commands", reason, is_needed=True))
        return
    # Without ``dest`` the name of the command is not stored, so any name will do for
    # ours.
    dest = parser.chooser.get("dest")
    command.chooser = plain_name(dest) if isinstance(dest, str) and dest else "command"
    command.commands = {
        word: read_parser(below) for word, below in parser.commands.items()
    }
