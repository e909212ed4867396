"""The tools of one conversation: `SkillToolkit` in
`skillruntime/adapters/langchain.py`.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool

from skillruntime import derive as derive_package
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.catalog import SkillCatalog, discover
from skillruntime.contract import Contract
from skillruntime.runtime import SkillRuntime
from skillruntime.tokens import TokenLimits
from tests.skill_files import write_skill_files


def tools_of(catalog: SkillCatalog, **options: Any) -> dict[str, BaseTool]:
    """The tools by name."""
    return {
        tool.name: tool
        for tool in SkillToolkit(SkillRuntime(catalog), **options).get_tools()
    }


def call(tool: BaseTool, arguments: Any) -> ToolMessage:
    """Call *tool* as an agent does."""
    message = tool.invoke(
        {"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"}
    )
    assert isinstance(message, ToolMessage)
    return message


def test_every_callable_of_the_bundled_skills_is_a_tool(bundled: SkillCatalog) -> None:
    """With names that every provider takes; a skill of instructions alone is loaded,
    not called.
    """
    assert sorted(tools_of(bundled)) == [
        "code-review__changed-lines",
        "daily-news-digest",
        "data-analysis__query",
        "data-analysis__summary",
        "load_skill",
        "pdf-processing__extract",
        "pdf-processing__fill-form",
        "pdf-processing__merge",
        "pdf-processing__render",
        "read_skill_resource",
        "write_skill_input",
    ]


def test_the_generic_set_is_fixed_and_reads_no_contract(
    bundled: SkillCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many skills there are: four tools, and nothing read before it is
    called.
    """
    monkeypatch.setattr(SkillCatalog, "activate", None)

    assert sorted(tools_of(bundled, style="generic")) == [
        "call_skill",
        "load_skill",
        "read_skill_resource",
        "write_skill_input",
    ]


def test_a_skill_is_loaded_once_and_plain(counting: SkillCatalog) -> None:
    """The plain text, not JSON; one line the second time; an envelope for an unknown
    skill.
    """
    load_skill = tools_of(counting)["load_skill"]

    first, second = (call(load_skill, {"name": "counting"}) for _ in range(2))
    missing = call(load_skill, {"name": "countign"})

    assert first.content.startswith('<skill name="counting">\nCall it with a text.')
    assert "already active" in second.content
    assert missing.status == "error"
    assert (
        json.loads(missing.content)["errors"][0]["suggested_action"]
        == 'Did you mean "counting"?'
    )


def test_loading_names_the_tools_as_the_model_calls_them(bundled: SkillCatalog) -> None:
    """By their tool names where each is a tool; by their own names for
    ``call_skill``.
    """
    typed, generic = (
        call(
            tools_of(bundled, style=style)["load_skill"], {"name": "pdf-processing"}
        ).content
        for style in ("typed", "generic")
    )

    assert "- pdf-processing__extract: " in typed
    assert "- pdf-processing/extract: " in generic


def test_malformed_calls_of_the_conversations_own_tools_are_repaired_too(
    counting: SkillCatalog,
) -> None:
    """They are under contract like any skill."""
    load_skill = tools_of(counting)["load_skill"]

    assert "Call it with a text." in call(load_skill, {"Name": ["counting"]}).content
    assert (
        json.loads(call(load_skill, {}).content)["errors"][0]["code"]
        == "MISSING_REQUIRED_PARAM"
    )


def test_a_resource_is_read_and_nothing_else(counting: SkillCatalog) -> None:
    """A file of the skill; a path that is none of its files is an envelope."""
    read = tools_of(counting)["read_skill_resource"]

    found = call(read, {"name": "counting", "path": "references/rules.md"})
    gone = call(read, {"name": "counting", "path": "references/rule.md"})
    outside = call(read, {"name": "counting", "path": "../../../etc/passwd"})

    framed = (
        '<skill_resource skill="counting" path="references/rules.md">\n'
        "Spaces count.\n"
        "</skill_resource>"
    )
    assert (found.content, found.status) == (framed, "success")
    assert json.loads(gone.content)["errors"][0]["code"] == "FETCH_FAILED"
    assert "references/rules.md" in gone.content
    assert json.loads(outside.content)["status"] == "failed"


