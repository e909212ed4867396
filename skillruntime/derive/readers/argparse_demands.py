"""What a script refuses after its parser has run: ``if not args.input and not args.url: parser.error(...)``.

A condition that ends the script is brought into alternatives, each a set of arguments that are all missing. An
alternative that says nothing else means that one of its arguments must be given; any other is left alone.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from skillruntime.derive.command import Command, Unread
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.interpreter.relevance import dotted, nodes_of
from skillruntime.derive.interpreter.usage_errors import exits_with_error
from skillruntime.derive.interpreter.values import UNKNOWN
from skillruntime.derive.readers.argparse_model import ParserModel
from skillruntime.derive.readers.source_words import line_start, lines_with, times_assigned, words_in

__all__ = ["demanded", "demanded_by_function", "demands_command", "with_demands", "without_proof"]

# ``(options, args) = parser.parse_args()`` too, as optparse's own documentation writes it.
_NAMESPACE = re.compile(r"[ \t]*\(?(\w+)(?:[ ]*,[ ]*\w+)?\)?[ ]*(?::[^=\n]+)?=[ ]*(?:vars\()?[^=\n]*$")
_ALIAS = re.compile(r"[ \t]*(\w+)[ ]*=[ ]*\w+\.(\w+)[ ]*$", re.MULTILINE)
_ASSIGNED = re.compile(r"(\w+)[ ]*[-+*/|&]?=(?!=)")
_CONDITIONS_LIMIT = 40
"""Conditions before a test that are examined with it."""

_ANYTHING = ast.Name("anything else", ast.Load())

_TESTS_LIMIT = 200
"""Tests of a loop that are examined for each of its rounds."""

_ALTERNATIVES_LIMIT = 32
"""Alternatives of one condition: the product of many ``and`` and ``or`` would grow without bound."""

_Missing = frozenset[str] | None
"""Arguments that are all missing; None where the alternative depends on something else."""

_HOLDERS = (ast.If, ast.For, ast.FunctionDef, ast.AsyncFunctionDef, ast.Try, ast.With)
"""Statements in which a script may refuse."""

_Given = Callable[[ast.expr], str | None]
"""The argument whose value an expression is."""

_COLLECTED = re.compile(
    r"[ \t]*(?:(\w+) = \[[^\n]{0,400} if (?:not )?[^\n]{0,400}\]"
    r"|(\w*(?:error|problem|missing|issue|invalid)\w*) = \w+\((\w+)\))[ \t]*$",
    re.MULTILINE,
)
"""A line that collects what is wrong with the arguments, before that is tested."""


@dataclass(slots=True)
class Demanded:
    """The groups of destinations of which a script demands one, and the other tests with which it may refuse."""

    groups: list[list[str]] = field(default_factory=list)
    others: list[ast.expr] = field(default_factory=list)
    given: _Given = lambda _: None
    copied: set[str] = field(default_factory=set)
    """Variables that hold what was given, or something else."""


def demanded(tree: ast.Module, text: str, parser: ParserModel) -> Demanded:
    """Return what the script demands after its parser has run; a group of one is required.

    A destination that has a default, or that the script assigns to, may be filled without the command line. *text* is
    the source of *tree*: names are found in it many times faster than by walking the tree.
    """
    # ``def parse(): ... return parser.parse_args()``, and later ``args = parse()``.
    returned = [each.name for each in tree.body if isinstance(each, ast.FunctionDef) and _parses(each)]
    names: set[str] = set()
    for called in ("parse_args", "parse_known_args", *returned):
        for start in words_in(text, called):
            is_called = text.startswith("(", start + len(called))
            if is_called and (assigned := _NAMESPACE.match(text, line_start(text, start), start)):
                names.add(assigned[1])
    if not names:
        return Demanded()
    filled: set[str] = set()
    copies: dict[str, str] = {}
    collected: set[str] = set()
    for owner in names:
        for start in words_in(text, owner):
            # ``missing = [n for n in NAMES if not getattr(args, n)]``, ``errors = validate(args)``.
            line = line_start(text, start)
            if (listed := _COLLECTED.match(text, line)) and (listed[3] == owner or " if " in text[line:start]):
                collected.add(listed[1] or listed[2])
            if not text.startswith(".", start + len(owner)):
                continue
            if assigned := _ASSIGNED.match(text, start + len(owner) + 1):
                filled.add(assigned[1])
            if copied := _ALIAS.match(text, line):
                copies[copied[1]] = copied[2]
    # ``query = args.query`` is the same value as long as nothing else is assigned to ``query``.
    aliases = {alias: name for alias, name in copies.items() if times_assigned(text, alias) == 1}
    every: list[str] = []
    # ``default=None`` is argparse's own.
    for asked in parser.asked:
        flags = [each.lstrip("-").replace("-", "_") for each in asked.arguments if isinstance(each, str)]
        long = next((each for each in flags if len(each) > 1), flags[0] if flags else "")
        every.append(str(asked.named.get("dest", long)))
        # A switch holds False until it is given, as an option holds None.
        action, default = asked.named.get("action"), asked.named.get("default")
        is_switch = action == "store_true" and default is not UNKNOWN and not default
        is_plain = action in (None, "store", "append") and default is None
        if not (is_switch or is_plain):
            filled |= {str(asked.named["dest"])} if "dest" in asked.named else set(flags)
    filled |= parser.defaults.keys()

    def given(node: ast.expr) -> str | None:
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in names:
                return name
            case ast.Name(id=alias):
                return aliases.get(alias)
            # ``vars(parser.parse_args())``.
            case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str(name))) if owner in names:
                return name
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=owner), ast.Constant(value=str(name)), *_]):
                return name if owner in names else None
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="get"), args=[ast.Constant(value=name)]):
                return name if owner in names and isinstance(name, str) else None
        return None

    found = Demanded([], [], given, (copies.keys() - aliases.keys()) | collected)
    # A function that mentions none of them refuses for other reasons.
    lines = sorted({line for word in (*names, *copies, *collected) for line in lines_with(text, word)})
    body = [each for each in tree.body if not isinstance(each, ast.FunctionDef) or _holds_line(each, lines)]
    found.groups = _groups(body, given, filled, every, found.others)
    return found


def _holds_line(node: ast.FunctionDef, lines: list[int]) -> bool:
    """Whether one of *lines*, in their order, is in *node*."""
    index = bisect_left(lines, node.lineno)
    return index < len(lines) and lines[index] <= (node.end_lineno or 0)


def without_proof(command: Command, found: Demanded) -> list[Unread]:
    """Return the arguments without which the script may refuse a call, by a test that is more than a plain demand.

    Each test is evaluated for the least call, with three values: ``if args.mode == "decode" and not args.key`` may
    hold there, ``if args.limit is not None and args.limit < 1`` cannot.
    """
    values: dict[str, Any] = {}
    for each in command.arguments:
        if each.required or any(each.name in group for group in command.one_of):
            values[each.name] = UNKNOWN
        else:
            values[each.name] = (
                each.default if each.default is not ABSENT else (False if each.takes == "nothing" else None)
            )
    missing = {name for name, value in values.items() if value is None}
    unread = []
    for test in found.others:
        nodes = [node for node in nodes_of(test) if isinstance(node, ast.expr)]
        mentioned = {name for node in nodes if (name := found.given(node))}
        counts = any(isinstance(node, ast.Call) and dotted(node.func) == "len" for node in nodes)
        copies = {node.id for node in nodes if isinstance(node, ast.Name)} & found.copied
        names = sorted(mentioned if counts else mentioned & missing) or sorted(copies)
        if names and _holds(test, found.given, values) is not False:
            unread.append(
                Unread(", ".join(names), f"the script ends if `{ast.unparse(test)[:80]}`, which cannot be decided")
            )
    return unread[:1]


def _holds(test: ast.expr, given: _Given, values: Mapping[str, Any]) -> bool | None:
    """Whether *test* holds where the arguments have *values*; None where that is not known."""
    value = _value(test, given, values)
    if value is not UNKNOWN:
        return bool(value)
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            held = _holds(operand, given, values)
            return None if held is None else not held
        case ast.BoolOp(op=op, values=parts):
            decides = isinstance(op, ast.Or)
            found = [_holds(each, given, values) for each in parts]
            return decides if decides in found else None if None in found else not decides
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            one, other = _value(left, given, values), _value(right, given, values)
            # What must be given is not None.
            if isinstance(op, ast.Is | ast.IsNot) and other is None and given(left) is not None:
                return (one is None) is isinstance(op, ast.Is)
            if one is UNKNOWN or other is UNKNOWN or not isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn):
                return None
            equal = one == other if isinstance(op, ast.Eq | ast.NotEq) else isinstance(other, tuple) and one in other
            return equal is isinstance(op, ast.Eq | ast.In)
    return None


def _value(node: ast.expr, given: _Given, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple | ast.List | ast.Set) and all(isinstance(each, ast.Constant) for each in node.elts):
        return tuple(each.value for each in node.elts if isinstance(each, ast.Constant))
    if isinstance(node, ast.Call) and dotted(node.func) == "bool" and len(node.args) == 1:
        held = _holds(node.args[0], given, values)
        return UNKNOWN if held is None else held
    name = given(node)
    return UNKNOWN if name is None else values.get(name, UNKNOWN)


def _parses(node: ast.FunctionDef) -> bool:
    """Whether the function returns what its parser read."""
    match node.body[-1]:
        case ast.Return(value=ast.Call(func=ast.Attribute(attr="parse_args"))):
            return True
    return False


def demanded_by_function(node: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]) -> list[list[str]]:
    """Return the groups of the parameters *names* of which the function *node* demands one.

    click and typer call a function with what they parsed: ``if not since and not until: raise click.UsageError(...)``.
    """
    stored = {each.id for each in nodes_of(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    kept = names - stored
    return _groups(
        node.body, lambda each: each.id if isinstance(each, ast.Name) and each.id in kept else None, set(), [], []
    )


def with_demands(command: Command, groups: list[list[str]]) -> None:
    """Require in *command* one argument of each of *groups*."""
    # A switch that is off by default is missing as long as it is off.
    known = {
        each.name: each
        for each in command.arguments
        if not each.required and (each.default is ABSENT or (each.takes == "nothing" and each.default is False))
    }
    for group in groups:
        if not known.keys() >= set(group):
            continue
        # A required switch could still be false.
        if len(group) > 1 or known[group[0]].takes == "nothing":
            command.one_of.append(group)
            continue
        argument = known[group[0]]
        least = max(argument.least, int(argument.takes == "values"))
        command.arguments = [
            replace(each, required=True, least=least) if each is argument else each for each in command.arguments
        ]


def demands_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a click group refuses to run alone: ``if ctx.invoked_subcommand is None: ...; ctx.exit(2)``."""
    return ["command"] in _groups(
        node.body, lambda each: "command" if getattr(each, "attr", "") == "invoked_subcommand" else None, set(), [], []
    )


