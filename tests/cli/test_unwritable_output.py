"""Output that cannot be written: `skillruntime/cli/terminal/streams.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from skillruntime.cli import group
from tests import needs

ROOT = Path(__file__).parents[2]

# Commands that print something, by the words before the options that all of them get.
PRINTING = [
    "--help",
    "--version",
    "call counting --trust -s skills",
    "call counting --trust -s skills --json",
    "call counting {] -s skills --json",
    "call --help",
    "demo --json",
    "diff skills/counting skills/counting",
    "diff skills/counting skills/counting --json",
    "doctor -s skills",
    "doctor -s skills --json",
    "index -s skills",
    "index -s skills --json",
    "init counting --dry-run --force -s skills --json",
    "list -s skills",
    "list -s skills --json",
    "list -s missing --json",
    "lock skills",
    "lock skills --json",
    "mcp-proxy report log.jsonl",
    "mcp-proxy report log.jsonl --json",
    "mcp-proxy wrap mcp.json",
    "mcp-proxy unwrap mcp.json",
    "new another",
    "new another --json",
    "prepare counting -s skills",
    "prepare counting -s skills --json",
    "prompt -s skills",
    "prompt -s skills --json",
    "remote --help",
    "remote describe counting -s skills",
    "remote list --url http://127.0.0.1:9 --json",
    "schema contract",
    "search words -s skills",
    "search words -s skills --json",
    "serve --help",
    "serve --mcp -s skills",
    "serve --new-key someone -s skills",
    "show counting -s skills",
    "show counting -s skills --json",
    "show counting --body -s skills",
    "show --json",
    "test skills --trust",
    "test skills --trust --json",
    "tokens skills",
    "tokens skills --json",
    "tokens skills --advise --all",
    "validate skills",
    "validate skills --github",
    "validate skills --json",
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with a skill, a log of the proxy and a client's file."""
    skill = tmp_path / "skills" / "counting"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: counting\ndescription: Counts words.\n---\nCount.\n", "utf-8"
    )
    (skill / "scripts" / "count.py").write_text("print('{\"words\": 1}')\n", "utf-8")
    contract = {
        "version": "1.0.0",
        "run": {"script": "scripts/count.py"},
        "input": {"type": "object", "properties": {"text": {"type": "string"}}},
    }
    (skill / "contract.json").write_text(json.dumps(contract), "utf-8")
    (tmp_path / "log.jsonl").write_text("", "utf-8")
    servers = {"mcpServers": {"one": {"command": "server", "args": []}}}
    (tmp_path / "mcp.json").write_text(json.dumps(servers), "utf-8")
    return tmp_path


def run(
    directory: Path,
    command: str,
    *,
    stdout: int | None = subprocess.PIPE,
    stderr: int | None = subprocess.PIPE,
) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell does; *stdout* and *stderr* are descriptors, or ``None``
    for a closed one.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SKILLRUNTIME_CACHE": str(directory / "cache"),
        # With it nothing stays in a buffer until the interpreter exits.
        "PYTHONUNBUFFERED": "",
    }
    words = [sys.executable, "-m", "skillruntime", *command.split()]
    if stdout is None:
        words = ["sh", "-c", 'exec "$@" >&-', "sh", *words]
    if stderr is None:
        words = ["sh", "-c", 'exec "$@" 2>&-', "sh", *words]
    return subprocess.run(
        words,
        input='{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n',
        stdout=stdout,
        stderr=stderr,
        text=True,
        cwd=directory,
        env=environment,
    )


def full_device() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def pipe_without_reader() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


needs_full_device = pytest.mark.skipif(
    not Path("/dev/full").is_char_device(), reason="needs /dev/full: Linux"
)
needs_posix = pytest.mark.skipif(os.name != "posix", reason=needs.UNIX)


def test_every_command_is_tried() -> None:
    """A new command joins the list."""
    tried = {command.split()[0] for command in PRINTING}

    assert set(group.list_commands(click.Context(group))) <= tried


