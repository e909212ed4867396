"""Several servers as one, without I/O: which server a message of the client is for, and what the client sees of each.

Names of tools and prompts carry their server's name before them (``git__status``), lists are joined with all their
pages, and the requests of servers get ids of their own. Each server's traffic passes through a `Session` of its own.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from skillruntime.adapters.mcp_proxy.joint_answers import (
    ENDED,
    INVALID_PARAMS,
    LISTS,
    METHOD_NOT_FOUND,
    NAMED,
    Question,
    capabilities_of,
    first_answer,
    joined_list,
    member,
    merged_handshake,
    object_at,
    prefixes_of,
)
from skillruntime.adapters.mcp_proxy.json_text import Malformed, Span, decode, replaced, text_of, to_bytes
from skillruntime.adapters.mcp_proxy.messages import Id, Message, id_of, read_messages, to_error, to_result

__all__ = ["CLIENT", "Merged", "Sends"]

CLIENT = -1
Sends = list[tuple[int, bytes]]
"""Messages, each with the number of the server that it is for, or `CLIENT`."""

MOST_REMEMBERED = 4096
_CAPABILITIES = {"resourceTemplates": "resources"}


class Merged:
    """The servers of one client, by *names*, in the order of their file."""

    def __init__(self, names: Sequence[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.names = list(names)
        self.prefixes = prefixes_of(names)
        self.live = set(range(len(names)))
        self.closing = False
        self._clock = clock
        # Random, because another proxy in the row counts its ids too.
        prefix = os.urandom(6).hex()
        self._ids = (f"merged-{prefix}-{number}" for number in itertools.count(1))
        self._questions: list[Question] = []
        self._in_flight: dict[Id, tuple[int, bytes]] = {}
        self._asked: dict[Id, tuple[int, bytes]] = {}
        self._tokens: dict[Id, int] = {}
        self._tasks: dict[Id, int] = {}
        self._uris: dict[str, int] = {}
        self._capabilities: dict[int, dict[str, Any]] = {}
        self._listening: dict[Id, set[int]] = {}
        self._batches: list[tuple[set[Id], list[bytes]]] = []
        self._known: dict[str, dict[str, tuple[int, str]]] = {key: {} for key in NAMED}
        self.meant_by: Callable[[int, str], bool] = lambda server, name: False
        """Whether a server has a tool that a name can mean; asked where no prefix says whose tool is called."""

    @property
    def is_asking(self) -> bool:
        """Whether an answer that is made of several is not there yet."""
        return bool(self._questions)

    # from the client

    def from_client(self, raw: bytes) -> Sends:
        """Return what becomes of a message or batch of the client."""
        try:
            messages, is_batch = read_messages(raw)
        except Malformed:
            # JSON-RPC 2.0, 5.1: the proxy answers, as no server is named that could.
            return [(CLIENT, to_error(b"null", -32700, "Parse error"))]
        ids = {each.id for each in messages if each.is_request and each.id is not None}
        if is_batch and ids:
            # JSON-RPC 2.0, 6: one array answers them, whichever servers they are for.
            self._batches.append((ids, []))
        return [send for each in messages for send in self._sent(each)]

    def _sent(self, message: Message) -> Sends:
        if message.method is None:
            return self._answer_to_server(message)
        if message.id is None:
            return self._notification(message)
        match message.method:
            # Each server is alive or has ended, which the proxy knows without asking.
            case "ping":
                return self._to_client(message.id, to_result(message.part("id"), b"{}"))
            case "initialize" | "server/discover":
                return self._ask(message, self._handshake, self.live)
            case "logging/setLevel":
                return self._ask(message, lambda question: to_result(message.part("id"), b"{}"), self._able("logging"))
            # 2026-07-28: one long request for all changes; the id may be the client's own, once at each server.
            case "subscriptions/listen":
                self._listening[message.id] = set(self.live)
                return [(each, message.raw) for each in sorted(self.live)]
            case "tools/call" | "prompts/get":
                return self._named_call(message, "tools" if message.method == "tools/call" else "prompts")
            case "completion/complete":
                return self._completion(message)
            case "resources/read" | "resources/subscribe" | "resources/unsubscribe":
                uri = text_of(message.raw, message.params["uri"]) if "uri" in message.params else None
                return self._routed(message, self._uris.get(uri or ""), "resources")
            case method if method in LISTS:
                return self._listed(message, LISTS[method])
            # A task belongs to the server that began it; its id came in that server's result.
            case method if method.startswith("tasks/"):
                return self._routed(message, self._tasks.get(id_of(message.param("taskId")) or ("", None)), "tasks")
        # An unknown method says nothing about its server. To ask all could run it more than once.
        if len(self.live) == 1:
            return self._forward(message, next(iter(self.live)))
        return self._fail(message, METHOD_NOT_FOUND, f"{message.method} does not say which of the servers it is for")

    def _listed(self, message: Message, key: str) -> Sends:
        if message.param("cursor") not in (b"", b"null"):
            # No joined list has a next page, so the cursor is not from here (2025-11-25, "Pagination": -32602).
            return self._fail(message, INVALID_PARAMS, "Unknown cursor: all pages of all servers come at once")
        return self._ask(message, self._joined, self._able(_CAPABILITIES.get(key, key)))

    def _named_call(self, message: Message, kind: str) -> Sends:
        span = message.params.get("name")
        name = text_of(message.raw, span) if span else None
        found = self._meant(name, kind) if name is not None else None
        if found is None or span is None:
            return self._fail(message, INVALID_PARAMS, f"Unknown {kind[:-1]}: {(name or '')[:80]}")
        return self._forward(message, found[0], {span: to_bytes(found[1])})

    def _meant(self, name: str, kind: str) -> tuple[int, str] | None:
        """Return the server, and the name there, that a name means; what is after the prefix is the session's to read.

        A model also writes the prefix in another case, with one separator for another, or leaves it out.
        """
        found = self._known[kind].get(name)
        if found is not None:
            return found if found[0] in self.live else None
        for same in (str, _plain):
            owners = [
                (server, match)
                for server in self.live
                if (match := _after_prefix(name, self.prefixes[server], same)) is not None
            ]
            if owners:
                # Of `git` and `git__hub` the longer is meant, as the list shows its tools.
                return max(owners, key=lambda owner: len(self.prefixes[owner[0]]))
        able = [server for server in self.live if kind == "tools" and self.meant_by(server, name)]
        return (able[0], name) if len(able) == 1 else None

    def _completion(self, message: Message) -> Sends:
        reference = message.param("ref")
        span = object_at(reference).get("name")
        name = text_of(reference, span) if span else None
        found = self._meant(name, "prompts") if name is not None else None
        if found is not None and span is not None:
            new = replaced(reference, {span: to_bytes(found[1])})
            return self._forward(message, found[0], {message.params["ref"]: new})
        return self._routed(message, None, "completions")

    def _routed(self, message: Message, server: int | None, capability: str) -> Sends:
        """Forward to *server*; where it is not known, ask all that are able, and take the first that answers."""
        if server is not None and server in self.live:
            return self._forward(message, server)
        return self._ask(message, first_answer, self._able(capability), first_wins=True)

    def _forward(self, message: Message, server: int, changes: dict[Span, bytes] | None = None) -> Sends:
        assert message.id is not None
        self._in_flight[message.id] = (server, message.part("id"))
        return [(server, replaced(message.raw, changes) if changes else message.raw)]

    def _notification(self, message: Message) -> Sends:
        key = id_of(message.param("requestId"))
        if message.method == "notifications/cancelled" and key is not None:
            if key in self._listening:
                return [(each, message.raw) for each in sorted(self._listening.pop(key))]
            # A joined request has another id at each server; its answer is short work.
            return [(self._in_flight[key][0], message.raw)] if key in self._in_flight else []
        token = id_of(message.param("progressToken"))
        if message.method == "notifications/progress" and token in self._tokens:
            return [(self._tokens[token], message.raw)]
        return [(each, message.raw) for each in sorted(self.live)]

    def _answer_to_server(self, message: Message) -> Sends:
        server, given = self._asked.pop(message.id, (None, b"")) if message.id is not None else (None, b"")
        # Servers' requests have ids of the proxy's own: an answer with another id is not for any of them.
        if server is None or server not in self.live:
            return []
        return [(server, replaced(message.raw, {message.parts["id"]: given}))]

    def _ask(
        self, message: Message, answer: Callable[[Question], bytes], servers: set[int], *, first_wins: bool = False
    ) -> Sends:
        question = Question(message, answer, first_wins=first_wins, began=self._clock())
        self._questions.append(question)
        sends = [(each, self._copy(question, each, None)) for each in sorted(servers)]
        return sends or self._settle(question)

    def _copy(self, question: Question, server: int, cursor: str | None) -> bytes:
        """Return the request with an id of its own, for one server; its progress would come from several."""
        own = next(self._ids)
        question.waits["string", own] = server
        request = question.request
        try:
            params = decode(request.part("params")) if "params" in request.parts else {}
        except Malformed:
            params = {}
        if isinstance(params, dict):
            params.pop("cursor", None)
            if isinstance(params.get("_meta"), dict):
                params["_meta"].pop("progressToken", None)
            if cursor is not None:
                params["cursor"] = cursor
        body = {"jsonrpc": "2.0", "id": own, "method": request.method, **({"params": params} if params else {})}
        return to_bytes(body)

    # from the servers

    def from_server(self, server: int, raw: bytes) -> Sends:
        """Return what becomes of a message or batch of *server*."""
        try:
            messages, _ = read_messages(raw)
        except Malformed:
            return [(CLIENT, raw)]
        return [send for each in messages for send in self._received(server, each)]

    def _received(self, server: int, message: Message) -> Sends:
        if message.method is not None and message.id is not None:
            own = next(self._ids)
            self._asked["string", own] = (server, message.part("id"))
            # Progress that the client reports on it is for this server alone.
            self._note_token(server, message)
            return [(CLIENT, replaced(message.raw, {message.parts["id"]: to_bytes(own)}))]
        if message.method is not None:
            return self._notified(server, message)
        question = next((each for each in self._questions if message.id in each.waits), None)
        if question is not None:
            return self._answered(question, server, message)
        return self._answered_alone(server, message)

    def _notified(self, server: int, message: Message) -> Sends:
        if message.method == "notifications/cancelled":
            key = id_of(message.param("requestId"))
            for (_, own), (each, given) in self._asked.items():
                if each == server and id_of(given) == key:
                    return [(CLIENT, replaced(message.raw, {message.params["requestId"]: to_bytes(own)}))]
            return []
        return [(CLIENT, message.raw)]

    def _note_token(self, server: int, message: Message) -> None:
        meta = message.param("_meta")
        start, end = object_at(meta).get("progressToken", (0, 0))
        token = id_of(meta[start:end])
        if token is not None:
            _remember(self._tokens, token, server)

    def _answered(self, question: Question, server: int, message: Message) -> Sends:
        assert message.id is not None
        del question.waits[message.id]
        if "result" not in message.parts:
            question.errors.append(message)
            return self._settle(question)
        question.pages.setdefault(server, []).append(message)
        if question.first_wins:  # the answers of the others find no question any more, and are dropped
            return self._settle(question)
        cursor = member(message, "nextCursor") if question.request.method in LISTS else b""
        # A server that repeats a cursor would be asked forever.
        if cursor[:1] == b'"' and not any(member(each, "nextCursor") == cursor for each in question.pages[server][:-1]):
            return [(server, self._copy(question, server, str(decode(cursor))))]
        return self._settle(question)

    def _settle(self, question: Question) -> Sends:
        """Answer *question* if no server is left to answer, or one was enough."""
        if question.waits and not (question.first_wins and question.pages):
            return []
        self._questions.remove(question)
        return self._to_client(question.request.id, question.answer(question))

    def _answered_alone(self, server: int, message: Message) -> Sends:
        if message.id in self._listening:
            self._listening[message.id].discard(server)
            if self._listening[message.id]:
                return []
            del self._listening[message.id]
            return self._to_client(message.id, message.raw)
        if message.id is None:
            return [(CLIENT, message.raw)]  # the server could not read what it answers
        if self._in_flight.pop(message.id, None) is None:
            return []
        if b'"taskId"' in message.raw:
            task = member(message, "task") or message.part("result")
            start, end = object_at(task).get("taskId", (0, 0))
            if (key := id_of(task[start:end])) is not None:
                _remember(self._tasks, key, server)
        return self._to_client(message.id, message.raw)

    def ended(self, server: int) -> Sends:
        """Return what the client learns when *server* is gone: its calls fail, and the lists are shorter."""
        if server not in self.live:
            return []
        self.live.discard(server)
        sends: Sends = []
        for key in [key for key, (each, _) in self._in_flight.items() if each == server]:
            error = to_error(self._in_flight.pop(key)[1], ENDED, f"The MCP server {self.names[server]} has ended")
            sends += self._to_client(key, error)
        for own in [own for own, (each, _) in self._asked.items() if each == server]:
            del self._asked[own]
        for question in list(self._questions):
            question.waits = {own: each for own, each in question.waits.items() if each != server}
            sends += self._settle(question)
        # A client that has closed its side reads no more: the Python SDK fails on what still arrives.
        for capability in () if self.closing else ("tools", "prompts", "resources"):
            if capability in self._capabilities.get(server, {}):
                method = f"notifications/{capability}/list_changed"
                sends.append((CLIENT, to_bytes({"jsonrpc": "2.0", "method": method})))
        return sends

    def overdue(self, seconds: float) -> set[int]:
        """Return the servers that the client has waited for, for more than *seconds*, in the handshake or a list."""
        late = self._clock() - seconds
        return {each for question in self._questions if question.began < late for each in question.waits.values()}

    # the answers that are made of several

    def _handshake(self, question: Question) -> bytes:
        for server, result in question.results().items():
            self._capabilities[server] = capabilities_of(result)
        return merged_handshake(question, self.names, self.prefixes)

    def _joined(self, question: Question) -> bytes:
        key = LISTS[question.request.method or ""]
        raw, entries = joined_list(question, key, self.prefixes)
        if key in self._known:
            self._known[key] = entries
        elif key in ("resources", "tasks"):
            for each, (server, _) in entries.items():
                if key == "tasks":
                    _remember(self._tasks, ("string", each), server)
                else:
                    _remember(self._uris, each, server)
        return raw

    # to the client

    def _able(self, capability: str) -> set[int]:
        return {each for each in self.live if each not in self._capabilities or capability in self._capabilities[each]}

    def _fail(self, message: Message, code: int, text: str) -> Sends:
        return self._to_client(message.id, to_error(message.part("id"), code, text))

    def _to_client(self, key: Id | None, raw: bytes) -> Sends:
        """Return an answer for the client; one that belongs to a batch waits for the others (JSON-RPC 2.0, 6)."""
        batch = next((each for each in self._batches if key in each[0]), None)
        if batch is None or key is None:
            return [(CLIENT, raw)]
        ids, answers = batch
        ids.discard(key)
        answers.append(raw.strip())
        if ids:
            return []
        self._batches.remove(batch)
        return [(CLIENT, b"[" + b",".join(answers) + b"]")]


def _after_prefix(name: str, prefix: str, same: Callable[[str], str]) -> str | None:
    """Return what *name* has after *prefix* and a separator, where what is before is the *same*; else ``None``."""
    for match in re.finditer(r"__|[-_./:]", name):
        if match.start() and match.end() < len(name) and same(name[: match.start()]) == same(prefix):
            return name[match.end() :]
    return None


def _plain(name: str) -> str:
    return re.sub(r"[-_.\s]+", "", name).casefold()


def _remember(table: dict[Any, int], key: Any, server: int) -> None:
    table.setdefault(key, server)
    if len(table) > MOST_REMEMBERED:
        del table[next(iter(table))]
