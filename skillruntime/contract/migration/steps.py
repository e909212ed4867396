"""The steps of a migration, as data: each changes arguments of an old shape a little towards the new one.

A step is a JSON object with one key, its kind::

    {"rename": {"from": "/count", "to": "/limit"}}          another name in the same object
    {"move": {"from": "/options/lang", "to": "/lang"}}      another place; missing objects on the way are made
    {"wrap": "/topics"}                                     a value becomes an array of one; an array is left alone,
                                                            unless "arrays": true
    {"unwrap": "/topics"}                                   an array of one becomes its item
    {"set_default": {"at": "/format", "value": "brief"}}    where none was given ("new": true: the old shape had none)
    {"drop": "/legacy"}                                     the new shape has no such thing
    {"map": {"at": "/level", "values": {"low": "minimal"}}} other values ("values": [[1, "one"]] if not strings)
    {"convert": {"at": "/count", "from": "string", "to": "integer"}}    another type
    {"convert": {"at": "/hours", "factor": 24}}             another unit ("divisor" to divide); exact arithmetic
    {"convert": {"at": "/t", "factor": 1.8, "offset": 32}}  "offset" is added afterwards, "offset_before" before
    {"split": {"at": "/topics", "separator": ","}}          a text becomes an array of trimmed parts ("strip": false
                                                            keeps blanks)
    {"join": {"at": "/topics", "separator": ","}}           and back
    {"nest": {"from": ["/lang", "/style"], "to": "/options"}}    members move into a new object beside them
    {"flatten": "/options"}                                 an object's members take its place

Places are JSON Pointers (RFC 6901). A token ``*`` means each item of an array, and is an ordinary key
elsewhere; the places of one step share everything up to their last ``*``. Nothing at the source is nothing to do: so a
step leaves alone what is in the new shape already. Something at the target is an error: no step overwrites.
A step that loses nothing has an inverse. Any step may say ``"lossy": true``: then it is never undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillruntime.contract.migration.locations import Change
from skillruntime.contract.migration.shape_steps import SHAPE_STEPS
from skillruntime.contract.migration.step_fields import Fault, MalformedStepError, StepFields
from skillruntime.contract.migration.value_conversions import same_as
from skillruntime.contract.migration.value_steps import VALUE_STEPS

__all__ = ["Step", "parse_step", "parse_steps"]

MAX_STEPS = 1000
_KINDS = {**SHAPE_STEPS, **VALUE_STEPS}


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its kind, its document as it was written, and the document of its inverse if it loses nothing.

    ``image`` has the new values of a table; ``collisions`` those of them that are not old values too: the inverse is
    right only where none of these occurs at the place before the step.
    """

    kind: str
    document: Mapping[str, Any]
    inverse: Mapping[str, Any] | None
    change: Change
    image: tuple[Any, ...] = ()
    collisions: tuple[Any, ...] = ()

    @property
    def is_lossy(self) -> bool:
        """Whether the step's author says that it loses something."""
        fields = self.document[self.kind]
        return isinstance(fields, dict) and fields.get("lossy") is True

    def __repr__(self) -> str:
        return f"Step({self.document!r})"


def parse_steps(documents: Any, where: str) -> tuple[tuple[Step, ...], list[Fault]]:
    """Return the steps that *documents* describe, and all that is wrong with them as (JSON Pointer, sentence)."""
    if not isinstance(documents, list):
        return (), [(where, "must be an array of steps")]
    if len(documents) > MAX_STEPS:
        return (), [(where, f"has {len(documents)} steps; {MAX_STEPS} are allowed")]
    steps, faults = [], []
    for index, document in enumerate(documents):
        try:
            steps.append(parse_step(document))
        except MalformedStepError as error:
            faults += [(f"{where}/{index}{path}", message) for path, message in error.faults]
    return tuple(steps), faults


def parse_step(document: Any) -> Step:
    """Return the step that *document* describes.

    >>> step = parse_step({"rename": {"from": "/count", "to": "/limit"}})
    >>> arguments = {"count": 3}
    >>> step.change(arguments); arguments
    {'limit': 3}
    >>> step.inverse
    {'rename': {'from': '/limit', 'to': '/count'}}

    Raises:
        ValueError: it describes none; ``faults`` lists why.
    """
    known = ", ".join(_KINDS)
    if not isinstance(document, dict) or len(document) != 1:
        raise MalformedStepError([("", f"a step is an object with one key: {known}")])
    ((kind, written),) = document.items()
    if kind not in _KINDS:
        raise MalformedStepError([("", f"{str(kind)[:40]!r} is not a step; send one of {known}")])
    build, simple = _KINDS[kind]
    fields = StepFields(kind, {"at": written} if simple and isinstance(written, str) else written)
    lossy = fields.take("lossy", bool, "true or false", False)
    change, inverse = build(fields)
    fields.finish()
    image, collisions = _table(written) if kind == "map" and inverse is not None else ((), ())
    return Step(kind, document, None if lossy else inverse, change, image, collisions)


def _table(written: Mapping[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the new values of a table, and those of them that are not old values in it as well."""
    values = written["values"]
    pairs = list(values.items()) if isinstance(values, dict) else values
    old = {same_as(before) for before, _ in pairs}
    image = tuple(after for _, after in pairs)
    return image, tuple(after for after in image if same_as(after) not in old)
