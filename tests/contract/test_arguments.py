"""The model's raw text to arguments: `contract/reading/arguments.py`. The texts themselves are
in test_repairs_of_text.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.contract import Contract
from skillruntime.contract.reading.arguments import parse_arguments, parse_container
from skillruntime.errors import SkillInputError
from tests.contract.malformed import is_same

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab{}", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.text() | st.text("{}[]()\"':,\\ \n/*#`ae1-.", max_size=40))
def test_any_text_is_arguments_or_an_input_error(text: str) -> None:
    """Nothing raises but SkillInputError."""
    try:
        value = parse_arguments(text).value
    except SkillInputError:
        return
    assert isinstance(value, dict | list)


@given(st.dictionaries(st.text("ab", max_size=3), JSON, max_size=4))
def test_json_is_read_as_it_stands_and_flagged_by_nothing(
    value: dict[str, Any],
) -> None:
    """What is JSON needs no repair."""
    parsed = parse_arguments(json.dumps(value))

    assert is_same(parsed.value, value)
    assert parsed.rules == ()


@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        ('```json\n{"a": 1}\n```', ("markdown-fence",)),
        ('Here: {"a": 1}', ("text-around",)),
        ('{"a": 1,}', ("trailing-comma",)),
        ("{'a': 1}", ("single-quotes",)),
        ('{"a": 1} // one', ("comment",)),
        ('"{\\"a\\": 1}"', ("double-encoding",)),
        ('{\\"a\\": 1}', ("double-encoding",)),
        ('{"a": 1}}', ("stray-bracket",)),
        (
            '```\n"{\\"a\\": 1,}"\n```',
            ("markdown-fence", "double-encoding", "trailing-comma"),
        ),
    ],
)
def test_every_repair_of_syntax_is_named(text: str, repairs: tuple[str, ...]) -> None:
    """DESIGN: repair the syntax, flagged."""
    parsed = parse_arguments(text)

    assert parsed.value == {"a": 1}
    assert parsed.rules == repairs


@given(JSON)
def test_a_container_in_a_text_is_the_container_and_all_else_is_none(
    value: Any,
) -> None:
    """A scalar in a text is not a container, and a text cut short is none either."""
    text = json.dumps(value)
    parsed = parse_container(text)

    if isinstance(value, dict | list):
        assert parsed is not None
        assert is_same(parsed.value, value)
        assert parse_container(text[:-1]) is None
    elif not isinstance(value, str):
        assert parsed is None


def test_without_quoting_no_error_shows_the_text() -> None:
    """For a contract that declares secrets."""
    with pytest.raises(SkillInputError) as caught:
        parse_arguments('{"key": hunter2}', quoting=False)

    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [
        '{"key": hunter2}',
        b'{"key": "\xffhunter2"}',
        '{"key": "hunter2',
        '{"key": \\u12}',
    ],
)
def test_a_refusal_carries_no_other_error(raw: Any) -> None:
    """The context of an exception is printed with it, and the parser's own error quotes
    the text.
    """
    schema = {"properties": {"key": {"type": "string", "writeOnly": True}}}
    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict({"input": schema}).accept(raw)

    assert caught.value.__context__ is None
    assert "hunter2" not in str(caught.value)


def test_an_unknown_policy_is_reported_whatever_the_arguments_are() -> None:
    """It is an error of the caller, and the same for a valid, a malformed and a cut
    text.
    """
    contract = Contract.from_dict({"input": {"type": "object"}})
    for raw in ({}, "{", "{}", '{"a": 1,}'):
        with pytest.raises(ValueError, match="policy is 'nope'"):
            contract.accept(raw, policy="nope")


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        ("string", '{"n": -0}', "-0"),
        ("string", '{"n": -0,}', "-0"),
        ("integer", '{"n": -0,}', 0),
        ("number", '{"n": -0.0,}', -0.0),
    ],
)
def test_a_negative_zero_is_kept_as_it_was_written(
    kind: str, raw: str, expected: Any
) -> None:
    """A string takes the number as it was written; an integer has no sign."""
    contract = Contract.from_dict({"input": {"properties": {"n": {"type": kind}}}})

    assert repr(contract.accept(raw).arguments["n"]) == repr(expected)
