"""`validate` and `show` say which commands of a skill were tried on derived contracts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.in_process import run_command

SKILL = """---
name: maps
description: Draw maps of towns. Use when a map is asked for.
---
Run `python scripts/draw.py --place Rome` or `python scripts/draw.py --town Rome`.
"""
SCRIPT = """import argparse
p = argparse.ArgumentParser()
p.add_argument("--place", required=True)
p.parse_args()
"""


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    directory = tmp_path / "maps"
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(SKILL)
    (directory / "scripts/draw.py").write_text(SCRIPT)
    return directory


def test_validate_reports_a_command_that_the_script_refuses(skill: Path) -> None:
    """It is a warning for the author; the commands that were tried are listed."""
    done = run_command("validate", str(skill), "--json")

    document = json.loads(done.stdout)
    assert document["valid"]
    findings = [each["rule"] for each in document["diagnostics"]]
    assert findings == ["command-refused"]
    assert document["tried"] == [
        {"script": "scripts/draw.py", "command": "python scripts/draw.py --place Rome"},
        {
            "script": "scripts/draw.py",
            "command": "python scripts/draw.py --town Rome",
            "refusal": "--town is not one of its flags",
        },
    ]


def test_validate_tries_nothing_on_a_written_contract(skill: Path) -> None:
    """Its author answers for it."""
    (skill / "contract.json").write_text(
        '{"input": {"type": "object"}, "run": {"script": "scripts/draw.py"}}'
    )
    done = run_command("validate", str(skill), "--json")

    assert "tried" not in json.loads(done.stdout)


def test_show_says_which_commands_the_contract_takes(skill: Path) -> None:
    """Beside what could not be read of the script."""
    done = run_command("show", "maps", "--skills", str(skill.parent))

    assert "takes python scripts/draw.py --place Rome" in done.stdout
    assert "refuses python scripts/draw.py --town Rome" in done.stdout
