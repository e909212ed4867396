"""A value as a whole: converted, wrapped, taken out of what is around it, or coerced by
one branch of a union.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from skillruntime.contract.reading.arguments import parse_container
from skillruntime.contract.repairs.keys import (
    fold_name,
    is_blank,
    is_call_wrapper,
    is_close,
    is_entry,
    is_wrapper,
    may_wrap,
    wrapped,
)
from skillruntime.contract.repairs.scalars import (
    Options,
    converted,
    is_nothing,
    listed,
    may_be_nothing,
    pieces,
    unquoted,
)
from skillruntime.contract.repairs.state import (
    Coercion,
    Repair,
    Repaired,
    is_container_text,
    plain,
    types_of,
)
from skillruntime.contract.repairs.unions import (
    QUOTES,
    SCALARS,
    UNIONS,
    branches_of,
    is_moved,
    kinds_taken_by,
    may_be_said,
    of_branches,
)
from skillruntime.contract.schemas.plain_json import type_name
from skillruntime.contract.schemas.pointer import Path, format_pointer
from skillruntime.contract.schemas.references import properties_of
from skillruntime.contract.schemas.schema import Violation
from skillruntime.contract.schemas.subschemas import (
    ABSENT,
    declared_properties,
    default_at,
    in_place,
    item_locations,
    places_in,
    property_locations,
)

# What a value may be: the rule, the value after it, and what the record shows as the
# value before.
Attempts: TypeAlias = Iterator[tuple[str, Any, Any]]


def whole(
    state: Coercion,
    value: Any,
    here: list[Violation],
    location: Path,
    path: Path,
    depth: int,
) -> list[Repaired]:
    """Return what *value* as a whole can become, refused by the violations *here* of
    the subschema at *location*.
    """
    results: list[Repaired] = []
    for violation in here:
        if violation.keyword in UNIONS and isinstance(violation.expected, list):
            for each in of_branches(state, value, violation, path, depth):
                found = state.coerce(each.value, location, path, depth + 1)
                results += [each.then(after) for after in found]
    for rule, after, before in (
        *_converted(state, value, here),
        *_reshaped(state, value, here, location, path, depth),
    ):
        repair = Repair(format_pointer(path), rule, plain(before), plain(after))
        found = state.coerce(after, location, path, depth + 1)
        # A list of numbers in a string may be a text about them, where strings are
        # wanted.
        if rule == "container-text":
            found = [each for each in found if not _makes_texts(after, each)]
        results += [Repaired(after, (repair,)).then(each) for each in found]
    kept = state.decided(results)
    if (
        len(kept) == 1
        and len(kinds := _kinds_in(state, here)) > 1
        and is_moved(value, kept[0], kinds, path)
    ):
        state.doubts += 1
        return []
    return kept


def _converted(state: Coercion, value: Any, here: list[Violation]) -> Attempts:
    """Yield *value* read as another type or as a member of an enum, with the rule and
    what was before.
    """
    for violation in here:
        if (
            violation.keyword in ("enum", "const") and value != "None"
        ):  # as Python writes null; `none` may be a choice
            for after in _options(state, violation).meant_by(value):
                yield "enum-value", after, value
        elif violation.keyword == "type":
            for wanted in types_of(violation):
                for rule, after in converted(wanted, value):
                    # `none` where the items of the array may be that word says
                    # something.
                    if after is not None or not may_be_said(
                        state.references, value, [violation.location]
                    ):
                        yield rule, after, value
    if not isinstance(value, str):
        return
    containers = (
        _containers_wanted(state, here)
        if is_container_text(value.strip(QUOTES))
        else set()
    )
    parsed = parse_container(value) if containers else None
    if parsed is not None and type_name(parsed.value) in containers:
        yield "container-text", parsed.value, value
    inside = unquoted(value)
    if inside is not None and (
        _kinds_in(state, here) & SCALARS
        or any(each.keyword in ("format", "pattern") for each in here)
    ):
        yield "quoted-text", inside, value


def _containers_wanted(state: Coercion, here: list[Violation]) -> set[str]:
    """Return which of array and object the violations *here* ask for; of a union only
    where it takes no text.
    """
    containers = _kinds_in(state, here)
    for violation in here:
        # One object for an array of them, in a string (earendil-works/pi#7835).
        places = (
            item_locations(state.references, [violation.location])
            if "array" in containers
            else []
        )
        if kinds_taken_by(state.references, places) == {
            "object"
        } and declared_properties(state.references, places):
            containers.add("object")
        if violation.keyword in UNIONS and isinstance(violation.expected, list):
            taken = kinds_taken_by(state.references, branches_of(violation))
            containers |= set() if "string" in taken else taken
    return containers & {"array", "object"}


def _kinds_in(state: Coercion, here: list[Violation]) -> set[str]:
    """Return the types that the violations *here* ask for; of a choice those of its
    members.
    """
    kinds: set[str] = set()
    for violation in here:
        if violation.keyword == "type":
            kinds |= set(types_of(violation))
        elif violation.keyword in ("enum", "const"):
            kinds |= _options(state, violation).kinds
    return kinds


def _options(state: Coercion, violation: Violation) -> Options:
    """Return the members of the enum that *violation* is of, or its one constant, ready
    to be asked.
    """
    allowed = (
        violation.expected if violation.keyword == "enum" else [violation.expected]
    )
    if violation.keyword == "const":
        return Options(allowed)
    return state.references.once(
        ("options", violation.location), lambda: Options(allowed)
    )


def _reshaped(
    state: Coercion,
    value: Any,
    here: list[Violation],
    location: Path,
    path: Path,
    depth: int,
) -> Attempts:
    """Yield *value* in a container or out of one, with the rule and *value* as the
    record shows it.
    """
    kinds = _kinds_in(state, here)
    # PHP and some chat templates encode an empty map as `[]` (agno-agi/agno#6303).
    if value == [] and not path and "object" in kinds:
        yield "empty-arguments", {}, value
    elif isinstance(value, list) and len(value) == 1 and kinds - {"array"}:
        yield from _taken_out(state, value, here, location, path, kinds - {"array"})
    elif isinstance(value, dict):
        yield from _unwrapped(state, value, here, location, path, kinds)
        if (
            kinds
            and "object" not in kinds
            and _is_echo(value)
            and state.fits(value["value"], location)
        ):
            yield "schema-echo", value["value"], value
    for each in here:
        if (
            each.keyword == "type"
            and "array" in types_of(each)
            and not isinstance(value, list)
        ):
            yield from _as_array(state, value, each, path, depth)


def _is_echo(value: dict[str, Any]) -> bool:
    """Whether *value* is one value in the form of its schema: ``{"type": "string",
    "value": "Paris"}``.
    """
    return value.keys() == {"type", "value"} and value["type"] == type_name(
        value["value"]
    )


def _taken_out(
    state: Coercion,
    value: list[Any],
    here: list[Violation],
    location: Path,
    path: Path,
    kinds: set[str],
) -> Attempts:
    """Yield the one item of *value*: not nothing, not the entry of a map, not below
    arrays of arrays.
    """
    [item] = value
    if isinstance(path[-1] if path else "", int) and (
        isinstance(path[-2], int) or not state.fits(item, location)
    ):
        state.doubts += 1  # which level of brackets is too many is unknown
        return
    if is_nothing(item) and "string" not in kinds:
        return
    declared = declared_properties(
        state.references, [location, *(each.location for each in here)]
    )
    if not is_entry(item) or not item.keys().isdisjoint(declared):
        yield "array-of-one", item, value


def _as_array(
    state: Coercion, value: Any, violation: Violation, path: Path, depth: int
) -> Attempts:
    """Yield the array that *value* may mean: its one item, the items it lists, or an
    object in place of an array.
    """
    if isinstance(path[-1] if path else "", int):
        # which level of brackets is missing is unknown, and no recorded call lacked two
        state.doubts += 1
        return
    places = item_locations(state.references, [violation.location])
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
    """Return the items that the object *value* has in place of an array, as XML is
    turned into JSON.

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
    """Whether *value* is one item and nothing else: not nothing, not several, not the
    whole array in a string.
    """
    if may_be_nothing(value):
        return False
    if places_in(violation.schema):
        state.doubts += state.fits(
            [value], violation.location
        )  # a tuple of one is not made, and may be meant
        return False
    if isinstance(value, dict):
        # A map of arrays around the wanted array says more than the array does.
        arrays = [each for each in value.values() if isinstance(each, list)]
        is_array = any(state.fits(each, violation.location) for each in arrays)
        return bool(value) and not is_array and _is_object_of(value, items)
    return not isinstance(value, str) or _is_one_text(
        state, value, violation, places, path, depth
    )


