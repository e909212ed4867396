"""Ninety bad skills beside a good one stop nothing, on every way out: commands,
adapters, MCP and the server.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import click
import pytest

from skillruntime.catalog import SkillCatalog, discover
from skillruntime.cli.commands import group
from skillruntime.runtime import SkillRuntime
from tests import needs
from tests.bad_skills import write_bad_skills
from tests.in_process import run_command
from tests.skill_files import write_skill_files

CONTRACT = {
    "description": "Count letters",
    "input": {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string"}},
    },
    "run": {"script": "scripts/count.py"},
}
SCRIPT = """import json, sys
print(json.dumps({'letters': len(json.load(sys.stdin)['text'])}))
"""


WITH_PARSER = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--amount", type=int, required=True)
print(parser.parse_args().amount)
"""
TRIED = [
    ("list --json --skills ROOT", 0, '"good"'),
    ("search letters --json --skills ROOT", 0, '"good"'),
    ("index --skills ROOT", 0, ""),
    ("prompt --skills ROOT", 0, "good"),
    ("show good --skills ROOT", 0, "Counts letters"),
    ("tokens ROOT --json", 0, '"good"'),
    ("call good/count text=abc --trust --skills ROOT", 0, '"letters": 3'),
    ("doctor --skills ROOT", None, ""),
    ("new fresh --in ROOT", 0, "fresh/SKILL.md"),
    ("init good --dry-run --json --skills ROOT", 0, '"scripts/total.py"'),
    ("prepare good --skills ROOT", 0, "No script of 'good' declares packages."),
    ("test ROOT --only good --calls 1 --seconds 5", 0, "1 passed, 0 failed"),
    ("test ROOT --calls 1 --seconds 5", 1, "passed        good"),
    ("test ROOT --triggers", 0, "requests are won"),
    ("diff ROOT ROOT", 1, "good/count"),
    ("remote describe good/count --skills ROOT", 0, '"name": "good/count"'),
]
"""A command line with each command, its exit code, and a part of what it prints."""

_SERVER = "speaks to a server, which reads the skills"
_PROXY = "reads the tools of a server, and no skills"
WITHOUT_SKILLS = {
    "mcp-proxy run": _PROXY,
    "mcp-proxy report": _PROXY,
    "mcp-proxy wrap": _PROXY,
    "mcp-proxy unwrap": _PROXY,
    "schema": "prints a document of the library",
    "demo": "has its own contract",
    "remote invoke": _SERVER,
    "remote list": _SERVER,
    "remote show": _SERVER,
    "remote cancel": _SERVER,
    "remote complete": _SERVER,
    "remote release": _SERVER,
    "remote leave": _SERVER,
}
"""Why a command needs no row in `TRIED`."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with the skill `good` and the bad ones."""
    directory = tmp_path / "skills"
    files = {
        "contracts/count.json": json.dumps(CONTRACT),
        "scripts/count.py": SCRIPT,
        "scripts/total.py": WITH_PARSER,
    }
    write_skill_files(directory, "good", "Counts letters. Use when testing.", files)
    assert len(write_bad_skills(directory)) >= 90
    return directory


@pytest.fixture
def catalog(root: Path) -> SkillCatalog:
    """The catalog of all of them, trusted."""
    return discover(root, trusted=True)


def test_the_catalog_has_the_good_one(catalog: SkillCatalog) -> None:
    """And a finding for each that it does not have."""
    assert "good" in catalog.to_prompt()
    assert catalog.search("counts letters", wait=True)[0].name == "good"
    assert "good/count" in list(catalog.callables())
    reported = {Path(each.path).parent.name for each in catalog.diagnostics}
    listed = {Path(each.path).parent.name for each in catalog.values()}
    present = {each.name for each in (Path(catalog.roots[0].path)).iterdir()}
    assert present <= reported | listed


@pytest.mark.processes
@pytest.mark.parametrize(
    ("line", "exit_code", "has"),
    TRIED,
    ids=[line.partition(" -")[0].replace(" ", "_") for line, _, _ in TRIED],
)
def test_every_command_has_the_good_one(
    root: Path,
    line: str,
    exit_code: int | None,
    has: str,
    request: pytest.FixtureRequest,
) -> None:
    """Whatever it ends with, it has done its work for the good one."""
    if "--calls" in line:
        request.getfixturevalue("some_sandbox")
    ran = run_command(*[str(root) if word == "ROOT" else word for word in line.split()])

    assert "Traceback" not in ran.stderr
    assert "Internal error" not in ran.stderr
    assert has in ran.stdout
    if exit_code is not None:
        assert ran.exit_code == exit_code


def test_every_command_is_tried_or_needs_no_skills() -> None:
    """A new command gets a row in `TRIED`, or a reason in `WITHOUT_SKILLS`."""
    commands: set[str] = set()
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            commands.update(f"{name} {each}" for each in command.list_commands(context))
        else:
            commands.add(name)
    tried = {
        name
        for name in commands
        if any(f"{line} ".startswith(f"{name} ") for line, _, _ in TRIED)
    }
    other_tests = {"validate", "serve", "lock"}

    assert commands - tried - other_tests == WITHOUT_SKILLS.keys()


