"""Names that every provider takes: `skillruntime/adapters/tools/tool_names.py`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.adapters.tools.tool_names import mcp_names, to_tool_name, tool_names


@given(st.text(min_size=1))
def test_every_name_becomes_one_that_fits(name: str) -> None:
    """Whatever a skill is called, providers take its tool name."""
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", to_tool_name(name))


@given(st.sets(st.text(alphabet="ab_/-é", min_size=1, max_size=6), max_size=30))
def test_names_stay_apart(names: set[str]) -> None:
    """No two names share a tool name: the way back is a table without gaps."""
    assert sorted(tool_names(names).values()) == sorted(names)


@given(st.sets(st.text(alphabet="ab_/-é", min_size=1, max_size=6), max_size=30))
def test_names_for_mcp_stay_apart(names: set[str]) -> None:
    """Also for a client that replaces ``-`` by ``_``: no name has one."""
    shown = mcp_names(names)

    assert sorted(shown.values()) == sorted(names)
    assert "-" not in "".join(shown)


@given(st.sets(st.sampled_from(["pdf_tools/a", "pdf_tools", "pdf_tools/a_b", "x/a"])))
def test_a_name_for_mcp_does_not_depend_on_other_skills(others: set[str]) -> None:
    """A skill whose name follows the format keeps its tools' names, whatever is
    installed beside it.
    """
    own = {"pdf-tools/a", "pdf-tools", "pdf-tools/a_b"}

    shown = {name: tool for tool, name in mcp_names(own | others).items()}

    assert {name: shown[name] for name in own} == {
        "pdf-tools/a": "pdf_tools__a",
        "pdf-tools": "pdf_tools",
        "pdf-tools/a_b": "pdf_tools__a_b",
    }


def test_a_host_s_function_keeps_its_name_for_mcp() -> None:
    """No skill takes it, nor one that a client might take for it."""
    assert mcp_names(["get-weather", "get_weather"], ["get_weather"]) == {
        "get_weather_19a275db": "get-weather",
        "get_weather": "get_weather",
    }


def test_two_placed_skills_stay_apart_where_a_client_replaces_hyphens() -> None:
    """``a_pb-tdd__x`` beside ``a_pb_tdd__x`` would be one tool there."""
    shown = mcp_names(["a:pb-tdd/x", "a-pb:tdd/x"])

    assert shown["a_pb_tdd__x"] == "a:pb-tdd/x"
    assert len({name.replace("-", "_") for name in shown}) == 2


def test_long_names_differ_by_a_digest() -> None:
    """A skill of 64 characters with tools of 64 each."""
    first, second = (
        to_tool_name("a" * 64 + "/" + "b" * 64),
        to_tool_name("a" * 64 + "/" + "c" * 64),
    )

    assert first != second
    assert len(first) == len(second) == 64


def test_a_collision_is_an_error() -> None:
    """Two names of one tool name would let one be called for the other."""
    with pytest.raises(ValueError, match="would both be the tool"):
        tool_names([to_tool_name("éa"), "éa"])
