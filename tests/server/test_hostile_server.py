"""The client against servers that are broken or mean, over real sockets: it ends with
an answer or a named error.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from skillruntime.remote import (
    AddressGuard,
    ApiKey,
    RemoteClient,
    RemoteError,
    SkillDescriptor,
    UnreachableError,
    fetch_descriptor,
    from_environment,
    variable_for,
)
from tests.remote.invoking import descriptor as plain_descriptor
from tests.remote.invoking import shown
from tests.remote.parts import (
    AuthConfig,
    AuthType,
    HttpTransport,
    NoCredentials,
    RetryPolicy,
    WireRequest,
    WireResponse,
    is_inside,
)

pytestmark = pytest.mark.anyio
OPEN = AddressGuard(allow_all=True)
KEY = "sk-very-secret"


@dataclass
class Mean:
    """A server that does to each connection what its script says; the last entry goes
    for all further ones.
    """

    script: list[Callable[[SocketStream, bytes], Awaitable[None]]]
    port: int = 0
    received: list[bytes] = field(default_factory=list)

    async def serve(self, stream: SocketStream) -> None:
        """Read one request, and do to it what is its turn."""
        async with stream:
            request = b""
            while b"\r\n\r\n" not in request:
                request += await stream.receive()
            head, _, body = request.partition(b"\r\n\r\n")
            length = next(
                (
                    int(line[15:])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                ),
                0,
            )
            while len(body) < length:
                body += await stream.receive()
            turn = min(len(self.received), len(self.script) - 1)
            self.received.append(head + b"\r\n\r\n" + body)
            await self.script[turn](stream, head)

    def descriptor(
        self, *, auth: AuthConfig | None = None, **extensions: Any
    ) -> SkillDescriptor:
        """Return a descriptor that names this server."""
        base = plain_descriptor(**extensions)
        endpoint = replace(
            base.endpoint,
            url=f"http://127.0.0.1:{self.port}/invoke",
            status_url=f"http://127.0.0.1:{self.port}/status/{{execution_id}}",
            result_url=f"http://127.0.0.1:{self.port}/result/{{execution_id}}",
            retry=RetryPolicy(3, 5),
        )
        return replace(base, endpoint=endpoint, auth=auth or AuthConfig())

    def client(self, *, key: str | None = None, **extensions: Any) -> RemoteClient:
        """Return a client of this server."""
        auth = AuthConfig(AuthType.API_KEY) if key else None
        credentials = ApiKey(key) if key else NoCredentials
        described = self.descriptor(auth=auth, poll_interval_ms=5, **extensions)
        return RemoteClient(
            described, credentials, guard=OPEN, jitter=lambda: 0.0, patience=60.0
        )


@asynccontextmanager
async def mean(
    *script: Callable[[SocketStream, bytes], Awaitable[None]],
) -> AsyncIterator[Mean]:
    """Run a mean server on a loopback port."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server = Mean(list(script), listener.extra(SocketAttribute.local_port))
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


def say(
    document: Any, status: int = 200, **headers: str
) -> Callable[[SocketStream, bytes], Awaitable[None]]:
    """Answer with JSON."""
    return say_bytes(
        json.dumps(document).encode(),
        status,
        content_type="application/json",
        **headers,
    )


def say_bytes(
    body: bytes, status: int = 200, **headers: str
) -> Callable[[SocketStream, bytes], Awaitable[None]]:
    """Answer with these bytes."""

    async def act(stream: SocketStream, head: bytes) -> None:
        named = "".join(
            f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()
        )
        text = (
            f"HTTP/1.1 {status} So\r\n"
            f"content-length: {len(body)}\r\n"
            "connection: close\r\n"
            f"{named}\r\n"
        )
        await stream.send(text.encode() + body)

    return act


async def drop(stream: SocketStream, head: bytes) -> None:
    """Hang up without a word."""


