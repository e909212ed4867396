"""Note which steps of a skill's Python files a call makes from one line to the next.

The script is traced in its own process, inside its sandbox, by a few lines of Python
that run before it. They write what they saw to stderr when it exits, and the text is
removed before anything else reads the output. A script that ends without Python's exit
(`os._exit`, a signal), or in another language, shows no steps.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace

from skillruntime.runtime.sandbox.protocol import (
    Finished,
    Sandbox,
    SandboxCommand,
    SandboxLevel,
)
from skillruntime.runtime.scripts.python_start import RUN_FILE

__all__ = ["Step", "TracingSandbox", "noted_steps"]

Step = tuple[str, int, int]
"""A file of the skill, the number of a line, and that of the next line in the same
function; 0 before the first.
"""

# Runs in the namespace of `__main__`, like the lines that start the script, and leaves
# nothing there. Those lines take the skill's directory as their first argument. They
# import os themselves, and the rest only at the exit.
_TRACE = """\
def trace():
    import atexit, os, sys, threading
    del globals()["trace"]
    root = os.path.join(sys.argv[1], "")
    steps = {}
    def on_call(frame, event, argument):
        path = frame.f_code.co_filename
        if not path.startswith(root):
            return None
        own = steps.setdefault(path[len(root):], set())
        last = 0
        def on_line(frame, event, argument):
            nonlocal last
            if event == "line":
                own.add((last, frame.f_lineno))
                last = frame.f_lineno
            return on_line
        return on_line
    def write():
        sys.settrace(None)
        import base64, json, zlib
        text = json.dumps({path: sorted(own) for path, own in steps.items()})
        data = base64.b64encode(zlib.compress(text.encode()))
        try:
            os.write(2, b"MARK" + data + b"\\n")
        except OSError:
            pass
    atexit.register(write)
    threading.settrace(on_call)
    sys.settrace(on_call)
trace()
"""
_MARK = "<steps of the traced script>"
_NOTE = re.compile(re.escape(_MARK.encode()) + rb"([A-Za-z0-9+/=]*)\n")

_steps: ContextVar[set[Step] | None] = ContextVar("steps", default=None)


@contextmanager
def noted_steps() -> Iterator[set[Step]]:
    """Trace the scripts of the calls inside, and yield the set of their steps."""
    steps: set[Step] = set()
    token = _steps.set(steps)
    try:
        yield steps
    finally:
        _steps.reset(token)


@dataclass(frozen=True, slots=True)
class TracingSandbox:
    """Runs commands in *inner*, and traces Python scripts inside `noted_steps`."""

    inner: Sandbox

    @property
    def level(self) -> SandboxLevel:
        """What *inner* guarantees."""
        return self.inner.level

    async def run(
        self,
        command: SandboxCommand,
        *,
        on_stopped: Callable[[bool], object] | None = None,
    ) -> Finished:
        """Run *command* once and return how it ended; see `Sandbox`."""
        steps = _steps.get()
        if steps is not None:
            command = replace(command, argv=_traced(command))
        finished = await self.inner.run(command, on_stopped=on_stopped)
        if steps is None:
            return finished
        for note in _NOTE.findall(finished.stderr):
            steps.update(_read(note))
        return replace(finished, stderr=_NOTE.sub(b"", finished.stderr))


def _traced(command: SandboxCommand) -> tuple[str, ...]:
    """Return the words of *command*, with a traced script if it is in Python."""
    program, *words = command.argv
    trace = _TRACE.replace("MARK", _MARK)
    match words:
        case ["-P", "-c", code, *rest]:
            return (program, "-P", "-c", trace + code, *rest)
        case [script, *rest] if script.endswith(".py"):
            root = str(command.skills[0])
            return (program, "-P", "-c", trace + RUN_FILE, root, script, *rest)
    return command.argv


def _read(note: bytes) -> Iterator[Step]:
    """Yield the steps of *note*; none if it was cut."""
    with suppress(ValueError, zlib.error):
        document = json.loads(zlib.decompress(base64.b64decode(note)))
        for path, pairs in document.items():
            for last, line in pairs:
                yield path, last, line
