"""Run a whole server in one call: a runtime's skills, durable executions and callers
with keys.
"""

from __future__ import annotations

import logging
import secrets
import shlex
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from skillruntime.errors import InvalidSkillError, SkillNotFoundError, SkillRuntimeError
from skillruntime.remote.descriptor import AccessPolicy, AuthConfig, AuthType, Provider
from skillruntime.remote.hosts import ascii_host
from skillruntime.remote.protocol import Execution
from skillruntime.remote.ssrf_guard import AddressGuard
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.server.callers.access import Authenticator, any_of
from skillruntime.server.callers.key_store import (
    DatabaseKeys,
    KeyFile,
    check_arrived,
    shared_secret,
)
from skillruntime.server.callers.rate_limits import Limits
from skillruntime.server.callers.reach import (
    LOCAL_NAMES,
    default_access,
    is_this_machine,
    outer_address,
)
from skillruntime.server.data_directory import (
    executions_file,
    key_file,
    make_data_directory,
)
from skillruntime.server.executions.errors import DatabaseAwayError
from skillruntime.server.executions.executions import Executions
from skillruntime.server.executions.open_executions import (
    check_url,
    durable_executions,
    memory_executions,
    read_secret,
)
from skillruntime.server.executions.sqlite.sqlite_executions import SqliteExecutions
from skillruntime.server.executions.ticket import Ticket
from skillruntime.server.http.app import create_app
from skillruntime.server.http.uvicorn_server import Server, bind
from skillruntime.server.metrics import Metrics
from skillruntime.server.published_skill import (
    PublishedSkill,
    SkillWork,
    check_base_url,
    serve_catalog,
)
from skillruntime.server.service import SkillService
from skillruntime.server.webhooks import Webhooks

if TYPE_CHECKING:
    from skillruntime.server.executions.postgres.engine_executions import (
        EngineExecutions,
    )

__all__ = ["Hosting", "host_skills"]

_SWEEP: Final = 3600.0  # seconds between two deletions of expired results
_MOST_IDS: Final = 10  # the most ids in a message
_KEYS: Final = 2.0
"""The most seconds until a key that was revoked in the database is refused."""

_log = logging.getLogger("skillruntime.server")


@dataclass(frozen=True, slots=True)
class Hosting:
    """The options of a server: the address, the store, access and limits.

    *base_url* is the URL that callers use; by default the server's own address. *data*
    is the directory of executions and keys; None keeps executions in memory. *keys* is
    the key file, if it is not in *data*. *access* applies to skills without a
    descriptor.json, and to untrusted skills whose descriptor is less strict; by default
    a call needs credentials if callers can have some. *authenticate* identifies callers
    without a key of the key file. *webhooks* lets authenticated callers name an address
    that is notified when an execution ends; *webhook_allow* are the private networks in
    which this address may be (``10.0.0.0/8``). *kept_for* is how many seconds results
    are kept; for the same time after that, the server answers 410 for them.

    *database* is the URL of a PostgreSQL database that replaces *data*: several servers
    share it, with their keys and their secret. *waits_for_lock* waits until the server
    that has *data* ends. *drain_seconds* is how long running executions may continue
    after SIGTERM. *lease* is how many seconds a server that shares a database may be
    silent until others take up its work. *per_skill* and *per_caller* limit how many
    executions of a skill, and of a caller, run at once. The server believes
    ``X-Forwarded-For`` from *trusted_proxies*. *allowed_hosts* are the Host names that
    the server answers; by default all, or for a loopback address this machine's own
    names. *policy* replaces each contract's own repair policy. *public* serves everyone
    without credentials, also beyond this machine and beside keys. *strict* refuses to
    start if a descriptor and its contract differ; without it, such a skill is left out.
    *connections* is the most connections open at once, and *connections_per_address*
    the most for one address, except a trusted proxy's.
    """

    host: str = "127.0.0.1"
    port: int = 8400
    base_url: str | None = None
    data: Path | None = None
    keys: Path | None = None
    access: AccessPolicy | None = None
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
    webhook_allow: tuple[str, ...] = ()

    @property
    def keys_path(self) -> Path | None:
        """The file that holds the callers' hashed keys."""
        if self.keys is not None:
            return self.keys
        if self.data is not None:
            return key_file(self.data)
        return None


