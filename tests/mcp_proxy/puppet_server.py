"""A server on stdio that does what the method of a request says, also what no server
should do.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "additionalProperties": False,
}
TOOLS = [
    {"name": "t", "inputSchema": SCHEMA},
    {
        "name": "kept",
        "inputSchema": SCHEMA,
        "outputSchema": {"type": "object", "required": ["n"]},
    },
]


def say(message: Any) -> None:
    """Write one message as a line."""
    sys.stdout.write(
        (message if isinstance(message, str) else json.dumps(message)) + "\n"
    )
    sys.stdout.flush()


def notify(method: str, params: Any) -> None:
    """Send a notification."""
    say({"jsonrpc": "2.0", "method": method, "params": params})


def main() -> None:
    """Serve until stdin ends; every result has the line that asked for it."""
    for line in sys.stdin:
        message = json.loads(line)
        for each in message if isinstance(message, list) else [message]:
            if "method" in each and "id" in each:
                serve(each, line)


def serve(message: dict[str, Any], line: str) -> None:
    """Answer one request."""
    result: dict[str, Any] = {"line": line}
    params = message.get("params") or {}
    token = (params.get("_meta") or {}).get("progressToken")
    match message["method"]:
        case "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "serverInfo": {"name": "p", "version": "1"},
            }
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call" if params["name"] == "kept":
            result["structuredContent"] = {"wrong": 1}
        case "unknown":
            say(
                {
                    "jsonrpc": "2.0",
                    "id": message["id"],
                    "error": {"code": -32601, "message": "Method not found"},
                }
            )
            return
        case "null-id":
            say(
                '{"jsonrpc":"2.0","id":null, "error":{"code":-32700,"message":"Parse '
                'error"}}'
            )
            return
        case "progress":
            notify("notifications/progress", {"progressToken": token, "progress": 1})
        case "odd":
            for odd in (
                "[]",
                "[1]",
                "print",
                "null",
                '{"method":"x","params":{"_meta":{bad}}}',
                '{"id":{}}',
            ):
                say(odd)
            notify("notifications/message", {"_meta": None})
            notify("notifications/message", {"_meta": 5})
            say([{"jsonrpc": "2.0", "method": "x"}])
        case "end":
            sys.exit(3)
        case "end-late":
            notify("notifications/progress", {"progressToken": token, "progress": 1})
            sys.exit(3)
        case "ask":
            say(
                {
                    "jsonrpc": "2.0",
                    "id": "q",
                    "method": "elicitation/create",
                    "params": {},
                }
            )
            result["answer"] = sys.stdin.readline()
    say({"jsonrpc": "2.0", "id": message["id"], "result": result})


if __name__ == "__main__":
    main()
