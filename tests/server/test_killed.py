"""Kill the server in the middle, start it again: what was accepted ends in its right
status, and nothing runs twice.
"""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import TaskStatus

from tests import needs
from tests.server.killable import GATED
from tests.server.processes import KillableServer
from tests.server.serving import invocation

pytest.importorskip("starlette", reason=needs.to_install("starlette"))

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.mark.slow
async def test_two_hundred_executions_survive_a_kill(tmp_path: Path) -> None:
    """kill -9 in the middle of 200 accepted executions, and a restart.

    Those that may run twice complete. Those that must not, and were running, end
    ``failed`` and ``recoverable``; none of them has run twice. All others complete.
    """
    server = KillableServer(tmp_path)
    accepted: dict[str, str] = {}
    async with httpx2.AsyncClient(timeout=300, trust_env=False) as client:

        async def submit(name: str, text: str) -> None:
            headers = {"idempotency-key": text}
            response = await server.answer(
                client,
                "POST",
                f"/skills/{name}/invoke",
                json=invocation(name, text),
                headers=headers,
            )
            assert response.status_code in (200, 202), response.text
            accepted[text] = response.json()["execution_id"]

        async with server.started() as process:
            async with anyio.create_task_group() as tasks:
                for number in range(100):
                    tasks.start_soon(submit, "twice", f"twice-{number}")
                    tasks.start_soon(submit, "once", f"once-{number}")
            # In whatever order they arrive, the eight that wait take every place at
            # last: four of each kind.
            while sum(text.partition("-")[2] in GATED for text in ran(tmp_path)) < 8:
                await anyio.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            process.wait()
        (tmp_path / "go").touch()

        async with server.started():
            ended: dict[str, dict[str, Any]] = {}

            async def follow(text: str, execution_id: str) -> None:
                document: dict[str, Any] = {"status": "accepted"}
                while document["status"] in ("accepted", "running"):
                    response = await server.answer(
                        client,
                        "GET",
                        f"/executions/{execution_id}",
                        headers={"prefer": "wait=5"},
                    )
                    assert response.status_code == 200, response.text
                    document = response.json()
                ended[text] = document

            async with anyio.create_task_group() as tasks:
                for text, execution_id in accepted.items():
                    tasks.start_soon(follow, text, execution_id)
            await submit(
                "once", "once-5"
            )  # the same key as before the kill: the same execution
            again = accepted["once-5"]

    assert len(ended) == 200
    assert again == ended["once-5"]["execution_id"]
    runs = Counter(ran(tmp_path))
    cut_off = {
        text for text, document in ended.items() if document["status"] == "failed"
    }
    assert {f"once-{number}" for number in GATED} <= cut_off
    # The beginning is committed before the skill starts: one may be cut off between the
    # two, with no effect.
    assert all(text.startswith("once-") for text in cut_off)
    assert all(
        ended[text]["error"]["code"] == "EXECUTION_INTERRUPTED" for text in cut_off
    )
    assert all(
        ended[text]["error"]["details"]["recoverable"] is True for text in cut_off
    )
    assert {document["status"] for document in ended.values()} == {
        "completed",
        "failed",
    }
    assert all(
        document["output"] == {"said": text}
        for text, document in ended.items()
        if text not in cut_off
    )
    assert all(
        runs[text] == 1
        for text in ended
        if text.startswith("once-") and text not in cut_off
    )
    assert all(runs[text] <= 1 for text in cut_off)
    assert sum(runs[text] for text in ended) > 200, (
        "no run that may be repeated was cut off"
    )


