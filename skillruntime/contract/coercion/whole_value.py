"""A value as a whole: converted, wrapped, taken out of what is around it, or coerced by one branch of a union."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from skillruntime.contract.arguments import parse_container
from skillruntime.contract.coercion.keys import (
    fold_name,
    is_blank,
    is_call_wrapper,
    is_close,
    is_entry,
    is_wrapper,
    may_wrap,
    wrapped,
)
from skillruntime.contract.coercion.scalars import (
    Options,
    converted,
    fold_value,
    is_nothing,
    listed,
    pieces,
    unquoted,
)
from skillruntime.contract.coercion.state import Coercion, Repair, Repaired, is_container_text, plain, types_of
from skillruntime.contract.coercion.subschemas import (
    ABSENT,
    declared_properties,
    default_at,
    discriminators,
    in_place,
    item_locations,
    places_in,
    property_locations,
)
from skillruntime.contract.plain_json import type_name
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.contract.references import References, properties_of
from skillruntime.contract.schema import Violation

__all__ = ["may_be_said", "whole"]

_QUOTES = " \t\r\n\\\"'`\u2018\u2019\u201c\u201d\u300c\u300d"
_SCALARS = frozenset({"string", "integer", "number", "boolean"})
_ANY = _SCALARS | {"array", "object", "null"}
_UNIONS = ("anyOf", "oneOf")
# The rules that move a value into a container, or out of one.
_MOVING = frozenset({"scalar-for-array", "array-of-one", "array-object", "comma-list", "wrapper-object"})


def whole(state: Coercion, value: Any, here: list[Violation], location: Path, path: Path, depth: int) -> list[Repaired]:
    """Return what *value* as a whole can become, refused by the violations *here* of the subschema at *location*."""
    results: list[Repaired] = []
    for violation in here:
        if violation.keyword in _UNIONS and isinstance(violation.expected, list):
            for each in _of_branches(state, value, violation, path, depth):
                found = state.coerce(each.value, location, path, depth + 1)
                results += [each.then(after) for after in found]
    for rule, after, before in (*_converted(state, value, here), *_reshaped(state, value, here, location, path, depth)):
        repair = Repair(format_pointer(path), rule, plain(before), plain(after))
        found = state.coerce(after, location, path, depth + 1)
        # A list of numbers in a string may be a text about them, where strings are wanted.
        if rule == "container-text":
            found = [each for each in found if not _makes_texts(after, each)]
        results += [Repaired(after, (repair,)).then(each) for each in found]
    kept = state.decided(results, path)
    if len(kept) == 1 and len(kinds := _kinds_in(here)) > 1 and _is_moved(value, kept[0], kinds, path):
        state.doubts += 1
        return []
    return kept


def _converted(state: Coercion, value: Any, here: list[Violation]) -> Iterator[tuple[str, Any, Any]]:
    """Yield *value* read as another type or as a member of an enum, with the rule and what was before."""
    for violation in here:
        if violation.keyword in ("enum", "const"):
            for after in _options(state, violation).meant_by(value):
                yield "enum-value", after, value
        elif violation.keyword == "type":
            for wanted in types_of(violation):
                for rule, after in converted(wanted, value, more_words=state.policy.more_words):
                    # `none` where the items of the array may be that word says something.
                    if after is not None or not may_be_said(state.references, value, [violation.location]):
                        yield rule, after, value
    if not isinstance(value, str):
        return
    kinds = _kinds_in(here)
    containers = kinds & {"array", "object"}
    for violation in here:
        if violation.keyword in _UNIONS and isinstance(violation.expected, list):
            taken = _kinds_taken_by(state.references, _branches(violation))
            containers |= set() if "string" in taken else taken & {"array", "object"}
    parsed = parse_container(value) if containers and is_container_text(value.strip(_QUOTES)) else None
    if parsed is not None and type_name(parsed.value) in containers:
        yield "container-text", parsed.value, value
    inside = unquoted(value)
    if inside is not None and (kinds & _SCALARS or any(each.keyword in ("format", "pattern") for each in here)):
        yield "quoted-text", inside, value


def _kinds_in(here: list[Violation]) -> set[str]:
    """Return the types that the violations *here* ask for; of a choice those of its members."""
    kinds: set[str] = set()
    for violation in here:
        if violation.keyword == "type":
            kinds |= set(types_of(violation))
        elif violation.keyword == "enum":
            kinds |= {type_name(each) for each in violation.expected}
        elif violation.keyword == "const":
            kinds.add(type_name(violation.expected))
    return kinds


def _options(state: Coercion, violation: Violation) -> Options:
    """Return the members of the enum that *violation* is of, or its one constant, ready to be asked."""
    allowed = violation.expected if violation.keyword == "enum" else [violation.expected]
    if violation.keyword == "const":
        return Options(allowed)
    return state.references.once(("options", violation.location), lambda: Options(allowed))


def _reshaped(
    state: Coercion, value: Any, here: list[Violation], location: Path, path: Path, depth: int
) -> Iterator[tuple[str, Any, Any]]:
    """Yield *value* in a container or out of one, with the rule and *value* as the record shows it."""
    kinds = _kinds_in(here)
    # PHP and some chat templates encode an empty map as `[]` (agno-agi/agno#6303).
    if value == [] and not path and "object" in kinds:
        yield "empty-arguments", {}, value
    elif isinstance(value, list) and len(value) == 1 and kinds - {"array"}:
        yield from _taken_out(state, value, here, location, path, kinds - {"array"})
    elif isinstance(value, dict):
        yield from _unwrapped(state, value, here, location, path, kinds)
    for each in here:
        if each.keyword == "type" and "array" in types_of(each) and not isinstance(value, list):
            yield from _as_array(state, value, each, path, depth)


def _taken_out(
    state: Coercion, value: list[Any], here: list[Violation], location: Path, path: Path, kinds: set[str]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the one item of *value*: not nothing, not the entry of a map, not below arrays of arrays."""
    [item] = value
    if isinstance(path[-1] if path else "", int) and (isinstance(path[-2], int) or not state.fits(item, location)):
        state.doubts += 1  # which level of brackets is too many is unknown
        return
    if is_nothing(item) and "string" not in kinds:
        return
    declared = declared_properties(state.references, [location, *(each.location for each in here)])
    if not is_entry(item) or not item.keys().isdisjoint(declared):
        yield "array-of-one", item, value


