"""A host's own source of skills, and skills in code: the same limits, digests and trust
as of a directory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import Root, Skill, discover, lock_skills
from skillruntime.catalog.discovery import sources
from skillruntime.errors import ErrorCode, InvalidSkillError, ResourceNotFoundError
from skillruntime.runtime import SkillRuntime

CONTRACT = {
    "description": "Count",
    "input": {"type": "object"},
    "run": {"script": "scripts/count.py"},
}


def head(name: str, body: str = "Body") -> bytes:
    """Return a SKILL.md."""
    return f"---\nname: {name}\ndescription: Does {name}. Use for tests.\n---\n{body}\n".encode()


class Table:
    """Skills in memory: the bytes of each file and its edition; it counts what is
    read.
    """

    def __init__(self, skills: Mapping[str, Mapping[str, bytes]]) -> None:
        self.files = {name: dict(files) for name, files in skills.items()}
        self.reads: list[str] = []
        self.error: Exception | None = None

    def skills(self) -> dict[str, dict[str, str]]:
        if self.error is not None:
            raise self.error
        return {
            name: {path: str(hash(data)) for path, data in files.items()}
            for name, files in self.files.items()
        }

    def read(self, skill: str, path: str) -> bytes:
        self.reads.append(f"{skill}/{path}")
        return self.files[skill][path]


def test_a_source_is_discovered_like_a_directory() -> None:
    """Its metadata, its instructions, and its files; beside a directory, with its own
    trust.
    """
    source = Table(
        {"a": {"SKILL.md": head("a", "Do a."), "references/more.md": b"More."}}
    )

    catalog = discover(source, Root(str(Path("skills").resolve()), trusted=True))

    skill = catalog.activate("a")
    assert (skill.description, skill.body, skill.trusted) == (
        "Does a. Use for tests.",
        "Do a.",
        False,
    )
    assert [each.path for each in skill.resources()] == ["references/more.md"]
    assert skill.read_resource("references/more.md") == "More."
    assert catalog["data-analysis"].trusted
    assert catalog.diagnostics == ()


@pytest.mark.processes
def test_scripts_of_a_source_need_what_scripts_of_a_directory_need(
    tmp_path: Path,
) -> None:
    """Untrusted without a word of the host, and run where the host trusts the
    source.
    """
    files = {"SKILL.md": head("a"), "contract.json": json.dumps(CONTRACT).encode()}
    source = Table({"a": {**files, "scripts/count.py": b"print(3)"}})

    refused = SkillRuntime(discover(source)).call_sync("a", {})
    run = SkillRuntime(discover(source, trusted=True)).call_sync("a", {})

    assert [error.code for error in refused.errors] == [ErrorCode.ACCESS_DENIED]
    assert run.data == 3


def test_a_refresh_reads_what_has_another_edition() -> None:
    """A changed file, a new skill, a skill that is gone; without a change it is the
    same catalog.
    """
    source = Table(
        {
            "a": {"SKILL.md": head("a"), "x.md": b"1", "y.md": b"1"},
            "b": {"SKILL.md": head("b")},
        }
    )
    catalog = discover(source)
    before = catalog.activate("a").digest()
    assert catalog.refresh() is catalog
    source.reads.clear()

    source.files["a"] |= {"x.md": b"2", "SKILL.md": head("a", "Other")}
    del source.files["a"]["y.md"], source.files["b"]
    source.files["c"] = {"SKILL.md": head("c")}
    fresh = catalog.refresh()

    assert sorted(source.reads) == ["a/SKILL.md", "a/x.md", "c/SKILL.md"]
    assert list(fresh) == ["a", "c"]
    skill = fresh.activate("a")
    assert ([each.path for each in skill.resources()], skill.read_resource("x.md")) == (
        ["x.md"],
        "2",
    )
    assert skill.digest() != before


def test_a_skill_that_cannot_be_read_leaves_out_itself_alone() -> None:
    """The diagnostic says why; at a refresh what was read before stays, whole."""
    source = Table(
        {"a": {"SKILL.md": head("a"), "x.md": b"1"}, "b": {"SKILL.md": head("b")}}
    )
    catalog = discover(source)

    def read(skill: str, path: str) -> bytes:
        if path == "SKILL.md":
            return b""
        raise ZeroDivisionError("division by zero")

    source.read = read  # type: ignore[method-assign]
    source.files["a"] = {"SKILL.md": head("a", "New"), "x.md": b"2"}
    source.files["c"] = {"x.md": b"2"}

    fresh = catalog.refresh()

    assert list(fresh) == ["a", "b"]
    assert (fresh.activate("a").body, fresh.activate("a").read_resource("x.md")) == (
        "Body",
        "1",
    )
    assert [(each.rule, Path(each.path).name) for each in fresh.diagnostics] == [
        ("source-unreadable", "a"),
        ("source-unreadable", "c"),
    ]
    assert "ZeroDivisionError: division by zero" in fresh.diagnostics[0].message


def test_a_source_that_cannot_list_is_an_error_at_first_and_a_diagnostic_then() -> None:
    """A service that runs goes on with what it has; one that starts must not go without
    its skills unnoticed.
    """
    source = Table({"a": {"SKILL.md": head("a")}})
    catalog = discover(source)
    source.error = ConnectionError("the database is away")

    fresh = catalog.refresh()

    assert list(fresh) == ["a"]
    assert "the database is away" in fresh.diagnostics[0].message
    with pytest.raises(ConnectionError):
        discover(source)


@pytest.mark.parametrize(
    "files",
    [
        {"../out.md": b"x"},
        {"references/../../out.md": b"x"},
        {"": b"x"},
        {"large.bin": b"x" * (10 * 1024**2 + 1)},
        {f"{number}.md": b"" for number in range(2_001)},
        {"a\0b": b"x"},
    ],
    ids=["above", "above inside", "nothing", "large", "many", "nul"],
)
def test_what_is_beyond_the_limits_is_left_out(files: dict[str, bytes]) -> None:
    """Nothing is written outside the private directory of the source."""
    source = Table(
        {"a": {"SKILL.md": head("a")}, "b": {**files, "SKILL.md": head("b")}}
    )

    catalog = discover(source)

    directory = Path(catalog.roots[0].path)
    assert not (directory.parent / "out.md").exists()
    assert not (directory / "out.md").exists()
    assert [each.rule for each in catalog.diagnostics] == ["source-unreadable"]
    assert "a" in catalog


def test_a_skill_has_a_limit_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all its files together, those that did not change too."""
    monkeypatch.setattr(sources, "MAX_SKILL_BYTES", 100)
    source = Table({"a": {"SKILL.md": head("a"), "x.md": b"1"}})
    catalog = discover(source)
    source.files["a"]["y.md"] = b"2" * 60

    fresh = catalog.refresh()

    assert "it is too large with 'y.md'" in fresh.diagnostics[0].message
    assert [each.path for each in fresh.activate("a").resources()] == ["x.md"]


