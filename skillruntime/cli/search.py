"""``skillruntime search``: the skills that match some words best, ranked as for a model's search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillruntime.cli.output import json_option, print_result
from skillruntime.cli.roots import catalog_options, open_catalog
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

    The best match comes first. Skills that are hidden from models are left out.
    """
    catalog = open_catalog(directories, trust=trust)
    words = " ".join(query)
    hits = catalog.search(words, limit)

    def draw(console: Console) -> None:
        from rich.table import Table

        if not hits:
            console.print(f"None of the {len(catalog):,} skills matches; try other words, or skillruntime list")
            return
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("skill", no_wrap=True)
        table.add_column("score", no_wrap=True, justify="right")
        table.add_column("description")
        for hit in hits:
            table.add_row(f"[bold]{shown(hit.name)}[/]", f"{hit.score:.2f}", shown(" ".join(hit.description.split())))
        console.print(table)

    found = [{"name": hit.name, "description": hit.description, "score": hit.score} for hit in hits]
    print_result({"query": words, "skills": found}, draw, as_json=as_json)
