"""Tools that were derived from scripts: published with their schema or not at all, and
trusted like the scripts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import discover
from skillruntime.contract import Contract
from skillruntime.errors import ErrorCode, SkillInputError, SkillNotFoundError
from skillruntime.remote import SkillDescriptor
from skillruntime.runtime import Approval, SkillRuntime
from skillruntime.server import serve_catalog
from tests.remote.parts import CapabilityType
from tests.skill_files import made, write_skill_files

SCRIPT = """
import argparse, json
parser = argparse.ArgumentParser(description="Cut a plank")
commands = parser.add_subparsers(dest="how", required=True)
saw = commands.add_parser("saw")
saw.add_argument("--length", type=int, required=True, help="In millimetres")
saw.add_argument("--wood", choices=["oak", "pine"], default="oak")
commands.add_parser("measure")
print(json.dumps(vars(parser.parse_args())))
"""
PLAIN = """
import argparse, json
parser = argparse.ArgumentParser(description="Paint a plank")
parser.add_argument("colour", help="Any colour")
parser.add_argument("--coats", type=int, default=2)
print(json.dumps(vars(parser.parse_args())))
"""


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """A directory with one skill, whose author wrote scripts and no contract."""
    scripts = {"scripts/cut.py": SCRIPT, "scripts/paint.py": PLAIN}
    write_skill_files(tmp_path / "skills", "carpentry", "Works with wood", scripts)
    return tmp_path / "skills"


def served(runtime: SkillRuntime) -> dict[str, SkillDescriptor]:
    """Return what a server would publish, by name."""
    return {
        each.name: each.descriptor
        for each in serve_catalog(runtime, base_url="http://localhost:8400")
    }


def test_a_derived_tool_has_a_descriptor_with_its_schema(skills: Path) -> None:
    """Both are published as what they are; a reader of the descriptor has the same
    contract as the runtime.
    """
    runtime = SkillRuntime(discover(skills, trusted=True))

    found = served(runtime)

    assert set(found) == {"carpentry/cut", "carpentry/paint"}
    paint = found["carpentry/paint"]
    assert (paint.id, paint.description) == ("carpentry.paint", "Paint a plank")
    assert paint.capability_type is not CapabilityType.KNOWLEDGE
    assert [(each.name, each.required) for each in paint.inputs] == [
        ("colour", True),
        ("coats", False),
    ]
    assert accepted(paint.to_contract(), {"colour": "red", "coats": "3"}) == {
        "colour": "red",
        "coats": 3,
    }
    for name, descriptor in found.items():
        read = SkillDescriptor.from_dict(descriptor.to_dict()).to_contract(name)
        assert accepted(read, {"colour": "red", "coats": "3"}) == accepted(
            runtime.contract(name), {"colour": "red", "coats": "3"}
        )
        assert accepted(read, {"how": "saw", "length": 3}) == accepted(
            runtime.contract(name), {"how": "saw", "length": 3}
        )


def accepted(contract: Contract, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments as *contract* takes them; None where it refuses them."""
    try:
        return dict(contract.accept(arguments).arguments)
    except SkillInputError:
        return None


def test_without_deriving_there_is_the_skill_and_no_tool(skills: Path) -> None:
    """With ``derive_contracts=False`` the skill is published as knowledge, and its
    scripts are not callable.
    """
    runtime = SkillRuntime(discover(skills, trusted=True, derive_contracts=False))

    found = served(runtime)

    assert list(found) == ["carpentry"]
    assert found["carpentry"].capability_type is CapabilityType.KNOWLEDGE
    assert runtime.callable_names() == []
    with pytest.raises(SkillNotFoundError):
        serve_catalog(
            runtime, base_url="http://localhost:8400", names=["carpentry/cut"]
        )


def test_a_derived_tool_of_an_untrusted_skill_is_refused_without_a_host_that_approves(
    skills: Path,
) -> None:
    """A contract derived from a script does not make the script trusted."""
    runtime = SkillRuntime(discover(skills))

    response = runtime.call_sync("carpentry/paint", {"colour": "red"})

    assert response.status == "failed"
    assert response.errors is not None
    assert response.errors[0].code is ErrorCode.ACCESS_DENIED


@pytest.mark.processes
@pytest.mark.parametrize("allowed", [True, False])
def test_the_host_is_asked_about_a_derived_tool_with_its_arguments(
    skills: Path, tmp_path: Path, allowed: bool, request: pytest.FixtureRequest
) -> None:
    """The hook sees the script and its repaired arguments; its answer decides."""
    if allowed:
        request.getfixturevalue("some_sandbox")
    asked: list[Approval] = []

    def approve(request: Approval) -> bool:
        asked.append(request)
        return allowed

    runtime = SkillRuntime(
        discover(skills), approve=approve, workspace=made(tmp_path / "work")
    )

    response = runtime.call_sync("carpentry/paint", {"colour": "red", "coats": "3"})

    assert [(each.name, each.script, dict(each.arguments)) for each in asked] == [
        ("carpentry/paint", "scripts/paint.py", {"colour": "red", "coats": 3})
    ]
    assert response.status == ("success" if allowed else "failed")
    assert response.data == ({"colour": "red", "coats": 3} if allowed else None)


@pytest.mark.processes
def test_a_derived_tool_of_a_trusted_skill_runs_unasked(
    skills: Path, tmp_path: Path
) -> None:
    """As every script of a trusted skill does."""
    runtime = SkillRuntime(
        discover(skills, trusted=True), workspace=made(tmp_path / "work")
    )

    response = runtime.call_sync("carpentry/cut", {"how": "saw", "length": "300"})

    assert response.status == "success", response.to_dict()
    assert response.data == {"how": "saw", "length": 300, "wood": "oak"}
