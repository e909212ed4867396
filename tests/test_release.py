"""What a release consists of: the distributions, the schema for editors, the action and
the hooks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from click import Context
from packaging.requirements import Requirement

from skillruntime import Contract, SkillResponse, SkillRuntime, SkillToolkit
from skillruntime.cli import group
from skillruntime.contract import CONTRACT_SCHEMA
from tests import needs

ROOT = Path(__file__).parents[1]
UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))


@pytest.mark.slow
@needs.with_program("uv")
def test_wheel_and_sdist_install_in_empty_environments(tmp_path: Path) -> None:
    """Both are built and pass `twine check`, and a call works where either is
    installed.
    """
    assert UV is not None
    built = subprocess.run(
        [UV, "build", "-q", "-o", tmp_path / "dist", ROOT],
        capture_output=True,
        text=True,
    )
    if built.returncode != 0 and "network" in built.stderr.lower():
        pytest.skip("needs an index of packages: run it with the network")
    assert built.returncode == 0, built.stderr
    distributions = [
        path for path in (tmp_path / "dist").iterdir() if path.suffix in (".whl", ".gz")
    ]
    assert sorted(path.suffix for path in distributions) == [".gz", ".whl"]
    subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *distributions], check=True
    )

    for distribution in distributions:
        python = tmp_path / distribution.suffix / "bin" / "python"
        subprocess.run(
            [UV, "venv", "-q", "--python", sys.executable, python.parents[1]],
            check=True,
        )
        subprocess.run(
            [UV, "pip", "install", "-q", "--python", python, distribution], check=True
        )
        code = (
            "from skillruntime import repair; print(repair({'n': '5'}, {'properties': "
            "{'n': {'type': 'integer'}}}))"
        )
        ran = subprocess.run(
            [python, "-I", "-c", code], capture_output=True, text=True, check=True
        )
        assert "'n': 5" in ran.stdout


def test_the_schema_for_editors_is_that_of_the_library() -> None:
    """`docs/contract.schema.json`, at one path of the repository and of the site."""
    assert (
        json.loads((ROOT / "docs" / "contract.schema.json").read_text("utf-8"))
        == CONTRACT_SCHEMA
    )


def test_the_action_and_the_hooks_call_commands_that_exist() -> None:
    """With options that the commands have."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    called = [[*hook["entry"].split(), *hook["args"]] for hook in hooks]
    for step in action["runs"]["steps"]:
        lines = step.get("run", "").splitlines()
        called += [
            line.partition(">")[0].split()
            for line in lines
            if line.startswith("skillruntime ")
        ]

    assert {words[1] for words in called} == {"validate", "diff", "lock", "test"}
    for _, name, *words in called:
        options = {
            option
            for parameter in group.get_command(Context(group), name).params
            for option in parameter.opts
        }
        assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.slow
@pytest.mark.usefixtures("some_sandbox")
def test_the_action_checks_skills_and_writes_sarif(tmp_path: Path) -> None:
    """Its shell step, as GitHub runs it: good skills pass, and a contract whose version
    is too low does not.
    """
    step = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"][-1]
    contract = tmp_path / "skills" / "word-count" / "contract.json"
    inputs = {
        "SKILLS": "skills",
        "BASE": "HEAD",
        "LOCKFILE": "skills-lock.json",
        "TEST": "true",
    }
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }

    def bash(script: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", "-e", "-c", script]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env={**environment, **more},
            capture_output=True,
            text=True,
        )

    assert step["env"].keys() == inputs.keys()
    commit = "git add skills && git -c user.name=a -c user.email=a@b commit -qm 1"
    begun = bash(
        "git init -q . && skillruntime new word-count --in skills && skillruntime "
        f"lock skills && {commit}"
    )
    assert begun.returncode == 0, begun.stderr
    passed = bash(step["run"], **inputs)
    shallow = bash(step["run"], **{**inputs, "BASE": "origin/main"})
    contract.write_text(
        contract.read_text("utf-8").replace('"min_length"', '"shortest"'), "utf-8"
    )
    failed = bash(step["run"], **inputs)

    assert (passed.returncode, shallow.returncode, failed.returncode) == (0, 1, 1), (
        passed.stderr
    )
    assert "fetch-depth: 0" in shallow.stdout
    assert "version too low" in failed.stdout and "lock-changed" in failed.stdout
    assert "1 skill: 0 passed, 1 failed" in failed.stdout
    assert "$schema" not in failed.stdout + passed.stdout  # the log is for people
    sarif = Path(
        (tmp_path / "output").read_text("utf-8").splitlines()[0].removeprefix("sarif=")
    )
    found = {
        each.stem: json.loads(each.read_text("utf-8"))["runs"][0]["results"]
        for each in sarif.iterdir()
    }
    assert [name for name, results in sorted(found.items()) if results] == [
        "diff",
        "lock",
        "test",
    ]


def test_a_repr_says_what_a_thing_is() -> None:
    """Short, and without an address in memory."""
    document = {
        "name": "sum",
        "version": "1.0.0",
        "input": {"properties": {"a": {}, "b": {}}},
    }
    runtime = SkillRuntime()

    assert repr(Contract.from_dict(document)) == "<Contract 'sum' 1.0.0: a, b>"
    assert repr(runtime) == "<SkillRuntime of 0 skills>"
    assert (
        repr(SkillToolkit(runtime))
        == "<SkillToolkit style=None of <SkillRuntime of 0 skills>>"
    )
    assert repr(SkillResponse("success", data=[1])) == "<SkillResponse success: [1]>"
    assert repr(runtime.call_sync("x", {})) == (
        "<SkillResponse failed: SKILL_NOT_FOUND There is no skill named 'x'>"
    )


_BY_BRANCH = {"pypa/gh-action-pypi-publish"}
"""Actions without a digest that was read from a copy of their repository."""


def test_each_action_of_the_workflows_is_pinned_by_its_digest() -> None:
    """A tag can be moved to another commit; the comment says which version it is."""
    workflows = Path(__file__).parents[1] / ".github" / "workflows"
    unpinned = set()
    for path in workflows.glob("*.yml"):
        for action, reference in re.findall(
            r"uses: ([\w./-]+)@(.*)", path.read_text(encoding="utf-8")
        ):
            if not re.fullmatch(r"[0-9a-f]{40}  # v\d+\.\d+\.\d+", reference):
                unpinned.add(action)

    assert unpinned == _BY_BRANCH


def test_every_upper_bound_has_its_reason() -> None:
    """The next major version has the reason that stands at the top of pyproject.toml;
    any other bound has its own, on its line.
    """
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    document = tomllib.loads(text)
    requirements = [*document["build-system"]["requires"]]
    requirements += document["project"]["dependencies"]
    for extra in document["project"]["optional-dependencies"].values():
        requirements += extra
    unexplained = []
    for written in requirements:
        for bound in Requirement(written).specifier:
            is_major = bound.operator == "<" and bound.version.isdigit()
            if bound.operator in (">=", ">") or is_major:
                continue
            lines = [line for line in text.splitlines() if f'"{written}"' in line]
            if not all(re.search(r'",  # \w', line) for line in lines):
                unexplained.append(written)

    assert '# Upper bounds. "<5" is the next major version' in text
    assert len(requirements) > 60
    assert unexplained == []
