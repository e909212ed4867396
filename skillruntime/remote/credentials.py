"""Provide the credentials that a client sends: a key, a token, or the result of a
callable of the host.

A third party writes the descriptor and may name any endpoint: each variable of the
environment is therefore named for the host that it belongs to, and its value is never
sent to another host. OAuth 2.0 (extra ``oauth``, on Authlib) has client credentials for
programs, and the authorization code with PKCE for people.
"""

from __future__ import annotations

import base64
import inspect
import os
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import anyio
import anyio.lowlevel

from skillruntime.errors import InvalidSkillError
from skillruntime.remote.descriptor import AuthConfig, AuthType, SkillDescriptor
from skillruntime.remote.descriptor_parts import OAuth2Config
from skillruntime.remote.hosts import ascii_host
from skillruntime.remote.http_message import (
    Transport,
    UnreachableError,
    WireRequest,
    WireResponse,
)
from skillruntime.remote.http_transport import send
from skillruntime.remote.protocol import MessageError, parse_json
from skillruntime.remote.ssrf_guard import AddressGuard
from skillruntime.remote.wire_errors import ErrorDocument, RemoteError, WireCode

__all__ = [
    "ApiKey",
    "AuthorizationCode",
    "ClientCredentials",
    "Credentials",
    "CustomCredentials",
    "NoCredentials",
    "Token",
    "from_environment",
    "variable_for",
]

# Of Authlib, only the parts without a transport that do what the documents say are
# used. Its client authentication does not form-encode the id and the secret (RFC 6749,
# 2.3.1), its tokens never expire where `expires_at` is not an int, and its clients use
# other HTTP libraries, which connect to whatever address a descriptor names.

# RFC 6749, appendix A.12, without the space: it goes into a header.
_TOKEN = re.compile(r"[\x21-\x7e]+")
_EARLY = 30.0  # a token counts as expired this many seconds before it ends


@dataclass(frozen=True, slots=True)
class Shown:
    """The credentials of one request: headers and, for ``custom`` authentication,
    ``caller.credentials`` of the body.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = field(default=None, repr=False)


Credentials = Callable[[AuthConfig, bool], Awaitable[Shown]]
"""Returns the credentials to send for an `AuthConfig`. The second argument is true if
the previous credentials were refused.
"""


async def NoCredentials(  # noqa: N802 - used like the classes
    auth: AuthConfig, is_refused: bool
) -> Shown:
    """Send no credentials."""
    return Shown()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Sends an API key in the header that the descriptor names; *key* is the key, or a
    function that returns it when it is needed.
    """

    key: str | Callable[[], str | Awaitable[str]] = field(repr=False)

    async def __call__(self, auth: AuthConfig, is_refused: bool) -> Shown:
        """Return the header.

        Raises:
            RemoteError: the skill asks for OAuth or custom credentials, and the key is
                meant for another scheme.
        """
        if auth.type in (AuthType.OAUTH2, AuthType.CUSTOM):
            message = (
                f"The skill asks for {auth.type.value} credentials, so the API key "
                "was not sent"
            )
            raise _auth_required(message, auth.type)
        key = self.key() if callable(self.key) else self.key
        if inspect.isawaitable(key):
            key = await key
        return Shown({auth.key_header.lower(): key})


@dataclass(frozen=True, slots=True)
class CustomCredentials:
    """Sends the mapping that the host's *callable* returns as
    ``caller.credentials``.
    """

    callable: Callable[[AuthConfig], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]

    async def __call__(self, auth: AuthConfig, is_refused: bool) -> Shown:
        """Return the credentials for the body."""
        credentials = self.callable(auth)
        if inspect.isawaitable(credentials):
            credentials = await credentials
        return Shown(body=credentials)


@dataclass(frozen=True, slots=True)
class Token:
    """An access token as credentials, and when it expires (``time.time()``)."""

    access: str = field(repr=False)
    expires_at: float | None = None

    async def __call__(self, auth: AuthConfig, is_refused: bool) -> Shown:
        """Return the ``Authorization`` header (RFC 6750, 2.1), whatever header a
        descriptor names.
        """
        return Shown({"authorization": f"Bearer {self.access}"})

    def is_good(self, now: float) -> bool:
        """Return whether the token can still be sent at *now*."""
        return self.expires_at is None or now < self.expires_at - _EARLY


