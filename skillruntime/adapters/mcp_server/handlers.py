"""What the MCP server of skills answers after the handshake: tools, prompts, resources
and the Skills extension.

Nothing of this is imported before a client asks for it: the answer to ``initialize``
does not wait for the runtime.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from urllib.request import url2pathname

import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from pydantic import Field

from skillruntime.adapters.tool_formats import to_mcp, to_mcp_result
from skillruntime.adapters.tools.conversation_tools import (
    conversation_runtime,
    definable,
    visible_callables,
)
from skillruntime.adapters.tools.known_names import is_hidden, meant_tool
from skillruntime.adapters.tools.tool_names import mcp_names
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.contracts.visible_contract import hidden_in
from skillruntime.catalog.frontmatter.frontmatter import cut
from skillruntime.catalog.frontmatter.yaml_reader import YamlFault, read_yaml
from skillruntime.catalog.resources import list_resources, media_type, read_bytes
from skillruntime.catalog.skill import SkillMetadata
from skillruntime.catalog.visibility import (
    hidden_characters,
    listed_kinds,
    visible_line,
)
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import (
    InvalidSkillError,
    ResourceNotFoundError,
    SkillRuntimeError,
)
from skillruntime.runtime.presentation.activation import (
    render_activation,
    with_arguments,
    with_directory,
)
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession

_OWN = ("load_skill", "read_skill_resource", "write_skill_input")
_KEPT = 256  # sessions of clients over HTTP; beyond that the oldest is closed
_FILES = "workspace:///"  # the addresses of files in a client's workspace


class ListSkillsResult(types.CacheableResult):
    """The answer to ``skills/list``."""

    skills: list[dict[str, Any]]
    next_cursor: str | None = Field(default=None, alias="nextCursor")
    result_type: str = Field(default="complete", alias="resultType")


class GetSkillResult(types.CacheableResult):
    """The answer to ``skills/get``."""

    skill: dict[str, Any]
    result_type: str = Field(default="complete", alias="resultType")


class Served:
    """The handlers of one server."""

    def __init__(self, runtime: SkillRuntime, *, files: bool = True) -> None:
        self._runtime = runtime
        self._files = files
        self._known: dict[str, str] = {}
        # The rest of long results, by handles that no other client can guess.
        self._pages = runtime.session(tell_directories=False)
        # For their definitions alone; a call is made within the client's session.
        self._own = conversation_runtime(runtime, self._pages)
        self._sessions: dict[str, SkillSession] = {}

    async def _session(self, context: Any) -> SkillSession:
        """Return the session of the client: its workspace, and the calls of it that
        were refused.

        Over HTTP a client without a session identifier gets a new one with each call.
        """
        request = context.request
        key: str | None = ""
        # What listens on a port does not show where the host keeps its files.
        tell = None
        if request is not None:
            key = request.headers.get("mcp-session-id")
            tell = False
        if key is None:
            return self._runtime.session(counts_tokens=False, tell_directories=tell)
        if key not in self._sessions:
            while len(self._sessions) >= _KEPT:
                self._sessions.pop(next(iter(self._sessions))).close()
            root = None
            if request is None and not self._runtime.has_workspace:
                root = await _only_root(context.session)
            self._sessions[key] = self._runtime.session(
                workspace=root, counts_tokens=False, tell_directories=tell
            )
        return self._sessions[key]

    async def list_tools(
        self, context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        definitions = await anyio.to_thread.run_sync(
            self._definitions, self._keeps_files(context)
        )
        return types.ListToolsResult(
            tools=[types.Tool.model_validate(each) for each in definitions]
        )

    async def call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        tools = self._known
        if params.name not in tools:
            tools = self._tools()
        tool = meant_tool(self._runtime, params.name, tools)
        session = await self._session(context)
        own_names = self._own_names(self._keeps_files(context))
        if tool.name in (*own_names, "call_skill"):
            own = conversation_runtime(
                self._runtime,
                self._pages,
                load=partial(self._rendered, session),
                calls_in=session,
            )
            name = str(tool.name)
            response = await own.call(name, arguments)
            return self._result(name, arguments, response, session)
        if tool.name not in tools or is_hidden(self._runtime, tools[tool.name]):
            hint = ""
            if tool.nearest:
                hint = f"; did you mean {' or '.join(tool.nearest)}?"
            raise MCPError(
                types.INVALID_PARAMS, f"Unknown tool: {params.name[:80]}{hint}"
            )
        name = tools[tool.name]
        response = await session.call(name, arguments)
        return self._result(name, arguments, response, session)

    def _result(
        self, name: str, arguments: Any, response: SkillResponse, session: SkillSession
    ) -> types.CallToolResult:
        called = (response.metadata or {}).get("skill")
        if called not in ("load_skill", "read_skill_resource"):
            response = self._pages.record_answer(name, arguments, response)
        result = to_mcp_result(response, images=session.images(response))
        # A file of a call that has no session goes with the call.
        files = []
        if session in self._sessions.values():
            files = (response.metadata or {}).get("files", [])
        for file in files:
            link = {
                "type": "resource_link",
                "uri": f"{_FILES}{quote(file['path'])}",
                "name": file["path"],
                "mimeType": file["media_type"],
                "size": file["bytes"],
            }
            result["content"].append(link)
        return types.CallToolResult.model_validate(result)

    async def list_prompts(
        self, context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        given = [
            types.PromptArgument(
                name="arguments", description="What to do it with", required=False
            )
        ]
        prompts = [
            types.Prompt(
                name=each.name,
                description=visible_line(each.description),
                arguments=given,
            )
            for each in self._runtime.catalog.values()
            if each.user_invocable
        ]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(
        self, context: Any, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        # A person chooses a prompt: also of a skill that its author hides from models,
        # and not of one for models alone.
        metadata = self._runtime.catalog.get(params.name)
        if metadata is None or not metadata.user_invocable:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:80]}")
        arguments = (params.arguments or {}).get("arguments", "")
        session = await self._session(context)
        text = await anyio.to_thread.run_sync(
            self._rendered, session, params.name, arguments
        )
        message = types.PromptMessage(
            role="user", content=types.TextContent(type="text", text=text)
        )
        return types.GetPromptResult(
            description=visible_line(metadata.description), messages=[message]
        )

    async def list_resources(
        self, context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        resources = [
            types.Resource(
                uri=to_uri(each.name),
                name=each.name,
                description=visible_line(each.description),
                mime_type="text/markdown",
            )
            for each in self._visible().values()
        ]
        return types.ListResourcesResult(resources=resources)

    async def read_resource(
        self, context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        name, path = split_uri(uri) or ("", "")
        metadata = self._visible().get(name)
        if uri.startswith(_FILES):
            path = unquote(uri.removeprefix(_FILES))
            session = await self._session(context)
            directory = str(session.workspace.directory)
            read = partial(read_bytes, directory, path, MAX_BYTES)
        elif metadata is not None:
            read = partial(read_file, metadata, path)
        else:
            raise _unknown(uri)
        try:
            data = await anyio.to_thread.run_sync(read)
        except ResourceNotFoundError:
            raise _unknown(uri) from None
        kind = "text/markdown" if path == "SKILL.md" else media_type(path)
        try:
            text = data.decode("utf-8")
            # The digest of the Skills extension holds for these bytes, so nothing can
            # be removed from them; as a blob they are still exact, and no client shows
            # hidden words to a model as text.
            is_shown = not hidden_characters(text)
        except UnicodeDecodeError:
            is_shown = False
        if not is_shown:
            blob = base64.b64encode(data).decode("ascii")
            return types.ReadResourceResult(
                contents=[
                    types.BlobResourceContents(uri=uri, mime_type=kind, blob=blob)
                ]
            )
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)]
        )

    async def list_skills(
        self, context: Any, params: types.PaginatedRequestParams
    ) -> ListSkillsResult:
        shown = self._visible().values()
        entries = await anyio.to_thread.run_sync(
            lambda: [self._entry(metadata) for metadata in shown]
        )
        return ListSkillsResult(
            skills=[entry for entry in entries if entry is not None]
        )

    async def get_skill(self, context: Any, params: Any) -> GetSkillResult:
        name, path = split_uri(params.uri) or ("", "")
        metadata = self._visible().get(name)
        if metadata is None or path != "SKILL.md":
            raise _unknown(params.uri)
        entry = await anyio.to_thread.run_sync(partial(self._entry, metadata))
        if entry is None:
            raise _unknown(params.uri)
        return GetSkillResult(skill=entry)

    def _definitions(self, keeps_files: bool) -> list[dict[str, Any]]:
        """Return the definitions of all tools; this reads every contract."""
        tools = self._tools()
        contracts = definable(self._runtime, tools.values())
        names = [*self._own_names(keeps_files)]
        if len(contracts) < len(tools):
            names.append("call_skill")
        definitions = [to_mcp(self._own.contract(name), name=name) for name in names]
        for shown, name in sorted(tools.items()):
            if name in contracts:
                definitions.append(
                    {**to_mcp(contracts[name], name=name), "name": shown}
                )
        return definitions

    def _tools(self) -> dict[str, str]:
        """Return the callables by tool name; all skills are looked at, so a call looks
        into the last answer first.
        """
        self._known = mcp_names(visible_callables(self._runtime))
        return self._known

    def _keeps_files(self, context: Any) -> bool:
        """Return whether a file that the client writes is there at its next call: over
        HTTP a client without a session identifier has no workspace of its own.
        """
        request = context.request
        if request is None or self._runtime.has_workspace:
            return True
        return request.headers.get("mcp-session-id") is not None

    def _own_names(self, keeps_files: bool) -> list[str]:
        """Return the server's own tools; where all skills are functions, there is
        nothing to load.
        """
        names: list[str] = []
        if len(self._visible()):
            names = [*_OWN]
        elif self._known:
            names = [*_OWN[1:]]
        is_offered = self._files and keeps_files and bool(self._known)
        if "write_skill_input" in names and not is_offered:
            names.remove("write_skill_input")
        return names

    def _rendered(
        self, session: SkillSession, name: str, arguments: str | None = None
    ) -> str:
        active = self._runtime.open_skill(name)
        active = with_directory(active, session.directory_of(active.name))
        if arguments is not None:
            active = with_arguments(active, arguments)
        shown = {name: tool for tool, name in self._tools().items()}
        return render_activation(active, lambda each: shown.get(each, each))

    def _visible(self) -> SkillCatalog:
        return self._runtime.catalog.for_model()

    def _entry(self, metadata: SkillMetadata) -> dict[str, Any] | None:
        """The skill's entry, or None for a skill that cannot be published: it is left
        out.
        """
        try:
            return to_entry(metadata)
        except SkillRuntimeError:
            return None


async def _only_root(session: Any) -> str | None:
    """Return the directory that the client works in, where it offers exactly one
    (roots, until 2026-07-28).
    """
    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return None
    try:
        roots = (await session.list_roots()).roots
    except MCPError:
        return None
    addresses = [urlsplit(str(root.uri)) for root in roots]
    if len(addresses) != 1 or addresses[0].scheme != "file":
        return None
    path = url2pathname(addresses[0].path)
    # As everywhere here, no pathlib.
    if os.path.isdir(path):
        return path
    return None


def _unknown(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"Unknown resource: {uri[:200]}")


MAX_FILES = 512
MAX_BYTES = 16 * 1024 * 1024
"""The largest skill that every host must accept (the extension's section "Limits")."""

_SCHEME = "skill://"  # the extension's own URI scheme (SEP-2640, "Resource URIs")


def to_uri(name: str, path: str = "SKILL.md") -> str:
    """Return the address of a skill's file.

    >>> to_uri("pdf-processing", "references/a b.md")
    'skill://pdf-processing/references/a%20b.md'
    """
    return f"{_SCHEME}{quote(name)}/{quote(path)}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """Return the skill and the path that *uri* names; None for any other address.

    >>> split_uri("skill://pdf-processing/references/a%20b.md")
    ('pdf-processing', 'references/a b.md')
    """
    if not uri.startswith(_SCHEME):
        return None
    name, _, path = uri.removeprefix(_SCHEME).partition("/")
    if not name or not path:
        return None
    return unquote(name), unquote(path)


def to_entry(metadata: SkillMetadata) -> dict[str, Any]:
    """Return the extension's entry of a skill: ``uri``, ``frontmatter`` and the
    complete ``resources``.

    Raises:
        InvalidSkillError: its frontmatter cannot be read, or it is larger than a host
            must accept.
    """
    # As everywhere in the catalog, no pathlib.
    directory = os.path.dirname(metadata.path)
    resources: list[dict[str, Any]] = []
    total = 0
    for path in _paths(metadata):
        try:
            if path == "SKILL.md":
                data = read_file(metadata, path)
            else:
                data = read_bytes(directory, path, MAX_BYTES)
        except ResourceNotFoundError as error:
            raise InvalidSkillError(
                f"The skill {metadata.name!r} cannot be published: {error}"
            ) from None
        total += len(data)
        if len(resources) >= MAX_FILES or total > MAX_BYTES:
            raise InvalidSkillError(
                f"The skill {metadata.name!r} has more than {MAX_FILES} files or "
                f"{MAX_BYTES // 1024**2} MiB"
            )
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        resources.append(
            {"uri": to_uri(metadata.name, path), "digest": digest, "size": len(data)}
        )
    frontmatter = _frontmatter(read_file(metadata, "SKILL.md"))
    if frontmatter.get("name") != metadata.name or not frontmatter.get("description"):
        raise InvalidSkillError(
            f"The frontmatter of {metadata.name!r} does not say its name and "
            "description"
        )
    # The extension wants the frontmatter as it is written, so one that hides something
    # cannot be in an entry.
    hidden = hidden_in(frontmatter)
    if hidden:
        raise InvalidSkillError(
            f"The frontmatter of {metadata.name!r} has {listed_kinds(hidden)}"
        )
    return {
        "uri": to_uri(metadata.name),
        "frontmatter": frontmatter,
        "resources": resources,
    }


def read_file(metadata: SkillMetadata, path: str) -> bytes:
    """Return the bytes of a skill's file, ``SKILL.md`` and its contracts among them.

    Raises:
        ResourceNotFoundError: the skill has no such file.
    """
    directory, own_name = os.path.split(metadata.path)
    if path == "SKILL.md":
        path = own_name  # which may be written in small letters
    return read_bytes(directory, path, MAX_BYTES)


def _frontmatter(data: bytes) -> dict[str, Any]:
    """Return the frontmatter of a SKILL.md as JSON, with the types that YAML gives its
    values.
    """
    block = cut(data).block or ""
    try:
        read_yaml(block)  # bounded: a bomb of aliases ends here
    except YamlFault as fault:
        raise InvalidSkillError(f"The frontmatter cannot be read: {fault}") from None
    import yaml  # imported here, because importing it takes as long as starting Python

    try:
        value = yaml.load(block, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        # JSON has no dates: they become text. What it has no form for, as NaN, is not
        # published.
        return dict(json.loads(json.dumps(value, default=str, allow_nan=False)))
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise InvalidSkillError(
            f"The frontmatter cannot be written as JSON: {error}"
        ) from None


def _paths(metadata: SkillMetadata) -> Iterator[str]:
    """Yield every file: SKILL.md, the contracts, which a catalog does not list, and all
    that it does.
    """
    directory = os.path.dirname(metadata.path)
    yield "SKILL.md"
    own = ["contract.json", "contract.yaml", "contract.yml", "descriptor.json"]
    inside = os.path.join(directory, "contracts")
    if os.path.isdir(inside):
        own += [f"contracts/{name}" for name in sorted(os.listdir(inside))]
    for path in own:
        if os.path.isfile(os.path.join(directory, path)):
            yield path
    yield from (resource.path for resource in list_resources(directory))
