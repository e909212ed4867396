"""The proxy between one client and one server, without I/O: messages in, and messages out to either side.

A message that is neither a ``tools/call`` nor the answer to one passes with the same bytes and in order. A call is
checked when it is read; only a call whose schema is unknown waits, until the proxy's own ``tools/list`` is answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from skillruntime.adapters.mcp_proxy.answers import changed, converted_error, with_repairs, with_state
from skillruntime.adapters.mcp_proxy.decisions import Decision, Known, Pending, decide_call
from skillruntime.adapters.mcp_proxy.json_text import Malformed, in_utf_8, is_json, object_in, text_of, to_bytes
from skillruntime.adapters.mcp_proxy.log import Write, call_entry, silent
from skillruntime.adapters.mcp_proxy.messages import (
    Id,
    Message,
    client_name,
    concerns_the_proxy,
    envelope_client,
    envelope_of,
    id_of,
    quick_response,
    read_message,
    read_messages,
)
from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.adapters.mcp_proxy.results import checked_result, folded_page, task_of
from skillruntime.adapters.mcp_proxy.tools import Listing, Tool, Tools

__all__ = ["CLIENT", "MOST_REMEMBERED", "SERVER", "Pending", "Send", "Session"]

CLIENT, SERVER = "client", "server"
Send = tuple[str, bytes]

MOST_REMEMBERED = 4096
"""How many refused ids are remembered, so that a late cancel of one is not forwarded."""
MOST_LISTINGS = 3
"""How often the tools are listed again when they change while they are listed."""


@dataclass(slots=True)
class _Batch:
    """A batch of which some calls were refused: their answers go into the batch that answers the others."""

    ids: set[Id]
    answers: list[bytes]


@dataclass(slots=True)
class _Held:
    raw: bytes
    given: bytes
    """As the client wrote it, which may not be UTF-8."""
    ids: set[Id] = field(default_factory=set)
    is_batch: bool = False


class Session:
    """One conversation. Its other connections may share *tools*, *pending*, *refused* and *tasks*.

    *new_id* gives the ids of the proxy's own requests, which no client can have used.
    """

    def __init__(
        self,
        options: Options | None = None,
        *,
        log: Write = silent,
        tools: Tools | None = None,
        pending: dict[Id, Pending] | None = None,
        refused: deque[Id] | None = None,
        tasks: dict[Id, Tool] | None = None,
        new_id: Callable[[], str] | None = None,
        initialized: bool = False,
        client: str = "",
    ) -> None:
        self.options = options or Options()
        self.tools = tools if tools is not None else Tools()
        self.pending: dict[Id, Pending] = pending if pending is not None else {}
        self.initialized = initialized
        self.client = client
        self._log = log
        self._new_id = new_id or _random_ids()
        self._held: list[_Held] = []
        self._refused: deque[Id] = refused if refused is not None else deque(maxlen=MOST_REMEMBERED)
        self._batches: list[_Batch] = []
        self._own: dict[Id, Listing] = {}
        self._late: set[Id] = set()
        self._tasks: dict[Id, Tool] = tasks if tasks is not None else {}
        self._own_meta: dict[str, Any] | None = None
        self._listings = 0
        self.waits = 0
        """How often a first call began to wait: which wait a deadline is for."""

    @property
    def waiting(self) -> bool:
        """Whether a call waits for the proxy's own ``tools/list``."""
        return bool(self._held)

    def is_own(self, raw: bytes) -> bool:
        """Whether *raw* is a request of the proxy's own that has no answer yet."""
        try:
            return bool(self._own) and read_message(raw).id in self._own
        except Malformed:
            return False

    def from_client(self, raw: bytes) -> list[Send]:
        """Return what becomes of *raw*, one message or batch from the client."""
        plain = in_utf_8(raw) or raw
        if not concerns_the_proxy(plain):
            return [(SERVER, raw)]
        try:
            messages, is_batch = read_messages(plain)
        except Malformed:
            return [(SERVER, raw)]  # the server answers what is not JSON, as it would without the proxy
        # Cut into parts, what is not JSON as a whole could become messages that are.
        if is_batch and not is_json(plain):
            return [(SERVER, raw)]
        return self._admit(plain, messages, raw, is_batch=is_batch)

    def from_server(self, raw: bytes) -> list[Send]:
        """Return what becomes of *raw*, one message or batch from the server."""
        if self._passes(raw):
            return [(CLIENT, raw)]
        try:
            messages, is_batch = read_messages(raw)
        except Malformed:
            return [(CLIENT, raw)]
        return self._batch_answered(raw, messages) if is_batch else self._answered(messages[0])

    def give_up_listing(self) -> list[Send]:
        """Forward the calls that wait, unchecked: the server does not answer ``tools/list``."""
        # The answer may still come, and no client knows its id.
        self._late |= self._own.keys()
        self._own.clear()
        self.tools.unlistable = True
        self._log({"event": "unlistable", "reason": "the server did not answer tools/list in time"})
        return self._release()

    # from the client

    def _admit(
        self, raw: bytes, messages: list[Message], given: bytes, *, is_batch: bool, final: bool = False
    ) -> list[Send]:
        """Return what becomes of *messages*, which are read from *raw*; the client wrote it as *given*."""
        decisions = [self._decide(each, final=final) for each in messages]
        if any(each.waits for each in decisions):
            ids = {each.id for each in messages if each.id is not None}
            self.waits += not self._held
            self._held.append(_Held(raw, given, ids, is_batch))
            return self._list_tools(messages)
        for message, decision in zip(messages, decisions, strict=True):
            self._commit(message, decision)
        if not is_batch:
            decision = decisions[0]
            forwarded = given if decision.raw == raw else decision.raw
            sends = [] if forwarded is None else [(SERVER, forwarded)]
            return sends if decision.answer is None else [*sends, (CLIENT, decision.answer)]
        return self._admit_batch(raw, messages, decisions, given)

    def _admit_batch(self, raw: bytes, messages: list[Message], decisions: list[Decision], given: bytes) -> list[Send]:
        answers = [each.answer.removeprefix(b"[").removesuffix(b"]") for each in decisions if each.answer is not None]
        kept = [(message, each.raw) for message, each in zip(messages, decisions, strict=True) if each.raw is not None]
        ids = {message.id for message, _ in kept if message.is_request and message.id is not None}
        sends: list[Send] = []
        if len(kept) == len(messages) and all(message.raw == new for message, new in kept):
            sends.append((SERVER, given))
        elif kept:
            ending = raw[len(raw.rstrip()) :]
            sends.append((SERVER, b"[" + b",".join(new for _, new in kept) + b"]" + ending))
        if answers and ids:
            self._batches.append(_Batch(ids, answers))  # JSON-RPC 2.0, 6: one batch is answered by one array
        elif answers:
            sends.append((CLIENT, b"[" + b",".join(answers) + b"]"))
        return sends

    def _decide(self, message: Message, *, final: bool) -> Decision:
        match message.method:
            case "tools/call":
                may_list = not final and not self.tools.unlistable
                return decide_call(message, Known(self.options, self.tools, self.initialized, may_list))
            case "notifications/cancelled":
                return self._decide_cancel(message)
            case "tools/list" if message.id is not None:
                return Decision(message.raw, pending=Pending("list", listing=self._listing_of(message)))
            case "tasks/result" | "tasks/get" if self._tasks:
                tool = self._tasks.get(id_of(message.param("taskId")) or ("", None))
                return Decision(message.raw, pending=Pending("task", tool) if tool else None)
        return Decision(message.raw)

    def _decide_cancel(self, message: Message) -> Decision:
        """Swallow the cancel of a call that was never forwarded; one that waits is dropped with it."""
        key = id_of(message.param("requestId"))
        if key is None:
            return Decision(message.raw)
        if key in self._refused:
            return Decision()
        for held in self._held:
            if key in held.ids and not held.is_batch:
                self._held.remove(held)
                return Decision()
            if key in held.ids:  # forwarded with the batch, and cancelled right after it
                self._held.insert(self._held.index(held) + 1, _Held(message.raw, message.raw))
                return Decision()
        # "Cancellation": no answer follows; one that crossed the cancel passes as it is.
        self.pending.pop(key, None)
        return Decision(message.raw, answer=self._answer_of_cancelled(key))

    def _answer_of_cancelled(self, key: Id) -> bytes | None:
        """Return the refusals of a batch whose last forwarded request is cancelled: no answer will carry them."""
        batch = next((each for each in self._batches if key in each.ids), None)
        if batch is None:
            return None
        batch.ids.discard(key)
        if batch.ids:
            return None
        self._batches.remove(batch)
        return b"[" + b",".join(batch.answers) + b"]"

    def _commit(self, message: Message, decision: Decision) -> None:
        """Note what was decided: what is forwarded, whose answer matters, and what the log says."""
        if message.method == "notifications/initialized":
            self.initialized = True
        elif message.method == "initialize":
            self.client = client_name(message) or self.client
            self.tools.changed()  # a second handshake begins a new session
        if message.id is not None and message.method is not None:
            if message.id in self._refused:  # the id is used again
                self._refused.remove(message.id)
            # A client that gives up on a call may cancel it after the refusal has been sent.
            if decision.answer is not None:
                self._refused.append(message.id)
            elif decision.pending is not None and decision.raw is not None:
                self.pending[message.id] = decision.pending
        if decision.verdict is not None:
            client = self.client or envelope_client(message)
            values = self.options.log_values
            self._log(call_entry(decision.name, decision.verdict, client=client, values=values))

    # the proxy's own tools/list

    def _list_tools(self, messages: Iterable[Message]) -> list[Send]:
        # One listing serves all calls that wait.
        if self._own:
            return []
        # 2026-07-28: every request says who sends it, and a server may list other tools for another client.
        self._own_meta = next((found for each in messages if (found := envelope_of(each)) is not None), None)
        self._listings = 0
        return [self._request_page(self.tools.start())]

    def _request_page(self, listing: Listing) -> Send:
        own_id = self._new_id()
        self._own[("string", own_id)] = listing
        params: dict[str, Any] = {}
        if self._own_meta is not None:
            params["_meta"] = self._own_meta
        if listing.cursor is not None:
            params["cursor"] = listing.cursor
        request = {"jsonrpc": "2.0", "id": own_id, "method": "tools/list", **({"params": params} if params else {})}
        return SERVER, to_bytes(request)

    def _page_listed(self, message: Message, listing: Listing) -> list[Send]:
        result = object_in(message.part("result"))
        if result is None:
            self.tools.unlistable = True
            self._log({"event": "unlistable", "reason": message.part("error").decode("utf-8", "replace")[:200]})
            return self._release()
        if not self.tools.add_page(listing, result):
            return [self._request_page(listing)]
        self._compare_options()
        self._listings += 1
        if not self.tools.is_current(listing) and self._listings < MOST_LISTINGS:
            return [self._request_page(self.tools.start())]
        return self._release()

    def _release(self) -> list[Send]:
        """Judge the calls that waited, finally and in order."""
        held, self._held = self._held, []
        sends: list[Send] = []
        # No call of these waits again: what the tools are not known for by now is called unchecked.
        for each in held:
            messages, is_batch = read_messages(each.raw)
            sends += self._admit(each.raw, messages, each.given, is_batch=is_batch, final=True)
        return sends

    def _compare_options(self) -> None:
        """Log the names in the options that the list does not have: a choice for a misspelt tool would hold nowhere."""
        if not self.tools.complete or self.tools.options_compared:
            return
        self.tools.options_compared = True
        listed = {each["name"] for each in self.tools.definitions()} if self.options.tools else set()
        for name in self.options.tools:
            if name not in listed:
                self._log({"event": "options", "tool": name, "reason": "the server lists no tool of this name"})

    def _listing_of(self, message: Message) -> Listing | None:
        """Return the pagination that a client's request begins or continues."""
        span = message.params.get("cursor")
        cursor = text_of(message.raw, span) if span else None
        if cursor is None:
            return self.tools.start()
        return self.tools.listing_at(cursor)

    # from the server

    def _passes(self, raw: bytes) -> bool:
        """Whether *raw* is seen at once to be something that passes: most is, and costs no scan of its body."""
        response = quick_response(raw)
        if response is None:
            # A backslash may hide a name: `list\u005fchanged` is the same text (RFC 8259, 7).
            watches = self.pending or self._own or self._late or self._batches
            return not watches and b"list_changed" not in raw and b"\\" not in raw
        key, kind = response
        if key in self._own or key in self._late or self._batches:
            return False
        pending = self.pending.get(key)
        if pending is None:
            return True
        options = self.options.of(pending.name)
        if kind == "error" or pending.kind != "call" or pending.notes or options.check_output != "off":
            return False
        del self.pending[key]
        return True

    def _answered(self, message: Message) -> list[Send]:
        if (own := self._own_answer(message)) is not None:
            return own
        raw = self._passed_on(message)
        batch = self._batch_with([message])
        if batch is None:
            return [(CLIENT, raw)]
        # The server answers a batch one by one: what was refused of it goes in an array of its own.
        self._batches.remove(batch)
        return [(CLIENT, raw), (CLIENT, b"[" + b",".join(batch.answers) + b"]")]

    def _batch_answered(self, raw: bytes, messages: list[Message]) -> list[Send]:
        sends: list[Send] = []
        kept: list[bytes] = []
        for message in messages:
            if (own := self._own_answer(message)) is not None:
                sends += own
            else:
                kept.append(self._passed_on(message))
        batch = self._batch_with(messages)
        if batch is not None:
            self._batches.remove(batch)
            kept += batch.answers
        if kept == [each.raw for each in messages]:
            return [(CLIENT, raw), *sends]
        if not kept:
            return sends
        return [(CLIENT, b"[" + b",".join(kept) + b"]" + raw[len(raw.rstrip()) :]), *sends]

    def _own_answer(self, message: Message) -> list[Send] | None:
        """Return what follows where *message* answers a request of the proxy's own; else ``None``."""
        if message.id is None or message.method is not None:
            return None
        if (listing := self._own.pop(message.id, None)) is not None:
            return self._page_listed(message, listing)
        if message.id not in self._late:
            return None
        self._late.discard(message.id)
        return []

    def _batch_with(self, messages: list[Message]) -> _Batch | None:
        ids = {each.id for each in messages if each.method is None}
        return next((batch for batch in self._batches if batch.ids & ids), None)

    def _passed_on(self, message: Message) -> bytes:
        """Return the bytes in which a message of the server reaches the client."""
        if message.method is not None:
            # Also a list that is being read at this moment is old then.
            if message.method == "notifications/tools/list_changed":
                self.tools.changed()
            return message.raw
        pending = self.pending.pop(message.id, None) if message.id is not None else None
        if pending is None:
            return message.raw
        if pending.kind == "list":
            return self._learned(message, pending)
        if "error" in message.parts:
            # The error of a retry may concern its `requestState`, which no model wrote.
            converted = None if pending.retried else converted_error(message, modern=pending.modern)
            if converted is None:
                return message.raw
            self._log({"event": "converted", "tool": pending.name, "client": self.client})
            return converted
        mode = self.options.of(pending.tool.name if pending.tool else pending.name).check_output
        if mode != "off" and pending.tool is not None:
            task = task_of(message)
            if task is not None and pending.kind == "call":
                self._tasks[task] = pending.tool
                # The result of a task may never be asked for: the oldest is forgotten first.
                while len(self._tasks) > MOST_REMEMBERED:
                    del self._tasks[next(iter(self._tasks))]
            refused = checked_result(message, pending.tool, mode, self._log, modern=pending.modern)
            if refused is not None:
                return refused
        if not pending.notes:
            return message.raw
        try:
            marked = with_state(message, pending.digest) if pending.digest else {}
            return changed(message, with_repairs(message, pending.notes), marked)
        # A part that is not JSON cannot be changed: the result passes, without the report of the repair.
        except Malformed:
            return message.raw

    def _learned(self, message: Message, pending: Pending) -> bytes:
        result = object_in(message.part("result"))
        if result is None:
            return message.raw
        if pending.listing is not None and self.tools.add_page(pending.listing, result):
            self._compare_options()
        return folded_page(message) if self.options.fold else message.raw


def _random_ids() -> Callable[[], str]:
    """Return a source of ids that neither another client nor another proxy in a row uses."""
    import os

    prefix, count = f"skillruntime-{os.urandom(6).hex()}", iter(range(1, 1 << 62))
    return lambda: f"{prefix}-{next(count)}"
