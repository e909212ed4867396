"""Keys against declared properties: `repairs/keys.py`. Whole calls are in
test_repairs_of_keys.py.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillruntime.contract.repairs.keys import is_wrapper
from skillruntime.contract.schemas.names import renames

NAMES = st.lists(st.text("aAbB_-1 ", max_size=4), max_size=5, unique=True)


@given(NAMES, NAMES, NAMES)
def test_a_rename_is_unique_on_both_sides_and_takes_no_place(
    untrusted: list[str], declared: list[str], present: list[str]
) -> None:
    """DESIGN: rename if unique and the target is absent."""
    found = renames(untrusted, declared, present)

    assert set(found) <= set(untrusted)
    assert set(found.values()) <= set(declared) - set(present)
    assert len(set(found.values())) == len(found)


def test_two_spellings_of_one_property_are_not_renamed() -> None:
    """Which of the two was meant is not ours to say."""
    assert renames(["maxCount", "MAX_COUNT"], ["max_count"], []) == {}
    assert renames(["max-count"], ["max_count", "maxCount"], []) == {}


def test_a_declared_property_is_not_a_wrapper_nor_stands_beside_one() -> None:
    """What the schema knows means what the schema says."""
    assert is_wrapper({"input": {}}, "input", {"city"})
    assert not is_wrapper({"input": {}}, "input", {"input"})
    assert not is_wrapper({"input": {}, "city": "Paris"}, "input", {"city"})


def test_a_schema_sent_back_is_not_a_wrapper() -> None:
    """It describes values, and holds none."""
    described = {"city": {"type": "string", "description": "A city."}}

    assert not is_wrapper(
        {"type": "object", "properties": described}, "properties", set()
    )
