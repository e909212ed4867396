"""Python scripts that read ``sys.argv`` by hand: traced on one command line after the other.

Nothing is concluded from how the script looks. It is followed with no word, with one, with two, with each literal that
it compares a word with and each flag that it looks for; a contract is what all of these agree on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace

from skillruntime.derive.command import Argument, Command, Unread
from skillruntime.derive.interpreter.interpreter import trace_script
from skillruntime.derive.interpreter.relevance import Relevance, nodes_of
from skillruntime.derive.interpreter.state import Exhausted
from skillruntime.derive.interpreter.words import Outcome, Word
from skillruntime.derive.readers.argv_doubts import not_understood
from skillruntime.derive.readers.argv_options import read_options
from skillruntime.derive.readers.argv_places import Undecided
from skillruntime.derive.readers.argv_study import Study
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.text_fields import first_paragraph
from skillruntime.derive.usage_line import find_usages, read_usage

__all__ = ["read_argv"]

STEPS_LIMIT = 4_000
"""Steps of all traces of a script together."""

OPTION_STEPS_LIMIT = 8_000
"""Steps of the traces that look for options; they follow loops over the words, which the others do not."""


def read_argv(tree: ast.Module, framework: str = "sys.argv", description: str = "") -> Reading | None:
    """Return what the script takes from ``sys.argv``; None where it does not use it."""
    source = Relevance(tree)
    command = Command("places", description or first_paragraph(ast.get_docstring(tree)))
    if not source.argv and not _imports_argv(tree):
        return None
    seen: list[Outcome] = []
    study = Study(_tracer(source, STEPS_LIMIT, seen))
    try:
        found = study.level(())
        if aside := source.argv - source.visited:
            line = next(each.lineno for each in nodes_of(tree) if id(each) in aside and isinstance(each, ast.expr))
            raise Undecided("sys.argv is used where the script cannot be followed", line)
    except (Undecided, Exhausted) as end:
        seen.clear()
        with_options = _with_options(source, seen)
        if with_options is not None:
            with_options.description = command.description
            with_options.unread += not_understood(source, seen)
            return Reading(_with_usage(with_options, _usage_of(source)), framework, "low")
        reason = (
            end.unread if isinstance(end, Undecided) else Unread("arguments", "the script is too long to be followed")
        )
        command.unread.append(reason)
        command.least_words = study.least()
    else:
        found.description = command.description
        found.unread += not_understood(source, seen)
        command = _with_usage(found, _usage_of(source))
    return Reading(command, framework, "low")


def _tracer(
    source: Relevance, steps: int, seen: list[Outcome], *, by_hand: bool = False
) -> Callable[[list[Word]], Outcome]:
    """Return a function that traces the script on a command line, on each one once, with *steps* for all of them.

    The outcomes are added to *seen*.
    """
    left = steps
    known: dict[tuple[object, ...], Outcome] = {}

    def trace(words: list[Word]) -> Outcome:
        nonlocal left
        said = tuple(
            (each.place, each.text, each.dashed, each.flag, each.inside and (each.inside.place, each.inside.text))
            for each in words
        )
        if said not in known:
            known[said], left = trace_script(source, words, left, by_hand=by_hand)
            seen.append(known[said])
        if lost := known[said].lost:
            raise Undecided(lost[0].reason, lost[0].line)
        return known[said]

    return trace


def _with_options(source: Relevance, seen: list[Outcome]) -> Command | None:
    """Return the options that the script takes apart by hand; None where the traces do not decide it."""
    source.visited.clear()
    try:
        found = read_options(_tracer(source, OPTION_STEPS_LIMIT, seen, by_hand=True))
    except (Undecided, Exhausted):
        return None
    return None if source.argv - source.visited else found


def _imports_argv(tree: ast.Module) -> bool:
    return any(
        isinstance(each, ast.ImportFrom) and each.module == "sys" and any(name.name == "argv" for name in each.names)
        for each in tree.body
    )


def _usage_of(source: Relevance) -> list[Argument] | None:
    """The arguments of the one usage line of the script, where it has one that is plain."""
    texts = [_written(node) for node in source.texts]
    lines = [line for text in texts if re.search(r"(?i)\busage\s*:", text) for line in find_usages(text)]
    read = [arguments for line in dict.fromkeys(lines) if (arguments := read_usage(line)) is not None]
    # Usage lines that disagree name nothing.
    return read[0] if read and all(each == read[0] for each in read) and len(read) == len(set(lines)) else None


def _written(node: ast.AST) -> str:
    """The text of *node*, with ``{}`` for what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_written(part) or "{}" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (_written(left) or "{}") + (_written(right) or "{}")
    return ""


def _with_usage(command: Command, usage: list[Argument] | None) -> Command:
    """Return *command* with the names that its usage line gives the places, where it names as many."""
    named_in_usage = [each for each in usage or () if not each.flags]
    places = [each for each in command.arguments if not each.flags]
    if command.chooser or len(named_in_usage) != len(places) or not named_in_usage:
        return command
    named = {id(each): known.name for each, known in zip(places, named_in_usage, strict=True)}
    arguments = [replace(each, name=named.get(id(each), each.name)) for each in command.arguments]
    names = [each.name for each in arguments]
    return replace(command, arguments=arguments) if len(set(names)) == len(names) else command
