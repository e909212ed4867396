"""The search index on disk: used, brought up to date, and never trusted more than it deserves."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skillruntime.catalog import search as search_module
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.discovery import discover
from tests.catalog.conftest import WriteSkill

ANIMALS = ("zebra", "giraffe", "walrus", "otter", "lynx", "badger", *(f"beast{n}" for n in range(60)))


@pytest.fixture
def skills(tmp_path: Path, write_skill: WriteSkill) -> Path:
    for animal in ANIMALS:
        text = f"---\nname: about-{animal}\ndescription: One.\n---\nFeeds the {animal}.\n"
        directory = write_skill(f"about-{animal}", text=text)
        # An hour old: a file that has just been written has no stamp that could be relied on.
        os.utime(directory / "SKILL.md", (time.time() - 3600,) * 2)
    return tmp_path / "skills"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the directories of the skills that search reads."""
    paths: list[str] = []
    original = search_module.read_regular

    def recording(path: str, limit: int, *, cut: bool = False) -> bytes:
        paths.append(Path(path).parent.name)
        return original(path, limit, cut=cut)

    monkeypatch.setattr(search_module, "read_regular", recording)
    return paths


def names(catalog: SkillCatalog, query: str) -> list[str]:
    return [hit.name for hit in catalog.search(query)]


def index_of(cache: Path) -> Path:
    [file] = cache.glob("search/*.index")
    return file


def test_discovery_and_listing_make_no_search_index(skills: Path, own_cache: Path) -> None:
    """Only a search does."""
    discover(skills).to_prompt()
    assert not list(own_cache.glob("search/*"))


