"""What a sandbox is given and what it returns: the one small protocol that every level
and every plug-in speaks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

__all__ = [
    "DEFAULT_LIMITS",
    "LEVELS",
    "Finished",
    "Limits",
    "Sandbox",
    "SandboxCommand",
    "SandboxLevel",
    "require_level",
]

SandboxLevel = Literal["bubblewrap", "landlock", "remote", "none"]
"""How a script was confined; `docs/security.md` has the table of what each level
guarantees.
"""

LEVELS: Final = ("bubblewrap", "landlock")
"""The levels of this library, the strongest first."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command may use. Sizes are bytes.

    ``memory`` holds for each process. The stacks of threads count, 8 MiB each on most
    systems: 1 GiB ends a process at about 126 threads, before ``processes`` does.
    """

    memory: int = 1024**3
    processes: int = 256  # threads count too: numpy and node start one or more per core
    file_size: int = 256 * 1024**2
    open_files: int = 1024
    temporary: int = 512 * 1024**2
    stdout: int = 10 * 1024**2
    workspace: int = 256 * 1024**2
    """How much the workspace and its temporary files may grow during the command."""
    copied_bytes: int = 64 * 1024**2
    """How much the directories have together that one call names and that are copied
    for an untrusted script.
    """
    copied_files: int = 10_000
    """How many files these directories have."""


DEFAULT_LIMITS: Final = Limits()
"""What a confined script may use unless the host says otherwise."""


@dataclass(frozen=True, slots=True)
class SandboxCommand:
    """One command to run once.

    ``argv[0]`` is an absolute path. ``environment`` is the whole environment, secrets
    included; it never becomes part of another process's argv. ``directory`` is where
    the command starts. ``writable``, ``readable`` and ``skills`` are absolute paths;
    ``skills`` are readable too.

    No part of a path in ``writable`` may be a link: a script of an earlier command
    could have made it, so a sandbox follows none and does not start the command then.
    """

    argv: tuple[str, ...]
    directory: Path
    stdin: bytes = field(default=b"", repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    skills: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    limits: Limits = DEFAULT_LIMITS
    network: bool = False
    on_output: Callable[[bytes, bytes], object] | None = field(
        default=None, repr=False, compare=False
    )
    """Receives the stdout and stderr so far of a command that a cancellation ended; a
    sandbox that does not know them need not call it.
    """


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended: its exit code (negative: the signal that ended it) and what
    it wrote.

    ``flooded`` says that stdout went over the limit and the command was killed for it;
    ``stdout`` is then cut. ``full`` says the same of the limit of its files, or of
    memory that the kernel's own limit does not count. ``stopped`` says that every
    process of the command was seen to be gone. ``cpu_seconds`` is what it and its
    supervisor used, where that is known.
    """

    exit_code: int
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)
    flooded: bool = False
    stopped: bool = True
    cpu_seconds: float | None = None
    full: bool = False


class Sandbox(Protocol):
    """Runs commands isolated from the host.

    When the call is cancelled, ``run`` ends every process of the command before it lets
    the cancellation pass, and calls *on_stopped* with whether all of them were seen to
    be gone.
    """

    @property
    def level(self) -> SandboxLevel:
        """What it guarantees."""
        ...

    async def run(
        self,
        command: SandboxCommand,
        *,
        on_stopped: Callable[[bool], object] | None = None,
    ) -> Finished:
        """Run *command* once and return how it ended.

        Raises:
            OSError: the command cannot be started.
        """
        ...


def require_level(choice: Any) -> None:
    """Refuse a name that no sandbox has where the host writes it, and not when the
    first untrusted script is called.

    Raises:
        ValueError: *choice* is a string other than ``"auto"`` and the levels.
    """
    if isinstance(choice, str) and choice not in ("auto", *LEVELS):
        raise ValueError(
            f"sandbox must be 'auto', {' or '.join(map(repr, LEVELS))}, or a Sandbox; "
            f"got {choice!r}"
        )
