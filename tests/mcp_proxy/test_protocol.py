"""What MCP 2025-11-25 and 2026-07-28 ask of an HTTP endpoint and of stdio, checked on raw sockets and pipes."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
pytest.importorskip("uvicorn")
from tests.mcp_proxy.test_http import PROXY, TOKEN, free_port, listening
from tests.mcp_proxy.test_stdio import ask, running

PUPPET = [sys.executable, str(Path(__file__).parent / "puppet_server.py")]
INITIALIZE = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
META = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}'
Answer = tuple[int, dict[str, str], bytes]


def http(port: int, text: str | bytes, *, method: str = "POST", path: str = "/mcp", **headers: str) -> Answer:
    """Send one request on a connection of its own; return the status, the headers and the whole body."""
    body = text.encode() if isinstance(text, str) else text
    sent = {
        "host": f"127.0.0.1:{port}",
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        "connection": "close",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value)
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(head.encode() + b"\r\n" + body)
        with connection.makefile("rb") as file:
            status = int(file.readline().split()[1])
            found = {}
            while (line := file.readline().strip()) != b"":
                name, _, value = line.decode().partition(":")
                found[name.lower()] = value.strip()
            body = file.read()
    if found.get("transfer-encoding") == "chunked":
        body = unchunked(body)
    return status, found, body


def unchunked(body: bytes) -> bytes:
    """Return a chunked body as a whole; it ends with an empty chunk (RFC 9112, 7.1)."""
    whole, rest = b"", body
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return whole
        whole, rest = whole + rest[: int(size, 16)], rest[int(size, 16) + 2 :]


def messages(answer: Answer) -> list[Any]:
    """Return the messages of a response, be it one JSON body or events."""
    _, headers, body = answer
    if headers.get("content-type") == "application/json":
        return [json.loads(body)]
    return [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Yield the port of the proxy before the puppet."""
    found = free_port()
    with listening([*PROXY, "--http", f"127.0.0.1:{found}", "--", *PUPPET], found):
        yield found


@pytest.fixture
def session(port: int) -> str:
    """Return a session that has been initialized."""
    begun = http(port, INITIALIZE)[1]["mcp-session-id"]
    assert http(port, INITIALIZED, mcp_session_id=begun)[0] == 202
    return begun


def request(method: str, params: str = "{}", number: str = "1") -> str:
    """Return a request of the handshake era."""
    return f'{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{params}}}'


def modern(port: int, method: str, more: str = "", number: str = "1", **headers: str) -> Answer:
    """Send a request of 2026-07-28 with the headers that it needs."""
    text = request(method, f"{{{META}}}{more}}}", number)
    sent = {"mcp_protocol_version": "2026-07-28", "mcp_method": method, **headers}
    return http(port, text, **sent)


def test_a_session_has_an_id_of_visible_ascii(port: int) -> None:
    """2025-11-25, "Session Management": 0x21 to 0x7E, and secure."""
    status, headers, body = http(port, INITIALIZE)

    assert status == 200 and headers["content-type"] == "application/json"
    assert json.loads(body)["result"]["protocolVersion"] == "2025-11-25"
    assert len(headers["mcp-session-id"]) >= 32
    assert all(0x21 <= ord(each) <= 0x7E for each in headers["mcp-session-id"])


@pytest.mark.parametrize("text", [INITIALIZED, '{"jsonrpc":"2.0","id":"q","result":{}}', f"[{INITIALIZED}]"])
def test_notifications_and_responses_are_accepted_without_a_body(port: int, session: str, text: str) -> None:
    """2025-11-25, "Sending Messages to the Server": 202 with no body."""
    status, _, body = http(port, text, mcp_session_id=session)

    assert (status, body) == (202, b"")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", -32700),
        ("{", -32700),
        ("[1]", -32700),
        ('"text"', -32700),
        ('{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{bad}}}', -32700),
        ("[]", -32600),
    ],
)
def test_what_is_not_a_message_gets_400(port: int, session: str, text: str, code: int) -> None:
    """JSON-RPC 2.0, 5.1: with an error that has no id."""
    status, _, body = http(port, text, mcp_session_id=session)

    assert status == 400
    assert (json.loads(body)["id"], json.loads(body)["error"]["code"]) == (None, code)


@pytest.mark.parametrize("text", [request("ping"), "[]", f"[{request('ping')}]", '{"id":1,"result":{}}'])
def test_without_a_session_there_is_only_initialize(port: int, text: str) -> None:
    """2025-11-25, "Session Management": 400."""
    assert http(port, text)[0] == 400


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_an_unknown_session_gets_404(port: int, method: str) -> None:
    """2025-11-25, "Session Management": upon which a client begins a new one."""
    assert http(port, request("ping"), method=method, mcp_session_id="unknown")[0] == 404


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE"])
def test_other_methods_get_405(port: int, method: str) -> None:
    """2026-07-28, "Earlier Streamable HTTP Revisions"; RFC 9110, 15.5.6: with the methods that there are."""
    status, headers, _ = http(port, "", method=method)

    assert (status, headers["allow"]) == (405, "GET, POST, DELETE")


