"""Model Context Protocol, in both directions: serve skills to MCP clients, and use an MCP server's tools and skills.

Callable skills are served as tools, and all skills by the Skills extension (SEP-2640), which needs the protocol's
revision 2026-07-28; clients of an older revision get the tools, ``load_skill``, prompts, and the skills' files as plain
resources. ``python -m skillruntime.adapters.mcp DIRECTORY...`` serves directories over standard input and output.
"""

from __future__ import annotations

import sys

import anyio

from skillruntime.adapters.mcp_client import fetch_skills, import_tools, list_skills
from skillruntime.adapters.mcp_server import serve_stdio, to_server
from skillruntime.adapters.skill_manifest import EXTENSION
from skillruntime.catalog.discovery import discover
from skillruntime.runtime.runtime import SkillRuntime

__all__ = ["EXTENSION", "fetch_skills", "import_tools", "list_skills", "serve_stdio", "to_server"]


def main(arguments: list[str]) -> None:
    """Serve the directories named on the command line, as trusted ones, over standard input and output."""
    anyio.run(serve_stdio, SkillRuntime(discover(*arguments, trusted=True)))


if __name__ == "__main__":
    main(sys.argv[1:])
