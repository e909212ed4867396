from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillruntime.cache_files import cache_directory, prune_cached, read_cached, write_cached


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
    assert [read_cached(name, 100) for name in ("absent", "damaged", "fifo", "directory")] == [None] * 4


def test_the_cache_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written or read."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", "off")
    write_cached("file", b"data")

    assert cache_directory() is None
    assert read_cached("file", 100) is None


def test_a_directory_that_cannot_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
