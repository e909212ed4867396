"""What reaches a terminal, a pipe and an odd locale: `skillruntime/cli/terminal/output.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillruntime.adapters.langchain import DEFAULT_CATALOG_TOKENS
from skillruntime.catalog import discover
from skillruntime.cli import group, main
from skillruntime.cli.prompt import command as prompt
from skillruntime.cli.terminal.output import print_json, to_github
from skillruntime.diagnostic import Diagnostic, Severity
from tests.catalog.parts import STYLES
from tests.in_process import run_command, run_on_terminal

EVIL = "\x1b]0;owned\x07\x1b[2Jred\x9b31m \u202eback"


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """Two skills: one in German, one whose every text holds control sequences."""
    plain = tmp_path / "skills" / "zaehlen"
    evil = tmp_path / "skills" / "evil"
    for directory in (plain, evil):
        (directory / "scripts").mkdir(parents=True)
    (plain / "SKILL.md").write_text(
        "---\n"
        "name: zaehlen\n"
        "description: Zählt Wörter. Use when words matter.\n"
        "---\n"
        "Rufe es auf.\n",
        encoding="utf-8",
    )
    quoted = json.dumps(f"Counts words. {EVIL}")
    (evil / "SKILL.md").write_text(
        f"---\nname: evil\ndescription: {quoted}\n---\n# {EVIL}\n\n{EVIL}\n", "utf-8"
    )
    (evil / "scripts" / "count.py").write_text(
        "import json\nprint(json.dumps({'words': '\\x9b31m'}))\n", "utf-8"
    )
    contract = {
        "version": "1.0.0",
        "description": EVIL,
        "run": {"script": "scripts/count.py"},
        "input": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": EVIL}},
        },
    }
    (evil / "contract.json").write_text(json.dumps(contract), encoding="utf-8")
    (evil / f"notes{chr(27)}[31m.md").write_text("x", encoding="utf-8")
    return tmp_path / "skills"


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["list", "--json"],
        ["search", "counts"],
        ["prompt"],
        ["show", "evil"],
        ["show", "evil", "--body"],
        ["show", "evil", "--json"],
        pytest.param(["call", "evil", "--trust"], marks=pytest.mark.processes),
        pytest.param(
            ["call", "evil", "--trust", "--json"], marks=pytest.mark.processes
        ),
        pytest.param(
            ["call", "evil", '{"text": 1, "\\u001b[2J\\u009b": 2}', "--trust"],
            marks=pytest.mark.processes,
        ),
        ["init", "evil", "--dry-run", "--force"],
        ["lock"],
    ],
    ids=" ".join,
)
def test_no_control_sequence_of_a_skill_reaches_a_terminal(
    skills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """Whatever a skill writes into its texts, file names and output: only rich's own
    styles are sent.
    """
    monkeypatch.chdir(tmp_path)

    received = run_on_terminal(*arguments, "--skills", str(skills))

    for sequence in ("\x1b]0", "\x1b[2J", "\x1b[31m.md", "\x07", "\x9b", "\u202e"):
        assert sequence not in received
    assert "Traceback" not in received


@pytest.mark.parametrize(
    "command",
    [
        ["validate"],
        ["tokens"],
        ["tokens", "--advise", "--all"],
        ["validate", "--github"],
    ],
)
def test_commands_on_a_path_send_none_either(skills: Path, command: list[str]) -> None:
    """The commands that take a directory instead of --skills."""
    received = run_on_terminal(*command, str(skills))

    for sequence in ("\x1b]0", "\x1b[2J", "\x9b", "\u202e"):
        assert sequence not in received


@pytest.mark.parametrize(
    "command", [["list"], ["show", "zaehlen"], ["search", "zaehlen"], ["prompt"]]
)
def test_commands_work_under_an_ascii_locale(skills: Path, command: list[str]) -> None:
    """Text is written in UTF-8 or with escapes, and JSON in ASCII, so that every reader
    gets JSON.
    """
    drawn = run_command(*command, "--skills", str(skills), charset="ascii")
    data = run_command(*command, "--skills", str(skills), "--json", charset="ascii")

    assert (drawn.exit_code, data.exit_code) == (0, 0), drawn.stderr + data.stderr
    assert "hlt" in drawn.stdout
    assert data.stdout.isascii()
    assert "Zählt" in json.dumps(json.loads(data.stdout), ensure_ascii=False)


@pytest.mark.processes
def test_a_process_works_under_an_ascii_locale(skills: Path) -> None:
    """Which decides how Python makes its streams."""
    environment = {
        **{
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("LC_", "LANG"))
        },
        "LC_ALL": "POSIX",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    arguments = [
        sys.executable,
        "-m",
        "skillruntime",
        "list",
        "--skills",
        str(skills),
        "--json",
    ]

    data = subprocess.run(arguments, capture_output=True, check=True, env=environment)

    assert "Zählt" in json.dumps(
        json.loads(data.stdout.decode("ascii")), ensure_ascii=False
    )


def test_prompt_prints_what_a_model_reads(skills: Path) -> None:
    """Only the catalog's own text is on stdout; its tokens on stderr."""
    result = CliRunner().invoke(
        group, ["prompt", "--skills", str(skills), "--style", "xml"]
    )

    assert result.stdout == discover(skills).to_prompt("xml") + "\n"
    assert "2 skills" in result.stderr


