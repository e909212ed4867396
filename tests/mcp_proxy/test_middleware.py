"""The ASGI middleware around an application in memory: status, headers, bodies, and what callers share."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from skillruntime.adapters.mcp_proxy.access import guarded
from skillruntime.adapters.mcp_proxy.middleware import McpProxy
from tests.mcp_proxy.messages import DIGEST, ENVELOPE, call, to_bytes

JSON = [(b"content-type", b"application/json")]
MODERN = [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", b"tools/call"), (b"mcp-name", b"Digest")]
MARKED = {
    "name": "digest",
    "inputSchema": {
        "type": "object",
        "required": ["topic"],
        "properties": {"topic": {"type": "string", "x-mcp-header": "Topic"}, "n": {"type": "integer"}},
    },
}


class Server:
    """An application that lists *tools*, answers everything else with *answer*, and remembers what it was asked."""

    def __init__(
        self, *tools: Any, answer: Any = None, status: int = 200, headers: list[tuple[bytes, bytes]] = JSON
    ) -> None:
        self.tools = list(tools or (DIGEST,))
        self.answer, self.status, self.headers = answer, status, headers
        self.bodies: list[bytes] = []
        self.seen: list[dict[bytes, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        headers = dict(scope["headers"])
        self.bodies.append(body)
        self.seen.append(headers)
        message = json.loads(body) if body else {}
        status, headers_out = self.status, self.headers
        if isinstance(message, dict) and message.get("method") == "tools/list":
            answer, status, headers_out = {"result": {"tools": self.tools}}, 200, JSON
            data = to_bytes({"jsonrpc": "2.0", "id": message["id"], **answer})
        else:
            data = self.answer if isinstance(self.answer, bytes) else to_bytes(self.answer or {"result": {}, "id": 7})
        length = (b"content-length", str(len(data)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers_out, length]})
        half = len(data) // 2
        await send({"type": "http.response.body", "body": data[:half], "more_body": True})
        await send({"type": "http.response.body", "body": data[half:], "more_body": False})


def ask(
    app: Callable[..., Any],
    body: bytes = b"",
    headers: list[tuple[bytes, bytes]] | None = None,
    method: str = "POST",
    client: str = "10.0.0.1",
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Send one request to *app*; return the status, the headers and the body of the response."""
    got: list[Any] = []
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if not pending:
            await anyio.sleep_forever()
        return pending.pop()

    async def send(message: Any) -> None:
        got.append(message)

    async def main() -> None:
        with anyio.fail_after(30):
            scope = {"type": "http", "method": method, "path": "/mcp", "headers": headers or [], "client": (client, 1)}
            await app(scope, receive, send)

    anyio.run(main)
    start, *rest = got
    assert [each["type"] for each in rest] == ["http.response.body"] * len(rest)
    return start["status"], dict(start["headers"]), b"".join(each.get("body", b"") for each in rest)


def test_a_repaired_call_has_its_new_length() -> None:
    """The server reads the whole body and nothing more."""
    server = Server()

    ask(McpProxy(server), call('{"topic": "AI", "limit": "5"}').strip(), [(b"content-length", b"999")])

    assert server.seen[-1][b"content-length"] == str(len(server.bodies[-1])).encode()
    assert json.loads(server.bodies[-1])["params"]["arguments"] == {"topic": "AI", "limit": 5}


def test_a_repaired_stateless_call_has_its_new_headers() -> None:
    """The server compares `Mcp-Name` and `Mcp-Param-*` with the body; other headers stay."""
    server = Server(MARKED)
    headers = [*MODERN, (b"x-trace", b"1")]
    line = call('{"Topic": "\\u00e9", "n": "5"}', name="Digest", more=f', "_meta": {json.dumps(ENVELOPE)}').strip()

    ask(McpProxy(server), line, headers)

    sent = server.seen[-1]
    assert (sent[b"mcp-name"], sent[b"mcp-param-topic"]) == (b"digest", b"=?base64?w6k=?=")
    assert (sent[b"mcp-method"], sent[b"x-trace"]) == (b"tools/call", b"1")


@pytest.mark.parametrize("wrong", [(b"mcp-name", b"other"), (b"mcp-param-topic", b"other")])
def test_a_header_that_is_not_of_the_body_stays(wrong: tuple[bytes, bytes]) -> None:
    """The server rejects it, as it would without the proxy; a header that was right follows the repair."""
    server = Server(MARKED)
    right = {b"mcp-name": b"digest", b"mcp-param-topic": b"a", **dict(MODERN)}
    line = call('{"topic": "a", "n": "5"}', more=f', "_meta": {json.dumps(ENVELOPE)}').strip()

    ask(McpProxy(server), line, list({**right, b"mcp-name": b"digest", **dict([wrong])}.items()))

    sent = server.seen[-1]
    assert sent[wrong[0]] == b"other"
    assert json.loads(server.bodies[-1])["params"]["arguments"]["n"] == 5


