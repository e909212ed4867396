"""Commands on a skill whose files are links, pipes or too large: nothing outside is
read, shown or written.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillruntime.cli import group
from tests import needs

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)

DESCRIPTOR = {
    "id": "com.example.SECRET",
    "name": "SECRET",
    "version": "1.0.0",
    "description": "SECRET",
}


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill with one script and no contract."""
    directory = tmp_path / "skills" / "pdf"
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(
        "---\nname: pdf\ndescription: Reads. Use when reading.\n---\nDo it.\n"
    )
    script = (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "p.add_argument('--n', type=int)\n"
        "p.parse_args()\n"
    )
    (directory / "scripts" / "run.py").write_text(script)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "SECRET.json").write_text(json.dumps(DESCRIPTOR))
    return directory


def run(skill: Path, *command: str) -> str:
    """Return what the command prints on both streams."""
    result = CliRunner().invoke(group, [*command], env={"SKILLRUNTIME_CACHE": "off"})
    assert "Internal error" not in result.output
    return result.output


# `call` starts the launcher, in case a script follows.
@pytest.mark.processes
@pytest.mark.parametrize("kind", ["link", "fifo", "directory", "huge", "deep"])
@pytest.mark.parametrize(
    "command",
    [["show", "pdf"], ["call", "pdf", "{}", "--yes"], ["list"], ["schema", "pdf"]],
)
def test_a_descriptor_is_read_as_every_file(
    skill: Path, tmp_path: Path, kind: str, command: list[str]
) -> None:
    """No link is followed, no pipe waited for, nothing large read; the command ends."""
    file = skill / "descriptor.json"
    (skill / "scripts" / "run.py").unlink()
    match kind:
        case "link":
            file.symlink_to(tmp_path / "outside" / "SECRET.json")
        case "fifo":
            os.mkfifo(file)
        case "directory":
            file.mkdir()
        case "huge":
            with file.open("wb") as opened:
                opened.truncate(5 * 1024**3)
        case "deep":
            file.write_text("[" * 100_000)

    assert "SECRET" not in run(skill, *command, "--skills", str(skill.parent))


def test_init_writes_through_no_link(skill: Path, tmp_path: Path) -> None:
    """A dangling link is not a free place, and with --force it is replaced."""
    (skill / "contract.json").symlink_to(tmp_path / "outside" / "made")
    (skill / "contracts").symlink_to(tmp_path / "outside", target_is_directory=True)

    run(skill, "init", str(skill))
    run(skill, "init", "--force", str(skill))

    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["SECRET.json"]


def test_validate_lists_no_directory_outside(skill: Path, tmp_path: Path) -> None:
    """Its advice names the scripts of the skill, not the files behind a link."""
    (skill / "scripts" / "run.py").unlink()
    (skill / "scripts").rmdir()
    (skill / "scripts").symlink_to(tmp_path / "outside", target_is_directory=True)
    (skill / "contracts").symlink_to(tmp_path / "outside", target_is_directory=True)
    (skill / "contract.json").write_text(
        '{"version": "1.0.0", "input": {}, "run": {"script": "scripts/gone.py"}}'
    )

    assert "SECRET" not in run(skill, "validate", str(skill))


@pytest.mark.parametrize(
    "script", ["scripts/run.py\0.sh", "x" * 5000, "a/" * 5000, "loop/x", "\ud800"]
)
def test_a_script_with_an_impossible_path_is_a_finding(
    skill: Path, script: str
) -> None:
    """One such contract ended `validate` for every skill."""
    (skill / "loop").symlink_to("loop")
    (skill / "contract.json").write_text(
        json.dumps({"version": "1.0.0", "input": {}, "run": {"script": script}})
    )
    beside = skill.parent / "beside"
    beside.mkdir()
    (beside / "SKILL.md").write_text(
        "---\nname: other\ndescription: Reads. Use when reading.\n---\nDo it.\n"
    )

    output = run(skill, "validate", str(skill.parent))

    assert "contract-" in output
    assert "beside/SKILL.md" in output


def test_a_link_into_an_unreadable_directory_is_a_finding(
    skill: Path, tmp_path: Path
) -> None:
    """Whoever runs `validate` may read less than its author; nothing behind a link is
    looked at.
    """
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "notes.md").write_text("Notes.")
    (skill / "references").symlink_to(closed)
    text = (
        "---\n"
        "name: pdf\n"
        "description: Reads. Use when reading.\n"
        "---\n"
        "See [the notes](references/notes.md).\n"
    )
    (skill / "SKILL.md").write_text(text)
    closed.chmod(0)
    try:
        output = run(skill, "validate", str(skill))
    finally:
        closed.chmod(0o700)

    assert (
        "SKILL.md:5:5: advice: the link does not resolve: references/notes.md" in output
    )


def test_an_unreadable_directory_of_a_skill_is_a_finding(skill: Path) -> None:
    """Its links cannot be followed, and the other files are checked."""
    (skill / "references").mkdir()
    text = (
        "---\n"
        "name: pdf\n"
        "description: Reads. Use when reading.\n"
        "---\n"
        "See [the notes](references/notes.md).\n"
    )
    (skill / "SKILL.md").write_text(text)
    (skill / "references").chmod(0)
    try:
        output = run(skill, "validate", str(skill))
    finally:
        (skill / "references").chmod(0o700)

    assert "the link does not resolve: references/notes.md" in output
