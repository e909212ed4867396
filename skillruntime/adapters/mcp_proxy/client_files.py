"""Configuration files of MCP clients, with each server behind the proxy, or as it was before.

JSON with or without comments is edited in place: comments, order and layout stay. Nothing is written to disk.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from skillruntime.adapters.mcp_proxy.json_text import Malformed, Span, decode, encode, members, replaced, to_bytes

__all__ = ["ClientFileError", "Edited", "servers_in", "unwrapped", "wrapped"]

EXECUTABLE = "skillruntime"
COMMAND = "mcp-proxy"
TABLES = ("mcpServers", "servers", "mcp_servers")
"""Where servers are listed: Claude Code and Cursor, VS Code, Codex."""
_VARIABLE = "SKILLRUNTIME_HEADER_"
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
        return _toml(text, lambda name, entry: _wrapped_table(entry, options, executable, name))
    return _json(text, lambda raw, span, name: _wrap(raw, span, options, executable, name))


def unwrapped(text: str, *, toml: bool = False) -> Edited:
    """Return a client's file with no server behind the proxy; one that is not stays.

    >>> unwrapped('{"mcpServers": {"git": {"command": "skillruntime", "args": ["mcp-proxy", "--", "uvx", "a"]}}}').text
    '{"mcpServers": {"git": {"command": "uvx", "args": ["a"]}}}'

    Raises:
        ClientFileError: it is not such a file.
    """
    if toml:
        return _toml(text, lambda name, entry: _unwrapped_table(entry))
    return _json(text, lambda raw, span, name: _unwrap(raw, span))


def servers_in(text: str, *, toml: bool = False) -> dict[str, dict[str, Any]]:
    """Return the servers that a client's file lists, by name.

    Raises:
        ClientFileError: it is not such a file.
    """
    if toml:
        try:
            table = tomllib.loads(text).get(TABLES[2], {})
        except tomllib.TOMLDecodeError as error:
            raise ClientFileError(f"not TOML: {error}") from None
        return {name: entry for name, entry in table.items() if isinstance(entry, dict)}
    raw = _plain(text.encode())
    return {name: decode(raw[start:end]) for name, (start, end) in _entries(raw)}


def _json(text: str, edit: Any) -> Edited:
    original = text.encode()
    raw = _plain(original)
    changes: dict[Span, bytes] = {}
    notes: list[str] = []
    for name, span in _entries(raw):
        found = edit(raw, span, name)
        if isinstance(found, str):
            notes.append(f"{name}: {found}")
        else:
            changes.update(found)
    return Edited(replaced(original, changes).decode(), notes)


def _plain(text: bytes) -> bytes:
    """Return *text* with spaces for comments and trailing commas, so that every byte keeps its place."""

    def blank(match: re.Match[bytes]) -> bytes:
        found = match[0]
        return found if found[:1] == b'"' else re.sub(rb"[^\r\n]", b" ", found)

    return _TRAILING_COMMA.sub(blank, _COMMENT_OR_STRING.sub(blank, text))


def _entries(raw: bytes) -> list[tuple[str, Span]]:
    try:
        decode(raw)
        top = dict(members(raw, len(b"\xef\xbb\xbf") if raw[:3] == b"\xef\xbb\xbf" else 0))
        table = next((top[key] for key in TABLES if key in top), None)
        if table is None:
            raise ClientFileError(f"none of {', '.join(TABLES)} is in the file")
        return [(name, span) for name, span in members(raw, table[0]) if raw[span[0]] == ord("{")]
    except Malformed as error:
        raise ClientFileError(f"not JSON: {error}") from None


def _is_wrapped(entry: dict[str, Any]) -> bool:
    arguments = entry.get("args")
    return isinstance(arguments, list) and arguments[:1] == [COMMAND] and EXECUTABLE in str(entry.get("command"))


def _wrap(raw: bytes, span: Span, options: Sequence[str], executable: str, name: str) -> dict[Span, bytes] | str:
    entry = decode(raw[span[0] : span[1]])
    if _is_wrapped(entry):
        return {}
    if not isinstance(entry.get("command"), str):
        new = _wrapped_url(entry, options, executable)
        return new if isinstance(new, str) else {span: _laid_out(new, raw, span)}
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


def _unwrap(raw: bytes, span: Span) -> dict[Span, bytes]:
    entry = decode(raw[span[0] : span[1]])
    if not _is_wrapped(entry):
        return {}
    arguments = entry["args"]
    if "--" not in arguments:
        return {span: _laid_out(_unwrapped_url(entry), raw, span)}
    inside = dict(members(raw, span[0]))
    at = arguments.index("--") + 1
    command, rest = arguments[at], arguments[at + 1 :]
    value, args = inside["command"], inside["args"]
    prefix = ", ".join(encode(each) for each in arguments[: at + 1]).encode()
    text = raw[args[0] + 1 : args[1]]
    changes = {value: to_bytes(command)}
    if not rest and raw[value[1] : args[0]] == b', "args": ' and text == prefix + b"]":
        return {**changes, (value[1], args[1]): b""}
    for ending in (b", ", b" "):
        if text.startswith(prefix + ending):
            return {**changes, (args[0] + 1, args[0] + 1 + len(prefix + ending)): b""}
    return {**changes, args: json.dumps(rest, ensure_ascii=False).encode()}


def _wrapped_url(entry: dict[str, Any], options: Sequence[str], executable: str) -> dict[str, Any] | str:
    """Return the entry of a server at a URL as one that is started; header values go into its environment."""
    url, kind = entry.get("url"), entry.get("type", "http")
    if not isinstance(url, str) or kind != "http":
        return f"not wrapped: a server of type {kind!r} is not started on stdio nor reached by streamable HTTP"
    headers = entry.get("headers") or {}
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        return "not wrapped: its headers are not text"
    new: dict[str, Any] = {"type": "stdio"} if "type" in entry else {}
    variables = {_variable(key): value for key, value in headers.items()}
    sent = [part for key in headers for part in ("--header", f"{key}=env:{_variable(key)}")]
    new |= {"command": executable, "args": [COMMAND, *options, *sent, url]}
    if variables:
        new["env"] = variables
    return new | {key: value for key, value in entry.items() if key not in ("type", "url", "headers")}


def _unwrapped_url(entry: dict[str, Any]) -> dict[str, Any]:
    arguments = entry["args"]
    given = entry.get("env") or {}
    headers: dict[str, Any] = {}
    for flag, value in pairwise(arguments):
        name, _, variable = str(value).partition("=env:")
        if flag == "--header" and variable in given:
            headers[name] = given[variable]
    rest = {key: value for key, value in given.items() if not key.startswith(_VARIABLE)}
    new: dict[str, Any] = {"type": "http"} if "type" in entry else {}
    new["url"] = arguments[-1]
    if headers:
        new["headers"] = headers
    if rest:
        new["env"] = rest
    return new | {key: value for key, value in entry.items() if key not in ("type", "command", "args", "env")}


def _variable(header: str) -> str:
    return _VARIABLE + re.sub(r"\W", "_", header).upper()


def _laid_out(entry: dict[str, Any], raw: bytes, span: Span) -> bytes:
    """Return *entry* as JSON, on lines of its own where the entry before was."""
    if b"\n" not in raw[span[0] : span[1]]:
        return json.dumps(entry, ensure_ascii=False).encode()
    line = raw[raw.rfind(b"\n", 0, span[0]) + 1 : span[0]]
    indent = line[: len(line) - len(line.lstrip())].decode()
    return json.dumps(entry, ensure_ascii=False, indent=2).replace("\n", "\n" + indent).encode()


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
    notes = [f"{name}: {note}" for name, entry in table.items() if (note := edit(name, entry))]
    return Edited(tomlkit.dumps(document), notes)


def _wrapped_table(entry: Any, options: Sequence[str], executable: str, name: str) -> str | None:
    if _is_wrapped(entry):
        return None
    if isinstance(entry.get("command"), str):
        before = [COMMAND, *options, "--", str(entry["command"])]
        entry["command"] = executable
        if "args" not in entry:
            entry["args"] = before
        for index, each in enumerate(before if entry["args"][:1] != [COMMAND] else []):
            entry["args"].insert(index, each)
        return None
    if not isinstance(entry.get("url"), str):
        return "not wrapped: it has neither command nor url"
    if "http_headers" in entry or "env_http_headers" in entry:
        return "not wrapped: give its headers as environment variables with --header"
    token = entry.pop("bearer_token_env_var", None)
    sent = ["--bearer-env", str(token)] if token is not None else []
    url = str(entry.pop("url"))
    entry["command"] = executable
    entry["args"] = [COMMAND, *options, *sent, url]
    if token is not None:
        entry["env_vars"] = [str(token)]
    return None


def _unwrapped_table(entry: Any) -> None:
    if not _is_wrapped(entry):
        return
    arguments = [str(each) for each in entry["args"]]
    if "--" in arguments:
        at = arguments.index("--") + 1
        entry["command"] = arguments[at]
        for _ in range(at + 1):
            entry["args"].pop(0)
        return
    del entry["command"]
    del entry["args"]
    entry["url"] = arguments[-1]
    if "--bearer-env" in arguments:
        entry["bearer_token_env_var"] = arguments[arguments.index("--bearer-env") + 1]
        entry.pop("env_vars", None)
