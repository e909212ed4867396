"""Put each server of an MCP client's configuration file behind the proxy, and undo it.

JSON with or without comments is edited in place: comments, order and layout stay.
Nothing is written to disk. The law: unwrapping a wrapped file restores the same bytes,
unless someone changed the file in between.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
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
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["ClientFileError", "Edited", "launcher", "unwrapped", "wrapped"]

EXECUTABLE = "skillruntime"
COMMAND = "mcp-proxy"
TABLES = ("mcpServers", "servers", "mcp_servers")
"""Where servers are listed: Claude Code and Cursor, VS Code, Codex."""
# `uvx` runs a program from one of these folders of uv's cache, which `uv cache clean`
# removes.
_UV_CACHES = {"archive-v0", "builds-v0", "environments-v2"}
_LONGEST_LAUNCHER = 4
# The names that clients' files have for the same transport.
_HTTP = ("http", "streamable-http", "streamableHttp")
# Editors on Windows write a byte order mark; a reader may ignore it (RFC 8259, 8.1).
_BOM = b"\xef\xbb\xbf"
_VARIABLE = "SKILLRUNTIME_HEADER_"
# A string is matched too, because `//` in a string is not a comment: most URLs have it.
# A string or comment without an end reaches to the end of the file, so that no text is
# matched twice.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?+(?:"|\Z)'
_COMMENT_OR_STRING = lazy_pattern(
    _STRING + rb"|//[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)", re.DOTALL
)
_TRAILING_COMMA = lazy_pattern(_STRING + rb"|,(?=\s*+[}\]])", re.DOTALL)


class ClientFileError(ValueError):
    """The text is not a configuration file with a list of MCP servers."""


@dataclass(slots=True)
class Edited:
    """The new text, and the entries that were left unchanged, with the reasons."""

    text: str
    notes: list[str] = field(default_factory=list)


def launcher() -> tuple[str, ...]:
    """Return the words that start this program from any directory, whatever PATH the
    client has.
    """
    if _UV_CACHES.intersection(Path(sys.prefix).parts):
        return (
            shutil.which("uvx") or "uvx",
            "--from",
            f"{EXECUTABLE}[standard]",
            EXECUTABLE,
        )
    installed = shutil.which(
        EXECUTABLE, path=sysconfig.get_path("scripts")
    ) or shutil.which(EXECUTABLE)
    if installed is not None:
        return (str(Path(installed).absolute()),)
    return (sys.executable, "-m", EXECUTABLE)


def wrapped(
    text: str,
    options: Sequence[str] = (),
    *,
    launcher: Sequence[str] = (EXECUTABLE,),
    toml: bool = False,
) -> Edited:
    """Return a client's file with each server behind the proxy, which gets *options*.

    A server that is already behind the proxy stays as it is.

    >>> git = '{"command": "uvx", "args": ["mcp-server-git"]}'
    >>> edited = wrapped('{"mcpServers": {"git": %s}}' % git)
    >>> edited.text.removeprefix('{"mcpServers": {"git": ').removesuffix("}}")
    '{"command": "skillruntime", "args": ["mcp-proxy", "--", "uvx", "mcp-server-git"]}'

    Raises:
        ClientFileError: *text* is not such a file, or `unwrapped` could not undo the
            change.
    """
    proxy = [*launcher, COMMAND, *options]
    if toml:
        edited = _toml(text, lambda entry: _wrap_table(entry, proxy))
    else:
        edited = _json(text, lambda raw, span: _wrap(raw, span, proxy))
    if unwrapped(edited.text, toml=toml).text != unwrapped(text, toml=toml).text:
        raise ClientFileError(
            "its layout would be lost; put the proxy before each server by hand"
        )
    return edited


def unwrapped(text: str, *, toml: bool = False) -> Edited:
    """Return a client's file with no server behind the proxy.

    A server that is not behind the proxy stays as it is.

    >>> git = '{"command": "skillruntime", "args": ["mcp-proxy", "--", "uvx", "a"]}'
    >>> unwrapped('{"mcpServers": {"git": %s}}' % git).text
    '{"mcpServers": {"git": {"command": "uvx", "args": ["a"]}}}'

    Raises:
        ClientFileError: *text* is not such a file.
    """
    if toml:
        return _toml(text, _unwrap_table)
    return _json(text, _unwrap)


def _json(text: str, edit: Callable[[bytes, Span], dict[Span, bytes] | str]) -> Edited:
    original = text.encode()
    raw = _plain(original)
    changes: dict[Span, bytes] = {}
    notes: list[str] = []
    for name, span in _entries(raw):
        edits = edit(raw, span)
        if isinstance(edits, str):  # the reason for leaving the entry unchanged
            notes.append(f"{name}: {edits}")
        else:
            changes.update(edits)
    return Edited(replaced(original, changes).decode(), notes)


def _plain(text: bytes) -> bytes:
    """Return *text* with spaces in place of comments and trailing commas, so that every
    other byte keeps its position.
    """

    def blank(match: re.Match[bytes]) -> bytes:
        token = match[0]
        if token.startswith(b'"'):
            return token
        # Line breaks stay, so that a parser's message names the line of the file.
        return re.sub(rb"[^\r\n]", b" ", token)

    return _TRAILING_COMMA.sub(blank, _COMMENT_OR_STRING.sub(blank, text))


def _entries(raw: bytes) -> list[tuple[str, Span]]:
    try:
        # `members` looks only at brackets and quotes, so check first that the whole
        # file is JSON.
        decode(raw)
        begin = len(_BOM) if raw.startswith(_BOM) else 0
        tables = list(_tables(raw, begin, nested=True))
        entries: list[tuple[str, Span]] = []
        for start in tables:
            for name, span in members(raw, start):
                if raw[span[0]] == ord("{"):
                    entries.append((name, span))
    except Malformed as error:
        raise ClientFileError(f"not JSON: {error}") from None
    if not tables:
        raise ClientFileError(f"none of {', '.join(TABLES)} is in the file")
    return entries


def _tables(raw: bytes, start: int, *, nested: bool) -> Iterator[int]:
    """Yield where each table of servers begins; with *nested*, also those of projects
    (`~/.claude.json`).

    The settings of VS Code have the table below the key `mcp`.
    """
    for key, (place, _) in members(raw, start):
        if raw[place] != ord("{"):
            continue
        if key in TABLES:
            yield place
        elif key == "mcp":
            yield from _tables(raw, place, nested=False)
        elif key == "projects" and nested:
            for _, (inner, _) in members(raw, place):
                if raw[inner] == ord("{"):
                    yield from _tables(raw, inner, nested=False)


def _is_wrapped(entry: Any) -> bool:
    # The command may be a path to the program, or another program that starts it, such
    # as `uvx`.
    arguments = entry.get("args")
    if not isinstance(arguments, list) or COMMAND not in arguments[:_LONGEST_LAUNCHER]:
        return False
    before = [entry.get("command"), *arguments[: arguments.index(COMMAND)]]
    return any(EXECUTABLE in str(word) for word in before)


def _wrap(raw: bytes, span: Span, proxy: Sequence[str]) -> dict[Span, bytes] | str:
    """Return the edits that put the entry at *span* behind *proxy*, or the reason why
    it stays as it is.
    """
    entry = decode(raw[span[0] : span[1]])
    if _is_wrapped(entry):
        return {}
    if not isinstance(entry.get("command"), str):
        return _wrap_url(raw, span, proxy, entry)
    if not isinstance(entry.get("args", []), list):
        return "not wrapped: its args are not a list"
    fields = dict(members(raw, span[0]))
    program = to_bytes(proxy[0])
    # Written as in the file, with its escapes.
    command = raw[slice(*fields["command"])]
    words = ", ".join(encode(word) for word in (*proxy[1:], "--"))
    prefix = words.encode() + b", " + command
    if "args" not in fields:
        return {fields["command"]: program + b', "args": [' + prefix + b"]"}
    start = fields["args"][0] + 1
    if entry["args"]:
        prefix += b", "
    else:
        # The space marks that the entry had an empty array. `_unwrap` keeps such an
        # array, and removes one that `_wrap` has added.
        prefix += b" "
    return {fields["command"]: program, (start, start): prefix}


def _unwrap(raw: bytes, span: Span) -> dict[Span, bytes] | str:
    """Return the edits that restore the entry at *span*, byte for byte if `_wrap` wrote
    it.
    """
    entry = decode(raw[span[0] : span[1]])
    if not _is_wrapped(entry):
        return {}
    arguments = entry["args"]
    if "--" not in arguments:
        return _unwrap_url(raw, span, arguments)
    fields = dict(members(raw, span[0]))
    command_span, args_span = fields["command"], fields["args"]
    _, command_end = command_span
    args_start, args_end = args_span
    # The server's own command is the first item after `--`.
    command_index = arguments.index("--") + 1
    item_spans = list(elements(raw, args_start))
    command = raw[slice(*item_spans[command_index])]
    edits = {command_span: command}

    words = ", ".join(encode(word) for word in arguments[:command_index])
    prefix = words.encode() + b", " + command  # the form that `_wrap` writes
    remaining = arguments[command_index + 1 :]
    items_start = args_start + 1
    items = raw[items_start:args_end]  # with the closing bracket
    # `_wrap` has added the whole array: the server had no `args` before.
    if not remaining and items == prefix + b"]":
        if raw[command_end:args_start] == b', "args": ':
            return {**edits, (command_end, args_end): b""}
    for ending in (b", ", b" "):
        added = prefix + ending
        if items.startswith(added):
            return {**edits, (items_start, items_start + len(added)): b""}
    # A person or a formatter has changed the layout of the list.
    return {**edits, args_span: json.dumps(remaining, ensure_ascii=False).encode()}


def _wrap_url(
    raw: bytes, span: Span, proxy: Sequence[str], entry: dict[str, Any]
) -> dict[Span, bytes] | str:
    """Return the edits that turn a server at a URL into a command that starts the
    proxy; header values go into its environment.
    """
    reason = _unfit_url(entry)
    if reason is not None:
        return reason
    arguments = list(proxy[1:])
    # The values stay out of the arguments, which every user of the machine can list.
    for name in entry.get("headers", {}):
        arguments += ["--header", f"{name}=env:{_variable(name)}"]
    # This lets `_unwrap_url` restore the client's own name for the transport.
    if entry.get("type", "http") != "http":
        arguments += ["--url-type", entry["type"]]
    words = ", ".join(encode(word) for word in arguments).encode()
    places = _members(raw, span[0])
    key, value = places["url"]
    changes = {
        key: b'"command": ' + to_bytes(proxy[0]) + b', "args"',
        value: b"[" + words + b", " + raw[value[0] : value[1]] + b"]",
    }
    if "type" in places:
        changes[places["type"][1]] = b'"stdio"'
    if "headers" in places:
        changes[places["headers"][0]] = b'"env"'
        headers = _members(raw, places["headers"][1][0])
        for name, (header_key, _) in headers.items():
            changes[header_key] = to_bytes(_variable(name))
    return changes


def _unfit_url(entry: dict[str, Any]) -> str | None:
    """Return why a server without a command cannot be put behind the proxy; ``None`` if
    it can.
    """
    if not isinstance(entry.get("url"), str):
        return "not wrapped: it has neither a command nor a url"
    if entry.get("type", "http") not in _HTTP:
        return f"not wrapped: the transport {entry['type']!r} is not spoken"
    headers = entry.get("headers", {})
    if not isinstance(headers, dict) or not all(
        isinstance(value, str) for value in headers.values()
    ):
        return "not wrapped: its headers are not text"
    # `_unwrap_url` could not distinguish them from those that `_wrap_url` adds.
    if "env" in entry or "args" in entry:
        return "not wrapped: it has a url, and env or args, which only a command has"
    return None


def _unwrap_url(
    raw: bytes, span: Span, arguments: list[str]
) -> dict[Span, bytes] | str:
    """Return the edits that restore the server at a URL whose entry is at *span*, or
    the reason why it stays as it is.
    """
    places = _members(raw, span[0])
    (start, _), (_, between) = places["command"]
    next_key, (args, end) = places["args"]
    if raw[between : next_key[0]].strip() != b",":
        return "not unwrapped: its command and its args are not next to each other"
    *_, (url, url_end) = elements(raw, args)
    # The text between `"args"` and its value is what stood between `"url"` and its own.
    changes = {
        (start, next_key[0]): b"",
        next_key: b'"url"',
        (args, end): raw[url:url_end],
    }
    if "type" in places:
        changes[places["type"][1]] = to_bytes(_url_type(arguments))
    if "env" not in places:
        return changes
    names = {}
    for flag, value in pairwise(arguments):
        if flag == "--header":
            name, _, variable = value.partition("=env:")
            names[variable] = name
    variables = _members(raw, places["env"][1][0])
    # A variable that `_wrap_url` did not add came later, so `env` stays.
    if all(variable in names for variable in variables):
        changes[places["env"][0]] = b'"headers"'
        for variable, (variable_key, _) in variables.items():
            changes[variable_key] = to_bytes(names[variable])
    return changes


def _members(raw: bytes, start: int) -> dict[str, tuple[Span, Span]]:
    """Return the spans of each key of the object at *start*, and of its value."""
    spans: dict[str, tuple[Span, Span]] = {}
    position = start
    for key, value in members(raw, start):
        begin = raw.index(b'"', position)
        spans[key] = (begin, skip(raw, begin)), value
        position = value[1]
    return spans


def _variable(header: str) -> str:
    return _VARIABLE + re.sub(r"\W", "_", header).upper()


def _url_type(arguments: list[str]) -> str:
    for flag, value in pairwise(arguments):
        if flag == "--url-type" and value in _HTTP:
            return value
    return "http"


def _toml(text: str, edit: Callable[[Any], str | None]) -> Edited:
    import tomlkit  # only Codex writes TOML
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ClientFileError(f"not TOML: {error}") from None
    table = document.get(TABLES[2])
    if not isinstance(table, dict):
        raise ClientFileError(f"it has no table {TABLES[2]}")
    edited = Edited("")
    for name, entry in table.items():
        if not isinstance(entry, dict):
            continue
        note = edit(entry)
        if note is not None:
            edited.notes.append(f"{name}: {note}")
    edited.text = tomlkit.dumps(document)
    return edited


def _wrap_table(entry: Any, proxy: Sequence[str]) -> str | None:
    if _is_wrapped(entry):
        return None
    if not isinstance(entry.get("command"), str):
        return _wrap_url_table(entry, proxy)
    import tomlkit

    if not isinstance(entry.get("args", []), list):
        return "not wrapped: its args are not a list"
    before = [*proxy[1:], "--", str(entry["command"])]
    entry["command"] = proxy[0]
    if "args" not in entry:
        # The trailing comma marks that there were no args, so `_unwrap_table` removes
        # them.
        entry["args"] = tomlkit.value(json.dumps(before)[:-1] + ",]")
        return None
    for index, word in enumerate(before):
        entry["args"].insert(index, word)
    return None


def _wrap_url_table(entry: Any, proxy: Sequence[str]) -> str | None:
    if not isinstance(entry.get("url"), str):
        return "not wrapped: it has neither command nor url"
    if any(
        key in entry
        for key in ("http_headers", "env_http_headers", "env_vars", "args", "env")
    ):
        return "not wrapped: give its headers as environment variables with --header"
    arguments = list(proxy[1:])
    token = entry.get("bearer_token_env_var")
    if token is not None:
        arguments += ["--bearer-env", str(token)]
        # Codex gives a server only the variables that its table names.
        _put(entry, "bearer_token_env_var", {"env_vars": f"[{token.as_string()}]"})
    args = ", ".join([*map(json.dumps, arguments), entry["url"].as_string()])
    _put(entry, "url", {"command": json.dumps(proxy[0]), "args": f"[{args}]"})
    return None


def _unwrap_table(entry: Any) -> str | None:
    if not _is_wrapped(entry):
        return None
    arguments = entry["args"]
    if "--" in arguments:
        command_index = arguments.index("--") + 1
        entry["command"] = str(arguments[command_index])
        is_last = len(arguments) == command_index + 1
        # `_wrap_table` has added the whole array: the server had no `args` before.
        if is_last and arguments.as_string().endswith(",]"):
            del entry["args"]
            return None
        for _ in range(command_index + 1):
            arguments.pop(0)
        return None
    url = arguments[-1].as_string()
    if "--bearer-env" in arguments and "env_vars" in entry:
        _put(
            entry,
            "env_vars",
            {"bearer_token_env_var": entry["env_vars"][0].as_string()},
        )
    del entry["command"]
    _put(entry, "args", {"url": url})
    return None


def _put(table: Any, key: str, members: dict[str, str]) -> None:
    """Replace *key* with *members*, whose values are TOML text; the comment behind
    *key* stays.
    """
    import tomlkit
    from tomlkit.items import SingleKey

    body = getattr(table.value, "body", None)
    if body is None:
        raise ClientFileError(
            "a server's keys are written as a.b = ...; write it as a table"
        )
    keys = [None if key_item is None else key_item.key for key_item, _ in body]
    place = keys.index(key)
    old_key, old = body[place]
    before_sign = old_key.as_string()[len(old_key.as_string().rstrip()) :]
    new = []
    for name, text in members.items():
        item = tomlkit.value(text)
        item.trivia.indent = old.trivia.indent
        item.trivia.trail = "\n"
        new_key = SingleKey(name, sep=old_key.sep, original=name + before_sign)
        new.append((new_key, item))
    _, last = new[-1]
    last.trivia.comment_ws = old.trivia.comment_ws
    last.trivia.comment = old.trivia.comment
    last.trivia.trail = old.trivia.trail
    body[place : place + 1] = new
