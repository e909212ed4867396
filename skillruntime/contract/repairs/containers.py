"""Move a value into or out of an array or object: a container written in a text, or a
value wrapped in too many containers, or in too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from skillruntime.contract.reading.arguments import parse_container, pieces, wrapped
from skillruntime.contract.repair_rules import (
    ARRAY_OBJECT,
    ARRAY_OF_ONE,
    COMMA_LIST,
    CONTAINER_TEXT,
    EMPTY_ARGUMENTS,
    ENUM_VALUE,
    SCALAR_FOR_ARRAY,
    SCHEMA_ECHO,
    WRAPPER_OBJECT,
)
from skillruntime.contract.repairs.keys import is_call_wrapper, is_wrapper
from skillruntime.contract.repairs.outcomes import (
    AMBIGUOUS,
    Ambiguous,
    Attempt,
    Loop,
    Misfit,
    Place,
    Repaired,
)
from skillruntime.contract.repairs.scalars import (
    Options,
    is_nothing,
    may_be_nothing,
    number_in,
    types_of,
)
from skillruntime.contract.schemas.names import (
    fold_loosely,
    holds_wrapper,
    is_blank,
    is_close,
    unquoted,
)
from skillruntime.contract.schemas.plain_json import is_same, type_name
from skillruntime.contract.schemas.pointer import Location
from skillruntime.contract.schemas.references import References, properties_of
from skillruntime.contract.schemas.schema import Violation
from skillruntime.contract.schemas.subschemas import (
    ABSENT,
    declared_properties,
    default_at,
    in_place,
    item_locations,
    kinds_taken_by,
    places_in,
    property_locations,
)
from skillruntime.lazy_patterns import lazy_pattern

UNIONS = ("anyOf", "oneOf")
QUOTES = " \t\r\n\\\"'`\u2018\u2019\u201c\u201d\u300c\u300d"
# The brackets that begin or end an array or object in a text, including East Asian
# brackets.
_OPENING = ("[", "{", "(", "\uff3b", "\uff5b", "\u3010")
_CLOSING = ("]", "}")
# The beginning of a list's line: a bullet of Markdown or of a word processor, a dash,
# or a number; and a list in a program's notation: `array(['a'])`, `list("a")`.
_BULLET = lazy_pattern(
    r"(?:[-+*\u00b7\u2010-\u2015\u2022\u2023\u2043\u2212\u25a0-\u25ff]|\d{1,3}[.)])\s"
)
_LIST_CALL = lazy_pattern(r"[A-Za-z_][\w.]*\s?\(\s*[\[{(\"'`]")
# A float holds fifteen digits exactly, so a list of such numbers loses nothing.
_PLAIN_NUMBER = lazy_pattern(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,14})?", re.ASCII)
# The keys of a map's entries in Java, XML and OpenAPI, which write a map as a list: a
# list of one entry may be a map of one, or its entry.
_ENTRY_KEYS = frozenset({"key", "k", "name", "field", "id", "property"})
_ENTRY_VALUES = frozenset({"value", "v", "val"})

Attempts: TypeAlias = Iterator[Attempt | Ambiguous]


def container_in_text(loop: Loop, misfit: Misfit) -> list[Attempt]:
    """Return the array or object in a text, if the schema asks for one."""
    text: str = misfit.place.value
    if not is_container_text(text.strip(QUOTES)):
        return []
    wanted = _containers_wanted(loop.references, misfit)
    parsed = parse_container(text) if wanted else None
    if parsed is not None and type_name(parsed.value) in wanted:
        return [Attempt(CONTAINER_TEXT, text, parsed.value)]
    return []


def is_container_text(text: str) -> bool:
    """Return whether *text* may be an array or object in a string, complete or
    broken.
    """
    return text.lstrip()[:1] in _OPENING or text.rstrip()[-1:] in _CLOSING


def _containers_wanted(references: References, misfit: Misfit) -> set[str]:
    """Return which of array and object the schema asks for; a union counts only if it
    does not accept text.
    """
    wanted = set(misfit.kinds)
    for violation in misfit.violations:
        # A string may hold one object in place of an array of objects
        # (earendil-works/pi#7835).
        if "array" in wanted:
            items = item_locations(references, [violation.location])
            is_of_objects = kinds_taken_by(references, items) == {"object"}
            if is_of_objects and declared_properties(references, items):
                wanted.add("object")
        if violation.keyword in UNIONS and isinstance(violation.expected, list):
            taken = kinds_taken_by(references, violation.branch_locations)
            if "string" not in taken:
                wanted |= taken
    return wanted & {"array", "object"}


def makes_texts(before: Any, outcome: Repaired) -> bool:
    """Return whether items of the list *before*, which was in a string, became strings:
    ``"[1, 2]"`` may be meant as one string.

    A member of an enum that was sent in another type still counts as that member.
    """
    if not isinstance(before, list) or not isinstance(outcome.value, list):
        return False
    if any(repair.rule == ENUM_VALUE for repair in outcome.repairs):
        return False
    for old, new in zip(before, outcome.value, strict=False):
        if isinstance(new, str) and not isinstance(old, str):
            return True
    return False


def reshapings(loop: Loop, misfit: Misfit) -> Attempts:
    """Yield the value moved into or out of a container, or `AMBIGUOUS` if the move may
    be meant, but the schema does not decide.
    """
    place = misfit.place
    value = place.value
    # PHP and some chat templates encode an empty map as `[]` (agno-agi/agno#6303).
    if value == [] and not place.path and "object" in misfit.kinds:
        yield Attempt(EMPTY_ARGUMENTS, value, {})
    elif isinstance(value, list):
        if len(value) == 1 and misfit.kinds - {"array"}:
            yield from _taken_out(loop, misfit, value[0])
    elif isinstance(value, dict):
        yield from _unwrapped(loop, misfit)
        if _is_echo(value) and misfit.kinds and "object" not in misfit.kinds:
            if loop.fits(value["value"], place.location):
                yield Attempt(SCHEMA_ECHO, value, value["value"])
    if isinstance(value, list) or "array" not in misfit.kinds:
        return
    for violation in misfit.violations:
        if violation.keyword == "type" and "array" in types_of(violation):
            yield from _as_array(loop, place, violation)


def _is_echo(value: dict[str, Any]) -> bool:
    """Return whether *value* is a value in the form of its schema: ``{"type": "string",
    "value": "Paris"}``.
    """
    if value.keys() != {"type", "value"}:
        return False
    return bool(value["type"] == type_name(value["value"]))


def _is_in_array(place: Place, levels: int) -> bool:
    """Return whether the value is an item inside at least *levels* levels of arrays."""
    tokens = place.path[-levels:]
    return len(tokens) == levels and all(isinstance(token, int) for token in tokens)


def _taken_out(loop: Loop, misfit: Misfit, item: Any) -> Attempts:
    """Yield the only *item* of an array, unless it is null or an entry of a map; inside
    other arrays the move may be ambiguous.
    """
    place = misfit.place
    # It is unknown which level of brackets is superfluous.
    if _is_in_array(place, 2):
        yield AMBIGUOUS
        return
    if _is_in_array(place, 1) and not loop.fits(item, place.location):
        yield AMBIGUOUS
        return
    if is_nothing(item) and "string" not in misfit.kinds:
        return
    if is_entry(item):
        declared = declared_properties(loop.references, misfit.locations)
        if item.keys().isdisjoint(declared):
            return
    yield Attempt(ARRAY_OF_ONE, place.value, item)


def is_entry(value: Any) -> bool:
    """Return whether *value* is an entry of a map, written as an object: ``{"key": "a",
    "value": 1}``.
    """
    if not isinstance(value, dict) or len(value) != 2:
        return False
    keys = {str(key).casefold() for key in value}
    return bool(keys & _ENTRY_KEYS) and bool(keys & _ENTRY_VALUES)


@dataclass(frozen=True, slots=True)
class _Array:
    """The array that the schema asks for at a place: its *schema*, the *location* of
    that schema, and the locations of its *items*.
    """

    schema: Mapping[str, Any]
    location: Location
    items: list[Location]


def _as_array(loop: Loop, place: Place, violation: Violation) -> Attempts:
    """Yield the array that the value may mean: the value is its one item, lists its
    items, or is an object in place of an array.
    """
    value = place.value
    # It is unknown which level of brackets is missing; no recorded call lacked two
    # levels.
    if _is_in_array(place, 1):
        yield AMBIGUOUS
        return
    items = item_locations(loop.references, [violation.location])
    array = _Array(violation.schema, violation.location, items)
    if isinstance(value, str) and not any(loop.fits(value, item) for item in items):
        several = listed(value, _schemas(loop, items))
        if several is not None:
            yield Attempt(COMMA_LIST, value, several)
    if isinstance(value, dict):
        content = _items_in(value)
        if content is not None and not loop.fits([value], array.location):
            yield Attempt(ARRAY_OBJECT, value, content)
    if may_be_nothing(value):
        return
    # A tuple of one item is not created, but it may be meant.
    if places_in(array.schema):
        if loop.fits([value], array.location):
            yield AMBIGUOUS
        return
    if _is_one_item(loop, place, array):
        yield Attempt(SCALAR_FOR_ARRAY, value, [value])


def _schemas(loop: Loop, locations: list[Location]) -> list[dict[str, Any]]:
    return [schema for _, schema in in_place(loop.references, locations)]


def _items_in(value: dict[str, Any]) -> list[Any] | None:
    """Return the items of the object *value* that stands for an array, as in JSON
    converted from XML.

    >>> _items_in({"item": "a"}), _items_in({"items": ["a", "b"]})
    (['a'], ['a', 'b'])
    >>> _items_in({"0": "a", "1": "b"})
    ['a', 'b']
    """
    if len(value) == 1:
        [(name, content)] = value.items()
        if isinstance(content, list) and name in ("item", "items"):
            return content
        if name == "item" and not is_nothing(content):
            return [content]
        return None
    indexes = [str(index) for index in range(len(value))]
    if len(value) > 1 and list(value) == indexes:
        return list(value.values())
    return None


def _is_one_item(loop: Loop, place: Place, array: _Array) -> bool:
    """Return whether the value can only be one item of *array*: neither several items
    nor the whole array in another form.
    """
    value = place.value
    if isinstance(value, str):
        return _is_one_text(loop, place, array)
    if not isinstance(value, dict):
        return True
    if not value:
        return False
    # A map around the wanted array holds more information than the array.
    for member in value.values():
        if isinstance(member, list) and loop.fits(member, array.location):
            return False
    return _is_object_of(value, _schemas(loop, array.items))


def _is_one_text(loop: Loop, place: Place, array: _Array) -> bool:
    """Return whether the text is one item, and neither an array nor a list of several
    items.
    """
    text = place.value
    bare = text.strip(QUOTES)
    if not bare:
        return False
    # Such a text is the array itself, with or without quotes around it.
    if is_container_text(text) or is_container_text(bare):
        return False
    if _BULLET.match(bare) or (_LIST_CALL.match(bare) and bare.endswith(")")):
        return False
    if unquoted(text) is not None:
        fits_with_quotes = any(loop.fits(text, item) for item in array.items)
        if fits_with_quotes:  # the quotes may belong to the item
            return False
    parts = pieces(text)
    if len(parts) == 1:
        return True
    # A text with a comma is one item only if one of its parts cannot be an item.
    if not array.schema.get("items"):
        return False
    return not all(_may_be_item(loop, place, part, array) for part in parts)


def _may_be_item(loop: Loop, place: Place, part: str, array: _Array) -> bool:
    for location in array.items:
        outcome = loop.repair(Place(part, location, place.path, place.depth + 1))
        if isinstance(outcome, Repaired):
            return True
    return False


def _is_object_of(value: dict[str, Any], items: list[dict[str, Any]]) -> bool:
    """Return whether *value* is one of the objects that *items* describe, and not a map
    of such objects.
    """
    if all(map(str.isdecimal, value)):
        return False  # {"0": ..., "1": ...} is an array in another form
    declared: set[str] = set()
    for schema in items:
        declared.update(properties_of(schema))
    if declared:
        return any(_is_like_any(name, declared) for name in value)
    if all(isinstance(member, dict) for member in value.values()):
        return False
    for schema in items:
        kinds = schema.get("type")
        if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
            return True
    return False


def _is_like_any(name: str, declared: set[str]) -> bool:
    return name in declared or any(is_close(name, known) for known in declared)


def listed(text: str, items: Iterable[Mapping[str, Any]]) -> list[Any] | None:
    """Return the items that *text* lists with commas, if the subschemas *items* leave
    exactly one reading.

    Either each piece is a member of their ``enum`` and the whole text is not, or there
    are three or more numbers whose commas mark neither thousands nor decimals. Reported
    for MCP tools (teng-lin/notebooklm-py#1680).

    >>> listed("red, green", [{"enum": ["red", "green", "blue"]}])
    ['red', 'green']
    >>> listed("1, 2, 3", [{"type": "integer"}])
    [1, 2, 3]
    >>> listed("red, pink", [{"enum": ["red", "green"]}]) is None
    True
    >>> listed("1,234,567", [{"type": "integer"}]) is None
    True
    """
    parts = [piece.strip() for piece in text.split(",")]
    if len(parts) < 2 or number_in(text, whole=True) is not None:
        return None
    # "1,234,567" is one number, and "1,5,2,5" may be 1.5 and 2.5 with decimal commas.
    is_spaced = ", ".join(parts) == text.strip()
    is_clear = {"number": is_spaced, "integer": is_spaced or len(parts[-1]) != 3}
    readings: list[list[Any]] = []
    for schema in items:
        wanted = str(schema.get("type"))
        if isinstance(schema.get("enum"), list):
            members = _members_listed(text, parts, schema["enum"])
            if members is not None:
                readings.append(members)
        elif is_clear.get(wanted) and len(parts) > 2:
            if not all(map(_PLAIN_NUMBER.fullmatch, parts)):
                return None
            is_whole = wanted == "integer"
            readings.append([number_in(part, whole=is_whole) for part in parts])
    if not readings or None in readings[0]:
        return None
    if any(not is_same(reading, readings[0]) for reading in readings[1:]):
        return None
    return readings[0]


def _members_listed(text: str, parts: list[str], enum: list[Any]) -> list[Any] | None:
    members = {str(member): member for member in enum}
    if not members.keys() >= set(parts) or Options(enum).meant_by(text):
        return None
    return [members[part] for part in parts]


def _unwrapped(loop: Loop, misfit: Misfit) -> Iterator[Attempt]:
    """Yield the content of the object's wrapper key."""
    place = misfit.place
    value: dict[str, Any] = place.value
    has_one_key = not place.path and len(value) == 1  # maybe the schema's title
    if not has_one_key and not holds_wrapper(value):
        return
    locations = misfit.locations
    declared = dict(declared_properties(loop.references, locations))
    if "array" in misfit.kinds:
        # For an array of objects that have an "input", {"input": []} is one of the
        # objects.
        items = item_locations(loop.references, locations)
        declared |= declared_properties(loop.references, items)
    for name in value:
        content = _content(loop, misfit, name, declared)
        if isinstance(content, dict):
            yield Attempt(WRAPPER_OBJECT, {**value, name: "\u2026"}, content)


def _content(loop: Loop, misfit: Misfit, name: str, declared: dict[str, Any]) -> Any:
    """Return the value of the object's key *name*, if the object has no other content."""
    value: dict[str, Any] = misfit.place.value
    is_nested = bool(misfit.place.path)
    content = wrapped(value[name])
    if is_wrapper(value, name, declared):
        # Models send `{"arguments": ""}` for a tool without parameters
        # (qwersyk/Newelle#429).
        is_empty = content in ("", None) and is_call_wrapper(name)
        return {} if is_empty and not is_nested else content
    if is_nested or len(value) > 1 or name in declared:
        return None
    # gpt-oss calls a tool without parameters with `{"": {}}` or `{"_": {}}`.
    if is_blank(name) and content in ("", None, {}):
        return {}
    if isinstance(content, dict) and content:
        return _content_of_only_key(loop, misfit, name, content, declared)
    return None


def _content_of_only_key(
    loop: Loop,
    misfit: Misfit,
    name: str,
    content: dict[str, Any],
    declared: dict[str, Any],
) -> dict[str, Any] | None:
    """Return the *content* of the only key *name*, if all arguments may be under it."""
    # Models mistakenly put all arguments under a blank key, `type` or the schema's
    # title. A function whose only parameter is the model `trip` has the model's title.
    schemas = [
        schema
        for _, schema in in_place(loop.references, misfit.locations, choices=False)
    ]
    titles = ["type", *(schema.get("title") for schema in schemas)]
    if not is_blank(name) and name not in titles:
        return None
    if not content.keys() <= declared.keys():
        return None
    if name.strip() and fold_loosely(name) in map(fold_loosely, declared):
        return None
    if not _has_all_needed(loop, misfit.place, content, schemas):
        return None
    return content


def _has_all_needed(
    loop: Loop, place: Place, content: dict[str, Any], schemas: list[dict[str, Any]]
) -> bool:
    """Return whether *content* has each key that *schemas* require and that has no
    default.
    """
    needed: set[str] = set()
    for schema in schemas:
        needed.update(schema.get("required", ()))
    needed -= content.keys()
    if not needed:
        return True
    places = property_locations(loop.references, [place.location], choices=False)
    for name in needed:
        if default_at(loop.references, places.get(name, ())) is ABSENT:
            return False
    return True
