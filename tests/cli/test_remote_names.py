"""``show`` and ``call`` take a remote skill's address or descriptor where they take a
name.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skillruntime.cli import group
from tests import needs

pytestmark = pytest.mark.processes

pytest.importorskip("uvicorn", reason=needs.to_install("uvicorn"))

SCRIPT = """import json, sys
print(json.dumps({"said": json.load(sys.stdin)["text"]}))
"""
CONTRACT = {
    "version": "1.4.0",
    "description": "Repeats a text",
    "input": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to repeat"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    "run": {"script": "scripts/echo.py"},
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(group, list(arguments), env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the descriptor of a skill that a server of its own process
    serves.
    """
    skills = tmp_path_factory.mktemp("served") / "skills"
    (skills / "echo" / "scripts").mkdir(parents=True)
    (skills / "echo" / "scripts" / "echo.py").write_text(SCRIPT)
    (skills / "echo" / "SKILL.md").write_text(
        "---\nname: echo\ndescription: Repeats a text. Use when.\n---\nCall it.\n"
    )
    (skills / "echo" / "contract.json").write_text(json.dumps(CONTRACT))
    options = ["serve", "-s", str(skills), "--trust", "--memory", "--port", "0"]
    server = subprocess.Popen(
        [sys.executable, "-m", "skillruntime", *options],
        stderr=subprocess.PIPE,
        text=True,
        cwd=skills,
    )
    assert server.stderr is not None
    url = next(line.split()[-1] for line in server.stderr if line.startswith("serving"))
    yield f"{url}/skills/echo"
    server.send_signal(signal.SIGTERM)
    server.stderr.read()
    assert server.wait(300) == 0
    server.stderr.close()


@pytest.fixture
def closed_address() -> str:
    """An address that no server listens at: its port was free a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/skills/echo"


def test_show_takes_an_address(address: str) -> None:
    """The same parameters as for a local skill, in the same form."""
    drawn = run("show", address)
    document = json.loads(run("show", address, "--json").stdout)

    assert drawn.exit_code == 0
    assert "text *\tstring\t\tWhat to repeat" in drawn.stdout
    (contract,) = document["callable"].values()
    assert (document["version"], contract["version"]) == ("1.4.0", "1.4.0")


def test_call_takes_an_address(address: str) -> None:
    """The arguments are repaired and the answer is printed as for a local skill."""
    result = run("call", address, "text=hello", "--json")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["data"] == {"said": "hello"}


def test_a_descriptor_file_is_a_name_too(address: str, tmp_path: Path) -> None:
    """As it is published, saved in a file, and as the descriptor.json of a skill."""
    descriptor = json.loads(run("show", address, "--json").stdout)["descriptor"]
    skill = tmp_path / "skills" / "echo"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: echo\ndescription: Repeats a text. Use when.\n---\nCall it.\n"
    )
    (skill / "descriptor.json").write_text(json.dumps(descriptor))
    file, skills = str(skill / "descriptor.json"), str(skill.parent)

    for name, options, approval in (
        (file, [], []),
        ("echo", ["--skills", skills], ["--trust"]),
    ):
        assert "text *" in run("show", name, *options).stdout
        called = run("call", name, "text=hello", "--json", *options, *approval)
        assert json.loads(called.stdout)["data"] == {"said": "hello"}
    denied = run("call", "echo", "text=hello", "--json", "--skills", skills)
    assert json.loads(denied.stdout)["errors"][0]["code"] == "ACCESS_DENIED"


def test_an_unreachable_server_is_worth_trying_again(closed_address: str) -> None:
    """Exit code 3, and the address without its secrets."""
    secret = closed_address.replace("http://", "http://user:password@")

    shown = run("show", f"{secret}?key=secret")
    called = run("call", closed_address, "text=hello")
    server = closed_address.partition("/skills")[0]
    listed = run("remote", "list", "--url", server)

    assert (shown.exit_code, called.exit_code, listed.exit_code) == (3, 3, 3)
    assert closed_address in shown.stderr
    assert server in listed.stderr
    assert "password" not in shown.stderr
    assert "secret" not in shown.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "No such file"), ("{", "not valid JSON"), ("{}", "INVALID_SKILL")],
)
def test_a_file_that_is_not_a_descriptor_says_so(
    tmp_path: Path, text: str | None, words: str
) -> None:
    """The file is named, and what is wrong with it."""
    file = tmp_path / "descriptor.json"
    if text is not None:
        file.write_text(text)

    result = run("show", str(file))

    assert result.exit_code == 1
    assert words in result.stderr


def test_a_version_is_asked_only_of_local_skills(closed_address: str) -> None:
    """A usage error, before any request."""
    result = run("call", closed_address, "--version", "1.0.0")

    assert result.exit_code == 2
    assert "--version is for local skills" in result.stderr


@pytest.mark.parametrize("url", ["https://...", "http://", "http://user:password@[::1"])
def test_a_url_without_a_host_is_wrong_usage(url: str) -> None:
    """Trying again later would not help, and a password in it is not repeated."""
    result = run("show", url)

    assert result.exit_code == 2
    assert (
        "That URL names no host. Give the address of a skill's descriptor"
        in result.stderr
    )
    assert "password" not in result.stderr


@pytest.mark.parametrize(
    ("path", "says"),
    [("", "does not hold a descriptor"), ("/skills/nope", "does not exist")],
)
def test_another_address_of_the_server_names_the_one_to_give(
    address: str, path: str, says: str
) -> None:
    """The server's own address, and a skill that it does not have."""
    server = address.removesuffix("/skills/echo")

    result = run("show", server + path)

    assert result.exit_code == 1
    assert f"{server}{path}: " in result.stderr
    assert says in result.stderr
    assert "such as https://HOST/skills/NAME" in result.stderr
