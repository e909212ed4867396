"""A server that causes alerts: ``python alerted.py DIRECTORY PORT``.

It prints its port as soon as it listens; PORT 0 stands for a free one. Executions are in
DIRECTORY, one runs at once, and one during which a server died is held.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio

from skillruntime.contract import Contract
from skillruntime.remote import AddressGuard
from skillruntime.runtime import SkillRuntime
from skillruntime.server import (
    KeyRing,
    Limits,
    Principal,
    PublishedSkill,
    Server,
    SkillService,
    SkillWork,
    Webhooks,
    bind,
    create_app,
    describe,
    durable_executions,
)
from tests.server.parts import Metrics, hash_key, read_secret

KEY = "key-of-the-operator"
SLOW = 11.0  # seconds: longer than the threshold of the page


async def fail(arguments: dict[str, Any]) -> Any:
    """Fail."""
    raise RuntimeError("it fails")


async def take_long(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run for a while."""
    await anyio.sleep(SLOW)
    return {}


async def never_end(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run until the server is killed."""
    await anyio.sleep_forever()
    return {}


async def end(arguments: dict[str, Any]) -> dict[str, Any]:
    """End at once."""
    return {}


SKILLS = {
    "fails": (fail, {}),
    "slow": (take_long, {}),
    "once": (never_end, {}),
    "twice": (never_end, {"idempotent": True}),
    "quick": (end, {}),
}


async def main(directory: Path, port: int) -> None:
    """Serve until the end."""
    runtime = SkillRuntime()
    listening = bind("127.0.0.1", port)
    port = listening.getsockname()[1]
    served = []
    for name, (function, promised) in SKILLS.items():
        contract = Contract.from_dict(
            {"version": "1.0.0", "input": {}, "annotations": promised}, name=name
        )
        runtime.implements(name, contract=contract)(function)
        descriptor = describe(
            name, contract, base_url=f"http://127.0.0.1:{port}", webhooks=True
        )
        served.append(PublishedSkill(descriptor, name, contract))

    def print_port() -> None:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()

    metrics = Metrics()
    webhooks = Webhooks(b"secret", guard=AddressGuard(allow_all=True), pauses=())
    async with durable_executions(
        SkillWork(runtime, served),
        directory / "executions.db",
        capacity=1,
        per_skill={"once": 1},
        most_losses=1,
        notify=webhooks.notify,
        metrics=metrics,
    ) as executions:
        service = SkillService(
            served,
            executions,
            authenticate=KeyRing({hash_key(KEY): Principal("op", is_operator=True)}),
            limits=Limits(invocations_per_minute=20),
            secret=read_secret(directory / "secret"),
            webhooks=webhooks,
            metrics=metrics,
        )
        server = Server(create_app(service), service, grace=1, on_ready=print_port)
        await server.serve([listening])


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
