"""``skillruntime call``: what the script printed is on stdout, how it ended is the exit
code: `skillruntime/cli/call.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.in_process import run_command

pytestmark = pytest.mark.processes


@pytest.fixture
def linter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A skill whose script finds something, writes to stderr and ends with the code
    that it is given.
    """
    directory = tmp_path / "skills" / "linter"
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(
        "---\nname: linter\ndescription: Lints. Use for files.\n---\nLint.\n"
    )
    source = (
        "import json, sys\n"
        "code = json.load(sys.stdin)['code']\n"
        "print(json.dumps({'problems': 2}))\n"
        "print('one file was checked', file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    (directory / "scripts" / "lint.py").write_text(source)
    contract = {
        "version": "1.0.0",
        "input": {"properties": {"code": {"type": "integer"}}},
        "run": {"script": "scripts/lint.py", "exit_codes": {"3": "problems found"}},
    }
    (directory / "contract.json").write_text(json.dumps(contract))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    result = run_command("call", "linter", *arguments, "--skills", "skills", "--trust")
    return result.exit_code, result.stdout, result.stderr


def test_a_failure_prints_its_output_and_ends_with_1(linter: Path) -> None:
    """Data on stdout; the error and the script's own words on stderr."""
    code, stdout, stderr = run("code=5")

    assert (code, json.loads(stdout)) == (1, {"problems": 2})
    assert "failed with exit code 5 (its output is in data)" in stderr
    assert "one file was checked" in stderr


def test_a_deadline_prints_the_part_that_there_is(linter: Path) -> None:
    """The error says that it is a part."""
    source = "import time\nprint('page 1', flush=True)\ntime.sleep(6000)\n"
    (linter / "skills" / "linter" / "scripts" / "lint.py").write_text(source)

    code, stdout, stderr = run("code=5", "--timeout", "3")

    assert (code, json.loads(stdout)) == (3, "page 1")
    assert "data is the part that it had printed by then" in stderr


def test_a_code_that_is_a_result_ends_with_0(linter: Path) -> None:
    """``run.exit_codes``, with the meaning; stderr is not needed."""
    code, stdout, stderr = run("code=3")

    assert (code, json.loads(stdout)) == (0, {"problems": 2})
    assert "exit code 3: problems found" in stderr
    assert "one file was checked" not in stderr


def test_json_has_the_whole_envelope(linter: Path) -> None:
    """With the code and stderr in its metadata."""
    code, stdout, _ = run("code=5", "--json")

    envelope = json.loads(stdout)
    assert (code, envelope["status"], envelope["data"]) == (
        1,
        "failed",
        {"problems": 2},
    )
    assert envelope["metadata"]["exit_code"] == 5
    assert envelope["metadata"]["stderr"] == "one file was checked"
