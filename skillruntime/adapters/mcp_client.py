"""Use an MCP server: its tools as callables under contract, and its skills as a source
of skills.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

from skillruntime.extras import missing_extra

try:
    import mcp_types as types
    from mcp import Client, MCPError
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

from skillruntime.adapters.mcp_server.handlers import (
    MAX_BYTES,
    MAX_FILES,
    ListSkillsResult,
    to_name,
)
from skillruntime.catalog.contracts.visible_contract import visible_document
from skillruntime.catalog.discovery.sources import SkillSource
from skillruntime.contract.contract import Contract
from skillruntime.errors import ToolExecutionError
from skillruntime.runtime.runners import ReportedFailureError
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.tokens.schema_views import rewritten


async def import_tools(
    runtime: SkillRuntime, client: Client, *, server: str
) -> list[str]:
    """Register an MCP server's tools as callables ``server/tool``, under contract, and
    return their names.

    The server's schemas become contracts: malformed arguments are repaired or refused
    before they are sent. The tools run through *client*, in its event loop, while it is
    open.
    """
    names: list[str] = []
    for tool in await _tools_of(client):
        name = f"{server}/{tool.name}"
        runtime.implements(name, contract=_contract_of(tool, name))(
            mcp_tool(client, tool.name)
        )
        names.append(name)
    return names


async def contracts_of(client: Client) -> dict[str, Contract]:
    """Return the contracts of an MCP server's tools, by their names."""
    tools = await _tools_of(client)
    return {tool.name: _contract_of(tool, tool.name) for tool in tools}


async def _tools_of(client: Client) -> list[types.Tool]:
    tools: list[types.Tool] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools


async def import_skills(client: Client) -> SkillSource:
    """Read the skills of an MCP server (its Skills extension, SEP-2640), for
    ``discover(await import_skills(client))``.

    They are read completely and at once, within the extension's limits. A skill is left
    out if it is larger, or if its files do not have the digests that the server states.
    """
    imported = _Imported()
    cursor: str | None = None
    while True:
        request = types.Request[Any, Any](
            method="skills/list", params=types.PaginatedRequestParams(cursor=cursor)
        )
        page = await client.session.send_request(request, ListSkillsResult)
        for entry in page.skills:
            base = str(entry.get("uri")).removesuffix("SKILL.md")
            name = to_name(base)
            if not name:
                continue
            files = await _files_of(client, base, entry.get("resources", ()))
            if files is not None:
                imported.files[name] = files
        cursor = page.next_cursor
        if cursor is None:
            return imported


class _Imported:
    """The skills of a server at the time of the import, by name, each with its files by
    path.
    """

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}

    def skills(self) -> dict[str, dict[str, str]]:
        return {name: dict.fromkeys(files, "") for name, files in self.files.items()}

    def read(self, skill: str, path: str) -> bytes:
        return self.files[skill][path]


async def _files_of(
    client: Client, base: str, resources: Sequence[Mapping[str, Any]]
) -> dict[str, bytes] | None:
    """Return the files of the skill with the address *base* by path; None if one
    differs from the server's statement.
    """
    if len(resources) > MAX_FILES:
        return None
    if sum(int(resource["size"]) for resource in resources) > MAX_BYTES:
        return None
    files = {}
    for resource in resources:
        uri = str(resource["uri"])
        (content,) = (await client.read_resource(uri)).contents
        if isinstance(content, types.TextResourceContents):
            data = content.text.encode()
        else:
            data = b64decode(content.blob)
        is_inside = uri.startswith(base) and base.endswith("/")
        if not is_inside or f"sha256:{sha256(data).hexdigest()}" != resource["digest"]:
            return None
        files[unquote(uri.removeprefix(base))] = data
    return files


# The annotations of a contract for which MCP's tools have a hint.
_HINTED = ("read_only", "idempotent", "destructive", "open_world")


def _contract_of(tool: types.Tool, name: str) -> Contract:
    annotations = {}
    for hinted in _HINTED:
        value = getattr(tool.annotations, f"{hinted}_hint", None)
        if value is not None:
            annotations[hinted] = value
    document: dict[str, Any] = {
        "name": name,
        "description": tool.description or tool.title or tool.name,
        "input": _without_paths(tool.input_schema),
        "annotations": annotations,
    }
    if tool.output_schema is not None:
        document["output"] = tool.output_schema
    # The server itself decides which dates it accepts, as behind the proxy.
    return Contract.from_dict(
        visible_document(document, one_line=False), name=name, formats="annotate"
    )


def _without_paths(schema: Any) -> Any:
    """Return *schema* without ``"format": "path"``, because the paths belong to the
    server, not to a workspace here.
    """
    return rewritten(
        schema,
        lambda part: {
            key: part[key] for key in part if (key, part[key]) != ("format", "path")
        },
    )


def mcp_tool(client: Client, tool: str) -> Any:
    """Return the function that calls *tool* of an MCP server through *client*, in whose
    event loop it must run.
    """

    async def call(arguments: dict[str, Any]) -> Any:
        try:
            result = await client.call_tool(tool, arguments)
        except MCPError as error:
            raise ToolExecutionError(
                f"The MCP server refused the call: {error.message}"[:500]
            ) from None
        text = "\n".join(
            getattr(block, "text", f"[{block.type}]") for block in result.content
        )
        if result.is_error:
            raise _failure(text)
        if result.structured_content is not None:
            return result.structured_content
        return text

    return call


def _failure(text: str) -> Exception:
    """Return the failure that a tool reported: another skillruntime's envelope
    unchanged, otherwise the text.
    """
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if (
        isinstance(document, dict)
        and isinstance(document.get("errors"), list)
        and document["errors"]
    ):
        return ReportedFailureError({"errors": document["errors"]})
    return ToolExecutionError(text[:500] or "The tool failed and gave no reason")
