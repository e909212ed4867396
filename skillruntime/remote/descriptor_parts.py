"""The parts of a skill's descriptor: its enumerations (descriptor document 4.3) and
substructures (4.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from skillruntime.remote.hosts import ascii_host, escape_segment
from skillruntime.remote.json_form import ABSENT

__all__ = ["AccessPolicy", "OAuth2Config"]

PROTOCOL_VERSION: Final = "1.0.0"
"""The version of the protocol that this library speaks."""


class CapabilityType(StrEnum):
    """The kind of skill (4.3): code to embed, a remote service, text to read, or a task
    for a person.
    """

    PLUGIN = "plugin"
    API = "api"
    KNOWLEDGE = "knowledge"
    TASK = "task"


class AccessPolicy(StrEnum):
    """Who may see and call a skill (4.3). Public: everyone. Restricted: everyone sees
    it, and callers with credentials call it. Private: only callers with credentials see
    it.
    """

    PUBLIC = "public"
    RESTRICTED = "restricted"
    PRIVATE = "private"


class AuthType(StrEnum):
    """How a caller authenticates (4.3)."""

    API_KEY = "api_key"
    OAUTH2 = "oauth2"
    CUSTOM = "custom"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ProtocolVersion:
    """The protocol's version that the descriptor is written for (4.4)."""

    version: str = PROTOCOL_VERSION
    changelog_url: str | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider of the skill; ``more`` has the other fields that it states about
    itself.
    """

    name: str
    url: str | None = None
    contact: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to try, and the first pause in milliseconds; the n-th is 2^n times that
    (6.6).
    """

    max_attempts: int = 3
    backoff_ms: int = 1000


@dataclass(frozen=True, slots=True)
class InvocationEndpoint:
    """Where the skill is called (4.4).

    A URL with ``{execution_id}`` is a template, as in 4.4; otherwise the id is
    appended, as in 6.2.
    """

    url: str
    method: str = "POST"
    content_type: str = "application/json"
    status_url: str | None = None
    result_url: str | None = None
    timeout_ms: int | None = None
    retry: RetryPolicy | None = None

    def status_of(self, execution_id: str) -> str:
        """Return the status URL of *execution_id*; without a ``status_url`` it stands
        next to the endpoint's URL.

        >>> url, status_url = "https://a.example/invoke", "https://a.example/status"
        >>> InvocationEndpoint(url, status_url=status_url).status_of("e/1")
        'https://a.example/status/e%2F1'
        """
        return fill_url(self.status_url or _beside(self.url, "status"), execution_id)

    def result_of(self, execution_id: str) -> str:
        """Return the URL of the result of *execution_id*.

        >>> InvocationEndpoint("https://a.example/x/invoke").result_of("e1")
        'https://a.example/x/result/e1'
        """
        return fill_url(self.result_url or _beside(self.url, "result"), execution_id)


@dataclass(frozen=True, slots=True)
class ParameterDefinition:
    """One input parameter (4.4).

    ``default`` of None is the protocol document's ``"default": null``: no default,
    unless the schema admits null.
    """

    name: str
    type: str = "string"
    description: str = ""
    required: bool = False
    default: Any = ABSENT
    schema: Mapping[str, Any] | None = None

    def to_schema(self) -> dict[str, Any]:
        """Return the parameter as a JSON Schema.

        >>> schema = {"minimum": 1}
        >>> ParameterDefinition("n", "integer", default=None, schema=schema).to_schema()
        {'type': 'integer', 'minimum': 1}
        """
        schema: dict[str, Any] = {} if self.type == "any" else {"type": self.type}
        if self.description:
            schema["description"] = self.description
        # Last, because it refines `type` and `description`.
        schema |= self.schema or {}
        if self.default is ABSENT:
            return schema
        if self.default is None and not _admits_null(schema):
            return schema
        schema["default"] = self.default
        return schema


@dataclass(frozen=True, slots=True)
class OutputDefinition:
    """The output of the skill (4.4)."""

    content_type: str = "application/json"
    schema: Mapping[str, Any] | bool | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class OAuth2Config:
    """The addresses that issue tokens, and what each scope allows (4.4)."""

    token_url: str
    authorization_url: str | None = None
    scopes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuthConfig:
    """How to authenticate (4.4); ``more`` has the fields that only a ``custom`` scheme
    knows.
    """

    type: AuthType = AuthType.NONE
    description: str | None = None
    header: str | None = None
    oauth2: OAuth2Config | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key_header(self) -> str:
        """The header that carries an API key."""
        return self.header or "X-API-Key"


@dataclass(frozen=True, slots=True)
class Extensions:
    """The server's features beyond the protocol documents; a peer that does not know
    them works unchanged.

    ``annotations`` are the contract's (``read_only``, ``idempotent``); ``input_schema``
    is the complete input schema, if ``inputs`` cannot express it; ``wait_seconds`` is
    the longest ``Prefer: wait``.
    """

    annotations: Mapping[str, Any] = field(default_factory=dict)
    input_schema: Mapping[str, Any] | None = None
    idempotency_key: bool = False
    cancel: bool = False
    wait_seconds: float = 0
    poll_interval_ms: int | None = None
    executions_url: str | None = None
    webhooks: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)


def fill_url(template: str, execution_id: str) -> str:
    """Return *template* with the id filled in, or appended if *template* has no place
    for it; the id cannot leave its path segment.
    """
    # A server may choose any id: one with slashes or dots must not name another
    # address.
    safe = escape_segment(execution_id)
    if "{execution_id}" in template:
        return template.replace("{execution_id}", safe)
    return f"{template.rstrip('/')}/{safe}"


def is_address(url: str) -> bool:
    """Return whether *url* is http or https, with a host and a possible port.

    >>> [is_address(url) for url in ("https://a.example/x", "http://[::1]:80")]
    [True, True]
    >>> [is_address(url) for url in ("a.example", "http://[::1", "http://a:99999")]
    [False, False, False]
    """
    try:
        parts = urlsplit(url)
        host = ascii_host(url)
        port = (
            parts.port
        )  # raises ValueError if the port is not a number, or is too large
    except ValueError:
        return False
    # Port 0 cannot be connected to.
    return parts.scheme in ("http", "https") and bool(host) and port != 0


def _admits_null(schema: Mapping[str, Any]) -> bool:
    # Without a type every value is admitted (JSON Schema 2020-12, validation 6.1.1).
    kind = schema.get("type")
    if isinstance(kind, list):
        return "null" in kind
    return kind is None or kind == "null"


def _beside(url: str, word: str) -> str:
    """Return the endpoint's address with its last segment replaced."""
    parent, _, _ = url.rstrip("/").rpartition("/")
    return f"{parent}/{word}"
