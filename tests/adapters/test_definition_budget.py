"""One budget for the definitions of a request, in every adapter:
`skillruntime/adapters/tools/definitions.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.adapters.tools.definitions import choose_definitions
from skillruntime.catalog import Root, discover
from skillruntime.runtime import SkillRuntime
from skillruntime.testing import ScriptedChatModel, call_message
from skillruntime.tokens import count
from tests import needs
from tests.adapters.conftest import to_tool_name
from tests.skill_files import write_skill_files

OWN = {
    "load_skill",
    "call_skill",
    "read_skill_resource",
    "write_skill_input",
    "search_skills",
}
Definition = tuple[str, str, Any]
"""Name, description and schema."""


def write_skills(root: Path, *names: str, tools: int = 1, tokens: int = 900) -> None:
    """Write skills with *tools* tools each, whose definitions have some *tokens*
    tokens.
    """
    # 120 tokens each: of a longer text less is shown.
    text = " ".join(f"word{number}" for number in range(60))
    properties = {}
    for number in range(tokens // 120):
        properties[f"p{number}"] = {"type": "string", "description": text}
    contract = {
        "description": "Says it.",
        "input": {"type": "object", "properties": properties},
    }
    for name in names:
        files = {}
        for number in range(tools):
            files[f"contracts/t{number}.json"] = json.dumps(contract)
        write_skill_files(root, name, f"The skill {name}", files)


@pytest.fixture
def many(tmp_path: Path) -> SkillRuntime:
    """Sixty untrusted skills with a tool of some 900 tokens each, and a trusted one
    with three.
    """
    write_skills(tmp_path / "untrusted", *(f"u{number:02}" for number in range(60)))
    write_skills(tmp_path / "trusted", "zz", tools=3)
    runtime = SkillRuntime(
        discover(
            Root(str(tmp_path / "untrusted")),
            Root(str(tmp_path / "trusted"), trusted=True),
        )
    )
    for name in runtime.callable_names():
        runtime.implements(name)(lambda arguments: "done")
    return runtime


def in_tools(runtime: SkillRuntime) -> list[Definition]:
    tools = SkillTools(runtime)
    openai = [each["function"]["name"] for each in tools.to_openai()]
    declared = tools.to_gemini()[0]["function_declarations"]
    definitions = [
        (each["name"], each["description"], each["input_schema"])
        for each in tools.to_anthropic()
    ]
    assert openai == [each[0] for each in definitions]
    assert openai == [each["name"] for each in declared]
    return definitions


def in_toolkit(runtime: SkillRuntime) -> list[Definition]:
    return [
        (tool.name, tool.description, tool.args_schema)
        for tool in SkillToolkit(runtime).get_tools()
    ]


def over_mcp(runtime: SkillRuntime) -> list[Definition]:
    mcp = needs.package("mcp")
    from skillruntime.adapters.mcp import to_server

    async def run() -> list[Any]:
        async with mcp.Client(to_server(runtime)) as client:
            return list((await client.list_tools()).tools)

    return [(tool.name, tool.description, tool.input_schema) for tool in anyio.run(run)]


def in_pydantic_ai(runtime: SkillRuntime) -> list[Definition]:
    needs.package("pydantic_ai")
    from skillruntime.adapters.pydantic_ai import SkillToolset

    context: Any = None
    tools = anyio.run(SkillToolset(runtime).get_tools, context)
    definitions = [tool.tool_def for tool in tools.values()]
    return [
        (each.name, str(each.description), each.parameters_json_schema)
        for each in definitions
    ]


def in_openai_agents(runtime: SkillRuntime) -> list[Definition]:
    needs.package("agents")
    from skillruntime.adapters.openai_agents import SkillToolset

    tools: list[Any] = SkillToolset(runtime).tools
    return [(tool.name, tool.description, tool.params_json_schema) for tool in tools]


def in_adk(runtime: SkillRuntime) -> list[Definition]:
    needs.package("google.adk")
    from skillruntime.adapters.adk import SkillToolset

    tools = anyio.run(SkillToolset(runtime).get_tools)
    declared = [tool._get_declaration() for tool in tools]
    return [
        (each.name, each.description, each.parameters_json_schema) for each in declared
    ]


@pytest.mark.parametrize(
    "listed", [in_tools, in_toolkit, over_mcp, in_pydantic_ai, in_openai_agents, in_adk]
)
def test_all_untrusted_skills_together_have_a_part_of_the_budget(
    listed: Callable[[SkillRuntime], list[Definition]], many: SkillRuntime
) -> None:
    """Alike in every adapter; the trusted skill has all its tools, though its name is
    the last, and ``call_skill`` calls the others.
    """
    definitions = listed(many)

    skills = [each for each in definitions if each[0] not in OWN]
    untrusted = [each for each in skills if each[0].startswith("u")]
    tokens = sum(count(json.dumps(each)).tokens for each in untrusted)
    assert [each[0] for each in skills if each[0].startswith("zz")] == [
        "zz__t0",
        "zz__t1",
        "zz__t2",
    ]
    assert [each[0] for each in untrusted] == [
        f"u{number:02}__t0" for number in range(len(untrusted))
    ]
    assert 6_000 < tokens <= 8_000
    assert "call_skill" in {each[0] for each in definitions}


@pytest.mark.parametrize(
    "listed", [in_tools, in_toolkit, over_mcp, in_pydantic_ai, in_openai_agents, in_adk]
)
def test_the_tools_of_the_conversation_count_too(
    listed: Callable[[SkillRuntime], list[Definition]], tmp_path: Path
) -> None:
    """Small definitions fill the budget to the last token, and `load_skill` and the
    others are in the same request.
    """
    names = [f"t{number:03}" for number in range(110)]
    write_skills(tmp_path, *names, tokens=240)
    runtime = SkillRuntime(discover(tmp_path, trusted=True))
    for name in runtime.callable_names():
        runtime.implements(name)(lambda arguments: "done")

    definitions = listed(runtime)

    tokens = sum(count(json.dumps(each)).tokens for each in definitions)
    assert {"load_skill", "call_skill"} <= {each[0] for each in definitions}
    assert 18_500 < tokens <= 20_000


def test_all_skills_together_have_the_budget(tmp_path: Path) -> None:
    """Trusted ones too. With None there is not any limit."""
    write_skills(tmp_path, *(f"t{number:02}" for number in range(60)))
    runtime = SkillRuntime(discover(tmp_path, trusted=True))

    defined = choose_definitions(runtime, runtime.callable_names())
    runtime.definition_tokens = None
    whole = choose_definitions(runtime, runtime.callable_names())

    tokens = [
        count(json.dumps(each.to_dict())).tokens
        for each in [*defined.contracts.values()]
    ]
    assert 15_000 < sum(tokens) <= 22_000
    assert len(defined.contracts) + len(defined.by_name) == 60
    assert (len(whole.contracts), whole.by_name) == (60, ())


def test_loaded_skills_come_first(many: SkillRuntime) -> None:
    """The last one before the others; what is listed keeps the order of the names."""
    names = [*many.callable_names()]

    before = choose_definitions(many, names)
    after = choose_definitions(many, names, ["u58", "u59"])

    assert {"u58/t0", "u59/t0"} <= set(before.by_name)
    assert [*after.contracts][:2] == ["u00/t0", "u01/t0"]
    assert [*after.contracts][-5:] == ["u58/t0", "u59/t0", "zz/t0", "zz/t1", "zz/t2"]
    assert len(after.contracts) == len(before.contracts)


def test_a_skill_with_many_tools_does_not_hide_the_next(tmp_path: Path) -> None:
    """A tool of each skill in turn."""
    write_skills(tmp_path, "aa", tools=30)
    write_skills(tmp_path, "bb", "cc")
    runtime = SkillRuntime(discover(tmp_path))

    defined = choose_definitions(runtime, runtime.callable_names())

    assert {"aa/t0", "bb/t0", "cc/t0"} <= defined.contracts.keys()
    assert set(defined.by_name) <= {f"aa/t{number}" for number in range(30)}


def test_a_definition_that_is_too_large_hides_no_other(tmp_path: Path) -> None:
    """It is called by name, and the next ones are defined."""
    write_skills(tmp_path, "aa", tokens=12_000)
    write_skills(tmp_path, "bb", "cc")
    runtime = SkillRuntime(discover(tmp_path))

    defined = choose_definitions(runtime, runtime.callable_names())

    assert [*defined.contracts] == ["bb/t0", "cc/t0"]
    assert defined.by_name == ("aa/t0",)


def test_no_contract_is_read_after_the_budget_is_spent(
    many: SkillRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deriving one from a script takes longer than all else."""
    names = [*many.callable_names()]
    read: list[str] = []
    contract = many.contract
    monkeypatch.setattr(
        many, "contract", lambda name: read.append(name) or contract(name)
    )

    defined = choose_definitions(many, names)

    assert len(read) == len(defined.contracts) + 8
    assert len(read) < 30