class ClientCredentials:
    """Credentials of a program: its own id and secret for a token (RFC 6749, 4.4).

    All waiting calls share one fetched token. It is fetched again shortly before it
    expires, and after a refusal.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str,
        *,
        scopes: tuple[str, ...] | None = None,
        transport: Transport | None = None,
        guard: AddressGuard | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = (client_id, client_secret)
        self._scopes = scopes
        self._transport = transport
        self._guard = guard
        self._clock = clock
        self._token: Token | None = None
        self._lock = _LoopLock()

    async def __call__(self, auth: AuthConfig, is_refused: bool) -> Shown:
        """Return the ``Authorization`` header with a valid token; with *is_refused*,
        with a new one.
        """
        before = self._token
        async with self._lock.of_this_loop():
            token = self._token
            # Another call may have fetched a token while this one waited for the lock.
            if is_refused and token is before:
                token = None
            if token is None or not token.is_good(self._clock()):
                token = await self._fetch(auth.oauth2)
                self._token = token
        return await token(auth, is_refused)

    async def _fetch(self, config: OAuth2Config | None) -> Token:
        if config is None:
            raise _auth_required("The descriptor has no oauth2.token_url")
        # No refresh token: RFC 6749, 4.4.3, advises against one for this grant.
        form = {"grant_type": "client_credentials"}
        scopes = " ".join(self._scopes if self._scopes is not None else config.scopes)
        if scopes:
            form["scope"] = scopes
        return await ask_for_token(
            config.token_url,
            form,
            self._client,
            transport=self._transport,
            guard=self._guard,
            clock=self._clock,
        )


@dataclass(frozen=True, slots=True)
class AuthorizationCode:
    """Authorization by a person in a browser (RFC 6749, 4.1, with PKCE, RFC 7636): the
    person visits an address, and the browser returns with a code.

    >>> config = OAuth2Config("https://a.example/token", "https://a.example/authorize")
    >>> flow = AuthorizationCode.begin(config, "cli", "http://127.0.0.1:9/callback")
    >>> "code_challenge_method=S256" in flow.address, flow.verifier in flow.address
    (True, False)
    """

    address: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    config: OAuth2Config
    client_id: str
    redirect: str

    @classmethod
    def begin(
        cls, config: OAuth2Config, client_id: str, redirect: str
    ) -> AuthorizationCode:
        """Return the flow; open its ``address`` in a browser, which will return to
        *redirect*.
        """
        # Authlib has no types.
        from authlib.oauth2 import rfc7636  # type: ignore[import-untyped]
        from authlib.oauth2.rfc6749 import parameters  # type: ignore[import-untyped]

        if not config.authorization_url:
            raise _auth_required("The skill's descriptor has no authorization_url")
        state = secrets.token_urlsafe(24)
        verifier = secrets.token_urlsafe(48)
        address: str = parameters.prepare_grant_uri(
            config.authorization_url,
            client_id,
            "code",
            redirect_uri=redirect,
            scope=" ".join(config.scopes) or None,
            state=state,
            code_challenge=rfc7636.create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return cls(address, state, verifier, config, client_id, redirect)

    async def finish(
        self,
        visited: str,
        *,
        transport: Transport | None = None,
        guard: AddressGuard | None = None,
    ) -> Token:
        """Return the token; *visited* is the address to which the browser returned.

        Raises:
            RemoteError: the person refused, or the answer belongs to another flow.
        """
        fields = parse_qs(urlsplit(visited).query)
        query = {name: values[-1] for name, values in fields.items()}
        # Compare in constant time, and before trusting any other part of the answer (RFC
        # 6749, 10.12).
        if not secrets.compare_digest(query.get("state", ""), self.state):
            raise _refused("the browser returned a different state than it was sent")
        if "code" not in query:
            reason = query.get("error", "the browser returned without a code")
            raise _refused(reason[:100])
        form = {
            "grant_type": "authorization_code",
            "code": query["code"],
            "redirect_uri": self.redirect,
            "code_verifier": self.verifier,
        }
        client = (self.client_id, "")
        return await ask_for_token(
            self.config.token_url, form, client, transport=transport, guard=guard
        )


def variable_for(url: str, kind: str = "API_KEY") -> str:
    """Return the name of the environment variable that holds a key for the host of
    *url*.

    >>> variable_for("https://api.my-example.com/skills/translate/invoke")
    'SKILLRUNTIME_API_KEY_API_MY__EXAMPLE_COM'
    >>> variable_for("http://127.0.0.1:8400/x", "CLIENT_SECRET")
    'SKILLRUNTIME_CLIENT_SECRET_127_0_0_1_PORT_8400'

    Raises:
        InvalidSkillError: *url* is not a URL.
    """
    try:
        port = urlsplit(url).port
        name = ascii_host(url)
    except ValueError:
        raise InvalidSkillError(f"{url[:200]!r} is not a URL") from None
    host = "".join(_in_variable(character) for character in name)
    variable = f"SKILLRUNTIME_{kind}_{host.upper()}"
    if port:
        variable += f"_PORT_{port}"
    return variable


def _in_variable(character: str) -> str:
    """Return how one character of a host is written in the name of a variable."""
    if character.isalnum():
        return character
    # A dash and a dot are written differently, so that api-example.com never gets the
    # key of api.example.com.
    if character == "-":
        return "__"
    if character in ".:":
        return "_"
    return f"_X{ord(character):X}_"


def from_environment(
    descriptor: SkillDescriptor, environment: Mapping[str, str] | None = None
) -> Credentials:
    """Return credentials for *descriptor* from the environment. If a variable is
    missing, their first use raises an error that names it.

    The variable of an API key is `variable_for` the endpoint; the key is sent only to a
    skill that asks for one. For OAuth the variable is ``SKILLRUNTIME_TOKEN_...`` for an
    existing token, or ``SKILLRUNTIME_CLIENT_ID_...`` and
    ``SKILLRUNTIME_CLIENT_SECRET_...`` for the token URL's host.
    """
    variables = os.environ if environment is None else environment
    auth = descriptor.auth
    if auth.type in (AuthType.NONE, AuthType.CUSTOM):
        return NoCredentials
    if auth.type is AuthType.OAUTH2:
        return _oauth_credentials(descriptor, variables)
    name = variable_for(descriptor.endpoint.url, "API_KEY")
    key = variables.get(name)
    if key:
        return ApiKey(key)
    return _missing(descriptor.id, name)


def _oauth_credentials(
    descriptor: SkillDescriptor, variables: Mapping[str, str]
) -> Credentials:
    # A token that the user already has comes before a flow that would fetch one.
    name = variable_for(descriptor.endpoint.url, "TOKEN")
    token = variables.get(name)
    if token:
        return Token(token)
    config = descriptor.auth.oauth2
    if config is None:
        return _missing(descriptor.id, name)
    id_name = variable_for(config.token_url, "CLIENT_ID")
    secret_name = variable_for(config.token_url, "CLIENT_SECRET")
    client_id = variables.get(id_name)
    client_secret = variables.get(secret_name)
    if client_id and client_secret:
        return ClientCredentials(client_id, client_secret)
    return _missing(descriptor.id, f"{id_name} and {secret_name}")


def _missing(skill_id: str, names: str) -> Credentials:
    """Return credentials whose first use reports that these variables are not set."""

    async def missing(auth: AuthConfig, is_refused: bool) -> Shown:
        message = f"{skill_id} needs {auth.type.value} credentials; set {names}"
        raise _auth_required(message, auth.type)

    return missing


async def ask_for_token(
    url: str,
    form: Mapping[str, str],
    client: tuple[str, str],
    *,
    transport: Transport | None = None,
    guard: AddressGuard | None = None,
    clock: Callable[[], float] = time.time,
) -> Token:
    """Return the token that the token endpoint issues for *form*; *client* is the id
    and the secret, with which the client authenticates as in RFC 6749, 2.3.1.

    Raises:
        RemoteError: the endpoint issues no token. The message repeats only the error
            code of the answer.
    """
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "accept": "application/json",
    }
    fields = dict(form)
    client_id, client_secret = client
    if client_secret:
        # RFC 6749, 2.3.1: each of the two is form-encoded before they are joined.
        pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
        headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    else:
        # A public client (2.1): a program on a person's machine cannot keep a secret.
        fields["client_id"] = client_id
    request = WireRequest("POST", url, headers, urlencode(fields).encode())
    try:
        response = await send(request, transport, guard, timeout=30)
    except UnreachableError as error:
        raise RemoteError(
            ErrorDocument(WireCode.ENDPOINT_UNREACHABLE, f"The token endpoint: {error}")
        ) from None
    return _read_token(response, clock())


def _read_token(response: WireResponse, now: float) -> Token:
    try:
        document: Any = parse_json(response.body)
    except MessageError:
        document = None
    if not isinstance(document, dict):
        raise _refused(f"the token endpoint answered {response.status} without JSON")
    access = _bearer_token(document)
    if response.status != 200 or access is None:
        reason = "no bearer token"
        code = document.get("error")
        if isinstance(code, str) and code and code.isprintable():
            reason = code[:60]
        raise _refused(f"the token endpoint answered {response.status}: {reason}")
    return Token(access, _end(document.get("expires_in"), now))


def _bearer_token(document: Mapping[str, Any]) -> str | None:
    """Return the access token in the answer of a token endpoint; None if the answer has
    no token that can be sent as a bearer token.
    """
    # RFC 6749, 7.1: the type is case-insensitive, and a token of an unknown type must not
    # be used.
    if str(document.get("token_type", "bearer")).lower() != "bearer":
        return None
    access = document.get("access_token")
    if not isinstance(access, str) or not _TOKEN.fullmatch(access):
        return None
    return access


def _end(lifetime: Any, now: float) -> float | None:
    """Return the time at which a token with a *lifetime* in seconds expires; None if
    *lifetime* is not a number. Some endpoints write it as a string.
    """
    if isinstance(lifetime, str) and lifetime.isdecimal():
        return now + int(lifetime[:12])
    if isinstance(lifetime, bool) or not isinstance(lifetime, int | float):
        return None
    return now + lifetime


def _auth_required(message: str, kind: AuthType | None = None) -> RemoteError:
    """Return the error for missing credentials, which names the *kind* that the skill
    asks for.
    """
    details = None if kind is None else {"required_auth_type": kind.value}
    return RemoteError(ErrorDocument(WireCode.AUTH_REQUIRED, message, details))


def _refused(why: str) -> RemoteError:
    return _auth_required(f"No token was issued: {why}")


class _LoopLock:
    """A lock for each event loop, because a blocking call runs in a separate loop."""

    def __init__(self) -> None:
        self._lock: anyio.Lock | None = None
        self._token: object = None

    def of_this_loop(self) -> anyio.Lock:
        current = anyio.lowlevel.current_token()
        if self._lock is None or self._token != current:
            self._lock, self._token = anyio.Lock(), current
        return self._lock
