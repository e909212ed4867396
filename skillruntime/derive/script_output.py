"""Convert the output of an ordinary script to data, and the errors of its own parser to
errors of the envelope.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from skillruntime.derive.command_line import CommandLine, Parameter
from skillruntime.errors import ErrorCode, SkillError
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["FINDINGS", "TEXT_LIMIT", "read_output", "text_output", "usage_errors"]

TEXT_LIMIT = 20_000
"""Characters of plain text that are kept of stdout."""

FINDINGS = "some scripts report findings so"
"""The possible meaning of an ordinary script's failure: linters and comparers exit with
1 if they found something.
"""

_ARGPARSE = lazy_pattern(r"error: argument (?P<name>[^:\n]+): (?P<message>[^\n]+)")
_REQUIRED = lazy_pattern(
    r"error: the following arguments are required: (?P<names>[^\n]+)"
)
_ONE_OF = lazy_pattern(r"error: one of the arguments (?P<names>[^\n]+) is required")
_UNRECOGNISED = lazy_pattern(r"error: unrecognized arguments: (?P<message>[^\n]+)")
_CLICK = lazy_pattern(
    r"(?:Error: |│ )Invalid value for (?:argument )?"
    r"'(?P<name>[^\n]+?)': (?P<message>[^\n│]+)"
)
_CLICK_MISSING = lazy_pattern(
    r"(?:Error: |│ )Missing (?:option|argument|parameter) '(?P<name>[^'\n]+)'"
)
_USAGE_EXITS = (2, 64)


def read_output(stdout: str, *, limit: int = TEXT_LIMIT) -> Any:
    """Return the data that a script printed: one JSON value, or its text as
    ``{"stdout": ...}``.

    Text beyond *limit* is truncated in the middle, where it matters least, and ``cut``
    says how many characters are missing. Several lines with a JSON object each become a
    list.

    >>> read_output('{"pages": 3}')
    {'pages': 3}
    >>> read_output("done")
    {'stdout': 'done'}
    >>> read_output("x" * 30, limit=10)
    {'stdout': 'xxxxx\\n[...]\\nxxxxx', 'cut': 20}
    """
    # Scripts end their output with a newline.
    text = stdout.strip()
    if text.startswith(("{", "[")):
        try:
            return _read_json(text)
        except (ValueError, RecursionError):
            pass  # it only looks like JSON
    return text_output(text, limit=limit)


def text_output(stdout: str, *, limit: int = TEXT_LIMIT) -> dict[str, Any]:
    """Return a script's text output as data, truncated like `read_output` does."""
    text = stdout.strip()
    if len(text) <= limit:
        return {"stdout": text}
    # The start shows the kind of output, the end shows the result.
    half = limit // 2
    return {
        "stdout": f"{text[:half]}\n[...]\n{text[-half:]}",
        "cut": len(text) - 2 * half,
    }


def _read_json(text: str) -> Any:
    """Parse *text* as one JSON value, or as a list with one object per line (JSON
    Lines).
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        lines = text.splitlines()
        if len(lines) == 1 or not all(line.startswith("{") for line in lines):
            raise
    return [json.loads(line, parse_constant=_refuse) for line in lines]


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def usage_errors(
    exit_code: int, stderr: str, line: CommandLine | None = None
) -> tuple[SkillError, ...]:
    """Return the errors that a script's own parser reports; empty if it reports none,
    or if the exit code is not that of a parser.

    A usage error of argparse, click or typer is ``INVALID_INPUT`` with the parameter's
    JSON Pointer, or ``MISSING_REQUIRED_PARAM``.

    >>> text = "usage: top.py [-h]\\ntop.py: error: argument --limit: not a number"
    >>> error = usage_errors(2, text)[0]
    >>> error.code.value, error.message, error.details["path"]
    ('INVALID_INPUT', 'limit: not a number', '/limit')
    """
    # argparse and click exit with 2; 64 is EX_USAGE of sysexits.h.
    if exit_code not in _USAGE_EXITS:
        return ()
    # `ArgumentParser.error` and click's `UsageError` write one such line, after the
    # usage.
    match = _last(_ARGPARSE, stderr) or _last(_CLICK, stderr)
    if match:
        code, message = ErrorCode.INVALID_INPUT, match["message"].strip()
        return (_of_parameter(code, match["name"], message, line),)
    missing = ErrorCode.MISSING_REQUIRED_PARAM
    match = _last(_REQUIRED, stderr)
    if match:
        # argparse lists all missing arguments in one line.
        names = [name.strip() for name in match["names"].split(",")]
        return tuple(
            _of_parameter(missing, name, "it is required", line) for name in names
        )
    match = _last(_CLICK_MISSING, stderr)
    if match:
        return (_of_parameter(missing, match["name"], "it is required", line),)
    match = _last(_ONE_OF, stderr)
    if match:
        return (SkillError(missing, f"one of {match['names']} is required", True),)
    match = _last(_UNRECOGNISED, stderr)
    if match:
        message = f"the script does not know {match['message'][:80]}"
        return (SkillError(ErrorCode.INVALID_INPUT, message, True),)
    return ()


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    matches = list(pattern.finditer(text[-4_000:]))
    return matches[-1] if matches else None


def _of_parameter(
    code: ErrorCode, shown: str, message: str, line: CommandLine | None
) -> SkillError:
    name = _parameter_name(shown, line)
    message = message[:200]
    return SkillError(
        code,
        f"{name}: {message}",
        True,
        {"path": f"/{name}", "said": message},
        f"Send another {name} and call again",
    )


def _parameter_name(shown: str, line: CommandLine | None) -> str:
    """Return the name of the parameter that a parser calls ``-l/--limit``,
    ``--limit LIMIT`` or ``[FILES]...``.
    """
    parts: list[str] = re.findall(r"--?[\w-]+|\w[\w.-]*", shown)
    if line is not None:
        parameters = _all_parameters(line)
        for part in parts:
            for parameter in parameters:
                if _is_called(parameter, part):
                    return parameter.name
    names = [part for part in parts if part.startswith("--")]
    names += [*parts, shown]
    return names[0].strip("-").replace("-", "_").lower()


def _is_called(parameter: Parameter, name: str) -> bool:
    if name in (parameter.flag, parameter.off_flag):
        return True
    return name.lower().replace("-", "_") == parameter.name.lower()


def _all_parameters(line: CommandLine) -> list[Parameter]:
    """Return the parameters of *line* and of the commands below."""
    parameters = list(line.parameters)
    for command in line.commands.values():
        parameters += _all_parameters(command)
    return parameters
