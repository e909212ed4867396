"""Authentication: API keys, stored only as hashes, and what a caller may do."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from skillruntime.errors import InvalidSkillError
from skillruntime.remote.http_message import WireRequest

__all__ = [
    "Authenticator",
    "BadCredentialsError",
    "KeyRing",
    "Principal",
    "hash_key",
    "new_key",
]

ANONYMOUS: Final = "anonymous"
INVOKE: Final = "skill:invoke"
READ: Final = "skill:read"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller with valid credentials.

    ``skills`` are the ids it may call, all if it is None. ``scopes`` are those of its
    token: ``skill:invoke`` to begin, cancel and complete executions, that or
    ``skill:read`` to see them; None, as for an API key without scopes, is all. An
    operator may also see, cancel and complete what others began.
    """

    id: str
    skills: frozenset[str] | None = None
    is_operator: bool = False
    scopes: frozenset[str] | None = None

    def may_call(self, skill_id: str) -> bool:
        """Return whether this caller may call the skill."""
        return self.skills is None or skill_id in self.skills

    @property
    def may_invoke(self) -> bool:
        """Whether its scopes allow it to change anything."""
        return self.scopes is None or INVOKE in self.scopes

    @property
    def may_read(self) -> bool:
        """Whether its scopes allow it to see executions."""
        return self.scopes is None or bool(self.scopes & {INVOKE, READ})


def owner_of(principal: Principal | None) -> str:
    """Return the name of a caller as executions store it; all anonymous callers share
    one name.
    """
    if principal is None:
        return ANONYMOUS
    return principal.id


class BadCredentialsError(Exception):
    """The credentials are not valid. It does not say why: the reason would help an
    attacker who guesses.
    """


Authenticator = Callable[
    [WireRequest, Mapping[str, Any] | None],
    Awaitable[Principal | None] | Principal | None,
]
"""Returns the caller of a request, or None if the request has no credentials that this
authenticator reads. The second argument is ``caller.credentials`` of the body, for
``custom`` schemes. A function that is not a coroutine function holds up all other
requests until it returns.

Raises:
    BadCredentialsError: the request has credentials that are not valid.
"""


def new_key() -> str:
    """Return a new API key: 256 random bits, with a prefix that scanners for leaked
    keys can know.
    """
    return "skr_" + secrets.token_urlsafe(32)


def hash_key(key: str) -> str:
    """Return the hash that the server stores for an API key. A key of 256 random bits
    needs no slow hash.

    >>> hash_key("skr_example")[:16]
    'f38f04cd1c6e6929'
    """
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class KeyRing:
    """An authenticator that recognizes callers by API key.

    The key is expected in ``X-API-Key``, or in ``Authorization: Bearer``.
    """

    def __init__(self, keys: Mapping[str, Principal]) -> None:
        # By hash: the time of a dictionary lookup reveals nothing about the key.
        self._keys = dict(keys)

    @classmethod
    def from_text(cls, text: str) -> KeyRing:
        """Return the key ring of a key file: ``{"keys": [{"id", "sha256", "skills"?,
        "operator"?}]}``.

        Raises:
            InvalidSkillError: the file is not a key file; the message quotes no key.
        """
        try:
            entries = json.loads(text)["keys"]
            keys = {entry["sha256"].lower(): _principal(entry) for entry in entries}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidSkillError(
                'The key file is not of the form {"keys": [{"id": ..., "sha256": ...}]}'
            ) from None
        return cls(keys)

    def __len__(self) -> int:
        return len(self._keys)

    async def __call__(
        self, request: WireRequest, credentials: Mapping[str, Any] | None
    ) -> Principal | None:
        """Return the caller that the key in *request* belongs to."""
        # Read both headers, because many clients can set only one of them.
        key = request.headers.get("x-api-key") or bearer_token(request)
        # 6.3 allows the key in the body too.
        in_body = credentials.get("api_key") if credentials is not None else None
        if isinstance(in_body, str) and in_body:
            # Two different keys do not identify one caller.
            if key and not _is_same(key, in_body):
                raise BadCredentialsError
            key = in_body
        if not key:
            return None
        principal = self._keys.get(hash_key(key))
        if principal is None:
            raise BadCredentialsError
        return principal


async def identify(
    authenticate: Authenticator,
    request: WireRequest,
    credentials: Mapping[str, Any] | None,
) -> Principal | None:
    """Return the caller whom *authenticate* recognizes, which may be a coroutine
    function or a plain one.

    Raises:
        BadCredentialsError: the credentials are not valid.
        TypeError: it returned something else.
    """
    principal = authenticate(request, credentials)
    if isinstance(principal, Awaitable):
        principal = await principal
    if principal is None or isinstance(principal, Principal):
        return principal
    raise TypeError(
        "The authenticator must return a Principal or None, not "
        f"{type(principal).__name__}"
    )


def any_of(authenticators: Iterable[Authenticator]) -> Authenticator:
    """Return an authenticator that tries each of *authenticators* and uses the first
    that recognizes the caller.
    """
    asked = tuple(authenticators)

    async def authenticate(
        request: WireRequest, credentials: Mapping[str, Any] | None
    ) -> Principal | None:
        was_bad = False
        for authenticator in asked:
            try:
                principal = await identify(authenticator, request, credentials)
            except BadCredentialsError:
                was_bad = True
            else:
                # The first that knows the caller decides, whether or not others refused
                # the credentials.
                if principal is not None:
                    return principal
        if was_bad:
            raise BadCredentialsError
        return None

    return authenticate


def bearer_token(request: WireRequest) -> str | None:
    """Return the token of ``Authorization: Bearer``, if there is one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    return token.strip() or None


def _is_same(key: str, other: str) -> bool:
    """Return whether two API keys are equal, in a time that does not depend on them."""
    return hmac.compare_digest(key.encode(), other.encode("utf-8", "surrogatepass"))


def _principal(entry: Mapping[str, Any]) -> Principal:
    """Return the caller that an entry of a key file describes.

    Raises:
        ValueError: its id is the one of anonymous callers.
        KeyError: it has no id.
    """
    caller = str(entry["id"])
    # Executions of the owner "anonymous" are shown to everyone who has their id.
    if caller == ANONYMOUS:
        raise ValueError("anonymous is who shows no key")
    skills: frozenset[str] | None = None
    listed = entry.get("skills")
    if isinstance(listed, list) and "*" not in listed:
        skills = frozenset(map(str, listed))
    scopes: frozenset[str] | None = None
    if isinstance(entry.get("scopes"), list):
        scopes = frozenset(map(str, entry["scopes"]))
    is_operator = entry.get("operator") is True
    return Principal(caller, skills, is_operator, scopes)
