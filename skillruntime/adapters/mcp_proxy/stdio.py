"""stdio on both sides: the client on this process's stdin and stdout, the server as a child process.

Four threads and no event loop: blocking reads and writes of whole chunks are the cheapest way there is to pass bytes
on, they start in no time, and a side that does not read holds back the other by itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from skillruntime.adapters.mcp_proxy.session import CLIENT, SERVER, Send, Session

__all__ = ["LISTING_TIMEOUT", "Lines", "end_process", "relay", "run_stdio"]

CHUNK = 1 << 18
LISTING_TIMEOUT = 30.0
"""Seconds after which a call whose schema the server does not give is forwarded unchecked."""
EXIT_TIMEOUT = 1.5
"""Seconds that the server has to exit after its stdin was closed, and again after SIGTERM; the SDKs give two."""
DRAIN_TIMEOUT = 0.5
TICK = 0.2
MOST_QUEUED = 1 << 20


class Lines:
    """Splits what is fed to it into lines, each with its own ending; what is left at the end is a line too.

    >>> lines = Lines()
    >>> list(lines.feed(b"one\\ntw")), list(lines.feed(b"o\\n\\nthr")), lines.rest()
    ([b'one\\n'], [b'two\\n', b'\\n'], b'thr')
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that *chunk* completes. A long line is joined once, however many chunks it comes in."""
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
        """Return what came after the last line."""
        rest = b"".join(self._parts)
        self._parts.clear()
        return rest


class _Writer:
    """A thread that writes to one file descriptor; the sender waits while more than a megabyte is queued.

    What the other direction adds (a refusal, a call that waited) never waits: two readers that wait for one another's
    writers would not end.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: deque[bytes] = deque()
        self._size = 0
        self._closing = False
        self._changed = threading.Condition()
        self.broken = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def put(self, data: bytes) -> None:
        """Queue *data*; never waits, so that it can be called with the order of messages locked."""
        with self._changed:
            if not self.broken:
                self._queue.append(data)
                self._size += len(data)
                self._changed.notify_all()

    def wait_for_space(self) -> None:
        """Wait while more than a megabyte is queued."""
        with self._changed:
            while self._size > MOST_QUEUED and not self.broken:
                self._changed.wait()

    def close(self) -> None:
        """Close the descriptor when all that is queued is written."""
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
                data = b"".join(self._queue) if self._size < CHUNK else self._queue[0]
                taken = len(self._queue) if self._size < CHUNK else 1
                for _ in range(taken):
                    self._queue.popleft()
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._descriptor, view) :]
            except OSError:  # the reader is gone: the other direction finds out and ends the proxy
                with self._changed:
                    self.broken = True
                    self._changed.notify_all()
                break
            with self._changed:
                self._size -= len(data)
                self._changed.notify_all()
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


def run_stdio(command: Sequence[str], session: Session, *, stdin: int = 0, stdout: int = 1) -> int:
    """Run *command* as the server of the client at *stdin* and *stdout* until either ends; return its exit status.

    The server has the environment, the working directory and the stderr of this process. It is ended as the protocol
    says: its stdin is closed, then SIGTERM, then SIGKILL, for its whole process group.

    Raises:
        OSError: the command cannot be started.
    """
    process = subprocess.Popen(
        list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, bufsize=0
    )
    assert process.stdin and process.stdout
    server_in = os.dup(process.stdin.fileno())
    process.stdin.close()
    signals = relay(session, stdin, stdout, server_in, process.stdout.fileno(), lambda: process.poll() is None)
    return end_process(process, patient=not signals)


