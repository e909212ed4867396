"""What a script wrote: its result on stdout, and its words on stderr, fit to be
quoted.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from skillruntime.catalog.visibility import (
    hidden_characters,
    listed_kinds,
    visible_text,
)
from skillruntime.derive.script_output import read_output
from skillruntime.errors import SkillOutputError
from skillruntime.runtime.sandbox.protocol import Finished

__all__ = [
    "Report",
    "capped",
    "how_it_ended",
    "parse_json_output",
    "parse_text_output",
    "reported_failure",
    "shortened_paths",
    "text_besides_result",
    "without",
    "worth_masking",
]

_SURROGATE_ESCAPE = re.compile(r"\\[uU][dD][89a-fA-F]")
_QUOTED_LINE = 300  # characters of a script's own words in a message
_QUOTED_TAIL = 600  # characters of them in the details
_MOST_LINES = 200
"""Lines at which a result is looked for: a script that logs more than this is reported
without them.
"""
_SHORTEST_SECRET = 4  # shorter values occur in any text


class Report(NamedTuple):
    """A script's stderr, fit to be quoted: no host paths, no hidden characters,
    capped.
    """

    finished: Finished
    shortened: tuple[tuple[re.Pattern[str], str], ...]

    def text(self) -> str:
        """Return all of it that was kept."""
        return visible_text(self.without_paths(self.finished.stderr)).strip()

    def without_paths(self, written: bytes) -> str:
        """Return what the script wrote, with short names in place of the host's
        directories.
        """
        text = written.decode("utf-8", "replace")
        for path, short in self.shortened:
            text = path.sub(short.replace("\\", "\\\\"), text)
        return text

    def last_line(self) -> str:
        """Return its last line."""
        lines = self.text().splitlines()
        if not lines:
            return ""
        return capped(lines[-1].strip(), _QUOTED_LINE)

    def details(self) -> dict[str, Any]:
        """Return the tail of stderr, where it says more than its last line."""
        text = self.text()
        if "\n" not in text:
            return {}
        if len(text) > _QUOTED_TAIL:
            text = "..." + text[-_QUOTED_TAIL:]
        return {"stderr": text}


def worth_masking(secrets: Iterable[str]) -> list[str]:
    """Return those of *secrets* that do not occur in any text, the longest first: one
    may contain another.
    """
    long_enough = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    return sorted(long_enough, key=len, reverse=True)


def without(finished: Finished, secrets: Iterable[str]) -> Finished:
    """Return *finished* with ``***`` in place of each of *secrets*, also where JSON or
    Python escapes it.

    A script may print the variables that it was granted: in a traceback, or on purpose.
    What it encodes is not found.
    """
    stdout, stderr = finished.stdout, finished.stderr
    for secret in worth_masking(secrets):
        # As JSON writes it, and as Python's tracebacks do: KeyError and `{secret!r}`
        # show the repr.
        quoted = [
            json.dumps(secret),
            json.dumps(secret, ensure_ascii=False),
            repr(secret),
            ascii(secret),
        ]
        for text in dict.fromkeys([secret, *(each[1:-1] for each in quoted)]):
            stdout = stdout.replace(os.fsencode(text), b"***")
            stderr = stderr.replace(os.fsencode(text), b"***")
    return replace(finished, stdout=stdout, stderr=stderr)


def shortened_paths(
    *named: tuple[Path, str],
) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return what to write in place of the host's paths: those of *named*, of Python
    and of the home directory.
    """
    pairs = [(str(path), short) for path, short in named]
    pairs += [
        (sys.prefix, "python"),
        (sys.base_prefix, "python"),
        (str(Path.home()), "~"),
    ]
    shortened = []
    for path, short in pairs:
        if len(path) > 1:
            pattern = re.compile(rf"{re.escape(path)}(?![\w.-])")
            shortened.append((pattern, short))
    return tuple(shortened)


def how_it_ended(exit_code: int) -> str:
    """Return the end of a sentence about a script that failed.

    >>> how_it_ended(3), how_it_ended(-9)
    ('failed with exit code 3', 'was ended by SIGKILL')
    """
    if exit_code >= 0:
        return f"failed with exit code {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"


