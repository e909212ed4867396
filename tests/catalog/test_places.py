"""Two skills of one name are two skills: the second is `PLACE:name`, everywhere."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skillruntime.catalog import Root, discover, lock_skills

Write = Callable[..., Path]
DIGEST = "skillruntime.catalog.discovery.directory_contents.directory_digest"


def _unread(directory: str) -> str | None:
    """Take the place of `DIGEST` where no directory may be read."""
    raise AssertionError(f"{directory} was read")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a skill at a place below ``tmp_path``."""

    def write_skill(at: str, name: str = "tdd", text: str = "", **files: str) -> Path:
        directory = tmp_path / at
        directory.mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: {text or f'From {at}.'}\n---\n"
        (directory / "SKILL.md").write_text(head + (text or f"Body of {at}.\n"))
        for file, content in files.items():
            (directory / f"{file}.txt").write_text(content)
        return directory

    return write_skill


def test_the_place_is_what_the_source_states(tmp_path: Path, write: Write) -> None:
    """A plugin's manifest, then the scope of the root, then the nearest directory above
    `skills` that begins with no dot.
    """
    write("all/a/skills/tdd")
    write("all/b/.claude/skills/tdd")
    write("all/c/skills/tdd")
    manifest = tmp_path / "all/c/.claude-plugin/plugin.json"
    manifest.parent.mkdir()
    manifest.write_text('{"name": "My Plugin"}')
    write("home/tdd")

    catalog = discover(tmp_path / "all", Root(str(tmp_path / "home"), scope="user"))

    assert {name: each.description for name, each in catalog.items()} == {
        "tdd": "From all/a/skills/tdd.",
        "b:tdd": "From all/b/.claude/skills/tdd.",
        "my-plugin:tdd": "From all/c/skills/tdd.",
        "user:tdd": "From home/tdd.",
    }