def test_another_process_reads_no_skill(skills: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of unchanged files are in the index."""
    assert names(discover(skills), "walrus") == ["about-walrus"]
    monkeypatch.setattr(search_module, "read_regular", _never)

    assert names(discover(skills), "otter") == ["about-otter"]


def test_only_an_edited_skill_is_read(skills: Path, write_skill: WriteSkill, read: list[str]) -> None:
    """A new or edited skill is found by its new words, a deleted one is not found, and nothing else is read."""
    catalog = discover(skills)
    assert names(catalog, "lynx") == ["about-lynx"]
    read.clear()

    write_skill("about-lynx", text="---\nname: about-lynx\ndescription: One.\n---\nFeeds the pelican.\n")
    write_skill("about-heron", text="---\nname: about-heron\ndescription: One.\n---\nFeeds the heron.\n")
    (skills / "about-otter" / "SKILL.md").unlink()
    fresh = catalog.refresh()

    assert names(fresh, "pelican") == ["about-lynx"]
    assert names(fresh, "heron") == ["about-heron"]
    assert names(fresh, "zebra") == ["about-zebra"]
    assert names(fresh, "otter") == []
    assert "about-otter" not in names(fresh, "feeds")
    assert sorted(set(read)) == ["about-heron", "about-lynx"]


def test_an_edited_skill_is_ranked_with_the_others(skills: Path, write_skill: WriteSkill, own_cache: Path) -> None:
    """The same order and scores whether the index was brought up to date or made at once."""
    discover(skills).search("zebra")
    write_skill("about-lynx", text="---\nname: about-lynx\ndescription: One.\n---\nFeeds the zebra and the lynx.\n")
    updated = discover(skills).search("feed the zebra", 70)
    index_of(own_cache).unlink()
    made = discover(skills).search("feed the zebra", 70)

    assert updated == made


def test_many_changes_write_the_index_again(
    skills: Path, write_skill: WriteSkill, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the next process has little to read."""
    discover(skills).search("zebra")
    before = index_of(own_cache).stat().st_ino
    for number in range(60):
        directory = write_skill(f"more-{number}", description=f"Counts to {number}00.")
        os.utime(directory / "SKILL.md", (time.time() - 3600,) * 2)
    discover(skills).search("zebra")

    assert index_of(own_cache).stat().st_ino != before
    monkeypatch.setattr(search_module, "read_regular", _never)
    assert names(discover(skills), "5900") == ["more-59"]


def test_a_view_uses_the_index_and_does_not_replace_it(skills: Path, own_cache: Path) -> None:
    """Skills outside the view are never found; a view of a few skills leaves the file as it is."""
    discover(skills).search("zebra")
    before = index_of(own_cache).read_bytes()
    view = discover(skills).select(include=["about-lynx"])

    assert names(view, "zebra") == []
    assert names(view, "feeds zebra lynx") == ["about-lynx"]
    assert index_of(own_cache).read_bytes() == before


@pytest.mark.parametrize("kept", [0, 1, 30, 60, 200, -1, -5])
def test_a_cut_file_is_not_used(skills: Path, own_cache: Path, kept: int) -> None:
    """Wherever it was cut, search answers as without it."""
    expected = discover(skills).search("feeds the badger")
    file = index_of(own_cache)
    file.write_bytes(file.read_bytes()[:kept])

    assert discover(skills).search("feeds the badger") == expected


def test_a_damaged_file_is_not_used(skills: Path, own_cache: Path) -> None:
    """Any byte of it may be wrong."""
    expected = discover(skills).search("feeds the badger")
    file = index_of(own_cache)
    good = file.read_bytes()
    for position in range(0, len(good), 41):
        file.unlink()
        file.write_bytes(good[:position] + bytes([good[position] ^ 0x55]) + good[position + 1 :])
        assert discover(skills).search("feeds the badger") == expected, position


def test_a_file_that_is_damaged_while_it_is_in_use_is_not_used(skills: Path, own_cache: Path) -> None:
    """The words of a query are checked when they are read; the answer is that of a new index."""
    expected = discover(skills).search("feeds the badger")
    catalog = discover(skills)
    catalog.search("zebra")
    file = index_of(own_cache)
    with file.open("r+b") as opened:
        opened.seek(-2000, os.SEEK_END)
        opened.write(b"\xff" * 2000)

    assert catalog.search("feeds the badger") == expected


@pytest.mark.parametrize("kept", [0, 10, 4096, -2000, -1])
def test_a_file_that_is_cut_while_it_is_in_use_is_not_used(skills: Path, own_cache: Path, kept: int) -> None:
    """Were it mapped into memory, the process would end with SIGBUS."""
    expected = discover(skills).search("feeds the badger")
    catalog = discover(skills)
    catalog.search("zebra")
    file = index_of(own_cache)
    os.truncate(file, kept if kept >= 0 else file.stat().st_size + kept)

    assert catalog.search("feeds the badger") == expected
    assert names(catalog, "otter") == ["about-otter"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_in_its_place_is_not_waited_for(skills: Path, own_cache: Path) -> None:
    """Nothing is read from it."""
    discover(skills).search("zebra")
    file = index_of(own_cache)
    file.unlink()
    os.mkfifo(file)

    assert names(discover(skills), "zebra") == ["about-zebra"]


def test_search_works_where_nothing_can_be_written(
    skills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache directory that is a file stands for a read-only one, which root could write."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path / "file" / "below"))
    assert names(discover(skills), "zebra") == ["about-zebra"]


def test_search_works_on_a_full_disk(skills: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed write leaves no file behind."""
    catalog = discover(skills)

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)

    assert names(catalog, "zebra") == ["about-zebra"]
    assert not list(own_cache.glob("search/*"))


def test_many_threads_may_search_first(skills: Path, own_cache: Path) -> None:
    """Each gets the same answer, and one whole file remains."""
    catalogs = [discover(skills) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda catalog: names(catalog, "giraffe"), catalogs))

    assert found == [["about-giraffe"]] * 8
    assert [file.suffix for file in own_cache.glob("search/*")] == [".index"]


def test_old_files_are_deleted(tmp_path: Path, own_cache: Path, write_skill: WriteSkill) -> None:
    """At most the indexes of the last sixteen sets of roots are kept."""
    for number in range(20):
        write_skill("only", at=f"{number}/only")
        discover(tmp_path / "skills" / str(number)).search("only")

    assert 8 <= len(list(own_cache.glob("search/*"))) <= 16


def test_without_an_index_file_nothing_is_written(skills: Path, own_cache: Path) -> None:
    """As for discovery."""
    assert names(discover(skills, use_index=False), "zebra") == ["about-zebra"]
    assert not list(own_cache.iterdir())


def _never(*_: object, **__: object) -> bytes:
    raise AssertionError("a skill was read")
