"""Black-box checks of the protocol, as an independent checker makes them: raw bytes
over a socket, nothing imported.
"""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx2
import pytest

from tests.server.serving import (
    KEY,
    OPERATOR_KEY,
    OTHER_KEY,
    Served,
    Serving,
    invocation,
    read,
    serve_over_socket_from_memory,
)
from tests.server.test_security import talk

pytestmark = pytest.mark.anyio
VALID = json.dumps(invocation("echo"))


async def exchange(served: Served, head: str, body: bytes = b"") -> tuple[int, bytes]:
    """Send one request of these bytes; return the status of the first response and all
    that came back.
    """
    port = int(next(served.bases).rpartition(":")[2])
    answer = await talk(
        port, head.replace("\n", "\r\n").encode("latin-1") + b"\r\n" + body
    )
    return int(answer[9:12]), answer


def is_envelope(answer: bytes) -> bool:
    """Whether the last response in *answer* is the envelope of section 9."""
    error = json.loads(answer.rpartition(b"\r\n\r\n")[2])["error"]
    return isinstance(error["code"], str) and isinstance(error["message"], str)


def repeated_key(place: str) -> bytes:
    """An invocation with a name twice in one object."""
    return VALID.replace(place, f"{place}, {place}", 1).encode()


async def test_every_address_refuses_every_other_method_and_names_its_own(
    on_sockets: Serving,
) -> None:
    """RFC 9110, 15.5.6: 405 with ``Allow``; OPTIONS is a method that is not served."""
    paths = {
        "/.well-known/skill-sharing": "GET, HEAD",
        "/skills/echo": "GET, HEAD",
        "/skills/echo/invoke": "POST",
        "/executions": "GET, HEAD",
        "/executions/x": "GET, DELETE, HEAD",
        "/executions/x/result": "GET, HEAD",
        "/executions/x/complete": "POST",
        "/executions/x/release": "POST",
        "/executions/x/leave": "POST",
        "/openapi.json": "GET, HEAD",
        "/health": "GET, HEAD",
        "/metrics": "GET, HEAD",
    }
    wrong = []
    async with on_sockets() as served:
        for path, allowed in paths.items():
            for method in {
                "GET",
                "POST",
                "PUT",
                "PATCH",
                "DELETE",
                "OPTIONS",
                "TRACE",
                "FOO",
            } - {*allowed.split(", ")}:
                status, answer = await exchange(
                    served, f"{method} {path} HTTP/1.1\nhost: x\nconnection: close\n"
                )
                if (
                    status,
                    f"allow: {allowed}\r\n".encode() in answer,
                    is_envelope(answer),
                ) != (405, True, True):
                    wrong.append((method, path, answer))

    assert wrong == []


async def test_a_request_for_another_state_is_refused(on_sockets: Serving) -> None:
    """RFC 9110, 13.1.1: ``If-Match`` with an old tag is 412, and cancels nothing; a
    weak tag never matches.
    """
    found = {}
    async with (
        on_sockets() as served,
        httpx2.AsyncClient(base_url=next(served.bases), trust_env=False) as client,
    ):
        accepted = (
            await client.post("/skills/slow/invoke", json=invocation("slow"))
        ).json()
        path = f"/executions/{accepted['execution_id']}"
        # The skill reports its progress once, as it begins; from then on nothing
        # changes until it is cancelled.
        with anyio.fail_after(300):
            while "progress" not in (shown := await client.get(path)).json():
                await anyio.sleep(0.01)
        tag = shown.headers["etag"]
        for method, stated in (
            ("GET", '"old"'),
            ("GET", f"W/{tag}"),
            ("DELETE", '"old", "older"'),
            ("GET", f'"old", {tag}'),
            ("DELETE", tag),
        ):
            answer = await client.request(method, path, headers={"if-match": stated})
            found[method, stated.replace(tag, "TAG")] = (
                answer.status_code,
                answer.json().get("status"),
            )

    assert found == {
        ("GET", '"old"'): (412, None),
        ("GET", "W/TAG"): (412, None),
        ("DELETE", '"old", "older"'): (412, None),
        ("GET", '"old", TAG'): (200, "running"),
        ("DELETE", "TAG"): (200, "failed"),
    }


