"""A model is offered no call where nothing can be called, and a name that it invents
leads to what exists.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.catalog import discover
from skillruntime.runtime import SkillRuntime
from skillruntime.testing import ScriptedChatModel, call_message
from tests.skill_files import write_skill_files

SCRIPT = "import argparse\nargparse.ArgumentParser().parse_args()\n"
INVENTED = ["render", "scripts/make.py", "convert-to-html", "x", "brand-guide"]


def write_instructions(root: Path) -> None:
    """Write two skills of instructions alone."""
    write_skill_files(root, "brand-guide", "Brand guide", {"references/a.md": "A"})
    write_skill_files(root, "notes", "Notes", {})


@pytest.fixture(params=[True, False], ids=["trusted", "untrusted"])
def instructions(tmp_path: Path, request: pytest.FixtureRequest) -> SkillRuntime:
    """Skills of instructions alone."""
    write_instructions(tmp_path)
    return SkillRuntime(discover(tmp_path, trusted=request.param))


@pytest.fixture(params=[True, False], ids=["trusted", "untrusted"])
def mixed(tmp_path: Path, request: pytest.FixtureRequest) -> SkillRuntime:
    """The same, one skill with two scripts, one with many, and a hidden one."""
    write_instructions(tmp_path)
    files = {"scripts/merge.py": SCRIPT, "scripts/split.py": SCRIPT}
    write_skill_files(tmp_path, "pdf", "Works on PDF files", files)
    many = {f"scripts/step{number}.py": SCRIPT for number in range(30)}
    write_skill_files(tmp_path, "many-steps", "Has many scripts", many)
    text = (
        "---\nname: pdf-secret\ndescription: Hidden\n"
        "disable-model-invocation: true\n---\nDo it.\n"
    )
    write_skill_files(tmp_path, "pdf-secret", "", {**files, "SKILL.md": text})
    return SkillRuntime(discover(tmp_path, trusted=request.param))


def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    """A function of the host."""
    return arguments


def action_of(runtime: SkillRuntime, name: str) -> tuple[str, str]:
    """The message and the next step of a call of *name* with ``call_skill``."""
    tools = SkillTools(runtime, style="generic")
    response = tools.call_sync("call_skill", {"name": name, "arguments": {}})
    (error,) = response.errors or []
    return error.message, str(error.suggested_action)


def in_agent(
    runtime: SkillRuntime, tools: Any, *calls: tuple[str, Any]
) -> tuple[ScriptedChatModel, list[Any]]:
    """The model of an agent that makes *calls*, and the errors that it read."""
    replies = [call_message(call, turn=turn) for turn, call in enumerate(calls)]
    model = ScriptedChatModel(replies=[*replies, AIMessage("Done.")])
    agent = create_agent(model, middleware=[SkillMiddleware(runtime, tools=tools)])
    messages = agent.invoke({"messages": [HumanMessage("Please.")]})["messages"]
    errors = [
        json.loads(each.text)["errors"][0]
        for each in messages
        if isinstance(each, ToolMessage)
    ]
    return model, errors


@pytest.mark.parametrize("style", ["typed", "generic"])
def test_instructions_alone_offer_no_call(
    instructions: SkillRuntime, style: Any
) -> None:
    """Neither a tool to call with, nor a sentence about it."""
    tools = SkillTools(instructions, style=style)
    toolkit = SkillToolkit(instructions, style=style)

    assert {*tools.contracts} == {"load_skill", "read_skill_resource"}
    assert {tool.name for tool in toolkit.get_tools()} == {*tools.contracts}
    assert "call" not in tools.system_prompt
    assert "its tools are offered" not in toolkit.system_prompt()


@pytest.mark.parametrize("tools", ["fixed", "typed"])
def test_an_agent_with_instructions_alone_offers_no_call(
    instructions: SkillRuntime, tools: Any
) -> None:
    """The other tools stay; a function of the host brings it back."""
    offered: list[set[str]] = []

    class Recording(ScriptedChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            offered.append({tool.name for tool in tools})
            return super().bind_tools(tools, **kwargs)

    model = Recording(replies=[AIMessage("Done."), AIMessage("Done.")])
    agent = create_agent(model, middleware=[SkillMiddleware(instructions, tools=tools)])

    agent.invoke({"messages": [HumanMessage("Please.")]})
    instructions.implements("notes", contract={"input": {"type": "object"}})(echo)
    agent.invoke({"messages": [HumanMessage("Please.")]})

    assert not offered[0] & {"call_skill", "write_skill_input"}
    assert {"load_skill", "read_skill_resource"} <= offered[0]
    assert "write_skill_input" in offered[1]
    assert ("call_skill" in offered[1]) == (tools == "fixed")
    assert "call_skill" not in model.received[0][0].text


@pytest.mark.parametrize("name", INVENTED)
def test_an_invented_name_of_instructions_learns_that_nothing_can_be_called(
    mixed: SkillRuntime, name: str
) -> None:
    """At the first such call already, whatever the name, and for a tool's name too."""
    message, action = action_of(mixed, f"Brand_Guide/{name}")
    _, errors = in_agent(
        mixed,
        "typed",
        (f"brand-guide__{name.replace('/', '-')}", {}),
        ("brand-guide", {}),
    )

    assert "'brand-guide'" in message
    assert "nothing to call" in message
    assert action == "Load the skill 'brand-guide' and follow its instructions"
    for error in errors:
        assert error["message"] == "Nothing of the skill 'brand-guide' can be called"
        assert error["suggested_action"] == action


