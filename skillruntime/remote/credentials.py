"""The credentials that a client sends: a key, a token, or what the host's own callable returns."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from skillruntime.remote.descriptor import AuthConfig, AuthType
from skillruntime.remote.wire_errors import ErrorDocument, RemoteError, WireCode

__all__ = ["ApiKey", "Credentials", "CustomCredentials", "NoCredentials", "Shown"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What goes with a request: headers; for ``custom`` authentication, also ``caller.credentials`` of the body."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = field(default=None, repr=False)


Credentials = Callable[[AuthConfig, bool], Awaitable[Shown]]
"""Gives what to show for an `AuthConfig`. The second argument is true when what was shown before was refused."""


async def NoCredentials(auth: AuthConfig, is_refused: bool) -> Shown:  # noqa: N802 - used like the classes
    """Send no credentials."""
    return Shown()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Sends an API key in the header that the descriptor names; *key* is the key, or returns it when it is needed."""

    key: str | Callable[[], str | Awaitable[str]] = field(repr=False)

    async def __call__(self, auth: AuthConfig, is_refused: bool) -> Shown:
        """Return the header.

        Raises:
            RemoteError: the skill asks for OAuth or custom credentials; a key that was meant for others is not sent.
        """
        if auth.type in (AuthType.OAUTH2, AuthType.CUSTOM):
            message = f"The skill asks for {auth.type.value} credentials, so the API key was not sent"
            raise RemoteError(ErrorDocument(WireCode.AUTH_REQUIRED, message, {"required_auth_type": auth.type.value}))
        value = self.key() if callable(self.key) else self.key
        key = await value if inspect.isawaitable(value) else value
        return Shown({auth.key_header.lower(): key})


@dataclass(frozen=True, slots=True)
class CustomCredentials:
    """Sends what the host's *callable* returns: a mapping, put under ``caller.credentials``."""

    callable: Callable[[AuthConfig], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]

    async def __call__(self, auth: AuthConfig, is_refused: bool) -> Shown:
        """Return what goes into the body."""
        value = self.callable(auth)
        return Shown(body=await value if inspect.isawaitable(value) else value)
