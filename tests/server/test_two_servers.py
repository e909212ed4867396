"""Two servers on one PostgreSQL, each in a process of its own: what one accepts,
another sees, cancels and takes up.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psycopg
import pytest

from skillruntime.server.executions.postgres.dead_servers import DeadServers
from tests import needs
from tests.server.postgres import Postgres, running_postgres
from tests.server.processes import KillableServer
from tests.server.relay import Relay
from tests.server.serving import invocation
from tests.server.test_killed import ran

pytest.importorskip("starlette", reason=needs.to_install("starlette"))

pytestmark = [pytest.mark.processes, pytest.mark.anyio]


@dataclass
class Pair:
    """Two servers, and a client for both. ``go`` ends the runs that wait."""

    directory: Path
    url: str
    servers: list[KillableServer]
    processes: list[subprocess.Popen[bytes]]
    http: httpx2.AsyncClient

    async def ask(
        self, which: int, method: str, path: str, **options: Any
    ) -> httpx2.Response:
        """Ask one server until it answers."""
        with anyio.fail_after(300):
            return await self.servers[which].answer(self.http, method, path, **options)

    async def submit(self, which: int, name: str, text: str) -> str:
        """Submit an execution to one server until it is accepted; return its id."""
        path, headers = f"/skills/{name}/invoke", {"idempotency-key": text}
        with anyio.fail_after(300):
            while True:
                response = await self.ask(
                    which, "POST", path, json=invocation(name, text), headers=headers
                )
                if (
                    response.status_code != 503
                ):  # the database does not answer, or not within a second
                    return str(response.json()["execution_id"])
                await anyio.sleep(0.1)

    async def begun(self, *texts: str) -> None:
        """Wait until these have begun."""
        with anyio.fail_after(300):
            while not {*texts} <= {*ran(self.directory)}:
                await anyio.sleep(0.02)

    async def end(self, which: int, execution_id: str) -> dict[str, Any]:
        """Wait for the end of an execution, as one server shows it."""
        with anyio.fail_after(300):
            while True:
                path = f"/executions/{execution_id}"
                shown = (
                    await self.ask(which, "GET", path, headers={"prefer": "wait=5"})
                ).json()
                if "error" in shown and "status" not in shown:  # the database is away
                    await anyio.sleep(0.1)
                elif shown["status"] not in ("accepted", "running"):
                    return dict(shown)

    def go(self) -> None:
        """End what waits."""
        (self.directory / "go").touch()


@asynccontextmanager
async def pair(
    directory: Path, url: str, *, number: int = 1, drain: float = 0, lease: float = 1.5
) -> AsyncIterator[Pair]:
    """Start the servers. Of two that both live, none is taken for dead, however busy
    the machine is.
    """
    lease = 300.0 if number > 1 else lease
    servers = [
        KillableServer(directory, drain=drain, url=url, lease=lease)
        for _ in range(number)
    ]
    async with (
        AsyncExitStack() as stack,
        httpx2.AsyncClient(timeout=300, trust_env=False) as http,
    ):
        processes = [
            await stack.enter_async_context(server.started()) for server in servers
        ]
        yield Pair(directory, url, servers, processes, http)


def code_of(document: dict[str, Any]) -> str:
    """Return the code of an end, or its status where it has no error."""
    return str((document.get("error") or {}).get("code", document["status"]))


@pytest.mark.slow
def test_servers_that_start_at_once_share_a_new_database(url: str) -> None:
    """Of several that create the same table at once, PostgreSQL lets one fail even with
    IF NOT EXISTS.
    """
    leases = [
        DeadServers(url, f"server-{each}", 60, _nothing_is_dead) for each in range(8)
    ]
    together = threading.Barrier(len(leases))

    def start(lease: DeadServers) -> None:
        together.wait()
        lease.start()

    try:
        with ThreadPoolExecutor(len(leases)) as threads:
            list(threads.map(start, leases))
        with psycopg.connect(url) as connection:
            written = connection.execute(
                "SELECT count(*) FROM skillruntime.servers"
            ).fetchall()
    finally:
        for lease in leases:
            lease.stop(forgets=True)

    assert written == [(8,)]


def _nothing_is_dead(name: str) -> None:
    raise AssertionError(f"{name} was taken for dead")


@pytest.mark.slow
async def test_one_key_sent_to_two_servers_at_once_is_one_execution(
    url: str, tmp_path: Path
) -> None:
    """The database decides, not a lock of one process."""
    async with pair(tmp_path, url, number=2) as both:
        found: set[str] = set()

        async def submit(which: int) -> None:
            found.add(await both.submit(which, "once", "once-1"))

        async with anyio.create_task_group() as tasks:
            for each in range(20):
                tasks.start_soon(submit, each % 2)
        [execution_id] = found
        ends = [await both.end(which, execution_id) for which in (0, 1)]
        path, other = "/skills/once/invoke", invocation("once", "once-2")
        reused = await both.ask(
            1, "POST", path, json=other, headers={"idempotency-key": "once-1"}
        )

    assert ends[0] == ends[1] and ends[0]["output"] == {"said": "once-1"}
    assert ran(tmp_path) == ["once-1"]
    assert reused.status_code == 422


@pytest.mark.slow
async def test_what_one_server_runs_another_cancels(url: str, tmp_path: Path) -> None:
    """Its end is the same at both, and a second cancellation changes nothing."""
    async with pair(tmp_path, url, number=2) as both:
        execution_id = await both.submit(0, "once", "once-9")
        await both.begun("once-9")
        headers = {"skill-extensions": "cancelled"}
        await both.ask(1, "DELETE", f"/executions/{execution_id}", headers=headers)
        for which in (1, 0):  # the one that runs it hears of it a moment later
            await both.end(which, execution_id)
        seen = [
            (
                await both.ask(
                    which, method, f"/executions/{execution_id}", headers=headers
                )
            ).json()
            for which in (0, 1)
            for method in ("GET", "DELETE")
        ]

    assert seen[0]["status"] == "cancelled"
    assert seen == [seen[0]] * 4


@pytest.mark.processes
async def test_two_servers_answer_alike(url: str, tmp_path: Path) -> None:
    """What has ended is the same document with the same entity tag, and so are the
    refusals of the protocol.
    """
    async with pair(tmp_path, url, number=2) as both:
        execution_id = await both.submit(0, "once", "once-1")
        path = f"/executions/{execution_id}"
        for which in (0, 1):
            await both.end(which, execution_id)
        tag = (await both.ask(0, "GET", path)).headers["etag"]
        asked: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", path, {}),
            ("GET", f"{path}/result", {}),
            ("HEAD", path, {}),
            ("GET", path, {"headers": {"if-none-match": tag}}),
            ("GET", path, {"headers": {"if-match": '"old"'}}),
            ("DELETE", path, {}),
            ("PUT", path, {}),
            ("POST", f"{path}/complete", {"json": {"output": 1}}),
            ("GET", "/executions/none", {}),
            ("GET", "/executions", {}),
            ("POST", "/skills/once/invoke", {"json": {"skill_id": "once"}}),
            ("POST", "/skills/none/invoke", {"json": invocation("none")}),
        ]
        answers = [
            [await both.ask(which, method, at, **more) for which in (0, 1)]
            for method, at, more in asked
        ]

    assert [[each.status_code for each in pairs] for pairs in answers] == [
        *(
            [200, 200],
            [200, 200],
            [200, 200],
            [304, 304],
            [412, 412],
            [200, 200],
            [405, 405],
            [401, 401],
        ),
        *([404, 404], [401, 401], [400, 400], [404, 404]),
    ]
    assert [first.content == second.content for first, second in answers] == [
        True
    ] * len(answers)
    assert [
        first.headers.get("etag") == second.headers.get("etag")
        for first, second in answers
    ] == [True] * len(answers)


@pytest.mark.slow
async def test_the_work_of_a_killed_server_is_taken_up(
    url: str, tmp_path: Path
) -> None:
    """What may run twice runs again, what must not ends interrupted, and what has not
    begun is run.
    """
    async with pair(tmp_path, url) as one:
        texts = [f"once-{each}" for each in (9, 19, 29, 39)] + [
            f"twice-{each}" for each in (9, 19, 29, 39)
        ]
        ids = {
            text: await one.submit(0, text.partition("-")[0], text) for text in texts
        }
        await one.begun(*texts)
        # No place is free for these.
        ids |= {
            text: await one.submit(0, text.partition("-")[0], text)
            for text in ("once-1", "twice-1")
        }
        one.processes[0].kill()
        one.processes[0].wait()
        async with pair(tmp_path, url) as two:
            waiting = (await two.ask(0, "GET", f"/executions/{ids['twice-9']}")).json()[
                "status"
            ]
            two.go()
            ends = {
                text: code_of(await two.end(0, execution_id))
                for text, execution_id in ids.items()
            }

    assert waiting == "running"
    assert ends == {
        **dict.fromkeys(texts[:4], "EXECUTION_INTERRUPTED"),
        **dict.fromkeys((*texts[4:], "once-1", "twice-1"), "completed"),
    }
    assert sorted(ran(tmp_path)) == sorted([*texts, *texts[4:], "once-1", "twice-1"])


@pytest.mark.slow
async def test_a_frozen_server_that_thaws_alters_nothing(
    url: str, tmp_path: Path
) -> None:
    """Its lease ran out and its work was taken up: the ends that it then writes are
    discarded.
    """
    async with pair(tmp_path, url) as one:
        ids = [await one.submit(0, name, f"{name}-9") for name in ("once", "twice")]
        await one.begun("once-9", "twice-9")
        one.processes[0].send_signal(signal.SIGSTOP)
        async with pair(tmp_path, url) as two:
            once = await two.end(0, ids[0])
            one.processes[0].send_signal(signal.SIGCONT)
            two.go()
            before = [once, await two.end(0, ids[1])]
            after = [await server.end(0, each) for each in ids for server in (one, two)]

    assert [code_of(each) for each in before] == ["EXECUTION_INTERRUPTED", "completed"]
    assert after == [before[0], before[0], before[1], before[1]]
    assert ran(tmp_path).count("once-9") == 1


@pytest.mark.slow
async def test_a_server_that_takes_up_its_own_work_does_not_begin_it_twice(
    url: str, tmp_path: Path
) -> None:
    """It was taken for dead while it ran, and takes its own work from the queue: the
    same process, another dispatch.
    """
    async with pair(tmp_path, url) as one:
        ids = [await one.submit(0, name, f"{name}-9") for name in ("once", "twice")]
        await one.begun("once-9", "twice-9")
        await anyio.to_thread.run_sync(requeue, url)
        once = await one.end(0, ids[0])
        one.go()
        twice = await one.end(0, ids[1])
        again = await one.end(0, ids[0])

    assert code_of(once) == "EXECUTION_INTERRUPTED" and again == once
    assert twice["status"] == "completed"
    assert ran(tmp_path).count("once-9") == 1


def requeue(url: str) -> None:
    """Do what the engine's recovery of another server would."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE skillruntime.workflow_status SET status = 'ENQUEUED', owner_xid = "
            "NULL, started_at_epoch_ms = NULL WHERE status = 'PENDING'"
        )


