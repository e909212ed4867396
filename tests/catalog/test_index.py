"""The index: a warm start opens no SKILL.md, every change is seen, and damage costs
nothing but time.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from skillruntime.catalog import discover
from skillruntime.catalog.discovery import index, root_snapshot, skill_file
from tests import needs
from tests.catalog.conftest import WriteSkill


def age(root: Path) -> None:
    """Make every SKILL.md an hour old: what is younger than a clock's tick is rightly
    read again.
    """
    for path in root.rglob("SKILL.md"):
        os.utime(path, (1_700_000_000.5, 1_700_000_000.5))


def grow_old(root: Path) -> None:
    """Wait until no directory of *root* changed within a clock's tick: what is younger
    is not relied on.

    The change time of a directory is the one time that no program can set.
    """
    newest = max(
        path.stat().st_ctime_ns for path in (root, *root.rglob("*")) if path.is_dir()
    )
    while time.time_ns() - newest <= root_snapshot.TICK:
        time.sleep(0.001)


@pytest.fixture
def skills(tmp_path: Path, write_skill: WriteSkill) -> Path:
    write_skill("pdf", "Reads PDFs.")
    write_skill("news", "Liest Nachrichten — täglich. 新闻")
    write_skill("bad", text="no frontmatter")
    write_skill(
        "Odd Name",
        at="nested/odd",
        text="---\nname: Odd Name\ndescription: Reads: all\nversion: 3\n---\n",
    )
    age(tmp_path / "skills")
    grow_old(tmp_path / "skills")
    return tmp_path / "skills"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the files that are read from here on."""
    paths: list[str] = []
    real = skill_file.read_summary

    def listening(descriptor: int, path: str, *rest: object) -> object:
        paths.append(Path(path).parent.name)
        return real(descriptor, path, *rest)  # type: ignore[arg-type]  # handed through

    monkeypatch.setattr(skill_file, "read_summary", listening)
    return paths


def test_a_warm_start_gives_the_same_and_opens_nothing(
    skills: Path, opened: list[str]
) -> None:
    """Skills, versions, diagnostics: all from the index."""
    cold = discover(skills)
    assert sorted(opened) == ["bad", "news", "odd", "pdf"]
    opened.clear()

    warm = discover(skills)

    assert opened == []
    assert dict(warm) == dict(cold)
    assert warm.diagnostics == cold.diagnostics
    assert warm["Odd Name"].version == "3"


def test_only_what_changed_is_read(
    skills: Path, opened: list[str], write_skill: WriteSkill
) -> None:
    """Edited, added, removed, replaced by one of the same size and time."""
    discover(skills)
    opened.clear()
    write_skill("pdf", "Reads all.")
    write_skill("new")
    (skills / "news" / "SKILL.md").unlink()
    replaced = skills / "bad" / "SKILL.md.new"
    replaced.write_text("NO FRONTMATTER")
    os.utime(replaced, (1_700_000_000.5, 1_700_000_000.5))
    replaced.replace(skills / "bad" / "SKILL.md")

    catalog = discover(skills)

    assert sorted(opened) == ["bad", "new", "pdf"]
    assert list(catalog) == ["Odd Name", "new", "pdf"]
    assert catalog["pdf"].description == "Reads all."


def _add(root: Path, name: str = "more") -> None:
    (root / name).mkdir(parents=True)
    (root / name / "SKILL.md").write_text(
        f"---\nname: {Path(name).name}\ndescription: More.\n---\n"
    )


def _add_within_an_empty_directory(root: Path) -> None:
    (root / "empty" / "SKILL.md").write_text(
        "---\nname: empty\ndescription: No more.\n---\n"
    )


def _rename(root: Path) -> None:
    (root / "news").rename(root / "noise")


def _rename_the_file(root: Path) -> None:
    (root / "news" / "SKILL.md").rename(root / "news" / "skill.md")


def _make_the_link_lead_somewhere(root: Path) -> None:
    _add(root.parent, "target")


def _replace_a_file_by_a_skill(root: Path) -> None:
    (root / "notes").unlink()
    _add(root, "notes")


CHANGES = [
    (lambda root: None, _add),
    (lambda root: None, lambda root: (root / "news" / "SKILL.md").unlink()),
    (lambda root: None, lambda root: _add(root, "group/deep")),
    (lambda root: None, _rename),
    (lambda root: None, _rename_the_file),
    (lambda root: (root / "empty").mkdir(), _add_within_an_empty_directory),
    (
        lambda root: (root / "link").symlink_to(root.parent / "target"),
        _make_the_link_lead_somewhere,
    ),
    (lambda root: (root / "notes").write_text("x"), _replace_a_file_by_a_skill),
    (lambda root: _add(root, "group/one"), lambda root: _add(root, "group/two")),
]


