"""Only the files of the skill are read, for any path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.catalog.resources import (
    MAX_RESOURCE_BYTES,
    decode_text,
    digest_of_code,
    list_resources,
    read_bytes,
)
from skillruntime.errors import ResourceNotFoundError
from tests import needs


@pytest.fixture
def skill(tmp_path: Path) -> str:
    directory = tmp_path / "pdf"
    (directory / "references").mkdir(parents=True)
    (directory / "scripts" / "__pycache__").mkdir(parents=True)
    (directory / "contracts").mkdir()
    for path in (
        "SKILL.md",
        "contract.json",
        "contracts/merge.json",
        "scripts/__pycache__/x.pyc",
    ):
        (directory / path).write_text("own")
    (directory / "references" / "forms.md").write_text("# Formulaire é")
    (directory / "scripts" / "fill.py").write_text("print()")
    (directory / "logo.png").write_bytes(b"\x89PNG\0")
    (tmp_path / "secret.txt").write_text("secret")
    return str(directory)


def read_text(directory: str, path: str) -> str:
    return decode_text(read_bytes(directory, path), path)


def test_files_are_listed_by_path(skill: str) -> None:
    """SKILL.md, contracts and caches are not among them."""
    assert [
        (each.path, each.bytes, each.media_type) for each in list_resources(skill)
    ] == [
        ("logo.png", 5, "image/png"),
        ("references/forms.md", 15, "text/markdown"),
        ("scripts/fill.py", 7, "text/x-python"),
    ]


def test_a_file_is_read(skill: str) -> None:
    """As text, or as bytes."""
    assert read_text(skill, "references/forms.md") == "# Formulaire é"
    assert read_text(skill, "./references//forms.md") == "# Formulaire é"
    assert read_bytes(skill, "logo.png") == b"\x89PNG\0"


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            "/etc/passwd",
            "../secret.txt",
            "references/../../secret.txt",
            "references/../logo.png",
            "~/x",
            "a\0b",
        ),
        *(
            "nowhere.md",
            "references",
            ".",
            "references/forms.md/x",
            "x" * 5000,
            "link.txt",
            "linked/secret.txt",
            "loop",
        ),
    ],
)
def test_nothing_outside_is_ever_read(skill: str, path: str) -> None:
    """Absolute, upward, linked, odd: not found, with the closest files."""
    Path(skill, "link.txt").symlink_to(Path(skill).parent / "secret.txt")
    Path(skill, "linked").symlink_to(Path(skill).parent, target_is_directory=True)
    Path(skill, "loop").symlink_to(Path(skill, "loop"))

    with pytest.raises(ResourceNotFoundError) as caught:
        read_text(skill, path)

    assert "secret" not in str(caught.value).replace(path, "")
    assert len(str(caught.value)) < 300
    assert not any(each.path.startswith("link") for each in list_resources(skill))


@given(
    parts=st.lists(
        st.sampled_from(
            ["..", ".", "", "references", "link.txt", "secret.txt", "/", "\\", "~"]
        ),
        max_size=7,
    )
)
def test_no_path_leads_outside(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    """Whatever is put together, the secret stays one."""
    root = tmp_path_factory.getbasetemp() / "combined"
    (root / "pdf" / "references").mkdir(parents=True, exist_ok=True)
    (root / "secret.txt").write_text("secret")
    if not (root / "pdf" / "link.txt").is_symlink():
        (root / "pdf" / "link.txt").symlink_to(root / "secret.txt")

    with pytest.raises(ResourceNotFoundError):
        read_text(str(root / "pdf"), "/".join(parts))


def test_a_misspelt_path_suggests_the_closest(skill: str) -> None:
    """And with a file of the same name elsewhere."""
    with pytest.raises(ResourceNotFoundError) as caught:
        read_text(skill, "references/form.md")
    assert caught.value.suggested_action == "Read one of: references/forms.md"
    with pytest.raises(ResourceNotFoundError) as caught:
        read_text(skill, "fill.py")
    assert (caught.value.suggested_action or "").startswith(
        "Read one of: scripts/fill.py"
    )


def test_a_binary_file_is_not_returned_as_text(skill: str) -> None:
    """With its type and size; trying again will not help."""
    with pytest.raises(
        ResourceNotFoundError,
        match=r"'logo.png' is not a text file \(image/png, 5 bytes\)",
    ) as caught:
        read_text(skill, "logo.png")
    assert not caught.value.recoverable


@pytest.mark.parametrize(
    ("path", "is_code"),
    [
        ("scripts/table.csv", True),
        ("scripts/run.sh", True),
        ("lib/module.py", True),
        ("contract.yaml", True),
        ("module.py", True),
        ("references/table.csv", False),
        ("notes.md", False),
    ],
)
def test_the_digest_of_the_code_is_of_what_a_skill_executes(
    tmp_path: Path, path: str, is_code: bool
) -> None:
    """A script may read the other files in its directory as it reads its code."""
    file = tmp_path / path
    file.parent.mkdir(exist_ok=True)
    file.write_text("before")
    before = digest_of_code(str(tmp_path))
    file.write_text("after, longer")

    assert (digest_of_code(str(tmp_path)) != before) is is_code


def test_a_large_file_is_refused(skill: str) -> None:
    """Its size is reported; it is not read."""
    with Path(skill, "large.csv").open("wb") as file:
        file.truncate(MAX_RESOURCE_BYTES + 1)

    with pytest.raises(ResourceNotFoundError, match="at most"):
        read_text(skill, "large.csv")


@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
def test_a_fifo_or_a_device_is_not_read(skill: str) -> None:
    """It is neither listed nor waited for."""
    os.mkfifo(Path(skill, "pipe"))
    Path(skill, "zero").symlink_to("/dev/zero")

    for path in ("pipe", "zero"):
        with pytest.raises(ResourceNotFoundError):
            read_text(skill, path)
        assert path not in [each.path for each in list_resources(skill)]
