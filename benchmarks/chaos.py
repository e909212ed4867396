"""Break what servers stand on while clients submit, and check afterwards that no
promise was broken.

    python benchmarks/chaos.py SCENARIO... [--executions 1000] [--times 10] [--servers
    3] [--sqlite]

A model reads the history: what was accepted, what a file outside the database says of
the effects, and every end, read twice. Scenarios: kill (kill -9, restarted at once),
lost (a server killed for good), freeze (SIGSTOP for longer than a lease, then SIGCONT),
mistaken (servers are taken for dead while they run, and take up their own work), stops
(the database is stopped and started), partition (a relay before the database drops
every byte for 30 s), clock (servers and the database an hour apart, by faketime), disk
(a small tmpfs is full for a while), duplicates (one key, many times at once), deploys
(SIGTERM to one server after another). PostgreSQL is that of the tests
(SKILLRUNTIME_POSTGRES names another); with --sqlite, kill, deploys, duplicates, clock
and disk use one server.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2

sys.path.insert(0, str(Path(__file__).parents[1]))  # for what it shares with the tests

from benchmarks.chaos_cluster import LEASE, Clients, Cluster, History, judge, report
from tests.server.postgres import Postgres, running_postgres
from tests.server.relay import Relay


@dataclass
class World:
    """What a scenario may break."""

    cluster: Cluster
    clients: Clients
    history: History
    postgres: Postgres | None
    relay: Relay | None
    directory: Path
    times: int

    async def after(self, share: float) -> None:
        """Wait until this share of the executions was accepted."""
        while len(self.history.accepted) < self.history.wanted * share:
            await anyio.sleep(0.02)

    async def each(self, act: Callable[[int], Awaitable[None]]) -> None:
        """Do *act* several times, spread over the work."""
        for number in range(self.times):
            await self.after((number + 1) / (self.times + 1))
            await act(number)


async def kill(world: World) -> None:
    """Kill -9, one server after the other."""

    async def act(number: int) -> None:
        await anyio.to_thread.run_sync(
            world.cluster.restart, number % len(world.cluster.ports)
        )

    await world.each(act)


async def deploys(world: World) -> None:
    """SIGTERM: each server drains, ends and is started again, then the next one."""

    async def act(number: int) -> None:
        await anyio.to_thread.run_sync(
            world.cluster.restart, number % len(world.cluster.ports), signal.SIGTERM
        )

    await world.each(act)


async def lost(world: World) -> None:
    """One of several servers is killed and never comes back."""
    await world.after(0.3)
    await anyio.to_thread.run_sync(world.cluster.end, 0, signal.SIGKILL)
    world.cluster.ports.pop(0)


async def mistaken(world: World) -> None:
    """All servers are taken for dead while they live: their work is queued again, and
    they take it up themselves.
    """
    import psycopg

    requeue = """UPDATE skillruntime.workflow_status SET status = 'ENQUEUED', owner_xid = NULL,
        started_at_epoch_ms = NULL WHERE status = 'PENDING'"""

    def act() -> None:
        with psycopg.connect(world.cluster.database, autocommit=True) as connection:
            print(
                f"  {connection.execute(requeue).rowcount} taken from servers that "
                "run them"
            )

    await world.each(lambda number: anyio.to_thread.run_sync(act))


async def freeze(world: World) -> None:
    """SIGSTOP for two and a half leases; the others take up its work; then it thaws and
    goes on where it was.
    """

    async def act(number: int) -> None:
        which = number % len(world.cluster.ports)
        world.cluster.send(which, signal.SIGSTOP)
        await anyio.sleep(2.5 * LEASE)
        world.cluster.send(which, signal.SIGCONT)

    await world.each(act)


async def stops(world: World) -> None:
    """The database is stopped as by a crash, and started again two seconds later."""
    postgres = world.postgres
    assert postgres is not None

    async def act(number: int) -> None:
        await anyio.to_thread.run_sync(postgres.stop)
        await anyio.sleep(2)
        await anyio.to_thread.run_sync(postgres.start)

    await world.each(act)


async def partition(world: World, seconds: float = 30.0) -> None:
    """Every byte between all servers and the database is lost."""
    assert world.relay is not None
    await world.after(0.3)
    world.relay.drops.set()
    before = len(world.history.accepted)
    await anyio.sleep(seconds)
    during = len(world.history.accepted) - before
    world.relay.drops.clear()
    ended, count = time.monotonic(), len(world.history.accepted)
    while len(world.history.accepted) == count:
        await anyio.sleep(0.02)
    print(
        f"  {during} accepted during the partition; the next one "
        f"{time.monotonic() - ended:.1f} s after its end"
    )


async def clock(world: World) -> None:
    """The clock of each process is set an hour ahead and back while it works."""

    async def act(number: int) -> None:
        for each, file in enumerate(sorted(world.directory.glob("clock-*"))):
            file.write_text(("+1h", "-1h", "+0")[(number + each) % 3])

    await world.each(act)


async def disk(world: World) -> None:
    """A ballast fills what is left of the disk, and is removed after five seconds."""

    async def act(number: int) -> None:
        ballast = world.directory / "disk" / "ballast"
        with (
            suppress(OSError),
            ballast.open("wb") as file,
        ):  # the database may have filled it by itself
            while True:
                file.write(b"x" * 65536)
        before = len(world.history.accepted)
        await anyio.sleep(5)
        print(
            f"  {len(world.history.accepted) - before} accepted while the disk was full"
        )
        ballast.unlink(missing_ok=True)
        # PostgreSQL ends itself when it cannot write its log; a service manager starts
        # it again.
        if world.postgres is not None and await anyio.to_thread.run_sync(
            world.postgres.start_again
        ):
            print("  PostgreSQL had ended, and was started again")

    await world.each(act)


async def duplicates(world: World) -> None:
    """Every request is the same one."""


SCENARIOS: dict[str, Callable[[World], Awaitable[None]]] = {
    each.__name__: each
    for each in (
        kill,
        deploys,
        lost,
        freeze,
        mistaken,
        stops,
        partition,
        clock,
        disk,
        duplicates,
    )
}
_OF_MANY = ("lost", "freeze", "mistaken", "stops", "partition")


async def attack(
    name: str,
    *,
    executions: int,
    times: int,
    servers: int,
    sqlite: bool,
    seconds: float = 0.02,
) -> int:
    """Run one scenario; print what the model found, and return how many promises were
    broken.
    """
    if sqlite and name in _OF_MANY:
        return 0
    async with opened(name, executions, times, servers, sqlite, seconds) as world:
        await anyio.to_thread.run_sync(world.cluster.wait)
        started = time.monotonic()
        if name == "duplicates":
            await _same_key(world)
        else:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(SCENARIOS[name], world)
                await world.clients.submit_all()
        stuck = await world.clients.follow_all(600)
        broken = judge(
            world.history,
            world.cluster.effects.read_text(),
            kills=world.cluster.kills,
            stuck=stuck,
        )
        where = "SQLite, 1 server" if sqlite else f"PostgreSQL, {servers} servers"
        report(
            f"{name} x {times} ({where})",
            world.history,
            broken,
            time.monotonic() - started,
        )
        return sum(broken.values())


async def _same_key(world: World) -> None:
    async def one() -> None:
        async with world.clients.limiter:
            await world.clients.submit("once-0")

    async with anyio.create_task_group() as tasks:
        for _ in range(world.history.wanted):
            tasks.start_soon(one)
    world.history.wanted = 1  # they are one execution


@asynccontextmanager
async def opened(
    name: str, executions: int, times: int, servers: int, sqlite: bool, seconds: float
) -> AsyncIterator[World]:
    """Start the database and the servers of a scenario, and end them."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as text:
        directory = Path(text)
        directory.chmod(0o755)
        stack = []
        if name == "disk":
            (directory / "disk").mkdir()
            size = (
                "size=24m" if sqlite else "size=200m"
            )  # an empty PostgreSQL has 40 MB, and its log grows by 16 MB
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", size, "tmpfs", directory / "disk"],
                check=True,
            )
        clocks = (
            [_with_clock(directory / f"clock-{each}") for each in range(servers + 1)]
            if name == "clock"
            else []
        )
        postgres = relay = None
        try:
            if sqlite:
                database, servers = (
                    str(directory / ("disk/e.db" if name == "disk" else "e.db")),
                    1,
                )
            else:
                # The last clock is the database's own.
                context = running_postgres(
                    prefix=clocks[-1] if clocks else (),
                    place=directory / "disk" if name == "disk" else None,
                )
                postgres = context.__enter__()
                stack.append(context)
                database = postgres.create_prepared()
                if name == "partition":
                    relay = Relay(postgres.port)
                    database = postgres.url(database.rpartition("/")[2], relay.port)
            cluster = Cluster(
                servers,
                database,
                directory / "effects",
                seconds=seconds,
                prefixes=clocks or None,
            )
            try:
                async with httpx2.AsyncClient(timeout=30, trust_env=False) as http:
                    history = History(executions)
                    yield World(
                        cluster,
                        Clients(cluster, http, history),
                        history,
                        postgres,
                        relay,
                        directory,
                        times,
                    )
            finally:
                cluster.close()
        finally:
            for context in stack:
                context.__exit__(None, None, None)
            if name == "disk":
                subprocess.run(["umount", "-l", directory / "disk"], check=True)


