"""The steps that change where values are: rename, move, wrap, unwrap, nest and their opposites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from skillruntime.contract.migration.locations import (
    Change,
    StepRefused,
    common_prefix,
    copy_json,
    each,
    items_at,
    objects_at,
    put,
    put_down,
)
from skillruntime.contract.migration.step_fields import StepFields
from skillruntime.contract.pointer import format_pointer

__all__ = ["SHAPE_STEPS", "Built"]

# What a step does, and the document of its inverse if it loses nothing.
Built: TypeAlias = tuple[Change, dict[str, Any] | None]


def _rename(fields: StepFields) -> Built:
    source, target = fields.place("from", member=True), fields.place("to", member=True)
    fields.beside(target, [source])
    objects = objects_at(source)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            if source[-1] in holder:
                put(holder, target[-1], holder[source[-1]], path)
                del holder[source[-1]]

    return change, {"rename": {"from": format_pointer(target), "to": format_pointer(source)}}


def _move(fields: StepFields) -> Built:
    source, target = fields.place("from", member=True), fields.place("to", member=True)
    fields.same_array(source, target)
    fields.different(source, target)
    shared = common_prefix(source)
    take, down = objects_at(source[len(shared) :] or ("",)), target[len(shared) :] or ("",)

    def change(arguments: dict[str, Any]) -> None:
        for base, at in items_at(arguments, shared):
            for holder, _ in take(base):
                if source[-1] in holder:
                    put_down(base, down, holder[source[-1]], at)
                    del holder[source[-1]]

    # Undoing a move into a deeper object would leave the new objects behind, empty.
    has_to_make_none = len(target) == len(shared) + 1
    inverse = {"move": {"from": format_pointer(target), "to": format_pointer(source)}}
    return change, inverse if has_to_make_none else None


def _wrap(fields: StepFields) -> Built:
    place = fields.place("at", member=False)
    arrays = fields.take("arrays", bool, "true or false", False)
    change = each(place, lambda value, _: value if isinstance(value, list) and not arrays else [value])
    return change, {"unwrap": format_pointer(place)}


def _unwrap(fields: StepFields) -> Built:
    place = fields.place("at", member=False)

    def new(value: Any, where: str) -> Any:
        if isinstance(value, list) and len(value) != 1:
            raise StepRefused(where, f"an array of {len(value)} cannot become one value")
        return value[0] if isinstance(value, list) else value

    # The item may be an array itself, which a plain wrap would leave as it is.
    return each(place, new), {"wrap": {"at": format_pointer(place), "arrays": True}}


def _set_default(fields: StepFields) -> Built:
    place = fields.place("at", member=True)
    value = fields.take("value", object, "the default")
    new = fields.take("new", bool, "true or false", False)
    objects = objects_at(place)

    def change(arguments: dict[str, Any]) -> None:
        for holder, _ in objects(arguments):
            if place[-1] not in holder:
                holder[place[-1]] = copy_json(value)

    # Only with `new` is it known that the old shape had no such member.
    return change, {"drop": format_pointer(place)} if new else None


def _drop(fields: StepFields) -> Built:
    place = fields.place("at", member=True)
    objects = objects_at(place)

    def change(arguments: dict[str, Any]) -> None:
        for holder, _ in objects(arguments):
            holder.pop(place[-1], None)

    return change, None


def _nest(fields: StepFields) -> Built:
    sources, target = fields.places("from"), fields.place("to", member=True)
    fields.beside(target, sources)
    inside = [source[-1] for source in sources]
    objects = objects_at(target)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            members = {name: holder.pop(name) for name in inside if name in holder}
            if members:
                put(holder, target[-1], members, path)

    return change, {"flatten": {"at": format_pointer(target), "members": inside}}


def _flatten(fields: StepFields) -> Built:
    place = fields.place("at", member=True)
    names = fields.take("members", list, "an array of member names", None)
    if names and not all(isinstance(name, str) for name in names):
        fields.refuse("members", "must be an array of member names")
    objects = objects_at(place)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            members = holder.get(place[-1])
            if not isinstance(members, dict):
                continue
            where = (*path, place[-1])
            unknown = [name for name in members if names is not None and name not in names]
            if unknown:
                fault = f"{unknown[0]!r} is not one of the members to move out"
                raise StepRefused(format_pointer((*where, unknown[0])), fault)
            del holder[place[-1]]
            for name, value in members.items():
                put(holder, name, value, path)

    return change, None  # an empty object would not come back


# Kind -> what reads it, and whether it may be written as a pointer alone.
SHAPE_STEPS: dict[str, tuple[Callable[[StepFields], Built], bool]] = {
    "rename": (_rename, False),
    "move": (_move, False),
    "wrap": (_wrap, True),
    "unwrap": (_unwrap, True),
    "set_default": (_set_default, False),
    "drop": (_drop, True),
    "nest": (_nest, False),
    "flatten": (_flatten, True),
}