async def host_skills(
    runtime: SkillRuntime,
    hosting: Hosting,
    *,
    on_ready: Callable[[str, list[PublishedSkill], int], None] | None = None,
    handles_signals: bool = True,
) -> None:
    """Serve the runtime's skills until the process is stopped.

    *on_ready* is called when the server listens, with its address, the served skills,
    and the number of an earlier process's executions that it continues.

    Raises:
        OSError: the server cannot listen at the address.
        DatabaseInUseError: another server has the data directory.
        SkillRuntimeError: there are no skills to serve, or a descriptor or the key file
            is invalid.
    """
    # Check this before listening or writing: a broken key file must not leave a server
    # that everyone may call, and a refusal must not leave a secret on the disk.
    _check_grants(runtime)
    keys = _open_keys(hosting)
    access = _check_callers(hosting, keys)
    guard = _webhook_guard(hosting)
    metrics = Metrics()
    webhooks = _LateWebhooks() if hosting.webhooks else None
    limits = hosting.limits or Limits()
    work = SkillWork(runtime, output_bytes=limits.output_bytes)
    if hosting.data is not None and hosting.database is None:
        make_data_directory(hosting.data)
    # Open the database first: a server that waits for its lock must not hold the port
    # at which the other server listens.
    async with _executions(work, hosting, webhooks, metrics) as executions:
        # The port is known only now, and with port 0 the addresses in descriptors
        # depend on it.
        listening = bind(hosting.host, hosting.port)
        base_url = hosting.base_url or _own_url(hosting.host, listening)
        try:
            published = _publish(runtime, hosting, base_url, access)
            secret = await anyio.to_thread.run_sync(_secret, hosting)
            # Listen only now: if the server does not start, its clients are refused,
            # and not accepted and then cut off.
            listening.listen(1024)
        except BaseException:
            listening.close()
            raise
        work.publish(published)
        if webhooks is not None:
            webhooks.begin(Webhooks(secret, guard=guard))
        service = SkillService(
            published,
            executions,
            provider=hosting.provider,
            authenticate=_any_known(keys, hosting.authenticate),
            limits=limits,
            secret=secret,
            webhooks=webhooks.sender if webhooks is not None else None,
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
            # Every server deletes expired results, so none has to be chosen; deleting
            # the same rows twice does no harm.
            tasks.start_soon(_sweep, executions, hosting.kept_for)
            if isinstance(keys, DatabaseKeys):
                tasks.start_soon(keys.refresh_every, _KEYS)
            await server.serve([listening])
            tasks.cancel_scope.cancel()


def _own_url(host: str, listening: socket.socket) -> str:
    """Return the URL of the address to which *listening* is bound."""
    port = listening.getsockname()[1]
    if ":" in host:  # an IPv6 address
        host = f"[{host}]"
    return f"http://{host}:{port}"


def _any_known(*authenticators: Authenticator | None) -> Authenticator | None:
    """Return an authenticator that tries all of *authenticators*; None if there are
    none.
    """
    known = [authenticator for authenticator in authenticators if authenticator]
    if not known:
        return None
    return any_of(known)


def _allowed_hosts(hosting: Hosting, base_url: str) -> frozenset[str] | None:
    """Return the Host names that the server answers; None for every name.

    A server for this machine alone answers only to this machine's names: otherwise a
    web page could reach it under the page's own host name that resolves to 127.0.0.1
    (DNS rebinding).
    """
    if hosting.allowed_hosts:
        names = {name.lower() for name in hosting.allowed_hosts}
    elif is_this_machine(hosting.host):
        names = {*LOCAL_NAMES, hosting.host.lower()}
    else:
        # A server on an outside address usually stands behind a proxy, which checks the
        # names.
        return None
    return frozenset(names | {ascii_host(base_url)})


def _webhook_guard(hosting: Hosting) -> AddressGuard:
    """Return the guard that decides which addresses webhooks may use.

    Raises:
        SkillRuntimeError: a value in ``webhook_allow`` is not a network.
    """
    try:
        networks = tuple(map(ip_network, hosting.webhook_allow))
    except ValueError as error:
        raise SkillRuntimeError(
            f"webhook_allow: {error}; a network is 10.0.0.0/8, for example"
        ) from None
    return AddressGuard(networks=networks)


class _LateWebhooks:
    """Sends webhooks once the server's secret is known; executions of an earlier
    process may end before that.
    """

    def __init__(self) -> None:
        self.sender: Webhooks | None = None
        self._begun = anyio.Event()

    def begin(self, sender: Webhooks) -> None:
        """Send messages with *sender* from now on."""
        self.sender = sender
        self._begun.set()

    async def notify(self, ticket: Ticket, execution: Execution) -> bool:
        """Send the ended execution to the ticket's webhook, as `Webhooks` does."""
        await self._begun.wait()
        assert self.sender is not None
        return await self.sender.notify(ticket, execution)


def _check_grants(runtime: SkillRuntime) -> None:
    """Check that the host's grants name skills of *runtime*: a mistyped name would only
    be noticed when a script lacks something.

    Raises:
        SkillNotFoundError: a grant names no skill, or no callable of its skill.
    """
    for name in sorted(runtime.granted):
        skill, _, tool = name.partition("/")
        if skill not in runtime.catalog:
            raise SkillNotFoundError(
                f"grants name {name!r}, but there is no such skill"
            )
        if tool:
            runtime.contract(name)


def _check_callers(
    hosting: Hosting, keys: KeyFile | DatabaseKeys | None
) -> AccessPolicy:
    """Return the access of the skills that do not state their own. Check that a server
    that other machines reach knows its callers, or is meant for everyone.

    Raises:
        SkillRuntimeError: neither is the case, or public access is stated although
            callers have keys.
    """
    if hosting.base_url is not None:
        check_base_url(hosting.base_url)
    outer = outer_address(
        hosting.host,
        base_url=hosting.base_url,
        trusted_proxies=hosting.trusted_proxies,
        allowed_hosts=hosting.allowed_hosts,
    )
    has_own = hosting.authenticate is not None
    has_keys = keys is not None and len(keys) > 0
    if outer is not None and not (hosting.public or has_own or has_keys):
        raise SkillRuntimeError(
            f"Everyone who reaches {outer} could call these skills, because this "
            f"server has no keys: {_how_to_make_a_key(hosting)}, or serve everyone "
            "with --public"
        )
    # An operator who has revoked the last key has not opened the server to everyone.
    knows_callers = has_own or (keys is not None and keys.were_made)
    return default_access(
        hosting.access, knows_callers=knows_callers, public=hosting.public
    )


def _how_to_make_a_key(hosting: Hosting) -> str:
    """Return the instructions for making a key that this server reads."""
    if hosting.database is not None:
        return "make one with --new-key NAME and the same --database"
    if hosting.keys_path is None:
        return "name a key file with Hosting(keys=...) and make one with add_key"
    data = hosting.keys_path.parent
    if hosting.keys_path != key_file(data):
        return f"make one with add_key({str(hosting.keys_path)!r}, NAME)"
    place = shlex.quote(str(data))
    return f"make one with `skillruntime serve --data {place} --new-key NAME`"


def _publish(
    runtime: SkillRuntime, hosting: Hosting, base_url: str, access: AccessPolicy
) -> list[PublishedSkill]:
    """Return the served skills, and report the skills that cannot be served.

    Raises:
        InvalidSkillError: a skill cannot be served, and *hosting* is strict.
    """
    auth = None
    if access is not AccessPolicy.PUBLIC:
        auth = AuthConfig(AuthType.API_KEY, header="X-API-Key")
    faults: dict[str, SkillRuntimeError] = {}
    published = serve_catalog(
        runtime,
        base_url=base_url,
        names=hosting.names,
        access=access,
        auth=auth,
        provider=hosting.provider,
        webhooks=hosting.webhooks,
        faults=faults,
        public=hosting.public,
    )
    _check_limits(hosting, published, faults)
    messages = [f"{name}: {fault}" for name, fault in faults.items()]
    if messages and hosting.strict:
        raise InvalidSkillError("; ".join(messages), details={"skills": sorted(faults)})
    for message in messages:
        _log.warning("%s; it is not served", message)
    return published


def _check_limits(
    hosting: Hosting,
    published: list[PublishedSkill],
    faults: Mapping[str, SkillRuntimeError],
) -> None:
    """Check that each limit of a single skill names a served skill.

    Raises:
        SkillNotFoundError: a limit does not name a served skill.
    """
    ids = {skill.id for skill in published}
    unknown = sorted(set(hosting.per_skill) - ids)
    # The limit may belong to a skill that was left out, whose id is unknown.
    if not unknown or faults:
        return
    listed = ", ".join(sorted(ids)[:_MOST_IDS])
    raise SkillNotFoundError(
        f"--per-skill {unknown[0]!r} limits no skill that is served; their ids are "
        f"{listed or 'none'}"
    )


def _open_keys(hosting: Hosting) -> KeyFile | DatabaseKeys | None:
    """Return the authenticator that knows callers by their keys, or None."""
    if hosting.database is None:
        return _key_file(hosting.keys_path)
    check_url(hosting.database)
    check_arrived(hosting.database)
    # Shared keys must not be hidden by a file left over in *data*, nor by a key file
    # without keys.
    keys = _key_file(hosting.keys)
    if keys is not None and len(keys) > 0:
        return keys
    return DatabaseKeys(hosting.database)


def _secret(hosting: Hosting) -> bytes:
    """Return the secret from which execution ids are derived; the first server makes
    it.
    """
    if hosting.database is not None:
        return shared_secret(hosting.database)
    if hosting.data is not None:
        return read_secret(hosting.data / "secret")
    return secrets.token_bytes(32)


def _key_file(path: Path | None) -> KeyFile | None:
    """Return the key file at *path*; None if it does not exist."""
    if path is None or not path.exists():
        return None
    return KeyFile(path)


def _executions(
    work: SkillWork, hosting: Hosting, webhooks: _LateWebhooks | None, metrics: Metrics
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
        work, executions_file(hosting.data), wait=hosting.waits_for_lock, **options
    )


async def _sweep(executions: Executions, kept_for: float) -> None:
    while True:
        await anyio.sleep(min(_SWEEP, kept_for))
        try:
            # Keep it twice as long: in the second half callers get 410, which says more
            # than 404.
            await executions.delete(ended_before=executions.now() - 2 * kept_for)
        except DatabaseAwayError as error:
            _log.warning("expired results could not be deleted: %s", error)
