"""Configuration files of MCP clients, with each server behind the proxy, or as it was before.

JSON with or without comments is edited in place: comments, order and layout stay. Nothing is written to disk.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from skillruntime.adapters.mcp_proxy.json_text import (
    Malformed,
    Span,
    decode,
    elements,
    encode,
    members,
    replaced,
    skip,
    to_bytes,
)

__all__ = ["ClientFileError", "Edited", "servers_in", "unwrapped", "wrapped"]

EXECUTABLE = "skillruntime"
COMMAND = "mcp-proxy"
TABLES = ("mcpServers", "servers", "mcp_servers")
"""Where servers are listed: Claude Code and Cursor, VS Code, Codex."""
# How clients' files write the one transport.
_HTTP = ("http", "streamable-http", "streamableHttp")
# Editors on Windows write it; a reader may ignore it (RFC 8259, 8.1).
_BOM = b"\xef\xbb\xbf"
_VARIABLE = "SKILLRUNTIME_HEADER_"
# A string is matched too, because `//` in one is not a comment: most URLs have it.
_COMMENT_OR_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|//[^\r\n]*+|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|,(?=\s*[}\]])', re.DOTALL)


class ClientFileError(ValueError):
    """The text is not a configuration file that lists MCP servers."""


@dataclass(slots=True)
class Edited:
    """The new text, and what was left as it is, with the reason."""

    text: str
    notes: list[str] = field(default_factory=list)


def wrapped(text: str, options: Sequence[str] = (), *, executable: str = EXECUTABLE, toml: bool = False) -> Edited:
    """Return a client's file with each server behind the proxy, which gets *options*; one that is behind it stays.

    >>> wrapped('{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}').text
    '{"mcpServers": {"git": {"command": "skillruntime", "args": ["mcp-proxy", "--", "uvx", "mcp-server-git"]}}}'

    Raises:
        ClientFileError: it is not such a file.
    """
    if toml:
        return _toml(text, lambda entry: _wrapped_table(entry, options, executable))
    return _json(text, lambda raw, span: _wrap(raw, span, options, executable))


def unwrapped(text: str, *, toml: bool = False) -> Edited:
    """Return a client's file with no server behind the proxy; one that is not stays.

    >>> unwrapped('{"mcpServers": {"git": {"command": "skillruntime", "args": ["mcp-proxy", "--", "uvx", "a"]}}}').text
    '{"mcpServers": {"git": {"command": "uvx", "args": ["a"]}}}'

    Raises:
        ClientFileError: it is not such a file.
    """
    if toml:
        return _toml(text, _unwrapped_table)
    return _json(text, _unwrap)


def servers_in(text: str, *, toml: bool = False) -> dict[str, dict[str, Any]]:
    """Return the servers that a client's file lists, by name.

    Raises:
        ClientFileError: it is not such a file.
    """
    if toml:
        try:
            table = tomllib.loads(text).get(TABLES[2])
        except tomllib.TOMLDecodeError as error:
            raise ClientFileError(f"not TOML: {error}") from None
        if not isinstance(table, dict):
            raise ClientFileError(f"it has no table {TABLES[2]}")
        return {name: entry for name, entry in table.items() if isinstance(entry, dict)}
    raw = _plain(text.encode())
    return {name: decode(raw[start:end]) for name, (start, end) in _entries(raw, nested=False)}


def _json(text: str, edit: Any) -> Edited:
    original = text.encode()
    raw = _plain(original)
    changes: dict[Span, bytes] = {}
    notes: list[str] = []
    for name, span in _entries(raw):
        found = edit(raw, span)
        if isinstance(found, str):
            notes.append(f"{name}: {found}")
        else:
            changes.update(found)
    return Edited(replaced(original, changes).decode(), notes)


def _plain(text: bytes) -> bytes:
    """Return *text* with spaces for comments and trailing commas, so that every byte keeps its place."""

    def blank(match: re.Match[bytes]) -> bytes:
        # Line breaks stay, so that a parser's message names the line of the file.
        found = match[0]
        return found if found[:1] == b'"' else re.sub(rb"[^\r\n]", b" ", found)

    return _TRAILING_COMMA.sub(blank, _COMMENT_OR_STRING.sub(blank, text))


def _entries(raw: bytes, *, nested: bool = True) -> list[tuple[str, Span]]:
    try:
        # `members` scans brackets and quotes only: before a part is edited, the whole must be JSON.
        decode(raw)
        tables = list(_tables(raw, len(_BOM) if raw.startswith(_BOM) else 0, nested=nested))
        if not any(raw[start] == ord("{") for start, _ in tables):
            raise ClientFileError(f"none of {', '.join(TABLES)} is in the file")
        return [
            (name, span)
            for start, _ in tables
            if raw[start] == ord("{")
            for name, span in members(raw, start)
            if raw[span[0]] == ord("{")
        ]
    except Malformed as error:
        raise ClientFileError(f"not JSON: {error}") from None


def _tables(raw: bytes, start: int, *, nested: bool) -> Iterator[Span]:
    """Yield where servers are listed: also by project (`~/.claude.json`), and in the settings of VS Code."""
    for key, span in members(raw, start):
        if key in TABLES:
            yield span
        elif key == "projects" and nested and raw[span[0]] == ord("{"):
            for _, (inner, _) in members(raw, span[0]):
                yield from _tables(raw, inner, nested=False) if raw[inner] == ord("{") else ()
        elif key == "mcp" and raw[span[0]] == ord("{"):
            yield from _tables(raw, span[0], nested=False)


def _is_wrapped(entry: dict[str, Any]) -> bool:
    # The command may be a path to the program, hence only its name in it.
    arguments = entry.get("args")
    return isinstance(arguments, list) and arguments[:1] == [COMMAND] and EXECUTABLE in str(entry.get("command"))


def _wrap(raw: bytes, span: Span, options: Sequence[str], executable: str) -> dict[Span, bytes] | str:
    entry = decode(raw[span[0] : span[1]])
    if _is_wrapped(entry):
        return {}
    if not isinstance(entry.get("command"), str):
        return _wrap_url(raw, span, options, executable, entry)
    if not isinstance(entry.get("args", []), list):
        return "not wrapped: its args are not a list"
    inside = dict(members(raw, span[0]))
    before = [COMMAND, *options, "--", entry["command"]]
    changes = {inside["command"]: to_bytes(executable)}
    prefix = ", ".join(encode(each) for each in before).encode()
    if "args" not in inside:
        return {inside["command"]: to_bytes(executable) + b', "args": [' + prefix + b"]"}
    start = inside["args"][0] + 1
    # The space marks an array that was there and empty: to unwrap leaves it, and drops one that was not there.
    changes[(start, start)] = prefix + (b", " if entry["args"] else b" ")
    return changes


def _unwrap(raw: bytes, span: Span) -> dict[Span, bytes] | str:
    entry = decode(raw[span[0] : span[1]])
    if not _is_wrapped(entry):
        return {}
    arguments = entry["args"]
    if "--" not in arguments:
        return _unwrap_url(raw, span, arguments)
    inside = dict(members(raw, span[0]))
    at = arguments.index("--") + 1
    command, rest = arguments[at], arguments[at + 1 :]
    value, args = inside["command"], inside["args"]
    prefix = ", ".join(encode(each) for each in arguments[: at + 1]).encode()
    text = raw[args[0] + 1 : args[1]]
    changes = {value: to_bytes(command)}
    # The very text that `_wrap` adds: the server had no `args` before.
    if not rest and raw[value[1] : args[0]] == b', "args": ' and text == prefix + b"]":
        return {**changes, (value[1], args[1]): b""}
    for ending in (b", ", b" "):
        if text.startswith(prefix + ending):
            return {**changes, (args[0] + 1, args[0] + 1 + len(prefix + ending)): b""}
    # A person or a formatter has laid the list out in another way since.
    return {**changes, args: json.dumps(rest, ensure_ascii=False).encode()}


def _wrap_url(
    raw: bytes, span: Span, options: Sequence[str], executable: str, entry: dict[str, Any]
) -> dict[Span, bytes] | str:
    """Return the changes that make of a server at a URL one that is started; header values go into its environment."""
    if not isinstance(entry.get("url"), str):
        return "not wrapped: it has neither a command nor a url"
    if entry.get("type", "http") not in _HTTP:
        return f"not wrapped: the transport {entry['type']!r} is not spoken"
    headers = entry.get("headers", {})
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        return "not wrapped: its headers are not text"
    # `unwrap` could not tell them from those that the proxy is given.
    if "env" in entry or "args" in entry:
        return "not wrapped: it has a url, and env or args, which only a command has"
    # The values stay out of the arguments, which every user of the machine can list.
    sent = [part for key in headers for part in ("--header", f"{key}=env:{_variable(key)}")]
    # `unwrap` gives the client's own word for the transport back.
    word = ("--url-type", entry["type"]) if entry.get("type", "http") != "http" else ()
    before = ", ".join(encode(each) for each in (COMMAND, *options, *sent, *word)).encode()
    places = _members(raw, span[0])
    key, value = places["url"]
    changes = {
        key: b'"command": ' + to_bytes(executable) + b', "args"',
        value: b"[" + before + b", " + raw[value[0] : value[1]] + b"]",
    }
    if "type" in places:
        changes[places["type"][1]] = b'"stdio"'
    if "headers" in places:
        changes[places["headers"][0]] = b'"env"'
        inside = _members(raw, places["headers"][1][0])
        changes |= {key: to_bytes(_variable(name)) for name, (key, _) in inside.items()}
    return changes


def _unwrap_url(raw: bytes, span: Span, arguments: list[str]) -> dict[Span, bytes] | str:
    places = _members(raw, span[0])
    (start, _), (_, between) = places["command"]
    (next_key, _), (args, end) = places["args"]
    if raw[between:next_key].strip() != b",":
        return "not unwrapped: its command and its args are not next to each other"
    *_, (url, url_end) = elements(raw, args)
    changes = {(start, end): b'"url": ' + raw[url:url_end]}
    if "type" in places:
        word = next((value for flag, value in pairwise(arguments) if flag == "--url-type" and value in _HTTP), "http")
        changes[places["type"][1]] = to_bytes(word)
    names = {variable: name for flag, value in pairwise(arguments) if flag == "--header"
             for name, _, variable in [value.partition("=env:")]}  # fmt: skip
    inside = _members(raw, places["env"][1][0]) if "env" in places else {}
    if "env" in places and all(each in names for each in inside):
        changes[places["env"][0]] = b'"headers"'
        changes |= {key: to_bytes(names[each]) for each, (key, _) in inside.items()}
    return changes


def _members(raw: bytes, start: int) -> dict[str, tuple[Span, Span]]:
    """Return where each key of the object at *start*, and its value, is."""
    found: dict[str, tuple[Span, Span]] = {}
    position = start
    for key, value in members(raw, start):
        begin = raw.index(b'"', position)
        found[key] = (begin, skip(raw, begin)), value
        position = value[1]
    return found


def _variable(header: str) -> str:
    return _VARIABLE + re.sub(r"\W", "_", header).upper()


def _toml(text: str, edit: Any) -> Edited:
    import tomlkit  # only Codex writes TOML
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ClientFileError(f"not TOML: {error}") from None
    table = next((document[key] for key in TABLES if key in document), None)
    if not isinstance(table, dict):
        raise ClientFileError(f"none of {', '.join(TABLES)} is in the file")
    notes = [f"{name}: {note}" for name, entry in table.items() if isinstance(entry, dict) and (note := edit(entry))]
    return Edited(tomlkit.dumps(document), notes)


def _wrapped_table(entry: Any, options: Sequence[str], executable: str) -> str | None:
    import tomlkit

    if _is_wrapped(entry):
        return None
    if isinstance(entry.get("command"), str):
        if not isinstance(entry.get("args", []), list):
            return "not wrapped: its args are not a list"
        before = [COMMAND, *options, "--", str(entry["command"])]
        entry["command"] = executable
        if "args" not in entry:
            # The last comma marks that there were none: to unwrap drops them.
            entry["args"] = tomlkit.value(json.dumps(before)[:-1] + ",]")
            return None
        for index, each in enumerate(before):
            entry["args"].insert(index, each)
        return None
    if not isinstance(entry.get("url"), str):
        return "not wrapped: it has neither command nor url"
    if any(key in entry for key in ("http_headers", "env_http_headers", "env_vars", "args", "env")):
        return "not wrapped: give its headers as environment variables with --header"
    token = entry.pop("bearer_token_env_var", None)
    sent = ["--bearer-env", str(token)] if token is not None else []
    url = str(entry.pop("url"))
    entry["command"] = executable
    entry["args"] = [COMMAND, *options, *sent, url]
    if token is not None:
        # Codex gives a server only the variables that its table names.
        entry["env_vars"] = [str(token)]
    return None


def _unwrapped_table(entry: Any) -> None:
    if not _is_wrapped(entry):
        return
    arguments = [str(each) for each in entry["args"]]
    if "--" in arguments:
        at = arguments.index("--") + 1
        entry["command"] = arguments[at]
        if len(arguments) == at + 1 and entry["args"].as_string().endswith(",]"):
            del entry["args"]
            return
        for _ in range(at + 1):
            entry["args"].pop(0)
        return
    del entry["command"]
    del entry["args"]
    entry["url"] = arguments[-1]
    if "--bearer-env" in arguments:
        entry["bearer_token_env_var"] = arguments[arguments.index("--bearer-env") + 1]
        # They are the proxy's own: a table that had some was not wrapped.
        entry.pop("env_vars", None)
