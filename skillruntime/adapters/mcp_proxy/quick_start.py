"""`mcp-proxy [OPTIONS] -- COMMAND` without the command line's libraries, which take
longer to import than all the rest.

Only correct command lines are run here; for any other, the command itself reports what
is wrong.
"""

from __future__ import annotations

import os

from skillruntime.adapters.mcp_proxy.transports.stdio import run_stdio

TYPE_CHECKING = False  # importing `typing` takes 8 ms
if TYPE_CHECKING:
    from typing import Any

    from skillruntime.adapters.mcp_proxy.session import Session

__all__ = ["run_quickly"]

_FLAGS = {"--fold": "fold", "--log-values": "log_values"}
_CHOICES = {
    "--policy": ("policy", ("strict", "safe", "lenient")),
    "--check-output": ("check_output", ("off", "report", "refuse")),
}


def run_quickly(words: list[str]) -> int | None:
    """Run the proxy with the options in *words*, and return its exit status; ``None``
    if an option is not known here.
    """
    read = _read(words)
    if read is None:
        return None
    choices, log_path, command = read

    def make_session() -> Session:
        from pathlib import Path

        from skillruntime.adapters.mcp_proxy.log import open_log
        from skillruntime.adapters.mcp_proxy.options import Options
        from skillruntime.adapters.mcp_proxy.session import Session

        path = Path(log_path) if log_path else None
        return Session(Options(**choices), log=open_log(path))

    try:
        return run_stdio(command, make_session)
    except OSError:  # the server cannot be started: the command reports why
        return None


def _read(words: list[str]) -> tuple[dict[str, Any], str, list[str]] | None:
    choices: dict[str, Any] = {}
    log_path = ""
    if words[:1] == ["run"]:
        words = words[1:]
    rest = iter(words)
    for word in rest:
        if word == "--":
            command = list(rest)
            if not command or command[0].startswith(("http://", "https://")):
                return None
            return choices, log_path, command
        name, equals, value = word.partition("=")
        # `--fold=x` is for click to refuse.
        if name in _FLAGS and not equals:
            choices[_FLAGS[name]] = True
            continue
        if not equals:
            value = next(rest, "")
        if name in _CHOICES and value in _CHOICES[name][1]:
            choices[_CHOICES[name][0]] = value
        elif name == "--log" and _can_write(value):
            log_path = value
        else:
            return None
    return None


def _can_write(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return False
    return True
