"""`enforce` around the official client session, joined to an SDK server in memory."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from tests import needs

pytest.importorskip("mcp", reason=needs.to_install("mcp"))
from mcp import Client
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel

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


def with_client(
    check: Callable[[Any, list[Any]], Coroutine[Any, Any, None]],
    options: Options | None = None,
) -> None:
    """Run *check* with an enforced client and the list of calls that the server ran."""
    calls: list[Any] = []

    async def main() -> None:
        with anyio.fail_after(300):
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
        assert (
            result.content[0].text
            == 'Not run: /count: "many" is not an integer. Send an integer.'
        )

    with_client(check)


def test_a_valid_call_passes_and_the_second_enforce_does_nothing() -> None:
    """The result is the server's own."""

    async def check(client: Any, calls: list[Any]) -> None:
        result = await enforce(client).call_tool("buy", {"item": "tea", "count": 1})
        assert result.content[0].text == "1 tea" and "skillruntime/repairs" not in (
            result.meta or {}
        )
        assert calls == [("tea", 1)]

    with_client(check)


def test_a_result_that_is_not_what_the_tool_promises_is_refused() -> None:
    """`check_output` holds here too; the SDK's own check is not reached, because the
    session is not the SDK's.
    """

    class Page(BaseModel):
        tools: list[dict[str, Any]]

    class Result(BaseModel):
        content: list[Any]
        structuredContent: dict[str, Any] | None = None  # noqa: N815
        isError: bool = False  # noqa: N815

    class Session:
        async def list_tools(self) -> Page:
            return Page(
                tools=[
                    {
                        "name": "t",
                        "inputSchema": {},
                        "outputSchema": {"required": ["n"]},
                    }
                ]
            )

        async def call_tool(self, name: str, arguments: Any = None) -> Result:
            return Result(content=[], structuredContent=arguments)

    async def main() -> None:
        session = enforce(Session(), options=Options(check_output="refuse"))
        assert not (await session.call_tool("t", {"n": 1})).isError
        assert (await session.call_tool("t", {"m": 1})).isError

    anyio.run(main)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"policy": "strickt"},
            "policy is 'strickt'; it can be strict, safe, lenient, off",
        ),
        ({"check_output": True}, "check_output is True"),
        ({"tools": {"t": {"polcy": "safe"}}}, "tools.t.polcy is not an option"),
        ({"tools": {"t": "strict"}}, "tools.t is not an object"),
    ],
)
def test_wrong_options_are_refused_where_they_are_written(
    choices: dict[str, Any], message: str
) -> None:
    """Not at the first call, in front of the model."""
    with pytest.raises(ValueError, match=message):
        Options(**choices)


def test_only_a_client_session_can_be_enforced() -> None:
    """The message names what was given."""
    with pytest.raises(TypeError, match="dict has no call_tool"):
        enforce({})


def test_the_policy_holds_here_too() -> None:
    """Strict refuses what safe repairs."""

    async def check(client: Any, calls: list[Any]) -> None:
        assert (await client.call_tool("buy", {"item": "tea", "count": "2"})).is_error
        assert calls == []

    with_client(check, Options(policy="strict"))


def test_all_pages_of_a_list_are_read() -> None:
    """`ClientSession.list_tools` takes `params` and `Client.list_tools` takes `cursor`:
    either is asked in its way.
    """
    import mcp.types as types
    from mcp.server.lowlevel import Server

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        name = "second" if params is not None and params.cursor == "2" else "first"
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        tool = types.Tool(name=name, input_schema=schema)
        return types.ListToolsResult(
            tools=[tool], next_cursor="2" if name == "first" else None
        )

    async def call_tool(context: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=str(params.arguments))]
        )

    async def main() -> None:
        with anyio.fail_after(300):
            async with Client(
                Server("pages", on_list_tools=list_tools, on_call_tool=call_tool)
            ) as client:
                for session in (enforce(client.session), enforce(client)):
                    assert (await session.call_tool("second", {"n": "5"})).content[
                        0
                    ].text == "{'n': 5}"
                    assert (await session.call_tool("second", {"n": "five"})).is_error

    anyio.run(main)


@pytest.mark.parametrize("hangs", [False, True])
def test_a_call_passes_where_the_tools_cannot_be_listed(
    monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    """Open on schemas, as on stdio: the server says what it makes of the call."""
    monkeypatch.setattr(
        "skillruntime.adapters.mcp_proxy.client_session.LISTING_TIMEOUT", 0.01
    )
    reason = "the server did not answer tools/list in time" if hangs else "no list"
    entries: list[Any] = []

    class Session:
        async def list_tools(self) -> Any:
            if hangs:
                await anyio.sleep_forever()
            raise RuntimeError("no list")

        async def call_tool(self, name: str, arguments: Any = None) -> Any:
            return name, arguments

    async def main() -> None:
        with anyio.fail_after(300):
            session = enforce(Session(), log=entries.append)
            assert await session.call_tool("t", {"n": "5"}) == ("t", {"n": "5"})

    anyio.run(main)
    assert entries[0] == {"event": "unlistable", "reason": reason}
    assert entries[1]["outcome"] == "unchecked"


def test_a_tool_may_have_aliases() -> None:
    """They are options for that tool alone."""

    async def check(client: Any, calls: list[Any]) -> None:
        result = await client.call_tool("buy", {"product": "tea", "count": 1})
        assert calls == [("tea", 1)]
        assert [repair["rule"] for repair in result.meta["skillruntime/repairs"]] == [
            "alias"
        ]

    with_client(check, Options(tools={"buy": {"aliases": {"item": ["product"]}}}))
    with pytest.raises(ValueError, match=r"tools.buy.aliases is not an object"):
        Options(tools={"buy": {"aliases": {"item": "product"}}})
