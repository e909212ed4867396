"""Convert between the ``traceparent`` header of W3C Trace Context and a
``trace_id``.
"""

from __future__ import annotations

import re
import secrets

__all__ = ["new_traceparent", "trace_id_of"]

# Trace Context, section 3.2.2: version, trace id, parent id, flags, in lower case; all
# zeros is invalid.
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}"
    r"-(?!0{32})([0-9a-f]{32})"
    r"-(?!0{16})[0-9a-f]{16}"
    r"-[0-9a-f]{2}(?:-.*)?"
)
_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")


def trace_id_of(traceparent: str) -> str | None:
    """Return the trace id of *traceparent*; None if it is not valid.

    >>> trace_id_of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    '4bf92f3577b34da6a3ce929d0e0e4736'
    """
    match = _TRACEPARENT.fullmatch(traceparent.strip())
    if match is None:
        return None
    return match[1]


def new_traceparent(trace_id: str | None) -> str | None:
    """Return a header for a new step of the trace *trace_id*; None if that is not a W3C
    trace id.
    """
    if trace_id is None or not _TRACE_ID.fullmatch(trace_id):
        return None
    return f"00-{trace_id}-{secrets.token_hex(8)}-01"
