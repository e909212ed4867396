"""``skillruntime new``: what it writes works as it is."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skillruntime.cli import group
from tests import needs

PROJECT = str(Path(__file__).parents[2])


def new(*arguments: str) -> Result:
    return CliRunner().invoke(group, ["new", *arguments], env={"COLUMNS": "200"})


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["script", "function", "instructions"])
def test_a_new_skill_passes_validate_and_its_own_test(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one finding, and a test that runs without any option, beside that of another
    new skill.
    """
    monkeypatch.chdir(tmp_path)

    new("line-count", "--kind", kind)
    document = json.loads(new("word-count", "--kind", kind, "--json").stdout)
    validated = json.loads(
        CliRunner().invoke(group, ["validate", "word-count", "--json"]).stdout
    )
    tested = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            ".",
        ],
        capture_output=True,
        text=True,
        check=False,
        # The plugins of this environment take two seconds to import.
        env={
            **os.environ,
            "PYTHONPATH": PROJECT,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )

    assert "SKILL.md" in document["files"]
    assert (validated["valid"], validated["diagnostics"]) == (True, [])
    assert tested.returncode == 0, tested.stdout


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["script", "function", "instructions"])
def test_the_next_commands_work(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each can be pasted as it is printed."""
    if kind == "instructions":  # the others are tested with --trust
        request.getfixturevalue("some_sandbox")
    document = json.loads(
        new(
            "word-count", "--kind", kind, "--in", str(tmp_path / "my skills"), "--json"
        ).stdout
    )

    commands = [shlex.split(line) for line in document["next"]]
    [tested] = [words for words in commands if "pytest" in words]
    assert tested[:3] == ["python", "-m", "pytest"]
    commands.remove(tested)
    for _, *arguments in commands:
        assert CliRunner().invoke(group, arguments).exit_code == 0


@pytest.mark.processes
def test_a_new_script_passes_test_with_every_call(tmp_path: Path) -> None:
    """`test` is among the next steps, and every call of a new skill has a result, those
    of its own cases too.
    """
    document = json.loads(new("word-count", "--in", str(tmp_path), "--json").stdout)

    [command] = [line for line in document["next"] if "skillruntime test" in line]
    arguments = [*shlex.split(command)[1:], "--json"]
    report = json.loads(CliRunner().invoke(group, arguments).stdout)

    [tested] = report["skills"][0]["callables"]
    assert tested["status"] == "passed"
    assert tested["made"] == tested["succeeded"] + 1
    assert "tests/cases.yaml" in document["files"]


@pytest.mark.usefixtures("some_sandbox")
@pytest.mark.processes
def test_a_new_skill_of_instructions_passes_test(tmp_path: Path) -> None:
    """There is nothing to call, and nothing fails."""
    document = json.loads(
        new("notes", "--kind", "instructions", "--in", str(tmp_path), "--json").stdout
    )

    [command] = [line for line in document["next"] if "skillruntime test" in line]
    ran = CliRunner().invoke(group, shlex.split(command)[1:])

    assert ran.exit_code == 0
    assert "1 skill: 1 passed" in ran.stdout


@pytest.mark.processes
def test_a_new_script_is_called_with_a_contract(tmp_path: Path) -> None:
    """The printed call counts two words."""
    new("word-count", "--in", str(tmp_path))

    arguments = [
        "call",
        "word-count",
        "text=hello world",
        "--skills",
        str(tmp_path),
        "--trust",
        "--json",
    ]
    assert json.loads(CliRunner().invoke(group, arguments).stdout)["data"] == {
        "words": 2
    }


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("My Skill", "my-skill"),
        ("a--b", "a-b"),
        ("-a", "a"),
        ("über", "ber"),
        ("..", "my-skill"),
        ("x" * 65, "x" * 64),
    ],
)
def test_a_name_that_the_format_forbids_is_refused_with_one_that_it_allows(
    name: str, proposed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is written."""
    monkeypatch.chdir(tmp_path)

    result = new("--", name)

    assert result.exit_code == 2
    assert f"Try '{proposed}'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_existing_directory_is_left_alone(tmp_path: Path) -> None:
    """Exit code 1 and the next step; nothing in it changes."""
    (tmp_path / "word-count").mkdir()
    (tmp_path / "word-count" / "SKILL.md").write_text("mine")

    result = new("word-count", "--in", str(tmp_path))

    assert result.exit_code == 1
    assert "already exists" in result.stderr
    assert [file.name for file in (tmp_path / "word-count").iterdir()] == ["SKILL.md"]
    assert (tmp_path / "word-count" / "SKILL.md").read_text() == "mine"


def test_the_next_command_installs_pytest_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fresh environment has no pytest, so ``python -m pytest`` alone would fail."""
    monkeypatch.setattr("skillruntime.cli.new.find_spec", lambda name: None)

    document = json.loads(new("word-count", "--in", str(tmp_path), "--json").stdout)

    assert document["next"][2].startswith(
        "python -m pip install pytest && python -m pytest "
    )


def test_a_directory_of_skills_that_is_the_current_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``./skills`` is looked in, not ``.``: a newcomer who stands in ``skills`` reads
    what to add.
    """
    new("word-count", "--in", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(
        group,
        ["call", "word-count", "text=one"],
        env={"HOME": str(tmp_path), "COLUMNS": "200"},
    )

    assert "This directory has skills: use --skills ." in result.output


SERVER = Path(__file__).parents[1] / "mcp_proxy" / "sdk_server.py"


@pytest.mark.processes
def test_a_tool_of_an_mcp_server_becomes_a_skill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its schema is the contract, and the test of the new skill passes."""
    needs.package("mcp")
    monkeypatch.chdir(tmp_path)
    command = shlex.join([sys.executable, str(SERVER), "stdio"])

    made = json.loads(new("--from-mcp", command, "add", "--json").stdout)
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "add"],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": PROJECT,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )

    contract = json.loads(Path("add", "contract.json").read_text("utf-8"))
    assert made["name"] == "add"
    assert contract["version"] == "1.0.0"
    assert contract["input"]["required"] == ["a"]
    assert "2 passed" in tested.stdout


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (shlex.join([sys.executable, str(SERVER), "stdio"]), "it has: add, count"),
        ("no-such-command-here", "is not an MCP server that starts"),
        (" ", "is empty"),
    ],
)
def test_a_server_or_a_tool_that_is_not_there_is_named(
    command: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written."""
    needs.package("mcp")
    monkeypatch.chdir(tmp_path)

    result = new("--from-mcp", command, "nope")

    assert result.exit_code == 1
    assert fault in result.stderr
    assert list(tmp_path.iterdir()) == []
