"""The work of ``skillruntime list`` for each skill, in calls."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

from tests.in_process import run_command


@pytest.mark.parametrize("skills", [3, 30])
def test_a_line_for_a_program_is_not_also_a_document(
    tmp_path: Path, skills: int
) -> None:
    """The document for ``--json`` is not made, and the text is cleaned as a whole."""
    for number in range(skills):
        directory = tmp_path / "skills" / f"skill-{number}"
        directory.mkdir(parents=True)
        head = f"name: {directory.name}\ndescription: Draws\x07 a plan."
        (directory / "SKILL.md").write_text(f"---\n{head}\n---\nDraw it.\n")
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        result = run_command("list", str(tmp_path / "skills"))
    finally:
        sys.setprofile(None)

    assert len(result.stdout.splitlines()) == skills
    assert result.stdout.startswith("skill-0\t\t")
    assert calls["to_dict"] == 0
    assert calls["without_controls"] == 1
