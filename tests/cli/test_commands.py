"""The command line: data on stdout, messages on stderr, and exit codes that a script
can rely on.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from skillruntime.cli import group, main
from skillruntime.cli.inputs.places import bundled_skills
from skillruntime.cli.terminal.text import without_controls

Run = Callable[..., Result]

SCRIPT = """
import json, sys, time
arguments = json.load(sys.stdin)
if arguments["text"] == "hang":
    time.sleep(600)
if arguments["text"] == "crash":
    raise ValueError("no such letter")
print(json.dumps({"letters": len(arguments["text"]), "times": arguments["times"]}))
"""


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """A directory with one good skill."""
    directory = tmp_path / "skills" / "counting"
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(
        "---\n"
        "name: counting\n"
        "description: Counts letters. Use when letters matter.\n"
        "---\n"
        "Call it with a text.\n",
        encoding="utf-8",
    )
    (directory / "scripts" / "count.py").write_text(SCRIPT, encoding="utf-8")
    contract = {
        "version": "1.0.0",
        "description": "Count letters",
        "run": {"script": "scripts/count.py"},
        "input": {
            "type": "object",
            "required": ["text"],
            "additionalProperties": False,
            "properties": {
                "text": {"type": "string", "description": "What to count"},
                "times": {"type": "integer", "minimum": 1, "default": 1},
            },
        },
    }
    (directory / "contract.json").write_text(json.dumps(contract), encoding="utf-8")
    return tmp_path / "skills"


@pytest.fixture
def run(skills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command with the sample skills, away from every other directory."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path))

    def run_command(
        *arguments: str, own: bool = True, stdin: str | None = None
    ) -> Result:
        options = ["--skills", str(skills)] if own else []
        return CliRunner().invoke(
            group, [*arguments, *options], input=stdin, env={"COLUMNS": "200"}
        )

    return run_command


def test_list_finds_the_skills(run: Run) -> None:
    """For a person a table, for a program a document."""
    drawn = run("list")
    data = json.loads(run("list", "--json").stdout)

    assert drawn.exit_code == 0
    assert "counting" in drawn.stdout
    assert data["skills"][0]["name"] == "counting"
    assert data["skills"][0]["trusted"] is False


def test_the_bundled_skills_are_listed_only_when_asked_for(
    run: Run, skills: Path, tmp_path: Path
) -> None:
    """Without a directory: the usual places; with --bundled also what comes with the
    package, which is trusted.
    """
    skills.rename(tmp_path / "work" / "skills")

    def trust_by_name(*options: str) -> dict[str, bool]:
        document = json.loads(run("list", "--json", *options, own=False).stdout)
        return {skill["name"]: skill["trusted"] for skill in document["skills"]}

    assert trust_by_name() == {"counting": False}
    bundled = [
        "code-review",
        "counting",
        "daily-news-digest",
        "data-analysis",
        "pdf-processing",
    ]
    assert sorted(trust_by_name("--bundled")) == bundled
    assert trust_by_name("--bundled")["daily-news-digest"] is True


def test_the_bundled_directory_is_trusted_where_it_is_the_projects_own(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a clone of the repository ./skills is the bundled directory: its scripts run
    without a question.
    """
    monkeypatch.chdir(Path(__file__).parents[2])

    listed = json.loads(run("list", "--json", own=False).stdout)["skills"]

    assert {skill["trusted"] for skill in listed} == {True}


def test_an_empty_directory_says_what_to_do(tmp_path: Path) -> None:
    """An empty directory is not an error."""
    result = CliRunner().invoke(group, ["list", "--skills", str(tmp_path)])

    assert (result.exit_code, result.stdout) == (0, "")
    assert "--skills DIRECTORY, or --bundled" in result.stderr


def test_a_directory_that_is_not_there_is_a_usage_error(run: Run) -> None:
    """Exit code 2, as for every wrong use of the command itself."""
    assert (
        CliRunner().invoke(group, ["list", "--skills", "/no/such/place"]).exit_code == 2
    )
    assert run("no-such-command").exit_code == 2
    assert run("show").exit_code == 2


