"""What an MCP client reads that calls a tool which does not exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillruntime.catalog import discover
from skillruntime.runtime import SkillRuntime
from skillruntime.tokens import count
from tests import needs
from tests.skill_files import write_skill_files

mcp = needs.package("mcp")

import mcp_types as types  # noqa: E402

from skillruntime.adapters.mcp import to_server  # noqa: E402

pytestmark = pytest.mark.anyio

SCRIPT = "import argparse\nargparse.ArgumentParser().parse_args()\n"


async def refusal(runtime: SkillRuntime, name: str) -> tuple[int, str]:
    """Return the code and the message of the error of the protocol."""
    async with mcp.Client(to_server(runtime)) as client:
        with pytest.raises(mcp.MCPError) as caught:
            await client.call_tool(name, {})
    return caught.value.error.code, caught.value.error.message


async def test_the_error_lists_the_tools_the_nearest_first(tmp_path: Path) -> None:
    """Invalid params, as the specification of tools has it for an unknown tool; what
    its author hides is not listed.
    """
    for name, tool in (("pdf", "merge"), ("pdf", "extract"), ("mail", "send")):
        write_skill_files(tmp_path, name, "Works", {f"scripts/{tool}.py": SCRIPT})
    hidden = write_skill_files(tmp_path, "secret", "Works", {"scripts/x.py": SCRIPT})
    text = (hidden / "SKILL.md").read_text()
    text = text.replace("---\nBody", "disable-model-invocation: true\n---\nBody")
    (hidden / "SKILL.md").write_text(text)
    runtime = SkillRuntime(discover(tmp_path, trusted=True))

    code, message = await refusal(runtime, "pdf__convert")
    _, of_hidden = await refusal(runtime, "secret__x")

    assert code == types.INVALID_PARAMS
    start, _, listed = message.partition("The tools are: ")
    assert start == "Unknown tool: pdf__convert. "
    names = listed.split(", ")
    assert {"pdf__merge", "pdf__extract", "mail__send", "load_skill"} <= {*names}
    assert {*names[:2]} == {"pdf__merge", "pdf__extract"}
    assert of_hidden.startswith("Unknown tool: secret__x. The tools are: ")
    assert of_hidden.count("secret") == 1


@pytest.mark.processes
async def test_a_function_s_name_is_not_that_of_a_skill(tmp_path: Path) -> None:
    """``get-weather`` would be ``get_weather`` to a client that replaces ``-``, so its
    tool has another name; who writes the skill's own name still means the skill.
    """
    files = {"scripts/run.py": "print('of the skill')\n"}
    contract = {"input": {"properties": {}}, "run": {"script": "scripts/run.py"}}
    files["contract.json"] = json.dumps(contract)
    write_skill_files(tmp_path, "get-weather", "Says the weather", files)

    def get_weather() -> str:
        """Say the weather."""
        return "of the function"

    runtime = SkillRuntime(discover(tmp_path, trusted=True))
    runtime.add(get_weather)
    answers = {}
    async with mcp.Client(to_server(runtime)) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        for name in ("get_weather", "get-weather"):
            answers[name] = (await client.call_tool(name, {})).content[0].text

    assert sorted(name for name in listed if "weather" in name) == [
        "get_weather",
        "get_weather_19a275db",
    ]
    assert "of the function" in answers["get_weather"]
    assert "of the skill" in answers["get-weather"]


async def test_the_list_has_a_limit_in_tokens(tmp_path: Path) -> None:
    """The rest is counted, and the name that was sent is cut."""
    for number in range(300):
        files = {"scripts/run.py": SCRIPT}
        write_skill_files(tmp_path, f"skill-{number:03}", "Works", files)
    runtime = SkillRuntime(discover(tmp_path, trusted=True))

    _, message = await refusal(runtime, "skill_170__start\u202e")
    _, long = await refusal(runtime, "y" * 5000)

    assert " more" in message
    assert "skill_170__run" in message
    assert "\u202e" not in message
    for text in (message, long):
        assert count(text).tokens < 300
