"""Wrap stdout and stderr of a command: every character can be written, and a failed
write is never forgotten.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import NoReturn, TextIO

__all__ = ["Output", "exit_not_written"]

EXIT_NOT_WRITTEN = 1


def exit_not_written(error: OSError) -> NoReturn:
    """Exit with 1 because of *error*, that of a write to stdout or stderr, and say why
    on stderr; a closed pipe is not worth a message.
    """
    if error.errno != errno.EPIPE:
        reason = error.strerror
        if error.errno == errno.EBADF:
            reason = "stdout is closed"
        with suppress(OSError):
            sys.stderr.write(f"The output cannot be written: {reason}\n")
            sys.stderr.flush()
    sys.exit(EXIT_NOT_WRITTEN)


class Output:
    """stdout and stderr while a command runs.

    An error of a write is raised where the command printed, and remembered here,
    because the exception may not arrive: click ends quietly at a closed pipe, and a
    command may catch ``OSError`` for a reason of its own.
    """

    def __init__(self) -> None:
        self._errors: list[OSError] = []
        # Python has None for a stream that the shell closed (`<&-`, `>&-`, `2>&-`).
        # stdin is opened first, so that each gets the descriptor that is its own.
        if sys.stdin is None:
            sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
        if sys.stdout is None:
            # Opened for reading, so that a write fails as it does on a closed
            # descriptor, and no other file gets the descriptor of stdout.
            closed = os.open(os.devnull, os.O_RDONLY)
            sys.stdout = self._watched(closed, "utf-8")
        if sys.stderr is None:
            # The user asked for no messages; the command still does its work.
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        sys.stdout = self._made_safe(sys.stdout)
        sys.stderr = self._made_safe(sys.stderr)
        self._streams = [sys.stdout, sys.stderr]

    def error(self) -> OSError | None:
        """Return the first error of a write, after writing what is still buffered."""
        for stream in self._streams:
            try:
                stream.flush()
            except OSError as error:
                self._errors.append(error)
        if self._errors:
            return self._errors[0]
        return None

    def exit_unless_written(self) -> None:
        """Exit with 1 if anything that was printed could not be written."""
        error = self.error()
        if error is None:
            return
        self._discard_unwritten()
        exit_not_written(error)

    def _discard_unwritten(self) -> None:
        """Empty the buffers that cannot be written: Python would try again when it
        exits, fail, and change the exit code to 120.
        """
        for stream in self._streams:
            try:
                stream.flush()
            except OSError:
                # https://docs.python.org/3/library/signal.html#note-on-sigpipe
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
                stream.flush()

    def _made_safe(self, stream: TextIO) -> TextIO:
        """Return *stream* such that it writes an escape for a character that its
        encoding lacks, instead of failing, and remembers errors.
        """
        binary = getattr(stream, "buffer", None)
        descriptor = getattr(binary, "raw", binary)  # `python -u` has no buffer
        is_own = stream in (sys.__stdout__, sys.__stderr__)
        # A stream that another program put there stays, and so does Windows' console.
        if is_own and type(descriptor) is io.FileIO:
            stream.flush()
            return self._watched(descriptor.fileno(), stream.encoding)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        return stream

    def _watched(self, descriptor: int, encoding: str) -> TextIO:
        file = _WatchedFile(descriptor, self._errors)
        return io.TextIOWrapper(
            io.BufferedWriter(file),
            encoding,
            errors="backslashreplace",
            line_buffering=file.isatty(),
        )


class _WatchedFile(io.FileIO):
    """A descriptor whose errors of writing are added to a list."""

    def __init__(self, descriptor: int, errors: list[OSError]) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._errors = errors

    def write(self, data: object, /) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            self._errors.append(error)
            raise
