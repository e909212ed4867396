"""What an execution costs servers on PostgreSQL that are full, and how many they end
in a second, beside a workflow of DBOS that does nothing.

    python benchmarks/full_servers.py [--calls 256] [--rounds 3]

Each server has 8 places, and its skill waits 100 ms. With 4 clients, each execution
begins at once; with 64, seven of eight wait for a place. The workflow of DBOS returns
its arguments at once, on the same web server and database, and waits for no place. The
servers are measured in turns. ``may run twice`` and ``must not`` are the skill's
``annotations``. Then four servers are compared with one, each with 16 clients and a
skill that waits 400 ms, so that the machine is not full.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.remote import Measured, drive, place

PLACES = 8
SECONDS = 0.1
FEW, MANY = 4, 64
SERVERS = {
    "DBOS, returns its arguments": "engine",
    "may run twice": "skills",
    "must not": "once",
}


@dataclass
class Costs:
    """The CPU in milliseconds of executions of one kind, and executions a second; a
    value for each round.
    """

    cpu: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)

    async def measure(self, server: Measured, calls: int, clients: int) -> None:
        """Send so many calls."""
        before = server.cpu()
        seconds, times, _ = await drive([server.port], calls, clients)
        self.cpu.append((server.cpu() - before) / len(times) * 1000)
        self.rate.append(len(times) / seconds)

    def __str__(self) -> str:
        of_cpu = f"({min(self.cpu):.1f}-{max(self.cpu):.1f})"
        of_rate = f"({min(self.rate):.0f}-{max(self.rate):.0f})"
        return (
            f"{statistics.median(self.cpu):6.1f} ms {of_cpu:>11} "
            f"{statistics.median(self.rate):6.1f}/s {of_rate:>9}"
        )


async def compare(create: Callable[[], str], calls: int, rounds: int) -> None:
    """Print the costs of each server with few and with many clients, and idle."""
    with ExitStack() as stack:
        servers = {}
        for name, kind in SERVERS.items():
            servers[name] = Measured(kind, create(), SECONDS, PLACES)
            stack.callback(servers[name].close)
            await drive([servers[name].port], 32, 16)  # warm
        costs = {
            (name, clients): Costs() for name in servers for clients in (FEW, MANY)
        }
        for _ in range(rounds):
            for (name, clients), of_server in costs.items():
                number = calls if clients == MANY else calls // 2
                await of_server.measure(servers[name], number, clients)
        for (name, clients), of_server in costs.items():
            base = statistics.median(costs[next(iter(SERVERS)), clients].cpu)
            ratio = statistics.median(of_server.cpu) / base
            print(f"{name:28} {clients:3} clients {of_server} {ratio:5.2f} x")
        await anyio.sleep(10)  # what was just written is cleaned up
        before = {name: server.cpu() for name, server in servers.items()}
        await anyio.sleep(30)
        for name, server in servers.items():
            print(f"{name:28} idle {(server.cpu() - before[name]) / 30:.1%} of a core")


async def compare_four(create: Callable[[], str], calls: int) -> None:
    """Print what four servers cost beside one."""
    costs = []
    for number in (1, 4):
        database = create()
        with ExitStack() as stack:
            servers = []
            for _ in range(number):
                servers.append(Measured("skills", database, 4 * SECONDS, PLACES))
                stack.callback(servers[-1].close)
            ports = [server.port for server in servers]
            await drive(ports, 16 * number, 16 * number)
            before = sum(server.cpu() for server in servers)
            seconds, times, _ = await drive(ports, calls * number // 2, 16 * number)
            spent = sum(server.cpu() for server in servers) - before
            costs.append((spent / len(times), len(times) / seconds))
    (cpu, rate), (cpu_of_four, rate_of_four) = costs
    print(
        f"four servers: {cpu_of_four / cpu:.2f} x the CPU of an execution, "
        f"{rate_of_four / rate:.2f} x the executions a second"
    )


async def main(calls: int, rounds: int) -> None:
    """Measure and print."""
    print(f"load {os.getloadavg()[0]:.1f}")
    with place("PostgreSQL") as create:
        await compare(create, calls, rounds)
        await compare_four(create, calls)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    anyio.run(main, options.calls, options.rounds)
