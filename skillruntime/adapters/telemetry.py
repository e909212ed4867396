"""OpenTelemetry spans by the GenAI semantic conventions: an observer for
``SkillRuntime(on_call=...)``.

The span of a call is current while the skill runs, so spans that the skill opens are
its children. The span of a skill loaded or a resource read is written after the event:
it is the execution of the tool that does it, as the conventions propose for skills
(open-telemetry/semantic-conventions-genai, pull request 498). Each is a child of the
span that is current at that time. Arguments and results may hold secrets, so they are
recorded only with ``content=True``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import skillruntime
from skillruntime.extras import missing_extra

try:
    from opentelemetry import trace
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.contract.schemas.secret_names import masked, names_a_secret
from skillruntime.runtime.call_record import CallRecord, Observer, Operation

__all__ = ["ATTRIBUTES", "CONTENT", "SCHEMA_URL", "send_spans", "spans"]

SCHEMA_URL = "https://opentelemetry.io/schemas/1.43.0"
"""The version of the semantic conventions whose names are used here."""


_EXECUTE_TOOL = Operation.CALL.value
_TOOLS = {Operation.LOAD: "load_skill", Operation.READ: "read_skill_resource"}


def _tool_name(record: CallRecord) -> str:
    return _TOOLS.get(record.operation, record.name)


def _skill_name(record: CallRecord) -> str:
    return record.name.partition("/")[0]


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
    "gen_ai.operation.name": lambda record: _EXECUTE_TOOL,
    "gen_ai.tool.name": _tool_name,
    "gen_ai.tool.type": lambda record: "function",
    "gen_ai.tool.call.id": lambda record: record.call_id,
    "gen_ai.conversation.id": lambda record: record.session_id,
    "error.type": _error_type,
    # proposed there for skills
    "gen_ai.skill.name": _skill_name,
    # attributes of this library
    "skillruntime.skill.version": lambda record: record.version,
    "skillruntime.resource.path": lambda record: record.path,
    "skillruntime.response.status": lambda record: record.status,
    "skillruntime.repairs": lambda record: record.repairs or None,
    "skillruntime.migrated_from": lambda record: _metadata(record).get("migrated_from"),
    "skillruntime.tokens": _tokens,
}
"""All attributes of a span, with the function that reads each from a record; an
attribute without a value is left out.
"""

CONTENT: Mapping[str, Callable[[CallRecord], Any]] = {
    "gen_ai.tool.call.arguments": lambda record: _json(record.arguments),
    "gen_ai.tool.call.result": lambda record: _json(record.response.to_dict()),
}
"""The attributes that are recorded only with ``content=True``."""


def spans(
    tracer: Tracer | None = None,
    *,
    content: bool = False,
    catalog: SkillCatalog | None = None,
) -> Observer:
    """Return an observer that writes a span for each call, each skill loaded and each
    resource read.

    *tracer* is by default the global provider's; with *content* arguments and results
    are written too, and with *catalog* where its skills lie, in
    ``gen_ai.skill.source.uri``.
    """
    own = tracer or trace.get_tracer(
        "skillruntime", skillruntime.__version__, schema_url=SCHEMA_URL
    )
    table = dict(ATTRIBUTES)
    if content:
        table |= CONTENT
    if catalog is not None:
        table["gen_ai.skill.source.uri"] = partial(_source_uri, catalog)
    return _Spans(own, table)


def send_spans() -> None:
    """Send the spans of this process, those of MCP's SDK among them, to where the
    ``OTEL_...`` variables of OpenTelemetry say.

    With ``OTEL_TRACES_EXPORTER=console`` they are written to standard error, else sent
    by OTLP over HTTP, by default to a collector on this machine.

    Raises:
        ModuleNotFoundError: the packages of the ``otel`` extra are missing.
    """
    try:
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import (
            BatchSpanProcessor,
            ConsoleSpanExporter,
            SpanExporter,
        )

        exporter: SpanExporter
        if os.environ.get("OTEL_TRACES_EXPORTER") == "console":
            exporter = ConsoleSpanExporter(out=sys.stderr)
        else:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
                OTLPSpanExporter,
            )

            exporter = OTLPSpanExporter()
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    own = {SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "skillruntime")}
    provider = TracerProvider(resource=Resource.create(own))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    # The provider sends what is left when the process exits.
    trace.set_tracer_provider(provider)


def _source_uri(catalog: SkillCatalog, record: CallRecord) -> str | None:
    metadata = catalog.get(_skill_name(record))
    if metadata is None:
        return None
    return Path(metadata.path).as_uri()


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
            f"{_EXECUTE_TOOL} {name}", kind=SpanKind.INTERNAL
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
        name = f"{_EXECUTE_TOOL} {_tool_name(record)}"
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
"""The span of the current call, for each observer: a host may have several."""


def _json(value: Any) -> str:
    """Return *value* as JSON, without values named like secrets."""
    try:
        if isinstance(value, str):  # refused arguments are kept as the model wrote them
            if names_a_secret(value):
                return "(it may hold a secret)"
            return value
        return json.dumps(masked(value), ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(type(value))
