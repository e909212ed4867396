"""A small server for tests: skills that are Python functions, served in memory or over
a socket.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest

from skillruntime.contract import Contract
from skillruntime.remote import AccessPolicy, AddressGuard, ApiKey, RemoteClient
from skillruntime.runtime import CallContext, SkillRuntime
from skillruntime.server import (
    Authenticator,
    Executions,
    KeyRing,
    Limits,
    Principal,
    PublishedSkill,
    SkillService,
    SkillWork,
    describe,
    memory_executions,
)
from tests import needs
from tests.remote.parts import (
    AuthConfig,
    AuthType,
    CapabilityType,
    HttpTransport,
    NoCredentials,
    Progress,
    RetryPolicy,
    Transport,
    WireRequest,
    WireResponse,
)
from tests.server.parts import Metrics, hash_key
from tests.server.processes import read_port

BASE = "http://127.0.0.1:8400"
KEY, OTHER_KEY, OPERATOR_KEY, NARROW_KEY = (
    "key-of-ann",
    "key-of-bob",
    "key-of-the-operator",
    "key-of-ned",
)
KEYS = {
    hash_key(KEY): Principal("ann"),
    hash_key(OTHER_KEY): Principal("bob"),
    hash_key(OPERATOR_KEY): Principal("op", is_operator=True),
    hash_key(NARROW_KEY): Principal("ned", frozenset({"echo"})),
}
API_KEY = AuthConfig(AuthType.API_KEY, header="X-API-Key")


class FileLines:
    """A list of texts that several processes append to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, text: str) -> None:
        """Add one at the end."""
        with self._path.open("a") as file:
            file.write(json.dumps(text) + "\n")

    def __iter__(self) -> Iterator[str]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return iter([json.loads(line) for line in lines])

    def __eq__(self, other: object) -> bool:
        return [*self] == other

    __hash__ = None  # type: ignore[assignment]  # as a list's

    def __repr__(self) -> str:
        return repr([*self])


class FileEvent:
    """An event of several processes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def set(self) -> None:
        """Wake all that wait."""
        self._path.touch()

    async def wait(self) -> None:
        """Wait until it is set."""
        while not self._path.exists():
            await anyio.sleep(0.01)


@dataclass
class Skills:
    """The skills' own side: what ran, and gates that let a test decide when a skill
    ends.
    """

    ran: list[Any] | FileLines = field(default_factory=list)
    gate: anyio.Event | FileEvent = field(default_factory=anyio.Event)
    started: anyio.Event | FileEvent = field(default_factory=anyio.Event)

    @classmethod
    def shared(cls, directory: Path) -> Skills:
        """Return the skills of several processes."""
        return cls(
            FileLines(directory / "ran"),
            FileEvent(directory / "gate"),
            FileEvent(directory / "started"),
        )

    def runtime(self, base: str = BASE) -> tuple[SkillRuntime, list[PublishedSkill]]:
        """Return the runtime and what is served of it."""
        runtime = SkillRuntime()
        served: list[PublishedSkill] = []

        def serve(
            name: str,
            function: Callable[..., Any],
            *,
            access: AccessPolicy = AccessPolicy.PUBLIC,
            kind: CapabilityType = CapabilityType.API,
            **more: Any,
        ) -> None:
            contract = Contract.from_dict(
                {
                    "version": "1.2.0",
                    "description": f"The skill {name}",
                    "input": {
                        "type": "object",
                        "properties": {
                            "text": {
                                "type": "string",
                                "minLength": 1,
                                "maxLength": 1000,
                            }
                        },
                        "required": ["text"],
                        "additionalProperties": False,
                    },
                    **more,
                },
                name=name,
            )
            runtime.implements(name, contract=contract)(function)
            auth = API_KEY if access is not AccessPolicy.PUBLIC else AuthConfig()
            descriptor = describe(
                name,
                contract,
                base_url=base,
                access=access,
                auth=auth,
                poll_interval_ms=5,
            )
            endpoint = replace(descriptor.endpoint, retry=RetryPolicy(3, 5))
            served.append(
                PublishedSkill(
                    replace(descriptor, capability_type=kind, endpoint=endpoint),
                    name,
                    contract,
                )
            )

        serve(
            "echo",
            self.echo,
            annotations={"idempotent": True},
            output={"required": ["said"]},
        )
        serve("slow", self.slow)
        serve("brief", self.slow, run={"timeout_seconds": 0.05})
        serve("fails", self.fails)
        serve("breaks", self.breaks)
        serve("liar", lambda arguments: {"wrong": 1}, output={"required": ["said"]})
        serve("locked", self.echo, access=AccessPolicy.RESTRICTED)
        serve("hidden", self.echo, access=AccessPolicy.PRIVATE)
        serve(
            "chore", self.echo, kind=CapabilityType.TASK, output={"required": ["done"]}
        )
        return runtime, served

    async def echo(self, arguments: dict[str, Any]) -> Any:
        """Say it again."""
        self.ran.append(arguments["text"])
        return {"said": arguments["text"]}

    async def slow(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run until the test opens the gate."""
        self.ran.append(arguments["text"])
        assert context.config is not None
        context.config["report"](Progress(1, 2, "half way"))
        self.started.set()
        await self.gate.wait()
        return {"said": arguments["text"]}

    async def fails(self, arguments: dict[str, Any]) -> Any:
        """Fail as section 31.2 says it."""
        error = {"code": "QUOTA_OF_MARS", "message": "Used up", "recoverable": True}
        return {"status": "failed", "errors": [error], "left": 0}

    async def breaks(self, arguments: dict[str, Any]) -> Any:
        """Raise an unexpected exception."""
        raise ZeroDivisionError("with a secret inside")


