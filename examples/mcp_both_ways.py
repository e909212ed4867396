"""Serve skills over MCP: start a skillruntime server as a process, and load its tools
in another runtime.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

from skillruntime import SkillRuntime
from skillruntime.adapters.mcp import import_tools

HERE = Path(__file__).parent


async def main() -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "skillruntime.adapters.mcp", str(HERE / "skills")],
    )
    async with Client(server) as client:
        for tool in (await client.list_tools()).tools:
            print(f"tool: {tool.name}: {tool.description}")
        result = await client.call_tool(
            "unit_converter", {"value": 5, "from": "mi", "to": "km"}
        )
        print("called:", result.structured_content)

        runtime = SkillRuntime()
        names = await import_tools(runtime, client, server="example")
        response = await runtime.call(
            "example/unit_converter", {"value": "5", "from": "mi", "to": "KM"}
        )
        print(
            "imported:",
            names,
            response.data,
            [repair["rule"] for repair in (response.metadata or {})["repairs"]],
        )


if __name__ == "__main__":
    anyio.run(main)
