"""The keys of an object under repair: renamed, left out, filled by a default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from skillruntime.contract.coercion.close_names import MAX_FULL_OF_KEY, folded, is_close_to_any
from skillruntime.contract.coercion.edit import Edit
from skillruntime.contract.coercion.keys import (
    alike,
    is_close,
    is_wrapper,
    literal_names,
    may_wrap,
    renames,
    spellings,
    wrapped,
)
from skillruntime.contract.coercion.repair import Repair
from skillruntime.contract.coercion.scalars import is_nothing
from skillruntime.contract.coercion.state import Coercion
from skillruntime.contract.coercion.subschemas import (
    ABSENT,
    declared_properties,
    default_at,
    in_place,
    property_locations,
)
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.contract.references import properties_of
from skillruntime.contract.schema import Violation

__all__ = ["MEMBER_KEYWORDS", "filled_defaults", "may_mean", "misspelt", "repaired_keys"]

MAX_DEPTH = 3
_UNKNOWN = ("additionalProperties", "unevaluatedProperties")
_NEEDED = ("required", "dependentRequired", "dependencies")
MEMBER_KEYWORDS = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties"})


def repaired_keys(
    state: Coercion, edit: Edit, here: list[Violation], location: Path, path: Path, misspelt: set[str]
) -> Iterator[Repair]:
    """Rename the keys that mean a declared one, and leave out those that may be."""
    unknown = {name for violation in here if violation.keyword in _UNKNOWN for name in violation.names} | misspelt
    missing = _missing(here)
    if not unknown and not missing:
        return
    value = edit.value
    declared = declared_properties(state.references, [location, *(violation.location for violation in here)])
    # In the order of the value, so that the record of repairs has the same order in every process.
    candidates = [name for name in value if (name in unknown if unknown else name not in declared)]
    meant = renames(candidates, declared, value)
    for old, new in meant.items():
        if old in unknown or new in missing:
            edit.rename(old, new)
            yield Repair(format_pointer((*path, old)), "key-name", old, new)
    schemas = [schema for _, schema in in_place(state.references, [location])]
    sent = edit.value.keys() - (state.defaulted if not path else set())
    stays = any(name in declared and not is_nothing(edit.value[name]) for name in sent)
    state.doubts += len(alike(unknown - meant.keys(), declared))
    for name in sorted(unknown - meant.keys()):
        rule = None
        # Below the top level an unknown key may belong to a level that is missing, so nothing is left out there.
        may_stay = path or not stays or is_wrapper(value, name, declared)
        if name == "" and not path and value[name] in ("", None, {}, []):
            rule = "empty-key"
        elif may_stay or may_mean(state, name, declared, value, schemas):
            continue
        elif value[name] is None and name not in state.reserved:
            rule = "unknown-null"
        elif state.policy.on_unknown == "drop" and not _holds_any(value[name], declared):
            rule = "unknown-key"
        if rule is not None:
            edit.leave_out((name,))
            yield Repair(format_pointer((*path, name)), rule, value[name], None)


def misspelt(state: Coercion, value: dict[str, Any], violations: list[Violation], location: Path) -> set[str]:
    """Return the undeclared keys whose values are refused and that are a declared one in other letters.

    ``maxItems`` in a map of strings, where ``max_items`` is declared.
    """
    names = {str(each.path[0]) for each in violations if each.path}
    if not names:
        return names
    schemas = [schema for _, schema in in_place(state.references, [location])]
    declared = declared_properties(state.references, [location])
    return {name for name in names if name not in declared and may_mean(state, name, declared, value, schemas)}


def may_mean(
    state: Coercion,
    name: str,
    declared: Mapping[str, Any],
    present: Mapping[str, Any],
    schemas: Iterable[dict[str, Any]],
) -> bool:
    """Whether the undeclared *name* is a declared one in other letters, or close to one that is absent.

    A pattern of *schemas* declares names as well: ``X_rate`` in other letters is one of ``^x_``.
    """
    patterns = {pattern for schema in schemas for pattern in properties_of(schema, "patternProperties")}
    named = {*declared, *(each for pattern in patterns for each in literal_names(pattern))}
    if name in named:
        return False
    absent = [each for each in named if each not in present]
    # A full comparison of two names takes as long as four validator calls, one of their letters a twentieth of one.
    state.spend(4 * min(len(absent), MAX_FULL_OF_KEY) + len(absent) // 20 + len(patterns))
    if folded(name) in map(folded, named) or is_close_to_any(name, absent):
        return True
    matches = state.schema.name_matches
    return any(
        not matches(pattern, name) and any(matches(pattern, each) for each in spellings(name)) for pattern in patterns
    )


def filled_defaults(state: Coercion, edit: Edit, here: list[Violation], location: Path, path: Path) -> Iterator[Repair]:
    """Fill in the default of each required property that is absent, unless another key may be meant for it."""
    value = edit.value
    absent = sorted(_missing(here) - value.keys())
    locations = [location, *(violation.location for violation in here)]
    declared = declared_properties(state.references, locations)
    if not absent or any(is_wrapper(value, name, declared) for name in value):
        return  # what is wrapped may hold what is absent
    others = [key for key in value if key not in declared]
    # `days` of version 1 must not be answered with the default of `hours` in version 2.
    if not path and any(key in state.reserved or any(is_close(key, name) for name in state.reserved) for key in others):
        return  # the caller may mean a parameter of an older version
    places = property_locations(state.references, locations, choices=False)
    wrapping = [key for key in value if may_wrap(key)]
    for name in absent:
        default = default_at(state.references, places.get(name, ()))
        if default is ABSENT:
            continue
        state.spend(1 + len(others))  # each comparison of two names costs about as much as a validator call
        # `{"options": {"limit": 5}}`: the 5 that the model sent must not be replaced by the default.
        if any(_holds(value[key], name) for key in (*others, *wrapping)):
            continue  # the default's parameter may be in there
        if not any(is_close(key, name) for key in others):
            edit.put((name,), default)
            state.defaulted |= set() if path else {name}
            yield Repair(format_pointer((*path, name)), "default", None, default)


def _holds(value: Any, name: str) -> bool:
    """Whether *value*, under an undeclared key, has a member *name*: then it may wrap the arguments."""
    inside = wrapped(value) if isinstance(value, str | dict) else None
    return isinstance(inside, dict) and name in inside


def _holds_any(value: Any, declared: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether *value*, under an undeclared key, holds a member that is declared, which dropping it would lose."""
    inside = wrapped(value)
    if isinstance(inside, dict) and alike(inside, declared):
        return True
    below = inside.values() if isinstance(inside, dict) else inside if isinstance(inside, list) else ()
    return depth < MAX_DEPTH and any(_holds_any(each, declared, depth + 1) for each in below)


def _missing(here: list[Violation]) -> set[str]:
    return {name for violation in here if violation.keyword in _NEEDED for name in violation.names}