def test_the_default_budget_of_prompt_is_that_of_agents() -> None:
    """Otherwise the text would not be the one that a model reads."""
    (budget,) = (option for option in prompt.params if option.name == "budget")

    assert budget.default == DEFAULT_CATALOG_TOKENS


@pytest.mark.parametrize("style", STYLES)
def test_every_style_of_the_command_line_is_one_of_the_catalog(
    skills: Path, style: str
) -> None:
    """And a style that does not exist is wrong usage, for each command that takes
    one.
    """
    for command in (["prompt", "--skills", str(skills)], ["tokens", str(skills)]):
        assert CliRunner().invoke(group, [*command, "--style", style]).exit_code == 0
        assert CliRunner().invoke(group, [*command, "--style", "nope"]).exit_code == 2


def test_search_finds_a_name_in_a_catalog_of_two_and_shows_no_hit_of_score_0(
    skills: Path,
) -> None:
    """BM25 gives a word of one in two skills next to no weight; the hit is the best all
    the same.
    """
    hits = json.loads(
        CliRunner()
        .invoke(group, ["search", "evil", "--skills", str(skills), "--json"])
        .stdout
    )["skills"]
    drawn = CliRunner().invoke(
        group, ["search", "evil", "--skills", str(skills)], env={"FORCE_COLOR": "1"}
    )

    assert [hit["name"] for hit in hits] == ["evil"]
    assert hits[0]["score"] > 0
    assert "100%" in drawn.stdout


@pytest.mark.processes
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_works_as_documented(shell: str) -> None:
    """The variable that docs/cli.md names prints the script for each shell."""
    environment = {
        **os.environ,
        "_SKILLRUNTIME_COMPLETE": f"{shell}_source",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }

    printed = subprocess.run(
        [sys.executable, "-c", "from skillruntime.cli import main; main()"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )

    assert "_skillruntime_completion" in printed.stdout
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"_SKILLRUNTIME_COMPLETE={shell}_source skillruntime" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "--json"], "Missing argument 'NAME'."),
        (["lock", "--check", "-s", "nodir", "--json"], "'nodir' is not a directory"),
        (["shwo", "--json"], "There is no command 'shwo'. Did you mean 'show'?"),
    ],
)
def test_wrong_usage_is_an_envelope_for_a_program(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With ``--json`` stdout has one document, exit code 2, whatever is wrong with the
    command.
    """
    with pytest.raises(SystemExit) as stopped:
        main(arguments)

    printed = capsys.readouterr()
    (error,) = json.loads(printed.out)["errors"]
    assert stopped.value.code == 2
    assert error["code"] == "INVALID_INPUT"
    assert message in error["message"]
    assert "--help" in error["suggested_action"]
    assert printed.err == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["schema", "contract", "--json"], 0), (["show", "--help", "--json"], 0)],
)
def test_a_command_for_a_program_exits_as_usual(
    arguments: list[str], code: int
) -> None:
    """The exit codes are those without ``--json``."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)

    assert stopped.value.code == code


def test_github_annotations_are_escaped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As its workflow commands ask: per cent, line ends, and in fields colons and
    commas.
    """
    monkeypatch.chdir(tmp_path)
    path = f"{tmp_path}/pdf é/SKILL.md"
    found = [
        Diagnostic(
            "name-form", Severity.ERROR, path, "100% wrong:\nname", 2, 7, "write 'pdf'"
        ),
        Diagnostic("description-when", Severity.ADVICE, "/a,b:c", "no when"),
    ]

    assert to_github(found).split("\n") == [
        "::error file=pdf é/SKILL.md,line=2,col=7,title=name-form::100%25 "
        "wrong:%0Aname; write 'pdf'",
        "::notice file=/a%2Cb%3Ac,title=description-when::no when",
    ]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_json_for_a_program_has_no_colours_on_a_terminal_either(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_terminal: bool,
) -> None:
    """A program may read a command through a pseudo-terminal."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)

    print_json({"a": 1}, as_json=True)

    assert capsys.readouterr().out == '{\n  "a": 1\n}\n'
