"""What operators set and read: variables, help, who may reach the server, metrics,
readiness, what is left out.
"""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import anyio
import click
import pytest
from click.testing import CliRunner

from skillruntime.catalog import discover
from skillruntime.cli.serve import command
from skillruntime.contract import Contract
from skillruntime.errors import InvalidSkillError, SkillRuntimeError
from skillruntime.runtime import SkillRuntime
from skillruntime.server import (
    DatabaseAwayError,
    Hosting,
    PublishedSkill,
    add_key,
    describe,
    host_skills,
)
from tests.server.serving import (
    KEY,
    OPERATOR_KEY,
    serve_in_memory,
    serve_over_socket_from_memory,
)

pytestmark = pytest.mark.anyio


def test_every_option_is_a_variable() -> None:
    """So that a password in the URL of a database stands in no command line."""
    names = {
        max(each.opts, key=len): each.envvar
        for each in command.params
        if isinstance(each, click.Option)
    }

    assert names["--database"] == "SKILLRUNTIME_DATABASE"
    assert names["--connections-per-address"] == "SKILLRUNTIME_CONNECTIONS_PER_ADDRESS"
    assert all(each is not None for each in names.values())


def test_a_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the option of its name would be."""
    monkeypatch.setenv("SKILLRUNTIME_DATABASE", "skills.db")

    result = CliRunner().invoke(command, [])

    assert result.exit_code == 2
    assert (
        "'skills.db' is not a URL such as postgresql://user@host/skills"
        in result.stderr
    )


def test_mcp_refuses_what_it_does_not_keep() -> None:
    """Who may call is for MCP the token's to say."""
    result = CliRunner().invoke(command, ["--mcp", "--http", "--access", "private"])

    assert result.exit_code == 2
    assert "clients send SKILLRUNTIME_MCP_TOKEN" in result.stderr


def test_help_begins_with_the_ten_options_that_everyone_needs() -> None:
    """The rest follows by group, and none is missing."""
    text = CliRunner().invoke(command, ["--help"]).stdout
    first = text.partition("Options:\n")[2].partition("\n\n")[0]

    assert sum(line.startswith("  -") for line in first.splitlines()) == 10
    assert [
        line
        for line in text.splitlines()
        if line.endswith(":") and not line.startswith(" ")
    ] == [
        "Options:",
        "Files:",
        "Callers:",
        "Limits:",
        "Starts and stops:",
        "Network and logs:",
        "MCP:",
        "Others:",
    ]
    assert all(
        max(each.opts, key=len) in text
        for each in command.params
        if isinstance(each, click.Option)
    )


def skill(directory: Path, name: str, descriptor_version: str) -> None:
    """Write a skill whose contract has version 1.0.0, and whose descriptor has another
    one or not.
    """
    place = directory / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: Says it\n---\nSay it.\n", "utf-8"
    )
    contract = {
        "version": "1.0.0",
        "input": {"type": "object", "properties": {}},
        "run": {"script": "scripts/say.py"},
    }
    (place / "contract.json").write_text(json.dumps(contract), "utf-8")
    (place / "scripts").mkdir()
    (place / "scripts" / "say.py").write_text("print('{}')\n", "utf-8")
    document = {**contract, "description": "Says it", "version": descriptor_version}
    descriptor = describe(
        name, Contract.from_dict(document, name=name), base_url="https://example.com"
    )
    (place / "descriptor.json").write_text(json.dumps(descriptor.to_dict()), "utf-8")


async def served(directory: Path, **options: Any) -> list[str]:
    """Serve a directory of skills until it listens; return the ids of what is
    served.
    """
    ids: list[str] = []

    def ready(base_url: str, published: list[PublishedSkill], left: int) -> None:
        ids.extend(each.id for each in published)
        signal.raise_signal(signal.SIGTERM)

    hosting = Hosting(
        **{"port": 0, "data": None, "public": True, "drain_seconds": 0.0, **options}
    )
    await host_skills(SkillRuntime(discover(directory)), hosting, on_ready=ready)
    return ids


