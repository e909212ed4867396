"""Looking at skills from the command line: list, show, search, validate."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len
from rich.console import Console

from skillruntime.cli import group
from skillruntime.cli.terminal import output
from tests.in_process import run_command

Run = Callable[..., Result]


def write(
    directory: Path,
    name: str,
    description: str,
    extra: str = "",
    body: str = "# Steps\n\nDo it.\n",
) -> Path:
    """Write one skill."""
    (directory / name).mkdir(parents=True)
    text = f"---\nname: {name}\ndescription: {description}\n{extra}---\n{body}"
    (directory / name / "SKILL.md").write_text(text, encoding="utf-8")
    return directory / name


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """A directory with three skills, one of which cannot be used anywhere."""
    directory = tmp_path / "skills"
    write(
        directory,
        "counting",
        "Counts letters. Use when letters matter.",
        'metadata:\n  version: "1.2.0"\n',
    )
    paper = (
        "Reads paper that was scanned, page by page, in many languages. Use when a "
        "scan comes."
    )
    write(
        directory,
        "scans",
        paper,
        'metadata:\n  version: "1.10.0"\n  tags: "paper, office"\n',
    )
    needy = write(directory, "xyz", "Needs things. Use when nothing else helps.")
    requires = {
        "commands": ["no-such-command-here"],
        "environment": ["NO_SUCH_VARIABLE_HERE"],
    }
    (needy / "contract.json").write_text(
        json.dumps({"requires": requires, "input": {"type": "object"}})
    )
    return directory


@pytest.fixture
def run(skills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on the sample skills, with nothing else to be found."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SKILLRUNTIME_CACHE", "off")
    monkeypatch.chdir(tmp_path)

    def run_command(
        *arguments: str, own: bool = True, terminal: bool = False
    ) -> Result:
        options = ["--skills", str(skills)] if own else []
        # rich draws for a terminal wherever FORCE_COLOR is set.
        environment = {"COLUMNS": "200"} | ({"FORCE_COLOR": "1"} if terminal else {})
        return CliRunner().invoke(
            group, [*arguments, *options], env=environment, color=terminal
        )

    return run_command


def names(result: Result) -> list[str]:
    """The names of the skills in a JSON answer."""
    return [skill["name"] for skill in json.loads(result.stdout)["skills"]]


def test_what_a_skill_needs_in_its_authors_words_is_shown(
    run: Run, skills: Path
) -> None:
    """The field `compatibility`: in `list` and in `show`, for people and for
    programs.
    """
    write(
        skills,
        "needs",
        "Draws. Use for plots.",
        "compatibility: Python with matplotlib\n",
    )

    listed = json.loads(run("list", "--json").stdout)["skills"]
    shown = json.loads(run("show", "needs", "--json").stdout)

    stated = {skill["name"]: skill.get("compatibility") for skill in listed}
    assert stated == {
        "counting": None,
        "needs": "Python with matplotlib",
        "scans": None,
        "xyz": None,
    }
    assert shown["compatibility"] == "Python with matplotlib"
    assert (
        "Draws. Use for plots. (compatibility: Python with matplotlib)"
        in run("list", "needs").stdout
    )
    for words in (["list", "needs"], ["show", "needs"]):
        drawn = re.sub(r"\x1b\[[\d;]*m", "", run(*words, terminal=True).stdout)
        assert "compatibility: Python with matplotlib" in drawn


def test_a_search_without_a_match_guesses(run: Run) -> None:
    """On stderr, and said to be a guess."""
    result = run("search", "countin", "zzz")

    assert (result.stdout, result.exit_code) == ("", 0)
    assert "The nearest names, which is a guess: counting" in result.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["PAPER"], ["scans"]),
        (["nothing is called so"], []),
        ([], ["counting", "scans", "xyz"]),
    ],
)
def test_list_filters(run: Run, options: list[str], expected: list[str]) -> None:
    """By a text in the name or the description, in any case."""
    result = run("list", *options, "--json")

    assert result.exit_code == 0
    assert names(result) == expected


def test_list_says_what_is_unavailable_and_why(run: Run) -> None:
    """Every requirement that is not met, in words, for a person and for a program."""
    drawn = run("list")
    needy = next(
        skill
        for skill in json.loads(run("list", "--json").stdout)["skills"]
        if skill["name"] == "xyz"
    )

    reasons = [
        "the command no-such-command-here is not installed",
        "the environment variable NO_SUCH_VARIABLE_HERE is not set",
    ]
    assert (needy["available"], needy["unavailable"]) == (False, reasons)
    assert f"unavailable: {'; '.join(reasons)}" in drawn.stdout


def test_list_counts_the_tokens_of_each_entry(run: Run) -> None:
    """As the compact catalog writes it, for the model in question; the sum is below."""
    data = json.loads(run("list", "--json").stdout)
    drawn = run("list", terminal=True)

    tokens = {skill["name"]: skill["tokens"] for skill in data["skills"]}
    assert tokens["counting"] == 12
    assert data["tokens"] == sum(tokens.values())
    assert "3 skills" in drawn.stdout
    assert (
        json.loads(run("list", "--json", "--model", "claude-sonnet-4-5").stdout)[
            "tokens"
        ]
        > data["tokens"]
    )


def test_versions_stand_side_by_side_in_every_command(run: Run, skills: Path) -> None:
    """Each is listed, with 0 tokens where the catalog leaves it out, and shown by its
    range.
    """
    write(
        skills / "older",
        "counting",
        "Counts by hand. Use when letters matter.",
        "version: 0.9.0\n",
    )

    listed = {
        skill["name"]: skill["tokens"]
        for skill in json.loads(run("list", "--json").stdout)["skills"]
    }
    shown = json.loads(run("show", "counting@<1", "--json").stdout)
    unmet = run("show", "counting@^7")

    assert list(listed) == ["counting", "counting@0.9.0", "scans", "xyz"]
    assert listed["counting"] > listed["counting@0.9.0"] == 0
    assert (shown["name"], shown["version"]) == ("counting@0.9.0", "0.9.0")
    assert unmet.exit_code == 1
    assert "Use one of: counting@1.2.0, counting@0.9.0" in unmet.stderr


def test_a_narrow_terminal_gets_whole_numbers(
    run: Run, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In lines: in a table of forty columns beside a long name, nothing but the name
    would be left.
    """
    name = "invoice-table-extraction-service"
    (skills / name).mkdir()
    text = (
        "---\n"
        f"name: {name}\n"
        "description: Reads.\n"
        "metadata:\n"
        "  version: 1234.5678.91011\n"
        "---\n"
        "Read it.\n"
    )
    (skills / name / "SKILL.md").write_text(text)
    contract = {
        "input": {
            "properties": {
                "most": {"type": "integer", "maximum": 10485760, "default": 1048576}
            }
        }
    }
    (skills / name / "contract.json").write_text(json.dumps(contract))
    drawn = io.StringIO()
    terminal = Console(file=drawn, width=40, force_terminal=True, color_system=None)
    monkeypatch.setattr(
        "skillruntime.cli.terminal.output.console", lambda **_: terminal
    )

    listed, shown = run("list"), run("show", name)

    assert f"{name}\t1234.5678.91011\t" in listed.stdout + drawn.getvalue()
    assert "10485760" in shown.stdout + drawn.getvalue()
    assert "1048576\t" in shown.stdout + drawn.getvalue()


