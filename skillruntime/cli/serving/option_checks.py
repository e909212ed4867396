"""Refuse options of ``skillruntime serve`` that contradict each other or have no
effect: an operator relies on each setting.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from types import SimpleNamespace

import click
from click.core import ParameterSource

__all__ = ["check_options", "warn_of_unknown_variables"]

# The options that MCP cannot use, because its clients send a single token.
_OF_CALLERS = (
    "access",
    "public",
    "new_key",
    "revoke_key",
    "jwks",
    "authenticator",
    "base_url",
    "trusted_proxy",
    "allow_host",
)
# The other options that have no effect with MCP.
_NOT_FOR_MCP = (
    "database",
    "move_to",
    "webhooks",
    "no_pages",
    "per_skill",
    "per_caller",
    "rate",
    "most_output",
    "connections",
    "connections_per_address",
    "policy",
    "lease",
    "strict",
    "log",
)
# Each option has an effect only beside the other.
_NEEDS = {
    "webhook_allow": "webhooks",
    "http": "mcp",
    "tools": "mcp",
    "no_files": "mcp",
    "task_after": "mcp",
    "operator": "new_key",
    "scope": "new_key",
    "issuer": "jwks",
    "audience": "jwks",
    "lease": "database",
}
# Pairs of options that contradict each other.
_EXCLUDE = (
    ("database", "memory"),
    ("database", "wait"),
    ("new_key", "revoke_key"),
    ("move_to", "database"),
    ("move_to", "memory"),
    ("move_to", "new_key"),
    ("move_to", "revoke_key"),
)
# Variables of the library that do not set an option of the server.
_OTHER_VARIABLES = frozenset(
    f"SKILLRUNTIME_{name}"
    for name in ("CACHE", "DEBUG", "MCP_TOKEN", "POSTGRES", "URL")
)
_HOST_VARIABLES = tuple(
    f"SKILLRUNTIME_{kind}_"
    for kind in ("API_KEY", "CLIENT_ID", "CLIENT_SECRET", "HEADER", "TOKEN")
)
"""Each prefix is followed by the name of a host."""


def warn_of_unknown_variables() -> None:
    """Warn of each variable that looks like an option and is not: a mistyped setting
    would have no effect.
    """
    options = click.get_current_context().command.params
    known = {str(option.envvar) for option in options} | _OTHER_VARIABLES
    for name in sorted(os.environ):
        if not name.startswith("SKILLRUNTIME_") or name in known:
            continue
        if name.startswith(_HOST_VARIABLES):
            continue
        hint = ""
        nearest = get_close_matches(name, known, n=1)
        if nearest:
            hint = f"; did you mean {nearest[0]}?"
        click.echo(f"warning: the variable {name} has no effect{hint}", err=True)


def check_options(options: SimpleNamespace) -> None:
    """Refuse options that would be ignored, that exclude each other, or that are not
    the URL of a database.

    A variable may be set for other servers of the machine, so only the command line
    counts. The options about callers count in both, because an ignored one would leave
    the server open.
    """
    context = click.get_current_context()
    stated = [
        name
        for name in vars(options)
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    for name in stated:
        needed = _NEEDS.get(name)
        if needed is not None and not getattr(options, needed):
            raise click.UsageError(f"{_as_option(name)} needs {_as_option(needed)}.")
    for name, other in _EXCLUDE:
        if name in stated and other in stated:
            raise click.UsageError(
                f"{_as_option(name)} and {_as_option(other)} exclude each other."
            )
    if options.mcp:
        _check_for_mcp(options, stated)
    for name in ("database", "move_to"):
        url = getattr(options, name)
        if url is not None and "://" not in url:
            raise click.UsageError(
                f"{_as_option(name)} {url!r} is not a URL such as "
                "postgresql://user@host/skills"
            )


def _check_for_mcp(options: SimpleNamespace, stated: list[str]) -> None:
    for name in _OF_CALLERS:
        if getattr(options, name) not in (None, False, ()):
            raise click.UsageError(
                f"{_as_option(name)} is not for --mcp; with --http, clients send "
                "SKILLRUNTIME_MCP_TOKEN."
            )
    for name in _NOT_FOR_MCP:
        if name in stated:
            raise click.UsageError(
                f"{_as_option(name)} is not for --mcp, which would ignore it; with "
                "--data, tasks are kept in that directory."
            )


def _as_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
