"""Two skills that append a line to a file when they begin and when they end, for the
benchmarks that kill servers: ``begin TEXT`` and ``end TEXT``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio

from skillruntime import SkillRuntime
from skillruntime.contract import Contract

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}


def noting_runtime(effects: Path, seconds: float) -> SkillRuntime:
    """Return a runtime with ``twice``, which may run twice, and ``once``, which must
    not. Each takes *seconds*, and notes its beginning and end in the file *effects*.
    """

    def note(line: str) -> None:
        descriptor = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)

    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        note(f"begin {arguments['text']}")
        await anyio.sleep(seconds)
        note(f"end {arguments['text']}")
        return {"said": arguments["text"]}

    runtime = SkillRuntime()
    for name, promised in (("twice", {"idempotent": True}), ("once", {})):
        contract = Contract.from_dict(
            {"version": "1.0.0", "input": SCHEMA, "annotations": promised}, name=name
        )
        runtime.implements(name, contract=contract)(run)
    return runtime
