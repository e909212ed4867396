"""Reading one value of nearly JSON: `contract/reader.py`."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.contract.reading.json_text import LenientParser, UnreadableError
from skillruntime.contract.repairs.record import without_decimals
from skillruntime.contract.schemas.plain_json import is_same

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES = st.dictionaries(
    TEXTS,
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
        ),
    ),
    max_size=4,
)


def read(text: str) -> Any:
    reader = LenientParser(text)
    value = reader.value(0)
    reader.space()
    assert reader.position == len(text)
    return without_decimals(value)


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_what_json_writes_is_read_as_json_reads_it(
    value: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    """The reader agrees with the standard library on all of JSON."""
    assert is_same(
        read(json.dumps(value, indent=indent, ensure_ascii=ascii_only)), value
    )


@given(VALUES)
def test_what_python_writes_is_read_as_python_reads_it_or_refused(
    value: dict[str, Any],
) -> None:
    """A Python literal is read as Python would, or not at all."""
    text = repr(value)
    try:
        result = read(text)
    except UnreadableError:
        return
    assert is_same(result, ast.literal_eval(text))


@given(VALUES, st.data())
def test_no_beginning_of_a_text_is_completed_but_by_its_last_brace(
    value: dict[str, Any], data: st.DataObject
) -> None:
    """Every proper prefix is refused, or lacks only the last brace after a value that
    closed itself.
    """
    text = json.dumps(value)
    prefix = text[: data.draw(st.integers(0, len(text) - 1))]
    try:
        result = read(prefix)
    except UnreadableError:
        return
    assert is_same(result, json.loads(prefix + "}"))
    assert prefix[-1] in '"]}el'


@pytest.mark.parametrize(
    "text",
    [
        "[1 2]",
        "[1,,2]",
        "{,}",
        "{'a' 1}",
        "{a: b}",
        "{true: 1}",
        "{a b: 1}",
        "[0x1]",
        "[1_0]",
        "[+05]",
        "[+]",
        "[tru]",
        "[6*2]",
        "['a' 'b']",
        "(1)",
    ],
)
def test_what_can_be_read_in_several_ways_or_none_is_refused(text: str) -> None:
    """Only what can be read in one way is read."""
    with pytest.raises(UnreadableError):
        read(text)


def test_an_error_has_a_form_that_does_not_quote_the_text() -> None:
    """The text may hold a secret."""
    with pytest.raises(UnreadableError) as caught:
        read('{"key": hunter2}')

    assert str(caught.value) == 'expected a value, got "hunter2}"'
    assert caught.value.unquoted == "expected a value, got other text"
