"""What starting a confined script costs: `python -I -c pass` at each level, next to the
same without a sandbox.

Side by side in one run, turn by turn, so that a loaded machine slows all alike. CPU is
user and system time of every process involved, the supervisor's included. The launcher
is started once before, as in a host that makes many calls.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from skillruntime.runtime import (
    Sandbox,
    SandboxCommand,
    interpreter_paths,
    open_sandbox,
    sandbox_report,
)

ROUNDS = 60


async def main() -> None:
    reasons = await sandbox_report()
    sandboxes = {
        name: await open_sandbox(name)
        for name, reason in reasons.items()
        if reason is None
    }
    times: dict[str, list[float]] = {name: [] for name in ("plain", *sandboxes)}
    cpu: dict[str, list[float]] = {name: [] for name in times}
    with tempfile.TemporaryDirectory() as workspace:
        command = SandboxCommand(
            (sys.executable, "-I", "-c", "pass"),
            Path(workspace).resolve(),
            environment={"PATH": "/usr/bin:/bin"},
            readable=interpreter_paths(sys.executable),
            writable=(Path(workspace).resolve(),),
        )
        for _ in range(ROUNDS):
            # What the launcher does between two commands must not slow the start that
            # they are compared with.
            await anyio.sleep(0.02)
            started, before = time.perf_counter(), _children()
            subprocess.run(
                command.argv,
                capture_output=True,
                check=True,
                env=dict(command.environment),
            )
            times["plain"].append(time.perf_counter() - started)
            cpu["plain"].append(_children() - before)
            for name, sandbox in sandboxes.items():
                await _measure(sandbox, command, times[name], cpu[name])
    print(f"{'level':12} {'p50 ms':>8} {'x plain':>8} {'CPU ms':>8} {'x plain':>8}")
    for name in times:
        p50, mean = statistics.median(times[name]), statistics.median(cpu[name])
        print(
            f"{name:12} {p50 * 1e3:8.1f} "
            f"{p50 / statistics.median(times['plain']):8.2f} {mean * 1e3:8.1f} "
            f"{mean / statistics.median(cpu['plain']):8.2f}"
        )


async def _measure(
    sandbox: Sandbox, command: SandboxCommand, times: list[float], cpu: list[float]
) -> None:
    started = time.perf_counter()
    finished = await sandbox.run(command)
    times.append(time.perf_counter() - started)
    assert finished.exit_code == 0, finished
    cpu.append(finished.cpu_seconds or 0.0)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    anyio.run(main)
