"""The search index on disk: used, brought up to date, and never trusted more than it
deserves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from skillruntime.catalog import SearchIndex, SkillCatalog, discover
from skillruntime.catalog.search import search as search_module
from tests import needs
from tests.catalog.conftest import WriteSkill

ANIMALS = (
    "zebra",
    "giraffe",
    "walrus",
    "otter",
    "lynx",
    "badger",
    *(f"beast{n}" for n in range(60)),
)


@pytest.fixture
def skills(tmp_path: Path, write_skill: WriteSkill) -> Path:
    for animal in ANIMALS:
        text = (
            f"---\nname: about-{animal}\ndescription: One.\n---\nFeeds the {animal}.\n"
        )
        directory = write_skill(f"about-{animal}", text=text)
        # An hour old: a file that has just been written has no stamp that could be
        # relied on.
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


def names(catalog: SkillCatalog, query: str, *, wait: bool = False) -> list[str]:
    return [hit.name for hit in catalog.search(query, wait=wait)]


def index_of(cache: Path) -> Path:
    [file] = cache.glob("search/*.index")
    return file


def test_discovery_and_listing_make_no_search_index(
    skills: Path, own_cache: Path
) -> None:
    """Only a search does."""
    discover(skills).to_prompt()
    assert not list(own_cache.glob("search/*"))


def test_another_process_reads_no_skill(
    skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of unchanged files are in the index."""
    assert names(discover(skills), "walrus") == ["about-walrus"]
    monkeypatch.setattr(search_module, "read_regular", _never)

    assert names(discover(skills), "otter") == ["about-otter"]


def test_only_an_edited_skill_is_read(
    skills: Path, write_skill: WriteSkill, read: list[str]
) -> None:
    """A new or edited skill is found by its new words, a deleted one is not found, and
    nothing else is read.
    """
    catalog = discover(skills)
    assert names(catalog, "lynx") == ["about-lynx"]
    read.clear()

    write_skill(
        "about-lynx",
        text="---\nname: about-lynx\ndescription: One.\n---\nFeeds the pelican.\n",
    )
    write_skill(
        "about-heron",
        text="---\nname: about-heron\ndescription: One.\n---\nFeeds the heron.\n",
    )
    (skills / "about-otter" / "SKILL.md").unlink()
    fresh = catalog.refresh()

    assert names(fresh, "pelican") == ["about-lynx"]
    assert names(fresh, "heron") == ["about-heron"]
    assert names(fresh, "zebra") == ["about-zebra"]
    assert names(fresh, "otter") == []
    assert "about-otter" not in names(fresh, "feeds")
    assert sorted(set(read)) == ["about-heron", "about-lynx"]


def test_an_edited_skill_is_ranked_with_the_others(
    skills: Path, write_skill: WriteSkill, own_cache: Path
) -> None:
    """The same order and scores whether the index was brought up to date or made at
    once.
    """
    discover(skills).search("zebra")
    write_skill(
        "about-lynx",
        text="---\n"
        "name: about-lynx\n"
        "description: One.\n"
        "---\n"
        "Feeds the zebra and the lynx.\n",
    )
    updated = discover(skills).search("feed the zebra", 70)
    index_of(own_cache).unlink()
    made = discover(skills).search("feed the zebra", 70)

    assert updated == made


