"""A server in plain lines: it lists one tool, echoes every other request, and records
the bytes that it gets.

Its first argument is the file for the record; "hang" as the second makes it ignore the
end of stdin and SIGTERM.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "text": {"type": "string"}},
}


def main() -> None:
    """Serve until stdin ends."""
    hangs = sys.argv[2:] == ["hang"]
    if hangs:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with Path(sys.argv[1]).open("wb", buffering=0) as record:
        for line in sys.stdin.buffer:
            record.write(line)
            message = json.loads(line)
            if message.get("method") == "tools/list":
                result = {"tools": [{"name": "t", "inputSchema": SCHEMA}]}
            else:
                arguments = message.get("params", {}).get("arguments", {})
                result = {"echo": len(line), "text": arguments.get("text", "")}
            if "id" in message and "method" in message:
                sys.stdout.write(
                    json.dumps(
                        {"jsonrpc": "2.0", "id": message["id"], "result": result}
                    )
                    + "\n"
                )
                sys.stdout.flush()
    while hangs:
        time.sleep(60)


if __name__ == "__main__":
    main()
