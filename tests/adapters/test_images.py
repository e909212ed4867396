"""Images that a skill has, or that its script makes, reach a model that takes images,
by each framework's own means.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.tool_formats import (
    SkillTools,
    to_anthropic_result,
    to_gemini_result,
    to_openai_result,
)
from skillruntime.catalog import discover
from skillruntime.runtime import SkillRuntime
from skillruntime.runtime.files.images import image_type
from skillruntime.testing import ScriptedChatModel, call_message
from tests import needs
from tests.skill_files import made, write_skill_files

pytestmark = pytest.mark.processes


pytestmark = pytest.mark.processes


def make_png(width: int = 2) -> bytes:
    """Return a grey image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = (b"\0" + b"\x80" * width) * width
    head = struct.pack(">IIBBBBB", width, width, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


PNG = make_png()
ENCODED = base64.b64encode(PNG).decode()
URL = f"data:image/png;base64,{ENCODED}"
CONTRACT = {
    "description": "Draw",
    "input": {"type": "object"},
    "run": {"script": "scripts/draw.py"},
}
SCRIPT = f"""
import base64, json
for name in ("chart.png", "notes.txt"):
    with open(name, "wb") as file:
        file.write(base64.b64decode({ENCODED!r}))
print(json.dumps({{"points": 2}}))
"""


@pytest.fixture
def runtime(tmp_path: Path) -> SkillRuntime:
    """A runtime with a skill that draws a chart and has a logo."""
    return make_runtime(tmp_path)


def make_runtime(tmp_path: Path, logo: bytes = PNG, **options: Any) -> SkillRuntime:
    files = {"contract.json": json.dumps(CONTRACT), "scripts/draw.py": SCRIPT}
    directory = write_skill_files(tmp_path / "skills", "draw", "Draws charts", files)
    (directory / "assets").mkdir()
    (directory / "assets" / "logo.png").write_bytes(logo)
    return SkillRuntime(
        discover(tmp_path / "skills", trusted=True),
        workspace=made(tmp_path / "files"),
        **options,
    )


READ = {"name": "draw", "path": "assets/logo.png"}
BOTH = (("draw", {}), ("read_skill_resource", READ))


def run_agent(runtime: SkillRuntime, profiles: list[Any]) -> list[list[Any]]:
    """Run an agent whose models have *profiles*, in turn; return the answers of tools
    that the last one was sent.
    """
    calls = [("load_skill", {"name": "draw"}), *BOTH]
    middleware = SkillMiddleware(runtime, tools="typed")
    messages: list[Any] = [HumanMessage("Please.")]
    sent: list[Any] = []
    for profile in profiles:
        replies = [call_message(call) for call in calls if sent == []] + [
            AIMessage("Done.")
        ]
        model = ScriptedChatModel(replies=replies, profile=profile)
        messages = create_agent(model, middleware=[middleware]).invoke(
            {"messages": messages}
        )["messages"]
        messages = [*messages, HumanMessage("And?")]
        sent = [
            each.content for each in model.received[-1] if isinstance(each, ToolMessage)
        ]
    return sent[1:]


def test_a_model_whose_profile_says_so_gets_images_as_content_blocks(
    runtime: SkillRuntime,
) -> None:
    """LangChain's ``ModelProfile`` says ``image_tool_message`` of a model."""
    chart, logo = run_agent(runtime, [{"image_tool_message": True}])

    block = {"type": "image", "base64": ENCODED, "mime_type": "image/png"}
    assert json.loads(chart[0]["text"])["data"] == {"points": 2}
    assert "chart.png" in chart[0]["text"]
    assert "An image (image/png, " in logo[0]["text"]
    assert (chart[1:], logo[1:]) == ([block], [block])


@pytest.mark.parametrize("profile", [None, {}, {"image_tool_message": False}])
def test_any_other_model_reads_the_path(runtime: SkillRuntime, profile: Any) -> None:
    """Chat completions of OpenAI refuse a request with an image in a tool message."""
    chart, logo = run_agent(runtime, [profile])

    assert "chart.png" in chart
    assert "An image (image/png, " in logo


def test_a_model_that_follows_another_in_a_conversation_gets_what_it_takes(
    runtime: SkillRuntime,
) -> None:
    """A fallback model would refuse the images that the first one was shown."""
    chart, logo = run_agent(runtime, [{"image_tool_message": True}, None])

    assert "chart.png" in chart
    assert "An image (image/png, " in logo


def test_a_toolkit_shows_images_where_the_host_says_so(runtime: SkillRuntime) -> None:
    """A toolkit does not know its model; the artifact has the paths in any case."""

    def answers(**options: Any) -> list[ToolMessage]:
        toolkit = SkillToolkit(runtime, **options)
        return [
            each
            for each in toolkit.answer(call_message(*BOTH))
            if isinstance(each, ToolMessage)
        ]

    shown, silent = answers(images=True), answers()

    assert [len(each.content_blocks) for each in shown] == [2, 2]
    assert [type(each.content) for each in silent] == [str, str]
    assert {file["path"] for file in silent[0].artifact.metadata["files"]} == {
        "chart.png",
        "notes.txt",
    }


def by_hand(runtime: SkillRuntime, make: Callable[[Any, Any], Any]) -> list[Any]:
    """Return what *make* makes of each answer and its images."""
    tools = SkillTools(runtime)
    responses = [tools.call_sync(name, arguments) for name, arguments in BOTH]
    return [make(response, tools.session.images(response)) for response in responses]


def test_loops_by_hand_show_images_as_each_provider_documents(
    runtime: SkillRuntime,
) -> None:
    """OpenAI's responses, Anthropic and Gemini take them in a tool's answer; chat
    completions do not.
    """
    responses = by_hand(
        runtime,
        lambda r, images: to_openai_result(r, "1", api="responses", images=images)[
            "output"
        ],
    )
    chat = by_hand(
        runtime, lambda r, images: to_openai_result(r, "1", images=images)["content"]
    )
    anthropic = by_hand(
        runtime, lambda r, images: to_anthropic_result(r, "1", images=images)["content"]
    )
    gemini = by_hand(
        runtime,
        lambda r, images: to_gemini_result(r, "draw", images=images)[
            "function_response"
        ],
    )

    source = {"type": "base64", "media_type": "image/png", "data": ENCODED}
    assert [each[1:] for each in responses] == [
        [{"type": "input_image", "image_url": URL}]
    ] * 2
    assert [type(each) for each in chat] == [str, str]
    assert [each[1:] for each in anthropic] == [
        [{"type": "image", "source": source}]
    ] * 2
    assert [each["parts"] for each in gemini] == [
        [{"inline_data": {"mime_type": "image/png", "data": PNG}}]
    ] * 2


def test_a_client_of_mcp_gets_image_content(runtime: SkillRuntime) -> None:
    """Beside the link to the file that was made."""
    mcp = needs.package("mcp")
    from skillruntime.adapters.mcp import to_server

    async def run() -> list[Any]:
        async with mcp.Client(to_server(runtime)) as client:
            return [
                (await client.call_tool(name, arguments)).content
                for name, arguments in BOTH
            ]

    for content in anyio.run(run):
        (image,) = [part for part in content if part.type == "image"]
        assert (image.mime_type, image.data) == ("image/png", ENCODED)


def test_pydantic_ai_gets_binary_content(runtime: SkillRuntime) -> None:
    """The framework sends it as each model takes it."""
    needs.package("pydantic_ai")
    from pydantic_ai import Agent, BinaryContent
    from pydantic_ai.messages import (
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
    )
    from pydantic_ai.models.function import FunctionModel

    from skillruntime.adapters.pydantic_ai import SkillToolset

    def reply(messages: list[Any], info: Any) -> ModelResponse:
        if any(isinstance(message, ModelResponse) for message in messages):
            return ModelResponse([TextPart("Done.")])
        return ModelResponse(
            [ToolCallPart(name, arguments) for name, arguments in BOTH]
        )

    result = anyio.run(
        Agent(FunctionModel(reply), toolsets=[SkillToolset(runtime)]).run, "Please."
    )

    parts = [part for message in result.all_messages() for part in message.parts]
    returned = [part.content for part in parts if isinstance(part, ToolReturnPart)]
    assert [
        [each.data for each in content if isinstance(each, BinaryContent)]
        for content in returned
    ] == [[PNG]] * 2


def test_openai_agents_get_image_outputs(runtime: SkillRuntime) -> None:
    """As the SDK hands them to the responses API."""
    needs.package("agents")
    from agents import ItemHelpers
    from openai.types.responses import ResponseFunctionToolCall

    from skillruntime.adapters.openai_agents import SkillToolset

    tools = {tool.name: tool for tool in SkillToolset(runtime).tools}
    for name, arguments in BOTH:
        output = anyio.run(tools[name].on_invoke_tool, None, json.dumps(arguments))
        call = ResponseFunctionToolCall(
            arguments="{}", call_id="1", name=name, type="function_call"
        )
        item = ItemHelpers.tool_call_output_item(call, output)
        assert item["output"][1:] == [{"type": "input_image", "image_url": URL}]


def test_the_agent_development_kit_puts_images_beside_the_answer(
    runtime: SkillRuntime,
) -> None:
    """Where the host says that the model takes them: Gemini does since 3."""
    needs.package("google.adk")
    from google.adk.agents import Agent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from skillruntime.adapters.adk import SkillToolset

    class Model(BaseLlm):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> Any:
            answers = [
                part.function_response
                for part in llm_request.contents[-1].parts
                if part.function_response
            ]
            received.extend(answers)
            calls = [
                types.Part(function_call=types.FunctionCall(name=name, args=args))
                for name, args in BOTH
            ]
            parts = [types.Part(text="Done.")] if answers else calls
            yield LlmResponse(content=types.Content(role="model", parts=parts))

    async def run(**options: Any) -> list[Any]:
        received.clear()
        agent = Agent(
            name="a", model=Model(model="m"), tools=[SkillToolset(runtime, **options)]
        )
        await InMemoryRunner(agent=agent).run_debug("Please.", quiet=True)
        return [
            [each.inline_data.data for each in answer.parts or []]
            for answer in received
        ]

    received: list[Any] = []
    assert anyio.run(lambda: run(images=True)) == [[PNG], [PNG]]
    assert anyio.run(run) == [[], []]


@pytest.mark.parametrize(
    ("limit", "shown"),
    [(0, 0), (len(PNG) - 1, 0), (len(PNG), 1), (2 * len(PNG), 1)],
    ids=["0", "less", "one", "two"],
)
def test_images_are_limited(tmp_path: Path, limit: int, shown: int) -> None:
    """`SkillRuntime(image_bytes=...)`; what is larger stays a path."""
    runtime = make_runtime(tmp_path, image_bytes=limit)

    found = by_hand(runtime, lambda response, images: images)

    assert [len(images) for images in found] == [shown, shown]


def test_all_images_of_an_answer_share_the_limit(tmp_path: Path) -> None:
    """In the order in which the files are listed, those that fit."""
    runtime = make_runtime(tmp_path, image_bytes=len(PNG) + 1)

    @runtime.implements("two", contract={"input": {"type": "object"}})
    def two(arguments: Any, context: Any) -> None:
        for name in ("b.png", "a.png"):
            (context.workspace / name).write_bytes(PNG)

    session = runtime.session()
    response = session.call_sync("two", {})

    assert [image.path for image in session.images(response)] == ["a.png"]


@pytest.mark.parametrize(
    "logo",
    [PNG[:-1], b"<svg/>" + PNG, b"plain text", b""],
    ids=["cut", "other", "text", "empty"],
)
def test_only_whole_images_are_shown(tmp_path: Path, logo: bytes) -> None:
    """Providers refuse a whole request for one image that they cannot read, and each
    later one of the conversation.
    """
    runtime = make_runtime(tmp_path, logo)

    found = by_hand(runtime, lambda response, images: (response.ok, images))

    assert found[1] == (True, [])


def test_an_image_is_known_by_its_bytes() -> None:
    """A JPEG that is named .png would be refused as such."""
    size = (4).to_bytes(4, "little")
    webp = b"RIFF" + size + b"WEBP"

    assert [
        image_type(each) for each in (PNG, b"\xff\xd8\xff..\xff\xd9", b"GIF89a;", webp)
    ] == ["image/png", "image/jpeg", "image/gif", "image/webp"]
    assert [
        image_type(each)
        for each in (
            PNG[:-1],
            b"\xff\xd8\xff..",
            webp + b".",
            b"RIFF" + size + b"AVI ",
            b"RIFX" + size + b"WEBP",
            b"",
            b"text",
        )
    ] == [None] * 7


def test_a_link_to_an_image_is_not_followed(tmp_path: Path) -> None:
    """A script may leave a link to a file of its user that it cannot read itself."""
    runtime = make_runtime(tmp_path)
    (tmp_path / "private.png").write_bytes(PNG)

    @runtime.implements("link", contract={"input": {"type": "object"}})
    def link(arguments: Any, context: Any) -> None:
        (context.workspace / "made.png").write_bytes(PNG)

    session = runtime.session()
    response = session.call_sync("link", {})
    (tmp_path / "files" / "made.png").unlink()
    (tmp_path / "files" / "made.png").symlink_to(tmp_path / "private.png")

    assert session.images(response) == []