@dataclass
class Served:
    """A running service, and how to reach it."""

    service: SkillService
    skills: Skills
    transport: Transport
    base: str = BASE
    bases: Iterator[str] = field(default_factory=lambda: itertools.cycle([BASE]))
    """The addresses of all servers, each in its turn."""

    def client(
        self, name: str, *, key: str | None = None, **options: Any
    ) -> RemoteClient:
        """Return a client of one skill."""
        credentials = ApiKey(key) if key else NoCredentials
        descriptor = self.service.skills[name].descriptor
        return RemoteClient(
            descriptor, credentials, self.transport, jitter=lambda: 0.0, **options
        )

    async def ask(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        key: str | None = None,
        **headers: str,
    ) -> WireResponse:
        """Send one request. The answer comes without its ``date``: two are compared
        whatever the clock says.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            named["x-api-key"] = key
        body = b""
        if document is not None:
            body = (
                document
                if isinstance(document, bytes)
                else json.dumps(document).encode()
            )
            named.setdefault("content-type", "application/json")
        answer = await self.transport(
            WireRequest(method, self.base + path, named, body, "203.0.113.9")
        )
        return replace(
            answer,
            headers={
                name: value for name, value in answer.headers.items() if name != "date"
            },
        )

    async def invoke(
        self, name: str, text: Any = "hi", *, key: str | None = None, **headers: str
    ) -> WireResponse:
        """Send one invocation."""
        return await self.ask(
            "POST", f"/skills/{name}/invoke", invocation(name, text), key=key, **headers
        )


def invocation(name: str, text: Any = "hi", **context: Any) -> dict[str, Any]:
    """Return an invocation's document."""
    document: dict[str, Any] = {
        "caller": {"id": "t", "type": "service"},
        "skill_id": name,
        "inputs": {"text": text},
    }
    return {**document, "context": context} if context else document


def read(response: WireResponse) -> Any:
    """Return the JSON of a response."""
    return json.loads(response.body)


@asynccontextmanager
async def serve_in_memory(
    *, limits: Limits | None = None, **options: Any
) -> AsyncIterator[Served]:
    """Serve the test skills in memory: the service itself is the client's transport."""
    skills = Skills()
    runtime, served = skills.runtime()
    metrics = Metrics()
    async with memory_executions(
        SkillWork(runtime, served), metrics=metrics, **options
    ) as executions:
        service = SkillService(
            served,
            executions,
            authenticate=KeyRing(KEYS),
            limits=limits,
            metrics=metrics,
        )
        yield Served(service, skills, service.handle)


@asynccontextmanager
async def serve_over_socket(
    *, limits: Limits | None = None, **options: Any
) -> AsyncIterator[Served]:
    """Serve the test skills over a loopback socket, through Starlette and uvicorn, with
    executions in a database.
    """
    needs.package("starlette")
    from skillruntime.server import durable_executions

    with TemporaryDirectory() as directory:

        def keep(work: SkillWork) -> AbstractAsyncContextManager[Executions]:
            return durable_executions(
                work, Path(directory) / "executions.db", **options
            )

        async with _serve_over_socket(keep, limits) as served:
            yield served


@asynccontextmanager
async def serve_over_socket_from_memory(
    *,
    limits: Limits | None = None,
    hosts: frozenset[str] | None = None,
    trusted_proxies: tuple[str, ...] = (),
    authenticate: Authenticator | None = None,
    connections_per_address: int = 256,
    **options: Any,
) -> AsyncIterator[Served]:
    """Serve the test skills over a loopback socket, where the test is about sockets and
    not about the database.
    """

    def keep(work: SkillWork) -> AbstractAsyncContextManager[Executions]:
        return memory_executions(work, **options)

    async with _serve_over_socket(
        keep, limits, hosts, trusted_proxies, authenticate, connections_per_address
    ) as served:
        yield served


