"""Directories to a catalog: one bad file never costs another, and only frontmatter is
read.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import Root, discover, validate
from skillruntime.catalog.discovery import root_diagnostics
from skillruntime.catalog.discovery.discovery import MAX_DEPTH
from tests import needs
from tests.catalog.conftest import WriteSkill


def rules(path: Path) -> set[str]:
    return {diagnostic.rule for diagnostic in discover(path).diagnostics}


def test_a_root_is_a_skill_or_contains_nested_skills(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """The root itself, its children, and deeper directories; but nothing inside a
    skill.
    """
    one = write_skill("pdf")
    write_skill("deep", at="a/b/c/d/deep")
    write_skill("deeper", at="a/b/c/d/e/f/g/h/i/deeper")
    write_skill("deepest", at="a/b/c/d/e/f/g/h/i/j/k/deepest")
    write_skill("inner", at="pdf/assets/inner")

    assert list(discover(one)) == ["pdf"]
    assert list(discover(tmp_path / "skills")) == ["deep", "deeper", "pdf"]
    assert MAX_DEPTH == 10


def test_roots_may_be_given_in_a_list(tmp_path: Path, write_skill: WriteSkill) -> None:
    """As everyone writes it first; the order is that of the list."""
    first = write_skill("pdf", "First.", at="../a/pdf")
    second = write_skill("docx", "Second.", at="../b/docx")

    assert list(discover([first.parent, second.parent])) == ["docx", "pdf"]
    assert list(discover((first, second), first)) == ["docx", "pdf"]
    assert list(discover(each for each in (first, second))) == ["docx", "pdf"]
    assert list(discover([])) == []
    by_team = {"one": first, "two": second}
    assert list(discover(by_team.values())) == ["docx", "pdf"]
    with pytest.raises(TypeError, match="one by one or in one list"):
        discover(by_team)  # type: ignore[arg-type]


def test_metadata_are_read_at_once_and_other_fields_on_request(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Name, description, version and visibility at start; licence, tools and the rest
    from the file.
    """
    text = (
        "---\n"
        "name: pdf\n"
        "description: Reads\n"
        "license: MIT\n"
        "allowed-tools: Bash(git add:*), Read\n"
        "version: 2\n"
        "disable-model-invocation: true\n"
        "metadata:\n"
        "  version: 1.10\n"
        "  deep: {a: 1}\n"
        "tags: [PDF, forms]\n"
        "---\n"
    )
    write_skill("pdf", text=text)

    skill = discover(tmp_path / "skills", trusted=True)["pdf"]

    assert (
        skill.version,
        skill.trusted,
        skill.model_invocable,
        skill.user_invocable,
    ) == ("1.10", True, False, True)
    fields = skill.read_frontmatter()
    assert (fields.license, fields.allowed_tools, fields.tags) == (
        "MIT",
        ("Bash(git add:*)", "Read"),
        ("pdf", "forms"),
    )
    assert dict(fields.metadata) == {"version": "1.10", "deep": '{"a": "1"}'}
    assert skill.directory == tmp_path / "skills" / "pdf"


@pytest.mark.parametrize(
    ("text", "name", "rule"),
    [
        ("---\nname: Other Name\ndescription: Reads\n---\n", "Other Name", "name-form"),
        ("---\nname: other\ndescription: Reads\n---\n", "other", "name-mismatch"),
        (f"---\nname: {'x' * 65}\ndescription: Reads\n---\n", "x" * 65, "name-length"),
        (f"---\nname: {'x' * 300}\ndescription: Reads\n---\n", "pdf", "name-form"),
        ("---\nname: ../../pdf\ndescription: Reads\n---\n", "pdf", "name-form"),
        ("---\nname: ..\ndescription: Reads\n---\n", "pdf", "name-form"),
        ("---\nname: [a]\ndescription: Reads\n---\n", "pdf", "name-missing"),
        ('---\nname: "pdf \\n"\ndescription: Reads\n---\n', "pdf", None),
        ("---\nname: true\ndescription: Reads\n---\n", "true", "name-mismatch"),
        ("---\ndescription: Reads\n---\n", "pdf", "name-missing"),
        ("---\nname: null\ndescription: Reads\n---\n", "pdf", "name-missing"),
        ("---\nname: ~\ndescription: Reads\n---\n", "pdf", "name-missing"),
        ("---\nname: \uff50\uff44\uff46\ndescription: Reads\n---\n", "pdf", None),
        (
            f"---\nname: pdf\ndescription: {'x ' * 600}\n---\n",
            "pdf",
            "description-length",
        ),
        (
            "---\nname: pdf\ndescription: [Reads, Writes]\n---\n",
            "pdf",
            "description-not-text",
        ),
        ("---\nNAME: pdf\nDescription: Reads\n---\n", "pdf", "key-case"),
        (
            "---\nname: pdf\ndescription: Reads\nuser-invocable: perhaps\n---\n",
            "pdf",
            "not-a-boolean",
        ),
    ],
)
def test_a_skill_that_deviates_from_the_format_is_loaded_with_a_warning(
    tmp_path: Path, write_skill: WriteSkill, text: str, name: str, rule: str | None
) -> None:
    """Lenient, as the Agent Skills guide for clients asks."""
    write_skill("pdf", text=text)

    assert list(discover(tmp_path / "skills")) == [name]
    assert rules(tmp_path / "skills") >= ({rule} if rule else set())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# no frontmatter",
        "---\nname: a\n---\n",
        "---\nname: a\ndescription: ''\n---\n",
        "---\nname: a\ndescription: null\n---\n",
        b"\x00\xff",
    ],
)
def test_a_skill_without_description_is_skipped_with_an_error(
    tmp_path: Path, write_skill: WriteSkill, text: str | bytes
) -> None:
    """Exactly one error for the bad one; its sibling is there."""
    write_skill("bad", text=text)
    write_skill("good")

    catalog = discover(tmp_path / "skills")

    assert list(catalog) == ["good"]
    assert sum(each.severity == "error" for each in catalog.diagnostics) == 1