def relay(
    session: Session, stdin: int, stdout: int, server_in: int, server_out: int, is_alive: Callable[[], bool]
) -> list[int]:
    """Pass messages on until either side has ended or a signal came; return the signals. Closes *server_in*."""
    ended = threading.Event()
    signals: list[int] = []

    def note_signal(number: int, frame: object) -> None:
        signals.append(number)
        ended.set()

    for name in ("SIGTERM", "SIGHUP", "SIGINT"):
        with contextlib.suppress(ValueError, AttributeError):  # not in the main thread; not on this system
            signal.signal(getattr(signal, name), note_signal)
    writers = {CLIENT: _Writer(os.dup(stdout)), SERVER: _Writer(server_in)}
    both = _Relay(session, writers)

    def from_client() -> None:
        try:
            both.pump(stdin, session.from_client, SERVER)
            both.wait_for_calls()
        finally:
            writers[SERVER].close()

    def from_server() -> None:
        try:
            both.pump(server_out, session.from_server, CLIENT)
            writers[CLIENT].close()
            writers[CLIENT].thread.join()
        finally:
            ended.set()

    for run in (from_client, from_server):
        threading.Thread(target=run, daemon=True).start()
    _warm_up()
    while not ended.wait(TICK):
        if not is_alive():
            ended.wait(DRAIN_TIMEOUT)  # a process that it left behind may hold its stdout open forever
            break
        if writers[CLIENT].broken or _has_no_reader(stdout):
            break
    writers[SERVER].close()
    return signals


@dataclass(slots=True)
class _Relay:
    """Passes on what the session says, in the order in which it says it."""

    session: Session
    writers: dict[str, _Writer]
    lock: threading.Condition = field(default_factory=threading.Condition)

    def pump(self, descriptor: int, take: Callable[[bytes], list[Send]], to: str) -> None:
        """Give every line from *descriptor* to *take* until its end; wait while the side *to* does not read."""
        lines = Lines()
        with contextlib.suppress(OSError):
            while chunk := os.read(descriptor, CHUNK):
                for line in lines.feed(chunk):
                    self._pass(take, line)
                    self.writers[to].wait_for_space()
        if rest := lines.rest():
            self._pass(take, rest, ending=b"")

    def wait_for_calls(self) -> None:
        """Wait until no call waits for its schema: `printf ... | skillruntime mcp-proxy` ends its input at once."""
        with self.lock:
            self.lock.wait_for(lambda: not self.session.waiting)

    def _pass(self, take: Callable[[bytes], list[Send]], line: bytes, ending: bytes = b"\n") -> None:
        with self.lock:
            wait = self.session.waits
            for to, data in take(line):
                self.writers[to].put(data if data.endswith(b"\n") else data + ending)
            starts = self.session.waits != wait
            self.lock.notify_all()
        if starts:
            timer = threading.Timer(LISTING_TIMEOUT, self._expire, [self.session.waits])
            timer.daemon = True
            timer.start()

    def _expire(self, wait: int) -> None:
        with self.lock:
            if self.session.waiting and self.session.waits == wait:
                for to, data in self.session.give_up_listing():
                    self.writers[to].put(data if data.endswith(b"\n") else data + b"\n")
            self.lock.notify_all()


def _warm_up() -> None:
    """Import the contract while the server starts: the first call does not wait for it."""
    with contextlib.suppress(Exception):
        from skillruntime.contract import Contract

        Contract.from_dict({"input": {"type": "object"}})


def _has_no_reader(descriptor: int) -> bool:
    """Whether *descriptor* is a pipe that has no reader any more: the client was killed."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & (select.POLLERR | select.POLLNVAL) for _, events in poll.poll(0))


def end_process(process: subprocess.Popen[bytes], *, patient: bool = True) -> int:
    """End the server, whose stdin is closed, and all that it started; return its exit status.

    Who sent a signal to the proxy waits no longer: then the server gets SIGTERM at once, and SIGKILL before a client
    that counts two seconds (as the SDKs do) kills the proxy.
    """
    for name in (None, "SIGTERM", "SIGKILL") if patient else ("SIGTERM", "SIGKILL"):
        if name is not None:
            signal_group(process, name)
        try:
            status = process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            continue
        signal_group(process, "SIGTERM")  # what the server left behind in its group
        return status if status >= 0 else 128 - status
    return 1


def signal_group(process: subprocess.Popen[bytes], name: str) -> None:
    """Send a signal to the process group of *process*; nothing where there is none left."""
    with contextlib.suppress(OSError, AttributeError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, getattr(signal, name))
