"""OAuth 2.0 (extra ``oauth``, on Authlib): client credentials for programs, authorization code with PKCE for people.

A token is fetched once, however many calls wait for it, and again shortly before it expires or when it was refused.
"""

from __future__ import annotations

import base64
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import anyio
import anyio.lowlevel

from skillruntime.remote.credentials import Shown
from skillruntime.remote.descriptor import AuthConfig, OAuth2Config
from skillruntime.remote.http_message import Transport, UnreachableError, WireRequest, WireResponse
from skillruntime.remote.http_transport import HttpTransport
from skillruntime.remote.protocol import MessageError, parse_json
from skillruntime.remote.ssrf_guard import AddressGuard
from skillruntime.remote.wire_errors import ErrorDocument, RemoteError, WireCode

__all__ = ["AuthorizationCode", "ClientCredentials", "Token"]

# Of Authlib, the parts without a transport that do what the documents say. Its client authentication does not
# form-encode the id and the secret (RFC 6749, 2.3.1), its tokens never expire where `expires_at` is not an int, and its
# clients use other HTTP libraries, which connect to whatever address a descriptor names.
_TOKEN = re.compile(r"[\x21-\x7e]+")  # RFC 6749, appendix A.12, without the space: it goes into a header
_EARLY = 30.0  # seconds before its end that a token counts as expired


@dataclass(frozen=True, slots=True)
class Token:
    """An access token as credentials, and when it expires (``time.time()``)."""

    access: str = field(repr=False)
    expires_at: float | None = None

    async def __call__(self, auth: AuthConfig, is_refused: bool) -> Shown:
        """Return the ``Authorization`` header (RFC 6750, 2.1), whatever header a descriptor names."""
        return Shown({"authorization": f"Bearer {self.access}"})

    def is_good(self, now: float) -> bool:
        """Whether it can still be shown at *now*."""
        return self.expires_at is None or now < self.expires_at - _EARLY


class ClientCredentials:
    """Credentials of a program: its own id and secret for a token (RFC 6749, 4.4)."""

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
        """Return the ``Authorization`` header with a token that is good; *is_refused* asks for another one."""
        before = self._token
        async with self._lock.of_this_loop():
            token = self._token
            # Whoever waited for the lock takes what was fetched meanwhile.
            if token is None or not token.is_good(self._clock()) or (is_refused and token is before):
                token = self._token = await self._fetch(_config(auth))
        return await token(auth, is_refused)

    async def _fetch(self, config: OAuth2Config) -> Token:
        # No refresh token: RFC 6749, 4.4.3, advises against one for this grant.
        scopes = " ".join(self._scopes if self._scopes is not None else config.scopes)
        form = {"grant_type": "client_credentials", **({"scope": scopes} if scopes else {})}
        return await ask_for_token(
            config.token_url, form, self._client, transport=self._transport, guard=self._guard, clock=self._clock
        )


