"""Decide by containment which part of the version a schema change raises.

On the input side callers give what the old schema admits, and the new one takes it; on
the output side the new schema gives and the old one takes. A difference breaks where
the taker does not admit all that is given. There are two readings: set theory takes the
schemas literally; the practical one takes objects as closed on the giving side (callers
send only what is declared) and, for output, as open on the taking side (readers ignore
members that are new to them).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skillruntime.compatibility.containment import Containment
from skillruntime.compatibility.finding import Bump, Finding, Place
from skillruntime.compatibility.normal_form import closed, opened

__all__ = ["Judge"]


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges changes of one side of a contract: its input or its output."""

    containment: Containment
    is_output: bool

    def bump(self, old: Any, new: Any) -> Bump:
        """Return the bump that the change from *old* to *new* requires by set
        theory.
        """
        covers = self.containment.covers
        giver, taker = (new, old) if self.is_output else (old, new)
        # Containment one way and not the other is an addition; both ways, another way
        # of writing it.
        if not covers(taker, giver):
            return Bump.MAJOR
        if not covers(giver, taker):
            return Bump.MINOR
        return Bump.PATCH

    def readings(self, old: Any, new: Any) -> tuple[Bump, Bump]:
        """Return the bumps that the change requires by the practical reading and by set
        theory.
        """
        reader = opened if self.is_output else closed
        practical = self.bump(reader(old), closed(new))
        strict = self.bump(old, new)
        # Set theory may call a change of an open object MAJOR where practice sees none:
        # something changed, so MINOR.
        if strict is Bump.MAJOR:
            practical = max(practical, Bump.MINOR)
        return practical, strict

    def whole(self, place: Place, rule: str, why: str) -> Finding:
        """Return the finding that judges the schemas of *place* as a whole."""
        practical, strict = self.readings(place.old, place.new)
        return place.finding(rule, why, practical, set_theory=strict)
