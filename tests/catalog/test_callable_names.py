from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from skillruntime import SkillNotFoundError, SkillRuntime, discover
from skillruntime import derive as derive_package
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.catalog import lock_skills

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
    return list(discover(root).callables())


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths of the scripts that are derived from here on."""
    paths: list[str] = []
    real = derive_package.derive

    def derive(source: Any, *, path: str, **options: Any) -> Any:
        paths.append(path)
        return real(source, path=path, **options)

    monkeypatch.setattr(derive_package, "derive", derive)
    return paths


def test_names_are_found_without_deriving_a_contract(
    tmp_path: Path, derived: list[str]
) -> None:
    """They follow from the names of the files and a look at them."""
    make(tmp_path, "alpha", "one.py", "two.py")
    make(tmp_path, "beta")

    assert names(tmp_path) == ["alpha/one", "alpha/two"]
    assert SkillRuntime(discover(tmp_path)).callable_names() == [
        "alpha/one",
        "alpha/two",
    ]
    assert derived == []


def test_a_contract_is_derived_once_and_alone(
    tmp_path: Path, derived: list[str]
) -> None:
    """For its name, its contract and its skill's other tools, in one process."""
    make(tmp_path, "alpha", "one.py", "two.py", "three.py")
    runtime = SkillRuntime(discover(tmp_path))
    runtime.callable_names()

    for _ in range(2):
        runtime.contract("alpha/two")
    assert derived == ["scripts/two.py"]
    assert [*runtime.open_skill("alpha").contracts] == [
        "alpha/one",
        "alpha/three",
        "alpha/two",
    ]
    assert sorted(derived) == ["scripts/one.py", "scripts/three.py", "scripts/two.py"]


def test_a_script_that_only_looks_like_a_tool_has_a_name_and_no_contract(
    tmp_path: Path,
) -> None:
    """What cannot be parsed is found out when its contract is asked for."""
    alpha = make(tmp_path, "alpha", "one.py")
    (alpha / "scripts/two.py").write_text(
        "import argparse\nargparse.ArgumentParser(\nif __name__ == '__main__':\n"
    )
    runtime = SkillRuntime(discover(tmp_path))

    assert runtime.callable_names() == ["alpha/one", "alpha/two"]
    assert [*runtime.open_skill("alpha").contracts] == ["alpha/one"]
    with pytest.raises(SkillNotFoundError, match="no callable 'alpha/two'"):
        runtime.contract("alpha/two")
    listed = SkillTools(runtime, style="typed").contracts
    assert [name for name in listed if name.startswith("alpha")] == ["alpha__one"]


def test_a_listing_derives_only_what_it_shows(
    tmp_path: Path, derived: list[str]
) -> None:
    """What does not fit the budget of definitions is not derived before it is called;
    eight that do not fit end a listing.
    """
    for number in range(200):
        make(tmp_path, f"skill-{number}", "one.py", "two.py")
    runtime = SkillRuntime(discover(tmp_path), definition_tokens=1_000)

    listed = SkillTools(runtime, style="typed").contracts

    shown = sum(name.startswith("skill-") for name in listed)
    assert "call_skill" in listed
    assert 5 < shown <= len(derived) <= shown + 8


def test_a_new_script_a_removed_one_and_an_edited_one_are_noticed(
    tmp_path: Path,
) -> None:
    """Each start looks at the files."""
    alpha = make(tmp_path, "alpha", "one.py", "two.py")
    make(tmp_path, "beta", "three.py")
    names(tmp_path)

    (alpha / "scripts/four.py").write_text(SCRIPT.format(flag="x"), encoding="utf-8")
    assert names(tmp_path) == ["alpha/four", "alpha/one", "alpha/two", "beta/three"]
    (alpha / "scripts/one.py").unlink()
    assert names(tmp_path) == ["alpha/four", "alpha/two", "beta/three"]
    (alpha / "scripts/two.py").write_bytes(b"\x00")
    assert names(tmp_path) == ["alpha/four", "beta/three"]
    (alpha / "contract.json").write_text(
        '{"input": {"type": "object"}}', encoding="utf-8"
    )
    assert names(tmp_path) == ["alpha", "beta/three"]


def test_each_way_to_read_has_names_of_its_own(tmp_path: Path) -> None:
    """A catalog without derived contracts, and a trusted one."""
    make(tmp_path, "alpha", "one.py")
    # A contract that is too long for an untrusted skill, and not for a trusted one.
    long = make(tmp_path, "beta")
    words = [f"w{number}" for number in range(12_000)]
    (long / "contract.json").write_text(
        '{"input": {"properties": {"a": {"enum": ["' + '","'.join(words) + '"]}}}}',
        encoding="utf-8",
    )

    assert names(tmp_path) == ["alpha/one"]
    assert list(discover(tmp_path, trusted=True).callables()) == ["alpha/one", "beta"]
    only_written = discover(tmp_path, trusted=True, derive_contracts=False)
    assert list(only_written.callables()) == ["beta"]


def test_locked_skills_are_compared_to_their_lock(tmp_path: Path) -> None:
    """A script that is not the one that was locked is not a tool."""
    alpha = make(tmp_path / "skills", "alpha", "one.py")
    lock = tmp_path / "skills.lock"
    lock.write_text(
        json.dumps(lock_skills(discover(tmp_path / "skills"))), encoding="utf-8"
    )
    catalog = discover(tmp_path / "skills", frozen=lock)

    assert list(catalog.callables()) == ["alpha/one"]
    (alpha / "scripts/one.py").write_text(SCRIPT.format(flag="x"), encoding="utf-8")
    assert list(catalog.callables()) == []


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