async def test_a_kill_while_calls_come_in_loses_nothing_and_runs_nothing_twice(
    tmp_path: Path,
) -> None:
    """What was answered 202 is there after the restart; what was not is sent again with
    its key, and runs once.
    """
    server = KillableServer(tmp_path)
    (tmp_path / "go").touch()
    accepted: dict[str, str] = {}
    texts = [f"once-{number}" for number in range(50)]
    late = texts[40:]
    async with httpx2.AsyncClient(timeout=300, trust_env=False) as client:

        async def submit(text: str) -> None:
            headers = {"idempotency-key": text}
            response = await server.answer(
                client,
                "POST",
                "/skills/once/invoke",
                json=invocation("once", text),
                headers=headers,
            )
            accepted[text] = response.json()["execution_id"]

        async with anyio.create_task_group() as tasks:
            async with server.started() as process:
                for text in texts[:40]:
                    tasks.start_soon(submit, text)
                while len(accepted) < 12:
                    await anyio.sleep(0.005)
                process.send_signal(signal.SIGKILL)
                process.wait()
            before = dict(accepted)
            for (
                text
            ) in late:  # sent while the server is away, however fast it took the others
                tasks.start_soon(submit, text)
            await tasks.start(keep_running, server)
            while len(accepted) < len(texts):
                await anyio.sleep(0.01)
            ended = {}
            for text, execution_id in accepted.items():
                document = {"status": "accepted"}
                while document["status"] in ("accepted", "running"):
                    path = f"/executions/{execution_id}"
                    document = (
                        await server.answer(
                            client, "GET", path, headers={"prefer": "wait=5"}
                        )
                    ).json()
                ended[text] = document
            tasks.cancel_scope.cancel()

    runs = Counter(ran(tmp_path))
    assert 12 <= len(before) < len(texts), "killed while calls came in"
    assert {document["status"] for document in ended.values()} <= {
        "completed",
        "failed",
    }
    assert all(runs[text] <= 1 for text in texts)
    assert all(
        runs[text] == 1 for text in texts if ended[text]["status"] == "completed"
    )
    failed = [document for document in ended.values() if document["status"] == "failed"]
    assert all(
        document["error"]["code"] == "EXECUTION_INTERRUPTED" for document in failed
    )
    assert len(failed) <= 8, "no more than were running at once"


async def keep_running(
    server: KillableServer, *, task_status: TaskStatus[None]
) -> None:
    """Run a server until it is cancelled."""
    async with server.started():
        task_status.started()
        await anyio.sleep_forever()


async def test_a_server_asked_to_stop_leaves_what_runs_to_the_next_start(
    tmp_path: Path,
) -> None:
    """SIGTERM wakes waiting clients, loses nothing that was accepted, and ends the
    process.
    """
    server = KillableServer(tmp_path)
    async with httpx2.AsyncClient(timeout=300, trust_env=False) as client:
        async with server.started() as process:
            response = await server.answer(
                client,
                "POST",
                "/skills/twice/invoke",
                json=invocation("twice", "twice-9"),
            )
            while not ran(tmp_path):
                await anyio.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            with anyio.fail_after(300):
                status = await anyio.to_thread.run_sync(process.wait)
        (tmp_path / "go").touch()
        async with server.started():
            path = f"/executions/{response.json()['execution_id']}"
            document: dict[str, Any] = {"status": "accepted"}
            while document["status"] in ("accepted", "running"):
                document = (
                    await server.answer(
                        client, "GET", path, headers={"prefer": "wait=5"}
                    )
                ).json()

    assert status == 0
    assert document["status"] == "completed"
    assert ran(tmp_path) == ["twice-9", "twice-9"]


async def test_a_draining_server_refuses_new_work_and_finishes_what_runs(
    tmp_path: Path,
) -> None:
    """SIGTERM: 503 with Retry-After for new work, statuses are answered, and what must
    not run twice completes.
    """
    server = KillableServer(tmp_path, drain=300)
    async with httpx2.AsyncClient(timeout=300, trust_env=False) as client:
        async with server.started() as process:
            first = await server.answer(
                client, "POST", "/skills/once/invoke", json=invocation("once", "once-9")
            )
            while not ran(tmp_path):
                await anyio.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            while (await server.answer(client, "GET", "/ready")).status_code == 200:
                await anyio.sleep(0.01)
            refused = await server.answer(
                client, "POST", "/skills/once/invoke", json=invocation("once", "once-1")
            )
            seen = (
                await server.answer(
                    client, "GET", f"/executions/{first.json()['execution_id']}"
                )
            ).json()
            (tmp_path / "go").touch()
            with anyio.fail_after(300):
                status = await anyio.to_thread.run_sync(process.wait)
        async with server.started():
            last = (
                await server.answer(
                    client, "GET", f"/executions/{first.json()['execution_id']}"
                )
            ).json()

    assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
    assert seen["status"] == "running"
    assert status == 0
    assert last["status"] == "completed" and last["output"] == {"said": "once-9"}
    assert ran(tmp_path) == ["once-9"]


def ran(directory: Path) -> list[str]:
    """Return what has run, in order."""
    path = directory / "ran"
    return path.read_text().split() if path.exists() else []
