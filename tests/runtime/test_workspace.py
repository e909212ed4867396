"""The directory of a session: `skillruntime/runtime/files/workspace.py`."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from skillruntime.runtime.files import workspace as module


def test_a_temporary_workspace_goes_when_it_is_closed() -> None:
    """Without a directory from the host a fresh one is made, and removed with what is
    in it.
    """
    workspace = module.Workspace()
    directory = workspace.directory
    (directory / "file.txt").write_text("x")

    workspace.close()

    assert not directory.exists()


def test_the_hosts_own_directory_stays(tmp_path: Path) -> None:
    """A directory that the host gave is made where needed and never removed."""
    workspace = module.Workspace(tmp_path / "new")
    assert workspace.directory == tmp_path / "new"

    workspace.close()

    assert (tmp_path / "new").is_dir()


@pytest.mark.parametrize(
    "path", ["a.txt", "deep/er/b.txt", "./a.txt", "deep/../a.txt", ""]
)
def test_paths_inside_are_made_absolute(tmp_path: Path, path: str) -> None:
    """A path inside is given back absolute, whether or not there is such a file."""
    resolved = module.Workspace(tmp_path).resolve(path)

    assert resolved == (tmp_path / path).resolve()


@pytest.mark.parametrize("path", ["..", "../x", "/etc/passwd", "deep/../../x", "a\0b"])
def test_paths_outside_and_unusable_ones_are_refused(tmp_path: Path, path: str) -> None:
    """Every path outside is refused, and so is one that a file system cannot hold."""
    assert module.Workspace(tmp_path / "w").resolve(path) is None


def test_a_link_inside_does_not_lead_outside(tmp_path: Path) -> None:
    """A symbolic link is followed before the decision; one that stays inside is
    fine.
    """
    inside = tmp_path / "w"
    inside.mkdir()
    (inside / "file").write_text("x")
    (inside / "out").symlink_to(tmp_path)
    (inside / "in").symlink_to(inside / "file")
    workspace = module.Workspace(inside)

    assert workspace.resolve("out/secret") is None
    assert workspace.resolve("in") == inside / "file"


def test_new_and_changed_files_are_listed(tmp_path: Path) -> None:
    """New and changed files are listed with type and size; unchanged files are not."""
    (tmp_path / "same.txt").write_text("same")
    (tmp_path / "changed.csv").write_text("a")
    workspace = module.Workspace(tmp_path)
    before = workspace.snapshot()
    assert before is not None

    (tmp_path / "changed.csv").write_text("a,b")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "new.json").write_text("{}")

    assert workspace.changes(before) == [
        {"path": "changed.csv", "media_type": "text/csv", "bytes": 3},
        {"path": "sub/new.json", "media_type": "application/json", "bytes": 2},
    ]


def test_hidden_directories_and_links_are_not_watched(tmp_path: Path) -> None:
    """A version-control directory or a link out of the workspace is not a result."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("x")
    (tmp_path / "link").symlink_to("/etc")

    assert module.Workspace(tmp_path).snapshot() == {}


def test_too_many_files_are_not_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home directory as the workspace costs a bounded look, not a walk."""
    monkeypatch.setattr(module, "FILE_LIMIT", 3)
    for number in range(5):
        (tmp_path / str(number)).write_text("x")

    assert module.Workspace(tmp_path).snapshot() is None


def test_directories_and_links_are_counted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script may leave a million empty directories, which each later call would
    walk.
    """
    monkeypatch.setattr(module, "FILE_LIMIT", 3)
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    assert module.Workspace(tmp_path).snapshot() == {}
    (tmp_path / "link").symlink_to("a")

    assert module.Workspace(tmp_path).snapshot() is None


def test_nothing_more_is_listed_once_there_are_too_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look ends in the directory that goes beyond the limit."""
    monkeypatch.setattr(module, "FILE_LIMIT", 12)
    for number in range(10):
        (tmp_path / f"directory{number}").mkdir()
        for name in range(5):
            (tmp_path / f"directory{number}" / str(name)).write_text("x")
    listed = []
    scandir = os.scandir

    def noted(at: int) -> os._ScandirIterator[str]:
        listed.append(at)
        return scandir(at)  # type: ignore[return-value]

    monkeypatch.setattr(os, "scandir", noted)

    assert module.Workspace(tmp_path).snapshot() is None
    assert len(listed) == 2


@pytest.mark.processes
def test_a_copy_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """A disk that is full in the middle leaves neither a part of the copy nor a
    temporary file.
    """
    workspace = module.Workspace(tmp_path / "w")
    (workspace.directory / "report.md").write_bytes(b"x" * 200_000)
    (tmp_path / "out").mkdir()
    pid = os.fork()
    if (
        pid == 0
    ):  # a limit of this process alone stands in for the full disk: the write fails in the middle
        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            workspace.copy_out("report.md", tmp_path / "out" / "copy.md")
        except OSError:
            code = 0
        finally:
            os._exit(code)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert list((tmp_path / "out").iterdir()) == []
    assert (
        workspace.copy_out("report.md", tmp_path / "out" / "copy.md").stat().st_size
        == 200_000
    )
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["copy.md"]


def test_a_file_is_copied_out_without_following_links(tmp_path: Path) -> None:
    """A link in any part of the path is refused, and so are a FIFO and an existing
    target.
    """
    workspace = module.Workspace(tmp_path / "w")
    (workspace.directory / "out").mkdir()
    (workspace.directory / "out" / "report.md").write_text("hi")
    (tmp_path / "secret").write_text("canary")
    (workspace.directory / "link.md").symlink_to(tmp_path / "secret")
    (workspace.directory / "up").symlink_to(tmp_path)
    os.mkfifo(workspace.directory / "fifo")

    copied = workspace.copy_out("out/report.md", tmp_path / "copy.md")

    assert copied.read_text() == "hi"
    for path in (
        "link.md",
        "up/secret",
        "../secret",
        "fifo",
        "out",
        "absent",
        str(tmp_path / "secret"),
    ):
        with pytest.raises(OSError):
            workspace.copy_out(path, tmp_path / "other")
    with pytest.raises(FileExistsError):
        workspace.copy_out("out/report.md", tmp_path / "copy.md")


def test_a_name_that_is_not_text_is_shown_with_escapes(tmp_path: Path) -> None:
    """A file's name is any bytes on Linux; one that is not UTF-8 broke every envelope
    that listed it.
    """
    workspace = module.Workspace(tmp_path)
    before = workspace.snapshot() or {}
    try:
        (tmp_path / os.fsdecode(b"a\xff.txt")).touch()
    except OSError:
        pytest.skip("needs a file system whose names are bytes: Linux")

    (listed,) = workspace.changes(before)

    assert listed["path"] == "a\\xff.txt"
