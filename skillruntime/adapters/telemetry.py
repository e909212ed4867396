"""OpenTelemetry spans by the GenAI semantic conventions: an observer for
``SkillRuntime(on_call=...)``.

The span of a call is current while the skill runs, so spans that the skill opens are
its children. The span of a skill loaded or a resource read is written after the event.
Each is a child of the span that is current at that time. Arguments and results may hold
secrets, so they are recorded only with ``content=True``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import skillruntime
from skillruntime.extras import missing_extra

try:
    from opentelemetry import trace
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
except ModuleNotFoundError as error:
    raise missing_extra(error) from None

from skillruntime.contract.schemas.secret_names import masked, names_a_secret
from skillruntime.runtime.call_record import CallRecord, Observer, Operation

__all__ = ["ATTRIBUTES", "CONTENT", "SCHEMA_URL", "spans"]

SCHEMA_URL = "https://opentelemetry.io/schemas/1.43.0"
"""The version of the semantic conventions whose names are used here."""


def _tool_name(record: CallRecord) -> str:
    if record.operation is Operation.CALL:
        return record.name
    return record.operation.value


def _error_type(record: CallRecord) -> str | None:
    if not record.error_codes:
        return None
    return record.error_codes[0]


def _tokens(record: CallRecord) -> int | None:
    tokens = _metadata(record).get("tokens") or {}
    total: int | None = tokens.get("total")
    return total


def _metadata(record: CallRecord) -> Mapping[str, Any]:
    return record.response.metadata or {}


ATTRIBUTES: Mapping[str, Callable[[CallRecord], Any]] = {
    # GenAI semantic conventions, "Execute tool span"
    "gen_ai.operation.name": lambda record: record.operation.value,
    "gen_ai.tool.name": _tool_name,
    "gen_ai.tool.type": lambda record: "function",
    "gen_ai.tool.call.id": lambda record: record.call_id,
    "gen_ai.conversation.id": lambda record: record.session_id,
    "error.type": _error_type,
    # attributes of this library
    "skillruntime.skill.name": lambda record: record.name.partition("/")[0],
    "skillruntime.skill.version": lambda record: record.version,
    "skillruntime.resource.path": lambda record: record.path,
    "skillruntime.response.status": lambda record: record.status,
    "skillruntime.repairs": lambda record: record.repairs or None,
    "skillruntime.migrated_from": lambda record: _metadata(record).get("migrated_from"),
    "skillruntime.tokens": _tokens,
}
"""All attributes of a span, and how each is read from a record; an attribute without a
value is left out.
"""

CONTENT: Mapping[str, Callable[[CallRecord], Any]] = {
    "gen_ai.tool.call.arguments": lambda record: _json(record.arguments),
    "gen_ai.tool.call.result": lambda record: _json(record.response.to_dict()),
}
"""The attributes that are recorded only with ``content=True``."""


def spans(tracer: Tracer | None = None, *, content: bool = False) -> Observer:
    """Return an observer that writes a span for each call, each skill loaded and each
    resource read.

    *tracer* is by default the global provider's; with *content* arguments and results
    are written too.
    """
    own = tracer or trace.get_tracer(
        "skillruntime", skillruntime.__version__, schema_url=SCHEMA_URL
    )
    table = dict(ATTRIBUTES)
    if content:
        table |= CONTENT
    return _Spans(own, table)


class _Spans:
    """Opens a span before a call and closes it after its record; the other operations
    have only a record.
    """

    def __init__(
        self, tracer: Tracer, table: Mapping[str, Callable[[CallRecord], Any]]
    ) -> None:
        self._tracer = tracer
        self._table = table

    @contextmanager
    def around(self, name: str) -> Iterator[None]:
        """Make the span of the call current; a cancelled call has no record, so its
        span gets the error here.
        """
        span = self._tracer.start_span(
            f"{Operation.CALL.value} {name}", kind=SpanKind.INTERNAL
        )
        # A copy for each call: parallel calls share the context that they were started
        # from.
        before = _CALLS.set({**_CALLS.get(), self: span})
        try:
            with trace.use_span(
                span, record_exception=False, set_status_on_exception=False
            ):
                yield
        except BaseException as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            _CALLS.reset(before)
            span.end()

    def __call__(self, record: CallRecord) -> None:
        """Write *record* into its span."""
        # Loading a skill inside a call is an operation of its own, and gets its own
        # span.
        if record.operation is Operation.CALL:
            current = _CALLS.get().get(self)
            if current is not None:
                self._describe(current, record)
                return
        name = f"{record.operation.value} {record.name}"
        span = self._tracer.start_span(
            name, kind=SpanKind.INTERNAL, start_time=record.started
        )
        self._describe(span, record)
        span.end(end_time=record.started + record.duration_ns)

    def _describe(self, span: Span, record: CallRecord) -> None:
        attributes = {}
        for name, read in self._table.items():
            value = read(record)
            if value is not None:
                attributes[name] = value
        span.set_attributes(attributes)
        if record.status == "failed":
            code = None
            if record.response.errors:
                code = record.response.errors[0].code.value
            span.set_status(Status(StatusCode.ERROR, code))


_CALLS: ContextVar[Mapping[_Spans, Span]] = ContextVar(
    "skillruntime-spans", default=MappingProxyType({})
)
"""The span of the call that runs here, for each observer: a host may have several."""


def _json(value: Any) -> str:
    """Return *value* as JSON, without what has the name of a secret."""
    try:
        if isinstance(value, str):  # refused arguments are kept as the model wrote them
            if names_a_secret(value):
                return "(it may hold a secret)"
            return value
        return json.dumps(masked(value), ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(type(value))
