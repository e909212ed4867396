"""Convert dataclasses to JSON objects and back: the parts of a descriptor, and the
protocol's messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

__all__ = ["ABSENT", "read", "write"]

_T = TypeVar("_T")


ABSENT: Final = object()
"""The value of an absent field, as opposed to null.
"""

# Written even where they are empty: 4.2 requires the inputs, and readers differ in how
# they read a missing `required` (the example of 4.4 always has it).
_ALWAYS = frozenset({"inputs", "required"})


def read(kind: type[_T], document: Mapping[str, Any]) -> _T:
    """Convert *document*, which has no faults, to an instance of the dataclass *kind*.

    Fields that *kind* does not have go into its ``more``, so that this release keeps
    the whole descriptor of a newer MINOR version (invocation protocol, section 8). If
    *kind* has no ``more``, they are left out.
    """
    types = get_type_hints(kind)
    values: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for name, value in document.items():
        if name in types and name != "more":
            values[name] = _read_field(types[name], value)
        else:
            more[name] = value
    if "more" in types:
        values["more"] = more
    return kind(**values)


def write(value: Any) -> dict[str, Any]:
    """Convert the dataclass *value* to a JSON object; a field is left out if its
    absence means the same.
    """
    written: dict[str, Any] = {}
    for field in fields(value):
        if field.name == "more":
            continue
        item = getattr(value, field.name)
        if field.name not in _ALWAYS and _is_empty_default(item, field):
            continue
        form = _written(item)
        if form != {} or field.default_factory is MISSING:
            written[field.name] = form
    return {**written, **getattr(value, "more", {})}


def _read_field(annotated: Any, value: Any) -> Any:
    # `Provider`, `RetryPolicy | None` or `tuple[ParameterDefinition, ...]`.
    for kind in (annotated, *get_args(annotated)):
        if not isinstance(kind, type):
            continue
        if is_dataclass(kind):
            if isinstance(value, list):
                return tuple(read(kind, item) for item in value)
            return read(kind, value)
        if issubclass(kind, Enum):
            return kind(value)
    if get_origin(annotated) is tuple:
        return tuple(value)
    return value


def _is_empty_default(item: Any, field: Field[Any]) -> bool:
    """Return whether *item* is the field's default and empty, so that its absence means
    the same to a peer.
    """
    if item and item is not ABSENT:
        return False
    if field.default_factory is MISSING:
        return bool(item == field.default)
    return bool(item == field.default_factory())


def _written(item: Any) -> Any:
    if is_dataclass(item):
        return write(item)
    if isinstance(item, tuple):
        return [_written(element) for element in item]
    if isinstance(item, Mapping):
        return dict(item)
    if isinstance(item, Enum):
        return item.value
    return item
