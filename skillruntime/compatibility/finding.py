"""One difference between two schemas: its place, and the bump that it requires."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

__all__ = ["Bump", "Finding", "Place"]


class Bump(IntEnum):
    """The part of a version that a change requires to rise."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference: its place in the values, the rule that found it, and the bump by
    each reading.

    ``ruling`` is the rule of the contract document (31.5), if it has one. ``old`` and
    ``new`` are the schemas there.
    """

    path: tuple[str, ...]
    rule: str
    why: str
    practical: Bump
    set_theory: Bump
    ruling: Bump | None = None
    old: Any = True
    new: Any = True
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the values, with the old and the new schema for it."""

    path: tuple[str, ...]
    old: Any
    new: Any

    def below(self, token: str, old: Any, new: Any) -> Place:
        """Return the place one step below this one, at *token*, with its own
        schemas.
        """
        return Place((*self.path, token), old, new)

    def at_member(self, token: str) -> Place:
        """Return the place one step below this one, at *token*, with the schemas of
        this place: for a member that only one schema declares.
        """
        return replace(self, path=(*self.path, token))

    def finding(
        self,
        rule: str,
        why: str,
        bump: Bump,
        *,
        set_theory: Bump | None = None,
        ruling: Bump | None = None,
        details: dict[str, Any] | None = None,
    ) -> Finding:
        """Return a finding at this place. By set theory it requires *bump* too, unless
        *set_theory* is given.
        """
        return Finding(
            self.path,
            rule,
            why,
            bump,
            bump if set_theory is None else set_theory,
            ruling,
            self.old,
            self.new,
            details or {},
        )
