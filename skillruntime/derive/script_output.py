"""What an ordinary script leaves behind, as a result or an error: stdout, stderr and
the exit code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from skillruntime.derive.command_line import CommandLine
from skillruntime.errors import ErrorCode, SkillError

__all__ = ["TEXT_LIMIT", "read_failure", "read_output"]

TEXT_LIMIT = 20_000
"""Characters of plain text that are kept of stdout."""

_ARGPARSE = re.compile(r"error: argument (?P<name>[^:\n]+): (?P<said>[^\n]+)")
_REQUIRED = re.compile(
    r"error: the following arguments are required: (?P<names>[^\n]+)"
)
_ONE_OF = re.compile(r"error: one of the arguments (?P<names>[^\n]+) is required")
_UNRECOGNISED = re.compile(r"error: unrecognized arguments: (?P<said>[^\n]+)")
_CLICK = re.compile(
    r"(?:Error: |│ )Invalid value for (?:argument )?'(?P<name>[^\n]+?)': (?P<said>[^\n│]+)"
)
_CLICK_MISSING = re.compile(
    r"(?:Error: |│ )Missing (?:option|argument|parameter) '(?P<name>[^'\n]+)'"
)
_USAGE_EXITS = (2, 64)


def read_output(stdout: str, *, limit: int = TEXT_LIMIT) -> Any:
    """Return the data that a script printed: one JSON value, or its text as
    ``{"stdout": ...}``.

    Text beyond *limit* is cut in the middle, where it matters least, and ``cut`` says
    how many characters are missing. Several lines that are each a JSON object are a
    list of them.

    >>> read_output('{"pages": 3}')
    {'pages': 3}
    >>> read_output("done")
    {'stdout': 'done'}
    >>> read_output("x" * 30, limit=10)
    {'stdout': 'xxxxx\\n[...]\\nxxxxx', 'cut': 20}
    """
    # Scripts end their output with a newline.
    text = stdout.strip()
    if text[:1] in ("{", "["):
        try:
            return json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            pass
        # JSON Lines: one object a line.
        lines = text.splitlines()
        # One line alone was tried above.
        if len(lines) > 1 and all(line.startswith("{") for line in lines):
            try:
                return [json.loads(line, parse_constant=_refuse) for line in lines]
            except (ValueError, RecursionError):
                pass
    if len(text) <= limit:
        return {"stdout": text}
    # The start says what it is, the end how it came out.
    half = limit // 2
    return {
        "stdout": f"{text[:half]}\n[...]\n{text[-half:]}",
        "cut": len(text) - 2 * half,
    }


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def read_failure(
    exit_code: int, stderr: str, command_line: CommandLine | None = None
) -> tuple[SkillError, ...]:
    """Return what a script's exit code and stderr say: of which parameter it complains,
    or that it failed.

    A usage error of argparse, click or typer is ``INVALID_INPUT`` with the parameter's
    JSON Pointer, or ``MISSING_REQUIRED_PARAM``; anything else is
    ``TOOL_EXECUTION_FAILED``.

    >>> text = "usage: top.py [-h]\\ntop.py: error: argument --limit: invalid int value: 'x'"
    >>> error = read_failure(2, text)[0]
    >>> error.code.value, error.message, error.details["path"]
    ('INVALID_INPUT', "limit: invalid int value: 'x'", '/limit')
    """
    # argparse and click exit with 2; 64 is EX_USAGE of sysexits.h.
    if exit_code in _USAGE_EXITS:
        # `ArgumentParser.error` and click's `UsageError` write one such line, after the
        # usage.
        if match := _last(_ARGPARSE, stderr) or _last(_CLICK, stderr):
            return (
                _of_parameter(
                    ErrorCode.INVALID_INPUT,
                    match["name"],
                    match["said"].strip(),
                    command_line,
                ),
            )
        # argparse lists all that are missing in one line.
        if match := _last(_REQUIRED, stderr):
            names = [name.strip() for name in match["names"].split(",")]
            missing = ErrorCode.MISSING_REQUIRED_PARAM
            return tuple(
                _of_parameter(missing, name, "it is required", command_line)
                for name in names
            )
        if match := _last(_CLICK_MISSING, stderr):
            missing = ErrorCode.MISSING_REQUIRED_PARAM
            return (
                _of_parameter(missing, match["name"], "it is required", command_line),
            )
        if match := _last(_ONE_OF, stderr):
            said = f"one of {match['names']} is required"
            return (SkillError(ErrorCode.MISSING_REQUIRED_PARAM, said, True),)
        if match := _last(_UNRECOGNISED, stderr):
            return (
                SkillError(
                    ErrorCode.INVALID_INPUT,
                    f"the script does not know {match['said'][:80]}",
                    True,
                ),
            )
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    said = lines[-1][:300] if lines else "it said nothing"
    # A negative code is the signal that ended the process
    # (``subprocess.Popen.returncode``).
    how = (
        f"failed with exit code {exit_code}"
        if exit_code >= 0
        else f"was ended by signal {-exit_code}"
    )
    details: dict[str, Any] = {"exit_code": exit_code}
    if len(lines) > 1:
        details["stderr"] = "\n".join(lines)[-600:]
    return (
        SkillError(
            ErrorCode.TOOL_EXECUTION_FAILED, f"The script {how}: {said}", False, details
        ),
    )


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(reversed(list(pattern.finditer(text[-4_000:]))), None)


def _of_parameter(
    code: ErrorCode, shown: str, said: str, line: CommandLine | None
) -> SkillError:
    name = _parameter_name(shown, line)
    details: Mapping[str, Any] = {"path": f"/{name}", "said": said[:200]}
    return SkillError(
        code,
        f"{name}: {said[:200]}",
        True,
        dict(details),
        f"Send another {name} and call again",
    )


def _parameter_name(shown: str, line: CommandLine | None) -> str:
    """The parameter that a parser calls ``-l/--limit``, ``--limit LIMIT`` or
    ``[FILES]...``.
    """
    parts = re.findall(r"--?[\w-]+|\w[\w.-]*", shown)
    for part in parts if line is not None else ():
        assert line is not None
        for each in _lines(line):
            for parameter in each.parameters:
                if (
                    part in (parameter.flag, parameter.off_flag)
                    or part.lower().replace("-", "_") == parameter.name.lower()
                ):
                    return parameter.name
    long = next(
        (part for part in parts if part.startswith("--")), parts[0] if parts else shown
    )
    return long.strip("-").replace("-", "_").lower()


def _lines(line: CommandLine) -> list[CommandLine]:
    return [
        line,
        *(below for inner in line.commands.values() for below in _lines(inner)),
    ]
