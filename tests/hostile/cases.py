"""What one hostile case is, and the surroundings that it tries to reach."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

__all__ = ["CANARY", "Case", "World", "open_world", "skill_text"]

CANARY = "canary-4be1c7"
"""A secret of the host; a text of the loader that holds it has leaked it."""

Kind = Literal["script", "skill", "schema"]


@dataclass(frozen=True, slots=True)
class Case:
    """One attack.

    *write* writes the skill's files into its directory. *expected* is what must happen,
    in a sentence. A ``script`` case is run, a ``skill`` case is loaded, listed and read
    (*paths* are its resources), and of a ``schema`` case the *payload* is checked
    against the *schema*.
    """

    name: str
    kind: Kind
    attack: str
    expected: str
    write: Callable[[Path, World], None] = field(
        default=lambda directory, world: None, repr=False
    )
    paths: tuple[str, ...] = ()
    schema: Any = field(default=None, repr=False)
    payload: Callable[[], Any] = field(default=lambda: None, repr=False)

    def to_dict(self) -> dict[str, str]:
        """Return the entry of the manifest."""
        return {
            "name": self.name,
            "kind": self.kind,
            "attack": self.attack,
            "expected": self.expected,
        }


@dataclass(frozen=True, slots=True)
class World:
    """What a case tries to reach: files, sockets and a process of the host."""

    root: Path
    tcp: int = 0
    udp: int = 0
    abstract: str = ""
    sockets: tuple[socket.socket, ...] = ()

    @property
    def outside(self) -> Path:
        """A directory of the host that no skill was given; ``secret`` in it holds the
        canary.
        """
        return self.root / "outside"

    @property
    def home(self) -> Path:
        """The home directory of the host."""
        return self.root / "home"

    @property
    def skills(self) -> Path:
        """The directory of skills that the loader is given."""
        return self.root / "skills"

    @property
    def workspace(self) -> Path:
        """The directory in which a script may write."""
        return self.root / "workspace"

    def to_dict(self) -> dict[str, Any]:
        """Return what the scripts read about their target, so that they need not
        guess.
        """
        return {
            "outside": str(self.outside),
            "home": str(self.home),
            "workspace": str(self.workspace),
            "host": os.getpid(),
            "tcp": self.tcp,
            "udp": self.udp,
            "abstract": self.abstract,
        }


@contextmanager
def open_world(root: Path) -> Iterator[World]:
    """Make the surroundings below *root*, listen on the sockets, and set the
    environment of this process.
    """
    with ExitStack() as stack:
        for name in ("outside", "home/.ssh", "skills", "workspace"):
            (root / name).mkdir(parents=True)
        for path in (root / "outside" / "secret", root / "home" / ".ssh" / "id"):
            path.write_text(CANARY, "utf-8")
            path.chmod(0o644)
        os.environ |= {
            "HOME": str(root / "home"),
            "HOST_SECRET": CANARY,
            "TMPDIR": str(root),
        }
        kinds = (
            (socket.AF_INET, socket.SOCK_STREAM),
            (socket.AF_INET, socket.SOCK_DGRAM),
        )
        tcp, udp = (stack.enter_context(socket.socket(*kind)) for kind in kinds)
        for listener in (tcp, udp):
            listener.bind(("127.0.0.1", 0))
            listener.setblocking(False)
        tcp.listen()
        sockets = [tcp, udp]
        abstract = ""
        if hasattr(socket, "AF_UNIX"):
            unix = stack.enter_context(socket.socket(socket.AF_UNIX))
            unix.bind(str(root / "outside" / "socket"))
            unix.listen()
            unix.setblocking(False)
            sockets.append(unix)
            if os.uname().sysname == "Linux":
                abstract = f"hostile-{os.getpid()}"
                named = stack.enter_context(socket.socket(socket.AF_UNIX))
                named.bind(f"\0{abstract}")
                named.listen()
                named.setblocking(False)
                sockets.append(named)
        yield World(
            root, tcp.getsockname()[1], udp.getsockname()[1], abstract, tuple(sockets)
        )


def skill_text(
    name: str, description: str = "A sample. Use when testing.", body: str = "Do it."
) -> str:
    """Return a SKILL.md; *description* is written as a JSON string, which is YAML
    too.
    """
    return f"---\nname: {name}\ndescription: {json.dumps(description)}\n---\n{body}\n"