async def reset(stream: SocketStream, head: bytes) -> None:
    """Reset the connection."""
    import socket
    import struct

    raw = stream.extra(SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def half(stream: SocketStream, head: bytes) -> None:
    """Begin an answer and hang up in the middle."""
    await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")


async def endless(stream: SocketStream, head: bytes) -> None:
    """Never stop answering."""
    await stream.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    with anyio.move_on_after(300):
        try:
            while True:
                await stream.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass


async def silent(stream: SocketStream, head: bytes) -> None:
    """Take the request and say nothing."""
    with anyio.move_on_after(300):
        try:
            while True:
                await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            pass


async def slow(stream: SocketStream, head: bytes) -> None:
    """Answer one byte at a time, forever."""
    try:
        await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        while True:
            await stream.send(b" ")
            await anyio.sleep(0.01)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass


ACCEPTED = say(shown("accepted"), 202)
DONE = say(shown("completed", output={"translated_text": "hallo"}))


@pytest.mark.parametrize("fault", [drop, reset, half, say({}, 502), say({}, 504)])
async def test_with_a_key_a_lost_202_is_sent_again(fault: Any) -> None:
    """Drops, resets and gateways' errors: the same key and body, and in the end one
    answer.
    """
    async with mean(fault, fault, ACCEPTED, fault, DONE) as server:
        execution = await server.client(idempotency_key=True).invoke(
            {"text": "hi"}, key="once"
        )

    posts = [request for request in server.received if request.startswith(b"POST")]
    assert execution.output == {"translated_text": "hallo"}
    assert len(posts) == 3 and len(set(posts)) == 1
    assert b"idempotency-key: once" in posts[0].lower()


@pytest.mark.parametrize("fault", [drop, reset, half])
async def test_without_a_key_it_is_sent_once(fault: Any) -> None:
    """The skill may or may not have run: the error says so."""
    async with mean(fault, DONE) as server:
        with pytest.raises(RemoteError) as raised:
            await server.client().invoke({"text": "hi"})

    assert raised.value.may_have_run and not raised.value.recoverable
    assert len(server.received) == 1


async def test_a_server_that_is_not_there_is_said_so() -> None:
    """Refused connections are tried as often as the descriptor says, and nothing has
    run.
    """
    async with mean(DONE) as server:
        client = server.client()
    with pytest.raises(RemoteError, match="cannot be reached") as raised:
        await client.invoke({"text": "hi"})

    assert not raised.value.may_have_run and raised.value.recoverable


@pytest.mark.parametrize("fault", [say({}, 429), say({}, 503), say({}, 500), drop])
async def test_polling_goes_on_through_faults(fault: Any) -> None:
    """What lives on the server is not lost by a poll that fails."""
    async with mean(ACCEPTED, fault, fault, DONE) as server:
        execution = await server.client().invoke({"text": "hi"})

    assert execution.output == {"translated_text": "hallo"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            say_bytes(b"<html>Sign in</html>", 200, content_type="text/html"),
            "text/html.*not JSON",
        ),
        (say_bytes(b"", 200), "not JSON"),
        (say_bytes(b"\x80\x81", 200), "not JSON"),
        (say({"status": "running"}, 200), "/execution_id"),
        (say({"execution_id": "x", "status": "sleeping"}, 200), "sleeping"),
        (
            say_bytes(
                b"Moved", 302, location="http://169.254.169.254/latest/meta-data"
            ),
            "redirect",
        ),
        (say_bytes(b"Moved", 307, location="http://localhost:1/elsewhere"), "redirect"),
    ],
)
async def test_wrong_answers_are_named(answer: Any, said: str) -> None:
    """Wrong JSON, an unknown status, a missing id, HTML, a redirect inward: what was
    wrong is said.
    """
    async with mean(answer) as server:
        with pytest.raises(RemoteError, match=said):
            await server.client().invoke({"text": "hi"})

    assert len(server.received) == 1


async def test_the_key_goes_to_its_own_origin_alone() -> None:
    """Not along a redirect, and not to a status_url elsewhere: a descriptor may name
    any address.
    """
    async with mean(say_bytes(b"", 200)) as thief, mean(ACCEPTED) as server:
        away = f"http://localhost:{thief.port}/steal"
        moved = say_bytes(b"", 307, location=away)
        server.script[:] = [moved]
        with pytest.raises(RemoteError):
            await server.client(key=KEY).invoke({"text": "hi"})
        server.script[:] = [ACCEPTED]
        client = server.client(key=KEY)
        endpoint = replace(client.descriptor.endpoint, status_url=away)
        elsewhere = replace(
            client, descriptor=replace(client.descriptor, endpoint=endpoint)
        )
        with pytest.raises(RemoteError):
            await elsewhere.invoke({"text": "hi"})

    assert all(KEY.encode() in request for request in server.received)
    assert thief.received and all(
        KEY.encode() not in request for request in thief.received
    )


async def test_a_redirect_within_the_origin_is_followed() -> None:
    """307 keeps the method and the body."""
    async with mean(say_bytes(b"", 307, location="/moved"), DONE) as server:
        execution = await server.client(key=KEY).invoke({"text": "hi"})

    assert execution.output == {"translated_text": "hallo"}
    assert server.received[1].startswith(b"POST /moved")
    assert (
        server.received[0].partition(b"\r\n\r\n")[2]
        == server.received[1].partition(b"\r\n\r\n")[2]
    )


