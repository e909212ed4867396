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
    catalog.search("", wait=True)

    def draw(out: Console) -> None:
        many = "" if len(catalog) == 1 else "s"
        out.print(f"[green]indexed[/] {len(catalog):,} skill{many}" if catalog else no_skills(directories))

    print_result({"skills": len(catalog)}, draw, as_json=as_json)
