"""A server to be killed: ``python killable.py DIRECTORY DRAIN LEASE [URL]``. Each run
leaves a line in DIRECTORY/ran.

It prints the port that it was given as soon as it listens: a port that is chosen before
may be another's by then. Executions are in DIRECTORY, or in the PostgreSQL database
URL.

``twice`` may run twice, ``once`` must not. Four runs of each wait for DIRECTORY/go to
appear, so that a test decides when they end: as many as the server runs at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio

from skillruntime.contract import Contract
from skillruntime.runtime import SkillRuntime
from skillruntime.server import (
    Limits,
    PublishedSkill,
    Server,
    SkillService,
    SkillWork,
    bind,
    create_app,
    describe,
    durable_executions,
)
from tests.server.parts import read_secret

GATED = ("9", "19", "29", "39")
SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


async def main(directory: Path, drain: float, lease: float, url: str | None) -> None:
    """Serve until the end."""
    runtime = SkillRuntime()

    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        with (directory / "ran").open("a") as file:
            file.write(arguments["text"] + "\n")
            file.flush()
            os.fsync(file.fileno())
        while (
            arguments["text"].partition("-")[2] in GATED
            and not (directory / "go").exists()
        ):
            await anyio.sleep(0.01)
        return {"said": arguments["text"]}

    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    served = []
    for name, promised in (("twice", {"idempotent": True}), ("once", {})):
        contract = Contract.from_dict(
            {"version": "1.0.0", "input": SCHEMA, "annotations": promised}, name=name
        )
        runtime.implements(name, contract=contract)(run)
        descriptor = describe(
            name, contract, base_url=f"http://127.0.0.1:{port}", poll_interval_ms=20
        )
        served.append(PublishedSkill(descriptor, name, contract))

    def print_port() -> None:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()

    place = url or directory / "executions.db"
    async with durable_executions(
        SkillWork(runtime, served), place, capacity=8, lease=lease, poll=0.05
    ) as executions:
        limits = Limits(invocations_per_minute=1e6, requests_per_minute=1e6)
        service = SkillService(
            served, executions, limits=limits, secret=read_secret(directory / "secret")
        )
        server = Server(
            create_app(service), service, grace=2, drain=drain, on_ready=print_port
        )
        await server.serve([listening])


if __name__ == "__main__":
    anyio.run(
        main,
        Path(sys.argv[1]),
        float(sys.argv[2]),
        float(sys.argv[3]),
        (sys.argv[4:] or [None])[0],
    )
