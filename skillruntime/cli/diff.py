"""``skillruntime diff OLD NEW``: what changed between two versions of contracts, and
whether the version covers it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
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
from skillruntime.cli.terminal.sarif import sarif_option, to_sarif
from skillruntime.compatibility import (
    NO_COUNTEREXAMPLE,
    Bump,
    Change,
    Suggestion,
    Verdict,
    compare,
    suggest_migration,
)
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


@dataclass(frozen=True, slots=True)
class _Compared:
    """One contract on both sides."""

    name: str
    old_version: str | None
    new_version: str | None
    verdict: Verdict
    suggestion: Suggestion | None = None

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
@sarif_option
@json_option
def command(old: str, new: str, suggest: bool, as_sarif: bool, as_json: bool) -> None:
    """Compare OLD with NEW: list the changes, the version part that each raises, and a
    value that proves it.

    OLD and NEW are contract files, skills, directories of skills, or git revisions
    (v1.0, or v1.0:skills/digest). Exits with 1 when a declared version is too low for
    its changes.
    """
    try:
        comparisons = _compare(*read_sources(old, new), suggest=suggest)
        # Exit 1 means that the version is too low, not that something changed: a build
        # may break callers on purpose.
        ok = all(comparison.ok for comparison in comparisons)
        contracts = [comparison.to_dict() for comparison in comparisons]
        document = {"ok": ok, "contracts": contracts}
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_sarif:
        findings = []
        for comparison in comparisons:
            findings += _findings(comparison, new)
        document = to_sarif(findings)
    print_result(
        document,
        lambda console: _draw(console, comparisons),
        as_json=as_json or as_sarif,
    )
    if not ok:
        sys.exit(EXIT_FAILED)


def _compare(old: Source, new: Source, *, suggest: bool) -> list[_Compared]:
    # One file or skill is compared with another whatever their names: an old copy lies
    # in another directory. Skills of a directory are paired by name, so that a removed
    # one is found.
    has_one_each = len(old.contracts) == len(new.contracts) == 1
    if has_one_each and (old.is_single or new.is_single):
        pairs = list(zip(old.contracts, new.contracts, strict=True))
    else:
        names = dict.fromkeys([*old.contracts, *new.contracts])
        pairs = [(name, name) for name in names]
    comparisons = []
    for before, after in pairs:
        # What is gone from a skill is judged by the version of the rest.
        rest = None
        if new.is_single:
            rest = next(iter(new.versions.values()), None)
        versions = (old.versions.get(before), new.versions.get(after, rest))
        # A callable that is gone breaks its callers (MAJOR); a new one is an addition
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
        comparisons.append(_Compared(after, *versions, verdict, suggestion))
    return comparisons


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
    """Return the file that has the contract *name*; *new* where there is none."""
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
                    f"        {_what_it_shows(change)}: "
                    f"{escape(short(change.counterexample, 200))}"
                )
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


def _what_it_shows(change: Change) -> str:
    """Return what the counterexample is: by the practical reading alone, the schema
    itself may still admit it.
    """
    refused = "refused"
    if change.counterexample_reading == "practical":
        refused = "not declared"
    if change.side == "output":
        return f"may be returned now, {refused} before"
    return f"accepted before, {refused} now"


def _advice(each: _Compared) -> str:
    if each.required is None:
        return "this change breaks callers; give the contract a version"
    return (
        f"the version must be at least {each.required}, not "
        f"{each.new_version or 'absent'}"
    )
