"""The state of one pass over a script, and the operations that all rules share: evaluate, follow, call and fork.

The rules are plain functions by node type (`Rules`). They are used for two questions. A reading asks which declarations
a library is given, wherever they are: an undecidable condition follows both branches, and a declaration under one is
marked uncertain. A trace (`state.trace` is set) asks what the script does with one command line: it also follows the
script's exceptions and exits, and skips statements that cannot matter to the words.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from skillruntime.derive.interpreter.operators import truth
from skillruntime.derive.interpreter.trace import Trace
from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    InstanceValue,
    Model,
    Scope,
    same_value,
)
from skillruntime.derive.interpreter.words import Count, Word, Words

__all__ = [
    "Exhausted",
    "Found",
    "Library",
    "LoopLeft",
    "Neighbours",
    "Returned",
    "Rules",
    "ScriptError",
    "ScriptExit",
    "State",
    "call",
    "decide",
    "doubting",
    "evaluate",
    "follow",
    "fork",
    "kept",
    "perhaps",
    "unknown",
    "use",
]

MAX_STEPS = 15_000
"""Statements and expressions of one reading."""


class Found(Exception):  # noqa: N818 - control flow: the reading is complete
    """The command line is parsed here, by *value*."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Exhausted(Exception):  # noqa: N818 - control flow
    """The steps that one script may cost are used up."""


class Returned(Exception):  # noqa: N818 - control flow
    """A function ends here, with *value*."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class LoopLeft(Exception):  # noqa: N818 - control flow
    """A loop is left, or its round ended."""

    def __init__(self, is_break: bool) -> None:
        super().__init__()
        self.is_break = is_break


class ScriptError(Exception):
    """In a trace: the script raises an exception of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class ScriptExit(Exception):  # noqa: N818 - control flow
    """In a trace: the script ends; *refused* says that it did not accept the words."""

    def __init__(self, refused: bool) -> None:
        super().__init__(refused)
        self.refused = refused


_REFUSED = 4
"""The weight of an end that refuses the command line."""

_ENDS = (Found, Returned, LoopLeft, ScriptError, ScriptExit)

Library = Mapping[str, Callable[[Any, list[Any], dict[str, Any], ast.AST], Any]]
"""Functions of a known library, by full name: state, arguments, named arguments, node -> the result of the call."""

Neighbours = Callable[[str], str | None]
"""The source of the module of that name next to the script, if there is one."""


@dataclass(slots=True)
class EarlyEnds:
    """What a function, or a round of a loop, may have ended with before its end, under an undecidable condition."""

    values: list[Any] = field(default_factory=list)
    since: int = 0
    round: bool = False
    loop: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """What each kind of node means."""

    expressions: Mapping[type, Callable[[State, Any, Scope], Any]]
    statements: Mapping[type, Callable[[State, Any, Scope], None]]
    call: Callable[[State, Any, list[Any], dict[str, Any], ast.AST], Any]


