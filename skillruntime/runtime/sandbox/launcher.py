"""The host's side of a local sandbox: one conversation with the launcher process per
command.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from skillruntime.runtime.files.temporary import make_temporary, remove_soon
from skillruntime.runtime.sandbox.launcher_process import launcher_process
from skillruntime.runtime.sandbox.protocol import (
    Finished,
    Limits,
    SandboxCommand,
    SandboxLevel,
)
from skillruntime.runtime.sandbox.readable_paths import system_paths
from skillruntime.runtime.sandbox.without_links import WritablePathError, outermost
from skillruntime.runtime.waiting import readable, seconds_left, shielded, sleep

__all__ = ["LocalSandbox", "with_private_directories"]

STDERR_LIMIT = 64 * 1024
"""How many of the last bytes on stderr are kept."""

_CHUNK = 64 * 1024
_RETRY = 0.01  # seconds
# The seconds that the supervisor has to end a command and to report. It needs at most
# 1.5, even if processes still live. The rest is for a busy machine: among 256 busy
# processes, a cancellation was more than a second late.
_ENDING = 2.5
_GRACE = 1.0  # seconds to read the rest from pipes that processes still hold


class LocalSandbox:
    """A sandbox of this machine, at one level.

    *bubblewrap* is the path of ``bwrap``; *abi* is how much of Landlock to use, at most
    what the kernel speaks.
    """

    def __init__(
        self, level: SandboxLevel, *, bubblewrap: str | None = None, abi: int = 0
    ) -> None:
        self._level: SandboxLevel = level
        self._bubblewrap = bubblewrap
        self._abi = abi

    @property
    def level(self) -> SandboxLevel:
        """The level of confinement that the sandbox guarantees."""
        return self._level

    def __repr__(self) -> str:
        return f"<LocalSandbox {self._level}>"

    async def run(
        self,
        command: SandboxCommand,
        *,
        on_stopped: Callable[[bool], object] | None = None,
    ) -> Finished:
        """Run *command* once and return how it ended; see `Sandbox`."""
        with ExitStack() as ours:
            if self._level == "landlock":
                # This level has no private /tmp: the command gets a directory of its
                # own instead.
                temporary = make_temporary()
                ours.callback(remove_soon, temporary)
            else:
                temporary = Path("/tmp")
            if self._level != "none":
                command = with_private_directories(command, temporary)
            control, stdout, stderr = await self._started(command, ours)
            conversation = _Conversation(command, control, stdout, stderr)
            try:
                await conversation.read()
            except BaseException:
                # A deadline or a cancellation must not take effect before the command
                # is gone; `stopped` records the observation.
                with shielded(_ENDING):
                    # The report still arrives: the supervisor sends it before it exits.
                    conversation.end()
                    await conversation.read_report()
                conversation.name_living()
                if on_stopped is not None:
                    on_stopped(conversation.stopped)
                if command.on_output is not None:
                    command.on_output(
                        bytes(conversation.stdout), bytes(conversation.stderr)
                    )
                raise
        report = conversation.report
        if "exit_code" not in report:
            # bubblewrap reports on stderr what it lacks.
            lines = conversation.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = report.get("error", "the launcher ended without a report")
            if lines:
                reason = lines[-1]
            kind = WritablePathError if report.get("is_writable") else OSError
            raise kind(report.get("errno", errno.EIO), reason)
        conversation.name_living()
        return Finished(
            report["exit_code"],
            bytes(conversation.stdout),
            bytes(conversation.stderr),
            conversation.flooded,
            report["stopped"],
            report["cpu_seconds"],
            report["full"],
            report["excess"],
        )

    async def _started(
        self, command: SandboxCommand, ours: ExitStack
    ) -> tuple[socket.socket, int, int]:
        """Return the result of `_start`. If many commands start at once, some wait
        until the launcher has taken others.
        """
        while True:
            with ExitStack() as kept:
                try:
                    ends = self._start(command, kept)
                except OSError as error:
                    # The kernel limits how many descriptors of a user, except root, may
                    # be in transit (unix(7)).
                    if error.errno != errno.ETOOMANYREFS:
                        raise
                else:
                    ours.enter_context(kept.pop_all())
                    return ends
            await sleep(_RETRY)

    def _start(
        self, command: SandboxCommand, ours: ExitStack
    ) -> tuple[socket.socket, int, int]:
        """Hand *command* to the launcher; return the ends of its control socket and
        pipes, which *ours* closes.
        """
        with ExitStack() as theirs:
            # Plain pipes instead of a subprocess: the supervisor, not this process, is
            # the parent of the command.
            pipes = []
            for _ in range(2):
                reading, writing = os.pipe()
                ours.callback(os.close, reading)
                theirs.callback(os.close, writing)
                os.set_blocking(reading, False)
                pipes.append((reading, writing))
            control, other = socket.socketpair()
            ours.enter_context(control)
            theirs.enter_context(other)
            control.setblocking(False)
            document = json.dumps(self._described(command), ensure_ascii=True)
            request = _file_of(document.encode())
            theirs.callback(os.close, request)
            # A file in memory: unlike a pipe it does not need a task that feeds it, and
            # a script may leave it unread.
            stdin = _file_of(command.stdin)
            theirs.callback(os.close, stdin)
            (stdout, stdout_writing), (stderr, stderr_writing) = pipes
            launcher_process.send(
                [request, stdin, stdout_writing, stderr_writing, other.fileno()]
            )
        return control, stdout, stderr

    def _described(self, command: SandboxCommand) -> dict[str, Any]:
        writable = [str(path) for path in command.writable]
        return {
            "level": self._level,
            "bubblewrap": self._bubblewrap,
            "abi": self._abi,
            "argv": command.argv,
            "directory": str(command.directory),
            "environment": dict(command.environment),
            "readable": self._readable(command),
            "skills": [str(path) for path in command.skills],
            "writable": writable,
            "measured": self._measured(command),
            "bound": outermost(writable),
            "limits": _limits(command.limits),
            "network": command.network,
            "seconds": seconds_left(),
        }

    def _measured(self, command: SandboxCommand) -> list[str]:
        """Return the directories whose growth is limited; bubblewrap's temporary files
        are limited by their mount.
        """
        if self._level == "none":
            return []
        measured = [str(command.directory)]
        if self._level == "landlock":
            measured.append(command.environment["TMPDIR"])
        return measured

    def _readable(self, command: SandboxCommand) -> list[str]:
        if self._level == "none":
            return []
        system = system_paths(
            namespaces=self._level == "bubblewrap", network=command.network
        )
        return [str(path) for path in dict.fromkeys((*system, *command.readable))]


def with_private_directories(
    command: SandboxCommand, temporary: Path
) -> SandboxCommand:
    """Return *command* with its home, caches and temporary files below *temporary*."""
    home = temporary / "home"
    own = {
        "TMPDIR": str(temporary),
        "TEMP": str(temporary),
        "TMP": str(temporary),
        "XDG_RUNTIME_DIR": str(temporary),
        "HOME": str(home),
        "USER": "skill",
        "XDG_CACHE_HOME": str(home / ".cache"),
        "MPLCONFIGDIR": str(home / ".matplotlib"),
        # git fails if the host has an /etc/gitconfig that the script may not read
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    writable = command.writable
    if temporary != Path("/tmp"):
        home.mkdir()
        writable = (*writable, temporary)
    return dataclasses.replace(
        command, environment={**command.environment, **own}, writable=writable
    )


class _Conversation:
    """The output of a running command so far, and the means to end it."""

    def __init__(
        self, command: SandboxCommand, control: socket.socket, stdout: int, stderr: int
    ) -> None:
        self._command = command
        self._control = control
        self._descriptors = (stdout, stderr)
        self._report = bytearray()
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.flooded = False

    def end(self) -> None:
        """Make the supervisor end the command, by closing the host's end for
        writing.
        """
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    @property
    def report(self) -> dict[str, Any]:
        """The supervisor's report; empty if it sent none."""
        try:
            report: dict[str, Any] = json.loads(self._report)
        except ValueError:
            return {}
        return report

    @property
    def stopped(self) -> bool:
        """Whether the supervisor saw every process of the command gone."""
        return self.report.get("stopped") is True

    def name_living(self) -> None:
        """Report to the host which processes still live."""
        living = self.report.get("still_running")
        if living and self._command.on_still_running is not None:
            self._command.on_still_running(tuple(living))

    async def read(self) -> None:
        """Read the command's output until it has ended, and then briefly the rest in
        the pipes.
        """
        stdout, stderr = self._descriptors
        control = self._control.fileno()
        readers = {
            stdout: self._read_stdout,
            stderr: self._read_stderr,
            control: self._read_control,
        }
        until = None
        while readers:
            left = None if until is None else max(0.0, until - time.monotonic())
            ready = await readable([*readers], left)
            if not ready:
                return  # a process that left the command may hold the pipes
            for descriptor in ready:
                if readers[descriptor]():
                    del readers[descriptor]
            if until is None and control not in readers and not self.stopped:
                until = time.monotonic() + _GRACE

    async def read_report(self) -> None:
        """Read the report of the supervisor to its end."""
        while not self._read_control():
            await readable([self._control.fileno()])

    def _read_stdout(self) -> bool:
        """Read the available output; return whether it has ended."""
        chunk = _read(self._descriptors[0])
        # Even beyond the limit the output is read until the supervisor has ended the
        # command: otherwise the command would block in a write.
        if chunk and not self.flooded:
            limit = self._command.limits.stdout
            self.stdout += chunk
            if len(self.stdout) > limit:
                del self.stdout[limit:]
                self.flooded = True
                self.end()
        return chunk == b""

    def _read_stderr(self) -> bool:
        chunk = _read(self._descriptors[1])
        if chunk is None:
            return False
        self.stderr += chunk
        if not chunk or len(self.stderr) > 2 * STDERR_LIMIT:
            del self.stderr[:-STDERR_LIMIT]
        return not chunk

    def _read_control(self) -> bool:
        try:
            chunk = self._control.recv(_CHUNK)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True
        self._report += chunk
        # At the end the supervisor has exited; if it was killed, there is no report.
        return not chunk


def _read(descriptor: int) -> bytes | None:
    """Return the next bytes of a pipe: empty at its end, ``None`` if none are available
    yet.
    """
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return None


def _file_of(content: bytes) -> int:
    descriptor = os.memfd_create("skillruntime")
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _limits(limits: Limits) -> dict[str, int]:
    names = ("memory", "processes", "file_size", "open_files", "temporary", "workspace")
    return {name: getattr(limits, name) for name in names}
