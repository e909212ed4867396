"""What an execution costs a server: CPU and time, beside a bare application that writes
the same rows.

    python benchmarks/remote.py [--calls 300] [--clients 1 16 128] [--postgres]
    [--engine] python benchmarks/remote.py [--memory 50000] [--ended 100000]

There are two bases, Starlette applications on the same uvicorn with one route. The bare
one reads JSON, inserts a row, updates it with its output and answers: two transactions,
as an execution takes that is begun by the server that accepts it. With --engine (``pip
install dbos``) the other one runs a workflow of DBOS that returns its arguments, and
answers with its result. Neither has what a server of skills does besides: contracts,
callers, limits, the state of an execution and who may see it. ``skills`` may be
repeated, ``once`` must not. SQLite has WAL and synchronous=FULL everywhere, and
PostgreSQL is one server for all. Every server is a process of its own, whose CPU time
is read from the system; what is compared is measured in one run. Also: the poll of an
ended execution, an idle server, four servers beside one (with --postgres) for a skill
that waits 200 ms, the memory of a server on SQLite after so many executions (with
--memory), and the cost of an execution before and after so many ended rows were added
(with --ended); each of the last two is then all that is measured.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2

sys.path.insert(0, str(Path(__file__).parents[1]))  # for what it shares with the tests

from skillruntime.server import bind
from tests.server.processes import read_port

TICK = os.sysconf("SC_CLK_TCK")
ROWS = (
    "CREATE TABLE IF NOT EXISTS e (id TEXT PRIMARY KEY, state TEXT, request TEXT, "
    "output TEXT)"
)
INSERT, UPDATE = (
    "INSERT INTO e VALUES (?, 'running', ?, NULL)",
    "UPDATE e SET state = 'ended', output = ? WHERE id = ?",
)


async def serve_base(listening: socket.socket, database: str) -> None:
    """Serve the bare application."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    lock = threading.Lock()
    if "://" in database:
        import psycopg

        connection: Any = psycopg.connect(database)
        connection.execute(ROWS)
        connection.commit()
        insert, update = INSERT.replace("?", "%s"), UPDATE.replace("?", "%s")
    else:
        connection = sqlite3.connect(database, check_same_thread=False)
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(ROWS)
        insert, update = INSERT, UPDATE

    def write(statement: str, *values: str) -> None:
        with lock:
            connection.execute(statement, values)
            connection.commit()

    async def invoke(request: Request) -> JSONResponse:
        document = json.loads(await request.body())
        name = os.urandom(16).hex()
        await anyio.to_thread.run_sync(write, insert, name, json.dumps(document))
        output = document["inputs"]
        await anyio.to_thread.run_sync(write, update, json.dumps(output), name)
        return JSONResponse(
            {"execution_id": name, "status": "completed", "output": output}
        )

    app = Starlette(routes=[Route("/skills/echo/invoke", invoke, methods=["POST"])])
    await uvicorn.Server(uvicorn.Config(app, log_config=None, http="h11")).serve(
        [listening]
    )


