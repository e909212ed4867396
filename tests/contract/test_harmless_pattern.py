"""Without the fast engine, a pattern that could backtrack without end is refused; others work."""

from __future__ import annotations

import sys

import pytest

from skillruntime.contract.harmless_pattern import is_harmless
from skillruntime.contract.schema import Schema
from skillruntime.errors import InvalidSkillError

CATASTROPHIC = (
    "^(a+)+$",
    "(a|a)*$",
    "^(a|aa)+$",
    "(.*a){20}",
    "([a-z]+)*x",
    "(?:a*)*b",
    "((a+b?)+c?)+d",
    r"(\w+\s?)*$",
    r"^(\d+\.?)+$",
    "(.*)*",
    "a*a*a*a*a*b",
    r"(?=(a+)+b)",
)
ORDINARY = (
    "^[a-z0-9]+(-[a-z0-9]+)*$",
    r"^\d+(\.\d+)*$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"^[^@]+@[^@]+\.[a-z]{2,}$",
    "^(red|green|blue)$",
    r"^#[0-9a-fA-F]{6}$",
    r"^https?://",
    r"^[A-Z]{3}(,[A-Z]{3})*$",
    "^.*$",
    "^(ab)+$",
)


@pytest.mark.parametrize("pattern", CATASTROPHIC)
@pytest.mark.parametrize("where", ["pattern", "patternProperties"])
def test_a_catastrophic_pattern_is_refused_without_the_fast_engine(
    pattern: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the remedy; nothing is matched."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    schema = {"pattern": pattern} if where == "pattern" else {"patternProperties": {pattern: {}}}

    with pytest.raises(InvalidSkillError, match="jsonschema-rs"):
        Schema({"$comment": f"{where} {pattern}", "properties": {"a": schema}})


@pytest.mark.parametrize("pattern", ORDINARY)
def test_an_ordinary_pattern_works_without_the_fast_engine(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, dates, versions, addresses, choices and lists."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)

    assert is_harmless(pattern)
    assert not Schema({"$comment": f"ordinary {pattern}", "type": "string", "pattern": pattern}).is_valid(5)
