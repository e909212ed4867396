"""Read the output of a script: its result on stdout, and its messages on stderr, safe
to be shown.

Everything that it printed reaches the caller, even if it failed: as one JSON value,
else as text.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from skillruntime.catalog.visibility import (
    hidden_characters,
    listed_kinds,
    visible_text,
)
from skillruntime.derive.script_output import read_output, text_output
from skillruntime.errors import SkillOutputError
from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.runtime.sandbox.protocol import Finished

__all__ = [
    "Printed",
    "Report",
    "capped",
    "decoded",
    "failed_output",
    "how_it_ended",
    "parse_json_output",
    "parse_text_output",
    "reported_failure",
    "shortened_paths",
    "text_besides_result",
    "without",
    "worth_masking",
]

_SURROGATE_ESCAPE = lazy_pattern(r"\\[uU][dD][89a-fA-F]")
_QUOTED_LINE = 300  # characters of a script's own words in a message
_TAIL = 2_000  # characters of stderr that are kept in an answer
_MOST_LINES = 200
"""The most lines in which a result is looked for; a longer log is reported without one.
"""
# Node ends the report of an uncaught error with the error, its stack, an empty line and
# its own version.
_NODE_VERSION = lazy_pattern(r"Node\.js v[\d.]+")
_NODE_ERROR = lazy_pattern(r"(?:[A-Z]\w*)?Error(?: \[\w+\])?: \S")
_SHORTEST_SECRET = 4  # shorter values occur by chance
# A system's Python shares these directories with all other programs.
_SHARED_PREFIXES = ("/usr", "/usr/local")


class Printed(NamedTuple):
    """The printed output: one JSON value, else the text; None if the script printed
    nothing.

    *warning* names a defect that changes how the output is read: bytes that are not
    UTF-8, or ``NaN`` in JSON.
    """

    data: Any
    warning: str | None = None


class Report(NamedTuple):
    """A script's output, safe to be shown: without host paths, hidden characters and
    *secrets*.
    """

    finished: Finished
    shortened: tuple[tuple[re.Pattern[str], str], ...]
    secrets: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the kept part of stderr."""
        text, _ = decoded(self.finished.stderr)
        return self.visible(self.without_paths(text)).strip()

    def without_paths(self, text: str) -> str:
        """Return *text* with the host's directories replaced by short names."""
        for path, short in self.shortened:
            text = path.sub(short.replace("\\", "\\\\"), text)
        return text

    def visible(self, text: str) -> str:
        """Return *text* without hidden characters, which may have split a secret."""
        text = visible_text(text)
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text

    def last_line(self) -> str:
        """Return the last line of stderr; for Node, the line that states the error."""
        lines = self.text().splitlines()
        if not lines:
            return ""
        last = lines[-1]
        if _NODE_VERSION.fullmatch(last):
            thrown = [line for line in lines if _NODE_ERROR.match(line)]
            last = thrown[-1] if thrown else last
        return capped(last.strip(), _QUOTED_LINE)

    def tail(self) -> str:
        """Return the last 2,000 characters of stderr."""
        return self.text()[-_TAIL:]


def worth_masking(secrets: Iterable[str]) -> list[str]:
    """Return the *secrets* that are too long to occur by chance, the longest first,
    because one may contain another.
    """
    long_enough = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    return sorted(long_enough, key=len, reverse=True)


def without(finished: Finished, secrets: Iterable[str]) -> Finished:
    """Return *finished* with each of *secrets* replaced by ``***``, also in the escapes
    of JSON and Python.

    A script may print its granted variables in a traceback, or on purpose. An otherwise
    encoded secret is not found.
    """
    stdout, stderr = finished.stdout, finished.stderr
    for secret in worth_masking(secrets):
        # The forms of JSON and of Python's tracebacks: KeyError and `{secret!r}` show
        # the repr.
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
    """Return the replacements for the host's paths: those of *named*, of Python and of
    the home directory.
    """
    pairs = [(str(path), short) for path, short in named]
    for prefix in (sys.prefix, sys.base_prefix):
        if prefix in _SHARED_PREFIXES:
            library = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}"
            pairs.append((f"{prefix}/{library}", f"python/{library}"))
        else:
            pairs.append((prefix, "python"))
    pairs.append((str(Path.home()), "~"))
    shortened = []
    for path, short in pairs:
        if len(path) > 1:
            pattern = re.compile(rf"{re.escape(path)}(?![\w.-])")
            shortened.append((pattern, short))
    return tuple(shortened)


