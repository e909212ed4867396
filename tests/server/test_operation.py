"""What operators set and read: variables, help, who may reach the server, metrics,
readiness, what is left out.
"""

from __future__ import annotations

import gc
import json
import signal
import socket
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import anyio
import click
import pytest
from click.testing import CliRunner

from skillruntime.catalog import discover
from skillruntime.cli.serve import command
from skillruntime.contract import Contract
from skillruntime.errors import InvalidSkillError, SkillNotFoundError, SkillRuntimeError
from skillruntime.remote import AddressGuard
from skillruntime.runtime import Grants, SkillRuntime
from skillruntime.server import (
    DatabaseAwayError,
    Hosting,
    PublishedSkill,
    Webhooks,
    add_key,
    describe,
    host_skills,
)
from tests.server.parts import Ticket, timed_out
from tests.server.serving import (
    KEY,
    OPERATOR_KEY,
    serve_in_memory,
    serve_over_socket_from_memory,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", ["repotr", "report/sumarize"])
async def test_grants_for_a_missing_skill_are_refused_at_the_start(
    name: str, tmp_path: Path
) -> None:
    """A mistyped name would be noticed when a script lacks the network."""
    skill(tmp_path / "skills", "report", "1.0.0")
    runtime = SkillRuntime(
        discover(tmp_path / "skills"), grants={name: Grants(network=True)}
    )

    with pytest.raises(SkillNotFoundError, match=name):
        await host_skills(runtime, Hosting(data=tmp_path / "data"))

    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("executions.db", "executions.db cannot be opened as a SQLite database: file"),
        ("secret", "secret has 9 bytes, and a secret has 32"),
    ],
)
async def test_a_damaged_file_of_the_directory_is_named(
    name: str, said: str, tmp_path: Path
) -> None:
    """With a short secret, the ids of executions could be guessed."""
    (tmp_path / name).write_bytes(b"destroyed")

    with pytest.raises(SkillRuntimeError, match=said):
        await served(tmp_path, data=tmp_path)
    gc.collect()  # Python 3.13 warns of a connection that is still open


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """It is not an address at which the server cannot listen."""
    (tmp_path / "file").touch()
    skill(tmp_path / "skills", "report", "1.0.0")
    options = ["-s", str(tmp_path / "skills"), "--data", str(tmp_path / "file" / "x")]

    result = CliRunner().invoke(command, options)

    assert result.exit_code == 1
    assert result.stderr == f"cannot use {tmp_path / 'file' / 'x'}: Not a directory\n"


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


def test_a_variable_without_effect_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the nearest one; those of keys and of other commands are none of its
    business.
    """
    monkeypatch.setenv("SKILLRUNTIME_CAPACTY", "3")
    monkeypatch.setenv("SKILLRUNTIME_API_KEY_EXAMPLE_COM", "k")
    monkeypatch.setenv("SKILLRUNTIME_CACHE", "c")

    result = CliRunner().invoke(command, ["--database", "skills.db"])

    assert [line for line in result.stderr.splitlines() if "warning" in line] == [
        "warning: the variable SKILLRUNTIME_CAPACTY has no effect; did you mean "
        "SKILLRUNTIME_CAPACITY?"
    ]


def test_networks_of_webhooks_are_for_a_server_that_sends_some() -> None:
    """And a value that is not a network is refused."""
    alone = CliRunner().invoke(command, ["--webhook-allow", "10.0.0.0/8"])
    wrong = CliRunner().invoke(command, ["--webhooks", "--webhook-allow", "inside"])

    assert (alone.exit_code, wrong.exit_code) == (2, 2)
    assert "--webhook-allow needs --webhooks" in alone.stderr


async def test_a_webhook_may_be_in_a_network_that_is_allowed() -> None:
    """In no other private one."""
    guard = AddressGuard(networks=(ip_network("10.0.0.0/8"),))
    webhooks = Webhooks(b"secret", guard=guard)
    addresses = ["http://10.1.2.3/a", "http://192.168.0.1/", "http://127.0.0.1:80/"]

    allowed = [await webhooks.allows(address) for address in addresses]

    assert allowed == [True, False, False]


def test_wrong_grants_and_a_file_as_workspace_are_refused_at_the_start(
    tmp_path: Path,
) -> None:
    """Not at the first call that needs them."""
    (tmp_path / "file").touch()
    wrong: Any = {"good": {"network": True}}

    with pytest.raises(TypeError, match=r'grants are \{"skill": Grants'):
        SkillRuntime(grants=wrong)
    with pytest.raises(InvalidSkillError, match=r"is (a file, )?not a directory"):
        SkillRuntime(workspace=tmp_path / "file")


@pytest.mark.parametrize(
    ("seconds", "limit"), [(30.0, "30000ms"), (0.25, "250ms"), (0.0004, "0.4 ms")]
)
def test_a_timeout_below_a_millisecond_is_not_nothing(
    seconds: float, limit: str
) -> None:
    """Whole milliseconds are written as in section 6.6."""
    ticket = Ticket(
        "exec-a", "ann", "s", "s@1", "s", {}, fingerprint="f", timeout=seconds
    )

    error = timed_out(ticket).error

    assert error is not None
    assert error.message == (
        f"Skill execution exceeded the configured timeout of {limit}"
    )


def test_mcp_refuses_what_it_does_not_keep() -> None:
    """Who may call is for MCP the token's to say."""
    result = CliRunner().invoke(command, ["--mcp", "--http", "--access", "private"])

    assert result.exit_code == 2
    assert "clients send SKILLRUNTIME_MCP_TOKEN" in result.stderr


def test_mcp_refuses_a_database_that_it_would_not_use() -> None:
    """Its operator would believe that tasks are shared."""
    options = ["--mcp", "--database", "postgresql://h/d"]

    result = CliRunner().invoke(command, options)

    assert result.exit_code == 2
    assert "--database is not for --mcp" in result.stderr


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
        SkillRuntimeError, match="--new-key NAME`, or serve everyone with --public"
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
    assert (
        'skillruntime_calls_by_version_total{skill="echo",versions="current"} 1.0'
        in lines
    )
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


@pytest.mark.processes
def test_a_server_names_the_keys_that_it_does_not_read(tmp_path: Path) -> None:
    """They were made without its --data, so it serves everyone."""
    start = [sys.executable, "-m", "skillruntime", "serve"]
    subprocess.run([*start, "--new-key", "ann"], cwd=tmp_path, check=True)
    (tmp_path / "skills").mkdir()

    server = subprocess.Popen(
        [*start, "-s", "skills", "--data", "data", "--port", "0"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    said = server.stderr.readline()
    server.kill()
    server.communicate()

    assert said == (
        "warning: this server does not read the keys in .skillruntime/keys.json; make "
        "its keys with --data data\n"
    )
