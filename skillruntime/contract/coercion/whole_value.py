"""A value as a whole: converted, wrapped, taken out of what is around it, or coerced by one branch of a union."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from skillruntime.contract.coercion.branches import branches
from skillruntime.contract.coercion.conversions import NUMBERS, read_as, taken_out
from skillruntime.contract.coercion.keys import is_close, is_schema_echo
from skillruntime.contract.coercion.nothing import is_named
from skillruntime.contract.coercion.repair import Repair, Repaired, plain
from skillruntime.contract.coercion.scalars import Options, is_nothing, listed, pieces, unquoted
from skillruntime.contract.coercion.state import Coercion, is_container_text, types_of
from skillruntime.contract.coercion.subschemas import (
    ABSENT,
    declared_properties,
    default_at,
    in_place,
    item_locations,
    places_in,
    property_locations,
)
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.contract.references import properties_of
from skillruntime.contract.schema import Violation
from skillruntime.contract.wording import FORMAT_OF_PATTERN

__all__ = ["whole"]

# The formats whose texts never begin or end with white space, so that it says nothing.
_WITHOUT_BLANKS = {
    *("date", "time", "date-time", "duration", "uuid", "email", "hostname", "ipv4", "ipv6", "uri"),
    *FORMAT_OF_PATTERN,
}
_UNQUOTED = ("type", "enum", "const", "format", "pattern")
_QUOTES = " \t\r\n\\\"'`\u2018\u2019\u201c\u201d\u300c\u300d"


def whole(state: Coercion, value: Any, here: list[Violation], location: Path, path: Path, depth: int) -> list[Repaired]:
    """Return what *value* as a whole can become."""
    results: list[Repaired] = []
    is_item = isinstance(value, str) and is_container_text(value) and _is_enumerated_item(state, value, here)
    for candidate in (
        *_converted(state, value, here, path, depth),
        *_reshaped(state, value, here, location, path, depth),
    ):
        found = state.coerce(candidate.value, location, path, depth + 1)
        rule = candidate.repairs[-1].rule
        if rule == "container-text" and is_item:
            continue  # `"[]"` where the items may be that very text
        # Quotes that no item loses by itself, as where a text is only too long with them, stay around the one item too.
        if rule == "quoted-text" and any(map(_is_of_one, found)) and not state.coerce([value], location, path, depth):
            found = [each for each in found if not _is_of_one(each)]
        # A list of numbers in a string may be a text about them, where strings are wanted.
        if rule == "container-text":
            found = [each for each in found if not _makes_texts(candidate.value, each.value) or _is_member(each)]
        results += [candidate.then(each) for each in found]
        # `"11"` where 10 is the most: the error speaks of the limit then, and not of the type.
        if not found and rule in NUMBERS:
            state.nearly[path] = candidate.value
    return state.decided(results, path)


def _converted(state: Coercion, value: Any, here: list[Violation], path: Path, depth: int) -> Iterator[Repaired]:
    """Yield *value* read as another type, as a member of an enum, or coerced by one branch of a union."""
    pointer = format_pointer(path)
    for violation in here:
        match violation.keyword:
            case "anyOf" | "oneOf" if isinstance(violation.expected, list):
                yield from branches(state, value, violation, path, depth)
            case "enum" | "const":
                for after in _options(state, violation).meant_by(value):
                    yield Repaired(after, (Repair(pointer, "enum-value", plain(value), after),))
            case "format" | "pattern" if isinstance(value, str) and violation.expected in _WITHOUT_BLANKS:
                if value.strip() != value:
                    yield Repaired(value.strip(), (Repair(pointer, "surrounding-space", value, value.strip()),))
            case "type":
                for wanted in types_of(violation):
                    for rule, after in read_as(wanted, value, more_words=state.policy.more_words):
                        if after is None and is_named(state.references, value, violation.location or ()):
                            continue  # `none` where the items of the array may be that word
                        yield Repaired(after, (Repair(pointer, rule, plain(value), after),))
    if isinstance(value, str) and any(violation.keyword in _UNQUOTED for violation in here):
        inside = unquoted(value)
        if inside is not None:
            yield Repaired(inside, (Repair(pointer, "quoted-text", value, inside),))


def _options(state: Coercion, violation: Violation) -> Options:
    """Return the members of the enum that *violation* is of, or its one constant, ready to be asked."""
    allowed = violation.expected if violation.keyword == "enum" else [violation.expected]
    if violation.keyword == "const" or violation.location is None:
        return Options(allowed)
    return state.references.once(("options", violation.location), lambda: Options(allowed))


def _reshaped(
    state: Coercion, value: Any, here: list[Violation], location: Path, path: Path, depth: int
) -> Iterator[Repaired]:
    """Yield *value* in a container or out of one: wrapped into an array, taken out of an array or an object."""
    pointer = format_pointer(path)
    arrays = [each for each in here if each.keyword == "type" and "array" in types_of(each)]
    wanted = {name for each in here if each.keyword == "type" for name in types_of(each)}
    narrowed = any(violation.keyword in ("enum", "const") for violation in here)
    # PHP and some chat templates encode an empty map as `[]`.
    if value == [] and not path and "object" in wanted:
        yield Repaired({}, (Repair(pointer, "empty-arguments", value, {}),))
    elif isinstance(value, dict | list):
        yield from _unwrapped(state, value, here, location, path, wanted, narrowed)
    for each in arrays:
        assert each.location is not None
        items = listed(value, _item_schemas(state, each)) if isinstance(value, str) else None
        places = item_locations(state.references, each.location)
        if items is not None and not any(state.fits(value, place) for place in places):
            yield Repaired(items, (Repair(pointer, "comma-list", value, items),))
    if not isinstance(value, list) and any(_is_item(state, value, each, path, depth) for each in arrays):
        yield Repaired([value], (Repair(pointer, "scalar-for-array", plain(value), [plain(value)]),))


def _unwrapped(
    state: Coercion,
    value: dict[str, Any] | list[Any],
    here: list[Violation],
    location: Path,
    path: Path,
    wanted: set[str],
    narrowed: bool,
) -> Iterator[Repaired]:
    """Yield what *value* holds alone: the one item of an array, the inside of a wrapper or of an echoed schema."""
    inner = wanted - {"array"} if isinstance(value, list) else wanted
    locations = [location, *(each.location for each in here)]
    declared = declared_properties(state.references, locations)
    required = set[str]()
    schema: dict[str, Any] = {}
    for _, each in in_place(state.references, locations, choices=False):
        schema = {**each, **schema}
        names = each.get("required")
        required |= set(names) if isinstance(names, list) and not path else set()
    places = property_locations(state.references, locations, choices=False) if required else {}
    needed = {name for name in required if default_at(state.references, places.get(name, ())) is ABSENT}
    # {"value": []} for an array of objects that have a "value" is one of them, and not the form of a schema.
    arrays = [place for each in locations if each is not None for place in item_locations(state.references, each)]
    items = declared_properties(state.references, arrays) if isinstance(value, dict) and "array" in wanted else {}
    found = taken_out(
        value,
        {**declared, **state.around.get(path, {}), **items},
        of_type=bool(inner) or narrowed,
        needed=None if path else needed,
        wants_text="string" in inner,
        wants_list="array" in wanted,
        schema=schema,
    )
    for rule, after, before in found:
        # {"input": {"value": 5}} in a map is the entry `input`, in the form of its schema, or the entry `value`.
        if (
            rule == "wrapper-object"
            and path
            and isinstance(after, dict)
            and is_schema_echo(after, {})
            and ("value" not in declared or _is_map(state, locations))
        ):
            continue
        if rule != "schema-echo" or path[-1:] != ("value",) or len(value) > 1:  # else the inside of an echo
            yield Repaired(after, (Repair(format_pointer(path), rule, before, after),))


def _is_map(state: Coercion, locations: list[Path | None]) -> bool:
    schemas = [schema for _, schema in in_place(state.references, locations)]
    return any(isinstance(schema.get("additionalProperties"), dict) for schema in schemas)


def _item_schemas(state: Coercion, violation: Violation) -> list[dict[str, Any]]:
    """Return the subschemas that judge the items of the array that *violation* asks for."""
    assert violation.location is not None
    places = item_locations(state.references, violation.location)
    return [schema for _, schema in in_place(state.references, places)]


def _is_item(state: Coercion, value: Any, violation: Violation, path: Path, depth: int) -> bool:
    """Whether *value* is one item and nothing else: not nothing, not several, not the whole array in a string."""
    assert violation.location is not None
    schema, items = violation.schema, (*violation.location, "items")
    if isinstance(schema.get("items"), list):
        items = (*items, 0)
    if len(places_in(schema)) > 1 or is_nothing(value, more_words=True):
        return False
    match value:
        case dict():
            # A map of arrays around the wanted array says more than the array does.
            is_array = any(isinstance(each, list) and state.fits(each, violation.location) for each in value.values())
            return bool(value) and not is_array and _is_object_of(value, _item_schemas(state, violation))
        case str() if is_container_text(value):
            return False
        case str() if not value.strip(_QUOTES) or is_container_text(value.strip(_QUOTES)):
            return False  # an empty string or an array, in quotes of its own
        case str():
            parts = pieces(value)
            return len(parts) == 1 or (
                bool(schema.get("items")) and any(not state.coerce(part, items, path, depth + 1) for part in parts)
            )
    return True


def _is_enumerated_item(state: Coercion, text: str, here: list[Violation]) -> bool:
    """Whether *text* is a member of the enum that the items of a wanted array have."""
    arrays = [each for each in here if each.keyword == "type" and "array" in types_of(each)]
    schemas = [schema for each in arrays for schema in _item_schemas(state, each)]
    return any(schema.get("const") == text or text in (schema.get("enum") or ()) for schema in schemas)


def _is_object_of(value: dict[str, Any], items: Iterable[dict[str, Any]]) -> bool:
    """Whether *value* is one of the objects that *items* describe, and not a map of them."""
    if all(map(str.isdecimal, value)):
        return False  # {"0": ..., "1": ...} is an array in another form
    if len(value) == 2 and is_schema_echo(value, {}):
        return False  # {"type": "integer", "value": 0} is a value in the form of its schema
    declared = {name for schema in items for name in properties_of(schema)}
    if declared:
        return any(name in declared or any(is_close(name, each) for each in declared) for name in value)
    types = [schema.get("type") for schema in items if "type" in schema]
    takes_objects = any(each == "object" or (isinstance(each, list) and "object" in each) for each in types)
    return takes_objects and not all(isinstance(member, dict) for member in value.values())


def _makes_texts(before: Any, after: Any) -> bool:
    """Whether items of the list in a string became strings: ``"[1, 2]"`` may be a string of that list's own."""
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and any(
            (isinstance(new, str) and not isinstance(old, str)) or _makes_texts(old, new)
            for old, new in zip(before, after, strict=True)
        )
    return False


def _is_of_one(result: Repaired) -> bool:
    """Whether *result* is an array that was made of its one item."""
    return bool(result.repairs) and result.repairs[0].rule == "scalar-for-array"


def _is_member(result: Repaired) -> bool:
    """Whether *result* has a member of an enum that was sent in another type: it is that member all the same."""
    return any(repair.rule == "enum-value" for repair in result.repairs)
