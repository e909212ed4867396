"""What the scenarios of chaos.py share: servers as processes, clients that do not give
up, and a model of the promises.

The skill of both published names appends a line to a file outside the database, the
effects. A line ``begin TEXT`` before its work and ``end TEXT`` after it; what must not
run twice has at most one beginning.
"""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2

sys.path.insert(0, str(Path(__file__).parents[1]))  # for what it shares with the tests

from benchmarks.noted_effects import noting_runtime
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
from tests.server.processes import read_port

LEASE = 6.0  # seconds


async def serve(database: str, effects: Path, seconds: float) -> None:
    """Serve ``twice``, which may run twice, and ``once``, which must not; print the
    port when it listens.
    """
    runtime = noting_runtime(effects, seconds)
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]

    published = []
    for name in ("twice", "once"):
        contract = runtime.contract(name)
        descriptor = describe(name, contract, base_url=f"http://127.0.0.1:{port}")
        published.append(PublishedSkill(descriptor, name, contract))
    async with durable_executions(
        SkillWork(runtime, published),
        database,
        wait="://" not in database,
        lease=LEASE,
        max_wait=600,
    ) as executions:
        limits = Limits(math.inf, math.inf, unfinished_per_caller=10**9)
        service = SkillService(published, executions, limits=limits, secret=b"chaos")
        server = Server(
            create_app(service),
            service,
            grace=1,
            drain=5,
            on_ready=lambda: print(port, flush=True),
        )
        await server.serve([listening])


class Cluster:
    """The servers, each of which has another port after each start; *prefixes* are
    commands, one a server.
    """

    def __init__(
        self,
        number: int,
        database: str,
        effects: Path,
        *,
        seconds: float,
        prefixes: list[list[str]] | None,
    ) -> None:
        self.database, self.effects, self.seconds = database, effects, seconds
        self.prefixes = prefixes or [[] for _ in range(number)]
        self.log = effects.with_name("servers.log")
        self.processes = [self._start(each) for each in range(number)]
        self.ports: list[int] = []
        self.kills = 0

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        program = [
            sys.executable,
            __file__,
            self.database,
            str(self.effects),
            str(self.seconds),
        ]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*self.prefixes[number], *program], stdout=subprocess.PIPE, stderr=log
            )

    def _read_port(self, number: int) -> int:
        try:
            return read_port(self.processes[number])
        except RuntimeError as error:
            raise RuntimeError(f"{error}:\n{self.log.read_text()[-5000:]}") from None

    def wait(self) -> None:
        """Wait until all of them listen."""
        self.ports = [self._read_port(number) for number in range(len(self.processes))]

    def send(self, number: int, name: signal.Signals) -> None:
        """Send one server a signal."""
        self.kills += name is signal.SIGKILL
        self.processes[number].send_signal(name)

    def end(self, number: int, name: signal.Signals) -> None:
        """End one server with this signal."""
        self.send(number, name)
        self.processes[number].wait(120)

    def restart(self, number: int, name: signal.Signals = signal.SIGKILL) -> None:
        """End one server with this signal, and start it again; return when it
        listens.
        """
        self.end(number, name)
        self.processes[number] = self._start(number)
        self.ports[number] = self._read_port(number)

    def close(self) -> None:
        """Kill them all."""
        for process in self.processes:
            process.kill()
            process.wait()


@dataclass
class History:
    """What clients saw: the executions that were accepted, by what was asked for, and
    the documents of their ends.
    """

    wanted: int
    accepted: dict[str, str] = field(default_factory=dict)
    ends: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    seen_final: dict[str, str] = field(default_factory=dict)
    changed_back: int = 0
    refused: int = 0
    never_began: int = 0