def test_neither_the_home_nor_the_working_directory_is_a_place(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their names differ from machine to machine: they are the user and the project."""
    write("first/tdd")
    write("work/skills/tdd")
    write("me/.claude/skills/tdd")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))

    catalog = discover([tmp_path / "first", "skills", "~/.claude/skills"])

    assert list(catalog) == ["project:tdd", "tdd", "user:tdd"]


def test_two_equal_places_get_one_more_directory(tmp_path: Path, write: Write) -> None:
    """Both of them, the nearest in which they differ."""
    write("0/skills/tdd")
    write("a/pb/skills/tdd")
    write("b/pb/skills/tdd")

    catalog = discover(tmp_path)

    assert list(catalog) == ["a-pb:tdd", "b-pb:tdd", "tdd"]


def test_two_skills_in_one_directory_differ_by_their_own(
    tmp_path: Path, write: Write
) -> None:
    """The directory of a skill is the last that can be put before its name."""
    write("pb/skills/tdd")
    write("pb/skills/tdd-new")
    write("pb/skills/tdd-old")

    catalog = discover(tmp_path / "pb")

    assert list(catalog) == ["tdd", "tdd-new-pb:tdd", "tdd-old-pb:tdd"]


def test_a_skill_without_a_place_is_a_finding(tmp_path: Path, write: Write) -> None:
    """It is not in the list, and has no number behind its name."""
    write("a/日本", name="tdd")
    write("b/日本", name="tdd")
    roots = [Root(str(tmp_path / each), scope="own") for each in ("a", "b")]
    write("c/日本", name="tdd")
    write("c/한국", name="tdd")
    roots.append(Root(str(tmp_path / "c"), scope="own"))

    catalog = discover(roots)

    unnamed = [
        each.path
        for each in catalog.diagnostics
        if each.rule == "name-collision" and "not offered" in each.message
    ]
    assert len(catalog) + len(unnamed) == 4
    assert unnamed == [str(tmp_path / "c/한국/SKILL.md")]


def test_within_a_root_the_shallowest_path_wins(tmp_path: Path, write: Write) -> None:
    """Then the alphabet."""
    write("a/deep/down/tdd")
    write("z/tdd")
    write("y/tdd")

    assert discover(tmp_path)["tdd"].description == "From y/tdd."


def test_directly_below_the_root_the_alphabet_decides_too(
    tmp_path: Path, write: Write
) -> None:
    """A directory with the skill's name does not come before the others."""
    write("tdd")
    write("other", name="tdd")

    assert discover(tmp_path)["tdd"].description == "From other."


def test_a_translation_is_not_offered(tmp_path: Path, write: Write) -> None:
    """A skill of the same name below `docs/<language>/`: one note counts them. Without
    an original it is a skill like any other.
    """
    write("skills/tdd")
    for language in ("ja-JP", "zh-CN", "tr"):
        write(f"docs/{language}/skills/tdd")
    write("docs/ja-JP/skills/only", name="only")
    write("docs/ui/skills/tdd")

    catalog = discover(tmp_path)

    assert list(catalog) == ["only", "tdd", "ui:tdd"]
    notes = [each.message for each in catalog.diagnostics if each.rule == "translation"]
    assert [note[:26] for note in notes] == ["3 skills are not offered: "]


def test_equal_directories_are_one_skill_and_the_trusted_copy_is_used(
    tmp_path: Path, write: Write
) -> None:
    """Without a warning, in whichever order the roots are given."""
    write("theirs/tdd", text="Same.", notes="one")
    write("mine/tdd", text="Same.", notes="one")
    mine = Root(str(tmp_path / "mine"), trusted=True)

    for roots in ([tmp_path / "theirs", mine], [mine, tmp_path / "theirs"]):
        catalog = discover(roots)
        assert [each.path for each in catalog.values()] == [
            str(tmp_path / "mine/tdd/SKILL.md")
        ]
        assert catalog.diagnostics == ()


def test_an_equal_file_beside_other_files_is_another_skill(
    tmp_path: Path, write: Write
) -> None:
    """An untrusted copy with another script does not take a trusted name."""
    write("mine/tdd", text="Same.", notes="one")
    write("theirs/tdd", text="Same.", notes="two")

    catalog = discover(Root(str(tmp_path / "mine"), trusted=True), tmp_path / "theirs")

    assert {name: each.trusted for name, each in catalog.items()} == {
        "tdd": True,
        "theirs:tdd": False,
    }
    assert [each.rule for each in catalog.diagnostics] == ["name-collision"]


def test_a_copy_whose_script_changes_is_another_skill(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the next start and at a refresh, though no SKILL.md changed; and what was
    compared is not read again while nothing changed.
    """
    write("a/tdd", text="Same.", notes="one")
    copy = write("b/tdd", text="Same.", notes="one")
    catalog = discover(tmp_path)
    assert list(catalog) == ["tdd"]
    settled = max(path.stat().st_ctime_ns for path in tmp_path.rglob("*"))
    while time.time_ns() - settled <= 20_000_000:  # a clock's tick
        time.sleep(0.001)
    discover(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(DIGEST, _unread)
        assert list(discover(tmp_path)) == ["tdd"]
        assert catalog.refresh() is catalog

    (copy / "notes.txt").write_text("two")

    assert list(discover(tmp_path)) == ["b:tdd", "tdd"]
    assert list(catalog.refresh()) == ["b:tdd", "tdd"]


def test_directories_of_other_sizes_are_not_read(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A digest needs every byte, and a size differs in most cases."""
    write("a/tdd", text="Same.", notes="one")
    write("b/tdd", text="Same.", notes="three")
    write("c/tdd", text="Same.", more="one")

    monkeypatch.setattr(DIGEST, _unread)

    assert list(discover(tmp_path)) == ["b:tdd", "c:tdd", "tdd"]


def test_what_a_run_leaves_behind_makes_no_other_skill(
    tmp_path: Path, write: Write
) -> None:
    """Compiled modules and the files of a file browser, as in a lockfile."""
    write("a/tdd", text="Same.")
    copy = write("b/tdd", text="Same.")
    (copy / "__pycache__").mkdir()
    (copy / "__pycache__/run.cpython-311.pyc").write_text("x")
    (copy / ".DS_Store").write_text("x")

    assert list(discover(tmp_path)) == ["tdd"]


def test_a_root_that_is_given_twice_counts_once(tmp_path: Path, write: Write) -> None:
    """By any of its paths, and of two with different trust the trusted one."""
    write("skills/tdd", notes="one")
    root = tmp_path / "skills"
    (tmp_path / "link").symlink_to(root)
    trusted = Root(str(root), trusted=True)

    for roots in (
        [root, root],
        [root, f"{root}/", tmp_path / "skills/../skills"],
        [root, tmp_path / "link"],
        [tmp_path / "link", root],
    ):
        catalog = discover(roots)
        assert list(catalog) == ["tdd"]
        assert catalog.diagnostics == ()
    for both in ([root, trusted], [trusted, root]):
        assert discover(both)["tdd"].trusted
    assert len(discover([root, root]).roots) == 1


def test_a_root_inside_another_adds_nothing(tmp_path: Path, write: Write) -> None:
    """In either order; its skills have the trust of the trusted one of both."""
    write("all/tdd")
    write("all/team/review", name="review")
    write("all/team/tdd")
    outer = tmp_path / "all"
    inner = outer / "team"

    assert list(discover([outer, inner])) == ["review", "tdd", "team:tdd"]
    assert list(discover([inner, outer])) == ["all:tdd", "review", "tdd"]
    catalog = discover([outer, Root(str(inner), trusted=True)])
    assert {name: each.trusted for name, each in catalog.items()} == {
        "review": True,
        "tdd": False,
        "team:tdd": True,
    }


def test_a_link_inside_the_root_is_the_skill_that_it_leads_to(
    tmp_path: Path, write: Write
) -> None:
    """Of a directory, of a SKILL.md, and of a file that is a hard link of one: the
    last is another skill, because a whole directory decides.
    """
    original = write("a/tdd", text="Same.", notes="one")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/tdd").symlink_to(original)
    (tmp_path / "c/tdd").mkdir(parents=True)
    (tmp_path / "c/tdd/SKILL.md").symlink_to(original / "SKILL.md")

    catalog = discover(tmp_path)

    assert [each.path for each in catalog.values()] == [str(original / "SKILL.md")]
    assert catalog.diagnostics == ()
    (tmp_path / "d/tdd").mkdir(parents=True)
    os.link(original / "SKILL.md", tmp_path / "d/tdd/SKILL.md")

    assert list(discover(tmp_path)) == ["d:tdd", "tdd"]


def test_a_linked_skill_with_a_link_in_it_is_one(tmp_path: Path, write: Write) -> None:
    """A directory with a link has no digest, and is still itself. A copy of it is
    another skill, because it cannot be compared.
    """
    original = write("a/tdd", text="Same.")
    (original / "notes").symlink_to(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/tdd").symlink_to(original)
    assert list(discover(tmp_path)) == ["tdd"]
    copy = write("c/tdd", text="Same.")
    (copy / "notes").symlink_to(tmp_path)

    assert list(discover(tmp_path)) == ["c:tdd", "tdd"]


def test_names_that_differ_in_case_are_two_skills(tmp_path: Path, write: Write) -> None:
    """And directories that differ in case are two places, where the file system has
    both.
    """
    write("skills/one", name="tdd")
    write("skills/two", name="TDD")
    write("lower/review", name="review")
    write("LOWER/review", name="review")

    catalog = discover(tmp_path)

    assert {each.description for each in catalog.values()} == {
        "From skills/one.",
        "From skills/two.",
        "From lower/review.",
        "From LOWER/review.",
    }
    assert len(catalog) == 4


def test_the_others_can_be_left_out(tmp_path: Path, write: Write) -> None:
    """With `first_only` all others, with `exclude` any; also after a refresh."""
    write("a/skills/tdd")
    write("b/skills/tdd")
    write("b/skills/other", name="other")

    assert list(discover(tmp_path, first_only=True)) == ["other", "tdd"]
    assert discover(tmp_path, first_only=True).diagnostics == ()
    assert list(discover(tmp_path, exclude="b:*")) == ["other", "tdd"]
    assert list(discover(tmp_path, exclude=["tdd", "other"])) == ["b:tdd"]
    view = discover(tmp_path, exclude="tdd", first_only=True)
    write("c/skills/tdd")
    assert list(view.refresh()) == ["other"]


def test_first_only_prefers_a_projects_older_version(tmp_path: Path) -> None:
    """The user's newer version does not replace it; the versions within one root stay
    side by side.
    """
    for at in ("project/one/1.0.0", "project/two/1.1.0", "user/tdd/2.0.0"):
        where, version = at.rsplit("/", 1)
        head = f"name: tdd\ndescription: Tests.\nmetadata:\n  version: {version}\n"
        (tmp_path / where).mkdir(parents=True)
        (tmp_path / where / "SKILL.md").write_text(f"---\n{head}---\n")
    roots = [tmp_path / "project", tmp_path / "user"]

    catalog = discover(roots, first_only=True)

    assert catalog["tdd"].version == "1.1.0"
    assert [*catalog.every_version()] == ["tdd", "tdd@1.0.0"]
    assert discover(roots)["tdd"].version == "2.0.0"


def test_first_only_uses_the_trusted_copy_of_a_first_skill(
    tmp_path: Path, write: Write
) -> None:
    """The copy is the same skill, so the root of the first one still decides."""
    for at in ("project/tdd", "user/tdd"):
        write(at, text="Tests.")
    write("project/other", name="tdd")
    roots = [Root(str(tmp_path / "project")), Root(str(tmp_path / "user"), True)]

    catalog = discover(roots, first_only=True)

    assert catalog["tdd"].description == "From project/other."
    (tmp_path / "project/other/SKILL.md").unlink()
    assert catalog.refresh()["tdd"].trusted


def test_a_name_that_its_tools_would_share_is_not_given(
    tmp_path: Path, write: Write
) -> None:
    """The tools of `pb:tdd` begin with `pb_tdd`, and another skill may be named so."""
    write("a/skills/tdd")
    write("x/pb/skills/tdd")
    write("a/skills/pb_tdd", name="pb_tdd")
    write("a/skills/ckm_design", name="ckm_design")
    write("z/skills/design", name="ckm:design")

    catalog = discover(tmp_path)

    assert list(catalog) == ["ckm_design", "pb_tdd", "tdd", "x-pb:tdd", "z:ckm:design"]


def test_a_model_finds_and_loads_both(tmp_path: Path, write: Write) -> None:
    """In the list, the search and the suggestions, by the name that it sees."""
    write("a/skills/tdd", text="Red, green, refactor.")
    write("pb/skills/tdd", text="Property based testing.")
    catalog = discover(tmp_path)

    assert "pb:tdd" in catalog.to_prompt()
    assert [hit.name for hit in catalog.search("property based")] == ["pb:tdd"]
    assert catalog.activate("pb:tdd").body == "Property based testing."
    assert catalog.suggest("pb-tdd") == ["pb:tdd", "tdd"]


def test_a_lockfile_pins_both_under_their_names(tmp_path: Path, write: Write) -> None:
    """A frozen catalog gives them these names, also where the first one is refused."""
    first = write("a/skills/tdd")
    write("pb/skills/tdd")
    lockfile = tmp_path / "skills-lock.json"
    document = lock_skills(discover(tmp_path), base=str(tmp_path))
    lockfile.write_text(json.dumps(document))

    assert list(document["skills"]) == ["pb:tdd", "tdd"]
    assert list(discover(tmp_path, frozen=lockfile)) == ["pb:tdd", "tdd"]
    assert discover(tmp_path, frozen=lockfile).diagnostics == ()
    (first / "SKILL.md").write_text("---\nname: tdd\ndescription: Evil.\n---\n")

    frozen = discover(tmp_path, frozen=lockfile)

    assert list(frozen) == ["pb:tdd"]
    assert frozen.activate("pb:tdd").body == "Body of pb/skills/tdd."
    assert [each.rule for each in frozen.diagnostics] == ["frozen-drift"]


def test_skills_of_one_name_with_different_descriptions_are_not_compared(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their files need no look: they are two skills."""
    write("one/skills/tdd")
    write("two/skills/tdd")
    monkeypatch.setattr(DIGEST, _unread)

    assert [*discover(tmp_path)] == ["tdd", "two:tdd"]
