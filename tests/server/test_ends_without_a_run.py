"""Executions that end without a run here: waiting cancelled or too long, or cut off
with their server.

Their callers asked for a webhook too.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from skillruntime.remote import Execution
from skillruntime.server import durable_executions
from tests.remote.parts import ExecutionStatus
from tests.server.parts import Outcome, Report, Ticket

pytestmark = pytest.mark.anyio


def ticket(name: str, *, is_task: bool = False) -> Ticket:
    """Return a ticket of the caller ann, with a webhook."""
    fields = {"is_task": is_task, "webhook": "https://ann.example/"}
    return Ticket(
        f"exec-{name}", "ann", "skill", "skill@1", "skill", {}, "f", 300.0, **fields
    )  # type: ignore[arg-type]


async def stay(one: Ticket, report: Report) -> Outcome:
    """Do not end."""
    await anyio.sleep_forever()
    return Outcome(ExecutionStatus.COMPLETED)


class Receiver:
    """Receives the messages of ended executions: the status by id."""

    def __init__(self) -> None:
        self.received: dict[str, str] = {}

    async def __call__(self, one: Ticket, execution: Execution) -> None:
        assert one.execution_id not in self.received
        self.received[one.execution_id] = execution.status.value


async def until(condition: Callable[[], bool]) -> None:
    """Wait until *condition* is true."""
    with anyio.fail_after(300):
        while not condition():
            await anyio.sleep(0.005)


async def test_what_is_cancelled_while_it_waits_is_announced(path: str) -> None:
    """Once, also where it is cancelled again."""
    receiver = Receiver()
    async with durable_executions(
        stay, path, poll=0.02, capacity=1, notify=receiver
    ) as executions:
        await executions.submit(ticket("runs"))
        await until(lambda: executions.running == 1)
        await executions.submit(ticket("waits"))
        await executions.submit(ticket("task", is_task=True))
        for name in ("exec-waits", "exec-task", "exec-waits"):
            await executions.cancel(name)
        await until(lambda: len(receiver.received) == 2)

    assert receiver.received == {"exec-waits": "cancelled", "exec-task": "cancelled"}


async def test_what_waited_too_long_is_announced(path: str) -> None:
    """A task too."""
    receiver = Receiver()
    async with durable_executions(
        stay, path, poll=0.02, capacity=1, notify=receiver, max_wait=2.0, task_wait=0.1
    ) as executions:
        await executions.submit(
            ticket("runs")
        )  # in the only place, or it has waited too long itself
        await executions.submit(ticket("waits"))
        await executions.submit(ticket("task", is_task=True))
        await until(lambda: {"exec-waits", "exec-task"} <= {*receiver.received})

    assert {*receiver.received.values()} == {"timeout"}


async def test_what_was_cut_off_with_its_server_is_announced_by_the_next_one(
    path: str,
) -> None:
    """The server that ends it sends the message, and not the one after it."""
    async with durable_executions(stay, path, lease=0.6, poll=0.02) as executions:
        await executions.submit(ticket("runs"))
        await until(lambda: executions.running == 1)
    receiver = Receiver()
    async with durable_executions(stay, path, lease=0.6, poll=0.02, notify=receiver):
        await until(lambda: bool(receiver.received))

    assert receiver.received == {"exec-runs": "failed"}
