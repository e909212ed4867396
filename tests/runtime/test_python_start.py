"""A skill's own modules and its own place, as its scripts find them: as beside a shell
in the skill's directory.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillruntime import SkillRuntime, discover
from skillruntime.runtime.scripts.python_start import is_started_as_module
from tests.skill_files import made, write_skill_files

IMPORTS_OWN = """
import json
import sys

from lib.rates import RATE
from scripts.words import count

if __name__ == "__main__":
    print(json.dumps([count("a b"), RATE, sys.argv[1:], sys.path[-1] == sys.argv[0]]))
"""
OWN_MODULES = {
    "scripts/words.py": "def count(text):\n    return len(text.split())\n",
    "lib/rates.py": "RATE = 3\n",
}


def call(runtime: SkillRuntime, name: str, **arguments: Any) -> Any:
    response = runtime.call_sync(name, arguments)
    assert response.status == "success", response.to_dict()
    return response.data


def runtime_of(tmp_path: Path, files: dict[str, str], *, trusted: bool) -> SkillRuntime:
    """A runtime with the skill ``own`` of *files*."""
    write_skill_files(tmp_path / "skills", "own", "Counts", files)
    return SkillRuntime(
        discover(tmp_path / "skills", trusted=trusted),
        approve=lambda request: True,
        workspace=made(tmp_path / "work"),
    )


@pytest.mark.processes
@pytest.mark.parametrize("trusted", [True, False])
def test_the_root_of_a_skill_is_importable(
    tmp_path: Path, trusted: bool, sandbox_if_untrusted: None
) -> None:
    """``from scripts.x import y`` and ``lib/``, as many published scripts write it."""
    files = {"scripts/run.py": IMPORTS_OWN, **OWN_MODULES}
    runtime = runtime_of(tmp_path, files, trusted=trusted)

    assert call(runtime, "own/run")[:3] == [2, 3, []]


@pytest.mark.processes
def test_the_root_of_a_skill_is_the_last_place_of_the_path(tmp_path: Path) -> None:
    """A file of the skill never takes the place of a module of the standard library,
    and the workspace is not on the path at all.
    """
    source = (
        "import calendar, json, os, sys\n"
        "if __name__ == '__main__':\n"
        "    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))\n"
        "    print(json.dumps([calendar.__file__.startswith(root), root == sys.path[-1],"
        " os.path.dirname(__file__) == sys.path[0], os.getcwd() in sys.path]))\n"
    )
    files = {"scripts/run.py": source, "calendar.py": "raise SystemExit(9)\n"}
    runtime = runtime_of(tmp_path, files, trusted=True)

    assert call(runtime, "own/run") == [False, True, True, False]


@pytest.mark.processes
def test_a_script_is_the_main_program_as_python_starts_it(tmp_path: Path) -> None:
    """Its names, its words and its workers do not show that the path was extended."""
    source = (
        "import multiprocessing, __main__\n"
        "def double(number):\n"
        "    return 2 * number\n"
        "if __name__ == '__main__':\n"
        "    import json, os, sys\n"
        "    names = [name for name in vars(__main__) if not name.startswith('__')]\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        doubled = pool.map(double, [1, 2])\n"
        "    same = os.path.samefile(sys.argv[0], __file__)\n"
        "    print(json.dumps([names, doubled, same, __package__, __spec__]))\n"
    )
    runtime = runtime_of(tmp_path, {"scripts/run.py": source}, trusted=True)

    assert call(runtime, "own/run") == [
        ["multiprocessing", "double", "json", "os", "sys"],
        [2, 4],
        True,
        None,
        None,
    ]


@pytest.mark.processes
@pytest.mark.parametrize("trusted", [True, False])
def test_a_script_is_started_as_its_instructions_start_it(
    tmp_path: Path, trusted: bool, sandbox_if_untrusted: None
) -> None:
    """With ``python -m scripts.run`` a relative import works."""
    source = (
        "import json, sys\n"
        "from .words import count\n"
        "if __name__ == '__main__':\n"
        "    print(json.dumps([count(sys.argv[1]), __package__, __spec__.name]))\n"
    )
    instructions = (
        "---\nname: own\ndescription: Counts\n---\n"
        "Run `python -m scripts.run TEXT` from this directory.\n"
    )
    files = {"SKILL.md": instructions, "scripts/run.py": source, **OWN_MODULES}
    runtime = runtime_of(tmp_path, files, trusted=trusted)

    assert call(runtime, "own/run", args=["a b c"]) == [3, "scripts", "scripts.run"]


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        ("python -m scripts.run", True),
        ("python3.12 -u -m scripts.run --all", True),
        ("uv run -m scripts.run", True),
        ("Start it with python -m scripts.run.", True),
        ("python -m scripts.run_all", False),
        ("python -m scripts.run.all", False),
        ("python scripts/run.py", False),
        ("pytest -m scripts.run", False),
    ],
)
def test_only_the_module_of_the_script_counts(
    instructions: str, expected: bool
) -> None:
    """By the form of the command, not by its words around it."""
    assert is_started_as_module(instructions, "scripts/run.py") is expected


@pytest.mark.processes
@pytest.mark.parametrize("module", ["scripts.gone", "lib.gone"])
def test_no_package_provides_what_is_the_skills_own(
    tmp_path: Path, module: str
) -> None:
    """Of a module that is missing in the skill itself the error is the script's."""
    files = {"scripts/run.py": f"import sys\nimport {module}\nprint(sys.argv)\n"}
    runtime = runtime_of(tmp_path, {**files, "lib/rates.py": ""}, trusted=True)

    error = runtime.call_sync("own/run", {}).errors[0]  # type: ignore[index]

    assert error.code == "TOOL_EXECUTION_FAILED"
    assert module in error.message
    assert "install" not in error.suggested_action


