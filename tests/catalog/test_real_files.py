"""Files that other programs wrote: a lockfile of `npx skills`, and the wheels of
packages that ship skills.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import discover, installed_roots, lock_skills
from tests.catalog.parts import check_lock

REAL_LOCK: dict[str, Any] = json.loads(
    Path(__file__).with_name("npx_skills_lock.json").read_text(encoding="utf-8")
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the directory in which `npx skills add` was run; the file says with which
    version and command.
    """
    for path, text in REAL_LOCK["files"].items():
        file = tmp_path / "skills" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(text))
    (tmp_path / "skills-lock.json").write_text(
        json.dumps(REAL_LOCK["lockfile"], indent=2) + "\n"
    )
    return tmp_path


def test_a_lockfile_of_npx_skills_verifies(project: Path) -> None:
    """Names with spaces, accents and Chinese, CRLF, binary and empty files; and ours
    has the same hashes.
    """
    catalog = discover(project / "skills", frozen=project / "skills-lock.json")

    assert list(catalog) == ["My Caps", "plain", "signs"]
    assert catalog.diagnostics == () or {
        each.severity.value for each in catalog.diagnostics
    } == {"warning"}
    assert check_lock(dict(catalog), REAL_LOCK["lockfile"]) == []
    assert lock_skills(catalog, REAL_LOCK["lockfile"]) == REAL_LOCK["lockfile"]


@pytest.mark.parametrize(
    "path",
    sorted(
        path
        for path in REAL_LOCK["files"]
        if path.startswith("signs/") and not path.endswith("empty")
    ),
)
def test_one_changed_byte_breaks_it(project: Path, path: str) -> None:
    """In whichever file: the start names the skill, and so does a check."""
    file = project / "skills" / path
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))

    catalog = discover(project / "skills", frozen=project / "skills-lock.json")

    assert list(catalog) == ["My Caps", "plain"]
    assert [
        each.message.partition(":")[0]
        for each in catalog.diagnostics
        if each.rule == "frozen-drift"
    ] == ["signs"]
    found = check_lock(
        dict(discover(project / "skills", use_index=False)), REAL_LOCK["lockfile"]
    )
    assert [(each.rule, each.message.partition(" ")[0]) for each in found] == [
        ("lock-changed", "signs")
    ]


@pytest.mark.parametrize("change", ["added", "removed", "renamed"])
def test_an_added_removed_or_renamed_file_breaks_it(project: Path, change: str) -> None:
    """The hash covers the paths."""
    notes = project / "skills" / "signs" / "references"
    if change == "added":
        (notes / "more.md").write_text("")
    elif change == "removed":
        (notes / "empty").unlink()
    else:
        (notes / "empty").rename(notes / "void")

    assert list(discover(project / "skills", frozen=project / "skills-lock.json")) == [
        "My Caps",
        "plain",
    ]


REAL_WHEELS = {
    "fastapi": "fastapi",
    "typer": "typer",
    "sqlmodel": "sqlmodel",
    "streamlit": "developing-with-streamlit",
}
"""The packages whose wheels ship a skill, and its name."""


@pytest.mark.parametrize("package", REAL_WHEELS)
def test_the_skill_of_a_real_wheel_is_found_whole(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the version of its distribution; a changed byte is refused.

    Typer is installed with the tests. For all four: ``pip install --no-deps --target
    DIRECTORY fastapi typer sqlmodel streamlit``, and DIRECTORY in
    SKILLRUNTIME_REAL_WHEELS.
    """
    if directory := os.environ.get("SKILLRUNTIME_REAL_WHEELS"):
        monkeypatch.syspath_prepend(directory)
    try:
        own = version(package)
    except PackageNotFoundError:
        pytest.skip(
            f"needs {package}: pip install --no-deps --target DIRECTORY {package}, and "
            "SKILLRUNTIME_REAL_WHEELS=DIRECTORY"
        )
    found = installed_roots(package, missing_ok=True)
    if not found:
        pytest.skip(f"needs a newer {package}: {own} has no skill")
    name = REAL_WHEELS[package]

    skill = discover(*found).activate(name)

    assert (skill.version, skill.metadata.scope, skill.trusted) == (own, package, False)
    assert skill.diagnostics == () or {
        each.severity.value for each in skill.diagnostics
    } <= {"warning", "advice"}
    assert len(skill.body) > 500
    site = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    shutil.copytree(Path(found[0].path), site / package / ".agents" / "skills")
    info = (
        Path(str(distribution(package).locate_file(""))) / f"{package}-{own}.dist-info"
    )
    shutil.copytree(info, site / info.name)
    copy = site / package / ".agents" / "skills" / name / "SKILL.md"
    monkeypatch.syspath_prepend(site)
    assert list(discover(*installed_roots(package))) == [name]
    data = copy.read_bytes()
    copy.write_bytes(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])

    changed = discover(*installed_roots(package))

    assert list(changed) == []
    assert [each.rule for each in changed.diagnostics] == ["record-mismatch"]
