"""The members of an object or array under repair: each is coerced by the subschema that refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillruntime.contract.coercion.array_levels import array_chain
from skillruntime.contract.coercion.edit import Edit
from skillruntime.contract.coercion.keys import is_schema_echo, is_wrapper, may_wrap, renames, wrapped
from skillruntime.contract.coercion.nothing import is_named, is_opposite, may_be_null_text
from skillruntime.contract.coercion.object_keys import (
    MEMBER_KEYWORDS,
    filled_defaults,
    may_mean,
    misspelt,
    repaired_keys,
)
from skillruntime.contract.coercion.repair import Repair, Repaired
from skillruntime.contract.coercion.scalars import is_nothing
from skillruntime.contract.coercion.state import Coercion
from skillruntime.contract.coercion.subschemas import declared_properties, places_of, subschemas
from skillruntime.contract.coercion.whole_value import whole
from skillruntime.contract.pointer import Path, format_pointer, value_at
from skillruntime.contract.references import properties_of
from skillruntime.contract.schema import Violation

__all__ = ["members"]

MAX_BESIDE = 8
# The value of a member that is left out.
LEFT_OUT = object()


def members(
    state: Coercion, value: Any, violations: list[Violation], location: Path, path: Path, depth: int
) -> list[Repaired]:
    """Return *value* with what can be repaired inside it: one result, or several if a member is ambiguous.

    The repairs that are certain come first, then ambiguous members, and defaults at the very end: a key that is
    renamed or left out may make a default needless.
    """
    if not isinstance(value, dict | list):
        return []
    # A copy, made where something changes: the caller's value is never touched.
    edit = Edit(value)
    repairs: list[Repair] = []
    refusals: dict[tuple[Path, Path], list[Violation]] = {}
    for violation in violations:
        if violation.path and violation.location is not None:
            refusals.setdefault((violation.path, violation.location), []).append(violation)
    here = [violation for violation in violations if not violation.path]
    kept: set[str] = set()
    if isinstance(value, dict):
        doubtful = misspelt(state, value, violations, location)
        kept = {name for name in doubtful if _fits_as_it_is_called(state, value, name, refusals, path, depth)}
        is_pair = len(value) == 2 and "value" in value
        if is_pair and _is_unclear_echo(value, declared_properties(state.references, [location])):
            return []
        repairs += repaired_keys(state, edit, here, location, path, doubtful - kept)
    ambiguous: list[tuple[Path, list[Repaired]]] = []
    is_impossible = False
    chains: set[Path] = set()
    maps: dict[Path, bool] = {}
    for (where, refuser), same in refusals.items():
        if where[0] in kept:
            is_impossible = True
            state.doubts += 1
            continue
        # The array was coerced as one already, with all that is wrong in it.
        if any(where[: len(chain)] == chain for chain in chains):
            continue
        chain = array_chain(state, location, where)
        if chain is not None:  # the outermost array decides where brackets are missing
            where, refuser = chain
            same = []
            chains.add(where)
        else:
            renamed = _renamed(state, edit, where, refuser, path, depth)
            if renamed is not None:
                repairs += renamed
                is_impossible = is_impossible or not renamed
                state.doubts += not renamed
                continue
        found = _member(state, edit, where, refuser, same, path, depth)
        if found and _may_be_wrapped(state, value, where, refuser, location, path, depth, maps):
            is_impossible = True
            state.doubts += 1
            continue
        if len(found) == 1:
            _put(edit, where, found[0])
            repairs += found[0].repairs
        elif found:
            ambiguous.append((where, found))
        else:
            is_impossible = True
    # After all other repairs: a renamed key may be the one that is missing.
    if not repairs and not ambiguous and isinstance(value, dict):
        repairs += filled_defaults(state, edit, here, location, path)
    if repairs:
        return [Repaired(edit.value, tuple(repairs))]
    if ambiguous and not is_impossible:
        where, found = ambiguous[0]
        return [_with(value, where, option) for option in found]
    return []


def _fits_as_it_is_called(
    state: Coercion,
    value: dict[str, Any],
    name: str,
    refusals: dict[tuple[Path, Path], list[Violation]],
    path: Path,
    depth: int,
) -> bool:
    """Whether the value under a misspelt key can be repaired under that key too: then either may be meant."""
    refusers = [refuser for where, refuser in refusals if where == (name,)]
    return not refusers or any(state.coerce(value[name], each, (*path, name), depth + 1) for each in refusers)


def _renamed(state: Coercion, edit: Edit, where: Path, refuser: Path, path: Path, depth: int) -> list[Repair] | None:
    """Rename a misspelt key on the way to *where*, inside a member; ``None`` if there is none.

    Where the key can be an extra one as well, or could mean several, nothing is renamed.
    """
    if len(where) < 2 or MEMBER_KEYWORDS.isdisjoint(refuser):
        return None
    for length in range(1, len(where)):
        try:
            parent = value_at(edit.value, where[:length])
        except LookupError:
            return []  # left out or renamed by an earlier repair
        if not isinstance(parent, dict):
            continue
        schemas = subschemas(state.references, (*path, *where[:length]))
        declared: dict[str, Any] = {}
        for schema in schemas:
            declared |= properties_of(schema)
        name = str(where[length])
        if name in declared or name not in parent or not may_mean(state, name, declared, parent, schemas):
            continue
        meant = renames([key for key in parent if key not in declared], declared, parent)
        is_extra = length == len(where) - 1 and state.coerce(parent[name], refuser, (*path, *where), depth + 1)
        if name not in meant or is_extra:
            return []
        edit.rename(name, meant[name], where[:length])
        return [Repair(format_pointer((*path, *where[:length], name)), "key-name", name, meant[name])]
    return None


def _may_be_wrapped(
    state: Coercion,
    value: Any,
    where: Path,
    refuser: Path,
    location: Path,
    path: Path,
    depth: int,
    known: dict[Path, bool],
) -> bool:
    """Whether an object on the way to *where* is a map by its schema, and may be a wrapper or an echo of that map.

    ``{"input": {"data": {"x": 1}}}`` may be the map ``{"data": {"x": 1}}`` in a wrapper. *known* has the
    answers for the members of *value* so far.
    """
    if MEMBER_KEYWORDS.isdisjoint(refuser):
        return False
    for length in range(len(where)):
        key = where[: length + 1]
        if key not in known:
            known[key] = _is_in_wrapper(state, value_at(value, key[:-1]), key, location, path, depth)
        if known[key]:
            return True
    return False


def _is_in_wrapper(state: Coercion, parent: Any, where: Path, location: Path, path: Path, depth: int) -> bool:
    """Whether *parent*, which has the undeclared member at *where*, may be a wrapper or an echo of what is meant."""
    # Beside a wrapper are a few marks of a call at most, so that an object with many keys is not one.
    if not isinstance(parent, dict) or len(parent) > MAX_BESIDE:
        return False
    if not (any(map(may_wrap, parent)) or is_schema_echo(parent, {})):
        return False
    places = places_of(state.references, location, where[:-1])
    declared = declared_properties(state.references, places)
    if where[-1] in declared:
        return False
    if "type" in parent and "type" not in declared and is_schema_echo(parent, {}):
        return True
    for name in parent:
        inside = wrapped(parent[name])
        # A blank key and `type` wrap too, where they are alone.
        may_be_wrapper = is_wrapper(parent, name, declared) or (len(parent) == 1 and may_wrap(name))
        if isinstance(inside, dict) and name not in declared and may_be_wrapper:
            inner = (*path, *where[:-1])
            if any(state.coerce(inside, place, inner, depth + 1) for place in places):
                return True
    return False


def _member(
    state: Coercion, edit: Edit, where: Path, location: Path, same: list[Violation], path: Path, depth: int
) -> list[Repaired]:
    """Coerce what is at *where*, which the subschema at *location* refuses by the violations *same*."""
    try:
        part = value_at(edit.value, where)
    except LookupError:
        return [Repaired(LEFT_OUT)]  # left out or renamed by an earlier repair
    inside = (*path, *where)
    is_union = isinstance(part, dict) and all(each.keyword in ("anyOf", "oneOf") for each in same)
    if same and part is same[0].value and (is_union or not isinstance(part, dict | list)):
        results = whole(state, part, same, location, inside, depth + 1)  # its violations are known already
    else:
        results = state.coerce(part, location, inside, depth + 1)
    if results:
        return results
    is_null = is_nothing(part, more_words=state.policy.more_words)
    if is_null and (is_named(state.references, part, location) or is_opposite(state.references, part, inside)):
        return []
    if is_null and may_be_null_text(part, subschemas(state.references, inside)):
        return []
    if is_null and _is_property(state, inside) and (part is None or not state.fits(None, location)):
        return [Repaired(LEFT_OUT, (Repair(format_pointer(inside), "null-optional", part, None),))]
    return []


def _is_property(state: Coercion, path: Path) -> bool:
    """Whether *path* leads to a declared property: not to an item, or to a key that is itself data."""
    return any(path[-1] in properties_of(schema) for schema in subschemas(state.references, path[:-1]))


def _is_unclear_echo(value: dict[str, Any], declared: Mapping[str, Any]) -> bool:
    """Whether *value* echoes a schema around a value, or is an object with a member of that name."""
    return "value" in declared and "type" not in declared and is_schema_echo(value, {})


def _put(edit: Edit, where: Path, result: Repaired) -> None:
    """Write *result* to *where*; a member that was left out before has no repairs."""
    if result.value is not LEFT_OUT:
        if result.repairs:
            edit.put(where, result.value)
    elif result.repairs:
        edit.leave_out(where)


def _with(value: Any, where: Path, option: Repaired) -> Repaired:
    edit = Edit(value)
    _put(edit, where, option)
    return Repaired(edit.value, option.repairs)
