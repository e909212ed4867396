"""A parser, as a whole, read as a command: what shares a destination is one argument, what excludes itself a group."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from skillruntime.derive.command import Argument, Command, Unread
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.state import State
from skillruntime.derive.interpreter.values import UNKNOWN, Symbol
from skillruntime.derive.readers.argparse_arguments import NO_EFFECT, Read, read_argument
from skillruntime.derive.readers.argparse_model import ParserModel, on_either_side
from skillruntime.derive.text_fields import first_paragraph

__all__ = ["read_parser"]

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]+")
EXCLUSIVE_LIMIT = 60
"""Members of an exclusive group that a contract can exclude from each other."""


def read_parser(state: State, parser: ParserModel, *, description: str = "") -> Command:
    """Return the command that *parser* declares, with its commands below it."""
    prefixes = parser.named.get("prefix_chars", "-")
    # ``prefix_chars="+/"``: flags and values that look like flags are recognised by these (`_parse_optional`, line
    # 2229).
    prefixes = prefixes if isinstance(prefixes, str) and prefixes else "-"
    own = first_paragraph(parser.named.get("description")) or first_paragraph(parser.named.get("help"))
    command = Command("argparse", own or description, prefixes=prefixes)
    # A word that starts with one is replaced by the lines of a file (`_read_args_from_files`, line 2163).
    files = parser.named.get("fromfile_prefix_chars")
    command.files = files if isinstance(files, str) else ""
    if parser.defaults.pop("**", None) is UNKNOWN:
        parser.notes.append("some defaults are computed")
    reads: list[Read] = []
    for asked in on_either_side(parser.asked):
        found = read_argument(state, parser, asked, prefixes)
        if isinstance(found, Unread):
            command.unread.append(found)
        elif found is not None:
            _resolve(parser, found, reads)
            reads.append(found)
    command.arguments = _ordered(_merged(reads), command)
    sizes = Counter(each.group for each in command.arguments if each.group is not None)
    # JSON Schema excludes each pair by a rule of its own: a thousand members would be half a million rules.
    command.exclusive = {
        number: parser.groups.get(number, False) for number, size in sizes.items() if 1 < size <= EXCLUSIVE_LIMIT
    }
    if any(size > EXCLUSIVE_LIMIT for size in sizes.values()):
        command.unread.append(Unread("arguments", f"more than {EXCLUSIVE_LIMIT} of them exclude each other"))
    # A group of one excludes nothing; only its ``required`` counts.
    lone = {number for number in parser.groups if sizes[number] <= 1}
    command.arguments = [_alone(each, parser) if each.group in lone else each for each in command.arguments]
    command.unread += parser.unread
    command.notes += parser.notes
    if parser.partial:
        # Words that the parser does not know go to another program or parser (`parse_known_args`, line 1875).
        command.notes.append("the script ignores unknown arguments (parse_known_args)")
    _read_subparsers(state, parser, command)
    return command


def _resolve(parser: ParserModel, found: Read, reads: list[Read]) -> None:
    """With ``conflict_handler="resolve"`` a later argument takes its flags from an earlier one."""
    # With the usual handler argparse raises at the second use of a flag, so the script does not run at all.
    if parser.named.get("conflict_handler") != "resolve":
        return
    for earlier in list(reads):
        left = tuple(flag for flag in earlier.argument.flags if flag not in found.argument.flags)
        if left != earlier.argument.flags:
            if left:
                earlier.argument = replace(earlier.argument, flags=left)
            else:
                reads.remove(earlier)


def _merged(reads: list[Read]) -> list[Argument]:
    """Bring together what shares a destination, and give everything a name of its own."""
    by_dest: dict[str, list[Read]] = {}
    for read in reads:
        by_dest.setdefault(read.dest, []).append(read)
    merged: list[Argument] = []
    taken: set[str] = set()
    for number, (dest, group) in enumerate(by_dest.items()):
        merged += [_with_name(each, taken) for each in _of_one_destination(dest, group, number)]
    return merged


def _of_one_destination(dest: str, group: list[Read], number: int) -> list[Argument]:
    """Return what shares the destination *dest*: one argument, or some that exclude each other."""
    if len(group) == 1:
        return [_named(group[0].argument, _named_by_flag(group[0], dest))]
    actions = [read.action for read in group]
    arguments = [read.argument for read in group]
    # ``--color`` and ``--no-color`` with one destination: a boolean with a flag for each answer.
    if sorted(actions) == ["store_false", "store_true"]:
        yes = arguments[actions.index("store_true")]
        no = arguments[actions.index("store_false")]
        # ``--cache`` with ``default=True`` next to ``--no-cache``: the flag that says no is the one with an effect.
        is_on = yes.description.endswith(NO_EFFECT)
        text = yes.description.removesuffix(NO_EFFECT).strip() or no.description
        known = True if is_on else ABSENT
        return [replace(yes, name=dest, off_flag=_flag(no), default=known, description=text, group=None)]
    constants = [read.const for read in group]
    # ``--json``/``--yaml`` with ``dest="format"``: each flag stores its own constant.
    are_switches = all(action in ("store_const", "store_true", "store_false") for action in actions)
    are_distinct = len({repr(const) for const in constants}) == len(constants)
    if are_switches and are_distinct and all(isinstance(const, str | int | float) for const in constants):
        pairs = tuple((read.const, _flag(read.argument)) for read in group)
        texts = [f"{const}: {each.description}" for each, const in zip(arguments, constants, strict=True)]
        described = "; ".join(texts) if any(each.description for each in arguments) else ""
        required = any(each.required for each in arguments)
        group_number = arguments[0].group if len({each.group for each in arguments}) > 1 else None
        return [
            Argument(dest, (), "one_of", description=described, choices=pairs, required=required, group=group_number)
        ]
    named = [_named(read.argument, _named_by_flag(read, dest, always=True)) for read in group]
    # These add to the destination instead of replacing it, so several may be given.
    if any(action in ("append", "append_const", "extend", "count") for action in actions):
        return named
    # The last one given would win: so at most one is. A number below zero is not one of the parser's own groups.
    alone = all(each.group is None and not each.required and each.flags for each in named)
    return [replace(each, group=-1 - number) for each in named] if alone else named


def _named_by_flag(read: Read, dest: str, *, always: bool = False) -> str:
    """A switch that says no is named by its flag: what a person reads is "give this flag", not what it stores."""
    if read.argument.flags and (always or read.action in ("store_false", "store_const", "append_const")):
        return _flag(read.argument)
    return dest


def _flag(argument: Argument) -> str:
    return next((each for each in argument.flags if len(each) > 2), argument.flags[0] if argument.flags else "")


def _with_name(argument: Argument, taken: set[str]) -> Argument:
    """Make the name unique and acceptable to every provider."""
    plain = _NOT_A_NAME.sub("_", argument.name).strip("_") or "argument"
    if argument.name.startswith("_") and plain != argument.name.strip("_"):
        plain = plain.lower()
    name, number = plain, 2
    while name in taken:
        name, number = f"{plain}_{number}", number + 1
    taken.add(name)
    return _named(argument, name)


def _named(argument: Argument, name: str) -> Argument:
    return argument if argument.name == name else replace(argument, name=name)


def _ordered(arguments: list[Argument], command: Command) -> list[Argument]:
    """Put positionals in their order, and leave out those that never get a word."""
    kept: list[Argument] = []
    open_ended: Argument | None = None
    for argument in arguments:
        if not argument.flags and argument.takes != "one_of":
            # `_match_arguments_partial` (line 2213) matches positionals as one greedy regular expression.
            is_open = argument.takes == "rest" or (argument.takes == "values" and argument.length is None)
            is_fixed = argument.required and not is_open
            if open_ended is not None and not is_fixed:
                _out_of_reach(argument, open_ended, command)
                continue
            # Behind an open list only a positional with a fixed number of words can get one: backtracking gives it
            # some.
            open_ended = argument if is_open else open_ended
        kept.append(argument)
    return kept


def _out_of_reach(argument: Argument, before: Argument, command: Command) -> None:
    """An argument that may be empty never gets a word after an open list: the list takes them all."""
    if argument.required or argument.least:
        command.unread.append(Unread(argument.name, f"it cannot be distinguished from {before.name}"))
    else:
        command.notes.append(f"{argument.name}: it never gets a word, {before.name} takes them all")


def _alone(argument: Argument, parser: ParserModel) -> Argument:
    """An argument that is the only one of its group excludes nothing."""
    assert argument.group is not None
    return replace(argument, group=None, required=argument.required or parser.groups[argument.group])


def _read_subparsers(state: State, parser: ParserModel, command: Command) -> None:
    # `add_subparsers` (line 1817) refuses a second call.
    for subparsers in parser.subparsers[:1]:
        if not subparsers.parsers:
            command.unread.append(Unread("commands", "none of them can be read"))
            continue
        # Without ``dest`` the name of the command is not stored, so any name will do for ours.
        dest = subparsers.named.get("dest")
        if isinstance(dest, Symbol):
            dest = None
        command.chooser = re.sub(r"[^A-Za-z0-9_]+", "_", dest) if isinstance(dest, str) and dest else "command"
        command.chooser_required = not _does_without(parser, subparsers.required)
        for word, below in subparsers.parsers.items():
            command.commands[word] = read_parser(state, below)
        for argument in command.arguments:
            if argument.takes in ("values", "rest") and argument.length is None and not argument.flags:
                # The subparsers action is a positional with ``nargs="A..."``: an open list before it takes its word.
                command.unread.append(Unread(argument.name, "it would swallow the command"))
        command.arguments = [
            each
            for each in command.arguments
            if each.flags or each.length is not None or each.takes not in ("values", "rest")
        ]


def _does_without(parser: ParserModel, required: Any) -> bool:
    """Whether the script has something to do without a command: it says so by a default function."""
    # Since Python 3 a parser with subparsers accepts no command; a script that sets a default function expects that.
    keys = ("func", "handler", "fn", "run", "callback")
    # ``set_defaults(func=None)`` is there to be tested.
    return required is not True and any(parser.defaults.get(key) is not None for key in keys)
