"""One child process: fed on stdin, read up to a limit, and killed with everything it started, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

__all__ = ["Finished", "run_process"]

STDERR_LIMIT = 64 * 1024
"""How many of the last bytes on stderr are kept."""

_GRACE = 1.0  # seconds for what is left in the pipes once the process has ended
_CLEANUP = 5.0  # seconds, at most, to reap a killed process


@dataclass(frozen=True, slots=True)
class Finished:
    """How a process ended: its exit code (negative: the signal that ended it) and what it wrote.

    ``flooded`` says that stdout went over the limit and the process was killed for it; ``stdout`` is then cut.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    flooded: bool = False


async def run_process(
    command: Sequence[str], *, stdin: bytes, directory: Path, environment: Mapping[str, str], stdout_limit: int
) -> Finished:
    """Run *command* without a shell, in a process group of its own, and return how it ended.

    On the way out, by whatever way (a deadline and a cancellation too), the whole group is killed and the process is
    reaped. A process that left its group on purpose (a daemon) is out of reach here: that is a sandbox's work.

    Raises:
        OSError: the command cannot be started.
    """
    process = await anyio.open_process(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=directory,
        env=dict(environment),
        start_new_session=True,
    )
    assert process.stdin and process.stdout and process.stderr
    reading = _Reading(process, stdout_limit)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_feed, process.stdin, stdin)
            tasks.start_soon(reading.read_stdout, process.stdout)
            tasks.start_soon(reading.read_stderr, process.stderr)
            exit_code = await process.wait()
            _kill_group(process)  # what it left running would keep the pipes open
            with anyio.move_on_after(_GRACE):
                await reading.stdout_ended.wait()
                await reading.stderr_ended.wait()
            tasks.cancel_scope.cancel()
    finally:
        _kill_group(process)
        with anyio.move_on_after(_CLEANUP, shield=True):
            await process.aclose()
    return Finished(exit_code, bytes(reading.stdout), bytes(reading.stderr), reading.flooded)


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
    """Write *data* and close; a process that does not read its stdin is within its rights."""
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