def _is_one_text(
    state: Coercion,
    text: str,
    violation: Violation,
    places: list[Path],
    path: Path,
    depth: int,
) -> bool:
    """Whether *text* is one item, and neither an array nor a list of several."""
    bare = text.strip(QUOTES)
    # An empty string or an array in quotes of its own; the sign of a list in Markdown.
    if (
        not bare
        or is_container_text(text)
        or is_container_text(bare)
        or bare[:2] in ("- ", "* ", "\u2022 ")
    ):
        return False
    if unquoted(text) is not None and any(state.fits(text, place) for place in places):
        return False  # the quotes may belong to it
    parts = pieces(text)
    if len(parts) == 1:
        return True
    # Text with a comma is one item only where its parts could not be items.
    return bool(violation.schema.get("items")) and any(
        not any(state.coerce(part, place, path, depth + 1) for place in places)
        for part in parts
    )


def _is_object_of(value: dict[str, Any], items: Iterable[dict[str, Any]]) -> bool:
    """Whether *value* is one of the objects that *items* describe, and not a map of
    them.
    """
    if all(map(str.isdecimal, value)):
        return False  # {"0": ..., "1": ...} is an array in another form
    declared = {name for schema in items for name in properties_of(schema)}
    if declared:
        return any(
            name in declared or any(is_close(name, each) for each in declared)
            for name in value
        )
    types = [schema.get("type") for schema in items if "type" in schema]
    takes_objects = any(
        each == "object" or (isinstance(each, list) and "object" in each)
        for each in types
    )
    return takes_objects and not all(
        isinstance(member, dict) for member in value.values()
    )


