"""`enforce` around the official client session, joined to an SDK server in memory."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

pytest.importorskip("mcp")
from mcp import Client
from mcp.server.mcpserver import MCPServer

from skillruntime.adapters.mcp_proxy import Options, enforce


def shop(calls: list[Any]) -> MCPServer:
    """Return a server with one strict tool that notes its calls."""
    app = MCPServer("shop")

    @app.tool()
    def buy(item: str, count: int) -> str:
        """Buy something."""
        calls.append((item, count))
        return f"{count} {item}"

    return app


def with_client(check: Callable[[Any, list[Any]], Coroutine[Any, Any, None]], options: Options | None = None) -> None:
    """Run *check* with an enforced client and the list of calls that the server ran."""
    calls: list[Any] = []

    async def main() -> None:
        with anyio.fail_after(60):
            async with Client(shop(calls)) as client:
                await check(enforce(client, options=options), calls)

    anyio.run(main)


def test_a_damaged_call_is_repaired_and_reported() -> None:
    """The server runs the repaired call, and the result says what was repaired."""

    async def check(client: Any, calls: list[Any]) -> None:
        result = await client.call_tool("Buy", {"item": 713, "count": "2"})
        rules = [repair["rule"] for repair in result.meta["skillruntime/repairs"]]
        assert calls == [("713", 2)]
        assert rules == ["tool-name", "number-for-text", "number-text"]

    with_client(check)


def test_a_call_that_cannot_be_repaired_is_not_sent() -> None:
    """The model reads a tool execution error."""

    async def check(client: Any, calls: list[Any]) -> None:
        result = await client.call_tool("buy", {"item": "tea", "count": "many"})
        assert result.is_error and calls == []
        assert result.content[0].text == 'Not run: /count: "many" is not an integer. Send an integer.'

    with_client(check)


def test_a_valid_call_passes_and_the_second_enforce_does_nothing() -> None:
    """The result is the server's own."""

    async def check(client: Any, calls: list[Any]) -> None:
        result = await enforce(client).call_tool("buy", {"item": "tea", "count": 1})
        assert result.content[0].text == "1 tea" and "skillruntime/repairs" not in (result.meta or {})
        assert calls == [("tea", 1)]

    with_client(check)


def test_the_policy_holds_here_too() -> None:
    """Strict refuses what safe repairs."""

    async def check(client: Any, calls: list[Any]) -> None:
        assert (await client.call_tool("buy", {"item": "tea", "count": "2"})).is_error
        assert calls == []

    with_client(check, Options(policy="strict"))
