"""The launcher process of a host process, which starts and confines commands: see
`supervisor`.
"""

from __future__ import annotations

import array
import atexit
import errno
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from skillruntime.package_directory import PACKAGE_DIRECTORY

__all__ = ["launcher_process"]


class _LauncherProcess:
    """The launcher of this process; a forked child, or a process that changed its user,
    starts its own.
    """

    def __init__(self) -> None:
        # Calls of several threads share the socket; a message and its descriptors are
        # sent in one piece.
        self._lock = threading.Lock()
        self._owner: tuple[int, int, int] | None = None
        self._socket: socket.socket | None = None
        self._inode = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it unless it runs: a host that is still loading need not wait for it
        later.
        """
        with self._lock:
            self._open()

    def send(self, descriptors: Sequence[int]) -> None:
        with self._lock:
            for attempt in (1, 2):
                opened = self._open()
                sent = array.array("i", descriptors)
                ancillary = (socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)
                try:
                    opened.sendmsg([b"r"], [ancillary])
                except OSError as error:
                    if error.errno == errno.ETOOMANYREFS:
                        raise
                    self.close()  # it was killed; another is started once
                    if attempt == 2:
                        raise
                else:
                    return

    def _open(self) -> socket.socket:
        # A root launcher must not serve a host that has given root up since.
        owner = (os.getpid(), os.geteuid(), os.getegid())
        if self._socket is None or self._owner != owner or not self._is_open():
            self._socket = self._start(owner)
        return self._socket

    def _is_open(self) -> bool:
        """Return whether the socket is still this one: a host may close every
        descriptor, and open others.
        """
        assert self._socket is not None
        try:
            return os.fstat(self._socket.fileno()).st_ino == self._inode
        except OSError:
            return False

    def _start(self, owner: tuple[int, int, int]) -> socket.socket:
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # -I and -S: nothing of the environment, of the working directory or of
        # site-packages is imported.
        root = os.path.dirname(PACKAGE_DIRECTORY)  # noqa: PTH120
        module = "skillruntime.runtime.sandbox.supervisor"
        program = (
            f"import sys; sys.path.append({root!r}); from {module} import serve; "
            "serve()"
        )
        with theirs:
            # Apart from the host: Ctrl-C in its terminal, its directory and its
            # environment are not the launcher's.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", program],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        self._process.returncode = 0  # Popen must not warn that it still runs
        self._inode, self._owner = os.fstat(ours.fileno()).st_ino, owner
        return ours

    def close(self) -> None:
        if self._socket is not None:
            if self._is_open():
                self._socket.close()
            else:
                self._socket.detach()
            self._socket = None
        if self._process is not None:
            # Raised where the host has taken its exit code, with waitpid(-1) perhaps.
            with suppress(ChildProcessError):
                os.waitpid(self._process.pid, os.WNOHANG)
            self._process = None

    def leave_to_parent(self) -> None:
        """In a forked process: the launcher ends with its host, and not only when this
        process ends too.
        """
        self.close()
        self._lock = threading.Lock()  # another thread of the parent may have had it


launcher_process = _LauncherProcess()
atexit.register(launcher_process.close)
if sys.platform != "win32":
    os.register_at_fork(after_in_child=launcher_process.leave_to_parent)
