"""A whole server in one call: a runtime's skills, durable executions and callers with
keys.
"""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from skillruntime.errors import InvalidSkillError, SkillRuntimeError
from skillruntime.remote.descriptor import AccessPolicy, AuthConfig, AuthType, Provider
from skillruntime.remote.hosts import ascii_host
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.server.callers.access import Authenticator, any_of
from skillruntime.server.callers.key_store import DatabaseKeys, KeyFile, shared_secret
from skillruntime.server.callers.rate_limits import Limits
from skillruntime.server.executions.errors import DatabaseAwayError
from skillruntime.server.executions.executions import Executions
from skillruntime.server.executions.open_executions import (
    durable_executions,
    memory_executions,
    read_secret,
)
from skillruntime.server.executions.sqlite.sqlite_executions import SqliteExecutions
from skillruntime.server.http.app import create_app
from skillruntime.server.http.uvicorn_server import Server, bind
from skillruntime.server.metrics import Metrics
from skillruntime.server.published_skill import PublishedSkill, SkillWork, serve_catalog
from skillruntime.server.service import SkillService
from skillruntime.server.webhooks import Webhooks

if TYPE_CHECKING:
    from skillruntime.server.executions.postgres.engine_executions import (
        EngineExecutions,
    )

__all__ = ["Hosting", "host_skills"]

_LOCAL: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_SWEEP: Final = 3600.0  # seconds between two deletions of expired results
_KEYS: Final = 2.0
"""Seconds, at most, until a key that was revoked in the database is refused."""

_log = logging.getLogger("skillruntime.server")


@dataclass(frozen=True, slots=True)
class Hosting:
    """How skills are served: the address, the store, access and limits.

    *base_url* is the URL that callers use; by default the server's own address. *data*
    is the directory of executions and keys; None keeps executions in memory. *keys* is
    the key file, if it is elsewhere. *access* applies to skills without a
    descriptor.json. *authenticate* identifies callers without a key of the key file.
    *webhooks* lets authenticated callers name an address that is notified when an
    execution ends. *kept_for* is how many seconds results are kept; for as long again,
    the server answers 410 for them.

    *database* is the URL of a PostgreSQL database that several servers share, with
    their keys and their secret, in place of *data*. *waits_for_lock* waits until the
    server that has *data* ends. *drain_seconds* is how long SIGTERM lets run what runs.
    *lease* is how many seconds a server that shares a database may be silent until
    others take up its work. *per_skill* and *per_caller* limit how many executions of a
    skill, and of a caller, run at once. *trusted_proxies* are believed about
    ``X-Forwarded-For``. *allowed_hosts* are the Host names that are answered; by
    default all, or this machine's own for a loopback address. *policy* replaces each
    contract's own policy of repairs. *public* lets callers without a key reach a server
    beyond this machine. *strict* refuses to start where a descriptor and its contract
    differ; without it, such a skill is left out. *connections* is how many are open at
    once, and *connections_per_address* how many of one address, unless it is a trusted
    proxy's.
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
    database: str | None = None
    waits_for_lock: bool = False
    drain_seconds: float = 30.0
    lease: float = 15.0
    per_skill: Mapping[str, int] = field(default_factory=dict)
    per_caller: int | None = None
    trusted_proxies: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    policy: str | None = None
    public: bool = False
    strict: bool = False
    connections: int = 1000
    connections_per_address: int = 256

    @property
    def keys_path(self) -> Path | None:
        """The file that holds the callers' keys, hashed."""
        if self.keys is not None:
            return self.keys
        if self.data is not None:
            return self.data / "keys.json"
        return None


async def host_skills(
    runtime: SkillRuntime,
    hosting: Hosting,
    *,
    on_ready: Callable[[str, list[PublishedSkill], int], None] | None = None,
    handles_signals: bool = True,
) -> None:
    """Serve the runtime's skills until the process is stopped.

    *on_ready* is called when the server listens: with its address, what it serves, and
    how many executions of an earlier process it continues.

    Raises:
        OSError: it cannot listen there.
        DatabaseInUseError: another server has the data directory.
        SkillRuntimeError: there is nothing to serve, or a descriptor or the key file is
            invalid.
    """
    # Before anything listens: a broken key file must not leave a server that everyone
    # may call.
    keys, secret = _keys_and_secret(hosting)
    _check_reach(hosting, keys)
    metrics = Metrics()
    webhooks = Webhooks(secret) if hosting.webhooks else None
    limits = hosting.limits or Limits()
    work = SkillWork(runtime, output_bytes=limits.output_bytes)
    # The database first: a server that waits for its lock must not hold the port that
    # the other one listens at.
    async with _executions(work, hosting, webhooks, metrics) as executions:
        # The port is known only now, and with port 0 the addresses in descriptors
        # depend on it.
        listening = bind(hosting.host, hosting.port)
        base_url = hosting.base_url or _own_url(hosting.host, listening)
        try:
            published = _publish(runtime, hosting, base_url)
            # Only now: a client of a server that does not start is refused, not
            # accepted and then cut off.
            listening.listen(1024)
        except BaseException:
            listening.close()
            raise
        work.publish(published)
        service = SkillService(
            published,
            executions,
            provider=hosting.provider,
            authenticate=_any_known(keys, hosting.authenticate),
            limits=limits,
            secret=secret,
            webhooks=webhooks,
            policy=hosting.policy,
            metrics=metrics,
        )
        hosts = _allowed_hosts(hosting, base_url)

        def report_ready() -> None:
            if on_ready is not None:
                on_ready(base_url, published, executions.continued)

        server = Server(
            create_app(service, pages=hosting.pages, hosts=hosts),
            service,
            drain=hosting.drain_seconds,
            connections=hosting.connections,
            connections_per_address=hosting.connections_per_address,
            trusted_proxies=hosting.trusted_proxies,
            handles_signals=handles_signals,
            on_ready=report_ready,
        )
        async with anyio.create_task_group() as tasks:
            # Every server sweeps; deleting the same rows twice does no harm, and no
            # server has to be chosen.
            tasks.start_soon(_sweep, executions, hosting.kept_for)
            if isinstance(keys, DatabaseKeys):
                tasks.start_soon(keys.refresh_every, _KEYS)
            await server.serve([listening])
            tasks.cancel_scope.cancel()


