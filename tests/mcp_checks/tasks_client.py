"""Follow tasks with the client of fastmcp-tasks, over HTTP and over a restart.

``python tasks_client.py COMMAND...`` starts the command twice, with ``--port`` and
``--data`` added: a task that the first server began is asked for at the second, which
gets the directory that the first one left when it was killed.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastmcp import Client
from fastmcp_tasks.client import ToolTask, call_tool_task

SLOW = "test_tool_with_progress"


async def main(command: list[str]) -> None:
    """Check what a client sees of a task; any difference ends the program."""
    with tempfile.TemporaryDirectory(prefix="mcp-tasks-") as data:
        async with serving(command, data) as (url, server), Client(url) as client:
            # The client declares the extension, and polls by itself.
            result = await client.call_tool(SLOW, {})
            assert result.structured_content == {"waited": 4}, result
            print("followed to its result")

            cancelled = await call_tool_task(client, SLOW, {})
            await cancelled.cancel()
            status = await cancelled.wait()
            assert status.status == "cancelled", status
            print("cancelled")

            left = await call_tool_task(client, SLOW, {})
            assert (await left.status()).status == "working"
            server.kill()
            server.wait()
        async with serving(command, data) as (url, _), Client(url) as client:
            status = await ToolTask(client, SLOW, left.create_result).wait()
            # The tool does not say that it may run twice.
            assert status.status == "failed", status
            assert status.error is not None
            assert status.error["data"]["code"] == "EXECUTION_INTERRUPTED", status
            print("interrupted, as its execution")


@asynccontextmanager
async def serving(
    command: list[str], data: str
) -> AsyncIterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start the server, and yield its address and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([*command, "--port", str(port), "--data", data]) as server:
        try:
            await until_listening(port)
            yield f"http://127.0.0.1:{port}/mcp", server
        finally:
            server.terminate()


async def until_listening(port: int) -> None:
    """Return as soon as something listens at *port*; fail after a minute."""
    async with asyncio.timeout(60):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            except OSError:
                await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
