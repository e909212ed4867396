"""Records for observers: `skillruntime/adapters/telemetry.py`, logging, and LangChain's
callbacks.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import needs

pytest.importorskip("opentelemetry.sdk", reason=needs.to_install("opentelemetry.sdk"))

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from skillruntime.adapters.telemetry import ATTRIBUTES, CONTENT, spans
from skillruntime.catalog import SkillCatalog
from skillruntime.contract import Contract
from skillruntime.runtime import CallRecord, SkillRuntime

PROPOSED = {"gen_ai.skill.name"}
"""What the conventions propose, and no release has yet."""


def recorded(skills: SkillCatalog, **options: Any) -> tuple[Any, list[Any]]:
    """Load, read, call rightly and wrongly inside a span of the host, and return all
    that was exported.
    """
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    session = SkillRuntime(skills, on_call=spans(tracer, **options)).session()
    with tracer.start_as_current_span("host") as host:
        session.activate("counting")
        session.read_resource("counting", "references/rules.md")
        session.call_sync("counting", {"TEXT": "a secret"})
        session.call_sync("counting", {})
    return host, list(exporter.get_finished_spans())


@pytest.mark.processes
def test_each_thing_is_a_span_within_the_hosts(counting: SkillCatalog) -> None:
    """With the conventions' names, its own duration, and an error where there was
    one.
    """
    host, (load, read, good, bad, _) = recorded(counting)

    assert [span.name for span in (load, read, good, bad)] == [
        "execute_tool load_skill",
        "execute_tool read_skill_resource",
        "execute_tool counting",
        "execute_tool counting",
    ]
    assert {span.parent.span_id for span in (load, read, good, bad)} == {
        host.get_span_context().span_id
    }
    assert {span.attributes["gen_ai.operation.name"] for span in (load, good)} == {
        "execute_tool"
    }
    assert load.attributes["gen_ai.tool.name"] == "load_skill"
    assert {span.attributes["gen_ai.skill.name"] for span in (load, read, good)} == {
        "counting"
    }
    assert good.attributes["gen_ai.tool.name"] == "counting"
    assert good.attributes["skillruntime.skill.version"] == "1.0.0"
    assert good.attributes["skillruntime.repairs"] == 1
    assert good.end_time > good.start_time
    assert read.attributes["skillruntime.resource.path"] == "references/rules.md"
    assert (bad.attributes["error.type"], bad.status.status_code.name) == (
        "MISSING_REQUIRED_PARAM",
        "ERROR",
    )


@pytest.mark.processes
def test_a_span_says_where_its_skill_lies(counting: SkillCatalog) -> None:
    """Only where the host gives its catalog: the address is of its own machine."""
    _, plain = recorded(counting)
    _, located = recorded(counting, catalog=counting)

    uri = Path(counting["counting"].path).as_uri()
    assert [span.attributes.get("gen_ai.skill.source.uri") for span in located[:3]] == [
        uri,
        uri,
        uri,
    ]
    assert "gen_ai.skill.source.uri" not in plain[0].attributes


@pytest.mark.processes
def test_serve_sends_the_spans_of_server_and_client(counting: SkillCatalog) -> None:
    """`serve --mcp --otel`: the call is within the span of MCP's server, and that in
    the client's trace.
    """
    needs.package("mcp")
    from mcp import Client, StdioServerParameters
    from opentelemetry import trace

    trace_id = "0af7651916cd43dd8448eb211c80319c"
    root = counting.roots[0].path
    arguments = ["-m", "skillruntime", "serve", "--mcp", "--otel", "--trust"]
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "console"}

    async def steps(log: Any) -> None:
        parameters = StdioServerParameters(
            command=sys.executable, args=[*arguments, "--skills", root], env=environment
        )
        async with Client(stdio_client(parameters, errlog=log)) as client:
            parent = trace.NonRecordingSpan(
                trace.SpanContext(
                    int(trace_id, 16),
                    7,
                    True,
                    trace.TraceFlags(trace.TraceFlags.SAMPLED),
                )
            )
            with trace.use_span(parent):
                await client.call_tool("counting", {"text": "abc"})

    from mcp.client.stdio import stdio_client

    with tempfile.TemporaryFile("w+") as log:
        anyio.run(steps, log)
        log.seek(0)
        written = log.read()

    assert '"name": "tools/call counting"' in written
    assert '"name": "execute_tool counting"' in written
    assert written.count(f"0x{trace_id}") >= 2


def observed_by(*observers: Any) -> tuple[SkillRuntime, Any]:
    """Return a runtime with ``outer``, which opens a span of its own and calls
    ``inner``; and what is exported.
    """
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    runtime = SkillRuntime(on_call=(spans(tracer), *observers))
    contract = Contract.from_dict({"version": "1.0.0", "input": {"type": "object"}})

    @runtime.implements("inner", contract=contract)
    def inner(arguments: dict[str, Any]) -> int:
        return 1

    @runtime.implements("outer", contract=contract)
    async def outer(arguments: dict[str, Any]) -> int:
        with tracer.start_as_current_span("request"):
            await runtime.call("inner", {})
        if arguments:
            await anyio.sleep_forever()
        return 2

    return runtime, exporter


@pytest.mark.parametrize("is_blocking", [False, True])
def test_what_a_skill_does_is_within_its_span(is_blocking: bool) -> None:
    """Its own spans, and other skills that it calls: in this thread, in another one, in
    a loop of its own.
    """
    runtime, exporter = observed_by()

    if is_blocking:
        runtime.call_sync("outer", {})
    else:
        anyio.run(runtime.call, "outer", {})

    inner, request, outer = exporter.get_finished_spans()
    assert [span.name for span in (inner, request, outer)] == [
        "execute_tool inner",
        "request",
        "execute_tool outer",
    ]
    assert (inner.parent.span_id, request.parent.span_id) == (
        request.context.span_id,
        outer.context.span_id,
    )
    assert outer.parent is None
    assert {span.attributes["gen_ai.tool.name"] for span in (inner, outer)} == {
        "inner",
        "outer",
    }


def test_a_call_that_is_cancelled_ends_its_span() -> None:
    """A cancelled call has no record; its span has the error."""
    runtime, exporter = observed_by()

    async def give_up() -> None:
        with anyio.move_on_after(0.01):
            await runtime.call("outer", {"wait": True}, timeout=300)

    anyio.run(give_up)

    (outer,) = [
        span
        for span in exporter.get_finished_spans()
        if span.name == "execute_tool outer"
    ]
    assert outer.status.status_code.name == "ERROR"


@pytest.mark.processes
def test_names_are_those_of_the_conventions_and_the_models_id_is_among_them(
    counting: SkillCatalog,
) -> None:
    """Each ``gen_ai`` name exists in OpenTelemetry's own package, at the version that
    is stated.
    """
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
    from opentelemetry.semconv.schemas import Schemas

    from skillruntime.adapters.langchain import SkillTool
    from skillruntime.adapters.telemetry import ATTRIBUTES, CONTENT, SCHEMA_URL

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    runtime = SkillRuntime(counting, on_call=spans(provider.get_tracer("test")))
    arguments: Any = {
        "name": "counting",
        "args": {"text": "abc"},
        "id": "call_7",
        "type": "tool_call",
    }

    SkillTool(runtime, "counting").invoke(arguments)

    (span,) = exporter.get_finished_spans()
    assert span.attributes["gen_ai.tool.call.id"] == "call_7"
    known = {value for name, value in vars(names).items() if name.startswith("GEN_AI_")}
    assert {
        name for name in (*ATTRIBUTES, *CONTENT) if name.startswith("gen_ai.")
    } - PROPOSED <= known
    assert SCHEMA_URL in {schema.value for schema in Schemas}


def test_two_observers_each_have_their_own_span() -> None:
    """A host may send them to two places."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    runtime, first = observed_by(spans(provider.get_tracer("second")))

    runtime.call_sync("inner", {})

    for finished in (first.get_finished_spans(), exporter.get_finished_spans()):
        assert [span.attributes["gen_ai.tool.name"] for span in finished] == ["inner"]


