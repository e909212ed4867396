from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.catalog import SkillCatalog, lock_skills

SCRIPT = (
    "import argparse\n"
    "p = argparse.ArgumentParser()\n"
    "p.add_argument('--{flag}')\n"
    "p.parse_args()\n"
)


def make(root: Path, name: str, *scripts: str) -> Path:
    directory = root / name
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: Does {name}.\n---\nGo.\n", encoding="utf-8"
    )
    for script in scripts:
        (directory / "scripts" / script).write_text(
            SCRIPT.format(flag=script.partition(".")[0]), encoding="utf-8"
        )
    return directory


def names(root: Path) -> list[str]:
    """Return what can be called, as a process of its own that starts now would find
    it.
    """
    return [name for name, _ in discover(root).callables()]


def read_at_start(root: Path) -> list[str]:
    """Return the names whose skill was read to find them."""
    return [name for name, skill in discover(root).callables() if skill is not None]


def test_names_are_found_again_without_reading_a_skill(tmp_path: Path) -> None:
    """The first listing reads contracts and scripts, the second one compares the state
    of the files.
    """
    make(tmp_path, "alpha", "one.py", "two.py")
    make(tmp_path, "beta")

    assert read_at_start(tmp_path) == ["alpha/one", "alpha/two"]
    assert read_at_start(tmp_path) == []
    assert names(tmp_path) == ["alpha/one", "alpha/two"]


def test_a_new_script_a_removed_one_and_an_edited_one_are_noticed(
    tmp_path: Path,
) -> None:
    """The skill whose files differ is read again, and no other."""
    alpha = make(tmp_path, "alpha", "one.py", "two.py")
    make(tmp_path, "beta", "three.py")
    names(tmp_path)

    (alpha / "scripts/four.py").write_text(SCRIPT.format(flag="x"), encoding="utf-8")
    assert read_at_start(tmp_path) == ["alpha/four", "alpha/one", "alpha/two"]
    (alpha / "scripts/one.py").unlink()
    assert names(tmp_path) == ["alpha/four", "alpha/two", "beta/three"]
    (alpha / "scripts/two.py").write_bytes(b"\x00")
    assert names(tmp_path) == ["alpha/four", "beta/three"]
    (alpha / "contract.json").write_text(
        '{"input": {"type": "object"}}', encoding="utf-8"
    )
    assert names(tmp_path) == ["alpha", "beta/three"]