@dataclass(frozen=True, slots=True)
class AuthorizationCode:
    """Authorization by a person in a browser (RFC 6749, 4.1, with PKCE, RFC 7636): an address to visit, then a code.

    >>> flow = AuthorizationCode.begin(OAuth2Config("https://a.example/token", "https://a.example/authorize",
    ...     {"skill:invoke": ""}), "cli", "http://127.0.0.1:9/callback")
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
    def begin(cls, config: OAuth2Config, client_id: str, redirect: str) -> AuthorizationCode:
        """Return the flow whose ``address`` is to be opened in a browser, which comes back to *redirect*."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # type: ignore[import-untyped]  # it has no types
        from authlib.oauth2.rfc7636 import create_s256_code_challenge  # type: ignore[import-untyped]  # nor here

        if not config.authorization_url:
            raise RemoteError(ErrorDocument(WireCode.AUTH_REQUIRED, "The skill's descriptor has no authorization_url"))
        state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        address: str = prepare_grant_uri(
            config.authorization_url,
            client_id,
            "code",
            redirect_uri=redirect,
            scope=" ".join(config.scopes) or None,
            state=state,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return cls(address, state, verifier, config, client_id, redirect)

    async def finish(
        self, visited: str, *, transport: Transport | None = None, guard: AddressGuard | None = None
    ) -> Token:
        """Return the token for the address that the browser came back to.

        Raises:
            RemoteError: the person refused, or the answer is not to our question.
        """
        # In constant time, and before anything else of the answer is believed (RFC 6749, 10.12).
        query = {name: values[-1] for name, values in parse_qs(urlsplit(visited).query).items()}
        if not secrets.compare_digest(query.get("state", ""), self.state):
            raise _refused("the browser returned a different state than it was sent")
        if "code" not in query:
            raise _refused(query.get("error", "the browser returned without a code")[:100])
        form = {
            "grant_type": "authorization_code",
            "code": query["code"],
            "redirect_uri": self.redirect,
            "code_verifier": self.verifier,
        }
        client = (self.client_id, "")
        return await ask_for_token(self.config.token_url, form, client, transport=transport, guard=guard)


async def ask_for_token(
    url: str,
    form: Mapping[str, str],
    client: tuple[str, str],
    *,
    transport: Transport | None = None,
    guard: AddressGuard | None = None,
    clock: Callable[[], float] = time.time,
) -> Token:
    """Return the token that the token endpoint gives for *form*; the client proves itself as RFC 6749, 2.3.1 says.

    Raises:
        RemoteError: it gives none. What it says beyond its error code is not repeated.
    """
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    fields = dict(form)
    if client[1]:
        # RFC 6749, 2.3.1: each of the two is form-encoded before they are joined.
        pair = f"{quote_plus(client[0])}:{quote_plus(client[1])}"
        headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    else:  # a public client (2.1): a program on a person's machine can keep no secret
        fields["client_id"] = client[0]
    request = WireRequest("POST", url, headers, urlencode(fields).encode())
    try:
        response = await _send(request, transport, guard)
    except UnreachableError as error:
        raise RemoteError(ErrorDocument(WireCode.ENDPOINT_UNREACHABLE, f"The token endpoint: {error}")) from None
    return _read_token(response, clock())


async def _send(request: WireRequest, transport: Transport | None, guard: AddressGuard | None) -> WireResponse:
    if transport is not None:
        return await transport(request)
    async with HttpTransport(guard, timeout=30) as http:
        return await http(request)


def _read_token(response: WireResponse, now: float) -> Token:
    try:
        document: Any = parse_json(response.body)
    except MessageError:
        document = None
    if not isinstance(document, dict):
        raise _refused(f"the token endpoint answered {response.status} without JSON")
    access = document.get("access_token")
    # 7.1: its case means nothing; a kind that we do not know must not be shown as a bearer token.
    kind = str(document.get("token_type", "bearer")).lower()
    if response.status != 200 or not isinstance(access, str) or not _TOKEN.fullmatch(access) or kind != "bearer":
        code = document.get("error")
        said = code[:60] if isinstance(code, str) and code.isprintable() else "no bearer token"
        raise _refused(f"the token endpoint answered {response.status}: {said or 'no bearer token'}")
    return Token(access, _end(document.get("expires_in"), now))


def _end(lasts: Any, now: float) -> float | None:
    """When a token ends that lasts so many seconds; some endpoints write the number as a text."""
    if isinstance(lasts, str) and lasts.isdecimal():
        lasts = int(lasts[:12])
    return now + lasts if isinstance(lasts, int | float) and not isinstance(lasts, bool) else None


def _config(auth: AuthConfig) -> OAuth2Config:
    if auth.oauth2 is None:
        raise RemoteError(ErrorDocument(WireCode.AUTH_REQUIRED, "The descriptor has no oauth2.token_url"))
    return auth.oauth2


def _refused(why: str) -> RemoteError:
    return RemoteError(ErrorDocument(WireCode.AUTH_REQUIRED, f"No token was issued: {why}"))


class _LoopLock:
    """A lock for each event loop: a blocking call runs in a loop of its own."""

    def __init__(self) -> None:
        self._lock: anyio.Lock | None = None
        self._token: object = None

    def of_this_loop(self) -> anyio.Lock:
        current = anyio.lowlevel.current_token()
        if self._lock is None or self._token != current:
            self._lock, self._token = anyio.Lock(), current
        return self._lock