@pytest.mark.processes
@pytest.mark.parametrize(
    "arguments", [{"text": "abc"}, '{"text": "abc"}', {"input": {"text": "abc"}}]
)
def test_call_skill_calls_any_of_them(counting: SkillCatalog, arguments: Any) -> None:
    """Its envelope is the skill's own, and what the model nests or encodes too often is
    repaired.
    """
    message = call(
        tools_of(counting, style="generic")["call_skill"],
        {"name": "counting", "arguments": arguments},
    )

    envelope = json.loads(message.content)
    assert envelope["data"] == {"letters": 3}
    assert envelope["metadata"]["skill"] == "counting"


def test_call_skill_refuses_as_the_skill_does(counting: SkillCatalog) -> None:
    """A repeated refusal says so, whichever adapter made the call."""
    tools = tools_of(counting, style="generic")

    first, second = (
        call(tools["call_skill"], {"name": "counting", "arguments": {"txt": 1.5}})
        for _ in range(2)
    )

    assert first.status == second.status == "error"
    assert json.loads(first.content)["metadata"]["skill"] == "counting"
    assert "refused 2 times" in second.content


def test_the_tools_share_one_session(counting: SkillCatalog) -> None:
    """What is loaded through a tool is active in the toolkit's session."""
    toolkit = SkillToolkit(SkillRuntime(counting))
    load_skill = next(tool for tool in toolkit.get_tools() if tool.name == "load_skill")

    call(load_skill, {"name": "counting"})

    assert list(toolkit.session.active) == ["counting"]


def test_the_system_prompt_lists_the_skills(counting: SkillCatalog) -> None:
    """The catalog, and how to use it."""
    prompt = SkillToolkit(SkillRuntime(counting)).system_prompt()

    assert "load_skill" in prompt
    assert counting.to_prompt() in prompt


@pytest.mark.processes
def test_a_skill_hidden_from_models_does_not_exist_for_them(
    counting: SkillCatalog,
) -> None:
    """The model cannot load, read, call or see it; the host itself may still call
    it.
    """
    path = Path(counting["counting"].path)
    path.write_text(
        path.read_text().replace(
            "---\nCall", "disable-model-invocation: true\n---\nCall"
        )
    )
    hidden = counting.refresh()
    tools = tools_of(hidden)
    # Where nothing can be called, there is no call_skill.
    script = "import argparse\nargparse.ArgumentParser().parse_args()\n"
    write_skill_files(path.parents[1], "shown", "Is shown", {"scripts/run.py": script})
    tools["call_skill"] = tools_of(hidden.refresh(), style="generic")["call_skill"]

    loaded = call(tools["load_skill"], {"name": "counting"})
    read = call(
        tools["read_skill_resource"],
        {"name": "counting", "path": "references/rules.md"},
    )
    called = call(
        tools["call_skill"], {"name": "counting", "arguments": {"text": "abc"}}
    )

    assert "counting" not in tools
    assert [message.status for message in (loaded, read, called)] == ["error"] * 3
    assert all(
        json.loads(m.content)["errors"][0]["code"] == "SKILL_NOT_FOUND"
        for m in (loaded, read, called)
    )
    assert SkillRuntime(hidden).call_sync("counting", {"text": "abc"}).data == {
        "letters": 3
    }


def many(directory: Path) -> SkillCatalog:
    """A catalog of 40 skills of instructions alone."""
    for number in range(40):
        path = directory / f"skill-{number:02}" / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(
            "---\n"
            f"name: skill-{number:02}\n"
            f"description: Does thing {number}.\n"
            "---\n"
            "Do it.\n"
        )
    return discover(directory)


