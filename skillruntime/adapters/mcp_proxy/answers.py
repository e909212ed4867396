"""Write the proxy's own messages, and change a server's answers.

Every other byte of an answer stays as the server wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from skillruntime.adapters.mcp_proxy.calls import MARK, Note, refusal_text
from skillruntime.adapters.mcp_proxy.json_text import (
    Span,
    members,
    object_in,
    replaced,
    text_of,
    to_bytes,
)
from skillruntime.adapters.mcp_proxy.messages import Message, to_error

if TYPE_CHECKING:
    from skillruntime.errors import SkillError

__all__ = [
    "INVALID_PARAMS",
    "REPAIRS_KEY",
    "changed",
    "converted_error",
    "note_fields",
    "refusal",
    "tool_error",
    "tool_result",
    "with_repairs",
    "with_state",
]

REPAIRS_KEY = "skillruntime/repairs"
INVALID_PARAMS = -32602

# Both SDKs answer an unknown tool, a bad cursor, a missing header or envelope with
# -32602 too: those stay errors.
_OTHER = re.compile(
    r"unknown tool|no such tool|invalid request parameters"
    r"|_meta\b|protocol.?version|capabilit|cursor|\bheader\b|\btask\b",
    re.IGNORECASE,
)
_ARGUMENTS = re.compile(
    r"\barguments?\b|input validation|invalid input|validation error|\bschema\b"
    r"|(missing|required|unexpected|unknown|invalid|extra)"
    r".{0,40}\b(property|propert|field|parameter|param|key|value|type)"
    r"|\b(property|field|parameter)\b"
    r".{0,60}\b(missing|required|invalid|must|expected|should)"
    r"|must (be|have|match)|expected .{1,40}(received|got)|is not of type|is a required",
    re.IGNORECASE,
)


def refusal(message: Message, faults: Iterable[SkillError], *, modern: bool) -> bytes:
    """Return the answer to a call that is not forwarded: a tool execution error
    (SEP-1303), in its revision's form.
    """
    text = refusal_text(faults)
    if not modern and "task" in message.params:
        # 2025-11-25: a call with `task` is answered by a CreateTaskResult or an error,
        # never by a CallToolResult.
        return to_error(message.part("id"), INVALID_PARAMS, text)
    return tool_error(message.part("id"), text, modern=modern)


def tool_error(request_id: bytes, text: str, *, modern: bool) -> bytes:
    """Return a tool execution error with *text*.

    >>> import json
    >>> answer = json.loads(tool_error(b"7", "Not run.", modern=False))
    >>> answer["id"], answer["result"]
    (7, {'content': [{'type': 'text', 'text': 'Not run.'}], 'isError': True})
    """
    result = to_bytes(tool_result(text, modern=modern))
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (request_id, result)


def tool_result(text: str, *, modern: bool) -> dict[str, Any]:
    """Return the result of a call that failed; since 2026-07-28 a result says that it
    is complete.
    """
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": text}],
        "isError": True,
    }
    if modern:
        result["resultType"] = "complete"
    return result


def converted_error(message: Message, *, modern: bool) -> bytes | None:
    """Return the tool execution error that an ``Invalid params`` error about arguments
    becomes; else ``None``.

    Models see tool execution errors and can send a better call; clients keep protocol
    errors to themselves (SEP-1303).
    """
    error = object_in(message.part("error"))
    if (
        error is None
        or error.get("code") != INVALID_PARAMS
        or not isinstance(error.get("message"), str)
    ):
        return None
    text = error["message"]
    # some servers say what is wrong in `data` alone
    if isinstance(error.get("data"), str) and error["data"] not in text:
        text = f"{text}: {error['data']}"
    is_unknown_tool = "tool" in text.lower() and "not found" in text.lower()
    if is_unknown_tool or _OTHER.search(text) or not _ARGUMENTS.search(text):
        return None
    ending = message.raw[len(message.raw.rstrip()) :]
    return tool_error(message.part("id"), text, modern=modern) + ending


def with_repairs(message: Message, notes: Iterable[Note]) -> dict[Span, bytes]:
    """Return the changes that add *notes* to the ``_meta`` of the result in *message*;
    empty if the result is not an object.
    """
    start, _ = message.parts.get("result", (0, 0))
    if message.raw[start : start + 1] != b"{":
        return {}
    member = to_bytes({REPAIRS_KEY: [note_fields(note) for note in notes]})[1:-1]
    fields = dict(members(message.raw, start))
    meta = fields.get("_meta")
    if meta is None:
        added = b'"_meta":{' + member + b"}"
        if fields:
            added += b","
        return {(start + 1, start + 1): added}
    begin, _ = meta
    if message.raw[begin : begin + 1] != b"{":
        # `"_meta": null`, as some servers write it.
        return {meta: b"{" + member + b"}"}
    is_empty = next(members(message.raw, begin), None) is None
    if not is_empty:
        member += b","
    return {(begin + 1, begin + 1): member}


def with_state(message: Message, digest: str) -> dict[Span, bytes]:
    """Return the change that marks the ``requestState`` of the result in *message* with
    the digest of the call.
    """
    start, _ = message.parts.get("result", (0, 0))
    if message.raw[start : start + 1] != b"{":
        return {}
    # Behind the opening quote, so that the state itself keeps its bytes and its
    # escapes.
    fields = dict(members(message.raw, start))
    span = fields.get("requestState")
    if span is None or text_of(message.raw, span) is None:
        return {}
    return {(span[0] + 1, span[0] + 1): f"{MARK}{digest}.".encode()}


def changed(message: Message, *changes: Mapping[Span, bytes]) -> bytes:
    """Return the bytes of *message* with *changes*."""
    merged: dict[Span, bytes] = {}
    for change in changes:
        merged.update(change)
    if not merged:
        return message.raw
    return replaced(message.raw, merged)


def note_fields(note: Note) -> dict[str, str]:
    """Return a repair as ``_meta`` reports it."""
    fields = {"path": note.path, "rule": note.rule}
    if note.before or note.after:
        fields |= {"before": note.before, "after": note.after}
    return fields