@pytest.mark.parametrize(
    "location", ["http://[::1/", "http://h:99999/", "//[", "/" + "a" * 70_000]
)
async def test_a_redirect_to_an_invalid_url_is_reported(location: str) -> None:
    """The error is the library's own, not an exception of the URL parser."""
    async with mean(say({}, 307, location=location)) as server:
        with pytest.raises(RemoteError, match=r"redirect|not a URL"):
            await server.client().invoke({"text": "hi"})


async def test_cookies_are_not_kept() -> None:
    """One address may be that of many names, and what a server wants remembered is in
    the protocol's documents.
    """
    async with mean(
        say(shown("accepted"), 202, set_cookie="a=1; Path=/"),
        say(shown("completed", output=1)),
    ) as server:
        await server.client().invoke({"text": "hi"})

    assert not any(b"cookie" in request.lower() for request in server.received)


async def test_redirects_in_a_circle_end() -> None:
    """So many, and no more."""
    async with mean(say_bytes(b"", 307, location="/invoke")) as server:
        with pytest.raises(RemoteError, match="redirect"):
            await server.client().invoke({"text": "hi"})

    assert len(server.received) == 4


async def test_an_endless_answer_is_cut_off() -> None:
    """A cap on size, for answers without a length too."""
    async with (
        mean(endless) as server,
        HttpTransport(OPEN, max_response=1_000_000) as transport,
    ):
        with pytest.raises(UnreachableError, match="longer than"):
            await transport(WireRequest("GET", f"http://127.0.0.1:{server.port}/"))


@pytest.mark.parametrize("fault", [silent, slow])
async def test_an_answer_that_does_not_come_is_given_up(fault: Any) -> None:
    """A cap on time for the whole exchange: a byte now and then does not prolong it."""
    async with mean(fault) as server, HttpTransport(OPEN, timeout=0.15) as transport:
        with (
            anyio.fail_after(300),
            pytest.raises(UnreachableError, match=r"did not arrive within 0\.15 s"),
        ):
            await transport(WireRequest("GET", f"http://127.0.0.1:{server.port}/"))


@pytest.mark.parametrize("begins", [True, False])
async def test_a_server_that_answers_byte_by_byte_holds_no_call_longer_than_the_patience(
    begins: bool,
) -> None:
    """The call has no timeout, and the time of each answer counts: at the POST, and at
    the polls of what was begun.
    """
    script = [say(shown("running"), 202), slow] if begins else [slow]
    async with mean(*script) as server, HttpTransport(OPEN, timeout=0.25) as transport:
        patient = replace(
            server.client(idempotency_key=True), transport=transport, patience=1.0
        )
        with (
            anyio.fail_after(300),
            pytest.raises(
                RemoteError, match=r"did not arrive within 0\.25 s"
            ) as raised,
        ):
            await patient.invoke({"text": "hi"})

    assert raised.value.may_have_run
    assert len(server.received) <= 6


async def test_what_a_server_says_of_time_does_not_bind_us() -> None:
    """The caller's deadline ends it, for any value of ``Retry-After``."""
    async with mean(
        say(shown("accepted"), 202), say(shown("running"), 200, retry_after="3600")
    ) as server:
        with anyio.move_on_after(0.2) as scope:
            await server.client().invoke({"text": "hi"})

    assert scope.cancelled_caught


async def test_a_server_that_never_ends_is_given_up_after_the_timeout_that_was_asked_of_it() -> (
    None
):
    """With the execution's id, by which it can be followed again; it may have run."""

    async def transport(
        request: WireRequest,
    ) -> WireResponse:  # without a socket the POST cannot outlast the timeout
        document = shown("accepted" if request.method == "POST" else "running")
        return WireResponse(
            200, {"content-type": "application/json"}, json.dumps(document).encode()
        )

    async with mean() as server:
        impatient = replace(server.client(), transport=transport, grace=0.05)
        with pytest.raises(RemoteError, match=r"within 0\.05 s") as raised:
            await impatient.invoke({"text": "hi"}, timeout=0.05)

    assert raised.value.may_have_run
    assert raised.value.document.details == {"execution_id": "exec-789-xyz"}


