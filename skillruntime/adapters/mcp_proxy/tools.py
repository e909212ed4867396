"""Keep the tools of a server, as its ``tools/list`` results show them, and the contract
of each.

Calls of a tool with an unusable schema pass unchecked, with a reason. A tool with a
usable schema is never called with arguments that break it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.contract.reading.tool_names import MeantName, meant_name

if TYPE_CHECKING:
    from skillruntime.contract import Contract, Schema

__all__ = ["Listing", "Tool", "Tools", "compile_tool"]

MOST_OPEN = 64
DRAFT_07 = "http://json-schema.org/draft-07/schema#"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its contract, or the reason why its calls pass unchecked."""

    name: str
    definition: Mapping[str, Any]
    contract: Contract | None
    output: Schema | None
    reason: str | None = None


@dataclass(slots=True)
class Listing:
    """One run through the pages of ``tools/list``, by a client or by the proxy."""

    definitions: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    generation: int = 0
    cursor: str | None = None
    seen: set[str] = field(default_factory=set)


class Tools:
    """The known tools of one server within one session, and the user's choices for
    them.
    """

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self._definitions: dict[str, Mapping[str, Any]] = {}
        self._compiled: dict[str, Tool] = {}
        self._logged: dict[str, Any] = {}
        self._expires: float | None = None
        self._generation = 0
        self._known_generation = -1
        self._open: dict[str, Listing] = {}
        self.complete: bool = False
        self.unlistable: bool = False
        """Whether the server failed to list its tools; it is not asked again until it
        announces a change.
        """
        self.options_compared = False
        """Whether the names in the user's options were compared with the list."""

    @property
    def fresh(self) -> bool:
        """Return whether the known tools are the server's current ones, as far as the
        protocol shows it.
        """
        if self._known_generation != self._generation:
            return False
        return self._expires is None or time.monotonic() < self._expires

    def changed(self) -> None:
        """Record that the server announced a change of its list."""
        self._generation += 1
        self.unlistable = False

    def start(self) -> Listing:
        """Return a new run through the pages."""
        return Listing(generation=self._generation)

    def listing_at(self, cursor: str) -> Listing | None:
        """Return the pagination that continues at *cursor*; ``None`` if its beginning
        was not seen.
        """
        return self._open.pop(cursor, None)

    def is_current(self, listing: Listing) -> bool:
        """Return whether the server's list has not changed since *listing* began."""
        return listing.generation == self._generation

    def add_page(self, listing: Listing, result: Mapping[str, Any]) -> bool:
        """Add one page to *listing*; return whether it was the last one."""
        page = {tool["name"]: tool for tool in _named_tools(result)}
        # A page that a client requested counts like a page that the proxy requested:
        # both show the server's tools.
        listing.definitions.update(page)
        cursor = result.get("nextCursor")
        # A server that repeats a cursor would be asked forever.
        if isinstance(cursor, str) and cursor not in listing.seen:
            listing.cursor = cursor
            listing.seen.add(cursor)
            if len(self._open) < MOST_OPEN:
                self._open[cursor] = listing
            # A client may stop after the first page; its tools are still known.
            if self.is_current(listing):
                self._replace({**self._definitions, **page}, complete=False)
            return False
        self._replace(listing.definitions, complete=True)
        self._open = {
            key: each for key, each in self._open.items() if each is not listing
        }
        if self.is_current(listing):
            self._known_generation = listing.generation
            self._expires = _expiry(result.get("ttlMs"))
        return True

    def find(self, name: str) -> Tool | None:
        """Return the tool of exactly this name, or ``None``."""
        definition = self._definitions.get(name)
        if definition is None:
            return None
        tool = self._compiled.get(name)
        if tool is None:
            tool = self._compiled[name] = compile_tool(
                definition, self._options.of(name).aliases
            )
        return tool

    def schema_to_log(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of the tool *name*; ``None`` if it was returned before, or
        there is none.
        """
        schema = self._definitions.get(name, {}).get("inputSchema")
        if not isinstance(schema, dict) or self._logged.get(name) == schema:
            return None
        self._logged[name] = schema
        return schema

    def meant_by(self, name: str) -> MeantName:
        """Return the tool that *name* can mean; ``None`` before the complete list is
        known.

        >>> tools = Tools()
        >>> page = {"tools": [{"name": "read_file"}, {"name": "list"}]}
        >>> tools.add_page(tools.start(), page)
        True
        >>> sent = ["Read-File", "mcp__files__read_file", "remove"]
        >>> [tools.meant_by(name).name for name in sent]
        ['read_file', 'read_file', None]
        """
        if not self.complete:
            return MeantName(None)
        # The client has already chosen the server and its name, so any prefix may be
        # the server's name.
        return meant_name(name, self._definitions, prefixes=None)

    @property
    def names(self) -> Collection[str]:
        """The names of the tools that are known."""
        return self._definitions.keys()

    def _replace(
        self, definitions: dict[str, Mapping[str, Any]], *, complete: bool
    ) -> None:
        # Compiling a schema takes longer than calling the tool, so it is kept until the
        # definition changes.
        self._compiled = {
            name: tool
            for name, tool in self._compiled.items()
            if definitions.get(name) == tool.definition
        }
        self._definitions, self.complete = definitions, complete


def _expiry(milliseconds: Any) -> float | None:
    """Return when a list expires, on the clock of this process; ``None`` if the server
    does not say.
    """
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool):
        return None
    # At most a day: 1e308 would keep an outdated list forever.
    return time.monotonic() + max(0, min(milliseconds, 86_400_000)) / 1000


def _named_tools(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tools of a ``tools/list`` result that have a name."""
    tools = result.get("tools")
    if not isinstance(tools, list):
        return []
    named = []
    for tool in tools:
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            named.append(tool)
    return named


def compile_tool(
    definition: Mapping[str, Any], aliases: Mapping[str, Any] | None = None
) -> Tool:
    """Return the tool that *definition*, one entry of a ``tools/list`` result, defines;
    *aliases* are the user's.
    """
    # 60 ms to import: not before the first call needs it.
    from skillruntime.contract import Contract, Schema
    from skillruntime.errors import InvalidSkillError

    name = definition["name"]
    schema = definition.get("inputSchema")
    if not isinstance(schema, dict):
        if schema is None or schema is True:
            return Tool(name, definition, None, None, None)
        return Tool(name, definition, None, None, "inputSchema is not an object")
    contract, output, reason = None, None, None
    for document in _readings(schema):
        try:
            # Servers accept `example.com` as a "format": "uri", and Python servers
            # accept a `date-time` without an offset.
            contract = Contract.from_dict(
                {"input": document, "aliases": dict(aliases or {})},
                name=name,
                formats="annotate",
            )
            reason = None
            break
        except InvalidSkillError as error:
            reason = reason or str(error)
    promised = definition.get("outputSchema")
    if isinstance(promised, dict):
        for document in _readings(promised):
            try:
                output = Schema(document, where="outputSchema", assert_formats=False)
                break
            except InvalidSkillError:
                continue
    return Tool(name, definition, contract, output, reason)


def _readings(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return *schema* unchanged and, if it does not name a draft, also read by
    draft-07.

    The protocol's default is 2020-12, yet ``items`` as an array and a boolean
    ``exclusiveMinimum`` are still written.
    """
    if "$schema" in schema:
        return [schema]
    drafts = (DRAFT_07, "http://json-schema.org/draft-04/schema#")
    return [schema, *({"$schema": draft, **schema} for draft in drafts)]
