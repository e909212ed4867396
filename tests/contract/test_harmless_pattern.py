"""Without the fast engine, a pattern that could backtrack without end is refused; others work."""

from __future__ import annotations

import sys
from typing import Any

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
    "^" + "a?" * 40 + "a" * 40 + "$",
    "^" + "(a|a)" * 40 + "b$",
    "^" + "a{0,999}" * 10 + "b",
)
POLYNOMIAL = ("a*a*a*b", "^a{0,999}a{0,999}a{0,999}a{0,999}b", "^a+a+b$", r"(?=a*a*a*b)")
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


@pytest.mark.parametrize("pattern", POLYNOMIAL)
@pytest.mark.parametrize("where", ["pattern", "patternProperties", "additionalProperties"])
@pytest.mark.parametrize("declared", [{}, {"$schema": "https://json-schema.org/draft/2020-12/schema"}])
def test_a_text_that_would_take_long_is_refused_without_the_fast_engine(
    pattern: str, where: str, declared: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`re` takes a power of the length: a short text is matched, a long one is an error that names the remedy."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    schema: dict[str, Any] = {"$comment": f"{where} {pattern}", "properties": {"a": {"pattern": pattern}}}
    if where != "pattern":
        schema = {"additionalProperties": {}, "patternProperties": {pattern: {}}, "$comment": pattern}
    accept = Schema({**declared, **schema}).is_valid

    assert isinstance(accept({"a": "aaaa"} if where == "pattern" else {"aaaa": 1}), bool)
    with pytest.raises(InvalidSkillError, match="jsonschema-rs"):
        accept({"a": "a" * 30_000} if where == "pattern" else {"a" * 30_000: 1})


def test_a_long_text_is_matched_where_the_pattern_leaves_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the text that a slow pattern is matched with counts, not one beside it."""
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    schema = Schema({"properties": {"a": {"pattern": "^a+a+b$"}, "b": {"pattern": "^a+$"}, "c": {}}})

    assert schema.is_valid({"a": "aab", "b": "a" * 100_000, "c": "c" * 2_000_000})
    assert not schema.is_valid({"b": "a" * 100_000 + "b"})
