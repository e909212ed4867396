"""``skillruntime validate``: report every problem of skills and their contracts at
once, by the rules of the strict format.
"""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillruntime.catalog.contracts.tried_commands import (
    TriedCommand,
    refused_command,
    tried_commands,
)
from skillruntime.cli.inputs.contract_source import parse_document
from skillruntime.cli.terminal import output
from skillruntime.cli.terminal.output import (
    EXIT_FAILED,
    draw_diagnostics,
    json_option,
    print_result,
    to_github,
    with_progress,
)
from skillruntime.cli.terminal.sarif import sarif_option, to_sarif, write_sarif
from skillruntime.cli.terminal.text import without_controls
from skillruntime.contract import check_document, lint_contract
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError, SkillRuntimeError

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog import Skill
    from skillruntime.catalog.checks.validation import Validation
    from skillruntime.contract import Contract

__all__ = ["command", "contract_findings"]

# The rules of `check_document`: an error of one of them explains why a contract cannot
# be used.
_CHECKED = frozenset(
    {
        "contract-value",
        "contract-misplaced",
        "contract-unknown",
        "contract-schema",
        "contract-impossible",
        "contract-migration",
    }
)
_SUFFIXES = (".json", ".yaml", ".yml")


@click.command("validate")
@click.argument("paths", nargs=-1, metavar="PATH...", required=True)
@click.option(
    "--fix",
    "fixing",
    is_flag=True,
    help="Fix mechanical problems first, by rewriting the SKILL.md.",
)
@click.option(
    "--github", is_flag=True, help="Print annotations for GitHub's workflows."
)
@sarif_option
@json_option
def command(
    *,
    paths: tuple[str, ...],
    fixing: bool,
    github: bool,
    as_sarif: bool,
    sarif_file: Path | None,
    as_json: bool,
) -> None:
    """Check the skills at each PATH: a skill, its SKILL.md, or a directory of skills.

    Errors are violations of the format and broken contracts; migrations are tried on
    arguments of the old versions. Exits with 1 if there is an error; warnings and
    advice do not fail.
    """
    # click has no exclusive options; without this the last form would win silently.
    if github + as_sarif + as_json > 1:
        raise click.UsageError("use only one of --json, --github and --sarif")
    validations = _validations(paths)
    fixed = []
    if fixing:
        fixed = _fixed(validations, as_json=as_json)
    if fixed:  # read again, so that the report is of the state after the fixes
        validations = _validations(paths)
    findings: list[Diagnostic] = []
    tried: list[TriedCommand] = []
    for validation in with_progress(validations, "checking contracts"):
        findings += validation.diagnostics
        skill, faults = _activated(validation)
        findings += faults
        if skill is not None:
            findings += _more(skill)
            tried += _tried(skill)
    findings += [refused_command(each) for each in tried if each.refusal]
    findings = list(dict.fromkeys(_without_repetition(findings)))
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    # A directory without skills is an error of its own, and not a skill.
    number = len(validations) - sum(
        finding.rule == "skill-missing" for finding in findings
    )

    def draw(out: Console) -> None:
        draw_diagnostics(out, findings)
        summary = "No skills found"
        if number:
            counts = {
                "skill": number,
                "error": errors,
                "other finding": len(findings) - errors,
            }
            summary = ", ".join(
                f"{amount:,} {noun}{'s' * (amount != 1)}"
                for noun, amount in counts.items()
            )
        colour = "red" if errors else "green"
        out.print(f"[{colour}]{summary}[/]")
        if tried:
            taken = sum(not each.refusal for each in tried)
            out.print(
                f"[dim]{taken:,} of {len(tried):,} commands that the skills show fit "
                "the contracts derived from their scripts[/]"
            )

    write_sarif(findings, sarif_file)
    if github:
        click.echo(to_github(findings))
    elif as_sarif:
        print_result(to_sarif(findings), draw, as_json=True)
    else:
        document = {
            "valid": not errors,
            "skills": number,
            "diagnostics": [finding.to_dict() for finding in findings],
        }
        if tried:
            document["tried"] = [each.to_dict() for each in tried]
        if fixing:
            document["fixed"] = fixed
        print_result(document, draw, as_json=as_json)
    if errors:
        sys.exit(EXIT_FAILED)


def _without_repetition(findings: list[Diagnostic]) -> list[Diagnostic]:
    """Return *findings* without the ``contract-invalid`` of files for which
    `check_document` has found an error.

    The findings of `check_document` report the same fault, and all others in the file.
    """
    checked = set()
    for finding in findings:
        if finding.rule in _CHECKED and finding.severity is Severity.ERROR:
            checked.add(finding.path)
    return [
        finding
        for finding in findings
        if finding.rule != "contract-invalid" or finding.path not in checked
    ]


def _validations(paths: Sequence[str]) -> list[Validation]:
    from skillruntime.catalog import validate
    from skillruntime.tokens import count

    validations: list[Validation] = []
    for path in paths:
        if not path:
            raise click.UsageError(
                "'' is not a path; give a skill, its SKILL.md, or a directory of skills."
            )
        validations += validate(
            path,
            count=lambda text: count(text).tokens,
            progress=lambda files: with_progress(files, "reading skills"),
        )
    # "validate skills skills/pdf" names a skill twice.
    return list({validation.path: validation for validation in validations}.values())


