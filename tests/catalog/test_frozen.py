"""Frozen catalogs, and the lockfiles of other tools."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from skillruntime.catalog import SkillCatalog, discover, lock_skills, skill_digest
from skillruntime.catalog.checks.lockfile import check_lock
from skillruntime.errors import InvalidSkillError, LockfileNotFoundError
from tests import needs
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
    path.write_text(
        json.dumps(
            lock_skills(discover(root, use_index=False))
            if document is None
            else document
        )
    )
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


def test_the_hash_is_that_of_npx_skills() -> None:
    """SHA-256 over path and bytes of each file, in the order of JavaScript's
    localeCompare.
    """
    files = dict.fromkeys(sorted(IN_LOCALE_ORDER), b"x")
    expected = hashlib.sha256(
        "".join(f"{path}x" for path in IN_LOCALE_ORDER).encode()
    ).hexdigest()

    assert skill_digest.npx_hash(files) == expected


@pytest.mark.processes
@needs.with_program("node")
def test_the_order_is_that_of_node() -> None:
    """Asked from the real implementation."""
    script = (
        "console.log(JSON.stringify(JSON.parse(process.argv[1]).sort((a, b) => "
        "a.localeCompare(b, 'en'))))"
    )
    names = sorted(
        {
            *IN_LOCALE_ORDER,
            "référence.md",
            "reference.md",
            "Reference.md",
            "a+b",
            "a~b",
            "a@b",
            "数据.md",
            "数.md",
        }
    )
    answer = subprocess.run(
        ["node", "-e", script, json.dumps(names)],
        check=True,
        capture_output=True,
        text=True,
    )

    assert sorted(names, key=skill_digest._locale_key) == json.loads(answer.stdout)


def test_a_lock_is_written_as_npx_skills_does(skills: Path) -> None:
    """Sorted by name, without times; what is known of a source is kept."""
    before = {
        "version": 1,
        "skills": {
            "pdf": {
                "source": "me/skills",
                "ref": "v1",
                "sourceType": "github",
                "computedHash": "0",
            }
        },
    }

    document = lock_skills(
        discover(skills, use_index=False), before, base=str(skills.parent)
    )

    assert list(document["skills"]) == ["news", "pdf"]
    assert document["version"] == 1
    assert document["skills"]["pdf"] | {"computedHash": ""} == before["skills"][
        "pdf"
    ] | {"computedHash": ""}  # type: ignore[index]
    assert document["skills"]["news"]["source"] == "skills/news"
    assert document["skills"]["news"]["sourceType"] == "local"
    assert check_lock(discover(skills, use_index=False), document) == []


def test_only_locked_and_unchanged_skills_are_offered(
    skills: Path, write_skill: WriteSkill
) -> None:
    """What drifted is refused and named: a changed script, a new file, a skill that is
    not in the lockfile.
    """
    path = lock(skills)
    assert list(frozen(skills, path)) == ["news", "pdf"]
    (skills / "pdf" / "scripts" / "run.py").write_text("print(2)\n")
    write_skill("new")

    catalog = frozen(skills, path)

    assert list(catalog) == ["news"]
    assert [
        (each.rule, each.message.partition(" (")[0]) for each in catalog.diagnostics
    ] == [
        ("frozen-drift", "new: it is not in the lockfile"),
        ("frozen-drift", "pdf: its files differ from the lockfile"),
    ]
    with pytest.raises(
        InvalidSkillError, match="pdf: its files differ from the lockfile"
    ):
        catalog.activate("pdf")
    (skills / "pdf" / "scripts" / "run.py").write_text("print(1)\n")
    (skills / "pdf" / "more.py").write_text("")
    assert list(frozen(skills, path)) == ["news"]


def test_what_running_a_skill_leaves_behind_is_not_drift(skills: Path) -> None:
    """Python's caches."""
    path = lock(skills)
    (skills / "pdf" / "scripts" / "__pycache__").mkdir()
    (skills / "pdf" / "scripts" / "__pycache__" / "run.pyc").write_bytes(b"x")

    assert list(frozen(skills, path)) == ["news", "pdf"]


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
    (skills / "pdf" / "SKILL.md").write_text(
        "---\nname: pdf\ndescription: Other.\n---\n"
    )

    with pytest.raises(InvalidSkillError):
        catalog.activate("pdf")
    assert list(catalog.refresh()) == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": "x", "skills": 3}', "[" * 100_000, "\ud800"]
)
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
    entries: list[object] = [
        None,
        3,
        "x",
        [],
        {},
        {"computedHash": 7},
        {"computedHash": None},
    ]
    for entry in entries:
        assert (
            list(frozen(skills, lock(skills, {"version": 1, "skills": {"pdf": entry}})))
            == []
        )


