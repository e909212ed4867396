"""``serve --mcp --http`` asks for a token where a skill's descriptor says that it is
not for everyone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime import discover
from tests import needs

uvicorn = needs.package("uvicorn")
pytest.importorskip("mcp", reason=needs.to_install("mcp"))

CONTRACT = {"version": "1.0.0", "input": {"type": "object", "properties": {}}}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def write_skill(root: Path, **changes: Any) -> None:
    """Write a skill whose descriptor.json has these changes."""
    from skillruntime.contract import Contract
    from skillruntime.server import describe

    folder = root / "echo"
    folder.mkdir()
    (folder / "SKILL.md").write_text(
        "---\nname: echo\ndescription: Says it\n---\nCall it.\n"
    )
    (folder / "contract.json").write_text(json.dumps(CONTRACT))
    published = describe(
        "echo",
        Contract.from_dict(CONTRACT, name="echo"),
        base_url="http://localhost:8400",
    )
    (folder / "descriptor.json").write_text(
        json.dumps({**published.to_dict(), **changes})
    )


@pytest.mark.parametrize(
    ("changes", "asks"),
    [
        ({}, False),
        ({"access": "restricted"}, True),
        ({"access": "private"}, True),
        ({"auth": {"type": "api_key", "header": "X-API-Key"}}, True),
    ],
    ids=["public", "restricted", "private", "with-auth"],
)
def test_a_token_is_asked_for_where_a_skill_is_not_for_everyone(
    changes: dict[str, Any],
    asks: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without it 401; with the one that was printed, the request reaches the server."""
    from starlette.testclient import TestClient

    from skillruntime.adapters.mcp import serve_http

    apps: list[Any] = []

    async def keep(self: Any) -> None:
        apps.append(self.config.app)

    monkeypatch.delenv("SKILLRUNTIME_MCP_TOKEN", raising=False)
    monkeypatch.setattr(uvicorn.Server, "serve", keep)
    write_skill(tmp_path, **changes)

    anyio.run(serve_http, discover(tmp_path))
    _, _, token = capsys.readouterr().err.partition("Authorization: ")
    headers = {"accept": "application/json, text/event-stream"}
    with TestClient(apps[0], base_url="http://localhost:8400") as client:
        without = client.post("/mcp", json=PING, headers=headers)
        with_it = client.post(
            "/mcp", json=PING, headers={**headers, "authorization": token.strip()}
        )

    assert bool(token) is asks
    assert (without.status_code == 401) is asks
    assert with_it.status_code != 401


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def test_sessions_over_http_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session above it is refused, and the others work on; when one ends, another
    may begin.
    """
    from starlette.testclient import TestClient

    from skillruntime.adapters.mcp import serve_http

    apps: list[Any] = []

    async def keep(self: Any) -> None:
        apps.append(self.config.app)

    monkeypatch.setattr(uvicorn.Server, "serve", keep)
    monkeypatch.setattr("skillruntime.adapters.mcp_server.local_port.MOST_SESSIONS", 2)
    write_skill(tmp_path)
    anyio.run(serve_http, discover(tmp_path))
    headers = {"accept": "application/json, text/event-stream"}
    with TestClient(apps[0], base_url="http://localhost:8400") as client:
        begun = [
            client.post("/mcp", json=INITIALIZE, headers=headers) for _ in range(3)
        ]
        own = {**headers, "mcp-session-id": begun[0].headers["mcp-session-id"]}
        still = client.post("/mcp", json=PING, headers=own)
        client.delete("/mcp", headers=own)
        after = client.post("/mcp", json=INITIALIZE, headers=headers)

    assert [each.status_code for each in begun] == [200, 200, 503]
    assert (still.status_code, after.status_code) == (200, 200)
