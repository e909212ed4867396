"""Two servers behind the Caddyfile of deploy/, restarted one after the other: no client
sees that one was away.
"""

from __future__ import annotations

import itertools
import logging
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest

from tests import needs
from tests.server.postgres import Postgres
from tests.server.serving import invocation

ROOT = Path(__file__).parents[2]
CALLERS = 8
_log = logging.getLogger(__name__)
pytestmark = [pytest.mark.anyio, pytest.mark.processes, pytest.mark.slow]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Rolled:
    """A server on a shared database, stopped and started at one port."""

    def __init__(self, skills: Path, database: str) -> None:
        self.port = free_port()
        options = ["--database", database, "--port", str(self.port), "--public"]
        self._command = [sys.executable, "-m", "skillruntime", "serve", "-s"]
        self._command += [str(skills), *options, "--rate", "1000000"]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        self.process = subprocess.Popen(
            self._command, cwd=ROOT, stderr=subprocess.DEVNULL
        )

    async def until_ready(self) -> None:
        """Wait until it takes work."""
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            with anyio.fail_after(300):
                while not await _is_ready(client, self.port):
                    await anyio.sleep(0.05)

    async def stop(self) -> int:
        """Stop it as a deploy does; return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(300):
            while self.process.poll() is None:
                await anyio.sleep(0.05)
        return self.process.returncode


async def _is_ready(client: httpx2.AsyncClient, port: int) -> bool:
    try:
        response = await client.get(f"http://127.0.0.1:{port}/ready")
    except httpx2.TransportError:
        return False
    return response.status_code == 200


@asynccontextmanager
async def two_servers(tmp_path: Path, database: str) -> AsyncIterator[list[Rolled]]:
    """Run two servers that start at once."""
    skill = tmp_path / "skills" / "notes"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: notes\ndescription: Notes\n---\nHi.\n")
    servers = [Rolled(skill.parent, database) for _ in range(2)]
    try:
        for server in servers:
            server.start()
        for server in servers:
            await server.until_ready()
        yield servers
    finally:
        for server in servers:
            if server.process is not None:
                server.process.kill()
                server.process.wait()


@asynccontextmanager
async def caddy(tmp_path: Path, ports: list[int]) -> AsyncIterator[str]:
    """Run Caddy with the Caddyfile of deploy/ in front of these ports."""
    address = f"http://127.0.0.1:{free_port()}"
    text = (ROOT / "deploy" / "Caddyfile").read_text("utf-8")
    addresses = " ".join(f"127.0.0.1:{port}" for port in ports)
    text = text.replace("server-1:8400 server-2:8400", addresses)
    text = text.replace("Host {$DOMAIN}", "Host 127.0.0.1")
    text = text.replace("{$DOMAIN}", address)
    (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text)
    process = subprocess.Popen(
        [needs.program("caddy"), "run", "--config", str(tmp_path / "Caddyfile")],
        stderr=subprocess.DEVNULL,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            with anyio.fail_after(300):
                while not await _is_ready(client, int(address.rpartition(":")[2])):
                    await anyio.sleep(0.05)
        yield address
    finally:
        process.kill()
        process.wait()


async def test_a_rolling_deploy_shows_no_client_a_server_that_is_away(
    tmp_path: Path, postgres: Postgres
) -> None:
    """Each server is stopped and started again, while callers invoke and look: none is
    answered 502 or 504, and none is cut off.
    """
    needs.package("dbos")
    answers: Counter[int] = Counter()
    is_over = False
    numbers = itertools.count()

    async def call(address: str) -> None:
        async with httpx2.AsyncClient(trust_env=False, timeout=120) as client:
            while not is_over:
                begun = await client.post(
                    f"{address}/skills/notes/invoke",
                    json={**invocation("notes"), "inputs": {}},
                    headers={"idempotency-key": f"key-{next(numbers)}"},
                )
                answers[begun.status_code] += 1
                if begun.status_code in (200, 202):
                    path = f"/executions/{begun.json()['execution_id']}"
                    looked = await client.get(f"{address}{path}")
                    answers[looked.status_code] += 1
                await anyio.sleep(0.02)

    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(
            two_servers(tmp_path, postgres.create_prepared())
        )
        ports = [server.port for server in servers]
        address = await stack.enter_async_context(caddy(tmp_path, ports))
        async with anyio.create_task_group() as tasks:
            for _ in range(CALLERS):
                tasks.start_soon(call, address)
            codes = []
            for server in servers:
                codes.append(await server.stop())
                server.start()
                await server.until_ready()
                # Until Caddy has seen it too: it looks every two seconds.
                before = answers.total()
                while answers.total() < before + 200:
                    await anyio.sleep(0.05)
            is_over = True

    _log.info("answers: %s", dict(answers))  # --log-cli-level=INFO shows it
    assert codes == [0, 0]
    assert answers[200] + answers[202] > 400
    assert {status: answers[status] for status in (500, 502, 504)} == {
        500: 0,
        502: 0,
        504: 0,
    }, answers


async def test_two_servers_start_at_once_on_an_empty_database(
    tmp_path: Path, postgres: Postgres
) -> None:
    """Both make the tables, and both come up."""
    needs.package("dbos")

    async with two_servers(tmp_path, postgres.create()) as servers:
        running = [
            server.process is not None and server.process.poll() is None
            for server in servers
        ]

    assert running == [True, True]
