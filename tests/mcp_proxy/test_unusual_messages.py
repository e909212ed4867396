"""Calls in forms that a server may read and a proxy may miss, and answers that must not
be lost.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillruntime.adapters.mcp_proxy import Session
from tests.mcp_proxy.messages import (
    DIGEST,
    SERVER,
    call,
    known,
    to_bytes,
    to_client,
    to_server,
)
from tests.mcp_proxy.test_stdio import DEADLINE, INITIALIZED, raw, running

REFUSED = call('{"topic": "AI", "limit": 11}')
VALID = call('{"topic":  "AI"}')


def test_a_server_that_repeats_its_cursors_is_not_asked_forever() -> None:
    """The call is judged by the pages that there are."""
    session = Session(new_id=map(str, range(99)).__next__, initialized=True)
    sends = session.from_client(REFUSED)
    cursors = ["a", "b", "a", "b"]

    while not to_client(sends):
        [listing] = to_server(sends)
        page = {"tools": [DIGEST], "nextCursor": cursors.pop(0)}
        sends = session.from_server(to_bytes({"id": listing["id"], "result": page}))

    assert to_client(sends)[0]["result"]["isError"] is True
    assert cursors == ["b"]


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
    "params",
    [
        '{"name": "digest", "arguments": {"limit": 11}}, "params": {}',
        '{"name": "digest", "name": 5}',
    ],
)
def test_a_repeated_key_is_refused_whatever_its_last_value_is(params: str) -> None:
    """A parser that takes the first of two values reads a call here."""
    line = (
        f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()
    )

    sends = known().from_client(line)

    assert (
        to_server(sends) == []
        and "comes twice" in to_client(sends)[0]["result"]["content"][0]["text"]
    )


@pytest.mark.parametrize("request_id", ["true", "[1]", '{"a": 1}'])
def test_a_refused_call_with_an_unusual_id_is_answered(request_id: str) -> None:
    """The id of the answer is the one that the client wrote."""
    [answer] = to_client(known().from_client(call('{"limit": 11}', id=request_id)))

    assert (
        answer["id"] == json.loads(request_id) and answer["result"]["isError"] is True
    )


@pytest.mark.processes
def test_a_last_message_without_a_line_break_is_not_joined_with_the_next(
    tmp_path: Path,
) -> None:
    """The proxy may still send calls that waited, after the client's input has
    ended.
    """
    waiting = (
        b'{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":"5"}}}\n'
    )
    last = b'{"id":2,"method":"ping"}'

    with running(*raw(tmp_path / "record")) as process:
        output, _ = process.communicate(INITIALIZED + waiting + last, timeout=DEADLINE)

    assert sorted(str(json.loads(line)["id"]) for line in output.splitlines()) == [
        "1",
        "2",
    ]
    lines = (tmp_path / "record").read_bytes().splitlines()
    assert last in lines and waiting.replace(b'"5"', b"5").strip() in lines