def test_show_draws_a_contract(run: Run) -> None:
    """Parameters with their types, defaults and meanings; the files; the instructions
    on request.
    """
    drawn = run("show", "counting")
    data = json.loads(run("show", "counting", "--json").stdout)

    for words in ("text *", "integer 1..", "What to count", "scripts/count.py"):
        assert words in drawn.stdout
    assert data["callable"]["counting"]["version"] == "1.0.0"
    assert run("show", "counting", "--body").stdout == "Call it with a text.\n"


def test_show_of_an_unknown_skill_is_an_envelope(run: Run) -> None:
    """With the nearest name and the next command; drawn for a person on stderr, as data
    on stdout.
    """
    drawn = run("show", "countign")
    data = run("show", "countign", "--json")

    assert (drawn.exit_code, drawn.stdout) == (1, "")
    assert "SKILL_NOT_FOUND" in drawn.stderr
    assert (
        "Did you mean 'counting'? Run: skillruntime show counting --skills"
        in drawn.stderr
    )
    assert json.loads(data.stdout)["errors"][0]["code"] == "SKILL_NOT_FOUND"
    assert data.exit_code == 1


def test_serving_a_skill_that_is_not_there_fails(run: Run) -> None:
    """A directory in place of a name would be a server without tools, and nothing would
    say why.
    """
    result = CliRunner().invoke(group, ["serve", "--mcp", "no-such-skill"])

    assert (result.exit_code, result.stdout) == (1, "")
    assert "There is no skill named 'no-such-skill'" in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--trusted-proxy", "abc"],
            "'abc' does not appear to be an IPv4 or IPv6 network",
        ),
        (["--trusted-proxy", "10.0.0.5/8"], "10.0.0.5/8 has host bits set"),
        (
            ["--per-skill", "report"],
            "--per-skill 'report' should be ID=NUMBER, such as com.example.report=2",
        ),
        (["--jwks", "keys.json"], "--jwks needs --issuer and --audience"),
        (
            ["--jwks", "none.json", "--issuer", "https://i.example", "--audience", "a"],
            "--jwks: The issuer's keys cannot be read from none.json",
        ),
        (["--lease", "20"], "--lease needs --database."),
        (["--keep", "nan"], "'--keep': 'nan' is not a number"),
        (["--keep", "inf"], "'--keep': inf is not in the range"),
        (["--drain", "nan"], "'--drain': 'nan' is not a number"),
        (["--capacity", "99999999999"], "'--capacity': 99999999999 is not in the"),
        (["--task-after", "1"], "--task-after needs --mcp."),
        (["--operator"], "--operator needs --new-key."),
        (["--audience", "a"], "--audience needs --jwks."),
        (
            ["--database", "postgresql://h/d"],
            "--database and --memory exclude each other.",
        ),
        (["--mcp", "--rate", "5"], "--rate is not for --mcp, which would ignore it"),
        (["--new-key", ""], "--new-key: '' is not a name of a caller"),
        (
            ["--new-key", "anonymous"],
            "--new-key: 'anonymous' is the name of callers without a key",
        ),
    ],
)
def test_a_wrong_option_of_serve_is_named(
    run: Run, options: list[str], said: str
) -> None:
    """With what is wrong about its value, before anything is served."""
    result = run("serve", "--memory", *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())


