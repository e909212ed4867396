"""An execution as server-sent events (an extension): each one the whole document at that moment. No I/O.

A client that reconnects with ``Last-Event-ID`` has therefore missed nothing once the current event is sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from skillruntime.remote.http_message import WireResponse
from skillruntime.remote.protocol import Execution
from skillruntime.server.http_responses import SECURITY_HEADERS

__all__ = ["EVENT_STREAM", "answer_events", "event_id", "to_event"]

EVENT_STREAM: Final = "text/event-stream"
_HEADERS: Final[Mapping[str, str]] = {
    **SECURITY_HEADERS,
    "x-accel-buffering": "no",  # a proxy that gathers would hold the events back
    "content-type": f"{EVENT_STREAM}; charset=utf-8",
}


def answer_events(execution: Execution, last_seen: str | None, *, plain: bool) -> WireResponse:
    """Return the stream as far as it goes now; 204 where its reader has seen the end.

    A browser opens a stream that has closed again and again, until it is answered 204 (HTML, 9.2.3).
    """
    # The reader has the last event already.
    if execution.is_final and last_seen == event_id(execution):
        return WireResponse(204, SECURITY_HEADERS)
    return WireResponse(200, _HEADERS, to_event(execution, plain=plain))


def to_event(execution: Execution, *, plain: bool) -> bytes:
    """Return the event that shows *execution*: ``end`` for the last one, else ``change``."""
    text = json.dumps(execution.to_dict(plain=plain), ensure_ascii=False, separators=(",", ":"))
    kind = "end" if execution.is_final else "change"
    return f"id: {event_id(execution)}\nevent: {kind}\ndata: {text}\n\n".encode("utf-8", "replace")


def event_id(execution: Execution) -> str:
    """Return the event id of this state, for a client that reconnects."""
    progress = execution.progress
    done = f"/{progress.done:g}" if progress is not None else ""
    return f"{execution.timestamps.updated_at}/{execution.status.value}{done}"
