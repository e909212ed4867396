"""``skillruntime tokens PATH``: what skills cost in tokens, and limits that fail a
build.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillruntime.catalog import discover
from skillruntime.catalog.rendering import STYLES
from skillruntime.cli.terminal import output
from skillruntime.cli.terminal.output import (
    EXIT_FAILED,
    draw_diagnostics,
    echo,
    json_option,
    print_result,
    print_rows,
    with_progress,
)
from skillruntime.cli.terminal.text import shown
from skillruntime.diagnostic import Severity
from skillruntime.extras import missing_extra
from skillruntime.tokens.report import SkillCost, TokenReport, measure

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]

_SHOWN = 25


@click.command("tokens")
@click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False),
)
@click.option(
    "--model",
    default="gpt-4o",
    show_default=True,
    help="The model whose tokens are counted.",
)
@click.option(
    "--style",
    default="compact",
    show_default=True,
    type=click.Choice(STYLES),
    help="The catalog's form.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help=f"Show every skill, not only the first {_SHOWN}.",
)
@click.option(
    "--max-catalog-tokens",
    type=click.IntRange(0),
    help="Fail when the catalog has more tokens.",
)
@click.option(
    "--max-body-tokens",
    type=click.IntRange(0),
    help="Fail when a body has more tokens.",
)
@click.option(
    "--advise", is_flag=True, help="List possible savings, the largest first."
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report as one page to this file; any browser shows it.",
)
@click.option(
    "--png",
    "image",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report as an image to this file; needs matplotlib.",
)
@json_option
def command(
    *,
    paths: tuple[str, ...],
    model: str,
    style: str,
    everything: bool,
    max_catalog_tokens: int | None,
    max_body_tokens: int | None,
    advise: bool,
    page: Path | None,
    image: Path | None,
    as_json: bool,
) -> None:
    """Show what the skills under PATH cost in tokens: in the catalog, when activated,
    file by file.

    Counts offline. Exits with 1 when a limit is exceeded. To a pipe, each skill is a
    line with tabs: name, entry, body, files, tools; the sums go to stderr.
    """
    if image is not None:
        _require_matplotlib()
    catalog = discover(*paths, missing_ok=True)
    report = measure(
        catalog,
        model=model,
        style=style,
        with_advice=advise,
        with_sections=as_json,
        keep=True,
        progress=lambda names: with_progress(names, "counting tokens"),
    )
    if page is not None:
        from skillruntime.tokens.report_page import report_page

        _write(page, report_page(report).encode("utf-8", "backslashreplace"))
    if image is not None:
        from skillruntime.tokens.report_plot import plot

        _write(image, plot(report))
    # Limits are checked on the counts, whatever is drawn: --all does not change the
    # exit code.
    exceeded = _exceeded(report, max_catalog_tokens, max_body_tokens)
    document = {**report.to_dict(), "exceeded": exceeded}

    def draw(console: Console) -> None:
        skills = sorted(report.skills, key=lambda skill: (-skill.body, skill.name))
        # A pipe gets one line for every skill and nothing else, so that the lines can
        # be counted; the rest is for people.
        people = console
        if not console.is_terminal:
            people = output.console(stderr=True)
        if not skills:
            echo(f"No skills found in {', '.join(paths)}", err=True)
        elif console.is_terminal:
            _show_table(report, console, skills if everything else skills[:_SHOWN])
        else:
            print_rows(
                (skill.name, skill.metadata, skill.body, skill.resource, skill.schema)
                for skill in skills
            )
        if skills:
            _show_sums(report, people)
        for name, reason in report.unreadable:
            people.print(f"not read: {name}: {reason}", style="yellow", markup=False)
        errors = [
            finding
            for finding in catalog.diagnostics
            if finding.severity is Severity.ERROR
        ]
        # A skill with an error may be missing in the figures.
        if errors:
            draw_diagnostics(output.console(stderr=True), errors)
        if advise:
            _show_advice(report, people, everything)

    print_result(document, draw, as_json=as_json)
    # After the report, on stderr: a build's log ends with the reason why it failed.
    for message in exceeded:
        echo(f"error: {message}", err=True)
    if exceeded:
        sys.exit(EXIT_FAILED)


def _require_matplotlib() -> None:
    """Exit if matplotlib is missing, before thousands of files are read."""
    if find_spec("matplotlib") is None:
        missing = ModuleNotFoundError("--png needs matplotlib", name="matplotlib")
        raise missing_extra(missing)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise click.UsageError(
            f"The file {str(path)!r} cannot be written: {error.strerror}"
        ) from error
    echo(f"wrote {path}", err=True)


def _exceeded(
    report: TokenReport, max_catalog: int | None, max_body: int | None
) -> list[str]:
    messages = []
    if max_catalog is not None and report.catalog > max_catalog:
        messages.append(
            f"the catalog has {report.catalog:,} tokens, more than {max_catalog:,}"
        )
    if max_body is not None:
        messages += [
            f"{skill.path}: the body has {skill.body:,} tokens, more than {max_body:,}"
            for skill in report.skills
            if skill.body > max_body
        ]
    return messages


def _show_table(
    report: TokenReport, console: Console, skills: Sequence[SkillCost]
) -> None:
    from rich.table import Table

    total = len(report.skills)
    # No borders: the columns can be copied and pasted.
    table = Table(
        box=None,
        pad_edge=False,
        show_footer=True,
        header_style="bold",
        footer_style="bold",
    )
    table.add_column(
        "skill",
        footer=f"{total:,} skill{'s' * (total != 1)}",
        overflow="ellipsis",
        min_width=8,
    )
    for title, tier in (
        ("entry", "metadata"),
        ("body", "body"),
        ("files", "resource"),
        ("tools", "schema"),
    ):
        table.add_column(
            title, justify="right", footer=f"{report.total(tier):,}", no_wrap=True
        )
    for skill in skills:
        tokens = (skill.metadata, skill.body, skill.resource, skill.schema)
        table.add_row(shown(skill.name), *(f"{number:,}" for number in tokens))
    console.print(table)
    if len(skills) < total:
        console.print(f"... and {total - len(skills):,} more (--all)", style="dim")
    console.print()


def _show_sums(report: TokenReport, console: Console) -> None:
    number_of_skills = len(report.skills)
    console.print(f"{number_of_skills:,} skill{'s' * (number_of_skills != 1)}")
    # The costs of the catalog's form: names and descriptions would be sent in any form.
    above = (report.catalog - report.total("metadata")) / number_of_skills
    console.print(
        f"catalog ({report.style}): [bold]{report.catalog:,}[/] tokens, {above:+.1f} "
        "a skill above name and description"
    )
    # A catalog of four has no session of ten: 10 becomes 4, once.
    for number in sorted({min(number, number_of_skills) for number in (1, 3, 10)}):
        cost = report.session(number)
        share = ""
        if report.eager:
            share = f", {cost / report.eager:.1%} of loading all"
        console.print(
            f"session of {number} activation{'s' * (number != 1)}: [bold]{cost:,}[/] "
            f"token{'s' * (cost != 1)}{share}"
        )
    console.print(
        f"loading all names, descriptions and bodies: [bold]{report.eager:,}[/] tokens"
    )
    precision = "exact" if report.exact else "an estimate"
    console.print(
        f"All figures in tokens of {report.model}: {report.method} ({precision}).",
        style="dim",
        markup=False,
    )


def _show_advice(report: TokenReport, console: Console, everything: bool) -> None:
    advice = report.advice
    console.print()
    if not advice:
        console.print("No savings found.")
        return
    for one in advice if everything else advice[:_SHOWN]:
        where = one.path
        if one.line:
            where += f":{one.line}"
        console.print(
            f"[bold]{one.tokens:,}[/] tokens {one.when}: {shown(one.skill)}: ", end=""
        )
        console.print(one.message, markup=False)
        console.print(
            f"    {one.hint} [{one.rule}]\n    {where}",
            style="dim",
            markup=False,
            soft_wrap=True,
        )
    if not everything and len(advice) > _SHOWN:
        console.print(f"... and {len(advice) - _SHOWN:,} more (--all)", style="dim")
    for when in sorted({one.when for one in advice}):
        saved = sum(one.tokens for one in advice if one.when == when)
        console.print(f"total {when}: [bold]{saved:,}[/] tokens over all skills")
