"""Executions that outlive the process: on DBOS Transact, with a SQLite file (extra ``serve``).

Accepted means synced to disk: `submit` returns when the engine's row is committed with ``synchronous=FULL``. Each
execution is one workflow of two recorded steps, *begin* and *run*. A process that finds *begin* recorded by another
process and no *run* knows that the skill was cut off: one that may run twice is run again, any other ends ``failed``.

The engine's deadlines, queues and cancelling are not used: deadlines are ours, on the monotonic clock.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import anyio
import anyio.to_thread
import sqlalchemy
from dbos import DBOS, DBOSContextSetAuth, DBOSPortableJSONSerializer, SetWorkflowID
from sqlalchemy import event

from skillruntime.remote.protocol import Execution, ExecutionStatus, to_timestamp
from skillruntime.remote.wire_errors import ErrorDocument
from skillruntime.server.executions import (
    CANCELLED,
    KeyReusedError,
    NotATaskError,
    Outcome,
    Page,
    Submitted,
    Ticket,
    Work,
    broken,
    interrupted,
    page_start,
    waited_too_long,
)
from skillruntime.server.scheduler import Desk, Live

__all__ = ["DurableExecutions", "open_database", "read_secret"]

_log = logging.getLogger("skillruntime.remote")
_WORKFLOW: Final = "skillruntime.execution"
_BEGIN, _RUN, _NOTIFY = "begin", "run", "tell"
_COMPLETION: Final = "completion"
_ATTEMPTS: Final = 10  # starts of the server within one execution; then it is taken for what ends the server
# The engine's default hashes our source, so that any new release would strand what the old one left. What a running
# execution depends on is the skill, and each carries its own id and MAJOR (`Ticket.line`).
_ENGINE_VERSION: Final = "skillruntime-executions-1"
# From Python 3.12 on, the engine's tables ask SQLite for unixepoch('subsec'), which an older SQLite answers with NULL.
_SUBSECONDS: Final = (3, 42, 0)
_LEAVING: Final = 10.0  # seconds, at most, for what is cancelled at the end to stop
_UNFINISHED = ("PENDING", "ENQUEUED", "DELAYED")


class DurableExecutions:
    """Executions in the SQLite file *path*: an async context manager; one at a time in a process, for so is the engine.

    *notify* is awaited with every ended execution whose ticket has a webhook; it may be awaited again after a crash.
    """

    def __init__(
        self,
        work: Work,
        path: str | os.PathLike[str],
        *,
        capacity: int = 16,
        max_wait: float = 300.0,
        task_wait: float = 7 * 86_400.0,
        kept_for: float = 86_400.0,
        notify: Callable[[Ticket, Execution], Awaitable[None]] | None = None,
    ) -> None:
        self._desk = Desk(work, capacity=capacity, max_wait=max_wait, kept_for=kept_for)
        self._path = Path(path)
        self._task_wait = task_wait
        self._notify = notify
        self._process = secrets.token_hex(8)  # tells our own beginnings from those of a process that has ended
        self._locks: dict[str, _CountedLock] = {}
        self._engine: sqlalchemy.Engine | None = None
        self._workflow: Callable[..., Any] | None = None
        self._running: set[asyncio.Task[Any]] = set()
        self._is_leaving = False

    async def __aenter__(self) -> DurableExecutions:
        self._engine = open_database(self._path)
        # The engine is a singleton that reads its main loop when it is launched: here, in the loop of the server.
        DBOS(
            config={
                "name": "skillruntime",
                "system_database_url": f"sqlite:///{self._path}",
                "system_database_engine": self._engine,
                "serializer": DBOSPortableJSONSerializer(),
                "application_version": _ENGINE_VERSION,
                "executor_id": "server",
                "log_level": "ERROR",
                "enable_otlp": False,
                "run_migrations": True,
                "notification_listener_polling_interval_sec": 0.1,
                "scheduler_polling_interval_sec": 3600.0,
            }
        )

        async def execute(document: dict[str, Any]) -> dict[str, Any]:
            return await self._execute(document)

        self._workflow = DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=_ATTEMPTS)(execute)
        DBOS.launch()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave what is not finished to the next start: a cancelled workflow's row stays as it is."""
        self._is_leaving = True
        with anyio.CancelScope(shield=True):
            for task in self._running:
                task.cancel()
            with anyio.move_on_after(_LEAVING):
                while self._running:
                    await asyncio.wait(self._running)
            await anyio.to_thread.run_sync(partial(DBOS.destroy, destroy_registry=True))
            if self._engine is not None:
                await anyio.to_thread.run_sync(self._engine.dispose)
        # The engine made its own thread pool the loop's, and has closed it now.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))

    # The port

    async def submit(self, ticket: Ticket) -> Submitted:
        """Take *ticket*; when this returns, it is on the disk."""
        async with self._alone(ticket.execution_id):
            known = await self.get(ticket.execution_id)
            if known is not None:
                if known[0].fingerprint != ticket.fingerprint:
                    raise KeyReusedError
                return Submitted(known[1], is_new=False)
            assert self._workflow is not None, "used outside its context"
            live = self._desk.admit(ticket)
            try:
                with SetWorkflowID(ticket.execution_id), DBOSContextSetAuth(ticket.owner, []):
                    await DBOS.start_workflow_async(self._workflow, ticket.to_dict())
            except BaseException:
                self._desk.dismiss(live)
                raise
            return Submitted(ticket.accepted(), is_new=True)

    async def get(self, execution_id: str) -> tuple[Ticket, Execution] | None:
        """Return an execution and its ticket, or None."""
        live = self._desk.find(execution_id)
        if live is not None:
            return live.ticket, live.execution
        rows = await DBOS.list_workflows_async(workflow_ids=[execution_id], name=_WORKFLOW)
        return await self._read(rows[0]) if rows else None

    async def cancel(self, execution_id: str) -> Execution | None:
        """Stop it if it has not ended, and return it as it then stands."""
        live = self._desk.find(execution_id)
        if live is not None and not live.execution.is_final:
            live.cancel()
            return await Desk.ended(live)
        found = await self.get(execution_id)
        if found is None:
            return None
        if not found[1].is_final:  # left by a process that has ended, and not taken up yet
            await DBOS.cancel_workflow_async(execution_id)
            found = await self.get(execution_id)
        return found[1] if found is not None else None

    async def complete(self, execution_id: str, outcome: Outcome) -> Execution:
        """End a task from outside."""
        async with self._alone(execution_id):  # of two at once, the second finds it ended
            found = await self.get(execution_id)
            if found is None or not found[0].is_task or found[1].is_final:
                raise NotATaskError
            error = outcome.error.to_dict() if outcome.error is not None else None
            message = {"status": outcome.status.value, "output": outcome.output, "error": error}
            await DBOS.send_async(execution_id, message, _COMPLETION)
            last = found[1]
            with anyio.move_on_after(10):
                async for execution in self.watch(execution_id):
                    last = execution
            return last

    async def watch(self, execution_id: str) -> AsyncIterator[Execution]:
        """Yield it as it stands, then at every change, until it has ended."""
        while True:
            live = self._desk.find(execution_id)
            if live is not None:
                async for execution in Desk.watch(live):
                    yield execution
                return
            found = await self.get(execution_id)
            if found is None:
                return
            yield found[1]
            if found[1].is_final:
                return
            await anyio.sleep(0.2)  # left by another process: the engine is about to take it up

    async def list(self, owner: str | None, *, limit: int = 50, cursor: str | None = None) -> Page:
        """Return a page of the executions of *owner*, the newest first.

        Raises:
            ValueError: the cursor is not one that this list returned.
        """
        until, skipped = page_start(cursor)
        end = datetime.fromtimestamp(until / 1000, UTC).isoformat(timespec="milliseconds")
        rows = await DBOS.list_workflows_async(
            name=_WORKFLOW, user=owner, end_time=end, sort_desc=True, limit=limit + 1, offset=skipped
        )
        shown = [(await self._read(row))[1] for row in rows[:limit]]
        return Page(tuple(shown), f"{until}.{skipped + limit}" if len(rows) > limit else None)

    async def delete(self, *, ended_before: float) -> int:
        """Forget the executions that ended before this moment."""
        end = datetime.fromtimestamp(ended_before, UTC).isoformat(timespec="milliseconds")
        gone = 0
        while True:
            rows = await DBOS.list_workflows_async(
                name=_WORKFLOW, completed_before=end, limit=500, load_input=False, load_output=False
            )
            if not rows:
                return gone
            await DBOS.delete_workflows_async([row.workflow_id for row in rows])
            gone += len(rows)

    async def reclaim(self) -> int:
        """Say how many an ended process left: the engine itself takes them up when it is launched."""
        rows = await DBOS.list_workflows_async(
            name=_WORKFLOW, status=list(_UNFINISHED), load_input=False, load_output=False
        )
        return sum(1 for row in rows if self._desk.find(row.workflow_id) is None)

    def count_of(self, owner: str) -> int:
        """Return how many executions of *owner* have not ended, as far as this process knows."""
        return self._desk.count_of(owner)

    def counts(self) -> Mapping[str, int]:
        """Return how many wait and how many run in this process."""
        return self._desk.counts()

    # One execution

    async def _execute(self, document: dict[str, Any]) -> dict[str, Any]:
        """The workflow: its return value is the ended execution. It runs as a task of the engine's making."""
        task = asyncio.current_task()
        assert task is not None
        if self._is_leaving:
            raise asyncio.CancelledError
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        ticket = Ticket.from_dict(document)
        live = self._desk.find(ticket.execution_id)
        if live is None:  # taken up after another process's end
            # Outside the workflow's context, in which the engine would count every look as one of its steps.
            left = await asyncio.create_task(self._as_left(ticket), context=contextvars.Context())
            live = self._desk.admit(ticket, left)
        try:
            if ticket.is_task:
                outcome = await self._await_completion(live)
            else:
                outcome = await self._desk.perform(live, partial(self._begin, ticket))
            final = await DBOS.run_step_async({"name": _RUN}, partial(self._final, live, outcome))
            ended = Execution.from_dict(final)
            live.end(ended)
            if ticket.webhook is not None and self._notify is not None:
                await DBOS.run_step_async({"name": _NOTIFY}, partial(self._notify_safely, ticket, ended))
            return final
        finally:
            self._desk.dismiss(live)

    async def _begin(self, ticket: Ticket) -> Outcome | None:
        """Note on the disk that it begins; say what is to become of it where another process had begun it."""
        noted: dict[str, Any] = await DBOS.run_step_async({"name": _BEGIN}, self._note_beginning)
        if noted["process"] == self._process or ticket.repeatable:
            return None
        return interrupted()

    async def _note_beginning(self) -> dict[str, Any]:
        return {"process": self._process, "at": time.time()}

    async def _final(self, live: Live, outcome: Outcome) -> dict[str, Any]:
        progress = live.execution.progress
        ended = outcome.of(live.ticket, now=time.time(), kept_for=self._desk.kept_for, progress=progress)
        return ended.to_dict()

    async def _notify_safely(self, ticket: Ticket, execution: Execution) -> None:
        assert self._notify is not None
        try:
            await self._notify(ticket, execution)
        except Exception:
            _log.exception("telling of %s failed", ticket.execution_id)

    async def _await_completion(self, live: Live) -> Outcome:
        message: Any = None
        with anyio.CancelScope() as scope:
            live.scope = scope
            if live.is_cancelled:
                scope.cancel()
            message = await DBOS.recv_async(_COMPLETION, timeout_seconds=self._task_wait)
        if scope.cancelled_caught:
            return CANCELLED
        if message is None:
            return waited_too_long(self._task_wait)
        status = ExecutionStatus(message["status"])
        has_output = status is ExecutionStatus.COMPLETED
        return Outcome(status, message["output"], has_output, ErrorDocument.from_dict(message["error"]))

    # What is on the disk

    async def _read(self, row: Any) -> tuple[Ticket, Execution]:
        """Read an execution from its row; a live one from here, where it is newer."""
        ticket = Ticket.from_dict(row.input["args"][0])
        live = self._desk.find(ticket.execution_id)
        if live is not None:
            return live.ticket, live.execution
        if row.status == "SUCCESS":
            return ticket, Execution.from_dict(row.output)
        if row.status in _UNFINISHED:
            return ticket, await self._as_left(ticket)
        outcome = {"CANCELLED": CANCELLED, "MAX_RECOVERY_ATTEMPTS_EXCEEDED": interrupted()}.get(row.status, broken())
        return ticket, outcome.of(ticket, now=row.updated_at / 1000, kept_for=self._desk.kept_for)

    async def _as_left(self, ticket: Ticket) -> Execution:
        """How an ended process left an execution: who saw it running must not see it accepted again."""
        recorded = await DBOS.list_workflow_steps_async(ticket.execution_id)
        steps: dict[str, Any] = {step["function_name"]: step for step in recorded}
        if _RUN in steps:
            return Execution.from_dict(steps[_RUN]["output"])
        accepted = ticket.accepted()
        if _BEGIN not in steps:
            return accepted
        stamps = accepted.timestamps
        begun = to_timestamp(steps[_BEGIN]["output"]["at"])
        return Execution(
            ticket.execution_id,
            ExecutionStatus.RUNNING,
            ticket.skill_id,
            type(stamps)(stamps.created_at, begun),
        )

    def _alone(self, execution_id: str) -> _CountedLock:
        """The lock under which one id is taken: two requests with one key must not both find nothing."""
        lock = self._locks.get(execution_id)
        if lock is None:
            lock = self._locks[execution_id] = _CountedLock(partial(self._locks.pop, execution_id, None))
        return lock


class _CountedLock:
    """A lock that says when nobody holds it or waits for it any more."""

    def __init__(self, on_idle: Callable[[], Any]) -> None:
        self._lock = anyio.Lock()
        self._users = 0
        self._on_idle = on_idle

    async def __aenter__(self) -> None:
        self._users += 1
        await self._lock.acquire()

    async def __aexit__(self, *exception: object) -> None:
        self._lock.release()
        self._users -= 1
        if self._users == 0:
            self._on_idle()


def open_database(path: Path) -> sqlalchemy.Engine:
    """Return an engine on the SQLite file *path* whose commits are on the disk when they return.

    The engine's own default keeps the rollback journal, which is several times slower here.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)  # it holds what callers send
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", connect_args={"timeout": 30, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = "IMMEDIATE"  # a reader that becomes a writer would meet SQLITE_BUSY
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=30000", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}").close()
        if sqlite3.sqlite_version_info < _SUBSECONDS:
            connection.create_function("unixepoch", 1, lambda modifier: time.time())

    return engine


def read_secret(path: Path) -> bytes:
    """Return the secret kept in *path*, made at the first time: ids must stay the same over a restart."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        secret = secrets.token_bytes(32)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        return secret
