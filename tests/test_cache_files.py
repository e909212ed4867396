from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillruntime.cache_files import (
    cache_directory,
    prune_cached,
    read_cached,
    replace_file,
    write_cached,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_was_written_is_read_by_this_user_alone(cache: Path) -> None:
    """The directory and the file are closed to others."""
    write_cached("some/file", b"data")

    assert read_cached("some/file", 100) == b"data"
    assert (cache / "some" / "file").stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700


def test_what_cannot_be_used_is_not_there(cache: Path) -> None:
    """A file that is absent, too large, damaged, or not a file."""
    write_cached("file", b"data")
    write_cached("damaged", b"data")
    (cache / "damaged").write_bytes(b"other bytes")
    os.mkfifo(cache / "fifo")
    (cache / "directory").mkdir()

    assert read_cached("file", 5) is None
    assert [
        read_cached(name, 100) for name in ("absent", "damaged", "fifo", "directory")
    ] == [None] * 4


def test_the_cache_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written or read."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", "off")
    write_cached("file", b"data")

    assert cache_directory() is None
    assert read_cached("file", 100) is None


def test_a_directory_that_cannot_be_written_is_not_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value is computed again each time."""
    (tmp_path / "occupied").write_text("a file")
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path / "occupied"))
    write_cached("file", b"data")
    prune_cached("any", 1)

    assert read_cached("file", 100) is None


def test_the_oldest_half_of_too_many_files_is_removed(cache: Path) -> None:
    """With as many as are allowed nothing is removed."""
    for number in range(6):
        write_cached(f"many/{number}", b"data")
        os.utime(cache / "many" / str(number), (number, number))

    prune_cached("many", 6)
    assert len(list((cache / "many").iterdir())) == 6
    prune_cached("many", 5)
    assert sorted(path.name for path in (cache / "many").iterdir()) == ["3", "4", "5"]


KILLED = """
import builtins, os, sys
from skillruntime import cache_files

step, path = sys.argv[1:]
replace = os.replace

class Cut:
    def __init__(self, file): self.file = file
    def __enter__(self): return self
    def __exit__(self, *error): self.file.close()
    def writelines(self, parts):
        self.file.write(next(iter(parts)))
        self.file.flush()
        os._exit(9)

if step == "write":
    cache_files.open = lambda *given, **named: Cut(builtins.open(*given, **named))
else:
    os.replace = lambda *given: (step == "after" and replace(*given), os._exit(9))
cache_files.replace_file(path, (b"new ", b"content"))
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("step", "content"),
    [("write", b"old content"), ("before", b"old content"), ("after", b"new content")],
)
def test_a_writer_that_is_killed_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, step: str, content: bytes
) -> None:
    """In the middle of writing, and before and after the file takes its name; the next
    writer is not disturbed.
    """
    path = tmp_path / "file"
    assert replace_file(str(path), [b"old content"])

    ended = subprocess.run(
        [sys.executable, "-c", KILLED, step, str(path)], check=False, timeout=300
    )

    assert ended.returncode == 9
    assert path.read_bytes() == content
    assert replace_file(str(path), [b"newest"])
    assert path.read_bytes() == b"newest"


def test_a_file_that_cannot_take_its_name_leaves_nothing(tmp_path: Path) -> None:
    """The name is that of a directory with a file."""
    (tmp_path / "taken" / "below").mkdir(parents=True)

    assert not replace_file(str(tmp_path / "taken"), [b"data"])
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_what_a_killed_writer_left_is_removed_by_a_later_write(tmp_path: Path) -> None:
    """Only its temporary files, and only after an hour: another process may be
    writing.
    """
    left, fresh, others = (
        tmp_path / name
        for name in ("index.12.0a1b2c3d", "index.13.0a1b2c3d", "notes.14.20261122")
    )
    for path in (left, fresh, others):
        path.write_bytes(b"half")
    for path in (left, others):
        os.utime(path, (1_000_000_000, 1_000_000_000))

    assert replace_file(f"{tmp_path}/index", [b"whole"])

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "index",
        "index.13.0a1b2c3d",
        "notes.14.20261122",
    ]


def test_a_directory_of_many_files_is_cleaned_when_it_is_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at each write, which would list thousands of files thousands of times."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path))
    write_cached("derived/one", b"kept")
    left = tmp_path / "derived" / "two.12.0a1b2c3d"
    left.write_bytes(b"half")
    os.utime(left, (1_000_000_000, 1_000_000_000))
    write_cached("derived/three", b"kept")
    assert left.exists()

    prune_cached("derived", most_files=100)

    assert not left.exists()
    assert read_cached("derived/one", 100) == b"kept"


def test_without_a_cache_directory_nothing_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also not in a directory that has the name of nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLRUNTIME_CACHE", "off")
    kept = tmp_path / "None" / "some"
    kept.mkdir(parents=True)
    for number in range(3):
        (kept / str(number)).touch()

    prune_cached("some", 1)

    assert len([*kept.iterdir()]) == 3
