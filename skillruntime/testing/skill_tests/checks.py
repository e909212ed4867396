"""Check a finished run: one table, with a function for each check.

A script may refuse a valid call in its own words, because a schema cannot express
everything; that is not a failure. A traceback, a result that does not fit, or a file
that is written or missing contrary to the contract is a failure.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillruntime.contract.schemas.secret_names import is_secret_name
from skillruntime.derive.command_line import CommandLine
from skillruntime.derive.script_output import usage_errors
from skillruntime.errors import ErrorCode
from skillruntime.runtime.presentation.model_view import for_model
from skillruntime.runtime.scripts.refusals import shows_refused_path
from skillruntime.testing.skill_tests.hindrances import EXCEPTION, last_line
from skillruntime.testing.skill_tests.inputs.made_files import texts_of
from skillruntime.testing.skill_tests.runs import Run

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract

__all__ = ["CHECKS", "Check", "first_failure", "has_crashed", "usage_message"]

_TRACEBACK = re.compile(r"^Traceback \(most recent call last\):", re.MULTILINE)
_NODE_STACK = re.compile(r"^\s+at .+[:(].+:\d+:\d+\)?$", re.MULTILINE)
_SHELL_FAULT = re.compile(r"line \d+: (?:.*: unbound variable|syntax error)")
_FORM_OF_ARGPARSE = re.compile(
    r"invalid \w+ value|invalid choice|expected .*argument|is required|does not know"
)
"""Messages of argparse itself (Lib/argparse.py of CPython), not of a script through
it.
"""

_NAMED_ARGUMENT = re.compile(r"\bargument (\S+): ")

_PATH = re.compile(r"/[\w.-]+(?:/[\w.@+-]+)+")
_LONGEST_SEARCHED = 20_000
_ESCAPE = re.compile(r"[\x1b\x9b]")
_DECLARING_PARSERS = ("argparse", "click", "parseArgs")

_BUGS = frozenset({"NameError", "UnboundLocalError"})
"""Exceptions that neither an argument nor a file can explain."""

_BUGS_WITHOUT_FILES = frozenset(
    {
        "AttributeError",
        "IndentationError",
        "NotImplementedError",
        "SyntaxError",  # raised by Node's JSON.parse for a file that is not JSON
        "TypeError",
        "ZeroDivisionError",
    }
)
"""Exceptions that unforeseen content of a file may explain, but not a text argument."""

_ABOUT_DATA = frozenset(
    {
        "AssertionError",
        "AttributeError",
        "EOFError",
        "IndexError",
        "IsADirectoryError",
        "KeyError",
        "NotADirectoryError",
        "NotImplementedError",
        "OverflowError",
        "RangeError",
        "RecursionError",
        "StopIteration",
        "SyntaxError",
        "TypeError",
        "UnicodeDecodeError",
        "UnicodeEncodeError",
        "UnicodeError",
        "ValueError",
        "ZeroDivisionError",
    }
)
"""Exceptions of Python and Node that data of an unforeseen form explains."""

_FROM_OUTSIDE = (-9, -15)
"""SIGKILL and SIGTERM: the machine, or a limit, ended the script."""

_MOST_TOKENS = 10_000
"""A page of a result has 8,000 tokens, plus errors and metadata."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its name, its requirement, and a function that returns what is wrong,
    empty if nothing is.
    """

    name: str
    demand: str
    find: Callable[[Run], str]


def _traceback(run: Run) -> str:
    text = run.written
    if not has_crashed(run):
        return ""
    exceptions = [
        name
        for name in EXCEPTION.findall(text)
        if name.endswith(
            ("Error", "Exception", "Warning", "Exit", "Interrupt", "Iteration")
        )
    ]
    if not _may_be_the_call(run, exceptions):
        return f"a valid call ended with a traceback: {last_line(text)}"
    return ""


def has_crashed(run: Run) -> bool:
    """Return whether the script ended with a traceback."""
    text = run.written
    return any(
        pattern.search(text) for pattern in (_TRACEBACK, _NODE_STACK, _SHELL_FAULT)
    )


def _may_be_the_call(run: Run, exceptions: list[str]) -> bool:
    """Return whether a traceback may be caused by made-up input instead of the script:
    by texts that a derived contract does not describe, or by a file.
    """
    names = {name.rpartition(".")[2] for name in exceptions}
    if names & _BUGS:
        return False
    if not run.files and names & _BUGS_WITHOUT_FILES:
        return False
    if not run.contract.is_derived:
        return run.case.kind == "line" and _is_about_a_file(run, exceptions)
    if run.files or run.case.is_invented:
        return True
    # If no parser declares the parameters, a call may lack a needed argument.
    line = run.contract.run.get("command_line", {})
    return line.get("parser", "argparse") not in _DECLARING_PARSERS


def _is_about_a_file(run: Run, exceptions: list[str]) -> bool:
    """Return whether the content of a made file may explain all *exceptions*: its form
    is not a plain one, and no contract describes it. Python writes the exception of a
    library with its module.
    """
    if not run.made or not exceptions:
        return False
    return all("." in name or name in _ABOUT_DATA for name in exceptions)


def _exit(run: Run) -> str:
    code = (run.response.metadata or {}).get("exit_code", 0)
    if not isinstance(code, int) or code in _FROM_OUTSIDE:
        return ""
    if code < 0 and not run.has_ended_well:
        if ErrorCode.TOOL_TIMEOUT not in run.codes:
            return f"the script was ended by signal {-code}"
    return ""


def _output(run: Run) -> str:
    if ErrorCode.INVALID_OUTPUT in run.codes:
        return "; ".join(error.message for error in run.response.errors)[:500]
    before = _text_before_an_error(run)
    if before:
        return f"the script printed more than its JSON error: {before!r:.200}"
    return ""


def _text_before_an_error(run: Run) -> str:
    """Return what a failed script printed before an error in JSON. Such text makes the
    output invalid JSON, so the model does not get the error as an error.
    """
    printed = run.response.data
    if run.has_ended_well or run.contract.is_derived or not isinstance(printed, str):
        return ""
    before, _, rest = printed.rpartition("\n{")
    try:
        document = json.loads(f"{{{rest}")
    except (ValueError, RecursionError):
        return ""
    return before if {"status", "errors"} <= document.keys() else ""


def _usage(run: Run) -> str:
    message = usage_message(run)
    if not message:
        return ""
    if run.contract.is_derived:
        # The script has a rule that its declarations do not contain, or the contract
        # says itself what it does not know of them.
        is_declared = _FORM_OF_ARGPARSE.search(message)
        if not is_declared or _is_about_unread(run):
            return ""
    return f"the script's own parser refuses a valid call: {message}"


def _is_about_unread(run: Run) -> bool:
    """Return whether a usage error is about a part of the script that the derived
    contract lists as unread.
    """
    unread = run.contract.to_dict()["derived"].get("unread", ())
    flags = {
        flag
        for shown in _NAMED_ARGUMENT.findall(run.stderr)
        for flag in shown.split("/")
    }
    if not flags:
        return bool(unread)
    return any(part.partition(":")[0] in flags for part in unread)


def usage_message(run: Run) -> str:
    """Return the usage error with which the script's own parser refused the call; empty
    if it did not.
    """
    metadata = run.response.metadata or {}
    declared = run.contract.run.get("command_line")
    exit_code = metadata.get("exit_code")
    if declared is None or not isinstance(exit_code, int):
        return ""
    line = CommandLine.from_dict(declared)
    errors = usage_errors(exit_code, run.stderr, line)
    return "; ".join(error.message for error in errors)


def _time(run: Run) -> str:
    if ErrorCode.TOOL_TIMEOUT in run.codes and run.has_own_timeout:
        return f"it ran longer than its timeout_seconds ({run.timeout:g})"
    return ""


def _read_only(run: Run) -> str:
    if not run.contract.annotations.get("read_only"):
        return ""
    if run.changed:
        listed = ", ".join([*run.changed][:5])
        return f"it is read_only and changed files: {listed}"
    if not run.has_ended_well and has_crashed(run):
        if shows_refused_path(run.written, ()):
            return f"it is read_only and tried to write: {last_line(run.written)}"
    return ""


def _files(run: Run) -> str:
    """Find a path in the result that does not lead to a file."""
    if not run.has_ended_well:
        return ""
    own = {text for text in _path_texts(run.contract, run.case.arguments)}
    declared: set[str] = set()
    if run.contract.output is not None:
        document = run.contract.output.document
        declared = set(_paths_in(document, run.response.data))
    for text in texts_of(run.response.data):
        if text in own and text not in run.files:
            declared.add(text)
    for path in sorted(declared):
        if path and not _is_there(path, run):
            return f"the result names the file {path!r}, which does not exist"
    return ""


def _path_texts(contract: Contract, arguments: Any) -> Iterator[str]:
    yield from _paths_in(contract.input.document, arguments)


def _paths_in(schema: Any, value: Any) -> Iterator[str]:
    """Yield the texts in *value* for which *schema* says ``format: path``."""
    if not isinstance(schema, dict):
        return
    if isinstance(value, str) and schema.get("format") == "path":
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _paths_in(schema.get("items"), item)
    elif isinstance(value, dict):
        properties = schema.get("properties", {})
        for name, item in value.items():
            part = properties.get(name, schema.get("additionalProperties"))
            yield from _paths_in(part, item)


def _is_there(path: str, run: Run) -> bool:
    plain = os.path.normpath(path)
    for known in (*run.after, *run.files):
        if known == plain or known.endswith(f"/{plain}") or plain.endswith(known):
            return True
        if known.startswith(f"{plain}/"):
            return True
    return any(os.path.lexists(Path(place) / plain) for place in run.places)


def _secret(run: Run) -> str:
    answer = json.dumps(run.response.to_dict(), default=str)
    for name, value in os.environ.items():
        if len(value) >= 8 and is_secret_name(name) and value in answer:
            return f"the answer has the value of the variable {name}"
    return ""


def _escape(run: Run) -> str:
    for text in texts_of(run.response.data):
        if _ESCAPE.search(text):
            return "the answer has escape sequences of a terminal"
    return ""


def _outside(run: Run) -> str:
    """Find a path on this machine that does not belong to the call."""
    places = (str(Path.home()), str(Path.cwd()), tempfile.gettempdir())
    sent = "\n".join(texts_of(run.case.arguments))
    for text in texts_of(run.response.data):
        for path in _PATH.findall(text[:_LONGEST_SEARCHED]):
            if path in sent or path.startswith(run.places):
                continue
            is_of_machine = path.startswith(tuple(f"{place}/" for place in places))
            if is_of_machine and os.path.lexists(path):
                return f"the answer has a path outside skill and workspace: {path}"
    return ""


def _tokens(run: Run) -> str:
    from skillruntime.tokens.counter import count

    shown = for_model(run.response).to_dict()
    metadata = dict(shown.get("metadata") or {})
    page = metadata.pop("page", None)
    shown["metadata"] = metadata
    if page is not None:
        shown["data"] = page
    text = json.dumps(shown, ensure_ascii=False, default=str)
    if len(text) < _MOST_TOKENS:  # a token has at least one character
        return ""
    tokens = count(text).tokens
    if tokens > _MOST_TOKENS:
        return f"a model reads {tokens:,} tokens; at most {_MOST_TOKENS:,} are allowed"
    return ""


CHECKS = (
    Check("traceback", "A valid call ends without a traceback.", _traceback),
    Check("exit", "No call ends by a signal.", _exit),
    Check("output", "The output fits its schema.", _output),
    Check("usage", "The script takes what its contract takes.", _usage),
    Check("time", "A call ends within timeout_seconds.", _time),
    Check("read-only", "A read_only callable changes no file.", _read_only),
    Check("files", "The files that a result names are there.", _files),
    Check("secret", "No answer has the value of a secret variable.", _secret),
    Check("escape", "No answer has escape sequences.", _escape),
    Check("outside", "No answer has a path outside skill and workspace.", _outside),
    Check("tokens", "What a model reads stays within its tokens.", _tokens),
)
"""The checks of one run. The checks of several runs are in `several_runs`:
``idempotent``, ``bound``, ``refused``, ``repair``, ``old-version``, ``example`` and
``case``.
"""


def first_failure(run: Run) -> Iterable[tuple[str, str]]:
    """Yield the name and the message of each check that *run* fails."""
    for check in CHECKS:
        message = check.find(run)
        if message:
            yield check.name, message
