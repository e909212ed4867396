"""Credentials from the environment.

A key belongs to a host. A third party writes the descriptor and may name any endpoint: each variable is therefore named
for its host, and its value is never sent to another host.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from skillruntime.errors import InvalidSkillError
from skillruntime.remote.credentials import ApiKey, Credentials, NoCredentials, Shown
from skillruntime.remote.descriptor import AuthConfig, AuthType, SkillDescriptor
from skillruntime.remote.hosts import ascii_host
from skillruntime.remote.oauth import ClientCredentials, Token
from skillruntime.remote.wire_errors import ErrorDocument, RemoteError, WireCode

__all__ = ["from_environment", "variable_for"]


def variable_for(url: str, kind: str = "API_KEY") -> str:
    """Return the name of the environment variable that holds a key for the host of *url*.

    >>> variable_for("https://api.my-example.com/skills/translate/invoke")
    'SKILLRUNTIME_API_KEY_API_MY__EXAMPLE_COM'
    >>> variable_for("http://127.0.0.1:8400/x", "CLIENT_SECRET")
    'SKILLRUNTIME_CLIENT_SECRET_127_0_0_1_PORT_8400'

    Raises:
        InvalidSkillError: *url* is not a URL.
    """
    try:
        port = f"_PORT_{urlsplit(url).port}" if urlsplit(url).port else ""
        name = ascii_host(url)
    except ValueError:
        raise InvalidSkillError(f"{url[:200]!r} is not a URL") from None
    # A dash and a dot are written differently, so that api-example.com never gets the key of api.example.com.
    host = "".join(c if c.isalnum() else "__" if c == "-" else "_" if c in ".:" else f"_X{ord(c):X}_" for c in name)
    return f"SKILLRUNTIME_{kind}_{host.upper()}{port}"


def from_environment(descriptor: SkillDescriptor, environment: Mapping[str, str] | None = None) -> Credentials:
    """Return credentials for *descriptor* from the environment; their first use names a variable that is missing.

    An API key lies in `variable_for` its endpoint, and goes only to a skill that asks for one. For OAuth it is
    ``SKILLRUNTIME_TOKEN_...`` for a token that the user has, or ``SKILLRUNTIME_CLIENT_ID_...`` and
    ``SKILLRUNTIME_CLIENT_SECRET_...`` for the token URL's host.
    """
    variables = os.environ if environment is None else environment
    auth = descriptor.auth
    if auth.type in (AuthType.NONE, AuthType.CUSTOM):
        return NoCredentials
    is_oauth = auth.type is AuthType.OAUTH2
    name = variable_for(descriptor.endpoint.url, "TOKEN" if is_oauth else "API_KEY")
    # A token that the user already has comes before a flow that would fetch one.
    if variables.get(name):
        return Token(variables[name]) if is_oauth else ApiKey(variables[name])
    if is_oauth and auth.oauth2 is not None:
        id_name = variable_for(auth.oauth2.token_url, "CLIENT_ID")
        secret_name = variable_for(auth.oauth2.token_url, "CLIENT_SECRET")
        if variables.get(id_name) and variables.get(secret_name):
            return ClientCredentials(variables[id_name], variables[secret_name])
        name = f"{id_name} and {secret_name}"

    async def missing(auth: AuthConfig, is_refused: bool) -> Shown:
        message = f"{descriptor.id} needs {auth.type.value} credentials; set {name}"
        raise RemoteError(ErrorDocument(WireCode.AUTH_REQUIRED, message, {"required_auth_type": auth.type.value}))

    return missing