def test_many_changes_write_the_index_again(
    skills: Path,
    write_skill: WriteSkill,
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that the next process has little to read."""
    discover(skills).search("zebra")
    before = index_of(own_cache).stat().st_ino
    for number in range(60):
        directory = write_skill(f"more-{number}", description=f"Counts to {number}00.")
        os.utime(directory / "SKILL.md", (time.time() - 3600,) * 2)
    discover(skills).search("zebra", wait=True)

    assert index_of(own_cache).stat().st_ino != before
    monkeypatch.setattr(search_module, "read_regular", _never)
    assert names(discover(skills), "5900") == ["more-59"]


def test_a_view_uses_the_index_and_does_not_replace_it(
    skills: Path, own_cache: Path
) -> None:
    """Skills outside the view are never found; a view of a few skills leaves the file
    as it is.
    """
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
        file.write_bytes(
            good[:position] + bytes([good[position] ^ 0x55]) + good[position + 1 :]
        )
        assert discover(skills).search("feeds the badger") == expected, position


def test_a_file_that_is_damaged_while_it_is_in_use_is_not_used(
    skills: Path, own_cache: Path
) -> None:
    """The words of a query are checked when they are read; the answer is that of a new
    index.
    """
    expected = discover(skills).search("feeds the badger")
    catalog = discover(skills)
    catalog.search("zebra")
    file = index_of(own_cache)
    with file.open("r+b") as opened:
        opened.seek(-2000, os.SEEK_END)
        opened.write(b"\xff" * 2000)

    assert catalog.search("feeds the badger") == expected


@pytest.mark.parametrize("kept", [0, 10, 4096, -2000, -1])
def test_a_file_that_is_cut_while_it_is_in_use_is_not_used(
    skills: Path, own_cache: Path, kept: int
) -> None:
    """Were it mapped into memory, the process would end with SIGBUS."""
    expected = discover(skills).search("feeds the badger")
    catalog = discover(skills)
    catalog.search("zebra")
    file = index_of(own_cache)
    os.truncate(file, kept if kept >= 0 else file.stat().st_size + kept)

    assert catalog.search("feeds the badger") == expected
    assert names(catalog, "otter") == ["about-otter"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason=needs.UNIX)
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
    """A cache directory that is a file stands for a read-only one, which root could
    write.
    """
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path / "file" / "below"))
    assert names(discover(skills), "zebra") == ["about-zebra"]


def test_search_works_on_a_full_disk(
    skills: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_old_files_are_deleted(
    tmp_path: Path, own_cache: Path, write_skill: WriteSkill
) -> None:
    """At most the indexes of the last sixteen sets of roots are kept."""
    for number in range(20):
        write_skill("only", at=f"{number}/only")
        discover(tmp_path / "skills" / str(number)).search("only")

    assert 8 <= len(list(own_cache.glob("search/*"))) <= 16


def test_without_an_index_file_nothing_is_written(
    skills: Path, own_cache: Path
) -> None:
    """As for discovery."""
    assert names(discover(skills, use_index=False), "zebra") == ["about-zebra"]
    assert not list(own_cache.iterdir())


def _never(*_: object, **__: object) -> bytes:
    raise AssertionError("a skill was read")


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the skills of these tests count as many, and end the threads that index
    them.
    """
    monkeypatch.setattr(search_module, "_AT_ONCE", 3)
    yield
    for thread in threading.enumerate():
        if thread.name == "skillruntime-search":
            thread.join(60)


def edit(skills: Path, animals: Sequence[str]) -> None:
    """Write a new word into the instructions of some skills."""
    for animal in animals:
        path = skills / f"about-{animal}" / "SKILL.md"
        path.write_text(f"{path.read_text()}Beware of the quagga.\n")
        os.utime(path, (time.time() - 1800,) * 2)


@pytest.mark.usefixtures("many")
def test_views_and_their_catalog_use_one_index(skills: Path, read: list[str]) -> None:
    """Skills that a view leaves out are not gone, and a view does not put its own index
    in the place of all.
    """
    catalog = discover(skills)
    view = catalog.select(exclude=["about-beast1?"])
    assert len(catalog.search("feeds", len(ANIMALS), wait=True)) == len(ANIMALS)
    read.clear()

    for _ in range(3):
        assert (
            names(view, "feeds zebra")[0]
            == names(catalog, "feeds zebra")[0]
            == "about-zebra"
        )
        assert (
            view.search("feeds").bodies_searched
            and catalog.search("feeds").bodies_searched
        )

    assert not read


def test_a_refresh_finds_what_was_edited(skills: Path) -> None:
    """Also in a view, and where the catalog is the same object, because only
    instructions changed.
    """
    catalog = discover(skills)
    view = catalog.select(exclude=["about-otter"])
    assert names(catalog, "quagga") == names(view, "quagga") == []
    edit(skills, ["zebra"])

    assert catalog.refresh() is catalog
    assert view.refresh() is view
    assert names(catalog, "quagga") == names(view, "quagga") == ["about-zebra"]


@pytest.mark.usefixtures("many")
def test_many_that_are_gone_and_few_that_changed_are_made_up_at_once(
    skills: Path, read: list[str]
) -> None:
    """Only what changed is read by the search; a thread writes the index again for the
    next process.
    """
    discover(skills).search("zebra", wait=True)
    edit(skills, ["lynx"])
    for number in range(20):
        shutil.rmtree(skills / f"about-beast{number}")
    read.clear()

    hits = discover(skills).search("quagga")

    assert ([hit.name for hit in hits], hits.bodies_searched, read[0]) == (
        ["about-lynx"],
        True,
        "about-lynx",
    )


def test_what_a_thread_has_read_is_searched(
    skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the file has the rest, and is not written again for so few."""
    discover(skills).search("zebra")
    monkeypatch.setattr(search_module, "_AT_ONCE", 0)
    edit(skills, ["lynx"])

    hits = discover(skills).search("quagga", wait=True)

    assert ([hit.name for hit in hits], hits.bodies_searched) == (["about-lynx"], True)


@pytest.mark.usefixtures("many")
def test_the_first_search_of_many_skills_is_answered_at_once(
    skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From names and descriptions, which the answer says, while no instructions can be
    read; later from all.
    """
    may_read, original = threading.Event(), search_module.read_regular

    def waiting(path: str, limit: int, *, cut: bool = False) -> bytes:
        assert may_read.wait(60)
        return original(path, limit, cut=cut)

    monkeypatch.setattr(search_module, "read_regular", waiting)
    catalog = discover(skills)
    first, by_body = catalog.search("about walrus"), catalog.search("feeds")
    may_read.set()
    whole = catalog.search("feeds walrus", wait=True)

    assert (first[0].name, first.bodies_searched) == ("about-walrus", False)
    assert (by_body, by_body.bodies_searched) == ([], False)
    assert (whole[0].name, len(whole), whole.bodies_searched) == (
        "about-walrus",
        10,
        True,
    )


@pytest.mark.usefixtures("many")
def test_names_and_descriptions_are_found_as_in_an_index(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """By stems, in any form of Unicode, and with the same scores."""
    texts = [
        "Answers queries.",
        "Organisation of re\u0301sume\u0301s",
        "\uff30\uff24\uff26 tools",
        "OpenApi documents",
        "填写表单",
    ]
    for number, text in enumerate(texts):
        write_skill(f"skill-{number}", description=text)
    catalog = discover(tmp_path / "skills", use_index=False)

    for number, query in enumerate(
        ["query", "organize résumé", "pdf", "open api", "表单"]
    ):
        hits = catalog.search(query)
        assert not hits.bodies_searched
        assert [hit.name for hit in hits] == [f"skill-{number}"]
        assert hits == SearchIndex(catalog.values(), bodies=False).search(query)
        catalog = discover(tmp_path / "skills", use_index=False)


@pytest.mark.usefixtures("many")
def test_search_goes_on_if_the_instructions_cannot_be_indexed(
    skills: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, and every answer says that they are not searched."""

    def failing(path: str) -> tuple[str, str]:
        raise MemoryError

    monkeypatch.setattr(search_module, "_beginning", failing)
    catalog = discover(skills)

    for wait in (True, False, True):
        hits = catalog.search("walrus", wait=wait)
        assert ([hit.name for hit in hits], hits.bodies_searched) == (
            ["about-walrus"],
            False,
        )
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@pytest.mark.usefixtures("many")
def test_the_instructions_are_indexed_without_a_thread_where_none_can_start(
    skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a process at its limit of threads."""

    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)

    assert [
        hit.name for hit in discover(skills).search("feeds walrus", 1, wait=True)
    ] == ["about-walrus"]


@pytest.mark.usefixtures("many")
def test_many_threads_wait_for_one_reading(skills: Path, read: list[str]) -> None:
    """Of one catalog."""
    catalog = discover(skills)
    with ThreadPoolExecutor(8) as threads:
        found = list(
            threads.map(
                lambda _: catalog.search("feeds giraffe", 1, wait=True)[0].name,
                range(8),
            )
        )

    assert found == ["about-giraffe"] * 8
    assert (
        read.count("about-giraffe") == 2
    )  # SKILL.md, and a descriptor.json that is not there


@pytest.mark.processes
@pytest.mark.usefixtures("many")
@pytest.mark.skipif(not hasattr(os, "fork"), reason=needs.UNIX)
def test_a_forked_process_indexes_by_itself(
    skills: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    """The thread that indexes does not exist in it."""
    may_read, original = threading.Event(), search_module.read_regular
    parent = os.getpid()

    def waiting(path: str, limit: int, *, cut: bool = False) -> bytes:
        assert os.getpid() != parent or may_read.wait(60)
        return original(path, limit, cut=cut)

    monkeypatch.setattr(search_module, "read_regular", waiting)
    catalog = discover(skills)
    assert not catalog.search("feeds walrus").bodies_searched
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os._exit(
                0
                if names(catalog, "feeds walrus", wait=True)[0] == "about-walrus"
                else 3
            )
        os._exit(4)
    may_read.set()

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert names(catalog, "feeds walrus", wait=True)[0] == "about-walrus"


@pytest.mark.processes
def test_a_process_ends_while_its_skills_are_indexed(
    skills: Path, own_cache: Path
) -> None:
    """The thread is not waited for, and leaves no index that is not whole."""
    code = (
        "import sys, time; from skillruntime import discover; from "
        "skillruntime.catalog.search import search;search._AT_ONCE = 3; search.read_regular "
        "= lambda *_, **__: time.sleep(3600);"
        "print(discover(sys.argv[1]).search('walrus').bodies_searched)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(skills)],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (done.stdout, done.stderr, done.returncode) == ("False\n", "", 0)
    assert not list(own_cache.glob("search/*"))


@pytest.mark.processes
def test_processes_that_index_at_once_leave_one_whole_file(
    skills: Path, own_cache: Path
) -> None:
    """Each has its answer."""
    code = (
        "import sys; from skillruntime import discover; "
        "print(discover(sys.argv[1]).search('otter', wait=True)[0].name)"
    )
    command = [sys.executable, "-c", code, str(skills)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]

    assert [process.communicate(timeout=60)[0] for process in started] == [
        "about-otter\n"
    ] * 4
    assert index_of(own_cache)


def test_a_file_that_another_process_replaced_is_read_again(
    skills: Path, own_cache: Path
) -> None:
    """A catalog that holds the table of the old one answers as before."""
    catalog = discover(skills)
    before = catalog.search("feeds badger")
    file = index_of(own_cache)
    data = file.read_bytes()
    file.unlink()
    assert catalog.search("feeds badger") == before
    file.unlink()
    file.write_bytes(data)

    assert catalog.search("feeds badger") == before


def test_views_share_the_table_of_one_file(skills: Path) -> None:
    """A host has one for each of its callers."""
    catalog = discover(skills)
    views = [catalog.select(exclude=[f"about-{animal}"]) for animal in ANIMALS[:5]]
    for view in (catalog, *views):
        view.search("zebra")
    assert catalog._index is not None
    assert catalog._index._parts is not None

    for view in views:
        assert view._index is not None
        assert view._index._parts is not None
        assert view._index._parts[0].segment is catalog._index._parts[0].segment
