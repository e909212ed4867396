"""Configuration files of MCP clients, with each server behind the proxy, or as it was
before.

JSON with or without comments is edited in place: comments, order and layout stay.
Nothing is written to disk. The law: what was wrapped and not changed since is unwrapped
to the same bytes.
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

__all__ = ["ClientFileError", "Edited", "launcher", "unwrapped", "wrapped"]

EXECUTABLE = "skillruntime"
COMMAND = "mcp-proxy"
TABLES = ("mcpServers", "servers", "mcp_servers")
"""Where servers are listed: Claude Code and Cursor, VS Code, Codex."""
# `uvx` runs a program from one of these folders of uv's cache, which `uv cache clean`
# removes.
_UV_CACHES = {"archive-v0", "builds-v0", "environments-v2"}
_LONGEST_LAUNCHER = 4
# How clients' files write the one transport.
_HTTP = ("http", "streamable-http", "streamableHttp")
# Editors on Windows write it; a reader may ignore it (RFC 8259, 8.1).
_BOM = b"\xef\xbb\xbf"
_VARIABLE = "SKILLRUNTIME_HEADER_"
# A string is matched too, because `//` in one is not a comment: most URLs have it. What
# has no end goes to the end of the file, so that no text is looked at twice.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?+(?:"|\Z)'
_COMMENT_OR_STRING = re.compile(
    _STRING + rb"|//[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)", re.DOTALL
)
_TRAILING_COMMA = re.compile(_STRING + rb"|,(?=\s*+[}\]])", re.DOTALL)


class ClientFileError(ValueError):
    """The text is not a configuration file that lists MCP servers."""


@dataclass(slots=True)
class Edited:
    """The new text, and what was left as it is, with the reason."""

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
    """Return a client's file with each server behind the proxy, which gets *options*;
    one that is behind it stays.

    >>> git = '{"command": "uvx", "args": ["mcp-server-git"]}'
    >>> edited = wrapped('{"mcpServers": {"git": %s}}' % git)
    >>> edited.text.removeprefix('{"mcpServers": {"git": ').removesuffix("}}")
    '{"command": "skillruntime", "args": ["mcp-proxy", "--", "uvx", "mcp-server-git"]}'

    Raises:
        ClientFileError: it is not such a file, or `unwrapped` could not undo it.
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
    """Return a client's file with no server behind the proxy; one that is not stays.

    >>> git = '{"command": "skillruntime", "args": ["mcp-proxy", "--", "uvx", "a"]}'
    >>> unwrapped('{"mcpServers": {"git": %s}}' % git).text
    '{"mcpServers": {"git": {"command": "uvx", "args": ["a"]}}}'

    Raises:
        ClientFileError: it is not such a file.
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
        found = edit(raw, span)
        if isinstance(found, str):
            notes.append(f"{name}: {found}")
        else:
            changes.update(found)
    return Edited(replaced(original, changes).decode(), notes)


def _plain(text: bytes) -> bytes:
    """Return *text* with spaces for comments and trailing commas, so that every byte
    keeps its place.
    """

    def blank(match: re.Match[bytes]) -> bytes:
        # Line breaks stay, so that a parser's message names the line of the file.
        found = match[0]
        if found.startswith(b'"'):
            return found
        return re.sub(rb"[^\r\n]", b" ", found)

    return _TRAILING_COMMA.sub(blank, _COMMENT_OR_STRING.sub(blank, text))


def _entries(raw: bytes) -> list[tuple[str, Span]]:
    try:
        # `members` scans brackets and quotes only: before a part is edited, the whole
        # must be JSON.
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
    """Yield where servers are listed: also by project (`~/.claude.json`), and in the
    settings of VS Code.
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
    # The command may be a path to the program, or one that starts it, `uvx` say.
    arguments = entry.get("args")
    if not isinstance(arguments, list) or COMMAND not in arguments[:_LONGEST_LAUNCHER]:
        return False
    before = [entry.get("command"), *arguments[: arguments.index(COMMAND)]]
    return any(EXECUTABLE in str(each) for each in before)


def _wrap(raw: bytes, span: Span, proxy: Sequence[str]) -> dict[Span, bytes] | str:
    entry = decode(raw[span[0] : span[1]])
    if _is_wrapped(entry):
        return {}
    if not isinstance(entry.get("command"), str):
        return _wrap_url(raw, span, proxy, entry)
    if not isinstance(entry.get("args", []), list):
        return "not wrapped: its args are not a list"
    inside = dict(members(raw, span[0]))
    program = to_bytes(proxy[0])
    # As it is written in the file, escapes and all.
    command = raw[slice(*inside["command"])]
    words = ", ".join(encode(each) for each in (*proxy[1:], "--"))
    prefix = words.encode() + b", " + command
    if "args" not in inside:
        return {inside["command"]: program + b', "args": [' + prefix + b"]"}
    start = inside["args"][0] + 1
    if entry["args"]:
        prefix += b", "
    else:
        # The space marks an array that was there and empty: to unwrap leaves it, and
        # drops one that was not there.
        prefix += b" "
    return {inside["command"]: program, (start, start): prefix}


