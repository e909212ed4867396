"""A value with some of its members changed; the caller's own is never touched."""

from __future__ import annotations

from typing import Any

from skillruntime.contract.schemas.pointer import Path


class Edit:
    """Changes members of *value* at any depth, and leaves the *value* it was given as
    it is.
    """

    def __init__(self, value: dict[str, Any] | list[Any]) -> None:
        self.value: Any = value
        self._own: dict[int, Any] = {}

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
