"""A second server on the engine's database: ``python -m tests.server.second_server
ORDER``, which is JSON.

It prints its port as soon as it listens. Its descriptors name the first server's
address, as behind a load balancer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.server import Limits
from tests.server.serving import serve_engine, wait_for_database


async def main(order: dict[str, Any]) -> None:
    """Serve until the end."""
    limits = Limits(**order["limits"]) if "limits" in order else None
    place = Path(order["directory"])
    async with serve_engine(
        order["url"], place, limits, order["options"], order["base"]
    ) as served:
        sys.stdout.write(served.base.rpartition(":")[2] + "\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    wait_for_database(pytest.MonkeyPatch())
    anyio.run(main, json.loads(sys.argv[1]))
