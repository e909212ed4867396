"""Find out why a call could not be a test: what this machine or this command lacked."""

from __future__ import annotations

import re
import shutil

from skillruntime.errors import ErrorCode
from skillruntime.runtime.scripts.readiness import Missing
from skillruntime.runtime.scripts.refusals import (
    shows_refused_network,
    shows_refused_path,
)
from skillruntime.testing.skill_tests.results import Hindrance
from skillruntime.testing.skill_tests.runs import Run

__all__ = [
    "EXCEPTION",
    "LONGEST_CALL",
    "MISSING_FILE",
    "NO_DIRECTORY",
    "hindrance_of",
    "hindrance_of_machine",
    "hindrance_of_missing",
    "last_line",
    "missing_file_lines",
]

LONGEST_CALL = 20.0
"""The time limit in seconds of a call whose contract does not state one."""

EXCEPTION = re.compile(r"^((?:\w+\.)*[A-Z]\w*)(?::[^\n]*)?$", re.MULTILINE)
"""A line that names an exception, as Python and Node print it."""

MISSING_FILE = re.compile(
    r"[Nn]o such file or directory|\bENOENT\b|does not exist|[Nn]ot found"
)
_END_OF_INPUT = re.compile(r"EOFError: EOF when reading a line")
"""The error of Python's `input` without a terminal."""

_NO_JSON_INPUT = re.compile(r"^SyntaxError: Unexpected end of JSON input", re.MULTILINE)
"""The error of Node's `JSON.parse` for an empty text."""

NO_DIRECTORY = re.compile(r"[Nn]ot a (?:valid )?directory|\bENOTDIR\b")
_MISSING_MODULE = re.compile(
    r"(?:Cannot find (?:package|module)|No module named) '([^']{1,100})'"
)
_UNKNOWN_COMMAND = re.compile(
    r"(?:^|: )([\w.+-]{1,60}): command not found$"
    r"|: (?:line )?\d{1,6}: ([\w.+-]{1,60}): not found$",
    re.MULTILINE,
)
"""A missing program, as shells report it."""

_UNKNOWN_PROGRAM = re.compile(r"No such file or directory: '([\w+-]{1,60})'$", re.M)
_STARTS_A_PROGRAM = re.compile(r'^  File "[^"\n]{0,300}\bsubprocess\.py"', re.M)
"""A missing program, as `subprocess` reports it."""

_READ_ONLY = re.compile(r"[Rr]ead-only file system|\bEROFS\b")
_NETWORK_EXCEPTIONS = re.compile(
    r"URLError|gaierror|Connect\w*Error|ConnectionError|SSLError|ProxyError"
    r"|TypeError: fetch failed"
)
"""Exceptions of Python, and the one of Node's `fetch`."""


def hindrance_of(run: Run) -> Hindrance | None:
    """Return the hindrance if *run* failed because this machine, this command or the
    call lacked something.
    """
    hindrance = hindrance_of_machine(run)
    if hindrance is not None or run.has_ended_well:
        return hindrance
    text = run.written
    if _END_OF_INPUT.search(text):
        return Hindrance(
            "it waits for a person to type something",
            "call it without its interactive option",
        )
    if run.contract.is_derived and not run.files and _NO_JSON_INPUT.search(text):
        return Hindrance(
            "it reads a JSON document from its input, and a call sends none",
            "write a contract for it",
        )
    missing_files = missing_file_lines(run)
    if missing_files:
        return Hindrance(
            f"it needs files that were not there: {missing_files[0].strip()[:300]}",
            "put fixtures into the skill's tests/, and state format: path",
        )
    return None


def hindrance_of_machine(run: Run) -> Hindrance | None:
    """Return the hindrance if *run* failed because this machine or this command lacked
    something, and not because of its arguments and files.
    """
    if run.has_ended_well:
        return None
    for error in run.response.errors:
        if error.code in (ErrorCode.TOOL_NOT_AVAILABLE, ErrorCode.ACCESS_DENIED):
            return Hindrance(error.message, _remedy(error.suggested_action or ""))
    text = run.written
    if shows_refused_network(text) or _NETWORK_EXCEPTIONS.search(text):
        return Hindrance("it needs the network", "add --network")
    missing = _MISSING_MODULE.search(text)
    if missing is not None:
        return Hindrance(
            f"it imports {missing[1]!r}, which is not installed", "install it"
        )
    program = _missing_program(run)
    if program:
        return Hindrance(f"it runs {program!r}, which is not installed", "install it")
    if shows_refused_path(text, ()) or _READ_ONLY.search(text):
        return Hindrance(
            "it needs a directory outside the workspace",
            "add --trust, which runs it without a sandbox",
        )
    if ErrorCode.TOOL_TIMEOUT in run.codes:
        if run.timeout < LONGEST_CALL and not run.has_own_timeout:
            return Hindrance("the time ended during a call", "add --seconds")
        return Hindrance(
            f"a call did not end within {run.timeout:g} seconds",
            "state run.timeout_seconds in its contract",
        )
    return None


def _missing_program(run: Run) -> str:
    """Return the name of a program that the script did not find; empty if there is
    none.
    """
    found = [match[1] or match[2] for match in _UNKNOWN_COMMAND.finditer(run.written)]
    if _STARTS_A_PROGRAM.search(run.written):
        found += _UNKNOWN_PROGRAM.findall(run.written)
    for name in found:
        if shutil.which(name) is None:
            return name
    return ""


def hindrance_of_missing(missing: Missing) -> Hindrance:
    """Return the hindrance for *missing*, which the runtime found before any call, in
    words for the skill's author.
    """
    return Hindrance(missing.message, _remedy_of_missing(missing.kind, missing.action))


def _remedy_of_missing(kind: str, action: str) -> str:
    if kind == "grant" and "network=" in action:
        return "add --network"
    if kind in ("grant", "environment"):
        return "set the variable, and add --env NAME"
    words = action.removeprefix("Ask the user to ").removeprefix("Tell the user to ")
    return words[:1].lower() + words[1:]


def missing_file_lines(run: Run) -> list[str]:
    """Return the lines in which the script reports a missing file."""
    return [line for line in run.written.splitlines() if MISSING_FILE.search(line)]


def _remedy(action: str) -> str:
    """Return *action*, which is written for a model, as a sentence for the author."""
    if "environment=" in action:
        return "add --env NAME"
    if "network=" in action:
        return "add --network"
    if "prepare" in action or "install" in action:
        return action.replace("Ask the user to ", "").replace("Tell the user to ", "")
    return action


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    with_names = [line for line in lines if EXCEPTION.match(line)]
    return ([*with_names, *lines[-1:]] or [""])[0][:300]
