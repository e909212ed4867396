"""Find the functions that identify callers without a key: ``--jwks`` and
``--authenticator``.
"""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import click

if TYPE_CHECKING:
    from skillruntime.server import Authenticator, JwtCallers

__all__ = ["open_authenticator"]


def open_authenticator(options: SimpleNamespace) -> Authenticator | None:
    """Return the function that identifies callers in addition to the keys; ``None`` if
    there is none.
    """
    own = None
    if options.authenticator is not None:
        own = _load(options.authenticator)
    if options.jwks is None:
        return own
    # RFC 8725, 3.8 and 3.9: without them a token that was issued for another service
    # would be accepted.
    if options.issuer is None or options.audience is None:
        raise click.UsageError("--jwks needs --issuer and --audience")
    from skillruntime.server import JwtCallers, any_of, keys_from

    tokens = JwtCallers(options.issuer, options.audience, keys_from(options.jwks))
    if "://" not in options.jwks:
        _check_jwks(tokens)
    if own is None:
        return tokens
    return any_of([tokens, own])


def _check_jwks(tokens: JwtCallers) -> None:
    """Read a file of keys at the start, because with an invalid one every token would
    be refused. An address may be unreachable for the moment.
    """
    import anyio

    from skillruntime.errors import InvalidSkillError

    try:
        anyio.run(tokens.read_keys)
    except InvalidSkillError as error:
        raise click.UsageError(f"--jwks: {error}") from None


def _load(place: str) -> Authenticator:
    """Return the function that ``MODULE:FUNCTION`` names; modules of the current
    directory are found.
    """
    module, _, name = place.partition(":")
    # A console script has its own directory first on the path, not the current one, as
    # `python -m` has.
    sys.path.insert(0, "")
    try:
        authenticator = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise click.UsageError(
            f"--authenticator {place!r} cannot be imported: {error}"
        ) from None
    if not callable(authenticator):
        raise click.UsageError(f"--authenticator {place!r} is not a function")
    return cast("Authenticator", authenticator)