def test_names_are_an_enum_only_while_the_whole_catalog_fits(tmp_path: Path) -> None:
    """Otherwise any name is accepted, and there is a search tool."""
    catalog = many(tmp_path)

    roomy, tight = tools_of(catalog), tools_of(catalog, catalog_tokens=100)
    found = call(tight["search_skills"], {"query": "thing 17"})

    assert roomy["load_skill"].args_schema["properties"]["name"]["enum"] == list(
        catalog
    )
    assert "search_skills" not in roomy
    assert "enum" not in tight["load_skill"].args_schema["properties"]["name"]
    assert "- skill-17: Does thing 17." in found.content
    guess = call(tight["search_skills"], {"query": "any skll"}).content
    assert (
        "No skill matches these words. The nearest names, which is a guess: skill-"
        in guess
    )
    assert "continue without" not in guess
    assert call(tight["load_skill"], {"name": "skill-31"}).status == "success"


def test_more_than_a_hundred_names_are_not_repeated(tmp_path: Path) -> None:
    """They are in the catalog; search is not needed, and a wrong name is answered."""
    directory = tmp_path / "skills"
    for number in range(101):
        (directory / f"skill-{number:03}").mkdir(parents=True)
        text = (
            "---\n"
            f"name: skill-{number:03}\n"
            f"description: Does thing {number}.\n"
            "---\n"
            "Do it.\n"
        )
        (directory / f"skill-{number:03}" / "SKILL.md").write_text(text)

    tools = tools_of(discover(directory), catalog_tokens=None)

    assert "enum" not in tools["load_skill"].args_schema["properties"]["name"]
    assert "search_skills" not in tools
    assert "skill-042" in call(tools["load_skill"], {"name": "skil-042"}).content


def test_the_prompt_keeps_to_its_budget(tmp_path: Path) -> None:
    """And says that there is more."""
    toolkit = SkillToolkit(SkillRuntime(many(tmp_path)), catalog_tokens=100)

    prompt = toolkit.system_prompt()

    assert "more skills are not listed; find them with search_skills." in prompt
    assert toolkit.session.ledger.spent("catalog") <= 100


def test_a_long_answer_is_a_page_and_read_on_gives_the_rest(
    counting: SkillCatalog,
) -> None:
    """As plain text, with the call that reads on; the envelope is next to it."""
    runtime = SkillRuntime(counting)
    runtime.implements("counting")(
        lambda arguments: {"lines": [f"line {number}" for number in range(200)]}
    )
    session = runtime.session(limits=TokenLimits(page_tokens=100))
    tools = {
        tool.name: tool for tool in SkillToolkit(runtime, session=session).get_tools()
    }

    page = call(tools["counting"], {"text": "x"})
    handle = page.artifact.metadata["read_on"]
    rest = call(tools["read_skill_resource"], {"name": "result", "path": handle})

    assert page.content.startswith('{"lines":["line 0"')
    assert f"read_skill_resource(name='result', path='{handle}')" in page.content
    assert page.artifact.data["lines"][-1] == "line 199"
    assert [
        json.loads(line)["lines"]
        for line in page.content.partition("\n[cut:")[0].splitlines()
    ]
    assert rest.content.startswith('{"lines":["line ')
    assert rest.artifact.status == "success"


BROKEN: Any = [
    {
        "name": "counting",
        "args": "{'text': 'abc'}",
        "id": "b",
        "error": None,
        "type": "invalid_tool_call",
    },
    {
        "name": "counting",
        "args": '{"text": "abc',
        "id": "c",
        "error": None,
        "type": "invalid_tool_call",
    },
    {
        "name": None,
        "args": "[1]",
        "id": None,
        "error": None,
        "type": "invalid_tool_call",
    },
]


