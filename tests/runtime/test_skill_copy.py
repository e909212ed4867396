"""What was approved is what runs: `skillruntime/runtime/files/skill_copy.py` and
`approval.py`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import Root, SkillCatalog, discover, lock_skills
from skillruntime.errors import ErrorCode, InvalidSkillError
from skillruntime.runtime import Approval, SandboxCommand, SkillRuntime
from skillruntime.runtime.files import skill_copy
from skillruntime.runtime.files.skill_copy import copy_skill
from tests import needs
from tests.runtime.parts import Finished

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)

WriteSkill = Callable[..., SkillCatalog]


class Recording:
    """A sandbox that runs nothing: it answers with the text of the script that it was
    given.
    """

    level = "remote"

    def __init__(self) -> None:
        self.commands: list[SandboxCommand] = []

    async def run(
        self,
        command: SandboxCommand,
        *,
        on_stopped: Callable[[bool], object] | None = None,
    ) -> Finished:
        self.commands.append(command)
        return Finished(0, json.dumps(Path(command.argv[-1]).read_text()).encode(), b"")


def runtime_of(
    catalog: SkillCatalog, approve: Callable[[Approval], Any], **options: Any
) -> SkillRuntime:
    """Return a runtime whose scripts are shown instead of run."""
    return SkillRuntime(
        catalog, approve=approve, sandbox=options.pop("sandbox", Recording()), **options
    )


def exchange(path: Path, text: str) -> None:
    """Replace the file in one step, as an attacker who can write to the skill's
    directory would.
    """
    other = path.with_name("other")
    other.write_text(text)
    other.replace(path)


def test_a_script_exchanged_after_the_approval_does_not_run(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """The approved bytes run, although the file is another one by then, or a link to a
    program outside.
    """
    catalog = write_skill("honest", trusted=False)
    script = tmp_path / "skills" / "sample" / "scripts" / "run.py"
    (tmp_path / "outside.py").write_text("outside")

    def approve_then_exchange(request: Approval) -> bool:
        exchange(script, "forged")
        return True

    def approve_then_link(request: Approval) -> bool:
        script.unlink()
        script.symlink_to(tmp_path / "outside.py")
        return True

    first = runtime_of(catalog, approve_then_exchange).call_sync("sample", {})
    exchange(script, "honest")
    second = runtime_of(catalog, approve_then_link).call_sync("sample", {})

    assert (first.data, second.data) == ("honest", "honest")


@pytest.mark.slow
def test_300_races_give_each_digest_one_text(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """While the script and its directory are exchanged all the time, a digest stands
    for what then runs.
    """
    catalog = write_skill("honest", trusted=False)
    skill = tmp_path / "skills" / "sample"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "run.py").write_text("outside")
    ended = threading.Event()

    def attack() -> None:
        while not ended.is_set():
            exchange(skill / "scripts" / "run.py", "forged")
            (skill / "scripts").rename(skill / "hidden")
            (skill / "scripts").symlink_to(outside)
            (skill / "scripts").unlink()
            (skill / "hidden").rename(skill / "scripts")
            exchange(skill / "scripts" / "run.py", "honest")

    approved: list[str] = []
    runtime = runtime_of(
        catalog, lambda request: bool(approved.append(request.digest)) or True
    )
    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        texts: dict[str, set[str]] = {}
        for _ in range(300):
            response = runtime.call_sync("sample", {})
            if response.ok:
                texts.setdefault(approved[-1], set()).add(response.data)
    finally:
        ended.set()
        attacker.join()

    assert texts
    assert all(len(found) == 1 for found in texts.values())
    assert set().union(*texts.values()) <= {"honest", "forged"}


def test_a_kept_approval_holds_for_the_same_files_alone(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """A host answers with the digest that a person approved earlier; a module beside
    the script is part of it.
    """
    catalog = write_skill("honest", trusted=False)
    kept: list[str] = []

    def remember(request: Approval) -> bool:
        kept.append(request.digest)
        return True

    first = runtime_of(catalog, remember).call_sync("sample", {})
    runtime = runtime_of(catalog, lambda request: kept[0])
    same = runtime.call_sync("sample", {})
    (tmp_path / "skills" / "sample" / "scripts" / "words.py").write_text("WORD = 1")
    changed = runtime.call_sync("sample", {})

    assert first.ok
    assert same.ok
    assert changed.errors is not None
    assert changed.errors[0].code is ErrorCode.ACCESS_DENIED
    assert "are not those that were approved" in changed.errors[0].message


@pytest.mark.parametrize(
    "answer", [False, None, 1, "yes", {"approved": True}, object()]
)
def test_only_true_the_digest_or_grants_are_an_approval(
    write_skill: WriteSkill, answer: Any
) -> None:
    """A truthy object is a mistake of the host, not a yes."""
    response = runtime_of(
        write_skill("honest", trusted=False), lambda request: answer
    ).call_sync("sample", {})

    assert response.errors is not None
    assert response.errors[0].code is ErrorCode.ACCESS_DENIED


def test_the_digest_covers_files_modes_and_the_contract(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """Each change gives another digest; what is left out (compiled files, links) does
    not.
    """
    catalog = write_skill("honest", trusted=False)
    skill, contract = catalog.contract("sample")
    directory = tmp_path / "skills" / "sample"

    def digest(of: Any = contract) -> str:
        with copy_skill(skill, of) as copy:
            return copy.digest

    first = digest()
    (directory / "scripts" / "__pycache__").mkdir()
    (directory / "scripts" / "__pycache__" / "run.pyc").write_bytes(b"x")
    (directory / "link").symlink_to("/etc/passwd")
    same = digest()
    (directory / "scripts" / "run.py").chmod(0o755)
    executable = digest()
    (directory / "lib").mkdir()
    (directory / "lib" / "data.csv").write_text("a")
    more = digest()
    other = digest(
        type(contract).from_dict(
            {**contract.to_dict(), "version": "9.9.9"}, name="sample"
        )
    )

    assert first == same
    assert len({first, executable, more, other}) == 4


def test_links_pipes_and_compiled_files_are_not_copied(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """Nothing waits for a pipe, and nothing from outside comes in."""
    catalog = write_skill("honest", trusted=False)
    directory = tmp_path / "skills" / "sample"
    (directory / "link").symlink_to(tmp_path)
    os.mkfifo(directory / "pipe")
    for compiled in (
        "scripts/hidden.pyc",
        "scripts/hidden.pyo",
        "scripts/__pycache__/run.cpython-311.pyc",
    ):
        (directory / compiled).parent.mkdir(exist_ok=True)
        (directory / compiled).write_text("x")

    with copy_skill(*catalog.contract("sample")) as copy:
        files = sorted(
            str(path.relative_to(copy.directory))
            for path in copy.directory.rglob("*")
            if path.is_file()
        )
        mode = copy.directory.parent.stat().st_mode & 0o777

    assert files == ["SKILL.md", "contract.json", "scripts/run.py"]
    assert mode == 0o700
    assert not copy.directory.parent.exists()


def test_a_directory_replaced_after_activation_is_refused(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """The skill whose instructions were read is the one whose script runs."""
    catalog = write_skill("honest", trusted=False)
    skill, contract = catalog.contract("sample")
    directory = tmp_path / "skills" / "sample"
    directory.rename(tmp_path / "aside")
    (directory / "scripts").mkdir(parents=True)
    (directory / "scripts" / "run.py").write_text("forged")

    with pytest.raises(InvalidSkillError, match="cannot be read"):
        copy_skill(skill, contract)


def test_files_in_more_than_32_directories_are_left_out(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    catalog = write_skill("honest", trusted=False)
    directory = tmp_path / "skills" / "sample"
    for _ in range(33):
        directory /= "d"
        directory.mkdir()
        (directory / "file").touch()

    with copy_skill(*catalog.contract("sample")) as copy:
        assert (copy.directory / ("d/" * 32) / "file").exists()
        assert not (copy.directory / ("d/" * 33) / "file").exists()


@pytest.mark.parametrize("limit", ["MAX_FILES", "MAX_BYTES"])
def test_a_skill_that_is_too_large_is_refused_and_leaves_nothing(
    write_skill: WriteSkill, limit: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both bounds hold before anything runs."""
    catalog = write_skill("honest", trusted=False)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setattr(skill_copy, limit, 2)

    with pytest.raises(InvalidSkillError, match="too much for a sandbox"):
        copy_skill(*catalog.contract("sample"))

    assert list(temporary.glob("*/files/*")) == []


