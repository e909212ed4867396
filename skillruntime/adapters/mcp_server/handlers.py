"""Answer a client's requests after the handshake: tools, prompts, resources and the
Skills extension. This module is imported at the first such request, so that the answer
to ``initialize`` does not wait for the runtime.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, unquote, urlsplit
from urllib.request import url2pathname
from weakref import WeakKeyDictionary

import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from pydantic import Field

from skillruntime.adapters.mcp_server.progress import reporting_progress
from skillruntime.adapters.mcp_server.published_frontmatter import frontmatter_fault
from skillruntime.adapters.mcp_server.tasks import Tasks, declares_tasks
from skillruntime.adapters.tool_formats import to_mcp, to_mcp_result
from skillruntime.adapters.tools.conversation_tools import (
    conversation_runtime,
    visible_callables,
)
from skillruntime.adapters.tools.definitions import choose_definitions
from skillruntime.adapters.tools.known_names import is_hidden, listed_names, meant_tool
from skillruntime.adapters.tools.tool_names import mcp_names
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.contracts.visible_contract import hidden_in
from skillruntime.catalog.frontmatter.frontmatter import cut
from skillruntime.catalog.frontmatter.yaml_reader import MAX_DEPTH, YamlFault, load_yaml
from skillruntime.catalog.resources import list_resources, media_type, read_bytes
from skillruntime.catalog.skill import SkillMetadata
from skillruntime.catalog.unforeseen import refusing_unforeseen
from skillruntime.catalog.visibility import (
    hidden_characters,
    listed_kinds,
    visible_line,
)
from skillruntime.contract.contract import Contract
from skillruntime.contract.document.form import may_be_repeated
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

_LOG = logging.getLogger("skillruntime.mcp")
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

    def __init__(
        self, runtime: SkillRuntime, *, files: bool = True, tasks: Tasks | None = None
    ) -> None:
        self._runtime = runtime
        self._files = files
        self._tasks = tasks
        self._known: dict[str, str] = {}
        self._unpublished: set[str] = set()
        self._logged_budget = False
        # The rest of long results, by handles that other clients cannot guess.
        self._pages = runtime.session(tell_directories=False)
        # Only for their definitions; a call is made within the client's session.
        self._own = conversation_runtime(runtime, self._pages)
        self._sessions: dict[str, SkillSession] = {}
        # The loaded skills of each of these sessions; the last name is the latest
        # skill.
        self._loaded: WeakKeyDictionary[SkillSession, dict[str, None]]
        self._loaded = WeakKeyDictionary()

    async def _session(self, context: Any) -> SkillSession:
        """Return the session of the client, with its workspace and its refused calls.

        Over HTTP a client without a session identifier gets a new one with each call.
        """
        request = context.request
        key: str | None = ""
        # A server on a port does not show where the host keeps its files.
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
        """Return the tools of this conversation."""
        definitions = await anyio.to_thread.run_sync(
            self._definitions, self._keeps_files(context), self._loaded_in(context)
        )
        return types.ListToolsResult(
            tools=[types.Tool.model_validate(each) for each in definitions]
        )

    async def call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | dict[str, Any]:
        """Call a tool and return its result."""
        arguments = params.arguments or {}
        tools = self._known
        if params.name not in tools:
            tools = self._tools()
        tool = meant_tool(self._runtime, params.name, tools)
        session = await self._session(context)
        own_names = self._own_names(self._keeps_files(context))
        name = str(tool.name)
        if name not in (*own_names, "call_skill"):
            if name not in tools or is_hidden(self._runtime, tools[name]):
                # A protocol error and not one of execution (2025-11-25, tools, "Error
                # Handling"): the text is for the model all the same.
                offered = [*own_names, *tools]
                raise MCPError(
                    types.INVALID_PARAMS,
                    f"Unknown tool: {visible_line(params.name[:80])}. The tools are: "
                    f"{listed_names(params.name, offered)}",
                )
            name = tools[name]
        answer: Callable[[], Awaitable[types.CallToolResult | dict[str, Any]]]
        answer = partial(self._call, session, name, arguments)
        if self._tasks is not None and name not in _OWN and declares_tasks(context):
            kept = {"arguments": arguments, "is_local": context.request is None}
            answer = partial(
                self._tasks.answer, name, kept, repeatable=self._is_repeatable(name)
            )
        return await reporting_progress(context.session, answer)

    async def run_kept(self, name: str, kept: Mapping[str, Any]) -> dict[str, Any]:
        """Run the call of a task, and return its result as a client gets it."""
        arguments = kept["arguments"]
        local = self._sessions.get("")
        if kept["is_local"] and local is not None:
            result = await self._call(local, name, arguments)
        else:
            # Over HTTP, or begun by a server that was killed.
            tell = None if kept["is_local"] else False
            with self._runtime.session(
                counts_tokens=False, tell_directories=tell
            ) as session:
                result = await self._call(session, name, arguments)
        return result.model_dump(by_alias=True, exclude_none=True, mode="json")

    async def _call(
        self, session: SkillSession, name: str, arguments: Mapping[str, Any]
    ) -> types.CallToolResult:
        """Call the callable *name*, or a tool of this server's own."""
        if name in (*_OWN, "call_skill"):
            own = conversation_runtime(
                self._runtime,
                self._pages,
                load=partial(self._load, session),
                calls_in=session,
            )
            response = await own.call(name, arguments)
        else:
            response = await session.call(name, arguments)
        return self._result(name, arguments, response, session)

    def _is_repeatable(self, name: str) -> bool:
        """Return whether a call of *name* may run twice; of `call_skill` that is not
        known.
        """
        if name == "call_skill":
            return False
        try:
            annotations = self._runtime.contract(name).annotations
        except SkillRuntimeError:
            return False
        return may_be_repeated(annotations)

    def _result(
        self, name: str, arguments: Any, response: SkillResponse, session: SkillSession
    ) -> types.CallToolResult:
        called = (response.metadata or {}).get("skill")
        if called not in ("load_skill", "read_skill_resource"):
            response = self._pages.record_answer(name, arguments, response)
        result = to_mcp_result(response, images=session.images(response))
        # Without a session, a call's files are removed after the call.
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
        """Return a prompt for each skill that a person may choose."""
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
        """Return the instructions of the skill that a person chose."""
        # A person chooses a prompt: also of a skill that its author hides from models,
        # and not of one for models alone.
        metadata = self._meant_prompt(params.name)
        if metadata is None or not metadata.user_invocable:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:80]}")
        arguments = (params.arguments or {}).get("arguments", "")
        session = await self._session(context)
        text = await anyio.to_thread.run_sync(
            self._rendered, session, metadata.name, arguments
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
        """Return the SKILL.md of each skill."""
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
        """Return the content of a skill's file or a file of the workspace."""
        uri = str(params.uri)
        metadata, path = self._found(uri)
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
        """Return the skills that this server offers."""
        shown = self._visible().values()
        entries = await anyio.to_thread.run_sync(
            lambda: [self._entry(metadata) for metadata in shown]
        )
        return ListSkillsResult(
            skills=[entry for entry in entries if entry is not None]
        )

    async def get_skill(self, context: Any, params: Any) -> GetSkillResult:
        """Return the entry of one skill."""
        metadata, path = self._found(params.uri)
        if metadata is None or path != "SKILL.md":
            raise _unknown(params.uri)
        entry = await anyio.to_thread.run_sync(partial(self._entry, metadata))
        if entry is None:
            raise _unknown(params.uri)
        return GetSkillResult(skill=entry)

    def _meant_prompt(self, name: str) -> SkillMetadata | None:
        """Return the skill that a prompt's *name* means: its own name, or with ``_`` for
        ``-`` as tools are shown, because some clients replace it.
        """
        catalog = self._runtime.catalog
        metadata = catalog.get(name)
        if metadata is None:
            metadata = catalog.get(mcp_names(catalog).get(name, name))
        return metadata

    def _definitions(
        self, keeps_files: bool, loaded: list[str]
    ) -> list[dict[str, Any]]:
        """Return the definitions of the tools; this reads their contracts."""
        tools = self._tools()
        shown_names = {name: shown for shown, name in tools.items()}

        def text_of(name: str, contract: Contract) -> str:
            definition = _definition(shown_names[name], name, contract)
            return json.dumps(definition, ensure_ascii=False)

        chosen = choose_definitions(
            self._runtime, tools.values(), loaded, text_of=text_of
        )
        contracts = chosen.contracts
        names = [*self._own_names(keeps_files)]
        if chosen.by_name:
            names.append("call_skill")
        definitions = [to_mcp(self._own.contract(name), name=name) for name in names]
        for shown, name in sorted(tools.items()):
            if name in contracts:
                definitions.append(_definition(shown, name, contracts[name]))
        if chosen.by_name and not self._logged_budget:
            self._logged_budget = True
            self._log_budget(definitions[len(names) :], len(chosen.by_name))
        return definitions

    def _log_budget(self, definitions: list[dict[str, Any]], left: int) -> None:
        """Log how many tools are not in ``tools/list``, and what defining none would
        save.
        """
        from skillruntime.tokens.counter import count

        if not definitions:  # the host wanted none
            return
        # Each by itself, because most were counted when they were chosen; the text of
        # all would be long enough to load tiktoken's tables, which takes 0.4 s.
        texts = [json.dumps(each, ensure_ascii=False) for each in definitions]
        spent = sum(count(text).tokens for text in texts)
        defined = len(definitions)
        _LOG.warning(
            "%s of %s tools of skills are in tools/list; the others do not fit its "
            "budget and are called with call_skill. Without any, `--tools fixed` saves "
            "%s tokens in each request",
            f"{defined:,}",
            f"{defined + left:,}",
            f"{spent:,}",
        )

    def _tools(self) -> dict[str, str]:
        """Return the callables by tool name; all skills are looked at, so a call looks
        into the last answer first.
        """
        self._known = mcp_names(
            visible_callables(self._runtime), self._runtime.function_skills()
        )
        return self._known

    def _keeps_files(self, context: Any) -> bool:
        """Return whether a file that the client writes still exists at its next call:
        over HTTP a client without a session identifier has no workspace of its own.
        """
        request = context.request
        if request is None or self._runtime.has_workspace:
            return True
        return request.headers.get("mcp-session-id") is not None

    def _own_names(self, keeps_files: bool) -> list[str]:
        """Return the server's own tools; if all skills are functions, ``load_skill`` is
        not among them.
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

    def _loaded_in(self, context: Any) -> list[str]:
        """Return the skills that the client has loaded, the last one last."""
        key = ""
        if context.request is not None:
            key = context.request.headers.get("mcp-session-id")
        session = self._sessions.get(key)
        if session is None:
            return []
        return [*self._loaded.get(session, {})]

    def _load(self, session: SkillSession, name: str) -> str:
        text = self._rendered(session, name)
        loaded = self._loaded.setdefault(session, {})
        skill = self._runtime.open_skill(name).name
        loaded.pop(skill, None)
        loaded[skill] = None
        return text

    def _rendered(
        self, session: SkillSession, name: str, arguments: str | None = None
    ) -> str:
        active = self._runtime.open_skill(name)
        active = with_directory(active, session.directory_of(active.name))
        if arguments is not None:
            active = with_arguments(active, arguments)
        shown = {name: tool for tool, name in self._tools().items()}
        return render_activation(active, lambda each: shown.get(each, each))

    def _found(self, uri: str) -> tuple[SkillMetadata | None, str]:
        """Return the skill that *uri* names, ``None`` for any other address, and the
        path of a file in it.
        """
        skills = self._visible()
        for name, path in split_uri(uri):
            metadata = skills.get(name)
            if metadata is not None:
                return metadata, path
        return None, ""

    def _visible(self) -> SkillCatalog:
        return self._runtime.catalog.for_model()

    def _entry(self, metadata: SkillMetadata) -> dict[str, Any] | None:
        """The skill's entry, or None for a skill that cannot be published: it is left
        out, because clients refuse a whole list for one entry. The log says why, once.
        """
        try:
            with refusing_unforeseen(metadata.path):
                return to_entry(metadata)
        except SkillRuntimeError as error:
            if metadata.path not in self._unpublished:
                self._unpublished.add(metadata.path)
                _LOG.warning("%s is not in skills/list: %s", metadata.path, error)
            return None


def _definition(shown: str, name: str, contract: Contract) -> dict[str, Any]:
    """Return the definition of the callable *name* under the name that clients see."""
    return {**to_mcp(contract, name=name), "name": shown}


async def _only_root(session: Any) -> str | None:
    """Return the directory that the client works in, if it offers exactly one (roots,
    until 2026-07-28).
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
    # Without pathlib, as everywhere in this module.
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
    >>> to_uri("plugin:tdd")
    'skill://plugin/tdd/SKILL.md'
    """
    # The last part of a skill's path is its name in the frontmatter (SEP-2640).
    place, _, own_name = name.rpartition(":")
    skill = f"{quote(place)}/{quote(own_name)}" if place else quote(own_name)
    return f"{_SCHEME}{skill}/{quote(path)}"


def to_name(base: str) -> str:
    """Return the name of the skill whose files have addresses that begin with *base*;
    an empty string if *base* is not the beginning of a skill's addresses.

    >>> to_name("skill://plugin/tdd/"), to_name("skill://pdf/"), to_name("file:///pdf/")
    ('plugin:tdd', 'pdf', '')
    """
    if not base.startswith(_SCHEME) or not base.endswith("/"):
        return ""
    parts = base.removeprefix(_SCHEME).removesuffix("/").split("/")
    place = "-".join(parts[:-1])
    return unquote(f"{place}:{parts[-1]}" if place else parts[-1])


def split_uri(uri: str) -> list[tuple[str, str]]:
    """Return the pairs of a skill and a path that *uri* may name; empty for any other
    address.

    >>> split_uri("skill://plugin/tdd/SKILL.md")
    [('plugin:tdd', 'SKILL.md'), ('plugin', 'tdd/SKILL.md')]
    """
    if not uri.startswith(_SCHEME):
        return []
    meant: list[tuple[str, str]] = []
    name, _, path = uri.removeprefix(_SCHEME).partition("/")
    own_name, _, rest = path.partition("/")
    # Skills are not nested, so both readings are possible only if a place is named like
    # a skill.
    if name and own_name and rest:
        meant.append((f"{unquote(name)}:{unquote(own_name)}", unquote(rest)))
    if name and path:
        meant.append((unquote(name), unquote(path)))
    return meant


def to_entry(metadata: SkillMetadata) -> dict[str, Any]:
    """Return the extension's entry of a skill: ``uri``, ``frontmatter`` and the
    complete ``resources``.

    Raises:
        InvalidSkillError: the frontmatter cannot be read, or the skill is larger than a
            host must accept.
    """
    # As everywhere in the catalog, no pathlib.
    directory = os.path.dirname(metadata.path)
    resources: list[dict[str, Any]] = []
    total = 0
    for path in _paths(metadata):
        if "\\" in path:  # no address may have one (SEP-2640, "Resource URIs")
            raise InvalidSkillError(
                f"The skill {metadata.name!r} has a file whose name has a backslash: "
                f"{path!r:.80}"
            )
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
    fault = frontmatter_fault(frontmatter)
    if fault is None and frontmatter["name"] != metadata.name.rpartition(":")[2]:
        fault = "the name differs from the one in its address"
    if fault is not None:
        raise InvalidSkillError(f"The frontmatter of {metadata.name!r}: {fault}")
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

    A folded last value ends with the line break before the closing dashes (YAML 1.2.2,
    section 8.1.1.2), as the Inspector and other clients in JavaScript read it. FastMCP
    4.2 cuts this line break off before it parses, and refuses to read such a skill.
    """
    block = cut(data).block or ""
    try:
        value = load_yaml(block, max_depth=MAX_DEPTH)
    except YamlFault as fault:
        raise InvalidSkillError(f"The frontmatter cannot be read: {fault}") from None
    if not isinstance(value, dict):
        raise InvalidSkillError("The frontmatter is not a mapping")
    return {**value}


def _paths(metadata: SkillMetadata) -> Iterator[str]:
    """Yield every file: SKILL.md, the contracts, which a catalog does not list, and the
    listed files.
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