def test_the_prompt_says_what_is_called_by_name(many: SkillRuntime) -> None:
    """In every adapter whose prompt has the list of skills; and a call by the tool's
    own name reaches it too.
    """
    tools = SkillTools(many)
    toolkit = SkillToolkit(many)
    note = (
        "These have no tool of their own here: load the skill, then call them by name "
        "with call_skill: u08/t0, u09/t0, "
    )

    called = tools.call_sync("call_skill", {"name": "u59/t0", "arguments": {}})
    named = tools.call_sync("u59__t0", {})
    message = call_message(("u59__t0", {}))
    _, answer = toolkit.answer(message)

    assert note in tools.system_prompt
    assert note in toolkit.system_prompt()
    assert " and 32 more" in tools.system_prompt
    assert (called.data, named.data) == ("done", "done")
    assert json.loads(answer.text)["data"] == "done"


def test_a_small_catalog_has_no_such_note(tmp_path: Path) -> None:
    """Nor ``call_skill``, because each tool has a definition."""
    write_skills(tmp_path, "aa", "bb")
    tools = SkillTools(SkillRuntime(discover(tmp_path)))

    assert "call_skill" not in tools.system_prompt
    assert "call_skill" not in tools.contracts


def test_the_next_request_defines_what_was_loaded(many: SkillRuntime) -> None:
    """The definitions of a conversation follow what it loads."""
    tools = SkillTools(many)
    toolkit = SkillToolkit(many)
    before = [tool.name for tool in toolkit.get_tools()]

    tools.call_sync("load_skill", {"name": "u59"})
    toolkit.answer(call_message(("load_skill", {"name": "u59"})))
    after = [tool.name for tool in toolkit.get_tools()]

    assert "u59__t0" in tools.contracts
    assert "u59__t0" in after
    assert "u59__t0" not in before
    # What is no longer defined is still called by its name.
    assert "u07__t0" in before
    assert "u07__t0" not in after
    _, answer = toolkit.answer(call_message(("u07__t0", {})))
    assert json.loads(answer.text)["data"] == "done"


