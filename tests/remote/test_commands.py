"""The command line of remote skills: serve in one process, describe, invoke and look
after executions from another.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx2
import pytest

from skillruntime.cli.remoting.log_in import log_in
from skillruntime.remote import SkillDescriptor, variable_for
from tests import needs
from tests.in_process import Ran, run_command
from tests.remote.parts import OAuth2Config
from tests.server.test_hostile_server import mean, say

pytestmark = pytest.mark.processes
pytest.importorskip("starlette", reason=needs.to_install("starlette"))

SCRIPT = """import json, sys
print(json.dumps({"said": json.load(sys.stdin)["text"]}))
"""
CONTRACT = {
    "version": "1.4.0",
    "description": "Says it again",
    "input": {
        "type": "object",
        "properties": {"text": {"type": "string", "minLength": 1}},
        "required": ["text"],
        "additionalProperties": False,
    },
    "output": {"type": "object", "required": ["said"]},
    "run": {"script": "scripts/echo.py"},
    "annotations": {"idempotent": True},
}


class Running:
    """A server that was started by the command line."""

    def __init__(self, directory: Path) -> None:
        self.skills, self.data = directory / "skills", directory / "data"
        for name, changes in (
            ("echo", {}),
            ("chore", {"capability_type": "task"}),
            ("secret", {"access": "private", "auth": {"type": "api_key"}}),
        ):
            folder = self.skills / name / "scripts"
            folder.mkdir(parents=True)
            (folder / "echo.py").write_text(SCRIPT)
            (folder.parent / "SKILL.md").write_text(
                f"---\nname: {name}\ndescription: Says it again\n---\nCall it.\n"
            )
            (folder.parent / "contract.json").write_text(json.dumps(CONTRACT))
            if changes:
                written = json.loads(
                    run_command(
                        "remote", "describe", name, "-s", str(self.skills), "--json"
                    ).stdout
                )
                (folder.parent / "descriptor.json").write_text(
                    json.dumps({**written, **changes})
                )
        self.key = run_command(
            "serve", "--data", str(self.data), "--new-key", "op", "--operator"
        ).stdout.strip()
        options = [
            "-s",
            str(self.skills),
            "--trust",
            "--data",
            str(self.data),
            "--port",
            "0",
            "--log",
            "--public",
        ]
        options += ["echo", "chore", "secret"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "skillruntime", "serve", *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.said = []
        for line in self.process.stderr:
            self.said.append(line.strip())
            if line.startswith("serving"):
                break
        self.url = self.said[-1].rpartition(" ")[2]

    def ask(self, *arguments: str) -> Ran:
        """Run ``remote`` with the operator's key."""
        environment = {variable_for(self.url): self.key}
        return run_command(
            "remote", *arguments, "--url", self.url, "--json", **environment
        )


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for all commands; it must end by itself on a signal."""
    server = Running(tmp_path_factory.mktemp("served"))
    yield server
    server.process.send_signal(signal.SIGTERM)
    assert server.process.stderr is not None
    server.process.stderr.read()
    assert server.process.wait(300) == 0
    server.process.stderr.close()


def test_serve_says_what_and_where(running: Running) -> None:
    """On stderr: each skill with its access, then the address."""
    assert "echo 1.4.0 (public)" in running.said
    assert running.said[-1].startswith("serving 3 skills at http://127.0.0.1:")


def test_describe_prints_what_a_server_would_publish(running: Running) -> None:
    """A whole descriptor; an unknown skill is an error as in other commands."""
    described = run_command(
        "remote", "describe", "echo", "-s", str(running.skills), "--json"
    )
    unknown = run_command(
        "remote", "describe", "nothing", "-s", str(running.skills), "--json"
    )

    descriptor = SkillDescriptor.from_dict(json.loads(described.stdout))
    assert (descriptor.id, descriptor.version) == ("echo", "1.4.0")
    assert unknown.exit_code == 1
    assert json.loads(unknown.stdout)["errors"][0]["code"] == "SKILL_NOT_FOUND"


def test_a_second_server_on_one_data_directory_exits_with_3(running: Running) -> None:
    """Two would run live work twice; the message names the two ways out."""
    arguments = [
        "-s",
        str(running.skills),
        "--trust",
        "--data",
        str(running.data),
        "--port",
        "0",
    ]
    second = run_command("serve", *arguments, "echo", "chore", "secret")

    assert second.exit_code == 3
    assert "--wait" in second.stderr and "--database" in second.stderr


def test_invoke_follows_to_the_end(running: Running, tmp_path: Path) -> None:
    """By URL or by file; with a malformed argument repaired; and resumed by the
    execution's id.
    """
    url = f"{running.url}/skills/echo"
    by_url = run_command("remote", "invoke", url, '{"Text": "Hello"}', "--json")
    shown = json.loads(by_url.stdout)
    path = tmp_path / "descriptor.json"
    described = run_command(
        "remote",
        "describe",
        "echo",
        "-s",
        str(running.skills),
        "--base-url",
        running.url,
        "--json",
    )
    path.write_text(described.stdout)
    by_file = run_command("remote", "invoke", str(path), "text=Hello", "--json")
    resumed = run_command(
        "remote", "invoke", url, "--resume", shown["metadata"]["execution_id"], "--json"
    )

    assert by_url.exit_code == 0, by_url.stderr
    assert shown["data"] == {"said": "Hello"}
    assert json.loads(by_file.stdout)["data"] == {"said": "Hello"}
    assert json.loads(resumed.stdout)["data"] == {"said": "Hello"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["/skills/echo", "text="], "INVALID_INPUT"),
        (["/skills/nothing", "text=x"], "SKILL_NOT_FOUND"),
        (["/skills/echo", "--resume", "exec-none"], "TOOL_EXECUTION_FAILED"),
    ],
)
def test_what_cannot_be_invoked_is_reported(
    running: Running, arguments: list[str], code: str
) -> None:
    """As an envelope, with exit code 1 or 3."""
    path, *rest = arguments
    result = run_command("remote", "invoke", running.url + path, *rest, "--json")

    assert result.exit_code in (1, 3)
    assert json.loads(result.stdout)["errors"][0]["code"] in (
        code,
        "PARAM_OUT_OF_RANGE",
    )


def test_executions_are_listed_shown_cancelled_and_completed(running: Running) -> None:
    """Operators see everyone's; a task waits until its worker reports the result."""
    url = f"{running.url}/skills/chore"
    begun = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "skillruntime",
                *("remote", "invoke", url, f"text={n}", "--json"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    waiting: list[dict[str, Any]] = []
    while len(waiting) < 2:
        listed = json.loads(running.ask("list", "--all").stdout)["executions"]
        waiting = [
            each
            for each in listed
            if each["skill_id"] == "chore" and each["status"] == "accepted"
        ]
    first, second = (each["execution_id"] for each in waiting)

    completed = running.ask("complete", first, '{"said": "done by hand"}')
    cancelled = running.ask("cancel", second)
    shown = running.ask("show", first)
    answers = [json.loads(process.communicate(timeout=300)[0]) for process in begun]

    assert json.loads(completed.stdout)["status"] == "completed"
    assert json.loads(cancelled.stdout)["status"] == "cancelled"
    assert json.loads(shown.stdout)["output"] == {"said": "done by hand"}
    assert sorted(answer["status"] for answer in answers) == ["failed", "success"]


def test_a_other_caller_lists_nothing(running: Running) -> None:
    """The message names the variable to set."""
    result = run_command("remote", "list", "--url", running.url)

    assert result.exit_code == 1
    assert (
        "AUTH_REQUIRED" in result.stderr and variable_for(running.url) in result.stderr
    )


def test_a_key_that_the_server_refuses_is_named(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who has set it is not asked to set it."""
    monkeypatch.setenv(variable_for(running.url), "sk-revoked")

    result = run_command("remote", "list", "--url", running.url)

    assert result.exit_code == 1
    assert result.stderr == (
        f"The server does not accept the key in {variable_for(running.url)}\n"
    )


def test_a_caller_without_a_key_cannot_lose_one(tmp_path: Path) -> None:
    """A misspelt name would leave the key valid."""
    data = str(tmp_path)
    assert run_command("serve", "--data", data, "--new-key", "ann").exit_code == 0

    misspelt = run_command("serve", "--data", data, "--revoke-key", "anne")
    right = run_command("serve", "--data", data, "--revoke-key", "ann")

    assert (misspelt.exit_code, right.exit_code) == (1, 0)
    assert "'anne' has no key: nothing was revoked" in misspelt.stderr


def test_a_private_skill_is_invoked_with_the_key_for_its_host(running: Running) -> None:
    """Section 7: without it, the skill does not exist."""
    url = f"{running.url}/skills/secret"
    other_caller = run_command("remote", "invoke", url, "text=x", "--json")
    known = run_command(
        "remote",
        "invoke",
        url,
        "text=x",
        "--json",
        **{variable_for(running.url): running.key},
    )

    assert json.loads(other_caller.stdout)["errors"][0]["code"] == "SKILL_NOT_FOUND"
    assert json.loads(known.stdout)["data"] == {"said": "x"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("document", "status"),
    [
        ([], 200),
        (None, 200),
        ({}, 200),
        ({"executions": [5]}, 200),
        ([1], 404),
        ({"error": "x"}, 500),
        ({}, 302),
    ],
)
async def test_a_server_that_is_not_a_skill_server_is_reported(
    document: Any, status: int
) -> None:
    """The report is one line for every answer of that server."""
    async with mean(say(document, status)) as server:
        url = f"http://127.0.0.1:{server.port}"
        result = await anyio.to_thread.run_sync(
            run_command, "remote", "list", "--url", url
        )

    assert result.exit_code == 1
    assert "is it a skill server?" in result.stderr


def test_a_server_in_memory_knows_the_same_keys(running: Running) -> None:
    """``--memory`` affects executions only; authentication is unchanged."""
    options = [
        "-s",
        str(running.skills),
        "--trust",
        "--data",
        str(running.data),
        "--port",
        "0",
        "--memory",
        "echo",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "skillruntime", "serve", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        url = (
            next(line for line in process.stderr if line.startswith("serving"))
            .strip()
            .rpartition(" ")[2]
        )
        listed = run_command(
            "remote", "list", "--url", url, "--json", **{variable_for(url): running.key}
        )
    finally:
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        process.wait(300)
        process.stderr.close()

    assert json.loads(listed.stdout) == {"executions": []}


@pytest.mark.parametrize(
    "base", ["nonsense", "ftp://example.com", "http://[::1", "http://example.com:99999"]
)
def test_a_base_url_that_is_none_is_refused(running: Running, base: str) -> None:
    """Before an unusable descriptor is published."""
    result = run_command(
        "remote",
        "describe",
        "echo",
        "-s",
        str(running.skills),
        "--base-url",
        base,
        "--json",
    )

    assert result.exit_code == 1
    assert "base URL" in json.loads(result.stdout)["errors"][0]["message"]


def test_an_address_that_is_not_a_url_is_reported() -> None:
    """The command fails before it sends a request."""
    listed, invoked = (
        run_command(*words)
        for words in (
            ("remote", "list", "--url", "http://[::1"),
            ("remote", "invoke", "http://["),
        )
    )

    assert "is not a URL" in listed.stderr and "names no host" in invoked.stderr
    assert (listed.exit_code, invoked.exit_code) == (1, 2)


def test_schema_prints_the_descriptors_schema() -> None:
    """The JSON Schema that descriptors are read by."""
    document = json.loads(run_command("schema", "descriptor").stdout)

    assert (
        document["title"] == "Skill descriptor" and "endpoint" in document["required"]
    )


@pytest.mark.anyio
async def test_a_person_logs_in_with_a_browser(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The address is printed, the browser comes back to a loopback port, and the code
    becomes a token with PKCE.
    """
    needs.package("authlib")
    tokens: list[str] = []
    async with (
        mean(say({"access_token": "t-1", "token_type": "Bearer"})) as issuer,
        anyio.create_task_group() as tasks,
    ):
        config = OAuth2Config(
            f"http://127.0.0.1:{issuer.port}/token", "https://issuer.example/authorize"
        )

        async def person() -> None:
            tokens.append(
                (await anyio.to_thread.run_sync(log_in, config, "cli")).access
            )

        tasks.start_soon(person)
        said = ""
        found = None
        while found is None:
            await anyio.lowlevel.checkpoint()
            said += capsys.readouterr().err
            # With the white space behind it, the address is whole.
            found = re.search(r"https://issuer\.example/\S+(?=\s)", said)
        asked = {
            name: values[0]
            for name, values in parse_qs(urlsplit(found[0]).query).items()
        }
        async with httpx2.AsyncClient(trust_env=False) as browser:
            page = await browser.get(
                asked["redirect_uri"], params={"code": "c0de", "state": asked["state"]}
            )

    assert tokens == ["t-1"]
    assert "close this page" in page.text
    assert b"code_verifier=" in issuer.received[0] and b"c0de" in issuer.received[0]
