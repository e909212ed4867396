"""Where the subschemas of a schema document are, and where its references lead: every
kind of reference counts.

A location is the path of a subschema inside its document. The walker reads a schema by
its keywords, so a property that is called ``$ref`` or ``enum`` is a property. Nothing
is fetched: what lies outside the document has no location.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import unquote, urljoin

from skillruntime.contract.schemas.pointer import Path, parse_pointer, value_at

Location: TypeAlias = Path
Found = TypeVar("Found")

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("if", "then", "else", "not")
# Up to draft 7 `dependencies` had both meanings; 2019-09 divided it.
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
# All keywords that hold subschemas (2020-12, core, 10; older drafts).
_APPLICATORS = frozenset(
    {
        *(
            *_IN_PLACE_LISTS,
            *_IN_PLACE,
            *_REST,
            *_DEFINITIONS,
            "dependentSchemas",
            "dependencies",
        ),
        *("properties", "patternProperties", "propertyNames", *_OF_ARRAYS),
    }
)
# From 2019-09 on, keywords beside a reference count (core, 8.2.3.1); before, they are
# ignored.
_BEFORE_2019 = ("draft-03", "draft-04", "draft-06", "draft-07")


class Child(
    NamedTuple
):  # a hundred are made for a schema of usual size; a dataclass would take three times as long
    """A subschema directly inside another one, and which values it applies to.

    ``kind`` is ``"same"`` (the value itself), ``"name"`` (the member ``key``),
    ``"pattern"`` (members whose name matches ``key``), ``"rest"`` (members that no
    ``properties`` beside it names), ``"names"`` (the members' names), ``"index"`` (the
    item ``key``), ``"items"`` (the items from ``key`` on) or ``"none"`` (a definition).
    """

    location: Location
    schema: Any
    kind: str
    key: Any = None


def children(schema: Any, location: Location = ()) -> Iterator[Child]:
    """Yield the subschemas directly inside *schema*, which is at *location*; values of
    wrong types are skipped.

    >>> [(child.location, child.kind) for child in children({"items": {}, "properties": {"a": {}}})]
    [(('properties', 'a'), 'name'), (('items',), 'items')]
    """
    if not isinstance(schema, dict) or schema.keys().isdisjoint(
        _APPLICATORS
    ):  # most schemas of a value have none
        return
    for keyword in _IN_PLACE_LISTS:
        yield from _listed(schema, location, keyword, "same")
    for keyword in _IN_PLACE:
        if keyword in schema:
            yield Child((*location, keyword), schema[keyword], "same")
    for keyword, kind in _MAPS.items():
        yield from _named(schema, location, keyword, kind)
    for keyword in _REST:
        if keyword in schema:
            yield Child(
                (*location, keyword),
                schema[keyword],
                "rest",
                frozenset(properties_of(schema)),
            )
    if "propertyNames" in schema:
        yield Child((*location, "propertyNames"), schema["propertyNames"], "names")
    if not _OF_ARRAYS.isdisjoint(schema):
        yield from _items(schema, location)
    for keyword in _DEFINITIONS:
        yield from _named(schema, location, keyword, "none")


def _named(
    schema: dict[str, Any], location: Location, keyword: str, kind: str
) -> Iterator[Child]:
    for name, child in properties_of(schema, keyword).items():
        if not isinstance(
            child, list
        ):  # up to draft 7 `dependencies` may also have lists of required names
            yield Child((*location, keyword, name), child, kind, name)


def properties_of(schema: Any, keyword: str = "properties") -> Mapping[str, Any]:
    """Return the properties that *schema* itself declares, or what another *keyword*
    has under names.

    >>> properties_of({"properties": {"a": {}}}), properties_of({"properties": 5}), properties_of(True)
    ({'a': {}}, {}, {})
    """
    properties = schema.get(keyword) if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _items(schema: dict[str, Any], location: Location) -> Iterator[Child]:
    yield from _listed(schema, location, "prefixItems", "index")
    items, prefix = schema.get("items"), schema.get("prefixItems")
    beyond = len(prefix) if isinstance(prefix, list) else 0
    if isinstance(
        items, list
    ):  # up to 2019-09: one schema for each place, additionalItems for those behind
        yield from _listed(schema, location, "items", "index")
        beyond = len(items)
    elif items is not None:
        yield Child((*location, "items"), items, "items", beyond)
    if "additionalItems" in schema:
        yield Child(
            (*location, "additionalItems"), schema["additionalItems"], "items", beyond
        )
    for keyword in ("contains", "unevaluatedItems"):
        if keyword in schema:
            yield Child((*location, keyword), schema[keyword], "items", 0)


def _listed(
    schema: dict[str, Any], location: Location, keyword: str, kind: str
) -> Iterator[Child]:
    listed = schema.get(keyword)
    for index, child in enumerate(listed if isinstance(listed, list) else ()):
        yield Child((*location, keyword, index), child, kind, index)


class References:
    """The subschemas and references of one schema *document*; ``is_old`` is true up to
    draft 7.

    >>> references = References({"$ref": "#item", "$defs": {"item": {"$anchor": "item"}}})
    >>> references.targets(())
    (('$defs', 'item'),)
    """

    def __init__(self, document: Any, *, dialect: str = "", base: str = "") -> None:
        self.document = document
        self.is_old = any(draft in dialect for draft in _BEFORE_2019)
        self._base = base
        self._bases: dict[Location, str] = {}
        self._locations: dict[str, Location] = {}
        self._anchors: dict[tuple[str, str], Location] = {}
        self._dynamic: dict[str, list[Location]] = {}
        self._recursive: list[Location] = []
        self._known: dict[Any, Any] = {}
        self._targets: dict[Location, tuple[Location, ...]] = {}
        self._read(document, base)

    def once(self, key: Hashable, make: Callable[[], Found]) -> Found:
        """Return what *make* finds out about the schema, which never changes; it is
        asked once for each *key*.

        A union of fifty branches is asked about for each item of an array.
        """
        if key not in self._known:
            self._known[key] = make()
        found: Found = self._known[key]
        return found

    def schema_at(self, location: Location) -> Any:
        """Return the subschema at *location*.

        Raises:
            LookupError: there is none.
        """
        return value_at(self.document, location)

    def targets(self, location: Location) -> tuple[Location, ...]:
        """Return where the references of the schema at *location* may lead.

        A dynamic reference leads to whichever of several anchors the way of evaluation
        chose: all of them are named.
        """
        if location not in self._targets:
            self._targets[location] = self._find_targets(location)
        return self._targets[location]

    def _find_targets(self, location: Location) -> tuple[Location, ...]:
        schema = self.schema_at(location)
        if not isinstance(schema, dict):
            return ()
        found: dict[Location, None] = {}
        for keyword, reference in _written(schema):
            target = self.resolve(reference, location)
            if target is not None:
                found[target] = None
            if keyword == "$dynamicRef":
                found |= dict.fromkeys(
                    self._dynamic.get(reference.rpartition("#")[2], ())
                )
            elif keyword == "$recursiveRef":
                found |= dict.fromkeys(self._recursive)
        return tuple(found)

    def resolve(self, reference: str, location: Location = ()) -> Location | None:
        """Return the location that *reference*, written in the schema at *location*,
        names; ``None`` if outside.
        """
        # RFC 3986, 5.1: the nearest identifier above is the base of a relative
        # reference.
        base = self._base_at(location)
        try:
            uri = (
                base + reference
                if reference.startswith("#")
                else urljoin(base, reference)
            )
        except ValueError:  # a bracket that is not an IPv6 address, say
            return None
        uri, _, fragment = uri.partition("#")
        root = self._locations.get(uri)
        if root is None:
            return None
        # RFC 6901, section 6: a pointer in a fragment is percent-encoded.
        fragment = unquote(fragment)
        if not fragment:
            return root
        # A fragment that is not a pointer is the name of an anchor (2020-12, core,
        # 8.2.2).
        if not fragment.startswith("/"):
            return self._anchors.get((uri, fragment))
        below = _walk(self.schema_at(root), fragment)
        return None if below is None else (*root, *below)

    def _read(self, schema: Any, base: str) -> None:
        """Note the identifiers and anchors in *schema*; not by recursion, for it may be
        nested deeply.
        """
        self._locations[base] = ()
        self._bases[()] = base
        pending: list[tuple[Location, Any, str]] = [((), schema, base)]
        while pending:
            here, part, base = pending.pop()
            if isinstance(part, dict):
                base = self._identify(here, part, base)
                pending += [
                    (child.location, child.schema, base)
                    for child in children(part, here)
                ]

    def _identify(self, location: Location, schema: dict[str, Any], base: str) -> str:
        identifier = schema.get("$id", schema.get("id") if self.is_old else None)
        # Up to draft 7 a reference hides the keywords beside it, the identifier too
        # (draft 7, section 8.3).
        if isinstance(identifier, str) and not (self.is_old and "$ref" in schema):
            uri, _, fragment = identifier.partition("#")
            if uri:
                try:
                    base = urljoin(base, uri)
                except ValueError:
                    return base
                self._locations.setdefault(base, location)
                self._bases[location] = base
            if fragment:  # an anchor as drafts 4 to 7 write it: "$id": "#name"
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
            base = self._bases.get(location[:length])
            if base is not None:
                return base
        return self._base


def _written(schema: Any) -> Iterator[tuple[str, str]]:
    """Yield the keywords and the texts of the references that *schema* makes."""
    for keyword in _REFERENCES if isinstance(schema, dict) else ():
        if isinstance(schema.get(keyword), str):
            yield keyword, schema[keyword]


def resolve(document: Any, reference: Any) -> Location | None:
    """Return the location that *reference* (``#``, ``#/pointer``) names in *document*;
    ``None`` for any other form.

    >>> resolve({"$defs": {"a/b": [{}]}}, "#/$defs/a~1b/0")
    ('$defs', 'a/b', 0)
    """
    if not isinstance(reference, str) or not (
        reference == "#" or reference.startswith("#/")
    ):
        return None
    return _walk(document, unquote(reference[1:]))


def referenced(document: Any, reference: str) -> Any:
    """Return the part of the schema *document* that *reference* names, of whatever
    kind; ``None`` if there is none.

    >>> referenced({"$defs": {"a/b": {"$anchor": "x", "type": "null"}}}, "#x")
    {'$anchor': 'x', 'type': 'null'}
    >>> referenced({"$defs": {"a/b": {"type": "null"}}}, "#/$defs/a~1b"), referenced({}, "http://example.org/x")
    ({'type': 'null'}, None)
    """
    location = References(document).resolve(reference)
    return None if location is None else value_at(document, location)


def _walk(document: Any, pointer: str) -> Location | None:
    """Return the path that *pointer* leads to in *document*, with the indexes of arrays
    as integers.
    """
    location: list[str | int] = []
    value = document
    try:
        for token in parse_pointer(pointer):
            step: str | int = (
                int(token) if isinstance(value, list) and token.isdecimal() else token
            )
            value = value[step]
            location.append(step)
    except (LookupError, TypeError, ValueError):
        return None
    return tuple(location)
