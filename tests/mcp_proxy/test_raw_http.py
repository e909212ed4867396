"""The proxy in front of a raw HTTP server: the headers that it sends, batches, and
streams that are polled.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from tests import needs

pytest.importorskip("httpx2", reason=needs.to_install("httpx2"))
from tests.mcp_proxy.test_stdio import PROXY, running
from tests.mcp_proxy.test_stdio import ask as ask_process

pytestmark = pytest.mark.processes

POLLS = 8
INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n'


class Handler(BaseHTTPRequestHandler):
    """Answers a batch after it was answered a question, and the request `slow` when it
    was polled often enough.
    """

    polls: ClassVar[int] = 0
    replied: ClassVar[threading.Event] = threading.Event()

    def reply(self, status: int, kind: str = "", body: bytes = b"") -> None:
        """Send a whole response."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Close the stream without an answer until the last poll."""
        if "last-event-id" not in self.headers:
            self.reply(405)
            return
        Handler.polls += 1
        if Handler.polls < POLLS:
            self.reply(
                200, "text/event-stream", b"id: %d\nretry: 1\ndata:\n\n" % Handler.polls
            )
        else:
            self.reply(
                200,
                "text/event-stream",
                b'data: {"jsonrpc":"2.0","id":5,"result":{"polled":true}}\n\n',
            )

    def do_POST(self) -> None:
        """Answer by method."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = (
            message[0]["method"] if isinstance(message, list) else message.get("method")
        )
        match method:
            case "ask":
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write(
                    b'data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create"}\n\n'
                )
                self.wfile.flush()
                Handler.replied.wait(300)
                self.wfile.write(b'data: [{"jsonrpc":"2.0","id":1,"result":{}}]\n\n')
            case "fail":
                self.reply(500)
            case "slow":
                self.reply(200, "text/event-stream", b"id: 0\nretry: 1\ndata:\n\n")
            case "initialize":
                result = {"protocolVersion": "2025-03-26"}
                self.reply(
                    200,
                    "application/json",
                    json.dumps({"jsonrpc": "2.0", "id": 0, "result": result}).encode(),
                )
            case _:
                Handler.replied.set()
                self.reply(202)

    def log_message(self, *arguments: Any) -> None:
        """Write nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Yield the URL of a new raw server."""
    Handler.polls, Handler.replied = 0, threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        server.shutdown()


def test_a_batch_may_ask_the_client_something(url: str) -> None:
    """The client's reply is posted while the answer to the batch is still open."""
    with running(*PROXY, url) as process:
        ask_process(process, INITIALIZE)
        question = ask_process(process, b'[{"jsonrpc":"2.0","id":1,"method":"ask"}]\n')
        answer = ask_process(process, b'{"jsonrpc":"2.0","id":"q","result":{}}\n')

    assert json.loads(question)["id"] == "q"
    assert Handler.replied.is_set() and json.loads(answer) == [
        {"jsonrpc": "2.0", "id": 1, "result": {}}
    ]


def test_each_request_of_a_failed_batch_is_answered(url: str) -> None:
    """Notifications in it get no answer."""
    batch = (
        b'[{"jsonrpc":"2.0","id":1,"method":"fail"},'
        b'{"jsonrpc":"2.0","method":"n"},{"id":"b","method":"x"}]\n'
    )

    with running(*PROXY, url) as process:
        ask_process(process, INITIALIZE)
        answers = json.loads(ask_process(process, batch))

    assert [(each["id"], each["error"]["code"]) for each in answers] == [
        (1, -32600),
        ("b", -32600),
    ]


def test_a_stream_may_be_polled_as_often_as_the_server_likes(url: str) -> None:
    """2025-11-25: a server closes the stream of a long call and is asked again with
    Last-Event-ID.
    """
    with running(*PROXY, url) as process:
        ask_process(process, INITIALIZE)
        answer = ask_process(process, b'{"jsonrpc":"2.0","id":5,"method":"slow"}\n')

    assert json.loads(answer)["result"] == {"polled": True} and Handler.polls == POLLS