def test_the_proxys_own_list_has_headers_of_its_own() -> None:
    """`Mcp-Method` says what it is, the caller's credentials go with it, and it names no tool."""
    server = Server(MARKED)
    line = call('{"topic": "a", "n": "5"}', name="Digest", more=f', "_meta": {json.dumps(ENVELOPE)}').strip()

    ask(McpProxy(server), line, [*MODERN, (b"authorization", b"Bearer a")])

    listed = server.seen[0]
    assert (listed[b"mcp-method"], listed[b"authorization"]) == (b"tools/list", b"Bearer a")
    assert b"mcp-name" not in listed


def test_a_valid_call_keeps_its_bytes_and_headers() -> None:
    """Only the accepted encoding is said to be plain, so that the answer can be read."""
    server = Server()
    headers = [*MODERN, (b"accept-encoding", b"gzip"), (b"content-length", b"5")]

    ask(McpProxy(server), call('{"topic" : "AI"}'), headers)

    assert server.bodies[-1] == call('{"topic" : "AI"}')
    assert server.seen[-1] == {**dict(headers), b"accept-encoding": b"identity"}


def test_a_refused_call_is_answered_with_status_200() -> None:
    """It is a result, and the server is not asked."""
    server = Server()

    status, headers, body = ask(McpProxy(server), call("{}"))

    assert (status, headers[b"content-type"]) == (200, b"application/json")
    assert json.loads(body)["result"]["isError"] is True
    assert [json.loads(each)["method"] for each in server.bodies] == ["tools/list"]


def test_an_error_that_becomes_a_result_has_status_200() -> None:
    """2026-07-28 sends -32602 with status 400."""
    error = {"jsonrpc": "2.0", "id": 7, "error": {"code": -32602, "message": "Invalid arguments for tool digest"}}
    server = Server(answer=error, status=400)

    status, headers, body = ask(McpProxy(server), call('{"topic": "AI"}'))

    assert status == 200 and headers[b"content-length"] == str(len(body)).encode()
    assert json.loads(body)["result"]["isError"] is True


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 429, 500, 503])
def test_other_statuses_pass_with_their_headers_and_bodies(status: int) -> None:
    """Also those that tell a client to log in, or to begin again."""
    headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer x"), (b"retry-after", b"3")]
    server = Server(answer=b"  no\n", status=status, headers=headers)

    got = ask(McpProxy(server), b'{"jsonrpc":"2.0","id":7,"method":"ping"}')

    assert got == (status, {**dict(headers), b"content-length": b"5"}, b"  no\n")


def test_an_event_stream_passes_event_by_event() -> None:
    """Ids, `retry`, comments and other messages keep their bytes; the result of the call gets its report."""
    stream = (
        b'id: 1\r\nretry: 50\r\ndata: \r\n\r\n: ping\n\ndata: {"method": "notifications/progress"}\n\n'
        b'id: 2\ndata: {"jsonrpc":"2.0","id":7,"result":{}}\n\n'
    )
    server = Server(answer=stream, headers=[(b"content-type", b"text/event-stream")])

    _, headers, body = ask(McpProxy(server), call('{"topic": "AI", "limit": "5"}'))

    start, _, last = body.rpartition(b"id: 2\n")
    assert start == stream[: len(start)] and b"content-length" not in headers
    assert b'"skillruntime/repairs":[{"path":"/limit"' in last and last.endswith(b"}}\n\n")


def test_a_get_stream_passes() -> None:
    """Server messages, and the replay after `Last-Event-ID`, come with the same bytes."""
    stream = b'id: 3\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'
    server = Server(answer=stream, headers=[(b"content-type", b"text/event-stream")])

    _, _, body = ask(McpProxy(server), b"", [(b"mcp-session-id", b"s"), (b"last-event-id", b"2")], "GET")

    assert body == stream
    assert server.seen[-1][b"last-event-id"] == b"2"


