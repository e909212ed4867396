"""What the protocol asks of a server on stdio, checked on raw pipes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.mcp_proxy.test_stdio import PROXY, ask, running

pytestmark = pytest.mark.processes

PUPPET = [sys.executable, str(Path(__file__).parent / "puppet_server.py")]
INITIALIZE = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize",'
    '"params":{"protocolVersion":"2025-11-25"}}'
)
INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}'


def request(method: str, params: str = "{}", number: str = "1") -> str:
    """Return a request of the handshake era."""
    return f'{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{params}}}'


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
            outputs.append(process.communicate(data, timeout=300)[0])

    assert outputs[0] == outputs[1]


def test_the_check_of_results_refuses_a_wrong_one() -> None:
    """The tool has run: the model learns that its result is not what the tool
    promises.
    """
    with running(*PROXY, "--check-output", "refuse", "--", *PUPPET) as process:
        ask(process, f"{INITIALIZE}\n{INITIALIZED}\n".encode())
        answer = json.loads(
            ask(process, request("tools/call", '{"name":"kept"}', "9").encode() + b"\n")
        )

    assert answer["result"]["isError"] is True
    assert answer["result"]["content"][0]["text"].startswith(
        "kept ran, but its result does not match its outputSchema"
    )
