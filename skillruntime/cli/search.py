"""``skillruntime search``: the skills that match some words best, ranked as for a
model's search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillruntime.cli.inputs.roots import catalog_options, no_skills, open_catalog
from skillruntime.cli.terminal.output import json_option, print_result, print_rows
from skillruntime.cli.terminal.text import shown

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]

_LEAST_SHARE = 0.005


@click.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--limit",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    help="The most results.",
)
@catalog_options
@json_option
def command(
    query: tuple[str, ...],
    limit: int,
    directories: tuple[str, ...],
    trust: bool,
    as_json: bool,
) -> None:
    """Find the skills that match QUERY best: by their names, descriptions, tags and
    instructions.

    The best match comes first. Skills that are hidden from models are left out. To a
    pipe, each result is a line with tabs: name, score, description.
    """
    from skillruntime.contract.closest_names import nearest_names

    catalog = open_catalog(directories, trust=trust)
    words = " ".join(query)
    found = catalog.search(words, limit, wait=True)
    # Scores compare only within one query, so a person sees them as a share of the
    # best; what rounds to 0 % is noise.
    hits = [hit for hit in found if hit.score >= found[0].score * _LEAST_SHARE]
    guesses = []
    if not hits:
        guesses = nearest_names(words, catalog.for_model(), 3)

    def draw(console: Console) -> None:
        from rich.table import Table

        # On stderr: a pipe that counts lines counts results.
        if not catalog:
            click.echo(no_skills(directories), err=True)
        elif not hits:
            text = (
                f"No skill matches ({len(catalog):,} searched); try other words, or "
                "run: skillruntime list"
            )
            if guesses:
                text += f"\nThe nearest names, which is a guess: {', '.join(guesses)}"
            click.echo(text, err=True)
        elif not console.is_terminal:
            print_rows((hit.name, f"{hit.score:.4g}", hit.description) for hit in hits)
        else:
            table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
            table.add_column("skill", no_wrap=True)
            table.add_column("match", no_wrap=True, justify="right")
            table.add_column("description")
            for hit in hits:
                described = shown(" ".join(hit.description.split()))
                table.add_row(
                    f"[bold]{shown(hit.name)}[/]",
                    f"{hit.score / found[0].score:.0%}",
                    described,
                )
            console.print(table)

    listed = [
        {"name": hit.name, "description": hit.description, "score": hit.score}
        for hit in hits
    ]
    document = {"query": words, "skills": listed}
    if guesses:
        document["nearest_names"] = guesses
    print_result(document, draw, as_json=as_json)
