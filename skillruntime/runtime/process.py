"""A trusted script as a plain process: not confined, read up to a limit, and ended with what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from skillruntime.runtime.sandbox.launcher import STDERR_LIMIT, LocalSandbox
from skillruntime.runtime.sandbox.protocol import Finished, SandboxCommand, SandboxLevel

__all__ = ["PlainProcess"]

_IS_LINUX = sys.platform.startswith("linux")  # a constant would hide the rest from mypy
_GRACE = 1.0  # seconds for what is left in the pipes once the process has ended
_CLEANUP = 5.0  # seconds, at most, to reap a killed process


class PlainProcess:
    """Runs a command as the host runs itself: level ``none``, for sources that the host trusts.

    On Linux the supervisor ends it, so that a child which left its session ends too. Elsewhere its process group is
    killed, and a process that left the group on purpose (a daemon) is out of reach.
    """

    level: SandboxLevel = "none"

    async def run(self, command: SandboxCommand, *, on_stopped: Callable[[bool], object] | None = None) -> Finished:
        """Run *command* without a shell, and return how it ended; see `Sandbox`."""
        if _IS_LINUX:
            return await LocalSandbox("none").run(command, on_stopped=on_stopped)
        return await _run_in_group(command, on_stopped)


async def _run_in_group(command: SandboxCommand, on_stopped: Callable[[bool], object] | None) -> Finished:
    process = await anyio.open_process(
        list(command.argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=command.directory,
        env=dict(command.environment),
        start_new_session=True,
    )
    assert process.stdin and process.stdout and process.stderr
    reading = _Reading(process, command.limits.stdout)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_feed, process.stdin, command.stdin)
            tasks.start_soon(reading.read_stdout, process.stdout)
            tasks.start_soon(reading.read_stderr, process.stderr)
            exit_code = await process.wait()
            _kill_group(process)  # what it left running would keep the pipes open
            with anyio.move_on_after(_GRACE):
                await reading.stdout_ended.wait()
                await reading.stderr_ended.wait()
            tasks.cancel_scope.cancel()
    except BaseException:
        if on_stopped is not None:
            on_stopped(False)  # the group is killed below; whether a child left it cannot be seen
        raise
    finally:
        _kill_group(process)
        with anyio.move_on_after(_CLEANUP, shield=True):
            await process.aclose()
    return Finished(exit_code, bytes(reading.stdout), bytes(reading.stderr), reading.flooded, stopped=False)


class _Reading:
    """What has come out of a process so far."""

    def __init__(self, process: Process, stdout_limit: int) -> None:
        self._process = process
        self._stdout_limit = stdout_limit
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.flooded = False
        self.stdout_ended = anyio.Event()
        self.stderr_ended = anyio.Event()

    async def read_stdout(self, stream: ByteReceiveStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in stream:
                self.stdout += chunk
                if len(self.stdout) > self._stdout_limit:
                    del self.stdout[self._stdout_limit :]
                    self.flooded = True
                    _kill_group(self._process)
                    break
        self.stdout_ended.set()

    async def read_stderr(self, stream: ByteReceiveStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in stream:
                self.stderr += chunk
                if len(self.stderr) > 2 * STDERR_LIMIT:
                    del self.stderr[:-STDERR_LIMIT]
        del self.stderr[:-STDERR_LIMIT]
        self.stderr_ended.set()


async def _feed(stream: ByteSendStream, data: bytes) -> None:
    """Write *data* and close; a process may end without reading its stdin."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, BrokenPipeError, ConnectionError):
        await stream.send(data)
        await stream.aclose()


def _kill_group(process: Process) -> None:
    if sys.platform == "win32":
        with suppress(OSError):
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
