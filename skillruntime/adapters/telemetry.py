"""OpenTelemetry spans of what skills do, by the GenAI conventions: an observer for ``SkillRuntime(on_call=...)``.

A span is written when the thing is over, with its own start and end, as a child of the span that is current there.
Arguments and results are in it only where ``content=True`` says so: they may hold secrets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

import skillruntime
from skillruntime.runtime.record import CallRecord, Observer, Operation

__all__ = ["ATTRIBUTES", "CONTENT", "spans"]

ATTRIBUTES: Mapping[str, Callable[[CallRecord], Any]] = {
    # the GenAI conventions'
    "gen_ai.operation.name": lambda record: record.operation.value,
    "gen_ai.tool.name": lambda record: record.name if record.operation is Operation.CALL else record.operation.value,
    "gen_ai.tool.type": lambda record: "function",
    "gen_ai.conversation.id": lambda record: record.session_id,
    "error.type": lambda record: record.error_codes[0] if record.error_codes else None,
    # ours
    "skillruntime.skill.name": lambda record: record.name.partition("/")[0],
    "skillruntime.skill.version": lambda record: record.version,
    "skillruntime.resource.path": lambda record: record.path,
    "skillruntime.response.status": lambda record: record.status,
    "skillruntime.repairs": lambda record: record.repairs or None,
    "skillruntime.migrated_from": lambda record: (record.response.metadata or {}).get("migrated_from"),
    "skillruntime.tokens": lambda record: ((record.response.metadata or {}).get("tokens") or {}).get("total"),
}
"""All attributes of a span, and what of a record each says; what says nothing is left out."""

CONTENT: Mapping[str, Callable[[CallRecord], Any]] = {
    "gen_ai.tool.call.arguments": lambda record: _json(record.arguments),
    "gen_ai.tool.call.result": lambda record: _json(record.response.to_dict()),
}
"""The attributes that are there only when opted in."""


def spans(tracer: Tracer | None = None, *, content: bool = False) -> Observer:
    """Return an observer that writes a span for each call, each skill loaded and each resource read.

    *tracer* is by default the global provider's; with *content* arguments and results are written too.
    """
    own = tracer or trace.get_tracer("skillruntime", skillruntime.__version__)
    table = {**ATTRIBUTES, **(CONTENT if content else {})}

    def observe(record: CallRecord) -> None:
        attributes = {name: value for name, read in table.items() if (value := read(record)) is not None}
        span = own.start_span(
            f"{record.operation.value} {record.name}",
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            start_time=record.started,
        )
        if record.status == "failed":
            errors = record.response.errors or []
            span.set_status(Status(StatusCode.ERROR, errors[0].code.value if errors else None))
        span.end(end_time=record.started + record.duration_ns)

    return observe


def _json(value: Any) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(type(value))
