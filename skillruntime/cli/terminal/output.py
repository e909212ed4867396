"""Print the result of a command: as one JSON document, or drawn for a person."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

import click

from skillruntime.cli.terminal.text import to_json, without_controls, writable
from skillruntime.contract import SkillResponse
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import ErrorCode, SkillRuntimeError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "CLOSE_BRACKETS",
    "EXIT_FAILED",
    "EXIT_OK",
    "EXIT_TRY_AGAIN",
    "EXIT_USAGE",
    "draw_response",
    "echo",
    "exit_code",
    "fail",
    "is_drawn",
    "json_option",
    "print_json",
    "print_result",
    "print_rows",
    "to_github",
    "to_json",
    "with_progress",
    "working",
    "writable",
]

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_TRY_AGAIN = 0, 1, 2, 3

# An error with one of these codes that also calls itself recoverable may be gone when
# the same call is made again. TOOL_NOT_AVAILABLE is recoverable only for a server that
# cannot be reached; a missing command or package is not.
_MAY_PASS = {
    ErrorCode.TOOL_TIMEOUT,
    ErrorCode.EXECUTION_TIMEOUT,
    ErrorCode.RATE_LIMIT_EXCEEDED,
    ErrorCode.FETCH_FAILED,
    ErrorCode.SEARCH_API_ERROR,
    ErrorCode.TOOL_NOT_AVAILABLE,
}
CLOSE_BRACKETS = "Close every bracket and quote, and put the object in single quotes"
"""What a person does about arguments that end early; a model is also asked to shorten
its values.
"""

_MOST_ERRORS = 5  # drawn for a person; --json has them all
_MOST_OF_A_RULE = 20  # findings, likewise

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Item = TypeVar("_Item")
_FEW = 200  # skills that are read in less than a second
_DRAWN = {"FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}  # rich asks for these too


def json_option(command: _Command) -> _Command:
    """Add ``--json`` to a command, as its argument ``as_json``."""
    option = click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document on stdout."
    )
    return option(command)


def print_result(
    document: Any, draw: Callable[[Console], None], *, as_json: bool
) -> None:
    """Print *document* as JSON, or let *draw* show it to a person."""
    # Never both: a program that asked for JSON gets one document and nothing else.
    if as_json:
        click.echo(to_json(document))
    else:
        draw(console())


def print_json(data: Any, *, as_json: bool = False) -> None:
    """Print *data* as JSON: in colours on a terminal, unless a program asked for it
    with ``--json``.
    """
    if sys.stdout.isatty() and not as_json:
        console().print_json(to_json(data))
    else:
        click.echo(to_json(data))


def print_rows(rows: Iterable[Sequence[object]]) -> None:
    """Print *rows* for another program: a line each, its fields separated by tabs, on
    stdout.
    """
    # cut, awk and sort count tabs and lines: neither may be inside a field.
    lines = ["\t".join([" ".join(str(field).split()) for field in row]) for row in rows]
    if lines:
        click.echo(writable(without_controls("\n".join(lines))))


def echo(text: str, *, err: bool = False) -> None:
    """Print *text*: as it is to a pipe or a file, without control characters to a
    terminal.
    """
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = without_controls(text)
    click.echo(text, err=err)


def fail(
    error: SkillRuntimeError, *, as_json: bool, code: int | None = None
) -> NoReturn:
    """Print *error* as the envelope and exit with *code*, by default that of the
    error.
    """
    errors = error.to_errors()
    if error.code is ErrorCode.TRUNCATED_INPUT:
        errors = tuple(
            replace(each, suggested_action=CLOSE_BRACKETS) for each in errors
        )
    response = SkillResponse.failed(*errors)
    if as_json:
        click.echo(to_json(response.to_dict()))
    elif error.code is ErrorCode.INTERNAL_ERROR:  # a code that is meaningless to people
        click.echo(f"Error: {error}", err=True)
    else:
        draw_response(response)
    if code is None:
        code = exit_code(response)
    sys.exit(code)


def exit_code(response: SkillResponse) -> int:
    """Return 0 for a result, 3 if the same call may succeed later, else 1.

    >>> exit_code(SkillResponse("partial_success", data=1))
    0
    >>> exit_code(SkillResponse.failed())
    1
    """
    if response.ok:
        return EXIT_OK
    errors = response.errors
    may_pass = bool(errors) and all(
        error.recoverable and error.code in _MAY_PASS for error in errors
    )
    if may_pass:
        return EXIT_TRY_AGAIN
    return EXIT_FAILED


def console(*, stderr: bool = False) -> Console:
    """Return the console to draw on; no control character of a text reaches the
    terminal through it.
    """
    # rich takes 40 ms: --json does without.
    from rich.console import Console

    from skillruntime.cli.terminal.filter import WithoutControls

    # Wrapped lines would have to be joined again by whatever reads the pipe.
    drawn = Console(stderr=stderr, highlight=False, soft_wrap=not sys.stdout.isatty())
    drawn.push_render_hook(WithoutControls())
    return drawn


def is_drawn(stream: TextIO) -> bool:
    """Return whether output on *stream* is drawn for a person, without importing
    rich.
    """
    return stream.isatty() or bool(_DRAWN & os.environ.keys())


def with_progress(items: Iterable[_Item], description: str) -> Iterable[_Item]:
    """Return *items*; if there are many, a bar on stderr shows how many are done."""
    listed = list(items)
    if len(listed) <= _FEW:
        return listed
    if not _shows_progress():
        return listed
    out = console(stderr=True)
    if not out.is_terminal:
        return listed
    from rich.progress import track

    return track(listed, description, console=out, transient=True)


def _shows_progress() -> bool:
    """Return whether a bar may be shown: in a log it would be a thousand lines, and a
    program that asks for JSON does not see it.
    """
    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("as_json"):
        return False
    return is_drawn(sys.stderr) and os.environ.get("TERM") != "dumb"


def working(description: str) -> AbstractContextManager[object]:
    """Return a context in which a terminal shows that long work goes on: *description*
    and a moving sign on stderr.
    """
    if not _shows_progress():
        return nullcontext()
    out = console(stderr=True)
    if not out.is_terminal:
        return nullcontext()
    return out.status(description)


def draw_response(response: SkillResponse) -> None:
    """Draw an envelope on stderr: its status, the repairs, each error with its
    suggested action and, if needed, the script's stderr.
    """
    metadata = response.metadata or {}
    colour = {"success": "green", "partial_success": "yellow"}.get(
        response.status, "red"
    )
    head = [
        _styled(response.status, fg=colour, bold=True),
        _styled(metadata.get("skill", "")),
    ]
    if metadata.get("version"):
        head.append(_styled(metadata["version"], dim=True))
    if "duration_ms" in metadata:
        head.append(_styled(f"{metadata['duration_ms']} ms", dim=True))
    if "sandbox" in metadata:
        head.append(_styled(f"sandbox: {metadata['sandbox']}", dim=True))
    ended = _exit_of(metadata)
    if ended:
        head.append(_styled(ended, dim=True))
    lines = [head]
    lines += [[" ", _styled(line, fg="cyan")] for line in notes(metadata)]
    for error in response.errors[:_MOST_ERRORS]:
        code = _styled(error.code.value, fg="red", bold=True)
        lines.append([" ", code, _styled(error.message)])
        if error.suggested_action:
            arrow = _styled("→", fg="green")
            lines.append(["   ", arrow, _styled(error.suggested_action)])
    more = len(response.errors) - _MOST_ERRORS
    if more > 0:
        rest = f"and {more} more errors (--json shows all)"
        lines.append([" ", _styled(rest, dim=True)])
    for line in _stderr_lines(response):
        lines.append([" ", _styled(line, dim=True)])
    text = "\n".join(" ".join(line).rstrip() for line in lines)
    # click takes the colours out unless stderr is a terminal.
    colours = False if "NO_COLOR" in os.environ else None
    click.echo(writable(text), err=True, color=colours)


def _stderr_lines(response: SkillResponse) -> list[str]:
    """Return the script's stderr if its output does not say enough."""
    if "stderr" not in (response.metadata or {}):
        return []
    from skillruntime.runtime.presentation.model_view import (
        for_model,  # most answers have none
    )

    shown = for_model(response).metadata or {}
    return str(shown.get("stderr", "")).splitlines()


