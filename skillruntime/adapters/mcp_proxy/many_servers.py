"""Several servers behind one client on stdio: each a process or a URL, with a session of its own."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillruntime.adapters.mcp_proxy.configured import Upstream
from skillruntime.adapters.mcp_proxy.joint_answers import JOINT
from skillruntime.adapters.mcp_proxy.log import Write
from skillruntime.adapters.mcp_proxy.merged import CLIENT, Merged, Sends
from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.adapters.mcp_proxy.process import Process, start_process
from skillruntime.adapters.mcp_proxy.session import SERVER, Send, Session
from skillruntime.adapters.mcp_proxy.stdio import (
    LISTING_TIMEOUT,
    TICK,
    Writer,
    has_no_reader,
    lines_of,
    note_signals,
)

__all__ = ["run_many"]

DRAIN_SECONDS = 0.5


@dataclass(slots=True)
class _Server:
    """One running server. *waits_since* is when a call of it began to wait for its schema."""

    name: str
    session: Session
    writer: Writer
    stdout: int
    process: Process | None
    waits_since: float | None = None
    exited_at: float | None = None


def run_many(upstreams: Sequence[Upstream], options: Options, log: Write, *, stdin: int = 0, stdout: int = 1) -> int:
    """Serve *upstreams* as one server until the client, or the last of them, ends; return the exit status.

    A server that cannot be started, ends or does not answer is reported on stderr, and the others go on.
    """
    ended = threading.Event()
    signals = note_signals(ended)
    many = _Many(upstreams, options, log, os.dup(stdout), ended)
    # Why each could not be started is on stderr already.
    if not many.merged.live:
        return 1
    # A thread for each pipe, as in `stdio`; `Merged` is not locked, so that `_Many` locks it for all.
    threading.Thread(target=many.take_client, args=[stdin], daemon=True).start()
    for index in many.servers:
        threading.Thread(target=many.take_server, args=[index], daemon=True).start()
    while not ended.wait(TICK):
        many.check()
        if many.client.broken or has_no_reader(stdout):
            break
    many.end(patient=not signals)
    return 128 + signals[0] if signals else 0


class _Many:
    def __init__(
        self, upstreams: Sequence[Upstream], options: Options, log: Write, stdout: int, ended: threading.Event
    ) -> None:
        self.merged = Merged([each.name for each in upstreams])
        self.merged.meant_by = self._has_tool
        self.client = Writer(stdout)
        self.servers: dict[int, _Server] = {}
        self._ended = ended
        self._options = options
        self._options_compared = not options.tools
        self._lock = threading.Condition()
        for index, each in enumerate(upstreams):
            try:
                self.servers[index] = _started(each, self.merged.prefixes[index], options, log)
            except OSError as error:
                _say(f"{each.name} cannot be started: {error}")
                self.merged.live.discard(index)

    def take_client(self, stdin: int) -> None:
        """Pass on what the client says until it ends; then the servers get no more either."""
        for line in filter(bytes.strip, lines_of(stdin)):
            with self._lock:
                targets = self._route(self.merged.from_client(line))
            # Outside the lock: while one server does not read, the answers of the others must reach the client.
            for index in targets:
                self.servers[index].writer.wait_for_space()
        with self._lock:  # `printf ... | skillruntime mcp-proxy` ends its input before the answers are there
            self.merged.closing = True
            self._lock.wait_for(lambda: not self.merged.is_asking and not any(self._waiting()))
        for server in self.servers.values():
            server.writer.close()

    def take_server(self, index: int) -> None:
        """Pass on what one server says until it ends."""
        server = self.servers[index]
        for line in filter(bytes.strip, lines_of(server.stdout)):
            with self._lock:
                self._relay(index, server.session.from_server(line))
                self._lock.notify_all()
            self.client.wait_for_space()
        self._drop(index)

    def check(self) -> None:
        """End the servers that keep the client waiting in a handshake or a list, and no longer wait for schemas."""
        now = time.monotonic()
        for index, server in self.servers.items():
            if server.process is not None and server.process.exited.is_set():
                server.exited_at = server.exited_at or now
                if now - server.exited_at > DRAIN_SECONDS:  # a process that it left behind holds its stdout open
                    self._drop(index)
            with self._lock:
                # One deadline for all that wait; a timer for each call would be a thread for each.
                server.waits_since = (server.waits_since or now) if server.session.waiting else None
                if server.waits_since is not None and now - server.waits_since > LISTING_TIMEOUT:
                    self._relay(index, server.session.give_up_listing())
                    self._lock.notify_all()
        with self._lock:
            self._compare_options()
        # A handshake or a list waits for all: one server that hangs must not keep the client from the others.
        with self._lock:
            overdue = self.merged.overdue(LISTING_TIMEOUT)
        for index in overdue:
            _say(f"{self.servers[index].name} does not answer, and is left out")
            self._drop(index)

    def _compare_options(self) -> None:
        """Name the tools in the options that no server lists: a choice for a misspelt one would hold nowhere."""
        live = [self.servers[index] for index in self.merged.live if index in self.servers]
        if self._options_compared or not live or not all(each.session.tools.complete for each in live):
            return
        # Only when every list is known: until then another server may have the tool.
        self._options_compared = True
        found = {
            name
            for index, server in self.servers.items()
            for tool in server.session.tools.definitions()
            for name in (tool["name"], f"{self.merged.prefixes[index]}{JOINT}{tool['name']}")
        }
        for name in self._options.tools:
            if name not in found:
                _say(f"--tool-options names {name!r}, and no server lists a tool of this name")

    def end(self, *, patient: bool) -> None:
        """End every server, all at once."""
        servers = list(self.servers.values())
        threads = [threading.Thread(target=_end, args=[each], kwargs={"patient": patient}) for each in servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.client.close()
        self.client.thread.join(DRAIN_SECONDS)

    def _waiting(self) -> list[int]:
        return [index for index in self.merged.live if self.servers[index].session.waiting]

    def _drop(self, index: int) -> None:
        server = self.servers[index]
        with self._lock:
            was_live = index in self.merged.live
            self._route(self.merged.ended(index))
            self._lock.notify_all()
            is_last = not self.merged.live
        server.writer.close()
        if is_last:
            self._ended.set()
        elif was_live and not self.merged.closing:
            _say(f"{server.name} has ended; the other servers go on")
            _end(server, patient=True)

    def _route(self, sends: Sends) -> list[int]:
        """Send what is for the client, and show the rest to the sessions; return the servers that it was for."""
        targets = []
        for target, raw in sends:
            if target == CLIENT:
                self.client.put(raw if raw.endswith(b"\n") else raw + b"\n")
            elif target in self.servers:
                targets.append(target)
                self._relay(target, self.servers[target].session.from_client(raw))
        return targets

    def _relay(self, index: int, sends: list[Send]) -> None:
        for to, raw in sends:
            if to == SERVER:
                self.servers[index].writer.put(raw if raw.endswith(b"\n") else raw + b"\n")
            else:
                self._route(self.merged.from_server(index, raw))

    def _has_tool(self, index: int, name: str) -> bool:
        tools = self.servers[index].session.tools
        return tools.find(name) is not None or tools.meant_by(name) is not None


def _started(upstream: Upstream, prefix: str, options: Options, log: Write) -> _Server:
    """Start one server. Tools are known to the log, and may be known to the options, by the names that clients see."""

    def write(entry: Mapping[str, Any]) -> None:
        if entry["event"] == "options":  # the tool may be another server's
            return
        log({**entry, "tool": f"{prefix}{JOINT}{entry['tool']}"} if "tool" in entry else entry)

    # Options may name a tool as its server does, or as the client sees it.
    own = {name.removeprefix(prefix + JOINT): choices for name, choices in options.tools.items()}
    session = Session(replace(options, tools=own), log=write)
    if upstream.is_url:
        from skillruntime.adapters.mcp_proxy.remote import start_remote

        server_in, server_out = start_remote(upstream.server[0], upstream.headers, session.tools)
        return _Server(upstream.name, session, Writer(server_in), server_out, None)
    process = start_process(upstream.server, environment=upstream.environment, directory=upstream.directory)
    return _Server(upstream.name, session, Writer(process.stdin), process.stdout, process)


def _end(server: _Server, *, patient: bool) -> None:
    server.writer.close()
    if server.process is not None:
        server.process.end(patient=patient)


def _say(text: str) -> None:
    print(f"mcp-proxy: {text}", file=sys.stderr, flush=True)  # noqa: T201  for the person
