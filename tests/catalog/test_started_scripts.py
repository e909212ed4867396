"""Which files a SKILL.md starts, wherever they lie:
`skillruntime/catalog/contracts/started_scripts.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from skillruntime.catalog import Skill, discover
from skillruntime.catalog.contracts.started_scripts import started_files
from tests.skill_files import write_skill_files

FILES = ["lib/check.py", "src/cli.py", "tools/deep/x.sh", "tools/run.py"]
PYTHON = (
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n')\n"
    "p.parse_args()\n"
)


def skill_with(root: Path, body: str, *paths: str) -> Skill:
    """Return an activated skill with these scripts, and instructions."""
    write_skill_files(root, "box", "Tools", dict.fromkeys(paths, PYTHON))
    with (root / "box" / "SKILL.md").open("a") as file:
        file.write(f"{body}\n")
    return discover(root).activate("box")


def scripts_of(skill: Skill) -> dict[str, str]:
    """Return the path of the script of each callable."""
    contracts = skill.contracts.items()
    return {name: str(contract.run["script"]) for name, contract in contracts}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Run `python tools/run.py DATA`.", "tools/run.py"),
        ("    python3.12 -u tools/run.py", "tools/run.py"),
        ("uv run --quiet python ./tools/run.py", "tools/run.py"),
        ("python -m src.cli --all", "src/cli.py"),
        ('bash "${CLAUDE_SKILL_DIR}/tools/deep/x.sh" a', "tools/deep/x.sh"),
        ("bash {baseDir}/tools/deep/x.sh", "tools/deep/x.sh"),
        ("cd /tmp && python ~/.claude/skills/box/tools/run.py", "tools/run.py"),
        ("```\n./tools/run.py --n 1\n```", "tools/run.py"),
        ("`./tools/run.py`", "tools/run.py"),
        ("<skill-dir>/tools/deep/x.sh DATA", "tools/deep/x.sh"),
    ],
)
def test_a_file_that_a_command_names_is_started(text: str, path: str) -> None:
    """Behind an interpreter, or as a program of the skill's directory."""
    assert started_files(text, FILES) == [path]


@pytest.mark.parametrize(
    "text",
    [
        "See tools/run.py for the details.",
        "`tools/run.py` is a module.",
        "cp tools/run.py out/",
        "mypython tools/run.py",
        "python ../other/tools/run.py",
        "python tools/run.pyc",
        "python TOOLS.md",
        "",
    ],
)
def test_a_file_that_is_only_mentioned_is_not(text: str) -> None:
    """It may be a module, an example or a template."""
    assert started_files(text, FILES) == []


def test_a_script_outside_the_usual_place_is_a_tool(tmp_path: Path) -> None:
    """Also one whose directory or name says that it is something else."""
    body = "python tools/run.py, python lib/check.py and python scripts/setup.py"
    paths = ["tools/run.py", "tools/other.py", "lib/check.py", "scripts/setup.py"]

    skill = skill_with(tmp_path, body, *paths)

    assert scripts_of(skill) == {
        "box/check": "lib/check.py",
        "box/setup": "scripts/setup.py",
        "box/run": "tools/run.py",
    }


def test_the_names_of_other_scripts_do_not_change(tmp_path: Path) -> None:
    """A script that is found by its command comes after those in ``scripts/``."""
    body = "python assets/run.py"

    skill = skill_with(tmp_path, body, "assets/run.py", "scripts/run.py")

    assert scripts_of(skill) == {
        "box/run": "scripts/run.py",
        "box/run-2": "assets/run.py",
    }


def test_its_name_is_listed_at_the_next_start(tmp_path: Path) -> None:
    """Also where the file appears in a directory that was there before."""
    write_skill_files(tmp_path, "box", "Tools", {"tools/a.txt": ""})
    first = list(discover(tmp_path).callables())
    (tmp_path / "box" / "tools" / "run.py").write_text(PYTHON)
    skill = tmp_path / "box" / "SKILL.md"
    skill.write_text(skill.read_text() + "python tools/run.py\n")

    second = list(discover(tmp_path).callables())
    third = list(discover(tmp_path).callables())

    assert (first, second, third) == ([], ["box/run"], ["box/run"])


def test_the_digest_of_a_skill_changes_with_it(tmp_path: Path) -> None:
    """What can be started is code, wherever it lies."""
    before = skill_with(tmp_path, "python tools/run.py", "tools/run.py").digest()
    (tmp_path / "box" / "tools" / "run.py").write_text(PYTHON + "print(1)\n")

    after = discover(tmp_path).activate("box").digest()

    assert before != after