def _with_clock(file: Path) -> list[str]:
    """Return the command under which a process reads the difference of its clock from
    *file*, again and again.
    """
    library = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
    if library is None or shutil.which("faketime") is None:
        raise SystemExit("clock needs faketime (Debian: apt-get install faketime)")
    file.write_text("+0")
    # A clock that is set does not move the monotonic one.
    settings = (
        f"LD_PRELOAD={library}",
        f"FAKETIME_TIMESTAMP_FILE={file}",
        "FAKETIME_NO_CACHE=1",
    )
    return ["env", *settings, "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenarios", nargs="+", choices=[*SCENARIOS, "all"])
    parser.add_argument("--executions", type=int, default=1000)
    parser.add_argument(
        "--times", type=int, default=10, help="how often the fault happens"
    )
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=0.02, help="how long a run of the skill takes"
    )
    parser.add_argument(
        "--sqlite", action="store_true", help="one server on a SQLite file"
    )
    options = parser.parse_args()
    total = 0
    for scenario in SCENARIOS if "all" in options.scenarios else options.scenarios:

        async def run(name: str = scenario) -> int:
            """Run one scenario with the options."""
            return await attack(
                name,
                executions=options.executions,
                times=options.times,
                servers=options.servers,
                sqlite=options.sqlite,
                seconds=options.seconds,
            )

        total += anyio.run(run)
    sys.exit(min(1, total))
