"""Fill in declared defaults: the values of parameters that a call omits."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from skillruntime.contract.schemas.names import close_names
from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA, Location
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import (
    ABSENT,
    EACH_ALONE,
    default_at,
    in_place,
    property_locations,
)

MAX_DEPTH = 8
MAX_COMPARED = 50


class _Level(NamedTuple):
    """The defaults of one object, and the levels of the objects in its members; for an
    array, the level of its items.

    ``names`` are the declared properties if the object accepts others too, else
    ``None``.
    """

    names: frozenset[str] | None
    defaults: dict[str, Any]
    below: dict[str, _Level]


class Defaults:
    """The defaults of one schema, ready to fill in; false if it declares none.

    A default that the schema itself would refuse is ignored, such as ``"default":
    null`` of a parameter that is not nullable. An absent object is not created; in a
    present object its own defaults are filled in. A parameter is not filled in if its
    name is similar to an undeclared key: ``{"limt": 5}``.
    """

    __slots__ = ("_independent", "_root", "_schema", "_simple")

    def __init__(self, schema: Schema, root: _Level) -> None:
        self._schema = schema
        self._root = root
        has_containers = any(
            isinstance(default, dict | list) for default in root.defaults.values()
        )
        self._simple = not root.below and not has_containers
        self._independent = False
        if self._simple and isinstance(schema.document, dict):
            self._independent = schema.document.keys() <= EACH_ALONE

    @classmethod
    def of(cls, schema: Schema) -> Defaults:
        """Return the defaults that *schema* declares for its properties, and for
        properties nested in them.
        """
        return cls(schema, _level(schema, WHOLE_SCHEMA, 0, {}))

    def __bool__(self) -> bool:
        return bool(self._root.defaults or self._root.below)

    def filled(
        self, arguments: dict[str, Any], misspelt: list[tuple[str, str]] | None = None
    ) -> dict[str, Any]:
        """Return the fitting *arguments* with the defaults filled in; the same object
        if none is missing.

        *misspelt* receives each undeclared key with the parameter that it may mean; the
        default of that parameter is left out.

        >>> defaults = Defaults.of(Schema({"properties": {"limit": {"default": 5}}}))
        >>> defaults.filled({"m": 1}), defaults.filled({"limt": 1})
        ({'m': 1, 'limit': 5}, {'limt': 1})
        """
        root = self._root
        filled: dict[str, Any]
        # The usual case, in every valid call, costs two set comparisons and one merge.
        if self._simple and (root.names is None or arguments.keys() <= root.names):
            if root.defaults.keys() <= arguments.keys():
                return arguments
            filled = {**arguments, **root.defaults, **arguments}
            # Each default fits its property, and no other keyword depends on it.
            if self._independent:
                return filled
        else:
            filled = _fill(arguments, root, [] if misspelt is None else misspelt)
            if filled is arguments:
                return arguments
        if self._schema.is_valid(filled):
            return filled
        return arguments


def _fill(value: Any, level: _Level, misspelt: list[tuple[str, str]]) -> Any:
    if isinstance(value, list):
        items = [_fill(item, level, misspelt) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return items
    if not isinstance(value, dict):
        return value
    # Copy each default, because a caller may change its arguments, and must not change
    # a shared container.
    added = {
        name: copy.deepcopy(default)
        for name, default in level.defaults.items()
        if name not in value
    }
    if added and level.names is not None:
        undeclared = [key for key in value if key not in level.names]
        _leave_out_misspelt(undeclared[:MAX_COMPARED], added, misspelt)
    for name in level.below.keys() & value.keys():
        filled = _fill(value[name], level.below[name], misspelt)
        if filled is not value[name]:
            added[name] = filled
    if not added:
        return value
    return value | added


def _leave_out_misspelt(
    undeclared: list[str], added: dict[str, Any], misspelt: list[tuple[str, str]]
) -> None:
    """Remove from *added* the parameters that the *undeclared* keys may mean, and
    append each pair to *misspelt*.
    """
    for key, name in close_names(undeclared, list(added)):
        if name in added:
            misspelt.append((key, name))
            del added[name]


def _level(
    schema: Schema,
    location: Location,
    depth: int,
    known: dict[tuple[Location, int], _Level],
) -> _Level:
    # Twelve definitions that refer to one another have 12**8 paths but few locations,
    # so read each location only once per depth.
    if (location, depth) not in known:
        known[location, depth] = _read_level(schema, location, depth, known)
    return known[location, depth]


def _read_level(
    schema: Schema,
    location: Location,
    depth: int,
    known: dict[tuple[Location, int], _Level],
) -> _Level:
    defaults: dict[str, Any] = {}
    below: dict[str, _Level] = {}
    references = schema.references
    properties = property_locations(references, [location], choices=False)
    for name, places in properties.items():
        default = default_at(references, places)
        # `default: null` of a parameter that is not nullable means that there is none.
        if default is not ABSENT and all(
            schema.fits(default, place) for place in places
        ):
            defaults[name] = default
        if depth < MAX_DEPTH:
            place = _items_or_itself(references, places[0])
            level = _level(schema, place, depth + 1, known)
            if level.defaults or level.below:
                below[name] = level
    names: frozenset[str] | None = frozenset(properties)
    if _is_closed(references, location):
        names = None
    return _Level(names, defaults, below)


def _items_or_itself(references: References, location: Location) -> Location:
    """Return the location that describes the items of an array at *location*, or
    *location* itself if it is not an array.
    """
    for place, schema in in_place(references, [location], choices=False):
        if isinstance(schema.get("items"), dict):
            return Location((*place, "items"))
    return location


def _is_closed(references: References, location: Location) -> bool:
    """Return whether the object at *location* refuses all undeclared keys."""
    for _, schema in in_place(references, [location], choices=False):
        # A pattern also accepts undeclared keys, although all other keys are refused.
        has_pattern = bool(schema.get("patternProperties"))
        if schema.get("additionalProperties") is False and not has_pattern:
            return True
    return False
