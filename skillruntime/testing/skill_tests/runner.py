"""Test the skills of directories, one callable after the other.

The scripts of an untrusted skill run in a sandbox that passed its self-test, or not at
all; those of a trusted skill run from a copy of it. Remote skills and functions of a
host are never called.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from skillruntime.catalog.discovery.discovery import discover
from skillruntime.diagnostic import Severity
from skillruntime.errors import SkillRuntimeError
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.sandbox.levels import open_sandbox
from skillruntime.runtime.scripts.process import PlainProcess
from skillruntime.runtime.scripts.script_runner import ScriptRunner
from skillruntime.testing.skill_tests.callable_test import CallableTest
from skillruntime.testing.skill_tests.calling import Caller
from skillruntime.testing.skill_tests.expected.case_files import add_cases, read_cases
from skillruntime.testing.skill_tests.expected.own_cases import recorded_cases
from skillruntime.testing.skill_tests.findings import Findings
from skillruntime.testing.skill_tests.inputs.made_files import read_fixtures
from skillruntime.testing.skill_tests.inputs.sample_files import read_samples
from skillruntime.testing.skill_tests.options import SkillTests
from skillruntime.testing.skill_tests.results import (
    CallableResult,
    Failure,
    SkillResult,
    SkillTestReport,
)
from skillruntime.testing.skill_tests.search.reached_lines import TracingSandbox
from skillruntime.testing.skill_tests.subject import Subject

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill
    from skillruntime.contract.contract import Contract
    from skillruntime.runtime.runners import Runner
    from skillruntime.runtime.sandbox.protocol import Sandbox

__all__ = ["run_skill_tests"]

_LONGEST_REFERENCE = 100_000
"""The most bytes of a reference that is searched for calls."""

DEFAULTS = SkillTests()
Progress = Callable[[str, int, int], None]


def run_skill_tests(
    *directories: str | os.PathLike[str],
    tests: SkillTests = DEFAULTS,
    progress: Progress | None = None,
) -> SkillTestReport:
    """Test every skill in *directories* from its contract, and return the report.

    *progress* is called before each skill, with its name, how many were tested, and how
    many the directory has.

    Raises:
        AccessDeniedError: skills are not trusted, and no sandbox passed its self-test.
        SkillNotFoundError: ``tests.only`` names a skill that no directory has.
    """
    _require_only(directories, tests)
    found: list[SkillResult] = []
    surroundings: dict[str, Any] = {
        "python": platform.python_version(),
        "platform": platform.system().lower(),
    }
    sandbox: Sandbox = PlainProcess()
    if not tests.trust:
        sandbox = anyio.run(open_sandbox, tests.sandbox)
    surroundings["sandbox"] = sandbox.level
    tracing = TracingSandbox(sandbox)
    for directory in directories:
        found += _tested_skills(os.fspath(directory), tests, tracing, progress)
    surroundings["missing"] = _missing(found)
    return SkillTestReport(surroundings, found)


def _require_only(
    directories: Sequence[str | os.PathLike[str]], tests: SkillTests
) -> None:
    """Raise an error if no directory has a skill that ``tests.only`` names: a
    misspelt name must not look like a test that passed.
    """
    if not tests.only:
        return
    catalogs = [discover(directory) for directory in directories]
    for name in tests.only:
        skill = name.partition("/")[0]
        if not any(skill in catalog for catalog in catalogs):
            catalogs[0].activate(skill)  # raises an error that suggests close names


def _tested_skills(
    directory: str, tests: SkillTests, sandbox: Sandbox, progress: Progress | None
) -> Iterator[SkillResult]:
    """Test the skills in *directory* one by one, and yield the result of each."""
    with _tested_directory(directory, tests) as tested:
        catalog = discover(tested, trusted=tests.trust)
        runtime = SkillRuntime(
            catalog,
            runners=[partial(_script_runner, sandbox=sandbox)],
            approve=lambda request: True,
            tell_directories=False,
        )
        names = [name for name in catalog if tests.has_skill(name)]
        for number, name in enumerate(names):
            if progress is not None:
                progress(name, number, len(names))
            started = time.monotonic()
            path = catalog[name].path.replace(tested, directory, 1)
            result = SkillResult(name, path)
            _test_skill(runtime, result, directory, tests)
            result.seconds = time.monotonic() - started
            yield result


def _script_runner(skill: Skill, contract: Contract, sandbox: Sandbox) -> Runner | None:
    """Return the runner of a script in *sandbox*, or None if *contract* has none."""
    if not isinstance(contract.run.get("script"), str):
        return None
    return ScriptRunner(skill, contract, sandbox=sandbox, plain=sandbox)


@contextmanager
def _tested_directory(directory: str, tests: SkillTests) -> Iterator[str]:
    """Yield the directory to run skills from: a copy of *directory* if they are
    trusted, because trusted scripts can change the files around them.
    """
    if not tests.trust:
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="skillruntime-test-") as temporary:
        copy = os.path.join(temporary, Path(directory).resolve().name)  # noqa: PTH118
        # It copies everything else before it raises an error for an entry that cannot
        # be copied, such as a FIFO.
        with suppress(shutil.Error):
            shutil.copytree(
                directory, copy, symlinks=True, ignore=shutil.ignore_patterns(".git")
            )
        yield copy


def _missing(results: Sequence[SkillResult]) -> list[str]:
    """Return each thing that the machine lacks once."""
    reasons = []
    for result in results:
        for each in result.callables:
            if each.status == "not testable":
                reasons += [hindrance.reason for hindrance in each.hindrances]
    return list(dict.fromkeys(reasons))


def _test_skill(
    runtime: SkillRuntime, result: SkillResult, directory: str, tests: SkillTests
) -> None:
    """Test the callables of one skill, and add their results to *result*."""
    try:
        skill = runtime.catalog.activate(result.name)
        contracts = skill.contracts
        cases = read_cases(skill.directory)
    except SkillRuntimeError as error:
        _add_broken(result, str(error))
        return
    for diagnostic in skill.diagnostics:
        if diagnostic.severity is Severity.ERROR and "contract" in diagnostic.rule:
            _add_broken(result, diagnostic.message)
    for name in tests.only:
        if name.startswith(f"{result.name}/") and name not in contracts:
            _add_broken(result, f"the skill has no tool {name!r}")
    names = [name for name in contracts if tests.has_callable(result.name, name)]
    fixtures = read_fixtures(skill.directory)
    samples = read_samples(skill.directory)
    instructions = _instructions_of(skill)
    ends = time.monotonic() + tests.seconds
    for number, name in enumerate(names):
        now = time.monotonic()
        subject = Subject(
            runtime,
            skill,
            contracts[name],
            name,
            tests,
            ends=now + (ends - now) / (len(names) - number),
            fixtures=fixtures,
            samples=samples,
            instructions=instructions,
        )
        findings = Findings(Caller.of(subject), directory, CallableResult(name))
        own = [case for case in cases if case.is_for(name, len(contracts))]
        test = CallableTest(subject, findings, own)
        anyio.run(test.run)
        result.callables.append(findings.result)
        if tests.record and findings.result.status == "passed":
            call = name if len(contracts) > 1 else None
            new, files = anyio.run(recorded_cases, test.runs, findings.caller, call)
            result.recorded += add_cases(Path(result.path).parent, new, files)


def _instructions_of(skill: Skill) -> str:
    """Return the text of SKILL.md, of the documents beside it, and of its
    ``references/``.
    """
    texts = [skill.body]
    for resource in skill.resources():
        path = resource.path
        is_document = "/" not in path or path.startswith("references/")
        if is_document and path.endswith(".md"):
            if resource.bytes <= _LONGEST_REFERENCE:
                with suppress(SkillRuntimeError):  # not text
                    texts.append(skill.read_resource(path))
    return "\n\n".join(texts)


def _add_broken(result: SkillResult, message: str) -> None:
    """Add to *result* that a contract or the cases cannot be read."""
    broken = CallableResult(result.name)
    broken.failures.append(Failure("contract", message, "contract", None))
    result.callables.append(broken)
