"""The guides are executed: a newcomer who types what a page shows sees what the page
shows.

A fenced block below a line that is only `` `path`: `` is that file. In a `console`
block each line that begins with `$ ` is run in a fresh directory, as bash runs it; the
lines below it are what it prints, `...` standing for any text. Lines that install
something are not run.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.in_process import run_command, run_script

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[1]
GUIDES = (
    "start.md",
    "write-a-skill.md",
    "test-a-skill.md",
    "internet.md",
    "publish.md",
    "langchain.md",
)
_BLOCK = re.compile(
    r"(?:^`(?P<path>[\w./-]+)`:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


_IN_SHELL = re.compile(r"[|;<>&$*]")


@pytest.mark.processes
@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_does_what_it_says(
    guide: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Every file of the page is written, every command is run, and each prints what the
    page shows.
    """
    needs.package("langchain")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv(
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"
    )  # those of this environment take two seconds to import
    monkeypatch.setenv(
        "PYTEST_ADDOPTS",
        f"--rootdir={tmp_path} -c /dev/null -p no:cacheprovider -W ignore",
    )
    for name in ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"):
        monkeypatch.setenv(f"GIT_{name}", "a@example.com")
    monkeypatch.chdir(tmp_path)
    if guide == "internet.md":
        request.getfixturevalue("some_sandbox")
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
            printed = output_of(command, tmp_path)
            commands += 1
            assert same(
                expected, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            ), f"$ {command}\n{printed}\ninstead of\n{expected}"
    assert commands > 0


def output_of(command: str, directory: Path) -> str:
    """Return what a command prints; our own commands and plain scripts are run in this
    process, the rest by bash.
    """
    words = shlex.split(command)
    if not _IN_SHELL.search(command) and words[0] == "skillruntime":
        return run_command(*words[1:]).output
    if words[0] == "python" and words[1].endswith(".py"):
        ran = run_script(directory / words[1], directory)
        return ran.stderr + ran.stdout
    shell = ["bash", "-c", f"{command} 2>&1"]
    return subprocess.run(
        shell, cwd=directory, capture_output=True, text=True, timeout=300, check=False
    ).stdout
