"""The guides are executed: a newcomer who types what a page shows sees what the page shows.

A fenced block below a line that is only `` `path`: `` is that file. In a `console` block each line that begins with
`$ ` is run by bash in a fresh directory, and the lines below it are what it prints, `...` standing for any text.
Lines that install something are not run.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDES = ("start.md", "write-a-skill.md", "test-a-skill.md", "stateless-service.md")
_BLOCK = re.compile(
    r"(?:^`(?P<path>[\w./-]+)`:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_does_what_it_says(guide: str, tmp_path: Path) -> None:
    """Every file of the page is written, every command is run, and each prints what the page shows."""
    pytest.importorskip("langchain")
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "HOME": str(tmp_path), "COLUMNS": "200"}
    same = doctest.OutputChecker().check_output
    commands = 0

    for block in _BLOCK.finditer((ROOT / "docs" / guide).read_text(encoding="utf-8")):
        if block["path"]:
            path = tmp_path / block["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"], encoding="utf-8")
        if block["language"] != "console":
            continue
        for command, expected in _COMMAND.findall(block["text"]):
            if "install" in command or "venv" in command:
                continue
            ran = subprocess.run(
                ["bash", "-c", f"{command} 2>&1"],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            commands += 1
            assert same(expected, ran.stdout, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), (
                f"$ {command}\n{ran.stdout}\ninstead of\n{expected}"
            )
    assert commands > 0
