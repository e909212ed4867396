"""Run a trusted script as a plain process: not confined, with limited output, and ended
together with the processes that it started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from skillruntime.runtime.sandbox.launcher import STDERR_LIMIT, LocalSandbox
from skillruntime.runtime.sandbox.protocol import Finished, SandboxCommand, SandboxLevel

if TYPE_CHECKING:
    from anyio.abc import Process

__all__ = ["PlainProcess"]

_IS_LINUX = sys.platform.startswith("linux")  # a constant would hide the rest from mypy
_GRACE = 1.0  # seconds to read the rest of the pipes after the process has ended
_CLEANUP = 5.0  # seconds, at most, to reap a killed process


class PlainProcess:
    """Runs a command as the host runs itself: level ``none``, for sources that the host
    trusts.

    On Linux the supervisor ends the process, including children that left its session.
    On other systems its process group is killed, which does not reach a process that
    left the group on purpose (a daemon).
    """

    level: SandboxLevel = "none"

    async def run(
        self,
        command: SandboxCommand,
        *,
        on_stopped: Callable[[bool], object] | None = None,
    ) -> Finished:
        """Run *command* without a shell, and return how it ended; see `Sandbox`."""
        if _IS_LINUX:
            return await LocalSandbox("none").run(command, on_stopped=on_stopped)
        return await _run_in_group(command, on_stopped)


async def _run_in_group(
    command: SandboxCommand, on_stopped: Callable[[bool], object] | None
) -> Finished:
    import anyio  # not needed if the supervisor ends the command

    process = await anyio.open_process(
        list(command.argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=command.directory,
        env=dict(command.environment),
        start_new_session=True,
    )
    stdout, stderr = bytearray(), bytearray()
    flooded = False

    async def feed() -> None:
        assert process.stdin
        # Raised if the script does not read its stdin, which is allowed.
        with suppress(
            anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError
        ):
            await process.stdin.send(command.stdin)
            await process.stdin.aclose()

    async def read_stdout() -> None:
        nonlocal flooded
        assert process.stdout
        async for chunk in process.stdout:
            stdout.extend(chunk)
            if len(stdout) > command.limits.stdout:
                flooded = True
                _kill_group(process)
                return

    async def read_stderr() -> None:
        assert process.stderr
        async for chunk in process.stderr:
            stderr.extend(chunk)
            del stderr[:-STDERR_LIMIT]

    try:
        async with anyio.create_task_group() as tasks:
            for each in (feed, read_stdout, read_stderr):
                tasks.start_soon(each)
            exit_code = await process.wait()
            _kill_group(process)  # its children would keep the pipes open
            # A process that left the group may still hold the pipes.
            tasks.cancel_scope.deadline = anyio.current_time() + _GRACE
    except BaseException:
        if on_stopped is not None:
            # The group is killed below; whether a child left the group is unknown.
            on_stopped(False)
        if command.on_output is not None:
            command.on_output(bytes(stdout[: command.limits.stdout]), bytes(stderr))
        raise
    finally:
        _kill_group(process)
        with anyio.move_on_after(_CLEANUP, shield=True):
            await process.aclose()
    return Finished(
        exit_code,
        bytes(stdout[: command.limits.stdout]),
        bytes(stderr),
        flooded,
        stopped=False,
    )


def _kill_group(process: Process) -> None:
    if sys.platform == "win32":
        with suppress(OSError):
            subprocess.run(
                ["taskkill", "/F", "/T", "/PID", str(process.pid)],
                capture_output=True,
                check=False,
            )
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
