"""The benchmark of real tasks counts what was made through this library's tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import needs

needs.package("langchain")

from benchmarks.real_skills.named_files import named_files  # noqa: E402
from benchmarks.real_skills.walk import walk  # noqa: E402
from benchmarks.real_skills.walk_plans import Run, makes, makes_text  # noqa: E402

ROOT = Path(__file__).parents[1]

SCRIPT = """
import argparse, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("text")
parser.add_argument("out")
given = parser.parse_args()
pathlib.Path(given.out).write_text(given.text.upper())
"""

TASKS = """
import sys

from benchmarks.real_skills.steps import Call, Load, Shell, Task

# Debian has no program `python`.
RUN = sys.executable + " {skill:shouting}/scripts/shout.py hello loud.txt"
CALL = Call("shouting/shout", {"text": "hello", "out": "loud.txt"}, RUN)
QUIET = Call("shouting/shout", {"text": "hello", "out": "other.txt"}, "true")
BESIDE = Shell(RUN.replace("skill:", "directory:"))

def is_loud(result):
    return result.text("loud.txt") == "HELLO"

TASKS = (
    Task("called", "Shout", (Load("shouting"), CALL), is_loud),
    Task("beside", "Shout", (Load("shouting"), BESIDE), is_loud),
    Task("own-code", "Shout", (Load("shouting"), BESIDE), is_loud, own_code=True),
    Task("silent", "Shout", (Load("shouting"), QUIET), is_loud),
)
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    """Return the cell of each task and way."""
    folder = tmp_path_factory.mktemp("real")
    skill = folder / "skills" / "shouting"
    (skill / "scripts").mkdir(parents=True)
    (skill / "scripts" / "shout.py").write_text(SCRIPT)
    (skill / "SKILL.md").write_text(
        "---\nname: shouting\ndescription: Shouts\n---\nRun scripts/shout.py\n"
    )
    (folder / "tasks.py").write_text(TASKS)
    command = [sys.executable, "-m", "benchmarks.real_skills.run"]
    command += [str(folder / "skills"), "--tasks", str(folder / "tasks.py")]
    command += ["--json", str(folder / "cells.json")]
    subprocess.run(
        command, cwd=ROOT, check=True, timeout=300, env={**os.environ, "TZ": "UTC"}
    )
    found = json.loads((folder / "cells.json").read_text())["cells"]
    return {(cell["task"], cell["way"]): cell for cell in found}


WAYS = ("middleware, trusted", "MCP, trusted")


@pytest.mark.processes
@pytest.mark.parametrize("way", WAYS)
def test_a_call_of_a_skill_is_done(cells: dict[Any, Any], way: str) -> None:
    """The file that the call made is what counts."""
    assert cells["called", way]["result"] == "done"


@pytest.mark.processes
@pytest.mark.parametrize("way", WAYS)
def test_a_script_started_in_a_shell_does_not_count(
    cells: dict[Any, Any], way: str
) -> None:
    """Except where the work is code of the model's own, in the directory shown."""
    assert cells["beside", way]["result"] == "shell"
    assert cells["own-code", way]["result"] == "done"


@pytest.mark.processes
def test_an_untrusted_skill_is_called_but_not_shown(cells: dict[Any, Any]) -> None:
    """Its directory is not in any answer, so that no shell finds it."""
    assert cells["beside", "middleware, untrusted"]["result"] == "no"


@pytest.mark.processes
@pytest.mark.parametrize("way", [*WAYS, "plain shell"])
def test_a_status_decides_nothing(cells: dict[Any, Any], way: str) -> None:
    """A call that succeeds without the wanted file is a wrong success."""
    assert cells["silent", way]["result"] == "wrong"


def test_files_are_found_by_the_names_of_the_instructions() -> None:
    """A name is a path, the end of one, or a pattern, in any case of letters."""
    files = ("SKILL.md", "forms.md", "ref/go/README.md", "ref/rust/README.md", "run.py")
    instructions = (
        "Read **FORMS.md** and `./ref/`, then [one](ref/{lang}/README.md). "
        "A README.md is not said which. Start <skill>/run.py; see {name}."
    )

    named = named_files(instructions, files)

    assert [(each.written, each.path) for each in named] == [
        ("FORMS.md", "forms.md"),
        ("./ref/", "ref"),
        ("ref/go/README.md", "ref/go/README.md"),
        ("ref/rust/README.md", "ref/rust/README.md"),
        ("run.py", "run.py"),
    ]


@pytest.mark.processes
def test_a_walk_reads_every_file_and_what_scripts_made(tmp_path: Path) -> None:
    """A script counts as done if the file that it should make is there."""
    skill = tmp_path / "shouting"
    (skill / "scripts").mkdir(parents=True)
    (skill / "scripts" / "shout.py").write_text(SCRIPT)
    (skill / "scripts" / "other.py").write_text("")
    (skill / "rules.md").write_text("Use capitals.\n")
    (skill / "data.bin").write_bytes(b"\xff\x00\xfe")
    (skill / "SKILL.md").write_text(
        "---\nname: shouting\ndescription: Shouts\n---\nRead RULES.md\n"
    )
    arguments = {"text": "hello", "out": "loud.txt"}
    plan = (
        Run(
            "scripts/shout.py",
            "shouting/shout",
            arguments,
            makes_text("loud.txt", "HELLO"),
        ),
        Run("scripts/shout.py", "shouting/shout", arguments, makes("none.txt")),
    )

    rows = walk(skill, plan, is_trusted=True)

    assert [(row.kind, row.name, row.result) for row in rows] == [
        ("named", "RULES.md", "read"),
        ("file", "data.bin", "binary"),
        ("file", "scripts/other.py", "read"),
        ("file", "scripts/shout.py", "read"),
        ("script", "scripts/shout.py", "done"),
        ("made", "loud.txt", "read"),
        ("script", "scripts/shout.py", "no"),
        ("made", "loud.txt", "read"),
        ("script", "scripts/other.py", "no"),
    ]
