"""Requests that only an attacker or a broken client sends, as raw bytes over a socket:
the server answers each below 500 or closes the connection, logs no error, and goes on.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import anyio
import pytest

from skillruntime.server import Limits
from tests import needs
from tests.server.serving import OPERATOR_KEY, Serving, invocation

protocol = needs.package("skillruntime.server.http.protocol")
pytestmark = pytest.mark.anyio

LIMITS = Limits(
    invocations_per_minute=1e9,
    requests_per_minute=1e9,
    failed_logins_per_minute=1e9,
    unfinished_per_caller=10**9,
    body_seconds=0.3,
)
KEY = f"X-API-Key: {OPERATOR_KEY}".encode()
BODY = json.dumps(invocation("echo")).encode()
INVOKE = "/skills/echo/invoke"


def head(method: bytes, target: bytes, *lines: bytes, version: bytes = b"1.1") -> bytes:
    """Return the head of a request, with a host, the operator's key and *lines*."""
    first = method + b" " + target + b" HTTP/" + version
    return b"\r\n".join([first, b"Host: 127.0.0.1", KEY, *lines, b"", b""])


def get(target: bytes, *lines: bytes) -> bytes:
    """Return a GET request."""
    return head(b"GET", target, *lines)


def post(body: bytes, *lines: bytes, target: str = INVOKE) -> bytes:
    """Return a POST request of JSON."""
    length = b"Content-Length: " + str(len(body)).encode()
    kind = b"Content-Type: application/json"
    return head(b"POST", target.encode(), kind, length, *lines) + body


def chunked(body: bytes, *lines: bytes) -> bytes:
    """Return an invocation whose chunks are *body*."""
    coding = b"Transfer-Encoding: chunked"
    kind = b"Content-Type: application/json"
    return head(b"POST", INVOKE.encode(), kind, coding, *lines) + body


def chunk(body: bytes) -> bytes:
    """Return one chunk."""
    return f"{len(body):x}".encode() + b"\r\n" + body + b"\r\n"