def how_it_ended(exit_code: int) -> str:
    """Return the end of a sentence that says how the script ended.

    >>> how_it_ended(3), how_it_ended(-9)
    ('failed with exit code 3', 'was ended by SIGKILL')
    """
    if exit_code >= 0:
        return f"failed with exit code {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"


def decoded(written: bytes) -> tuple[str, str | None]:
    r"""Decode the output of a script, without a byte order mark; also return the first
    byte that is not UTF-8, if any.

    >>> decoded(b"\xef\xbb\xbfok")
    ('ok', None)
    >>> decoded(b"caf\xe9")[1]
    'byte 0xe9 at offset 3 is not UTF-8; cp1252 or latin-1 would read it'
    """
    # RFC 8259, section 8.1: a reader may ignore the mark, which Windows programs write.
    content = written.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode("utf-8"), None
    except UnicodeDecodeError as error:
        offset = error.start + len(written) - len(content)
        fault = f"byte {written[offset]:#04x} at offset {offset} is not UTF-8"
        readers = _encodings_of(content)
        return content.decode("utf-8", "replace"), f"{fault}; {readers} would read it"


def _encodings_of(content: bytes) -> str:
    """Describe the encodings that can read *content*; Latin-1 can read any bytes."""
    candidates = ["cp1252", "cp932", "gb18030", "latin-1"]
    # UTF-16 text has a zero byte in each ASCII character; other text has none.
    if b"\0" in content:
        candidates = ["utf-16", "latin-1"]
    found = []
    for name in candidates:
        try:
            content.decode(name)
        except UnicodeDecodeError:
            continue
        found.append(name)
    if len(found) == 1:
        return found[0]
    return f"{', '.join(found[:-1])} or {found[-1]}"


def parse_text_output(stdout: bytes) -> Printed:
    """Return the output of an ordinary script: any text, parsed if it is JSON."""
    text, fault = decoded(stdout)
    if fault is not None:
        fault = f"The output is not UTF-8: {fault}"
    return Printed(_json_or_text(text), fault or _constant_warning(text))