def test_a_script_with_its_old_size_and_time_is_noticed(tmp_path: Path) -> None:
    """A program can set the modification time, but not the time of the status
    change.
    """
    alpha = make(tmp_path, "alpha", "one.py")
    script = alpha / "scripts/one.py"
    names(tmp_path)
    before = script.stat()

    script.write_bytes(b"\x00" * before.st_size)
    os.utime(script, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert names(tmp_path) == []


def test_a_skill_that_gets_its_first_script_is_noticed(tmp_path: Path) -> None:
    """Of a skill with nothing to call the state of its directory is compared."""
    (tmp_path / "alpha").mkdir()
    (tmp_path / "alpha/SKILL.md").write_text(
        "---\nname: alpha\ndescription: Does it.\n---\n", encoding="utf-8"
    )
    assert names(tmp_path) == []
    assert names(tmp_path) == []

    (tmp_path / "alpha/go.py").write_text(SCRIPT.format(flag="x"), encoding="utf-8")

    assert names(tmp_path) == ["alpha/go"]


def test_each_way_to_read_has_names_of_its_own(tmp_path: Path) -> None:
    """A catalog without derived contracts and a trusted one do not take the names of
    another.
    """
    make(tmp_path, "alpha", "one.py")
    # A contract that is too long for an untrusted skill, and not for a trusted one.
    long = make(tmp_path, "beta")
    words = [f"w{number}" for number in range(12_000)]
    (long / "contract.json").write_text(
        '{"input": {"properties": {"a": {"enum": ["' + '","'.join(words) + '"]}}}}',
        encoding="utf-8",
    )

    for _ in range(2):
        assert [name for name, _ in discover(tmp_path).callables()] == ["alpha/one"]
        assert [name for name, _ in discover(tmp_path, trusted=True).callables()] == [
            "alpha/one",
            "beta",
        ]
        assert [
            name
            for name, _ in discover(
                tmp_path, trusted=True, derive_contracts=False
            ).callables()
        ] == ["beta"]


def test_a_view_keeps_the_names_of_the_others(tmp_path: Path) -> None:
    """A listing of some skills does not make the others be read again."""
    for name in ("alpha", "beta", "gamma"):
        make(tmp_path, name, "one.py")
    names(tmp_path)
    (tmp_path / "alpha/scripts/two.py").write_text(
        SCRIPT.format(flag="x"), encoding="utf-8"
    )

    view = discover(tmp_path).select(include=["alpha"])

    assert [name for name, _ in view.callables()] == ["alpha/one", "alpha/two"]
    assert read_at_start(tmp_path) == []


def test_a_damaged_file_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is in the cache directory, the names are those of the skills."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path / "cache"))
    make(tmp_path / "skills", "alpha", "one.py")
    names(tmp_path / "skills")

    for file in (tmp_path / "cache/callables").iterdir():
        file.write_bytes(b"\x00\x01")

    assert names(tmp_path / "skills") == ["alpha/one"]


def test_locked_skills_are_compared_to_their_lock_each_time(tmp_path: Path) -> None:
    """Names of a catalog with a lockfile are not taken from the disk."""
    make(tmp_path / "skills", "alpha", "one.py")
    lock = tmp_path / "skills.lock"
    lock.write_text(
        json.dumps(lock_skills(discover(tmp_path / "skills"))), encoding="utf-8"
    )

    for _ in range(2):
        catalog: SkillCatalog = discover(tmp_path / "skills", frozen=lock)
        assert [(name, skill is not None) for name, skill in catalog.callables()] == [
            ("alpha/one", True)
        ]


def test_a_tool_reads_its_contract_when_it_is_asked_for_its_schema(
    tmp_path: Path,
) -> None:
    """Thousands of tools are made from their names alone; what a model is sent of one
    is read then.
    """
    alpha = make(tmp_path, "alpha", "one.py", "two.py")
    SkillToolkit(SkillRuntime(discover(tmp_path)), style="typed").get_tools()
    tools = {
        tool.name: tool
        for tool in SkillToolkit(
            SkillRuntime(discover(tmp_path)), style="typed"
        ).get_tools()
    }
    one, two = tools["alpha__one"], tools["alpha__two"]

    assert one.args == {"one": {"type": "string"}}
    assert one.tool_call_schema == {**one.args_schema, "description": one.description}
    # What is read of one tool is read of all that belong to its skill, so both fit one
    # state of the files.
    (alpha / "scripts/two.py").unlink()
    assert two.args == {"two": {"type": "string"}}


def test_a_tool_of_a_skill_that_is_gone_answers(tmp_path: Path) -> None:
    """Files may be removed after the tools were listed: the schema stays, and a call
    says what is wrong.
    """
    alpha = make(tmp_path, "alpha", "one.py")
    SkillToolkit(
        SkillRuntime(discover(tmp_path, trusted=True)), style="typed"
    ).get_tools()
    tools = {
        tool.name: tool
        for tool in SkillToolkit(
            SkillRuntime(discover(tmp_path, trusted=True)), style="typed"
        ).get_tools()
    }
    shutil.rmtree(alpha)

    assert tools["alpha__one"].args == {"one": {"type": "string"}}
    answer = tools["alpha__one"].invoke(
        {"type": "tool_call", "name": "alpha__one", "id": "1", "args": {}}
    )
    assert answer.status == "error"
    assert "INVALID_SKILL" in answer.content
