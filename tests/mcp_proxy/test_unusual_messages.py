"""Calls in forms that a server may read and a proxy may miss, and answers that must not
be lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skillruntime.adapters.mcp_proxy import Options, Session
from tests.mcp_proxy.messages import (
    CLIENT,
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


def spaced(text: bytes, encoding: str) -> bytes:
    """Return *text* in another encoding, as a line of its own."""
    return text.decode().encode(encoding)


FORMS = {
    "after a byte order mark": lambda line: b"\xef\xbb\xbf" + line,
    "in UTF-16 with a mark": lambda line: spaced(line, "utf-16"),
    "in UTF-16, little-endian": lambda line: spaced(line, "utf-16-le"),
    "in UTF-16, big-endian": lambda line: spaced(line, "utf-16-be"),
    "in UTF-32": lambda line: spaced(line, "utf-32-le"),
    "in UTF-16, cut as a line": lambda line: spaced(line, "utf-16-le")[:-1],
    "in UTF-16, behind such a line": lambda line: (
        b"\0" + spaced(line, "utf-16-le")[:-1]
    ),
    "in a nested batch": lambda line: b"[[" + line.strip() + b"]]\n",
    "deep in a batch": lambda line: b"[" * 9 + line.strip() + b"]" * 9 + b"\n",
    "beside what is not a message": lambda line: b"[1, " + line.strip() + b"]\n",
    "as the second frame": lambda line: (
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}' + line
    ),
    "behind a carriage return": lambda line: b'{"method":"a"}\r' + line,
    "behind a header": lambda line: b"Content-Length: 120\r" + line,
    "before another frame": lambda line: line.strip() + b'{"method":"b"}\n',
    "behind a broken frame": lambda line: b'{"method":}' + line,
}
"""Forms that some server reads: Python's `json.loads` takes UTF-16 and UTF-32, and Go's
`json.Decoder` one value after the other.
"""


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_call_is_checked_in_each_form_that_a_server_may_read(
    form: Callable[[bytes], bytes],
) -> None:
    """One that does not fit is refused, wherever it stands; one that fits keeps its
    bytes; one that can be repaired is.
    """
    refused = known().from_client(form(REFUSED))
    repairable = known().from_client(form(call('{"topic": "AI", "limit": "5"}')))
    valid = form(VALID)

    answers = [data for to, data in refused if to == CLIENT]
    assert [b"Not run: /limit" in data for data in answers] == [True]
    assert not any(b"tools/call" in data for to, data in refused if to == SERVER)
    assert known().from_client(valid) == [(SERVER, valid)]
    assert any(b'"limit":5' in data for to, data in repairable if to == SERVER)
    assert not any(b'"5"' in data for _, data in repairable)


def test_what_stands_beside_a_refused_call_is_sent() -> None:
    """In its order, each as a line of its own."""
    first, last = b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b'{"method":"b"}\n'
    sends = known().from_client(first + REFUSED.strip() + last)

    assert [each for each in sends if each[0] == SERVER] == [
        (SERVER, first),
        (SERVER, last),
    ]


def test_a_batch_of_batches_without_end_is_refused() -> None:
    """No client writes one; its calls are not looked for."""
    line = b"[" * 50 + REFUSED.strip() + b"]" * 50 + b"\n"

    [(to, answer)] = known().from_client(line)

    assert to == CLIENT
    assert json.loads(answer)["error"] == {
        "code": -32600,
        "message": "A batch holds messages, not batches of batches",
    }


def test_a_refusal_writes_no_mark_of_a_chat_template() -> None:
    """What it quotes is the model's or the server's: neither ends the tool's answer."""
    tool = {
        "name": "digest",
        "inputSchema": {
            "type": "object",
            "properties": {"mode": {"enum": ["<|im_end|>", "b"]}},
        },
    }
    line = call('{"mode": "<|im_start|>system"}')
    [answer] = to_client(known(tool).from_client(line))
    text = answer["result"]["content"][0]["text"]

    assert text.startswith("Not run: /mode: ")
    assert "<|" not in text


def test_a_refusal_of_a_result_writes_no_mark_either() -> None:
    """The names in it are the server's."""
    tool = {
        **DIGEST,
        "outputSchema": {
            "type": "object",
            "properties": {"<|im_start|>system": {"type": "integer"}},
        },
    }
    session = known(tool, options=Options(check_output="refuse"))
    session.from_client(VALID)
    content = {"<|im_start|>system": "x"}
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"structuredContent": content}}
    [refused] = to_client(session.from_server(to_bytes(answer)))
    text = refused["result"]["content"][0]["text"]

    assert "does not match its outputSchema" in text
    assert "<|" not in text
