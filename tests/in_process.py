"""Commands and scripts, run in this process: as a shell runs them, but without the
seconds that imports take.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import runpy
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TextIO
from unittest import mock

import pytest
from click.testing import CliRunner

from skillruntime.cli import main

__all__ = ["Ran", "run_command", "run_on_terminal", "run_script"]


@dataclass(frozen=True)
class Ran:
    """How a command or a script ended, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str
    output: str = ""
    """What a command printed on both, in its order."""


def run_command(
    *arguments: str,
    stdin: str | None = None,
    charset: str = "utf-8",
    **environment: str,
) -> Ran:
    """Run ``skillruntime ARGUMENTS`` to its end, with *environment* beside what is set
    already.

    *charset* is that of the streams, as the locale says it to a process; what is
    printed is UTF-8 or escaped.
    """
    with CliRunner(env=environment, charset=charset).isolation(stdin) as (
        stdout,
        stderr,
        output,
    ):
        code = _exit_code_of(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    return Ran(
        code, *(stream.getvalue().decode() for stream in (stdout, stderr, output))
    )


def run_on_terminal(*arguments: str, **environment: str) -> str:
    """Run ``skillruntime ARGUMENTS`` on a terminal of its own, and return everything
    that reaches it.
    """
    import pty  # Unix has it

    leader, follower = pty.openpty()
    received = bytearray()

    def read() -> None:
        # Linux ends a terminal whose other side is closed with EIO.
        with contextlib.suppress(OSError):
            while chunk := os.read(leader, 65_536):
                received.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    with (
        open(follower, "w", encoding="utf-8") as terminal,  # noqa: PTH123 - a descriptor
        mock.patch.dict(os.environ, {"TERM": "xterm", "NO_COLOR": "1", **environment}),
        _streams(sys.stdin, terminal, terminal),
    ):
        _exit_code_of(arguments)
    reader.join()
    os.close(leader)
    return received.decode()


def run_script(
    path: Path,
    directory: Path,
    *arguments: str,
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
) -> Ran:
    """Run ``python PATH ARGUMENTS`` in *directory*; *environment* takes the place of
    what is set.
    """
    given, code = io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"), 0
    with (
        TemporaryFile(
            "w+", encoding="utf-8", newline=""
        ) as stdout,  # real files: it may hand them to a process
        TemporaryFile("w+", encoding="utf-8", newline="") as stderr,
        _own_event_loop(),
        _streams(given, stdout, stderr),
        mock.patch.object(sys, "argv", [str(path), *arguments]),
        mock.patch.object(sys, "path", [str(path.parent), *sys.path]),
        mock.patch.dict(
            os.environ, os.environ if environment is None else environment, clear=True
        ),
        contextlib.chdir(directory),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as ended:
            code = _number_of(ended)
        except Exception:
            traceback.print_exc()
            code = 1
        finally:
            for name, module in [
                *sys.modules.items()
            ]:  # another script may have modules of the same names
                if str(getattr(module, "__file__", "")).startswith(
                    f"{path.parent}{os.sep}"
                ):
                    del sys.modules[name]
        return Ran(code, _read(stdout), _read(stderr))


def _read(file: TextIO) -> str:
    file.flush()
    file.seek(0)
    return file.read()


@contextlib.contextmanager
def _streams(stdin: TextIO, stdout: TextIO, stderr: TextIO) -> Iterator[None]:
    with mock.patch.multiple(sys, stdin=stdin, stdout=stdout, stderr=stderr):
        yield


@contextlib.contextmanager
def _own_event_loop() -> Iterator[None]:
    """Give what asks for this thread's event loop one that is closed at the end, as
    with a process.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _exit_code_of(arguments: tuple[str, ...]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return _number_of(ended.value)


def _number_of(ended: SystemExit) -> int:
    """Return the exit code that the interpreter gives; it prints a text, and exits with
    1.
    """
    code: Any = ended.code
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        return 1
    return code or 0
