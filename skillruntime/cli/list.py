"""``skillruntime list``: the skills found, what each costs in the catalog, and which
cannot be used here.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli.inputs.roots import (
    catalog_options,
    hides_trust,
    no_skills,
    open_catalog,
)
from skillruntime.cli.terminal import output
from skillruntime.cli.terminal.output import (
    draw_diagnostics,
    is_drawn,
    json_option,
    print_json,
    print_rows,
    with_progress,
)
from skillruntime.cli.terminal.text import NARROW, shown
from skillruntime.errors import SkillRuntimeError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from skillruntime.catalog import SkillCatalog, SkillMetadata

__all__ = ["command"]


_MOST_WHOLE = 50  # skills that are drawn with their whole descriptions


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of the list: the skill, the tokens of its entry in the catalog, and why
    it is unavailable.
    """

    skill: SkillMetadata
    tokens: int
    unavailable: tuple[str, ...]
    compatibility: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the line as a JSON object."""
        described = {
            "name": self.skill.name,
            "version": self.skill.version,
            "description": self.skill.description,
            "path": self.skill.path,
            "trusted": self.skill.trusted,
            "tokens": self.tokens,
            "available": not self.unavailable,
            "unavailable": list(self.unavailable) or None,
            "compatibility": self.compatibility,
            "model_invocable": None if self.skill.model_invocable else False,
        }
        return {key: value for key, value in described.items() if value is not None}


@hides_trust
@click.command("list")
@click.argument("text", required=False)
@click.option(
    "--model",
    default="gpt-4o",
    show_default=True,
    help="The model whose tokens are counted.",
)
@catalog_options
@json_option
def command(
    text: str | None,
    model: str,
    directories: tuple[str, ...],
    trust: bool,
    as_json: bool,
) -> None:
    """List the skills found; with TEXT, those whose name or description contains it, or
    those of a directory.

    TEXT is a directory if it is ".", or holds a slash, such as ./skills.

    "tokens" is what a skill's entry adds to the catalog that a model reads at the
    start: 0 for a skill that is hidden from models, and for an older version beside a
    newer one.

    A terminal gets a table; above 50 skills, one line each. To a pipe, each skill is a
    line with tabs: name, version, tokens, trust, description.
    """
    # People type a directory, as for ls; a skill's name never contains a slash.
    if text is not None and (text in (".", "..") or "/" in text):
        directories, text = (*directories, text), None
    from skillruntime.tokens import count_each

    catalog = open_catalog(directories, trust=trust)
    # casefold, not lower: "STRASSE" finds "Straße".
    wanted = (text or "").casefold()
    every = catalog.every_version().values()
    skills = [
        skill
        for skill in every
        if wanted in f"{skill.name}\n{skill.description}".casefold()
    ]
    plain = set(catalog)
    # Hidden skills, and versions beside a newer one, are not in it.
    entries = []
    for skill in skills:
        is_read = skill.model_invocable and skill.name in plain
        entries.append(_entry(skill) if is_read else "")
    counts = zip(skills, count_each(entries, model), strict=True)
    lines = [
        _listed(catalog, skill, count)
        for skill, count in with_progress(counts, "reading skills")
    ]

    def draw(console: Console | None) -> None:
        if not catalog:
            output.echo(no_skills(directories), err=True)
        # On stderr, with exit code 0: an empty list is an answer, and a pipe must not
        # take a sentence for a skill.
        elif not lines:
            hint = ""
            if text and os.path.isdir(text):  # noqa: PTH112 - False for any text
                hint = f" To list that directory, write ./{text}."
            output.echo(
                f"No skill matches ({len(catalog):,} searched).{hint}", err=True
            )
        elif console is None or not console.is_terminal or console.width < NARROW:
            print_rows(map(_fields, lines))
        else:
            console.print(_table(lines))
        if catalog.diagnostics:
            draw_diagnostics(output.console(stderr=True), catalog.diagnostics)

    if as_json:
        document = {
            "skills": [line.to_dict() for line in lines],
            "tokens": sum(line.tokens for line in lines),
            "diagnostics": [found.to_dict() for found in catalog.diagnostics],
        }
        print_json(document, as_json=True)
    elif is_drawn(sys.stdout):
        draw(output.console())
    else:
        draw(None)


def _entry(skill: SkillMetadata) -> str:
    """Return the catalog's entry for *skill*."""
    from skillruntime.catalog.rendering import STYLES

    form = STYLES["compact"]
    return form.between + form.write(skill.name, skill.description, skill.path)


def _listed(catalog: SkillCatalog, skill: SkillMetadata, tokens: int) -> Listed:
    if catalog.surely_needs_nothing(skill.name):
        return Listed(skill, tokens, ())
    try:
        return Listed(
            skill,
            tokens,
            catalog.unmet(skill.name),
            skill.read_frontmatter().compatibility,
        )
    except SkillRuntimeError as error:
        # Still listed, because a broken skill that vanished from the list could not be
        # found and repaired.
        return Listed(skill, tokens, tuple(item.message for item in error.to_errors()))


def _fields(line: Listed) -> tuple[str, ...]:
    """Return the fields of one line: name, version, tokens, trust, description."""
    skill = line.skill
    described = " ".join(skill.description.split())
    # In words, in the last field: a further field would break scripts that cut five.
    if not skill.model_invocable:
        described = f"for people only: {described}"
    if line.compatibility:
        described = f"{described} (compatibility: {line.compatibility})"
    if line.unavailable:
        described = f"unavailable: {'; '.join(line.unavailable)} {described}"
    return (
        skill.name,
        skill.version or "",
        f"{line.tokens}",
        "trusted" if skill.trusted else "ask",
        described,
    )


def _table(lines: list[Listed]) -> Table:
    from rich.table import Table

    # Expanded, so that the description takes the remaining width, and numbers are not
    # truncated.
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        header_style="dim",
        show_footer=True,
        footer_style="dim",
        expand=True,
    )
    # One line each if there are many, because complete descriptions of a thousand
    # skills are unreadable.
    shortened = len(lines) > _MOST_WHOLE
    table.add_column(
        "skill", no_wrap=True, footer=f"{len(lines):,} skill{'s' * (len(lines) != 1)}"
    )
    table.add_column(
        "version",
        no_wrap=True,
        min_width=max(len(line.skill.version or "") for line in lines),
    )
    total = f"{sum(line.tokens for line in lines):,}"
    table.add_column(
        "tokens",
        no_wrap=True,
        justify="right",
        footer=total,
        min_width=max(len(total), 6),
    )
    table.add_column("trust", no_wrap=True)
    table.add_column(
        "description",
        no_wrap=shortened,
        overflow="ellipsis" if shortened else "fold",
        ratio=1,
    )
    for line in lines:
        metadata = line.skill
        described = shown(" ".join(metadata.description.split()))
        if line.compatibility and not shortened:
            described = (
                f"{described}\n[dim]compatibility: {shown(line.compatibility)}[/]"
            )
        if line.unavailable:
            described = (
                f"[red]unavailable: {shown('; '.join(line.unavailable))}[/]\n"
                f"{described}"
            )
        if not metadata.model_invocable:
            described = f"[dim]for people only[/]\n{described}"
        trusted = "[green]trusted[/]" if metadata.trusted else "[yellow]ask[/]"
        name, stated = f"[bold]{shown(metadata.name)}[/]", shown(metadata.version or "")
        table.add_row(name, stated, f"{line.tokens:,}", trusted, described)
    return table
