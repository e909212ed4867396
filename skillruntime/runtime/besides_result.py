"""What a script printed besides its JSON result: most often a log line on stdout."""

from __future__ import annotations

import json

__all__ = ["text_besides_result"]

_MOST_LINES = 200
"""Lines at which a result is looked for: a script that logs more than this is reported without them."""


def text_besides_result(stdout: str) -> str | None:
    """Return the text before and after the one JSON object or array in *stdout*; None without such a value.

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
                rest = "\n".join(part for part in (stdout[:at].strip(), stdout[end:].strip()) if part)
                # With two values there is no telling which one is the result.
                return None if text_besides_result(stdout[end:]) is not None else rest
        start += len(line)
    return None