@dataclass
class Clients:
    """Submit *history*.wanted executions, half of them not repeatable, and follow each
    to its end.
    """

    cluster: Cluster
    http: httpx2.AsyncClient
    history: History
    limiter: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(64)
    )

    async def submit(self, text: str) -> str:
        """Submit one under the key *text*, until a server accepts it; return its
        execution's id.
        """
        skill = text.partition("-")[0]
        document = {
            "caller": {"id": "c", "type": "service"},
            "skill_id": skill,
            "inputs": {"text": text},
        }
        path, headers = f"/skills/{skill}/invoke", {"idempotency-key": text}
        response = await self.ask("POST", path, json=document, headers=headers)
        assert "execution_id" in response.json(), response.text
        found: str = response.json()["execution_id"]
        before = self.history.accepted.setdefault(text, found)
        assert before == found, f"two executions for one key: {before}, {found}"
        return found

    async def submit_all(self) -> None:
        """Submit them all."""
        async with anyio.create_task_group() as tasks:
            for number in range(self.history.wanted):
                tasks.start_soon(
                    self._submit, f"{('twice', 'once')[number % 2]}-{number}"
                )

    async def _submit(self, text: str) -> None:
        async with self.limiter:
            await self.submit(text)

    async def follow_all(self, within: float) -> bool:
        """Follow each to its end, twice; return whether one was stuck."""
        with anyio.move_on_after(within):
            async with anyio.create_task_group() as tasks:
                for text in self.history.accepted:
                    tasks.start_soon(self._follow, text)
            return False
        return True

    async def _follow(self, text: str) -> None:
        async with self.limiter:
            for _ in range(2):
                document: dict[str, Any] = {"status": "accepted"}
                while document["status"] in ("accepted", "running"):
                    path = f"/executions/{self.history.accepted[text]}"
                    document = (
                        await self.ask("GET", path, headers={"prefer": "wait=5"})
                    ).json()
                    if "status" not in document:
                        break
                self.history.ends.setdefault(text, []).append(document)

    async def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """Ask one server after the other until one answers for good."""
        while True:
            port = random.choice(self.cluster.ports)
            try:
                response = await self.http.request(
                    method, f"http://127.0.0.1:{port}{path}", **options
                )
            except httpx2.TransportError:
                await anyio.sleep(0.05)
                continue
            if response.status_code not in (408, 429, 500, 503):
                return response
            self.history.refused += 1
            await anyio.sleep(0.1)


def judge(history: History, effects: str, *, kills: int, stuck: bool) -> dict[str, int]:
    """Return how often each promise was broken, after so many kill -9."""
    runs = Counter(
        line.partition(" ")[2]
        for line in effects.splitlines()
        if line.startswith("begin ")
    )
    last = {text: seen[-1] for text, seen in history.ends.items()}
    completed = {
        text for text, document in last.items() if document.get("status") == "completed"
    }
    interrupted = interrupted_of(history)
    unmarked = [text for text in interrupted if runs[text] == 0]
    history.never_began = len(unmarked)
    # A kill may come between a mark and its effect. Marks are committed one by one,
    # each shortly before its effect, so that few of what a kill interrupts are there;
    # how many depends on the machine, so a rate would be no promise.
    is_too_many = len(unmarked) > kills + len(interrupted) / 2
    return {
        "accepted and lost": len(history.accepted)
        - sum("status" in document for document in last.values()),
        "never accepted": history.wanted - len(history.accepted),
        "ended rows altered": sum(
            1 for seen in history.ends.values() if len(seen) == 2 and seen[0] != seen[1]
        ),
        "non-idempotent effects twice": sum(
            1 for text, n in runs.items() if text.startswith("once") and n > 1
        ),
        "completed without an effect": sum(1 for text in completed if runs[text] == 0),
        "wrong outputs": sum(
            1 for text in completed if last[text]["output"] != {"said": text}
        ),
        "false failures": len(last)
        - len(completed)
        - sum(1 for text in interrupted if text.startswith("once")),
        "interrupted without an effect": len(unmarked) if is_too_many else 0,
        "stuck": int(stuck),
    }


def interrupted_of(history: History) -> list[str]:
    """Return what ended EXECUTION_INTERRUPTED, which is true of what was cut off and
    must not run twice.
    """
    return [
        text
        for text, seen in history.ends.items()
        if (seen[-1].get("error") or {}).get("code") == "EXECUTION_INTERRUPTED"
    ]


def report(name: str, history: History, broken: dict[str, int], seconds: float) -> None:
    """Print one scenario."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    found = {key: number for key, number in broken.items() if number}
    interrupted, refused = len(interrupted_of(history)), history.refused
    print(
        f"{name}: {len(history.accepted)} accepted, {interrupted} interrupted "
        f"({history.never_began} of them had not begun), {refused} answers 503, "
        f"{seconds:.0f} s, load {load:.1f}: "
        f"{f'BROKEN {found}' if found else 'no promise broken'}",
        flush=True,
    )


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
