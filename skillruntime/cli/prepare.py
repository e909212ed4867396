"""``skillruntime prepare``: build the environments of a skill's scripts, once, so that
calls need no network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillruntime.cli.inputs.roots import (
    catalog_options,
    open_catalog,
    short_enough,
    with_next_command,
)
from skillruntime.cli.terminal.output import json_option, print_result, working
from skillruntime.cli.terminal.text import shown
from skillruntime.errors import SkillNotFoundError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]


@click.command("prepare")
@click.argument("name", callback=short_enough)
@click.option(
    "--uv", default="uv", show_default=True, metavar="PROGRAM", help="The program uv."
)
@catalog_options
@json_option
def command(
    name: str, uv: str, directories: tuple[str, ...], trust: bool, as_json: bool
) -> None:
    """Install the packages that the scripts of the skill NAME declare (PEP 723), as
    their locks say.

    Only wheels are installed, no Python is downloaded, and nothing of the skill or of a
    package runs. Each lock gets an environment of its own in the cache directory, which
    calls then use without network. `uv lock --script FILE` makes a lock.
    """
    from skillruntime.runtime.scripts.environments import (
        prepare_script,
        scripts_with_packages,
    )

    catalog = open_catalog(directories, trust=trust)
    prepared: dict[str, Path] = {}
    try:
        skill = catalog.activate(name.partition("/")[0])
        # A conversation may call any tool of the skill, so `skill/tool` prepares the
        # scripts of all.
        for script in scripts_with_packages(skill):
            with working(f"installing the packages of {shown(script)}"):
                prepared[script] = prepare_script(skill, script, uv=uv)
    except SkillNotFoundError as error:
        raise with_next_command(error, catalog, name, "prepare") from None

    def draw(out: Console) -> None:
        for script, python in prepared.items():
            # The interpreter is ENVIRONMENT/bin/python; people look for the
            # environment.
            out.print(
                f"[green]prepared[/] {shown(script)} [dim]{shown(python.parents[1])}[/]"
            )
        if not prepared:
            out.print(f"No script of {shown(skill.name)!r} declares packages.")

    paths = {script: str(python) for script, python in prepared.items()}
    print_result({"skill": skill.name, "prepared": paths}, draw, as_json=as_json)
