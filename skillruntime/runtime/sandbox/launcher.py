"""The host's side of a local sandbox: one conversation with the launcher process per
command.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import anyio

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

__all__ = ["LocalSandbox", "with_private_directories"]

STDERR_LIMIT = 64 * 1024
"""How many of the last bytes on stderr are kept."""

_CHUNK = 64 * 1024
_RETRY = 0.01  # seconds
# Seconds, at most, for the supervisor to end a command: twice what it allows itself.
_ENDING = 10.0


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
        """What it guarantees."""
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
                # There is no private /tmp: the command gets a directory of its own
                # instead.
                temporary = make_temporary()
                ours.callback(remove_soon, temporary)
            else:
                temporary = Path("/tmp")
            if self._level != "none":
                command = with_private_directories(command, temporary)
            control, stdout, stderr = await self._started(command, ours)
            conversation = _Conversation(command, control, stdout, stderr)
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(conversation.read_stdout)
                    tasks.start_soon(conversation.read_stderr)
                    tasks.start_soon(conversation.read_report)
            except BaseException:
                # A deadline or a cancellation must not pass before the command is gone:
                # `stopped` is what was seen.
                with anyio.move_on_after(_ENDING, shield=True):
                    # Its report still comes: the supervisor says what it saw before it
                    # exits.
                    conversation.end()
                    await conversation.read_report()
                if on_stopped is not None:
                    on_stopped(conversation.stopped)
                if command.on_output is not None:
                    command.on_output(
                        bytes(conversation.stdout), bytes(conversation.stderr)
                    )
                raise
        report = conversation.report
        if "exit_code" not in report:
            # bubblewrap says on stderr what it lacks.
            lines = conversation.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = report.get("error", "the launcher ended without a report")
            if lines:
                reason = lines[-1]
            kind = WritablePathError if report.get("is_writable") else OSError
            raise kind(report.get("errno", errno.EIO), reason)
        return Finished(
            report["exit_code"],
            bytes(conversation.stdout),
            bytes(conversation.stderr),
            conversation.flooded,
            report["stopped"],
            report["cpu_seconds"],
            report["full"],
        )

    async def _started(
        self, command: SandboxCommand, ours: ExitStack
    ) -> tuple[socket.socket, int, int]:
        """Return what `_start` does; of many commands at once, some wait until the
        launcher has taken others.
        """
        while True:
            with ExitStack() as kept:
                try:
                    ends = self._start(command, kept)
                except OSError as error:
                    # The kernel limits how many descriptors of a user, root excepted,
                    # are on their way (unix(7)).
                    if error.errno != errno.ETOOMANYREFS:
                        raise
                else:
                    ours.enter_context(kept.pop_all())
                    return ends
            await anyio.sleep(_RETRY)

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
            # A file in memory: unlike a pipe it needs no task that feeds it, and a
            # script may leave it unread.
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
        # git ends where the host has an /etc/gitconfig that it may not read
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
    """What has come out of a command so far, and how it is ended."""

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
        """Make the supervisor end the command: it sees that the host's end says nothing
        more.
        """
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    @property
    def report(self) -> dict[str, Any]:
        """What the supervisor said; empty where it said nothing."""
        try:
            report: dict[str, Any] = json.loads(self._report)
        except ValueError:
            return {}
        return report

    @property
    def stopped(self) -> bool:
        """Whether the supervisor saw every process of the command gone."""
        return self.report.get("stopped") is True

    async def read_stdout(self) -> None:
        limit = self._command.limits.stdout
        while chunk := await _read(self._descriptors[0]):
            if self.flooded:
                # Read on until the supervisor has ended it, so that it does not block
                # in a write.
                continue
            self.stdout += chunk
            if len(self.stdout) > limit:
                del self.stdout[limit:]
                self.flooded = True
                self.end()

    async def read_stderr(self) -> None:
        while chunk := await _read(self._descriptors[1]):
            self.stderr += chunk
            if len(self.stderr) > 2 * STDERR_LIMIT:
                del self.stderr[:-STDERR_LIMIT]
        del self.stderr[:-STDERR_LIMIT]

    async def read_report(self) -> None:
        while True:
            try:
                chunk = self._control.recv(_CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._control)
                continue
            except ConnectionError:
                return
            if not chunk:
                # The supervisor has exited; without a report where it was killed.
                return
            self._report += chunk


async def _read(descriptor: int) -> bytes:
    """Return what comes next on a pipe; nothing at its end."""
    while True:
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            await anyio.wait_readable(descriptor)


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