def _groups(
    body: list[ast.stmt], given: _Given, filled: set[str], every: list[str], others: list[ast.expr]
) -> list[list[str]]:
    """Return the groups that are demanded; the tests that say anything else too are added to *others*."""
    found: list[list[str]] = []
    for test in _refused(body, []):
        ways = _alternatives(test, True, given, every)
        for group in ways:
            if group and filled.isdisjoint(group) and sorted(group) not in found:
                found.append(sorted(group))
        # ``len(args.files) < 2`` demands more than that some are given.
        counts = any(isinstance(node, ast.Constant) and str(node.value) in "23456789" for node in nodes_of(test))
        if counts or not all(group and filled.isdisjoint(group) for group in ways):
            others.append(test)
    # One that is required makes a group with it say nothing.
    return [each for each in found if not any(set(other) < set(each) for other in found)]


def _refused(body: list[ast.stmt], before: list[ast.expr]) -> Iterator[ast.expr]:
    """Yield the conditions under which the script refuses; *before* are those that hold where it comes to *body*."""
    # The last statement that may refuse ends the search, so most bodies are not looked into.
    last = next((index for index in range(len(body) - 1, -1, -1) if _may_refuse(body[index])), -1)
    before = list(before)
    for index, statement in enumerate(body[: last + 1]):
        match statement:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=inner):
                yield from _refused(inner, before)
            case ast.If():
                yield from _refused_by(statement, before)
                # What leaves deeper inside may leave at any time: nothing is known of what follows.
                if index < last and _leaves_inside(statement):
                    return
            case ast.For(target=ast.Name(id=name), iter=ast.Tuple(elts=items) | ast.List(elts=items), body=inner):
                # ``for name in ("user", "host"): if not getattr(args, name): ...``.
                if len(items) < 10 and all(isinstance(each, ast.Constant) for each in items):
                    tests = list(_refused(inner, before))
                    # Loops in loops have as many tests as the product of their rounds.
                    if len(tests) * len(items) > _TESTS_LIMIT:
                        yield from tests
                    else:
                        yield from (_with_constant(each, name, item) for item in items for each in tests)
            case ast.FunctionDef(body=inner) | ast.AsyncFunctionDef(body=inner):
                yield from _refused(inner, [])
            case ast.Try(body=inner) | ast.With(body=inner):
                yield from _refused(inner, before)
            case ast.Return() | ast.Raise():
                return