def _exit_of(metadata: dict[str, Any]) -> str:
    """Describe how the script ended; empty if the exit code is 0."""
    if "exit_code" not in metadata:
        return ""
    ended = f"exit code {metadata['exit_code']}"
    if "exit_meaning" in metadata:
        ended = f"{ended}: {metadata['exit_meaning']}"
    return ended


def _styled(text: object, **style: Any) -> str:
    return click.style(without_controls(str(text)), **style)


def notes(metadata: dict[str, Any]) -> Iterable[str]:
    """Yield the migration, repairs, warnings and files of the metadata, one line
    each.
    """
    if "migrated_from" in metadata:
        yield f"migrated from {metadata['migrated_from']}"
    for repair in metadata.get("repairs", []):
        if not repair["path"] and repair["after"] is None:
            # A repair of the text itself, such as a trailing comma, has no place and no
            # value among the arguments.
            yield f"repaired the text {short(repair['before'])} ({repair['rule']})"
            continue
        where = repair["path"] or "the arguments"
        before, after = short(repair["before"]), short(repair["after"])
        yield f"repaired {where}: {before} → {after} ({repair['rule']})"
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
    if len(text) > limit:
        return text[: limit - 1] + "…"
    return text


def draw_diagnostics(console: Console, diagnostics: Iterable[Diagnostic]) -> None:
    """Draw findings, one line each; paths below the current directory are relative to
    it.
    """
    from rich.markup import escape

    from skillruntime.catalog.visibility import visible_line

    # What the shell shows, links not followed.
    current_directory = f"{os.getcwd()}{os.sep}"  # noqa: PTH109
    colours = {"error": "red", "warning": "yellow", "advice": "cyan"}
    some, left = _some_of_each_rule(diagnostics)
    for diagnostic in some:
        # Not wrapped: editors and CI read "path:line:" at the start of a line, and a
        # finding is one line.
        # Escaped: it quotes what a contract says.
        line = escape(visible_line(str(diagnostic).removeprefix(current_directory)))
        console.print(f"[{colours[diagnostic.severity.value]}]{line}[/]")
    for line, _ in left:
        console.print(line, style="dim", markup=False)


