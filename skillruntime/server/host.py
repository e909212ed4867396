"""A whole server in one call: a runtime's skills, durable executions and callers with keys."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from skillruntime.remote.descriptor import AccessPolicy, AuthConfig, AuthType, Provider
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.server.access import Authenticator, KeyRing, any_of, hash_key, new_key
from skillruntime.server.app import create_app
from skillruntime.server.durable_executions import DurableExecutions, read_secret
from skillruntime.server.executions import Executions
from skillruntime.server.memory_executions import MemoryExecutions
from skillruntime.server.published_skill import PublishedSkill, SkillWork, serve_catalog
from skillruntime.server.rate_limits import Limits
from skillruntime.server.service import SkillService
from skillruntime.server.uvicorn_server import Server, bind
from skillruntime.server.webhooks import Webhooks

__all__ = ["Hosting", "add_key", "host_skills"]

_SWEEP = 3600.0  # seconds between two deletions of expired results


@dataclass(frozen=True, slots=True)
class Hosting:
    """How to serve.

    *base_url* is the URL that callers use; by default the server's own address. *data* is the directory of executions
    and keys; None keeps executions in memory. *keys* is the key file, if it is elsewhere. *access* applies to skills
    without a descriptor.json. *authenticate* identifies callers without a key of the key file. *webhooks* lets
    authenticated callers name an address that is notified when an execution ends. *kept_for* is how many seconds
    results are kept; for as long again, the server answers 410 for them.
    """

    host: str = "127.0.0.1"
    port: int = 8400
    base_url: str | None = None
    data: Path | None = None
    keys: Path | None = None
    access: AccessPolicy = AccessPolicy.PUBLIC
    names: tuple[str, ...] = ()
    provider: Provider | None = None
    capacity: int = 16
    kept_for: float = 86_400.0
    limits: Limits | None = None
    pages: bool = True
    webhooks: bool = False
    authenticate: Authenticator | None = None

    @property
    def keys_path(self) -> Path | None:
        """The file that holds the callers' keys, hashed."""
        return self.keys or (None if self.data is None else self.data / "keys.json")


async def host_skills(
    runtime: SkillRuntime,
    hosting: Hosting,
    *,
    on_ready: Callable[[str, list[PublishedSkill], int], None] | None = None,
    handles_signals: bool = True,
) -> None:
    """Serve the runtime's skills until the process is stopped.

    *on_ready* is called when the server listens: with its address, what it serves, and how many executions of an
    earlier process it takes up.

    Raises:
        OSError: it cannot listen there.
        SkillRuntimeError: there is nothing to serve, or a descriptor or the key file is faulty.
    """
    listening = bind(hosting.host, hosting.port)
    host = f"[{hosting.host}]" if ":" in hosting.host else hosting.host
    base_url = hosting.base_url or f"http://{host}:{listening.getsockname()[1]}"
    known = [each for each in (_read_keys(hosting.keys_path), hosting.authenticate) if each is not None]
    authenticate = any_of(known) if known else None
    auth = AuthConfig(AuthType.API_KEY, header="X-API-Key") if hosting.access is not AccessPolicy.PUBLIC else None
    served = serve_catalog(
        runtime,
        base_url=base_url,
        names=hosting.names,
        access=hosting.access,
        auth=auth,
        provider=hosting.provider,
        webhooks=hosting.webhooks,
    )
    secret = read_secret(hosting.data / "secret") if hosting.data is not None else secrets.token_bytes(32)
    webhooks = Webhooks(secret) if hosting.webhooks else None
    async with _executions(SkillWork(runtime, served), hosting, webhooks) as executions:
        left = await executions.reclaim()
        service = SkillService(
            served,
            executions,
            provider=hosting.provider,
            authenticate=authenticate,
            limits=hosting.limits,
            secret=secret,
            webhooks=webhooks,
        )
        server = Server(
            create_app(service, pages=hosting.pages),
            service,
            handles_signals=handles_signals,
            on_ready=None if on_ready is None else lambda: on_ready(base_url, served, left),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_sweep, executions, hosting.kept_for)
            await server.serve([listening])
            tasks.cancel_scope.cancel()


def add_key(path: Path, caller: str, *, skills: Iterable[str] = (), operator: bool = False) -> str:
    """Return a new API key for *caller*, of which only the hash is kept in the file *path*."""
    document: dict[str, Any] = {"keys": []}
    if path.exists():
        KeyRing.from_text(path.read_text("utf-8"))
        document = json.loads(path.read_text("utf-8"))
    key = new_key()
    entry: dict[str, Any] = {"id": caller, "sha256": hash_key(key)}
    if skills := list(skills):
        entry["skills"] = skills
    if operator:
        entry["operator"] = True
    document["keys"].append(entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".new")
    with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(document, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
    return key


def _read_keys(path: Path | None) -> KeyRing | None:
    if path is None or not path.exists():
        return None
    return KeyRing.from_text(path.read_text("utf-8"))


@asynccontextmanager
async def _executions(work: SkillWork, hosting: Hosting, webhooks: Webhooks | None) -> AsyncIterator[Executions]:
    notify = webhooks.notify if webhooks is not None else None
    if hosting.data is None:
        async with MemoryExecutions(
            work, capacity=hosting.capacity, kept_for=hosting.kept_for, notify=notify
        ) as in_memory:
            yield in_memory
    else:
        path = hosting.data / "executions.db"
        async with DurableExecutions(
            work, path, capacity=hosting.capacity, kept_for=hosting.kept_for, notify=notify
        ) as durable:
            yield durable


async def _sweep(executions: Executions, kept_for: float) -> None:
    while True:
        await anyio.sleep(min(_SWEEP, kept_for))
        await executions.delete(ended_before=time.time() - 2 * kept_for)
