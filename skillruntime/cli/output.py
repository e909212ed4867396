"""What every command prints with: one JSON document, or the same drawn for a person."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import click

from skillruntime.contract import SkillResponse
from skillruntime.diagnostic import Diagnostic
from skillruntime.errors import ErrorCode, SkillRuntimeError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "EXIT_FAILED",
    "EXIT_OK",
    "EXIT_TRY_AGAIN",
    "draw_response",
    "exit_code",
    "fail",
    "json_option",
    "print_result",
    "to_json",
    "writable",
]

EXIT_OK, EXIT_FAILED, EXIT_TRY_AGAIN = 0, 1, 3

_MAY_PASS = {
    *(ErrorCode.TOOL_TIMEOUT, ErrorCode.EXECUTION_TIMEOUT, ErrorCode.RATE_LIMIT_EXCEEDED),
    *(ErrorCode.FETCH_FAILED, ErrorCode.SEARCH_API_ERROR),
}
_MOST_ERRORS = 5  # drawn for a person; --json has them all

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")


def print_result(document: Any, draw: Callable[[Console], None], *, as_json: bool) -> None:
    """Print *document* as JSON, or let *draw* show it to a person."""
    if as_json:
        click.echo(to_json(document))
    else:
        draw(console())


def to_json(document: Any) -> str:
    r"""Return *document* as JSON that can always be written: bytes of a path that are not UTF-8 become escapes.

    >>> to_json({"path": "\udcff"})
    '{\n  "path": "\\udcff"\n}'
    """
    return writable(json.dumps(document, ensure_ascii=False, indent=2, default=str))


def writable(text: str) -> str:
    """Return *text* with escapes for bytes that are not UTF-8, which file names may contain."""
    return text.encode("utf-8", "backslashreplace").decode()


def fail(error: SkillRuntimeError, *, as_json: bool) -> NoReturn:
    """Print *error* as the envelope and exit with its code."""
    response = SkillResponse.failed(*error.to_errors())
    if as_json:
        click.echo(to_json(response.to_dict()))
    else:
        draw_response(console(stderr=True), response)
    sys.exit(exit_code(response))


def exit_code(response: SkillResponse) -> int:
    """Return 0 for a result, 3 where the same call may succeed later, else 1.

    >>> exit_code(SkillResponse("partial_success", data=1)), exit_code(SkillResponse.failed())
    (0, 1)
    """
    if response.ok:
        return EXIT_OK
    errors = response.errors
    may_pass = bool(errors) and all(error.recoverable and error.code in _MAY_PASS for error in errors)
    return EXIT_TRY_AGAIN if may_pass else EXIT_FAILED


def console(*, stderr: bool = False) -> Console:
    """Return the console to draw on."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=not sys.stdout.isatty())


def draw_response(console: Console, response: SkillResponse) -> None:
    """Draw an envelope: its status, the repairs, and each error with its suggested action."""
    from rich.markup import escape

    metadata = response.metadata or {}
    colour = {"success": "green", "partial_success": "yellow"}.get(response.status, "red")
    name = escape(str(metadata.get("skill", "")))
    version = f" [dim]{escape(str(metadata['version']))}[/]" if "version" in metadata else ""
    took = f" [dim]{metadata['duration_ms']} ms[/]" if "duration_ms" in metadata else ""
    console.print(f"[bold {colour}]{response.status}[/] {name}{version}{took}")
    for line in notes(metadata):
        console.print(f"  [cyan]{escape(line)}[/]")
    errors = response.errors
    for error in errors[:_MOST_ERRORS]:
        console.print(f"  [bold red]{error.code.value}[/] {escape(error.message)}")
        if error.suggested_action:
            console.print(f"    [green]→[/] {escape(error.suggested_action)}")
    if len(errors) > _MOST_ERRORS:
        console.print(f"  [dim]and {len(errors) - _MOST_ERRORS} more errors (--json shows all)[/]")


def notes(metadata: dict[str, Any]) -> Iterable[str]:
    """Yield the migration, repairs, warnings and files of the metadata, one line each."""
    if "migrated_from" in metadata:
        yield f"migrated from {metadata['migrated_from']}"
    for repair in metadata.get("repairs", []):
        where = repair["path"] or "the text"
        yield f"repaired {where}: {short(repair['before'])} → {short(repair['after'])} ({repair['rule']})"
    for warning in metadata.get("warnings", []):
        yield f"warning: {warning}"
    for file in metadata.get("files", []):
        yield f"file: {file['path']} ({file['media_type']}, {file['bytes']:,} bytes)"


def short(value: Any, limit: int = 60) -> str:
    """Return *value* as JSON of at most *limit* characters.

    >>> short({"a": "x" * 100}, 20)
    '{"a": "xxxxxxxxxxxx…'
    """
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def draw_diagnostics(console: Console, diagnostics: Iterable[Diagnostic]) -> None:
    """Draw findings, one line each."""
    from rich.markup import escape

    colours = {"error": "red", "warning": "yellow", "advice": "cyan"}
    for diagnostic in diagnostics:
        console.print(f"[{colours[diagnostic.severity.value]}]{escape(str(diagnostic))}[/]")
