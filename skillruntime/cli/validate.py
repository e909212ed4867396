"""``skillruntime validate``: everything that is wrong with skills, at once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillruntime.cli.output import EXIT_FAILED, draw_diagnostics, json_option, print_result
from skillruntime.cli.roots import open_catalog
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import SkillRuntimeError

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog.skill import Skill

__all__ = ["command"]


@click.command("validate")
@click.argument("directories", nargs=-1, metavar="DIRECTORY...", required=True)
@json_option
def command(directories: tuple[str, ...], as_json: bool) -> None:
    """Say everything that is wrong with the skills in each DIRECTORY (a skill, or a directory of skills).

    Exits with 1 where there is an error; warnings and advice alone are no failure.
    """
    catalog = open_catalog(directories)
    findings = list(catalog.diagnostics)
    for name in catalog:
        try:
            skill = catalog.activate(name)
            findings += skill.diagnostics
            findings += _migrations(skill)
        except SkillRuntimeError as error:
            path = catalog[name].path
            findings += [Diagnostic("not-activated", Severity.ERROR, path, item.message) for item in error.to_errors()]
    findings = list(dict.fromkeys(findings))
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    is_empty = not catalog and not findings

    def draw(console: Console) -> None:
        draw_diagnostics(console, findings)
        counted = ", ".join(
            f"{number} {noun}{'' if number == 1 else 's'}"
            for number, noun in (
                (len(catalog), "skill"),
                (errors, "error"),
                (len(findings) - errors, "other finding"),
            )
        )
        colour = "red" if errors or is_empty else "green"
        console.print(f"[{colour}]{'No skill was found' if is_empty else counted}[/]")

    document = {
        "valid": not errors and not is_empty,
        "skills": len(catalog),
        "diagnostics": [finding.to_dict() for finding in findings],
    }
    print_result(document, draw, as_json=as_json)
    sys.exit(EXIT_FAILED if errors or is_empty else 0)


def _migrations(skill: Skill) -> list[Diagnostic]:
    """Return what does not come out right when the skill's migrations are tried on arguments of the old versions."""
    from skillruntime.contract.comparison.proof import migration_diagnostics  # only where there are migrations to try

    found = []
    for name, contract in skill.contracts.items():
        if contract.migrations:
            tool = name.partition("/")[2]
            path = skill.directory / (f"contracts/{tool}.json" if tool else "contract.json")
            found += migration_diagnostics(contract, str(path))
    return found