async def test_head_is_get_without_its_content(on_sockets: Serving) -> None:
    """RFC 9110, 9.3.2: the same status and fields."""
    compared = {}
    async with on_sockets() as served:
        for path in (
            "/skills/echo",
            "/.well-known/skill-sharing",
            "/openapi.json",
            "/health",
            "/ui",
            "/none",
        ):
            got = await exchange(
                served, f"GET {path} HTTP/1.1\nhost: x\nconnection: close\n"
            )
            head = await exchange(
                served, f"HEAD {path} HTTP/1.1\nhost: x\nconnection: close\n"
            )
            fields = [
                {
                    line
                    for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n")
                    if not line.startswith(b"date")
                }
                for _, answer in (got, head)
            ]
            compared[path] = fields[0] == fields[1] and head[1].endswith(b"\r\n\r\n")

    assert all(compared.values()), compared


NOT_JSON = [
    b"",
    b"null",
    b"[]",
    b'"x"',
    VALID[:-1].encode(),
    VALID.encode() + b"x",
    VALID.encode() * 2,
    VALID.replace('"hi"', "NaN").encode(),
    VALID.replace('"hi"', "1e999").encode(),
    VALID.replace('"hi"', '"\\ud800"').encode(),
    VALID.replace('"hi"', "[" * 100_000 + "]" * 100_000).encode(),
    VALID.replace('"hi"', "9" * 5000).encode(),
    VALID.replace('"', "'").encode(),
    VALID.replace("hi", "h\ni").encode(),
    VALID.encode("utf-16"),
    VALID.replace("hi", "hé").encode("latin-1"),
    repeated_key('"skill_id": "echo"'),
    repeated_key('"text": "hi"'),
    repeated_key('"id": "t"'),
]


async def test_what_is_not_one_unambiguous_json_value_is_refused(
    on_sockets: Serving,
) -> None:
    """RFC 8259 and, for names that stand twice, RFC 7493: 400 with VALIDATION_ERROR,
    and nothing is begun.
    """
    taken = []
    async with on_sockets() as served:
        head = (
            "POST /skills/echo/invoke HTTP/1.1\n"
            "host: x\n"
            "connection: close\n"
            "content-type: application/json\n"
        )
        for body in NOT_JSON:
            status, answer = await exchange(
                served, f"{head}content-length: {len(body)}\n", body
            )
            if (status, b'"VALIDATION_ERROR"' in answer, is_envelope(answer)) != (
                400,
                True,
                True,
            ):
                taken.append((body, answer))

    assert taken == []
    assert served.skills.ran == []


BAD_HEADS: list[tuple[str, list[int]]] = [
    ("GET /health HTTP/1.1\n", [400]),  # RFC 9112, 3.2: a Host is required
    ("GET /health HTTP/1.1\nhost: a\nhost: b\n", [400]),
    ("GET /health HTTP/1.1\nhost: a b\n", [400]),
    ("GET /health HTTP/1.1\nhost: user@a\n", [400]),
    ("GET /health HTTP/1.1\nhost: a:1:2\n", [400]),
    ("GET  /health HTTP/1.1\nhost: x\n", [400]),
    ("GET /health\n", [400]),
    ("GET /health HTTP/1.1\nhost: x\nx y: z\n", [400]),
    ("GET /health HTTP/1.1\nhost: x\nx: a\0b\n", [400]),
    ("GET /health HTTP/1.1\nhost: x\nx: " + "a" * 100_000 + "\n", [431]),
    (
        "GET /health HTTP/1.1\nhost: x\n" + "".join(f"x{n}: y\n" for n in range(5000)),
        [431],
    ),
    ("GET /" + "a" * 70_000 + " HTTP/1.1\nhost: x\n", [431]),
    ("POST /skills/echo/invoke HTTP/1.1\nhost: x\ncontent-length: -1\n", [400]),
    ("POST /skills/echo/invoke HTTP/1.1\nhost: x\ncontent-length: 5, 6\n", [400]),
    (
        "POST /skills/echo/invoke HTTP/1.1\n"
        "host: x\n"
        "content-length: 99999999999999999999\n",
        [400, 413],
    ),
    (
        "POST /skills/echo/invoke HTTP/1.1\n"
        "host: x\n"
        "transfer-encoding: gzip, chunked\n",
        [400, 501],
    ),
    (
        "POST /skills/echo/invoke HTTP/1.1\n"
        "host: x\n"
        "content-length: 5\n"
        "transfer-encoding: chunked\n",
        [400],
    ),
]


async def test_a_head_that_is_malformed_or_huge_is_refused_with_the_envelope(
    on_sockets: Serving,
) -> None:
    """RFC 9112 and RFC 6585, 5: whatever arrives in one piece or in many, and the
    connection is closed.
    """
    wrong = []
    async with on_sockets() as served:
        for head, statuses in BAD_HEADS:
            marked = head if "POST" not in head else f"{head}expect: 100-continue\n"
            status, answer = await exchange(served, f"{marked}connection: close\n")
            if status not in statuses or not is_envelope(answer):
                wrong.append((head[:80], answer))

    assert wrong == []


