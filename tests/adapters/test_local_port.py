"""Who may use a local port: `skillruntime/adapters/mcp_server/local_port.py`."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from skillruntime.adapters.mcp_server.local_port import guarded

KNOWN = {b"host": b"127.0.0.1:8401", b"authorization": b"Bearer t"}


def ask(
    headers: dict[bytes, bytes], token: str | None = "t"
) -> tuple[int, list[bytes]]:
    """Send one request through the guard; return the status, and the names of the
    headers that were passed on.
    """
    seen: list[bytes] = []
    statuses: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.extend(name for name, _ in scope["headers"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def main() -> None:
        await guarded(app, token=token)(
            {"type": "http", "headers": list(headers.items())}, receive, send
        )

    anyio.run(main)
    return statuses[0], seen


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({b"authorization": b""}, 401),
        ({b"authorization": b"Bearer other"}, 401),
        ({b"authorization": "Bearer é".encode()}, 401),
        ({b"host": b"attacker.example"}, 421),
        ({b"host": b"[::1"}, 421),
        ({b"origin": b"https://attacker.example"}, 403),
        ({b"origin": b"http://127.0.0.1.attacker.example"}, 403),
        ({b"origin": b"null"}, 403),
        ({b"origin": b"http://localhost:8401"}, 200),
    ],
)
def test_the_port_is_for_programs_of_this_machine(
    changes: dict[bytes, bytes], status: int
) -> None:
    """2025-11-25, "Security Warning": a web page cannot use it under any host name, nor
    a program without the token.
    """
    assert ask({**KNOWN, **changes})[0] == status


def test_the_token_is_not_passed_on() -> None:
    """The server behind the guard has no use for it; without a token the header is the
    server's own.
    """
    assert ask(KNOWN)[1] == [b"host"]
    assert ask(KNOWN, token=None)[1] == [b"host", b"authorization"]