LAST = b"0\r\n\r\n"
LINES = {
    "version 1.0": head(b"GET", b"/health", version=b"1.0"),
    "version 1.0 without a host": b"GET /health HTTP/1.0\r\n\r\n",
    "version 0.9": b"GET /health\r\n\r\n",
    "version 2.0": head(b"GET", b"/health", version=b"2.0"),
    "version 1.99": head(b"GET", b"/health", version=b"1.99"),
    "version of letters": head(b"GET", b"/health", version=b"x.y"),
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64 + b"\r\n\r\n",
    "NUL alone": b"\0" * 100 + b"\r\n\r\n",
    "empty lines first": b"\r\n\r\n\r\n" + get(b"/health"),
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": get(b"/health", b"Host: 127.0.0.1"),
    "method in lower case": head(b"get", b"/health"),
    "method of 5,000 letters": head(b"G" * 5000, b"/health"),
    "method with NUL": head(b"G\0T", b"/health"),
    "method of marks": head(b"!#$%&'*+-.^_`|~", b"/health"),
    "TRACE": head(b"TRACE", b"/health"),
    "CONNECT": head(b"CONNECT", b"example.org:443"),
    "OPTIONS of all": head(b"OPTIONS", b"*"),
    "GET of all": head(b"GET", b"*"),
    "empty target": head(b"GET", b""),
    "target of NUL": head(b"GET", b"/\0"),
    "target of bytes": head(b"GET", b"/\xff\xfe"),
    "target with a space": head(b"GET", b"/health /ready"),
    "target with a tab": head(b"GET", b"/health\t"),
    "target without a slash": head(b"GET", b"health"),
    "target of 30,000": head(b"GET", b"/" + b"a" * 30_000),
    "target of 200,000": head(b"GET", b"/" + b"a" * 200_000),
    "query of 30,000": head(b"GET", b"/executions?cursor=" + b"a" * 30_000),
    "query of 100 fields": head(b"GET", b"/executions?" + b"limit=1&" * 100),
    "query without names": head(b"GET", b"/executions?=&=&&&==&;"),
    "two question marks": head(b"GET", b"/executions?limit=1?limit=2"),
    "a fragment": head(b"GET", b"/executions#limit=1"),
    "back slashes": head(b"GET", b"\\executions\\..\\health"),
    "many slashes": head(b"GET", b"//executions///"),
    "points": head(b"GET", b"/executions/../../../etc/passwd"),
    "escaped points": head(b"GET", b"/executions/%2e%2e/%2e%2e/etc/passwd"),
    "parameters": head(b"GET", b"/executions;v=1/x;y"),
}
ABSOLUTE = [
    b"http://127.0.0.1/health",
    b"HTTP://127.0.0.1/health",
    b"https://127.0.0.1:443/health",
    b"http://127.0.0.1",
    b"http://127.0.0.1?limit=1",
    b"http://127.0.0.1:99999/health",
    b"http://127.0.0.1:x/health",
    b"http://[::1]/health",
    b"http://[::1/health",
    b"http://[/health",
    b"http:///health",
    b"http://user:password@127.0.0.1/health",
    b"http://\xff/health",
    b"http://xn--/health",
    b"http://" + b"a." * 5000 + b"/health",
    b"ftp://127.0.0.1/health",
    b"file:///etc/passwd",
    b"javascript:alert(1)",
    b"http:/health",
    b"://health",
]
HEADERS = {
    "length negative": b"Content-Length: -1",
    "length with a plus": b"Content-Length: +5",
    "length in hex": b"Content-Length: 0x5",
    "length of words": b"Content-Length: five",
    "length of a float": b"Content-Length: 5.0",
    "length empty": b"Content-Length:",
    "lengths in a list": b"Content-Length: 5, 5",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 5",
    "two other lengths": b"Content-Length: 5\r\nContent-Length: 6",
    "length of 30 digits": b"Content-Length: " + b"9" * 30,
    "length in other digits": "Content-Length: ٥".encode(),
    "length beside chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    "coding unknown": b"Transfer-Encoding: gzip",
    "codings in a list": b"Transfer-Encoding: gzip, chunked",
    "coding twice": b"Transfer-Encoding: chunked, chunked",
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "coding with NUL": b"Transfer-Encoding: chun\0ked",
    "coding identity": b"Transfer-Encoding: identity",
    "folded": b"X-Long: a\r\n b\r\n\tc",
    "folded first": b" X-Long: a",
    "no colon": b"X-Long",
    "space before the colon": b"X-Long : a",
    "name empty": b": a",
    "name with NUL": b"X-\0: a",
    "name of bytes": b"X-\xff: a",
    "name of 20,000": b"X" * 20_000 + b": a",
    "value with NUL": b"X-Long: \0",
    "value of bytes": b"X-Long: \xff\xfe\xed\xa0\x80",
    "value with a bare CR": b"X-Long: a\rb",
    "value with a bare LF": b"X-Long: a\nX-Other: b",
    "value of 31,000": b"X-Long: " + b"a" * 31_000,
    "value of 100,000": b"X-Long: " + b"a" * 100_000,
    "500 lines": b"\r\n".join([b"X-%d: a" % number for number in range(500)]),
    "5,000 lines": b"\r\n".join([b"X: a"] * 5000),
    "two types": b"Content-Type: text/plain\r\nContent-Type: application/json",
    "type of bytes": b"Content-Type: application/\xff",
    "type unclosed": b'Content-Type: application/json; charset="',
    "type in UTF-7": b"Content-Type: application/json; charset=utf-7",
    "encoding gzip": b"Content-Encoding: gzip",
    "two keys": KEY + b"2",
    "the same key twice": KEY,
    "key of bytes": b"Authorization: Bearer \xff\xfe",
    "two authorizations": b"Authorization: Bearer a\r\nAuthorization: Basic Og==",
    "basic of garbage": b"Authorization: Basic ====",
    "token of points": b"Authorization: Bearer ....",
    "token of a deep header": b"Authorization: Bearer W1tbW1tb.e30.",
    "two idempotency keys": b"Idempotency-Key: a\r\nIdempotency-Key: b",
    "idempotency key of bytes": b"Idempotency-Key: \xff",
    "idempotency key of 256": b"Idempotency-Key: " + b"a" * 256,
    "idempotency key empty": b"Idempotency-Key:",
    "two waits": b"Prefer: wait=1\r\nPrefer: wait=2",
    "wait negative": b"Prefer: wait=-1",
    "wait of a float": b"Prefer: wait=1e400",
    "wait in other digits": "Prefer: wait=٠".encode(),
    "1,000 preferences": b"Prefer: " + b"respond-async," * 1000,
    "expect": b"Expect: 100-continue",
    "expect something else": b"Expect: 200-ok",
    "expect in capitals": b"EXPECT: 100-CONTINUE",
    "upgrade to WebSocket": b"Connection: Upgrade\r\nUpgrade: websocket",
    "upgrade to h2c": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c",
    "connection of everything": b"Connection: close, keep-alive, host, x-api-key",
    "connection of bytes": b"Connection: \xff",
    "trailer": b"Trailer: Host",
    "trailers accepted": b"TE: trailers, deflate;q=0.5",
    "range": b"Range: bytes=0-0,-1,5-2",
    "range of huge numbers": b"Range: bytes=" + b"9" * 400 + b"-",
    "since the year zero": b"If-Modified-Since: Mon, 00 Jan 0000 00:00:00 GMT",
    "since garbage": b"If-Unmodified-Since: 9" + b"9" * 400,
    "any entity": b"If-None-Match: *",
    "entities": b"If-Match: " + b'W/"a",' * 500,
    "accept nothing": b"Accept: */*;q=0",
    "accept of garbage": b"Accept: ;;;,,,/;q=\xff",
    "10,000 types": b"Accept: " + b"a/b," * 5000,
    "encoding of garbage": b"Accept-Encoding: ;q=9, *;q=-1",
    "language of garbage": b"Accept-Language: \xff;q=",
    "cookies": b"Cookie: " + b"a=b; " * 5000,
    "cookie of bytes": b'Cookie: skillruntime-key="\\377\\x00\xff; =; ;',
    "forwarded": b"X-Forwarded-For: 999.1.1.1, \xff, ::::",
    "forwarded protocol": b"X-Forwarded-Proto: javascript\r\nForwarded: for=[",
    "trace of wrong length": b"traceparent: 00-1-1-00",
    "trace of bytes": b"traceparent: 00-" + b"\xff" * 32 + b"-" + b"1" * 16 + b"-01",
    "two traces": b"traceparent: a\r\ntraceparent: b",
    "method overridden": b"X-HTTP-Method-Override: DELETE",
    "protocol of 5,000 digits": b"Skill-Protocol: " + b"9" * 5000 + b".0.0",
    "two protocols": b"Skill-Protocol: 1.0.0\r\nSkill-Protocol: 2.0.0",
    "origin of bytes": b"Origin: \xff\r\nReferer: \xff\r\nSec-Fetch-Site: \xff",
    "early": b"Early-Data: 1",
}
CHUNKS = {
    "the body in one": chunk(BODY) + LAST,
    "a byte each": b"".join([chunk(BODY[at : at + 1]) for at in range(len(BODY))])
    + LAST,
    "none": LAST,
    "size too small": b"5\r\n" + BODY + b"\r\n" + LAST,
    "size too large": b"fffff\r\n" + BODY + b"\r\n" + LAST,
    "size negative": b"-5\r\n" + BODY + b"\r\n" + LAST,
    "size with a plus": b"+5\r\nhello\r\n" + LAST,
    "size with 0x": b"0x5\r\nhello\r\n" + LAST,
    "size of 40 digits": b"F" * 40 + b"\r\n" + BODY,
    "size of 17 digits": b"1" + b"0" * 16 + b"\r\n" + BODY,
    "size of words": b"five\r\nhello\r\n" + LAST,
    "size empty": b"\r\nhello\r\n" + LAST,
    "size with spaces": b" 5 \r\nhello\r\n" + LAST,
    "size with zeros": b"0" * 30 + b"5\r\nhello\r\n" + LAST,
    "extension": b"5;a=b\r\nhello\r\n" + LAST,
    "extension of 40,000": b"5;" + b"a" * 40_000 + b"\r\nhello\r\n" + LAST,
    "extension of bytes": b"5;\xff\0\r\nhello\r\n" + LAST,
    "no end of a chunk": b"5\r\nhello0\r\n\r\n",
    "bare line feeds": b"5\nhello\n0\n\n",
    "no last chunk": chunk(BODY),
    "half a size": b"5",
    "half a chunk": b"500\r\nhello",
    "trailers": chunk(BODY) + b"0\r\nX-Sum: 1\r\nHost: other\r\n\r\n",
    "trailer of framing": chunk(BODY) + b"0\r\nContent-Length: 5\r\n\r\n",
    "trailer of 40,000": chunk(BODY) + b"0\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
    "trailer that does not end": chunk(BODY) + b"0\r\nX: a",
    "more than the limit": chunk(b" " * 1_100_000) + LAST,
    "garbage after it": chunk(BODY) + LAST + b"\0\xff garbage\r\n\r\n",
    "a request after it": chunk(BODY) + LAST + get(b"/health"),
    "a request inside": chunk(get(b"/health")) + LAST,
}
TEXTS = {
    "empty": b"",
    "NUL": b"\0",
    "bytes": b"\xff\xfe\xed\xa0\x80",
    "UTF-8 with a mark": b"\xef\xbb\xbf" + BODY,
    "UTF-16": BODY.decode().encode("utf-16"),
    "UTF-32": BODY.decode().encode("utf-32"),
    "Latin-1": b'{"inputs": {"text": "\xe9"}}',
    "null": b"null",
    "true": b"true",
    "text": b'"text"',
    "array": b"[]",
    "number": b"1",
    "number of 5,000 digits": b"9" * 5000,
    "number beyond floats": b"1e999",
    "number not a number": b"NaN",
    "infinite": b"-Infinity",
    "deep arrays": b"[" * 200_000,
    "deep closed arrays": b"[" * 50_000 + b"]" * 50_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "deep inputs": b'{"inputs": {"text": ' + b"[" * 900 + b"]" * 900 + b"}}",
    "deeper inputs": b'{"inputs": {"text": ' + b"[" * 9000 + b"]" * 9000 + b"}}",
    "wide": b"{" + b",".join([b'"%d":1' % number for number in range(80_000)]) + b"}",
    "wide inputs": b'{"inputs": {'
    + b",".join([b'"%d":1' % number for number in range(50_000)])
    + b"}}",
    "long array": b'{"inputs": {"text": [' + b"1," * 300_000 + b"1]}}",
    "names twice": b'{"inputs": {"text": "a", "text": "b"}}',
    "cut": BODY[:-5],
    "two documents": BODY + BODY,
    "comments": b"/* a */" + BODY,
    "a million spaces": b" " * 999_000,
    "a form": b"inputs=a&text=b",
    "XML": b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///">]><a/>',
}
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1e308,
    10**400,
    "",
    "\0",
    "\ud800",
    "a" * 100_000,
    "../../etc/passwd",
    "\u202e\x1b[31m\r\nSet-Cookie: a=b",
    [],
    {},
    [[[[[]]]]],
    {"\0": {"__proto__": 1}},
]
FIELDS = [
    ("caller",),
    ("caller", "id"),
    ("caller", "type"),
    ("caller", "credentials"),
    ("caller", "credentials", "api_key"),
    ("skill_id",),
    ("inputs",),
    ("inputs", "text"),
    ("inputs", "\ud800"),
    ("context",),
    ("context", "trace_id"),
    ("context", "priority"),
    ("context", "timeout_ms"),
    ("context", "webhook"),
]
WEBHOOKS = [
    "ftp://example.org/a",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "http://",
    "http://[",
    "http://[::1]:99999/",
    "http://169.254.169.254/latest/meta-data",
    "http://0x7f.1/",
    "http://2130706433/",
    "http://localhost:22/",
    "http://user:password@10.0.0.1/",
    "http://a\r\nb/",
    "http://\ud800/",
    "http://" + "a" * 300 + ".org/",
    "http://xn--/",
    "http://..../",
    "//example.org",
    "http://example.org:0/",
    "http://example.org:-1/",
    "http://example.org/\0",
]
IDS = [
    b".",
    b"..",
    b"%2e%2e",
    b"%2E%2E%2Fsecret",
    b"a/b",
    b"a%2fb",
    b"a%5cb",
    b"%00",
    b"%ff%fe",
    b"%ed%a0%80",
    b"%f0%9f%99%82",
    b"\xc3\xa9",
    b"%",
    b"%zz",
    b"%25%30%30",
    b"{id}",
    b"exec-" + b"a" * 5000,
    b"exec-%27%20OR%201=1--",
    b"exec-a;b=c",
    b"exec-a%0d%0aSet-Cookie:%20a",
    b"-1",
    b"",
    b"%20",
    b"null",
]
PLACES = [
    ("GET", "/skills/%s"),
    ("POST", "/skills/%s/invoke"),
    ("GET", "/executions/%s"),
    ("DELETE", "/executions/%s"),
    ("GET", "/executions/%s/result"),
    ("POST", "/executions/%s/complete"),
    ("POST", "/executions/%s/release"),
    ("POST", "/executions/%s/leave"),
    ("GET", "/ui/skills/%s"),
    ("POST", "/ui/skills/%s"),
    ("GET", "/ui/executions/%s"),
    ("POST", "/ui/executions/%s/leave"),
]
CURSORS = [
    b"0~",
    b"~exec-a",
    b"1~exec-a",
    b"-1~exec-a",
    b"1e308~exec-a",
    b"9999999999999999.9~exec-a",
    b"99999999999999999999999999~exec-a",
    b"999999999999.999999~exec-a",
    b"0.0000000000000000000000001~exec-a",
    b"nan~exec-a",
    b"inf~exec-a",
    b"1~%00",
    b"1~%ed%a0%80",
    b"1~" + b"a" * 5000,
    b"1~exec-a~exec-b",
    b"1~%27%3B%20DROP%20TABLE%20executions%3B--",
    b"2026-11-30T00:00:00Z~exec-a",
    b"2026-11-30/2026-12-01",
    b"%d9%a1~exec-a",
    b"eyJhIjoxfQ==",
]


