"""Locate the subschemas of a schema document and the targets of its references, of
every kind.

A location is the path of a subschema inside its document. The walker reads a schema by
its keywords, so a property named ``$ref`` or ``enum`` is a property. It never fetches:
a target outside the document has no location.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urljoin

from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    Location,
    parse_pointer,
    value_at,
)

Result = TypeVar("Result")

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("if", "then", "else", "not")
# Up to draft 7 `dependencies` had both meanings; 2019-09 split it into two keywords.
_MAPS = {
    "dependentSchemas": "same",
    "dependencies": "same",
    "properties": "name",
    "patternProperties": "pattern",
}
_DEFINITIONS = ("$defs", "definitions")
_REST = ("additionalProperties", "unevaluatedProperties")
_OF_ARRAYS = frozenset(
    {"prefixItems", "items", "additionalItems", "contains", "unevaluatedItems"}
)
# All keywords that hold subschemas (JSON Schema 2020-12, core, 10; older drafts).
_APPLICATORS = frozenset(
    {
        *_IN_PLACE_LISTS,
        *_IN_PLACE,
        *_MAPS,
        *_REST,
        *_DEFINITIONS,
        *_OF_ARRAYS,
        "propertyNames",
    }
)
# Keywords beside a reference count from 2019-09 on (core, 8.2.3.1); older drafts ignore
# them.
_BEFORE_2019 = ("draft-03", "draft-04", "draft-06", "draft-07")


# A tuple, because a typical schema creates a hundred of these, and a dataclass would
# take three times as long.
class Child(NamedTuple):
    """A subschema directly inside another one, and the values that it applies to.

    ``kind`` is ``"same"`` (the value itself), ``"name"`` (the member ``key``),
    ``"pattern"`` (members whose name matches ``key``), ``"rest"`` (members that no
    ``properties`` beside it names), ``"names"`` (the members' names), ``"index"`` (the
    item ``key``), ``"items"`` (the items from ``key`` on) or ``"none"`` (a definition).
    """

    location: Location
    schema: Any
    kind: str
    key: Any = None


def children(schema: Any, location: Location = WHOLE_SCHEMA) -> Iterator[Child]:
    """Yield the subschemas directly inside the *schema* at *location*; values of wrong
    types are skipped.

    >>> schema = {"items": {}, "properties": {"a": {}}}
    >>> [(child.location, child.kind) for child in children(schema)]
    [(('properties', 'a'), 'name'), (('items',), 'items')]
    """
    # Most schemas have none of these keywords.
    if not isinstance(schema, dict) or schema.keys().isdisjoint(_APPLICATORS):
        return
    for keyword in _IN_PLACE_LISTS:
        yield from _listed(schema, location, keyword, "same")
    for keyword in _IN_PLACE:
        if keyword in schema:
            yield Child(Location((*location, keyword)), schema[keyword], "same")
    for keyword, kind in _MAPS.items():
        yield from _named(schema, location, keyword, kind)
    for keyword in _REST:
        if keyword in schema:
            known = frozenset(properties_of(schema))
            yield Child(Location((*location, keyword)), schema[keyword], "rest", known)
    if "propertyNames" in schema:
        yield Child(
            Location((*location, "propertyNames")), schema["propertyNames"], "names"
        )
    if not _OF_ARRAYS.isdisjoint(schema):
        yield from _items(schema, location)
    for keyword in _DEFINITIONS:
        yield from _named(schema, location, keyword, "none")


def _named(
    schema: dict[str, Any], location: Location, keyword: str, kind: str
) -> Iterator[Child]:
    for name, child in properties_of(schema, keyword).items():
        # Up to draft 7 `dependencies` may also have lists of required names.
        if not isinstance(child, list):
            yield Child(Location((*location, keyword, name)), child, kind, name)


def properties_of(schema: Any, keyword: str = "properties") -> Mapping[str, Any]:
    """Return the properties that *schema* itself declares, or the mapping under another
    *keyword*; empty if there is none.

    >>> properties_of({"properties": {"a": {}}})
    {'a': {}}
    >>> properties_of({"properties": 5}), properties_of(True)
    ({}, {})
    """
    if not isinstance(schema, dict):
        return {}
    properties = schema.get(keyword)
    return properties if isinstance(properties, dict) else {}


def _items(schema: dict[str, Any], location: Location) -> Iterator[Child]:
    yield from _listed(schema, location, "prefixItems", "index")
    items = schema.get("items")
    prefix = schema.get("prefixItems")
    beyond = len(prefix) if isinstance(prefix, list) else 0
    if isinstance(items, list):
        # Up to 2019-09 `items` may list one schema for each place, and
        # `additionalItems` applies to the items after them.
        yield from _listed(schema, location, "items", "index")
        beyond = len(items)
    elif items is not None:
        yield Child(Location((*location, "items")), items, "items", beyond)
    if "additionalItems" in schema:
        rest = schema["additionalItems"]
        yield Child(Location((*location, "additionalItems")), rest, "items", beyond)
    for keyword in ("contains", "unevaluatedItems"):
        if keyword in schema:
            yield Child(Location((*location, keyword)), schema[keyword], "items", 0)


def _listed(
    schema: dict[str, Any], location: Location, keyword: str, kind: str
) -> Iterator[Child]:
    subschemas = schema.get(keyword)
    if not isinstance(subschemas, list):
        return
    for index, child in enumerate(subschemas):
        yield Child(Location((*location, keyword, index)), child, kind, index)


class References:
    """The subschemas and references of one schema *document*; ``is_old`` is true up to
    draft 7.

    >>> definitions = {"item": {"$anchor": "item"}}
    >>> references = References({"$ref": "#item", "$defs": definitions})
    >>> references.targets(())
    (('$defs', 'item'),)
    """

    def __init__(self, document: Any, *, dialect: str = "", base: str = "") -> None:
        self.document = document
        self.is_old: bool = any(draft in dialect for draft in _BEFORE_2019)
        self._base = base
        self._bases: dict[Location, str] = {}
        self._locations: dict[str, Location] = {}
        self._anchors: dict[tuple[str, str], Location] = {}
        self._dynamic: dict[str, list[Location]] = {}
        self._recursive: list[Location] = []
        self.known: dict[Hashable, Any] = {}
        """Cached facts about the schema, by their key."""
        self._targets: dict[Location, tuple[Location, ...]] = {}
        self._read(document, base)

    def once(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """Return the cached result of *make*, which is called once for each *key*,
        since a schema never changes.

        Without the cache, a union of fifty branches would be read again for each item
        of an array.
        """
        if key not in self.known:
            self.known[key] = make()
        result: Result = self.known[key]
        return result

    def schema_at(self, location: Location) -> Any:
        """Return the subschema at *location*.

        Raises:
            LookupError: there is no subschema at *location*.
        """
        return value_at(self.document, location)

    def targets(self, location: Location) -> tuple[Location, ...]:
        """Return where the references of the schema at *location* may lead.

        A dynamic reference leads to one of several anchors, depending on the path of
        evaluation; all of them are returned.
        """
        if location not in self._targets:
            self._targets[location] = self._find_targets(location)
        return self._targets[location]

    def _find_targets(self, location: Location) -> tuple[Location, ...]:
        schema = self.schema_at(location)
        if not isinstance(schema, dict):
            return ()
        targets: dict[Location, None] = {}
        for keyword in _REFERENCES:
            reference = schema.get(keyword)
            if not isinstance(reference, str):
                continue
            target = self.resolve(reference, location)
            if target is not None:
                targets[target] = None
            if keyword == "$dynamicRef":
                name = reference.rpartition("#")[2]
                targets |= dict.fromkeys(self._dynamic.get(name, ()))
            elif keyword == "$recursiveRef":
                targets |= dict.fromkeys(self._recursive)
        return tuple(targets)

    def resolve(
        self, reference: str, location: Location = WHOLE_SCHEMA
    ) -> Location | None:
        """Return the location that *reference* in the schema at *location* names;
        ``None`` if it is outside the document.
        """
        # RFC 3986, 5.1: the nearest enclosing identifier is the base of a relative
        # reference.
        uri = self._base_at(location)
        if reference.startswith("#"):
            uri += reference
        else:
            try:
                uri = urljoin(uri, reference)
            except ValueError:  # for example a bracket that is not an IPv6 address
                return None
        uri, _, fragment = uri.partition("#")
        root = self._locations.get(uri)
        if root is None:
            return None
        # RFC 6901, section 6: a pointer in a fragment is percent-encoded.
        fragment = unquote(fragment)
        if not fragment:
            return root
        # A fragment that is not a pointer is the name of an anchor (JSON Schema
        # 2020-12, core, 8.2.2).
        if not fragment.startswith("/"):
            return self._anchors.get((uri, fragment))
        below = _walk(self.schema_at(root), fragment)
        if below is None:
            return None
        return Location((*root, *below))

    def _read(self, schema: Any, base: str) -> None:
        """Record the identifiers and anchors in *schema*.

        This is a loop, not recursion, because the schema may be nested deeply.
        """
        self._locations[base] = WHOLE_SCHEMA
        self._bases[WHOLE_SCHEMA] = base
        pending: list[tuple[Location, Any, str]] = [(WHOLE_SCHEMA, schema, base)]
        while pending:
            location, part, base = pending.pop()
            if not isinstance(part, dict):
                continue
            base = self._identify(location, part, base)
            for child in children(part, location):
                pending.append((child.location, child.schema, base))

    def _identify(self, location: Location, schema: dict[str, Any], base: str) -> str:
        """Record the identifier and the anchors of *schema*, and return the base URI of
        its references.
        """
        identifier = schema.get("$id", schema.get("id") if self.is_old else None)
        # Up to draft 7 a reference hides the keywords beside it, including the
        # identifier (draft 7, section 8.3).
        is_hidden = self.is_old and "$ref" in schema
        if isinstance(identifier, str) and not is_hidden:
            uri, _, fragment = identifier.partition("#")
            if uri:
                try:
                    base = urljoin(base, uri)
                except ValueError:
                    return base
                self._locations.setdefault(base, location)
                self._bases[location] = base
            if fragment:  # an anchor in the form of drafts 4 to 7: "$id": "#name"
                self._anchors.setdefault((base, fragment), location)
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = schema.get(keyword)
            if isinstance(name, str):
                self._anchors.setdefault((base, name), location)
                if keyword == "$dynamicAnchor":
                    self._dynamic.setdefault(name, []).append(location)
        if schema.get("$recursiveAnchor") is True:
            self._recursive.append(location)
        return base

    def _base_at(self, location: Location) -> str:
        for length in range(len(location), -1, -1):
            base = self._bases.get(Location(location[:length]))
            if base is not None:
                return base
        return self._base


def resolve(document: Any, reference: Any) -> Location | None:
    """Return the location that *reference* (``#``, ``#/pointer``) names in *document*;
    ``None`` for any other form.

    >>> resolve({"$defs": {"a/b": [{}]}}, "#/$defs/a~1b/0")
    ('$defs', 'a/b', 0)
    """
    if not isinstance(reference, str):
        return None
    if reference != "#" and not reference.startswith("#/"):
        return None
    return _walk(document, unquote(reference[1:]))


def referenced(document: Any, reference: str) -> Any:
    """Return the part of the schema *document* that *reference*, of any kind, names;
    ``None`` if there is none.

    >>> referenced({"$defs": {"a/b": {"$anchor": "x", "type": "null"}}}, "#x")
    {'$anchor': 'x', 'type': 'null'}
    >>> referenced({"$defs": {"a/b": {"type": "null"}}}, "#/$defs/a~1b")
    {'type': 'null'}
    >>> referenced({}, "http://example.org/x") is None
    True
    """
    location = References(document).resolve(reference)
    if location is None:
        return None
    return value_at(document, location)


def _walk(document: Any, pointer: str) -> Location | None:
    """Return the path of *pointer* in *document*, with array indexes as integers."""
    location: list[str | int] = []
    value = document
    try:
        for token in parse_pointer(pointer):
            step: str | int = token
            if isinstance(value, list) and token.isdecimal():
                step = int(token)
            value = value[step]
            location.append(step)
    except (LookupError, TypeError, ValueError):
        return None
    return Location(tuple(location))