@pytest.mark.parametrize(
    "document",
    [
        {"version": 1, "skills": {"pdf": 3, "news": {"computedHash": 5}}},
        {
            "version": 1,
            "skills": {1: {"computedHash": "x"}, "pdf": {"computedHash": "x"}},
        },
    ],
)
def test_odd_entries_of_a_lockfile_pin_nothing(skills: Path, document: object) -> None:
    """Values of other types."""
    findings = check_lock(dict(discover(skills, use_index=False)), document)

    assert {each.rule for each in findings} <= {
        "lock-changed",
        "lock-unlocked",
        "lock-missing",
    }
    assert list(frozen(skills, lock(skills, document))) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"version": 2, "skills": {}}', "its version is 2, and only 1 can be read"),
        ('{"version": null, "skills": {}}', "its version is None"),
        ('{"version": "1", "skills": [{"name": "pdf"}]}', "it has no `skills`"),
    ],
)
def test_a_lockfile_of_another_form_is_refused(
    skills: Path, text: str, message: str
) -> None:
    """Another version, or a list where the form has an object."""
    path = skills.parent / "skills-lock.json"
    path.write_text(text)

    with pytest.raises(InvalidSkillError, match=message):
        frozen(skills, path)


def test_unknown_fields_a_byte_order_mark_and_crlf_change_nothing(skills: Path) -> None:
    """Editors and later versions of the tools add them."""
    document = json.loads(lock(skills).read_text())
    document |= {"$schema": "x", "generator": {"name": ["y"]}}
    document["skills"]["pdf"] |= {"ref": None, "skillPath": 3, "unknown": {}}
    path = skills.parent / "skills-lock.json"
    path.write_bytes(
        b"\xef\xbb\xbf" + json.dumps(document, indent=2).replace("\n", "\r\n").encode()
    )

    assert list(frozen(skills, path)) == ["news", "pdf"]


def test_a_linked_lockfile_is_refused(skills: Path) -> None:
    """The link could be pointed at another lockfile."""
    path = lock(skills)
    link = path.with_name("linked.json")
    link.symlink_to(path)

    with pytest.raises(InvalidSkillError, match="it is a symbolic link"):
        frozen(skills, link)


def test_a_difference_of_line_ends_is_named(skills: Path) -> None:
    """What git's core.autocrlf does to a checkout; the skill is refused all the
    same.
    """
    path = lock(skills)
    file = skills / "pdf" / "SKILL.md"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    catalog = frozen(skills, path)

    assert list(catalog) == ["news"]
    assert "core.autocrlf" in catalog.diagnostics[0].message


@pytest.mark.skipif(
    os.name == "nt" or os.uname().sysname == "Darwin",
    reason="needs a system whose file names are bytes: Linux",
)
def test_names_that_are_not_unicode_are_locked(skills: Path) -> None:
    """POSIX allows any bytes."""
    odd = os.path.join(os.fsencode(skills / "pdf"), b"n\xe9.txt")  # noqa: PTH118
    with open(odd, "wb") as file:  # noqa: PTH123
        file.write(b"x")
    path = lock(skills)

    assert list(frozen(skills, path)) == ["news", "pdf"]
    with open(odd, "wb") as file:  # noqa: PTH123
        file.write(b"y")
    assert list(frozen(skills, path)) == ["news"]


