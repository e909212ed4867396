"""The DBOS instance of this process: how it is configured, and its queues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import dbos
import dbos._dbos
import sqlalchemy
from dbos import DBOS, DBOSClient

from skillruntime.errors import SkillRuntimeError
from skillruntime.server.engine_tables import RUN, SCHEMA, TASKS
from skillruntime.server.executions import Terms
from skillruntime.server.ticket import Ticket

__all__ = ["MESSAGE", "MESSAGES", "Queues", "launch", "new_client", "shut_down", "stop_taking"]

MESSAGE: Final = "skillruntime.message"
"""The workflow that sends the webhook of one execution."""
MESSAGES: Final = "skillruntime-messages"
_MAIN: Final = "skillruntime"
_POLL: Final = 0.1  # seconds between two looks of a server at a queue
_MESSAGE_POLL: Final = 1.0
_MESSAGES_AT_ONCE: Final = 100
_PRIORITIES: Final = {"high": 1, "normal": 2, "low": 3}


class _Json(dbos.Serializer):
    """JSON, for the engine's default would run the code of whoever can write to the database."""

    def serialize(self, data: Any) -> str:
        return json.dumps(data, separators=(",", ":"), default=str)

    def deserialize(self, serialized_data: str) -> Any:
        return json.loads(serialized_data)

    def name(self) -> str:
        return "skillruntime_json"


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues of a server: one for all skills, and one more for each skill whose limit its host states.

    A limit of each caller makes them partitioned, under names of their own: the engine takes nothing from a partitioned
    queue that has no partition.
    """

    terms: Terms
    capacity: int

    def of(self, ticket: Ticket) -> str:
        """Return the name of the queue in which *ticket* waits."""
        if ticket.is_task:
            return TASKS
        return self._name(ticket.skill_id if ticket.skill_id in self.terms.per_skill else None)

    def options(self, ticket: Ticket) -> dict[str, Any]:
        """Return how *ticket* is enqueued: a lower number of a priority comes first, always."""
        is_partitioned = self.terms.per_caller is not None and not ticket.is_task
        partition = {"queue_partition_key": ticket.owner} if is_partitioned else {}
        return {"queue_name": self.of(ticket), "priority": _PRIORITIES.get(ticket.priority, 2), **partition}

    async def register(self) -> None:
        """Write the queues, for all servers: those of the server that started last count."""
        await _register(MESSAGES, _MESSAGE_POLL, worker_concurrency=_MESSAGES_AT_ONCE)
        await _register(self._name(None), _POLL, **self._limits(None))
        for skill, most in self.terms.per_skill.items():
            await _register(self._name(skill), _POLL, **self._limits(most))

    def _name(self, skill: str | None) -> str:
        name = _MAIN if skill is None else f"{_MAIN}-skill-{skill}"
        return name if self.terms.per_caller is None else f"{name}-by-caller"

    def _limits(self, most: int | None) -> dict[str, int]:
        limits = {"worker_concurrency": self.capacity}
        if most is not None:
            limits = {"global_concurrency": most, "worker_concurrency": min(most, self.capacity)}
        if self.terms.per_caller is not None:
            limits["partition_concurrency"] = min(self.terms.per_caller, most or self.terms.per_caller)
        return limits


async def _register(name: str, poll: float, **limits: Any) -> None:
    await DBOS.register_queue_async(name, polling_interval_sec=poll, on_conflict="always_update", **limits)


def launch(
    engine: sqlalchemy.Engine,
    executor: str,
    run: Callable[[dict[str, Any], float], Awaitable[dict[str, Any]]],
    send: Callable[[str], Awaitable[None]],
) -> None:
    """Launch the engine of this process on the running event loop, under a name like no other's.

    *run* is the workflow of one execution, *send* that of its webhook.

    Raises:
        SkillRuntimeError: the process has a DBOS instance already.
    """
    if dbos._dbos._dbos_global_instance is not None:
        message = "This process has a DBOS instance of its own, and DBOS allows one only"
        raise SkillRuntimeError(f"{message}: serve skills in a process of their own, or on SQLite")
    DBOS(
        config={
            "name": SCHEMA,
            "dbos_system_schema": SCHEMA,
            # Not to be connected to: the engine asks for a URL beside its pool of connections.
            "system_database_url": "postgresql://pool/skillruntime",
            "system_database_engine": engine,
            "serializer": _Json(),
            # The default, "local", would make a start begin again what its neighbour runs.
            "executor_id": executor,
            # The default changes with the code: a rolling deploy would strand what older servers accepted.
            "application_version": "1",
            "use_listen_notify": False,
            "log_level": "CRITICAL",
        }
    )

    # Without a limit of the engine's own, which ends in a state of its own.
    @DBOS.workflow(name=RUN, max_recovery_attempts=None)
    async def run_execution(ticket: dict[str, Any], accepted_at: float) -> dict[str, Any]:
        return await run(ticket, accepted_at)

    @DBOS.workflow(name=MESSAGE, max_recovery_attempts=None)
    async def send_message(execution_id: str) -> None:
        await send(execution_id)

    DBOS.launch()


def new_client(engine: sqlalchemy.Engine) -> DBOSClient:
    """Return what accepts and cancels for callers: it raises within seconds while the database is away."""
    return DBOSClient(
        system_database_engine=engine,
        dbos_system_schema=SCHEMA,
        serializer=_Json(),
        application_name=SCHEMA,
        lazy=True,
        retry_connection_errors=False,
    )


def stop_taking() -> None:
    """Take nothing more from the queues; what runs goes on."""
    instance = dbos._dbos._dbos_global_instance
    for event in instance.background_thread_stop_events if instance is not None else ():
        event.set()


def shut_down() -> None:
    """End the engine; another one may be launched."""
    DBOS.destroy(destroy_registry=True)
    # The engine has made its own threads those of the loop, and has ended them.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
