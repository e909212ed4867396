"""One scalar converted to another: `contract/repairs/scalars.py`. Whole calls are in
test_repairs.py.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.contract.reading.arguments import pieces
from skillruntime.contract.repairs.scalars import (
    Options,
    fold_value,
    number_in,
    number_text,
)
from skillruntime.contract.schemas.names import fold_name, unquoted
from tests.contract.malformed import is_same


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_from_what_python_writes(number: float) -> None:
    """Round trip: the text of a number is that number."""
    assert number_in(str(number), whole=False) == number


@given(st.integers())
def test_thousands_are_read_only_where_every_group_is_whole(number: int) -> None:
    """DESIGN: strict thousands; a group more or less is refused."""
    written = f"{number:,}"

    assert number_in(written, whole=True) == number
    if "," in written:
        assert number_in(written[:-1], whole=True) is None
        assert number_in(written + "0", whole=True) is None


@given(st.text())
def test_a_text_with_anything_beside_a_number_is_not_a_number(text: str) -> None:
    """Nothing is left out to find a number."""
    number = number_in(text, whole=False)

    if number is not None:
        assert not set(text.strip()) - set("0123456789+-.,eE")


@given(st.lists(st.text(), max_size=5, unique=True), st.data())
def test_a_member_of_an_enum_means_itself(
    options: list[str], data: st.DataObject
) -> None:
    """Folding never makes a member mean another one."""
    if options:
        member = data.draw(st.sampled_from(options))
        assert Options(options).meant_by(member)[0].strip() == member.strip()


@pytest.mark.parametrize("sign", ["-", "--", " -", "_", "+"])
def test_a_sign_beside_a_word_is_not_a_separator(sign: str) -> None:
    """``A-`` is not ``A``; only between words does a separator say nothing."""
    assert fold_value("A" + sign) != fold_value("A")
    assert fold_value(sign + "1") != fold_value("1")


def test_names_are_folded_further_than_values() -> None:
    """DESIGN: a key with leading or trailing ``_`` is the key; a value with one is
    another value.
    """
    assert fold_name("_class_") == fold_name("class")
    assert fold_value("_class_") != fold_value("class")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("gpt_4", "gpt-4", False),
        ("gpt 4", "gpt-4", False),
        ("gpt4", "gpt-4", False),
        ("top 5", "top5", True),
        ("day -1", "day1", False),
        ("day -1", "day-1", False),
        ("UTC-5", "UTC5", False),
        ("x²", "x2", False),
        ("3 days", "3days", True),
        ("gpt  4", "gpt4", True),
        ("e-mail", "email", True),
    ],
)
def test_before_a_digit_a_hyphen_is_never_added_or_dropped(
    one: str, other: str, expected: bool
) -> None:
    """It may be a sign or a range; space and underscore say nothing."""
    assert (fold_value(one) == fold_value(other)) is expected


def test_a_float_without_fraction_has_no_text() -> None:
    """It may have been written 5 or 5.0; a decimal remembers."""
    assert [
        number_text(5.0),
        number_text(Decimal("5.0")),
        number_text(5),
        number_text(0.1),
    ] == [None, "5.0", "5", "0.1"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (5, 5.0, True),
        (True, 1, False),
        (0, False, False),
        ([1, True], [1, 1], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
    ],
)
def test_values_are_compared_as_json(one: Any, other: Any, expected: bool) -> None:
    """5 equals 5.0, and true never equals 1."""
    assert is_same(one, other) is expected


def test_quotes_and_separators_are_seen_only_where_they_are() -> None:
    """A text in quotes, and a listing."""
    assert [unquoted(text) for text in ("'a'", "'a", "'a' 'b'", '"it\'s"', "")] == [
        "a",
        None,
        None,
        None,
        None,
    ]
    assert pieces("a, b;c") == ["a", "b", "c"]