@pytest.mark.parametrize("kind", ["empty files", "directories", "links"])
def test_entries_without_bytes_count_too(
    write_skill: WriteSkill, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """100,000 empty files took 7 s to copy."""
    catalog = write_skill("honest", trusted=False)
    monkeypatch.setattr(skill_copy, "MAX_FILES", 50)
    many = tmp_path / "skills" / "sample" / "many"
    many.mkdir()
    for number in range(50):
        entry = many / str(number)
        {
            "empty files": entry.touch,
            "directories": entry.mkdir,
            "links": lambda e=entry: e.symlink_to("x"),
        }[kind]()

    with pytest.raises(InvalidSkillError, match="more than 50 files and directories"):
        copy_skill(*catalog.contract("sample"))


def test_a_sparse_file_is_refused_before_it_is_read(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """A terabyte without content costs nothing to bring, and must cost nothing to
    refuse.
    """
    catalog = write_skill("honest", trusted=False)
    with (tmp_path / "skills" / "sample" / "data").open("wb") as file:
        file.truncate(1024**4)

    with pytest.raises(InvalidSkillError, match="more than 512 MiB"):
        copy_skill(*catalog.contract("sample"))


def test_the_script_of_an_untrusted_skill_runs_from_its_copy(
    write_skill: WriteSkill,
) -> None:
    """The sandbox is given the copy alone; it is gone after the call."""
    sandbox = Recording()
    runtime_of(
        write_skill("honest", trusted=False), lambda request: True, sandbox=sandbox
    ).call_sync("sample", {})

    (command,) = sandbox.commands

    assert Path(command.argv[-1]).parts[-3:] == ("sample", "scripts", "run.py")
    assert command.skills == (Path(command.argv[-1]).parents[1],)
    assert not command.skills[0].exists()


@pytest.mark.parametrize("trusted", [True, False])
def test_of_a_frozen_skill_the_hashed_bytes_run(
    write_skill: WriteSkill, tmp_path: Path, trusted: bool
) -> None:
    """A script that is exchanged between hashing and copying does not run, and neither
    does one exchanged before.
    """
    root, lockfile = tmp_path / "skills", tmp_path / "skills-lock.json"
    lockfile.write_text(json.dumps(lock_skills(write_skill("honest"))))
    script = root / "sample" / "scripts" / "run.py"
    recording = Recording()
    catalog = discover(Root(str(root), trusted), frozen=lockfile)
    runtime = runtime_of(
        catalog, lambda _: True, sandbox=recording, sandbox_trusted=True
    )
    assert runtime.call_sync("sample", {}).data == "honest"
    if trusted:
        assert str(root) not in recording.commands[0].argv[-1]

    with pytest.MonkeyPatch.context() as patch:
        real = skill_copy._files
        patch.setattr(
            skill_copy, "_files", lambda *a: exchange(script, "forged") or real(*a)
        )  # type: ignore[func-returns-value]
        response = runtime.call_sync("sample", {})

    assert response.errors is not None
    assert response.errors[0].code is ErrorCode.INVALID_SKILL
    assert len(recording.commands) == 1
