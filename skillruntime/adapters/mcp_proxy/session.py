"""The proxy between one client and one server, without I/O: it takes messages and
returns messages for either side.

A message that is neither a ``tools/call`` nor the answer to one passes in order and
with the same bytes. A call is checked when it is read; only a call whose schema is
unknown waits, until the proxy's own ``tools/list`` is answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from skillruntime.adapters.mcp_proxy.answers import (
    changed,
    converted_error,
    refusal,
    with_repairs,
    with_state,
)
from skillruntime.adapters.mcp_proxy.calls import Refusals
from skillruntime.adapters.mcp_proxy.decisions import Decision, Pending, decide_call
from skillruntime.adapters.mcp_proxy.json_text import (
    Malformed,
    is_json,
    object_in,
    text_of,
    to_bytes,
)
from skillruntime.adapters.mcp_proxy.log import Write, call_entries, silent
from skillruntime.adapters.mcp_proxy.messages import (
    Id,
    Message,
    NestedTooDeepError,
    client_name,
    concerns_the_proxy,
    envelope_client,
    envelope_of,
    id_of,
    quick_response,
    read_messages,
    to_error,
)
from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.adapters.mcp_proxy.pieces import pieces_of
from skillruntime.adapters.mcp_proxy.results import checked_result, folded_page
from skillruntime.adapters.mcp_proxy.tools import Listing, Tools

__all__ = ["CLIENT", "SERVER", "Send", "Session"]

CLIENT, SERVER = "client", "server"
Send = tuple[str, bytes]

INVALID_REQUEST = -32600
_TOO_DEEP = "A batch holds messages, not batches of batches"
MOST_REMEMBERED = 4096
"""How many refused ids are remembered, so that a late cancellation is not forwarded.
"""
MOST_LISTINGS = 3
"""How often the tools are listed again when they change while they are listed."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A message or batch with a call that waits for its schema."""

    raw: bytes
    ids: frozenset[Id]
    is_batch: bool


