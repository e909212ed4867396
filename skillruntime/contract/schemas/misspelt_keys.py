"""Find the keys of a valid value that are misspellings of a declared property:
``dryRun`` for ``dry_run``, in an object that accepts any key.

Such a key is valid, and the tool never reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from skillruntime.contract.schemas.names import by_fold, fold_loosely, renames
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    WHOLE_VALUE,
    Location,
    ValuePath,
    format_pointer,
)
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import (
    declared_properties,
    is_map,
    item_locations,
    property_locations,
    rest_locations,
)

# The number of nested arrays and maps whose schemas are searched for objects with
# declared properties; below that depth, every value is inspected.
MAX_LEVELS = 4


class MisspeltKey(NamedTuple):
    """An undeclared *key* of the object at *path* that differs from the declared *name*
    only in case, separators and form.

    The object lacks that name, or has another value under it. *is_clear* says that the
    key cannot mean another name, that no other key can mean this name, and that the key
    does not belong to a map.
    """

    path: ValuePath
    key: str
    name: str
    is_clear: bool

    @property
    def pointer(self) -> str:
        """The key's place as a JSON Pointer."""
        return format_pointer((*self.path, self.key))


class _Part(NamedTuple):
    """A part of the value, its path, and its subschemas."""

    value: Any
    path: ValuePath
    places: tuple[Location, ...]


class KnownKeys:
    """The declared keys of the objects at *places*, and the locations of the schemas
    for the objects inside them.

    ``names`` are the declared keys. ``below`` has the declared members that may contain
    objects with declared keys; ``items`` and ``rest`` are the locations for such items
    of an array and for such undeclared members. `inside` reads a level only when it is
    needed, since a schema may be recursive.
    """

    __slots__ = ("_inside", "_references", "below", "items", "names", "rest")

    def __init__(
        self, references: References, places: Sequence[Location] = (WHOLE_SCHEMA,)
    ) -> None:
        properties = property_locations(references, places)
        self.names: frozenset[str] = frozenset(properties)
        self.below: list[tuple[str, Sequence[Location]]] = []
        for name, locations in properties.items():
            if _hold_objects(references, locations, MAX_LEVELS):
                self.below.append((name, locations))
        self.items: list[Location] = item_locations(references, places)
        if not _hold_objects(references, self.items, MAX_LEVELS):
            self.items = []
        self.rest: list[Location] = rest_locations(references, places)
        if not _hold_objects(references, self.rest, MAX_LEVELS):
            self.rest = []
        self._references = references
        self._inside: dict[int, KnownKeys] = {}

    def inside(self, places: Sequence[Location]) -> KnownKeys:
        """Return the declared keys at *places*, which are ``items``, ``rest`` or the
        locations of a member in ``below``.
        """
        known = self._inside.get(id(places))
        if known is None:
            known = self._inside[id(places)] = KnownKeys(self._references, places)
        return known


def _hold_objects(
    references: References, places: Sequence[Location], levels: int
) -> bool:
    """Return whether a value at *places*, or a value inside it, may be an object with
    declared properties. The answer is also true if more than *levels* arrays and maps
    are nested.
    """
    if not places:
        return False
    if levels == 0 or property_locations(references, places):
        return True
    inside = [*item_locations(references, places), *rest_locations(references, places)]
    return _hold_objects(references, inside, levels - 1)


def are_declared(value: Any, known: KnownKeys) -> bool:
    """Return whether *known* declares all keys of *value*.

    A quick test before `misspelt_keys`: nearly every valid call passes it.
    """
    pending = [(value, known)]
    while pending:
        part, known = pending.pop()
        if isinstance(part, dict):
            if not part.keys() <= known.names:
                if known.names:
                    return False
                if known.rest:
                    inside = known.inside(known.rest)
                    pending += [(member, inside) for member in part.values()]
            for name, places in known.below:
                if name in part:
                    pending.append((part[name], known.inside(places)))
        elif isinstance(part, list) and known.items:
            inside = known.inside(known.items)
            pending += [(item, inside) for item in part]
    return True


def misspelt_keys(value: Any, schema: Schema) -> list[MisspeltKey]:
    """Return the undeclared keys of *value* that misspell a declared property, if that
    property is absent or has another value. *value* must fit *schema*.

    >>> schema = Schema({"properties": {"dry_run": {"type": "boolean"}}})
    >>> [(key, name) for _, key, name, _ in misspelt_keys({"dryRun": True}, schema)]
    [('dryRun', 'dry_run')]
    """
    references = schema.references
    found: list[MisspeltKey] = []
    if not isinstance(value, (dict, list)):
        return found  # a repair may have produced a scalar, which does not fit
    pending = [_Part(value, WHOLE_VALUE, (WHOLE_SCHEMA,))]
    while pending:
        part = pending.pop()
        if isinstance(part.value, dict):
            found += _misspelt_in(part, references)
        pending += reversed(list(_parts_below(part, references)))
    return found


def _parts_below(part: _Part, references: References) -> Iterator[_Part]:
    """Yield the containers inside *part*; all items of an array share the same
    subschemas.
    """
    if isinstance(part.value, list):
        items = tuple(item_locations(references, part.places))
        for index, item in enumerate(part.value):
            if isinstance(item, (dict, list)):
                yield _Part(item, ValuePath((*part.path, index)), items)
        return
    for name, member in part.value.items():
        if isinstance(member, (dict, list)):
            declared = property_locations(references, part.places).get(name)
            places = declared or rest_locations(references, part.places)
            yield _Part(member, ValuePath((*part.path, name)), tuple(places))


def _misspelt_in(part: _Part, references: References) -> Iterator[MisspeltKey]:
    """Yield the misspelled keys of the object *part*.

    The properties of every branch of a union count, even of a branch that refuses the
    object, because any of them may be meant.
    """
    declared = declared_properties(references, part.places)
    undeclared = [key for key in part.value if key not in declared]
    if not undeclared or not declared:
        return
    clear: dict[str, str] = {}
    names = set(declared)
    if is_map(references, part.places):
        # In a map, `path` and `PATH` may be two separate keys.
        names -= part.value.keys()
    else:
        clear = renames(undeclared, declared, part.value)
    spellings = by_fold(sorted(names))
    for key in undeclared:
        folded = fold_loosely(key)
        if not folded:
            continue
        name = _name_for(key, part.value, spellings.get(folded, []))
        if name is not None:
            yield MisspeltKey(part.path, key, name, clear.get(key) == name)


def _name_for(key: str, members: dict[str, Any], spellings: list[str]) -> str | None:
    """Return the first of *spellings* that *members* lack, else the first whose value
    differs from that of *key*; ``None`` if there is none.

    If both have the same value, the call loses no information.
    """
    for name in spellings:
        if name not in members:
            return name
    for name in spellings:
        if not is_same(members[name], members[key]):
            return name
    return None
