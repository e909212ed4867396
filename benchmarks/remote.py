"""What a remote call costs: joined in memory, over a loopback socket, and with executions synced to disk.

    python benchmarks/remote.py [--calls 300] [--at-once 20]

A call is POST with ``Prefer: wait`` to its completed answer. The three are measured side by side in one run, with a
skill that does nothing; the ratios are what to compare.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from skillruntime.contract import Contract
from skillruntime.remote import AddressGuard, HttpTransport, NoCredentials, RemoteClient, Transport
from skillruntime.runtime import SkillRuntime
from skillruntime.server import (
    Executions,
    Limits,
    PublishedSkill,
    Server,
    SkillService,
    SkillWork,
    bind,
    create_app,
    describe,
    durable_executions,
    memory_executions,
)

LIMITS = Limits(invocations_per_minute=math.inf, requests_per_minute=math.inf)


async def main(calls: int, at_once: int) -> None:
    """Measure and print."""
    results = {}
    for name in ("in memory", "over a socket", "over a socket, on disk"):
        async with serving(name) as client:
            await measure(client, calls // 5, at_once)  # warm
            results[name] = await measure(client, calls, at_once)
    base = results["in memory"][0]
    print(f"{calls} calls, {at_once} at once\n")
    print(f"{'':24} {'calls/s':>9} {'of memory':>10} {'median ms':>10} {'99 % ms':>9}")
    for name, (rate, times) in results.items():
        worst = statistics.quantiles(times, n=100)[98]
        print(f"{name:24} {rate:9.0f} {rate / base:10.2f} {statistics.median(times) * 1e3:10.1f} {worst * 1e3:9.1f}")


async def measure(client: RemoteClient, calls: int, at_once: int) -> tuple[float, list[float]]:
    """Return calls a second, and how long each took."""
    times: list[float] = []
    limiter = anyio.CapacityLimiter(at_once)

    async def call(number: int) -> None:
        async with limiter:
            started = time.perf_counter()
            await client.invoke({"text": str(number)})
            times.append(time.perf_counter() - started)

    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for number in range(calls):
            tasks.start_soon(call, number)
    return calls / (time.perf_counter() - started), times


@asynccontextmanager
async def serving(name: str) -> AsyncIterator[RemoteClient]:
    """Serve one skill in this way, and give its client."""
    listening = bind("127.0.0.1", 0)
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    runtime = SkillRuntime()
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    contract = Contract.from_dict({"version": "1.0.0", "input": schema}, name="echo")

    async def echo(arguments: dict[str, Any]) -> Any:
        return arguments

    runtime.implements("echo", contract=contract)(echo)
    served = [PublishedSkill(describe("echo", contract, base_url=base), "echo", contract)]
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        work = SkillWork(runtime, served)
        kept = durable_executions(work, Path(directory) / "e.db") if "disk" in name else memory_executions(work)
        executions: Executions = await stack.enter_async_context(kept)
        service = SkillService(served, executions, limits=LIMITS)
        transport: Transport = service.handle
        if "socket" in name:
            tasks = await stack.enter_async_context(anyio.create_task_group())
            server = Server(create_app(service), service, handles_signals=False, grace=1)
            tasks.start_soon(server.serve, [listening])
            transport = await stack.enter_async_context(HttpTransport(AddressGuard(allow_all=True)))
            stack.callback(setattr, server, "should_exit", True)
        else:
            listening.close()
        yield RemoteClient(served[0].descriptor, NoCredentials, transport)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--at-once", type=int, default=20)
    options = parser.parse_args()
    anyio.run(main, options.calls, options.at_once)
