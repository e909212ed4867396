"""What a schema declares for a place in a value: its properties and defaults, and
whether it is a secret.

Nothing here judges a value; the engine does that. This reads the schema as its author
wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, Protocol, TypeVar

from skillruntime.contract.schemas.plain_json import rebuilt
from skillruntime.contract.schemas.pointer import Path
from skillruntime.contract.schemas.references import Found, References, properties_of
from skillruntime.contract.schemas.secret_names import (
    MASK,
    is_secret_name,
    names_a_secret,
)

# The absence of a declared default; ``None`` is a default that is null.
ABSENT = object()

# Keywords of an object schema by which one property never decides what another may be.
EACH_ALONE = frozenset(
    {
        *(
            "type",
            "properties",
            "required",
            "additionalProperties",
            "$schema",
            "$defs",
            "definitions",
        ),
        *("title", "description", "$comment", "default", "examples"),
    }
)

# What may or may not be in force for a value, and so promises nothing about it.
_CHOICES = ("anyOf", "oneOf", "if", "then", "else")
_MEMBERS = ("patternProperties", "additionalProperties", "unevaluatedProperties")
_ITEMS = ("prefixItems", "items", "additionalItems", "unevaluatedItems", "contains")


Made = TypeVar("Made", covariant=True)


class _Asked(Protocol[Made]):
    def __call__(
        self, references: References, locations: Iterable[Path], *, choices: bool = True
    ) -> Made: ...


def _once(make: Callable[[References, tuple[Path, ...], bool], Found]) -> _Asked[Found]:
    """Return *make* so that it is asked once for the same places of a schema."""

    @wraps(make)
    def asked(
        references: References, locations: Iterable[Path], *, choices: bool = True
    ) -> Found:
        places = tuple(locations)
        return references.once(
            (make, places, choices), lambda: make(references, places, choices)
        )

    return asked


@_once
def in_place(
    references: References, locations: tuple[Path, ...], choices: bool
) -> list[tuple[Path, dict[str, Any]]]:
    """Return the subschemas at *locations* and all that judge the same value, each with
    its location.

    That is what they refer to, and ``allOf``; what a schema says itself comes before
    what it refers to. With *choices*, also what may or may not be in force: ``anyOf``,
    ``oneOf``, ``if``, ``dependentSchemas``.
    """
    pending, found = list(locations)[::-1], dict[Path, dict[str, Any]]()
    while pending:
        location = pending.pop()
        if location in found:
            continue
        try:
            schema = references.schema_at(location)
        except LookupError:
            continue
        if isinstance(schema, dict):
            found[location] = schema
            pending += [
                *references.targets(location),
                *_beside(location, schema, choices),
            ][::-1]
    return list(found.items())


def _beside(location: Path, schema: dict[str, Any], choices: bool) -> Iterator[Path]:
    """Yield the locations of the subschemas of *schema* that apply to the same
    value.
    """
    for keyword in ("allOf", *_CHOICES) if choices else ("allOf",):
        below = schema.get(keyword)
        if isinstance(below, list):
            yield from ((*location, keyword, index) for index in range(len(below)))
        elif below is not None:
            yield (*location, keyword)
    if choices and isinstance(schema.get("dependentSchemas"), dict):
        yield from (
            (*location, "dependentSchemas", name) for name in schema["dependentSchemas"]
        )


@_once
def property_locations(
    references: References, locations: tuple[Path, ...], choices: bool
) -> Mapping[str, list[Path]]:
    """Return where each property is declared by the subschemas at *locations*, or by
    what they refer to.
    """
    found: dict[str, list[Path]] = {}
    for location, schema in in_place(references, locations, choices=choices):
        for name in properties_of(schema):
            found.setdefault(name, []).append((*location, "properties", name))
    return found


@_once
def declared_properties(
    references: References, locations: tuple[Path, ...], choices: bool
) -> Mapping[str, Any]:
    """Return the properties that the subschemas at *locations* declare, by themselves
    or by what they refer to.
    """
    found: dict[str, Any] = {}
    for _, schema in in_place(references, locations, choices=choices):
        for name, declared in properties_of(schema).items():
            found.setdefault(name, declared)
    return found


@_once
def item_locations(
    references: References, locations: tuple[Path, ...], choices: bool
) -> list[Path]:
    """Return where the items of an array at *locations* are described, by its own
    schema or by what that refers to.
    """
    return [
        place
        for where, schema in in_place(references, locations, choices=choices)
        for keyword in ("items", "prefixItems")
        for place in _each(where, schema, keyword, list)
    ]


def places_in(schema: Mapping[str, Any]) -> list[Any]:
    """Return the subschemas that an array's first items have each for itself: a list of
    ``items`` up to 2019-09.
    """
    items = schema.get("prefixItems", schema.get("items"))
    return items if isinstance(items, list) else []


def places_of(references: References, location: Path, where: Path) -> list[Path]:
    """Return the subschemas that surely describe what is at *where* in a value of
    *location*.
    """
    places = [location]
    for token in where:
        found = in_place(references, places, choices=False)
        places = [
            below
            for place, schema in found
            for below in inside_of(place, schema, token)
        ]
    return places


def discriminators(references: References, branch: Path) -> dict[str, list[str]]:
    """Return the members whose text is fixed in the objects of the union's *branch*,
    each with the texts it may have.

    >>> union = {"anyOf": [{"properties": {"kind": {"const": "circle"}}}, {"type": "string"}]}
    >>> [discriminators(References(union), ("anyOf", index)) for index in (0, 1)]
    [{'kind': ['circle']}, {}]
    """
    found: dict[str, list[str]] = {}
    for _, schema in in_place(references, [branch], choices=False):
        for name, declared in properties_of(schema).items():
            if isinstance(declared, dict):
                allowed = (
                    [declared["const"]] if "const" in declared else declared.get("enum")
                )
                # Texts only: a number as a tag may have been sent as a text, so it
                # decides nothing yet.
                if (
                    isinstance(allowed, list)
                    and allowed
                    and all(isinstance(each, str) for each in allowed)
                ):
                    found[name] = allowed
    return found


def default_at(references: References, locations: Iterable[Path]) -> Any:
    """Return the default that the subschemas at *locations* declare, or what they refer
    to, or ``ABSENT``.
    """
    for _, schema in in_place(references, locations, choices=False):
        if "default" in schema:
            return schema["default"]
    return ABSENT


def subschemas(references: References, path: Path) -> list[dict[str, Any]]:
    """Return the subschemas that may apply to the part at *path* of a value; none where
    nothing is declared.
    """
    return [schema for _, schema in judging(references, path)]


def judging(references: References, path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Return the subschemas that may apply to the part at *path* of a value, each with
    its location.
    """
    found = in_place(references, [()])
    for token in path:
        found = in_place(
            references,
            [
                below
                for place, schema in found
                for below in inside_of(place, schema, token)
            ],
        )
    return found


