"""Parse the steps of a migration, each of which makes one small change to arguments of
an old shape.

A step is a JSON object with one key, its kind::

    {"rename": {"from": "/count", "to": "/limit"}}
        another name in the same object
    {"move": {"from": "/options/lang", "to": "/lang"}}
        another place; missing objects on the way are created
    {"wrap": "/topics"}
        a value becomes an array of one item; an array is left unchanged
    {"unwrap": "/topics"}
        an array of one item becomes that item
    {"set_default": {"at": "/format", "value": "brief"}}
        a value where none was given
    {"drop": "/legacy"}
        a member that the new shape does not have
    {"map": {"at": "/level", "values": {"low": "minimal"}}}
        other values; "values": [[1, "one"]] if the old ones are not strings
    {"convert": {"at": "/count", "from": "string", "to": "integer"}}
        another type
    {"convert": {"at": "/hours", "factor": 24}}
        another unit ("divisor" to divide); exact arithmetic
    {"convert": {"at": "/t", "factor": 1.8, "offset": 32}}
        "offset" is added afterwards
    {"split": {"at": "/topics", "separator": ","}}
        a text becomes an array of trimmed parts

Places are JSON Pointers (RFC 6901). A token ``*`` means each item of an array, and is
an ordinary key elsewhere; the places of one step share everything up to their last
``*``. A step does nothing if its source is missing, and thus leaves values that already
have the new shape unchanged. A step never overwrites: a value at the target is an
error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillruntime.contract.migration.locations import Change
from skillruntime.contract.migration.shape_steps import SHAPE_STEPS
from skillruntime.contract.migration.step_fields import (
    Fault,
    MalformedStepError,
    StepFields,
)
from skillruntime.contract.migration.value_steps import VALUE_STEPS

MAX_STEPS = 1000
_KINDS = {**SHAPE_STEPS, **VALUE_STEPS}


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its kind, its original document, and the change that it makes."""

    kind: str
    document: Mapping[str, Any]
    change: Change

    @property
    def place(self) -> str:
        """The place from which the step takes a value."""
        fields = self.document[self.kind]
        if isinstance(fields, str):
            return fields
        return str(fields.get("at", fields.get("from")))

    def __repr__(self) -> str:
        return f"Step({self.document!r})"


def parse_steps(documents: Any, where: str) -> tuple[tuple[Step, ...], list[Fault]]:
    """Parse *documents* into steps; return them and all faults, each as (JSON Pointer,
    sentence).

    >>> documents = [{"rename": {"from": "/count", "to": "/limit"}}]
    >>> (step,), faults = parse_steps(documents, "/steps")
    >>> arguments = {"count": 3}
    >>> step.change(arguments); arguments
    {'limit': 3}
    """
    if not isinstance(documents, list):
        return (), [(where, "must be an array of steps")]
    if len(documents) > MAX_STEPS:
        return (), [(where, f"has {len(documents)} steps; {MAX_STEPS} are allowed")]
    steps: list[Step] = []
    faults: list[Fault] = []
    for index, document in enumerate(documents):
        try:
            steps.append(_parsed(document))
        except MalformedStepError as error:
            for path, message in error.faults:
                faults.append((f"{where}/{index}{path}", message))
    return tuple(steps), faults


def _parsed(document: Any) -> Step:
    known = ", ".join(_KINDS)
    if not isinstance(document, dict) or len(document) != 1:
        raise MalformedStepError([("", f"a step is an object with one key: {known}")])
    [(kind, content)] = document.items()
    if kind not in _KINDS:
        raise MalformedStepError(
            [("", f"{str(kind)[:40]!r} is not a step; send one of {known}")]
        )
    build, may_be_pointer = _KINDS[kind]
    if may_be_pointer and isinstance(content, str):
        content = {"at": content}
    fields = StepFields(kind, content)
    change = build(fields)
    fields.finish()
    return Step(kind, document, change)
