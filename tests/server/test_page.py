"""docs/server.md alone starts two servers on PostgreSQL; one is killed under load, and
nothing is lost.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psycopg
import pytest

from tests import needs
from tests.server.postgres import Postgres
from tests.server.processes import address_of

pytest.importorskip("starlette", reason=needs.to_install("starlette"))
pytest.importorskip("dbos", reason=needs.to_install("dbos"))

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs" / "server.md"
CALLS = 40
SCRIPT = """
import json, sys
arguments = json.load(sys.stdin)
with open(arguments["file"], "a") as file:
    file.write(arguments["text"] + chr(10))
print(json.dumps({"said": arguments["text"]}))
"""
TEXT = {"type": "string"}
CONTRACT = {
    "version": "1.0.0",
    "input": {
        "type": "object",
        "properties": {"file": TEXT, "text": TEXT},
        "required": ["file", "text"],
    },
    "run": {"script": "scripts/note.py"},
}


def commands_of_the_page() -> list[list[str]]:
    """Return the commands under the heading of several servers."""
    section = (
        PAGE.read_text("utf-8")
        .partition("## Several servers: PostgreSQL")[2]
        .partition("\n## ")[0]
    )
    block = re.search(r"```console\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return [shlex.split(line.removeprefix("$ ")) for line in block[1].splitlines()]


def create_database(postgres: Postgres, psql: list[str]) -> None:
    """Run the statements of a command of psql."""
    statements = [text for option, text in pairwise(psql) if option == "-c"]
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@contextmanager
def serving(
    command: list[str], environment: dict[str, str], directory: Path
) -> Iterator[subprocess.Popen[str]]:
    """Run a command of the page that serves, at a port that is free; end it with the
    test in any case.
    """
    port = command.index("--port") + 1
    arguments = [
        *command[1:port],
        "0",
        *(each for each in command[port + 1 :] if each != "&"),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "skillruntime", *arguments],
        env={**os.environ, **environment},
        cwd=directory,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def running_by_server(postgres: Postgres, database: str) -> list[set[str]]:
    """Return the ids of the executions that each server has begun and whose end it has
    not recorded.
    """
    table = "skillruntime.workflow_status"
    query = (
        f"SELECT array_agg(workflow_uuid) FROM {table} WHERE status = 'PENDING' GROUP "
        "BY executor_id"
    )
    with psycopg.connect(postgres.url(database)) as connection:
        return [set(ids) for (ids,) in connection.execute(query)]


def write_skill(directory: Path) -> None:
    """Write a skill that must not run twice: it appends a line to a file."""
    scripts = directory / "skills" / "note" / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "note.py").write_text(SCRIPT)
    (scripts.parent / "SKILL.md").write_text(
        "---\nname: note\ndescription: Notes a text\n---\nCall it.\n"
    )
    (scripts.parent / "contract.json").write_text(json.dumps(CONTRACT))


async def test_two_servers_of_the_page_lose_nothing_when_one_is_killed(
    postgres: Postgres, tmp_path: Path
) -> None:
    """The role that the page makes may make the tables, both servers start at once, and
    every call ends.
    """
    _, psql, export, first, second = commands_of_the_page()
    create_database(postgres, psql)
    variable, _, url = export[1].partition("=")
    environment = {variable: url.replace("@127.0.0.1/", f"@127.0.0.1:{postgres.port}/")}
    database = url.rpartition("/")[2]
    write_skill(tmp_path)
    notes = tmp_path / "notes"
    accepted: dict[str, str] = {}

    with (
        serving(first, environment, tmp_path) as one,
        serving(second, environment, tmp_path) as two,
    ):
        addresses = [
            await anyio.to_thread.run_sync(address_of, each) for each in (one, two)
        ]
        async with httpx2.AsyncClient(timeout=300, trust_env=False) as client:

            async def ask(method: str, path: str, **options: Any) -> dict[str, Any]:
                while True:
                    try:
                        response = await client.request(
                            method, random.choice(addresses) + path, **options
                        )
                    except httpx2.TransportError:
                        await anyio.sleep(0.05)
                        continue
                    if response.status_code != 503:
                        return dict(response.json())
                    await anyio.sleep(0.1)

            async def submit(text: str) -> None:
                inputs = {"file": str(notes), "text": text}
                document = {
                    "caller": {"id": "t", "type": "service"},
                    "skill_id": "note",
                    "inputs": inputs,
                }
                shown = await ask(
                    "POST",
                    "/skills/note/invoke",
                    json=document,
                    headers={"idempotency-key": text},
                )
                accepted[text] = shown["execution_id"]

            async def end_of(execution_id: str) -> dict[str, Any]:
                while True:
                    shown = await ask(
                        "GET",
                        f"/executions/{execution_id}",
                        headers={"prefer": "wait=5"},
                    )
                    if shown["status"] not in ("accepted", "running"):
                        return shown

            with anyio.fail_after(540):
                async with anyio.create_task_group() as tasks:
                    for number in range(CALLS):
                        tasks.start_soon(submit, f"note-{number}")
                    while not notes.exists():
                        await anyio.sleep(0.01)
                    one.send_signal(signal.SIGKILL)
                    del addresses[0]
                    await anyio.to_thread.run_sync(one.wait)
                    running = await anyio.to_thread.run_sync(
                        running_by_server, postgres, database
                    )
                ends = {
                    text: await end_of(execution_id)
                    for text, execution_id in accepted.items()
                }

    written = Counter(notes.read_text().split())
    completed = {text for text, shown in ends.items() if shown["status"] == "completed"}
    assert len(ends) == CALLS
    assert {ends[text]["error"]["code"] for text in ends.keys() - completed} <= {
        "EXECUTION_INTERRUPTED"
    }
    interrupted = {accepted[text] for text in ends.keys() - completed}
    assert any(interrupted <= ids for ids in [set[str](), *running]), (
        "only what the killed server ran was cut off"
    )
    assert all(written[text] == 1 for text in completed)
    assert max(written.values()) == 1
