"""Frozen catalogs, and the lockfiles of other tools."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from skillruntime.catalog import SkillCatalog, check_lock, discover, lock_for_npx
from skillruntime.catalog import lock_formats as formats
from skillruntime.catalog.lock_formats import npx_hash, toolhive_digest
from skillruntime.errors import InvalidSkillError, LockfileNotFoundError
from tests.catalog.conftest import WriteSkill

# The order in which `npx skills` 1.x hashes these, by JavaScript's localeCompare.
IN_LOCALE_ORDER = [
    "_a",
    "-a",
    ".hidden",
    "a b",
    "a_b",
    "a-b",
    "a.b",
    "a/b",
    "a1",
    "ab",
    "aB",
    "Ab",
    "äb",
    "b",
    "SKILL.md",
    "z",
]


def lock(root: Path, document: object = None, name: str = "skills-lock.json") -> Path:
    """Write a lockfile of the skills below *root* beside it."""
    path = root.parent / name
    path.write_text(json.dumps(lock_for_npx(discover(root, use_index=False)) if document is None else document))
    return path


@pytest.fixture
def skills(tmp_path: Path, write_skill: WriteSkill) -> Path:
    for name in ("pdf", "news"):
        directory = write_skill(name)
        (directory / "scripts").mkdir()
        (directory / "scripts" / "run.py").write_text("print(1)\n")
    return tmp_path / "skills"


def frozen(skills: Path, path: Path, **options: bool) -> SkillCatalog:
    return discover(skills, frozen=path, **options)  # type: ignore[arg-type]  # flags only


def make_old(skills: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the files count as older than the clock's tick; a change time cannot be set."""
    for path in skills.rglob("*"):
        os.utime(path, (1_700_000_000.5, 1_700_000_000.5))
    monkeypatch.setattr("skillruntime.catalog.frozen._RECENT", -(10**18))


def test_the_hash_is_that_of_npx_skills() -> None:
    """SHA-256 over path and bytes of each file, in the order of JavaScript's localeCompare."""
    files = dict.fromkeys(sorted(IN_LOCALE_ORDER), b"x")
    expected = hashlib.sha256("".join(f"{path}x" for path in IN_LOCALE_ORDER).encode()).hexdigest()

    assert npx_hash(files) == expected


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_order_is_that_of_node() -> None:
    """Asked from the real implementation."""
    script = "console.log(JSON.stringify(JSON.parse(process.argv[1]).sort((a, b) => a.localeCompare(b, 'en'))))"
    names = sorted(
        {*IN_LOCALE_ORDER, "référence.md", "reference.md", "Reference.md", "a+b", "a~b", "a@b", "数据.md", "数.md"}
    )
    answer = subprocess.run(["node", "-e", script, json.dumps(names)], check=True, capture_output=True, text=True)

    assert sorted(names, key=formats._locale_key) == json.loads(answer.stdout)


def test_a_lock_is_written_as_npx_skills_does(skills: Path) -> None:
    """Sorted by name, without times; what is known of a source is kept."""
    before = {
        "version": 1,
        "skills": {"pdf": {"source": "me/skills", "ref": "v1", "sourceType": "github", "computedHash": "0"}},
    }

    document = lock_for_npx(discover(skills, use_index=False), before, base=str(skills.parent))

    assert list(document["skills"]) == ["news", "pdf"]
    assert document["version"] == 1
    assert document["skills"]["pdf"] | {"computedHash": ""} == before["skills"]["pdf"] | {"computedHash": ""}  # type: ignore[index]
    assert document["skills"]["news"]["source"] == "skills/news"
    assert document["skills"]["news"]["sourceType"] == "local"
    assert check_lock(discover(skills, use_index=False), document) == []


def test_only_locked_and_unchanged_skills_are_offered(skills: Path, write_skill: WriteSkill) -> None:
    """What drifted is refused and named: a changed script, a new file, a skill that is not in the lockfile."""
    path = lock(skills)
    assert list(frozen(skills, path)) == ["news", "pdf"]
    (skills / "pdf" / "scripts" / "run.py").write_text("print(2)\n")
    write_skill("new")

    catalog = frozen(skills, path)

    assert list(catalog) == ["news"]
    assert [(each.rule, each.message.partition(" (")[0]) for each in catalog.diagnostics] == [
        ("frozen-drift", "new: it is not in the lockfile"),
        ("frozen-drift", "pdf: its files differ from the lockfile"),
    ]
    (skills / "pdf" / "scripts" / "run.py").write_text("print(1)\n")
    (skills / "pdf" / "more.py").write_text("")
    assert list(frozen(skills, path)) == ["news"]


def test_what_running_a_skill_leaves_behind_is_not_drift(skills: Path) -> None:
    """Python's caches."""
    path = lock(skills)
    (skills / "pdf" / "scripts" / "__pycache__").mkdir()
    (skills / "pdf" / "scripts" / "__pycache__" / "run.pyc").write_bytes(b"x")

    assert list(frozen(skills, path)) == ["news", "pdf"]


