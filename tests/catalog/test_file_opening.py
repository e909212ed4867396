"""Only a skill's own regular files are opened, even if they are replaced while the
skill is in use.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from skillruntime.catalog import discover, validate
from skillruntime.catalog.file_opening import (
    FileTooLargeError,
    open_inside,
    read_inside,
    read_regular,
    write_inside,
)
from skillruntime.catalog.skill_digest import files_of
from skillruntime.errors import InvalidSkillError, ResourceNotFoundError
from tests import needs
from tests.catalog.conftest import WriteSkill

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Return a directory outside every skill, with files of the names that a skill
    has.
    """
    directory = tmp_path / "secret"
    (directory / "references").mkdir(parents=True)
    for path in ("SKILL.md", "a.md", "references/a.md"):
        (directory / path).write_text(
            "---\nname: pdf\ndescription: SECRET\n---\nSECRET"
        )
    return directory


def test_no_part_of_a_path_may_be_a_link(
    tmp_path: Path, write_skill: WriteSkill, secret: Path
) -> None:
    """Neither the file nor a directory above it, inside the skill or outside."""
    directory = write_skill("pdf")
    (directory / "real").mkdir()
    (directory / "real" / "a.md").write_text("own")
    (directory / "link.md").symlink_to(directory / "real" / "a.md")
    (directory / "inner").symlink_to(directory / "real", target_is_directory=True)
    (directory / "outer").symlink_to(secret, target_is_directory=True)

    assert read_inside(str(directory), "real/a.md", 10) == b"own"
    for path in (
        "link.md",
        "inner/a.md",
        "outer/a.md",
        "outer/references/a.md",
        "..",
        "real/../real/a.md",
    ):
        with pytest.raises(OSError, match=r"\S"):
            open_inside(str(directory), path)


@pytest.mark.parametrize("replaced", ["references", "."])
def test_a_directory_that_is_replaced_is_not_followed(
    tmp_path: Path, write_skill: WriteSkill, secret: Path, replaced: str
) -> None:
    """A parent of the file, or the whole directory of an activated skill, becomes a
    link to another place.
    """
    directory = write_skill("pdf")
    (directory / "references").mkdir()
    (directory / "references" / "a.md").write_text("own")
    skill = discover(tmp_path / "skills").activate("pdf")
    assert skill.read_resource("references/a.md") == "own"

    target = directory / replaced
    target.rename(tmp_path / "old")
    target.symlink_to(secret / replaced, target_is_directory=True)

    with pytest.raises(ResourceNotFoundError) as caught:
        skill.read_resource("references/a.md")
    assert "SECRET" not in str(caught.value)


def test_a_skill_file_that_becomes_a_link_is_not_activated(
    tmp_path: Path, write_skill: WriteSkill, secret: Path
) -> None:
    """It was a regular file at discovery."""
    directory = write_skill("pdf")
    catalog = discover(tmp_path / "skills")
    (directory / "SKILL.md").unlink()
    (directory / "SKILL.md").symlink_to(secret / "SKILL.md")

    with pytest.raises(InvalidSkillError, match="cannot be read"):
        catalog.activate("pdf")
    assert dict(catalog["pdf"].read_frontmatter()) == {}
    assert catalog.search("secret") == []


def test_nothing_waits_for_a_fifo(
    tmp_path: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frontmatter, selection, search, validation, digests, and an index that is a FIFO:
    each ends at once.
    """
    directory = write_skill("pdf")
    catalog = discover(tmp_path / "skills")
    (directory / "SKILL.md").unlink()
    os.mkfifo(directory / "SKILL.md")
    os.mkfifo(directory / "contract.json")

    assert catalog["pdf"].read_frontmatter().license is None
    assert list(catalog.select(tags=["x"])) == []
    assert catalog.search("pdf")[0].name == "pdf"
    assert [each.rule for each in validate(directory)[0].diagnostics] == [
        "skill-unreadable"
    ]
    assert files_of(str(directory)) == {}
    assert list(discover(tmp_path / "skills")) == []


def test_the_size_is_checked_before_the_reading(tmp_path: Path) -> None:
    """A sparse file of 1 GiB takes no memory; a cut reading gives its beginning."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 30)

    with pytest.raises(FileTooLargeError) as caught:
        read_inside(str(tmp_path), "large", 100)

    assert caught.value.size == 1 << 30
    assert read_regular(f"{tmp_path}/large", 3, cut=True) == b"\0\0\0"


def test_a_replaced_directory_has_another_identity(tmp_path: Path) -> None:
    """Though it has the same path and the same files."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("1")
    status = (tmp_path / "a").stat()
    identity = (status.st_dev, status.st_ino)
    assert read_inside(f"{tmp_path}/a", "x", 9, identity=identity) == b"1"

    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("2")

    with pytest.raises(OSError, match="replaced"):
        read_inside(f"{tmp_path}/a", "x", 9, identity=identity)


def test_links_that_lead_elsewhere_are_reported(
    tmp_path: Path, write_skill: WriteSkill, secret: Path
) -> None:
    """A directory outside the root; one inside the root is not reported."""
    own = write_skill("own")
    (tmp_path / "skills" / "pdf").symlink_to(secret, target_is_directory=True)
    (tmp_path / "skills" / "alias").symlink_to(own, target_is_directory=True)

    for _ in range(2):  # the second time from the index
        catalog = discover(tmp_path / "skills")
        found = {
            (Path(each.path).parent.name, each.rule) for each in catalog.diagnostics
        }
        assert ("pdf", "directory-link") in found
        assert ("alias", "directory-link") not in found


def test_a_file_is_written_through_no_link(tmp_path: Path, secret: Path) -> None:
    """A link in its place is replaced; one above it is refused."""
    directory = tmp_path / "made"
    directory.mkdir()
    (directory / "contract.json").symlink_to(tmp_path / "outside")
    (directory / "contracts").symlink_to(secret, target_is_directory=True)

    write_inside(str(directory), "contract.json", b"new")
    write_inside(str(directory), "other/deep/a.json", b"deep")
    with pytest.raises(OSError, match=r"\S"):
        write_inside(str(directory), "contracts/a.json", b"new")

    assert not (tmp_path / "outside").exists()
    assert not (directory / "contract.json").is_symlink()
    assert (directory / "contract.json").read_bytes() == b"new"
    assert (directory / "other" / "deep" / "a.json").read_bytes() == b"deep"
    assert sorted(each.name for each in secret.iterdir()) == [
        "SKILL.md",
        "a.md",
        "references",
    ]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    """The old bytes, and nothing temporary."""
    (tmp_path / "a" / "full").mkdir(parents=True)
    (tmp_path / "a" / "full" / "file").touch()

    with pytest.raises(OSError, match=r"\S"):
        write_inside(str(tmp_path / "a"), "full", b"new")

    assert [each.name for each in (tmp_path / "a").iterdir()] == ["full"]
