"""Declared defaults: the values of parameters that a call leaves out."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from skillruntime.contract.coercion.keys import close_names
from skillruntime.contract.coercion.subschemas import ABSENT, EACH_ALONE, default_at, in_place, property_locations
from skillruntime.contract.pointer import Path
from skillruntime.contract.schema import Schema

__all__ = ["Defaults"]

MAX_DEPTH = 8
MAX_COMPARED = 50


@dataclass(frozen=True, slots=True)
class _Level:
    """The defaults of one object: plain ones, ones to copy, and the levels of the members that are there.

    ``names`` are its declared properties where it may hold others, else ``None``.
    """

    names: frozenset[str] | None
    plain: dict[str, Any]
    copied: dict[str, Any]
    members: dict[str, _Level]
    items: dict[str, _Level]

    def __bool__(self) -> bool:
        return bool(self.plain or self.copied or self.members or self.items)


class Defaults:
    """The defaults of one schema, ready to fill in; false if it declares none.

    A default that the schema itself would refuse does not count: so ``"default": null`` of a parameter that is not
    nullable. An object that is absent is not made up; where it is there, its own defaults are filled in. Beside an
    undeclared key that is like the name of an absent parameter, its default is not filled in: ``{"limt": 5}``.
    """

    __slots__ = ("_independent", "_root", "_schema", "_simple")

    def __init__(self, schema: Schema, root: _Level) -> None:
        self._schema = schema
        self._root = root
        self._simple = not (root.copied or root.members or root.items)
        self._independent = self._simple and isinstance(schema.document, dict) and schema.document.keys() <= EACH_ALONE

    @classmethod
    def of(cls, schema: Schema) -> Defaults:
        """Return the defaults that *schema* declares for its properties, and for theirs."""
        return cls(schema, _level(schema, (), 0, {}))

    def __bool__(self) -> bool:
        return bool(self._root)

    def filled(self, arguments: dict[str, Any], misspelt: list[tuple[str, str]] | None = None) -> dict[str, Any]:
        """Return *arguments*, which fit, with the defaults filled in; the same object if none is missing.

        *misspelt* receives each undeclared key with the parameter that it may mean, whose default was left out.

        >>> schema = Schema({"properties": {"limit": {"default": 5}}})
        >>> Defaults.of(schema).filled({"m": 1}), Defaults.of(schema).filled({"limt": 1})
        ({'m': 1, 'limit': 5}, {'limt': 1})
        """
        root = self._root
        # The usual case, on every valid call: two set comparisons and one merge.
        if self._simple and (root.names is None or arguments.keys() <= root.names):
            if root.plain.keys() <= arguments.keys():
                return arguments
            filled = {**arguments, **root.plain, **arguments}
            if self._independent:
                return filled  # each default fits its property, and no other keyword depends on it
        else:
            filled = _fill(arguments, root, [] if misspelt is None else misspelt)
            if filled is arguments:
                return arguments
        return filled if self._schema.is_valid(filled) else arguments


def _fill(value: dict[str, Any], level: _Level, misspelt: list[tuple[str, str]]) -> dict[str, Any]:
    added = {name: default for name, default in level.plain.items() if name not in value}
    added |= {name: copy.deepcopy(default) for name, default in level.copied.items() if name not in value}
    if added and level.names is not None:
        _leave_out_misspelt(value, level.names, added, misspelt)
    for name, below in level.members.items():
        member = value.get(name)
        if isinstance(member, dict):
            filled = _fill(member, below, misspelt)
            if filled is not member:
                added[name] = filled
    for name, below in level.items.items():
        items = value.get(name)
        if isinstance(items, list):
            inside = [_fill(item, below, misspelt) if isinstance(item, dict) else item for item in items]
            if any(new is not old for new, old in zip(inside, items, strict=True)):
                added[name] = inside
    return value | added if added else value


def _leave_out_misspelt(
    value: dict[str, Any], names: frozenset[str], added: dict[str, Any], misspelt: list[tuple[str, str]]
) -> None:
    """Remove from *added* what an undeclared key of *value* may mean, and note both in *misspelt*."""
    undeclared = [key for key in value if key not in names][:MAX_COMPARED]
    for key, name in close_names(undeclared, list(added)):
        if name in added:
            misspelt.append((key, name))
            del added[name]


def _level(schema: Schema, location: Path, depth: int, known: dict[tuple[Path, int], _Level]) -> _Level:
    # Twelve definitions that refer to one another have 12**8 ways down, but few places: each is read once a depth.
    if (location, depth) not in known:
        known[location, depth] = _read_level(schema, location, depth, known)
    return known[location, depth]


def _read_level(schema: Schema, location: Path, depth: int, known: dict[tuple[Path, int], _Level]) -> _Level:
    plain: dict[str, Any] = {}
    copied: dict[str, Any] = {}
    members: dict[str, _Level] = {}
    items: dict[str, _Level] = {}
    references = schema.references
    properties = property_locations(references, [location], choices=False)
    for name, places in properties.items():
        default = default_at(references, places)
        # `default: null` of a parameter that is not nullable means that there is none.
        if default is not ABSENT and all(schema.fits(default, place) for place in places):
            # A caller may change its arguments: a default that is a container is never shared.
            (copied if isinstance(default, dict | list) else plain)[name] = default
        if depth < MAX_DEPTH:
            below = _level(schema, places[0], depth + 1, known)
            if below:
                members[name] = below
            for place, declared in in_place(references, places[:1], choices=False):
                if isinstance(declared.get("items"), dict):
                    below = _level(schema, (*place, "items"), depth + 1, known)
                    if below:
                        items[name] = below
                    break
    # A pattern takes undeclared keys as well, though all others are refused.
    is_closed = any(
        each.get("additionalProperties") is False and not each.get("patternProperties")
        for _, each in in_place(references, [location], choices=False)
    )
    return _Level(None if is_closed else frozenset(properties), plain, copied, members, items)
