"""Serve untrusted skills over MCP, and approve every call: ``serve --mcp`` itself has
no approval, so that it runs no untrusted script.

    python approving_server.py SKILLS WORKSPACE
"""

from __future__ import annotations

import sys

import anyio

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.mcp import serve_stdio

if __name__ == "__main__":
    skills, workspace = sys.argv[1:]
    runtime = SkillRuntime(
        discover(skills), approve=lambda request: True, workspace=workspace
    )
    anyio.run(serve_stdio, runtime)
