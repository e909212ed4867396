"""The level of the sandbox is the same in each process, and a weaker one is reported."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from skillruntime.catalog import SkillCatalog
from skillruntime.runtime import (
    SkillRuntime,
    interpreter_paths,
    open_sandbox,
    sandbox_report,
)
from skillruntime.runtime.sandbox import levels
from skillruntime.runtime.sandbox.bubblewrap import bubblewrap_arguments
from tests import needs
from tests.in_process import run_command

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

REPORT = """
import anyio, json
from skillruntime.runtime import sandbox_report
print(json.dumps(anyio.run(sandbox_report)))
"""
RUN = """
from skillruntime import SkillRuntime, discover
runtime = SkillRuntime(discover("skills"), approve=lambda request: True)
print(runtime.call_sync("sample", {}).metadata["sandbox"])
"""


def request_of(
    bound: list[str], readable: list[str], skills: list[str]
) -> dict[str, object]:
    """Return what a supervisor is asked to run."""
    return {
        "network": False,
        "limits": {"temporary": 1000},
        "bound": bound,
        "readable": readable,
        "skills": skills,
        "argv": ["/usr/bin/python3"],
        "environment": {"PATH": "/usr/bin:/bin"},
        "directory": bound[0],
    }


def mounted(arguments: list[str]) -> list[str]:
    """Return where a file or directory of the host is mounted, in order."""
    kinds = ("--bind-fd", "--ro-bind-fd", "--ro-bind-try")
    return [arguments[at + 2] for at, each in enumerate(arguments) if each in kinds]


def test_mounts_are_made_in_one_order() -> None:
    """A directory before what lies in it, whatever the order of the paths; nothing is
    mounted twice.
    """
    readable = [
        "/opt/python/bin",
        "/srv/data",
        "/opt/python",
        "/opt/python/bin/python3",
    ]
    readable += ["/opt/a/../python/lib", "/home/me/work/venv", "/opt/b"]
    skills = ["/home/me/work/skills/one", "/srv/skill"]
    opened = {
        "/home/me/work": 7,
        "/srv/data/out": 8,
        "/home/me/work/venv": 9,
        "/home/me/work/skills/one": 10,
    }
    orders: Counter[tuple[str, ...]] = Counter()

    for seed in range(200):
        shuffled = random.Random(seed)
        lists = [["/home/me/work", "/srv/data/out"], list(readable), list(skills)]
        for each in lists:
            shuffled.shuffle(each)
        request = {**request_of(*lists), "directory": "/home/me/work"}
        orders[tuple(mounted(bubblewrap_arguments(request, opened)))] += 1

    assert orders == {
        (
            "/opt/b",
            "/opt/python",
            "/srv/data",
            "/srv/skill",
            "/home/me/work",
            "/srv/data/out",
            "/home/me/work/venv",
            "/home/me/work/skills/one",
        ): 200
    }


def test_an_interpreter_with_dots_in_its_path_is_one_tree(tmp_path: Path) -> None:
    """The environment is named once, as the kernel finds it."""
    made = tmp_path / "venv"
    venv.create(made, symlinks=True)
    (tmp_path / "project").mkdir()

    plain = interpreter_paths(str(made / "bin" / "python"))
    dotted = interpreter_paths(f"{tmp_path}/project/../venv/bin/python")

    assert dotted == plain


@pytest.mark.parametrize("processes", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_each_new_process_uses_the_same_level(tmp_path: Path, processes: int) -> None:
    """A host in a virtual environment that was started by a relative path."""
    made = tmp_path / "venv"
    venv.create(made, symlinks=True)
    (tmp_path / "project").mkdir()
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    found: Counter[str] = Counter()

    for _ in range(processes):
        done = subprocess.run(
            ["../venv/bin/python", "-c", REPORT],
            cwd=tmp_path / "project",
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found[done.stdout] += 1

    assert len(found) == 1
    if shutil.which("bwrap") and anyio.run(sandbox_report)["bubblewrap"] is None:
        assert json.loads(next(iter(found)))["bubblewrap"] is None


@pytest.mark.usefixtures("some_sandbox")
def test_a_script_runs_where_its_interpreter_has_dots_in_its_path(
    tmp_path: Path, write_skill: Callable[..., SkillCatalog]
) -> None:
    """Also where it starts `python` again, which is found by PATH."""
    made = tmp_path / "venv"
    venv.create(made, symlinks=True)
    (tmp_path / "project").mkdir()
    source = (
        "import json, subprocess\n"
        "done = subprocess.run(['python', '-c', 'print(7)'], capture_output=True)\n"
        "print(json.dumps({'printed': done.stdout.decode()}))"
    )
    write_skill(source, trusted=False)
    program = RUN.replace('"skills"', repr(str(tmp_path / "skills")))

    done = subprocess.run(
        ["../venv/bin/python", "-c", program],
        cwd=tmp_path / "project",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )

    expected = first_level(anyio.run(sandbox_report))
    assert (done.stdout, done.stderr) == (f"{expected}\n", "")


def first_level(report: dict[str, str | None]) -> str:
    """Return the best level that works."""
    return next(level for level, reason in report.items() if reason is None)


@pytest.mark.anyio
async def test_a_weaker_level_is_reported_where_a_better_one_is_installed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in a process, with the reason."""
    if (await sandbox_report())["landlock"] is not None:
        pytest.skip("needs Landlock: Linux 5.13 or newer")
    failed = {
        **levels._known,
        "bubblewrap": "its self-test failed: traces was possible",
    }
    monkeypatch.setattr(levels, "_known", failed)
    monkeypatch.setattr(levels, "_warned", set())

    with caplog.at_level(logging.WARNING, logger="skillruntime"):
        used = [(await open_sandbox("auto")).level for _ in range(2)]

    assert used == ["landlock", "landlock"]
    assert [record.getMessage() for record in caplog.records] == [
        "untrusted scripts run at the level landlock: bubblewrap is installed, but its "
        "self-test failed: traces was possible"
    ]


