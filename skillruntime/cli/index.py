"""``skillruntime index``: index the instructions of all skills for search, when a machine is set up for example."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillruntime.cli.output import json_option, print_result
from skillruntime.cli.roots import catalog_options, no_skills, open_catalog

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]


@click.command("index")
@catalog_options
@json_option
def command(directories: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """Read the instructions of all skills, and keep the index of their words in the cache directory.

    Without it, the first search of an agent has names and descriptions only. Later searches read what has changed.
    """
    catalog = open_catalog(directories, trust=trust)
    is_kept = catalog.index_for_search()

    def draw(out: Console) -> None:
        skills = f"{len(catalog):,} skill{'' if len(catalog) == 1 else 's'}" if catalog else no_skills(directories)
        where = "" if is_kept or not catalog else "; the index cannot be kept: see SKILLRUNTIME_CACHE"
        out.print(f"[green]indexed[/] {skills}{where}" if catalog else skills)

    print_result({"skills": len(catalog), "kept": is_kept}, draw, as_json=as_json)