def test_unchanged_files_are_not_hashed_again(skills: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Size, times and inode decide; with `frozen_full` everything is hashed."""
    path = lock(skills)
    make_old(skills, monkeypatch)
    frozen(skills, path)
    read: list[str] = []
    real = formats.read_inside
    monkeypatch.setattr(formats, "read_inside", lambda d, p, n, **o: read.append(p) or real(d, p, n, **o))  # type: ignore[func-returns-value]

    assert list(frozen(skills, path)) == ["news", "pdf"]
    assert read == []

    assert list(frozen(skills, path, frozen_full=True)) == ["news", "pdf"]
    assert sorted(read) == ["SKILL.md", "SKILL.md", "scripts/run.py", "scripts/run.py"]


def test_a_file_that_is_young_is_hashed_again(skills: Path) -> None:
    """It could change once more within one tick of the clock."""
    path = lock(skills)
    frozen(skills, path)
    script = skills / "pdf" / "scripts" / "run.py"
    stamp = script.stat()
    script.write_text("print(2)\n")
    os.utime(script, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert list(frozen(skills, path)) == ["news"]


def test_activation_and_a_script_start_hash_the_files_again(skills: Path) -> None:
    """A change after the start is seen, whatever its times."""
    catalog = frozen(skills, lock(skills))
    skill = catalog.activate("pdf")
    (skills / "pdf" / "scripts" / "run.py").write_text("print(2)\n")

    with pytest.raises(InvalidSkillError, match="'pdf' is refused: its files differ"):
        catalog.activate("pdf")
    with pytest.raises(InvalidSkillError):
        skill.verify()
    assert catalog.activate("news").name == "news"


def test_a_link_in_a_frozen_skill_is_refused(skills: Path) -> None:
    """What it leads to is not pinned."""
    path = lock(skills)
    (skills / "pdf" / "link.py").symlink_to("/etc/hostname")

    assert list(frozen(skills, path)) == ["news"]


def test_views_of_a_frozen_catalog_are_frozen_too(skills: Path) -> None:
    """And so is a refreshed one."""
    catalog = frozen(skills, lock(skills)).select(["pdf"])
    (skills / "pdf" / "SKILL.md").write_text("---\nname: pdf\ndescription: Other.\n---\n")

    with pytest.raises(InvalidSkillError):
        catalog.activate("pdf")
    assert list(catalog.refresh()) == []


def test_toolhive_and_manifests_of_mcp_are_read(skills: Path) -> None:
    """Made from their published formats: RFC 0080 of ToolHive, a draft, and SEP-2640; not by these tools."""
    files = formats.files_of(str(skills / "pdf"))
    toolhive = skills.parent / "toolhive.lock.yaml"
    toolhive.write_text(
        "version: 1\nskills:\n  - name: pdf\n    version: 1.0.0\n    source: pdf\n    digest: sha256:00\n"
        f"    contentDigest: {toolhive_digest(files)}\n  - name: news\n    source: git://x\n    digest: 0badc0de\n"
    )
    resources = [
        {"uri": f"skill://me/pdf/{path}", "digest": f"sha256:{hashlib.sha256(data).hexdigest()}"}
        for path, data in files.items()
    ]
    entry = {"uri": "skill://me/pdf/SKILL.md", "frontmatter": {"name": "pdf"}, "resources": resources}
    manifest = lock(skills, {"skills": [entry]}, "manifest.json")

    by_toolhive, by_manifest = frozen(skills, toolhive), frozen(skills, manifest)

    assert list(by_toolhive) == list(by_manifest) == ["pdf"]
    assert "the lockfile has no digest of its files" in by_toolhive.diagnostics[0].message
    (skills / "pdf" / "scripts" / "run.py").write_text("print(2)\n")
    assert "scripts/run.py changed" in frozen(skills, manifest).diagnostics[1].message
    assert list(frozen(skills, toolhive)) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": "x", "skills": 3}', "[" * 100_000, "\ud800"])
def test_a_damaged_lockfile_is_an_error(skills: Path, text: str) -> None:
    """A frozen start never goes on without it."""
    path = skills.parent / "skills-lock.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))

    with pytest.raises(InvalidSkillError, match="lockfile"):
        frozen(skills, path)
    with pytest.raises(LockfileNotFoundError):
        frozen(skills, skills.parent / "absent.json")


def test_damaged_entries_refuse_their_skill(skills: Path) -> None:
    """Whatever an entry holds, nothing raises."""
    entries: list[object] = [None, 3, "x", [], {}, {"computedHash": 7}, {"computedHash": None}]
    for entry in entries:
        assert list(frozen(skills, lock(skills, {"version": 1, "skills": {"pdf": entry}}))) == []


def test_the_state_forgets_deleted_skills(skills: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would only grow."""
    path = lock(skills)
    make_old(skills, monkeypatch)
    frozen(skills, path)
    shutil.rmtree(skills / "pdf")

    assert list(frozen(skills, path)) == ["news"]
    [state] = (own_cache / "frozen").iterdir()
    assert list(json.loads(state.read_bytes()[4:].partition(b"\n")[2])) == [str(skills / "news")]


@pytest.mark.parametrize(
    "document",
    [
        {"version": 1, "skills": {"pdf": 3, "news": {"computedHash": 5}}},
        {"version": 1, "skills": {1: {"computedHash": "x"}, "pdf": {"computedHash": "x"}}},
        {"skills": [{"frontmatter": {"name": "pdf"}, "uri": 3, "resources": 5}]},
        {"skills": [{"frontmatter": {"name": "pdf"}, "resources": [{"uri": None, "digest": "sha256:x"}, 7]}]},
    ],
)
def test_odd_entries_of_a_lockfile_pin_nothing(skills: Path, document: object) -> None:
    """As YAML and JSON can have them: numbers as names, and values of other types."""
    findings = check_lock(dict(discover(skills, use_index=False)), document)

    assert {each.rule for each in findings} <= {"lock-changed", "lock-unlocked", "lock-missing"}
    assert list(frozen(skills, lock(skills, document))) == []
