"""The JSON Schema of a skill descriptor (descriptor document 4.2 to 4.4), and of the
extensions that we announce.

Fields that the protocol documents do not name are allowed: a newer descriptor stays
readable.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["DESCRIPTOR_SCHEMA"]

_TEXT: Final = {"type": "string", "minLength": 1}
# http too: a service on the same machine or network often has no certificate. Longer
# ones are cut by proxies.
_URL: Final = {"type": "string", "pattern": "^https?://[^\\s]+$", "maxLength": 2000}
_VERSION: Final = {"type": "string"}
_TYPES: Final = [
    "string",
    "number",
    "integer",
    "boolean",
    "array",
    "object",
    "null",
    "any",
]

DESCRIPTOR_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Skill descriptor",
    "type": "object",
    "required": [
        "protocol",
        "id",
        "name",
        "version",
        "capability_type",
        "description",
        "provider",
        "endpoint",
        "inputs",
        "output",
        "auth",
        "access",
    ],
    "properties": {
        "protocol": {
            "type": "object",
            "required": ["version"],
            "properties": {"version": _VERSION, "changelog_url": _URL},
        },
        # Any text, because 4.2 does not define a form. Only NUL is refused: PostgreSQL
        # cannot store it.
        "id": {
            "type": "string",
            "minLength": 1,
            "maxLength": 500,
            "pattern": "^[^\\u0000]+$",
        },
        "name": _TEXT,
        "version": _VERSION,
        "capability_type": {"enum": ["plugin", "api", "knowledge", "task"]},
        "description": {"type": "string"},
        "provider": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": _TEXT, "url": _URL, "contact": {"type": "string"}},
        },
        "endpoint": {
            "type": "object",
            "required": ["url"],
            "properties": {
                "url": _URL,
                # 4.4 names no other method, and a cache or proxy may repeat a GET.
                "method": {"enum": ["POST"]},
                # Without regard to case, and with parameters (RFC 9110, 8.3.1).
                "content_type": {
                    "type": "string",
                    "pattern": "^[Aa]pplication/[Jj][Ss][Oo][Nn]\\s*(;.*)?$",
                },
                "status_url": _URL,
                "result_url": _URL,
                # 2^53: above it, other readers of JSON round whole numbers (RFC 8259,
                # section 6).
                "timeout_ms": {"type": "integer", "minimum": 1, "maximum": 2**53},
                # A third party's descriptor must not keep a client trying for weeks.
                "retry": {
                    "type": "object",
                    "properties": {
                        "max_attempts": {
                            "type": "integer",
                            "minimum": 0,
                            "maximum": 100,
                        },
                        "backoff_ms": {
                            "type": "integer",
                            "minimum": 0,
                            "maximum": 3_600_000,
                        },
                    },
                },
            },
        },
        "inputs": {
            "type": "array",
            "maxItems": 500,
            "items": {
                "type": "object",
                "required": ["name", "type"],
                "properties": {
                    "name": _TEXT,
                    "type": {"enum": _TYPES},
                    "description": {"type": "string"},
                    # Each `default` is checked against its own parameter, which a
                    # schema of the form cannot say.
                    "required": {"type": "boolean"},
                    "schema": {"type": "object"},
                },
            },
        },
        "output": {
            "type": "object",
            "properties": {
                "content_type": _TEXT,
                "schema": {"type": ["object", "boolean"]},
                "description": {"type": "string"},
            },
        },
        "auth": {
            "type": "object",
            "required": ["type"],
            "properties": {
                "type": {"enum": ["api_key", "oauth2", "custom", "none"]},
                "description": {"type": "string"},
                # A token (RFC 9110, 5.6.2): a line break in it would begin a header of
                # the provider's choice.
                "header": {
                    "type": "string",
                    "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
                },
                "oauth2": {
                    "type": "object",
                    "required": ["token_url"],
                    "properties": {
                        "authorization_url": _URL,
                        "token_url": _URL,
                        "scopes": {
                            "type": "object",
                            "additionalProperties": {"type": "string"},
                        },
                    },
                },
            },
        },
        "access": {"enum": ["public", "restricted", "private"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "documentation_url": _URL,
        "created_at": {"type": "string", "format": "date-time"},
        "updated_at": {"type": "string", "format": "date-time"},
        "extensions": {
            "type": "object",
            "properties": {
                "annotations": {"type": "object"},
                "input_schema": {"type": "object"},
                "idempotency_key": {"type": "boolean"},
                "cancel": {"type": "boolean"},
                "wait_seconds": {"type": "number", "minimum": 0},
                "poll_interval_ms": {"type": "integer", "minimum": 1},
                "executions_url": _URL,
                "webhooks": {"type": "boolean"},
            },
        },
    },
    # 4.4: a token cannot be obtained without a token_url.
    "allOf": [
        {
            "if": {
                "properties": {
                    "auth": {
                        "properties": {"type": {"const": "oauth2"}},
                        "required": ["type"],
                    }
                }
            },
            "then": {"properties": {"auth": {"required": ["oauth2"]}}},
        }
    ],
}
