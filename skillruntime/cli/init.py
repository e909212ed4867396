"""``skillruntime init``: write a first version of a skill's contract files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli.inputs.roots import (
    catalog_options,
    open_catalog,
    short_enough,
    with_next_command,
)
from skillruntime.cli.terminal.output import (
    draw_diagnostics,
    json_option,
    print_result,
    to_json,
)
from skillruntime.errors import InvalidSkillError, SkillNotFoundError

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog import Skill
    from skillruntime.diagnostic import Diagnostic

__all__ = ["command"]


@click.command("init")
@click.argument("skill", callback=short_enough)
@click.option("--force", is_flag=True, help="Replace existing contract files.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would be written, and write nothing."
)
@catalog_options
@json_option
def command(
    *,
    skill: str,
    force: bool,
    dry_run: bool,
    directories: tuple[str, ...],
    trust: bool,
    as_json: bool,
) -> None:
    """Write contract.json, or contracts/*.json, for SKILL: a name, or a directory with
    a SKILL.md.

    The contract is derived from its scripts and its frontmatter, for you to edit;
    findings of the linter are printed.
    """
    from skillruntime.catalog.contracts.derived_contracts import derive_scripts
    from skillruntime.contract.document.lint import lint_contract
    from skillruntime.derive.draft import draft_contracts

    target = _find(skill, directories)
    derived = derive_scripts(target.resources(), target.read_resource_bytes)
    documents = draft_contracts(list(derived.values()), target.frontmatter)
    if not documents:
        message = (
            f"No script and no frontmatter field of {target.name!r} declares parameters"
        )
        hint = (
            "Write contract.json by hand (docs/contract.md), or give a script an "
            "argument parser"
        )
        raise InvalidSkillError(message, suggested_action=hint)
    # All or nothing: replacing half of a skill's contracts would be worse than none.
    there = [path for path in documents if os.path.lexists(target.directory / path)]
    if there and not force and not dry_run:
        hint = "Use --force to replace it, or --dry-run to see what would be written"
        raise InvalidSkillError(
            f"{', '.join(there)} already exists", suggested_action=hint
        )
    # A derived contract is a first version: the linter says what its author should add.
    advice: list[Diagnostic] = []
    for path, document in documents.items():
        advice += lint_contract(document, path=path)
    if not dry_run:
        _write(target.directory, documents)

    def draw(console: Console) -> None:
        done = "Would write" if dry_run else "Wrote"
        for path, document in documents.items():
            console.print(f"{done} [bold]{path}[/]", highlight=False)
            if dry_run:
                console.print_json(data=document)
        draw_diagnostics(console, advice)

    result = {
        "written": not dry_run,
        "files": documents,
        "diagnostics": [finding.to_dict() for finding in advice],
    }
    print_result(result, draw, as_json=as_json)


def _find(skill: str, directories: tuple[str, ...]) -> Skill:
    from skillruntime.catalog import discover

    # A path is tried first: "init ." is what an author types inside the skill.
    path = Path(skill).expanduser()
    if (path / "SKILL.md").is_file():
        # Discover from the parent, because a skill is named like its directory; then
        # pick the meant skill.
        catalog = discover(path.resolve().parent)
        for metadata in catalog.values():
            if metadata.directory.resolve() == path.resolve():
                return catalog.activate(metadata.name)
        raise InvalidSkillError(
            f"The SKILL.md in {skill!r} cannot be loaded; run skillruntime validate "
            f"{skill}"
        )
    others = open_catalog(directories)
    try:
        return others.activate(skill)
    except SkillNotFoundError as error:
        raise with_next_command(error, others, skill, "init") from None


def _write(directory: Path, documents: dict[str, dict[str, Any]]) -> None:
    from skillruntime.catalog.file_opening import write_inside

    for path, document in documents.items():
        try:
            # Never through a link that lies there: the skill may be from an untrusted
            # source.
            write_inside(str(directory), path, (to_json(document) + "\n").encode())
        except OSError as error:
            raise InvalidSkillError(
                f"{directory / path} cannot be written: {error.strerror}"
            ) from None
