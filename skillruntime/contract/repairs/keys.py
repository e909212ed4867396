"""Repair the keys of an object: rename a key to a declared one, leave it out, or add it
with a default; recognize the keys that wrap all arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from skillruntime.contract.reading.arguments import wrapped
from skillruntime.contract.repair_rules import DEFAULT, KEY_NAME, UNKNOWN_KEY
from skillruntime.contract.repairs.outcomes import Loop, Misfit, Place
from skillruntime.contract.repairs.policy import Policy
from skillruntime.contract.repairs.record import Repair
from skillruntime.contract.repairs.scalars import is_nothing
from skillruntime.contract.schemas.names import (
    CALL_WRAPPERS,
    SCHEMA_WRAPPERS,
    WRAPPERS,
    close_names,
    fold_loosely,
    may_wrap,
    plain_name,
    renames,
    singular,
)
from skillruntime.contract.schemas.pointer import ValuePath, format_pointer
from skillruntime.contract.schemas.references import References, properties_of
from skillruntime.contract.schemas.schema import Schema, Violation
from skillruntime.contract.schemas.subschemas import (
    ABSENT,
    declared_properties,
    default_at,
    in_place,
    is_map,
    judging,
    property_locations,
)

# The number of levels that are searched for parameters before an unknown key is left
# out.
MAX_LEVELS_HELD = 3
_UNKNOWN = ("additionalProperties", "unevaluatedProperties")
_NEEDED = ("required", "dependentRequired", "dependencies")
# The values of `type` beside a call: OpenAI's `function`, Anthropic's `tool_use`, a
# schema's `object`.
_KINDS = frozenset({"object", "function", "function_call", "tool_use", "tool_call"})
# A tuple, because the type that a model writes may be unhashable.
TYPES = (
    "string",
    "integer",
    "number",
    "boolean",
    "array",
    "object",
    "null",
    "str",
    "int",
    "float",
    "bool",
    "list",
    "dict",
)


@dataclass(frozen=True, slots=True)
class KeyRules:
    """The rules for keys apart from the schema: the caller's *policy*, the names
    *reserved* by older versions, and the top-level names *defaulted* so far.
    """

    policy: Policy
    reserved: frozenset[str]
    defaulted: frozenset[str] = frozenset()


class KeyRepairs(NamedTuple):
    """An object with its keys repaired, and whether another key may mean a declared
    name.
    """

    value: dict[str, Any]
    repairs: list[Repair]
    is_ambiguous: bool = False


def with_keys_repaired(loop: Loop, rules: KeyRules, misfit: Misfit) -> KeyRepairs:
    """Return the object with keys renamed that mean a declared key, and unknown keys
    left out if allowed; the original is not changed.
    """
    place = misfit.place
    value: dict[str, Any] = place.value
    unknown = _names_in(misfit.violations, _UNKNOWN)
    missing = _names_in(misfit.violations, _NEEDED)
    if not unknown and not missing:
        return KeyRepairs(value, [])
    loop.spend(5 + len(value) // 2)
    declared = declared_properties(loop.references, misfit.locations)
    repairs: list[Repair] = []
    if not unknown and is_map(loop.references, [place.location]):
        return KeyRepairs(value, [])
    renamed = _renamed_keys(value, declared, unknown, missing)
    if renamed:
        for old, new in renamed.items():
            pointer = format_pointer((*place.path, old))
            repairs.append(Repair(pointer, KEY_NAME, old, new))
        # A renamed member keeps its position.
        value = {renamed.get(key, key): member for key, member in value.items()}
    rest = sorted(unknown - renamed.keys())
    if not rest:
        return KeyRepairs(value, repairs)
    folded = set(map(fold_loosely, declared))
    is_ambiguous = any(fold_loosely(name) in folded for name in rest)
    if _may_leave_out(loop, rules, place, value, declared):
        for name in rest:
            if _is_left_out(loop, rules, name, value, declared):
                pointer = format_pointer((name,))
                repairs.append(Repair(pointer, UNKNOWN_KEY, value[name], None))
                value = {key: member for key, member in value.items() if key != name}
    return KeyRepairs(value, repairs, is_ambiguous)


def _renamed_keys(
    value: dict[str, Any],
    declared: Mapping[str, Any],
    unknown: set[str],
    missing: set[str],
) -> dict[str, str]:
    """Return the declared, absent property that each misspelt key of *value* means."""
    # Keep the order of the value, so that the record of repairs has the same order in
    # every process.
    if unknown:
        candidates = [name for name in value if name in unknown]
    else:
        candidates = [name for name in value if name not in declared]
    new_names = renames(candidates, declared, value)
    return {
        old: new for old, new in new_names.items() if old in unknown or new in missing
    }


def _may_leave_out(
    loop: Loop,
    rules: KeyRules,
    place: Place,
    value: dict[str, Any],
    declared: Mapping[str, Any],
) -> bool:
    """Return whether unknown keys of *value*, the object at *place* with its keys
    renamed, may be left out.
    """
    # Below the top level, an unknown key may belong to a missing level.
    if place.path or not _was_sent_any(rules, value, declared):
        return False
    # The names of keys that a pattern declares are unknown.
    schemas = in_place(loop.references, [place.location])
    return not any("patternProperties" in schema for _, schema in schemas)


def _names_in(violations: list[Violation], keywords: Collection[str]) -> set[str]:
    names: set[str] = set()
    for violation in violations:
        if violation.keyword in keywords:
            names.update(violation.names)
    return names


def _was_sent_any(
    rules: KeyRules, value: dict[str, Any], declared: Mapping[str, Any]
) -> bool:
    """Return whether the caller sent a declared parameter other than null."""
    for key, member in value.items():
        is_own = key in declared and key not in rules.defaulted
        if is_own and not is_nothing(member):
            return True
    return False


def _is_left_out(
    loop: Loop,
    rules: KeyRules,
    name: str,
    value: dict[str, Any],
    declared: Mapping[str, Any],
) -> bool:
    """Return whether the unknown key *name* of the arguments *value* is left out,
    because it is null or the policy drops unknown keys.
    """
    is_null = value[name] is None and name not in rules.reserved
    if not is_null and rules.policy.on_unknown != "drop":
        return False
    if _may_mean(loop, name, declared, value) or is_wrapper(value, name, declared):
        return False
    return not _holds_any(value[name], set(map(fold_loosely, declared)), 0)


def _may_mean(
    loop: Loop, name: str, declared: Collection[str], present: Mapping[str, Any]
) -> bool:
    """Return whether the undeclared *name* differs from a declared name only in
    spelling variants such as case, or is close to an absent declared name.
    """
    if name in declared:
        return False
    absent = [key for key in declared if key not in present]
    loop.spend(len(absent) // 2)
    if fold_loosely(name) in map(fold_loosely, declared):
        return True
    return any(close_names([name], absent))


def _holds_any(value: Any, declared: set[str], depth: int) -> bool:
    """Return whether *value*, under an undeclared key, contains a declared member,
    which would be lost if the key were dropped.
    """
    content = wrapped(value)
    if isinstance(content, dict):
        if any(fold_loosely(name) in declared for name in content):
            return True
        content = list(content.values())
    if not isinstance(content, list) or depth == MAX_LEVELS_HELD:
        return False
    return any(_holds_any(member, declared, depth + 1) for member in content)


def with_defaults(loop: Loop, rules: KeyRules, misfit: Misfit) -> KeyRepairs:
    """Return the object with the default of each absent required property, unless
    another key may mean that property; the original is not changed.
    """
    place = misfit.place
    value: dict[str, Any] = place.value
    absent = sorted(_names_in(misfit.violations, _NEEDED) - value.keys())
    if not absent:
        return KeyRepairs(value, [])
    declared = declared_properties(loop.references, misfit.locations)
    if any(is_wrapper(value, name, declared) for name in value):
        return KeyRepairs(value, [])  # the wrapped object may hold them
    others = [key for key in value if key not in declared]
    loop.spend((len(absent) + len(rules.reserved)) * len(others) // 2)
    if not place.path and _may_be_of_older_version(rules, others):
        return KeyRepairs(value, [])
    places = property_locations(loop.references, misfit.locations, choices=False)
    elsewhere = {name for _, name in close_names(others, absent)}
    elsewhere |= _names_held(value, others)
    repairs: list[Repair] = []
    for name in absent:
        default = default_at(loop.references, places.get(name, ()))
        if default is ABSENT or name in elsewhere:
            continue
        value = {**value, name: default}
        pointer = format_pointer((*place.path, name))
        repairs.append(Repair(pointer, DEFAULT, None, default))
    return KeyRepairs(value, repairs)


def _may_be_of_older_version(rules: KeyRules, others: list[str]) -> bool:
    """Return whether one of the undeclared keys *others* may be an older version's
    parameter.

    If a caller sends ``days`` of version 1, the default of ``hours`` in version 2 must
    not be used.
    """
    if not rules.reserved.isdisjoint(others):
        return True
    return any(close_names(others, rules.reserved))


def _names_held(value: dict[str, Any], others: Collection[str]) -> set[str]:
    """Return the keys of the objects under the undeclared keys *others* of *value* and
    under its possible wrapper keys.

    In ``{"options": {"limit": 5}}``, the default must not replace the 5 that the model
    sent.
    """
    named = set(others)
    held: set[str] = set()
    for key, member in value.items():
        content = wrapped(member) if key in named or may_wrap(key) else None
        if isinstance(content, dict):
            held.update(content)
    return held


def is_on_misspelt_key(
    loop: Loop, schema: Schema, place: Place, where: ValuePath
) -> bool:
    """Return whether a key on the path from *place* to the part at *where* is
    undeclared, but may mean a declared key.

    An example is ``maxItems`` in a map of strings that declares ``max_items``. If the
    schema declares patterns, a key that matches none of them may mean a key that
    matches.
    """
    parent = place.value
    for length, token in enumerate(where):
        if isinstance(parent, dict):
            path = ValuePath((*place.path, *where[:length]))
            described_by = judging(loop.references, path)
            locations = [location for location, _ in described_by]
            declared = declared_properties(loop.references, locations)
            name = str(token)
            if name not in declared:
                schemas = [subschema for _, subschema in described_by]
                if _matches_no_pattern(schema, name, schemas):
                    return True
                if _may_mean(loop, name, declared, parent):
                    return True
        parent = parent[token]
    return False


def _matches_no_pattern(
    schema: Schema, name: str, schemas: list[dict[str, Any]]
) -> bool:
    """Return whether *schemas* declare patterns of keys, and *name* matches none."""
    patterns: set[str] = set()
    for subschema in schemas:
        if "patternProperties" in subschema:
            patterns.update(properties_of(subschema, "patternProperties"))
    if not patterns:
        return False
    return not any(schema.name_matches(pattern, name) for pattern in patterns)


def is_typed_value(references: References, place: Place) -> bool:
    """Return whether the object may be a value in the form of its schema, such as
    ``{"type": "integer", "value": 0}``, whose members are not repaired.
    """
    value: dict[str, Any] = place.value
    if value.keys() != {"type", "value"} or value["type"] not in TYPES:
        return False
    return "type" not in declared_properties(references, [place.location])


def is_wrapper(value: dict[str, Any], name: str, declared: Collection[str]) -> bool:
    """Return whether *value* has all its content under *name*; its other keys belong
    only to the form of a call or schema.

    A declared key is content, unless the wrapped object also has a key of that name.

    >>> schema = {"type": "object", "properties": {"city": "Paris"}}
    >>> is_wrapper(schema, "properties", {"city"})
    True
    >>> call = {"name": "Bob", "arguments": {"age": 5}}
    >>> is_wrapper(call, "arguments", {"name", "age"})
    False
    """
    wrapper = plain_name(name)
    # Only known wrapper names count: another word, such as `options`, may be the
    # model's own parameter.
    if wrapper not in WRAPPERS:
        return False
    for key, member in value.items():
        if key != name and not _says_nothing(key, member, wrapper):
            return False
    content = wrapped(value[name])
    held = content if isinstance(content, dict) else {}
    if any(key in declared and key not in held for key in value):
        return False
    # If `arguments` is declared, `argument` is a misspelling of it.
    for key in declared:
        if key not in held and singular(fold_loosely(key)) == singular(wrapper):
            return False
    return wrapper not in SCHEMA_WRAPPERS or not any(map(_is_schema, held.values()))


def is_call_wrapper(name: str) -> bool:
    """Return whether *name* is a key that wraps the arguments of a call."""
    return plain_name(name) in CALL_WRAPPERS


def _says_nothing(key: str, member: Any, wrapper: str) -> bool:
    """Return whether the *member* under *key* of a wrapper object belongs only to the
    form of a call or schema.
    """
    match key:
        case "type":
            return isinstance(member, str) and member in _KINDS
        case "title" | "description" | "$schema":
            return wrapper in SCHEMA_WRAPPERS and isinstance(member, str)
        case "required" | "additionalProperties":
            return wrapper in SCHEMA_WRAPPERS and isinstance(member, list | bool)
    return plain_name(key) in WRAPPERS and member in ("", None, {}, [])


def _is_schema(value: Any) -> bool:
    """Return whether *value* is a schema and not a value: ``{"type": "string"}``."""
    if not isinstance(value, dict) or "value" in value:
        return False
    return value.get("type") in TYPES
