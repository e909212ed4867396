"""Read everything that a server of skills has with FastMCP's newest client, which no
extra of ours installs.

``python fastmcp_client.py --url URL`` or ``python fastmcp_client.py COMMAND...``; each
``--call TOOL`` calls a tool without arguments. The program prints what the client
refuses and how much there is of everything, and exits with 1 if anything was refused.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import FastMCPError
from fastmcp.skills.client import SkillsClientExtension
from mcp import MCPError


async def main() -> int:
    """Read the server that the command line names; return how often the client refused
    something.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--call", action="append", default=[], metavar="TOOL")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    server: Any = options.url
    if server is None:
        server = StdioTransport(options.command[0], options.command[1:])
    async with Client(server, extensions=[SkillsClientExtension()]) as client:
        skills = [each.uri for each in await client.list_skills()]
        resources = [str(each.uri) for each in await client.list_resources()]
        prompts = [each.name for each in await client.list_prompts()]
        tools = await client.list_tools()
        print(
            f"{len(skills)} skills, {len(resources)} resources, {len(prompts)} prompts "
            f"and {len(tools)} tools",
            flush=True,
        )
        # The client compares the size, digest and frontmatter of each file that it
        # reads with those of the skill's entry.
        refused = await count_refused(client.read_skill, skills)
        refused += await count_refused(client.read_resource, resources)
        refused += await count_refused(client.get_prompt, prompts)
        refused += await count_refused(client.call_tool, options.call)
    # An empty list would hide that nothing was read.
    for kind, found in (("skills", skills), ("resources", resources)):
        if not found:
            print(f"the server has no {kind}")
            refused += 1
    return refused


async def count_refused(
    read: Callable[[str], Awaitable[Any]], names: Sequence[str]
) -> int:
    """Pass each of *names* to *read*; return how many it refused, and print why."""
    refused = 0
    for name in names:
        try:
            await read(name)
        except (FastMCPError, MCPError, ValueError) as error:
            print(f"refused {name}: {error}")
            refused += 1
    return refused


if __name__ == "__main__":
    sys.exit(min(asyncio.run(main()), 1))
