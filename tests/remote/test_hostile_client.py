"""The server against clients that are broken or mean, over real sockets."""

from __future__ import annotations

import json
import socket
from urllib.parse import urlsplit

import anyio
import pytest
from anyio.abc import SocketStream

from skillruntime.server import Limits
from tests.server.serving import (
    KEY,
    Served,
    invocation,
    read,
    serve_over_socket_from_memory,
)

pytestmark = pytest.mark.anyio
LIMITS = Limits(body_bytes=10_000, body_seconds=0.2)


async def connect(served: Served) -> SocketStream:
    """Return a raw connection to the server."""
    return await anyio.connect_tcp("127.0.0.1", urlsplit(served.base).port or 0)


async def until_closed(stream: SocketStream) -> bytes:
    """Return everything the server says until it hangs up."""
    said = b""
    with anyio.fail_after(300):
        try:
            while True:
                said += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return said


def post(length: int | str, more: str = "") -> bytes:
    """Return the head of an invocation."""
    return (
        "POST /skills/echo/invoke HTTP/1.1\r\n"
        "host: x\r\n"
        "content-type: application/json\r\n"
        f"content-length: {length}\r\n"
        f"{more}\r\n"
    ).encode()


async def test_a_slow_body_is_given_up() -> None:
    """A byte now and then holds nothing for long: 408, and the connection is closed."""
    async with (
        serve_over_socket_from_memory(limits=LIMITS) as served,
        await connect(served) as stream,
    ):
        await stream.send(post(1000) + b"{")
        said = await until_closed(stream)
        health = await served.ask("GET", "/health")

    assert b"408" in said.split(b"\r\n")[0] and b"REQUEST_TIMEOUT" in said
    assert health.status == 200


@pytest.mark.parametrize("declared", [20_000, 10**30])
async def test_an_oversize_body_is_refused_by_its_length(declared: int) -> None:
    """413 before a byte of it is read."""
    async with (
        serve_over_socket_from_memory(limits=LIMITS) as served,
        await connect(served) as stream,
    ):
        await stream.send(post(declared))
        said = await until_closed(stream)

    assert said.split(b"\r\n")[0].split()[1] in (b"413", b"400")


async def test_an_oversize_body_without_a_length_is_refused_while_it_comes() -> None:
    """Chunked bodies are counted."""
    async with (
        serve_over_socket_from_memory(limits=LIMITS) as served,
        await connect(served) as stream,
    ):
        head = post(0).replace(b"content-length: 0", b"transfer-encoding: chunked")
        await stream.send(head + b"2ee0\r\n" + b" " * 12_000 + b"\r\n")
        said = await until_closed(stream)

    assert b"413" in said.split(b"\r\n")[0]


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 100_000 + b"\r\n\r\n",
        b"POST /skills/echo/invoke HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
        (
            b"POST /skills/echo/invoke HTTP/1.1\r\nhost: x\r\ncontent-length:"
            b" 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
    ],
    ids=["tls", "two-hosts", "garbage", "long-header", "negative-length", "smuggling"],
)
async def test_bytes_that_are_not_http_harm_no_other_caller(nonsense: bytes) -> None:
    """The server refuses or drops them, and serves the next caller."""
    async with serve_over_socket_from_memory(limits=LIMITS) as served:
        async with await connect(served) as stream:
            await stream.send(nonsense)
            await stream.send_eof()
            await until_closed(stream)
        health = await served.ask("GET", "/health")

    assert health.status == 200
    assert served.skills.ran == []


async def test_a_client_that_hangs_up_in_its_body_begins_nothing() -> None:
    """Half a request is refused."""
    async with serve_over_socket_from_memory(limits=LIMITS) as served:
        async with await connect(served) as stream:
            await stream.send(post(1000) + b'{"caller"')
            raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
            raw.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00"
            )
        health = await served.ask("GET", "/health")

    assert health.status == 200
    assert served.skills.ran == []


async def test_a_client_that_hangs_up_after_its_request_loses_nothing() -> None:
    """The execution was accepted and continues; the same key finds it."""
    async with serve_over_socket_from_memory() as served:
        body = json.dumps(invocation("echo")).encode()
        async with await connect(served) as stream:
            await stream.send(post(len(body), "idempotency-key: k\r\n") + body)
            while not served.skills.ran:
                await anyio.lowlevel.checkpoint()
        again = await served.invoke("echo", idempotency_key="k", prefer="wait=30")

    assert read(again)["output"] == {"said": "hi"}
    assert served.skills.ran == ["hi"]


@pytest.mark.parametrize(
    "path",
    [
        "/executions/..%2f..%2fetc%2fpasswd",
        "/executions/%2e%2e",
        "/executions/" + "x" * 5000,
        "/executions/%00",
        "/executions/exec-%ff%fe",
        "/executions/' OR 1=1 --".replace(" ", "%20"),
        "/executions/%25%27%22%3Cscript%3E",
        "/skills/..%2f..%2fkeys.json",
        "/skills/%2e%2e/invoke",
        "/ui/executions/%3Cscript%3E",
        "/ui/skills/..%2f..",
    ],
)
async def test_path_traversal_in_ids_finds_nothing(path: str) -> None:
    """An id is only a key in a table: 404, and the response does not repeat it
    unescaped.
    """
    async with serve_over_socket_from_memory() as served:
        response = await served.ask("GET", path, key=KEY)

    assert response.status in (400, 404, 405)
    assert b"<script>" not in response.body
    assert b"root:" not in response.body


async def test_many_silent_connections_do_not_block_other_callers() -> None:
    """A caller is served while a hundred open connections send nothing."""
    async with serve_over_socket_from_memory() as served:
        streams = [await connect(served) for _ in range(100)]
        response = await served.invoke("echo", prefer="wait=30")
        for stream in streams:
            await stream.aclose()

    assert response.status == 200


async def test_guessing_keys_is_slow_and_teaches_nothing() -> None:
    """Every guess is answered alike, and soon not at all."""
    async with serve_over_socket_from_memory(
        limits=Limits(failed_logins_per_minute=5)
    ) as served:
        answers = [
            await served.invoke("locked", key=f"guess-{number}") for number in range(8)
        ]

    assert [answer.status for answer in answers] == [401] * 5 + [429] * 3
    assert len({answer.body for answer in answers[:5]}) == 1


async def test_a_caller_cannot_fill_the_server() -> None:
    """So many unfinished executions a caller, and no more."""
    async with serve_over_socket_from_memory(
        limits=Limits(unfinished_per_caller=3), capacity=1
    ) as served:
        answers = [(await served.invoke("slow", key=KEY)).status for _ in range(5)]
        other = await served.invoke("slow", key="key-of-bob")
        served.skills.gate.set()

    assert answers == [202, 202, 202, 429, 429]
    assert other.status == 202
