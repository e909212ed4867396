"""``pytest --skills``: `skillruntime/testing/pytest_plugin.py`, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.in_process import run_command

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
WITHOUT_EXTRAS = """
import sys

EXTRAS = {"click", "httpx2", "langchain_core", "markdown_it", "pydantic", "rich",
          "tiktoken"}


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())


def pytest_unconfigure(config):
    loaded = {name for name in sys.modules if name.startswith("skillruntime.")}
    print("loaded:", *sorted(loaded))
"""


def run_pytest(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin and without what extras install."""
    (directory / "without_extras.py").write_text(WITHOUT_EXTRAS)
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": f"{directory}{os.pathsep}{ROOT}",
        "PYTEST_ADDOPTS": "",
    }
    plugins = ["-p", "without_extras", "-p", "skillruntime.testing.pytest_plugin"]
    options = ["-q", "-c", os.devnull, "--rootdir", str(directory)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options, *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.usefixtures("some_sandbox")
def test_each_skill_is_a_test_in_a_plain_install(tmp_path: Path) -> None:
    """Failures are listed with the command that repeats them, and -k selects."""
    run_command("new", "good-skill", "--in", str(tmp_path / "skills"))
    run_command("new", "bad-skill", "--in", str(tmp_path / "skills"))
    script = tmp_path / "skills" / "bad-skill" / "scripts" / "count_words.py"
    script.write_text("print('{}')\n")
    (tmp_path / "own").mkdir()

    ran = run_pytest(tmp_path, "--skills", "skills", "-k", "bad-skill", "own")
    both = run_pytest(tmp_path, "--skills", "skills", "own")

    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "bad-skill: [output]" in ran.stdout
    assert "skillruntime call bad-skill" in ran.stdout
    assert "1 failed, 1 deselected" in ran.stdout
    assert "1 failed, 1 passed" in both.stdout


def test_without_the_option_nothing_of_the_library_is_imported(tmp_path: Path) -> None:
    """Every start of pytest would pay for it."""
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")

    ran = run_pytest(tmp_path, "test_one.py")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("loaded:")]
    assert line.split()[1:] == [
        "skillruntime._version",
        "skillruntime.extras",
        "skillruntime.forks",
        "skillruntime.lazy_exports",
        "skillruntime.testing",
        "skillruntime.testing.pytest_plugin",
    ]


def test_a_directory_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    """A mistyped one must not look like one without skills."""
    ran = run_pytest(tmp_path, "--skills", "no-such-directory")

    assert ran.returncode == 4
    assert "--skills no-such-directory: it is not a directory" in ran.stderr


def test_a_directory_without_skills_is_wrong_usage(tmp_path: Path) -> None:
    """A pytest that tests nothing must not pass."""
    (tmp_path / "empty").mkdir()

    ran = run_pytest(tmp_path, "--skills", "empty")

    assert ran.returncode == 4
    assert "--skills empty: it has no skills" in ran.stderr
