"""Several servers as one: names, lists, requests of servers, and a server that ends."""

from __future__ import annotations

import json
from typing import Any

from skillruntime.adapters.mcp_proxy.joint_answers import prefixes_of
from skillruntime.adapters.mcp_proxy.merged import CLIENT, Merged
from tests.mcp_proxy.messages import to_bytes

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


def request(number: Any, method: str, **params: Any) -> bytes:
    return to_bytes({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


class Fake:
    """A `Merged` with servers that answer from a table of methods; what has no answer there is kept in `unanswered`."""

    def __init__(self, **servers: dict[str, Any]) -> None:
        self.merged = Merged(list(servers))
        self.answers = list(servers.values())
        self.unanswered: list[tuple[int, Any]] = []

    def send(self, raw: bytes) -> list[Any]:
        """Send *raw* as the client; return what the client receives, after the servers have answered."""
        return self._deliver(self.merged.from_client(raw))

    def _deliver(self, sends: list[tuple[int, bytes]]) -> list[Any]:
        received = []
        for target, raw in sends:
            message = json.loads(raw)
            if target == CLIENT:
                received.append(message)
                continue
            found = self.answers[target].get(message.get("method"))
            if found is None or "id" not in message:
                self.unanswered.append((target, message))
                continue
            found = found(message.get("params", {})) if callable(found) else found
            answer = to_bytes({"jsonrpc": "2.0", "id": message["id"], **found})
            received += self._deliver(self.merged.from_server(target, answer))
        return received


def tools(*names: str, **more: Any) -> dict[str, Any]:
    return {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names], **more}}


def hello(version: str, **capabilities: Any) -> dict[str, Any]:
    return {"result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "s"}}}


def test_the_lists_are_joined_with_all_their_pages() -> None:
    """A client that reads only the first page sees everything; each name carries its server's."""

    def paged(params: dict[str, Any]) -> dict[str, Any]:
        return tools("b") if params.get("cursor") == "2" else tools("a", nextCursor="2")

    fake = Fake(git={"tools/list": paged}, files={"tools/list": tools("a")})

    [answer] = fake.send(request(1, "tools/list"))

    assert answer["id"] == 1
    assert [each["name"] for each in answer["result"]["tools"]] == ["git__a", "git__b", "files__a"]
    assert "nextCursor" not in answer["result"]


def test_a_call_reaches_the_server_of_its_prefix() -> None:
    """The name is the server's own there, and all else keeps its bytes; the id is the client's."""
    fake = Fake(git={}, files={})

    fake.send(b'{"id":"x","method":"tools/call","params":{"name":"files__a","arguments":{"n":1.50}}}\n')
    fake.send(request(2, "tools/call", name="Files-a"))
    [unknown] = fake.send(request(3, "tools/call", name="other"))

    assert [(server, message["params"]["name"]) for server, message in fake.unanswered] == [(1, "a"), (1, "a")]
    assert unknown["error"] == {"code": -32602, "message": "Unknown tool: other"}


def test_the_bytes_of_a_call_stay_except_for_its_name() -> None:
    """Numbers, spaces and unknown members too."""
    merged = Merged(["git", "files"])

    sends = merged.from_client(b'{"id" : 1.0,"method":"tools/call", "x":1e2,"params":{"name":"git__a"}}\n')

    assert sends == [(0, b'{"id" : 1.0,"method":"tools/call", "x":1e2,"params":{"name":"a"}}\n')]


def test_the_handshake_is_that_of_all() -> None:
    """The oldest revision that a server answers with, and the capabilities and instructions of all."""
    first = hello("2025-11-25", tools={"listChanged": True})
    first["result"]["instructions"] = "Commit often."
    fake = Fake(git={"initialize": first}, files={"initialize": hello("2025-06-18", tools={}, resources={})})

    [answer] = fake.send(request(0, "initialize", **HELLO))

    assert answer["id"] == 0
    assert answer["result"]["protocolVersion"] == "2025-06-18"
    assert answer["result"]["capabilities"] == {"tools": {"listChanged": True}, "resources": {}}
    assert answer["result"]["instructions"] == "git (its tools are named git__...): Commit often."


def test_a_client_of_the_stateless_era_uses_the_handshake_where_one_server_needs_it() -> None:
    """`server/discover` succeeds only where every server has it."""
    found = {"result": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}}
    missing = {"error": {"code": -32601, "message": "Method not found"}}

    both = Fake(a={"server/discover": found}, b={"server/discover": found}).send(request(1, "server/discover"))
    one = Fake(a={"server/discover": found}, b={"server/discover": missing}).send(request(1, "server/discover"))

    assert both[0]["result"]["supportedVersions"] == ["2026-07-28"]
    assert one[0]["error"]["code"] == -32601


