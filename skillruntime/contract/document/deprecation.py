"""Read the field ``deprecated`` of a contract: the old versions whose calls are
accepted for a limited time.

This module does not read the clock: the command line and the server compare the date
with today.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

from skillruntime.contract.versions import Version, VersionRange

__all__ = ["Deprecation", "deprecation_faults"]


class Deprecation(NamedTuple):
    """The deprecated versions, and the last day on which their calls are promised to be
    accepted.
    """

    versions: VersionRange
    until: date | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Deprecation | None:
        """Return the deprecation that the contract *document* declares; ``None`` if it
        does not declare one.

        >>> field = {"versions": "1.x", "until": "2027-01-01"}
        >>> Deprecation.of({"deprecated": field}).covers(">=1.0.0,<2.0.0")
        True

        Raises:
            ValueError: the range or the date cannot be read.
        """
        declared = document.get("deprecated")
        if not isinstance(declared, Mapping):
            return None
        until = declared.get("until")
        return cls(
            VersionRange.parse(str(declared["versions"])),
            date.fromisoformat(until) if until else None,
        )

    def covers(self, migrated_from: str) -> bool:
        """Return whether *migrated_from*, a version or the range of a migration, is
        deprecated, at least in part.
        """
        try:
            return Version.parse(migrated_from) in self.versions
        except ValueError:
            pass
        bounds = VersionRange.parse(migrated_from).bounds
        return any(bound in self.versions for bound in bounds)

    def warning(self, migrated_from: str) -> str:
        """Return the sentence for a caller of *migrated_from*."""
        end = f" until {self.until.isoformat()}" if self.until else ""
        return (
            f"version {migrated_from} is deprecated: its calls are taken{end}; send "
            "the arguments of the current version"
        )


def deprecation_faults(document: Mapping[str, Any]) -> list[str]:
    """Return the fault of the field ``deprecated`` in *document* as a sentence, in a
    list that may be empty.
    """
    try:
        Deprecation.of(document)
    except ValueError as error:
        return [f"/deprecated: {error}"]
    return []
