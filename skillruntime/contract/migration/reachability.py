"""Whether a value can occur at a place of the old or the new shape, which decides if a table can be undone.

``{"mid": "high"}`` can be undone only if no old value was ``"high"`` already. Only the schemas can show that: where a
place cannot be followed through the other steps, or its schema is not known, every value is taken to occur there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skillruntime.contract.migration.locations import Tokens
from skillruntime.contract.migration.steps import Step
from skillruntime.contract.migration.value_conversions import same_as
from skillruntime.contract.pointer import format_pointer, parse_pointer
from skillruntime.contract.references import Location, children
from skillruntime.contract.schema import Schema

__all__ = ["only_what_can_be_undone", "taken_places"]


def only_what_can_be_undone(
    steps: Sequence[Step], *, old: Schema | None = None, new: Schema | None = None
) -> tuple[Step, ...]:
    """Return *steps* without the inverses of tables into which another value can run, by the schema on either side.

    A table's new value that is not one of its old values must not occur at the place before the step: *old* refuses
    it there, or *new* admits nothing there but the table's new values.
    """
    return tuple(
        step if not step.collisions or _is_undone(steps, index, old, new) else replace(step, inverse=None)
        for index, step in enumerate(steps)
    )


def taken_places(steps: Sequence[Step]) -> list[str]:
    """Return for each step the place that it writes though a step before it shows that something can be there; or "".

    After ``rename /a -> /c`` and ``rename /b -> /c`` the way back cannot know which of the two was given.
    """
    known: list[Tokens] = []
    found = []
    for step in steps:
        fields = step.document[step.kind]
        places, is_new = _shown(step.kind, {"at": fields} if isinstance(fields, str) else fields)
        taken = next((each for each in places if is_new and any(old[: len(each)] == each for old in known)), None)
        found.append(format_pointer(taken) if taken else "")
        after = (_followed([step.document], old, forward=True) for old in known)
        known = [*(each for each in after if each is not None), *places]
    return found


def _shown(kind: str, fields: Mapping[str, Any]) -> tuple[list[Tokens], bool]:
    """Return the places where a value can be after the step, and whether the step is what puts it there."""
    targets = fields["at"] if "at" in fields else fields.get("to", ())
    found = [parse_pointer(each) for each in ([targets] if isinstance(targets, str) else targets)]
    if kind == "nest":
        found += [(*found[0], parse_pointer(each)[-1]) for each in fields["from"]]
    return found, "at" not in fields or kind == "set_default"


def _is_undone(steps: Sequence[Step], index: int, old: Schema | None, new: Schema | None) -> bool:
    step = steps[index]
    place = parse_pointer(step.document["map"]["at"])
    before = _followed([each.document for each in reversed(steps[:index])], place, forward=False)
    if old is not None and before is not None:
        found = _certain(old, before)
        if found is None or all(any(not old.fits(each, at) for at in found) for each in step.collisions):
            return True
    after = _followed([each.document for each in steps[index + 1 :]], place, forward=True)
    if new is None or after is None:
        return False
    found = _certain(new, after)
    image = {same_as(value) for value in step.image}
    return found is None or any(_admits_only(new.references.schema_at(at), image) for at in found)


def _admits_only(schema: Any, image: set[Any]) -> bool:
    """Whether *schema* is a closed list of values, all of them in *image*."""
    if not isinstance(schema, dict):
        return False
    for word in ("anyOf", "oneOf"):  # an enum with a title for each value is written as a union of constants
        if word in schema and all(_admits_only(branch, image) for branch in schema[word]):
            return True
    listed = [schema["const"]] if "const" in schema else schema.get("enum")
    return isinstance(listed, list) and all(same_as(value) in image for value in listed)


def _followed(documents: Iterable[Mapping[str, Any]], place: Tokens, *, forward: bool) -> Tokens | None:
    """Return where *place* is after the steps, or before them; ``None`` where one changes what is there otherwise."""
    current = place
    for document in documents:
        ((kind, fields),) = document.items()
        pointers = [parse_pointer(pointer) for pointer in _pointers(fields)]
        if kind in ("rename", "move"):
            source, target = pointers if forward else reversed(pointers)
            if current[: len(source)] == source:
                current = (*target, *current[len(source) :])
                continue
            pointers = [target]
        if kind == "drop":  # what is dropped before is not there, and what is dropped afterwards is not seen
            continue
        # A flattened object puts members of any name beside itself; nesting takes them away.
        beside = [each[:-1] for each in pointers] if kind in ("flatten", "nest") else []
        if any(_overlap(each, current) for each in pointers) or any(current[: len(each)] == each for each in beside):
            return None
    return current


def _pointers(fields: Any) -> list[str]:
    """Return the pointers that a step names, the source before the target."""
    if isinstance(fields, str):
        return [fields]
    found = []
    for name in ("at", "from", "to"):
        value = fields.get(name)
        each = value if isinstance(value, list) else [value]
        found += [pointer for pointer in each if isinstance(pointer, str) and pointer.startswith("/")]
    return found


def _overlap(one: Tokens, other: Tokens) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def _certain(schema: Schema, place: Tokens) -> list[Location] | None:
    """Return subschemas that surely judge the value at *place*; ``None`` where no value can be there at all."""
    found = _in_place(schema, [()])
    for token in place:
        below: list[Location] = []
        for location in found:
            node = schema.references.schema_at(location)
            parts = list(children(node, location))
            named = [part for part in parts if part.kind == "name" and part.key == token]
            # Which member a pattern covers, and which item `contains` means, is not known here.
            rest = [part for part in parts if part.location[-1] in ("additionalProperties", "items")]
            open_ended = any(part.kind in ("pattern", "index") for part in parts)
            kinds = ("items",) if token == "*" else ("rest",)
            chosen = named or [part for part in rest if part.kind in kinds and not open_ended]
            if any(part.schema is False for part in chosen):
                return None
            below += [part.location for part in chosen]
        found = _in_place(schema, below)
    return found


def _in_place(schema: Schema, locations: Iterable[Location]) -> list[Location]:
    """Return *locations*, what they refer to, and the parts of their ``allOf``."""
    pending, found = list(locations), dict[Location, None]()
    while pending:
        location = pending.pop()
        if location not in found:
            found[location] = None
            node = schema.references.schema_at(location)
            pending += schema.references.targets(location)
            pending += [part.location for part in children(node, location) if "allOf" in part.location[-2:-1]]
    return list(found)