def _with_constant(node: Any, name: str, item: ast.expr) -> Any:
    """Return *node*, an expression, with *item* where it has *name*; what does not change is shared."""
    if isinstance(node, list):
        return [_with_constant(each, name, item) for each in node]
    if isinstance(node, ast.Name):
        return item if node.id == name else node
    if not isinstance(node, ast.AST) or isinstance(node, ast.Constant):
        return node
    return ast.copy_location(
        type(node)(**{key: _with_constant(each, name, item) for key, each in ast.iter_fields(node)}), node
    )


def _may_refuse(statement: ast.stmt) -> bool:
    """Whether `_refused` finds something in *statement*."""
    if not isinstance(statement, _HOLDERS):  # most statements
        return False
    match statement:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=inner):
            return any(map(_may_refuse, inner))
        case ast.If():
            branches, rest = _chain(statement)
            return any(exits_with_error(each.body) for each in branches) or (bool(rest) and exits_with_error(rest))
        case (
            ast.For(body=inner)
            | ast.FunctionDef(body=inner)
            | ast.AsyncFunctionDef(body=inner)
            | ast.Try(body=inner)
            | ast.With(body=inner)
        ):
            return any(map(_may_refuse, inner))


def _chain(statement: ast.If) -> tuple[list[ast.If], list[ast.stmt]]:
    """Return the branches of a chain of ``if`` and ``elif``, and its ``else``."""
    branches, rest = [statement], statement.orelse
    while len(rest) == 1 and isinstance(rest[0], ast.If):
        branches.append(rest[0])
        rest = rest[0].orelse
    return branches, rest


