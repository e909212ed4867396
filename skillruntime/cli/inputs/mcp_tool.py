"""The contract of one tool of an MCP server, for ``skillruntime new --from-mcp``."""

from __future__ import annotations

import logging
import shlex

import click

from skillruntime.contract import Contract
from skillruntime.errors import SkillRuntimeError

__all__ = ["read_mcp_tool"]

_SECONDS = 30  # a server may compile itself first


def read_mcp_tool(command: str, name: str) -> Contract:
    """Start *command*, an MCP server on standard input and output, and return the
    contract of its tool *name*.

    Raises:
        click.ClickException: it does not start, or has no such tool.
    """
    import anyio

    words = shlex.split(command)
    if not words:
        raise click.ClickException("the command of the MCP server is empty")
    # The SDK logs each line that is not a message, with a traceback; the error below says
    # what a person needs.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    try:
        contracts = anyio.run(_contracts, words)
    except SkillRuntimeError:
        raise
    except TimeoutError:
        raise click.ClickException(
            f"{words[0]} did not answer within {_SECONDS} seconds"
        ) from None
    except Exception as error:
        raise click.ClickException(
            f"{words[0]} is not an MCP server that starts: {_first(error)}"
        ) from None
    if name not in contracts:
        known = ", ".join(sorted(contracts)[:20]) or "none"
        raise click.ClickException(f"the server has no tool {name!r}; it has: {known}")
    return contracts[name]


async def _contracts(words: list[str]) -> dict[str, Contract]:
    import anyio

    # The module says which extra to install where it is missing.
    from skillruntime.adapters.mcp_client import contracts_of

    from mcp import Client, StdioServerParameters  # isort: skip

    server = StdioServerParameters(command=words[0], args=words[1:])
    with anyio.fail_after(_SECONDS):
        async with Client(server) as client:
            return await contracts_of(client)


def _first(error: BaseException) -> str:
    """Return the message of the first error inside *error*, which may be a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