def _own_url(host: str, listening: socket.socket) -> str:
    """Return the URL of the address that *listening* is bound to."""
    port = listening.getsockname()[1]
    if ":" in host:  # an IPv6 address
        host = f"[{host}]"
    return f"http://{host}:{port}"


def _any_known(*authenticators: Authenticator | None) -> Authenticator | None:
    """Return what identifies a caller in any of these ways; None where there is no
    way.
    """
    known = [authenticator for authenticator in authenticators if authenticator]
    if not known:
        return None
    return any_of(known)


def _allowed_hosts(hosting: Hosting, base_url: str) -> frozenset[str] | None:
    """Return the Host names that are answered; None for every name.

    A server for this machine alone answers only to names of this machine: a page in a
    browser could otherwise reach it under a name of its own that resolves to 127.0.0.1
    (DNS rebinding).
    """
    if hosting.allowed_hosts:
        names = {name.lower() for name in hosting.allowed_hosts}
    elif hosting.host in _LOCAL:
        names = set(_LOCAL)
    else:
        # A server on an outside address usually stands behind a proxy, which checks the
        # names.
        return None
    return frozenset(names | {ascii_host(base_url)})


def _check_reach(hosting: Hosting, keys: KeyFile | DatabaseKeys | None) -> None:
    """Check that a server beyond this machine knows its callers, or is meant for
    everyone.

    Raises:
        SkillRuntimeError: it is not.
    """
    if hosting.host in _LOCAL or hosting.public:
        return
    if hosting.authenticate is not None:
        return
    if keys is not None and len(keys) > 0:
        return
    message = (
        f"Everyone who reaches {hosting.host} could call these skills, for this "
        "server has no keys"
    )
    raise SkillRuntimeError(
        f"{message}: make one with --new-key, or serve everyone with --public"
    )


def _publish(
    runtime: SkillRuntime, hosting: Hosting, base_url: str
) -> list[PublishedSkill]:
    """Return what is served; report the skills that cannot be.

    Raises:
        InvalidSkillError: one cannot be, and *hosting* is strict.
    """
    auth = None
    if hosting.access is not AccessPolicy.PUBLIC:
        auth = AuthConfig(AuthType.API_KEY, header="X-API-Key")
    faults: dict[str, SkillRuntimeError] = {}
    published = serve_catalog(
        runtime,
        base_url=base_url,
        names=hosting.names,
        access=hosting.access,
        auth=auth,
        provider=hosting.provider,
        webhooks=hosting.webhooks,
        faults=faults,
    )
    messages = [f"{name}: {fault}" for name, fault in faults.items()]
    if messages and hosting.strict:
        raise InvalidSkillError("; ".join(messages), details={"skills": sorted(faults)})
    for message in messages:
        _log.warning("%s; it is not served", message)
    return published


def _keys_and_secret(hosting: Hosting) -> tuple[KeyFile | DatabaseKeys | None, bytes]:
    """Return what knows callers by their keys, if there are any, and the secret that
    execution ids are derived from.
    """
    if hosting.database is not None:
        # A file that is left over in *data* must not hide shared keys, nor does a key
        # file without keys.
        keys = _key_file(hosting.keys)
        if keys is None or len(keys) == 0:
            return DatabaseKeys(hosting.database), shared_secret(hosting.database)
        return keys, shared_secret(hosting.database)
    keys = _key_file(hosting.keys_path)
    if hosting.data is not None:
        return keys, read_secret(hosting.data / "secret")
    return keys, secrets.token_bytes(32)


def _key_file(path: Path | None) -> KeyFile | None:
    """Return the key file at *path*, if there is one."""
    if path is None or not path.exists():
        return None
    return KeyFile(path)


def _executions(
    work: SkillWork, hosting: Hosting, webhooks: Webhooks | None, metrics: Metrics
) -> SqliteExecutions | EngineExecutions:
    options: dict[str, Any] = {
        "capacity": hosting.capacity,
        "kept_for": hosting.kept_for,
        "per_skill": hosting.per_skill,
        "per_caller": hosting.per_caller,
        "notify": webhooks.notify if webhooks is not None else None,
        "metrics": metrics,
    }
    if hosting.database is not None:
        return durable_executions(
            work, hosting.database, lease=hosting.lease, **options
        )
    if hosting.data is None:
        return memory_executions(work, **options)
    return durable_executions(
        work, hosting.data / "executions.db", wait=hosting.waits_for_lock, **options
    )


async def _sweep(executions: Executions, kept_for: float) -> None:
    while True:
        await anyio.sleep(min(_SWEEP, kept_for))
        try:
            # Twice as long: in the second half a caller is answered 410, which says
            # more than 404.
            await executions.delete(ended_before=executions.now() - 2 * kept_for)
        except DatabaseAwayError as error:
            _log.warning("expired results could not be deleted: %s", error)