@pytest.mark.processes
@pytest.mark.parametrize("is_async", [False, True])
def test_a_loop_of_ones_own_gets_every_call_answered(
    counting: SkillCatalog, is_async: bool
) -> None:
    """Good ones, those whose JSON the model broke, and one of a tool that does not
    exist: none is dropped.
    """
    toolkit = SkillToolkit(SkillRuntime(counting))
    message = AIMessage(
        "",
        tool_calls=[
            {
                "name": "counting",
                "args": {"text": "ab"},
                "id": "a",
                "type": "tool_call",
            },
            {"name": "nothing", "args": {}, "id": "d", "type": "tool_call"},
        ],
        invalid_tool_calls=BROKEN,
    )

    said, *answers = (
        anyio.run(toolkit.aanswer, message) if is_async else toolkit.answer(message)
    )

    assert isinstance(said, AIMessage)
    assert {each["id"] for each in said.tool_calls} == {
        answer.tool_call_id for answer in answers
    }
    by_id = {answer.tool_call_id: json.loads(answer.content) for answer in answers}
    assert by_id["a"]["data"] == {"letters": 2}
    assert by_id["b"]["data"] == {"letters": 3}
    assert by_id["c"]["errors"][0]["code"] == "TRUNCATED_INPUT"
    assert by_id["d"]["errors"][0]["code"] == "TOOL_NOT_AVAILABLE"
    assert len(by_id) == 5
    assert said.additional_kwargs["skillruntime"] == {
        "repairs": {"b": ["single-quotes"]}
    }


def with_functions(number: int) -> SkillRuntime:
    """A runtime with this many functions."""
    runtime = SkillRuntime()
    for position in range(number):
        runtime.implements(
            f"skill-{position}", contract=Contract.from_dict({"description": "Do."})
        )(lambda given: 1)
    return runtime


@pytest.mark.parametrize("make", [SkillToolkit, SkillTools])
def test_more_callables_than_providers_take_are_called_through_one_tool(
    make: Any,
) -> None:
    """From 129 on, with a warning that says how to choose; a stated style is kept
    without one.
    """
    few = make(with_functions(128))
    with pytest.warns(
        UserWarning, match=r"more than 128 callable skills.*style='typed'"
    ):
        generic = names_of(make(with_functions(129)))
    typed = names_of(make(with_functions(129), style="typed"))

    assert len(names_of(few)) == 131
    assert generic == [
        "load_skill",
        "read_skill_resource",
        "write_skill_input",
        "call_skill",
    ]
    assert len(typed) == 132


def names_of(skills: Any) -> list[str]:
    """The names of the tools, whichever class makes them."""
    return (
        list(skills.contracts)
        if isinstance(skills, SkillTools)
        else [tool.name for tool in skills.get_tools()]
    )


def test_tools_are_kept_while_what_can_be_called_is_the_same(
    counting: SkillCatalog,
) -> None:
    """The same objects for each message; new ones after another catalog or function."""
    runtime = SkillRuntime(counting)
    toolkit = SkillToolkit(runtime)
    first = toolkit.get_tools()

    assert all(
        one is other for one, other in zip(first, toolkit.get_tools(), strict=True)
    )
    runtime.implements("added", contract=Contract.from_dict({"description": "Do."}))(
        lambda given: 1
    )
    assert [tool.name for tool in toolkit.get_tools()] == [
        *(t.name for t in first[:3]),
        "added",
        first[3].name,
    ]
    runtime.catalog = SkillCatalog()
    assert [tool.name for tool in toolkit.get_tools()] == [
        "load_skill",
        "read_skill_resource",
        "write_skill_input",
        "added",
    ]


