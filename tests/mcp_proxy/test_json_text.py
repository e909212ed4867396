"""Where the members of a JSON text lie: the spans are right for every JSON text,
however it is spaced.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.adapters.mcp_proxy.json_text import (
    Malformed,
    decode,
    elements,
    encode,
    members,
    replaced,
    skip,
)

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=20,
)
layouts = st.sampled_from(
    [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}]
)


@given(st.dictionaries(st.text(), values, max_size=5), layouts)
def test_every_member_is_found_where_it_lies(
    document: dict[str, Any], layout: Any
) -> None:
    """Each span holds exactly the JSON of its value."""
    text = (" " + json.dumps(document, **layout) + "\n").encode(
        "utf-8", "surrogatepass"
    )

    found = {key: json.loads(text[start:end]) for key, (start, end) in members(text)}

    assert found == document


@given(st.lists(values, max_size=5), layouts)
def test_every_item_is_found_where_it_lies(document: list[Any], layout: Any) -> None:
    """Each span holds exactly the JSON of one item, in order."""
    text = json.dumps(document, **layout).encode("utf-8", "surrogatepass")

    assert [json.loads(text[start:end]) for start, end in elements(text)] == document


@given(values)
def test_what_is_encoded_is_read_again(value: Any) -> None:
    """Encoding loses nothing, whether numbers keep their literals or not."""
    assert decode(encode(value).encode("utf-8", "surrogatepass")) == value
    assert (
        decode(encode(value, {1e308: "1e308"}).encode("utf-8", "surrogatepass"))
        == value
    )


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_raise_nothing_but_malformed(text: bytes) -> None:
    """No input makes the scanner fail in another way, or run forever."""
    for read in (members, elements):
        try:
            list(read(text))
        except Malformed:
            continue


def test_a_key_that_comes_twice_is_yielded_twice() -> None:
    """The scanner reports duplicates; its caller decides."""
    assert [key for key, _ in members(b'{"a":1,"a":2}')] == ["a", "a"]


def test_depth_costs_no_stack() -> None:
    """A value nested a hundred thousand levels deep is skipped."""
    deep = b"[" * 100_000 + b"]" * 100_000

    assert skip(deep, 0) == 200_000


def test_an_object_without_an_end_is_malformed() -> None:
    """A text that was cut off is not read as if it were whole."""
    with pytest.raises(Malformed, match="has no end"):
        skip(b'{"a": "}"', 0)


def test_several_spans_are_replaced_at_once() -> None:
    """Spans may be given in any order; all other bytes stay."""
    assert (
        replaced(b'{"a":1,"b":2}', {(11, 12): b"22", (5, 6): b"11"})
        == b'{"a":11,"b":22}'
    )