def test_validate_says_what_is_wrong(run: Run, skills: Path) -> None:
    """Exit code 1 where there is an error; a broken contract does not hide the rest."""
    good = run("validate", str(skills), own=False)
    (skills / "counting" / "contract.json").write_text(
        '{"input": {"type": "nonsense"}}'
    )
    (skills / "broken").mkdir()
    (skills / "broken" / "SKILL.md").write_text("no frontmatter")
    bad = run("validate", str(skills), "--json", own=False)

    assert good.exit_code == 0
    assert bad.exit_code == 1
    found = json.loads(bad.stdout)
    assert found["valid"] is False
    assert {Path(item["path"]).parent.name for item in found["diagnostics"]} == {
        "counting",
        "broken",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--skills", ""],
        ["validate", ""],
        ["tokens", ""],
        ["test", ""],
        ["lock", ""],
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_empty_directory_name_is_wrong_usage(run: Run, arguments: list[str]) -> None:
    """As a shell gives it for a variable that is not set; the working directory would
    be searched instead.
    """
    result = run(*arguments, own=False)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "director" in result.stderr.lower()


def test_validate_without_skills_fails(run: Run, tmp_path: Path) -> None:
    """An empty directory was not validated."""
    assert run("validate", str(tmp_path / "work"), own=False).exit_code == 1


@pytest.mark.processes
@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (['{"text": "abc", "times": "2"}'], None),
        (["text=abc", "times=2"], None),
        (["-"], '{"text": "abc", "times": 2,}'),
        (["@arguments.json"], None),
    ],
)
def test_call_takes_arguments_in_every_form(
    run: Run, arguments: list[str], stdin: str | None
) -> None:
    """JSON, words, stdin or a file: all go through the contract."""
    Path("arguments.json").write_text('{"text": "abc", "times": 2}')

    result = run("call", "counting", *arguments, "--trust", "--json", stdin=stdin)

    assert result.exit_code == 0
    assert json.loads(result.stdout)["data"] == {"letters": 3, "times": 2}


@pytest.mark.processes
def test_call_prints_data_on_stdout_and_messages_on_stderr(run: Run) -> None:
    """Data goes to stdout, the repairs to stderr."""
    result = run("call", "counting", '{"text": "abc", "times": "2"}', "--trust")

    assert json.loads(result.stdout) == {"letters": 3, "times": 2}
    assert "repaired /times" in result.stderr


@pytest.mark.processes
@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["counting", "{}"], "MISSING_REQUIRED_PARAM", 1),
        (["counting"], "MISSING_REQUIRED_PARAM", 1),
        (["counting", ""], "MISSING_REQUIRED_PARAM", 1),
        (["counting", '{"text": "abc", "colour": 1}'], "INVALID_INPUT", 1),
        (["counting", '{"text": "abc", "times": "many"}'], "INVALID_INPUT", 1),
        (["counting", '{"text": "abc", "times": 0}'], "PARAM_OUT_OF_RANGE", 1),
        (["counting", '{"text": "ab'], "TRUNCATED_INPUT", 1),
        (["counting", "just words"], "INVALID_INPUT", 1),
        (["countign", "{}"], "SKILL_NOT_FOUND", 1),
        (["counting/letters", "{}"], "SKILL_NOT_FOUND", 1),
        (["counting", "text=crash"], "TOOL_EXECUTION_FAILED", 1),
        (["counting", "text=hang", "--timeout", "0.3"], "TOOL_TIMEOUT", 3),
    ],
)
def test_a_wrong_call_is_an_envelope_with_a_next_step(
    run: Run, arguments: list[str], code: str, exit_code: int
) -> None:
    """Never a traceback of ours: the code, the next step, and an exit code that says
    whether to try again. A script's own traceback is its stderr.
    """
    data = run("call", *arguments, "--trust", "--json")
    drawn = run("call", *arguments, "--trust")

    error = json.loads(data.stdout)["errors"][0]
    assert (error["code"], data.exit_code, drawn.exit_code) == (
        code,
        exit_code,
        exit_code,
    )
    assert error["suggested_action"]
    assert code in drawn.stderr
    assert "→" in drawn.stderr
    assert "skillruntime/" not in drawn.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["text=abc", "more"],
        ["=abc", "x=1"],
        ["@/no/such/file"],
        ["{}", "--timeout", "0"],
        ["{}", "--nonsense"],
    ],
)
def test_a_wrong_command_line_is_a_usage_error(run: Run, arguments: list[str]) -> None:
    """What is wrong with the command, not with the arguments of the skill."""
    assert run("call", "counting", *arguments).exit_code == 2


@pytest.mark.usefixtures("some_sandbox")
@pytest.mark.processes
def test_an_untrusted_script_needs_a_yes(run: Run) -> None:
    """Without a terminal to ask at it is refused, with the remedy; --yes is an
    answer.
    """
    refused = run("call", "counting", "text=abc", "--json")
    allowed = run("call", "counting", "text=abc", "--json", "--yes")

    (error,) = json.loads(refused.stdout)["errors"]
    assert error["code"] == "ACCESS_DENIED"
    assert (
        error["suggested_action"]
        == "Add --yes to approve this call; the script runs in a sandbox"
    )
    assert allowed.exit_code == 0


