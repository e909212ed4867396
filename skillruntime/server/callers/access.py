"""Authenticate callers by API keys, which are stored only as hashes."""

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

    ``skills`` are the ids of the skills that the caller may call; None allows all.
    ``scopes`` are the scopes of its token: ``skill:invoke`` is needed to begin, cancel
    and complete executions, either ``skill:invoke`` or ``skill:read`` to see them;
    None, as for an API key without scopes, allows all. An operator may also see, cancel
    and complete other callers' executions.
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
        """Whether the caller's scopes allow it to change anything."""
        return self.scopes is None or INVOKE in self.scopes

    @property
    def may_read(self) -> bool:
        """Whether the caller's scopes allow it to see executions."""
        return self.scopes is None or bool(self.scopes & {INVOKE, READ})


def owner_of(principal: Principal | None) -> str:
    """Return the name under which executions store a caller; all anonymous callers
    share one name.
    """
    if principal is None:
        return ANONYMOUS
    return principal.id


class BadCredentialsError(Exception):
    """The credentials are not valid. The error does not say why: the reason would help
    an attacker who guesses.
    """


Authenticator = Callable[
    [WireRequest, Mapping[str, Any] | None],
    Awaitable[Principal | None] | Principal | None,
]
"""Returns the caller of a request, or None if the request has no credentials that this
authenticator reads. The second argument is ``caller.credentials`` of the body, for
``custom`` schemes. A plain function blocks all other requests until it returns.

Raises:
    BadCredentialsError: the request has credentials that are not valid.
"""


def check_caller_name(name: str) -> None:
    """Check that *name* is allowed for a caller with a key.

    Raises:
        ValueError: the name is blank, has a control character, or is the name that all
            anonymous callers share.
    """
    if not name.strip() or not name.isprintable():
        raise ValueError(f"{name!r} is not a name of a caller")
    # Executions of the owner "anonymous" are shown to everyone who has their id.
    if name == ANONYMOUS:
        raise ValueError(f"{name!r} is the name of callers without a key")


def new_key() -> str:
    """Return a new API key: 256 random bits, with a prefix that scanners for leaked
    keys can recognize.
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
        # Look keys up by hash: the time of a dictionary lookup does not reveal anything
        # about the key.
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
        """Return the caller to whom the key in *request* belongs."""
        # Read both headers, because many clients can set only one of them.
        key = request.headers.get("x-api-key") or bearer_token(request)
        # The invocation protocol, section 6.3, allows the key in the body too.
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
    """Return the caller whom *authenticate*, a coroutine function or a plain function,
    recognizes.

    Raises:
        BadCredentialsError: the credentials are not valid.
        TypeError: *authenticate* returned something other than a caller or None.
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
                # The first authenticator that knows the caller decides, even if others
                # refused the credentials.
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
    """Return whether two API keys are equal, in a time that does not depend on the
    keys.
    """
    return hmac.compare_digest(key.encode(), other.encode("utf-8", "surrogatepass"))


def _principal(entry: Mapping[str, Any]) -> Principal:
    """Return the caller that an entry of a key file describes.

    Raises:
        ValueError: the entry's id is the name of anonymous callers.
        KeyError: the entry has no id.
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
