"""The tools of one conversation: `SkillToolkit` in `skillruntime/adapters/langchain.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.runtime.runtime import SkillRuntime


def tools_of(catalog: SkillCatalog, **options: Any) -> dict[str, BaseTool]:
    """The tools by name."""
    return {tool.name: tool for tool in SkillToolkit(SkillRuntime(catalog), **options).get_tools()}


def call(tool: BaseTool, arguments: Any) -> ToolMessage:
    """Call *tool* as an agent does."""
    message = tool.invoke({"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"})
    assert isinstance(message, ToolMessage)
    return message


def test_every_callable_of_the_bundled_skills_is_a_tool(bundled: SkillCatalog) -> None:
    """With names that every provider takes; a skill of instructions alone is loaded, not called."""
    assert sorted(tools_of(bundled)) == [
        "daily-news-digest",
        "data-analysis__chart",
        "data-analysis__summary",
        "load_skill",
        "pdf-processing__extract",
        "pdf-processing__fill-form",
        "pdf-processing__merge",
        "read_skill_resource",
    ]


def test_the_generic_set_is_fixed_and_reads_no_contract(bundled: SkillCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many skills there are: three tools, and nothing read before it is called."""
    monkeypatch.setattr(SkillCatalog, "activate", None)

    assert sorted(tools_of(bundled, style="generic")) == ["call_skill", "load_skill", "read_skill_resource"]


def test_a_skill_is_loaded_once_and_plain(counting: SkillCatalog) -> None:
    """The text itself, not JSON around it; the second time one line; an envelope where there is no such skill."""
    load_skill = tools_of(counting)["load_skill"]

    first, second = (call(load_skill, {"name": "counting"}) for _ in range(2))
    missing = call(load_skill, {"name": "countign"})

    assert first.content.startswith('<skill name="counting">\nCall it with a text.')
    assert "already active" in second.content
    assert missing.status == "error"
    assert json.loads(missing.content)["errors"][0]["suggested_action"] == 'Did you mean "counting"?'


def test_loading_names_the_tools_as_the_model_calls_them(bundled: SkillCatalog) -> None:
    """By their tool names where each is a tool; by their own names for ``call_skill``."""
    typed, generic = (
        call(tools_of(bundled, style=style)["load_skill"], {"name": "pdf-processing"}).content
        for style in ("typed", "generic")
    )

    assert "- pdf-processing__extract: " in typed
    assert "- pdf-processing/extract: " in generic


def test_slips_in_the_conversations_own_tools_are_mended_too(counting: SkillCatalog) -> None:
    """They are under contract like any skill."""
    load_skill = tools_of(counting)["load_skill"]

    assert "Call it with a text." in call(load_skill, {"Name": ["counting"]}).content
    assert json.loads(call(load_skill, {}).content)["errors"][0]["code"] == "MISSING_REQUIRED_PARAM"


def test_a_resource_is_read_and_nothing_else(counting: SkillCatalog) -> None:
    """A file of the skill; a path that is none of its files is an envelope."""
    read = tools_of(counting)["read_skill_resource"]

    found = call(read, {"name": "counting", "path": "references/rules.md"})
    gone = call(read, {"name": "counting", "path": "references/rule.md"})
    outside = call(read, {"name": "counting", "path": "../../../etc/passwd"})

    assert (found.content, found.status) == ("Spaces count.", "success")
    assert json.loads(gone.content)["errors"][0]["code"] == "FETCH_FAILED"
    assert "references/rules.md" in gone.content
    assert json.loads(outside.content)["status"] == "failed"


@pytest.mark.parametrize("arguments", [{"text": "abc"}, '{"text": "abc"}', {"input": {"text": "abc"}}])
def test_call_skill_calls_any_of_them(counting: SkillCatalog, arguments: Any) -> None:
    """Its envelope is the skill's own, and what the model nests or encodes too often is mended."""
    message = call(tools_of(counting, style="generic")["call_skill"], {"name": "counting", "arguments": arguments})

    envelope = json.loads(message.content)
    assert envelope["data"] == {"letters": 3}
    assert envelope["metadata"]["skill"] == "counting"


def test_call_skill_refuses_as_the_skill_does(counting: SkillCatalog) -> None:
    """A repeated refusal is told so, whichever door it comes through."""
    tools = tools_of(counting, style="generic")

    first, second = (call(tools["call_skill"], {"name": "counting", "arguments": {"txt": 1.5}}) for _ in range(2))

    assert first.status == second.status == "error"
    assert json.loads(first.content)["metadata"]["skill"] == "counting"
    assert "2 times now" in second.content


def test_the_tools_share_one_session(counting: SkillCatalog) -> None:
    """What is loaded through a tool is active in the toolkit's session."""
    toolkit = SkillToolkit(SkillRuntime(counting))
    load_skill = next(tool for tool in toolkit.get_tools() if tool.name == "load_skill")

    call(load_skill, {"name": "counting"})

    assert list(toolkit.session.active) == ["counting"]


def test_the_system_prompt_tells_of_the_skills(counting: SkillCatalog) -> None:
    """The catalog, and how to use it."""
    prompt = SkillToolkit(SkillRuntime(counting)).system_prompt()

    assert "load_skill" in prompt
    assert counting.to_prompt() in prompt


def test_a_skill_hidden_from_models_does_not_exist_for_them(counting: SkillCatalog) -> None:
    """Neither loaded, read, called, nor offered; the host itself may still call it."""
    path = Path(counting["counting"].path)
    path.write_text(path.read_text().replace("---\nCall", "disable-model-invocation: true\n---\nCall"))
    hidden = counting.refresh()
    tools = {**tools_of(hidden), **tools_of(hidden, style="generic")}

    loaded = call(tools["load_skill"], {"name": "counting"})
    read = call(tools["read_skill_resource"], {"name": "counting", "path": "references/rules.md"})
    called = call(tools["call_skill"], {"name": "counting", "arguments": {"text": "abc"}})

    assert "counting" not in tools
    assert [message.status for message in (loaded, read, called)] == ["error"] * 3
    assert all(json.loads(m.content)["errors"][0]["code"] == "SKILL_NOT_FOUND" for m in (loaded, read, called))
    assert SkillRuntime(hidden).call_blocking("counting", {"text": "abc"}).data == {"letters": 3}
