"""What a task is: a request, the steps that a model takes, and a check of the result.

In texts and arguments these are replaced, for each way of carrying a task out:

=================== ==================================================================
``{inputs}``        where ``Write`` puts its files
``{resource:S/P}``  the file P of the skill S, after a ``Resource`` step brought it
``{directory:S}``   the directory of the skill S, if the model was shown it
``{made:NAME}``     the path that an answer gave for the file NAME
``{skill:S}``       the directory of the skill S, in the command of a ``Call``
=================== ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Load:
    """Read the instructions of a skill."""

    skill: str


@dataclass(frozen=True, slots=True)
class Resource:
    """Read a file of a skill; one that is not text is brought to the workspace."""

    skill: str
    path: str
    is_text: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """Call *name*; *command* does the same in a shell, as SKILL.md writes it."""

    name: str
    arguments: Mapping[str, Any]
    command: str


@dataclass(frozen=True, slots=True)
class Write:
    """Write a text for a later step."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class ReadMade:
    """Read a file that a call of *skill* made."""

    skill: str
    name: str


@dataclass(frozen=True, slots=True)
class Shell:
    """Run a command in the workspace, with the shell that each agent has."""

    command: str


Step = Load | Resource | Call | Write | ReadMade | Shell


@dataclass(frozen=True, slots=True)
class Result:
    """What a check looks at: the workspace, and what calls and commands answered."""

    workspace: Path
    answers: str
    inputs: Mapping[Path, bytes]
    """The files that were there before the first step."""

    def made(self, name: str) -> Path | None:
        """Return the new or changed file *name*, below the workspace."""
        for path in sorted(self.workspace.rglob(name)):
            if path.is_file() and self.inputs.get(path) != path.read_bytes():
                return path
        return None

    def text(self, name: str) -> str:
        """Return the text of the new or changed file *name*, empty without one."""
        path = self.made(name)
        if path is None:
            return ""
        return path.read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Task:
    """A request of a person, how a model does it, and how its result is recognised."""

    name: str
    request: str
    steps: tuple[Step, ...]
    check: Callable[[Result], bool]
    setup: Callable[[Path], None] | None = None
    own_code: bool = False
    """The work is code of the model's own, beside modules of the skill."""

    @property
    def skill(self) -> str:
        """The first skill that is loaded."""
        for step in self.steps:
            if isinstance(step, Load):
                return step.skill
        return ""