async def serve_engine(listening: socket.socket, database: str) -> None:
    """Serve a workflow of DBOS that does nothing: what the same call costs on an
    engine.
    """
    import sqlalchemy
    import uvicorn
    from dbos import DBOS
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    is_postgres = "://" in database
    url = (
        database.replace("postgresql:", "postgresql+psycopg:")
        if is_postgres
        else f"sqlite:///{database}"
    )
    engine = sqlalchemy.create_engine(url)

    if not is_postgres:

        @sqlalchemy.event.listens_for(engine, "connect")
        def prepare(connection: Any, record: Any) -> None:
            for pragma in ("journal_mode=WAL", "synchronous=FULL"):
                connection.execute(f"PRAGMA {pragma}")

    DBOS(
        config={
            "name": "base",
            "system_database_url": url,
            "system_database_engine": engine,
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )

    @DBOS.workflow()
    async def nothing(inputs: dict[str, Any]) -> dict[str, Any]:
        return inputs

    async def invoke(request: Request) -> JSONResponse:
        document = json.loads(await request.body())
        handle = await DBOS.start_workflow_async(nothing, document["inputs"])
        output = await handle.get_result()
        return JSONResponse(
            {
                "execution_id": handle.workflow_id,
                "status": "completed",
                "output": output,
            }
        )

    DBOS.launch()
    app = Starlette(routes=[Route("/skills/echo/invoke", invoke, methods=["POST"])])
    await uvicorn.Server(uvicorn.Config(app, log_config=None, http="h11")).serve(
        [listening]
    )


async def serve_skills(
    listening: socket.socket,
    database: str,
    seconds: float,
    capacity: int,
    repeats: bool,
) -> None:
    """Serve one skill that returns its arguments, after so many seconds; whether it may
    be repeated is *repeats*.
    """
    from skillruntime import SkillRuntime
    from skillruntime.contract import Contract
    from skillruntime.server import (
        Limits,
        PublishedSkill,
        Server,
        SkillService,
        SkillWork,
        create_app,
        describe,
        durable_executions,
    )

    runtime = SkillRuntime()
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    document = {
        "version": "1.0.0",
        "input": schema,
        "annotations": {"idempotent": repeats},
    }
    contract = Contract.from_dict(document, name="echo")

    async def echo(arguments: dict[str, Any]) -> Any:
        if seconds:
            await anyio.sleep(seconds)
        return arguments

    runtime.implements("echo", contract=contract)(echo)
    base_url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    published = [
        PublishedSkill(describe("echo", contract, base_url=base_url), "echo", contract)
    ]
    async with durable_executions(
        SkillWork(runtime, published), database, capacity=capacity
    ) as executions:
        limits = Limits(math.inf, math.inf, unfinished_per_caller=10**9)
        service = SkillService(published, executions, limits=limits)
        await Server(create_app(service), service).serve([listening])


class Measured:
    """A server in a process of its own."""

    def __init__(
        self, kind: str, database: str, seconds: float = 0.0, capacity: int = 128
    ) -> None:
        program = [
            sys.executable,
            __file__,
            "--serve",
            kind,
            database,
            seconds,
            capacity,
        ]
        self.process = subprocess.Popen([*map(str, program)], stdout=subprocess.PIPE)
        self.port = read_port(self.process)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                httpx2.get(f"http://127.0.0.1:{self.port}/health", trust_env=False)
                return
            except httpx2.TransportError:
                time.sleep(0.05)
        raise TimeoutError("the server did not start")

    def cpu(self) -> float:
        """Return the seconds of CPU that it has used."""
        fields = (
            Path(f"/proc/{self.process.pid}/stat")
            .read_text()
            .rpartition(")")[2]
            .split()
        )
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self) -> float:
        """Return its resident memory in MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


async def drive(
    ports: list[int],
    calls: int,
    clients: int,
    path: str = "/skills/echo/invoke",
    method: str = "POST",
) -> tuple[float, list[float], str]:
    """Send so many calls; return how long all took, how long each took, and the id of
    the last execution.
    """
    times: list[float] = []
    last = ""
    limits = httpx2.Limits(max_connections=clients, max_keepalive_connections=clients)
    body = {
        "caller": {"id": "b", "type": "service"},
        "skill_id": "echo",
        "inputs": {"text": "hello"},
    }
    async with httpx2.AsyncClient(timeout=120, trust_env=False, limits=limits) as http:

        async def client(number: int) -> None:
            nonlocal last
            port = ports[number % len(ports)]
            for _ in range(max(1, calls // clients)):
                started = time.perf_counter()
                options: dict[str, Any] = (
                    {"json": body, "headers": {"prefer": "wait=60"}}
                    if method == "POST"
                    else {}
                )
                response = await http.request(
                    method, f"http://127.0.0.1:{port}{path}", **options
                )
                times.append(time.perf_counter() - started)
                shown = response.json()
                assert shown["status"] == "completed", shown
                last = shown["execution_id"]

        started = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for number in range(clients):
                tasks.start_soon(client, number)
        return time.perf_counter() - started, times, last


def line(name: str, cpu: float, times: list[float], base: float | None = None) -> None:
    """Print one row."""
    quantiles = statistics.quantiles(times, n=100)
    ratio = "" if base is None else f"{cpu / base:6.2f} x"
    # The mean too: where a server answers a few clients first and others late, its
    # median is low, and its mean is not.
    shown = (quantiles[49], statistics.mean(times), quantiles[98])
    print(
        f"{name:34} {cpu * 1e3:8.2f} ms {ratio:>9}"
        + "".join(f" {each * 1e3:8.1f}" for each in shown),
        flush=True,
    )


@contextmanager
def place(kind: str) -> Iterator[Callable[[], str]]:
    """Give what makes a new database of this kind."""
    if kind == "PostgreSQL":
        from tests.server.postgres import running_postgres

        with running_postgres() as postgres:
            yield postgres.create_prepared
        return
    with tempfile.TemporaryDirectory() as directory:
        yield lambda: str(Path(directory) / f"{os.urandom(4).hex()}.db")


async def compare(kind: str, calls: int, clients: list[int], with_engine: bool) -> None:
    """Compare the bases and a server on one kind of database."""
    print(
        "\n"
        f"{kind}: CPU of the server for each execution, beside that of the bare base, "
        "and p50, mean and p99 in ms"
    )
    with place(kind) as create, ExitStack() as stack:
        servers = {
            name: Measured(name, create())
            for name in ("base", *(["engine"] if with_engine else []), "skills", "once")
        }
        for each in servers.values():
            stack.callback(each.close)
            await drive([each.port], 50, 5)  # warm
        ended = ""
        for number in clients:
            costs: dict[str, list[float]] = {name: [] for name in servers}
            seen: dict[str, list[float]] = {name: [] for name in servers}
            for _ in range(
                5
            ):  # in turns, so that what else the machine does touches all
                for name, each in servers.items():
                    before = each.cpu()
                    _, times, ended = await drive([each.port], calls, number)
                    costs[name].append((each.cpu() - before) / len(times))
                    seen[name] += times
            of_base = statistics.median(costs["base"])
            for name in servers:
                line(
                    f"{name}, {number} clients",
                    statistics.median(costs[name]),
                    seen[name],
                    of_base,
                )
            if with_engine:
                for name in ("skills", "once"):
                    ratio = statistics.median(costs[name]) / statistics.median(
                        costs["engine"]
                    )
                    print(
                        f"{name} beside a workflow that does nothing, {number} "
                        f"clients: {ratio:.2f} x"
                    )
        server = servers["once"]  # whose execution was the last
        before = server.cpu()
        _, times, _ = await drive(
            [server.port], calls, 1, f"/executions/{ended}", "GET"
        )
        line("poll of an ended execution", (server.cpu() - before) / len(times), times)
        before = server.cpu()
        await anyio.sleep(20)
        print(f"idle: {(server.cpu() - before) / 20:.2%} of a core")


async def four_servers(calls: int) -> None:
    """Compare four servers with one, for a skill that waits 200 ms, with 8 places on
    each server.
    """
    with place("PostgreSQL") as create:
        rates, costs = [], []
        for number in (1, 4):
            database = create()
            servers = [Measured("skills", database, 0.2, 8) for _ in range(number)]
            ports = [each.port for each in servers]
            await drive(ports, 32, 16)
            before = sum(each.cpu() for each in servers)
            seconds, times, _ = await drive(ports, calls, 64)
            costs.append((sum(each.cpu() for each in servers) - before) / len(times))
            rates.append(len(times) / seconds)
            for each in servers:
                each.close()
    print(
        f"\nfour servers: {rates[1] / rates[0]:.2f} x the executions of one, "
        f"{costs[1] / costs[0]:.2f} x the CPU of each"
    )


async def measure_ended(number: int) -> None:
    """Print the CPU of an execution before and after *number* ended ones are added to
    the database.
    """
    for kind in ("SQLite", "PostgreSQL"):
        with place(kind) as create, ExitStack() as stack:
            database = create()
            server = Measured("once", database)
            stack.callback(server.close)
            await drive([server.port], 100, 16)
            shown = []
            for added in (0, number):
                if added:
                    await anyio.to_thread.run_sync(add_ended, database, added)
                costs, waits = [], list[float]()
                for _ in range(5):
                    before = server.cpu()
                    _, times, _ = await drive([server.port], 256, 16)
                    costs.append((server.cpu() - before) / len(times))
                    waits += times
                shown.append((statistics.median(costs), statistics.median(waits)))
            (cpu, wait), (more_cpu, more_wait) = shown
            cpu, wait = more_cpu / cpu, more_wait / wait
            print(
                f"{kind}, with {number:,} ended executions: {cpu:.2f} x the CPU, "
                f"{wait:.2f} x the wait"
            )


def add_ended(database: str, number: int) -> None:
    """Add *number* copies of one ended execution, each with a new id."""
    if "://" in database:
        import psycopg

        tables = [
            (f"skillruntime.{each}", "workflow_uuid")
            for each in ("workflow_status", "workflow_input")
        ]
        tables += [
            (f"skillruntime.{each}", "workflow_uuid")
            for each in ("workflow_output", "operation_outputs")
        ]
        connection: Any = psycopg.connect(database, autocommit=True)
        numbers, text = f"generate_series(1, {number}) AS n(value)", "value::text"
        ended = (
            "SELECT workflow_uuid FROM skillruntime.workflow_status WHERE status = "
            "'SUCCESS' LIMIT 1"
        )
        ended_id = connection.execute(ended).fetchone()[0]
    else:
        tables = [("executions", "id")]
        connection = sqlite3.connect(database, isolation_level=None, timeout=60)
        count = (
            "WITH RECURSIVE n(value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM n "
            f"LIMIT {number})"
        )
        numbers, text = f"({count} SELECT value FROM n)", "CAST(value AS TEXT)"
        ended_id = connection.execute(
            "SELECT id FROM executions WHERE ended_at IS NOT NULL LIMIT 1"
        ).fetchone()[0]
    for table, key in tables:
        shown = connection.execute(f"SELECT * FROM {table} LIMIT 0").description
        columns = ", ".join(each[0] for each in shown)
        values = columns.replace(key, f"{key} || '-' || {text}", 1)
        connection.execute(
            f"INSERT INTO {table} ({columns}) SELECT {values} FROM {table}, {numbers} "
            f"WHERE {key} = '{ended_id}'"
        )
    connection.execute("ANALYZE")
    connection.close()


async def measure_memory(most: int) -> None:
    """Print the memory of a server after a fifth of *most* executions, two fifths, and
    so on.
    """
    with place("SQLite") as create, ExitStack() as stack:
        server = Measured("skills", create())
        stack.callback(server.close)
        await drive([server.port], 100, 64)
        print(f"\nmemory: {server.memory():.1f} MB after 100 executions", end="")
        for done in range(most // 5, most + 1, most // 5):
            await drive([server.port], most // 5, 64)
            print(f", {server.memory():.1f} after {done:,}", end="", flush=True)
    print()


async def main(
    calls: int, clients: list[int], with_postgres: bool, with_engine: bool
) -> None:
    """Measure and print."""
    print(f"load {os.getloadavg()[0]:.1f}")
    await compare("SQLite", calls, clients, with_engine)
    if with_postgres:
        await compare("PostgreSQL", calls, clients, with_engine)
        await four_servers(calls)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        kind_, database_ = sys.argv[2], sys.argv[3]
        listening_ = bind("127.0.0.1", 0)
        print(listening_.getsockname()[1], flush=True)
        if kind_ == "base":
            anyio.run(serve_base, listening_, database_)
        elif kind_ == "engine":
            anyio.run(serve_engine, listening_, database_)
        else:
            anyio.run(
                serve_skills,
                listening_,
                database_,
                float(sys.argv[4]),
                int(sys.argv[5]),
                kind_ == "skills",
            )
        sys.exit(0)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 128])
    parser.add_argument("--postgres", action="store_true", help="PostgreSQL too")
    parser.add_argument("--engine", action="store_true", help="a workflow of DBOS too")
    parser.add_argument(
        "--memory",
        type=int,
        metavar="NUMBER",
        help="memory after so many executions, nothing else",
    )
    parser.add_argument(
        "--ended",
        type=int,
        metavar="NUMBER",
        help="cost after so many ended rows, nothing else",
    )
    options = parser.parse_args()
    if options.ended:
        anyio.run(measure_ended, options.ended)
    elif options.memory:
        anyio.run(measure_memory, options.memory)
    else:
        anyio.run(
            main, options.calls, options.clients, options.postgres, options.engine
        )