def _refused_by(statement: ast.If, before: list[ast.expr]) -> Iterator[ast.expr]:
    """Yield the conditions under which a chain of ``if`` and ``elif`` refuses.

    *before* is extended by what holds after the chain.
    """
    branches, rest = _chain(statement)
    holds: list[ast.expr] = []
    for each in branches:
        refuses = exits_with_error(each.body)
        if refuses:
            yield ast.BoolOp(ast.And(), [*_conditions(before, holds), each.test])
        if refuses or _leaves(each.body[-1]):
            before.append(ast.UnaryOp(ast.Not(), each.test))
        holds.append(ast.UnaryOp(ast.Not(), each.test))
    if rest and exits_with_error(rest):
        yield ast.BoolOp(ast.And(), _conditions(before, holds))


def _conditions(before: list[ast.expr], holds: list[ast.expr]) -> list[ast.expr]:
    """Return what holds where a test is reached; of too many conditions that something else does, which nothing proves.

    Each test is examined with all conditions before it, so a thousand of both would take a minute.
    """
    return [*before, *holds] if len(before) + len(holds) <= _CONDITIONS_LIMIT else [_ANYTHING]


def _leaves_inside(statement: ast.If) -> bool:
    """Whether a chain of ``if`` and ``elif`` may leave elsewhere than at the end of a branch."""
    branches, rest = _chain(statement)
    parts = [] if rest and exits_with_error(rest) else list(rest)
    for each in branches:
        if not exits_with_error(each.body):
            parts += each.body[:-1] if _leaves(each.body[-1]) else each.body
    return any(_leaves(inner) for part in parts for inner in nodes_of(part))


def _leaves(node: ast.AST) -> bool:
    call = node.value if isinstance(node, ast.Expr) else node
    return isinstance(node, ast.Return | ast.Raise) or (
        isinstance(call, ast.Call) and dotted(call.func) in ("sys.exit", "exit", "quit", "os._exit")
    )


def _alternatives(test: ast.expr, holds: bool, given: _Given, every: list[str]) -> list[_Missing]:
    """Return in which ways *test* comes out as *holds*: the arguments that are missing in each."""
    if (name := given(test)) is not None:
        return [None if holds else frozenset([name])]
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _alternatives(operand, not holds, given, every)
        case ast.BoolOp(op=op, values=values):
            return _joined(values, isinstance(op, ast.And) is holds, holds, given, every)
        case ast.Call(func=ast.Name(id="any" | "all" as name), args=[ast.List(elts=values) | ast.Tuple(elts=values)]):
            return _joined(values, (name == "all") is holds, holds, given, every)
        # ``any(vars(args).values())``.
        case ast.Call(func=ast.Name(id="any"), args=[ast.Call(func=ast.Attribute(attr="values"))]) if not holds:
            return [frozenset(every)]
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None | "")]):
            if isinstance(op, ast.Is | ast.Eq) is holds and (name := given(left)) is not None:
                return [frozenset([name])]
        # ``len(args.files) < 2``: none at all is too few.
        case ast.Compare(left=ast.Call(func=ast.Name(id="len"), args=[listed]), ops=[op], comparators=[number]):
            if (
                (name := given(listed)) is not None
                and isinstance(number, ast.Constant)
                and isinstance(number.value, int)
            ):
                refuses_none = {ast.Lt: number.value > 0, ast.Eq: number.value == 0, ast.NotEq: number.value != 0}
                if refuses_none.get(type(op), False) and holds:
                    return [frozenset([name])]
    return [None]


def _joined(values: list[ast.expr], together: bool, holds: bool, given: _Given, every: list[str]) -> list[_Missing]:
    """Return the alternatives of several tests, of which all must come out as *holds*, or one."""
    found = [_alternatives(each, holds, given, every) for each in values]
    if not together:
        return [each for inner in found for each in inner]
    ways: list[_Missing] = []
    for way in product(*found):
        if len(ways) >= _ALTERNATIVES_LIMIT:
            return [None]
        known = [each for each in way if each is not None]
        ways.append(frozenset().union(*known) if len(known) == len(way) else None)
    return ways