@pytest.mark.parametrize("name", ["../a", "a/b", "", ".", "a\nb", "a\u202eb"])
def test_a_name_that_is_a_path_or_hides_letters_is_left_out(name: str) -> None:
    """It would be the name of a directory."""
    catalog = discover(Table({name: {"SKILL.md": head("a")}}))

    assert (list(catalog), [each.rule for each in catalog.diagnostics]) == (
        [],
        ["source-unreadable"],
    )


def test_a_lockfile_pins_a_source(tmp_path: Path) -> None:
    """What has changed in the source since it was locked is not offered, and not
    read.
    """
    source = Table({"a": {"SKILL.md": head("a"), "x.md": b"1"}})
    lockfile = tmp_path / "skills-lock.json"
    lockfile.write_text(json.dumps(lock_skills(discover(source))))
    catalog = discover(source, frozen=lockfile)
    assert list(catalog) == ["a"]

    source.files["a"]["x.md"] = b"2"

    assert list(discover(source, frozen=lockfile)) == []
    catalog.refresh()
    with pytest.raises(InvalidSkillError):
        catalog.activate("a")


@pytest.mark.processes
def test_nothing_of_a_source_is_left_in_the_cache_or_on_the_disk(
    tmp_path: Path,
) -> None:
    """Its private directory goes with the process, and not with a process that was
    forked from it.
    """
    program = f"""
import os, tempfile
tempfile.tempdir = {str(tmp_path)!r}
from skillruntime import discover
from skillruntime.catalog import Skill
catalog = discover(Skill.from_text("a", "Does a.", "Do a."))
assert [hit.name for hit in catalog.search("does")] == ["a"]
if os.fork() == 0:
    raise SystemExit
os.wait()
assert catalog.activate("a").body == "Do a."
"""
    cache = tmp_path / "cache"
    environment = {**os.environ, "SKILLRUNTIME_CACHE": str(cache)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)

    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_skill_in_code_is_a_skill() -> None:
    """With its files, and with texts that YAML would read as something else."""
    skill = Skill.from_text(
        "tone",
        'Say: "yes", not #maybe',
        "---\nnot: frontmatter\n",
        files={"a/b.md": "Text", "c.bin": b"\0"},
    )

    catalog = discover(skill, trusted=True)

    found = catalog.activate("tone")
    assert (found.description, found.body) == (
        'Say: "yes", not #maybe',
        "---\nnot: frontmatter",
    )
    assert (found.read_resource("a/b.md"), found.read_resource_bytes("c.bin")) == (
        "Text",
        b"\0",
    )
    assert (skill.trusted, found.trusted) == (False, True)
    assert found.diagnostics == ()
    with pytest.raises(ResourceNotFoundError):
        found.read_resource("../tone/a/b.md")


@pytest.mark.parametrize(
    ("name", "files"),
    [("a/b", {}), ("", {}), ("a", {"../x": "x"}), ("a", {"": "x"})],
    ids=["path", "none", "up", "no"],
)
def test_a_skill_in_code_with_a_wrong_path_is_refused(name: str, files: Any) -> None:
    """Where it is written, not where it is discovered."""
    with pytest.raises(ValueError, match=r"usable name|cannot be written"):
        Skill.from_text(name, "Does it.", "Do it.", files=files)
