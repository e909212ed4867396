"""Find what a schema declares for a place in a value: properties, defaults, secrets.

This module does not judge values, as the engine does; it reads the schema as its author
wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, Protocol, TypeVar

from skillruntime.contract.schemas.names import may_wrap
from skillruntime.contract.schemas.plain_json import rebuilt, type_name
from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    WHOLE_VALUE,
    Location,
    ValuePath,
)
from skillruntime.contract.schemas.references import (
    References,
    Result,
    children,
    properties_of,
)
from skillruntime.contract.schemas.secret_names import (
    MASK,
    is_secret_name,
    names_a_secret,
)

# Stands for the absence of a declared default; ``None`` is a default of null.
ABSENT = object()

# Keywords of an object schema that validate each property independently of the others.
EACH_ALONE = frozenset(
    {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "$schema",
        "$defs",
        "definitions",
        "title",
        "description",
        "$comment",
        "default",
        "examples",
    }
)

# The types that a schema without constraints accepts.
ANY_KIND = frozenset(
    {"string", "integer", "number", "boolean", "array", "object", "null"}
)
# The keywords by which a schema leaves its types to other schemas.
_REFERRING = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"})
# The keywords of a number or boolean with which a text in its place has only one
# meaning: no enum, format or reference.
_OF_NUMBERS = EACH_ALONE | {
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
}
# Keywords whose subschemas may or may not apply to a value, and so do not guarantee
# anything about it.
_CHOICES = ("anyOf", "oneOf", "if", "then", "else")
_REST = ("additionalProperties", "unevaluatedProperties")
_UNIONS = (("anyOf",), ("oneOf",))
_ITEMS = ("prefixItems", "items", "additionalItems", "unevaluatedItems", "contains")


_Returned = TypeVar("_Returned", covariant=True)


class _OfLocations(Protocol[_Returned]):
    def __call__(
        self,
        references: References,
        locations: Iterable[Location],
        *,
        choices: bool = True,
    ) -> _Returned: ...


def _once(
    make: Callable[[References, tuple[Location, ...], bool], Result],
) -> _OfLocations[Result]:
    """Return *make* wrapped in a cache, so that it is called once for the same
    locations of a schema.
    """

    @wraps(make)
    def made_once(
        references: References, locations: Iterable[Location], *, choices: bool = True
    ) -> Result:
        places = tuple(locations)
        key = (make, places, choices)
        found: Result | None = references.known.get(key)
        if found is None:
            found = references.known[key] = make(references, places, choices)
        return found

    return made_once


@_once
def in_place(
    references: References, locations: tuple[Location, ...], choices: bool
) -> list[tuple[Location, dict[str, Any]]]:
    """Return the subschemas at *locations* and all others that judge the same value,
    each with its location.

    The others are the targets of references and the subschemas of ``allOf``; a schema
    comes before its targets. With *choices*, subschemas that may or may not apply are
    included: ``anyOf``, ``oneOf``, ``if``, ``dependentSchemas``.
    """
    schemas: dict[Location, dict[str, Any]] = {}
    pending = list(reversed(locations))
    while pending:
        location = pending.pop()
        if location in schemas:
            continue
        try:
            schema = references.schema_at(location)
        except LookupError:
            continue
        if isinstance(schema, dict):
            schemas[location] = schema
            following = [*references.targets(location)]
            following += _beside(location, schema, choices)
            pending += reversed(following)
    return list(schemas.items())


def _beside(
    location: Location, schema: dict[str, Any], choices: bool
) -> Iterator[Location]:
    """Yield the locations of the subschemas of *schema* that apply to the same
    value.
    """
    keywords = ("allOf", *_CHOICES) if choices else ("allOf",)
    for keyword in keywords:
        below = schema.get(keyword)
        if isinstance(below, list):
            for index in range(len(below)):
                yield Location((*location, keyword, index))
        elif below is not None:
            yield Location((*location, keyword))
    if choices:
        for name in properties_of(schema, "dependentSchemas"):
            yield Location((*location, "dependentSchemas", name))


@_once
def property_locations(
    references: References, locations: tuple[Location, ...], choices: bool
) -> Mapping[str, list[Location]]:
    """Return the locations where each property is declared by the subschemas at
    *locations* or their references.
    """
    places: dict[str, list[Location]] = {}
    for location, schema in in_place(references, locations, choices=choices):
        for name in properties_of(schema):
            places.setdefault(name, []).append(
                Location((*location, "properties", name))
            )
    return places


@_once
def declared_properties(
    references: References, locations: tuple[Location, ...], choices: bool
) -> Mapping[str, Any]:
    """Return the properties that the subschemas at *locations* declare, themselves or
    through references.
    """
    properties: dict[str, Any] = {}
    for _, schema in in_place(references, locations, choices=choices):
        for name, declared in properties_of(schema).items():
            properties.setdefault(name, declared)
    return properties


@_once
def required_properties(
    references: References, locations: tuple[Location, ...], choices: bool
) -> frozenset[str]:
    """Return the names that the subschemas at *locations* require, themselves or
    through references.
    """
    names: set[str] = set()
    for _, schema in in_place(references, locations, choices=choices):
        required = schema.get("required")
        if isinstance(required, list):
            names.update(name for name in required if isinstance(name, str))
    return frozenset(names)


@_once
def item_locations(
    references: References, locations: tuple[Location, ...], choices: bool
) -> list[Location]:
    """Return the locations that describe the items of an array at *locations*, directly
    or through references.
    """
    places: list[Location] = []
    for location, schema in in_place(references, locations, choices=choices):
        places += _locations_under(location, schema, "items", list)
        places += _locations_under(location, schema, "prefixItems", list)
    return places


@_once
def rest_locations(
    references: References, locations: tuple[Location, ...], choices: bool
) -> list[Location]:
    """Return the locations that describe the undeclared members of an object at
    *locations*, directly or through references.
    """
    places: list[Location] = []
    for location, schema in in_place(references, locations, choices=choices):
        places += _locations_under(location, schema, "patternProperties", dict)
        for keyword in _REST:
            places += _locations_under(location, schema, keyword)
    return places


@_once
def is_map(
    references: References, locations: tuple[Location, ...], choices: bool
) -> bool:
    """Return whether the object at *locations* describes members under any key, or
    under a pattern of keys. Then an undeclared key is data, not a misspelled name.

    >>> references = References({"additionalProperties": {"type": "integer"}})
    >>> is_map(references, [()]), is_map(References({}), [()])
    (True, False)
    """
    for _, schema in in_place(references, locations, choices=choices):
        if schema.get("patternProperties"):
            return True
        # `true` and `{}` do not describe members: they only say that the object is
        # open.
        for keyword in _REST:
            rest = schema.get(keyword)
            if isinstance(rest, dict) and rest:
                return True
    return False


def takes_undeclared_keys(references: References) -> bool:
    """Return whether an object of the schema declares properties and accepts other keys
    too, itself or through another branch of a union. If not, objects with declared
    properties never have undeclared keys in a fitting value.
    """
    known: bool | None = references.known.get("open objects")
    if known is None:
        known = references.known["open objects"] = _has_open_object(references)
    return known


def _has_open_object(references: References) -> bool:
    pending: list[tuple[Any, Location]] = [(references.document, WHOLE_SCHEMA)]
    while pending:
        schema, location = pending.pop()
        if properties_of(schema) and not _is_closed(schema):
            return True
        below = list(children(schema, location))
        branches = [child for child in below if child.location[-2:-1] in _UNIONS]
        objects = 0
        for branch in branches:
            objects += "object" in kinds_taken_by(references, [branch.location])
        if objects > 1:
            return True
        pending += [(child.schema, child.location) for child in below]
    return False


def _is_closed(schema: dict[str, Any]) -> bool:
    if schema.get("patternProperties"):
        return False
    return any(schema.get(keyword) is False for keyword in _REST)


def places_in(schema: Mapping[str, Any]) -> list[Any]:
    """Return the subschemas of an array's first items, one for each item, from
    ``prefixItems`` or, up to 2019-09, from a list in ``items``.
    """
    items = schema.get("prefixItems", schema.get("items"))
    return items if isinstance(items, list) else []


def places_of(
    references: References, location: Location, where: ValuePath
) -> list[Location]:
    """Return the subschemas that certainly apply to the part at *where* of a value of
    the subschema at *location*.
    """
    places = [location]
    for token in where:
        schemas = in_place(references, places, choices=False)
        places = []
        for place, schema in schemas:
            places += inside_of(place, schema, token)
    return places


@_once
def kinds_judged_alone(
    references: References, locations: tuple[Location, ...], choices: bool
) -> dict[str, Any]:
    """Return the type of each property at *locations*, a single location, if its
    properties are judged independently.

    The type is ``None`` for a property with further constraints. A property is left out
    if models wrap all arguments under its name.
    """
    [location] = locations
    schema = references.schema_at(location)
    if not isinstance(schema, dict) or not schema.keys() <= EACH_ALONE:
        return {}
    kinds: dict[str, Any] = {}
    for name, declared in properties_of(schema).items():
        if may_wrap(name):
            continue
        is_plain = isinstance(declared, dict) and declared.keys() <= _OF_NUMBERS
        kinds[name] = declared.get("type") if is_plain else None
    return kinds


def kinds_taken_by(references: References, locations: Iterable[Location]) -> set[str]:
    """Return the types of the values that any of the subschemas at *locations* may
    accept.
    """
    kinds: set[str] = set()
    for location in locations:
        kinds |= _kinds_taken(references, [location])
    return kinds


@_once
def _kinds_taken(
    references: References, locations: tuple[Location, ...], choices: bool
) -> frozenset[str]:
    kinds: set[str] = set()
    for _, schema in in_place(references, locations, choices=choices):
        types = schema.get("type")
        if types is not None:
            kinds |= set(types if isinstance(types, list) else [types])
        elif isinstance(schema.get("enum"), list):
            kinds |= set(map(type_name, schema["enum"]))
        elif "const" in schema:
            kinds.add(type_name(schema["const"]))
        elif schema.keys().isdisjoint(_REFERRING):
            return ANY_KIND
    return frozenset(kinds) or ANY_KIND


def discriminators(references: References, branch: Location) -> dict[str, list[str]]:
    """Return the members with fixed texts in the objects of the union's *branch*, each
    with its allowed texts.

    >>> circle = {"properties": {"kind": {"const": "circle"}}}
    >>> references = References({"anyOf": [circle, {"type": "string"}]})
    >>> [discriminators(references, ("anyOf", index)) for index in (0, 1)]
    [{'kind': ['circle']}, {}]
    """
    fixed: dict[str, list[str]] = {}
    for _, schema in in_place(references, [branch], choices=False):
        for name, declared in properties_of(schema).items():
            texts = _fixed_texts(declared)
            if texts:
                fixed[name] = texts
    return fixed


def _fixed_texts(schema: Any) -> list[str]:
    """Return the texts that *schema* allows, or an empty list if it allows other values
    too.
    """
    if not isinstance(schema, dict):
        return []
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(allowed, list):
        return []
    # Only texts decide: a numeric tag may have been sent as a text.
    if not all(isinstance(value, str) for value in allowed):
        return []
    return allowed


def default_at(references: References, locations: Iterable[Location]) -> Any:
    """Return the default that the subschemas at *locations* declare, themselves or
    through references; ``ABSENT`` if there is none.
    """
    for _, schema in in_place(references, locations, choices=False):
        if "default" in schema:
            return schema["default"]
    return ABSENT


def subschemas(references: References, path: ValuePath) -> list[dict[str, Any]]:
    """Return the subschemas that may apply to the part at *path* of a value; none if
    the part is not declared.
    """
    return [schema for _, schema in judging(references, path)]


def judging(
    references: References, path: ValuePath
) -> list[tuple[Location, dict[str, Any]]]:
    """Return the subschemas that may apply to the part at *path* of a value, each with
    its location.
    """
    schemas = in_place(references, [WHOLE_SCHEMA])
    for token in path:
        places: list[Location] = []
        for place, schema in schemas:
            places += inside_of(place, schema, token)
        schemas = in_place(references, places)
    return schemas


def inside_of(
    location: Location, schema: dict[str, Any], token: str | int
) -> Iterator[Location]:
    """Yield the locations inside *schema*, which is at *location*, that judge the
    member or item *token* of a value.
    """
    if token in properties_of(schema):
        yield Location((*location, "properties", token))
        return
    # JSON Schema 2020-12, core, 10.3.1: `items` judges only the items after the prefix.
    places = schema.get("prefixItems")
    if isinstance(token, int) and isinstance(places, list) and places:
        if token < len(places):
            yield Location((*location, "prefixItems", token))
        else:
            yield Location((*location, "items"))
        return
    if isinstance(token, int) or token.isdecimal():
        for keyword in _ITEMS:
            yield from _locations_under(location, schema, keyword, list)
    if isinstance(token, str):
        yield from _locations_under(location, schema, "patternProperties", dict)
        for keyword in _REST:
            yield from _locations_under(location, schema, keyword)


def _locations_under(
    location: Location,
    schema: dict[str, Any],
    keyword: str,
    kind: type[list[Any] | dict[str, Any]] | None = None,
) -> Iterator[Location]:
    """Yield the locations of the subschemas under *keyword*: one for each member if its
    value is of type *kind*, else that of the value itself.
    """
    value = schema.get(keyword)
    if kind is not None and isinstance(value, kind):
        keys = range(len(value)) if isinstance(value, list) else value
        for key in keys:
            yield Location((*location, keyword, key))
    elif value is not None:
        yield Location((*location, keyword))


def is_hidden(references: References, path: ValuePath, value: Any = None) -> bool:
    """Return whether the part at *path* is a secret (``writeOnly``, ``format:
    password``) of this schema, or may be one.

    A part with the name of a secret (``api_key``) is hidden, marked or not. An
    undeclared part is hidden too: a misspelled ``pasword`` still contains a password. A
    text is also hidden if a container of secrets is declared in its place, since the
    text may be that container as JSON. For a container see `without_secrets`.

    >>> user, key = {"type": "string"}, {"type": "string", "writeOnly": True}
    >>> references = References({"properties": {"user": user, "key": key}})
    >>> [is_hidden(references, (name,), "abc") for name in ("user", "key", "kye")]
    [False, True, True]
    """
    if any(isinstance(part, str) and is_secret_name(part) for part in path):
        return True
    schemas = in_place(references, [WHOLE_SCHEMA])
    for length in range(1, len(path) + 1):
        schemas = judging(references, ValuePath(path[:length]))
        if not schemas or any(_is_secret(schema) for _, schema in schemas):
            return True
    if not isinstance(value, str):
        return False
    return _holds_secret(references, [place for place, _ in schemas])


def without_secrets(
    references: References, path: ValuePath, value: Any, found: set[str] | None = None
) -> Any:
    """Return *value*, found at *path*, with each secret in it replaced by ``(secret)``.

    *found* receives the texts and numbers of the secrets, but not flags: ``true`` does
    not reveal a secret, and many texts contain it.
    """
    if isinstance(value, dict | list) and not (path and is_hidden(references, path)):
        if isinstance(value, dict):
            return {
                key: without_secrets(references, ValuePath((*path, key)), member, found)
                for key, member in value.items()
            }
        return [
            without_secrets(references, ValuePath((*path, index)), item, found)
            for index, item in enumerate(value)
        ]
    if value is None or not is_hidden(references, path, value):
        return value
    if found is not None:
        rebuilt(value, lambda scalar: found.add(_to_text(scalar)))
    return MASK


def _to_text(scalar: Any) -> str:
    if scalar is None or isinstance(scalar, bool):
        return ""
    return str(scalar)


def secret_texts(references: References, sent: Any) -> set[str]:
    """Return the texts and numbers in *sent*, a value of the whole schema, that are
    secrets. Those of up to three letters are left out, since many texts contain them.
    """
    found: set[str] = set()
    without_secrets(references, WHOLE_VALUE, sent, found)
    return {text for text in found if len(text) > 3}


def without_texts(value: Any, secrets: set[str]) -> Any:
    """Return *value* with each text masked that contains one of the *secrets*."""
    if isinstance(value, dict):
        return {key: without_texts(member, secrets) for key, member in value.items()}
    if isinstance(value, list):
        return [without_texts(item, secrets) for item in value]
    if isinstance(value, str) and any(secret in value for secret in secrets):
        return MASK
    return value


def _holds_secret(references: References, locations: Iterable[Location]) -> bool:
    """Return whether the subschemas at *locations* may declare a secret for any part of
    the value.
    """
    for _, schema in in_place(references, locations):
        text = json.dumps(schema)
        # `"$` may begin a reference, whose target is not searched.
        if any(mark in text for mark in ('"writeOnly"', '"password"', '"$')):
            return True
        if names_a_secret(text):
            return True
    return False


def _is_secret(schema: dict[str, Any]) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"