def parse_text_output(stdout: bytes) -> Any:
    """Return the output of a script of the ordinary kind: any text, read as JSON only
    where it is JSON.
    """
    text = stdout.decode("utf-8", "replace")
    output = read_output(text)
    if not isinstance(output, dict) or output.keys() - {"stdout", "cut"}:
        try:
            json.dumps(output, allow_nan=False, ensure_ascii=False).encode("utf-8")
        except ValueError:  # a number that overflows, or half of a surrogate pair
            return {"stdout": text}
    return output


def parse_json_output(finished: Finished, report: Report) -> Any:
    """Return the one JSON value that a script printed.

    Raises:
        SkillOutputError: it printed nothing, or something else; the error quotes it.
    """
    if not finished.stdout.strip():
        raise SkillOutputError(
            "The script ended without printing a result",
            details=report.details(),
            suggested_action="Tell the user that the skill is at fault; the same call "
            "will fail again",
        )
    try:
        return _strict_json(finished.stdout.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        besides = text_besides_result(finished.stdout.decode("utf-8", "replace"))
        if besides:
            raise SkillOutputError(
                "The script printed more than its JSON result: "
                f"{_quoted(besides, _QUOTED_LINE)}",
                details={
                    "printed": capped(visible_text(besides), _QUOTED_TAIL),
                    **report.details(),
                },
                suggested_action="Tell the user that the skill is at fault: it must "
                "write this to stderr",
            ) from error
        beginning = finished.stdout[:400].decode("utf-8", "replace")
        raise SkillOutputError(
            "The script printed something other than one JSON value: "
            f"{_quoted(beginning, 80)}",
            details={
                "printed": capped(visible_text(beginning).strip(), 80),
                "fault": capped(visible_text(str(error)), 120),
                **report.details(),
            },
            suggested_action="Tell the user that the skill is at fault: it must print "
            "one JSON value, as print(json.dumps(result)) does, and write everything "
            "else to stderr",
        ) from error


def reported_failure(stdout: str) -> dict[str, Any] | None:
    """Return the report of a failing script in the form of 31.2, or None."""
    try:
        document = _strict_json(stdout)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    if document.get("status") in ("failed", "partial_success"):
        return document
    errors = document.get("errors")
    if isinstance(errors, list) and errors:
        return document
    return None


def capped(text: str, limit: int) -> str:
    """Return *text*, shortened to *limit* characters."""
    if len(text) <= limit:
        return text
    return text[: limit - 3] + "..."


def _quoted(text: str, limit: int) -> str:
    r"""Return *text* as a message quotes it; text without a visible character is
    described instead.

    >>> _quoted("Loading\n", 20), _quoted("\0\0", 20)
    ("'Loading'", 'hidden characters (control character 2)')
    """
    shown = visible_text(text).strip()
    if not shown:
        return listed_kinds(hidden_characters(text))
    return repr(capped(shown, limit))


def _strict_json(text: str) -> Any:
    """Return the value of *text*, which every JSON reader reads alike.

    Python's reader takes more than RFC 8259: NaN, a number that overflows to infinity
    (section 6), and half of a surrogate pair (section 8.2), which no UTF-8 text can
    hold. Each would break whoever reads the envelope.
    """
    value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    if _SURROGATE_ESCAPE.search(text) is not None:
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError("half of a surrogate pair is not a character") from error
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{capped(text, 40)} is too large for a number")
    return number


def text_besides_result(stdout: str) -> str | None:
    """Return the text before and after the one JSON object or array in *stdout*; None
    without such a value.

    >>> text_besides_result('Loading model...\\n{"words": 2}\\n')
    'Loading model...'
    >>> text_besides_result("done") is None
    True
    """
    decoder = json.JSONDecoder()
    start = 0
    for line in stdout.splitlines(keepends=True)[:_MOST_LINES]:
        # A result begins a line: a brace inside a log line is part of what was logged.
        if line.lstrip().startswith(("{", "[")):
            at = start + len(line) - len(line.lstrip())
            try:
                _, end = decoder.raw_decode(stdout, at)
            except (ValueError, RecursionError):
                pass
            else:
                # With two values there is no telling which one is the result.
                if text_besides_result(stdout[end:]) is not None:
                    return None
                parts = [stdout[:at].strip(), stdout[end:].strip()]
                return "\n".join(part for part in parts if part)
        start += len(line)
    return None