@pytest.mark.processes
def test_an_answer_reads_no_skill_that_it_does_not_call(
    counting: SkillCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tools are there already, so a message costs its own calls alone."""
    toolkit = SkillToolkit(SkillRuntime(counting))
    toolkit.get_tools()
    monkeypatch.setattr(SkillCatalog, "activate", None)
    message = AIMessage(
        "", tool_calls=[{"name": "counting", "args": {"text": "four"}, "id": "1"}]
    )

    answer = toolkit.answer(message)[1]

    assert json.loads(answer.text)["data"] == {"letters": 4}


def test_whether_there_are_many_is_known_before_all_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 400 skills with a contract only as many are read as show that there are more
    than 128.
    """
    for number in range(400):
        directory = tmp_path / f"skill-{number:03}"
        directory.mkdir()
        (directory / "SKILL.md").write_text(
            f"---\nname: skill-{number:03}\ndescription: Does it.\n---\n"
        )
        (directory / "contract.json").write_text('{"description": "Do."}')
    read: list[str] = []
    activate = SkillCatalog.activate
    monkeypatch.setattr(
        SkillCatalog,
        "activate",
        lambda self, name: read.append(name) or activate(self, name),
    )

    with pytest.warns(UserWarning, match="more than 128"):
        SkillToolkit(SkillRuntime(discover(tmp_path, trusted=True))).get_tools()

    assert len(read) == 129


PROGRAM = (
    "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--x')\n"
)


HELPER = """'Helpers.'
'''
main(sys.argv[1:]) of the callers calls this
main()
'''
def parse():
    return 1
"""


def write_scripts(root: Path, programs: int, helpers: int) -> None:
    for number in range(programs + helpers):
        directory = root / f"skill-{number:03}" / "scripts"
        directory.mkdir(parents=True)
        (directory.parent / "SKILL.md").write_text(
            f"---\nname: skill-{number:03}\ndescription: Does it.\n---\n"
        )
        text = (
            f"{PROGRAM}found = parser.parse_args()\n" if number < programs else HELPER
        )
        (directory / "run.py").write_text(text)


def test_no_contract_is_derived_to_count_the_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether there are more than 128 is known from a look at the scripts."""
    write_scripts(tmp_path, 129, 0)
    monkeypatch.setattr(derive_package, "derive", None)

    with pytest.warns(UserWarning, match="more than 128"):
        toolkit = SkillToolkit(SkillRuntime(discover(tmp_path, trusted=True)))
        assert "call_skill" in {tool.name for tool in toolkit.get_tools()}


def test_helper_modules_do_not_count_as_tools(tmp_path: Path) -> None:
    """A catalog of 100 tools and 300 modules keeps a tool for each."""
    write_scripts(tmp_path, 100, 300)
    tools = SkillToolkit(SkillRuntime(discover(tmp_path, trusted=True))).get_tools()

    assert sum(tool.name.endswith("run") for tool in tools) == 100
    assert "call_skill" not in {tool.name for tool in tools}


def test_a_tool_whose_schema_is_over_the_limit_is_not_offered(
    counting: SkillCatalog,
) -> None:
    """A schema cannot be cut; the conversation's own tools are always there."""
    runtime = SkillRuntime(counting)
    of = lambda tokens: SkillToolkit(  # noqa: E731
        runtime, session=runtime.session(limits=TokenLimits(total_tokens=tokens))
    )

    assert "counting" not in {tool.name for tool in of(1).get_tools()}
    assert "load_skill" in {tool.name for tool in of(1).get_tools()}
    assert "counting" in {tool.name for tool in of(10_000).get_tools()}


def test_a_tool_is_the_same_before_and_after_its_contract_was_read(
    counting: SkillCatalog,
) -> None:
    """What pydantic reads of a tool (its dump, its items, whether it equals another)
    does not depend on the moment.
    """

    def fresh() -> BaseTool:
        return tools_of(counting, style="typed")["counting"]

    tool = fresh()
    copied = tool.model_copy()
    assert tool.description
    assert tool == copied
    for read in (BaseTool.model_dump, dict, BaseTool.model_dump_json):
        assert read(fresh()) == read(tool)
    assert fresh().model_dump(exclude_unset=True).keys() == {
        "name",
        "description",
        "args_schema",
    }


@pytest.mark.processes
def test_a_deep_copy_of_a_tool_calls_the_same_runtime(counting: SkillCatalog) -> None:
    """Hosts copy what they are configured with; a runtime holds locks, which cannot be
    copied.
    """
    tool = tools_of(counting, style="typed")["counting"]
    tool.description = "Mine"
    copied = copy.deepcopy([tool])[0]

    assert (copied.description, copied.args) == ("Mine", tool.args)
    assert call(copied, {"text": "one two"}).status == "success"
