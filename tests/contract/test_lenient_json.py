"""Reading strict JSON and nearly JSON: `contract/reading/json_text.py`."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillruntime.contract.reading.json_text import (
    LenientParser,
    UnreadableError,
    decode,
    decode_valid,
)
from skillruntime.contract.repairs.record import without_decimals
from tests.contract.malformed import is_same

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


STRICT_TEXTS = [
    '{"a": 1, "a": 2}',
    '{"a" : 1, "a": 2, "b": ":"}',
    '{"a":1,"b":{"c":1,\n"c"\t:2}}',
    '{"a\\\\":1,"b":2,"b":3}',
    '{"a\\":1":1,"b":2,"b":3}',
    '{"a": "\\":", "a": "x"}',
    '[{"a": {"b": "x"}, "a": "y"}]',
    '{"a": 1, "\\u0061": 2}',
    '{"a": 1, "a": 1}',
    '{"a": 1e-400}',
    '{"a": 0.0, "b": "e-"}',
    '{"a": 0.' + "0" * 400 + "1}",
    '{"a": 9007199254740993.5}',
    '{"a": 9007199254740993.0}',
    '{"a": 1e400}',
    '{"a": NaN}',
    '{"a": [1, 2}',
    '"a"',
    "5.0",
    "null",
]


def outcome_with_hooks(text: str) -> Any:
    """Return what the decoder with hooks says of *text*: the value, or the error."""
    try:
        return decode(text, literals=False)
    except (ValueError, UnreadableError) as error:
        return type(error)


@pytest.mark.parametrize("text", STRICT_TEXTS)
def test_a_valid_text_is_read_as_the_decoder_with_hooks_reads_it(text: str) -> None:
    """A key that appears twice and a number that is lost are found without a hook."""
    expected = outcome_with_hooks(text)

    if isinstance(expected, type):
        with pytest.raises(expected):
            decode_valid(text)
    else:
        assert repr(decode_valid(text)[0]) == repr(expected)


def text_of(value: Any, colon: str) -> str:
    """Write *value*; an array of pairs under ``"pairs"`` is an object, whose keys may
    be the same.
    """
    if isinstance(value, dict):
        members = [
            f"{json.dumps(key)}{colon}{text_of(member, colon)}"
            for key, member in value["pairs"]
        ]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(text_of(item, colon) for item in value) + "]"
    return json.dumps(value)


KEYS = st.sampled_from(["a", "b", 'a"', "\\", '":', "é"])
MEMBERS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | KEYS
JSON_VALUES = st.recursive(
    MEMBERS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries({"pairs": st.lists(st.tuples(KEYS, inner), max_size=3)})
    ),
    max_leaves=8,
)


@given(JSON_VALUES, st.sampled_from([":", ": ", " :", "\n:"]))
@example({"pairs": [("a", {"pairs": [("b", "x"), ("b", "y")]}), ("a", 1)]}, ":")
def test_any_text_is_read_as_the_decoder_with_hooks_reads_it(
    value: Any, colon: str
) -> None:
    """The number of quotes shows whether a key appears twice, wherever they stand."""
    text = text_of(value, colon)
    expected = outcome_with_hooks(text)

    if isinstance(expected, type):
        with pytest.raises(expected):
            decode_valid(text)
    else:
        assert repr(decode_valid(text)[0]) == repr(expected)


def test_a_whole_float_is_reported() -> None:
    """Only then are the arguments searched for one that should be an integer."""
    assert decode_valid('{"a": 2.5}')[1].name == "JSON"
    assert decode_valid('{"a": [2.0]}')[1].name == "WITH_WHOLE_FLOATS"
    assert decode_valid('{"a": 2e0}')[1].name == "WITH_WHOLE_FLOATS"
