"""Declared defaults: what stands in the arguments for a parameter that was left out."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from skillruntime.contract.coercion.subschemas import ABSENT, default_at, in_place, property_locations
from skillruntime.contract.pointer import Path
from skillruntime.contract.schema import Schema

__all__ = ["Defaults"]

MAX_DEPTH = 8
_EACH_ALONE = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "$schema", "$defs", "definitions"),
        *("title", "description", "$comment", "default", "examples"),
    }
)
"""Keywords of an object schema by which one property never decides what another may be."""


@dataclass(frozen=True, slots=True)
class _Level:
    """The defaults of one object: plain ones, ones to copy, and the levels of the members that are there."""

    plain: dict[str, Any]
    copied: dict[str, Any]
    members: dict[str, _Level]
    items: dict[str, _Level]

    def __bool__(self) -> bool:
        return bool(self.plain or self.copied or self.members or self.items)


class Defaults:
    """The defaults of one schema, ready to fill in; false if it declares none.

    A default that the schema itself would refuse is none: so ``"default": null`` of a parameter that is not nullable.
    An object that is absent is not made up; where it is there, its own defaults are filled in.
    """

    __slots__ = ("_independent", "_root", "_schema", "_simple")

    def __init__(self, schema: Schema, root: _Level) -> None:
        self._schema = schema
        self._root = root
        self._simple = not (root.copied or root.members or root.items)
        self._independent = self._simple and isinstance(schema.document, dict) and schema.document.keys() <= _EACH_ALONE

    @classmethod
    def of(cls, schema: Schema) -> Defaults:
        """Return the defaults that *schema* declares for its properties, and for theirs."""
        return cls(schema, _level(schema, (), 0))

    def __bool__(self) -> bool:
        return bool(self._root)

    def filled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return *arguments*, which fit, with the defaults filled in; the same object if none is missing.

        >>> schema = Schema({"properties": {"n": {"default": 5}}})
        >>> Defaults.of(schema).filled({"m": 1})
        {'m': 1, 'n': 5}
        """
        if self._simple:
            if self._root.plain.keys() <= arguments.keys():
                return arguments
            filled = {**arguments, **self._root.plain, **arguments}
            if self._independent:
                return filled  # each default fits its property, and nothing else looks at it
        else:
            filled = _fill(arguments, self._root)
            if filled is arguments:
                return arguments
        return filled if self._schema.is_valid(filled) else arguments


def _fill(value: dict[str, Any], level: _Level) -> dict[str, Any]:
    added = {name: default for name, default in level.plain.items() if name not in value}
    added |= {name: copy.deepcopy(default) for name, default in level.copied.items() if name not in value}
    for name, below in level.members.items():
        member = value.get(name)
        if isinstance(member, dict):
            filled = _fill(member, below)
            if filled is not member:
                added[name] = filled
    for name, below in level.items.items():
        items = value.get(name)
        if isinstance(items, list):
            inside = [_fill(item, below) if isinstance(item, dict) else item for item in items]
            if any(new is not old for new, old in zip(inside, items, strict=True)):
                added[name] = inside
    return value | added if added else value


def _level(schema: Schema, location: Path, depth: int) -> _Level:
    plain: dict[str, Any] = {}
    copied: dict[str, Any] = {}
    members: dict[str, _Level] = {}
    items: dict[str, _Level] = {}
    document = schema.document
    for name, places in property_locations(document, [location], choices=False).items():
        default = default_at(document, places)
        if default is not ABSENT and all(schema.fits(default, place) for place in places):
            (copied if isinstance(default, dict | list) else plain)[name] = default
        if depth < MAX_DEPTH:
            below = _level(schema, places[0], depth + 1)
            if below:
                members[name] = below
            for place, declared in in_place(document, places[:1], choices=False):
                if isinstance(declared.get("items"), dict):
                    below = _level(schema, (*place, "items"), depth + 1)
                    if below:
                        items[name] = below
                    break
    return _Level(plain, copied, members, items)