def test_an_observer_that_fails_around_a_call_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither before nor after: the log has it."""

    class Failing:
        def __init__(self, *, when: str) -> None:
            self.when = when

        @contextmanager
        def around(self, name: str) -> Iterator[None]:
            if self.when == "before":
                raise ZeroDivisionError
            yield
            raise ZeroDivisionError

        def __call__(self, record: CallRecord) -> None:
            """Receive a record and do nothing."""

    runtime, exporter = observed_by(Failing(when="before"), Failing(when="after"))

    assert runtime.call_sync("inner", {}).data == 1
    assert len(exporter.get_finished_spans()) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "An observer failed before 'inner' was called",
        "An observer failed after 'inner' was called",
    ]


@pytest.mark.processes
def test_arguments_and_results_are_written_only_when_opted_in(
    counting: SkillCatalog,
) -> None:
    """They may hold secrets."""
    _, plain = recorded(counting)
    _, full = recorded(counting, content=True)

    assert "a secret" not in str([span.attributes for span in plain])
    assert "a secret" in full[2].attributes["gen_ai.tool.call.arguments"]
    assert '"letters": 8' in full[2].attributes["gen_ai.tool.call.result"]


def test_the_conventions_names_are_theirs() -> None:
    """Every ``gen_ai.`` attribute is in OpenTelemetry's own list."""
    known = {
        value
        for name, value in vars(gen_ai_attributes).items()
        if name.startswith("GEN_AI_")
    }

    assert {
        name for name in (*ATTRIBUTES, *CONTENT) if name.startswith("gen_ai.")
    } - PROPOSED <= known


def test_the_log_has_a_line_for_each_call_at_debug(
    counting: SkillCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    """One line each at DEBUG, without arguments."""
    with caplog.at_level(logging.DEBUG, logger="skillruntime.runtime"):
        SkillRuntime(counting).call_sync("counting", {"text": 5.5, "secret": 1})

    (record,) = caplog.records
    assert record.getMessage().startswith("execute_tool counting: failed (")
    assert "secret" not in record.getMessage()
