"""``skillruntime lock``: write the digests of the skills found to a lockfile, or check
the skills against one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillruntime.catalog.checks.lockfile import (
    LOCK_FILE,
    check_lock,
    lock_document,
    lock_skills,
    read_lock,
)
from skillruntime.catalog.file_opening import write_inside
from skillruntime.cli.inputs.roots import catalog_options, no_skills, open_catalog
from skillruntime.cli.terminal import output
from skillruntime.cli.terminal.output import (
    EXIT_FAILED,
    EXIT_USAGE,
    draw_diagnostics,
    fail,
    json_option,
    print_result,
    to_json,
)
from skillruntime.cli.terminal.sarif import sarif_option, to_sarif, write_sarif
from skillruntime.cli.terminal.text import shown
from skillruntime.errors import InvalidSkillError, LockfileNotFoundError

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog import SkillMetadata
    from skillruntime.diagnostic import Diagnostic

__all__ = ["command"]


@click.command("lock")
@click.option(
    "--check",
    is_flag=True,
    help="Change nothing; exit with 1 if skills differ, 2 if there is no lockfile.",
)
@click.option(
    "--file",
    default=LOCK_FILE,
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The lockfile to write or to check.",
)
@click.argument("paths", nargs=-1, metavar="[DIRECTORY]...")
@catalog_options
@sarif_option
@json_option
def command(
    *,
    check: bool,
    file: Path,
    paths: tuple[str, ...],
    directories: tuple[str, ...],
    trust: bool,
    as_sarif: bool,
    sarif_file: Path | None,
    as_json: bool,
) -> None:
    """Write the digest of every skill to skills-lock.json, as `npx skills` does, or
    check the skills against it.
    """
    if (as_sarif or sarif_file) and not check:
        raise click.UsageError("--sarif and --sarif-file go with --check")
    catalog = dict(open_catalog((*paths, *directories), trust=trust))
    if not check:
        if not catalog:
            raise click.UsageError(no_skills((*paths, *directories)))
        _lock(catalog, file, as_json=as_json)
        return
    try:
        with output.working("reading the files of all skills"):
            findings = check_lock(catalog, lock_document(str(file)), path=str(file))
    except LockfileNotFoundError as error:
        # Not 1: a build must be able to tell skills that differ from a lockfile that
        # was never committed.
        fail(error, as_json=as_json, code=EXIT_USAGE)

    def draw(console: Console) -> None:
        draw_diagnostics(console, findings)
        if not findings:
            console.print(f"[green]No skill differs from {shown(file)}[/]")

    write_sarif(findings, sarif_file)
    if as_sarif:
        document = to_sarif(findings)
    else:
        diagnostics = [finding.to_dict() for finding in findings]
        document = {"ok": not findings, "diagnostics": diagnostics}
    print_result(document, draw, as_json=as_json or as_sarif)
    if findings:
        sys.exit(EXIT_FAILED)


def _lock(catalog: dict[str, SkillMetadata], file: Path, *, as_json: bool) -> None:
    """Write the lockfile; the exit code says whether every skill is in it."""
    unlocked: list[Diagnostic] = []
    before = _before(file)
    with output.working("reading the files of all skills"):
        document = lock_skills(
            catalog, before, base=str(file.parent), findings=unlocked
        )
    data = (to_json(document) + "\n").encode()
    try:
        write_inside(str(file.parent), file.name, data)
    except OSError as error:
        reason = f"{error.filename or file}: {error.strerror or error}"
        raise InvalidSkillError(f"The skills cannot be locked: {reason}") from None
    locked = len(document["skills"])
    text = f"Locked {locked:,} skill{'s' * (locked != 1)} in {shown(file)}"
    print_result(
        document, lambda console: console.print(f"[green]{text}[/]"), as_json=as_json
    )
    if unlocked:
        draw_diagnostics(output.console(stderr=True), unlocked)
        sys.exit(EXIT_FAILED)


def _before(file: Path) -> Any:
    """Return the content of the lockfile; ``None`` if it does not exist.

    Raises:
        InvalidSkillError: it cannot be read, or has a version of its form that we do
            not know: it is not overwritten.
    """
    try:
        read_lock(str(file))
        return lock_document(str(file))
    except LockfileNotFoundError:
        return None
    except InvalidSkillError as error:
        action = "Move the file away, or choose another --file"
        raise InvalidSkillError(
            f"{error}; it is not overwritten", suggested_action=action
        ) from None
