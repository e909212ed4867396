"""Which names a key may be a misspelling of, and what finding out costs."""

from __future__ import annotations

import pytest

from skillruntime.contract.coercion import close_names as module
from skillruntime.contract.coercion.close_names import close_names, is_close_to_any
from skillruntime.contract.coercion.keys import is_close
from skillruntime.contract.contract import Contract

WORDS = ["limit", "max_items", "maxItems", "retry", "retries", "tag", "city", "aaaaaaaaaaaaaaaaaaaa", "x-rate", "a"]
KEYS = ["limt", "Limit", "MAX-ITEMS", "maxitem", "retry_", "tags", "cities", "aaaaaaaaaaaaaaaaaaa", "note", "b", ""]


def test_the_quick_comparison_of_letters_changes_no_result() -> None:
    """It only skips names that a full comparison would find unlike."""
    assert list(close_names(KEYS, WORDS)) == [(key, word) for key in KEYS for word in WORDS if is_close(key, word)]


@pytest.mark.parametrize("count", [400, 5000])
def test_the_number_of_full_comparisons_is_bounded(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many properties and undeclared keys there are; one that is not compared counts as close."""
    calls = 0

    def counted(key: str, name: str) -> bool:
        nonlocal calls
        calls += 1
        return False

    monkeypatch.setattr(module, "is_close", counted)
    names = [f"parameter_{number}" for number in range(count)]
    found = list(close_names([f"retemarap_{number}" for number in range(450)], names))

    assert calls <= module.MAX_FULL
    assert found
    assert is_close_to_any("retemarap_1", names)


def test_many_undeclared_keys_beside_many_defaults_are_accepted_with_warnings() -> None:
    """A default that was not compared with every key is left out, and the warning names it."""
    properties = {f"parameter_{number}": {"type": "integer", "default": number} for number in range(1000)}
    contract = Contract.from_dict({"input": {"type": "object", "properties": properties}})

    accepted = contract.accept({f"parametre_{number}x": 1 for number in range(100)})

    assert len(accepted.arguments) + len(accepted.warnings) == 1100
