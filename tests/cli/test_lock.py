"""``skillruntime lock`` and ``lock --check``: nothing changes unseen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skillruntime.cli import group


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with two skills in ``skills``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("one", "two"):
        directory = tmp_path / "skills" / name
        directory.mkdir(parents=True)
        text = (
            "---\n"
            f"name: {name}\n"
            f"description: Does {name}.\n"
            "metadata:\n"
            "  version: 1.0.0\n"
            "---\n"
            "Body.\n"
        )
        (directory / "SKILL.md").write_text(text, encoding="utf-8")
    return tmp_path


def lock(*arguments: str) -> Result:
    return CliRunner().invoke(
        group, ["lock", "--skills", "skills", *arguments], env={"COLUMNS": "200"}
    )


def test_changed_missing_and_new_skills_are_reported(work: Path) -> None:
    """Exit 1, with one finding for each skill that differs."""
    lock()
    (work / "skills" / "one" / "SKILL.md").write_text(
        "---\nname: one\ndescription: Other.\nmetadata:\n  version: 1.1.0\n---\n",
        encoding="utf-8",
    )
    (work / "skills" / "two" / "SKILL.md").unlink()
    (work / "skills" / "three").mkdir()
    (work / "skills" / "three" / "SKILL.md").write_text(
        "---\nname: three\ndescription: C.\n---\n", encoding="utf-8"
    )

    result = lock("--check", "--json")

    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [finding["rule"] for finding in document["diagnostics"]] == [
        "lock-changed",
        "lock-unlocked",
        "lock-missing",
    ]
    assert (
        document["diagnostics"][0]["message"]
        == "one changed: its files differ from the lockfile"
    )


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 9, "skills": {}}', "\ud800"]
)
def test_a_damaged_lockfile_is_reported(work: Path, text: str) -> None:
    """Never a traceback, and never a silent pass."""
    (work / "skills-lock.json").write_bytes(text.encode("utf-8", "surrogatepass"))

    result = lock("--check", "--json")

    assert result.exit_code == 1
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"version": 2, "skills": {}}', '{"name": "package", "version": "1"}'],
)
def test_a_file_of_another_form_is_not_overwritten(work: Path, text: str) -> None:
    """It may be another tool's, or of a later release."""
    (work / "skills-lock.json").write_text(text, encoding="utf-8")

    result = CliRunner().invoke(
        group, ["lock", "--skills", "skills"], env={"COLUMNS": "200"}
    )

    assert result.exit_code == 1
    assert "it is not overwritten" in result.output
    assert (work / "skills-lock.json").read_text(encoding="utf-8") == text


def test_a_missing_lockfile_says_how_to_write_one(work: Path) -> None:
    """The error says the next step."""
    result = lock("--check")

    assert result.exit_code == 2
    assert "LOCKFILE_NOT_FOUND" in result.output
    assert "Write it with skillruntime lock" in result.output


def test_the_default_lockfile_is_that_of_npx_skills(work: Path) -> None:
    """Written, checked, kept for `--frozen`; a change is named."""
    run = CliRunner().invoke
    where = ["--skills", "skills"]
    assert run(group, ["lock", *where]).exit_code == 0
    document = json.loads((work / "skills-lock.json").read_text())
    assert document["version"] == 1
    assert sorted(document["skills"]["one"]) == ["computedHash", "source", "sourceType"]
    assert run(group, ["lock", "--check", *where]).exit_code == 0

    (work / "skills" / "one" / "more.txt").write_text("x")

    checked = run(group, ["lock", "--check", "--json", *where])
    assert checked.exit_code == 1
    assert [each["message"] for each in json.loads(checked.stdout)["diagnostics"]] == [
        "one changed: its files differ from the lockfile"
    ]
    listed = json.loads(run(group, ["list", "--json", "--frozen", *where]).stdout)
    assert [each["name"] for each in listed["skills"]] == ["two"]
    assert [each["rule"] for each in listed["diagnostics"]] == ["frozen-drift"]


def test_a_frozen_start_without_a_lockfile_fails(work: Path) -> None:
    """With the next step, and without a traceback."""
    result = CliRunner().invoke(group, ["list", "--frozen", "--skills", "skills"])

    assert result.exit_code != 0
    assert "no lockfile" in result.output
    assert "Traceback" not in result.output


def test_a_skill_with_a_link_stops_no_other(work: Path) -> None:
    """`npx skills` has no form for a link: the others are locked, the exit code is 1,
    and what checks the lockfile refuses that skill.
    """
    (work / "skills" / "one" / "notes").symlink_to(work / "skills" / "two")

    result = CliRunner().invoke(
        group, ["lock", "--skills", "skills"], env={"COLUMNS": "200"}
    )

    assert result.exit_code == 1
    assert "one cannot be locked" in result.stderr
    assert "skills/one/notes is a symbolic link" in result.stderr
    document = json.loads((work / "skills-lock.json").read_text())
    assert list(document["skills"]) == ["two"]
    checked = json.loads(lock("--check", "--json").stdout)
    assert [each["message"] for each in checked["diagnostics"]] == [
        "one is not in the lockfile"
    ]
    listed = CliRunner().invoke(
        group, ["list", "--json", "--frozen", "--skills", "skills"]
    )
    assert [each["name"] for each in json.loads(listed.stdout)["skills"]] == ["two"]


def test_a_lockfile_that_is_named_is_used(tmp_path: Path) -> None:
    """Without ``--frozen`` the skills would look verified without being so."""
    (tmp_path / "skills" / "one").mkdir(parents=True)
    (tmp_path / "skills" / "one" / "SKILL.md").write_text(
        "---\nname: one\ndescription: Does it.\n---\nBody.\n"
    )
    (tmp_path / "skills-lock.json").write_text('{"version": 1, "skills": {}}')

    result = CliRunner().invoke(
        group,
        [
            "list",
            "-s",
            str(tmp_path / "skills"),
            "--lockfile",
            str(tmp_path / "skills-lock.json"),
            "--json",
        ],
    )

    assert json.loads(result.stdout)["skills"] == []


def test_nothing_is_not_locked(work: Path) -> None:
    """A mistyped directory must not take the pins of all skills away; the file's name
    is shown as it is.
    """
    assert lock("--file", "a[red]x.json").output == "Locked 2 skills in a[red]x.json\n"
    (work / "empty").mkdir()

    result = CliRunner().invoke(
        group, ["lock", "--skills", "empty", "--file", "a[red]x.json"]
    )

    assert result.exit_code == 2
    assert "No skills found in empty" in result.output
    assert set(json.loads((work / "a[red]x.json").read_text())["skills"]) == {
        "one",
        "two",
    }
