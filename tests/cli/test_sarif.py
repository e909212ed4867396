"""Findings as SARIF, directories as plain arguments, and lists that stay short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from skillruntime.cli import group


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a valid skill and one whose description needs quotes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, description in (
        ("one", "Counts words. Use when asked."),
        ("two", "Draws: lines. Use when asked."),
    ):
        (tmp_path / "own" / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: {description}\n---\nBody.\n"
        (tmp_path / "own" / name / "SKILL.md").write_text(text, encoding="utf-8")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(group, list(arguments), env={"COLUMNS": "200"})


def results(result: Result) -> list[dict[str, Any]]:
    """Return the results of the SARIF log on stdout."""
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0"
    [sarif_run] = log["runs"]
    assert {each["id"] for each in sarif_run["tool"]["driver"]["rules"]} == {
        each["ruleId"] for each in sarif_run["results"]
    }
    found: list[dict[str, Any]] = sarif_run["results"]
    return found


def test_validate_says_where_each_finding_is(work: Path) -> None:
    """The path is relative to the directory of the build, with line and column."""
    result = run("validate", "own", "--sarif")

    [found] = [each for each in results(result) if each["ruleId"] == "yaml-invalid"]
    place = found["locations"][0]["physicalLocation"]
    assert result.exit_code == 1
    assert found["level"] == "error"
    assert place["artifactLocation"]["uri"] == "own/two/SKILL.md"
    assert place["region"]["startLine"] == 3


def test_a_file_has_what_would_be_printed(work: Path) -> None:
    """Beside the report for people, so that one run of a build gives both."""
    printed = run("validate", "own", "--sarif")

    result = run("validate", "own", "--sarif-file", "found.sarif")

    assert result.exit_code == 1
    assert result.stdout == run("validate", "own").stdout
    assert (work / "found.sarif").read_text("utf-8") == printed.stdout


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (["lock", "own", "--check"], True),
        (["lock", "own"], False),
        (["diff", "old.json", "old.json"], True),
    ],
)
def test_each_command_with_findings_writes_them(
    work: Path, command: list[str], written: bool
) -> None:
    """A command that finds nothing writes an empty list; one that is refused writes no
    file.
    """
    run("lock", "own")
    (work / "old.json").write_text('{"input": {"type": "object"}}')

    result = run(*command, "--sarif-file", "found.sarif")

    assert (result.exit_code == 2) is not written
    assert (work / "found.sarif").exists() is written


def test_a_file_in_no_directory_is_refused_before_the_work(work: Path) -> None:
    """Tests of skills may take minutes."""
    result = run("test", "own", "--sarif-file", "none/found.sarif")

    assert result.exit_code == 2
    assert "'--sarif-file': none/found.sarif: there is no such directory" in (
        result.stderr
    )


def test_only_one_form_is_printed(work: Path) -> None:
    """Two forms at once are a usage error."""
    assert run("validate", "own", "--sarif", "--json").exit_code == 2


def test_diff_reports_what_needs_a_higher_version(work: Path) -> None:
    """An error for each change that the version does not cover; a note where it
    does.
    """
    (work / "old.json").write_text(
        json.dumps(
            {
                "version": "1.0.0",
                "input": {"type": "object", "properties": {"a": {"type": "string"}}},
            }
        )
    )
    changed = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "string"}},
    }
    for version, level, code in (("1.0.1", "error", 1), ("2.0.0", "note", 0)):
        (work / "new.json").write_text(
            json.dumps({"version": version, "input": changed})
        )

        result = run("diff", "old.json", "new.json", "--sarif")

        assert result.exit_code == code
        assert {each["level"] for each in results(result)} == {level}


def test_diff_of_directories_names_the_skill_and_its_file(work: Path) -> None:
    """A host of code shows a finding beside a file, and one line of it must do without
    the rest.
    """
    for side, required in (("old", []), ("new", ["a"])):
        document = {
            "version": "1.0.0",
            "input": {"required": required, "properties": {"a": {"type": "string"}}},
        }
        for skill, file in (
            ("plain", "contract.json"),
            ("several", "contracts/tool.json"),
            ("y z", "contract.yaml"),
        ):
            (work / side / skill / file).parent.mkdir(parents=True)
            (work / side / skill / file).write_text(json.dumps(document), "utf-8")

    found = results(run("diff", "old", "new", "--sarif"))

    places = [
        each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for each in found
    ]
    assert places == [
        "new/plain/contract.json",
        "new/several/contracts/tool.json",
        "new/y%20z/contract.yaml",
    ]
    assert [each["message"]["text"].partition(":")[0] for each in found] == [
        "plain",
        "several/tool",
        "y z",
    ]


def test_lock_and_list_take_a_directory(work: Path) -> None:
    """As validate does; a text without a slash is searched for."""
    assert run("lock", "own").exit_code == 0
    assert results(run("lock", "--check", "own", "--sarif")) == []
    (work / "own" / "one" / "new.txt").write_text("x", encoding="utf-8")

    [changed] = results(run("lock", "--check", "own", "--sarif"))

    assert changed["ruleId"] == "lock-changed"
    assert [
        line.split("\t")[0] for line in run("list", "./own").stdout.splitlines()
    ] == ["one", "two"]
    assert run("list", "own").stdout == ""
    assert run("lock", "--sarif", "own").exit_code == 2


def test_many_findings_of_one_rule_are_summed_up(work: Path) -> None:
    """Twenty are drawn, then how many more there are; --json has all."""
    for number in range(30):
        (work / "own" / f"s{number}").mkdir()
        text = (
            "---\n"
            f"name: s{number}\n"
            "description: Draws: lines. Use when asked.\n"
            "---\n"
            "Body.\n"
        )
        (work / "own" / f"s{number}" / "SKILL.md").write_text(text, encoding="utf-8")

    drawn = run("list", "./own").stderr
    document = json.loads(run("list", "./own", "--json").stdout)
    annotations = run("validate", "own", "--github").stdout.splitlines()

    assert drawn.count("warning: ") == 20
    assert "and 11 more of [yaml-repaired]" in drawn
    assert len(document["diagnostics"]) == 31
    assert len([line for line in annotations if "yaml-invalid" in line]) == 21
    assert annotations[-1].startswith("::error::and 11 more of [")


def test_an_error_is_shown_however_many_warnings_its_rule_has(work: Path) -> None:
    """A field that is not known is a warning, one that is known by another name an
    error.
    """
    for number, field in enumerate([*["colour"] * 25, "migration"]):
        (work / "own" / f"s{number:02}").mkdir()
        (work / "own" / f"s{number:02}" / "contract.json").write_text(
            json.dumps({field: [], "input": {}}), "utf-8"
        )
        text = (
            "---\n"
            f"name: s{number:02}\n"
            "description: Draws lines. Use when asked.\n"
            "---\n"
            "Body.\n"
        )
        (work / "own" / f"s{number:02}" / "SKILL.md").write_text(text, encoding="utf-8")

    annotations = run("validate", "own", "--github").stdout.splitlines()

    assert [
        line
        for line in annotations
        if line.startswith("::error file=own/s25/contract.json")
    ]