async def test_a_large_head_in_many_pieces_is_refused_too(on_sockets: Serving) -> None:
    """The parser's own limit."""
    async with on_sockets() as served:
        port = int(next(served.bases).rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"GET /health HTTP/1.1\r\nhost: x\r\n")
            answer = b""
            with anyio.fail_after(300):
                async with anyio.create_task_group() as tasks:

                    async def send() -> None:
                        try:
                            while True:
                                await stream.send(b"x: " + b"a" * 1000 + b"\r\n")
                                await anyio.sleep(0.001)
                        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                            pass

                    tasks.start_soon(send)
                    try:
                        while b"}}" not in answer:
                            answer += await stream.receive()
                    except (anyio.EndOfStream, anyio.BrokenResourceError):
                        pass
                    tasks.cancel_scope.cancel()

    assert answer.startswith(b"HTTP/1.1 431 ")
    assert is_envelope(answer)


async def test_pipelined_requests_are_answered_in_their_order(
    on_sockets: Serving,
) -> None:
    """RFC 9112, 9.3.2; a GET with a body does not disturb what follows."""
    async with on_sockets() as served:
        first = b"GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello"
        second = b"GET /none HTTP/1.1\r\nhost: x\r\n\r\n"
        third = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        answer = await talk(
            int(next(served.bases).rpartition(":")[2]), first + second + third
        )

    statuses = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"404", b"200"]


async def test_an_absolute_address_names_the_host_that_counts() -> None:
    """RFC 9112, 3.2.2: the header is ignored, so that it cannot cover a foreign
    name.
    """
    async with serve_over_socket_from_memory(hosts=frozenset({"localhost"})) as served:
        statuses = [
            (
                await exchange(
                    served, f"GET {target} HTTP/1.1\nhost: {host}\nconnection: close\n"
                )
            )[0]
            for target, host in (
                ("/health", "localhost"),
                ("/health", "LOCALHOST.:8400"),
                ("/health", "evil.test"),
                ("http://evil.test/health", "localhost"),
                ("http://localhost/health", "evil.test"),
            )
        ]

    assert statuses == [200, 200, 400, 400, 200]


async def test_the_same_key_is_the_same_request_whatever_its_trace_and_the_order_of_its_names(
    on_sockets: Serving,
) -> None:
    """A client that repeats a request may trace it newly; another input or caller is
    another request.
    """
    async with on_sockets() as served:

        async def send(
            document: dict[str, Any], key: str | None = KEY
        ) -> tuple[int, str]:
            answer = await served.ask(
                "POST", "/skills/echo/invoke", document, key=key, idempotency_key="once"
            )
            return answer.status, read(answer).get("execution_id", "")

        first = await send(invocation("echo", trace_id="t-1"))
        again = await send(dict(reversed(invocation("echo", trace_id="t-2").items())))
        other_input = await send(invocation("echo", "ho"))
        other_caller = await send(invocation("echo"), OTHER_KEY)

    assert first[1] == again[1]
    assert other_input[0] == 422
    assert other_caller[0] in (200, 202) and other_caller[1] != first[1]


async def test_a_key_may_go_into_the_header_that_a_descriptor_names() -> None:
    """4.4: ``auth.header``; for the invocation and for what follows it. Two different
    keys are not one caller.
    """
    from dataclasses import replace

    from skillruntime.server import KeyRing, SkillService
    from tests.remote.parts import AuthConfig, AuthType
    from tests.server.serving import KEYS, serve_in_memory

    async with serve_in_memory() as served:
        locked = served.service.skills["locked"]
        auth = AuthConfig(AuthType.API_KEY, header="X-My-Key")
        skill = replace(locked, descriptor=replace(locked.descriptor, auth=auth))
        service = SkillService(
            [skill], served.service.executions, authenticate=KeyRing(KEYS)
        )
        own = Served(service, served.skills, service.handle)
        called = await own.invoke("locked", x_my_key=KEY)
        seen = await own.ask(
            "GET", f"/executions/{read(called)['execution_id']}", x_my_key=KEY
        )
        as_usual = await own.invoke("locked", key=KEY)
        both = await own.invoke("locked", key=KEY, x_my_key=OTHER_KEY)
        challenge = (await own.invoke("locked")).headers["www-authenticate"]

    assert [each.status for each in (called, seen, as_usual, both)] == [
        202,
        200,
        202,
        401,
    ]
    assert challenge == 'ApiKey header="X-My-Key"'


