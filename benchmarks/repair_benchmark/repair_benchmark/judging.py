"""Whether an engine's answer to a case is right.

Each engine is read as kindly as is fair: what it returns counts only if it fits the
schema, since a host checks that, and a default that it filled in does not count. A null
for an optional parameter that may be null, and has no other default, equals no value. 5
equals 5.0, and ``true`` never equals 1. A payload that was valid as it was sent and
came back unchanged counts as no answer, not as a wrong one: a validator cannot see that
something else was meant.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import jsonschema_rs

from repair_benchmark.cases import REFUSE

OUTCOMES = ("right", "refused", "wrong")


def outcome(case: dict[str, Any], found: Any) -> str:
    """Return ``"right"``, ``"refused"`` or ``"wrong"`` for *case*, where an engine
    returned *found* (``REFUSE`` if it returned nothing that fits).
    """
    if found == REFUSE:
        return "refused"
    answer = case["answer"]
    if answer != REFUSE:
        schema = case["schema"]
        meant = without_defaults(answer, answer, schema)
        if is_same(without_defaults(found, answer, schema), meant):
            return "right"
    if is_same(found, as_sent(case)):
        return "refused"
    return "wrong"


def fitting(case: dict[str, Any], line: str) -> Any:
    """Return the arguments in the *line* that an engine wrote, or ``REFUSE`` if it
    refused or they do not fit the schema.
    """
    try:
        found = json.loads(line)["arguments"]
    except (ValueError, KeyError, TypeError):
        return REFUSE
    if isinstance(found, dict) and is_valid(case["schema"], found):
        return found
    return REFUSE


def as_sent(case: dict[str, Any]) -> Any:
    """Return the object that a JSON parser reads from the payload of *case*, or
    ``None``.
    """
    payload = case["payload"]
    if isinstance(payload, str):
        try:
            return json.loads(payload)
        except ValueError:
            return None
    return payload


def is_valid(schema: dict[str, Any], value: Any) -> bool:
    """Return whether *value* fits *schema*."""
    return bool(_validator(json.dumps(schema)).is_valid(value))


def is_same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: 5 equals 5.0, ``true`` never 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return False
        return all(is_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


def without_defaults(found: Any, answer: Any, schema: Any) -> Any:
    """Return *found* without the members that *answer* does not have and that are the
    default that *schema* declares, and without the nulls that say nothing.
    """
    if not isinstance(schema, dict):
        return found
    if isinstance(found, dict) and isinstance(answer, dict):
        declared = schema.get("properties", {})
        kept = {}
        for key, value in found.items():
            member = declared.get(key)
            is_dispensable = _is_default(value, member) and key not in answer
            if not is_dispensable and not _says_nothing(key, value, schema):
                kept[key] = without_defaults(value, answer.get(key), member)
        return kept
    if isinstance(found, list) and isinstance(answer, list):
        if len(found) == len(answer):
            items = schema.get("items")
            pairs = zip(found, answer, strict=True)
            return [without_defaults(item, other, items) for item, other in pairs]
    return found


def _is_default(value: Any, schema: Any) -> bool:
    if not isinstance(schema, dict) or "default" not in schema:
        return False
    return is_same(value, schema["default"])


def _says_nothing(key: str, value: Any, schema: dict[str, Any]) -> bool:
    """Return whether *value* is a null for an optional parameter that may be null and
    has no other default.
    """
    member = schema.get("properties", {}).get(key)
    if value is not None or not isinstance(member, dict):
        return False
    if key in schema.get("required", ()):
        return False
    return member.get("default") is None and is_valid(member, None)


@functools.cache
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for(json.loads(schema))
