"""The log of requests: one line of JSON each, on the logger ``skillruntime.access``."""

from __future__ import annotations

import json
import logging

from skillruntime.remote.tracing import trace_id_of
from skillruntime.server.authorization import Call

__all__ = ["log_request"]

_log = logging.getLogger("skillruntime.access")


def log_request(call: Call, route: str, status: int, seconds: float) -> None:
    """Log one request: never a key, an input, an output, or a path that a caller made up."""
    # Building the line costs as much as a poll: only where it is wanted.
    if not _log.isEnabledFor(logging.INFO):
        return
    entry = {
        "method": call.request.method[:10],
        "route": route,
        "status": status,
        "ms": round(seconds * 1000, 1),
        "caller": call.owner,
        "skill": call.skill_id,
        "peer": call.request.peer,
        "trace_id": call.trace_id or trace_id_of(call.request.headers.get("traceparent", "")),
    }
    _log.info(json.dumps({name: value for name, value in entry.items() if value not in ("", None)}))