async def test_a_key_that_is_not_a_string_is_refused_without_being_quoted(
    on_sockets: Serving,
) -> None:
    """6.3: it must not be taken for a call without credentials."""
    document = invocation("echo")
    document["caller"]["credentials"] = {"api_key": 12345678}
    async with on_sockets() as served:
        answer = await served.ask("POST", "/skills/echo/invoke", document)

    assert answer.status == 400
    assert (
        read(answer)["error"]["details"]["violations"][0]["field"]
        == "/caller/credentials/api_key"
    )
    assert b"12345678" not in answer.body


async def test_a_revoked_key_is_401_and_not_a_lost_execution(
    on_sockets: Serving,
) -> None:
    """A client that polls with a key that was revoked must not take its execution for
    lost.
    """
    async with on_sockets() as served:
        begun = read(await served.invoke("echo", key=KEY))
        answers = [
            await served.ask(
                method, f"/executions/{begun['execution_id']}{path}", key="revoked"
            )
            for method, path in (("GET", ""), ("GET", "/result"), ("DELETE", ""))
        ]

    assert [answer.status for answer in answers] == [401] * 3


async def test_of_cancel_and_complete_at_once_one_wins(on_sockets: Serving) -> None:
    """A task ends once: the other is answered 409, or sees the end that was first."""
    outcomes = []
    async with on_sockets() as served:
        for number in range(10):
            begun = read(await served.invoke("chore", f"n{number}", key=KEY))
            path = f"/executions/{begun['execution_id']}"
            statuses: dict[str, int] = {}

            async def complete(
                path: str = path, statuses: dict[str, int] = statuses
            ) -> None:
                answer = await served.ask(
                    "POST",
                    f"{path}/complete",
                    {"output": {"done": 1}},
                    key=OPERATOR_KEY,
                )
                statuses["complete"] = answer.status

            async def cancel(
                path: str = path, statuses: dict[str, int] = statuses
            ) -> None:
                statuses["cancel"] = (await served.ask("DELETE", path, key=KEY)).status

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(*((complete,) if number % 2 else (cancel,)))
                tasks.start_soon(*((cancel,) if number % 2 else (complete,)))
            last = read(
                await served.ask("GET", path, key=KEY, skill_extensions="cancelled")
            )["status"]
            outcomes.append((statuses["complete"], statuses["cancel"], last))

    assert {*outcomes} <= {(200, 200, "completed"), (409, 200, "cancelled")}


async def test_a_task_that_expires_says_that_it_was_not_completed(
    on_sockets: Serving,
) -> None:
    """It did not wait for a free place; nothing was done, so it may be sent again."""
    async with on_sockets(task_wait=0.05) as served:
        begun = await served.invoke("chore", key=KEY)
        ended = read(
            await served.ask(
                "GET",
                f"/executions/{read(begun)['execution_id']}",
                key=KEY,
                prefer="wait=30",
            )
        )

    assert ended["status"] == "timeout"
    assert ended["error"]["message"] == "The task was not completed within 0.05 s"
    assert ended["error"]["details"] == {"started": False}


@pytest.mark.parametrize(
    ("proxies", "peer"), [((), "127.0.0.1"), (("127.0.0.1",), "198.51.100.7")]
)
async def test_a_forwarded_address_is_believed_from_named_proxies_alone(
    proxies: tuple[str, ...], peer: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The rates of anonymous callers are counted by address: a caller must not be able
    to choose its own.
    """
    caplog.set_level("INFO", "skillruntime.access")
    async with serve_over_socket_from_memory(trusted_proxies=proxies) as served:
        await served.ask("GET", "/skills/echo", x_forwarded_for="198.51.100.7")

    assert json.loads(caplog.messages[-1])["peer"] == peer


async def test_a_refused_invocation_is_logged_with_its_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every log line of a request carries the caller's trace id."""
    caplog.set_level("INFO", "skillruntime.access")
    async with serve_over_socket_from_memory() as served:
        refused = invocation("echo", trace_id="trace-9")
        refused["inputs"] = {}
        await served.ask("POST", "/skills/echo/invoke", refused)
        await served.ask(
            "POST", "/skills/locked/invoke", invocation("locked", trace_id="trace-10")
        )

    assert [json.loads(line)["trace_id"] for line in caplog.messages] == [
        "trace-9",
        "trace-10",
    ]