def _json_or_text(text: str) -> Any:
    output = read_output(text)
    if not _is_plain(output):
        try:
            json.dumps(output, allow_nan=False, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            # a number that overflows, or half of a surrogate pair
            return {"stdout": text}
    return output


def _is_plain(output: Any) -> bool:
    """Return whether `read_output` found text and not JSON."""
    return isinstance(output, dict) and not output.keys() - {"stdout", "cut"}


def _constant_warning(text: str) -> str | None:
    """Return a warning if *text* would be JSON except for NaN or an infinity."""
    name = _constant_in(text)
    if name is None:
        return None
    return f"The output is given as text: it has {name}, which JSON does not have"


def _constant_in(text: str) -> str | None:
    """Return the first of NaN, Infinity and -Infinity in *text*, if that is all that
    keeps it from being JSON.
    """
    if "NaN" not in text and "Infinity" not in text:
        return None
    found: list[str] = []
    try:
        json.loads(text, parse_constant=found.append)
    except (ValueError, RecursionError):
        return None
    return found[0] if found else None


def failed_output(report: Report, *, is_text: bool) -> Printed:
    """Return the output of a script without a result, with the host's paths removed.

    With *is_text* the output may be any text, which becomes ``{"stdout": ...}`` as in a
    result.
    """
    text, fault = decoded(report.finished.stdout)
    if not text.strip():
        return Printed(None)
    text = report.without_paths(text)
    warning = _constant_warning(text)
    # If the script was stopped, the limit may have cut a character.
    if fault is not None and not report.finished.flooded:
        warning = f"The output is not UTF-8: {fault}"
    if is_text:
        output = _json_or_text(text)
        if _is_plain(output):
            output = text_output(report.visible(text))
        return Printed(output, warning)
    try:
        return Printed(_strict_json(text), warning)
    except (ValueError, RecursionError):
        return Printed(text_output(report.visible(text))["stdout"], warning)


def parse_json_output(finished: Finished) -> Any:
    """Return the one JSON value that a script printed.

    Raises:
        SkillOutputError: the script printed nothing, or something else, which the error
            quotes.
    """
    if not finished.stdout.strip():
        raise SkillOutputError(
            "The script ended without printing a result",
            suggested_action="Tell the user that the skill is at fault; the same call "
            "will fail again",
        )
    text, fault = decoded(finished.stdout)
    if fault is not None:
        raise SkillOutputError(
            f"The script printed text that is not UTF-8: {fault}",
            suggested_action="Tell the user that the skill is at fault: it must print "
            "UTF-8",
        )
    try:
        return _strict_json(text)
    except (ValueError, RecursionError) as error:
        raise _not_json(text, error) from error


def _not_json(text: str, error: Exception) -> SkillOutputError:
    """Return the error for *text*, which is not one JSON value; *error* says where."""
    if (name := _constant_in(text)) is not None:
        return SkillOutputError(
            f"The script printed {name}, which JSON does not have",
            details={"fault": f"{name} is not JSON"},
            suggested_action="Tell the user that the skill is at fault: it must print "
            "null or a text instead",
        )
    if besides := text_besides_result(text):
        return SkillOutputError(
            "The script printed more than its JSON result: "
            f"{_quoted(besides, _QUOTED_LINE)}",
            suggested_action="Tell the user that the skill is at fault: it must "
            "write this to stderr",
        )
    return SkillOutputError(
        "The script printed something other than one JSON value: "
        f"{_quoted(text[:400], 80)}",
        details={"fault": capped(visible_text(str(error)), 120)},
        suggested_action="Tell the user that the skill is at fault: it must print "
        "one JSON value, as print(json.dumps(result)) does, and write everything "
        "else to stderr",
    )


def reported_failure(stdout: str, *, is_text: bool = False) -> dict[str, Any] | None:
    """Return the report of a failing script in the form of the contract document,
    31.2, or None.

    With *is_text* the script does not know that form: then only a list in which each
    error has a code and a message is a report, not a checker's findings under the same
    name.
    """
    try:
        document = _strict_json(stdout)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    errors = document.get("errors")
    if not isinstance(errors, list):
        errors = []
    has_status = document.get("status") in ("failed", "partial_success")
    if is_text:
        if has_status and errors and all(map(_is_error, errors)):
            return document
        return None
    if has_status or errors:
        return document
    return None


def _is_error(item: Any) -> bool:
    """Return whether *item* is an error in the form of the contract document, 31.2."""
    if not isinstance(item, dict):
        return False
    return isinstance(item.get("code"), str) and isinstance(item.get("message"), str)


def capped(text: str, limit: int) -> str:
    """Return *text*, shortened to *limit* characters."""
    if len(text) <= limit:
        return text
    return text[: limit - 3] + "..."


def _quoted(text: str, limit: int) -> str:
    r"""Quote *text* for a message; text without a visible character is described
    instead.

    >>> _quoted("Loading\n", 20), _quoted("\0\0", 20)
    ("'Loading'", 'hidden characters (control character 2)')
    """
    shown = visible_text(text).strip()
    if not shown:
        return listed_kinds(hidden_characters(text))
    return repr(capped(shown, limit))


def _strict_json(text: str) -> Any:
    """Parse *text* strictly, so that every JSON reader reads the same value.

    Python's reader accepts more than RFC 8259: NaN, a number that overflows to infinity
    (section 6), and half of a surrogate pair (section 8.2), which UTF-8 cannot hold.
    Each would break a reader of the envelope.
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
    found = _value_in(stdout, 0)
    # With two values it is unclear which one is the result.
    if found is None or _value_in(stdout, found[1]) is not None:
        return None
    start, end = found
    parts = [stdout[:start].strip(), stdout[end:].strip()]
    return "\n".join(part for part in parts if part)


def _value_in(text: str, start: int) -> tuple[int, int] | None:
    """Return the span of the first JSON object or array that begins a line of *text* at
    or after *start*; None if the first lines have none.
    """
    decoder = json.JSONDecoder()
    for _ in range(_MOST_LINES):
        line_end = text.find("\n", start)
        line = text[start:] if line_end < 0 else text[start:line_end]
        # A brace inside a log line is part of the log.
        if line.lstrip().startswith(("{", "[")):
            at = start + len(line) - len(line.lstrip())
            with suppress(ValueError, RecursionError):
                _, end = decoder.raw_decode(text, at)
                return at, end
        if line_end < 0:
            return None
        start = line_end + 1
    return None
