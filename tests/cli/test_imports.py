"""What a command imports: a start is mostly imports, so these are counted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skill_files import write_skill_files

pytestmark = pytest.mark.processes

# The modules that are there when a command ends, and how many expressions of the
# package were compiled while its modules were imported.
_PROGRAM = """
import atexit, json, re, sys
compiled = []
original = re.compile
def counted(*arguments):
    caller = sys._getframe(1)
    if caller.f_code.co_name == "<module>":
        compiled.append(caller.f_globals["__name__"])
    return original(*arguments)
re.compile = counted
def at_end():
    with open(sys.argv[0], "w") as file:
        json.dump([sorted(sys.modules), compiled], file)
atexit.register(at_end)
sys.argv = sys.argv[1:]
from skillruntime.cli import main
main(sys.argv[1:])
"""
_HEAVY = {
    "httpx2",
    "langchain",
    "langchain_core",
    "markdown_it",
    "mcp",
    "pydantic",
    "rich",
    "tiktoken",
}


def imported_by(directory: Path, *arguments: str) -> tuple[set[str], list[str]]:
    """Run a command in *directory*; return the modules that it imported, and the
    package's modules that compiled an expression at their import.
    """
    ended = directory / "ended.json"
    subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(ended), *arguments],
        cwd=directory,
        check=True,
        capture_output=True,
    )
    modules, compiled = json.loads(ended.read_text("utf-8"))
    own = [name for name in compiled if name.startswith("skillruntime")]
    return set(modules), own


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with one skill that has a contract and a script."""
    contract = {
        "input": {"type": "object", "properties": {"text": {"type": "string"}}},
        "run": {"script": "scripts/echo.py"},
    }
    files = {
        "contract.json": json.dumps(contract),
        "scripts/echo.py": "import sys\nprint(sys.stdin.read())\n",
    }
    write_skill_files(tmp_path / "skills", "echo", "Echoes a text.", files)
    return tmp_path


def test_a_call_of_a_trusted_script_imports_no_event_loop(project: Path) -> None:
    """Nor anything that draws, speaks HTTP or parses Python: the script waits."""
    modules, compiled = imported_by(project, "call", "echo", "text=hello", "--trust")

    unneeded = {"anyio", "asyncio", "ssl", "skillruntime.derive.readers.python_script"}
    assert modules & (_HEAVY | unneeded) == set()
    assert "skillruntime.runtime.scripts.script_runner" in modules
    assert compiled == []


def test_list_imports_no_contract_and_no_event_loop(project: Path) -> None:
    """A skill without a contract file and without requirements is not even read."""
    (project / "skills" / "echo" / "contract.json").unlink()
    imported_by(project, "list")

    modules, compiled = imported_by(project, "list")

    unneeded = {"anyio", "asyncio", "ssl", "yaml", "skillruntime.contract.contract"}
    assert modules & (_HEAVY | unneeded) == set()
    assert compiled == []


def test_doctor_imports_neither_click_nor_what_draws(project: Path) -> None:
    """It is the command that says which packages are missing."""
    modules, compiled = imported_by(project, "doctor")

    assert modules & (_HEAVY | {"click"}) == set()
    assert compiled == []
