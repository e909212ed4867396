"""Relay messages over stdio on both sides: the client on this process's stdin and
stdout, the server as a child process.

A few threads are used instead of an event loop: blocking reads and writes of large
chunks are the cheapest way to pass bytes on, they start at once, and a side that does
not read slows the other down. The modules of a session are imported when the first
message needs them.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections import deque

from skillruntime.adapters.mcp_proxy.transports.process import Process

TYPE_CHECKING = False  # importing `typing` takes 8 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillruntime.adapters.mcp_proxy.session import Send, Session

__all__ = ["CHUNK", "Lines", "note_signals", "relay", "report_unwritten", "run_stdio"]

CHUNK = 1 << 18
LISTING_TIMEOUT = 30.0
"""The seconds after which a call is forwarded unchecked if the server does not provide
its schema.
"""
DRAIN_TIMEOUT = 1.0
"""The seconds without a byte after which an exited server is considered silent.
"""
TICK = 0.2
# More than a pipe holds (64 KiB on Linux), and small compared with one large message.
MOST_QUEUED = 1 << 20
MOST_EARLY = 8
CLIENT, SERVER = "client", "server"
_OTHER_SIDE = {CLIENT: SERVER, SERVER: CLIENT}
# The messages that only a session can decide on. The handshake always passes, and is
# shown to the session once it exists.
_NEEDS_SESSION = (b"tools/", b"cancelled", b"\\", b"\0")


class Lines:
    """Splits the fed bytes into lines, each with its own ending; the rest at the end is
    a line too.

    >>> lines = Lines()
    >>> list(lines.feed(b"one\\ntw")), list(lines.feed(b"o\\n\\nthr")), lines.rest()
    ([b'one\\n'], [b'two\\n', b'\\n'], b'thr')
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that *chunk* completes. A long line is joined once, however
        many chunks it comes in.
        """
        start = 0
        while (end := chunk.find(b"\n", start) + 1) > 0:
            self._parts.append(chunk[start:end])
            line = b"".join(self._parts)
            self._parts.clear()
            start = end
            yield line
        if start < len(chunk):
            self._parts.append(chunk[start:])

    def rest(self) -> bytes:
        """Return the bytes after the last line."""
        rest = b"".join(self._parts)
        self._parts.clear()
        return rest


def _lines_of(descriptor: int) -> Iterator[bytes]:
    """Yield every line that comes from *descriptor* until its end; the last one may
    have no ending.
    """
    lines = Lines()
    try:
        while chunk := os.read(descriptor, CHUNK):
            yield from lines.feed(chunk)
    except OSError:  # closed by the other end
        pass
    if rest := lines.rest():
        yield rest


class _Writer:
    """A thread that writes to one file descriptor; the sender waits while more than a
    megabyte is queued.

    Messages that the other direction adds (a refusal, a call that waited) never wait:
    otherwise two readers could wait for each other's writers forever.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: deque[bytes] = deque()
        self._size = 0
        self._closing = False
        self._changed = threading.Condition()
        self.broken = False
        self.error: OSError | None = None
        """Why nothing more can be written, if `broken`."""
        self.progress = 0
        """A counter of all queued and written chunks."""
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def put(self, data: bytes) -> None:
        """Queue *data*; never waits, so that it can be called with the order of
        messages locked.
        """
        with self._changed:
            if not self.broken:
                self._queue.append(data)
                self._size += len(data)
                self.progress += 1
                self._changed.notify_all()

    def wait_for_space(self) -> None:
        """Wait while more than a megabyte is queued."""
        with self._changed:
            while self._size > MOST_QUEUED and not self.broken:
                self._changed.wait()

    def close(self) -> None:
        """Close the descriptor when the whole queue is written."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closing:
                    self._changed.wait()
                if not self._queue:
                    break
                # Small messages in one write, large ones without a copy.
                if self._size < CHUNK:
                    data = b"".join(self._queue)
                    self._queue.clear()
                else:
                    data = self._queue.popleft()
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._descriptor, view) :]
                    self.progress += 1
            except OSError as error:
                # The reader is gone: the other direction finds out and ends the proxy.
                with self._changed:
                    self.error = error
                    self.broken = True
                    self._changed.notify_all()
                break
            with self._changed:
                self._size -= len(data)
                self._changed.notify_all()
        try:
            os.close(self._descriptor)
        except OSError:
            return


def run_stdio(
    command: Sequence[str],
    make_session: Callable[[], Session],
    *,
    stdin: int = 0,
    stdout: int = 1,
) -> int:
    """Run *command* as the server of the client at *stdin* and *stdout* until either
    ends; return its exit status.

    The server has the environment, the working directory and the stderr of this
    process. It is ended as the protocol demands: its stdin is closed, then its whole
    process group gets SIGTERM, then SIGKILL.

    Raises:
        OSError: the command cannot be started.
    """
    ended = threading.Event()
    # First, so that a signal at any moment ends the server too.
    signals = note_signals(ended)
    process = Process(command)
    client = (stdin, stdout)
    server = (process.stdin, process.stdout)
    error = relay(make_session, client, server, ended, process)
    status = process.end(patient=not signals)
    if error is not None:
        return report_unwritten(error)
    return status


def report_unwritten(error: OSError) -> int:
    """Say on stderr why the client's messages could not be written; return the exit
    status.
    """
    reason = error.strerror
    if error.errno == errno.EBADF:
        reason = "stdout is closed"  # as the other commands call it (`>&-`)
    if sys.stderr is not None:
        sys.stderr.write(f"The output cannot be written: {reason}\n")
    return 1


def relay(
    make_session: Callable[[], Session],
    client: tuple[int, int],
    server: tuple[int, int],
    ended: threading.Event,
    process: Process | None = None,
) -> OSError | None:
    """Pass messages on until either side has ended or *ended* is set; closes the
    server's stdin.

    Each side is two descriptors: the client's are read and written, the server's
    written and read. Return why writing to the client failed; ``None`` if the client
    has ended.
    """
    stdin, stdout = client
    server_in, server_out = server
    writers = {CLIENT: _Writer(os.dup(stdout)), SERVER: _Writer(server_in)}
    both = _Relay(make_session, writers)

    def from_client() -> None:
        try:
            both.pump(stdin, CLIENT)
            both.wait_for_calls()
        finally:
            writers[SERVER].close()

    def from_server() -> None:
        try:
            both.pump(server_out, SERVER)
            writers[CLIENT].close()
            writers[CLIENT].thread.join()
        finally:
            ended.set()

    for run in (from_client, from_server, both.import_ahead):
        threading.Thread(target=run, daemon=True).start()
    while not ended.wait(TICK):
        if process is not None and process.exited.is_set():
            # Its last messages are still in transit, and a process that it left behind
            # may hold its stdout open.
            seen = -1
            while seen != writers[CLIENT].progress and not ended.is_set():
                seen = writers[CLIENT].progress
                ended.wait(DRAIN_TIMEOUT)
            break
        if writers[CLIENT].broken or _has_no_reader(stdout):
            break
    writers[SERVER].close()
    error = writers[CLIENT].error
    if error is None or error.errno == errno.EPIPE:
        return None
    return error


def note_signals(ended: threading.Event) -> list[int]:
    """Return a list to which each signal that ends the proxy is added; the signal also
    sets *ended*.
    """
    signals: list[int] = []

    def note(number: int, frame: object) -> None:
        signals.append(number)
        ended.set()

    for name in ("SIGTERM", "SIGHUP", "SIGINT"):
        try:
            signal.signal(getattr(signal, name), note)
        except (ValueError, AttributeError):
            # Not in the main thread; not on this system.
            continue
    return signals


class _Relay:
    """Passes on the session's messages in their order."""

    def __init__(
        self, make_session: Callable[[], Session], writers: dict[str, _Writer]
    ) -> None:
        self._make_session = make_session
        self._writers = writers
        self._session: Session | None = None
        self._early: list[bytes] = []
        self._unended: set[str] = set()
        self._lock = threading.Condition()
        self._answered, self._listed = threading.Event(), threading.Event()

    def pump(self, descriptor: int, side: str) -> None:
        """Pass on every line from *descriptor* until its end; wait while the other side
        does not read.
        """
        other = self._writers[_OTHER_SIDE[side]]
        for line in _lines_of(descriptor):
            self._pass(side, line)
            other.wait_for_space()

    def wait_for_calls(self) -> None:
        """Wait until no call waits for its schema: `printf ... | skillruntime
        mcp-proxy` ends its input at once.
        """
        with self._lock:
            self._lock.wait_for(
                lambda: self._session is None or not self._session.waiting
            )

    def import_ahead(self) -> None:
        """Import the modules that the next messages need while the server or the model
        is busy, so that no message waits.
        """
        self._answered.wait()
        import skillruntime.adapters.mcp_proxy.session

        self._listed.wait()
        import skillruntime.contract.contract  # noqa: F401

    def _pass(self, side: str, line: bytes) -> None:
        # The last line may have no ending, and gets none.
        ending = b""
        if line.endswith(b"\n"):
            ending = b"\n"
        with self._lock:
            if self._session is None and not self._needs_session(side, line):
                self._put([(_OTHER_SIDE[side], line)], ending)
                return
            session = self._session or self._open_session()
            waits_before = session.waits
            if side == CLIENT:
                sends = session.from_client(line)
            else:
                sends = session.from_server(line)
            self._put(sends, ending)
            if session.tools.complete:
                self._listed.set()
            waits = session.waits
            self._lock.notify_all()
        if waits != waits_before:
            timer = threading.Timer(LISTING_TIMEOUT, self._expire, [session, waits])
            timer.daemon = True
            timer.start()

    def _needs_session(self, side: str, line: bytes) -> bool:
        if side == SERVER:
            # No call is pending and no tool is known, so the session need not see this
            # message.
            self._answered.set()
            return False
        if len(self._early) > MOST_EARLY:
            return True
        if any(word in line for word in _NEEDS_SESSION):
            return True
        if b"initialize" in line:
            self._early.append(line)
        return False

    def _open_session(self) -> Session:
        self._session = self._make_session()
        for line in self._early:
            # The message was already passed on, as the session would have done.
            self._session.from_client(line)
        return self._session

    def _put(self, sends: list[Send], ending: bytes = b"\n") -> None:
        for to, data in sends:
            line = data
            if not data.endswith(b"\n"):
                line += ending
            # A side may end its last message without a line break, and another message
            # may still follow.
            if to in self._unended:
                self._writers[to].put(b"\n" + line)
            else:
                self._writers[to].put(line)
            if line.endswith(b"\n"):
                self._unended.discard(to)
            else:
                self._unended.add(to)

    def _expire(self, session: Session, wait: int) -> None:
        with self._lock:
            if session.waiting and session.waits == wait:
                self._put(session.give_up_listing())
            self._lock.notify_all()


def _has_no_reader(descriptor: int) -> bool:
    """Return whether *descriptor* is a pipe without a reader, because the client was
    killed.
    """
    import select

    if not hasattr(select, "poll"):
        return False
    # `poll` reports a pipe without a reader as an error even before a write (Linux,
    # poll(2), POLLERR).
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(
        events & (select.POLLERR | select.POLLNVAL) for _, events in poll.poll(0)
    )