@pytest.mark.parametrize(("before", "change"), CHANGES)
def test_every_change_of_a_root_is_detected(
    tmp_path: Path,
    write_skill: WriteSkill,
    before: Callable[[Path], object],
    change: Callable[[Path], object],
) -> None:
    """Also if the stamp of the root decides whether it is listed again."""
    root = tmp_path / "skills"
    for name in ("pdf", "news"):
        write_skill(name)
    before(root)
    age(root)
    grow_old(root)
    for _ in range(2):
        assert dict(discover(root)) == dict(discover(root, use_index=False))

    change(root)

    warm, cold = discover(root), discover(root, use_index=False)
    assert dict(warm) == dict(cold)
    assert warm.diagnostics == cold.diagnostics


def test_an_unchanged_root_is_not_listed_again(
    tmp_path: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it holds nothing but skills."""
    root = tmp_path / "skills"
    for name in ("pdf", "news"):
        write_skill(name)
    age(root)
    grow_old(root)
    discover(root)
    listed: list[object] = []
    real = os.scandir

    def scandir(path: str) -> object:
        listed.append(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)

    assert list(discover(root)) == ["news", "pdf"]
    assert listed == []

    write_skill("more")
    assert list(discover(root)) == ["more", "news", "pdf"]
    assert [each for each in listed if each == str(root)] == [
        str(root)
    ]  # and the cache, for abandoned files


def test_an_edit_within_one_tick_of_the_clock_is_detected(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Same size, same inode, perhaps the same time: a file that was young when it was
    read is read again.
    """
    path = write_skill("pdf", "Reads one.") / "SKILL.md"
    catalog = discover(tmp_path / "skills")
    stamp = path.stat()
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert discover(tmp_path / "skills")["pdf"].description == "Reads two."
    assert catalog.refresh()["pdf"].description == "Reads two."


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"x" * 100,
        lambda data: data[: len(data) // 2],
        lambda data: data[:-3] + b"abc",
        lambda data: data[:30] + bytes([data[30] ^ 1]) + data[31:],
        lambda data: data.replace(b"index 9", b"index 8"),
    ],
)
def test_a_damaged_index_is_rebuilt_silently(skills: Path, damage: object) -> None:
    """Cut, garbled, of another version: the catalog is the same, and the index is whole
    again.
    """
    expected = discover(skills)
    path = Path(index.index_path() or "")
    whole = path.read_bytes()
    path.write_bytes(damage(whole))  # type: ignore[operator]  # a lambda of the table above

    catalog = discover(skills)

    assert dict(catalog) == dict(expected)
    assert catalog.diagnostics == expected.diagnostics
    assert path.read_bytes() == whole


def test_every_single_flipped_byte_is_harmless(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Whatever byte is wrong: the same catalog, never an exception."""
    write_skill("pdf", "Reads.")
    age(tmp_path / "skills")
    expected = dict(discover(tmp_path / "skills"))
    path = Path(index.index_path() or "")
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(
            whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :]
        )

        assert dict(discover(tmp_path / "skills")) == expected


def test_the_index_can_be_disabled(
    skills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the environment, by the argument; a directory that is not writable is not an
    error.
    """
    discover(skills, use_index=False)
    assert not Path(index.index_path() or "").exists()

    monkeypatch.setenv("SKILLRUNTIME_CACHE", "off")
    assert index.index_path() is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path / "file" / "below"))
    assert len(discover(skills)) == 3


def test_an_index_replaces_no_device(skills: Path) -> None:
    """A FIFO at the place of the index is neither read nor written."""
    path = Path(index.index_path() or "")
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)

    assert len(discover(skills)) == 3
    assert path.is_fifo()


def test_trust_is_never_read_from_the_index(skills: Path) -> None:
    """It is the host's word at each start."""
    assert discover(skills, trusted=True)["pdf"].trusted
    assert not discover(skills)["pdf"].trusted


