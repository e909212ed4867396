"""``python -m tests.hostile.ends``: scripts that fork without an end, and what of them
outlives their call.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio

from skillruntime.runtime import SandboxCommand, interpreter_paths, open_sandbox

__all__ = ["LOOPS", "Outcome", "outcome_of"]

_START = """
import ctypes, os, signal, sys, threading, time
def fork():
    try:
        return os.fork()
    except OSError:
        return None
def leave():
    while True:
        if fork(): os._exit(0)
"""

LOOPS = {
    "new sessions": "while True:\n    if fork() == 0: os.setsid()",
    "parents leave": (
        "for _ in range(8):\n"
        "    if fork() == 0:\n"
        "        os.setsid()\n"
        "        leave()\n"
        "time.sleep(600)"
    ),
    "one takes the orphans": (
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "for _ in range(8):\n"
        "    if fork() == 0:\n"
        "        signal.signal(signal.SIGCHLD, signal.SIG_DFL)\n"
        "        leave()\n"
        "while fork() != 0: pass\n"
        "leave()"
    ),
    "threads": (
        "def loop():\n"
        "    while True:\n"
        "        if fork() == 0: os.setsid()\n"
        "for _ in range(4): threading.Thread(target=loop).start()"
    ),
    "parents wait": (
        "while True:\n"
        "    child = fork()\n"
        "    if child == 0:\n"
        "        os.setsid()\n"
        "        if fork() is None: os._exit(0)\n"
        "    elif child: os.waitpid(child, 0)"
    ),
}
"""The loops, by name."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of some calls: in how many every process was reported gone, how many
    processes lived although they were reported gone, how many lived in the end, and how
    many seconds after its deadline the slowest call returned.
    """

    calls: int
    stopped: int
    missed: int
    left: int
    slowest: float


def outcome_of(level: str, loops: list[str], *, seconds: float = 1.0) -> Outcome:
    """Call each of *loops* at *level*, with a deadline of *seconds*."""
    stopped = missed = left = 0
    slowest = 0.0
    for number, loop in enumerate(loops):
        mark = f"loop-{os.getpid()}-{number}"
        is_stopped, late = anyio.run(_called, level, loop, mark, seconds)
        stopped += is_stopped
        slowest = max(slowest, late)
        if is_stopped:
            missed += _living(mark)
        left += _left(mark)
    return Outcome(len(loops), stopped, missed, left, round(slowest, 2))


async def _called(
    level: str, loop: str, mark: str, seconds: float
) -> tuple[bool, float]:
    """Call a loop; return whether it was reported gone, and how late the call was."""
    sandbox = await open_sandbox(level)
    seen: list[bool] = []
    with tempfile.TemporaryDirectory() as made:
        workspace = Path(made)
        command = SandboxCommand(
            (sys.executable, "-I", "-S", "-c", _START + LOOPS[loop], mark),
            workspace,
            readable=interpreter_paths(sys.executable),
            writable=(workspace,),
        )
        before = time.monotonic()
        with anyio.move_on_after(seconds):
            finished = await sandbox.run(command, on_stopped=seen.append)
            seen.append(finished.stopped)
        late = time.monotonic() - before - seconds
    return seen == [True], late


def _living(mark: str) -> int:
    """Return how many processes live that have *mark* on their command line."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            # A zombie shows none.
            count += path.read_bytes().endswith(f"\0{mark}\0".encode())
        except OSError:
            continue
    return count


def _left(mark: str) -> int:
    """Return how many processes live in the end: the supervisor ends them after its
    report, too.
    """
    deadline = time.monotonic() + 120
    while (living := _living(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return living


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.ends", description=__doc__
    )
    parser.add_argument("level", choices=["bubblewrap", "landlock"])
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--busy", type=int, default=0, help="how many busy processes run beside them"
    )
    options = parser.parse_args()
    chosen = random.Random(options.seed)
    loops = [chosen.choice(list(LOOPS)) for _ in range(options.calls)]
    with ExitStack() as stack:
        for _ in range(options.busy):
            words = [sys.executable, "-c", "import os\nos.nice(19)\nwhile True: pass"]
            busy = stack.enter_context(subprocess.Popen(words))
            stack.callback(busy.kill)
        outcome = outcome_of(options.level, loops)
    sys.stdout.write(json.dumps(asdict(outcome)) + "\n")


if __name__ == "__main__":
    main()