def inside_of(
    location: Path, schema: dict[str, Any], token: str | int
) -> Iterator[Path]:
    """Yield the subschemas of *schema*, which is at *location*, that judge the member
    or item *token* of a value.
    """
    if token in properties_of(schema):
        yield (*location, "properties", token)
        return
    # 2020-12, core, 10.3.1: `items` judges only what is behind the prefix.
    places = schema.get("prefixItems")
    if isinstance(token, int) and isinstance(places, list) and places:
        yield (
            (*location, "prefixItems", token)
            if token < len(places)
            else (*location, "items")
        )
        return
    if isinstance(token, int) or token.isdecimal():
        for keyword in _ITEMS:
            yield from _each(location, schema, keyword, list)
    if isinstance(token, str):
        for keyword in _MEMBERS:
            yield from _each(
                location,
                schema,
                keyword,
                dict if keyword == "patternProperties" else None,
            )


def _each(
    location: Path, schema: dict[str, Any], keyword: str, kind: type[Any] | None
) -> Iterator[Path]:
    """Yield the locations of the subschemas under *keyword*: several if its value is of
    *kind*, else itself.
    """
    value = schema.get(keyword)
    if kind is not None and isinstance(value, kind):
        yield from (
            (*location, keyword, key)
            for key in (range(len(value)) if kind is list else value)
        )
    elif value is not None:
        yield (*location, keyword)


def is_hidden(references: References, path: Path, value: Any = None) -> bool:
    """Whether what is at *path* is a secret (``writeOnly``, ``format: password``) of
    this schema, or may be one.

    So is what has the name of a secret (``api_key``), marked or not. Where nothing is
    declared at *path* the answer is yes: a misspelt ``pasword`` holds a password all
    the same. A text is also hidden where a container of secrets is declared, which it
    may write; of a container see `without_secrets`.

    >>> schema = {"properties": {"user": {"type": "string"}, "key": {"type": "string", "writeOnly": True}}}
    >>> [is_hidden(References(schema), (name,), "abc") for name in ("user", "key", "kye")]
    [False, True, True]
    """
    if any(isinstance(part, str) and is_secret_name(part) for part in path):
        return True
    found = in_place(references, [()])
    for length in range(1, len(path) + 1):
        found = judging(references, path[:length])
        if not found or any(_is_secret(schema) for _, schema in found):
            return True
    return isinstance(value, str) and _holds(references, [place for place, _ in found])


def without_secrets(
    references: References, path: Path, value: Any, found: set[str] | None = None
) -> Any:
    """Return *value*, which is at *path*, with each secret in it replaced by
    ``(secret)``.

    *found* receives the texts and numbers of the secrets; a flag or a few letters say
    nothing, and are in most texts.
    """
    if isinstance(value, dict | list) and not (path and is_hidden(references, path)):
        keys = value if isinstance(value, dict) else range(len(value))
        members = [
            without_secrets(references, (*path, key), value[key], found) for key in keys
        ]
        return (
            dict(zip(value, members, strict=True))
            if isinstance(value, dict)
            else members
        )
    if value is None or not is_hidden(references, path, value):
        return value
    if found is not None:
        rebuilt(
            value,
            lambda each: found.add(
                "" if each is None or isinstance(each, bool) else str(each)
            ),
        )
    return MASK


def secret_texts(references: References, sent: Any) -> set[str]:
    """Return the texts and numbers in *sent*, a value of the whole schema, that are
    secrets.
    """
    found: set[str] = set()
    without_secrets(references, (), sent, found)
    return {text for text in found if len(text) > 3}


def without_texts(value: Any, secrets: set[str]) -> Any:
    """Return *value* with each text masked that holds one of the *secrets*."""
    if isinstance(value, dict):
        return {key: without_texts(member, secrets) for key, member in value.items()}
    if isinstance(value, list):
        return [without_texts(item, secrets) for item in value]
    return (
        MASK
        if isinstance(value, str) and any(secret in value for secret in secrets)
        else value
    )


def _holds(references: References, locations: Iterable[Path]) -> bool:
    """Whether the subschemas at *locations* declare a secret for any part of the
    value.
    """
    texts = [json.dumps(schema) for _, schema in in_place(references, locations)]
    # What a reference leads to is not looked at.
    return any(
        names_a_secret(text)
        or '"writeOnly"' in text
        or '"password"' in text
        or '"$' in text
        for text in texts
    )


def _is_secret(schema: dict[str, Any]) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"