def _some_of_each_rule(
    diagnostics: Iterable[Diagnostic],
) -> tuple[list[Diagnostic], list[tuple[str, Severity]]]:
    """Return the first findings of each rule and severity, and a line with the number
    of further ones.
    """
    counted: Counter[tuple[str, Severity]] = Counter()
    some = []
    for diagnostic in diagnostics:
        counted[diagnostic.rule, diagnostic.severity] += 1
        if counted[diagnostic.rule, diagnostic.severity] <= _MOST_OF_A_RULE:
            some.append(diagnostic)
    lines = []
    for (rule, severity), number in counted.items():
        left = number - _MOST_OF_A_RULE
        if left > 0:
            lines.append(
                (f"and {left:,} more of [{rule}] (--json shows all)", severity)
            )
    return some, lines


_GITHUB = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "notice",
}


def to_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Return workflow commands that GitHub shows next to the lines of a pull request.

    >>> place = ("pdf/SKILL.md", "100% wrong", 2, 7)
    >>> to_github([Diagnostic("name-form", Severity.ERROR, *place)])
    '::error file=pdf/SKILL.md,line=2,col=7,title=name-form::100%25 wrong'
    """
    current_directory = f"{os.getcwd()}{os.sep}"  # noqa: PTH109
    lines = []
    some, left = _some_of_each_rule(diagnostics)
    for diagnostic in some:
        places = {
            "file": diagnostic.path.removeprefix(current_directory),
            "line": diagnostic.line,
            "col": diagnostic.column,
            "title": diagnostic.rule,
        }
        fields = [
            f"{key}={_escaped(value, _IN_FIELDS)}"
            for key, value in places.items()
            if value is not None
        ]
        message = diagnostic.message
        if diagnostic.hint:
            message += f"; {diagnostic.hint}"
        lines.append(
            f"::{_GITHUB[diagnostic.severity]} "
            f"{','.join(fields)}::{_escaped(message, _IN_MESSAGES)}"
        )
    for line, severity in left:
        lines.append(f"::{_GITHUB[severity]}::{line}")
    return writable("\n".join(lines))


# actions/toolkit, packages/core/src/command.ts. The percent sign first: the other codes
# contain it.
_IN_MESSAGES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_FIELDS = {**_IN_MESSAGES, ":": "%3A", ",": "%2C"}


def _escaped(value: object, codes: dict[str, str]) -> str:
    text = str(value)
    for character, code in codes.items():
        text = text.replace(character, code)
    return text