@pytest.mark.processes
@pytest.mark.quick_cases(
    [
        "--help",
        "call counting --trust -s skills",
        "diff skills/counting skills/counting --json",
        "list -s skills --json",
        "mcp-proxy unwrap mcp.json",
        "serve --mcp -s skills",
        "show counting --body -s skills",
        "validate skills",
    ]
)
@needs_full_device
@pytest.mark.parametrize("command", PRINTING)
def test_a_full_device_is_named_as_the_reason(directory: Path, command: str) -> None:
    """One sentence and exit code 1, not 120, with which Python ends if it cannot write
    what is left in a buffer.
    """
    full = full_device()
    done = run(directory, command, stdout=full)
    os.close(full)

    assert done.returncode == 1
    assert sentences(done.stderr) == ["No space left on device"]


@pytest.mark.processes
@pytest.mark.quick_cases(
    [
        "--help",
        "list -s skills",
        "mcp-proxy unwrap mcp.json",
        "prepare counting -s skills",
        "serve --new-key someone -s skills",
        "tokens skills --advise --all",
    ]
)
@needs_posix
@pytest.mark.parametrize("command", PRINTING)
def test_a_closed_stdout_is_named_as_the_reason(directory: Path, command: str) -> None:
    """`skillruntime list >&-`: what a command prints is lost, and that is a failure."""
    done = run(directory, command, stdout=None)

    assert done.returncode == 1
    assert sentences(done.stderr) == ["stdout is closed"]


@pytest.mark.processes
@pytest.mark.quick_cases(
    [
        "--help",
        "index -s skills",
        "list -s skills",
        "remote list --url http://127.0.0.1:9 --json",
        "tokens skills",
        "tokens skills --json",
        "tokens skills --advise --all",
    ]
)
@needs_posix
@pytest.mark.parametrize("command", PRINTING)
def test_a_closed_pipe_is_not_worth_a_message(directory: Path, command: str) -> None:
    """`skillruntime list | head -1`: whoever closed the pipe knows."""
    pipe = pipe_without_reader()
    done = run(directory, command, stdout=pipe)
    os.close(pipe)

    assert done.returncode == 1
    assert sentences(done.stderr) == []


def sentences(stderr: str) -> list[str]:
    """Return the reasons that are given for output that is lost; nothing else may be
    reported as wrong.
    """
    assert "Traceback" not in stderr
    assert "Internal error" not in stderr
    assert "Exception ignored" not in stderr
    start = "The output cannot be written: "
    return [
        line.removeprefix(start)
        for line in stderr.splitlines()
        if line.startswith(start)
    ]


@pytest.mark.processes
@needs_full_device
def test_the_proxy_says_why_its_client_gets_nothing(directory: Path) -> None:
    """It reads and writes descriptors itself, and ends when one of them fails; that a
    client has ended is not a failure.
    """
    full, pipe = full_device(), pipe_without_reader()

    on_full = run(directory, "mcp-proxy -- cat", stdout=full)
    on_closed = run(directory, "mcp-proxy -- cat", stdout=None)
    on_pipe = run(directory, "mcp-proxy -- cat", stdout=pipe)
    os.close(full)
    os.close(pipe)

    assert (on_full.returncode, on_closed.returncode) == (1, 1)
    assert sentences(on_full.stderr) == ["No space left on device"]
    assert sentences(on_closed.stderr) == ["stdout is closed"]
    assert (on_pipe.returncode, sentences(on_pipe.stderr)) == (0, [])


@pytest.mark.processes
@needs_full_device
def test_messages_that_cannot_be_written_are_a_failure(directory: Path) -> None:
    """The exit code remains, where no sentence can be read."""
    full = full_device()
    done = run(directory, "show missing", stdout=full, stderr=full)
    wrong = run(directory, "show", stdout=full, stderr=full)
    os.close(full)

    assert (done.returncode, wrong.returncode) == (1, 1)


@pytest.mark.processes
@needs_posix
def test_closed_messages_are_not_missed(directory: Path) -> None:
    """`2>&-` asks for no messages; the command does its work."""
    done = run(directory, "list -s skills", stderr=None)

    assert (done.returncode, "counting" in done.stdout) == (0, True)


@pytest.mark.processes
@needs_posix
def test_nothing_is_lost_where_nothing_is_printed(directory: Path) -> None:
    """A command that says everything on stderr ends as usual without stdout."""
    done = run(directory, "show missing -s skills", stdout=None)

    assert done.returncode == 1
    assert "SKILL_NOT_FOUND" in done.stderr
    assert sentences(done.stderr) == []