def test_requests_of_two_servers_with_one_id_are_answered_apart() -> None:
    """Their ids are rewritten on the way to the client, and restored, byte for byte, on the way back."""
    merged = Merged(["a", "b"])

    [(_, first)] = merged.from_server(0, b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}\n')
    [(_, second)] = merged.from_server(1, b'{"jsonrpc":"2.0","id": 1,"method":"roots/list"}\n')
    answer = to_bytes({"jsonrpc": "2.0", "id": json.loads(second)["id"], "result": {"roots": []}})

    assert json.loads(first)["id"] != json.loads(second)["id"]
    [(server, raw)] = merged.from_client(answer)
    assert (server, json.loads(raw)["id"]) == (1, 1)
    assert merged.from_client(answer) == []  # answered once


def test_a_cancel_reaches_the_server_that_runs_the_call() -> None:
    """And no other one."""
    merged = Merged(["a", "b"])
    merged.from_client(request(5, "tools/call", name="b__t"))

    sends = merged.from_client(to_bytes({"method": "notifications/cancelled", "params": {"requestId": 5}}))

    assert [server for server, _ in sends] == [1]


def test_a_resource_is_read_where_it_is_listed_and_else_where_it_is_found() -> None:
    """A URI says nothing about its server: one that is in no list is asked for everywhere."""
    listed = {"result": {"resources": [{"uri": "file:///x", "name": "x"}]}}
    missing = {"error": {"code": -32002, "message": "Resource not found"}}
    found = {"result": {"contents": [{"uri": "y://1", "text": "1"}]}}
    fake = Fake(
        a={"resources/list": {"result": {"resources": []}}, "resources/read": missing},
        b={"resources/list": listed, "resources/read": found},
    )
    fake.send(request(1, "resources/list"))

    [known] = fake.send(request(2, "resources/read", uri="file:///x"))
    [unknown] = fake.send(request(3, "resources/read", uri="y://1"))

    assert known["id"] == 2 and known["result"] == found["result"]
    assert unknown["id"] == 3 and unknown["result"] == found["result"]


def test_a_server_that_ends_fails_its_calls_and_leaves_the_lists() -> None:
    """The other servers go on, and the client learns that the lists changed."""
    fake = Fake(a={"initialize": hello("2025-11-25", tools={})}, b={"initialize": hello("2025-11-25", tools={})})
    fake.send(request(0, "initialize", **HELLO))
    fake.send(request(1, "tools/call", name="a__t"))
    fake.send(request(2, "tools/list"))
    fake.merged.from_server(1, to_bytes({"id": fake.unanswered[-1][1]["id"], **tools("t")}))

    sends = [json.loads(raw) for _, raw in fake.merged.ended(0)]

    assert sends[0] == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "The MCP server a has ended"}}
    assert [each["name"] for each in sends[1]["result"]["tools"]] == ["b__t"]
    assert sends[2]["method"] == "notifications/tools/list_changed"
    assert fake.merged.ended(0) == []


def test_a_batch_is_answered_as_a_batch() -> None:
    """JSON-RPC 2.0, 6: also where its calls go to different servers."""
    fake = Fake(a={"tools/call": {"result": {"content": []}}}, b={"tools/call": {"result": {"content": [1]}}})
    batch = [json.loads(request(1, "tools/call", name="a__t")), json.loads(request(2, "tools/call", name="b__t"))]

    [answer] = fake.send(to_bytes(batch))

    assert [(each["id"], each["result"]["content"]) for each in answer] == [(1, []), (2, [1])]


def test_prefixes_are_names_that_every_client_takes() -> None:
    """Two names that become the same differ by a number."""
    assert prefixes_of(["my files", "my.files", "git"]) == ["my_files", "my_files_2", "git"]