def test_an_ended_session_gets_404(port: int, session: str) -> None:
    """2025-11-25, "Session Management": after DELETE."""
    assert http(port, "", method="DELETE", mcp_session_id=session)[0] == 200
    assert http(port, request("ping"), mcp_session_id=session)[0] == 404


@pytest.mark.parametrize(
    ("version", "status"), [("2025-11-25", 200), ("2025-03-26", 200), ("1900-01-01", 400), ("junk", 400)]
)
def test_a_session_knows_its_revision(port: int, session: str, version: str, status: int) -> None:
    """2025-11-25, "Protocol Version Header": an unsupported one gets 400."""
    assert http(port, request("ping"), mcp_session_id=session, mcp_protocol_version=version)[0] == status


@pytest.mark.parametrize(
    "origin", ["https://attacker.example", "null", "http://127.0.0.1.attacker.example", "http://[::1"]
)
def test_a_foreign_origin_gets_403(port: int, origin: str) -> None:
    """2025-11-25 and 2026-07-28, "Security Warning"."""
    assert http(port, INITIALIZE, origin=origin)[0] == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer é"}, 401),
        ({"host": "attacker.example"}, 421),
        ({"host": "[::1"}, 421),
    ],
)
def test_the_port_is_guarded(port: int, headers: dict[str, str], status: int) -> None:
    """A host that is not an address at all is foreign too."""
    assert http(port, INITIALIZE, **headers)[0] == status


def test_another_path_gets_404(port: int) -> None:
    """There is one endpoint."""
    assert http(port, INITIALIZE, path="/other")[0] == 404


def test_a_websocket_is_refused(port: int, session: str) -> None:
    """It is not a transport of MCP: the request is answered as the GET that it is."""
    upgrade = {"upgrade": "websocket", "connection": "Upgrade, close", "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ=="}

    assert http(port, "", method="GET", sec_websocket_version="13", **upgrade)[0] == 405


def test_messages_before_the_answer_make_it_a_stream(port: int, session: str) -> None:
    """2025-11-25: the answer is the last message of the stream, which ends."""
    answer = http(port, request("progress", '{"_meta":{"progressToken":"p"}}'), mcp_session_id=session)

    assert answer[1]["content-type"] == "text/event-stream" and answer[1]["x-accel-buffering"] == "no"
    assert [each.get("method", each.get("id")) for each in messages(answer)] == ["notifications/progress", 1]
    assert messages(answer)[0]["params"]["progressToken"] == "p"


def test_what_no_server_should_write_stops_nothing(port: int, session: str) -> None:
    """Lines that are not messages are left out, and messages of any form reach the client."""
    answers = [http(port, request("odd"), mcp_session_id=session), modern(port, "odd")]

    last = [each[2].decode().split("data: ")[-1] for each in answers]
    assert [json.loads(each)["id"] for each in last] == [1, 1]
    assert modern(port, "echo")[0] == 200


def test_an_error_without_an_id_ends_the_request(port: int, session: str) -> None:
    """The server could not read the id; it keeps its bytes, and nothing stays open."""
    for status, _, body in (http(port, request("null-id"), mcp_session_id=session), modern(port, "null-id")):
        assert (status, body) == (400, b'{"jsonrpc":"2.0","id":null, "error":{"code":-32700,"message":"Parse error"}}')


@pytest.mark.parametrize("method", ["end", "end-late"])
def test_every_open_request_of_a_server_that_ends_gets_an_error(port: int, session: str, method: str) -> None:
    """Also where its stream has begun, and in the stateless revision, where the next request starts a new one."""
    params = '{"_meta":{"progressToken":"p"}}'
    batch = f"[{request(method, params, '5')},{request('ping', '{}', '6')}]"
    answers = [
        http(port, request(method, params, '"a"'), mcp_session_id=session),
        modern(port, method, ',"a":1'),
        http(port, batch, mcp_session_id=http(port, INITIALIZE)[1]["mcp-session-id"]),
    ]

    ids = [messages(each)[-1] for each in answers[:2]]
    assert [(each["id"], each["error"]["code"]) for each in ids] == [("a", -32000), (1, -32000)]
    assert b'"id":5' in answers[2][2] and b'"id":6' in answers[2][2]
    assert modern(port, "echo")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp_protocol_version": ""},
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_method": ""},
        {"mcp_method": "other"},
        {"mcp_method": "TOOLS/CALL"},
        {"mcp_name": ""},
        {"mcp_name": "other"},
        {"mcp_name": "=?base64?b3RoZXI=?="},
    ],
)
def test_headers_that_are_not_those_of_the_body_are_rejected(port: int, headers: dict[str, str]) -> None:
    """2026-07-28, "Server Validation": 400 and -32020."""
    sent = {"mcp_name": "t", **headers}

    status, _, body = modern(port, "tools/call", ',"name":"t","arguments":{"n":1}', **sent)

    assert (status, json.loads(body)["error"]["code"], json.loads(body)["id"]) == (400, -32020, 1)


