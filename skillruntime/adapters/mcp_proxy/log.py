"""The log: one JSON object a line for each call, with rules and paths; values only on request."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from skillruntime.adapters.mcp_proxy.calls import Verdict

__all__ = ["Write", "call_entry", "open_log", "silent"]

Write = Callable[[Mapping[str, Any]], None]


def silent(entry: Mapping[str, Any]) -> None:
    """Write nothing."""


def open_log(path: Path | None) -> Write:
    """Return the function that adds an entry to the file at *path*; nothing is written where there is no path."""
    if path is None:
        return silent
    # 0600: with --log-values it holds what models sent
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(entry: Mapping[str, Any]) -> None:
        # one write in append mode, so that the lines of several proxies do not mix (POSIX, write)
        stamped = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **entry}
        line = json.dumps(stamped, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"
        try:
            os.write(file, line.encode("utf-8", "replace"))
        except OSError:  # a full disk must not stop the calls
            return

    return write


def call_entry(tool: str, verdict: Verdict, *, client: str, values: bool) -> dict[str, Any]:
    """Return the entry of one judged call."""
    entry: dict[str, Any] = {"event": "call", "tool": tool, "outcome": verdict.outcome}
    if client:
        entry["client"] = client
    if verdict.notes:
        entry["repairs"] = [
            {"path": each.path, "rule": each.rule}
            | ({"before": each.before, "after": each.after} if values and (each.before or each.after) else {})
            for each in verdict.notes
        ]
    if verdict.faults:
        entry["errors"] = [
            {"path": (each.details or {}).get("path", ""), "code": each.code.value}
            | ({"message": each.message} if values else {})
            for each in verdict.faults
        ]
    if verdict.unchecked:
        entry["reason"] = verdict.unchecked
    return entry
