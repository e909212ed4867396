"""The DBOS instance of this process: how it is configured, and its queues."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import dbos
import dbos._core
import dbos._dbos
import dbos._queue
import sqlalchemy
from dbos import DBOS, DBOSClient

from skillruntime.errors import SkillRuntimeError
from skillruntime.server.executions.executions import Terms
from skillruntime.server.executions.postgres.tables import RUN, SCHEMA, TASKS
from skillruntime.server.executions.ticket import Ticket

__all__ = [
    "MESSAGE",
    "MESSAGES",
    "POLL",
    "Queues",
    "begin",
    "launch",
    "new_client",
    "running",
    "shut_down",
    "stop_taking",
]

_VERSION: Final = "1"  # of all servers
MESSAGE: Final = "skillruntime.message"
"""The workflow that sends the webhook of one execution."""
MESSAGES: Final = "skillruntime-messages"
_MAIN: Final = "skillruntime"
POLL: Final = 1.0
"""Seconds, at most, between two looks of a server at a queue."""
_GATHER: Final = 0.01  # seconds in which several reasons to look become one
_MESSAGES_AT_ONCE: Final = 100
_PRIORITIES: Final = {"high": 1, "normal": 2, "low": 3}


class _Json(dbos.Serializer):
    """JSON, for the engine's default would run the code of whoever can write to the
    database.
    """

    def serialize(self, data: Any) -> str:
        return json.dumps(data, separators=(",", ":"), default=str)

    def deserialize(self, serialized_data: str) -> Any:
        return json.loads(serialized_data)

    def name(self) -> str:
        return "skillruntime_json"


class Queues:
    """The queues of a server: one for all skills, and one more for each skill that the
    host gives a limit.

    If callers have a limit, the queues are partitioned and have other names: the engine
    takes nothing without a partition key from a partitioned queue.
    """

    def __init__(self, terms: Terms, capacity: int) -> None:
        self._terms = terms
        self._capacity = capacity
        self._looks: dict[str, _Looks] = {}

    def of(self, ticket: Ticket) -> str:
        """Return the name of the queue in which *ticket* waits."""
        if ticket.is_task:
            return TASKS
        if ticket.skill_id in self._terms.per_skill:
            return self._name(ticket.skill_id)
        return self._name(None)

    def options(self, ticket: Ticket) -> dict[str, Any]:
        """Return the options with which *ticket* is enqueued; a lower priority number
        always comes first.
        """
        options: dict[str, Any] = {
            "queue_name": self.of(ticket),
            "priority": _PRIORITIES.get(ticket.priority, 2),
        }
        if self._terms.per_caller is not None and not ticket.is_task:
            options["queue_partition_key"] = ticket.owner
        return options

    def has_limit(self, ticket: Ticket) -> bool:
        """Return whether *ticket* may have to wait although servers have places."""
        return self.of(ticket) != _MAIN

    def start(self, client: DBOSClient) -> None:
        """Start to take executions from the queues."""
        # The engine's own polling runs at fixed times and reads its settings again each
        # time, which costs an idle server most of its time. The engine's schedules,
        # delays and timeouts are not used.
        stop_taking()
        _instance()._background_jobs_stop_event.set()
        client.register_queue(MESSAGES, worker_concurrency=_MESSAGES_AT_ONCE)
        client.register_queue(self._name(None), **self._limits(None))
        for skill, most in self._terms.per_skill.items():
            client.register_queue(self._name(skill), **self._limits(most))
        self.take_up(client)

    def take_up(self, client: DBOSClient) -> None:
        """Take executions from the queues of other servers too: a server with other
        limits may have left work in its queues.
        """
        for queue in client.list_queues():
            if queue.name not in self._looks:
                # Do not read the queue's limits again at each look.
                queue.database_backed_queue = False
                looks = self._looks[queue.name] = _Looks()
                thread = threading.Thread(
                    target=dbos._queue.queue_worker_thread,
                    args=(looks, _instance(), queue),
                    name=queue.name,
                    daemon=True,
                )
                # The engine ends the threads in this list together with its own.
                _instance().background_thread_stop_events.append(looks)
                _instance()._background_threads.append(thread)
                thread.start()

    def look(self, queue: str) -> None:
        """Look into *queue* now."""
        if queue in self._looks:
            self._looks[queue].due.set()

    def _name(self, skill: str | None) -> str:
        name = _MAIN if skill is None else f"{_MAIN}-skill-{skill}"
        return name if self._terms.per_caller is None else f"{name}-by-caller"

    def _limits(self, most: int | None) -> dict[str, Any]:
        limits = {"worker_concurrency": self._capacity}
        if most is not None:
            limits = {
                "global_concurrency": most,
                "worker_concurrency": min(most, self._capacity),
            }
        if self._terms.per_caller is not None:
            limits["partition_concurrency"] = min(
                self._terms.per_caller, most or self._terms.per_caller
            )
        return limits


class _Looks(threading.Event):
    """When a thread of the engine looks at its queue: each time that `wait` returns
    False; True ends it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.due = threading.Event()

    def set(self) -> None:
        """Let the thread end."""
        super().set()
        self.due.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until a look is due."""
        # *timeout* is ignored: after a conflict of two servers, the engine raises it to
        # as much as two minutes.
        if self.due.wait(POLL) and not self.is_set():
            super().wait(_GATHER)  # it ends at once when it is asked to
        self.due.clear()
        return self.is_set()


def launch(
    engine: sqlalchemy.Engine,
    executor: str,
    run: Callable[[dict[str, Any], float], Awaitable[dict[str, Any]]],
    send: Callable[[str], Awaitable[None]],
) -> None:
    """Launch the engine of this process on the running event loop; *executor* is a name
    that no other server has.

    *run* is the workflow of one execution, *send* that of its webhook.

    Raises:
        SkillRuntimeError: the process has a DBOS instance already.
    """
    if dbos._dbos._dbos_global_instance is not None:
        message = (
            "This process has a DBOS instance of its own, and DBOS allows one only"
        )
        raise SkillRuntimeError(
            f"{message}: serve skills in a process of their own, or on SQLite"
        )
    DBOS(
        config={
            "name": SCHEMA,
            "dbos_system_schema": SCHEMA,
            # Never connected to, because the engine uses the pool of connections; but
            # it requires a URL.
            "system_database_url": "postgresql://pool/skillruntime",
            "system_database_engine": engine,
            "serializer": _Json(),
            # With the default, "local", a server that starts would begin again what
            # other servers run.
            "executor_id": executor,
            # The default changes with the code, so that after a rolling deployment
            # nothing would run what older servers accepted.
            "application_version": _VERSION,
            "use_listen_notify": False,
            "log_level": "CRITICAL",
        }
    )

    # Do not use the engine's own limit: it ends the workflow in a separate status.
    @DBOS.workflow(name=RUN, max_recovery_attempts=None)
    async def run_execution(
        ticket: dict[str, Any], accepted_at: float
    ) -> dict[str, Any]:
        return await run(ticket, accepted_at)

    @DBOS.workflow(name=MESSAGE, max_recovery_attempts=None)
    async def send_message(execution_id: str) -> None:
        await send(execution_id)

    DBOS.launch()


def new_client(engine: sqlalchemy.Engine) -> DBOSClient:
    """Return a client that accepts and cancels executions; it raises within seconds
    while the database is away.
    """
    return DBOSClient(
        system_database_engine=engine,
        dbos_system_schema=SCHEMA,
        serializer=_Json(),
        application_name=SCHEMA,
        lazy=True,
        retry_connection_errors=False,
    )


def begin(client: DBOSClient, executor: str, options: Any, *arguments: Any) -> None:
    """Accept a workflow that is not in the database, and begin it here. It is called in
    a thread.

    It writes the row that the engine writes when it takes a workflow from a queue, which
    costs half as much as enqueueing and taking.
    """
    _, status = client._build_enqueue_status(options, *arguments)
    status["status"] = "PENDING"
    status["executor_id"] = executor
    status["app_version"] = _VERSION
    status["recovery_attempts"] = 1
    owner = secrets.token_hex(16)
    client._sys_db.init_workflow(
        status, creator_xid=owner, reuse_policy=options["workflow_id_reuse_policy"]
    )
    dbos._core.execute_dequeued_workflow(_instance(), status, owner)


def stop_taking() -> None:
    """Stop taking executions from the queues; those that run continue."""
    for event in _instance().background_thread_stop_events:
        event.set()


def shut_down() -> None:
    """End the engine; another one may be launched."""
    DBOS.destroy(destroy_registry=True)
    # The engine had made its own thread pool the loop's executor, and has ended it.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


def running() -> set[str]:
    """Return the ids of all workflows that this process runs."""
    return set(_instance()._active_workflows_set.activeList())


def _instance() -> DBOS:
    return dbos._dbos._get_dbos_instance()
