"""A server on a full disk: it says so by itself, and results stay readable."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from skillruntime.server import DatabaseAwayError
from tests import needs
from tests.server.processes import SERVER, read_port
from tests.server.serving import OPERATOR_KEY, invocation, serve_in_memory

DISK = 4 * 1024 * 1024  # bytes


@contextmanager
def small_disk(place: Path) -> Iterator[bool]:
    """Mount a small disk at *place*; give whether it could be, which needs root."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(place)]
    is_mounted = needs.is_root() and not subprocess.run(mount, check=False).returncode
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> None:
    """Write until the disk is full."""
    with (place / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def limit_files(process: subprocess.Popen[bytes], size: int) -> None:
    """Let a process write no file beyond *size* bytes; -1 lifts the limit."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, hard))


@pytest.mark.processes
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason=needs.LINUX)
def test_a_server_on_a_full_disk_is_not_ready_and_shows_its_results(
    tmp_path: Path,
) -> None:
    """It tries a write by itself: nothing is invoked while the disk is full, until
    `/ready` has said so. Once there is space, it is ready again.
    """
    disk = tmp_path / "disk"
    with small_disk(disk) as is_mounted:
        process = subprocess.Popen(
            [sys.executable, str(SERVER), str(disk), "0", "1.5"],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            base = f"http://127.0.0.1:{read_port(process)}"
            with httpx2.Client(base_url=base, timeout=300, trust_env=False) as client:
                done = invoke(client, "twice-1", prefer="wait=60").json()
                if is_mounted:
                    fill(disk)
                else:
                    limit_files(process, 0)
                until(lambda: client.get("/ready").status_code == 503)
                ready = client.get("/ready")
                metrics = client.get("/metrics").text
                result = client.get(f"/executions/{done['execution_id']}")
                refused = [invoke(client, f"twice-{n}").status_code for n in (2, 3)]
                if is_mounted:
                    (disk / "filler").unlink()
                else:
                    limit_files(process, -1)
                until(lambda: client.get("/ready").status_code == 200)
                again = invoke(client, "twice-4", prefer="wait=60").json()
        finally:
            process.kill()
            _, errors = process.communicate()

    assert done["status"] == "completed"
    assert ready.json() == {"status": "database takes no writes"}
    assert "skillruntime_database_up 0.0" in metrics.splitlines()
    assert result.status_code == 200
    assert result.json()["output"] == {"said": "twice-1"}
    assert refused == [503, 503]
    assert again["status"] == "completed"
    lines = errors.decode().splitlines()
    causes = [line for line in lines if "the database takes no writes: " in line]
    assert len(causes) == 1
    assert "full" in causes[0] or "disk I/O error" in causes[0]


def invoke(client: httpx2.Client, text: str, **headers: str) -> httpx2.Response:
    """Invoke the skill that may run twice."""
    return client.post(
        "/skills/twice/invoke", json=invocation("twice", text), headers=headers
    )


def until(is_true: Callable[[], bool]) -> None:
    """Ask until it is true."""
    limit = time.monotonic() + 300
    while not is_true():
        assert time.monotonic() < limit, "it did not become true"
        time.sleep(0.05)


@pytest.mark.anyio
async def test_health_follows_the_servers_own_writes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the store: after writes that fail, `/ready` is 503 and the cause is
    logged once.
    """
    fails = True

    async def write() -> None:
        if fails:
            raise DatabaseAwayError("The disk is full")

    async with serve_in_memory() as served:
        health = served.service.health
        monkeypatch.setattr(served.service.executions, "try_write", write)
        statuses = []
        for fails in (True, True, False, False):  # noqa: B007  # `write` reads it
            await health.try_once()
            statuses.append((await served.ask("GET", "/ready")).status)
        metrics = await served.ask("GET", "/metrics", key=OPERATOR_KEY)

    assert statuses == [503, 503, 200, 200]
    assert "skillruntime_database_up 1.0" in metrics.body.decode()
    assert caplog.messages == [
        "the database takes no writes: The disk is full",
        "the database takes writes again",
    ]


@pytest.mark.anyio
async def test_each_store_takes_the_small_write(serving: Any) -> None:
    """In memory, on SQLite and on PostgreSQL."""
    async with serving() as served:
        await served.service.health.try_once()

    assert served.service.health.takes_writes
