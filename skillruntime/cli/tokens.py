"""``skillruntime tokens PATH``: what skills cost in tokens, and limits that fail a build."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from skillruntime.catalog import discover
from skillruntime.cli.output import EXIT_FAILED, json_option, print_result
from skillruntime.cli.progress import with_progress
from skillruntime.tokens import Advice, SkillCost, TokenReport, measure

__all__ = ["command"]

_SHOWN = 25
_SORTS = ("body", "metadata", "resource", "schema", "name")


@click.command("tokens")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--model", default="gpt-4o", show_default=True, help="The model whose tokens are counted.")
@click.option("--style", default="compact", show_default=True, help="The catalog's style.")
@click.option(
    "--activations",
    default=(1, 3, 10),
    multiple=True,
    type=click.IntRange(0),
    help="Activations of a session to cost; repeatable [1, 3, 10].",
)
@click.option(
    "--sort", default="body", show_default=True, type=click.Choice(_SORTS), help="The column to sort by, largest first."
)
@click.option("--all", "everything", is_flag=True, help=f"Show every skill, not only the first {_SHOWN}.")
@click.option("--max-catalog-tokens", type=click.IntRange(0), help="Fail when the catalog has more tokens.")
@click.option("--max-body-tokens", type=click.IntRange(0), help="Fail when a body has more tokens.")
@click.option("--advise", is_flag=True, help="List possible savings, the largest first.")
@json_option
def command(
    paths: tuple[Path, ...],
    model: str,
    style: str,
    activations: tuple[int, ...],
    sort: str,
    everything: bool,
    max_catalog_tokens: int | None,
    max_body_tokens: int | None,
    advise: bool,
    as_json: bool,
) -> None:
    """Show what the skills under PATH cost in tokens: in the catalog, when activated, file by file.

    Counts offline. Exits with 1 when a limit is exceeded.
    """
    report = measure(
        discover(*paths, missing_ok=True),
        model=model,
        style=style,
        with_advice=advise,
        progress=lambda names: with_progress(names, "counting tokens"),
    )
    exceeded = _exceeded(report, max_catalog_tokens, max_body_tokens)
    document = {**report.to_dict(), "exceeded": exceeded}
    document["totals"]["session"] = {str(number): report.session(number) for number in activations}

    def draw(console: Console) -> None:
        _show(report, console, activations, sort, everything)
        if advise:
            _show_advice(report, console, everything)

    print_result(document, draw, as_json=as_json)
    for message in exceeded:
        click.echo(f"error: {message}", err=True)
    if exceeded:
        sys.exit(EXIT_FAILED)


def _exceeded(report: TokenReport, max_catalog: int | None, max_body: int | None) -> list[str]:
    found = []
    if max_catalog is not None and report.catalog > max_catalog:
        found.append(f"the catalog has {report.catalog:,} tokens, more than {max_catalog:,}")
    if max_body is not None:
        found += [
            f"{skill.path}: the body has {skill.body:,} tokens, more than {max_body:,}"
            for skill in report.skills
            if skill.body > max_body
        ]
    return found


def _show(report: TokenReport, console: Console, activations: Iterable[int], sort: str, everything: bool) -> None:
    skills = sorted(report.skills, key=lambda skill: skill.name)
    if sort != "name":
        skills.sort(key=lambda skill: -getattr(skill, sort))
    shown = skills if everything else skills[:_SHOWN]
    table = Table(box=None, pad_edge=False, show_footer=True, header_style="bold", footer_style="bold")
    table.add_column("skill", footer=f"{len(skills):,} skills", no_wrap=True, overflow="ellipsis", min_width=18)
    for title, tier in (("entry", "metadata"), ("body", "body")):
        table.add_column(title, justify="right", footer=f"{report.total(tier):,}")
    table.add_column("largest section", overflow="ellipsis", max_width=32, no_wrap=True)
    table.add_column("files", justify="right", footer=f"{report.total('resource'):,}", no_wrap=True)
    table.add_column("tools", justify="right", footer=f"{report.total('schema'):,}", no_wrap=True)
    for skill in shown:
        table.add_row(
            skill.name,
            f"{skill.metadata:,}",
            f"{skill.body:,}",
            _largest(skill),
            _figure(skill.resource, len(skill.resources)),
            _figure(skill.schema, len(skill.schemas)),
        )
    console.print(table)
    if len(shown) < len(skills):
        console.print(f"... and {len(skills) - len(shown):,} more (--all)", style="dim")
    console.print()
    above = (report.catalog - report.total("metadata")) / max(len(skills), 1)
    console.print(
        f"catalog ({report.style}): [bold]{report.catalog:,}[/] tokens, {above:+.1f} a skill above name and description"
    )
    for number in sorted({min(number, len(skills)) for number in activations}):
        cost = report.session(number)
        share = f", {cost / report.eager:.1%} of loading all" if report.eager else ""
        console.print(f"session of {number} activation{'s' * (number != 1)}: [bold]{cost:,}[/] tokens{share}")
    console.print(f"loading all names, descriptions and bodies: [bold]{report.eager:,}[/] tokens")
    sure = "exact" if report.exact else "an estimate"
    console.print(f"All figures in tokens of {report.model}: {report.method} ({sure}).", style="dim", highlight=False)
    for name, reason in report.unreadable:
        console.print(f"not read: {name}: {reason}", style="yellow", highlight=False)


def _largest(skill: SkillCost) -> str:
    if not skill.sections or not skill.body:
        return ""
    section = skill.sections[0]
    return f"{section.tokens / skill.body:4.0%} {section.title}"


def _figure(tokens: int, number: int) -> str:
    return f"{tokens:,} ({number})" if number else ""


def _show_advice(report: TokenReport, console: Console, everything: bool) -> None:
    advice: list[Advice] = report.advice
    console.print()
    if not advice:
        console.print("No savings found.")
        return
    for one in advice if everything else advice[:_SHOWN]:
        where = f"{one.path}:{one.line}" if one.line else one.path
        console.print(f"[bold]{one.tokens:,}[/] tokens {one.when}: {one.skill}: ", end="", highlight=False)
        console.print(one.message, markup=False, highlight=False)
        console.print(
            f"    {one.hint} [{one.rule}]\n    {where}", style="dim", markup=False, highlight=False, soft_wrap=True
        )
    if not everything and len(advice) > _SHOWN:
        console.print(f"... and {len(advice) - _SHOWN:,} more (--all)", style="dim")
    for when in sorted({one.when for one in advice}):
        saved = sum(one.tokens for one in advice if one.when == when)
        console.print(f"total {when}: [bold]{saved:,}[/] tokens over all skills")
