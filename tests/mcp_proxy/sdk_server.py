"""A server by the official SDK, as a user would write one; its only argument is the
transport, and a port for HTTP.
"""

from __future__ import annotations

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

app = MCPServer("shop")


@app.tool()
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@app.tool()
def join(words: list[str]) -> str:
    """Join words."""
    return "|".join(words)


@app.tool()
def ship(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    boxes: int,
) -> str:
    """Ship boxes; the region is repeated in a header."""
    return f"{boxes} to {region}"


@app.tool()
async def count(to: int, context: Context) -> str:
    """Report progress on the way."""
    for step in range(to):
        await context.report_progress(step, to)
    return "done"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        app.run("stdio")
    else:
        app.run("streamable-http", port=int(sys.argv[2]))