@pytest.mark.processes
def test_lock_pins_the_good_one(root: Path, tmp_path: Path) -> None:
    """It ends with 1, because one cannot be locked; a frozen catalog has the others."""
    lockfile = tmp_path / "skills-lock.json"

    ran = run_command("lock", "--skills", str(root), "--file", str(lockfile))

    assert ran.exit_code == 1
    assert "Locked" in ran.stdout
    locked = json.loads(lockfile.read_text())["skills"]
    assert "good" in locked
    assert "linked" not in locked
    frozen = discover(root, frozen=lockfile)
    assert "good" in frozen
    assert "linked" not in frozen


def test_new_writes_a_skill_beside_the_bad_ones(root: Path) -> None:
    """It is found with the good one."""
    assert run_command("new", "fresh", "--in", str(root)).exit_code == 0

    assert {"fresh", "good"} <= {*discover(root)}


def test_diff_names_each_contract_that_it_cannot_compare(root: Path) -> None:
    """And compares all others; left out, it would look like a removal."""
    ran = run_command("diff", str(root), str(root), "--json")

    document = json.loads(ran.stdout)
    assert ran.exit_code == 1
    assert not document["ok"]
    assert {each["name"]: each["bump"] for each in document["contracts"]} == {
        "contract-keys": "none",
        "contract-of-huge-texts": "none",
        "contract-of-nothing": "none",
        "contracts-in-a-row/a__b": "none",
        "good/count": "none",
    }
    assert sorted(document["broken"]) == [
        "contract-aliases",
        "contract-circle",
        "contract-deep",
        "contract-half",
        "contract-long-number",
        "contract-not-an-object",
        "contract-not-finite",
        "contract-not-json",
        "contract-pattern",
        "contract-unknown",
        "fifo-parts",
        "parts-are-directories",
    ]
    # Python 3.13 parses these 3,000 levels and older ones do not, so the sentence differs.
    assert "contract-deep is not compared: in NEW, contract" in ran.stderr


def test_validate_finds_nothing_in_the_good_one(root: Path) -> None:
    """And says of each bad one what is wrong."""
    ran = run_command("validate", str(root), "--json")

    found = json.loads(ran.stdout)["diagnostics"]
    by_skill: dict[str, list[str]] = {}
    for each in found:
        relative = Path(each["path"]).relative_to(root)
        if each["severity"] != "advice":
            by_skill.setdefault(relative.parts[0], []).append(each["rule"])
    assert "good" not in by_skill
    linked = [each["message"] for each in found if "/broken-link/" in each["path"]]
    assert linked == ["it cannot be read: it is a symbolic link"]
    unpublished = {
        "long-description",
        "long-compatibility",
        "null-metadata",
        "list-metadata",
        "nested-metadata",
        "list-license",
        "list-tools",
    }
    assert unpublished <= {*by_skill}


@pytest.mark.processes
def test_every_adapter_calls_the_good_one(catalog: SkillCatalog) -> None:
    """By the functions of the test of all adapters."""
    from tests.adapters.test_every_adapter import ADAPTERS

    async def call_all() -> None:
        for call in ADAPTERS:
            answer = await call(SkillRuntime(catalog), "good/count", {"text": "abc"})
            assert answer == {"letters": 3}, call.__name__

    anyio.run(call_all)


@pytest.mark.processes
def test_the_server_serves_the_good_one(root: Path) -> None:
    """Over HTTP, by the invocation protocol."""
    server = needs.package("skillruntime.server")
    served: list[str] = []

    def ready(base_url: str, published: Any, left: int) -> None:
        served.extend(each.id for each in published)
        signal.raise_signal(signal.SIGTERM)

    hosting = server.Hosting(port=0, data=None, public=True, drain_seconds=0.0)
    runtime = SkillRuntime(discover(root))
    anyio.run(lambda: server.host_skills(runtime, hosting, on_ready=ready))

    assert any("good" in each for each in served)


@pytest.mark.processes
def test_mcp_lists_what_its_clients_take(root: Path) -> None:
    """FastMCP's client validates whole lists: the skills that the extension's schema
    does not allow are not in `skills/list`, and remain in the other lists.
    """
    client_of_skills = needs.package("fastmcp.skills.client")
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    command = ["-m", "skillruntime", "serve", "--mcp", "--trust", "--skills", str(root)]
    environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    server = StdioTransport(sys.executable, command, env=environment)

    async def steps() -> Any:
        async with Client(
            server, extensions=[client_of_skills.SkillsClientExtension()]
        ) as client:
            tools = [tool.name for tool in await client.list_tools()]
            prompts = [prompt.name for prompt in await client.list_prompts()]
            skills = await client.list_skills()
            loaded = await client.call_tool("load_skill", {"name": "null-metadata"})
            resources = [str(each.uri) for each in await client.list_resources()]
            texts = [await client.read_resource(each.uri) for each in skills]
            return tools, prompts, skills, loaded, resources, texts

    tools, prompts, skills, loaded, resources, texts = anyio.run(steps)

    assert "good__count" in tools
    assert {"good", "null-metadata", "long-description"} <= {*prompts}
    published = [each.frontmatter.name for each in skills]
    assert "good" in published
    assert len(texts) == len(published)
    assert {"null-metadata", "long-description", "ckm:design"}.isdisjoint(published)
    assert "Body." in loaded.content[0].text
    assert "skill://null-metadata/SKILL.md" in resources
