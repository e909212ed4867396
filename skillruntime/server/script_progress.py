"""The progress of a script: it writes ``{"done": 3, "total": 10, "message": "reading"}`` to `PROGRESS_FILE`.

A file, because a script's output is its result and may be read only at its end; in the workspace, because a sandbox
lets a script write there.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio

from skillruntime.remote.protocol import Progress
from skillruntime.remote.wire_errors import printable
from skillruntime.runtime.sandbox.without_links import HAS_DIRECTORY_DESCRIPTORS, open_without_links
from skillruntime.server.executions import Report

__all__ = ["PROGRESS_FILE", "following", "read_progress"]

PROGRESS_FILE: Final = ".progress.json"
"""In the working directory of the script; it is not listed among the files that the script made."""

_LOOK: Final = 0.5  # seconds between two looks: one system call each
_LONGEST: Final = 4096  # bytes
_MESSAGE: Final = 200  # characters
_LARGEST: Final = 2**53  # what every reader of JSON keeps exactly (RFC 8259, section 6)
# A script is not trusted: the file may be a link to another one, or a pipe that would block the reader.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@asynccontextmanager
async def following(directory: Path, report: Report) -> AsyncIterator[None]:
    """Inside this, report what the script in *directory* writes."""
    with ExitStack() as stack:
        path, at = directory / PROGRESS_FILE, None
        if HAS_DIRECTORY_DESCRIPTORS:
            # A script that may write above its directory could exchange that for a link to another one.
            path, at = Path(PROGRESS_FILE), open_without_links(str(directory))
            stack.callback(os.close, at)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_follow, path, at, report)
            yield
            tasks.cancel_scope.cancel()


def read_progress(path: Path, at: int | None = None) -> Progress | None:
    """Return what *path*, below the directory *at*, says; None where it does not exist, is half written, or is not one.

    At most 4,096 bytes of a regular file are read, and no link is followed.
    """
    try:
        descriptor = os.open(path, _FLAGS, dir_fd=at)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        try:
            document = json.loads(file.read(_LONGEST))
        except (OSError, ValueError, RecursionError):
            return None
    done = _number(document.get("done")) if isinstance(document, dict) else None
    if done is None:
        return None
    message = document.get("message")
    text = printable(message[:_MESSAGE]) if isinstance(message, str) else None
    return Progress(done, _number(document.get("total")), text)


async def _follow(path: Path, at: int | None, report: Report) -> None:
    last: Progress | None = None
    while True:
        await anyio.sleep(_LOOK)
        progress = read_progress(path, at)
        if progress is not None and progress != last:
            last = progress
            report(progress)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Compared, not converted: Python has no float for an integer of 400 digits, and a call must not fail by it.
    return value if is_number and -_LARGEST <= value <= _LARGEST else None
