"""Start the launcher process of a host process; it starts and confines commands (see
`supervisor`).
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
    """The launcher of this process. A forked child starts its own, and so does a
    process that changed its user.
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
        """Start the launcher unless it runs, so that a host that is still loading need
        not wait for it later.
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
                    self.close()  # the launcher was killed; start another one once
                    if attempt == 2:
                        raise
                else:
                    return

    def _open(self) -> socket.socket:
        # A root launcher must not serve a host that has since given up root.
        owner = (os.getpid(), os.geteuid(), os.getegid())
        if self._socket is None or self._owner != owner or not self._is_open():
            self._socket = self._start(owner)
        return self._socket

    def _is_open(self) -> bool:
        """Return whether the descriptor is still this socket: a host may close all
        descriptors and open others.
        """
        assert self._socket is not None
        try:
            return os.fstat(self._socket.fileno()).st_ino == self._inode
        except OSError:
            return False

    def _start(self, owner: tuple[int, int, int]) -> socket.socket:
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # -I and -S: do not import from the environment, the working directory or
        # site-packages.
        root = os.path.dirname(PACKAGE_DIRECTORY)  # noqa: PTH120
        module = "skillruntime.runtime.sandbox.supervisor"
        program = (
            f"import sys; sys.path.append({root!r}); from {module} import serve; "
            "serve()"
        )
        with theirs:
            # Separate from the host: the launcher does not receive Ctrl-C from its
            # terminal, nor its directory and environment.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", program],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        self._process.returncode = (
            0  # prevents Popen's warning that the process still runs
        )
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
            # Raised if the host has collected the exit code, perhaps with waitpid(-1).
            with suppress(ChildProcessError):
                os.waitpid(self._process.pid, os.WNOHANG)
            self._process = None

    def leave_to_parent(self) -> None:
        """In a forked process: let the launcher end with its host, even if this process
        lives longer.
        """
        self.close()
        self._lock = (
            threading.Lock()
        )  # another thread of the parent may have held the lock


launcher_process: _LauncherProcess = _LauncherProcess()
atexit.register(launcher_process.close)
if sys.platform != "win32":
    os.register_at_fork(after_in_child=launcher_process.leave_to_parent)