def test_concurrent_writers_leave_a_complete_index(
    skills: Path, tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Each replaces the whole file; no reader sees a partial one."""
    roots = []
    for number in range(6):
        roots.append(
            write_skill(f"own-{number}", at=f"../root-{number}/own-{number}").parent
        )
        age(roots[-1])
    failures: list[BaseException] = []

    def work(root: Path) -> None:
        try:
            for _ in range(10):
                assert len(discover(root)) == 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(root,)) for root in roots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(discover(*roots)) == 6
    assert [path.name for path in Path(index.index_path() or "").parent.iterdir()] == [
        "catalog.index"
    ]


def test_refresh_gives_the_same_object_where_nothing_changed(
    skills: Path, write_skill: WriteSkill
) -> None:
    """Otherwise it returns a new catalog that shares the text of unchanged skills;
    views follow.
    """
    catalog = discover(skills)
    view = catalog.select(exclude=["news"])
    assert catalog.refresh() is catalog
    assert view.refresh() is view
    prompt = catalog.to_prompt()

    write_skill("pdf", "Reads more.")
    fresh = catalog.refresh()

    assert fresh["pdf"].description == "Reads more."
    assert fresh["news"].description is catalog["news"].description
    assert prompt.replace("Reads PDFs.", "Reads more.") == fresh.to_prompt()
    assert view.refresh()["pdf"].description == "Reads more."
    assert "news" not in view.refresh()


def test_an_edit_opens_the_edited_skill_alone(
    tmp_path: Path, write_skill: WriteSkill, opened: list[str]
) -> None:
    """The next start opens nothing."""
    for number in range(300):
        write_skill(f"skill-{number}", "Does " + "much " * 20)
    root = tmp_path / "skills"
    age(root)
    grow_old(root)
    discover(root)
    opened.clear()
    for edit in ("once", "twice"):
        write_skill("skill-7", f"Edited {edit}.")
        age(root / "skill-7")

        assert discover(root)["skill-7"].description == f"Edited {edit}."

    assert opened == ["skill-7", "skill-7"]
    opened.clear()
    assert discover(root)["skill-7"].description == "Edited twice."
    assert dict(discover(root)) == dict(discover(root, use_index=False))
    assert len(opened) == 300  # those of the last discovery without an index


@pytest.fixture
def many(tmp_path: Path, write_skill: WriteSkill) -> Path:
    """Return a directory of a thousand skills that an index has."""
    for number in range(1_000):
        write_skill(f"skill-{number}", "Does " + "much " * 40)
    age(tmp_path / "skills")
    grow_old(tmp_path / "skills")
    discover(tmp_path / "skills")
    return tmp_path / "skills"


def edit(root: Path, name: str, description: str) -> None:
    """Write another description without a change of the directory's list."""
    path = root / name / "SKILL.md"
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\n")
    os.utime(path, (1_700_000_000.5, 1_700_000_000.5))


def test_an_edit_writes_one_entry_and_lists_no_directory(
    many: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    """What it costs does not grow with the number of skills."""
    path = Path(index.index_path() or "")
    before = path.stat()
    listed: list[object] = []
    real = os.scandir

    def scandir(directory: object) -> object:
        listed.append(directory)
        return real(directory)  # type: ignore[call-overload]  # handed through

    monkeypatch.setattr(os, "scandir", scandir)
    for number in range(1, 11):
        edit(many, f"skill-{number}", f"Edited {number}.")
        assert discover(many)[f"skill-{number}"].description == f"Edited {number}."

    after = path.stat()
    assert after.st_ino == before.st_ino  # not replaced as a whole
    assert 0 < after.st_size - before.st_size < 10 * 500
    assert listed == []
    assert opened == [f"skill-{number}" for number in range(1, 11)]
    assert dict(discover(many)) == dict(discover(many, use_index=False))


def test_many_edits_are_written_into_the_whole(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pieces behind the index never have more bytes than their limit."""
    path = Path(index.index_path() or "")
    whole = path.stat().st_size
    monkeypatch.setattr(index, "MAX_PIECES", 1_000)
    inodes = [path.stat().st_ino]
    for number in range(12):
        edit(many, f"skill-{number % 3}", f"Edited {number}.")
        discover(many)
        now = path.stat()
        if now.st_ino != inodes[-1]:
            inodes.append(now.st_ino)
            whole = now.st_size
        assert now.st_size <= whole + 1_000

    assert 1 < len(inodes) < 8
    assert dict(discover(many)) == dict(discover(many, use_index=False))


def test_a_catalog_that_is_refreshed_appends_its_edits(many: Path) -> None:
    """To the index that it read, and not to another that replaced it since."""
    path = Path(index.index_path() or "")
    catalog = discover(many)
    edit(many, "skill-1", "Edited once.")
    catalog = catalog.refresh()
    first = path.stat()

    edit(many, "skill-2", "Edited twice.")
    path.rename(path.with_name("old.index"))
    catalog = catalog.refresh()

    assert path.stat().st_ino != first.st_ino
    for each in (catalog, discover(many)):
        assert each["skill-1"].description == "Edited once."
        assert each["skill-2"].description == "Edited twice."
    edit(many, "skill-3", "Edited thrice.")
    size = path.stat().st_size
    assert catalog.refresh()["skill-3"].description == "Edited thrice."
    assert 0 < path.stat().st_size - size < 1_000


def test_an_edit_keeps_its_findings_in_the_index(many: Path, opened: list[str]) -> None:
    """A piece has what a whole index has: notes, a version, who may use it."""
    edit(many, "skill-1", "Use when: a: b\nversion: 3\nuser-invocable: false")
    first = discover(many)
    opened.clear()

    again = discover(many)

    assert opened == []
    assert again["skill-1"] == first["skill-1"]
    assert again["skill-1"].version == "3"
    assert not again["skill-1"].user_invocable
    assert again.diagnostics == first.diagnostics
    assert [each.rule for each in again.diagnostics] == ["yaml-repaired"]


def test_a_damaged_piece_is_harmless(tmp_path: Path, write_skill: WriteSkill) -> None:
    """Each byte of it, and a piece that is cut: the same catalog, and the next edit is
    found by the start behind it.
    """
    for name in ("pdf", "news"):
        write_skill(name, "Reads.")
    root = tmp_path / "skills"
    age(root)
    grow_old(root)
    discover(root)
    path = Path(index.index_path() or "")
    start = path.stat().st_size
    edit(root, "pdf", "Writes.")
    expected = dict(discover(root))
    whole = path.read_bytes()
    damaged = [whole[:end] for end in range(start, len(whole))]
    for at in range(start, len(whole)):
        damaged.append(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
    for data in damaged:
        path.write_bytes(data)
        assert dict(discover(root)) == expected
        assert dict(discover(root)) == expected

    path.write_bytes(whole[:-1])
    edit(root, "news", "Shows.")
    discover(root)
    of_root = root_snapshot.Root(str(root))
    found = index.load_index(str(path), [of_root])[of_root]
    assert [entry.description for entry in found.entries] == ["Shows.", "Writes."]


def test_an_index_is_written_in_the_memory_of_its_bytes(many: Path) -> None:
    """Not in twice as much: a part is encoded once and written from there."""
    path = Path(index.index_path() or "")
    (snapshot,) = index.load_index(str(path), [root_snapshot.Root(str(many))]).values()
    snapshot = snapshot._replace(section=None)
    size = path.stat().st_size
    path.unlink()
    tracemalloc.start()
    try:
        index.save_index(str(path), [snapshot])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert path.stat().st_size == size
    assert peak < 1.6 * size


def test_an_edit_that_makes_a_skill_invalid_shows_what_is_below_it(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """And one that makes it valid again hides it again."""
    path = write_skill("group") / "SKILL.md"
    write_skill("inner", at="group/inner")
    root = tmp_path / "skills"
    valid = path.read_text()
    found = []
    for text in (valid, "no frontmatter", valid):
        path.write_text(text)
        age(root)
        grow_old(root)
        found.append(list(discover(root)))

    assert found == [["group"], ["inner"], ["group"]]


def test_a_skill_that_hides_a_reused_one_is_seen(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """A new SKILL.md beside a skill.md takes its place, although both trees have the
    same number of skills.
    """
    root = tmp_path / "skills"
    write_skill("old", "The old one.")
    (root / "old" / "SKILL.md").rename(root / "old" / "skill.md")
    if (root / "old" / "SKILL.md").exists():
        pytest.skip("needs a file system that distinguishes case: Linux")
    os.utime(root / "old" / "skill.md", (1_700_000_000.5, 1_700_000_000.5))
    grow_old(root)
    assert list(discover(root)) == ["old"]
    write_skill("new", "The new one.", at="old")
    assert list(discover(root)) == ["new"]
    assert discover(root)["new"].description == "The new one."


@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
def test_an_edited_skill_keeps_the_note_on_its_linked_directory(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Warm and cold starts have the same diagnostics after the target of a link was
    edited.
    """
    root = tmp_path / "linked"
    root.mkdir()
    (root / "pdf").symlink_to(write_skill("pdf", "Reads PDFs."))
    age(tmp_path / "skills")
    grow_old(root)
    discover(root)
    write_skill("pdf", "Writes PDFs.")
    warm, cold = discover(root), discover(root, use_index=False)
    assert warm["pdf"].description == "Writes PDFs."
    assert [each.rule for each in warm.diagnostics] == ["directory-link"]
    assert warm.diagnostics == cold.diagnostics