def _unwrapped(
    state: Coercion,
    value: dict[str, Any],
    here: list[Violation],
    location: Path,
    path: Path,
    kinds: set[str],
) -> Attempts:
    """Yield what the object *value* holds under a key that wraps it."""
    has_one_key = not path and len(value) == 1  # which may be the schema's title
    if not has_one_key and not any(map(may_wrap, value)):
        return
    locations = [location, *(each.location for each in here)]
    schemas = [
        schema for _, schema in in_place(state.references, locations, choices=False)
    ]
    declared = dict(declared_properties(state.references, locations))
    if (
        "array" in kinds
    ):  # {"input": []} for an array of objects that have an "input" is one of them
        declared |= declared_properties(
            state.references, item_locations(state.references, locations)
        )
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
    """Return what is under the key *name* of *value*, if that is all that *value*
    says.
    """
    content = wrapped(value[name])
    if is_wrapper(value, name, declared):
        # `{"arguments": ""}`: what models send for a tool without parameters
        # (qwersyk/Newelle#429).
        return (
            {}
            if not path and content in ("", None) and is_call_wrapper(name)
            else content
        )
    if not path and value in (
        {"": ""},
        {"": None},
    ):  # for a tool without parameters too
        return {}
    if path or not isinstance(content, dict) or not content:
        return None
    beside = {key: said for key, said in value.items() if key != name}
    # Under a blank key, `type` or the schema's title models put all arguments by
    # mistake. A function whose only parameter is the model `trip` has its title.
    titles = ("type", *(each.get("title") for each in schemas))
    if beside or not (is_blank(name) or name in titles):
        return None
    return (
        content
        if _holds_all(state, name, content, declared, schemas, location)
        else None
    )


def _holds_all(
    state: Coercion,
    name: str,
    content: dict[str, Any],
    declared: Mapping[str, Any],
    schemas: list[dict[str, Any]],
    location: Path,
) -> bool:
    """Whether each key of *content*, found under *name*, is declared, and none that is
    needed is absent.
    """
    if not content.keys() <= declared.keys():
        return False
    if name.strip() and fold_name(name) in map(fold_name, declared):
        return False
    needed = {
        each
        for schema in schemas
        for each in schema.get("required", ())
        if each not in content
    }
    places = (
        property_locations(state.references, [location], choices=False)
        if needed
        else {}
    )
    return all(
        default_at(state.references, places.get(each, ())) is not ABSENT
        for each in needed
    )


def _makes_texts(before: Any, result: Repaired) -> bool:
    """Whether items of the list in a string became strings: ``"[1, 2]"`` may be a
    string of that list's own.

    A member of an enum that was sent in another type is that member all the same.
    """
    if not isinstance(before, list) or any(
        repair.rule == "enum-value" for repair in result.repairs
    ):
        return False
    after = result.value if isinstance(result.value, list) else []
    return any(
        isinstance(new, str) and not isinstance(old, str)
        for old, new in zip(before, after, strict=False)
    )
