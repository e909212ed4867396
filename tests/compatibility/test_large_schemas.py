"""Comparisons of large schemas end: what the budget does not cover is undecided, and
that counts as breaking.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skillruntime.compatibility import (
    NO_COUNTEREXAMPLE,
    Bump,
    compare,
    prove_migrations,
    suggest_migration,
)
from skillruntime.compatibility.containment import Containment
from skillruntime.compatibility.sampling import samples
from skillruntime.compatibility.schema_size import Budget, measure


def _patterns(letter: str) -> dict[str, Any]:
    return {
        "anyOf": [
            {"type": "string", "pattern": f"^{letter}{index}[a-z]+$"}
            for index in range(300)
        ]
    }


def _in_pairs(count: int) -> dict[str, Any]:
    return {
        "allOf": [
            {"anyOf": [{"required": [f"a{index}"]}, {"required": [f"b{index}"]}]}
            for index in range(count)
        ]
    }


def _dependent(step: int) -> dict[str, Any]:
    return {
        "dependentRequired": {
            f"p{index}": [f"p{(index * step + 1) % 300}"] for index in range(300)
        }
    }


def _required(kind: str) -> dict[str, Any]:
    names = [f"p{index}" for index in range(1500)]
    return {"properties": {name: {"type": kind} for name in names}, "required": names}


_KINDS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "unions of 300 patterns": lambda: (_patterns("x"), _patterns("y")),
    "allOf of 40 unions": lambda: (_in_pairs(40), _in_pairs(41)),
    "300 patterns of one text": lambda: tuple(  # type: ignore[return-value]  # two of them
        {"allOf": [{"pattern": f"{letter}{index}"} for index in range(300)]}
        for letter in "xy"
    ),
    "300 dependencies": lambda: (_dependent(7), _dependent(11)),
    "enums of 20,000 numbers": lambda: (
        {"enum": list(range(20000))},
        {"enum": list(range(1, 20001))},
    ),
    "1,500 required members that all change": lambda: (
        _required("string"),
        _required("integer"),
    ),
    "an array of a billion items": lambda: (
        {"type": "array", "minItems": 10**9},
        {"type": "array", "maxItems": 2},
    ),
    "a text of a billion characters": lambda: (
        {"type": "string", "minLength": 10**9, "pattern": "^a"},
        {"type": "string", "maxLength": 2},
    ),
    "integers of 400 digits": lambda: (
        {"type": "integer", "minimum": 10**400},
        {"type": "integer", "minimum": 10**401, "multipleOf": 10**300 + 1},
    ),
    "a pattern on which `re` takes years": lambda: (
        {"type": "string", "pattern": "^(a+)+$", "minLength": 40},
        {"type": "string", "pattern": "^(a+)+b$"},
    ),
}


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.quick_cases(
    [
        "unions of 300 patterns",
        "300 dependencies",
        "enums of 20,000 numbers",
        "integers of 400 digits",
        "a pattern on which `re` takes years",
    ]
)
def test_a_comparison_of_large_schemas_ends(kind: str) -> None:
    """Each of these kept the engine or `re` busy for minutes, or took all memory; none
    is ever called compatible.
    """
    old, new = ({"properties": {"a": each}} for each in _KINDS[kind]())

    verdict = compare({"input": old}, {"input": new})

    assert (verdict.bump, verdict.set_theory) == (Bump.MAJOR, Bump.MAJOR)


def test_an_undecided_change_says_that_the_schemas_are_too_large() -> None:
    """The reason is the budget's and not the pattern's, so that an author can split the
    schema.
    """
    (change,) = compare({"input": _dependent(7)}, {"input": _dependent(11)}).changes

    assert change.counterexample is NO_COUNTEREXAMPLE
    assert change.bump is Bump.MAJOR
    assert change.why.split("; ")[-1] == (
        "it cannot be proven harmless because the schemas are too large to be "
        "compared in full, which counts as breaking"
    )


def test_a_description_inside_a_large_union_is_a_patch() -> None:
    """Schemas that differ in descriptions only need no engine, whatever their size."""
    old, new = (
        {
            "properties": {
                "a": {
                    "anyOf": [
                        {**branch, "title": title} for branch in _patterns("x")["anyOf"]
                    ]
                }
            }
        }
        for title in ("before", "after")
    )

    assert compare({"input": old}, {"input": new}).bump is Bump.PATCH


def test_small_questions_are_still_answered_after_one_that_was_too_large() -> None:
    """The budget refuses a question, not the comparison."""
    containment = Containment()

    assert containment.answer(_patterns("x"), _patterns("y")) == "unknown"
    assert containment.is_exceeded
    assert containment.answer({"type": "number"}, {"type": "integer"}) == "yes"


def test_a_budget_is_spent_by_counted_steps() -> None:
    """The same schemas are decided on every machine, fast or slow."""
    budget = Budget(10)

    assert [budget.take(6), budget.take(6), budget.take(4)] == [True, False, True]
    assert (budget.left, budget.is_exceeded) == (0, True)


def test_the_steps_of_a_schema_grow_with_the_fourth_power_of_its_unions() -> None:
    """As the engine's time was measured to do."""
    small, large = (
        measure({"anyOf": [{"pattern": str(index)} for index in range(count)]}).steps
        for count in (40, 80)
    )

    assert 14 < large / small < 17


def test_samples_of_odd_bounds_are_numbers() -> None:
    """Bounds beyond what a float holds neither fail nor give an infinity."""
    schema = {"type": "number", "minimum": 10**400, "multipleOf": 3}

    found = samples(schema)

    first = 10**400 + 2  # the sum of its digits is 3

    assert found[:2] == [first, first + 3]
    assert all(abs(value) < 10**401 for value in found)


def test_a_suggestion_and_a_proof_end_on_large_schemas() -> None:
    """`diff --suggest` and `validate` are bounded as `diff` is."""
    old = {"version": "1.0.0", "input": {"properties": {"a": _patterns("x")}}}
    new = {"version": "2.0.0", "input": {"properties": {"a": _patterns("y")}}}
    migration = {
        "from": "1.x",
        "to": "2.0.0",
        "accepts": old["input"],
        "steps": [{"drop": "/a"}],
    }

    assert [change.path for change in suggest_migration(old, new).unresolved] == ["/a"]
    assert prove_migrations({**new, "migrations": [migration]}).holds