@pytest.mark.parametrize("name", ["t", "=?base64?dA==?="])
def test_a_stateless_call_passes(port: int, name: str) -> None:
    """2026-07-28, "Value Encoding": a name may come in base64 without need."""
    status, _, body = modern(port, "tools/call", ',"name":"t","arguments":{"n":1}', mcp_name=name)

    assert status == 200 and '"arguments":{"n":1}' in json.loads(body)["result"]["line"]


def test_an_unknown_method_gets_404_with_its_error(port: int, session: str) -> None:
    """2026-07-28, "Protocol Version Header"; the handshake era has no status for it."""
    status, _, body = modern(port, "unknown")

    assert (status, json.loads(body)["error"]["code"]) == (404, -32601)
    assert http(port, request("unknown"), mcp_session_id=session)[0] == 200


@pytest.mark.parametrize("number", ["1", '"1"', '"é"', "-5", '"a\\u0062"', "1.5", "12345678901234567890"])
def test_ids_keep_their_bytes(port: int, session: str, number: str) -> None:
    """Through a process that stateless clients share, too."""
    expected = f'"id": {number}' if "\\" not in number and "é" not in number else None

    for _, _, body in (http(port, request("echo", "{}", number), mcp_session_id=session),
                       modern(port, "echo", "", number)):  # fmt: skip
        assert json.loads(body)["id"] == json.loads(number)
        assert expected is None or expected.encode() in body or f'"id":{number}'.encode() in body
    assert f'"id": {number},'.encode() in modern(port, "echo", "", number)[2]


def test_a_refused_call_has_the_form_of_its_revision(port: int, session: str) -> None:
    """A tool execution error with status 200; since 2026-07-28 it says that it is complete."""
    params = '{"name":"t","arguments":{"n":"x"}}'
    old = http(port, request("tools/call", params), mcp_session_id=session)
    new = modern(port, "tools/call", f",{params[1:-1]}", mcp_name="t")

    assert [(each[0], json.loads(each[2])["result"]["isError"]) for each in (old, new)] == [(200, True), (200, True)]
    assert [json.loads(each[2])["result"].get("resultType") for each in (old, new)] == [None, "complete"]


def test_a_batch_of_all_kinds_is_answered_as_one(port: int, session: str) -> None:
    """2025-03-26: the valid calls of it are run, the refused ones answered, each id once."""
    calls = [
        request("tools/call", '{"name":"t","arguments":{"n":1}}', "1"),
        request("tools/call", '{"name":"t","arguments":{"n":"x"}}', "2"),
        request("tools/call", '{"name":"t","arguments":{"n":"5"}}', "3"),
        INITIALIZED,
    ]

    answer = http(port, f"[{','.join(calls)}]", mcp_session_id=session)

    flat = [each for one in messages(answer) for each in (one if isinstance(one, list) else [one])]
    assert sorted(each["id"] for each in flat) == [1, 2, 3]
    assert [each["result"].get("isError") for each in sorted(flat, key=lambda each: each["id"])] == [None, True, None]


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "{",
        '{"jsonrpc":"2.0","id":1,"method":"odd"}',
        '{"jsonrpc":"2.0","id":1,"method":"null-id"}',
        '  {"id" : 1.0, "method":"echo"}  ',
    ],
)
def test_stdio_answers_as_without_the_proxy(line: str) -> None:
    """The same lines, for messages and for what is not one."""
    data = f"{line}\n".encode()
    outputs = []
    for command in (PUPPET, [*PROXY, "--", *PUPPET]):
        with running(*command, stderr=-3) as process:
            outputs.append(process.communicate(data, timeout=60)[0])

    assert outputs[0] == outputs[1]


def test_the_check_of_results_refuses_a_wrong_one() -> None:
    """The tool has run: the model learns that its result is not what the tool promises."""
    with running(*PROXY, "--check-output", "refuse", "--", *PUPPET) as process:
        ask(process, f"{INITIALIZE}\n{INITIALIZED}\n".encode())
        answer = json.loads(ask(process, request("tools/call", '{"name":"kept"}', "9").encode() + b"\n"))

    assert answer["result"]["isError"] is True
    assert answer["result"]["content"][0]["text"].startswith("kept ran, but its result does not match its outputSchema")