@pytest.mark.anyio
async def test_a_level_that_is_not_installed_is_not_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Landlock is then the best one of this machine."""
    landlock = (await sandbox_report())["landlock"]
    if landlock is not None:
        pytest.skip("needs Landlock: Linux 5.13 or newer")
    monkeypatch.setattr(levels, "_known", {"landlock": levels._known["landlock"]})
    monkeypatch.setattr(levels, "_warned", set())
    monkeypatch.setenv("PATH", "/nowhere")

    with caplog.at_level(logging.WARNING, logger="skillruntime"):
        used = (await open_sandbox("auto")).level

    assert (used, caplog.records) == ("landlock", [])


@pytest.mark.usefixtures("some_sandbox")
def test_doctor_and_the_answer_of_a_call_name_the_same_level(
    write_skill: Callable[..., SkillCatalog], tmp_path: Path
) -> None:
    """The first level that `doctor` says works is the one in `metadata.sandbox`."""
    catalog = write_skill("print(1)", trusted=False)

    printed = run_command("doctor", "--json", "-s", str(tmp_path / "skills"))
    response = SkillRuntime(catalog, approve=lambda request: True).call_sync(
        "sample", {}
    )

    assert response.metadata is not None
    report = json.loads(printed.stdout)["sandboxes"]
    assert response.metadata["sandbox"] == first_level(report)


@pytest.mark.processes
@pytest.mark.skipif(not needs.is_root(), reason=needs.ROOT_USER)
def test_the_reason_names_what_helps_root_without_user_namespaces(
    tmp_path: Path,
) -> None:
    """In a chroot the kernel gives none; the reason is in words."""
    program = (
        "import sys\n"
        "from skillruntime.runtime.sandbox.guest import Guest, mount_for\n"
        "mount_for(Guest(1879048192, -1), [], [sys.argv[1]])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "run the host as an unprivileged user" in done.stderr.splitlines()[-1]
