"""``skillruntime validate``: every problem of skills and their contracts at once, by the strict format."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli.contract_findings import CHECKED, contract_findings
from skillruntime.cli.output import EXIT_FAILED, console, draw_diagnostics, fail, json_option, print_result, writable
from skillruntime.cli.progress import with_progress
from skillruntime.cli.terminal_text import without_controls
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError, SkillRuntimeError

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog import Skill, Validation

__all__ = ["command"]


@click.command("validate")
@click.argument("paths", nargs=-1, metavar="PATH...", required=True)
@click.option("--fix", "fixing", is_flag=True, help="Fix mechanical problems first, by rewriting the SKILL.md.")
@click.option("--github", "report", flag_value="github", help="Print annotations for GitHub's workflows.")
@click.option("--sarif", "report", flag_value="sarif", help="Print a SARIF 2.1.0 log for code scanners.")
@json_option
def command(paths: tuple[str, ...], fixing: bool, report: str | None, as_json: bool) -> None:
    """Check the skills at each PATH: a skill, its SKILL.md, or a directory of skills.

    Errors are violations of the format and broken contracts; migrations are tried on arguments of the old versions.
    Exits with 1 if there is an error; warnings and advice do not fail.
    """
    # click has no exclusive options; without this the last form would win silently.
    if report and as_json:
        raise click.UsageError("use only one of --json, --github and --sarif")
    validations = _validations(paths)
    fixed: list[dict[str, Any]] = []
    if fixing:
        fixed = _fixed(validations, as_json=as_json)
        # Read again: what is reported is the state after the fixes.
        validations = _validations(paths) if fixed else validations
    findings = [
        finding
        for validation in with_progress(validations, "checking contracts")
        for finding in (*validation.diagnostics, *_more(validation))
    ]
    # What "contract-invalid" says first, the check of the document says with everything else that is wrong in it.
    checked = {finding.path for finding in findings if finding.rule in CHECKED and finding.severity is Severity.ERROR}
    findings = [each for each in findings if each.rule != "contract-invalid" or each.path not in checked]
    findings = list(dict.fromkeys(findings))
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    # A directory without skills is an error of its own, and not a skill.
    number = sum(not _is_missing(validation) for validation in validations)

    def draw(out: Console) -> None:
        draw_diagnostics(out, map(_without_controls, findings))
        others = len(findings) - errors
        counts = ((number, "skill"), (errors, "error"), (others, "other finding"))
        counted = ", ".join(f"{amount:,} {noun}{'' if amount == 1 else 's'}" for amount, noun in counts)
        out.print(f"[{'red' if errors else 'green'}]{counted if number else 'No skills found'}[/]")

    if report:
        click.echo(writable(_report(report, findings)))
    else:
        document = {
            "valid": not errors,
            "skills": number,
            "diagnostics": [finding.to_dict() for finding in findings],
            **({"fixed": fixed} if fixing else {}),
        }
        print_result(document, draw, as_json=as_json)
    sys.exit(EXIT_FAILED if errors else 0)


def _validations(paths: Sequence[str]) -> list[Validation]:
    from skillruntime.catalog import validate
    from skillruntime.tokens import count

    def progress(files: list[str]) -> Iterator[str]:
        yield from with_progress(files, "reading skills")

    found = [
        each for path in paths for each in validate(path, count=lambda text: count(text).tokens, progress=progress)
    ]
    # "validate skills skills/pdf" names a skill twice.
    return list({validation.path: validation for validation in found}.values())


def _is_missing(validation: Validation) -> bool:
    return any(each.rule == "skill-missing" for each in validation.diagnostics)


def _fixed(validations: Sequence[Validation], *, as_json: bool) -> list[dict[str, Any]]:
    """Fix what can be fixed, report it on stderr, and return it."""
    from skillruntime.catalog import fix_skill

    fixed = []
    for validation in validations:
        # Only files with findings are touched: --fix must not rewrite what is right.
        if not validation.diagnostics or not os.path.isfile(validation.path):  # noqa: PTH113
            continue
        try:
            done = fix_skill(validation.path)
        except OSError as error:
            reason = f"{validation.path} cannot be fixed: {error.strerror or error}"
            fail(InvalidSkillError(reason), as_json=as_json)
        if done:
            fixed.append({"path": validation.path, "done": list(done)})
            if not as_json:
                line = without_controls(f"fixed {validation.path}: {'; '.join(done)}")
                console(stderr=True).print(line, style="green", markup=False)
    return fixed


def _more(validation: Validation) -> list[Diagnostic]:
    """Return the findings that need an activated skill: versions that disagree, and migrations that fail when tried."""
    from skillruntime.catalog import SkillMetadata, read_skill

    name = os.path.basename(os.path.dirname(validation.path))  # noqa: PTH119, PTH120
    if not os.path.isfile(validation.path):  # noqa: PTH113
        return []
    try:
        # Not derived: a contract that is read from a script has no author to tell.
        skill = read_skill(SkillMetadata(name, "", validation.path), derive=False)
    except SkillRuntimeError as error:
        path = validation.path
        return [Diagnostic("not-activated", Severity.ERROR, path, item.message) for item in error.to_errors()]
    disagreements = [each for each in skill.diagnostics if each.rule == "version-disagreement"]
    return disagreements + contract_findings(skill) + _migrations(skill)


def _migrations(skill: Skill) -> list[Diagnostic]:
    """Return the findings from trying the skill's migrations on arguments of the old versions."""
    from skillruntime.compatibility import migration_diagnostics  # only where there are migrations to try

    found = []
    for name, contract in skill.contracts.items():
        if contract.migrations:
            tool = name.partition("/")[2]
            path = skill.directory / (f"contracts/{tool}.json" if tool else "contract.json")
            found += migration_diagnostics(contract, str(path))
    return found


def _report(form: str, findings: Sequence[Diagnostic]) -> str:
    """Return *findings* as a GitHub or SARIF report, their paths relative to the current directory."""
    from skillruntime._version import __version__
    from skillruntime.catalog import to_github, to_sarif

    here = os.getcwd()  # noqa: PTH109
    return to_github(findings, here) if form == "github" else to_sarif(findings, here, version=__version__)


def _without_controls(finding: Diagnostic) -> Diagnostic:
    from dataclasses import replace

    path, message, hint = map(without_controls, (finding.path, finding.message, finding.hint or ""))
    return replace(finding, path=path, message=message, hint=hint)