def test_a_list_change_on_the_get_stream_is_known_to_the_next_call() -> None:
    """Within one session a refusal asks for the tools again."""
    stream = b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'
    server = Server(answer=stream, headers=[(b"content-type", b"text/event-stream")])
    proxy = McpProxy(server)
    session = [(b"mcp-session-id", b"s")]
    ask(proxy, call("{}"), session)
    ask(proxy, call("{}"), session)
    assert len(server.bodies) == 1

    ask(proxy, b"", session, "GET")
    ask(proxy, call("{}"), session)

    assert [json.loads(each or b'{"method":"GET"}')["method"] for each in server.bodies[1:]] == ["GET", "tools/list"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([(b"authorization", b"Bearer a")], [(b"authorization", b"Bearer b")]),
        ([(b"x-api-key", b"a")], [(b"x-api-key", b"b")]),
        ([(b"mcp-session-id", b"s"), (b"cookie", b"a")], [(b"mcp-session-id", b"s"), (b"cookie", b"b")]),
    ],
)
def test_callers_share_nothing(first: list[Any], second: list[Any]) -> None:
    """Two callers may be shown different tools: each one's schemas are its own."""
    server = Server()
    proxy = McpProxy(server)
    ask(proxy, call("{}"), first)
    server.tools = [{"name": "digest", "inputSchema": {"type": "object"}}]

    status, _, _ = ask(proxy, call("{}"), second)

    assert status == 200 and server.bodies[-1] == call("{}")


def test_a_cancel_of_a_refused_call_is_accepted_and_not_forwarded() -> None:
    """Within a session the proxy knows that the server never saw the call."""
    server = Server()
    proxy = McpProxy(server)
    session = [(b"mcp-session-id", b"s")]
    ask(proxy, call("{}"), session)

    cancel = to_bytes({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})

    assert ask(proxy, cancel, session)[0] == 202
    assert len(server.bodies) == 1


def test_a_server_whose_list_fails_gets_calls_unchecked() -> None:
    """An HTTP error to the proxy's own request is not the client's answer."""

    async def refuses_lists(scope: Any, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        status = 403 if b"tools/list" in body else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})

    assert ask(McpProxy(refuses_lists), call("{}")) == (200, {}, call("{}"))


def test_refused_calls_of_a_batch_join_the_answer() -> None:
    """One array in, one array out (2025-03-26)."""
    server = Server(answer=b'[{"jsonrpc":"2.0","id":2,"result":{}}]')

    _, headers, body = ask(McpProxy(server), b"[" + call("{}").strip() + b',{"id":2,"method":"ping"}]')

    assert [each["id"] for each in json.loads(body)] == [2, 7]
    assert headers[b"content-length"] == str(len(body)).encode()


@pytest.mark.parametrize("kind", [b"application/json", b"text/event-stream"])
def test_a_compressed_answer_is_read(kind: bytes) -> None:
    """A server may compress although it was asked not to; a list in JSON passes with the same bytes."""
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [DIGEST]}}).encode()
    body = gzip.compress(answer if kind == b"application/json" else b"data: " + answer + b"\n\n")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", kind), (b"content-encoding", b"gzip"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body[:20], "more_body": True})
        await send({"type": "http.response.body", "body": body[20:]})

    proxy = McpProxy(app)
    _, headers, listed = ask(proxy, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', [(b"mcp-session-id", b"s")])
    _, _, refused = ask(proxy, call('{"topic": "AI", "limit": 11}'), [(b"mcp-session-id", b"s")])

    assert listed == (body if kind == b"application/json" else b"data: " + answer + b"\n\n")
    assert (b"content-encoding" in headers) == (kind == b"application/json")
    assert json.loads(refused)["result"]["isError"] is True


def test_a_call_is_checked_by_whatever_method_it_is_sent() -> None:
    """A server that takes PUT for POST would run it."""
    server = Server()

    status, _, body = ask(McpProxy(server), call('{"topic": "AI", "limit": 11}'), [], method="PUT")

    assert (status, json.loads(body)["result"]["isError"]) == (200, True)
    assert not any(b"tools/call" in each for each in server.bodies)


def test_what_is_not_an_application_is_refused_at_once() -> None:
    """The SDK's server object is not one; its method makes one."""
    with pytest.raises(TypeError, match=r"streamable_http_app\(\)"):
        McpProxy(object())  # type: ignore[arg-type]


def test_the_token_is_not_passed_on() -> None:
    """It opens the local port, and is not the server's business."""
    server = Server()
    headers = [(b"host", b"127.0.0.1:1"), (b"authorization", b"Bearer t")]

    assert ask(guarded(server, token="t"), b"{}", headers)[0] == 200
    assert b"authorization" not in server.seen[-1]
