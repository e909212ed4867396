"""What a state of one kind of script found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from skillruntime.derive.command import Command

__all__ = ["Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A command, the framework it was declared with, and how sure the reading is.

    ``schema`` is the input of a script that takes its arguments as JSON on stdin: it has no command line.
    """

    command: Command
    framework: str
    confidence: Literal["high", "medium", "low"] = "high"
    schema: Mapping[str, Any] | None = None
