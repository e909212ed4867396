"""Model Context Protocol, in both directions: serve skills to MCP clients, and use an MCP server's tools.

Callable skills are served as tools, and all skills by the Skills extension (SEP-2640), which needs the protocol's
revision 2026-07-28; clients of an older revision get the tools, ``load_skill``, prompts, and the skills' files as plain
resources. ``python -m skillruntime.adapters.mcp DIRECTORY...`` serves directories over standard input and output.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import anyio

from skillruntime.adapters.mcp_server import serve_http, serve_stdio, to_server
from skillruntime.catalog.discovery import discover

if TYPE_CHECKING:
    from skillruntime.adapters.mcp_client import import_tools

__all__ = ["import_tools", "serve_http", "serve_stdio", "to_server"]


def __getattr__(name: str) -> Any:
    """Import the client's side when it is used: a server answers ``initialize`` without it."""
    if name != "import_tools":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from skillruntime.adapters import mcp_client

    return getattr(mcp_client, name)


def main(arguments: list[str]) -> None:
    """Serve the directories named on the command line, as trusted ones, over standard input and output."""
    anyio.run(serve_stdio, discover(*arguments, trusted=True))


if __name__ == "__main__":
    main(sys.argv[1:])