VARIABLES = (
    "import json, os, sys\n"
    "names = ('CLAUDE_SKILL_DIR', 'SKILL_DIR', 'SKILL_ROOT', 'CLAUDE_PLUGIN_ROOT')\n"
    "root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))\n"
    "values = [os.environ.get(name) for name in names]\n"
    "print(json.dumps([root, *values, sys.argv[1:]]))\n"
)


@pytest.mark.processes
def test_a_script_finds_the_directory_of_its_skill_and_plugin(tmp_path: Path) -> None:
    """By the names that clients give it, of whatever language the script is."""
    skills = tmp_path / "plugin" / "skills"
    (tmp_path / "plugin" / ".claude-plugin").mkdir(parents=True)
    files = {
        "scripts/run.py": VARIABLES,
        "scripts/show.sh": '#!/bin/bash\necho "$SKILL_ROOT:$1"\n',
    }
    directory = str(write_skill_files(skills, "own", "Counts", files))
    runtime = SkillRuntime(
        discover(skills, trusted=True), workspace=made(tmp_path / "work")
    )

    assert call(runtime, "own/run")[:5] == [
        directory,
        directory,
        directory,
        directory,
        str(tmp_path / "plugin"),
    ]
    shown = call(runtime, "own/show", argument_1="x")
    assert shown == {"stdout": f"{directory}:x"}


@pytest.mark.processes
def test_an_untrusted_script_finds_the_directory_of_its_copy(
    tmp_path: Path, some_sandbox: None
) -> None:
    """Not the host's place of it, nor what lies around the copy."""
    (tmp_path / ".claude-plugin").mkdir()
    runtime = runtime_of(tmp_path, {"scripts/run.py": VARIABLES}, trusted=False)

    root, *values, _ = call(runtime, "own/run")

    assert values == [root, root, root, None]
    assert not root.startswith(str(tmp_path))


@pytest.mark.processes
def test_the_variables_of_the_directory_need_no_grant(
    tmp_path: Path, some_sandbox: None
) -> None:
    """A contract may name them like any other: they are always set."""
    contract = {
        "run": {"script": "scripts/run.py"},
        "requires": {"environment": ["SKILL_DIR"]},
    }
    files = {"scripts/run.py": VARIABLES, "contract.json": json.dumps(contract)}
    runtime = runtime_of(tmp_path, files, trusted=False)

    assert runtime.missing("own") == ()
    root, _, skill_directory, *_ = call(runtime, "own")
    assert skill_directory == root
