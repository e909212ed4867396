"""What the tests of the catalog share: a writer of skills, a cache of their own, and
the corpus where there is one.
"""

from __future__ import annotations

import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import needs

collect_ignore = ["fuzz.py"]  # run by hand, with what it asks for
# Beside the repository, or beside a directory that holds a worktree of it.
WriteSkill = Callable[..., Path]


@pytest.fixture(autouse=True)
def no_file_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """A host that discovers its skills again and again would run out of files.

    A thread that indexes may have one for a moment, and what starts scripts is kept.
    """
    if sys.platform != "linux" or request.node.get_closest_marker("processes"):
        yield
        return
    before = _open_files()
    yield
    for _ in range(100):
        if _open_files() <= before:
            return
        time.sleep(0.05)
    pytest.fail("a file stays open")


def _open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.fixture(autouse=True)
def own_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Let no test read or write the user's index."""
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(cache))
    return cache


@pytest.fixture
def write_skill(tmp_path: Path) -> WriteSkill:
    """Return a function that writes a skill below ``tmp_path/skills`` and returns its
    directory.
    """

    def write(
        name: str,
        description: str = "Reads. Use when asked.",
        *,
        text: str | bytes | None = None,
        at: str = "",
    ) -> Path:
        directory = tmp_path / "skills" / (at or name)
        directory.mkdir(parents=True, exist_ok=True)
        content = (
            f"---\nname: {name}\ndescription: {description}\n---\n# {name}\n"
            if text is None
            else text
        )
        (directory / "SKILL.md").write_bytes(
            content.encode() if isinstance(content, str) else content
        )
        return directory

    return write


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the corpus of real skills, unpacked."""
    packed = needs.data("skills_corpus/skills_corpus.tar.gz")
    directory = tmp_path_factory.mktemp("corpus")
    with tarfile.open(packed) as archive:
        # The first releases of Python 3.11 have no filters.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(directory)
    return directory / "skills_corpus"
