"""Recognize names of secrets, so that their values are masked even if the schema does
not mark them. Pure.

Whole segments of a name decide: ``api_key`` and ``authToken`` are secrets,
``max_tokens``, ``page_token`` and ``keyboard`` are not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from skillruntime.lazy_patterns import lazy_pattern

MASK = "(secret)"

_SEGMENT = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ALWAYS = frozenset(
    {
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "apikey",
        "credential",
        "credentials",
        "authorization",
    }
)
# Only some kinds of keys are secrets: `sort_key` and `primary_key` are not.
_KEYS = frozenset(
    {
        "api",
        "access",
        "secret",
        "private",
        "encryption",
        "signing",
        "auth",
        "master",
        "subscription",
    }
)
# Tokens that mean a place in a list (Google's AIP-158, AWS's NextToken) or a unit of
# text.
_NOT_SECRET_TOKENS = frozenset(
    {
        "page",
        "next",
        "prev",
        "previous",
        "continuation",
        "cursor",
        "sync",
        "resume",
        "start",
        "stop",
        "end",
        "max",
        "min",
        "pad",
        "eos",
        "bos",
        "unk",
        "mask",
        "sep",
        "special",
        "per",
        "first",
        "last",
    }
)
_KEY_IN_JSON = lazy_pattern(r'"([A-Za-z0-9_.\-]{2,64})"\s*:')


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether a parameter, property or variable called *name* contains a secret.

    >>> [is_secret_name(name) for name in ("api_key", "accessToken", "DB_PASSWORD")]
    [True, True, True]
    >>> [is_secret_name(name) for name in ("max_tokens", "page_token")]
    [False, False]
    """
    segments = [segment.lower() for segment in _SEGMENT.findall(name)]
    if not segments:
        return False
    *before, last = segments
    if last in ("value", "text") and before:
        *before, last = before
    if last in _ALWAYS or last in ("secret", "secrets"):
        return True
    if last in ("key", "keys"):
        return bool(before) and before[-1] in _KEYS
    return last == "token" and not _NOT_SECRET_TOKENS.intersection(before[-1:])


def names_a_secret(text: str) -> bool:
    """Return whether any key of the JSON document *text* is the name of a secret."""
    return any(is_secret_name(name) for name in set(_KEY_IN_JSON.findall(text)))


def masked(value: Any, depth: int = 64) -> Any:
    """Return *value* with each value under a secret's name replaced by ``(secret)``;
    the same object if there is none.

    >>> masked({"url": "https://x.test", "headers": [{"api_key": "sk-1"}]})
    {'url': 'https://x.test', 'headers': [{'api_key': '(secret)'}]}
    """
    if depth == 0:
        return value
    if isinstance(value, dict):
        return _masked_members(value, depth)
    if isinstance(value, list):
        items = [masked(item, depth - 1) for item in value]
        if all(one is other for one, other in zip(items, value, strict=True)):
            return value
        return items
    return value


def _masked_members(members: dict[Any, Any], depth: int) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    is_changed = False
    for key, member in members.items():
        is_secret = isinstance(key, str) and is_secret_name(key)
        if is_secret and member is not None:
            result[key] = MASK
        else:
            result[key] = masked(member, depth - 1)
        if result[key] is not member:
            is_changed = True
    return result if is_changed else members