def _as_array(
    state: Coercion, value: Any, violation: Violation, path: Path, depth: int
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the array that *value* may mean: its one item, the items it lists, or an object in place of an array."""
    if isinstance(path[-1] if path else "", int):
        state.doubts += 1  # which level of brackets is missing is unknown, and no recorded call lacked two
        return
    places = item_locations(state.references, violation.location)
    items = [schema for _, schema in in_place(state.references, places)]
    if isinstance(value, str) and not any(state.fits(value, place) for place in places):
        several = listed(value, items)
        if several is not None:
            yield "comma-list", several, value
    if isinstance(value, dict):
        inside = _items_in(value)
        if inside is not None and not state.fits([value], violation.location):
            yield "array-object", inside, value
    if _is_item(state, value, violation, places, items, path, depth):
        yield "scalar-for-array", [value], value


def _items_in(value: dict[str, Any]) -> list[Any] | None:
    """Return the items that the object *value* has in place of an array, as XML is turned into JSON.

    >>> _items_in({"item": "a"}), _items_in({"items": ["a", "b"]}), _items_in({"0": "a", "1": "b"})
    (['a'], ['a', 'b'], ['a', 'b'])
    """
    if len(value) == 1:
        [(name, inside)] = value.items()
        if isinstance(inside, list) and name in ("item", "items"):
            return inside
        return [inside] if name == "item" and not is_nothing(inside) else None
    if len(value) > 1 and list(value) == [str(index) for index in range(len(value))]:
        return list(value.values())
    return None


def _is_item(
    state: Coercion,
    value: Any,
    violation: Violation,
    places: list[Path],
    items: list[dict[str, Any]],
    path: Path,
    depth: int,
) -> bool:
    """Whether *value* is one item and nothing else: not nothing, not several, not the whole array in a string."""
    if places_in(violation.schema) or is_nothing(value, more_words=True):
        return False
    if isinstance(value, dict):
        # A map of arrays around the wanted array says more than the array does.
        arrays = [each for each in value.values() if isinstance(each, list)]
        is_array = any(state.fits(each, violation.location) for each in arrays)
        return bool(value) and not is_array and _is_object_of(value, items)
    if not isinstance(value, str):
        return True
    bare = value.strip(_QUOTES)
    # An empty string or an array in quotes of its own; the sign of a list in Markdown.
    if not bare or is_container_text(value) or is_container_text(bare) or bare[:2] in ("- ", "* ", "\u2022 "):
        return False
    if unquoted(value) is not None and any(state.fits(value, place) for place in places):
        return False  # the quotes may belong to it
    parts = pieces(value)
    if len(parts) == 1:
        return True
    # Text with a comma is one item only where its parts could not be items.
    return bool(violation.schema.get("items")) and any(
        not any(state.coerce(part, place, path, depth + 1) for place in places) for part in parts
    )


def _is_object_of(value: dict[str, Any], items: Iterable[dict[str, Any]]) -> bool:
    """Whether *value* is one of the objects that *items* describe, and not a map of them."""
    if all(map(str.isdecimal, value)):
        return False  # {"0": ..., "1": ...} is an array in another form
    declared = {name for schema in items for name in properties_of(schema)}
    if declared:
        return any(name in declared or any(is_close(name, each) for each in declared) for name in value)
    types = [schema.get("type") for schema in items if "type" in schema]
    takes_objects = any(each == "object" or (isinstance(each, list) and "object" in each) for each in types)
    return takes_objects and not all(isinstance(member, dict) for member in value.values())


def _unwrapped(
    state: Coercion, value: dict[str, Any], here: list[Violation], location: Path, path: Path, kinds: set[str]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield what the object *value* holds under a key that wraps it."""
    has_one_key = not path and len(value) == 1  # which may be the schema's title
    if not has_one_key and not any(map(may_wrap, value)):
        return
    locations = [location, *(each.location for each in here)]
    schemas = [schema for _, schema in in_place(state.references, locations, choices=False)]
    declared = dict(declared_properties(state.references, locations))
    if "array" in kinds:  # {"input": []} for an array of objects that have an "input" is one of them
        places = [place for each in locations for place in item_locations(state.references, each)]
        declared |= declared_properties(state.references, places)
    for name in value:
        content = _content(state, value, name, declared, schemas, location, path)
        if isinstance(content, dict):
            yield "wrapper-object", content, {**value, name: "\u2026"}


def _content(
    state: Coercion,
    value: dict[str, Any],
    name: str,
    declared: dict[str, Any],
    schemas: list[dict[str, Any]],
    location: Path,
    path: Path,
) -> Any:
    """Return what is under the key *name* of *value*, if that is all that *value* says."""
    content = wrapped(value[name])
    if is_wrapper(value, name, declared):
        # `{"arguments": ""}`: what models send for a tool without parameters (qwersyk/Newelle#429).
        return {} if not path and content in ("", None) and is_call_wrapper(name) else content
    if path or not isinstance(content, dict) or not content:
        return None
    beside = {key: said for key, said in value.items() if key != name}
    if name == "arguments" and name not in declared and not beside.keys() & content.keys() & declared.keys():
        # Parameters beside the arguments (NousResearch/hermes-agent#100979); what may name the tool is not one.
        besides = {key: said for key, said in beside.items() if key in declared and key not in ("name", "type", "id")}
        rest = {key: said for key, said in beside.items() if key not in besides}
        if besides and is_wrapper({**rest, name: content}, name, declared):
            return {**content, **besides}
    # Under a blank key, `type` or the schema's title models put all arguments by mistake: each key must be declared,
    # and none that is needed be absent. A function whose only parameter is the model `trip` has its title.
    titles = ("type", *(each.get("title") for each in schemas))
    if beside or not (is_blank(name) or name in titles) or not content.keys() <= declared.keys():
        return None
    if name.strip() and fold_name(name) in map(fold_name, declared):
        return None
    needed = {each for schema in schemas for each in schema.get("required", ()) if each not in content}
    places = property_locations(state.references, [location], choices=False) if needed else {}
    if any(default_at(state.references, places.get(each, ())) is ABSENT for each in needed):
        return None
    return content


def _of_branches(state: Coercion, value: Any, union: Violation, path: Path, depth: int) -> list[Repaired]:
    """Return *value* as each branch of *union* can have it; nothing where it would be moved out of the one it is for.

    A value is moved into a container, or out of one, only where no other branch takes values of its type.
    """
    every = _branches(union)
    possible = _possible(state.references, every, value)
    results: list[Repaired] = []
    takers: list[Path] = []
    pointer = format_pointer(path)
    doubts = state.doubts
    for branch in possible:
        before = state.doubts
        found = [each for each in state.coerce(value, branch, path, depth + 1) if each.repairs]
        if not found and state.doubts > before:
            return []  # a branch whose part could mean several is not ruled out, so another is not taken for it
        # A container in a text is read once, for the union, so that a tag in it decides.
        found = [each for each in found if (each.repairs[0].path, each.repairs[0].rule) != (pointer, "container-text")]
        results += found
        takers += [branch] * len(found)
    state.doubts = doubts
    kept = state.decided(results, path)
    if len(kept) == 1 and kept[0].value is None and may_be_said(state.references, value, every):
        return []
    if len(kept) == 1:
        taker = next(branch for each, branch in zip(results, takers, strict=True) if each is kept[0])
        others = [branch for branch in every if branch != taker]
        first = kept[0].repairs[0]
        # `'"1,234"'` for an integer or a short text may be the text in quotes too many.
        is_quoted = first.rule == "quoted-text" and kept[0].value != first.after
        if (is_quoted and any(state.fits(first.after, each) for each in others)) or (
            first.rule in _MOVING and _is_moved(value, kept[0], _kinds_taken_by(state.references, others), path)
        ):
            state.doubts += 1
            return []
    return kept


def _is_moved(value: Any, result: Repaired, kinds: Iterable[str], path: Path) -> bool:
    """Whether *result* moves *value* into or out of a container, where values of its type may be of other *kinds*.

    A text or number may be meant for any scalar: `"5 days"` for an integer or an array of texts.
    """
    first = result.repairs[0]
    if first.path != format_pointer(path) or first.rule not in _MOVING:
        return False
    if isinstance(value, dict | list):
        return type_name(value) in kinds
    return not _SCALARS.isdisjoint(kinds)


def _branches(union: Violation) -> list[Path]:
    return [(*union.location, union.keyword, index) for index in range(len(union.expected))]


def _kinds_taken_by(references: References, locations: Iterable[Path]) -> set[str]:
    """Return the types of the values that one of the subschemas at *locations* may take."""
    kinds: set[str] = set()
    for location in locations:
        kinds |= _kinds_taken(references, location)
    return kinds


def _kinds_taken(references: References, location: Path) -> frozenset[str]:
    """Return the types of the values that the subschema at *location* may take."""
    return references.once(("kinds", location), lambda: _read_kinds(references, location))


def _read_kinds(references: References, location: Path) -> frozenset[str]:
    kinds: set[str] = set()
    for _, schema in in_place(references, [location]):
        types = schema.get("type")
        if types is not None:
            kinds |= set(types if isinstance(types, list) else [types])
        elif isinstance(schema.get("enum"), list):
            kinds |= {type_name(each) for each in schema["enum"]}
        elif "const" in schema:
            kinds.add(type_name(schema["const"]))
        elif not schema.keys() & {"$ref", "$dynamicRef", "allOf", *_UNIONS}:
            return _ANY
    return frozenset(kinds) or _ANY


def _possible(references: References, every: list[Path], value: Any) -> list[Path]:
    """Return those of *every* branch that *value* may be of: not those where a member of it has another constant.

    A union of fifty tagged objects is decided by the tag, not by fifty attempts.
    """
    union = every[0][:-1] if every else ()
    if isinstance(value, dict):
        tags = references.once(("tags", union), lambda: _tags(references, every))
        meant = set(range(len(every)))
        for name, by_text in tags.items():
            said = value.get(name)
            if isinstance(said, str):
                meant &= {*by_text.get(fold_value(unquoted(said) or said), ()), *by_text[""]}
        return [every[index] for index in sorted(meant)]
    # `anyOf` of a type and null is how an optional parameter is written; most values are not null in any reading.
    if isinstance(value, list) or is_nothing(
        value.strip(_QUOTES) if isinstance(value, str) else value, more_words=True
    ):
        return every
    return references.once(
        ("not null", union), lambda: [each for each in every if references.schema_at(each) != {"type": "null"}]
    )


def _tags(references: References, every: list[Path]) -> dict[str, dict[str, list[int]]]:
    """Return the members that have constants in some of *every* branch, and which branches each text is one of.

    The empty text has the branches that declare the member without a constant.
    """
    found: dict[str, dict[str, list[int]]] = {}
    constants = [discriminators(references, branch) for branch in every]
    for name in {name for each in constants for name in each}:
        by_text = found[name] = {"": []}
        for index, branch in enumerate(every):
            for text in constants[index].get(name, ()):
                by_text.setdefault(fold_value(text) or " ", []).append(index)
            if name not in constants[index] and name in declared_properties(references, [branch]):
                by_text[""].append(index)
    return found


def may_be_said(references: References, value: Any, locations: Iterable[Path]) -> bool:
    """Whether *value*, null or a word for it, may be a member of a choice at *locations*, or for the items of an array.

    >>> encodings = {"type": "array", "items": {"enum": ["none", "gzip"]}}
    >>> [may_be_said(References(encodings), value, [()]) for value in ("None", "null", None)]
    [True, False, False]
    """
    if not is_nothing(value):
        return False
    words = set[str]()
    for place, schema in in_place(references, locations):
        words |= _words_in(schema)
        for item in item_locations(references, place):
            for below, inside in in_place(references, [item]):
                words |= _words_in(inside)
                for deeper in item_locations(references, below):
                    words |= {word for _, each in in_place(references, [deeper]) for word in _words_in(each)}
    word = "null" if value is None else value.strip().casefold()
    return word in words or (word == "none" and "null" in words)


def _words_in(schema: dict[str, Any]) -> set[str]:
    allowed = schema.get("enum")
    members = [*(allowed if isinstance(allowed, list) else ()), schema.get("const")]
    texts: list[Any] = []
    for member in members:
        texts += member if isinstance(member, list) else [member]
    return {each.strip().casefold() for each in texts if isinstance(each, str) and is_nothing(each)}


def _makes_texts(before: Any, result: Repaired) -> bool:
    """Whether items of the list in a string became strings: ``"[1, 2]"`` may be a string of that list's own.

    A member of an enum that was sent in another type is that member all the same.
    """
    if not isinstance(before, list) or any(repair.rule == "enum-value" for repair in result.repairs):
        return False
    after = result.value if isinstance(result.value, list) else []
    return any(isinstance(new, str) and not isinstance(old, str) for old, new in zip(before, after, strict=False))
