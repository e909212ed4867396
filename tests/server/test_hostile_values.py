"""Every operation takes whatever stands in its query and its headers, and never answers
with an error of the server.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from skillruntime.server import Limits, create_app
from tests import needs
from tests.server.serving import OPERATOR_KEY, serve_in_memory

needs.package("starlette")
pytestmark = pytest.mark.anyio

OPERATIONS = [
    ("GET", "/.well-known/skill-sharing"),
    ("GET", "/skills/echo"),
    ("POST", "/skills/echo/invoke"),
    ("GET", "/executions"),
    ("GET", "/executions/{id}"),
    ("DELETE", "/executions/{id}"),
    ("GET", "/executions/{id}/result"),
    ("POST", "/executions/{id}/complete"),
    ("POST", "/executions/{id}/release"),
    ("POST", "/executions/{id}/leave"),
    ("GET", "/webhook-secret"),
    ("GET", "/openapi.json"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/metrics"),
    ("GET", "/ui"),
    ("GET", "/ui/skills/echo"),
    ("POST", "/ui/skills/echo"),
    ("GET", "/ui/executions"),
    ("GET", "/ui/executions/{id}"),
    ("POST", "/ui/executions/{id}/leave"),
    ("POST", "/ui/key"),
]
QUERY = ["limit", "cursor", "all", "interrupted", "tag", "unknown"]
HEADERS = [
    "accept",
    "authorization",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "origin",
    "prefer",
    "referer",
    "sec-fetch-site",
    "skill-extensions",
    "skill-protocol",
    "traceparent",
    "transfer-encoding",
    "x-api-key",
    "x-forwarded-for",
]
SEEDS = [
    b"",
    b" ",
    b"0",
    b"1",
    b"-1",
    b"1" * 5000,
    b"0" * 5000 + b"1",
    b"1e999",
    b"NaN",
    b"\xc2\xb2",  # a digit that int() refuses
    b"\xd9\xa3",  # one that it takes
    b"\xff\xfe",
    b"\xed\xa0\x80",  # half of a surrogate pair
    b"\x00",
    b"\x7f",
    b"%00",
    b"%ff",
    b"%zz",
    b"%ed%a0%80",
    b"a=1&" * 101,
    b"&" * 1000,
    b";" * 200,
    b"," * 2000,
    b"=" * 50,
    b'"',
    b"*",
    b"W/",
    b"http://[",
    b"http://[::1",
    b"[::1]:99999",
    b"//:@",
    b"../../etc/passwd",
    b"{execution_id}",
    b"wait=",
    b"wait=" + b"9" * 400,
    b"wait=\xc2\xb2",
    b"Bearer",
    b"Bearer a.b.c",
    b"Basic Og==",
    b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-00",
    b"1.0.0-\x00",
    b"99999999999999999999.0.0",
    b"999999999999.9~x",
    b"0.0~%00",
    b"1.1~\xff",
    b"application/json; charset=\xff",
    b"skillruntime-key=%00%ff",
    b"chunked",
    b"100-continue",
    b"x" * 20_000,
]
VALUES = 200


def hostile_values(number: int) -> Iterator[bytes]:
    """Yield the seeds, then mixtures of them, always the same."""
    chance = random.Random(7)
    yield from SEEDS[:number]
    for _ in range(number - len(SEEDS)):
        first, second = chance.choices(SEEDS, k=2)
        cut = chance.randrange(len(first) + 1)
        yield first[:cut] + second


async def ask(app: Any, method: str, path: str, query: bytes, **header: bytes) -> int:
    """Send a request as a server of ASGI does; return the status."""
    headers = {
        b"host": b"127.0.0.1",
        b"x-api-key": OPERATOR_KEY.encode(),
        b"content-type": b"application/json",
    }
    for name, value in header.items():
        headers[name.replace("_", "-").encode()] = value
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": list(headers.items()),
        "client": ("203.0.113.9", 5),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
    }
    statuses = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, receive, send)
    return int(statuses[0])


@pytest.mark.parametrize(
    "number", [VALUES // 10, pytest.param(VALUES, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("method", "address"), OPERATIONS)
async def test_no_value_of_a_query_or_header_is_an_error_of_the_server(
    method: str, address: str, number: int
) -> None:
    """Each name with each value: refused or ignored, and never 5xx."""
    limits = Limits(requests_per_minute=1e9, failed_logins_per_minute=1e9)
    values = list(hostile_values(VALUES))
    # Of each tenth one, so that the quick test has values of every kind.
    tried = values[:: VALUES // number]
    failed = []
    async with serve_in_memory(limits=limits) as served:
        begun = await served.invoke("echo", key=OPERATOR_KEY, prefer="wait=60")
        assert begun.status == 200
        execution_id = begun.headers["location"].rpartition("/")[2]
        path = address.format(id=execution_id)
        app = create_app(served.service)
        for value in tried:
            for name in QUERY:
                status = await ask(app, method, path, name.encode() + b"=" + value)
                if status >= 500:
                    failed.append((name, value, status))
            for name in HEADERS:
                header = {name.replace("-", "_"): value}
                status = await ask(app, method, path, b"", **header)
                if status >= 500:
                    failed.append((name, value, status))

    assert len(tried) == number
    assert failed == []


@pytest.mark.parametrize("path", ["/.well-known/skill-sharing", "/executions"])
async def test_a_query_of_more_fields_than_a_hundred_is_refused(path: str) -> None:
    """With 400, also from a caller without credentials."""
    async with serve_in_memory() as served:
        app = create_app(served.service)
        status = await ask(app, "GET", path, b"&".join([b"tag=a"] * 101))

    assert status == 400
