"""Identify callers by signed tokens: ``Authorization: Bearer`` with a JWT, checked
against a JWKS (extra ``oauth``).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from skillruntime.errors import InvalidSkillError
from skillruntime.remote.http_message import UnreachableError, WireRequest
from skillruntime.remote.http_transport import HttpTransport
from skillruntime.remote.ssrf_guard import AddressGuard
from skillruntime.server.callers.access import (
    BadCredentialsError,
    Principal,
    bearer_token,
)
from skillruntime.server.http.responses import refuse_for_now

__all__ = ["JwtCallers", "keys_from"]

# Only asymmetric algorithms: with a symmetric one, the public key could sign tokens.
_ALGORITHMS: Final = ["RS256", "PS256", "ES256", "ES384", "EdDSA"]
_log = logging.getLogger("skillruntime.remote")
_REFRESH_AFTER: Final = 60.0
"""Seconds that must pass before known keys are fetched again."""
_RETRY_AFTER: Final = 5.0
"""Seconds between attempts to fetch the keys while there are none yet."""
_LONGEST: Final = 8192
"""The most characters of a token; a longer token is not decoded."""
# TypeError: joserfc 1.8 iterates over the header's `crit`, of whatever type it is,
# before it verifies anything.
_INVALID_TOKEN: Final = (JoseError, ValueError, TypeError)


class JwtCallers:
    """An authenticator that recognizes callers by the tokens of one issuer.

    *fetch_keys* returns the issuer's JWKS; it is called at the start, and again when a
    token names an unknown key, at most once a minute. A token must name *issuer* and
    *audience*, must expire, and must contain *scope* if it is set.
    """

    def __init__(
        self,
        issuer: str,
        audience: str,
        fetch_keys: Callable[[], Awaitable[Mapping[str, Any]]],
        *,
        scope: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._issuer = issuer
        self._fetch = fetch_keys
        self._scope = scope
        self._clock = clock
        self._keys: KeySet | None = None
        self._fetched_at = float("-inf")
        self._claims = jwt.JWTClaimsRegistry(
            now=lambda: int(clock()),
            leeway=30,
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
            sub={"essential": True},
        )

    async def __call__(
        self, request: WireRequest, credentials: Mapping[str, Any] | None
    ) -> Principal | None:
        """Return the caller whose token *request* carries; None if the request has no
        JWT.

        Raises:
            BadCredentialsError: the token is invalid.
            RefusedError: the issuer's keys are not available now (503).
        """
        token = bearer_token(request)
        # Another authenticator may know a bearer token that is not a JWT.
        if token is None or token.count(".") != 2:
            return None
        # Anyone can send a token, so decoding must stay cheap.
        if len(token) > _LONGEST:
            raise BadCredentialsError
        keys = await self._current(is_unknown=False)
        try:
            try:
                claims = self._read(token, keys)
            except InvalidKeyIdError:  # the issuer may have a new key
                claims = self._read(token, await self._current(is_unknown=True))
        except _INVALID_TOKEN:
            raise BadCredentialsError from None
        scopes = _scopes(claims)
        if self._scope is not None and self._scope not in (scopes or ()):
            raise BadCredentialsError
        return Principal(f"{self._issuer} {claims['sub']}", scopes=scopes)

    async def read_keys(self) -> None:
        """Fetch and keep the issuer's keys.

        Raises:
            InvalidSkillError: the keys cannot be fetched or are not valid.
        """
        document = await self._fetch()
        try:
            keys = list(document.get("keys", []))
            self._keys = KeySet.import_key_set({"keys": keys})
        # A key that is not an object, or whose members are not text, raises
        # AttributeError or TypeError.
        except (JoseError, ValueError, AttributeError, TypeError, KeyError) as error:
            raise InvalidSkillError(
                f"The issuer's JWKS does not hold keys that can be read: {error}"
            ) from None

    def _read(self, token: str, keys: KeySet) -> dict[str, Any]:
        decoded = jwt.decode(token, keys, algorithms=_ALGORITHMS)
        self._claims.validate(decoded.claims)
        return dict(decoded.claims)

    async def _current(self, *, is_unknown: bool) -> KeySet:
        """Return the issuer's keys; fetch them again if a token names a key that is not
        among them (*is_unknown*).

        Raises:
            RefusedError: no keys are available at the moment.
        """
        # Anyone can forge a token with an unknown key, so fetches are limited by time.
        passed = self._clock() - self._fetched_at
        is_missing = self._keys is None and passed >= _RETRY_AFTER
        is_outdated = is_unknown and passed >= _REFRESH_AFTER
        if is_missing or is_outdated:
            self._fetched_at = self._clock()
            try:
                await self.read_keys()
            except InvalidSkillError as error:
                _log.warning("the issuer's keys cannot be fetched: %s", error)
        if self._keys is None:
            raise refuse_for_now(
                _RETRY_AFTER, "Tokens cannot be verified at the moment"
            )
        return self._keys


def _scopes(claims: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the scopes that a token names; None if it does not mention scopes.

    RFC 8693, 4.2 defines one string with spaces in ``scope``. Duende IdentityServer
    writes a list there; Microsoft Entra writes the string and Okta a list in ``scp``.
    Any other form grants nothing.
    """
    if "scope" in claims:
        claim = claims["scope"]
    elif "scp" in claims:
        claim = claims["scp"]
    else:
        return None
    if isinstance(claim, str):
        return frozenset(claim.split())
    if isinstance(claim, list):
        return frozenset(scope for scope in claim if isinstance(scope, str))
    return frozenset()


def keys_from(
    place: str, guard: AddressGuard | None = None
) -> Callable[[], Awaitable[Mapping[str, Any]]]:
    """Return a function that fetches a JWKS from *place*: an https address, or a file.

    The returned function raises `InvalidSkillError` if it cannot read a JWKS there.
    """

    # The operator of the host chose the address, so it may be in a private network.
    allowed = guard or AddressGuard(allow_all=True)

    async def fetch() -> Mapping[str, Any]:
        try:
            if place.startswith(("https://", "http://")):
                async with HttpTransport(allowed, timeout=10) as transport:
                    response = await transport(WireRequest("GET", place))
                text = response.body
            else:
                text = await anyio.Path(place).read_bytes()
            document = json.loads(text)
        except (OSError, ValueError, UnreachableError) as error:
            raise InvalidSkillError(
                f"The issuer's keys cannot be read from {place}: {error}"
            ) from None
        if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
            raise InvalidSkillError(f"{place} does not hold a JWKS")
        return document

    return fetch
