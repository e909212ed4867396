"""A process that is killed at any moment of a write leaves the old file or the new one,
and nothing that grows.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillruntime.cache_files import read_cached, write_cached
from skillruntime.catalog import discover
from skillruntime.catalog.file_opening import write_inside
from skillruntime.cli import group
from tests import needs
from tests.hostile.cases import skill_text
from tests.runtime.parts import Workspace

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

CHANGING = (
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.link",
    "os.symlink",
    "os.truncate",
)
NEW = b"new " * 5_000


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twenty skills, a cache of its own, and what was written before."""
    for number in range(20):
        directory = tmp_path / "skills" / f"skill-{number}"
        directory.mkdir(parents=True)
        (directory / "SKILL.md").write_text(
            skill_text(f"skill-{number}", f"Reads kind {number}. Use when reading.")
        )
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def index(place: Path) -> None:
    """Write the index of the catalog and the one of the search."""
    shutil.rmtree(place / "cache", ignore_errors=True)
    _indexed(place)


def _indexed(place: Path) -> None:
    catalog = discover(place / "skills")
    catalog.search("reads kind", 3)


def edited(place: Path) -> None:
    """Append an edit to both."""
    _edit(place)
    _indexed(place)


def _edit(place: Path) -> None:
    # A file of its own for each moment: a skill that is half written would be another
    # test.
    scratch = place / "scratch"
    scratch.write_text(
        skill_text("skill-3", f"Writes forms {os.getpid()}. Use when writing.")
    )
    scratch.replace(place / "skills" / "skill-3" / "SKILL.md")


def cache(place: Path) -> None:
    """Replace a file of the cache."""
    write_cached("sample", NEW)


def lockfile(place: Path) -> None:
    """Replace the lockfile."""
    _edit(place)
    CliRunner().invoke(group, ["lock", "--skills", "skills"])


def contract(place: Path) -> None:
    """Replace a contract of a skill."""
    write_inside(str(place), "contracts/a.json", NEW)


def copied_out(place: Path) -> None:
    """Copy a file out of the workspace."""
    (place / "copies" / "a").unlink(missing_ok=True)
    Workspace(place / "workspace").copy_out("big", place / "copies" / "a")


def check_index(place: Path) -> None:
    """Every skill is listed and found, whatever is left on the disk."""
    catalog = discover(place / "skills")
    assert len(catalog) == 20
    assert catalog.search("reads kind 7", 3)[0].name == "skill-7"
    assert len(list((place / "cache").rglob("*"))) < 20


def check_cache(place: Path) -> None:
    """The old bytes or the new."""
    assert read_cached("sample", 1_000_000) in (b"old", NEW)


def check_lockfile(place: Path) -> None:
    """It is JSON of all twenty skills, old or new."""
    document = json.loads((place / "skills-lock.json").read_text("utf-8"))
    assert len(document["skills"]) == 20


def check_contract(place: Path) -> None:
    """The old bytes or the new."""
    assert (place / "contracts" / "a.json").read_bytes() in (b"old", NEW)


def check_copy(place: Path) -> None:
    """Nothing or the whole file; a part of it is hidden, under another name."""
    shown = [
        path for path in (place / "copies").iterdir() if not path.name.startswith(".")
    ]
    assert [path.read_bytes() for path in shown] in ([], [NEW])


def nothing(place: Path) -> None:
    """There was nothing before."""


def a_workspace(place: Path) -> None:
    """The workspace has a file."""
    (place / "workspace").mkdir()
    (place / "workspace" / "big").write_bytes(NEW)
    (place / "copies").mkdir()


def old_index(place: Path) -> None:
    """The indexes are there."""
    index(place)


def old_cache(place: Path) -> None:
    """The cache has a file."""
    write_cached("sample", b"old")


def old_lockfile(place: Path) -> None:
    """There is a lockfile."""
    CliRunner().invoke(group, ["lock", "--skills", "skills"])


def old_contract(place: Path) -> None:
    """There is a contract."""
    write_inside(str(place), "contracts/a.json", b"old")


Step = Callable[[Path], None]


@pytest.mark.parametrize(
    ("before", "write", "check"),
    [
        (nothing, index, check_index),
        (old_index, edited, check_index),
        (old_cache, cache, check_cache),
        (old_lockfile, lockfile, check_lockfile),
        (old_contract, contract, check_contract),
        (a_workspace, copied_out, check_copy),
    ],
    ids=lambda step: step.__name__,
)
@pytest.mark.parametrize(
    "how", ["at each change of a directory", "in the middle of the bytes"]
)
@pytest.mark.quick_cases(
    [
        "at each change of a directory-nothing-index-check_index",
        "at each change of a directory-old_cache-cache-check_cache",
        "at each change of a directory-old_contract-contract-check_contract",
        "in the middle of the bytes-nothing-index-check_index",
        "in the middle of the bytes-a_workspace-copied_out-check_copy",
    ]
)
def test_a_kill_leaves_the_old_or_the_new(
    place: Path, before: Step, write: Step, check: Step, how: str
) -> None:
    """Before each opening, rename and removal; or by the kernel, when so many bytes of
    a file are written.
    """
    before(place)
    moments = (
        range(1, 200) if how.startswith("at each") else (1, 10, 100, 511, 1000, 1 << 30)
    )

    killed = 0
    for moment in moments:
        was_killed = _killed_in(
            lambda: write(place), moment, by_bytes=not how.startswith("at each")
        )
        check(place)
        killed += was_killed
        if not was_killed:
            break

    assert killed > 0
    assert not was_killed


def _killed_in(run: Callable[[], None], moment: int, *, by_bytes: bool) -> bool:
    """Run in a fork that is killed at that moment; return whether it was."""
    child = os.fork()
    if child == 0:
        try:
            if by_bytes:
                signal.signal(
                    signal.SIGXFSZ, signal.SIG_DFL
                )  # Python ignores it, and would get an error instead
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                resource.setrlimit(resource.RLIMIT_FSIZE, (moment, moment))
            else:
                _kill_at(moment)
            run()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _kill_at(moment: int) -> None:
    left = moment

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        writes = (
            event == "open"
            and isinstance(arguments[2], int)
            and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if writes or event in CHANGING:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
