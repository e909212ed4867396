"""A copy of an object or array under repair: copied only where it is changed."""

from __future__ import annotations

from typing import Any

from skillruntime.contract.pointer import Path, value_at

__all__ = ["Edit"]


class Edit:
    """Changes members of *value* at any depth, and leaves the *value* it was given as it is."""

    def __init__(self, value: dict[str, Any] | list[Any]) -> None:
        self.value: Any = value
        self._own: dict[int, Any] = {}

    def put(self, where: Path, value: Any) -> None:
        """Write *value* to *where*; the empty path is the whole."""
        if where:
            self._parent(where)[where[-1]] = value
        else:
            self.value = value

    def leave_out(self, where: Path) -> None:
        """Remove the member at *where*."""
        del self._parent(where)[where[-1]]

    def rename(self, old: str, new: str, where: Path = ()) -> None:
        """Rename the member *old* of the object at *where* to *new*; it keeps its place."""
        renamed = {new if key == old else key: value for key, value in value_at(self.value, where).items()}
        self._own[id(renamed)] = renamed
        self.put(where, renamed)

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
            self._own[id(container)] = container  # kept, so that no other object can take its id
        return container
