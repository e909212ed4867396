"""``skillruntime search``: the skills that match some words best, ranked as for a model's search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillruntime.cli.output import json_option, print_result, print_rows
from skillruntime.cli.roots import catalog_options, no_skills, open_catalog
from skillruntime.cli.terminal_text import shown

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]


@click.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1), help="The most results.")
@catalog_options
@json_option
def command(query: tuple[str, ...], limit: int, directories: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """Find the skills that match QUERY best: by their names, descriptions, tags and instructions.

    The best match comes first. Skills that are hidden from models are left out. To a pipe, each result is a line with
    tabs: name, score, description.
    """
    catalog = open_catalog(directories, trust=trust)
    words = " ".join(query)
    found = catalog.search(words, limit)
    # BM25 gives a word that half of the skills contain no weight at all: such a hit says nothing.
    hits = [hit for hit in found if hit.score > 0]

    def draw(console: Console) -> None:
        from rich.table import Table

        if not hits:
            _say_nothing_found(len(catalog), directories, occurs=bool(found))
        elif not console.is_terminal:
            print_rows((hit.name, f"{hit.score:.4f}", hit.description) for hit in hits)
        else:
            table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
            table.add_column("skill", no_wrap=True)
            table.add_column("score", no_wrap=True, justify="right")
            table.add_column("description")
            for hit in hits:
                described = shown(" ".join(hit.description.split()))
                table.add_row(f"[bold]{shown(hit.name)}[/]", f"{hit.score:.2f}", described)
            console.print(table)

    listed = [{"name": hit.name, "description": hit.description, "score": hit.score} for hit in hits]
    print_result({"query": words, "skills": listed}, draw, as_json=as_json)


def _say_nothing_found(skills: int, directories: tuple[str, ...], *, occurs: bool) -> None:
    # On stderr: a pipe that counts lines counts results.
    if not skills:
        click.echo(no_skills(directories), err=True)
    elif occurs:
        click.echo("These words occur in most of the skills; try more specific words, or skillruntime list", err=True)
    else:
        click.echo(f"None of the {skills:,} skills matches; try other words, or skillruntime list", err=True)
