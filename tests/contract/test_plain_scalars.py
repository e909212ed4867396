"""What is decided without a search: `skillruntime/contract/coercion/plain_scalars.py`."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from skillruntime.contract.coercion import plain_scalars as module
from skillruntime.contract.coercion.coercion import Coerced, coerce
from skillruntime.contract.coercion.plain_scalars import plain_scalars
from skillruntime.contract.coercion.policy import SAFE
from skillruntime.contract.schema import Schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["count"],
    "additionalProperties": False,
    "properties": {
        "count": {"type": "integer", "maximum": 10, "default": 5},
        "ratio": {"type": "number", "exclusiveMinimum": 0},
        "save": {"type": "boolean"},
        "name": {"type": "string", "minLength": 2},
        "data": {"type": "integer"},
        "value": {"type": "integer"},
    },
}
# The value, and what it becomes: None where it takes a search, an empty list where it is refused.
DECIDED: list[tuple[dict[str, Any], list[dict[str, Any]] | None]] = [
    ({"count": "3"}, [{"count": 3}]),
    ({"count": "3", "save": "True", "ratio": "0.5"}, [{"count": 3, "save": True, "ratio": 0.5}]),
    ({"count": 3, "save": 1}, [{"count": 3, "save": True}]),
    ({"count": 11}, []),
    ({"count": 5.7, "ratio": -1}, []),
    ({"count": "11"}, None),
    ({"count": "null"}, None),
    ({"count": "'3'"}, None),
    ({"count": [3]}, None),
    ({"count": "3", "name": "x"}, None),
    ({"ratio": -1}, None),
    ({"count": 11, "save": "yes"}, None),
    ({"count": "3", "more": 1}, None),
    ({"count": "3", "data": 1}, None),
    ({"value": "3"}, None),
]


@pytest.mark.parametrize(("value", "expected"), DECIDED, ids=[str(value) for value, _ in DECIDED])
def test_only_what_has_one_reading_is_decided(value: dict[str, Any], expected: list[dict[str, Any]] | None) -> None:
    """A key that may be a wrapper, a default, a choice or another repair is left to the search."""
    found = plain_scalars(value, Schema(SCHEMA), SAFE)

    assert (found if found is None else [each.value for each in found]) == expected


def test_a_search_comes_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, repairs and errors are those of the coercer, over random calls."""
    random, schema = Random(4), Schema(SCHEMA)
    parts = ["3", 3, "11", 11, 0.5, "0.5", "1,234", True, "yes", 0, 1, None, "null", "", "ab", [3], {"value": 3}]
    calls = [
        {name: random.choice(parts) for name in random.sample(sorted(SCHEMA["properties"]), random.randint(1, 4))}
        for _ in range(600)
    ]
    decided = [coerce(call, schema) for call in calls]
    monkeypatch.setattr(module, "plain_scalars", lambda *_: None)

    searched = [coerce(call, schema) for call in calls]

    assert list(map(outcome, decided)) == list(map(outcome, searched))


def outcome(coerced: Coerced) -> Any:
    return repr(coerced.value), coerced.repairs, [(each.keyword, each.path) for each in coerced.violations]


def test_a_schema_in_which_one_property_decides_about_another_is_left_to_the_search() -> None:
    """Here ``a`` is only refused beside ``b``."""
    schema = Schema({"properties": {"a": {"type": "integer"}}, "dependentRequired": {"a": ["b"]}})

    assert plain_scalars({"a": "5"}, schema, SAFE) is None