@dataclass(slots=True, eq=False)
class State:
    """All that is known at one moment. *recorded* are prefixes of functions whose calls become a `ForeignCall`."""

    rules: Rules
    library: Library = field(default_factory=dict)
    recorded: tuple[str, ...] = ()
    neighbours: Neighbours | None = None
    trace: Trace | None = None
    steps: int = MAX_STEPS
    module: Scope = field(default_factory=lambda: Scope({"__name__": "__main__", "__file__": UNKNOWN, "__doc__": None}))
    models: list[Model] = field(default_factory=list)
    uncertain: int = 0
    """How many undecidable conditions enclose the current statement."""
    branches: tuple[tuple[ast.AST, int], ...] = ()
    """Those conditions, and which of its sides this is."""
    depth: int = 0
    early: EarlyEnds = field(default_factory=EarlyEnds)
    clock: int = 0
    doubts: list[tuple[int, int, list[bool]]] = field(default_factory=list)
    """When each argument was declared, when its parser was made, and where a doubt about it is recorded."""
    unread_lines: list[int] = field(default_factory=list)
    """The lines in which something is declared to an unknown value."""
    fresh: dict[int, tuple[Any, int]] = field(default_factory=dict)
    """Containers made under conditions, and how many: under no more than these, a change of them is certain."""
    generators: dict[int, bool] = field(default_factory=dict)
    modules: dict[str, Scope | None] = field(default_factory=dict)
    """Modules next to the script that were looked for; None for those that are missing or cannot be read."""
    text_read: int = 0
    found_aside: list[tuple[ast.AST, int, Any]] = field(default_factory=list)
    """What parses the command line on one side of a condition only: the condition, its side, and the parser."""
    ended_aside: list[tuple[ast.AST, int]] = field(default_factory=list)
    """Sides of conditions that end before the command line is parsed."""

    def tick(self) -> int:
        """Return the time, which grows with each call."""
        self.clock += 1
        return self.clock

    def made_here(self, value: Any) -> Any:
        """Record under how many conditions the container *value* is made, and return it."""
        if self.uncertain and isinstance(value, list | dict | InstanceValue):
            self.fresh[id(value)] = (value, self.uncertain)
        return value

    def is_doubtful(self, value: Any) -> bool:
        """Whether a change of *value* may not happen, though *value* itself exists."""
        return self.uncertain > self.fresh.get(id(value), (None, 0))[1]


def evaluate(state: State, node: ast.expr | None, scope: Scope) -> Any:
    """Return the value of *node* in *scope*, or UNKNOWN."""
    state.steps -= 1
    if state.steps < 0:
        raise Exhausted
    if node is None:
        return None
    if type(node) is ast.Constant:
        return node.value
    rule = state.rules.expressions.get(type(node))
    if rule is not None:
        return rule(state, node, scope)
    if state.trace is not None:
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.expr):
                state.trace.touch(evaluate(state, each, scope), each)
    return UNKNOWN


def use(state: State, node: ast.expr | None, scope: Scope) -> Any:
    """Return the value of *node*; a trace records that it is used there, unless it is the whole list of words."""
    value = evaluate(state, node, scope)
    if state.trace is not None and node is not None and not isinstance(value, Words):
        state.trace.touch(value, node)
    return value


def follow(state: State, statements: list[ast.stmt], scope: Scope) -> None:
    """Follow *statements* in their order."""
    rules, trace, early = state.rules.statements, state.trace, state.early
    if trace is not None:
        state.steps -= len(statements)
    for index, statement in enumerate(statements):
        # A ``continue`` or ``break`` under an undecidable condition came before.
        if early.round:  # a round of a loop may have ended: the rest of it may not be reached
            early.round = False
            perhaps(state, statements[index:], scope)
            early.round = True
            return
        # ``name = None`` before a loop of options: without the flag it is what the script tests.
        is_kept = trace is None or (trace.by_hand and isinstance(statement, ast.Assign | ast.AnnAssign))
        if trace is not None and not is_kept and not trace.relevance.matters(statement, trace.known, trace.shared):
            continue
        state.steps -= 1
        if state.steps < 0:
            raise Exhausted
        rule = rules.get(type(statement))
        if rule is not None:
            rule(state, statement, scope)


