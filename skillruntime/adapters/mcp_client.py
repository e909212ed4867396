"""Use an MCP server: its tools as callables under contract, and its skills fetched and verified."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio.to_thread
from pydantic import Field

from skillruntime.extras import missing_extra

try:
    import mcp_types as types
    from mcp import Client, MCPError
except ModuleNotFoundError as error:
    raise missing_extra(error) from None

from skillruntime.adapters.mcp_proxy.tools import without_formats
from skillruntime.adapters.skill_manifest import (
    EXTENSION,
    MAX_BYTES,
    MAX_FILES,
    read_verbatim,
    same_frontmatter,
    verify,
)
from skillruntime.catalog.visible_contract import visible_document
from skillruntime.contract.contract import Contract
from skillruntime.errors import InvalidSkillError, SkillNotFoundError, ToolExecutionError
from skillruntime.runtime.runners import ReportedFailureError
from skillruntime.runtime.runtime import SkillRuntime


class ListSkillsResult(types.CacheableResult):
    """The answer to ``skills/list``."""

    skills: list[dict[str, Any]]
    next_cursor: str | None = Field(default=None, alias="nextCursor")
    result_type: str = Field(default="complete", alias="resultType")


async def list_skills(client: Client) -> list[dict[str, Any]]:
    """Return the entries of all skills that a server lists; none if it does not declare the extension."""
    if EXTENSION not in (client.server_capabilities.extensions or {}):
        return []
    entries: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        params = types.PaginatedRequestParams(cursor=cursor)
        request = types.Request[Any, Any](method="skills/list", params=params)
        page = await client.session.send_request(request, ListSkillsResult)
        entries += page.skills
        cursor = page.next_cursor
        if cursor is None:
            return entries


async def fetch_skills(
    client: Client, directory: str | os.PathLike[str], *, server: str, names: tuple[str, ...] = ()
) -> Path:
    """Fetch skills from an MCP server into *directory*, verified, and return the root to hand to `discover`.

    *server* is the host's own label for the server: it is part of the path, so that skills of two servers never mix.
    *names* selects skills; by default all that are listed. A skill is refused, and nothing of it is kept, if its
    bytes, sizes, digests or frontmatter differ from its entry, if it is larger than the extension's limits, or if its
    content is ``"dynamic"``. A digest proves that the transfer is complete, not that the author is trustworthy: the
    skills are untrusted, as any third-party skill.

    Raises:
        InvalidSkillError: a skill does not match its entry.
        SkillNotFoundError: one of *names* is not listed.
    """
    root = Path(directory) / _label(server)
    entries = {str(entry.get("frontmatter", {}).get("name")): entry for entry in await list_skills(client)}
    if missing := [name for name in names if name not in entries]:
        raise SkillNotFoundError(f"The MCP server lists no skill {missing[0]!r}")
    for name in names or entries:
        files = await _fetched(client, name, entries[name])
        await anyio.to_thread.run_sync(partial(_write, root / name, files))
    return root


async def import_tools(runtime: SkillRuntime, client: Client, *, server: str) -> list[str]:
    """Register an MCP server's tools as callables ``server/tool``, under contract, and return their names.

    The server's schemas become contracts: malformed arguments are repaired or refused before they are sent. The tools
    run through *client*, in its event loop, while it is open.
    """
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            name = f"{server}/{tool.name}"
            runtime.implements(name, contract=_contract_of(tool, name))(_caller(client, tool.name))
            names.append(name)
        cursor = page.next_cursor
        if cursor is None:
            return names


def _label(server: str) -> str:
    plain = "".join(character if character.isalnum() or character in "-_." else "-" for character in server).strip(".")
    if not plain:
        raise ValueError(f"{server!r} has no letter or digit, so it cannot name the server's directory")
    return plain


async def _fetched(client: Client, name: str, entry: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a skill by path, each verified."""
    uri, resources = str(entry.get("uri", "")), entry.get("resources")
    root = uri.removesuffix("/SKILL.md")
    if root == uri or root.rpartition("/")[2] != name or not _is_name(name):
        raise InvalidSkillError(f"The entry of {name[:80]!r} does not point to a SKILL.md of that name")
    if not isinstance(resources, list):
        raise InvalidSkillError(f"The skill {name!r} has no digests (resources: {str(resources)[:20]!r})")
    if len(resources) > MAX_FILES or sum(int(each.get("size", 0)) for each in resources) > MAX_BYTES:
        raise InvalidSkillError(f"The skill {name!r} is larger than {MAX_FILES} files or {MAX_BYTES // 1024**2} MiB")
    files: dict[str, bytes] = {}
    for resource in resources:
        path = _path_inside(root, str(resource.get("uri", "")))
        result = await client.read_resource(str(resource["uri"]))
        data = b"".join(_bytes_of(content) for content in result.contents)
        verify(data, resource)
        files[path] = data
    if "SKILL.md" not in files or not same_frontmatter(read_verbatim(files["SKILL.md"]), entry.get("frontmatter")):
        raise InvalidSkillError(f"The SKILL.md of {name!r} differs from its entry")
    return files


