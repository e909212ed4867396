"""Temporary directories: what a process leaves of them, and what a script left in
them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from skillruntime.runtime.files import temporary
from skillruntime.runtime.files.temporary import (
    make_temporary,
    remove_soon,
    remove_tree,
)
from tests import needs
from tests.runtime.parts import Workspace

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

START = (
    "import os, sys, tempfile\n"
    "from skillruntime.runtime.files.temporary import make_temporary\n"
)


def run(place: Path, source: str) -> None:
    """Run *source* in a process that makes its temporary directories in *place*."""
    subprocess.run(
        [sys.executable, "-c", f"{START}tempfile.tempdir = {str(place)!r}\n{source}"],
        cwd=Path(__file__).parents[2],
        check=True,
    )


def test_a_process_that_ends_leaves_nothing(tmp_path: Path) -> None:
    """Also of directories that it did not remove itself, and of those that a script
    closed.
    """
    run(tmp_path, "made = make_temporary()\n(made / 'file').touch()\nmade.chmod(0)\n")

    assert list(tmp_path.iterdir()) == []


def test_what_takes_long_is_removed_before_the_process_ends(tmp_path: Path) -> None:
    """Also where no thread can be started any more."""
    source = (
        "from skillruntime.runtime.files import temporary\ntemporary._WAITED = -1.0\n"
        "for n in range(300):\n    (make_temporary() / 'd').mkdir()\n"
    )
    run(tmp_path, source)

    assert list(tmp_path.iterdir()) == []


def test_a_forked_process_leaves_the_directories_of_its_parent(tmp_path: Path) -> None:
    """Whether it ends, or closes a workspace that it was forked with."""
    source = """
from skillruntime.runtime.files.workspace import Workspace
workspace = Workspace()
made = [make_temporary(), workspace.directory]
if os.fork() == 0:
    workspace.close()
    sys.exit()
os.wait()
assert all(each.is_dir() for each in made)
"""
    run(tmp_path, source)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_tree_of_thousands_of_levels_is_removed(tmp_path: Path) -> None:
    """A script can make one deeper than Python calls itself; a link in it is removed,
    and not what it leads to.
    """
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


def test_a_removal_that_takes_long_goes_on_beside_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The caller waits for a bounded time, and the directory still goes."""
    tree = make_temporary()
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "file").touch()
    monkeypatch.setattr(temporary, "_WAITED", -1.0)

    others = set(threading.enumerate())
    remove_soon(tree)
    for thread in set(threading.enumerate()) - others:
        thread.join(120)

    assert not tree.exists()