@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
def test_a_path_that_is_not_a_regular_file_is_reported(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """A directory, a FIFO, and every link, wherever it points; the other skills
    stay.
    """
    write_skill("good")
    root = tmp_path / "skills"
    (tmp_path / "secret.md").write_text("---\nname: secret\ndescription: Hidden\n---\n")
    for name in ("directory", "fifo", "outside", "device", "nowhere", "inside"):
        (root / name).mkdir()
    (root / "directory" / "SKILL.md").mkdir()
    os.mkfifo(root / "fifo" / "SKILL.md")
    (root / "outside" / "SKILL.md").symlink_to(tmp_path / "secret.md")
    (root / "device" / "SKILL.md").symlink_to("/dev/zero")
    (root / "nowhere" / "SKILL.md").symlink_to(root / "no" / "SKILL.md")
    (root / "inside" / "SKILL.md").symlink_to(root / "good" / "SKILL.md")
    (root / "loop").symlink_to(root)

    catalog = discover(root)

    assert list(catalog) == ["good"]
    reported = {
        (Path(each.path).parent.name, each.rule) for each in catalog.diagnostics
    }
    assert reported == {
        ("directory", "not-a-file"),
        ("fifo", "not-a-file"),
        ("outside", "link-outside"),
        ("device", "link-outside"),
        ("nowhere", "link-outside"),
    }


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason=needs.OTHER_USER
)
def test_an_unreadable_file_is_reported(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Its sibling is there."""
    write_skill("good")
    (write_skill("bad") / "SKILL.md").chmod(0)

    assert list(discover(tmp_path / "skills")) == ["good"]
    assert rules(tmp_path / "skills") == {"skill-unreadable"}


def test_a_linked_directory_is_followed(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Installers link skills into a client's directory."""
    target = write_skill("pdf", at="../elsewhere/pdf")
    (tmp_path / "skills" / "pdf").symlink_to(target, target_is_directory=True)

    assert list(discover(tmp_path / "skills")) == ["pdf"]


def test_the_file_may_be_named_in_lower_case(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """It is read with a warning; SKILL.md has precedence."""
    directory = write_skill("pdf")
    (directory / "SKILL.md").rename(directory / "skill.md")

    assert list(discover(tmp_path / "skills")) == ["pdf"]
    assert rules(tmp_path / "skills") == {"file-name-case"}


@pytest.mark.parametrize("root", ["nowhere", "file", "nul\0"])
def test_a_missing_root_is_an_error(tmp_path: Path, root: str) -> None:
    """With ``missing_ok`` it is a diagnostic, and the other roots are read."""
    (tmp_path / "file").write_text("x")
    path = f"{tmp_path}/{root}"

    with pytest.raises(
        NotADirectoryError if root == "file" else FileNotFoundError, match="directory"
    ):
        discover(path)

    catalog = discover(path, missing_ok=True)

    assert len(catalog) == 0
    assert [each.severity for each in catalog.diagnostics] == ["error"]


@pytest.mark.parametrize("root", ["", b"", Root("")], ids=["text", "bytes", "root"])
@pytest.mark.parametrize("missing_ok", [False, True])
def test_an_empty_path_is_not_the_working_directory(
    root: Any, missing_ok: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a variable that is not set; with ``missing_ok`` too, because no directory
    has this name.
    """
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ValueError, match="the path is empty; give a directory"):
        discover(root, missing_ok=missing_ok)
    with pytest.raises(ValueError, match=r"'\.' for the working directory"):
        validate("")


def test_a_huge_file_is_read_only_at_its_beginning(
    tmp_path: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 25 MB at most 4 KiB; of a frontmatter that never ends, 64 KiB and a little."""
    write_skill(
        "closed",
        text=b"---\nname: closed\ndescription: Reads\n---\n" + b"x" * 25_000_000,
    )
    write_skill("endless", text=b"---\nname: endless\n" + b"# x\n" * 6_000_000)
    read: dict[int, int] = {}
    real = os.read

    def counting(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        read[descriptor] = read.get(descriptor, 0) + len(data)
        return data

    monkeypatch.setattr(os, "read", counting)
    catalog = discover(tmp_path / "skills")

    assert list(catalog) == ["closed"]
    assert sum(read.values()) <= 4096 + 64 * 1024 + 2 * 4096
    assert [each.rule for each in catalog.diagnostics] == ["frontmatter-unclosed"]


def test_long_frontmatter_is_read_to_its_end(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """It may well be longer than the first 4 KiB."""
    write_skill(
        "pdf",
        text="---\n"
        "name: pdf\n"
        "notes: |\n"
        f"{'  x y z' * 900}\n"
        "description: Reads\n"
        "---\n"
        "body",
    )

    assert discover(tmp_path / "skills")["pdf"].description == "Reads"


def test_of_two_skills_with_one_name_the_earlier_root_wins(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """One diagnostic that names both files; the loser has a name of its own, by its
    root's scope.
    """
    first = write_skill("pdf", "First.", at="../project/pdf")
    second = write_skill("pdf", "Second.", at="../user/pdf")

    catalog = discover(
        Root(str(first.parent), scope="project"), Root(str(second.parent), scope="user")
    )

    assert catalog["pdf"].description == "First."
    assert list(catalog) == ["pdf", "user:pdf"]
    assert catalog.activate("user:pdf").description == "Second."
    (collision,) = catalog.diagnostics
    assert collision.rule == "name-collision"
    assert collision.path == str(second.resolve() / "SKILL.md")
    assert str(first.resolve() / "SKILL.md") in collision.message
    assert "user:pdf" in collision.message


def test_within_one_root_the_path_decides(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Not the order in which the file system lists."""
    write_skill("pdf", "B.", at="b/pdf")
    write_skill("pdf", "A.", at="a/pdf")
    write_skill("pdf", "C.", at="c/pdf")

    catalog = discover(tmp_path / "skills")

    assert catalog["pdf"].description == "A."
    assert list(catalog) == ["b:pdf", "c:pdf", "pdf"]
    assert [each.rule for each in catalog.diagnostics] == ["name-collision"] * 2


def test_a_root_given_twice_is_read_once(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """No collision with oneself."""
    write_skill("pdf")

    catalog = discover(tmp_path / "skills", tmp_path / "skills" / ".." / "skills")

    assert catalog.diagnostics == ()
    assert len(catalog.roots) == 1


def test_the_search_goes_on_below_an_invalid_skill(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """At the root, and below it; the invalid file is reported."""
    root = write_skill("x", at=".", text="no frontmatter")
    write_skill("one")
    write_skill("bad", at="group", text="---\nname: group\n---\n")
    write_skill("two", at="group/two")

    catalog = discover(root, use_index=False)

    assert list(catalog) == ["one", "two"]
    assert [each.rule for each in catalog.diagnostics] == [
        "frontmatter-missing",
        "description-missing",
    ]


def test_a_skill_at_the_root_does_not_hide_those_beside_its_files(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Only `scripts`, `references` and `assets` belong to it."""
    root = write_skill("whole", at=".")
    write_skill("one")
    write_skill("two", at="more/two")
    write_skill("example", at="assets/example")

    catalog = discover(root, use_index=False)

    assert list(catalog) == ["one", "two", "whole"]
    assert [
        each.rule for each in catalog.diagnostics if each.rule != "name-mismatch"
    ] == ["not-offered"]


def test_skills_that_are_not_offered_are_counted_in_one_diagnostic(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Inside another skill, too deep, in lower case beside the proper file."""
    root = tmp_path / "skills"
    path = write_skill("pdf")
    write_skill("a", at="pdf/examples/a")
    write_skill("b", at="pdf/examples/b")
    write_skill("deep", at="1/2/3/4/5/6/7/8/9/10/11/deep")
    (path / "skill.md").write_text("---\nname: other\ndescription: Other.\n---\n")

    found = [
        each
        for each in discover(root, use_index=False).diagnostics
        if each.rule == "not-offered"
    ]

    assert [each.message for each in found] == [
        "4 SKILL.md files are not offered: inside another skill, beside another "
        "SKILL.md, or nested too deep; the first is "
        f"{root}/1/2/3/4/5/6/7/8/9/10/11/deep/SKILL.md"
    ]


def test_the_count_of_skills_that_are_not_offered_is_bounded(
    tmp_path: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The diagnostic says that it may be incomplete."""
    monkeypatch.setattr(root_diagnostics, "MAX_LISTED", 3)
    write_skill("pdf")
    for name in ("a", "b", "c"):
        write_skill(name, at=f"pdf/examples/{name}")

    found = [
        each
        for each in discover(tmp_path / "skills", use_index=False).diagnostics
        if each.rule == "not-offered"
    ]

    assert found == []
    monkeypatch.setattr(root_diagnostics, "MAX_LISTED", 5)
    found = [
        each
        for each in discover(tmp_path / "skills", use_index=False).diagnostics
        if each.rule == "not-offered"
    ]
    assert found[0].message.endswith(
        "; there may be more, because only 5 directories were listed"
    )


def test_a_heading_after_the_closing_dashes_ends_the_frontmatter(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """As skills-ref reads it; the heading is part of the instructions."""
    write_skill(
        "pdf",
        text="---\n"
        "name: pdf\n"
        "description: Reads PDFs.\n"
        "---# Title\n"
        "\n"
        "Text\n"
        "\n"
        "---\n"
        "\n"
        "More\n",
    )

    catalog = discover(tmp_path / "skills", use_index=False)

    assert catalog["pdf"].description == "Reads PDFs."
    assert [(each.rule, each.line) for each in catalog.diagnostics] == [
        ("closing-with-text", 4)
    ]
    assert catalog.activate("pdf").body.startswith("# Title\n\nText")


def test_yaml_that_is_broken_below_what_was_read_is_reported_at_activation(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """Discovery reads the name and the description only; the strict reader finds the
    rest.
    """
    text = "---\nname: pdf\ndescription: Reads PDFs.\nauthor: one: two\n---\nText\n"
    path = write_skill("pdf", text=text)

    catalog = discover(tmp_path / "skills", use_index=False)

    assert catalog.diagnostics == ()
    assert "yaml-repaired" in [
        each.rule for each in catalog.activate("pdf").diagnostics
    ]
    assert [(each.rule, each.line) for each in validate(path)[0].diagnostics] == [
        ("yaml-invalid", 4)
    ]


def test_a_long_frontmatter_below_a_heading_with_dashes_is_read_to_its_end(
    tmp_path: Path,
) -> None:
    """The line that opens it is not taken for the one that closes it."""
    (tmp_path / "SKILL.md").write_text(
        f"# A --- B\n---\nname: pdf\n# {'c' * 5000}\ndescription: Reads PDFs\n---\n"
    )

    assert discover(tmp_path, use_index=False)["pdf"].description == "Reads PDFs"


def test_hard_links_are_compared_like_all_copies(
    tmp_path: Path, own_cache: Path
) -> None:
    """Package managers make hard links of one file in a store. One skill, if the whole
    directories are equal; beside another file it is another skill.
    """
    text = "---\nname: pdf\ndescription: Reads PDF files.\n---\n"
    (tmp_path / "a/pdf").mkdir(parents=True)
    (tmp_path / "a/pdf/SKILL.md").write_text(text)
    for number in range(50):
        (tmp_path / f"b{number}/pdf").mkdir(parents=True)
        os.link(tmp_path / "a/pdf/SKILL.md", tmp_path / f"b{number}/pdf/SKILL.md")

    found = discover(tmp_path)

    assert [each.path for each in found.values()] == [str(tmp_path / "a/pdf/SKILL.md")]
    assert found.diagnostics == ()
    assert list(found.refresh()) == ["pdf"]
    (tmp_path / "b3/pdf/scripts").mkdir()
    (tmp_path / "b3/pdf/scripts/run.py").write_text("print(1)\n")
    assert list(found.refresh()) == ["b3:pdf", "pdf"]
    (tmp_path / "b7/pdf/SKILL.md").unlink()
    (tmp_path / "b7/pdf/SKILL.md").write_text(f"{text}More.\n")

    assert list(discover(tmp_path)) == ["b3:pdf", "b7:pdf", "pdf"]


def test_trust_is_true_or_false(tmp_path: Path) -> None:
    """A word for no would be a yes."""
    with pytest.raises(TypeError, match="trusted is True or False"):
        discover(tmp_path, trusted="no")  # type: ignore[arg-type]