@pytest.mark.parametrize("name", INVENTED)
def test_an_invented_name_of_a_skill_lists_what_it_has(
    mixed: SkillRuntime, name: str
) -> None:
    """However unlike they are, also behind ``call_skill`` of an agent."""
    message, action = action_of(mixed, f"pdf/{name}")
    _, errors = in_agent(mixed, "fixed", ("call_skill", {"name": f"PDF__{name}"}))

    assert message == f"The skill 'pdf' has no callable 'pdf/{name}'"
    for text in (action, errors[0]["suggested_action"]):
        assert "pdf/merge" in text
        assert "pdf/split" in text


def test_of_many_callables_the_nearest_are_listed(mixed: SkillRuntime) -> None:
    """Twenty of them, and how many more there are."""
    _, action = action_of(mixed, "many-steps/step27x")

    assert action.startswith("Call one of: many-steps/step27, ")
    assert action.endswith(" and 10 more")
    assert action.count("many-steps/step") == 20


@pytest.mark.parametrize(
    ("sent", "suggested"),
    [
        ("pdff", ["pdf/merge", "pdf/split"]),
        ("pdff/mergee", ["pdf/merge", "pdf/split"]),
        ("pdf-secrett/merge", ["pdf/merge", "pdf/split"]),
        ("pdf-secret/merge", ["pdf/merge", "pdf/split"]),
        ("brand-guid", []),
        ("notess/run", []),
        ("notes@^1", []),
        ("quite-another", []),
    ],
)
def test_only_what_can_be_called_is_suggested(
    mixed: SkillRuntime, sent: str, suggested: list[str]
) -> None:
    """No skill of instructions, no skill with several tools by its own name, nothing
    hidden.
    """
    _, action = action_of(mixed, sent)

    names = [part for part in action.split("'") if "/" in part]
    assert sorted(names) == suggested
    assert "secret" not in action
    assert ("Did you mean" in action) == bool(suggested)
    for name in names:
        assert mixed.contract(name)


def test_a_function_is_suggested_with_its_tools() -> None:
    """A skill that is functions alone is called by their names."""
    runtime = SkillRuntime()
    for name in ("calc/add", "calc/halve"):
        runtime.implements(name, contract={"input": {"type": "object"}})(echo)

    assert action_of(runtime, "calc/adder") == (
        "The skill 'calc' has no callable 'calc/adder'",
        "Call one of: calc/add, calc/halve",
    )
    assert "'calc/add'" in action_of(runtime, "calk")[1]


def test_an_unknown_tool_lists_the_tools_of_its_skill(mixed: SkillRuntime) -> None:
    """Those that are offered; behind ``call_skill`` the names that it takes."""
    typed = SkillTools(mixed, style="typed").call_sync("pdf__render-as-image", {})
    generic = SkillTools(mixed, style="generic").call_sync("pdf__render", {})
    nothing = SkillTools(mixed, style="typed").call_sync("brand-guide__render", {})

    actions = [
        str((response.errors or [])[0].suggested_action)
        for response in (typed, generic, nothing)
    ]
    assert actions == [
        "Use one of its tools: 'pdf__merge', 'pdf__split'",
        "Call one of these with call_skill: pdf/merge, pdf/split",
        "Load the skill 'brand-guide' and follow its instructions",
    ]
