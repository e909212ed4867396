"""Fetch the tool schemas of real MCP servers: ``python make/schemas.py DIRECTORY`` writes
DIRECTORY/schemas.jsonl.

The servers are those of ``benchmarks/mcp_proxy.py``, installed from npm and PyPI into
DIRECTORY/servers and asked for their tools. A line has ``server``, ``version``,
``tool`` and ``schema``. References inside a schema are replaced by what they refer to;
a tool whose schema refers to itself is left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1])]


def fetched(directory: Path) -> list[dict[str, Any]]:
    """Return the schemas, fetched into *directory* where they are not there yet; empty
    where none can be had.
    """
    place = directory / "schemas.jsonl"
    if not place.exists():
        from mcp_proxy import connected, install

        rows: list[dict[str, Any]] = []
        servers = directory / "servers"
        servers.mkdir(parents=True, exist_ok=True)
        try:
            peers = install(servers)
        except Exception as error:  # no network, or no npm
            print(f"the servers cannot be installed: {error}", file=sys.stderr)
            return []
        for peer in peers:
            try:
                with connected(peer.command) as connection:
                    tools = connection.ask("tools/list")["result"]["tools"]
            except Exception as error:
                print(f"{peer.name} does not answer: {error!r}", file=sys.stderr)
                continue
            for tool in tools:
                schema = without_references(tool["inputSchema"], tool["inputSchema"])
                if schema is not None:
                    row = {
                        "server": peer.name,
                        "version": peer.version,
                        "tool": tool["name"],
                        "schema": schema,
                    }
                    rows.append(row)
        place.write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
    return [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]


def without_references(schema: Any, root: Any, depth: int = 0) -> Any:
    """Return *schema* with what its references refer to; ``None`` where that has no
    end.
    """
    if depth > 30:
        return None
    if isinstance(schema, list):
        items = [without_references(each, root, depth + 1) for each in schema]
        return None if None in items and None not in schema else items
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("$ref"), str):
        found = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            found = found[part]
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return without_references({**found, **rest}, root, depth + 1)
    members = {}
    for key, value in schema.items():
        if key in ("$schema", "$defs", "definitions"):
            continue
        members[key] = without_references(value, root, depth + 1)
        if members[key] is None and value is not None:
            return None
    return members


if __name__ == "__main__":
    print(f"{len(fetched(Path(sys.argv[1])))} tools")
