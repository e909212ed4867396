"""A secret that the host grants to one script is found nowhere else, in no place that
keeps what was said.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.catalog import SkillCatalog, discover
from skillruntime.runtime import Approval, Grants, SkillRuntime
from skillruntime.server import (
    KeyRing,
    SkillService,
    SkillWork,
    durable_executions,
    serve_catalog,
)
from tests import needs
from tests.hostile.cases import skill_text
from tests.remote.parts import WireRequest
from tests.server.postgres import Postgres, running_postgres

CANARY = 'canary-"51\\e0é'  # with what JSON and a shell escape
GRANTS = {"sample": Grants(environment=("SERVICE_TOKEN",))}
SAID = (
    "import json, os, sys\nsecret = os.environ['SERVICE_TOKEN']\nprint('with', secret,"
    " repr(secret), file=sys.stderr)\n"
)
SCRIPTS = {
    "a result": SAID + "print(json.dumps({'said': [secret, {secret: secret}]}))",
    "a reported failure": (
        SAID
        + "print(json.dumps({'status': 'failed', 'errors': [{'code': secret, 'message':"
        " secret, 'details': {'a': secret}}]}))\nsys.exit(1)"
    ),
    "a traceback": SAID + "raise ValueError(secret)",
    "not JSON": SAID + "print(secret)",
    "a flood": SAID + "while True: print(secret * 1000)",
}


@pytest.fixture(params=SCRIPTS)
def catalog(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SkillCatalog:
    """An untrusted skill whose script says the secret in one way."""
    directory = tmp_path / "skills" / "sample"
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(skill_text("sample"), "utf-8")
    (directory / "scripts" / "run.py").write_text(SCRIPTS[request.param], "utf-8")
    document = {
        "version": "1.0.0",
        "input": {
            "properties": {"api_key": {"type": "string"}, "number": {"type": "integer"}}
        },
        "requires": {"environment": ["SERVICE_TOKEN"]},
        "run": {"script": "scripts/run.py"},
    }
    (directory / "contract.json").write_text(json.dumps(document), "utf-8")
    monkeypatch.setenv("SERVICE_TOKEN", CANARY)
    return discover(tmp_path / "skills")


def assert_absent(*texts: str) -> None:
    """Check that no form of the secret is in a text: as it is, in JSON, in Python's
    notation.
    """
    forms = {
        CANARY,
        repr(CANARY)[1:-1],
        json.dumps(CANARY)[1:-1],
        json.dumps(CANARY, ensure_ascii=False)[1:-1],
    }
    for text in texts:
        for form in forms | {form.replace("\\", "\\\\") for form in forms}:
            assert form not in text, text[max(0, text.index(form) - 100) :][:300]


@pytest.mark.processes
@pytest.mark.usefixtures("some_sandbox")
def test_answers_logs_spans_and_approvals(
    catalog: SkillCatalog, caplog: pytest.LogCaptureFixture
) -> None:
    """Also what the model sent as ``api_key`` is in no error, log or span."""
    needs.package("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
        InMemorySpanExporter,
    )

    from skillruntime.adapters.telemetry import spans

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    asked: list[Approval] = []

    def approve(request: Approval) -> bool:
        asked.append(request)
        return True

    runtime = SkillRuntime(
        catalog,
        approve=approve,
        grants=GRANTS,
        on_call=spans(provider.get_tracer("test"), content=True),
    )
    with caplog.at_level(logging.DEBUG):
        response = runtime.call_sync("sample", {"number": 1})
        refused = runtime.call_sync("sample", {"api_key": CANARY, "number": "three"})

    assert not refused.ok
    assert len(asked) == 1
    assert_absent(
        response.to_json(),
        repr(response),
        refused.to_json(),
        repr(refused),
        caplog.text,
    )
    assert_absent(*(span.to_json() for span in exporter.get_finished_spans()))
    assert_absent(repr(asked), repr(runtime), repr(GRANTS), repr(response.metadata))


@pytest.mark.processes
@pytest.mark.usefixtures("some_sandbox")
def test_checkpoints_of_a_graph(catalog: SkillCatalog) -> None:
    """Messages, artifacts and pending writes, as the checkpointer keeps them."""
    needs.package("langchain.agents")
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver

    from skillruntime.adapters.agent_middleware import SkillMiddleware
    from skillruntime.testing import ScriptedChatModel, call_message

    saver = InMemorySaver()
    runtime = SkillRuntime(catalog, approve=lambda request: True, grants=GRANTS)
    calls = [
        call_message(("load_skill", {"name": "sample"})),
        call_message(("sample", {"number": 1})),
    ]
    model = ScriptedChatModel(replies=[*calls, AIMessage("Done.")])
    agent = create_agent(
        model, middleware=[SkillMiddleware(runtime, tools="typed")], checkpointer=saver
    )
    thread: Any = {"configurable": {"thread_id": "1"}}

    agent.invoke({"messages": [HumanMessage("Please.")]}, thread)

    kept = [
        repr(saver.storage),
        repr(saver.blobs),
        repr(saver.writes),
        repr(agent.get_state(thread).values),
    ]
    assert '"sandbox":' in kept[-1]  # the script ran
    assert_absent(*kept, repr([list(each) for each in agent.get_state_history(thread)]))


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """One PostgreSQL for this module."""
    with running_postgres(newest=True) as server:
        yield server


@pytest.mark.processes
@pytest.mark.usefixtures("some_sandbox")
@pytest.mark.parametrize(
    "kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
)
def test_rows_of_a_database(
    catalog: SkillCatalog,
    tmp_path: Path,
    kind: str,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A served script: what the client reads, every column of every table, and the
    bytes of the files.
    """
    place = (
        str(tmp_path / "e.db")
        if kind == "sqlite"
        else request.getfixturevalue("postgres").create_prepared()
    )
    runtime = SkillRuntime(catalog, approve=lambda approval: True, grants=GRANTS)
    served = serve_catalog(runtime, base_url="http://127.0.0.1:8400")
    body = json.dumps(
        {
            "caller": {"id": "t", "type": "service"},
            "skill_id": "sample",
            "inputs": {"number": 1},
        }
    )

    async def main() -> str:
        work = SkillWork(runtime, served)
        async with durable_executions(work, place, lease=5, poll=0.02) as executions:
            service = SkillService(served, executions, authenticate=KeyRing({}))
            headers = {"content-type": "application/json"}
            url = "http://127.0.0.1:8400/skills/sample/invoke"
            answer = await service.handle(
                WireRequest("POST", url, headers, body.encode(), "127.0.0.1")
            )
            execution_id = json.loads(answer.body)["execution_id"]
            with anyio.fail_after(300):
                ended = [each async for each in executions.watch(execution_id)][-1]
            return answer.body.decode() + repr(ended)

    with caplog.at_level(logging.DEBUG):
        said = anyio.run(main)

    assert "sample" in caplog.text + said
    assert_absent(said, caplog.text, *_kept(place))