@pytest.mark.slow
async def test_a_server_that_drains_hands_over_what_may_run_twice(
    url: str, tmp_path: Path
) -> None:
    """SIGTERM: the other one begins it before a lease has run out, and what must not
    run twice ends truthfully.
    """
    async with pair(tmp_path, url, drain=0.5, lease=300) as one:
        ids = [await one.submit(0, name, f"{name}-9") for name in ("once", "twice")]
        await one.begun("once-9", "twice-9")
        async with pair(tmp_path, url, lease=300) as two:
            one.processes[0].terminate()
            with anyio.fail_after(300):
                status = await anyio.to_thread.run_sync(one.processes[0].wait)
            two.go()
            ends = [code_of(await two.end(0, each)) for each in ids]

    assert status == 0
    assert ends == ["EXECUTION_INTERRUPTED", "completed"]
    assert ran(tmp_path).count("twice-9") == 2


@pytest.mark.slow
async def test_without_its_database_a_server_refuses_and_loses_nothing(
    tmp_path: Path,
) -> None:
    """503 and Retry-After, and not ready; what ran meanwhile is written when the
    database is back.
    """
    with running_postgres() as own:
        async with pair(tmp_path, own.create_prepared()) as one:
            execution_id = await one.submit(0, "once", "once-9")
            await one.begun("once-9")
            await anyio.to_thread.run_sync(own.stop)
            refused = await one.ask(
                0, "POST", "/skills/once/invoke", json=invocation("once", "once-1")
            )
            one.go()
            await anyio.to_thread.run_sync(own.start)
            ended = await one.end(0, execution_id)
            accepted = await one.submit(0, "once", "once-2")
            other = await one.end(0, accepted)

    assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
    assert ended["output"] == {"said": "once-9"}
    assert other["output"] == {"said": "once-2"}
    assert sorted(ran(tmp_path)) == ["once-2", "once-9"]


