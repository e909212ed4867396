"""The proxy between one client and one server, without I/O: messages in, messages out, to whom.

What is not a ``tools/call``, nor the answer to one, passes with the same bytes and in order. A call is judged when it
is read; only one whose schema is not known waits, until the proxy's own ``tools/list`` has been answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.adapters.mcp_proxy.answers import changed, converted_error, refusal, with_repairs, with_state
from skillruntime.adapters.mcp_proxy.calls import Fault, Note, Verdict, digest_of, judge, split_state
from skillruntime.adapters.mcp_proxy.envelope import client_name, envelope_client, envelope_of
from skillruntime.adapters.mcp_proxy.json_text import Malformed, Span, decode, encode, text_of
from skillruntime.adapters.mcp_proxy.log import Write, call_entry, silent
from skillruntime.adapters.mcp_proxy.messages import (
    Id,
    Message,
    concerns_the_proxy,
    id_of,
    quick_response,
    read_message,
    split_batch,
)
from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.adapters.mcp_proxy.results import checked_result, folded_page
from skillruntime.adapters.mcp_proxy.tools import Listing, Tool, Tools

__all__ = ["CLIENT", "MOST_REMEMBERED", "SERVER", "Pending", "Send", "Session"]

CLIENT, SERVER = "client", "server"
Send = tuple[str, bytes]

MOST_REMEMBERED = 4096
"""How many refused ids are remembered, so that a late cancel of one is not forwarded."""
MOST_LISTINGS = 3
"""How often the tools are listed again when they change while they are listed."""


@dataclass(slots=True)
class Pending:
    """A request that was forwarded and whose answer matters."""

    kind: str  # call, list
    tool: Tool | None = None
    name: str = ""
    notes: tuple[Note, ...] = ()
    digest: str = ""
    modern: bool = False
    retried: bool = False
    listing: Listing | None = None


@dataclass(slots=True)
class _Batch:
    """A batch of which some calls were refused: their answers go into the batch that answers the others."""

    ids: set[Id]
    answers: list[bytes]


@dataclass(frozen=True, slots=True)
class _Decision:
    """What is to become of one message: forwarded as *raw*, answered, or neither; or it waits for the schema."""

    raw: bytes | None = None
    answer: bytes | None = None
    waits: bool = False
    pending: Pending | None = None
    verdict: Verdict | None = None
    name: str = ""


@dataclass(slots=True)
class _Held:
    raw: bytes
    ids: set[Id] = field(default_factory=set)
    is_batch: bool = False


class Session:
    """One conversation. *tools*, *pending* and *refused* may be shared with other connections of the same conversation.

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
        if not concerns_the_proxy(raw):
            return [(SERVER, raw)]
        try:
            spans = split_batch(raw)
            messages = [read_message(raw[a:b]) for a, b in spans] if spans is not None else [read_message(raw)]
        except Malformed:
            return [(SERVER, raw)]  # the server answers what is not JSON, as it would without the proxy
        return self._admit(raw, messages, is_batch=spans is not None)

    def from_server(self, raw: bytes) -> list[Send]:
        """Return what becomes of *raw*, one message or batch from the server."""
        if raw.lstrip()[:1] != b"[":
            if self._passes(raw):
                return [(CLIENT, raw)]
            try:
                message = read_message(raw)
            except Malformed:
                return [(CLIENT, raw)]
            return self._answered(message)
        try:
            messages = [read_message(raw[a:b]) for a, b in split_batch(raw) or ()]
        except Malformed:
            return [(CLIENT, raw)]
        return self._batch_answered(raw, messages)

    def give_up_listing(self) -> list[Send]:
        """Forward the calls that wait, unchecked: the server does not answer ``tools/list``."""
        self._own.clear()
        self.tools.unlistable = True
        self._log({"event": "unlistable", "reason": "the server did not answer tools/list in time"})
        return self._release()

    # from the client

    def _admit(self, raw: bytes, messages: list[Message], *, is_batch: bool, final: bool = False) -> list[Send]:
        decisions = [self._decide(each, final=final) for each in messages]
        if any(each.waits for each in decisions):
            ids = {each.id for each in messages if each.id is not None}
            self.waits += not self._held
            self._held.append(_Held(raw, ids, is_batch))
            return self._list_tools(messages)
        for message, decision in zip(messages, decisions, strict=True):
            self._commit(message, decision)
        if not is_batch:
            decision = decisions[0]
            if decision.answer is not None:
                return [(CLIENT, decision.answer)]
            return [] if decision.raw is None else [(SERVER, decision.raw)]
        return self._admit_batch(raw, messages, decisions)

    def _admit_batch(self, raw: bytes, messages: list[Message], decisions: list[_Decision]) -> list[Send]:
        answers = [each.answer for each in decisions if each.answer is not None]
        kept = [(message, each.raw) for message, each in zip(messages, decisions, strict=True) if each.raw is not None]
        ids = {message.id for message, _ in kept if message.id is not None and message.method is not None}
        sends: list[Send] = []
        if len(kept) == len(messages) and all(message.raw == new for message, new in kept):
            sends.append((SERVER, raw))
        elif kept:
            ending = raw[len(raw.rstrip()) :]
            sends.append((SERVER, b"[" + b",".join(new for _, new in kept) + b"]" + ending))
        if answers and ids:
            self._batches.append(_Batch(ids, answers))  # JSON-RPC 2.0, 6: one batch is answered by one array
        elif answers:
            sends.append((CLIENT, b"[" + b",".join(answers) + b"]"))
        return sends

    def _decide(self, message: Message, *, final: bool) -> _Decision:
        match message.method:
            case "tools/call":
                return self._decide_call(message, final=final)
            case "notifications/cancelled":
                return self._decide_cancel(message)
            case "tools/list" if message.id is not None:
                return _Decision(message.raw, pending=Pending("list", listing=self._listing_of(message)))
        return _Decision(message.raw)

    def _decide_call(self, message: Message, *, final: bool) -> _Decision:
        span = message.params.get("name")
        name = text_of(message.raw, span) if span else None
        if name is None:
            return _Decision(message.raw)
        modern = envelope_of(message) is not None
        if message.repeated is not None:
            fault = Fault("", "INVALID_INPUT", f'The key "{message.repeated}" comes twice in the request')
            return self._refuse(message, name, Verdict(faults=(fault,)), modern)
        if "requestState" in message.params:
            return self._decide_retry(message, name, modern, final=final)
        can_list = not final and not self.tools.unlistable and (self.initialized or modern)
        tool, verdict = self._judge(message, name)
        if can_list and not self.tools.fresh and (verdict is None or verdict.outcome != "passed"):
            return _Decision(waits=True)
        verdict = verdict or Verdict(unchecked="the tool is not listed")
        if verdict.faults:
            return self._refuse(message, name, verdict, modern)
        pending = Pending("call", tool, name, verdict.notes, modern=modern)
        raw = message.raw
        if verdict.notes and tool is not None:
            raw = _repaired(message, tool.name, verdict)
            pending.digest = digest_of(tool.name, verdict.arguments or message.param("arguments"))
        return _Decision(raw, pending=pending, verdict=verdict, name=name)

    def _judge(self, message: Message, name: str) -> tuple[Tool | None, Verdict | None]:
        """Return the tool that is called and the verdict; no verdict where the tool is not known."""
        policy = self.options.of(name).policy
        tool = self.tools.find(name)
        notes: tuple[Note, ...] = ()
        if tool is None and policy not in ("strict", "off"):
            meant = self.tools.meant_by(name)
            if meant is not None:
                tool, policy = self.tools.find(meant), self.options.of(meant).policy
                notes = (Note("", "tool-name", encode(name), encode(meant)),)
        if tool is None:
            return None, None
        verdict = judge(tool, message.param("arguments"), policy)
        return tool, replace(verdict, notes=(*notes, *verdict.notes)) if notes else verdict

    def _decide_retry(self, message: Message, name: str, modern: bool, *, final: bool) -> _Decision:
        """Decide a call that answers an ``input_required`` result: it gets the repair of its first round, or none."""
        span = message.params["requestState"]
        state = text_of(message.raw, span)
        digest, own = split_state(state) if state is not None else (None, "")
        pending = Pending("call", self.tools.find(name), name, modern=modern, retried=True)
        if digest is None:
            return _Decision(message.raw, pending=pending, verdict=Verdict(unchecked="a retry"), name=name)
        unmarked = {span: encode(own).encode()}
        tool, verdict = self._judge(message, name)
        if verdict is not None and tool is not None and not verdict.faults:
            arguments = verdict.arguments or message.param("arguments")
            if digest_of(tool.name, arguments) == digest:
                pending.notes, pending.digest = verdict.notes, digest
                raw = _repaired(message, tool.name, verdict, unmarked)
                return _Decision(raw, pending=pending, verdict=verdict, name=name)
        if not final and not self.tools.unlistable and not self.tools.fresh:
            return _Decision(waits=True)
        raw = changed(message, unmarked)
        return _Decision(raw, pending=pending, verdict=Verdict(unchecked="a retry under another schema"), name=name)

    def _refuse(self, message: Message, name: str, verdict: Verdict, modern: bool) -> _Decision:
        # A call without an id is a notification: it gets no answer, and is not forwarded either.
        answer = refusal(message, name, verdict.faults, modern=modern) if message.id is not None else None
        return _Decision(answer=answer, verdict=verdict, name=name)

    def _decide_cancel(self, message: Message) -> _Decision:
        """Swallow the cancel of a call that was never forwarded; one that waits is dropped with it."""
        key = id_of(message.param("requestId"))
        if key is None:
            return _Decision(message.raw)
        if key in self._refused:
            return _Decision()
        for held in self._held:
            if key in held.ids and not held.is_batch:
                self._held.remove(held)
                return _Decision()
            if key in held.ids:  # forwarded with the batch, and cancelled right after it
                self._held.insert(self._held.index(held) + 1, _Held(message.raw))
                return _Decision()
        self.pending.pop(key, None)
        return _Decision(message.raw)

    def _commit(self, message: Message, decision: _Decision) -> None:
        """Note what was decided: what is forwarded, whose answer matters, and what the log says."""
        if message.method == "notifications/initialized":
            self.initialized = True
        elif message.method == "initialize":
            self.client = client_name(message) or self.client
            self.tools.changed()  # a second handshake begins a new session
        if message.id is not None and message.method is not None:
            if message.id in self._refused:  # the id is used again
                self._refused.remove(message.id)
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
        if self._own:
            return []
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
        return SERVER, encode(request).encode()

    def _page_listed(self, message: Message, listing: Listing) -> list[Send]:
        result = _result(message)
        if result is None:
            self.tools.unlistable = True
            self._log({"event": "unlistable", "reason": message.part("error").decode("utf-8", "replace")[:200]})
            return self._release()
        if not self.tools.add_page(listing, result):
            return [self._request_page(listing)]
        self._listings += 1
        if not self.tools.is_current(listing) and self._listings < MOST_LISTINGS:
            return [self._request_page(self.tools.start())]
        return self._release()

    def _release(self) -> list[Send]:
        """Judge the calls that waited, finally and in order."""
        held, self._held = self._held, []
        sends: list[Send] = []
        for each in held:
            spans = split_batch(each.raw)
            messages = [read_message(each.raw[a:b]) for a, b in spans] if spans else [read_message(each.raw)]
            sends += self._admit(each.raw, messages, is_batch=spans is not None, final=True)
        return sends

    def _listing_of(self, message: Message) -> Listing | None:
        """Return the run through the pages that a client's request begins or goes on with."""
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
            return not self.pending and not self._own and b"list_changed" not in raw and b"\\" not in raw
        key, kind = response
        if key in self._own or self._batches:
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
        listing = self._own.pop(message.id, None) if message.id and message.method is None else None
        if listing is not None:
            return self._page_listed(message, listing)
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
            listing = self._own.pop(message.id, None) if message.id and message.method is None else None
            if listing is not None:
                sends += self._page_listed(message, listing)
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

    def _batch_with(self, messages: list[Message]) -> _Batch | None:
        ids = {each.id for each in messages if each.method is None}
        return next((batch for batch in self._batches if batch.ids & ids), None)

    def _passed_on(self, message: Message) -> bytes:
        """Return the bytes in which a message of the server reaches the client."""
        if message.method is not None:
            if message.method == "notifications/tools/list_changed":
                self.tools.changed()
            return message.raw
        pending = self.pending.pop(message.id, None) if message.id is not None else None
        if pending is None:
            return message.raw
        if pending.kind == "list":
            return self._learned(message, pending)
        if "error" in message.parts:
            converted = None if pending.retried else converted_error(message, modern=pending.modern)
            if converted is None:
                return message.raw
            self._log({"event": "converted", "tool": pending.name, "client": self.client})
            return converted
        options = self.options.of(pending.name)
        if options.check_output != "off":
            refused = checked_result(message, pending.tool, options.check_output, self._log, modern=pending.modern)
            if refused is not None:
                return refused
        if not pending.notes:
            return message.raw
        marked = with_state(message, pending.digest) if pending.digest else {}
        return changed(message, with_repairs(message, pending.notes), marked)

    def _learned(self, message: Message, pending: Pending) -> bytes:
        result = _result(message)
        if result is None:
            return message.raw
        if pending.listing is not None:
            self.tools.add_page(pending.listing, result)
        return folded_page(message) if self.options.fold else message.raw


def _repaired(message: Message, name: str, verdict: Verdict, more: dict[Span, bytes] | None = None) -> bytes:
    """Return the call with the name and the arguments that it is forwarded with."""
    changes: dict[Span, bytes] = dict(more or {})
    if text_of(message.raw, message.params["name"]) != name:
        changes[message.params["name"]] = encode(name).encode()
    if verdict.arguments is not None and "arguments" in message.params:
        changes[message.params["arguments"]] = verdict.arguments
    elif verdict.arguments is not None:
        end = message.params["name"][1]
        changes[(end, end)] = b',"arguments":' + verdict.arguments
    return changed(message, changes)


def _result(message: Message) -> dict[str, Any] | None:
    try:
        result = decode(message.part("result")) if "result" in message.parts else None
    except Malformed:
        return None
    return result if isinstance(result, dict) else None


def _random_ids() -> Callable[[], str]:
    """Return a source of ids that neither another client nor another proxy in a row uses."""
    import os

    prefix, count = f"skillruntime-{os.urandom(6).hex()}", iter(range(1, 1 << 62))
    return lambda: f"{prefix}-{next(count)}"
