"""Temporary directories: which of them the next process removes, and which are still in use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from skillruntime.runtime import temporary
from skillruntime.runtime.temporary import remove_soon, remove_tree
from skillruntime.runtime.workspace import Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="with Linux's namespaces and /proc")

START = "import os, sys, tempfile\nfrom skillruntime.runtime.temporary import make_temporary\n"
# Says where its directory is, and ends when its stdin does.
WORKSPACE = (
    "from skillruntime.runtime.workspace import Workspace\nworkspace = Workspace()\nmade = workspace.directory\n"
)
LIVES = "print(made, flush=True)\nsys.stdin.read()\n"
Start = Callable[..., Path]


def run(place: Path, source: str, *prefix: str, **options: Any) -> subprocess.Popen[str]:
    """Start a process that makes its temporary directories in *place*."""
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", f"{START}tempfile.tempdir = {str(place)!r}\n{source}"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def sweep(place: Path, *prefix: str) -> None:
    """Let another process need a temporary directory in *place*, and end."""
    with run(place, "make_temporary()", *prefix) as process:
        pass
    assert process.returncode == 0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a process and return the directory that it says; it ends after the test."""
    with ExitStack() as stack:

        def started(source: str, *prefix: str) -> Path:
            process = stack.enter_context(run(tmp_path, source, *prefix))
            assert process.stdin is not None
            assert process.stdout is not None
            stack.callback(process.stdin.close)
            return Path(process.stdout.readline().strip())

        yield started


def test_a_process_that_ends_leaves_nothing(tmp_path: Path) -> None:
    """Also of directories that it did not remove itself."""
    sweep(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """By the next process that needs a temporary directory, also where a script closed it."""
    source = (
        "made = make_temporary()\n(made / 'file').touch()\nmade.chmod(0)\n"
        "print(made, flush=True)\nos.kill(os.getpid(), 9)"
    )
    with run(tmp_path, source) as killed:
        assert killed.stdout is not None
        left = Path(killed.stdout.readline().strip())
        killed.wait()
    assert left.is_dir()

    sweep(tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("made = make_temporary()\n" + LIVES, id="lives"),
        pytest.param("made = make_temporary()\nif os.fork(): os._exit(0)\n" + LIVES, id="forked, parent gone"),
        pytest.param("made = make_temporary()\nif os.fork(): sys.exit()\n" + LIVES, id="forked, parent ended"),
        pytest.param(
            "made = make_temporary()\nif os.fork() == 0: sys.exit()\nos.wait()\n" + LIVES, id="forked, child ended"
        ),
        pytest.param(
            WORKSPACE + "if os.fork(): sys.exit()\n" + LIVES,
            id="workspace, forked, parent ended",
        ),
        pytest.param(
            WORKSPACE + "if os.fork() == 0:\n    workspace.close()\n    sys.exit()\nos.wait()\n" + LIVES,
            id="workspace, closed by a child",
        ),
        pytest.param("made = make_temporary()\nos.closerange(3, 1000)\n" + LIVES, id="closed every descriptor"),
        pytest.param(
            "make_temporary()\nif os.fork(): os._exit(0)\nos.setsid()\nos.closerange(3, 1000)\n"
            "made = make_temporary()\n" + LIVES,
            id="daemon",
        ),
    ],
)
def test_what_is_in_use_stays(tmp_path: Path, start: Start, source: str) -> None:
    """Whatever the process did to its numbers and descriptors."""
    used = start(source)

    sweep(tmp_path)

    assert used.is_dir()


def test_processes_of_another_container_are_seen(tmp_path: Path, start: Start) -> None:
    """Two that share the directory and not the process numbers leave each other's alone."""
    inside = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("namespaces are missing")
    here = start("made = make_temporary()\n" + LIVES)
    there = start("made = make_temporary()\n" + LIVES, *inside)

    sweep(tmp_path)
    sweep(tmp_path, *inside)

    assert here.is_dir()
    assert there.is_dir()


def test_what_this_library_did_not_make_stays(tmp_path: Path) -> None:
    """A directory that is only named like it, and the target of a link."""
    own = tmp_path / "skillruntime-tmp-notes"
    own.mkdir()
    (own / "text").touch()
    target = tmp_path / "target"
    (target / "files" / "a").mkdir(parents=True)
    (target / "lock").touch()
    (tmp_path / "skillruntime-tmp-link").symlink_to(target)
    linked = tmp_path / "skillruntime-tmp-linked"
    linked.mkdir()
    (linked / "files").mkdir()
    (linked / "lock").symlink_to(target / "lock")

    sweep(tmp_path)

    assert (own / "text").is_file()
    assert (target / "files" / "a").is_dir()
    assert (linked / "files").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of another user")
def test_directories_of_another_user_stay(tmp_path: Path) -> None:
    """Also where the host is root, and could remove them."""
    other = tmp_path / "skillruntime-tmp-other"
    (other / "files" / "a").mkdir(parents=True)
    (other / "lock").touch()
    os.chown(other, 12345, 12345)

    sweep(tmp_path)

    assert (other / "files" / "a").is_dir()


def test_many_at_once_do_not_sweep_each_other(tmp_path: Path) -> None:
    """Each finds its directory as it made it, whoever else begins or ends meanwhile."""
    source = (
        "for _ in range(20):\n    made = make_temporary()\n    (made / 'file').touch()\nassert (made / 'file').exists()"
    )
    processes = [run(tmp_path, source) for _ in range(12)]

    for process in processes:
        process.communicate()

    assert [process.returncode for process in processes] == [0] * 12
    assert list(tmp_path.iterdir()) == []


def test_a_tree_of_thousands_of_levels_is_removed(tmp_path: Path) -> None:
    """A script can make one deeper than Python calls itself; a link in it is removed, and not what it leads to."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    (tmp_path / "tree").mkdir()
    at = os.open(tmp_path / "tree", os.O_RDONLY)
    for _ in range(1500):
        os.symlink(tmp_path / "outside", "link", dir_fd=at)
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.fchmod(at, 0)
    os.close(at)

    assert Workspace(tmp_path / "tree").snapshot() == {}
    remove_tree(tmp_path / "tree")

    assert not (tmp_path / "tree").exists()
    assert (tmp_path / "outside" / "kept").exists()


def test_a_removal_that_takes_long_goes_on_beside_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller waits for a bounded time, and the directory still goes."""
    (tmp_path / "tree" / "a" / "b").mkdir(parents=True)
    (tmp_path / "tree" / "a" / "file").touch()
    monkeypatch.setattr(temporary, "_WAITED", -1.0)

    others = set(threading.enumerate())
    remove_soon(tmp_path / "tree")
    for thread in set(threading.enumerate()) - others:
        thread.join(120)

    assert not (tmp_path / "tree").exists()


def test_what_a_process_had_no_time_to_remove_goes_with_the_next(tmp_path: Path) -> None:
    """Its lock stays as long as anything else of it."""
    source = (
        "from skillruntime.runtime import temporary\nmade = make_temporary()\n"
        "(made / 'd').mkdir()\n(made / 'd' / 'file').touch()\ntemporary._WAITED = -1.0"
    )
    with run(tmp_path, source) as process:
        pass
    assert process.returncode == 0
    assert [sorted(each.name for each in left.iterdir()) for left in tmp_path.iterdir()] == [["files", "lock"]]

    sweep(tmp_path)

    assert list(tmp_path.iterdir()) == []
