"""A directory tree of any depth, and a link to a large directory, hide no skill."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skillruntime.catalog import discover, lock_skills, validate
from tests.skill_files import write_skill_files

NESTED = 500


@contextmanager
def few_frames() -> Iterator[None]:
    """Admit so few nested calls that a call for each directory would be too many."""
    before = sys.getrecursionlimit()
    frame = sys._getframe()
    depth = 0
    while frame.f_back is not None:
        frame = frame.f_back
        depth += 1
    sys.setrecursionlimit(depth + NESTED - 50)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def nest(directory: Path) -> None:
    """Make `NESTED` directories in *directory*, each inside the one before, and a file
    in the last one.
    """
    path = str(directory)
    for _ in range(NESTED):
        path += "/d"
        Path(path).mkdir()
    Path(path, "notes.md").write_text("Notes.")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two copies of a skill with deeply nested directories, and another skill."""
    for at in ("a", "b"):
        write_skill_files(tmp_path / at, "deep", "Has many directories.", {})
        nest(tmp_path / at / "deep")
    write_skill_files(tmp_path, "good", "Counts letters.", {})
    return tmp_path


def test_a_deeply_nested_skill_is_found_compared_and_locked(root: Path) -> None:
    """Its two copies are one skill, and all skills are in the lockfile."""
    discover(root, use_index=False)  # the imports need more nested calls

    with few_frames():
        catalog = discover(root, use_index=False)
        rules = [each.rule for each in catalog.diagnostics]
        locked = lock_skills(catalog)["skills"]

    assert list(catalog) == ["deep", "good"]
    assert rules == []
    assert sorted(locked) == ["deep", "good"]
    (root / "lock.json").write_text(json.dumps({"version": 1, "skills": locked}))
    assert list(discover(root, frozen=root / "lock.json")) == ["deep", "good"]


@pytest.fixture
def with_a_large_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with a link to more directories than are searched, beside a skill four
    directories deep.
    """
    for number in range(20):
        (tmp_path / f"disk/{number}/more").mkdir(parents=True)
    write_skill_files(tmp_path / "root/a/b/c", "good", "Counts letters.", {})
    (tmp_path / "root/all").symlink_to(tmp_path / "disk")
    write_skill_files(tmp_path / "store", "linked", "Is linked.", {})
    (tmp_path / "root/linked").symlink_to(tmp_path / "store/linked")
    for module in ("discovery.discovery", "checks.validation"):
        monkeypatch.setattr(f"skillruntime.catalog.{module}.MAX_DIRECTORIES", 10)
    return tmp_path / "root"


def test_a_link_to_a_large_directory_hides_no_skill(with_a_large_link: Path) -> None:
    """The directories behind links are searched last."""
    catalog = discover(with_a_large_link, use_index=False)

    assert list(catalog) == ["good", "linked"]
    assert "too-many-directories" in [each.rule for each in catalog.diagnostics]


def test_validate_ends_at_a_link_to_a_large_directory(with_a_large_link: Path) -> None:
    """And says that it did not search all of it."""
    found = validate(with_a_large_link)

    paths = [Path(each.path).relative_to(with_a_large_link) for each in found]
    assert [path.as_posix() for path in paths] == [
        "a/b/c/good/SKILL.md",
        "linked/SKILL.md",
        ".",
    ]
    assert [each.rule for each in found[-1].diagnostics] == ["too-many-directories"]
