"""JSON Pointers (RFC 6901), and what is at a place inside a JSON value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NewType, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
# Two kinds of path that nothing may confuse: where in a schema, and where in a value.
Location = NewType("Location", Path)
ValuePath = NewType("ValuePath", Path)
WHOLE_SCHEMA = Location(())
WHOLE_VALUE = ValuePath(())


def format_pointer(path: Iterable[str | int]) -> str:
    """Return *path* as a JSON Pointer; the whole document is the empty text.

    >>> format_pointer(("topics", 0, "a/b"))
    '/topics/0/a~1b'
    """
    return "".join(
        "/" + str(token).replace("~", "~0").replace("/", "~1") for token in path
    )


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
        LookupError: there is nothing at *path*.
    """
    for token in path:
        # A pointer's tokens are texts; in an array they are indexes without signs (RFC
        # 6901, section 4).
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
    """Changes members of *value* at any depth, and leaves the *value* it was given as
    it is.
    """

    value: Any
    _own: dict[int, Any] = field(default_factory=dict)

    def put(self, where: Path, value: Any) -> None:
        """Write *value* to *where*, which is inside."""
        self._parent(where)[where[-1]] = value

    def leave_out(self, where: Path) -> None:
        """Remove the member at *where*."""
        del self._parent(where)[where[-1]]

    def _parent(self, where: Path) -> Any:
        """Return the container of *where*; it and all that leads to it are copies."""
        self.value = container = self._owned(self.value)
        # Copy on the way down: siblings stay the caller's own objects.
        for token in where[:-1]:
            container[token] = container = self._owned(container[token])
        return container

    def _owned(self, container: Any) -> Any:
        if id(container) not in self._own:
            container = container.copy()
            # Kept, so that no other object can take its id.
            self._own[id(container)] = container
        return container