def _path_inside(root: str, uri: str) -> str:
    path = unquote(uri.removeprefix(root + "/"))
    parts = path.split("/")
    if not uri.startswith(root + "/") or any(part in ("", ".", "..") or set(part) & set("\\\0:") for part in parts):
        raise InvalidSkillError(f"{uri[:200]!r} is not a file of the skill at {root!r}")
    return path


def _is_name(name: str) -> bool:
    return bool(name) and all(character.isalnum() or character in "-_" for character in name)


def _bytes_of(content: Any) -> bytes:
    text = getattr(content, "text", None)
    return text.encode("utf-8") if isinstance(text, str) else base64.b64decode(content.blob, validate=True)


def _write(directory: Path, files: Mapping[str, bytes]) -> None:
    """Replace what was fetched before by *files*: all of them or, on an error, none."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".") as temporary:
        fresh = Path(temporary) / "fresh"
        for path, data in files.items():
            target = fresh / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        if directory.exists():
            directory.rename(Path(temporary) / "before")
        fresh.rename(directory)


# The annotations of a contract for which MCP's tools have a hint.
_HINTED = ("read_only", "idempotent", "destructive", "open_world")


def _contract_of(tool: types.Tool, name: str) -> Contract:
    hints = tool.annotations
    stated = {name: getattr(hints, f"{name}_hint", None) for name in _HINTED}
    document: dict[str, Any] = {
        "name": name,
        "description": tool.description or tool.title or tool.name,
        # The server itself decides what it takes for a date, as behind the proxy.
        "input": without_formats(tool.input_schema, described=True),
        "annotations": {name: value for name, value in stated.items() if value is not None},
    }
    if tool.output_schema is not None:
        document["output"] = without_formats(tool.output_schema)
    return Contract.from_dict(visible_document(document, one_line=False), name=name)


def _caller(client: Client, tool: str) -> Any:
    async def call(arguments: dict[str, Any]) -> Any:
        try:
            result = await client.call_tool(tool, arguments)
        except MCPError as error:
            raise ToolExecutionError(f"The MCP server refused the call: {error.message}"[:500]) from None
        text = "\n".join(getattr(block, "text", f"[{block.type}]") for block in result.content)
        if result.is_error:
            raise _failure(text)
        return result.structured_content if result.structured_content is not None else text

    return call


def _failure(text: str) -> Exception:
    """Return the failure that a tool reported: an envelope of another skillruntime as it is, or else the text."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if isinstance(document, dict) and isinstance(document.get("errors"), list) and document["errors"]:
        return ReportedFailureError({"errors": document["errors"]})
    return ToolExecutionError(text[:500] or "The tool failed and gave no reason")
