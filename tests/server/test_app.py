"""The application on a socket, as RFC 9110 and 9112 have it: what a request line and
header lines may do to it.
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator

import anyio
import pytest

from skillruntime.server import bind
from tests.server.serving import KEY, Served, invocation, serve_over_socket_from_memory

pytestmark = pytest.mark.anyio


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """Return a service on a socket."""
    async with serve_over_socket_from_memory() as served:
        yield served


def test_a_bound_port_is_refused_until_the_server_listens() -> None:
    """A start that fails while the skills are checked must not accept a client and then
    cut it off.
    """
    listening = bind("127.0.0.1", 0)
    try:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(listening.getsockname(), timeout=300)
    finally:
        listening.close()


async def exchange(
    served: Served, *lines: str, body: bytes = b""
) -> tuple[int, dict[str, str], bytes]:
    """Send a request written out, and return the one answer that comes before the
    connection is closed.
    """
    host, port = served.base.removeprefix("http://").split(":")
    said = b""
    with anyio.fail_after(300):
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(
                "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")
                + body
            )
            try:
                while True:
                    said += await stream.receive()
            except anyio.EndOfStream:
                pass
    head, _, content = said.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value
        for name, _, value in (line.partition(": ") for line in rest)
    }
    return int(first.split()[1]), headers, content


async def post(served: Served, *lines: str) -> tuple[int, dict[str, str], bytes]:
    """Send an invocation of ``echo`` with more header lines."""
    body = json.dumps(invocation("echo")).encode()
    length = f"Content-Length: {len(body)}"
    path = "POST /skills/echo/invoke HTTP/1.1"
    return await exchange(
        served,
        path,
        "Host: x",
        "Content-Type: application/json",
        length,
        *lines,
        body=body,
    )


@pytest.mark.parametrize(
    "path", ["/skills/echo", "/.well-known/skill-sharing", "/health", "/nothing", "/ui"]
)
async def test_head_has_the_content_length_of_get(served: Served, path: str) -> None:
    """RFC 9110, 9.3.2 and 8.6: the same headers, and no content."""
    got = await exchange(served, f"GET {path} HTTP/1.1", "Host: x")
    head = await exchange(served, f"HEAD {path} HTTP/1.1", "Host: x")

    assert head[0] == got[0]
    assert head[1]["content-length"] == str(len(got[2]))
    assert head[2] == b""


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "DELETE", "PROPFIND"])
@pytest.mark.parametrize("path", ["/skills/echo", "/executions/exec-none/result"])
async def test_every_other_method_is_405_with_what_is_allowed(
    served: Served, method: str, path: str
) -> None:
    """RFC 9110, 15.5.6: ``Allow`` says what this address takes; the envelope is the
    protocol's.
    """
    status, headers, content = await exchange(
        served, f"{method} {path} HTTP/1.1", "Host: x"
    )

    assert (status, headers["allow"]) == (405, "GET, HEAD")
    assert json.loads(content)["error"]["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize(
    "path",
    [
        "/executions%2Fx%2Fresult",
        "/executions%2Fx/result",
        "//",
        "/executions//result",
        "*",
    ],
)
async def test_an_odd_path_is_nothing_here(served: Served, path: str) -> None:
    """Never a 500, and always the envelope."""
    status, _, content = await exchange(served, f"GET {path} HTTP/1.1", "Host: x")

    assert (status, json.loads(content)["error"]["code"]) == (404, "NOT_FOUND")


async def test_the_absolute_form_is_taken(served: Served) -> None:
    """RFC 9112, 3.2.2: a server must accept it."""
    status, _, content = await exchange(
        served, f"GET {served.base}/health HTTP/1.1", "Host: x"
    )

    assert (status, content) == (200, b'{"status":"ok"}')


@pytest.mark.parametrize("host", ["[::1", "[", "x/skills/hidden", "a b", "a?b"])
async def test_a_host_that_is_none_is_refused(served: Served, host: str) -> None:
    """RFC 9112, 3.2: 400; it never changes which address is meant."""
    status, _, content = await exchange(
        served, "GET /skills/echo HTTP/1.1", f"Host: {host}"
    )

    assert status == 400
    assert b"VALIDATION_ERROR" in content


async def test_a_length_beside_chunks_is_refused_and_the_connection_closed(
    served: Served,
) -> None:
    """RFC 9112, 6.1: what follows could be a request that somebody smuggles."""
    smuggled = b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    lines = (
        "Host: x",
        "Content-Type: application/json",
        "Content-Length: 6",
        "Transfer-Encoding: chunked",
    )
    host, port = served.base.removeprefix("http://").split(":")
    said = b""
    with anyio.fail_after(300):
        async with await anyio.connect_tcp(host, int(port)) as stream:
            head = "\r\n".join(["POST /skills/echo/invoke HTTP/1.1", *lines, "", ""])
            await stream.send(head.encode() + smuggled)
            try:
                while True:
                    said += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass

    assert said.startswith(b"HTTP/1.1 400")
    assert b"200 OK" not in said


async def test_header_lines_of_one_name_are_one_list(served: Served) -> None:
    """RFC 9110, 5.3: no header line is dropped, so two keys are an invalid key, and two
    preferences are two.
    """
    keys = await post(served, "Idempotency-Key: a", "Idempotency-Key: b")
    credentials = await post(served, "X-API-Key: wrong", f"X-API-Key: {KEY}")
    preferences = await post(served, "Prefer: wait=5", "Prefer: respond-async")

    assert (keys[0], credentials[0]) == (400, 401)
    assert preferences[1]["preference-applied"] == "wait=5"
