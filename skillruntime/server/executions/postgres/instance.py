"""Configure and launch the DBOS instance of this process, and manage its queues."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import dbos
import dbos._core
import dbos._queue
import sqlalchemy
from dbos import DBOS, DBOSClient

from skillruntime.errors import SkillRuntimeError
from skillruntime.server.executions.executions import Terms
from skillruntime.server.executions.postgres.tables import RUN, SCHEMA, TASKS, column
from skillruntime.server.executions.ticket import Ticket

__all__ = [
    "MESSAGE",
    "MESSAGES",
    "POLL",
    "Instance",
    "Queues",
    "launch",
    "make_tables",
    "message_options",
    "new_client",
]

_VERSION: Final = "1"  # of all servers
MESSAGE: Final = "skillruntime.message"
"""The workflow that sends the webhook of one execution."""
MESSAGES: Final = "skillruntime-messages"
_MAIN: Final = "skillruntime"
POLL: Final = 1.0
"""The most seconds between two looks of a server at a queue."""
_GATHER: Final = 0.01  # seconds in which several reasons to look become one
_MESSAGES_AT_ONCE: Final = 100
_JOIN: Final = 10.0  # seconds
_LAUNCH: Final = 120.0  # seconds: a frozen server must not keep all others away
_TRY_LOCK: Final = "SELECT pg_try_advisory_lock(7305002)"
_UNLOCK: Final = "SELECT pg_advisory_unlock(7305002)"
_PRIORITIES: Final = {"high": 1, "normal": 2, "low": 3}


class _Json(dbos.Serializer):
    """A JSON serializer. The engine's default would run code from anyone who can write
    to the database.
    """

    def serialize(self, data: Any) -> str:
        return json.dumps(data, separators=(",", ":"), default=str)

    def deserialize(self, serialized_data: str) -> Any:
        return json.loads(serialized_data)

    def name(self) -> str:
        return "skillruntime_json"


class Queues:
    """The queues of a server: one for all skills, and one more for each skill with a
    limit by the host.

    If callers have a limit, the queues are partitioned and have other names: the engine
    does not take a workflow without a partition key from a partitioned queue.
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
            "workflow_name": RUN,
            "workflow_id": ticket.execution_id,
            "workflow_id_reuse_policy": "reject",
            "authenticated_user": column(ticket.owner),
            "queue_name": self.of(ticket),
            "priority": _PRIORITIES.get(ticket.priority, 2),
        }
        if self._terms.per_caller is not None and not ticket.is_task:
            options["queue_partition_key"] = ticket.owner
        return options

    def has_limit(self, ticket: Ticket) -> bool:
        """Return whether *ticket* may have to wait although servers have free
        places.
        """
        return self.of(ticket) != _MAIN

    def start(self, client: DBOSClient, instance: Instance) -> None:
        """Let *instance* take executions from the queues."""
        # The engine's own polling runs at fixed times and reads its settings each time,
        # which takes most of an idle server's time.
        instance.stop_taking()
        self.register(client)
        self.take_up(client, instance)

    def register(self, client: DBOSClient) -> None:
        """Write the queues and their limits to the database."""
        client.register_queue(MESSAGES, worker_concurrency=_MESSAGES_AT_ONCE)
        client.register_queue(self._name(None), **self._limits(None))
        for skill, most in self._terms.per_skill.items():
            client.register_queue(self._name(skill), **self._limits(most))

    def take_up(self, client: DBOSClient, instance: Instance) -> None:
        """Also take executions from other servers' queues: a server with different
        limits may have left work in its queues.
        """
        for queue in client.list_queues():
            if queue.name not in self._looks:
                # Do not read the queue's limits again at each look.
                queue.database_backed_queue = False
                looks = self._looks[queue.name] = _Looks()
                thread = threading.Thread(
                    target=dbos._queue.queue_worker_thread,
                    args=(looks, instance.engine, queue),
                    name=queue.name,
                    daemon=True,
                )
                # The engine ends the threads of this list together with its own.
                instance.engine.background_thread_stop_events.append(looks)
                instance.threads.append(thread)
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
    """The times at which a thread of the engine looks at its queue: whenever `wait`
    returns False. True ends the thread.
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
        # Ignore *timeout*: after a conflict of two servers, the engine raises it to up
        # to two minutes.
        if self.due.wait(POLL) and not self.is_set():
            super().wait(_GATHER)  # the thread ends at once when asked to
        self.due.clear()
        return self.is_set()


def launch(
    engine: sqlalchemy.Engine,
    executor: str,
    run: Callable[[dict[str, Any], float], Awaitable[dict[str, Any]]],
    send: Callable[[str], Awaitable[None]],
) -> Instance:
    """Launch the engine of this process on the running event loop; *executor* is a name
    that no other server has.

    *run* is the workflow of one execution, *send* the workflow of its webhook.

    Raises:
        SkillRuntimeError: the process has a DBOS instance already.
    """
    launched = DBOS(
        config={
            "name": SCHEMA,
            "dbos_system_schema": SCHEMA,
            # The engine requires a URL but never connects to it, because it uses the
            # pool of connections.
            "system_database_url": "postgresql://pool/skillruntime",
            "system_database_engine": engine,
            "serializer": _Json(),
            # With the default, "local", a starting server would begin the running work
            # of other servers again.
            "executor_id": executor,
            # The default changes with the code, so after a rolling deployment the work
            # that older servers accepted would never run.
            "application_version": _VERSION,
            "use_listen_notify": False,
            "log_level": "CRITICAL",
        }
    )

    # If an instance exists, `DBOS` returns it unchanged.
    if DBOS.executor_id != executor:
        message = (
            "This process has a DBOS instance of its own, and DBOS allows one only"
        )
        raise SkillRuntimeError(
            f"{message}: serve skills in a process of their own, or on SQLite"
        )

    # Do not use the engine's own limit: it ends the workflow in a separate status.
    @DBOS.workflow(name=RUN, max_recovery_attempts=None)
    async def run_execution(
        ticket: dict[str, Any], accepted_at: float
    ) -> dict[str, Any]:
        instance.note_dispatch()
        return await run(ticket, accepted_at)

    @DBOS.workflow(name=MESSAGE, max_recovery_attempts=None)
    async def send_message(execution_id: str) -> None:
        instance.note_dispatch()
        await send(execution_id)

    instance = Instance(launched, executor)
    try:
        with _alone(engine):
            DBOS.launch()
    except BaseException:
        instance.shut_down()
        raise
    return instance


@dataclass(frozen=True, slots=True)
class Instance:
    """The launched engine of this process, whose name is ``executor``."""

    engine: DBOS
    executor: str
    threads: list[threading.Thread] = field(default_factory=list)
    _dispatched: dict[asyncio.Task[Any], str] = field(default_factory=dict)

    def begin(self, client: DBOSClient, options: Any, *arguments: Any) -> None:
        """Accept a workflow that is not in the database, and begin it here. This is
        called in a thread. It writes the same row as the engine writes when it takes a
        workflow from a queue; this costs half as much as enqueueing and taking.
        """
        _, status = client._build_enqueue_status(options, *arguments)
        status["status"] = "PENDING"
        status["executor_id"] = self.executor
        status["app_version"] = _VERSION
        status["recovery_attempts"] = 1
        owner = secrets.token_hex(16)
        client._sys_db.init_workflow(
            status, creator_xid=owner, reuse_policy=options["workflow_id_reuse_policy"]
        )
        dbos._core.execute_dequeued_workflow(self.engine, status, owner)

    def stop_taking(self) -> None:
        """Stop taking executions from the queues; running executions continue."""
        for event in self.engine.background_thread_stop_events:
            event.set()

    def note_dispatch(self) -> None:
        """Note that the current task runs a workflow; the task ends when the engine has
        recorded how the workflow ended.
        """
        task = asyncio.current_task()
        assert task is not None
        self._dispatched[task] = str(DBOS.workflow_id)
        task.add_done_callback(self._dispatched.pop)

    def running(self) -> set[str]:
        """Return the ids of all workflows that this process runs."""
        return set(self._dispatched.values())

    def shut_down(self) -> None:
        """End the engine; another one may be launched."""
        DBOS.destroy(destroy_registry=True)
        for thread in self.threads:
            thread.join(timeout=_JOIN)
        # The engine had made its own thread pool the loop's executor, and has shut the
        # pool down.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


@contextmanager
def _alone(engine: sqlalchemy.Engine) -> Iterator[None]:
    """Prevent other servers from launching the engine meanwhile, for two minutes at
    most: the first server makes the tables.

    The engine waits for its own lock for only 30 seconds; then two servers make the
    tables at once, and one of them fails (dbos 3.4, `_sys_db_postgres.py`).
    """
    # The lock is held outside a transaction, because PostgreSQL would end an idle
    # transaction. A server that dies loses its session, and with it the lock.
    with engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        deadline = time.monotonic() + _LAUNCH
        while True:
            taken = connection.execute(sqlalchemy.text(_TRY_LOCK)).scalar()
            if taken or time.monotonic() >= deadline:
                break
            time.sleep(0.1)
        try:
            yield
        finally:
            if taken:
                connection.execute(sqlalchemy.text(_UNLOCK))


def message_options(execution_id: str) -> Any:
    """Return the options with which the message of an execution is enqueued."""
    return {
        "workflow_name": MESSAGE,
        "queue_name": MESSAGES,
        "workflow_id": f"message-{execution_id}",
    }


def make_tables(engine: sqlalchemy.Engine, url: str) -> None:
    """Make the tables of the engine in the database *url*, to which *engine* connects,
    without launching the engine.
    """
    address = sqlalchemy.make_url(url).set(drivername="postgresql+psycopg")
    with _alone(engine):
        DBOS.migrate(address.render_as_string(hide_password=False), schema=SCHEMA)


def new_client(engine: sqlalchemy.Engine) -> DBOSClient:
    """Return a client that accepts and cancels executions; it raises within seconds
    while the database is unavailable.
    """
    return DBOSClient(
        system_database_engine=engine,
        dbos_system_schema=SCHEMA,
        serializer=_Json(),
        application_name=SCHEMA,
        lazy=True,
        retry_connection_errors=False,
    )
