"""Names that every provider takes: `skillruntime/adapters/tool_names.py`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.adapters.tool_names import to_tool_name, tool_names


@given(st.text(min_size=1))
def test_every_name_becomes_one_that_fits(name: str) -> None:
    """Whatever a skill is called, providers take its tool name."""
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", to_tool_name(name))


@given(st.sets(st.text(alphabet="ab_/-é", min_size=1, max_size=6), max_size=30))
def test_names_stay_apart(names: set[str]) -> None:
    """No two names share a tool name: the way back is a table without gaps."""
    assert sorted(tool_names(names).values()) == sorted(names)


def test_long_names_differ_by_a_digest() -> None:
    """A skill of 64 characters with tools of 64 each."""
    first, second = to_tool_name("a" * 64 + "/" + "b" * 64), to_tool_name("a" * 64 + "/" + "c" * 64)

    assert first != second
    assert len(first) == len(second) == 64


def test_a_collision_is_an_error() -> None:
    """Two names of one tool name would let one be called for the other."""
    with pytest.raises(ValueError, match="would both be the tool"):
        tool_names([to_tool_name("éa"), "éa"])
