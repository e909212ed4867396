"""What observers of operations are told: `skillruntime/adapters/telemetry.py`, logging, and LangChain's callbacks."""

from __future__ import annotations

import logging
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the OpenTelemetry SDK is not installed")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from skillruntime.adapters.telemetry import ATTRIBUTES, CONTENT, spans
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.runtime.runtime import SkillRuntime


def recorded(catalog: SkillCatalog, **options: Any) -> tuple[Any, list[Any]]:
    """Load, read, call rightly and wrongly inside a span of the host, and return all that was exported."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    session = SkillRuntime(catalog, on_call=spans(tracer, **options)).session()
    with tracer.start_as_current_span("host") as host:
        session.activate("counting")
        session.read_resource("counting", "references/rules.md")
        session.call_blocking("counting", {"TEXT": "a secret"})
        session.call_blocking("counting", {})
    return host, list(exporter.get_finished_spans())


def test_each_thing_is_a_span_within_the_hosts(counting: SkillCatalog) -> None:
    """With the conventions' names, its own duration, and an error where there was one."""
    host, (load, read, good, bad, _) = recorded(counting)

    assert [span.name for span in (load, read, good, bad)] == [
        "load_skill counting",
        "read_resource counting",
        "execute_tool counting",
        "execute_tool counting",
    ]
    assert {span.parent.span_id for span in (load, read, good, bad)} == {host.get_span_context().span_id}
    assert good.attributes["gen_ai.tool.name"] == "counting"
    assert good.attributes["skillruntime.skill.version"] == "1.0.0"
    assert good.attributes["skillruntime.repairs"] == 1
    assert good.end_time > good.start_time
    assert read.attributes["skillruntime.resource.path"] == "references/rules.md"
    assert (bad.attributes["error.type"], bad.status.status_code.name) == ("MISSING_REQUIRED_PARAM", "ERROR")


def test_arguments_and_results_are_written_only_when_opted_in(counting: SkillCatalog) -> None:
    """They may hold secrets."""
    _, plain = recorded(counting)
    _, full = recorded(counting, content=True)

    assert "a secret" not in str([span.attributes for span in plain])
    assert "a secret" in full[2].attributes["gen_ai.tool.call.arguments"]
    assert '"letters": 8' in full[2].attributes["gen_ai.tool.call.result"]


def test_the_conventions_names_are_theirs() -> None:
    """Every ``gen_ai.`` attribute is in OpenTelemetry's own list."""
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}

    assert {name for name in (*ATTRIBUTES, *CONTENT) if name.startswith("gen_ai.")} <= known


def test_the_log_tells_of_each_call_when_it_is_asked(counting: SkillCatalog, caplog: pytest.LogCaptureFixture) -> None:
    """One line each at DEBUG, without arguments."""
    with caplog.at_level(logging.DEBUG, logger="skillruntime.runtime"):
        SkillRuntime(counting).call_blocking("counting", {"text": 5.5, "secret": 1})

    (record,) = caplog.records
    assert record.getMessage().startswith("execute_tool counting: failed (")
    assert "secret" not in record.getMessage()
