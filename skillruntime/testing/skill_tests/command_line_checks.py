"""Compare a contract that was derived from a script's command line with the script's
own parser, which must refuse the same calls. For this the script is called under an
open contract, which accepts everything, with ``--help`` and with the command lines of
calls that the derived contract refuses.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillruntime.catalog.discovery.discovery import discover
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.testing.skill_tests.calling import Caller
from skillruntime.testing.skill_tests.checks import first_failure, usage_message
from skillruntime.testing.skill_tests.findings import Findings
from skillruntime.testing.skill_tests.hindrances import hindrance_of
from skillruntime.testing.skill_tests.inputs.calls import refused_calls
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.subject import Subject

__all__ = ["check_command_line"]

_MOST_REFUSED = 6
_HELP = {"name": "help", "flag": "--help", "takes": "nothing"}
_PARSERS = ("argparse", "click")
"""The parsers that answer ``--help`` and declare their arguments."""

_IGNORED = shutil.ignore_patterns(".git", "node_modules", ".venv", "__pycache__")


async def check_command_line(base: dict[str, Any], findings: Findings) -> None:
    """Check the derived contract of a callable; *base* is a valid call of it."""
    subject = findings.caller.subject
    declared = subject.contract.run.get("command_line", {})
    is_readable = declared.get("parser", "argparse") in _PARSERS
    if not subject.contract.is_derived or not is_readable or declared.get("chooser"):
        return
    with _with_open_contract(subject, declared) as opened:
        caller = Caller.of(opened)
        await _check_help(caller, findings)
        for case in _expressible(subject, base)[:_MOST_REFUSED]:
            if subject.is_over:
                return
            run = await caller.call_with(case, findings.caller.files_of(case))
            if run.has_ended_well and not usage_message(run):
                text = (
                    f"the derived contract refuses {case.arguments}, and the script "
                    "takes it: write a contract.json"
                )
                findings.add("usage", text, case)


async def _check_help(caller: Caller, findings: Findings) -> None:
    """Check that ``--help``, the one option that every such script has, does not crash:
    argparse formats its texts only for it.
    """
    run = await caller.call_with(Case({"help": True}, "help"), {})
    failures = dict(first_failure(run))
    if "traceback" in failures and hindrance_of(run) is None:
        findings.add("traceback", f"--help: {failures['traceback']}", run.case)


def _expressible(subject: Subject, base: dict[str, Any]) -> list[Case]:
    """Return the refused calls that a command line can express: with a missing
    parameter, or with another text or number.
    """
    found = []
    for case in refused_calls(subject.contract, base):
        value = case.arguments.get(case.parameter or "")
        is_word = isinstance(value, str | int | float) and not isinstance(value, bool)
        if case.kind == "missing" or (case.kind == "beyond" and is_word):
            found.append(case)
    return found


@contextmanager
def _with_open_contract(
    subject: Subject, declared: dict[str, Any]
) -> Iterator[Subject]:
    """Yield *subject* in a copy of its skill whose contract accepts any arguments."""
    line = {**declared, "parameters": [*declared.get("parameters", ()), _HELP]}
    run = {**subject.contract.run, "command_line": line}
    document = {"version": "0.0.0", "input": {"type": "object"}, "run": run}
    with tempfile.TemporaryDirectory(prefix="skillruntime-test-") as temporary:
        copy = Path(temporary) / subject.skill.directory.name
        shutil.copytree(subject.skill.directory, copy, symlinks=True, ignore=_IGNORED)
        contracts = copy / "contracts"
        contracts.mkdir(exist_ok=True)
        tool = subject.name.rpartition("/")[2]
        (contracts / f"{tool}.json").write_text(json.dumps(document))
        runtime = SkillRuntime(
            discover(temporary, trusted=subject.tests.trust),
            approve=lambda request: True,
            sandbox=subject.tests.sandbox,
            tell_directories=False,
        )
        # The copy has the plain name, also if the skill's is qualified in its catalog
        # because another skill has the same one.
        [plain_name] = runtime.catalog
        skill = runtime.catalog.activate(plain_name)
        name = f"{plain_name}/{tool}"
        yield replace(
            subject,
            runtime=runtime,
            skill=skill,
            contract=skill.contracts[name],
            name=name,
        )
