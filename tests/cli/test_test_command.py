"""``skillruntime test``: `skillruntime/cli/test.py`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.in_process import run_command
from tests.skill_files import write_skill_files

GOOD = 'import json, sys\njson.load(sys.stdin)\nprint(json.dumps({"words": 1}))\n'
FAULTY = 'import json, sys\njson.load(sys.stdin)\nprint(json.dumps({"words": "1"}))\n'
CONTRACT = {
    "version": "1.0.0",
    "description": "Count words.",
    "input": {
        "type": "object",
        "required": ["text"],
        "additionalProperties": False,
        "properties": {"text": {"type": "string", "minLength": 1}},
    },
    "output": {"type": "object", "properties": {"words": {"type": "integer"}}},
    "run": {"script": "scripts/count.py"},
}


def write_counting(root: Path, script: str, **changes: object) -> None:
    files = {
        "scripts/count.py": script,
        "contract.json": json.dumps(CONTRACT | changes),
    }
    write_skill_files(root, "counting", "Counts words.", files)


@pytest.mark.processes
def test_a_skill_that_passes_exits_with_0(tmp_path: Path) -> None:
    """A line for each skill, and the surroundings before it."""
    write_counting(tmp_path, GOOD)

    ran = run_command("test", str(tmp_path), "--trust")

    assert ran.exit_code == 0
    assert "sandbox: none" in ran.stdout
    assert "1 skill: 1 passed, 0 failed, 0 not testable" in ran.stdout


@pytest.mark.processes
def test_a_failure_exits_with_1_and_prints_the_command_that_repeats_it(
    tmp_path: Path,
) -> None:
    """The command can be pasted."""
    write_counting(tmp_path, FAULTY)

    ran = run_command("test", str(tmp_path), "--trust")

    assert ran.exit_code == 1
    assert "output" in ran.stdout
    assert 'skillruntime call counting \'{"text": "a"}\' --skills' in ran.stdout


@pytest.mark.processes
def test_what_is_not_testable_exits_with_0(tmp_path: Path) -> None:
    """It is said what would make it testable."""
    write_counting(tmp_path, GOOD, requires={"environment": ["NO_SUCH_VARIABLE"]})

    ran = run_command("test", str(tmp_path), "--trust")

    assert ran.exit_code == 0
    assert "add --env NAME" in ran.stdout
    assert "1 not testable" in ran.stdout


@pytest.mark.processes
def test_the_results_are_written_as_json_sarif_and_junit(tmp_path: Path) -> None:
    """For programs, for hosts of code and for build servers."""
    write_counting(tmp_path / "skills", FAULTY)
    skills, junit = str(tmp_path / "skills"), tmp_path / "junit.xml"

    as_json = run_command("test", skills, "--trust", "--json", "--junit", str(junit))
    as_sarif = run_command("test", skills, "--trust", "--sarif")

    document = json.loads(as_json.stdout)
    assert (document["ok"], document["failed"]) == (False, 1)
    failure = document["skills"][0]["callables"][0]["failures"][0]
    assert failure["check"] == "output"
    results = json.loads(as_sarif.stdout)["runs"][0]["results"]
    assert results[0]["ruleId"] == "test-output"
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert suite[0][0].get("type") == "output"


def test_without_a_working_sandbox_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untrusted skill is refused as everywhere else."""
    levels = "skillruntime.runtime.sandbox.levels"
    write_counting(tmp_path, GOOD)
    monkeypatch.setattr(f"{levels}._known", {})
    monkeypatch.setattr(f"{levels}._present", lambda name: "it is not installed")

    ran = run_command("test", str(tmp_path))

    assert ran.exit_code == 1
    assert "There is no working sandbox for this script" in ran.stderr
    assert ran.stdout == ""


@pytest.mark.processes
@pytest.mark.usefixtures("some_sandbox")
def test_an_untrusted_skill_runs_in_a_sandbox(tmp_path: Path) -> None:
    """The level is in the head."""
    write_counting(tmp_path, GOOD)

    ran = run_command("test", str(tmp_path), "--json")

    document = json.loads(ran.stdout)
    assert document["surroundings"]["sandbox"] in ("bubblewrap", "landlock")
    assert document["skills"][0]["status"] == "passed"


def test_json_and_sarif_exclude_each_other(tmp_path: Path) -> None:
    """One document on stdout."""
    ran = run_command("test", str(tmp_path), "--json", "--sarif")

    assert ran.exit_code == 2
    assert "use only one of --json and --sarif" in ran.stdout + ran.stderr


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["script", "instructions", "function"])
def test_a_new_skill_passes_its_test(tmp_path: Path, kind: str) -> None:
    """`skillruntime new` writes a skill that passes; a function is not called."""
    run_command("new", "word-count", "--kind", kind, "--in", str(tmp_path))

    ran = run_command("test", str(tmp_path), "--trust", "--json")

    assert ran.exit_code == 0
    assert json.loads(ran.stdout)["failed"] == 0


def test_a_directory_without_skills_exits_with_1(tmp_path: Path) -> None:
    """A wrong directory must not look like a test that passed."""
    ran = run_command("test", str(tmp_path), "--trust")

    assert ran.exit_code == 1
    assert "No skills found" in ran.stderr


def test_a_name_that_no_skill_has_is_an_error(tmp_path: Path) -> None:
    """The message suggests the closest name, and nothing runs."""
    write_counting(tmp_path, GOOD)

    ran = run_command("test", str(tmp_path), "--trust", "--only", "countin")

    assert ran.exit_code != 0
    assert "There is no skill named 'countin'" in ran.stderr
    assert "counting" in ran.stderr


@pytest.mark.parametrize("option", ["--record", "--sarif", "--only=a", "--junit=a.xml"])
def test_options_that_triggers_ignores_are_refused(tmp_path: Path, option: str) -> None:
    """None of them is ignored in silence."""
    ran = run_command("test", str(tmp_path), "--triggers", option)

    assert ran.exit_code == 2
    assert f"{option.partition('=')[0]} is not for --triggers" in ran.stderr


def test_a_file_that_cannot_be_written_is_an_error_before_the_test(
    tmp_path: Path,
) -> None:
    """The results of a long test would be lost."""
    junit = tmp_path / "none" / "junit.xml"

    ran = run_command("test", str(tmp_path), "--trust", "--junit", str(junit))

    assert ran.exit_code == 2
    assert "there is no such directory" in ran.stderr


def test_triggers_without_requests_say_where_to_write_them(tmp_path: Path) -> None:
    """The name of the file, and its keys."""
    write_counting(tmp_path, GOOD)

    ran = run_command("test", str(tmp_path), "--triggers")

    assert ran.exit_code == 0
    assert "tests/triggers.yaml" in ran.stderr