def _unwrap(raw: bytes, span: Span) -> dict[Span, bytes] | str:
    entry = decode(raw[span[0] : span[1]])
    if not _is_wrapped(entry):
        return {}
    arguments = entry["args"]
    if "--" not in arguments:
        return _unwrap_url(raw, span, arguments)
    inside = dict(members(raw, span[0]))
    at = arguments.index("--") + 1
    rest = arguments[at + 1 :]
    value, args = inside["command"], inside["args"]
    command = raw[slice(*list(elements(raw, args[0]))[at])]
    prefix = (
        ", ".join(encode(each) for each in arguments[:at]).encode() + b", " + command
    )
    text = raw[args[0] + 1 : args[1]]
    changes = {value: command}
    # The very text that `_wrap` adds: the server had no `args` before.
    if not rest and raw[value[1] : args[0]] == b', "args": ' and text == prefix + b"]":
        return {**changes, (value[1], args[1]): b""}
    for ending in (b", ", b" "):
        if text.startswith(prefix + ending):
            return {**changes, (args[0] + 1, args[0] + 1 + len(prefix + ending)): b""}
    # A person or a formatter has laid the list out in another way since.
    return {**changes, args: json.dumps(rest, ensure_ascii=False).encode()}


def _wrap_url(
    raw: bytes, span: Span, proxy: Sequence[str], entry: dict[str, Any]
) -> dict[Span, bytes] | str:
    """Return the changes that make of a server at a URL one that is started; header
    values go into its environment.
    """
    reason = _unfit_url(entry)
    if reason is not None:
        return reason
    arguments = list(proxy[1:])
    # The values stay out of the arguments, which every user of the machine can list.
    for name in entry.get("headers", {}):
        arguments += ["--header", f"{name}=env:{_variable(name)}"]
    # `unwrap` gives the client's own word for the transport back.
    if entry.get("type", "http") != "http":
        arguments += ["--url-type", entry["type"]]
    before = ", ".join(encode(each) for each in arguments).encode()
    places = _members(raw, span[0])
    key, value = places["url"]
    changes = {
        key: b'"command": ' + to_bytes(proxy[0]) + b', "args"',
        value: b"[" + before + b", " + raw[value[0] : value[1]] + b"]",
    }
    if "type" in places:
        changes[places["type"][1]] = b'"stdio"'
    if "headers" in places:
        changes[places["headers"][0]] = b'"env"'
        inside = _members(raw, places["headers"][1][0])
        changes |= {key: to_bytes(_variable(name)) for name, (key, _) in inside.items()}
    return changes


def _unfit_url(entry: dict[str, Any]) -> str | None:
    """Return why a server without a command cannot be put behind the proxy; ``None``
    where it can.
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
    # `unwrap` could not tell them from those that the proxy is given.
    if "env" in entry or "args" in entry:
        return "not wrapped: it has a url, and env or args, which only a command has"
    return None


def _unwrap_url(
    raw: bytes, span: Span, arguments: list[str]
) -> dict[Span, bytes] | str:
    places = _members(raw, span[0])
    (start, _), (_, between) = places["command"]
    next_key, (args, end) = places["args"]
    if raw[between : next_key[0]].strip() != b",":
        return "not unwrapped: its command and its args are not next to each other"
    *_, (url, url_end) = elements(raw, args)
    # What stands between the key and the value is what stood there before.
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
    inside = _members(raw, places["env"][1][0])
    if all(each in names for each in inside):
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
        # The last comma marks that there were none: to unwrap drops them.
        entry["args"] = tomlkit.value(json.dumps(before)[:-1] + ",]")
        return None
    for index, each in enumerate(before):
        entry["args"].insert(index, each)
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
        at = arguments.index("--") + 1
        entry["command"] = str(arguments[at])
        if len(arguments) == at + 1 and arguments.as_string().endswith(",]"):
            del entry["args"]
            return None
        for _ in range(at + 1):
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
    """Write *members*, each the TOML text of its value, in the place of *key*; the
    comment behind it stays.
    """
    import tomlkit
    from tomlkit.items import SingleKey

    body = getattr(table.value, "body", None)
    if body is None:
        raise ClientFileError(
            "a server's keys are written as a.b = ...; write it as a table"
        )
    keys = [None if each is None else each.key for each, _ in body]
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
