"""``skillruntime list``: the skills that are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli import output
from skillruntime.cli.output import draw_diagnostics, json_option, print_result
from skillruntime.cli.roots import catalog_options, open_catalog

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog.skill import SkillMetadata

__all__ = ["command"]


@click.command("list")
@catalog_options
@json_option
def command(directories: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """List the skills that are found, without reading more of each than its frontmatter."""
    catalog = open_catalog(directories, trust=trust)
    skills = list(catalog.values())

    def draw(console: Console) -> None:
        from rich.markup import escape
        from rich.table import Table

        if not skills:
            console.print("No skills were found. Give a directory: skillruntime list --skills DIRECTORY")
        else:
            table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
            for heading in ("skill", "version", "trust", "what it is for"):
                table.add_column(heading, no_wrap=heading != "what it is for")
            for skill in skills:
                trusted = "[green]trusted[/]" if skill.trusted else "[yellow]ask[/]"
                table.add_row(f"[bold]{escape(skill.name)}[/]", skill.version or "", trusted, escape(skill.description))
            console.print(table)
        if catalog.diagnostics:
            draw_diagnostics(output.console(stderr=True), catalog.diagnostics)

    document = {
        "skills": [_described(skill) for skill in skills],
        "diagnostics": [diagnostic.to_dict() for diagnostic in catalog.diagnostics],
    }
    print_result(document, draw, as_json=as_json)


def _described(skill: SkillMetadata) -> dict[str, Any]:
    described = {
        "name": skill.name,
        "version": skill.version,
        "description": skill.description,
        "path": skill.path,
        "trusted": skill.trusted,
    }
    return {key: value for key, value in described.items() if value is not None}
