"""Executions that were cut off: which they are, and that an operator runs each again or
leaves it, once.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from skillruntime.server.decisions import DecidedError, Decisions
from tests.remote.parts import ExecutionStatus
from tests.server.serving import (
    KEY,
    OPERATOR_KEY,
    OTHER_KEY,
    Served,
    read,
    serve_in_memory,
)
from tests.server.test_console import look
from tests.server.test_execution_laws import counting, ended, left_running, opened
from tests.server.test_execution_laws import ticket as of_skill

pytestmark = pytest.mark.anyio


async def test_what_was_cut_off_is_listed_until_it_is_decided(path: str) -> None:
    """In each store: one runs again, one is left, and what has completed is not listed,
    whatever text it holds.
    """
    await left_running(path, of_skill("a"), of_skill("b"), of_skill("c"))
    ran: list[str] = []
    async with opened(counting(ran), path) as executions:
        decisions = Decisions(executions, b"secret")
        for name in ("exec-a", "exec-b", "exec-c"):
            await ended(executions, name)
        await executions.submit(of_skill("d"))
        await ended(executions, "exec-d")

        async def listed() -> set[str]:
            page = await decisions.undecided(None, limit=50, cursor=None)
            return {each.execution_id for each in page.executions}

        before = await listed()
        found = {name: await executions.get(name) for name in before}
        again = await decisions.run_again(*(found["exec-a"] or ()))
        done = await ended(executions, again.execution_id)
        repeated = await decisions.run_again(*(found["exec-a"] or ()))
        await decisions.leave(*(found["exec-b"] or ()))
        await decisions.leave(*(found["exec-b"] or ()))
        with pytest.raises(DecidedError, match="was run again as exec-"):
            await decisions.leave(*(found["exec-a"] or ()))
        with pytest.raises(DecidedError, match="was left, and does not run again"):
            await decisions.run_again(*(found["exec-b"] or ()))
        after = await listed()

    assert before == {"exec-a", "exec-b", "exec-c"}
    assert done.status is ExecutionStatus.COMPLETED
    assert repeated.execution_id == done.execution_id
    assert after == {"exec-c"}
    assert ran == ["exec-d", done.execution_id]


@asynccontextmanager
async def with_cut_off(key: str = KEY) -> AsyncIterator[tuple[Served, str]]:
    """Serve, with an execution that has ended as one does whose server died; give its
    id too.
    """
    async with serve_in_memory() as served:
        served.skills.gate = anyio.Event()
        begun = read(await served.invoke("slow", "x", key=key))["execution_id"]
        await served.skills.started.wait()
        # What a server does with it that stops while it runs.
        served.service.executions._live[begun].give_up()  # type: ignore[attr-defined]
        await served.ask("GET", f"/executions/{begun}", key=key, prefer="wait=60")
        yield served, begun


async def test_only_an_operator_decides() -> None:
    """Its caller sees that it was cut off; others do not see it at all."""
    async with with_cut_off() as (served, cut):
        query = "/executions?interrupted=1"
        own = read(await served.ask("GET", query, key=KEY))
        others = read(await served.ask("GET", query, key=OTHER_KEY))
        everyone = read(await served.ask("GET", f"{query}&all=1", key=OPERATOR_KEY))
        path = f"/executions/{cut}"
        refused = [
            (await served.ask("POST", f"{path}/{each}", key=KEY)).status
            for each in ("release", "leave")
        ]
        left = await served.ask("POST", f"{path}/leave", key=OPERATOR_KEY)
        late = await served.ask("POST", f"{path}/release", key=OPERATOR_KEY)
        rest = read(await served.ask("GET", f"{query}&all=1", key=OPERATOR_KEY))

    assert [each["execution_id"] for each in own["executions"]] == [cut]
    assert others["executions"] == []
    assert [each["execution_id"] for each in everyone["executions"]] == [cut]
    assert refused == [403, 403]
    assert (left.status, read(left)["execution_id"]) == (200, cut)
    assert late.status == 409
    assert read(late)["error"]["message"] == (
        "The execution was left, and does not run again"
    )
    assert rest["executions"] == []


async def test_the_console_shows_what_was_cut_off_with_both_decisions() -> None:
    """For operators; the page of the execution has them too, until it is decided."""
    async with with_cut_off() as (served, cut):
        cookie = f"skillruntime-key={OPERATOR_KEY}"
        address = f"/ui/executions/{cut}"
        listed = await look(
            served, "GET", "/ui/executions?interrupted=1&all=1", cookie=cookie
        )
        shown = await look(served, "GET", address, cookie=cookie)
        by_caller = await look(
            served,
            "GET",
            "/ui/executions?interrupted=1",
            cookie=f"skillruntime-key={KEY}",
        )
        again = await look(served, "POST", f"{address}/release", {}, cookie=cookie)
        decided = await look(served, "GET", address, cookie=cookie)
        served.skills.gate.set()

    for page in (listed, shown):
        assert f'action="{address}/release"' in page.body.decode()
        assert f'action="{address}/leave"' in page.body.decode()
    assert "<p>Skill: slow</p><p>Caller: ann</p>" in shown.body.decode()
    assert cut in by_caller.body.decode() and b"/leave" not in by_caller.body
    assert again.status == 303
    assert re.fullmatch("/ui/executions/exec-[a-z0-9]+", again.headers["location"])
    assert again.headers["location"] != address
    assert b"/leave" not in decided.body


async def test_what_was_not_cut_off_is_not_decided() -> None:
    """409: it has completed."""
    async with serve_in_memory() as served:
        done = read(await served.invoke("echo", key=KEY, prefer="wait=60"))
        path = f"/executions/{done['execution_id']}"
        answers = [
            await served.ask("POST", f"{path}/{each}", key=OPERATOR_KEY)
            for each in ("release", "leave")
        ]

    assert [answer.status for answer in answers] == [409, 409]
    assert read(answers[0])["error"]["message"] == (
        "The execution is neither interrupted nor held"
    )