def bodies() -> Iterator[tuple[str, bytes]]:
    """Yield invocations with a hostile value in one field."""
    for path in FIELDS:
        for number, value in enumerate(VALUES):
            document = invocation("echo")
            parent = document
            for name in path[:-1]:
                parent = parent.setdefault(name, {})
            parent[path[-1]] = value
            yield (
                f"{'/'.join(map(ascii, path))} {number}",
                json.dumps(document).encode(),
            )
    for url in WEBHOOKS:
        document = invocation("echo", webhook=url)
        yield f"webhook {url!a}", json.dumps(document).encode()


def requests() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each request."""
    yield from LINES.items()
    for target in ABSOLUTE:
        yield f"absolute {target!r}", get(target)
    for name, line in HEADERS.items():
        yield f"GET with {name}", get(b"/executions", line)
        yield f"POST with {name}", post(BODY, line)
    for name, body in CHUNKS.items():
        yield f"chunks: {name}", chunked(body)
    for name, text in TEXTS.items():
        yield f"body: {name}", post(text)
        yield f"form: {name}", post(text, target="/ui/skills/echo")
    for name, body in bodies():
        yield f"field {name}", post(body)
    for method, place in PLACES:
        for each in IDS:
            target = place.encode().replace(b"%s", each)
            if method == "GET":
                request = get(target)
            elif method == "DELETE":
                request = head(b"DELETE", target)
            else:
                request = head(b"POST", target, b"Content-Length: 2") + b"{}"
            yield f"{method} {place} {each[:40]!r}", request
    for cursor in CURSORS:
        for path in (b"/executions", b"/ui/executions"):
            for more in (b"", b"&all=1&interrupted=1&limit=200"):
                target = path + b"?cursor=" + cursor + more
                yield f"cursor {target[:60]!r}", get(target)
    yield "two pipelined", get(b"/health") * 2
    yield "200 pipelined", get(b"/health") * 200
    yield "pipelined after a body", post(BODY) * 3
    yield "pipelined garbage", get(b"/health") + b"\0\0\0\r\n\r\n"
    yield "body of a GET", head(b"GET", b"/health", b"Content-Length: 5") + b"hello"
    yield "body too short", post(BODY).replace(b"Length: ", b"Length: 9")
    yield "body too long", post(BODY) + b"}" * 1000
    yield "half a head", b"GET /health HTTP/1.1\r\nHost: 127"
    yield "half a line", b"GET"


async def statuses(port: int, request: bytes) -> list[int]:
    """Send *request*; return the statuses of the responses that have come when the
    first one is complete, or when the server has closed the connection.
    """
    answer = b""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await stream.send(request)
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while not is_complete(answer):
                answer += await stream.receive()
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([2-9]\d\d) ", answer)]


def is_complete(answer: bytes) -> bool:
    """Whether *answer* has a whole response other than 100 Continue."""
    _, _, answer = answer.rpartition(b"HTTP/1.1 100 \r\n")
    head, between, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    return bool(between) and length is not None and len(body) >= int(length[1])


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
async def test_no_request_is_an_error_of_the_server(
    on_sockets: Serving,
    every: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is answered below 500, or the connection is closed, and nothing hangs."""
    monkeypatch.setattr(protocol.BoundedProtocol, "head_seconds", 0.3)
    failed = []
    limiter = anyio.CapacityLimiter(8)

    async def send(port: int, name: str, request: bytes) -> None:
        async with limiter:
            with anyio.move_on_after(120) as limit:
                found = await statuses(port, request)
        if limit.cancelled_caught:
            failed.append((name, "hangs"))
        # RFC 9112, 6.1: 501 is the answer to an unknown transfer coding.
        elif [status for status in found if status >= 500 and status != 501]:
            failed.append((name, f"{found}"))

    tried = list(requests())[::every]
    async with on_sockets(limits=LIMITS) as served:
        async with anyio.create_task_group() as tasks:
            for name, request in tried:
                port = int(next(served.bases).rpartition(":")[2])
                tasks.start_soon(send, port, name, request)
        last = await served.ask("GET", "/health")

    assert len(tried) >= 600 // every
    assert failed == []
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert errors == []
    assert last.status == 200
