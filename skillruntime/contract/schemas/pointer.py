"""Read and write JSON Pointers (RFC 6901) and the parts of a JSON value that they
name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NewType, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
# Two kinds of path that must not be confused: a place in a schema, and a place in a
# value.
Location = NewType("Location", Path)
ValuePath = NewType("ValuePath", Path)
WHOLE_SCHEMA = Location(())
WHOLE_VALUE = ValuePath(())


def format_pointer(path: Iterable[str | int]) -> str:
    """Return *path* as a JSON Pointer; the whole document is the empty text.

    >>> format_pointer(("topics", 0, "a/b"))
    '/topics/0/a~1b'
    """
    pointer = ""
    for token in path:
        escaped = str(token).replace("~", "~0").replace("/", "~1")
        pointer += f"/{escaped}"
    return pointer


def parse_pointer(pointer: str) -> tuple[str, ...]:
    """Return the tokens of *pointer*; array indexes stay strings, as they may be keys.

    >>> parse_pointer("/topics/0/a~1b")
    ('topics', '0', 'a/b')

    Raises:
        ValueError: *pointer* is neither empty nor begins with a slash.
    """
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ValueError(f"a JSON Pointer begins with '/', got {pointer!r}")
    # RFC 6901, section 4: ~1 first, so that ~01 becomes ~1 and not a slash.
    return tuple(
        token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")
    )


def value_at(value: Any, path: Iterable[str | int]) -> Any:
    """Return the part of *value* at *path*.

    >>> value_at({"a": [1, 2]}, ("a", 1))
    2

    Raises:
        LookupError: *value* has no part at *path*.
    """
    for token in path:
        # A pointer's tokens are texts; in an array a token is an index without a sign
        # (RFC 6901, section 4).
        if isinstance(value, list) and isinstance(token, str):
            if not token.isdecimal():
                raise LookupError(token)
            token = int(token)
        elif not isinstance(value, dict | list):
            raise LookupError(token)
        value = value[token]
    return value


@dataclass(slots=True)
class Edit:
    """Changes members at any depth in a copy of *value*; the original stays unchanged."""

    value: Any
    _own: dict[int, Any] = field(default_factory=dict)

    def put(self, where: Path, value: Any) -> None:
        """Write *value* to *where*, a place inside the whole value."""
        self._parent(where)[where[-1]] = value

    def leave_out(self, where: Path) -> None:
        """Remove the member at *where*."""
        del self._parent(where)[where[-1]]

    def _parent(self, where: Path) -> Any:
        """Return the container of *where*, after copying it and every container on the
        way to it.
        """
        self.value = container = self._owned(self.value)
        # Copy only on the way down: siblings remain the caller's own objects.
        for token in where[:-1]:
            container[token] = container = self._owned(container[token])
        return container

    def _owned(self, container: Any) -> Any:
        if id(container) not in self._own:
            container = container.copy()
            # Keep the copy, so that no other object can get the same id.
            self._own[id(container)] = container
        return container
