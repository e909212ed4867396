"""The steps that change where values are: rename, move, copy, wrap, unwrap, pack, nest and their opposites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from skillruntime.contract.migration.locations import (
    Change,
    StepRefused,
    Tokens,
    common_prefix,
    copy_json,
    each,
    gathered,
    items_at,
    objects_at,
    put,
    put_down,
    spread,
)
from skillruntime.contract.migration.step_fields import StepFields
from skillruntime.contract.migration.value_conversions import same_as
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
    source, target, change, lifts = _to_another_place(fields, keeps=False)
    return change, {"move": {"from": format_pointer(target), "to": format_pointer(source)}} if lifts else None


def _copy(fields: StepFields) -> Built:
    source, target, change, lifts = _to_another_place(fields, keeps=True)
    return change, {"drop": {"at": format_pointer(target), "same_as": format_pointer(source)}} if lifts else None


def _to_another_place(fields: StepFields, *, keeps: bool) -> tuple[Tokens, Tokens, Change, bool]:
    """Return source and target, the change, and whether it can be undone; *keeps* leaves the value at its source."""
    source, target = fields.place("from", member=True), fields.place("to", member=True)
    fields.same_array(source, target)
    fields.different(source, target)
    shared = common_prefix(source)
    # Undoing a move into a deeper object would leave the new objects behind, empty.
    lifts = len(target) == len(shared) + 1  # no object has to be made, so none is left over on the way back
    take, down = objects_at(source[len(shared) :] or ("",)), target[len(shared) :] or ("",)

    def change(arguments: dict[str, Any]) -> None:
        for base, at in items_at(arguments, shared):
            for holder, _ in take(base):
                if source[-1] in holder:
                    value = holder[source[-1]]
                    put_down(base, down, copy_json(value) if keeps else value, at)
                    if not keeps:
                        del holder[source[-1]]

    return source, target, change, lifts


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
    if fields.has("same_as"):
        return _drop_copy(fields, place)
    objects = objects_at(place)

    def change(arguments: dict[str, Any]) -> None:
        for holder, _ in objects(arguments):
            holder.pop(place[-1], None)

    return change, None


def _drop_copy(fields: StepFields, place: Tokens) -> Built:
    """Drop what is the same as the value at another place: the opposite of a copy, which loses nothing."""
    original = fields.place("same_as", member=True)
    fields.same_array(original, place)
    fields.different(original, place)
    shared = common_prefix(place)
    take, look = (objects_at(each[len(shared) :] or ("",)) for each in (place, original))

    def change(arguments: dict[str, Any]) -> None:
        for base, at in items_at(arguments, shared):
            kept = [holder[original[-1]] for holder, _ in look(base) if original[-1] in holder]
            for holder, path in take(base):
                if place[-1] not in holder:
                    continue
                if not any(same_as(holder[place[-1]]) == same_as(value) for value in kept):
                    where = format_pointer((*at, *path, place[-1]))
                    fault = f"its value differs from that of {format_pointer(original)}"
                    raise StepRefused(where, f"{where} cannot be dropped: {fault}")
                del holder[place[-1]]

    return change, None  # where it was absent, copying would add it


def _pack(fields: StepFields) -> Built:
    sources, target = fields.places("from"), fields.place("to", member=True)
    fields.beside(target, sources)
    objects = objects_at(target)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            # An array has no gaps: a member that is missing before one that is given has no position to be left out of.
            items = gathered(holder, [source[-1] for source in sources], path, "an array has no gaps")
            if items:
                put(holder, target[-1], items, path)

    return change, {"unpack": {"from": format_pointer(target), "to": list(map(format_pointer, sources))}}


def _unpack(fields: StepFields) -> Built:
    source, targets = fields.place("from", member=True), fields.places("to")
    fields.beside(source, targets)
    lossy = fields.take("lossy", bool, "true or false", False)
    objects = objects_at(source)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            items = holder.get(source[-1])
            if not isinstance(items, list):
                continue
            where = format_pointer((*path, source[-1]))
            if len(items) > len(targets):
                raise StepRefused(where, f"an array of {len(items)} has {len(targets)} places to go to")
            if not items and not lossy:
                raise StepRefused(where, 'an empty array would not come back; add "lossy": true to allow that')
            spread(holder, source[-1], [target[-1] for target in targets], items, path)

    return change, {"pack": {"from": list(map(format_pointer, targets)), "to": format_pointer(source)}}


def _nest(fields: StepFields) -> Built:
    sources, target = fields.places("from", all_members=True), fields.place("to", member=True)
    fields.beside(target, sources)
    inside = [source[-1] for source in sources]
    takes_all = inside == ["*"]
    objects = objects_at(target)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            # All but the target itself: an object that holds nothing else is in the new shape already.
            names = [name for name in holder if name != target[-1]] if takes_all else inside
            members = {name: holder[name] for name in names if name in holder}
            for name in members:
                del holder[name]
            if members:
                put(holder, target[-1], members, path)

    whole = {"flatten": format_pointer(target)}
    return change, whole if takes_all else {"flatten": {"at": format_pointer(target), "members": inside}}


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
    "copy": (_copy, False),
    "pack": (_pack, False),
    "unpack": (_unpack, False),
    "wrap": (_wrap, True),
    "unwrap": (_unwrap, True),
    "set_default": (_set_default, False),
    "drop": (_drop, True),
    "nest": (_nest, False),
    "flatten": (_flatten, True),
}
