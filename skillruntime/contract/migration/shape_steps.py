"""Define the steps that change where values are: rename, move, wrap, unwrap,
set_default and drop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skillruntime.contract.migration.locations import (
    Change,
    StepRefused,
    common_prefix,
    copy_json,
    items_at,
    objects_at,
    put,
    put_down,
    replace_each,
)
from skillruntime.contract.migration.step_fields import StepFields


def _rename(fields: StepFields) -> Change:
    source = fields.place("from", member=True)
    target = fields.place("to", member=True)
    fields.beside(source, target)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects_at(arguments, source):
            if source[-1] in holder:
                put(holder, target[-1], holder[source[-1]], path)
                del holder[source[-1]]

    return change


def _move(fields: StepFields) -> Change:
    source = fields.place("from", member=True)
    target = fields.place("to", member=True)
    fields.same_array(source, target)
    fields.different(source, target)
    shared = common_prefix(source)
    # The places relative to the array item that both share.
    inner_source = source[len(shared) :] or ("",)
    inner_target = target[len(shared) :] or ("",)

    def change(arguments: dict[str, Any]) -> None:
        for item, path in items_at(arguments, shared):
            for holder, _ in objects_at(item, inner_source):
                if source[-1] in holder:
                    put_down(item, inner_target, holder[source[-1]], path)
                    del holder[source[-1]]

    return change


def _wrap(fields: StepFields) -> Change:
    def new(value: Any, _: str) -> Any:
        return value if isinstance(value, list) else [value]

    return replace_each(fields.place("at", member=False), new)


def _unwrap(fields: StepFields) -> Change:
    def new(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            return value
        if len(value) != 1:
            raise StepRefused(
                where, f"an array of {len(value)} cannot become one value"
            )
        return value[0]

    return replace_each(fields.place("at", member=False), new)


def _set_default(fields: StepFields) -> Change:
    place = fields.place("at", member=True)
    value = fields.take("value", object, "the default")

    def change(arguments: dict[str, Any]) -> None:
        for holder, _ in objects_at(arguments, place):
            if place[-1] not in holder:
                holder[place[-1]] = copy_json(value)

    return change


def _drop(fields: StepFields) -> Change:
    place = fields.place("at", member=True)

    def change(arguments: dict[str, Any]) -> None:
        for holder, _ in objects_at(arguments, place):
            holder.pop(place[-1], None)

    return change


# Kind -> its parser, and whether the step may be written as a pointer alone.
SHAPE_STEPS: dict[str, tuple[Callable[[StepFields], Change], bool]] = {
    "rename": (_rename, False),
    "move": (_move, False),
    "wrap": (_wrap, True),
    "unwrap": (_unwrap, True),
    "set_default": (_set_default, False),
    "drop": (_drop, True),
}
