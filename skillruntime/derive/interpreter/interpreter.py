"""Two ways to interpret a script: a reading of what it declares, and a trace of one command line."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from contextlib import suppress

from skillruntime.derive.interpreter.calls import call_value
from skillruntime.derive.interpreter.expressions import EXPRESSIONS
from skillruntime.derive.interpreter.relevance import Relevance
from skillruntime.derive.interpreter.state import (
    Library,
    LoopLeft,
    Neighbours,
    Returned,
    Rules,
    ScriptError,
    ScriptExit,
    State,
    follow,
)
from skillruntime.derive.interpreter.statements import STATEMENTS
from skillruntime.derive.interpreter.trace import Lost, Trace
from skillruntime.derive.interpreter.words import Outcome, Word, Words

__all__ = ["new_reading", "read_module", "trace_script"]

_RULES = Rules(EXPRESSIONS, STATEMENTS, call_value)


def new_reading(library: Library, recorded: tuple[str, ...] = (), neighbours: Neighbours | None = None) -> State:
    """Return the state of a reading that knows *library*, and records calls of names that start with *recorded*."""
    return State(_RULES, library, recorded, neighbours)


def read_module(state: State, tree: ast.Module) -> None:
    """Follow the module from its top; raises `Found` where its command line is parsed."""
    state.module.names["__doc__"] = ast.get_docstring(tree, clean=False)
    with suppress(Returned, LoopLeft):  # outside a function or a loop, where Python itself refuses it
        follow(state, tree.body, state.module)


def trace_script(
    relevance: Relevance, words: Iterable[Word], steps: int, *, by_hand: bool = False
) -> tuple[Outcome, int]:
    """Return what the script does with *words*, the first being its own name, and the steps that are left.

    *by_hand* follows loops that take options apart, where what a word means depends on those before it.

    Raises:
        Exhausted: the script takes more than *steps* steps.
    """
    trace = Trace(relevance, Words(words), by_hand=by_hand)
    state = State(_RULES, trace=trace, steps=steps)
    state.module.names["__doc__"] = ast.get_docstring(relevance.tree, clean=False)
    outcome = trace.outcome
    try:
        follow(state, relevance.tree.body, state.module)
        outcome.refused = trace.usage_shown
    except ScriptExit as exit_:
        outcome.refused = exit_.refused
    except ScriptError:
        outcome.refused = True
    except (Returned, LoopLeft):
        outcome.refused = False
    except Lost:
        return outcome, state.steps
    if not outcome.refused:
        with suppress(Lost):
            trace.look_aside(state.module)
    return outcome, state.steps
