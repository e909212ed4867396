"""``skillruntime diff OLD NEW``: what changed between two versions of contracts, and
whether the version covers it.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli.inputs.contract_source import Source, read_sources
from skillruntime.cli.terminal.output import (
    EXIT_FAILED,
    json_option,
    print_result,
    short,
)
from skillruntime.cli.terminal.sarif import sarif_option, to_sarif, write_sarif
from skillruntime.compatibility import (
    NO_COUNTEREXAMPLE,
    Bump,
    Change,
    OldCalls,
    Suggestion,
    Verdict,
    compare,
    release_notes,
    suggest_migration,
    try_old_calls,
)
from skillruntime.contract import Contract
from skillruntime.contract.versions import read_version
from skillruntime.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]

_COLOURS = {
    Bump.MAJOR: "bold red",
    Bump.MINOR: "yellow",
    Bump.PATCH: "cyan",
    Bump.NONE: "green",
}


_GONE = ("parameter-removed", "parameter-renamed")


@dataclass(frozen=True, slots=True)
class _Compared:
    """One contract on both sides."""

    name: str
    old_version: str | None
    new_version: str | None
    verdict: Verdict
    suggestion: Suggestion | None = None
    old_calls: OldCalls | None = None

    @property
    def required(self) -> str | None:
        """The lowest version number that the new side may have."""
        if self.old_version is None:
            return None
        return str(self.verdict.next_version(read_version(self.old_version).version))

    @property
    def ok(self) -> bool:
        """Return whether the declared version is raised far enough; with none declared,
        nothing may break.
        """
        if self.old_version is None or self.new_version is None:
            return self.verdict.bump is not Bump.MAJOR
        return self.verdict.allows(
            read_version(self.old_version).version,
            read_version(self.new_version).version,
        )

    def to_dict(self) -> dict[str, Any]:
        document = {
            "name": self.name,
            "ok": self.ok,
            "old_version": self.old_version,
            "new_version": self.new_version,
        }
        document |= {"required_version": self.required, **self.verdict.to_dict()}
        if self.old_calls is not None:
            document["old_calls"] = self.old_calls.to_dict()
        if self.suggestion is not None:
            unresolved = [change.path for change in self.suggestion.unresolved]
            document |= {
                "migration": self.suggestion.document,
                "unresolved": unresolved,
            }
        return document


@click.command("diff")
@click.argument("old")
@click.argument("new")
@click.option(
    "--suggest",
    is_flag=True,
    help="Print a migration for the breaking changes, as far as one can be inferred.",
)
@click.option(
    "--write",
    is_flag=True,
    help="Write the migration and the version into NEW's contract file, if the "
    "migration is complete.",
)
@click.option(
    "--markdown",
    "as_markdown",
    is_flag=True,
    help="Print the changes as a paragraph for a changelog.",
)
@sarif_option
@json_option
def command(
    old: str,
    new: str,
    *,
    suggest: bool,
    write: bool,
    as_markdown: bool,
    as_sarif: bool,
    sarif_file: Path | None,
    as_json: bool,
) -> None:
    """Compare OLD with NEW: list the changes, the version part that each raises, and a
    value that proves it.

    OLD and NEW are contract files, skills, directories of skills, or git revisions
    (v1.0, or v1.0:skills/digest). Exits with 1 when a declared version is too low for
    its changes.
    """
    try:
        sources = read_sources(old, new)
        comparisons = _compare(*sources, suggest=suggest or write)
        if write:
            _write_migration(comparisons, new)
            sources = read_sources(old, new)
            comparisons = _compare(*sources, suggest=suggest)
        broken = _broken(*sources)
        comparisons = [_with_outdated_words(each, new) for each in comparisons]
        # Exit 1 means that the version is too low, not that something changed: a build
        # may break callers on purpose.
        ok = not broken and all(comparison.ok for comparison in comparisons)
        contracts = [comparison.to_dict() for comparison in comparisons]
        document = {"ok": ok, "contracts": contracts, "broken": broken}
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    findings = _all_findings(comparisons, broken, new)
    write_sarif(findings, sarif_file)
    if as_sarif:
        document = to_sarif(findings)
    draw = _draw_markdown if as_markdown else _draw
    print_result(
        document,
        lambda console: draw(console, comparisons),
        as_json=as_json or as_sarif,
    )
    for name, reason in broken.items():
        click.echo(f"{name} is not compared: {reason}", err=True)
    if not ok:
        sys.exit(EXIT_FAILED)


def _broken(old: Source, new: Source) -> dict[str, str]:
    """Return the reason for each contract that cannot be read, and so is not
    compared.
    """
    broken = {name: f"in OLD, {reason}" for name, reason in old.broken.items()}
    broken |= {name: f"in NEW, {reason}" for name, reason in new.broken.items()}
    return broken


def _compare(old: Source, new: Source, *, suggest: bool) -> list[_Compared]:
    # One file or skill is compared with another whatever their names: an old copy lies
    # in another directory. Skills of a directory are paired by name, so that a removed
    # one is found.
    has_one_each = len(old.contracts) == len(new.contracts) == 1
    if has_one_each and (old.is_single or new.is_single):
        pairs = list(zip(old.contracts, new.contracts, strict=True))
    else:
        names = dict.fromkeys([*old.contracts, *new.contracts])
        broken = {*old.broken, *new.broken}
        pairs = [(name, name) for name in names if name not in broken]
    comparisons = []
    for before, after in pairs:
        # A removed contract is judged by the version of the rest of its skill.
        rest = None
        if new.is_single:
            rest = next(iter(new.versions.values()), None)
        versions = (old.versions.get(before), new.versions.get(after, rest))
        # A removed callable breaks its callers (MAJOR); a new one is an addition
        # (MINOR).
        if before not in old.contracts or after not in new.contracts:
            verdict = _whole(before in old.contracts)
            comparisons.append(_Compared(after, *versions, verdict))
            continue
        left, right = old.contracts[before], new.contracts[after]
        verdict = compare(left, right)
        # Only breaking changes need a migration.
        suggestion = None
        if suggest and verdict.bump is Bump.MAJOR:
            suggestion = suggest_migration(left, right, verdict)
        old_calls = try_old_calls(left, right, verdict)
        verdict = old_calls.added_to(verdict)
        comparisons.append(_Compared(after, *versions, verdict, suggestion, old_calls))
    return comparisons


def _with_outdated_words(comparison: _Compared, new: str) -> _Compared:
    """Return *comparison* with a finding for each removed parameter that the skill's
    SKILL.md still names in code.
    """
    contract_file = Path(_file_of(comparison.name, new))
    root = contract_file.parent
    if root.name == "contracts":
        root = root.parent
    try:
        text = (root / "SKILL.md").read_text("utf-8", errors="replace")
    except OSError:
        return comparison
    outdated = []
    for change in comparison.verdict.changes:
        if change.side != "input" or change.rule not in _GONE or not change.finding:
            continue
        name = str(change.finding.details["name"])
        # Only in code: a word in a sentence is not the parameter.
        if re.search(rf"(?:[`\"'/]|--){re.escape(name)}(?![\w-])", text):
            why = f"SKILL.md still names {name!r}, which the contract no longer takes"
            bump = Bump.PATCH
            rule = "instructions-outdated"
            outdated.append(Change("document", "", rule, why, bump, bump))
    verdict = Verdict((*comparison.verdict.changes, *outdated))
    return replace(comparison, verdict=verdict)


def _write_migration(comparisons: list[_Compared], new: str) -> None:
    """Write the one complete suggestion of *comparisons* into the contract file of
    *new*.

    Raises:
        click.ClickException: there is none, or more than one, or the file cannot be
            written by a program.
    """
    suggested = [each for each in comparisons if each.suggestion is not None]
    if len(suggested) != 1:
        raise click.ClickException(
            "--write is for one contract with a breaking change, and there are "
            f"{len(suggested)}"
        )
    (comparison,) = suggested
    suggestion = comparison.suggestion
    assert suggestion is not None
    if comparison.old_calls is not None and comparison.old_calls.are_taken:
        raise click.ClickException("old calls are taken already; nothing is written")
    if not suggestion.is_complete:
        places = ", ".join(change.path or "/" for change in suggestion.unresolved)
        raise click.ClickException(
            f"the migration is not complete, so nothing is written: {places}; "
            "--suggest prints what is known"
        )
    path = Path(_file_of(comparison.name, new))
    if path.suffix != ".json":
        raise click.ClickException(
            f"only a JSON file is written, not {path.name}; --suggest prints the "
            "migration"
        )
    document = json.loads(path.read_text("utf-8-sig"))
    migrations = [*document.get("migrations", []), suggestion.document]
    document |= {"version": suggestion.document["to"], "migrations": migrations}
    Contract.from_dict(document)  # an unreadable file is not written
    text = json.dumps(document, ensure_ascii=False, indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")
    click.echo(f"Written: {path}", err=True)


def _all_findings(
    comparisons: list[_Compared], broken: dict[str, str], new: str
) -> list[Diagnostic]:
    """Return the changes of all contracts as findings, and the contracts that cannot be
    compared.
    """
    findings = []
    for comparison in comparisons:
        findings += _findings(comparison, new)
    for name, reason in broken.items():
        path = _file_of(name, new)
        message = f"{name} is not compared: {reason}"
        findings.append(Diagnostic("contract-invalid", Severity.ERROR, path, message))
    return findings


def _findings(comparison: _Compared, new: str) -> list[Diagnostic]:
    """Return the changes as findings beside the file of the contract: errors where its
    version is too low for them.
    """
    severity = Severity.ADVICE if comparison.ok else Severity.ERROR
    path = _file_of(comparison.name, new)
    findings = []
    for change in comparison.verdict.changes:
        # If the version is too low, report only the changes that require a higher one.
        if not comparison.ok and change.bump is not comparison.verdict.bump:
            continue
        message = f"{comparison.name}: {change.side} {change.path}: {change.why}"
        finding = Diagnostic(
            change.rule, severity, path, message, hint=str(change.bump)
        )
        findings.append(finding)
    return findings


def _file_of(name: str, new: str) -> str:
    """Return the file with the contract *name*; *new* if there is none."""
    if Path(new).is_file():
        return new
    skill, _, tool = name.partition("/")
    stem = f"contracts/{tool}" if tool else "contract"
    for file in (f"{stem}.json", f"{stem}.yaml", f"{stem}.yml", "SKILL.md"):
        for place in (Path(new, file), Path(new, skill, file)):
            if place.is_file():
                return str(place)
    return new


def _whole(is_removed: bool) -> Verdict:
    word, bump = "added", Bump.MINOR
    if is_removed:
        word, bump = "removed", Bump.MAJOR
    rule, why = f"contract-{word}", f"the contract was {word}"
    return Verdict((Change("document", "", rule, why, bump, bump),))


def _draw(console: Console, comparisons: list[_Compared]) -> None:
    from rich.markup import escape

    if not comparisons:
        console.print("[yellow]Neither side has a contract[/]")
    for comparison in comparisons:
        bump = comparison.verdict.bump
        old_version = comparison.old_version or "no version"
        new_version = comparison.new_version or "no version"
        console.print(
            f"[bold]{escape(comparison.name)}[/] {old_version} → {new_version}  "
            f"[{_COLOURS[bump]}]{str(bump).upper()}[/]"
        )
        for change in comparison.verdict.changes:
            where = escape(f"{change.side} {change.path}".strip())
            console.print(
                f"  [{_COLOURS[change.bump]}]{change.bump!s:5}[/] {where}: "
                f"{escape(change.why)} [dim]({change.rule})[/]"
            )
            if change.counterexample is not NO_COUNTEREXAMPLE:
                console.print(
                    f"        {_what_it_shows(change, comparison.old_calls)}: "
                    f"{escape(short(change.counterexample, 200))}"
                )
        if comparison.old_calls is not None and comparison.old_calls.calls:
            console.print(f"  [dim]{escape(str(comparison.old_calls))}[/]")
        if comparison.suggestion is not None:
            console.print("  [green]migration[/]")
            console.print(
                escape(
                    json.dumps(
                        comparison.suggestion.document, ensure_ascii=False, indent=2
                    )
                )
            )
            for change in comparison.suggestion.unresolved:
                console.print(
                    f"  [yellow]not migrated:[/] {escape(change.path or '/')}: "
                    f"{escape(change.why)}"
                )
        if not comparison.ok:
            console.print(
                f"  [bold red]version too low:[/] {escape(_advice(comparison))}"
            )


def _draw_markdown(console: Console, comparisons: list[_Compared]) -> None:
    for comparison in comparisons:
        notes = release_notes(
            comparison.name,
            comparison.new_version,
            comparison.verdict,
            comparison.old_calls,
        )
        console.print(f"{notes}\n", markup=False, highlight=False, soft_wrap=True)


def _what_it_shows(change: Change, old_calls: OldCalls | None) -> str:
    """Describe the counterexample: if only the practical reading refuses it, the schema
    itself may still admit it.
    """
    if change.rule == "old-call-changed":
        return "taken before, with other arguments now"
    refused = "refused"
    if change.counterexample_reading == "practical":
        refused = "not declared"
    if change.side == "output":
        return f"may be returned now, {refused} before"
    call = old_calls.of(change.counterexample) if old_calls else None
    if call is not None and call.is_taken and call.is_repaired:
        return "accepted before, repaired now"
    return f"accepted before, {refused} now"


def _advice(each: _Compared) -> str:
    if each.required is None:
        return "this change breaks callers; give the contract a version"
    return (
        f"the version must be at least {each.required}, not "
        f"{each.new_version or 'absent'}"
    )