def _fixed(validations: Sequence[Validation], *, as_json: bool) -> list[dict[str, Any]]:
    """Apply the possible fixes, report them on stderr, and return them."""
    from skillruntime.catalog import fix_skill

    fixed = []
    for validation in validations:
        # Only files with findings: --fix must not rewrite a correct file.
        if not validation.diagnostics or not os.path.isfile(validation.path):  # noqa: PTH113
            continue
        try:
            done = fix_skill(validation.path)
        except OSError as error:
            raise InvalidSkillError(
                f"{validation.path} cannot be fixed: {error.strerror or error}"
            ) from None
        if done:
            fixed.append({"path": validation.path, "done": list(done)})
            if not as_json:
                line = without_controls(f"fixed {validation.path}: {'; '.join(done)}")
                output.console(stderr=True).print(line, style="green", markup=False)
    return fixed


def _activated(validation: Validation) -> tuple[Skill | None, list[Diagnostic]]:
    """Return the skill of *validation*, or the findings on why it cannot be read; both
    are empty where there is no file.
    """
    from skillruntime.catalog.skill import SkillMetadata, read_skill

    path = validation.path
    name = os.path.basename(os.path.dirname(path))  # noqa: PTH119, PTH120
    if not os.path.isfile(path):  # noqa: PTH113
        return None, []
    try:
        # Do not derive contracts: a derived one has no author who could correct it.
        return read_skill(SkillMetadata(name, "", path), derive=False), []
    except SkillRuntimeError as error:
        return None, [
            Diagnostic("not-activated", Severity.ERROR, path, item.message)
            for item in error.to_errors()
        ]


def _more(skill: Skill) -> list[Diagnostic]:
    """Return the findings that need an activated skill: versions that disagree, and
    migrations that fail when tried.
    """
    disagreements = [
        diagnostic
        for diagnostic in skill.diagnostics
        if diagnostic.rule == "version-disagreement"
    ]
    return disagreements + contract_findings(skill) + _migrations(skill)


def _tried(skill: Skill) -> list[TriedCommand]:
    """Return the commands that were tried on contracts derived for *skill*; none if its
    author wrote contracts.
    """
    if _files(skill.directory):
        return []
    try:
        return tried_commands(skill)
    except SkillRuntimeError:
        return []  # a file that cannot be read has its own finding


def contract_findings(skill: Skill) -> list[Diagnostic]:
    """Return the findings in every contract file of *skill*, file by file."""
    findings: list[Diagnostic] = []
    for name in _files(skill.directory):
        try:
            # Read through the skill, which follows no link out of its directory and
            # limits the size of a file.
            document = parse_document(skill.read_resource_bytes(name), name)
        except SkillRuntimeError:
            continue  # catalog.validate has reported a file that cannot be read
        # The same path that catalog.validate writes: `_without_repetition` compares the
        # findings of one file.
        path = str(skill.directory / name)
        faults = [*check_document(document, path=path), *_script(document, skill, path)]
        findings += faults
        has_error = any(fault.severity is Severity.ERROR for fault in faults)
        # Advice on a contract that does not work would hide the errors.
        if isinstance(document, dict) and not has_error:
            findings += lint_contract(document, path=path)
    return findings


def _files(directory: Path) -> list[str]:
    names = [f"contract{suffix}" for suffix in _SUFFIXES]
    own = [name for name in names if (directory / name).is_file()]
    tools = directory / "contracts"
    several = []
    if tools.is_dir() and not tools.is_symlink():
        several = sorted(
            file.name for file in tools.iterdir() if file.suffix in _SUFFIXES
        )
    # If there are both contract.json and contract.yaml, the first is read, and the other
    # is reported as "contract-twice".
    return [*own[:1], *(f"contracts/{name}" for name in several)]


def _script(document: Any, skill: Skill, path: str) -> list[Diagnostic]:
    """Return a finding if the skill lacks the script that *document* runs."""
    script = _script_of(document)
    files = [resource.path for resource in skill.resources()]
    if not script or posixpath.normpath(script) in files:
        return []
    message = f"/run/script: there is no file {script[:120]!r} in the skill"
    hint = "the skill has no scripts/"
    scripts = [path for path in files if path.startswith("scripts/")]
    if scripts:
        hint = f"the files in scripts/ are {', '.join(scripts[:8])}"
    return [Diagnostic("contract-script", Severity.ERROR, path, message, hint=hint)]


def _script_of(document: Any) -> str:
    """Return the script that a contract's document runs; empty if it runs none."""
    if not isinstance(document, dict) or not isinstance(document.get("run"), dict):
        return ""
    script = document["run"].get("script")
    if not isinstance(script, str):
        return ""
    return script


def _migrations(skill: Skill) -> list[Diagnostic]:
    """Return the findings from trying the skill's migrations on arguments of the old
    versions.
    """
    from skillruntime.compatibility.migration_proof import migration_diagnostics

    findings = []
    for name, contract in skill.contracts.items():
        tool = name.partition("/")[2]
        path = skill.directory / "contract.json"
        if tool:
            path = skill.directory / f"contracts/{tool}.json"
        if contract.migrations:
            findings += migration_diagnostics(contract, str(path))
        findings += _ended(contract, str(path))
    return findings


def _ended(contract: Contract, path: str) -> list[Diagnostic]:
    """Return a finding if the day until which the contract promised to accept old calls
    is over.
    """
    deprecation = contract.deprecation
    if deprecation is None or deprecation.until is None:
        return []
    if deprecation.until >= date.today():
        return []
    message = (
        f"/deprecated: calls of {deprecation.versions} were promised until "
        f"{deprecation.until.isoformat()}, which is over"
    )
    hint = "take their migrations out in a new MAJOR version, or name a later day"
    return [Diagnostic("deprecation-ended", Severity.WARNING, path, message, hint=hint)]