def wait_for_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not take the database for away, however busy the machine is."""
    for limit in ("_SUBMIT", "_ASK"):
        monkeypatch.setattr(
            f"skillruntime.server.executions.postgres.engine_executions.{limit}", 300.0
        )
    connections = "skillruntime.server.executions.postgres.postgres_connections"
    for limit in ("seconds", "seconds_to_connect"):
        monkeypatch.setattr(f"{connections}.PromptConnection.{limit}", 300)


class EngineServing:
    """Serves the test skills over loopback sockets on the engine's database *url*, on
    one server or on two.

    The second one is a process of its own, for a process has one engine; each request
    goes to the other one.
    """

    def __init__(self, url: str, number: int = 2) -> None:
        self._url = url
        self._number = number

    @asynccontextmanager
    async def __call__(
        self, *, limits: Limits | None = None, **options: Any
    ) -> AsyncIterator[Served]:
        """Serve; *options* are those of the executions."""
        with TemporaryDirectory() as directory:
            async with self._serve(directory, limits, options) as served:
                yield served
            served.skills.ran = [*served.skills.ran]  # before the directory goes

    @asynccontextmanager
    async def _serve(
        self, directory: str, limits: Limits | None, options: dict[str, Any]
    ) -> AsyncIterator[Served]:
        async with serve_engine(self._url, Path(directory), limits, options) as served:
            if self._number == 1:
                yield served
                return
            order: dict[str, Any] = {
                "url": self._url,
                "directory": directory,
                "options": options,
                "base": served.base,
            }
            if limits is not None:
                order["limits"] = asdict(limits)
            program = [
                sys.executable,
                "-m",
                "tests.server.second_server",
                json.dumps(order),
            ]
            process = subprocess.Popen(
                program, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE
            )
            try:
                port = await anyio.to_thread.run_sync(
                    read_port, process, abandon_on_cancel=True
                )
                yield _alternating(served, [served.base, f"http://127.0.0.1:{port}"])
            finally:
                process.kill()
                process.wait()


def _alternating(served: Served, bases: list[str]) -> Served:
    """Return *served* with a transport that asks one server after the other."""
    ask, turns = served.transport, itertools.cycle(bases)

    async def alternate(request: WireRequest) -> WireResponse:
        return await ask(
            replace(request, url=request.url.replace(served.base, next(turns), 1))
        )

    return replace(served, transport=alternate, bases=itertools.cycle(bases))


@asynccontextmanager
async def serve_engine(
    url: str,
    directory: Path,
    limits: Limits | None,
    options: dict[str, Any],
    base: str | None = None,
) -> AsyncIterator[Served]:
    """Serve on the engine; whatever several servers share is in *directory*."""
    from skillruntime.server import durable_executions

    def keep(work: SkillWork) -> AbstractAsyncContextManager[Executions]:
        return durable_executions(work, url, poll=0.05, lease=300.0, **options)

    async with _serve_over_socket(
        keep, limits, skills=Skills.shared(directory), secret=b"shared", base=base
    ) as served:
        yield served


@asynccontextmanager
async def _serve_over_socket(
    keep: Callable[[SkillWork], AbstractAsyncContextManager[Executions]],
    limits: Limits | None,
    hosts: frozenset[str] | None = None,
    trusted_proxies: tuple[str, ...] = (),
    authenticate: Authenticator | None = None,
    connections_per_address: int = 256,
    skills: Skills | None = None,
    secret: bytes = b"",
    base: str | None = None,
) -> AsyncIterator[Served]:
    for name in ("starlette", "uvicorn"):
        needs.package(name)
    from skillruntime.server import Server, bind, create_app

    listening = bind("127.0.0.1", 0)
    own = f"http://127.0.0.1:{listening.getsockname()[1]}"
    skills = skills or Skills()
    runtime, served = skills.runtime(base or own)
    ready = anyio.Event()
    async with keep(SkillWork(runtime, served)) as executions:
        service = SkillService(
            served,
            executions,
            authenticate=authenticate or KeyRing(KEYS),
            limits=limits,
            secret=secret,
        )
        server = Server(
            create_app(service, hosts=hosts),
            service,
            handles_signals=False,
            grace=1,
            trusted_proxies=trusted_proxies,
            connections_per_address=connections_per_address,
            on_ready=ready.set,
        )
        async with (
            HttpTransport(AddressGuard(allow_all=True), timeout=300) as transport,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(server.serve, [listening])
            await ready.wait()
            try:
                yield Served(service, skills, transport, own, itertools.cycle([own]))
            finally:
                server.should_exit = True


Serving = Callable[..., AbstractAsyncContextManager[Served]]
"""How a test gets its server."""