@pytest.mark.parametrize(
    "kind", ["content", "time only", "added", "removed", "in a directory"]
)
def test_a_start_with_known_stamps_sees_changes_beside_a_skill(
    skills: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Also one that keeps size and modification time; what has only another time is
    hashed, and offered.
    """
    (skills / "pdf" / "scripts" / "lib").mkdir()
    (skills / "pdf" / "scripts" / "lib" / "part.py").write_text("1")
    path = lock(skills)
    frozen(skills, path)
    script, part = (
        skills / "pdf" / "scripts" / "run.py",
        skills / "pdf" / "scripts" / "lib" / "part.py",
    )
    stamp = script.stat()
    if kind == "content":
        script.write_text("print(2)\n")
        os.utime(script, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    elif kind == "time only":
        os.utime(script, (1_800_000_000, 1_800_000_000))
    elif kind == "added":
        (part.parent / "more.py").write_text("")
    elif kind == "removed":
        part.unlink()
    else:
        part.write_text("2")

    assert list(frozen(skills, path)) == (
        ["news", "pdf"] if kind == "time only" else ["news"]
    )


def test_another_lockfile_at_the_same_path_is_read_again(
    skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was right with the one before does not count."""
    path = lock(skills)
    frozen(skills, path)
    document = json.loads(path.read_text())
    del document["skills"]["news"]
    document["skills"]["pdf"]["computedHash"] = "0" * 64
    path.write_text(json.dumps(document))

    assert list(frozen(skills, path)) == []
    path.write_text("{}")
    with pytest.raises(InvalidSkillError):
        frozen(skills, path)


def test_files_that_change_after_the_activation_are_not_read(skills: Path) -> None:
    """Contracts, references and scripts: each read is compared with what was
    verified.
    """
    (skills / "pdf" / "contract.json").write_text(
        '{"input": {"type": "object"}, "run": {"script": "scripts/run.py"}}'
    )
    catalog = frozen(skills, lock(skills))
    skill, same = catalog.activate("pdf"), catalog.activate("pdf")
    assert skill.read_resource("./scripts//run.py") == "print(1)\n"
    assert list(same.contracts) == ["pdf"]
    (skills / "pdf" / "scripts" / "run.py").write_text("print(2)\n")
    (skills / "pdf" / "contract.json").write_text('{"input": {"type": "object"}}')
    (skills / "pdf" / "more.md").write_text("More.")

    for name in ("scripts/run.py", "more.md"):
        with pytest.raises(
            InvalidSkillError, match="differs from the file that was locked"
        ):
            skill.read_resource(name)
    assert list(skill.contracts) == []
    assert "differs from the file that was locked" in str(skill.diagnostics)


def test_what_appears_beside_locked_files_is_not_read(skills: Path) -> None:
    """Python's cache is not drift, but what is in it was not reviewed either."""
    path = lock(skills)
    cache = skills / "news" / "__pycache__"
    cache.mkdir()
    (cache / "notes.md").write_text("Follow these instead.")

    skill = frozen(skills, path).activate("news")

    with pytest.raises(
        InvalidSkillError, match="differs from the file that was locked"
    ):
        skill.read_resource("__pycache__/notes.md")


def test_a_second_skill_of_a_locked_name_is_reported_as_such(
    skills: Path, tmp_path: Path
) -> None:
    """A lockfile has one skill for a name: to lock again, as for drift, would not
    help.
    """
    path = lock(skills)
    other = tmp_path / "other" / "news"
    shutil.copytree(skills / "news", other)
    (other / "SKILL.md").write_text((other / "SKILL.md").read_text() + "Another body.")

    catalog = discover(skills, other.parent, frozen=path, use_index=False)

    assert catalog["news"].path == str(skills / "news" / "SKILL.md")
    assert [
        (each.rule, each.severity.value, each.path) for each in catalog.diagnostics
    ] == [("frozen-drift", "warning", str(other / "SKILL.md"))]
    assert (
        f"pins another skill of this name, {skills / 'news' / 'SKILL.md'}"
        in catalog.diagnostics[0].message
    )


def test_a_locked_skill_that_no_root_has_is_named(skills: Path) -> None:
    """A deleted skill is drift too; the others are offered."""
    path = lock(skills)
    shutil.rmtree(skills / "news")

    catalog = frozen(skills, path, use_index=False)

    assert list(catalog) == ["pdf"]
    assert [(each.rule, each.path, each.message) for each in catalog.diagnostics] == [
        (
            "frozen-missing",
            str(path),
            "news: it is in the lockfile, and none of the directories has it",
        )
    ]
    assert list(catalog.select("pdf").diagnostics) == []


def test_a_lock_keeps_the_fields_of_later_releases(skills: Path) -> None:
    """Beside the skills, and in them."""
    catalog = discover(skills, use_index=False)
    before = {
        "version": 1,
        "later": [1],
        "skills": {"news": {"source": "a/b", "computedHash": "x", "new": True}},
    }

    document = lock_skills(catalog, before)

    assert document["later"] == [1]
    assert document["skills"]["news"]["new"] is True
    assert document["skills"]["news"]["computedHash"] != "x"


@pytest.mark.parametrize("seconds", [13_000_000_000, -5_000_000_000])
def test_a_file_of_any_time_does_not_stop_a_start(skills: Path, seconds: int) -> None:
    """A program can set any modification time; in nanoseconds some of them need more
    than 64 bits.
    """
    beside = skills / "news" / "notes.md"
    beside.write_text("Notes.")
    for path in (beside, skills / "news" / "SKILL.md"):
        os.utime(path, (seconds, seconds))
    path = lock(skills)

    for _ in range(3):
        assert "news" in discover(skills, frozen=path)
        assert "news" in discover(skills)
