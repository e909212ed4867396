"""Tools, toolkits and middleware that a host copies, prints, pickles or subclasses."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillTool, SkillToolkit, enforce
from skillruntime.runtime import SkillRuntime, skill
from tests import needs

lt = needs.package("langchain_core.tools")


@skill
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def runtime() -> SkillRuntime:
    """Return a runtime with one function."""
    return SkillRuntime(functions=[add])


@pytest.mark.parametrize("make", [SkillTool])
def test_the_text_of_a_tool_shows_what_it_is_before_it_is_used(
    runtime: SkillRuntime, make: Any
) -> None:
    """A tool that has not read its contract yet shows the same as one that has."""
    assert "description='Add two numbers.'" in repr(make(runtime, "add"))
    assert "description='Add two numbers.'" in str(make(runtime, "add"))


def test_the_text_of_a_tool_that_calls_nothing_is_written_too() -> None:
    """`model_construct` leaves out everything that is not given."""
    assert repr(SkillTool.model_construct(name="a")) == "SkillTool(name='a')"


def test_a_description_that_is_given_replaces_that_of_the_contract(
    runtime: SkillRuntime,
) -> None:
    """What is passed is more specific than what the contract says."""
    assert SkillTool(runtime, "add", description="Given").description == "Given"


def test_a_tool_cannot_be_pickled_and_says_why(runtime: SkillRuntime) -> None:
    """What it calls belongs to this process."""
    for each in (SkillTool(runtime, "add"), runtime, SkillMiddleware(runtime)):
        with pytest.raises(
            TypeError, match=r"cannot be pickled.*make it in the other process"
        ):
            pickle.dumps(each)


def test_a_copied_middleware_or_toolkit_calls_the_same_runtime(
    runtime: SkillRuntime,
) -> None:
    """Agents' configurations are copied with what is in them."""
    configuration = {
        "middleware": [SkillMiddleware(runtime)],
        "toolkit": SkillToolkit(runtime),
        "runtime": runtime,
    }

    copied = copy.deepcopy(configuration)

    tool = next(each for each in copied["toolkit"].get_tools() if each.name == "add")
    assert json.loads(tool.invoke({"a": 1}))["data"] == 2
    assert copied["runtime"] is copy.copy(runtime) is runtime


def test_a_protected_tool_can_be_copied() -> None:
    """Its contract holds a compiled schema, which cannot be copied and need not be."""

    @lt.tool
    def plus(a: int) -> int:
        """Add one."""
        return a + 1

    assert copy.deepcopy(enforce(plus)).invoke({"a": "1"}) == 2
