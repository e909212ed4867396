"""How much work a whole call is, counted: calls of Python functions."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

from skillruntime import SkillRuntime

ROW = {"id": 1, "name": "a row", "score": 0.5, "tags": ["a", "b"]}
OUTPUT = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"type": "object"}}},
}


def python_calls(work: Callable[[], Any]) -> int:
    """Return how many Python functions *work* calls."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    gc.disable()  # a test tool may be called at each collection
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def runtime_with(output: dict[str, Any] | None) -> SkillRuntime:
    """Return a runtime with a skill that returns as many rows as it is asked for, made
    before.
    """
    made = {rows: {"rows": [dict(ROW) for _ in range(rows)]} for rows in (10, 10_000)}
    contract: dict[str, Any] = {"input": {"properties": {"rows": {"type": "integer"}}}}
    if output is not None:
        contract["output"] = output
    runtime = SkillRuntime()
    runtime.implements("table", contract=contract)(
        lambda arguments: made[arguments["rows"]]
    )
    return runtime


@pytest.mark.parametrize("output", [OUTPUT, None])
def test_an_output_costs_no_python_call_for_a_value(
    output: dict[str, Any] | None,
) -> None:
    """The output of a whole call is checked, with and without a schema, and ten rows
    make as many calls as ten thousand.
    """
    runtime = runtime_with(output)
    assert runtime.call_sync("table", {"rows": 10_000}).ok

    few = python_calls(lambda: runtime.call_sync("table", {"rows": 10}))
    many = python_calls(lambda: runtime.call_sync("table", {"rows": 10_000}))

    assert few == many < 70


def test_a_function_without_a_context_gets_none_made() -> None:
    """A context is made for a function that takes it, and for no other."""
    made: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name == "context":
            made.append(frame.f_code.co_filename)

    runtime = SkillRuntime()
    contract = {"input": {"type": "object"}}
    runtime.implements("plain", contract=contract)(lambda arguments: {})
    runtime.implements("asking", contract=contract)(
        lambda arguments, context: {"id": context.call_id}
    )
    found = {}
    for name in ("plain", "asking"):
        made.clear()
        sys.setprofile(note)
        try:
            response = runtime.call_sync(name, {}, call_id="call_1")
        finally:
            sys.setprofile(None)
        found[name] = (len(made), response.data)

    assert found == {"plain": (0, {}), "asking": (1, {"id": "call_1"})}
