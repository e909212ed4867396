"""Dataclasses as JSON objects, and back: a descriptor's parts, and the messages of the
protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["ABSENT", "read", "write"]

_T = TypeVar("_T")


ABSENT: Final = object()
"""The value of a field that was not written, as opposed to one that was written as
null.
"""

# Written even where they are empty: 4.2 requires the inputs, and readers differ in what
# they take for a missing `required` (the example of 4.4 always has it).
_ALWAYS = frozenset({"inputs", "required"})


def read(kind: type[_T], document: Mapping[str, Any]) -> _T:
    """Return the *kind* that *document* writes, which has no faults.

    Fields that *kind* does not know go into its ``more``, so that a descriptor of a
    newer MINOR (section 8) passes through this release whole; where it has no ``more``,
    they are left out.
    """
    types = get_type_hints(kind)
    found = {
        name: _read_field(types[name], document[name])
        for name in types
        if name in document and name != "more"
    }
    if "more" in types:
        found["more"] = {
            name: value for name, value in document.items() if name not in found
        }
    return kind(**found)


def write(value: Any) -> dict[str, Any]:
    """Return the JSON object of the dataclass *value*; what says no more than its
    absence is left out.
    """
    written: dict[str, Any] = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if field.name == "more" or (
            field.name not in _ALWAYS and _says_nothing(item, field)
        ):
            continue
        form = _written(item)
        if form != {} or field.default_factory is MISSING:
            written[field.name] = form
    return {**written, **getattr(value, "more", {})}


def _read_field(annotated: Any, value: Any) -> Any:
    # `Provider`, `RetryPolicy | None` or `tuple[ParameterDefinition, ...]`.
    for kind in (annotated, *get_args(annotated)):
        if is_dataclass(kind) and isinstance(kind, type):
            return (
                tuple(read(kind, item) for item in value)
                if isinstance(value, list)
                else read(kind, value)
            )
        if isinstance(kind, type) and issubclass(kind, Enum):
            return kind(value)
    return tuple(value) if get_origin(annotated) is tuple else value


def _says_nothing(item: Any, field: Field[Any]) -> bool:
    """Whether *item* is the field's default, and an empty one: a peer reads its absence
    in the same way.
    """
    default = (
        field.default if field.default_factory is MISSING else field.default_factory()
    )
    return item == default and (not item or item is ABSENT)


def _written(item: Any) -> Any:
    if is_dataclass(item):
        return write(item)
    if isinstance(item, tuple):
        return [_written(each) for each in item]
    if isinstance(item, Mapping):
        return dict(item)
    return item.value if isinstance(item, Enum) else item