# The guard


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
        ),
        *(
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fe80::1%eth0",
        ),
        *(
            "fc00::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "::ffff:169.254.169.254",
        ),
    ],
)
def test_inside_addresses_are_known_in_every_dress(address: str) -> None:
    """Private, link-local, metadata, shared, multicast, documentation, and IPv4 inside
    IPv6.
    """
    assert is_inside(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8"]
)
def test_outside_addresses_are_let_through(address: str) -> None:
    """The internet."""
    assert not is_inside(address)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://127.0.0.1/",
            "http://localhost/",
            "http://[::1]/",
            "http://2130706433/",
            "http://0x7f.1/",
        ),
        *(
            "http://169.254.169.254/latest/meta-data",
            "file:///etc/passwd",
            "gopher://a.example/",
            "http:///x",
        ),
    ],
)
async def test_nothing_is_sent_inward(url: str) -> None:
    """By address, by name, by odd spellings of an address, by another scheme."""
    async with HttpTransport() as transport:
        with pytest.raises(UnreachableError) as raised:
            await transport(WireRequest("GET", url))

    assert not raised.value.was_sent


async def test_one_inside_address_among_several_is_enough_to_refuse() -> None:
    """A name that answers with both would let chance decide."""

    async def both(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.1"]

    with pytest.raises(UnreachableError, match="private network"):
        await AddressGuard(resolve=both).address_of("https://api.example.com/")


async def test_the_address_that_was_checked_is_the_one_connected_to() -> None:
    """A name server that answers otherwise the second time (rebinding) is asked once;
    the Host header is the name's.
    """
    asked = []

    async def once(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    guard = AddressGuard(allowed=frozenset({"api.example.com"}), resolve=once)
    async with mean(DONE) as server, HttpTransport(guard) as transport:
        await transport(WireRequest("GET", f"http://api.example.com:{server.port}/x"))

    assert asked == ["api.example.com"]
    assert f"host: api.example.com:{server.port}".encode() in server.received[0].lower()


async def test_allowed_hosts_are_allowed_by_name_and_port() -> None:
    """``host`` or ``host:port``; nothing else inside."""
    guard = AddressGuard(allowed=frozenset({"127.0.0.1:8400"}))

    assert await guard.address_of("http://127.0.0.1:8400/x") == "127.0.0.1"
    with pytest.raises(UnreachableError):
        await guard.address_of("http://127.0.0.1:8401/x")


# Credentials


def test_a_key_is_found_by_the_host_it_is_for() -> None:
    """A dash and a dot are distinct: api-example.com never gets the key of
    api.example.com.
    """
    assert variable_for("https://api.example.com/x") != variable_for(
        "https://api-example.com/x"
    )
    assert variable_for("https://api.example.com/x") != variable_for(
        "https://api.example.com:8443/x"
    )


async def test_a_missing_key_says_what_to_set() -> None:
    """Before anything is sent."""
    described = replace(plain_descriptor(), auth=AuthConfig(AuthType.API_KEY))

    with pytest.raises(RemoteError, match="set SKILLRUNTIME_API_KEY_API_EXAMPLE_COM"):
        await from_environment(described, {})(described.auth, False)


def test_keys_do_not_show() -> None:
    """Not in a representation of what holds them."""
    client = RemoteClient(plain_descriptor(), ApiKey(KEY))

    assert KEY not in repr(client)


async def test_a_descriptor_is_fetched_or_said_why_not() -> None:
    """By URL, under the same guard and caps."""
    described = plain_descriptor()
    async with mean(say(described.to_dict())) as server:
        fetched = await fetch_descriptor(
            f"http://127.0.0.1:{server.port}/d", guard=OPEN
        )
    async with mean(say({}, 404)) as server:
        with pytest.raises(RemoteError, match="answered 404"):
            await fetch_descriptor(f"http://127.0.0.1:{server.port}/d", guard=OPEN)

    assert fetched == described


@pytest.mark.parametrize(
    ("status", "document", "code"),
    [
        (
            401,
            {"error": {"code": "AUTH_REQUIRED", "message": "Who are you?"}},
            "AUTH_REQUIRED",
        ),
        (403, {}, "PERMISSION_DENIED"),
        (410, {}, "SKILL_NOT_FOUND"),
        (302, {}, "ENDPOINT_UNREACHABLE"),
        (503, {}, "ENDPOINT_UNREACHABLE"),
    ],
)
async def test_why_a_descriptor_cannot_be_fetched_is_reported(
    status: int, document: Any, code: str
) -> None:
    """A server that is away is not a skill that does not exist."""
    async with mean(say(document, status)) as server:
        with pytest.raises(RemoteError) as raised:
            await fetch_descriptor(f"http://127.0.0.1:{server.port}/d", guard=OPEN)

    assert raised.value.document.code == code


async def test_a_private_descriptor_is_fetched_with_a_key() -> None:
    """Section 7: private is visible to authenticated callers alone."""
    async with mean(say(plain_descriptor().to_dict())) as server:
        await fetch_descriptor(
            f"http://127.0.0.1:{server.port}/d", credentials=ApiKey(KEY), guard=OPEN
        )

    assert f"x-api-key: {KEY}".encode() in server.received[0]
