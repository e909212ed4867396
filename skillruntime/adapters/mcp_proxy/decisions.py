"""Decide on one message of the client: forward it, changed or unchanged, refuse it, or
keep it until its schema is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from skillruntime.adapters.mcp_proxy.answers import changed
from skillruntime.adapters.mcp_proxy.calls import (
    Note,
    Verdict,
    digest_of,
    judge_call,
    refused,
    split_state,
)
from skillruntime.adapters.mcp_proxy.json_text import Span, is_json, text_of, to_bytes
from skillruntime.adapters.mcp_proxy.messages import Message, envelope_of
from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.adapters.mcp_proxy.tools import Listing, Tool, Tools

__all__ = ["Decision", "Pending", "decide_call"]


@dataclass(slots=True)
class Pending:
    """A forwarded request whose answer the proxy must see."""

    kind: str  # call, list
    tool: Tool | None = None
    name: str = ""
    notes: tuple[Note, ...] = ()
    digest: str = ""
    modern: bool = False
    retried: bool = False
    listing: Listing | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one message: it is forwarded as *raw*, refused, or waits for the
    schema.

    The client receives the faults of a *verdict*.
    """

    raw: bytes | None = None
    waits: bool = False
    pending: Pending | None = None
    verdict: Verdict | None = None
    name: str = ""


def decide_call(
    message: Message, tools: Tools, options: Options, *, may_list: bool
) -> Decision:
    """Decide on a ``tools/call``; *may_list* says whether the proxy may still ask for
    the tools.
    """
    span = message.params.get("name")
    name = None
    if span:
        name = text_of(message.raw, span)
    # Parsers differ in which of two equal keys they take, so the server could read
    # another call than was checked here (RFC 8259, 4).
    if message.repeated is not None and is_json(message.raw):
        return Decision(
            verdict=refused(f'The key "{message.repeated}" comes twice in the request'),
            name=name or "",
        )
    if name is None:  # the server answers with -32602, which names what is missing
        return Decision(message.raw)
    if "requestState" in message.params:
        return _decide_retry(message, name, tools, options, may_list=may_list)
    return _decide_first(message, name, tools, options, may_list=may_list)


def _decide_first(
    message: Message, name: str, tools: Tools, options: Options, *, may_list: bool
) -> Decision:
    """Decide a call that does not answer a question of the server."""
    modern = envelope_of(message) is not None
    tool, verdict = judge_call(tools, options, name, message.param("arguments"))
    if verdict.outcome == "passed":
        # A call that fits an old list passes too: at worst the server refuses it.
        return Decision(
            message.raw,
            pending=Pending("call", tool, name, modern=modern),
            verdict=verdict,
            name=name,
        )
    if may_list and not tools.fresh:
        return Decision(waits=True)
    # The scan of the message looks only at brackets and quotes, so check first that the
    # complete message is JSON.
    if (verdict.faults or verdict.notes) and not is_json(message.raw):
        return Decision(message.raw)
    if verdict.faults:
        return Decision(verdict=verdict, name=name)
    pending = Pending("call", tool, name, verdict.notes, modern=modern)
    raw = message.raw
    if verdict.notes and tool is not None:
        raw = _repaired(message, tool.name, verdict)
        pending.digest = digest_of(
            tool.name, verdict.arguments or message.param("arguments")
        )
    return Decision(raw, pending=pending, verdict=verdict, name=name)


def _decide_retry(
    message: Message, name: str, tools: Tools, options: Options, *, may_list: bool
) -> Decision:
    """Decide on a call that answers an ``input_required`` result: it gets the repair of
    its first round, or none.
    """
    span = message.params["requestState"]
    state = text_of(message.raw, span)
    digest, own = None, ""
    if state is not None:
        digest, own = split_state(state)
    pending = Pending("call", tools.find(name), name, modern=True, retried=True)
    if digest is None or not is_json(message.raw):
        return Decision(
            message.raw,
            pending=pending,
            verdict=Verdict(unchecked="a retry"),
            name=name,
        )
    unmarked = {span: to_bytes(own)}
    tool, verdict = judge_call(tools, options, name, message.param("arguments"))
    # The digest shows that this repair equals the one of the first round; 2026-07-28
    # requires the same params.
    if tool is not None and not verdict.faults:
        arguments = verdict.arguments or message.param("arguments")
        if digest_of(tool.name, arguments) == digest:
            pending.notes, pending.digest = verdict.notes, digest
            raw = _repaired(message, tool.name, verdict, unmarked)
            return Decision(raw, pending=pending, verdict=verdict, name=name)
    if may_list and not tools.fresh:
        return Decision(waits=True)
    raw = changed(message, unmarked)
    return Decision(
        raw,
        pending=pending,
        verdict=Verdict(unchecked="a retry under another schema"),
        name=name,
    )


def _repaired(
    message: Message, name: str, verdict: Verdict, more: dict[Span, bytes] | None = None
) -> bytes:
    """Return the call with the corrected name and arguments."""
    changes: dict[Span, bytes] = dict(more or {})
    if text_of(message.raw, message.params["name"]) != name:
        changes[message.params["name"]] = to_bytes(name)
    if verdict.arguments is not None and "arguments" in message.params:
        changes[message.params["arguments"]] = verdict.arguments
    elif verdict.arguments is not None:
        end = message.params["name"][1]
        changes[(end, end)] = b',"arguments":' + verdict.arguments
    return changed(message, changes)
