"""A script's command line as it was read, whichever library the script uses: its
parameters, its commands, and the unread parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from skillruntime.derive.command_line import ABSENT, Parser, Takes

__all__ = [
    "TEXT",
    "Argument",
    "Command",
    "Implication",
    "Reading",
    "Unread",
    "ValueType",
]


@dataclass(frozen=True, slots=True)
class ValueType:
    """The schema of one value, and how the value is written as a word; ``unsure`` names
    the part that could not be read.
    """

    schema: Mapping[str, Any]
    encode: str | Mapping[str, Any] = "text"
    unsure: str = ""


TEXT = ValueType({"type": "string"})


@dataclass(frozen=True, slots=True)
class Unread:
    """An argument, or a part of one, that could not be read, with the reason."""

    argument: str
    reason: str
    line: int | None = None
    is_needed: bool = False
    """Whether every call needs it."""

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"{self.argument}: {self.reason}{where}"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a script; ``flags`` is empty for a positional argument.

    ``takes``, ``length``, ``repeat`` and ``off_flag`` as in `Parameter`; ``least`` is
    the number of items that a list must have. ``default`` is ABSENT if there is none,
    or if it cannot be read. ``bare`` says that the flag may appear without a value,
    which has a separate meaning.
    """

    name: str
    flags: tuple[str, ...] = ()
    takes: Takes = "value"
    value: ValueType = TEXT
    required: bool = False
    default: Any = ABSENT
    description: str = ""
    length: int | None = None
    least: int = 0
    repeat: bool = False
    off_flag: str | None = None
    bare: bool = False
    group: int | None = None
    has_hidden_default: bool = False
    """Whether the script has a default that cannot be declared."""

    @property
    def shown(self) -> str:
        """The name for people."""
        return self.flags[0] if self.flags else self.name


@dataclass(frozen=True, slots=True)
class Implication:
    """A requirement for some calls only: calls that fit all schemas in ``premises``
    must give at least one of ``names``.
    """

    premises: tuple[Mapping[str, Any], ...]
    names: tuple[str, ...]


@dataclass(slots=True)
class Command:
    """The command line of a script, or of one of its commands."""

    parser: Parser = "argparse"
    description: str = ""
    arguments: list[Argument] = field(default_factory=list)
    exclusive: dict[int, bool] = field(default_factory=dict)
    """The exclusive groups, of which a call may give at most one argument; true if it
    must give one.
    """
    one_of: list[list[str]] = field(default_factory=list)
    """Lists of names; a call must give at least one argument of each list."""
    implied: list[Implication] = field(default_factory=list)
    chooser: str = ""
    commands: dict[str, Command] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    handler: str = ""
    """The function of the script that executes this command, if it is known by name.
    """

    def all_commands(self) -> Iterator[Command]:
        """Yield the commands below this one."""
        for command in self.commands.values():
            yield command
            yield from command.all_commands()

    def all_unread(self) -> list[Unread]:
        """Return the unread parts of this command and of the commands below."""
        unread = list(self.unread)
        for command in self.all_commands():
            unread += command.unread
        return unread

    def all_notes(self) -> list[str]:
        """Return the notes of this and of the commands below, each once."""
        notes = list(self.notes)
        for command in self.all_commands():
            notes += command.notes
        return list(dict.fromkeys(notes))


@dataclass(frozen=True, slots=True)
class Reading:
    """A command, the framework it was declared with, and how sure the reading is."""

    command: Command
    framework: str
    confidence: Literal["high", "medium", "low"] = "high"
