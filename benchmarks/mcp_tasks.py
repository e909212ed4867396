"""Kill an MCP server while clients begin tasks, and check that every task that a client
was given ends as its execution does.

    python benchmarks/mcp_tasks.py [--tasks 600] [--kills 10] [--seconds 0.2]

A client writes its requests itself, by the revision 2026-07-28, and declares
``io.modelcontextprotocol/tasks``; every call is answered as a task at once. Half of the
tasks are of ``twice``, which may run twice, half of ``once``, which must not. The server
keeps them in a SQLite file, is killed with SIGKILL and started again at once. Each tool
appends to a file outside the database when it begins and when it ends. Broken promises:

- unknown: `tasks/get` does not know a task whose id was returned, or it never ends;
- lost: a task of ``twice`` that is not completed;
- untrue: a completed task without an end in the file, or with another text;
- repeated: a task of ``once`` that began twice;
- misreported: a task of ``once`` that failed with another code than
  `EXECUTION_INTERRUPTED`.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
import uvicorn

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the other benchmarks

from benchmarks.noted_effects import noting_runtime
from skillruntime.adapters.mcp import to_server
from skillruntime.server import open_kept_calls

REVISION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
}
PROMISES = ("unknown", "lost", "untrue", "repeated", "misreported")


async def serve(directory: Path, port: int, seconds: float) -> None:
    """Serve ``once`` and ``twice`` until the process is killed."""
    runtime = noting_runtime(directory / "effects", seconds)
    async with open_kept_calls(directory / "tasks.db", wait=True) as tasks:
        app = to_server(runtime, tasks=tasks, task_after=0).streamable_http_app()
        config = uvicorn.Config(app, port=port, log_level="error", ws="none")
        await uvicorn.Server(config).serve()


class KilledServer:
    """The server as a process, which always listens at the same port."""

    def __init__(self, directory: Path, seconds: float) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._command = [sys.executable, __file__, "--serve", str(directory)]
        self._command += ["--port", str(self.port), "--seconds", str(seconds)]
        self._process = subprocess.Popen(self._command)

    def restart(self) -> None:
        """Kill the process, and start the next one."""
        self.end()
        self._process = subprocess.Popen(self._command)

    def end(self) -> None:
        """Kill the process."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@dataclass
class Clients:
    """Clients that do not give up, the tasks that they got, and how those ended."""

    http: httpx2.AsyncClient
    url: str
    tasks: dict[str, str] = field(default_factory=dict)
    """The text of each task, by its id."""
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def ask(self, method: str, name: str, params: dict[str, Any]) -> Any:
        """Send one request and return its answer; None where none came."""
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": REVISION,
            "mcp-method": method,
            "mcp-name": name,
        }
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": method,
            "params": {**params, "_meta": META},
        }
        try:
            response = await self.http.post(self.url, json=body, headers=headers)
        except httpx2.TransportError:
            await anyio.sleep(0.05)
            return None
        text = response.text
        if response.headers["content-type"].startswith("text/event-stream"):
            text = text.partition("data: ")[2].partition("\n")[0]
        if not text:  # the server was killed before the answer
            return None
        return json.loads(text)

    async def begin(self, tool: str, number: int) -> None:
        """Call *tool* until a task is given. A call without an answer may have run, so
        the next one has another text.
        """
        attempt = 0
        while True:
            attempt += 1
            text = f"{tool}-{number}-{attempt}"
            params = {"name": tool, "arguments": {"text": text}}
            answer = await self.ask("tools/call", tool, params)
            if answer is None:
                continue
            result = answer["result"]
            assert result["resultType"] == "task", result
            self.tasks[result["taskId"]] = text
            return

    async def follow(self, task_id: str) -> None:
        """Ask for a task until it has ended, or is not known."""
        while True:
            answer = await self.ask("tasks/get", task_id, {"taskId": task_id})
            if answer is None:
                continue
            task = answer.get("result", {"status": "unknown"})
            if task["status"] != "working":
                self.ended[task_id] = task
                return
            await anyio.sleep(0.1)

    def judge(self, effects: str) -> Counter[str]:
        """Return how often each promise was broken."""
        lines = Counter(effects.split("\n"))
        broken: Counter[str] = Counter()
        for task_id, text in self.tasks.items():
            task = self.ended.get(task_id, {"status": "unknown"})
            is_completed = task["status"] == "completed"
            if task["status"] == "unknown":
                broken["unknown"] += 1
            elif text.startswith("twice") and not is_completed:
                broken["lost"] += 1
            elif is_completed:
                said = task["result"]["structuredContent"]["said"]
                if said != text or not lines[f"end {text}"]:
                    broken["untrue"] += 1
            elif task["error"]["data"]["code"] != "EXECUTION_INTERRUPTED":
                broken["misreported"] += 1
            if text.startswith("once") and lines[f"begin {text}"] > 1:
                broken["repeated"] += 1
        return broken


async def attack(*, tasks: int, kills: int, seconds: float) -> int:
    """Kill the server *kills* times, spread over *tasks* tasks; print what became of
    them, and return how many promises were broken.
    """
    with tempfile.TemporaryDirectory(prefix="mcp-tasks-") as text:
        directory = Path(text)
        server = KilledServer(directory, seconds)
        try:
            async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
                clients = Clients(http, f"http://127.0.0.1:{server.port}/mcp")
                started = time.monotonic()
                async with anyio.create_task_group() as group:
                    group.start_soon(_kill, server, clients, tasks, kills)
                    await _begin_all(clients, tasks)
                with anyio.move_on_after(600):
                    async with anyio.create_task_group() as group:
                        for task_id in clients.tasks:
                            group.start_soon(clients.follow, task_id)
            effects = (directory / "effects").read_text()
        finally:
            server.end()
        broken = clients.judge(effects)
        ends = Counter(task["status"] for task in clients.ended.values())
        again = sum(count > 1 for count in Counter(effects.split("\n")).values())
        print(
            f"{len(clients.tasks)} tasks, {kills} kills, "
            f"{time.monotonic() - started:.0f} s: {dict(ends)}, {again} lines written "
            "again by a second run"
        )
        for promise in PROMISES:
            print(f"  {promise}: {broken[promise]}")
        return sum(broken.values())


async def _begin_all(clients: Clients, tasks: int) -> None:
    limiter = anyio.CapacityLimiter(16)

    async def one(number: int) -> None:
        async with limiter:
            await clients.begin("twice" if number % 2 else "once", number)

    async with anyio.create_task_group() as group:
        for number in range(tasks):
            group.start_soon(one, number)


async def _kill(server: KilledServer, clients: Clients, tasks: int, kills: int) -> None:
    for number in range(kills):
        while len(clients.tasks) < tasks * (number + 1) / (kills + 1):
            await anyio.sleep(0.02)
        await anyio.to_thread.run_sync(server.restart)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=600)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        anyio.run(serve, options.serve, options.port, options.seconds)
        sys.exit()

    async def run() -> int:
        """Run the attack with the options."""
        return await attack(
            tasks=options.tasks, kills=options.kills, seconds=options.seconds
        )

    sys.exit(min(1, anyio.run(run)))