class Session:
    """One conversation. *new_id* creates the ids of the proxy's own requests; no client
    can have used them.
    """

    def __init__(
        self,
        options: Options | None = None,
        *,
        log: Write = silent,
        new_id: Callable[[], str] | None = None,
        initialized: bool = False,
    ) -> None:
        self.options: Options = options or Options()
        self.tools: Tools = Tools(self.options)
        self.waits: int = 0
        """How many waits have begun; it identifies the wait that a deadline belongs
        to.
        """
        self._initialized = initialized
        self._client = ""
        self._log = log
        self._new_id = new_id or _random_ids()
        self._pending: dict[Id, Pending] = {}
        self._held: list[_Held] = []
        self._refused: deque[Id] = deque(maxlen=MOST_REMEMBERED)
        self._refusals = Refusals()
        self._own: dict[Id, Listing] = {}
        self._late: set[Id] = set()
        self._own_meta: dict[str, Any] | None = None
        self._listings = 0

    @property
    def waiting(self) -> bool:
        """Return whether a call waits for the proxy's own ``tools/list``."""
        return bool(self._held)

    def from_client(self, raw: bytes) -> list[Send]:
        """Return the messages that follow from *raw*, a line of the client with one
        message or batch, or other text that a server may read.
        """
        if not concerns_the_proxy(raw):
            return [(SERVER, raw)]
        sends: list[Send] = []
        is_unchanged = True
        for piece in pieces_of(raw):
            became = self._from_piece(piece)
            is_unchanged = is_unchanged and became == [(SERVER, piece)]
            sends += became
        if is_unchanged:
            return [(SERVER, raw)]
        return sends

    def _from_piece(self, raw: bytes) -> list[Send]:
        """Return the messages that follow from *raw*, one message or batch of a
        line.
        """
        try:
            messages, is_batch = read_messages(raw)
        except NestedTooDeepError:
            return [(CLIENT, to_error(b"null", INVALID_REQUEST, _TOO_DEEP))]
        except Malformed:
            # The server answers text that is not JSON, as it would without the proxy.
            return [(SERVER, raw)]
        # Split into parts, text that is not JSON could become valid messages.
        if is_batch and not is_json(raw):
            return [(SERVER, raw)]
        return self._admit(raw, messages, is_batch=is_batch)

    def from_server(self, raw: bytes) -> list[Send]:
        """Return the messages that follow from *raw*, one message or batch from the
        server.
        """
        if self._passes(raw):
            return [(CLIENT, raw)]
        try:
            messages, is_batch = read_messages(raw)
        except Malformed:
            return [(CLIENT, raw)]
        kept: list[bytes] = []
        sends: list[Send] = []
        for message in messages:
            own = self._own_answer(message)
            if own is None:
                kept.append(self._passed_on(message))
            else:
                sends += own
        if kept == [each.raw for each in messages]:
            return [(CLIENT, raw)]
        if kept:
            together = _joined(kept, raw) if is_batch else kept[0]
            sends.insert(0, (CLIENT, together))
        return sends

    def give_up_listing(self) -> list[Send]:
        """Forward the waiting calls unchecked, because the server does not answer
        ``tools/list``.
        """
        # The answer may still come, and no client knows its id.
        self._late |= self._own.keys()
        self._own.clear()
        self.tools.unlistable = True
        self._log(
            {
                "event": "unlistable",
                "reason": "the server did not answer tools/list in time",
            }
        )
        return self._release()

    # from the client

    def _admit(
        self,
        raw: bytes,
        messages: list[Message],
        *,
        is_batch: bool,
        final: bool = False,
    ) -> list[Send]:
        """Return the messages that follow from *messages*, which were parsed from
        *raw*.
        """
        decisions = [self._decide(each, final=final) for each in messages]
        if any(each.waits for each in decisions):
            ids = frozenset(each.id for each in messages if each.id is not None)
            self.waits += not self._held
            self._held.append(_Held(raw, ids, is_batch))
            return self._list_tools(messages)
        kept: list[bytes] = []
        answers: list[bytes] = []
        for message, decision in zip(messages, decisions, strict=True):
            answer = self._commit(message, decision)
            if answer is not None:
                answers.append(answer)
            if decision.raw is not None:
                kept.append(decision.raw)
        sends: list[Send] = []
        if kept == [each.raw for each in messages]:
            sends.append((SERVER, raw))
        elif kept:
            together = _joined(kept, raw) if is_batch else kept[0]
            sends.append((SERVER, together))
        if answers:
            # Only revision 2025-03-26 has batches, and no SDK sends them: refused calls
            # of a batch are answered at once.
            together = _joined(answers) if is_batch else answers[0]
            sends.append((CLIENT, together))
        return sends

    def _decide(self, message: Message, *, final: bool) -> Decision:
        match message.method:
            case "tools/call":
                # Do not ask a server of the handshake era anything before the handshake
                # is complete.
                can_ask = self._initialized or envelope_of(message) is not None
                may_list = can_ask and not final and not self.tools.unlistable
                return decide_call(message, self.tools, self.options, may_list=may_list)
            case "notifications/cancelled":
                return self._decide_cancel(message)
            case "tools/list" if message.id is not None:
                return Decision(
                    message.raw,
                    pending=Pending("list", listing=self._listing_of(message)),
                )
        return Decision(message.raw)

    def _decide_cancel(self, message: Message) -> Decision:
        """Drop the cancellation of a call that was never forwarded, and with it a call
        that still waits.
        """
        key = id_of(message.param("requestId"))
        if key is None:
            return Decision(message.raw)
        if key in self._refused:
            return Decision()
        for held in self._held:
            if key in held.ids and not held.is_batch:
                self._held.remove(held)
                return Decision()
        # MCP, "Cancellation": no answer follows; an answer that crossed the
        # cancellation passes unchanged.
        self._pending.pop(key, None)
        return Decision(message.raw)

    def _commit(self, message: Message, decision: Decision) -> bytes | None:
        """Record the decision; return the answer to a refused call."""
        if message.method == "notifications/initialized":
            self._initialized = True
        elif message.method == "initialize":
            self._client = client_name(message) or self._client
            self.tools.changed()  # a second handshake begins a new session
        verdict = decision.verdict
        if message.is_request and message.id is not None:
            if message.id in self._refused:  # the id is used again
                self._refused.remove(message.id)
            # A client that gives up on a call may cancel it after the refusal has been
            # sent.
            if decision.raw is None and verdict is not None:
                self._refused.append(message.id)
            elif decision.pending is not None:
                self._pending[message.id] = decision.pending
        if verdict is None:
            return None
        client = self._client or envelope_client(message)
        sent, values = message.param("arguments"), self.options.log_values
        for entry in call_entries(
            decision.name, verdict, sent, self.tools, client=client, values=values
        ):
            self._log(entry)
        # A call without an id is a notification: it gets no answer, and is not
        # forwarded. An id that JSON-RPC does not allow (such as `true`) is returned
        # unchanged, because its sender waits for it.
        if not verdict.faults or "id" not in message.parts:
            return None
        faults = self._refusals.reported(decision.name, sent, verdict.faults)
        return refusal(message, faults, modern=envelope_of(message) is not None)

    # the proxy's own tools/list

    def _list_tools(self, messages: Iterable[Message]) -> list[Send]:
        # One listing serves all calls that wait.
        if self._own:
            return []
        # 2026-07-28: every request names its sender, and a server may list different
        # tools for different clients.
        envelopes = (envelope_of(each) for each in messages)
        self._own_meta = next((each for each in envelopes if each is not None), None)
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
        request: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": own_id,
            "method": "tools/list",
        }
        if params:
            request["params"] = params
        return SERVER, to_bytes(request)

    def _page_listed(self, message: Message, listing: Listing) -> list[Send]:
        result = object_in(message.part("result"))
        if result is None:
            self.tools.unlistable = True
            self._log(
                {
                    "event": "unlistable",
                    "reason": message.part("error").decode("utf-8", "replace")[:200],
                }
            )
            return self._release()
        if not self.tools.add_page(listing, result):
            return [self._request_page(listing)]
        self._compare_options()
        self._listings += 1
        if not self.tools.is_current(listing) and self._listings < MOST_LISTINGS:
            return [self._request_page(self.tools.start())]
        return self._release()

    def _release(self) -> list[Send]:
        """Decide on the waiting calls in their order; none waits again."""
        held, self._held = self._held, []
        sends: list[Send] = []
        # These calls do not wait again: a call of a tool that is still unknown is
        # forwarded unchecked.
        for waiting in held:
            messages, is_batch = read_messages(waiting.raw)
            sends += self._admit(waiting.raw, messages, is_batch=is_batch, final=True)
        return sends

    def _compare_options(self) -> None:
        """Log the tool names in the options that the server does not list: options for
        a misspelled name would have no effect.
        """
        if not self.tools.complete or self.tools.options_compared:
            return
        self.tools.options_compared = True
        for name in self.options.tools:
            if name not in self.tools.names:
                self._log(
                    {
                        "event": "options",
                        "tool": name,
                        "reason": "the server lists no tool of this name",
                    }
                )

    def _listing_of(self, message: Message) -> Listing | None:
        """Return the pagination that a client's request begins or continues."""
        span = message.params.get("cursor")
        if span is None:
            return self.tools.start()
        cursor = text_of(message.raw, span)
        if cursor is None:
            return self.tools.start()
        return self.tools.listing_at(cursor)

    # from the server

    def _passes(self, raw: bytes) -> bool:
        """Return whether *raw* clearly passes. Most messages do, and their bodies need
        not be scanned.
        """
        response = quick_response(raw)
        if response is None:
            # A backslash may hide a name: `list\u005fchanged` is the same text (RFC
            # 8259, 7).
            watches = self._pending or self._own or self._late
            return not watches and b"list_changed" not in raw and b"\\" not in raw
        key, kind = response
        if key in self._own or key in self._late:
            return False
        pending = self._pending.get(key)
        if pending is None:
            return True
        if kind == "error" or pending.kind != "call":
            return False
        if pending.notes or self.options.of(pending.name).check_output != "off":
            return False
        del self._pending[key]
        return True

    def _own_answer(self, message: Message) -> list[Send] | None:
        """Return the messages that follow if *message* answers a request of the proxy
        itself; else ``None``.
        """
        if message.id is None or message.method is not None:
            return None
        listing = self._own.pop(message.id, None)
        if listing is not None:
            return self._page_listed(message, listing)
        if message.id not in self._late:
            return None
        self._late.discard(message.id)
        return []

    def _passed_on(self, message: Message) -> bytes:
        """Return the bytes of a server's message as the client receives them."""
        if message.method is not None:
            # A list that is being read at this moment is outdated too.
            if message.method == "notifications/tools/list_changed":
                self.tools.changed()
            return message.raw
        pending = None
        if message.id is not None:
            pending = self._pending.pop(message.id, None)
        if pending is None:
            return message.raw
        if pending.kind == "list":
            return self._list_answered(message, pending)
        return self._call_answered(message, pending)

    def _list_answered(self, message: Message, pending: Pending) -> bytes:
        result = object_in(message.part("result"))
        if result is None:
            return message.raw
        if pending.listing is not None and self.tools.add_page(pending.listing, result):
            self._compare_options()
        if self.options.fold:
            return folded_page(message)
        return message.raw

    def _call_answered(self, message: Message, pending: Pending) -> bytes:
        if "error" in message.parts:
            # The error of a retry may concern its `requestState`, which the model did
            # not write.
            if pending.retried:
                return message.raw
            converted = converted_error(message, modern=pending.modern)
            if converted is None:
                return message.raw
            self._log(
                {"event": "converted", "tool": pending.name, "client": self._client}
            )
            return converted
        if pending.tool is not None:
            mode = self.options.of(pending.tool.name).check_output
            if mode != "off":
                refused = checked_result(
                    message, pending.tool, mode, self._log, modern=pending.modern
                )
                if refused is not None:
                    return refused
        if not pending.notes:
            return message.raw
        try:
            marked = {}
            if pending.digest:
                marked = with_state(message, pending.digest)
            return changed(message, with_repairs(message, pending.notes), marked)
        # A part that is not JSON cannot be changed: the result passes without the
        # report of the repair.
        except Malformed:
            return message.raw


def _joined(messages: list[bytes], raw: bytes = b"") -> bytes:
    """Return the batch of *messages*, with the line ending of *raw*."""
    return b"[" + b",".join(messages) + b"]" + raw[len(raw.rstrip()) :]


def _random_ids() -> Callable[[], str]:
    """Return a source of ids that neither another client nor another proxy in a row
    uses.
    """
    import os

    prefix, count = f"skillruntime-{os.urandom(6).hex()}", iter(range(1, 1 << 62))
    return lambda: f"{prefix}-{next(count)}"
