"""One call of a test: its arguments and its purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Case"]


@dataclass(frozen=True, slots=True)
class Case:
    """One call. ``kind`` is its purpose: ``example``, ``least``, ``option``,
    ``member``, ``bound``, ``text``, ``all``, ``old``, ``line`` or ``own``.

    ``is_invented`` says that it has texts or numbers that neither the contract nor the
    instructions show.
    """

    arguments: dict[str, Any]
    kind: str
    version: str | None = None
    parameter: str | None = None
    is_invented: bool = False
    has_outputs: bool = False
    """Whether the files that it names as its output exist before the call."""
