"""Both directions with random, damaged and interleaved messages: no crash, no changed
byte, no second answer.

    python tests/mcp_proxy/test_fuzz.py 600

runs it for ten minutes.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

import pytest

from skillruntime.adapters.mcp_proxy import Options, Session
from tests.mcp_proxy.messages import CLIENT, SERVER

TOOL = {
    "type": "object",
    "required": ["a"],
    "additionalProperties": False,
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "array", "items": {"type": "string"}},
        "c": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "d": {"enum": ["x", "y"]},
        "e": {"type": "object", "properties": {"f": {"type": "boolean"}}},
    },
}
TOOLS = [
    {
        "name": "t",
        "inputSchema": TOOL,
        "outputSchema": {"type": "object", "required": ["r"]},
    },
    {
        "name": "u_v",
        "inputSchema": {
            "type": "object",
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    },
    {"name": "bad", "inputSchema": {"type": "nonsense"}},
    {"name": "none"},
]
SCALARS = [
    None,
    True,
    0,
    -1,
    5,
    1.5,
    1e300,
    10**30,
    "",
    "5",
    "x",
    "X",
    "true",
    "[1]",
    "['a']",
    '{"f":"true"}',
    "null",
]
SCALARS += ["é\u2028", "\ud800", "1,000", "00713", "tools/call", "\\", "\n"]
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
STATE = "skillruntime1." + "0" * 32 + ".q"
OURS = "tools/call", "tools/list", "notifications/cancelled"
FORMS = [(",", ":"), (", ", ": "), (" ,  ", " : ")]


class Fuzz:
    """One random conversation; *seed* makes it the same again."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        choose = self.random.choice
        options = Options(
            choose(["safe", "lenient", "strict"]),
            choose(["off", "report", "refuse"]),
            choose([True, False]),
        )
        self.session = Session(options, initialized=choose([True, True, False]))
        self.own: list[str] = []
        self.sent: set[bytes] = set()

    def run(self, steps: int) -> None:
        """Send *steps* messages and check what becomes of each."""
        for _ in range(steps):
            if self.random.random() < 0.5:
                self.check_client()
            else:
                self.check_server()

    def check_client(self) -> None:
        """What is not ours passes; what is ours is forwarded or answered, or waits."""
        batch = self.random.random() < 0.1
        message = (
            [self.client() for _ in range(self.random.randrange(1, 4))]
            if batch
            else self.client()
        )
        raw = self.written(message)
        self.sent.add(raw)
        sends = self.session.from_client(raw)
        if not batch and is_json(raw) and read(raw).get("method") not in OURS:
            assert sends == [(SERVER, raw)]
        if not batch and is_json(raw) and read(raw).get("method") == "tools/call":
            assert len(sends) <= 1
        self.check_sends(raw, sends)

    def check_server(self) -> None:
        """Requests and notifications pass; an answer with additions is still JSON."""
        message = self.server()
        raw = self.written(message)
        sends = self.session.from_server(raw)
        if is_json(raw) and "method" in read(raw):
            assert sends == [(CLIENT, raw)]
        self.check_sends(raw, sends)

    def check_sends(self, raw: bytes, sends: list[tuple[str, bytes]]) -> None:
        """What the proxy wrote itself is JSON, and its own requests are noted."""
        for to, data in sends:
            if data == raw or data in self.sent or not is_json(raw):
                continue
            written = read(data)
            own = str(written.get("id", "")) if isinstance(written, dict) else ""
            if to == SERVER and own.startswith("skillruntime-"):
                self.own.append(own)

    def client(self) -> dict[str, Any]:
        """Return a message as clients send them."""
        choose, chance = self.random.choice, self.random.random()
        if chance < 0.5:
            names = [
                "t",
                "T",
                "x_t",
                "mcp__x__t",
                "u_v",
                "U-V",
                "bad",
                "none",
                "zz",
                5,
                None,
            ]
            keys = self.random.sample(
                ["a", "b", "c", "d", "e", "A", "zz"], self.random.randrange(6)
            )
            arguments = (
                {key: self.value(1) for key in keys}
                if choose([True, True, False])
                else self.value(0)
            )
            params: dict[str, Any] = {"name": choose(names), "arguments": arguments}
            for key, values in (
                ("_meta", [{"progressToken": 1}, ENVELOPE, None, 5]),
                ("requestState", ["s", STATE, 5]),
            ):
                if self.random.random() < 0.15:
                    params[key] = choose(values)
            if self.random.random() < 0.1:
                params["task"] = {}
            return {
                "jsonrpc": "2.0",
                "id": self.id(),
                "method": "tools/call",
                "params": params,
            }
        if chance < 0.6:
            return {
                "method": "notifications/cancelled",
                "params": {"requestId": self.id()},
            }
        if chance < 0.7:
            return {
                "id": self.id(),
                "method": "tools/list",
                "params": choose([{}, {"cursor": "c"}]),
            }
        if chance < 0.75:
            return {"method": "notifications/initialized"}
        return {
            "id": self.id(),
            "method": choose(["ping", "x", "tools/listx", "tasks/get"]),
            "params": self.value(0),
        }

    def server(self) -> dict[str, Any]:
        """Return a message as servers send them."""
        choose, chance = self.random.choice, self.random.random()
        pages = [
            {"tools": TOOLS},
            {"tools": TOOLS[:2], "nextCursor": "c"},
            {"tools": self.value(0)},
        ]
        if chance < 0.4:
            key = choose(self.own) if self.own and chance < 0.2 else self.id()
            asked = {"content": [], "requestState": "q", "resultType": "input_required"}
            return {
                "jsonrpc": "2.0",
                "id": key,
                "result": choose([*pages, self.value(0), asked, {"taskId": "1"}]),
            }
        if chance < 0.5:
            error = {"code": -32602, "message": choose(["Invalid arguments", "x"])}
            return {"jsonrpc": "2.0", "id": self.id(), "error": error}
        if chance < 0.6:
            return {"method": "notifications/tools/list_changed"}
        return {
            "id": self.id(),
            "method": "sampling/createMessage",
            "params": self.value(0),
        }

    def value(self, depth: int) -> Any:
        """Return any JSON value."""
        chance = self.random.random()
        if chance < 0.5 or depth > 3:
            return self.random.choice(SCALARS)
        if chance < 0.75:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        keys = [
            "a",
            "b",
            "c",
            "d",
            "e",
            "f",
            "A",
            "arguments",
            "input",
            "",
            "_meta",
            "taskId",
        ]
        return {
            self.random.choice(keys): self.value(depth + 1)
            for _ in range(self.random.randrange(4))
        }

    def id(self) -> Any:
        """Return an id, or what some client takes for one."""
        return self.random.choice(
            [1, 2, 3, "1", "a", 1.0, None, [], True, self.random.randrange(99)]
        )

    def written(self, message: Any) -> bytes:
        """Return *message* as one line, now and then cut or with a byte too many."""
        text = json.dumps(
            message,
            ensure_ascii=self.random.random() < 0.5,
            separators=self.random.choice(FORMS),
        )
        raw = text.encode("utf-8", "surrogatepass") + self.random.choice(
            [b"\n", b"\r\n", b"", b" \n"]
        )
        chance, place = self.random.random(), self.random.randrange(len(raw) + 1)
        if chance < 0.03:
            return raw[:place]
        return (
            raw[:place] + self.random.randbytes(1) + raw[place:]
            if chance < 0.05
            else raw
        )


def read(raw: bytes) -> Any:
    """Return the value of *raw*, as a lenient server reads it."""
    return json.loads(raw.decode("utf-8", "replace"), strict=False)


def is_json(raw: bytes) -> bool:
    """Whether a lenient server can read *raw*."""
    try:
        return isinstance(read(raw), dict | list)
    except ValueError:
        return False


@pytest.mark.parametrize("seed", range(50))
def test_a_random_conversation_breaks_nothing(seed: int) -> None:
    """Forty messages in either direction, some of them no messages at all."""
    Fuzz(seed).run(40)


if __name__ == "__main__":
    end, count = time.monotonic() + float(sys.argv[1]), 0
    while time.monotonic() < end:
        Fuzz(count).run(40)
        count += 1
    sys.stdout.write(f"{count * 40:,} messages\n")