def test_repeated_words_become_a_list(run: Run) -> None:
    """``topics=a topics=b``; the contract says whether that is right."""
    result = run("call", "counting", "text=a", "text=b", "--trust", "--json")

    assert json.loads(result.stdout)["errors"][0]["code"] == "INVALID_INPUT"


def test_a_bug_in_the_command_line_prints_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line and how to see more; with SKILLRUNTIME_DEBUG the exception itself."""

    def broken(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("inside")

    monkeypatch.setattr("skillruntime.cli.list.open_catalog", broken)

    with pytest.raises(SystemExit) as caught:
        main(["list"])
    printed = capsys.readouterr().err
    monkeypatch.setenv("SKILLRUNTIME_DEBUG", "1")
    with pytest.raises(RuntimeError, match="inside"):
        main(["list"])

    assert caught.value.code == 1
    assert "RuntimeError" in printed
    assert "SKILLRUNTIME_DEBUG=1" in printed


def test_a_bug_is_reported_with_its_place_in_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The innermost file of the package and its line, also of a task in a group; no
    path of the machine.
    """

    def broken(*arguments: Any, **options: Any) -> None:
        try:
            without_controls(1)  # type: ignore[arg-type]
        except TypeError as error:
            raise ExceptionGroup("unhandled errors in a TaskGroup", [error]) from None

    monkeypatch.setattr("skillruntime.cli.list.open_catalog", broken)

    with pytest.raises(SystemExit) as caught:
        main(["list"])

    assert caught.value.code == 1
    assert re.fullmatch(
        r"Internal error in skillruntime \(TypeError at "
        r"skillruntime/cli/terminal/text\.py:\d+\); "
        r"set SKILLRUNTIME_DEBUG=1 for the traceback\n",
        capsys.readouterr().err,
    )


def test_a_missing_module_of_the_package_is_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No extra installs it."""

    def broken(*arguments: Any, **options: Any) -> None:
        raise ModuleNotFoundError("No module", name="skillruntime.absent")

    monkeypatch.setattr("skillruntime.cli.list.open_catalog", broken)

    with pytest.raises(SystemExit) as caught:
        main(["list"])

    assert caught.value.code == 1
    assert "Internal error in skillruntime (Module" in capsys.readouterr().err


def test_the_bundled_skills_are_found_beside_the_package() -> None:
    """In a checkout: the directory ``skills`` of the repository."""
    assert bundled_skills() == Path(__file__).parents[2] / "skills"


@pytest.mark.processes
def test_the_help_names_every_command_without_importing_it() -> None:
    """A help text costs no start of the rest."""
    source = (
        "import sys\nfrom skillruntime.cli import group\n"
        "try:\n    group(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = ('rich', 'langchain_core', 'skillruntime.cli.demo', 'jsonschema_rs')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    shown = subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )

    for name in ("list", "show", "validate", "call", "demo"):
        assert f"  {name}" in shown.stdout
    assert shown.stdout.endswith("[]\n")


@pytest.mark.parametrize(
    "command",
    [
        ["show"],
        ["call"],
        ["prepare"],
        ["init"],
        ["remote", "describe"],
        ["remote", "invoke"],
        ["list", "-s"],
    ],
)
def test_a_name_of_5000_letters_is_wrong_usage(command: list[str]) -> None:
    """One sentence and exit code 2: no file system can be asked for it."""
    result = CliRunner().invoke(group, [*command, "x" * 5_000])

    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert (
        "it has 5,000 characters; at most 2,000 are allowed" in last
        or "x' is not a directory" in last
    )
    assert len(last) < 400


@pytest.mark.processes
@pytest.mark.parametrize(
    "command",
    [["diff", "contract.json"], ["list"], ["search"], ["validate"], ["tokens"]],
)
def test_a_text_of_5000_letters_gives_an_answer(
    command: list[str], skills: Path
) -> None:
    """Of the other commands, which take words and paths."""
    result = CliRunner().invoke(group, [*command, "x" * 5_000])

    assert isinstance(result.exception, SystemExit | None)
    assert result.exit_code in (0, 1, 2)
