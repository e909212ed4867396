"""The bundled skills work on a person's files, in every way in which an agent gets them."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.tool_names import to_tool_name
from skillruntime.catalog.discovery import discover
from skillruntime.runtime.runtime import SkillRuntime
from tests.adapters.test_every_adapter import ADAPTERS
from tests.skills.conftest import make_document

SKILLS = Path(__file__).parents[2] / "skills"
CALLS: dict[str, dict[str, Any]] = {
    "pdf-processing/extract": {"path": "report.pdf"},
    "data-analysis/chart": {
        "path": "sales.csv",
        "kind": "bar",
        "x": "month",
        "y": "amount",
        "output_path": "sales.png",
    },
    "daily-news-digest": {"topics": ["AI"]},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A person's files: a PDF, a table, and the news feeds that they read."""
    (tmp_path / "report.pdf").write_bytes(make_document(["Quarterly report"]))
    (tmp_path / "sales.csv").write_text("month,amount\n2026-01,10\n2026-02,30\n")
    now = format_datetime(datetime.now(UTC))
    (tmp_path / "feed.xml").write_text(
        f"<rss version='2.0'><channel><title>Wire</title><item><title>AI act passed</title>"
        f"<link>https://example.com/1</link><pubDate>{now}</pubDate></item></channel></rss>"
    )
    (tmp_path / "news_feeds.json").write_text(json.dumps({"feeds": [{"name": "Wire", "url": "feed.xml"}]}))
    return tmp_path


def require_done(answers: dict[str, Any], folder: Path) -> None:
    """Check that each task is done, and that what was made is where the person looks."""
    assert answers["pdf-processing/extract"]["pages"][0]["text"] == "Quarterly report"
    assert answers["data-analysis/chart"]["points"] == 2
    assert (folder / "sales.png").read_bytes().startswith(b"\x89PNG")
    assert answers["daily-news-digest"]["topics_covered"][0]["articles"][0]["title"] == "AI act passed"


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__.removeprefix("call_"))
def test_a_persons_files_are_reached(adapter: Callable[..., Awaitable[Any]], folder: Path) -> None:
    """The workspace of the runtime is that of every conversation."""
    runtime = SkillRuntime(discover(SKILLS, trusted=True), workspace=folder)

    async def run() -> dict[str, Any]:
        return {name: await adapter(runtime, name, arguments) for name, arguments in CALLS.items()}

    require_done(anyio.run(run), folder)


async def call_each(client: Any) -> dict[str, Any]:
    """Call the three skills over MCP; the chart is read by the link in its answer."""
    tools = {tool.name for tool in (await client.list_tools()).tools}
    answers = {}
    for name, arguments in CALLS.items():
        (shown,) = [tool for tool in tools if tool.replace("_", "-") == to_tool_name(name).replace("_", "-")]
        result = await client.call_tool(shown, arguments)
        answers[name] = result.structured_content
        for link in [part for part in result.content if part.type == "resource_link"]:
            (content,) = (await client.read_resource(link.uri)).contents
            assert (content.mime_type, base64.b64decode(content.blob)[:4]) == ("image/png", b"\x89PNG")
            answers[name] = {**answers[name], "link": link.name}
    return answers


@pytest.mark.parametrize("has_root", [False, True], ids=["workspace", "root of the client"])
def test_a_command_that_serves_mcp_reaches_the_files(folder: Path, has_root: bool) -> None:
    """``serve --mcp --workspace``, or the one root that the client offers; a chart comes as a link that can be read."""
    mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed")
    import mcp_types as types

    arguments = ["-m", "skillruntime.cli", "serve", "--mcp", "--trust", "--skills", str(SKILLS)]
    options: dict[str, Any] = {}
    if has_root:

        async def roots(context: Any) -> Any:
            return types.ListRootsResult(roots=[types.Root(uri=folder.as_uri())])

        options = {"list_roots_callback": roots, "mode": "legacy"}
    else:
        arguments += ["--workspace", str(folder)]
    # A client starts its servers anywhere.
    parameters = mcp.StdioServerParameters(command=sys.executable, args=arguments, cwd="/")

    async def run() -> dict[str, Any]:
        async with mcp.Client(parameters, **options) as client:
            return await call_each(client)

    answers = anyio.run(run)

    require_done(answers, folder)
    assert answers["data-analysis/chart"]["link"] == "sales.png"


def test_a_command_that_serves_reaches_the_files(folder: Path) -> None:
    """``serve --workspace``, called by the client of the invocation protocol."""
    pytest.importorskip("starlette", reason="a server needs the extra 'serve'")
    command = [sys.executable, "-m", "skillruntime.cli", "serve", "--trust", "--skills", str(SKILLS), "--port", "0"]
    options = ["--workspace", str(folder), "--memory", "--data", str(folder / ".data")]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if line.startswith("serving"))
            at = line.split()[-1]
            answers = {
                name: call(f"{at}/skills/{name.replace('/', '.')}", arguments) for name, arguments in CALLS.items()
            }
        finally:
            process.terminate()
    require_done(answers, folder)


def call(address: str, arguments: dict[str, Any]) -> Any:
    """Call the skill at *address* as a user does, and return its data."""
    words = ["call", address, json.dumps(arguments), "--json"]
    done = subprocess.run([sys.executable, "-m", "skillruntime.cli", *words], capture_output=True, text=True)
    return json.loads(done.stdout)["data"]


def test_the_middleware_may_have_a_workspace_of_its_own(tmp_path: Path) -> None:
    """One for all conversations, or one for each, by its key."""

    def place(**options: Any) -> Path:
        middleware = SkillMiddleware(SkillRuntime(workspace=tmp_path / "runtime"), **options)
        return middleware.session({"skill_session": "k", "messages": []}).workspace.directory

    assert place() == tmp_path / "runtime"
    assert place(workspace=tmp_path / "all") == tmp_path / "all"
    assert place(workspace=lambda key: str(tmp_path / key)) == tmp_path / "k"