def test_many_skills_are_drawn_a_line_each(
    run: Run, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at the terminal's width, wide characters counted as two, and nothing steers
    the terminal.
    """
    for number in range(60):
        write(
            skills,
            f"many-{number}",
            '"数える、数える、\\e[31m 数える、数える"'
            if number % 2
            else "Counts. " * 40,
        )
    drawn = io.StringIO()
    terminal = Console(file=drawn, width=60, force_terminal=True, color_system=None)
    monkeypatch.setattr(
        "skillruntime.cli.terminal.output.console", lambda **_: terminal
    )
    monkeypatch.setattr("skillruntime.cli.list.is_drawn", lambda stream: True)

    assert run("list").exit_code == 0

    lines = drawn.getvalue().splitlines()
    assert (
        len(
            [
                line
                for line in lines
                if line.split()[:1] and line.split()[0].startswith("many-")
            ]
        )
        == 60
    )
    assert all(cell_len(line) <= 60 for line in lines)
    assert "\x1b" not in drawn.getvalue()
    assert any("数える" in line for line in lines)
    assert lines[0].split()[:4] == ["skill", "version", "tokens", "trust"]
    assert any(line.startswith("63 skills") for line in lines)
    assert any(line.rstrip().endswith("…") for line in lines)


def test_list_says_when_no_skill_matches(run: Run) -> None:
    """This differs from finding no skills at all."""
    result = run("list", "nothing is called so")

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No skill matches (3 searched).\n"


def test_list_says_how_a_directory_of_that_name_is_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a slash it is a search text."""
    (tmp_path / "plugins").mkdir()
    monkeypatch.chdir(tmp_path)

    result = run("list", "plugins")

    assert (
        result.stderr
        == "No skill matches (3 searched). To list that directory, write ./plugins.\n"
    )


@pytest.mark.skipif(
    os.name != "posix" or sys.platform == "darwin",
    reason="needs a system whose file names are bytes: Linux",
)
@pytest.mark.parametrize(
    "command",
    [["list"], ["list", "--json"], ["validate"], ["validate", "--json"], ["lock"]],
)
def test_a_file_name_that_is_not_utf_8_is_printed_with_escapes(
    skills: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every form that is for programs, the output is UTF-8, and JSON where it says
    so.
    """
    odd = os.fsencode(skills) + b"/bad\xff\xfe"
    Path(os.fsdecode(odd)).mkdir()
    Path(os.fsdecode(odd + b"/SKILL.md")).write_text(
        "---\nname: odd\ndescription: Does odd things.\n---\nDo it.\n"
    )
    where = [str(skills)] if command[0] == "validate" else ["--skills", str(skills)]

    monkeypatch.chdir(skills.parent)
    done = run_command(*command, *where, SKILLRUNTIME_CACHE="off")

    text = done.stdout
    assert "Traceback" not in done.stderr
    assert (
        "odd" in text
        if command[0] != "lock"
        else "odd" in (skills.parent / "skills-lock.json").read_text()
    )
    if command[-1] == "--json":
        assert "\\udcff\\udcfe" in text
        json.loads(text)


def test_validate_follows_a_link_that_leads_back_once(run: Run, skills: Path) -> None:
    """Each skill is read once, and the walk ends."""
    (skills / "group").mkdir()
    (skills / "group" / "up").symlink_to(skills)

    result = run("validate", str(skills), "--json", own=False)

    assert json.loads(result.stdout)["skills"] == 3


@pytest.mark.parametrize("more", [0, 60])
def test_a_pipe_gets_a_line_for_each_skill_whatever_their_number(
    run: Run, skills: Path, more: int
) -> None:
    """With tabs between the fields, nothing wrapped and nothing left out."""
    for number in range(more):
        write(
            skills,
            f"many-{number}",
            f"Does number {number}. " + "And more of that. " * 20,
        )

    lines = [line.split("\t") for line in run("list").stdout.splitlines()]

    assert len(lines) == 3 + more
    assert {len(line) for line in lines} == {5}
    name, version, tokens, trust, description = lines[0]
    assert (name, version, trust) == ("counting", "1.2.0", "ask")
    assert int(tokens) == 12
    assert description.startswith("Counts")
    assert next(line for line in lines if line[0] == "xyz")[4].startswith(
        "unavailable: the command no-such"
    )


def test_a_skill_that_cannot_be_read_any_more_is_unavailable(
    run: Run, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between discovery and the look at its requirements it may vanish."""
    from skillruntime.catalog.checks import environment_check as requirements
    from skillruntime.errors import InvalidSkillError

    def gone(*arguments: Any) -> None:
        raise InvalidSkillError("it is broken")

    monkeypatch.setattr(requirements, "unmet_of", gone)
    # Only a skill that may state requirements is read again.
    for file in skills.glob("*/SKILL.md"):
        text = file.read_text("utf-8")
        file.write_text(text.replace("---\n", "---\ncompatibility: any\n", 1), "utf-8")

    listed = json.loads(run("list", "--json").stdout)["skills"]

    assert {skill["unavailable"][0] for skill in listed} == {"it is broken"}


def test_untrusted_text_sends_no_control_sequences_to_the_terminal(
    run: Run, skills: Path
) -> None:
    """Escape sequences and markup are shown as the text they are, or not at all."""
    write(
        skills,
        "evil",
        '"[red]x[/] \\x1b[2J \\u202eback. Use when."',
        body="\x1b[31mred\n",
    )

    for arguments in (["list"], ["show", "evil"], ["search", "back"]):
        for terminal in (False, True):
            result = run(*arguments, terminal=terminal)
            assert result.exit_code == 0
            assert "[red]x[/]" in result.stdout.replace("\n", " ")
            assert "\u202e" not in result.stdout
            assert "\x1b[2J" not in result.stdout


def test_search_gives_the_best_first(run: Run) -> None:
    """By the skill's own text, as in a model's search."""
    drawn = run("search", "scanned", "paper")
    data = json.loads(run("search", "scanned paper", "--json").stdout)

    assert drawn.exit_code == 0
    assert drawn.stdout.split("\t")[0] == "scans"
    assert data["query"] == "scanned paper"
    assert [skill["name"] for skill in data["skills"]] == ["scans"]
    assert data["skills"][0]["score"] > 0


def test_index_keeps_the_index_for_later_searches(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, and a file in the cache directory."""
    own_cache = tmp_path / "own-cache"
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(own_cache))
    drawn = run("index")

    assert (drawn.exit_code, drawn.stdout) == (0, "indexed 3 skills\n")
    assert len(list(own_cache.glob("search/*.index"))) == 1
    assert json.loads(run("index", "--json").stdout) == {"skills": 3}
    monkeypatch.setenv("SKILLRUNTIME_CACHE", "off")
    nowhere = run("index")
    assert (nowhere.exit_code, "set SKILLRUNTIME_CACHE" in nowhere.stderr) == (2, True)


def test_search_without_results_is_not_a_failure(run: Run) -> None:
    """It says what to do, and the list is empty."""
    result = run("search", "xylophone")

    assert result.exit_code == 0
    assert result.stdout == ""
    assert "try other words" in result.stderr
    assert json.loads(run("search", "xylophone", "--json").stdout)["skills"] == []
    assert run("search").exit_code == 2


def test_show_marks_what_is_derived_and_how_sure_it_is(run: Run, skills: Path) -> None:
    """A derived contract says so, with the parser that it was read from, and what could
    not be read.
    """
    directory = write(skills, "tools", "Has tools. Use when tools help.") / "scripts"
    directory.mkdir()
    source = (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('--limit', type=int)\n"
    )
    (directory / "sure.py").write_text(source + "p.parse_args()\n")
    (directory / "unsure.py").write_text(
        source + "import other\nother.add_more(p)\np.parse_args()\n"
    )

    drawn = run("show", "tools")
    data = json.loads(run("show", "tools", "--json").stdout)

    assert "derived from scripts/sure.py" in drawn.stdout
    assert "derived from scripts/unsure.py" in drawn.stdout
    assert data["callable"]["tools/sure"]["derived"]["confidence"] == "high"


def test_show_says_why_a_skill_is_unavailable(run: Run) -> None:
    """The reason is below its name."""
    assert (
        "unavailable: the command no-such-command-here is not installed"
        in run("show", "xyz").stdout
    )
    assert json.loads(run("show", "xyz", "--json").stdout)["available"] is False
    assert json.loads(run("show", "counting", "--json").stdout)["unavailable"] == []


def test_show_ends_with_the_instructions(run: Run) -> None:
    """They are the Markdown that was written."""
    assert run("show", "counting").stdout.endswith("# Steps\n\nDo it.\n")


def test_validate_is_strict(run: Run, skills: Path) -> None:
    """What discovery lets pass with a word is an error here, with its place, its rule
    and a hint.
    """
    write(skills, "Loud", "Shouts. Use when silence fails.", "version: 1.0\n")

    result = run("validate", str(skills), "--json", own=False)

    found = json.loads(result.stdout)
    assert (result.exit_code, found["valid"], found["skills"]) == (1, False, 4)
    errors = {
        item["rule"]: item
        for item in found["diagnostics"]
        if item["severity"] == "error"
    }
    assert set(errors) == {"name-form"}
    assert (errors["name-form"]["line"], errors["name-form"]["column"]) == (2, 7)
    assert "loud" in errors["name-form"]["hint"]


def test_advice_alone_does_not_fail(run: Run, skills: Path) -> None:
    """Exit code 0, and the advice is printed."""
    path = write(skills, "plain", "Reads things.")

    result = run("validate", str(path), own=False)

    assert result.exit_code == 0
    assert "[description-when]" in result.stdout
    assert "1 skill, 0 errors, 1 other finding" in result.stdout


def test_validate_takes_a_file_a_skill_or_a_directory(run: Run, skills: Path) -> None:
    """One that is not there is an error, not a success over nothing."""
    one = skills / "counting"
    for path, number in ((one / "SKILL.md", 1), (one, 1), (skills, 3)):
        data = json.loads(run("validate", str(path), "--json", own=False).stdout)
        assert (data["valid"], data["skills"]) == (True, number)
    missing = run("validate", str(skills / "nowhere"), "--json", own=False)
    assert missing.exit_code == 1
    assert json.loads(missing.stdout)["diagnostics"][0]["rule"] == "skill-missing"
    assert (
        json.loads(run("validate", str(one), str(skills), "--json", own=False).stdout)[
            "skills"
        ]
        == 3
    )


def test_validate_reports_for_github(run: Run, skills: Path) -> None:
    """Annotations with paths as the repository has them."""
    write(skills, "Loud", "Shouts. Use when silence fails.")

    annotations = run("validate", "skills", "--github", own=False)

    assert annotations.exit_code == 1
    assert annotations.stdout.startswith(
        "::error file=skills/Loud/SKILL.md,line=2,col=7,title=name-form::"
    )
    assert run("validate", "skills", "--github", "--json", own=False).exit_code == 2


def test_validate_fixes_what_is_mechanical(run: Run, skills: Path) -> None:
    """The file is fixed, the changes are listed, and the findings are those of the
    fixed file.
    """
    path = write(
        skills, "loud", "Shouts: loudly. Use when silence fails.", "version: 1.0\n"
    )

    before = run("validate", str(path), own=False)
    fixed = run("validate", str(path), "--fix", own=False)
    after = run("validate", str(path), "--fix", "--json", own=False)

    assert (before.exit_code, fixed.exit_code, after.exit_code) == (1, 0, 0)
    assert "version was moved under metadata" in fixed.stderr
    assert (
        "description: 'Shouts: loudly. Use when silence fails.'"
        in (path / "SKILL.md").read_text()
    )
    assert json.loads(after.stdout)["fixed"] == []


def test_a_file_that_cannot_be_fixed_is_an_envelope(
    run: Run, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only disk, say: no traceback."""

    def refuse(path: str) -> tuple[str, ...]:
        raise OSError(30, "Read-only file system", path)

    monkeypatch.setattr("skillruntime.catalog.checks.validation.fix_skill", refuse)
    write(skills, "Loud", "Shouts. Use when silence fails.")

    result = run("validate", str(skills), "--fix", "--json", own=False)

    assert result.exit_code == 1
    assert "Read-only file system" in json.loads(result.stdout)["errors"][0]["message"]


def test_validate_tries_migrations_and_compares_versions(
    run: Run, skills: Path
) -> None:
    """A migration that fails for arguments it accepts, and versions that disagree, are
    warnings.
    """
    old = {
        "type": "object",
        "required": ["topic"],
        "properties": {"topic": {"type": "string"}},
    }
    new = {
        "type": "object",
        "required": ["topics"],
        "additionalProperties": False,
        "properties": {"topics": {"type": "array", "items": {"type": "string"}}},
    }
    migration = {"to": "2.0.0", "accepts": old, "steps": [{"wrap": "/topic"}]}
    contract = {"version": "2.0.0", "input": new, "migrations": [migration]}
    (skills / "counting" / "contract.json").write_text(json.dumps(contract))

    result = run("validate", str(skills / "counting"), "--json", own=False)

    rules = {
        item["rule"]: item["severity"]
        for item in json.loads(result.stdout)["diagnostics"]
    }
    assert result.exit_code == 0
    assert {rules["version-disagreement"], rules["migration-fails"]} == {"warning"}


def test_progress_shows_for_many_on_a_terminal_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every item comes once and in order; for a few, or without a terminal, nothing is
    drawn.
    """

    monkeypatch.setenv("TERM", "xterm")

    def drawn(number: int, *, terminal: bool) -> str:
        out = Console(file=io.StringIO(), force_terminal=terminal, width=80)
        monkeypatch.setattr(output, "console", lambda stderr: out)
        monkeypatch.setattr(output, "is_drawn", lambda stream: terminal)
        assert list(output.with_progress(range(number), "looking")) == list(
            range(number)
        )
        return str(out.file.getvalue())  # type: ignore[attr-defined]  # it is the StringIO above

    assert drawn(4, terminal=True) == ""
    assert "looking" in drawn(1000, terminal=True)
    assert drawn(1000, terminal=False) == ""


def test_validate_checks_the_contract_and_its_script(run: Run, skills: Path) -> None:
    """Each fault once, with the rule that names it; what is first wrong is not repeated
    as contract-invalid.
    """
    contract = {
        "script": "a.py",
        "run": {"script": "scripts/none.py", "timeout_seconds": "ten"},
    }
    (skills / "counting" / "contract.json").write_text(
        json.dumps(contract), encoding="utf-8"
    )
    (skills / "counting" / "scripts").mkdir()
    (skills / "counting" / "scripts" / "count.py").write_text(
        "print(1)", encoding="utf-8"
    )

    document = json.loads(
        run("validate", str(skills / "counting"), "--json", own=False).stdout
    )

    assert [
        (finding["rule"], finding["message"]) for finding in document["diagnostics"]
    ] == [
        ("contract-misplaced", "'script' belongs under 'run'"),
        ("contract-value", '/run/timeout_seconds: "ten" is not a number'),
        (
            "contract-script",
            "/run/script: there is no file 'scripts/none.py' in the skill",
        ),
    ]
    assert "scripts/count.py" in document["diagnostics"][2]["hint"]


@pytest.mark.parametrize("document", ["contract", "descriptor"])
def test_schema_prints_a_json_schema(run: Run, document: str) -> None:
    """With --json as every command, and the same without."""
    plain = run("schema", document, own=False)

    assert (
        json.loads(plain.stdout)["$schema"]
        == "https://json-schema.org/draft/2020-12/schema"
    )
    assert run("schema", document, "--json", own=False).stdout == plain.stdout


def test_the_usual_places_are_those_up_to_the_repositorys_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest first; a project's skill that differs from the user's has the name,
    and `--first-only` and `--exclude` leave out the others.
    """
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (repository / "apps/web").mkdir(parents=True)
    write(tmp_path / "skills", "outside", "Not of this project.")
    write(repository / "skills", "tdd", "Of the repository.")
    write(repository / "apps/.claude/skills", "deploy", "Of the applications.")
    write(tmp_path / "home/.claude/skills", "tdd", "Of the user.")
    monkeypatch.chdir(repository / "apps/web")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def names(*options: str) -> list[str]:
        document = json.loads(run_command("list", "--json", *options).stdout)
        return [each["name"] for each in document["skills"]]

    assert names() == ["deploy", "tdd", "user:tdd"]
    assert names("--first-only") == ["deploy", "tdd"]
    assert names("--exclude", "user:*", "--exclude", "deploy") == ["tdd"]
