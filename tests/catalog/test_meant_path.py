"""A path of a skill's file is taken where exactly one listed file is meant."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime import discover
from skillruntime.catalog import Skill
from skillruntime.catalog.meant_path import meant_path, readings
from skillruntime.errors import ResourceNotFoundError

DOCUMENT = "---\nname: pdf\ndescription: Reads PDF files. Use for them.\n---\nBody.\n"
FILES = {
    "forms.md": "# Forms",
    "references/Übersicht a.md": "# Overview",
    "references/deep/notes#1.md": "# Notes",
    "contracts/fill.json": "{}",
}


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    directory = tmp_path / "skills" / "pdf"
    for path, text in FILES.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    (directory / "SKILL.md").write_text(DOCUMENT)
    (tmp_path / "secret.md").write_text("secret")
    return discover(tmp_path / "skills").activate("pdf")


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("forms.md", "forms.md"),
        ("FORMS.md", "forms.md"),
        ("./forms.md", "./forms.md"),
        ("./Forms.md", "forms.md"),
        ("forms.md\n", "forms.md"),
        (" forms.md ", "forms.md"),
        ("'forms.md'", "forms.md"),
        ("`forms.md`", "forms.md"),
        ("pdf/forms.md", "forms.md"),
        ("PDF/FORMS.md", "forms.md"),
        ("skills/pdf/forms.md", "forms.md"),
        (".claude/skills/pdf/forms.md", "forms.md"),
        ("skill://pdf/forms.md", "forms.md"),
        ("skill://pdf/SKILL.md", "SKILL.md"),
        ("Skill.md", "SKILL.md"),
        ("{baseDir}/forms.md", "forms.md"),
        ("${CLAUDE_SKILL_DIR}/forms.md", "forms.md"),
        ("${CLAUDE_PLUGIN_ROOT}/skills/pdf/forms.md", "forms.md"),
        ("$SKILL_ROOT/forms.md", "forms.md"),
        ("<skill-dir>/forms.md", "forms.md"),
        ("forms.md#checkboxes", "forms.md"),
        ("references\\Übersicht a.md", "references/Übersicht a.md"),
        ("references/Übersicht%20a.md", "references/Übersicht a.md"),
        ("references/deep/Notes#1.md", "references/deep/notes#1.md"),
        ("references/deep/notes#1.md#top", "references/deep/notes#1.md"),
        ("contracts/fill.json", "contracts/fill.json"),
        ("übersicht a.md", "references/Übersicht a.md"),
        ("deep/Notes#1.md", "references/deep/notes#1.md"),
    ],
)
def test_a_path_is_taken_where_one_file_is_meant(
    skill: Skill, written: str, path: str
) -> None:
    """Case, separators, quotes, what stands before it, and a part of a page."""
    assert skill.find_resource(written) == path
    assert skill.read_resource(written)


def test_a_decomposed_name_is_the_composed_one(skill: Skill) -> None:
    """As macOS writes names, and some archives."""
    written = unicodedata.normalize("NFD", "references/übersicht a.md")

    assert skill.find_resource(written) == "references/Übersicht a.md"


def test_an_absolute_path_inside_the_skill_is_taken(
    skill: Skill, tmp_path: Path
) -> None:
    """Also as an address, and through a link to the directory."""
    (tmp_path / "linked").symlink_to(tmp_path / "skills")
    linked = discover(tmp_path / "linked").activate("pdf")
    place = skill.directory / "FORMS.md"

    assert skill.find_resource(str(place)) == "forms.md"
    assert skill.find_resource(place.as_uri()) == "forms.md"
    assert linked.find_resource(str(place)) == "forms.md"


@pytest.mark.parametrize(
    "written",
    [
        "",
        "/",
        ".",
        "form.md",
        "../secret.md",
        "../skills/pdf/../../secret.md",
        "references/../forms.md",
        "../pdf/forms.md",
        "/forms.md",
        "/elsewhere/pdf/forms.md",
        "~/pdf/forms.md",
        "C:\\pdf\\forms.md",
        "other/forms.md",
        "$HOME/../secret.md",
        "file:///etc/passwd",
        "references",
        "a\0b",
    ],
)
def test_anything_else_is_not_found(skill: Skill, written: str) -> None:
    """Nothing outside, nothing that only looks alike, and no directory."""
    assert skill.find_resource(written) is None
    with pytest.raises(ResourceNotFoundError):
        skill.read_resource(written)


def test_two_files_that_can_be_meant_are_refused(skill: Skill) -> None:
    """An exact path still means itself."""
    (skill.directory / "Forms.md").write_text("# Other")
    (skill.directory / "pdf").mkdir()
    (skill.directory / "pdf" / "notes.md").write_text("1")
    (skill.directory / "notes.md").write_text("2")

    assert skill.find_resource("FORMS.md") is None
    assert skill.find_resource("forms.md") == "forms.md"
    assert skill.find_resource("PDF/notes.md") is None
    (skill.directory / "references" / "a.md").write_text("1")
    (skill.directory / "pdf" / "a.md").write_text("2")
    assert skill.find_resource("a.md") is None
    assert skill.read_resource("pdf/notes.md") == "1"


@pytest.mark.parametrize(
    ("written", "directory"),
    [
        ("references/", "references"),
        ("deep/", "references/deep"),
        ("References", "references"),
        ("pdf/references/deep/", "references/deep"),
        ("./", ""),
        ("pdf/", ""),
        ("{baseDir}", ""),
        ("contracts/", None),
        ("nowhere/", None),
        ("../", None),
    ],
)
def test_a_directory_is_found_by_the_same_rule(
    skill: Skill, written: str, directory: str | None
) -> None:
    """One of listed files; the contracts are not."""
    assert skill.find_resource_directory(written) == directory


@given(path=st.text(st.sampled_from("aB./#\\ é'$Ä{}"), min_size=1, max_size=12))
def test_a_listed_path_means_itself(path: str) -> None:
    """Whatever it is written with."""
    assert meant_path(path, [path, "other"], ["b"]) == path


@given(written=st.text(max_size=30))
def test_a_reading_never_leads_out(written: str) -> None:
    """It is relative, and has no part that leads upwards."""
    for path in readings(written, ["pdf", "/skills/pdf"]):
        assert not path.startswith("/")
        assert ".." not in path.split("/")
