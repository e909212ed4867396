"""``skillruntime doctor``: what is installed, what confines scripts, where skills are
found, and what they lack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillruntime.cli.doctor_report import report_lines, report_of
from skillruntime.cli.inputs.roots import catalog_options, open_catalog
from skillruntime.cli.terminal.output import json_option, print_result

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]


@click.command("doctor")
@catalog_options
@json_option
def command(directories: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """Say what is installed, which sandboxes work here, where skills are found, and
    what each of them lacks.
    """
    report = report_of(open_catalog(directories, trust=trust))
    lines = report_lines(report)
    print_result(report, lambda console: _draw(console, lines), as_json=as_json)


def _draw(console: Console, lines: list[str]) -> None:
    for line in lines:
        is_heading = bool(line) and not line.startswith(" ")
        console.print(
            line,
            style="bold" if is_heading else None,
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
