"""A served script's result is the script's: its output, its exit code and its stderr
are in the execution, on its page, and in the answer of a client's runtime.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from skillruntime.catalog.discovery.discovery import discover
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, InvalidSkillError, SkillError
from skillruntime.remote.client import RemoteClient, RemoteRunner
from skillruntime.remote.protocol import ExecutionStatus
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.server.executions.open_executions import (
    durable_executions,
    memory_executions,
)
from skillruntime.server.published_skill import SkillWork, serve_catalog, to_outcome
from skillruntime.server.service import SkillService
from tests.server.serving import Served, Skills
from tests.server.test_console import look
from tests.skill_files import write_skill_files

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

BASE = "http://127.0.0.1:8400"
LINT = """
import json, sys
code = json.load(sys.stdin)["code"]
print(json.dumps({"problems": ["<b>unused</b>"]}))
print("one file was checked", file=sys.stderr)
sys.exit(code)
"""


@asynccontextmanager
async def serve_linter(directory: Path) -> AsyncIterator[Served]:
    """Serve one skill whose script ends with the code that it is given; 3 is a
    result.
    """
    contract = {
        "version": "1.0.0",
        "input": {"properties": {"code": {"type": "integer"}}},
        "run": {"script": "scripts/lint.py", "exit_codes": {"3": "problems found"}},
    }
    files = {"scripts/lint.py": LINT, "contract.json": json.dumps(contract)}
    write_skill_files(directory, "linter", "Lints files", files)
    runtime = SkillRuntime(discover(directory, trusted=True))
    published = serve_catalog(runtime, base_url=BASE)
    async with memory_executions(SkillWork(runtime, published)) as executions:
        service = SkillService(published, executions)
        yield Served(service, Skills(), service.handle)


def linter_of(served: Served) -> RemoteClient:
    return served.client("linter")


async def test_a_failed_execution_has_the_output_and_the_code(tmp_path: Path) -> None:
    """On the wire, as in the process."""
    async with serve_linter(tmp_path) as served:
        execution = await linter_of(served).invoke({"code": 5})

    assert execution.status is ExecutionStatus.FAILED
    assert execution.output == {"problems": ["<b>unused</b>"]}
    assert execution.metadata == {"exit_code": 5, "stderr": "one file was checked"}
    assert execution.error is not None
    assert execution.error.message == (
        "The script failed with exit code 5 (its output is in data): one file was "
        "checked"
    )


async def test_a_code_that_is_a_result_completes_the_execution(tmp_path: Path) -> None:
    """The metadata says the code, and what it means."""
    async with serve_linter(tmp_path) as served:
        execution = await linter_of(served).invoke({"code": 3})

    assert execution.status is ExecutionStatus.COMPLETED
    assert execution.metadata == {
        "exit_code": 3,
        "exit_meaning": "problems found",
        "stderr": "one file was checked",
    }


async def test_a_clients_runtime_answers_as_the_servers(tmp_path: Path) -> None:
    """Data, code and stderr of a remote script are in the envelope."""
    async with serve_linter(tmp_path) as served:
        client = linter_of(served)
        runtime = SkillRuntime()
        contract = client.descriptor.to_contract("linter")
        runtime.implements("linter", contract=contract)(RemoteRunner(client))
        response = await runtime.call("linter", {"code": 5})

    assert (response.status, response.data) == (
        "failed",
        {"problems": ["<b>unused</b>"]},
    )
    assert response.metadata is not None
    assert response.metadata["exit_code"] == 5
    assert response.metadata["stderr"] == "one file was checked"


@asynccontextmanager
async def serve_counter(directory: Path) -> AsyncIterator[Served]:
    """Serve one skill whose script prints a line and then never ends."""
    contract = {"version": "1.0.0", "run": {"script": "scripts/run.py"}}
    source = "import time\nprint('page 1', flush=True)\ntime.sleep(6000)\n"
    files = {"scripts/run.py": source, "contract.json": json.dumps(contract)}
    write_skill_files(directory, "counter", "Counts pages", files)
    runtime = SkillRuntime(discover(directory, trusted=True))
    published = serve_catalog(runtime, base_url=BASE)
    async with memory_executions(SkillWork(runtime, published)) as executions:
        service = SkillService(published, executions)
        yield Served(service, Skills(), service.handle)


async def test_a_deadline_of_the_server_keeps_what_was_printed(tmp_path: Path) -> None:
    """The execution has the part, its error says so, and a client's runtime too."""
    async with serve_counter(tmp_path) as served:
        client = served.client("counter")
        execution = await client.invoke({}, timeout=3)
        runtime = SkillRuntime()
        contract = client.descriptor.to_contract("counter")
        runtime.implements("counter", contract=contract)(RemoteRunner(client))
        response = await runtime.call("counter", {}, timeout=3)

    assert execution.status is ExecutionStatus.TIMEOUT
    assert (execution.has_output, execution.output) == (True, "page 1")
    assert execution.error is not None
    assert execution.error.code == "EXECUTION_TIMEOUT"
    assert execution.error.message.endswith(
        "; the output is the part that it had printed by then"
    )
    assert (execution.error.details or {})["partial"] is True
    assert response.data == "page 1"
    assert response.errors[0].code in (
        ErrorCode.EXECUTION_TIMEOUT,
        ErrorCode.TOOL_TIMEOUT,
    )


async def test_the_page_of_an_execution_shows_the_code(tmp_path: Path) -> None:
    """With the output and stderr, escaped."""
    async with serve_linter(tmp_path) as served:
        execution = await linter_of(served).invoke({"code": 5})
        page = await look(served, "GET", f"/ui/executions/{execution.execution_id}")

    assert b"Exit code: 5" in page.body
    assert b"one file was checked" in page.body
    assert b"&lt;b&gt;unused" in page.body
    assert b"<b>unused" not in page.body


async def test_an_output_that_is_too_long_to_keep_leaves_the_failure_as_it_is() -> None:
    """The error stays the script's; a warning says why its output is missing."""
    error = SkillError(ErrorCode.TOOL_EXECUTION_FAILED, "It failed", False)
    response: SkillResponse = SkillResponse("failed", "x" * 100, [error])

    outcome = to_outcome(response, output_bytes=50)

    assert (outcome.has_output, outcome.output) == (False, None)
    assert outcome.error is not None
    assert outcome.error.message == "It failed"
    assert outcome.metadata["warnings"] == [
        "The output has 102 bytes of JSON; this server keeps 50 at most"
    ]


async def test_executions_need_a_file_or_a_postgresql_url(tmp_path: Path) -> None:
    """Another database is refused before anything is opened."""
    runtime = SkillRuntime(discover(tmp_path))
    work = SkillWork(runtime, serve_catalog(runtime, base_url=BASE))

    with pytest.raises(InvalidSkillError, match="mysql:// is not supported; use postg"):
        durable_executions(work, "mysql://host/db")
