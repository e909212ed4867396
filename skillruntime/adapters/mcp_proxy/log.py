"""Write the log: one JSON object per line for each call, with rules and paths, and with
values only on request.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillruntime.adapters.mcp_proxy.calls import Note, Verdict
from skillruntime.adapters.mcp_proxy.json_text import decode
from skillruntime.adapters.mcp_proxy.tools import Tools

if TYPE_CHECKING:
    from skillruntime.errors import SkillError

__all__ = ["Write", "call_entries", "open_log", "silent"]

Write = Callable[[Mapping[str, Any]], None]
_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}
_MOST_NAMES = 50
_LONGEST_NAME = 80


def silent(entry: Mapping[str, Any]) -> None:
    """Write nothing."""


def open_log(path: Path | None) -> Write:
    """Return the function that adds an entry to the file at *path*; without a path it
    writes nothing.
    """
    if path is None:
        return silent
    # 0600: with --log-values it holds what models sent
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(entry: Mapping[str, Any]) -> None:
        # one write in append mode, so that the lines of several proxies do not mix
        # (POSIX, write)
        stamped = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **entry}
        line = (
            json.dumps(stamped, ensure_ascii=False, separators=(",", ":"), default=str)
            + "\n"
        )
        try:
            os.write(file, line.encode("utf-8", "replace"))
        except OSError:  # a full disk must not stop the calls
            return

    return write


def call_entries(
    name: str, verdict: Verdict, sent: bytes, tools: Tools, *, client: str, values: bool
) -> Iterator[dict[str, Any]]:
    """Yield the log entry for one judged call of *name*; before the first wrong call,
    also yield the tool's schema.

    The entry of a refused call has the names and types of the *sent* arguments.
    """
    if verdict.notes or verdict.faults:
        schema = tools.schema_to_log(name)
        if schema is not None:
            yield {"event": "schema", "tool": name, "schema": schema}
    entry: dict[str, Any] = {"event": "call", "tool": name, "outcome": verdict.outcome}
    if client:
        entry["client"] = client
    if verdict.notes:
        entry["repairs"] = [_repair(note, values=values) for note in verdict.notes]
    if verdict.faults:
        entry["errors"] = [_error(fault, values=values) for fault in verdict.faults]
        entry["sent"] = _kinds(sent)
    if verdict.unchecked:
        entry["reason"] = verdict.unchecked
    yield entry


def _repair(note: Note, *, values: bool) -> dict[str, str]:
    logged = {"path": note.path, "rule": note.rule}
    if values and (note.before or note.after):
        logged |= {"before": note.before, "after": note.after}
    return logged


def _error(fault: SkillError, *, values: bool) -> dict[str, str]:
    path = (fault.details or {}).get("path", "")
    logged = {"path": path, "code": fault.code.value}
    if values:
        logged["message"] = fault.message
    return logged


def _kinds(sent: bytes) -> dict[str, str]:
    """Return the type of each member of *sent*; empty if it is not an object."""
    try:
        value = decode(sent)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {
        key[:_LONGEST_NAME]: _TYPES.get(type(each), "null")
        for key, each in list(value.items())[:_MOST_NAMES]
    }
