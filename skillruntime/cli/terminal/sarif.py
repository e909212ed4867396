"""Findings as SARIF 2.1.0 (OASIS), which GitHub and other hosts of code show beside the
lines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from skillruntime import __version__
from skillruntime.cli.terminal.output import to_json
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["sarif_option", "to_sarif", "write_sarif"]

_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "note",
}

_Command = TypeVar("_Command", bound=Callable[..., Any])


def sarif_option(command: _Command) -> _Command:
    """Add ``--sarif`` and ``--sarif-file`` to a command, as its arguments ``as_sarif``
    and ``sarif_file``.
    """
    printed = click.option(
        "--sarif", "as_sarif", is_flag=True, help="Print the findings as SARIF 2.1.0."
    )
    written = click.option(
        "--sarif-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        callback=_require_directory,
        help="Write the findings as SARIF 2.1.0 to FILE too.",
    )
    return printed(written(command))


def _require_directory(
    context: click.Context, parameter: click.Parameter, path: Path | None
) -> Path | None:
    """Return *path*, whose directory must exist: a command may take minutes until it
    writes the file.
    """
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"{path}: there is no such directory")
    return path


def write_sarif(findings: Sequence[Diagnostic], path: Path | None) -> None:
    """Write the SARIF log of *findings* to *path*; do nothing if it is None.

    Raises:
        click.UsageError: the file cannot be written.
    """
    if path is None:
        return
    try:
        path.write_text(to_json(to_sarif(findings)) + "\n", encoding="utf-8")
    except OSError as error:
        raise click.UsageError(
            f"{path} cannot be written: {error.strerror or error}"
        ) from None


def to_sarif(findings: Sequence[Diagnostic]) -> dict[str, Any]:
    """Return the SARIF log of *findings*; paths below the current directory are
    relative to it.

    >>> place = ("pdf/SKILL.md", "not lowercase", 2, 7)
    >>> log = to_sarif([Diagnostic("name-form", Severity.ERROR, *place)])
    >>> log["runs"][0]["results"][0]["ruleId"]
    'name-form'
    """
    rules = dict.fromkeys(finding.rule for finding in findings)
    driver = {
        "name": "skillruntime",
        "version": __version__,
        "rules": [{"id": rule} for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "results": [_result(finding) for finding in findings],
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }


def _result(finding: Diagnostic) -> dict[str, Any]:
    place: dict[str, Any] = {
        "artifactLocation": {
            "uri": quote(os.path.relpath(finding.path).replace(os.sep, "/"))
        }
    }
    if finding.line is not None:
        place["region"] = {
            "startLine": finding.line,
            "startColumn": finding.column or 1,
        }
    message = finding.message
    if finding.hint:
        message += f"; {finding.hint}"
    return {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": message},
        "locations": [{"physicalLocation": place}],
    }