def _kept(place: str) -> Iterator[str]:
    """Yield the bytes of the SQLite files as text, or each row of PostgreSQL's
    tables.
    """
    if "://" not in place:
        for file in Path(place).parent.glob("e.db*"):
            yield file.read_bytes().decode("utf-8", "replace")
        return
    import psycopg

    with psycopg.connect(place) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'skillruntime'"
        ).fetchall()
        for (table,) in tables:
            for (row,) in connection.execute(
                f'SELECT t::text FROM skillruntime."{table}" t'
            ):  # type: ignore[arg-type]
                yield row


def test_a_fault_of_the_sandbox_shows_nothing(
    catalog: SkillCatalog, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Neither the error, nor the traceback in the log with the commands that it
    holds.
    """
    seen: list[str] = []

    class Broken:
        level = "bubblewrap"

        async def run(self, command: Any, *, on_stopped: Any = None) -> Any:
            seen.append(repr(command))
            raise RuntimeError(f"cannot run {command}")

    runtime = SkillRuntime(
        catalog, approve=lambda request: True, grants=GRANTS, sandbox=Broken()
    )  # type: ignore[arg-type]
    with caplog.at_level(logging.DEBUG):
        response = runtime.call_sync("sample", {"number": 1})

    assert response.errors is not None
    assert seen
    shown = [response.to_json(), caplog.text, *seen]
    shown += [
        "".join(traceback.format_exception(*each.exc_info))
        for each in caplog.records
        if each.exc_info
    ]
    assert_absent(repr(response), *shown)
