"""Skills work on a person's files, in every way in which an agent gets them."""

from __future__ import annotations

import base64
import json
import os
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
from skillruntime.catalog import discover
from skillruntime.runtime import SkillRuntime
from tests import needs
from tests.adapters.conftest import to_tool_name
from tests.adapters.test_every_adapter import ADAPTERS, call_generic_tool
from tests.in_process import run_command
from tests.skill_files import made, write_skill_files
from tests.skills.conftest import make_document

pytestmark = pytest.mark.processes

SKILLS = Path(__file__).parents[2] / "skills"
CALLS: dict[str, dict[str, Any]] = {
    "pdf-processing/extract": {"path": "report.pdf"},
    "data-analysis/query": {
        "path": "sales.csv",
        "group": ["month"],
        "values": ["sum(amount)"],
        "chart": "bar",
        "output_path": "sales.png",
    },
    "daily-news-digest": {"topics": ["AI"]},
}
COPY = """
import json, pathlib, sys
asked = json.load(sys.stdin)
data = pathlib.Path(asked["path"]).read_bytes()
pathlib.Path(asked["output_path"]).write_bytes(data)
print(json.dumps({"bytes": len(data)}))
"""
NAME = {"type": "string", "format": "path"}
CONTRACT = {
    "description": "Copy a file",
    "input": {
        "type": "object",
        "required": ["path", "output_path"],
        "properties": {"path": NAME, "output_path": NAME},
    },
    "run": {"script": "scripts/copy.py"},
}
ARGUMENTS = {"path": "notes.png", "output_path": "copy.png"}
PICTURE = b"\x89PNG\r\n\x1a\n and so on"


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """A skill that reads a file and writes another."""
    write_skill_files(
        tmp_path / "skills",
        "copying",
        "Copies",
        {"contract.json": json.dumps(CONTRACT), "scripts/copy.py": COPY},
    )
    return tmp_path / "skills"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A person's files: a picture, a PDF, a table, and the news feeds that they
    read.
    """
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.png").write_bytes(PICTURE)
    (folder / "report.pdf").write_bytes(make_document(["Quarterly report"]))
    (folder / "sales.csv").write_text("month,amount\n2026-01,10\n2026-02,30\n")
    now = format_datetime(datetime.now(UTC))
    (folder / "feed.xml").write_text(
        "<rss version='2.0'><channel><title>Wire</title><item><title>AI act "
        "passed</title>"
        f"<link>https://example.com/1</link><pubDate>{now}</pubDate></item></channel></rss>"
    )
    (folder / "news_feeds.json").write_text(
        json.dumps({"feeds": [{"name": "Wire", "url": "feed.xml"}]})
    )
    return folder


@pytest.mark.parametrize(
    "adapter", ADAPTERS, ids=lambda adapter: adapter.__name__.removeprefix("call_")
)
def test_a_persons_files_are_reached(
    adapter: Callable[..., Awaitable[Any]], skills: Path, folder: Path
) -> None:
    """The workspace of the runtime is that of every conversation, and what is made is
    where the person looks.
    """
    runtime = SkillRuntime(discover(skills, trusted=True), workspace=folder)

    answer = anyio.run(adapter, runtime, "copying", ARGUMENTS)

    assert answer == {"bytes": len(PICTURE)}
    assert (folder / "copy.png").read_bytes() == PICTURE


def test_the_bundled_skills_reach_a_persons_files(folder: Path) -> None:
    """A PDF, a table and a list of feeds, each named as a person names it."""
    runtime = SkillRuntime(discover(SKILLS, trusted=True), workspace=folder)

    async def run() -> dict[str, Any]:
        return {
            name: await call_generic_tool(runtime, name, arguments)
            for name, arguments in CALLS.items()
        }

    answers = anyio.run(run)

    assert answers["pdf-processing/extract"]["pages"][0]["text"] == "Quarterly report"
    assert [row[1] for row in answers["data-analysis/query"]["rows"]] == [10, 30]
    assert (folder / "sales.png").read_bytes().startswith(b"\x89PNG")
    assert (
        answers["daily-news-digest"]["topics_covered"][0]["articles"][0]["title"]
        == "AI act passed"
    )


async def call_over_mcp(client: Any) -> None:
    """Call the skill over MCP; what it made is read by the link in its answer."""
    (tool,) = [
        tool.name
        for tool in (await client.list_tools()).tools
        if tool.name == to_tool_name("copying")
    ]
    result = await client.call_tool(tool, ARGUMENTS)
    (link,) = [part for part in result.content if part.type == "resource_link"]
    (content,) = (await client.read_resource(link.uri)).contents

    assert result.structured_content == {"bytes": len(PICTURE)}
    assert (link.name, content.mime_type) == ("copy.png", "image/png")
    assert base64.b64decode(content.blob) == PICTURE


@pytest.mark.parametrize(
    "has_root", [False, True], ids=["workspace", "root of the client"]
)
def test_a_command_that_serves_mcp_reaches_the_files(
    skills: Path, folder: Path, has_root: bool
) -> None:
    """``serve --mcp --workspace``, or the one root that the client offers; a file comes
    as a link that can be read.
    """
    mcp = needs.package("mcp")
    import mcp_types as types

    arguments = [
        "-m",
        "skillruntime",
        "serve",
        "--mcp",
        "--trust",
        "--skills",
        str(skills),
    ]
    options: dict[str, Any] = {}
    if has_root:

        async def roots(context: Any) -> Any:
            return types.ListRootsResult(roots=[types.Root(uri=folder.as_uri())])

        options = {"list_roots_callback": roots, "mode": "legacy"}
    else:
        arguments += ["--workspace", str(folder)]
    # A client starts its servers anywhere.
    parameters = mcp.StdioServerParameters(
        command=sys.executable,
        args=arguments,
        cwd="/",
        env={"PYTHONPATH": os.environ["PYTHONPATH"]},
    )

    async def run() -> None:
        async with mcp.Client(parameters, **options) as client:
            await call_over_mcp(client)

    anyio.run(run)

    assert (folder / "copy.png").read_bytes() == PICTURE


def test_a_command_that_serves_reaches_the_files(skills: Path, folder: Path) -> None:
    """``serve --workspace``, called by the client of the invocation protocol."""
    needs.package("starlette")
    command = [
        sys.executable,
        "-m",
        "skillruntime",
        "serve",
        "--trust",
        "--skills",
        str(skills),
        "--port",
        "0",
    ]
    options = ["--workspace", str(folder), "--memory", "--data", str(folder / ".data")]
    with subprocess.Popen(
        [*command, *options], stderr=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if line.startswith("serving"))
            called = run_command(
                "call",
                f"{line.split()[-1]}/skills/copying",
                json.dumps(ARGUMENTS),
                "--json",
            )
        finally:
            process.terminate()

    assert json.loads(called.stdout)["data"] == {"bytes": len(PICTURE)}
    assert (folder / "copy.png").read_bytes() == PICTURE


def test_the_middleware_may_have_a_workspace_of_its_own(tmp_path: Path) -> None:
    """One for all conversations, or one for each, by its key."""

    def place(**options: Any) -> Path:
        middleware = SkillMiddleware(
            SkillRuntime(workspace=made(tmp_path / "runtime")), **options
        )
        return middleware.session(
            {"skill_session": "k", "messages": []}
        ).workspace.directory

    assert place() == tmp_path / "runtime"
    assert place(workspace=made(tmp_path / "all")) == tmp_path / "all"
    assert place(workspace=lambda key: str(tmp_path / key)) == tmp_path / "k"
