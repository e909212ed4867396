"""Run a server as a child process in its own process group, and end it together with
all processes that it started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

TYPE_CHECKING = False  # importing `typing` takes 8 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

__all__ = ["Process"]

EXIT_TIMEOUT = 1.5
"""The seconds that the server has to exit after its stdin is closed, and again after
SIGTERM; the SDKs allow two.
"""

# The shell reads a line when the server has ended, and the end of its input when the
# proxy has ended. It runs in the background, so that the server is the proxy's only
# child. Seconds without a fraction: POSIX has no other for `sleep`.
_WATCHER = """
exec 3<&0  # the stdin of what runs in the background is /dev/null (POSIX, 2.9.3.1)
{
    read -r line <&3 && exit
    for name in TERM KILL; do
        sleep 2
        kill -s 0 -- "-$1" || exit
        kill -s $name -- "-$1"
    done
} &
"""


class Process:
    """A running server: its id, and the descriptors of its stdin and stdout; its stderr
    is that of this process.

    Raises:
        OSError: *command* cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        started = subprocess.Popen(
            list(command), stdin=pipe, stdout=pipe, start_new_session=True, bufsize=0
        )
        assert started.stdin and started.stdout
        self.pid: int = started.pid
        self.stdin: int = os.dup(started.stdin.fileno())
        self.stdout: int = os.dup(started.stdout.fileno())
        started.stdin.close()
        started.stdout.close()
        self.exited: threading.Event = threading.Event()
        self._status = 1
        self._watch = _watch(started.pid)

        def reap() -> None:
            self._status = started.wait()
            self.exited.set()

        threading.Thread(target=reap, daemon=True).start()

    def end(self, *, patient: bool = True) -> int:
        """End the server, whose stdin is closed, and all processes that it started;
        return its exit status.

        After a signal to the proxy, the server gets SIGTERM at once, and SIGKILL before
        a client that waits two seconds (as the SDKs do) kills the proxy.
        """
        try:
            if patient and self.exited.wait(EXIT_TIMEOUT):
                return self._ended()
            for name in ("SIGTERM", "SIGKILL"):
                self.signal(name)
                if self.exited.wait(EXIT_TIMEOUT):
                    return self._ended()
            return 1
        finally:
            _close_watch(self._watch, self.pid)
            self._watch = None

    def _ended(self) -> int:
        """End the processes that the server left in its group; return its exit
        status.
        """
        self.signal("SIGTERM")
        if self._status < 0:  # by a signal
            return 128 - self._status
        return self._status

    def signal(self, name: str) -> None:
        """Send a signal to the process group, if it still exists."""
        try:
            if sys.platform == "win32":
                os.kill(self.pid, signal.SIGTERM)
            else:
                os.killpg(self.pid, getattr(signal, name))
        except OSError:
            return


def _watch(pid: int) -> IO[bytes] | None:
    """Start a small shell that ends the process group *pid* if this process ends first.

    The end of stdin is enough for a server that reads it. For other servers the proxy
    itself cannot act once it is killed with SIGKILL. Linux's ``PR_SET_PDEATHSIG`` would
    have to be set between fork and exec and does not reach the server's own children,
    and macOS has no equivalent. Return the handle for `_close_watch`; ``None`` on
    systems without process groups.
    """
    if not hasattr(os, "killpg"):
        return None
    null = subprocess.DEVNULL
    # In its own session, because a signal that kills the proxy may go to its whole
    # process group.
    words = ["/bin/sh", "-c", _WATCHER, "mcp-proxy-watch", str(pid)]
    try:
        shell = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=null,
            stderr=null,
            start_new_session=True,
        )
    except OSError:
        return None
    # it only starts the watcher, in the milliseconds that the server takes to start
    shell.wait()
    return shell.stdin


def _close_watch(watcher: IO[bytes] | None, pid: int) -> None:
    """End the shell that `_watch` started, unless the server *pid* left processes in
    its group: the shell ends those.
    """
    if watcher is None:
        return
    with contextlib.suppress(OSError):  # the shell was killed
        try:
            os.killpg(pid, 0)
        except OSError:  # the group is empty
            watcher.write(b"\n")
        watcher.close()
