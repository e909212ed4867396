"""Define the input and the result of a sandbox: the small protocol of every level and
every plug-in.
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
"""How a script was confined; a table in `docs/security.md` lists the guarantees of each
level.
"""

LEVELS: Final = ("bubblewrap", "landlock")
"""The levels of this library, the strongest first."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one command. Sizes are bytes. ``memory`` applies to all processes
    of a command together, including shared memory and files in memory. The stacks of
    threads count too, 8 MiB each on most systems: 1 GiB ends a process at about 126
    threads, before ``processes`` does.
    """

    memory: int = 1024**3
    processes: int = 256  # threads count: numpy and node start one or more per core
    file_size: int = 256 * 1024**2
    open_files: int = 1024
    temporary: int = 512 * 1024**2
    stdout: int = 10 * 1024**2
    workspace: int = 256 * 1024**2
    """How much the workspace and its temporary files may grow during the command."""
    session: int = 512 * 1024**2
    """The most that the directories of all untrusted skills may hold together in one
    session; each keeps its files from call to call.
    """
    copied_bytes: int = 64 * 1024**2
    """The total size of the directories that one call names and that are copied for an
    untrusted script.
    """
    copied_files: int = 10_000
    """The number of files in these directories."""


DEFAULT_LIMITS: Final = Limits()
"""The limits of a confined script, unless the host sets others."""


@dataclass(frozen=True, slots=True)
class SandboxCommand:
    """One command to run once.

    ``argv[0]`` is an absolute path. ``environment`` is the complete environment,
    including secrets; it never becomes part of another process's argv. ``directory`` is
    where the command starts. ``writable``, ``readable`` and ``skills`` are absolute
    paths; ``skills`` are readable too.

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
    """Receives the stdout and stderr so far of a command that was ended by a
    cancellation; a sandbox that does not know them need not call it.
    """
    on_still_running: Callable[[tuple[str, ...]], object] | None = field(
        default=None, repr=False, compare=False
    )
    """Receives the number and the name of processes of the command that were not seen
    to end, before ``run`` returns or raises.
    """


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended: its exit code (negative: the signal that ended it) and what
    it wrote.

    ``flooded`` says that stdout went over the limit and the command was killed for it;
    ``stdout`` is then truncated. ``full`` says the same of the limit of files, or of
    memory that the kernel's own limit does not count; ``excess`` names any other
    exceeded limit: ``"more than 512 pipes"``. ``stopped`` says that every process of
    the command was seen to be gone. ``cpu_seconds`` is the CPU time of the command and
    its supervisor, if known.
    """

    exit_code: int
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)
    flooded: bool = False
    stopped: bool = True
    cpu_seconds: float | None = None
    full: bool = False
    excess: str = ""


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
    """Refuse an unknown name when the host sets it, not when the first untrusted script
    is called.

    Raises:
        ValueError: *choice* is a string other than ``"auto"`` and the levels.
    """
    if isinstance(choice, str) and choice not in ("auto", *LEVELS):
        raise ValueError(
            f"sandbox must be 'auto', {' or '.join(map(repr, LEVELS))}, or a Sandbox; "
            f"got {choice!r}"
        )
