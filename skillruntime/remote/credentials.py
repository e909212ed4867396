"""What a client shows to prove who it is: a key or a token, taken from the environment or from the host's own callable.

A key belongs to a host. A descriptor is a stranger's text and may name any endpoint: keys found in the environment are
therefore named for the host that they are for, and sent to no other origin.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from skillruntime.remote.descriptor import AuthConfig, AuthType, SkillDescriptor
from skillruntime.remote.wire_errors import ErrorDocument, RemoteError, WireCode

__all__ = ["ApiKey", "Credentials", "NoCredentials", "Shown", "from_environment", "variable_for"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What goes with a request: headers; for ``custom`` authentication, also ``caller.credentials`` of the body."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = field(default=None, repr=False)


Credentials = Callable[[AuthConfig, bool], Awaitable[Shown]]
"""Gives what to show for an `AuthConfig`. The second argument is true when what was shown before was refused."""


async def NoCredentials(auth: AuthConfig, is_refused: bool) -> Shown:  # noqa: N802 - stands beside the classes
    """Show nothing."""
    return Shown()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Shows an API key in the header that the descriptor names; *key* is the key, or gives it when it is needed."""

    key: str | Callable[[], str | Awaitable[str]] = field(repr=False)

    async def __call__(self, auth: AuthConfig, is_refused: bool) -> Shown:
        """Return the header; as a bearer token where the descriptor asks for OAuth."""
        value = self.key() if callable(self.key) else self.key
        key = await value if inspect.isawaitable(value) else value
        if auth.type is AuthType.OAUTH2:
            return Shown({"authorization": f"Bearer {key}"})
        return Shown({auth.key_header.lower(): key})


@dataclass(frozen=True, slots=True)
class CustomCredentials:
    """Shows whatever the host's *callable* returns: a mapping, put under ``caller.credentials``."""

    callable: Callable[[AuthConfig], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]

    async def __call__(self, auth: AuthConfig, is_refused: bool) -> Shown:
        """Return what goes into the body."""
        value = self.callable(auth)
        return Shown(body=await value if inspect.isawaitable(value) else value)


def variable_for(url: str, kind: str = "API_KEY") -> str:
    """Return the name of the environment variable that holds a key for the host of *url*.

    >>> variable_for("https://api.my-example.com/skills/translate/invoke")
    'SKILLRUNTIME_API_KEY_API_MY__EXAMPLE_COM'
    >>> variable_for("http://127.0.0.1:8400/x", "CLIENT_SECRET")
    'SKILLRUNTIME_CLIENT_SECRET_127_0_0_1_PORT_8400'
    """
    parts = urlsplit(url)
    # A dash is told from a dot, so that api-example.com never gets the key of api.example.com.
    host = "".join(
        c if c.isalnum() else "__" if c == "-" else "_" if c in ".:" else f"_X{ord(c):X}_" for c in parts.hostname or ""
    )
    port = f"_PORT_{parts.port}" if parts.port else ""
    return f"SKILLRUNTIME_{kind}_{host.upper()}{port}"


def from_environment(descriptor: SkillDescriptor, environment: Mapping[str, str] | None = None) -> Credentials:
    """Return the credentials for *descriptor* that the environment holds, or that say at the first use what is missing.

    An API key lies in `variable_for` its endpoint; OAuth client credentials in ``SKILLRUNTIME_CLIENT_ID_...`` and
    ``SKILLRUNTIME_CLIENT_SECRET_...`` for the token URL's host.
    """
    variables = os.environ if environment is None else environment
    auth = descriptor.auth
    name = variable_for(descriptor.endpoint.url)
    if auth.type is AuthType.NONE:
        return NoCredentials
    if variables.get(name):
        return ApiKey(variables[name])
    if auth.type is AuthType.OAUTH2 and auth.oauth2 is not None:
        id_name = variable_for(auth.oauth2.token_url, "CLIENT_ID")
        secret_name = variable_for(auth.oauth2.token_url, "CLIENT_SECRET")
        if variables.get(id_name) and variables.get(secret_name):
            from skillruntime.remote.oauth import ClientCredentials

            return ClientCredentials(variables[id_name], variables[secret_name])
        name = f"{id_name} and {secret_name}"

    async def missing(auth: AuthConfig, is_refused: bool) -> Shown:
        message = f"{descriptor.id} needs {auth.type.value} credentials; set {name}"
        details = {"required_auth_type": auth.type.value}
        raise RemoteError(ErrorDocument(WireCode.AUTH_REQUIRED, message, details))

    return missing if auth.type is not AuthType.CUSTOM else NoCredentials
