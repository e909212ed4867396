"""Calls in forms that a server may read and a proxy may miss, and answers that must not be lost."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.adapters.mcp_proxy.middleware import McpProxy
from skillruntime.adapters.mcp_proxy.session import SERVER
from skillruntime.adapters.mcp_proxy.stdio_app import StdioApp
from tests.mcp_proxy.messages import call, known, to_bytes, to_client, to_server
from tests.mcp_proxy.test_middleware import Server, ask
from tests.mcp_proxy.test_stdio import DEADLINE, HERE, INITIALIZED, raw, running

REFUSED = call('{"topic": "AI", "limit": 11}')
VALID = call('{"topic":  "AI"}')


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_call_is_found_in_every_encoding_that_parsers_detect(encoding: str) -> None:
    """Python's `json.loads` reads a byte order mark, UTF-16 and UTF-32."""
    refused, valid = (line.decode().encode(encoding) for line in (REFUSED, VALID))

    [answer] = to_client(known().from_client(refused))

    assert answer["result"]["isError"] is True
    assert known().from_client(valid) == [(SERVER, valid)]


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
        b"\0\0\0\0tools/call",
        b"\xff\xfe",
        b"\0[1]",
        b'[1\0,"tools/call"]',
        b'{"a\0": "tools/call"}',
    ],
)
def test_what_only_looks_like_another_encoding_passes(text: bytes) -> None:
    """It keeps its bytes, as everything that is not JSON."""
    assert known().from_client(text) == [(SERVER, text)]


@pytest.mark.parametrize(
    "params", ['{"name": "digest", "arguments": {"limit": 11}}, "params": {}', '{"name": "digest", "name": 5}']
)
def test_a_repeated_key_is_refused_whatever_its_last_value_is(params: str) -> None:
    """A parser that takes the first of two values reads a call here."""
    line = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()

    sends = known().from_client(line)

    assert to_server(sends) == [] and "comes twice" in to_client(sends)[0]["result"]["content"][0]["text"]


@pytest.mark.parametrize("request_id", ["true", "[1]", '{"a": 1}'])
def test_a_refused_call_with_an_unusual_id_is_answered(request_id: str) -> None:
    """The id of the answer is the one that the client wrote."""
    [answer] = to_client(known().from_client(call('{"limit": 11}', id=request_id)))

    assert answer["id"] == json.loads(request_id) and answer["result"]["isError"] is True


def test_the_refusals_of_a_batch_are_sent_when_its_other_requests_are_cancelled() -> None:
    """The server answers nothing then, so that no array of its own carries them."""
    session = known()
    sends = session.from_client(b"[" + call('{"topic": "AI"}', id="1") + b"," + call("{}", id="2") + b"]")
    cancel = to_bytes({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})

    after = session.from_client(cancel)

    assert to_client(sends) == []
    assert after[0] == (SERVER, cancel)
    assert [each["id"] for each in to_client(after)[0]] == [2]


@pytest.mark.parametrize(("coding", "compress"), [(b"gzip", gzip.compress), (b"deflate", zlib.compress)])
def test_a_compressed_call_is_checked(coding: bytes, compress: Callable[[bytes], bytes]) -> None:
    """Refused, or forwarded as it was sent; a repaired one is forwarded plain."""
    headers = [(b"content-encoding", coding)]
    server = Server()
    proxy = McpProxy(server)

    _, _, body = ask(proxy, compress(REFUSED), headers)
    ask(proxy, compress(call('{"topic": "AI", "limit": "5"}')), headers)

    assert json.loads(body)["result"]["isError"] is True
    assert [json.loads(each).get("method") for each in server.bodies].count("tools/call") == 1
    assert json.loads(server.bodies[-1])["params"]["arguments"]["limit"] == 5
    assert b"content-encoding" not in server.seen[-1]


@pytest.mark.parametrize(("coding", "body"), [(b"br", REFUSED), (b"gzip", b"not gzip"), (b"gzip, br", b"")])
def test_a_body_that_cannot_be_decompressed_is_not_forwarded(coding: bytes, body: bytes) -> None:
    """415 names the codings that can be read (RFC 9110, 15.5.16)."""
    server = Server()

    status, headers, _ = ask(McpProxy(server), body, [(b"content-encoding", coding)])

    assert (status, headers[b"accept-encoding"], server.bodies) == (415, b"gzip, deflate", [])


def test_a_last_message_without_a_line_break_is_not_joined_with_the_next(tmp_path: Path) -> None:
    """The proxy may still send calls that waited, after the client's input has ended."""
    waiting = b'{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":"5"}}}\n'
    last = b'{"id":2,"method":"ping"}'

    with running(*raw(tmp_path / "record")) as process:
        output, _ = process.communicate(INITIALIZED + waiting + last, timeout=DEADLINE)

    assert sorted(str(json.loads(line)["id"]) for line in output.splitlines()) == ["1", "2"]
    lines = (tmp_path / "record").read_bytes().splitlines()
    assert last in lines and waiting.replace(b'"5"', b"5").strip() in lines


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_server_on_stdio_gets_a_plain_line(tmp_path: Path, coding: str) -> None:
    """A compressed body, or one with a byte order mark, is a line of UTF-8 there."""
    message = b'{"jsonrpc":"2.0","id":1,"method":"initialize"}'
    body = gzip.compress(message) if coding == "gzip" else b"\xef\xbb\xbf" + message
    got: list[Any] = []

    async def receive() -> Any:
        if got:
            await anyio.sleep_forever()
        got.append(None)
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        got.append(message)

    async def main() -> None:
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": [(b"content-encoding", coding.encode())]}
        with anyio.fail_after(DEADLINE):
            async with StdioApp([sys.executable, str(HERE / "raw_server.py"), str(tmp_path / "record")]) as app:
                await McpProxy(app)(scope, receive, send)

    anyio.run(main)

    assert got[1]["status"] == 200 and json.loads(got[2]["body"])["id"] == 1
    assert (tmp_path / "record").read_bytes() == message + b"\n"
