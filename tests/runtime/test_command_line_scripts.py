"""A script of the ordinary kind, with a contract that was read out of it, called like
any other skill.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import discover
from skillruntime.derive.draft import draft_contracts
from skillruntime.runtime import Approval, SkillRuntime
from tests.catalog.parts import derive_scripts
from tests.skill_files import made, write_skill_files

SCRIPT = """
import argparse, json, sys
from pathlib import Path

def even(text):
    if int(text) % 2:
        raise argparse.ArgumentTypeError("it is odd")
    return int(text)

parser = argparse.ArgumentParser(description="Count")
parser.add_argument("path", type=Path)
parser.add_argument("--times", type=even, default=2)
parser.add_argument("--mode", choices=["data", "text", "fail"], default="data")
args = parser.parse_args()
if args.mode == "fail":
    sys.exit("it is broken")
found = {"name": args.path.name, "absolute": args.path.is_absolute(), "times": args.times}
print(json.dumps(found) if args.mode == "data" else "plain text")
"""


@pytest.fixture
def runtime(tmp_path: Path) -> SkillRuntime:
    """A runtime with one skill whose contract was drafted from its script."""
    directory = write_skill_files(
        tmp_path / "skills", "counter", "Counts", {"scripts/count.py": SCRIPT}
    )
    skill = discover(tmp_path / "skills").activate("counter")
    for path, document in draft_contracts(
        list(derive_scripts(skill.resources(), skill.read_resource_bytes).values()), {}
    ).items():
        (directory / path).write_text(json.dumps(document))
    return SkillRuntime(
        discover(tmp_path / "skills", trusted=True), workspace=made(tmp_path / "work")
    )


CALLS: list[tuple[dict[str, Any], str, Any]] = [
    (
        {"path": "-a.txt", "times": "4"},
        "success",
        {"name": "-a.txt", "absolute": True, "times": 4},
    ),
    ({"path": "a; rm -rf /", "mode": "text"}, "success", {"stdout": "plain text"}),
    ({"path": "a", "times": 3}, "failed", ("INVALID_INPUT", "/times")),
    ({"path": "a", "mode": "other"}, "failed", ("INVALID_INPUT", "/mode")),
    ({"times": 2}, "failed", ("MISSING_REQUIRED_PARAM", "/path")),
    ({"path": "../../outside"}, "failed", ("INVALID_INPUT", "/path")),
    ({"path": "a", "mode": "fail"}, "failed", ("TOOL_EXECUTION_FAILED", None)),
]


@pytest.mark.processes
@pytest.mark.parametrize(("arguments", "status", "expected"), CALLS)
def test_an_ordinary_script_is_called_like_any_other_skill(
    runtime: SkillRuntime, arguments: dict[str, Any], status: str, expected: Any
) -> None:
    """Words in, text or JSON out; what its own parser refuses is an error of the
    parameter.
    """
    response = runtime.call_sync("counter", arguments)

    assert response.status == status, response.to_dict()
    if status == "success":
        assert response.data == expected
    else:
        assert response.errors is not None
        error = response.errors[0]
        assert (error.code.value, (error.details or {}).get("path")) == expected


def test_an_approval_says_how_far_the_contract_is_reliable(tmp_path: Path) -> None:
    """Of a contract that was read from the script, as it was read; a written contract
    has none.
    """
    asked: list[Approval] = []
    scripts = {
        "derived": {"scripts/count.py": SCRIPT},
        "prose": {"scripts/run.sh": "echo $1\n"},
    }
    for name, files in scripts.items():
        write_skill_files(tmp_path / "skills", name, "Counts", files)
    contract = json.dumps({"run": {"script": "scripts/count.py"}})
    write_skill_files(
        tmp_path / "skills",
        "written",
        "Counts",
        {"contract.json": contract, "scripts/count.py": SCRIPT},
    )
    runtime = SkillRuntime(
        discover(tmp_path / "skills"),
        approve=lambda request: asked.append(request) is not None,
    )

    for name, arguments in (
        ("derived/count", {"path": "a"}),
        ("prose/run", {"argument_1": "a"}),
        ("written", {}),
    ):
        assert runtime.call_sync(name, arguments).errors[0].code == "ACCESS_DENIED"

    assert [request.confidence for request in asked] == ["high", "low", None]


def test_an_approval_names_files_as_the_caller_does(tmp_path: Path) -> None:
    """Not the place of the copy that an untrusted script gets: a person, or a rule, has
    to know the file.
    """
    (tmp_path / "people.csv").write_text("id,name\n")
    asked: list[Approval] = []
    contract = {
        "input": {"properties": {"table": {"type": "string", "format": "path"}}},
        "run": {"script": "scripts/count.py"},
    }
    files = {"contract.json": json.dumps(contract), "scripts/count.py": SCRIPT}
    write_skill_files(tmp_path / "skills", "counter", "Counts", files)
    catalog = discover(tmp_path / "skills")
    runtime = SkillRuntime(
        catalog,
        approve=lambda request: asked.append(request) is not None,
        workspace=tmp_path,
    )

    runtime.call_sync("counter", {"table": "people.csv"})

    assert [request.arguments for request in asked] == [{"table": "people.csv"}]
