"""What one conversation has activated and was refused:
`skillruntime/runtime/session.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from skillruntime.catalog import SkillCatalog
from skillruntime.errors import InvalidSkillError, SkillNotFoundError
from skillruntime.runtime import SkillRuntime
from tests.skill_files import made

WriteSkill = Callable[..., SkillCatalog]


@pytest.mark.parametrize("name", ["typo", "file"])
def test_a_workspace_is_a_directory_that_exists(tmp_path: Path, name: str) -> None:
    """A misspelt path would become an empty directory beside the meant one."""
    (tmp_path / "file").write_text("")
    refused = (
        "is not a directory" if name == "file" else "does not exist; make it first"
    )

    with pytest.raises(InvalidSkillError, match=refused):
        SkillRuntime(workspace=tmp_path / name)
    with pytest.raises(InvalidSkillError, match=refused):
        SkillRuntime().session(workspace=tmp_path / name)
    assert not (tmp_path / "typo").exists()


def test_an_activation_gives_instructions_files_and_tools(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """What a model needs, and in this order; a script that is called is not listed to
    be read.
    """
    session = SkillRuntime(write_skill("print(1)", description="Runs it")).session()
    (tmp_path / "skills" / "sample" / "rules.md").write_text("12345678")

    text = session.activate("sample")

    assert text.startswith('<skill name="sample">\nDo it.\n</skill>')
    assert "- rules.md (8 bytes)" in text
    assert "scripts/run.py" not in text
    assert "- sample: Runs it" in text
    assert list(session.active) == ["sample"]


def test_a_second_activation_is_one_line_unless_the_text_has_changed(
    write_skill: WriteSkill,
) -> None:
    """The instructions are already in the conversation."""
    session = SkillRuntime(write_skill("")).session()
    session.activate("sample")

    again = session.activate("sample")
    write_skill("", body="Do it otherwise.")
    changed = session.activate("sample")

    assert len(again.splitlines()) == 1
    assert "already active" in again
    assert "Do it otherwise." in changed


def test_an_unknown_skill_is_not_activated(write_skill: WriteSkill) -> None:
    """The error names the closest skill."""
    with pytest.raises(SkillNotFoundError) as caught:
        SkillRuntime(write_skill("")).session().activate("sampel")

    assert "sample" in (caught.value.suggested_action or "")


def test_a_repeated_refusal_says_so(write_skill: WriteSkill) -> None:
    """The same bad call again: the answer says that it repeats; another call, or
    another session, does not.
    """
    runtime = SkillRuntime(write_skill("print(1)"))
    session = runtime.session()
    bad = {"wrong": 1, "text": "x"}

    first = session.call_sync("sample", bad)
    second = anyio.run(session.call, "sample", {"text": "x", "wrong": 1})
    other = session.call_sync("sample", {"wrong": 2})
    elsewhere = runtime.session().call_sync("sample", bad)

    def says_so(response):
        return "has been refused 2 times" in response.errors[0].suggested_action

    assert [says_so(response) for response in (first, second, other, elsewhere)] == [
        False,
        True,
        False,
        False,
    ]


@pytest.mark.processes
def test_a_session_has_one_workspace(write_skill: WriteSkill, tmp_path: Path) -> None:
    """Files stay from call to call; a temporary workspace goes with the session."""
    source = """
import pathlib
path = pathlib.Path("n")
number = len(path.read_text()) if path.exists() else 0
path.write_text("x" * (number + 1))
print(number)
"""
    runtime = SkillRuntime(write_skill(source))

    with runtime.session() as session:
        numbers = [session.call_sync("sample", {}).data for _ in range(3)]
        directory = session.workspace.directory
    own = runtime.session(workspace=made(tmp_path / "own"))
    own.call_sync("sample", {})
    own.close()

    assert numbers == [0, 1, 2]
    assert not directory.exists()
    assert (tmp_path / "own" / "n").exists()