def call(state: State, function: Any, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """Return the result of calling *function*."""
    return state.rules.call(state, function, arguments, named, node)


def decide(state: State, value: Any) -> Any:
    """Return whether *value* is true, or UNKNOWN."""
    if state.trace is not None and isinstance(value, Words):
        state.trace.expect(1, len(value))
        return bool(value)
    if state.trace is not None and isinstance(value, Count):
        state.trace.outcome.takes_all = True
    # A word that is there is taken not to be empty; elsewhere both are followed.
    if state.trace is not None and state.trace.by_hand and isinstance(value, Word):
        return True
    return truth(value)


def unknown(state: State, node: ast.AST, *values: Any) -> Any:
    """Return UNKNOWN, the result at *node* of an operation on *values*; a trace records that they are used."""
    if state.trace is not None:
        for each in values:
            state.trace.touch(each, node)
    return UNKNOWN


@contextmanager
def doubting(state: State, node: ast.AST, side: int = 0) -> Iterator[None]:
    """Mark what happens inside as happening only on one *side* of the undecidable condition *node*."""
    branches = state.branches
    state.uncertain += 1
    state.branches = (*branches, (node, side))
    try:
        yield
    finally:
        state.uncertain -= 1
        state.branches = branches


def fork(state: State, node: ast.AST, scope: Scope, ways: list[Callable[[], object]]) -> None:
    """Follow each of *ways* from here; afterwards a name that differs between those that come to an end is unknown.

    A way that returns true leaves the block, though it raises nothing (``sys.exit()`` in a reading).
    """
    before, shown = scope.names, state.trace is not None and state.trace.usage_shown
    ends: list[Exception] = []
    met: list[dict[str, Any]] = []
    all_shown, refuses = True, False
    for side, way in enumerate(ways):
        scope.names = dict(before)
        if state.trace is not None:
            state.trace.usage_shown = shown
        try:
            with doubting(state, node, side):
                leaves = way()
        except _ENDS as end:
            ends.append(end)
            refuses |= _weight(end) == _REFUSED or _complained(state, shown)
            _note_end(state, end)
            # The other ways may parse differently, so they are followed too.
            if isinstance(end, Found):
                state.found_aside.append((node, side, end.value))
            else:
                state.ended_aside.append((node, side))
            continue
        if leaves:  # ``else: sys.exit(1)``: what follows is reached by the other ways only
            state.ended_aside.append((node, side))
            continue
        met.append(scope.names)
        refuses |= _complained(state, shown)
        all_shown = all_shown and state.trace is not None and state.trace.usage_shown
    if state.trace is not None:
        state.trace.usage_shown = all_shown if met else shown
        if refuses:
            state.trace.outcome.doubts[node] = None
    # Every way ends: so does the statement, and the mildest end counts, because it accepts most words.
    if not met:
        scope.names = dict(before)
        if ends:
            raise min(ends, key=_weight)
        return
    # Names that only one way assigns are kept: the script would fail where it used a missing one.
    scope.names = met[0]
    for other in met[1:]:
        for name in {**scope.names, **other}:
            value = scope.names.get(name, other.get(name))
            scope.names[name] = kept(value, other.get(name, value))


def perhaps(state: State, statements: list[ast.stmt], scope: Scope, *, is_round: bool = False) -> None:
    """Follow *statements*, which may not be reached, or are the rounds of a loop whose number is unknown."""
    before, rounds = dict(scope.names), (state.early.round, state.early.loop)
    shown = state.trace is not None and state.trace.usage_shown
    try:
        with doubting(state, ast.Pass()):
            follow(state, statements, scope)
    except LoopLeft as left:
        if not is_round:
            _note_end(state, left)
    except (Returned, ScriptError, ScriptExit) as end:
        _note_end(state, end)
        if state.trace is not None:
            scope.names = dict(before)
    if state.trace is not None:
        state.trace.usage_shown = shown
    state.early.round, state.early.loop = rounds[0], rounds[1] or (state.early.loop and not is_round)
    for name, value in scope.names.items():
        if name in before and not isinstance(value, Model | InstanceValue):
            scope.names[name] = kept(value, before[name])


def kept(value: Any, before: Any) -> Any:
    """Return the value of a name after an assignment that may not have happened."""
    return value if same_value(value, before) else UNKNOWN


def _note_end(state: State, end: Exception) -> None:
    """Record that the rest of a function, or of a round of a loop, may not be reached."""
    if isinstance(end, Returned):
        if not state.early.values:
            state.early.since = state.tick()
        state.early.values.append(end.value)
    elif isinstance(end, LoopLeft) and state.trace is None:
        state.early.round = True
        state.early.loop |= end.is_break


def _complained(state: State, before: bool) -> bool:
    return state.trace is not None and state.trace.usage_shown and not before


def _weight(end: Exception) -> int:
    """Return the rank of an end that all ways share: accepting the words comes before refusing them."""
    match end:
        case Found():  # a script that parses on any way has come to its end
            return -1
        case LoopLeft():
            return 0
        case Returned(value=Model() | InstanceValue()):
            return 1
        case Returned():
            return 2
        case ScriptExit(refused=False):
            return 3
    return _REFUSED
