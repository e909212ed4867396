"""``skillruntime index``: index the instructions of all skills for search, when a
machine is set up for example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillruntime.cache_files import cache_directory
from skillruntime.cli.inputs.roots import catalog_options, no_skills, open_catalog
from skillruntime.cli.terminal.output import echo, json_option, print_result, working

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]


@click.command("index")
@catalog_options
@json_option
def command(directories: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """Read the instructions of all skills, and keep the index of their words in the
    cache directory.

    Without it, the first search of an agent has names and descriptions only. Later
    searches read what has changed.
    """
    if cache_directory() is None:
        raise click.UsageError(
            "There is no cache directory to keep an index in: set SKILLRUNTIME_CACHE "
            "to one"
        )
    catalog = open_catalog(directories, trust=trust)
    with working("reading instructions"):
        catalog.search("", wait=True)

    def draw(out: Console) -> None:
        text = f"[green]indexed[/] {len(catalog):,} skill{'s' * (len(catalog) != 1)}"
        if catalog:
            out.print(text)
        else:
            echo(no_skills(directories), err=True)

    print_result({"skills": len(catalog)}, draw, as_json=as_json)
