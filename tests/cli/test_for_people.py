"""What a person at a shell or in a notebook is shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillruntime import SkillRuntime, discover
from skillruntime.cli import group
from tests.skill_files import write_skill_files

CONTRACT = {
    "input": {
        "type": "object",
        "properties": {"count": {"type": "integer"}},
        "additionalProperties": False,
    },
    "run": {"script": "scripts/echo.py"},
}


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """A directory with one skill that has tests."""
    files = {
        "contract.json": json.dumps(CONTRACT),
        "scripts/echo.py": "import sys\nprint(sys.stdin.read())\n",
        "references/guide.md": "guide",
        "tests/cases.yaml": "cases: []",
    }
    write_skill_files(tmp_path / "skills", "echo", "Echoes <b>a number</b>.", files)
    return tmp_path / "skills"


def test_a_loaded_skill_does_not_offer_its_tests(skills: Path) -> None:
    """They are for its author; the other files are listed."""
    session = SkillRuntime(discover(skills)).session()

    text = session.activate("echo")

    assert "references/guide.md" in text
    assert "tests/cases.yaml" not in text


def test_remote_call_is_answered_with_the_command_that_calls() -> None:
    """By letters alone the nearest would be ``cancel``, which ends something."""
    done = CliRunner().invoke(group, ["remote", "call", "x"])

    assert done.exit_code == 2
    assert "Did you mean 'invoke'?" in done.output


@pytest.mark.processes
def test_the_proxy_names_the_command_that_it_cannot_start() -> None:
    """And says why, without the number of the system's error."""
    done = CliRunner().invoke(group, ["mcp-proxy", "--", "no-such-command"])

    assert done.exit_code == 1
    assert (
        "the server's command 'no-such-command' cannot be started: "
        "No such file or directory" in done.output
    )


def test_the_help_of_list_has_no_trust(skills: Path) -> None:
    """It runs nothing. The option is still taken."""
    shown = CliRunner().invoke(group, ["list", "--help"])
    listed = CliRunner().invoke(group, ["list", "--skills", str(skills), "--trust"])

    assert "--trust" not in shown.output
    assert (listed.exit_code, "trusted" in listed.output) == (0, True)


@pytest.mark.processes
def test_the_answer_about_a_missing_file_has_no_traceback(tmp_path: Path) -> None:
    """It says where the file was looked for; the traceback is the script's."""
    contract = {
        "input": {"type": "object", "properties": {"path": {"type": "string"}}},
        "run": {"script": "scripts/read.py"},
    }
    files = {
        "contract.json": json.dumps(contract),
        "scripts/read.py": ("import json, sys\nopen(json.load(sys.stdin)['path'])\n"),
    }
    write_skill_files(tmp_path / "skills", "read", "Reads.", files)
    runtime = SkillRuntime(
        discover(tmp_path / "skills", trusted=True), workspace=tmp_path
    )

    response = runtime.call_sync("read", {"path": "none.txt"})

    assert "'none.txt' is not in " in str(response.errors[0].suggested_action)
    assert "No such file or directory: 'none.txt'" in response.errors[0].message
    assert "Traceback" not in response.to_json()


@pytest.mark.processes
@pytest.mark.parametrize("command", ["call", "remote invoke"])
def test_a_person_is_not_asked_to_shorten_values(skills: Path, command: str) -> None:
    """What was cut off was typed, and a bracket is missing."""
    options = ["--skills", str(skills), "--trust"]
    words = ["call", "echo", '{"count": [3', *options]
    if command == "remote invoke":
        described = CliRunner().invoke(group, ["remote", "describe", "echo", *options])
        descriptor = skills / "descriptor.json"
        descriptor.write_text(described.output, "utf-8")
        words = ["remote", "invoke", str(descriptor), '{"count": [3']

    done = CliRunner().invoke(group, words)

    assert "TRUNCATED_INPUT" in done.output
    assert "Close every bracket and quote" in done.output
    assert "shorten" not in done.output


def test_the_help_of_access_counts_every_kind_of_credentials() -> None:
    """Keys, tokens and the host's own function."""
    shown = " ".join(CliRunner().invoke(group, ["serve", "--help"]).output.split())

    assert "if there are keys, --jwks or --authenticator; otherwise everyone" in shown


def test_a_notebook_shows_the_repairs_of_a_response(skills: Path) -> None:
    """Each with the value before and after."""
    runtime = SkillRuntime()
    runtime.implements("double", contract=CONTRACT)(
        lambda arguments: {"n": 2 * arguments["count"]}
    )

    shown = runtime.call_sync("double", {"count": "7"})._repr_html_()

    assert "<td>/count</td><td><code>&quot;7&quot;</code></td>" in shown
    assert "<td><code>7</code></td>" in shown
    assert "&quot;n&quot;: 14" in shown


def test_a_notebook_shows_the_next_step_of_a_refused_call() -> None:
    """With what was sent as text, whatever it is."""
    runtime = SkillRuntime()
    runtime.implements("double", contract=CONTRACT)(lambda arguments: {})

    shown = runtime.call_sync("double", {"count": "<b>"})._repr_html_()

    assert "<b>INVALID_INPUT</b>" in shown or "<b>INVALID_TYPE</b>" in shown
    assert "&lt;b&gt;" in shown


def test_a_notebook_shows_the_skills_of_a_catalog(skills: Path) -> None:
    """A description is text, not markup."""
    shown = discover(skills)._repr_html_()

    assert "<td>echo</td>" in shown
    assert "Echoes &lt;b&gt;a number&lt;/b&gt;." in shown


@pytest.mark.parametrize(
    ("is_terminal", "term", "as_json", "is_shown"),
    [
        (True, "xterm", False, True),
        (False, "xterm", False, False),
        (True, "dumb", False, False),
        (True, "xterm", True, False),
    ],
)
def test_long_work_is_shown_on_a_terminal_alone(
    skills: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_terminal: bool,
    term: str,
    as_json: bool,
    is_shown: bool,
) -> None:
    """Nothing is drawn in a log, for a program, or where a cursor cannot move."""
    drawn: list[str] = []

    class Screen:
        is_terminal = True

        def status(self, description: str) -> Screen:
            drawn.append(description)
            return self

        def __enter__(self) -> None: ...
        def __exit__(self, *exception: object) -> None: ...

        def print(self, *parts: object) -> None: ...

    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path / "cache"))
    output = sys.modules["skillruntime.cli.terminal.output"]
    monkeypatch.setattr(output, "is_drawn", lambda stream: is_terminal)
    monkeypatch.setattr(output, "console", lambda stderr=False: Screen())
    words = ["index", "--skills", str(skills), *["--json"] * as_json]

    done = CliRunner().invoke(group, words)

    assert done.exit_code == 0
    assert drawn == ["reading instructions"] * is_shown
