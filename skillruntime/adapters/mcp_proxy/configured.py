"""The servers that a client's configuration file names, ready to be started or reached."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillruntime.adapters.mcp_proxy.client_files import COMMAND, ClientFileError, servers_in

__all__ = ["Upstream", "upstreams_in", "upstreams_of"]

# Claude Code writes ${VAR} and ${VAR:-default}, VS Code and Cursor ${env:VAR}.
_KINDS = {list: "a list", dict: "an object", str: "a text"}
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server behind the proxy: a URL or a command, served at *path*; *headers* go to the URL with every request."""

    server: tuple[str, ...]
    path: str = "/mcp"
    headers: tuple[tuple[str, str], ...] = ()
    environment: Mapping[str, str] | None = None
    directory: str | None = None
    name: str = ""
    is_merged: bool = False
    """Whether the command is this proxy, in front of several servers."""

    @property
    def is_url(self) -> bool:
        return self.server[0].startswith(("http://", "https://"))


def upstreams_of(file: Path) -> tuple[list[Upstream], list[str]]:
    """Return the servers that *file* lists, and what is to be said of those that are left out.

    Raises:
        ClientFileError: it is not such a file, or no server of it can be used.
        OSError: it cannot be read.
    """
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ClientFileError(str(error)) from None
    found, notes = upstreams_in(servers_in(text, toml=file.suffix == ".toml"), os.environ)
    if not found:
        raise ClientFileError("; ".join(["it lists no server that can be used", *notes]))
    return found, notes


def upstreams_in(
    servers: Mapping[str, Mapping[str, Any]], variables: Mapping[str, str]
) -> tuple[list[Upstream], list[str]]:
    """Return the usable ones of *servers*, each served at the path of its name, and a note on every other.

    >>> found, notes = upstreams_in({"git": {"command": "uvx", "args": ["${TOOL}"]}, "x": {}}, {"TOOL": "mcp-git"})
    >>> found[0].path, found[0].server, notes
    ('/git/mcp', ('uvx', 'mcp-git'), ['x is left out: it has neither a command nor a url'])
    """
    found, notes = [], []
    for name, entry in servers.items():
        try:
            found.append(_upstream(name, _expanded(entry, variables), variables))
        except ValueError as error:
            notes.append(f"{name} is left out: {error}")
    return found, notes


def _upstream(name: str, entry: Mapping[str, Any], variables: Mapping[str, str]) -> Upstream:
    path = f"/{name}/mcp"
    if entry.get("disabled") is True or entry.get("enabled") is False:
        raise ValueError("the file disables it")
    # A text for a list would become an argument a letter.
    for key, kind in (("args", list), ("env", dict), ("headers", dict), ("cwd", str)):
        if not isinstance(entry.get(key) or kind(), kind):
            raise ValueError(f"`{key}` is not {_KINDS[kind]}")
    arguments = [str(each) for each in entry.get("args") or ()]
    if isinstance(entry.get("command"), str):
        if COMMAND in arguments and "--config" in arguments:
            raise ValueError("it is this proxy itself")  # and would start itself without end
        # As clients do: what the file gives is added to what the client itself has.
        environment = {**variables, **{key: str(each) for key, each in (entry.get("env") or {}).items()}}
        command = (entry["command"], *arguments)
        return Upstream(command, path, (), environment if entry.get("env") else None, entry.get("cwd"), name)
    url = entry.get("url", entry.get("serverUrl"))
    if not isinstance(url, str):
        raise ValueError("it has neither a command nor a url")
    # deprecated since 2025-03-26; a client that has it can keep such a server to itself
    if entry.get("type") == "sse":
        raise ValueError("the HTTP+SSE transport of 2024-11-05 is not spoken")
    headers = {**(entry.get("headers") or {}), **(entry.get("http_headers") or {})}
    sent = {**(entry.get("env_http_headers") or {})}
    values = {key: _value(variable, variables) for key, variable in sent.items()}
    if "bearer_token_env_var" in entry:
        values["Authorization"] = f"Bearer {_value(entry['bearer_token_env_var'], variables)}"
    return Upstream((url,), path, tuple({**headers, **values}.items()), None, None, name)


def _expanded(value: Any, variables: Mapping[str, str]) -> Any:
    """Return *value* with the variables that are written in its texts."""
    if isinstance(value, Mapping):
        return {key: _expanded(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [_expanded(each, variables) for each in value]
    if not isinstance(value, str):
        return value
    return _VARIABLE.sub(lambda match: _given(match, variables), value)


def _given(match: re.Match[str], variables: Mapping[str, str]) -> str:
    if match[1] == "workspaceFolder":
        return str(Path.cwd())
    return _value(match[1], variables) if match[2] is None else variables.get(match[1], match[2])


def _value(variable: str, variables: Mapping[str, str]) -> str:
    if variable not in variables:
        raise ValueError(f"the environment has no {variable}")
    return variables[variable]