async def test_a_skill_whose_descriptor_differs_does_not_stop_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All that differ are named, and left out."""
    for name, version in (("good", "1.0.0"), ("old", "0.9.0"), ("older", "0.8.0")):
        skill(tmp_path, name, version)

    ids = await served(tmp_path)
    with pytest.raises(InvalidSkillError) as refused:
        await served(tmp_path, strict=True)

    assert ids == ["good"]
    assert [each for each in caplog.messages if each.endswith("it is not served")] == [
        "old: The descriptor.json and the contract of old differ in version; it is "
        "not served",
        "older: The descriptor.json and the contract of older differ in version; it "
        "is not served",
    ]
    assert "of old differ" in str(refused.value) and "of older differ" in str(
        refused.value
    )


async def test_a_server_beyond_this_machine_needs_keys_or_is_public(
    tmp_path: Path,
) -> None:
    """Everyone who reaches it could call the skills; a key, or a decision, is
    needed.
    """
    skill(tmp_path / "skills", "good", "1.0.0")
    data = tmp_path / "data"

    with pytest.raises(
        SkillRuntimeError,
        match="make one with --new-key, or serve everyone with --public",
    ):
        await served(tmp_path / "skills", host="0.0.0.0", data=data, public=False)
    for_everyone = await served(
        tmp_path / "skills", host="0.0.0.0", data=data, public=True
    )
    add_key(data / "keys.json", "ann")
    with_key = await served(
        tmp_path / "skills", host="0.0.0.0", data=data, public=False
    )

    assert for_everyone == with_key == ["good"]


async def test_metrics_tell_how_executions_end() -> None:
    """By skill, status and code; how long they waited and ran; and that the database
    answers.
    """
    async with serve_in_memory() as served:
        await served.invoke("echo", prefer="wait=60")
        await served.invoke("fails", prefer="wait=60")
        text = (await served.ask("GET", "/metrics", key=OPERATOR_KEY)).body.decode()

    lines = text.splitlines()
    assert (
        'skillruntime_executions_ended_total{code="",skill="echo",status="completed"} '
        "1.0" in lines
    )
    assert [
        each
        for each in lines
        if each.startswith("skillruntime_executions_ended_total") and "fails" in each
    ]
    assert 'skillruntime_execution_seconds_count{skill="echo"} 1.0' in lines
    assert "skillruntime_queue_seconds_count 2.0" in lines
    assert "skillruntime_webhook_failures_total 0.0" in lines
    assert "skillruntime_database_up 1.0" in lines


async def test_a_server_without_its_database_is_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its metrics say so, and /health answers still: to start it again would not
    help.
    """

    async def away(*values: Any) -> Any:
        raise DatabaseAwayError("The database does not answer")

    async with serve_in_memory() as served:
        for name in ("get", "counts"):
            monkeypatch.setattr(served.service.executions, name, away)
        ready, health = (
            await served.ask("GET", "/ready"),
            await served.ask("GET", "/health"),
        )
        metrics = await served.ask("GET", "/metrics", key=KEY)

    assert (ready.status, health.status, metrics.status) == (503, 200, 200)
    assert "skillruntime_database_up 0.0" in metrics.body.decode()


@pytest.mark.parametrize(
    ("proxies", "statuses"),
    [((), [True, True, False]), (("127.0.0.0/8",), [True, True, True])],
)
async def test_one_address_has_a_part_of_the_connections(
    proxies: tuple[str, ...], statuses: list[bool]
) -> None:
    """The third of two is refused with 429; behind a trusted proxy are many callers."""
    async with serve_over_socket_from_memory(
        trusted_proxies=proxies, connections_per_address=2
    ) as served:
        port = int(served.base.rpartition(":")[2])
        answered = await anyio.to_thread.run_sync(ask_at_once, port, 3)

    assert [status == 200 for status in answered] == statuses
    assert statuses[2] or answered[2] == 429


def ask_at_once(port: int, number: int) -> list[int]:
    """Open so many connections, and ask on each; return the statuses in the order of
    opening.
    """
    connections, statuses = [], []
    for _ in range(number):
        connection = socket.create_connection(("127.0.0.1", port), timeout=300)
        connections.append(connection)
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        statuses.append(int(connection.recv(4096)[9:12]))
    for connection in connections:
        connection.close()
    return statuses
