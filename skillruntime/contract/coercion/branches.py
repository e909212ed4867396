"""The branches of a union: which of them a value is meant for, and what it becomes in each that it may be of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skillruntime.contract.coercion.keys import is_schema_echo, may_wrap, wrapped
from skillruntime.contract.coercion.nothing import is_named, may_be_null_text
from skillruntime.contract.coercion.repair import Repaired
from skillruntime.contract.coercion.scalars import Options, bare, fold_name, is_nothing, number_in, unquoted
from skillruntime.contract.coercion.state import Coercion, is_container_text
from skillruntime.contract.coercion.subschemas import (
    EACH_ALONE,
    declared_properties,
    discriminators,
    in_place,
    item_locations,
)
from skillruntime.contract.plain_json import type_name
from skillruntime.contract.pointer import Path
from skillruntime.contract.references import References, properties_of
from skillruntime.contract.schema import Violation

__all__ = ["branches", "claims"]

_QUOTES = " \t\r\n\"'`"
# The items of an array that say which branch it is of; one is enough in nearly every call.
MAX_ITEMS = 8


def branches(state: Coercion, value: Any, union: Violation, path: Path, depth: int) -> Iterator[Repaired]:
    """Yield *value* as each branch of *union* can have it."""
    assert union.location is not None
    before = state.around.get(path)
    if isinstance(value, dict):
        state.around[path] = {**(before or {}), **declared_properties(state.references, [union.location])}
        if any(map(_may_hold_members, union.expected)):
            state.around[path].setdefault("value", {})  # {"value": 5} may be an object of another branch
    results: list[Repaired] = []
    takers: list[Path] = []
    is_doubtful = False
    branch_of = (*union.location, union.keyword)
    count = len(union.expected)
    every = state.references.once(("branches", branch_of), lambda: [(*branch_of, index) for index in range(count)])
    possible = _possible_branches(state, every, value)
    is_word = isinstance(value, str) and (
        any(is_named(state.references, value, branch) for branch in every)
        or may_be_null_text(value, (schema for _, schema in in_place(state.references, every)))
    )
    for branch in possible:
        doubts = state.doubts
        found = state.coerce(value, branch, path, depth + 1)
        # `none` is left for null only where no other branch has it for a member.
        results += [each for each in found if each.repairs and not (each.value is None and is_word)]
        takers += [branch] if found else []
        is_doubtful = is_doubtful or (not found and state.doubts > doubts)
    kept = [each for each in results if not any(repair.rule == "schema-echo" for repair in each.repairs)]
    if kept and isinstance(value, dict) and is_schema_echo(value, {}):
        # {"type": "integer", "value": 5} may be a map of strings, "5" for 5, and may be the 5 of another branch
        is_doubtful = is_doubtful or any(state.coerce(value["value"], each, path, depth + 1) for each in possible)
    is_doubtful = is_doubtful or (
        bool(results) and _is_of_another(state, [value, *(each.value for each in results)], every, takers)
    )
    if isinstance(value, str) and _may_be_quoted(state, value, results, every):
        is_doubtful = True
        state.doubts += 1
    if isinstance(value, str) and any(isinstance(each.value, list) for each in results):
        # `2022_07_11` for a date or a list of texts is a date in the wrong form.
        others = [branch for branch in every if branch not in takers]
        formed = (schema.keys() & {"format", "pattern"} for _, schema in in_place(state.references, others))
        is_doubtful = is_doubtful or any(formed)
    if not is_doubtful:  # a branch whose key could mean several is not ruled out, so another is not taken for it
        yield from results
    # The names around a union are known to its branches alone; a sibling must not see them.
    if before is None:
        state.around.pop(path, None)
    else:
        state.around[path] = before


def _may_be_quoted(state: Coercion, text: str, results: list[Repaired], every: list[Path]) -> bool:
    """Whether *results* convert what is in the quotes of *text*, though a branch takes that as it is.

    ``'"1,234"'`` for an integer or a short text may be the text in quotes too many.
    """
    inside = unquoted(text)
    return (
        inside is not None
        and any(each.repairs[0].rule == "quoted-text" and each.value != inside for each in results)
        and any(state.fits(inside, branch) for branch in every)
    )


def _is_of_another(state: Coercion, readings: list[Any], every: list[Path], takers: list[Path]) -> bool:
    """Whether one of *readings*, the value and its results, is meant for a branch that is not one of the *takers*.

    A wrap or a conversion that only makes it fit an open branch would hide the error.
    """
    insides = [each for each in map(wrapped, readings) if isinstance(each, dict | list)]
    for each in insides:
        if not any(claims(state.references, each, branch) for branch in takers):
            state.spend(len(every) // 8)
            if any(claims(state.references, each, branch) for branch in every if branch not in takers):
                return True
    return False


def claims(references: References, value: Any, location: Path) -> bool:
    """Whether *value* is meant for the subschema at *location*, whether or not it fits.

    An object is, if it has a constant of it, all keys that it requires, or only keys that it declares; an array, if one
    of its items is meant for its items.

    >>> shape = {"properties": {"kind": {"const": "rect"}, "n": {}}, "required": ["kind", "n"]}
    >>> [claims(References(shape), value, ()) for value in ({"kind": "Rect", "x": 1}, {"n": 1}, {"x": 1})]
    [True, True, False]
    """
    return any(_is_claimed(value, each, references) for each in _profiles(references, location))


@dataclass(frozen=True, slots=True)
class _Profile:
    """What one alternative of a subschema says about the values that are meant for it."""

    required: frozenset[str]
    declared: frozenset[str]
    constants: dict[str, Options]
    items: list[Path]
    types: frozenset[str]
    lengths: frozenset[int]
    """How many items the arrays have that its constants are."""


def _profiles(references: References, location: Path) -> list[_Profile]:
    def made() -> list[_Profile]:
        places = [place for place, _ in in_place(references, [location])]
        return [
            _profile(references, place)
            for place in places
            if place == location or (len(place) > 1 and place[-2] in ("anyOf", "oneOf"))
        ]

    return references.once(("profiles", location), made)


def _profile(references: References, place: Path) -> _Profile:
    required, types, items, lengths = set[str](), set[str](), list[Path](), set[int]()
    for where, schema in in_place(references, [place], choices=False):
        names, kinds = schema.get("required"), schema.get("type")
        required |= {fold_name(each) for each in names if isinstance(each, str)} if isinstance(names, list) else set()
        types |= set(kinds if isinstance(kinds, list) else [kinds] if isinstance(kinds, str) else ())
        types |= {type_name(each) for each in schema["enum"]} if isinstance(schema.get("enum"), list) else set()
        items += item_locations(references, where)
        members = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
        lengths |= {len(each) for each in members if isinstance(each, list)}
    declared = frozenset(map(fold_name, declared_properties(references, [place], choices=False)))
    constants = {name: Options(allowed) for name, allowed in discriminators(references, place).items()}
    places = list(dict.fromkeys(items))
    return _Profile(frozenset(required), declared, constants, places, frozenset(types), frozenset(lengths))


def _is_claimed(value: Any, profile: _Profile, references: References) -> bool:
    match value:
        case dict():
            keys = set(map(fold_name, value))
            return (
                any(
                    isinstance(value.get(name), str) and each.meant_by(value[name])
                    for name, each in profile.constants.items()
                )
                or (bool(profile.required) and profile.required <= keys)
                or (bool(keys) and keys <= profile.declared)
            )
        case list():
            # `["x"]` for an array whose items are the constant ["x"] is one of its items.
            return any(len(value) in each.lengths for each in (profile, *_item_profiles(references, profile))) or any(
                claims(references, item, place) for item in value[:MAX_ITEMS] for place in profile.items
            )
    # A scalar is asked about as the item of an array: what it is not, the array around it need not be either.
    kind = type_name(value)
    is_number = kind == "number" or (isinstance(value, str) and number_in(value, whole=False) is not None)
    return kind in profile.types or (is_number and not profile.types.isdisjoint(("integer", "number")))


def _item_profiles(references: References, profile: _Profile) -> Iterator[_Profile]:
    return (each for place in profile.items for each in _profiles(references, place))


def _possible_branches(state: Coercion, every: list[Path], value: Any) -> list[Path]:
    """Return those of *every* branch that *value* may be of: not those where a member of it has another constant.

    A union of fifty tagged objects is decided by the tag, not by fifty attempts.
    """
    if isinstance(value, list) or not every:
        return every
    references, union = state.references, every[0][:-1]
    if not isinstance(value, dict):
        # `anyOf` of a type and null is how an optional parameter is written; most values are not null in any reading.
        if is_nothing(value.strip(_QUOTES) if isinstance(value, str) else value, more_words=True):
            return every
        return references.once(
            ("not null", union),
            lambda: [each for each in every if references.schema_at(each) != {"type": "null"}],
        )
    options, tag, by_text = references.once(("constants", union), lambda: _constants(references, every))
    meant: Sequence[int] = range(len(every))
    if isinstance(value.get(tag), str):
        meant = by_text.get(bare(value[tag]), ())
    elif not any(map(_may_hold_keys, value.items())):
        meant = _sharing_keys(references, every, value)
    return [
        every[index]
        for index in meant
        if all(each.meant_by(value[name]) for name, each in options[index].items() if isinstance(value.get(name), str))
    ]


def _constants(
    references: References, every: list[Path]
) -> tuple[list[dict[str, Options]], str | None, dict[str, list[int]]]:
    """Return the constants of *every* branch, the member that all have one of, and the branches by its text."""
    constants = [discriminators(references, branch) for branch in every]
    tag = next((name for name in constants[0] if all(name in each for each in constants)), None)
    by_text: dict[str, list[int]] = {}
    for index, each in enumerate(constants):
        for text in dict.fromkeys(map(bare, each[tag] if tag is not None else ())):
            by_text.setdefault(text, []).append(index)
    return [{name: Options(allowed) for name, allowed in each.items()} for each in constants], tag, by_text


def _sharing_keys(references: References, every: list[Path], value: dict[str, Any]) -> Sequence[int]:
    """Return the indexes of the branches of *every* that *value* may be of by its keys, whose values hold no others.

    A closed object that requires a parameter is out of reach of an object that has none of its keys in any letters; a
    union of a hundred such objects without a tag is decided by the keys, not by a hundred attempts.
    """

    def made() -> tuple[list[int], dict[str, list[int]]]:
        unbound, by_key = list[int](), dict[str, list[int]]()
        for index, branch in enumerate(every):
            names = _keys_of_closed(references, branch)
            unbound += [index] if names is None else []
            for name in names or ():
                by_key.setdefault(name, []).append(index)
        return unbound, by_key

    unbound, by_key = references.once(("keys", every[0][:-1]), made)
    return sorted({*unbound, *(index for key in value for index in by_key.get(fold_name(key), ()))})


def _keys_of_closed(references: References, branch: Path) -> frozenset[str] | None:
    """Return the folded keys of the closed object at *branch* that requires one without a default; else nothing."""
    schema = references.schema_at(branch)
    if not isinstance(schema, dict) or schema.get("type") != "object" or schema.keys() - EACH_ALONE:
        return None
    properties, required = properties_of(schema), schema.get("required")
    if schema.get("additionalProperties") is not False or not isinstance(required, list) or not required:
        return None
    defaults = [
        isinstance(each, dict) and not each.keys() & {"default", "$ref", "allOf"} for each in properties.values()
    ]
    return frozenset(map(fold_name, properties)) if all(defaults) else None


def _may_hold_keys(member: tuple[str, Any]) -> bool:
    """Whether *member* of an object may wrap another object: in itself, in a text, or under the name of a wrapper."""
    name, value = member
    return isinstance(value, dict | list) or (isinstance(value, str) and is_container_text(value)) or may_wrap(name)


def _may_hold_members(branch: Any) -> bool:
    """Whether *branch* of a union may take objects, or arrays of them; a reference may."""
    types = branch.get("type") if isinstance(branch, dict) else None
    if types is None:
        return not (isinstance(branch, dict) and ("enum" in branch or "const" in branch))
    named = types if isinstance(types, list) else [types]
    return "object" in named or ("array" in named and _may_hold_members(branch.get("items", {})))