@pytest.mark.slow
async def test_a_silent_partition_is_survived(
    postgres: Postgres, url: str, tmp_path: Path
) -> None:
    """The peer's TCP answers and nothing comes back: calls are broken off, and work
    resumes after the end.
    """
    relay = Relay(postgres.port)
    through = postgres.url(url.rpartition("/")[2], relay.port)
    async with pair(tmp_path, through) as one:
        first = await one.end(0, await one.submit(0, "once", "once-1"))
        relay.drops.set()
        refused = await one.ask(
            0, "POST", "/skills/once/invoke", json=invocation("once", "once-2")
        )
        relay.drops.clear()
        second = await one.end(0, await one.submit(0, "once", "once-3"))
    relay.listening.close()

    assert refused.status_code == 503
    assert first["output"] == {"said": "once-1"} and second["output"] == {
        "said": "once-3"
    }


@pytest.mark.slow
async def test_what_is_stored_is_json(url: str, tmp_path: Path) -> None:
    """The engine's default, pickle, would run the code of whoever can write to the
    database.
    """
    async with pair(tmp_path, url) as one:
        await one.end(0, await one.submit(0, "once", "once-1"))
    with psycopg.connect(url) as connection:
        [(inputs, output, name)] = connection.execute(
            "SELECT i.inputs::json ->> 'args', o.output::json ->> 'status', "
            "serialization FROM skillruntime.workflow_status JOIN "
            "skillruntime.workflow_input i USING (workflow_uuid) JOIN "
            "skillruntime.workflow_output o USING (workflow_uuid)"
        ).fetchall()

    assert "once-1" in inputs and output == "completed" and name == "skillruntime_json"
