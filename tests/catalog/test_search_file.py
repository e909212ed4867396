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


def files_of(cache: Path) -> list[Path]:
    return sorted(cache.glob("search/*.index"))


def index_of(cache: Path) -> Path:
    [file] = files_of(cache)
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
    for file in files_of(own_cache):
        file.unlink()
    made = discover(skills).search("feed the zebra", 70)

    assert updated == made


def test_one_edited_skill_adds_a_small_file(
    skills: Path, own_cache: Path, read: list[str]
) -> None:
    """The file of all others stays as it is, and the next process reads nothing."""
    discover(skills).search("zebra")
    whole = index_of(own_cache)
    before = whole.read_bytes()
    edit(skills, ["lynx"])

    assert names(discover(skills), "quagga") == ["about-lynx"]
    [added] = {*files_of(own_cache)} - {whole}
    assert added.stat().st_size < 64 * 1024
    assert whole.read_bytes() == before
    read.clear()
    assert names(discover(skills), "quagga") == ["about-lynx"]
    assert not read


def test_many_small_files_are_merged(
    skills: Path, own_cache: Path, read: list[str]
) -> None:
    """Without reading a skill again, and the answers stay the same; what was edited
    twice or deleted is left out.
    """
    discover(skills).search("zebra")
    whole = index_of(own_cache)
    for number, animal in enumerate([*ANIMALS[:8], *ANIMALS[:4]]):
        edit(skills, [animal], minutes=30 - number)
        discover(skills).search("quagga", wait=True)
    (skills / "about-otter" / "SKILL.md").unlink()
    read.clear()
    merged = discover(skills).search("feed the quagga", 100, wait=True)

    assert len(files_of(own_cache)) <= search_module._MOST_PARTS
    assert whole in files_of(own_cache)
    assert not read
    for file in files_of(own_cache):
        file.unlink()
    assert discover(skills).search("feed the quagga", 100) == merged


@pytest.mark.usefixtures("many")
def test_what_a_process_has_indexed_is_not_read_by_the_next(
    skills: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path, read: list[str]
) -> None:
    """Pieces go to disk as they are made, so that processes that end early finish the
    index together and read each skill once.
    """
    monkeypatch.setattr(search_module, "_PIECE", 10)
    pieces: list[int] = []
    original = search_module.save_segment

    def ending(file: str, data: bytes) -> search_module.Segment:
        # What follows the second piece stands for the end of the process.
        if len(pieces) % 3 == 2:
            pieces.append(0)
            raise MemoryError
        pieces.append(1)
        return original(file, data)

    monkeypatch.setattr(search_module, "save_segment", ending)
    monkeypatch.setattr(search_module, "_MOST_PARTS", 100)
    whole: list[str] = []
    while not whole:
        read.clear()
        catalog = discover(skills)
        hits = catalog.search("feeds zebra", 100, wait=True)
        if hits.bodies_searched:
            whole = [hit.name for hit in hits]
            assert len({*read}) <= 30

    assert len(whole) == len(ANIMALS)
    assert sum(pieces) == len(files_of(own_cache))
    assert sum(pieces) <= -(-len(ANIMALS) // 10) + 2


@pytest.mark.usefixtures("many")
def test_pieces_are_searched_as_soon_as_they_are_made(
    skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the names and descriptions of the other skills."""
    monkeypatch.setattr(search_module, "_PIECE", 10)
    first, may_go_on = threading.Event(), threading.Event()
    original = search_module.save_segment

    def waiting(file: str, data: bytes) -> search_module.Segment:
        if first.is_set():
            assert may_go_on.wait(60)
        first.set()
        return original(file, data)

    monkeypatch.setattr(search_module, "save_segment", waiting)
    catalog = discover(skills)
    catalog.search("zebra")
    assert first.wait(60)
    query = f"feeds {' '.join(ANIMALS)}"
    deadline = time.monotonic() + 60
    by_body: list[str] = []
    while not by_body and time.monotonic() < deadline:
        by_body = names(catalog, "feeds")
    found = catalog.search(query, 100)
    may_go_on.set()

    # Any piece may be the first; the last one has the remaining skills.
    assert len(by_body) in {10, len(ANIMALS) % 10}
    assert (len(found), found.bodies_searched) == (len(ANIMALS), False)
    assert catalog.search("feeds", 100, wait=True).bodies_searched


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


def test_without_a_cache_directory_no_index_is_read(
    skills: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor from a directory that has the name of nothing."""
    names(discover(skills), "zebra", wait=True)
    index = index_of(own_cache)
    place = tmp_path / "None" / index.relative_to(own_cache)
    place.parent.mkdir(parents=True)
    place.write_bytes(index.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKILLRUNTIME_CACHE", "off")

    beginning = str(index.relative_to(own_cache)).partition(".")[0]
    assert search_module.load_segments(beginning) == []


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
    """Each gets the same answer, and no file remains that is not whole."""
    catalogs = [discover(skills) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda catalog: names(catalog, "giraffe"), catalogs))

    assert found == [["about-giraffe"]] * 8
    assert names(discover(skills), "giraffe", wait=True) == ["about-giraffe"]
    assert {file.suffix for file in own_cache.glob("search/*")} == {".index"}


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


def edit(skills: Path, animals: Sequence[str], *, minutes: int = 30) -> None:
    """Write a new word into the instructions of some skills, so many *minutes* ago."""
    for animal in animals:
        path = skills / f"about-{animal}" / "SKILL.md"
        path.write_text(f"{path.read_text()}Beware of the quagga.\n")
        os.utime(path, (time.time() - 60 * minutes,) * 2)


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
def test_six_processes_that_end_after_one_piece_finish_the_index(
    skills: Path, own_cache: Path, read: list[str]
) -> None:
    """Each ends as soon as its thread has written a piece, which the next one uses."""
    code = """
import os, sys, threading
from skillruntime import discover
from skillruntime.catalog.search import search

written = threading.Event()
original = search.save_segment

def saving(file, data):
    original(file, data)
    written.set()
    threading.Event().wait()

search._AT_ONCE, search._PIECE, search.save_segment = 3, 11, saving
print(discover(sys.argv[1]).search("walrus").bodies_searched, flush=True)
written.wait(60)
os._exit(0)
"""
    command = [sys.executable, "-c", code, str(skills)]
    for _ in range(6):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.stderr) == ("False\n", "")

    assert len(files_of(own_cache)) == 6
    assert len(names(discover(skills), "feeds")) == 10
    assert read == []


@pytest.mark.processes
def test_processes_that_index_at_once_leave_whole_files(
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
    assert files_of(own_cache)
    assert len(discover(skills).search("feeds", 100)) == len(ANIMALS)


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
    index_of(own_cache).unlink()
    file.write_bytes(data)

    assert catalog.search("feeds badger") == before


def test_views_share_the_table_of_one_file(skills: Path) -> None:
    """A host has one for each of its callers."""
    catalog = discover(skills)
    views = [catalog.select(exclude=[f"about-{animal}"]) for animal in ANIMALS[:5]]
    for view in (catalog, *views):
        view.search("zebra")
    assert catalog._index is not None
    assert catalog._index._state is not None

    for view in views:
        assert view._index is not None
        assert view._index._state is not None
        own = view._index._state.parts[0].segment
        assert own is catalog._index._state.parts[0].segment
