"""Kill servers while clients submit, and check afterwards that nothing was lost, repeated or altered.

    python benchmarks/chaos.py [--executions 1000] [--kills 20] [--servers 2] [--database postgresql://...]

Half of the executions may run twice, half must not. Every run of a skill appends a line to a file outside the
database, synced: the effects. Without --database, one server on SQLite is killed and restarted; with it, any of
several. A model reads the history: what was accepted, what the effects say, and every end, read twice.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import httpx2

from skillruntime import SkillRuntime
from skillruntime.contract import Contract
from skillruntime.server import (
    Limits,
    PublishedSkill,
    Server,
    SkillService,
    SkillWork,
    bind,
    create_app,
    describe,
    durable_executions,
)

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
LEASE = 6.0  # seconds


async def serve(port: int, database: str, effects: Path) -> None:
    """Serve ``twice``, which may run twice, and ``once``, which must not, until the process is killed."""
    runtime = SkillRuntime()

    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        descriptor = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, (arguments["text"] + "\n").encode())
        os.close(descriptor)
        await anyio.sleep(0.02)
        return {"said": arguments["text"]}

    published = []
    for name, promised in (("twice", {"idempotent": True}), ("once", {})):
        contract = Contract.from_dict({"version": "1.0.0", "input": SCHEMA, "annotations": promised}, name=name)
        runtime.implements(name, contract=contract)(run)
        descriptor = describe(name, contract, base_url=f"http://127.0.0.1:{port}")
        published.append(PublishedSkill(descriptor, name, contract))
    async with durable_executions(
        SkillWork(runtime, published), database, wait="://" not in database, lease=LEASE, max_wait=3600
    ) as executions:
        limits = Limits(invocations_per_minute=math.inf, requests_per_minute=math.inf, unfinished_per_caller=10**9)
        service = SkillService(published, executions, limits=limits, secret=b"chaos")
        await Server(create_app(service), service, grace=1, drain=5).serve([bind("127.0.0.1", port)])


class Cluster:
    """The servers, of which one is killed now and then and started again."""

    def __init__(self, number: int, database: str, effects: Path) -> None:
        self.database, self.effects = database, effects
        self.ports = [free_port() for _ in range(number)]
        self.processes = [self.start(port) for port in self.ports]

    def start(self, port: int) -> subprocess.Popen[bytes]:
        """Start one server."""
        return subprocess.Popen([sys.executable, __file__, "--serve", str(port), self.database, str(self.effects)])

    def kill(self, number: int) -> None:
        """Kill one server, and start it again."""
        self.processes[number].send_signal(signal.SIGKILL)
        self.processes[number].wait()
        self.processes[number] = self.start(self.ports[number])

    def close(self) -> None:
        """Kill them all."""
        for process in self.processes:
            process.kill()
            process.wait()


async def ask(client: httpx2.AsyncClient, ports: list[int], method: str, path: str, **options: Any) -> httpx2.Response:
    """Ask one server after the other until one answers for good."""
    while True:
        port = random.choice(ports)
        try:
            response = await client.request(method, f"http://127.0.0.1:{port}{path}", **options)
        except httpx2.TransportError:
            await anyio.sleep(0.05)
            continue
        if response.status_code not in (429, 503):
            return response
        await anyio.sleep(0.1)


async def main(executions: int, kills: int, servers: int, database: str | None) -> int:
    """Run it, and print what the model found; return how many promises were broken."""
    with tempfile.TemporaryDirectory() as directory:
        effects = Path(directory) / "effects"
        cluster = Cluster(servers if database else 1, database or str(Path(directory) / "e.db"), effects)
        try:
            return await attack(cluster, executions, kills)
        finally:
            cluster.close()


async def attack(cluster: Cluster, executions: int, kills: int) -> int:
    """Submit, kill, follow to the end, and compare."""
    accepted: dict[str, str] = {}
    ends: dict[str, list[dict[str, Any]]] = {}
    started = time.monotonic()
    limiter = anyio.CapacityLimiter(64)
    async with httpx2.AsyncClient(timeout=30, trust_env=False) as client:

        async def one(number: int) -> None:
            skill = ("twice", "once")[number % 2]
            text = f"{skill}-{number}"
            document = {"caller": {"id": "c", "type": "service"}, "skill_id": skill, "inputs": {"text": text}}
            async with limiter:
                path, headers = f"/skills/{skill}/invoke", {"idempotency-key": text}
                response = await ask(client, cluster.ports, "POST", path, json=document, headers=headers)
                accepted[text] = response.json()["execution_id"]

        async def kill_some() -> None:
            for number in range(kills):
                # Spread over the work: a kill for every so many that were accepted.
                while len(accepted) < executions * (number + 1) / (kills + 1):
                    await anyio.sleep(0.02)
                await anyio.to_thread.run_sync(cluster.kill, number % len(cluster.processes))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill_some)
            for number in range(executions):
                tasks.start_soon(one, number)

        async def follow(text: str) -> None:
            async with limiter:
                for _ in range(2):
                    document: dict[str, Any] = {"status": "accepted"}
                    while document["status"] in ("accepted", "running"):
                        path = f"/executions/{accepted[text]}"
                        document = (await ask(client, cluster.ports, "GET", path, headers={"prefer": "wait=5"})).json()
                        if "status" not in document:
                            break
                    ends.setdefault(text, []).append(document)

        stuck = True
        with anyio.move_on_after(600):
            async with anyio.create_task_group() as tasks:
                for text in accepted:
                    tasks.start_soon(follow, text)
            stuck = False
    return report(accepted, ends, Counter(cluster.effects.read_text().split()), stuck, time.monotonic() - started)


def report(
    accepted: dict[str, str], ends: dict[str, list[dict[str, Any]]], runs: Counter[str], stuck: bool, seconds: float
) -> int:
    """Print what happened against what was promised."""
    last = {text: seen[-1] for text, seen in ends.items()}
    statuses = Counter(document.get("status", "lost") for document in last.values())
    interrupted = [text for text, d in last.items() if (d.get("error") or {}).get("code") == "EXECUTION_INTERRUPTED"]
    completed = [text for text, document in last.items() if document.get("status") == "completed"]
    broken = {
        "accepted and lost": len(accepted) - len(ends) + statuses["lost"],
        "ended rows altered": sum(1 for seen in ends.values() if len(seen) == 2 and seen[0] != seen[1]),
        "non-idempotent effects twice": sum(1 for text, n in runs.items() if text.startswith("once") and n > 1),
        "completed without an effect": sum(1 for text in completed if runs[text] == 0),
        "wrong outputs": sum(1 for text in completed if last[text]["output"] != {"said": text}),
        "false failures": len(last) - len(completed) - sum(1 for text in interrupted if text.startswith("once")),
        "stuck": int(stuck),
    }
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"{len(accepted)} accepted in {seconds:.0f} s (load {load:.1f}): {dict(statuses)}")
    print(
        f"interrupted, which is true: {len(interrupted)}; runs repeated, which may be: {sum(runs.values()) - len(runs)}"
    )
    for name, number in broken.items():
        print(f"{name:30} {number}")
    return sum(broken.values())


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        anyio.run(serve, int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
        sys.exit(0)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--database", help="a PostgreSQL database; without it, one server on SQLite")
    options = parser.parse_args()
    sys.exit(min(1, anyio.run(main, options.executions, options.kills, options.servers, options.database)))
