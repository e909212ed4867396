"""A descriptor's JSON form, field by field: read from a document that has no faults, and written again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skillruntime.remote.descriptor_parts import (
    ABSENT,
    AccessPolicy,
    AuthConfig,
    AuthType,
    CapabilityType,
    Extensions,
    InvocationEndpoint,
    OAuth2Config,
    OutputDefinition,
    ParameterDefinition,
    ProtocolVersion,
    Provider,
    RetryPolicy,
)

__all__ = ["read_fields", "read_input", "write_fields"]

# Each list is both what is read and what is written: a field in one direction alone would be lost on the way.
_ENDPOINT = ("url", "method", "content_type", "status_url", "result_url", "timeout_ms")
_EXTENSIONS = (
    *("annotations", "input_schema", "idempotency_key", "cancel", "wait_seconds", "poll_interval_ms"),
    *("events_url", "executions_url", "webhooks"),
)
_TOP = (
    *("protocol", "id", "name", "version", "capability_type", "description", "provider", "endpoint", "inputs"),
    *("output", "auth", "access", "tags", "documentation_url", "created_at", "updated_at", "extensions"),
)


def read_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `SkillDescriptor` that a faultless *document* writes."""
    # By index, not by get: `find_faults` has seen that the required fields are there.
    endpoint = document["endpoint"]
    retry = endpoint.get("retry")
    output = document["output"]
    extensions = document.get("extensions") or {}
    return {
        "protocol": ProtocolVersion(**_known(document["protocol"], ("version", "changelog_url"))),
        "id": document["id"],
        "name": document["name"],
        "version": document["version"],
        "capability_type": CapabilityType(document["capability_type"]),
        "description": document["description"],
        "provider": Provider(
            **_known(document["provider"], ("name", "url", "contact")),
            more=_rest(document["provider"], ("name", "url", "contact")),
        ),
        "endpoint": InvocationEndpoint(
            **_known(endpoint, _ENDPOINT),
            retry=RetryPolicy(**_known(retry, ("max_attempts", "backoff_ms"))) if retry is not None else None,
        ),
        "inputs": tuple(read_input(item) for item in document["inputs"]),
        "output": OutputDefinition(**_known(output, ("content_type", "schema", "description"))),
        "auth": _read_auth(document["auth"]),
        "access": AccessPolicy(document["access"]),
        "tags": tuple(document.get("tags") or ()),
        "documentation_url": document.get("documentation_url"),
        "created_at": document.get("created_at"),
        "updated_at": document.get("updated_at"),
        "extensions": Extensions(**_known(extensions, _EXTENSIONS), more=_rest(extensions, _EXTENSIONS)),
        "more": _rest(document, _TOP),
    }


def write_fields(descriptor: Any) -> dict[str, Any]:
    """Return the JSON object of a `SkillDescriptor`; what is absent or says nothing is left out."""
    endpoint = descriptor.endpoint
    written: dict[str, Any] = {
        "protocol": _present(descriptor.protocol, ("version", "changelog_url")),
        "id": descriptor.id,
        "name": descriptor.name,
        "version": descriptor.version,
        "capability_type": descriptor.capability_type.value,
        "description": descriptor.description,
        "provider": {**_present(descriptor.provider, ("name", "url", "contact")), **descriptor.provider.more},
        "endpoint": _present(endpoint, _ENDPOINT),
        "inputs": [_write_input(parameter) for parameter in descriptor.inputs],
        "output": _present(descriptor.output, ("content_type", "schema", "description")),
        "auth": _write_auth(descriptor.auth),
        "access": descriptor.access.value,
    }
    if endpoint.retry is not None:
        written["endpoint"]["retry"] = _present(endpoint.retry, ("max_attempts", "backoff_ms"))
    if descriptor.tags:
        written["tags"] = list(descriptor.tags)
    written |= _present(descriptor, ("documentation_url", "created_at", "updated_at"))
    extensions = descriptor.extensions
    # False, zero and empty say what a plain server is, and a peer reads their absence in the same way.
    said = {name: value for name in _EXTENSIONS if (value := getattr(extensions, name))}
    if said or extensions.more:
        written["extensions"] = {**said, **extensions.more}
    return {**written, **descriptor.more}


def read_input(item: Mapping[str, Any]) -> ParameterDefinition:
    """Return the parameter that one item of ``inputs`` writes."""
    return ParameterDefinition(
        **_known(item, ("name", "type", "description", "required", "schema")), default=item.get("default", ABSENT)
    )


def _write_input(parameter: ParameterDefinition) -> dict[str, Any]:
    written: dict[str, Any] = {"name": parameter.name, "type": parameter.type}
    if parameter.description:
        written["description"] = parameter.description
    # Always written, as in the example of 4.4: readers differ in what they take its absence for.
    written["required"] = parameter.required
    # null too: 4.4 shows it for a parameter without a default, and what was read is written again.
    if parameter.default is not ABSENT:
        written["default"] = parameter.default
    if parameter.schema is not None:
        written["schema"] = dict(parameter.schema)
    return written


def _read_auth(document: Mapping[str, Any]) -> AuthConfig:
    oauth2 = document.get("oauth2")
    names = ("type", "description", "header", "oauth2")
    return AuthConfig(
        type=AuthType(document["type"]),
        **_known(document, ("description", "header")),
        oauth2=OAuth2Config(**_known(oauth2, ("authorization_url", "token_url", "scopes"))) if oauth2 else None,
        more=_rest(document, names),
    )


def _write_auth(auth: AuthConfig) -> dict[str, Any]:
    written = {"type": auth.type.value, **_present(auth, ("description", "header"))}
    if auth.oauth2 is not None:
        written["oauth2"] = _present(auth.oauth2, ("authorization_url", "token_url"))
        if auth.oauth2.scopes:
            written["oauth2"]["scopes"] = dict(auth.oauth2.scopes)
    return {**written, **auth.more}


def _known(document: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: document[name] for name in names if name in document}


def _rest(document: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    # Kept, so that a descriptor of a newer MINOR (section 8) passes through this release whole.
    known = set(names)
    return {name: value for name, value in document.items() if name not in known}


def _present(value: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: item for name in names if (item := getattr(value, name)) is not None}