def test_the_openai_agents_sdk_sees_what_was_loaded(many: SkillRuntime) -> None:
    """It reads the list of its agent before each request."""
    agents = needs.package("agents")
    from skillruntime.adapters.openai_agents import SkillToolset

    skills = SkillToolset(many)
    agent = agents.Agent(name="a", tools=skills.tools)
    (load,) = [tool for tool in skills.tools if tool.name == "load_skill"]
    context: Any = agents.RunContextWrapper(None)
    before = {tool.name for tool in agent.tools}

    anyio.run(load.on_invoke_tool, context, json.dumps({"name": "u59"}))

    assert "u59__t0" not in before
    assert "u59__t0" in {tool.name for tool in agent.tools}


def test_the_agent_development_kit_sees_what_a_session_loaded(
    many: SkillRuntime,
) -> None:
    """Another session does not."""
    needs.package("google.adk")
    from skillruntime.adapters.adk import SkillToolset

    skills = SkillToolset(many)
    contexts: list[Any] = []
    for number in (1, 2):
        session = SimpleNamespace(app_name="a", user_id="me", id=str(number))
        contexts.append(SimpleNamespace(session=session))
    loading = skills.conversation(contexts[0])
    loading.call_sync("load_skill", {"name": "u59"})

    names = []
    for context in contexts:
        tools = anyio.run(skills.get_tools, context)
        names.append({tool.name for tool in tools})

    assert "u59__t0" in names[0] - names[1]


def test_pydantic_ai_sees_what_was_loaded(many: SkillRuntime) -> None:
    """It asks for the tools before each request."""
    needs.package("pydantic_ai")
    from skillruntime.adapters.pydantic_ai import SkillToolset

    session = many.session()
    skills = SkillToolset(many, session=session)
    context: Any = None
    before = anyio.run(skills.get_tools, context)

    session.activate("u59")

    assert "u59__t0" in anyio.run(skills.get_tools, context).keys() - before.keys()


def test_mcp_lists_what_the_client_has_loaded(many: SkillRuntime) -> None:
    """At the next ``tools/list`` of the same session."""
    mcp = needs.package("mcp")
    from skillruntime.adapters.mcp import to_server

    async def run() -> tuple[set[str], set[str]]:
        async with mcp.Client(to_server(many)) as client:
            before = {tool.name for tool in (await client.list_tools()).tools}
            await client.call_tool("load_skill", {"name": "u59"})
            after = {tool.name for tool in (await client.list_tools()).tools}
            return before, after

    before, after = anyio.run(run)

    assert "u59__t0" in after - before


def test_loaded_skills_of_an_agent_share_the_budget(tmp_path: Path) -> None:
    """Typed tools of a LangChain agent: two skills of 5,400 tokens do not both fit, and
    the system message says which tools are called by name.
    """
    write_skills(tmp_path, "aa", "bb", tools=6)
    runtime = SkillRuntime(discover(tmp_path))
    for name in runtime.callable_names():
        runtime.implements(name)(lambda arguments: "done")
    model = ScriptedChatModel(
        replies=[
            call_message(("load_skill", {"name": "aa"})),
            call_message(("load_skill", {"name": "bb"})),
            call_message(("aa__t5", {})),
            AIMessage("Done."),
        ]
    )
    agent = create_agent(model, middleware=[SkillMiddleware(runtime, tools="typed")])

    messages = agent.invoke({"messages": [HumanMessage("Please.")]})["messages"]

    defined = [tool for tool in model.tools if tool.name not in OWN]
    tokens = sum(
        count(json.dumps([each.name, each.args_schema])).tokens for each in defined
    )
    names = [tool.name for tool in defined]
    assert tokens <= 8_000
    assert [name for name in names if name.startswith("bb")] == [
        to_tool_name(f"bb/t{number}") for number in range(6)
    ]
    assert "aa__t0" in names
    assert "aa__t5" not in names
    assert "call_skill" in [tool.name for tool in model.tools]
    assert "call them by name with call_skill: aa__t" in model.received[-1][0].text
    assert "call_skill" not in model.received[1][0].text
    assert json.loads(messages[-2].text)["data"] == "done"
