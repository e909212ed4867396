"""Change results on their way to the client: fold schemas in ``tools/list``, and check
results by ``outputSchema``.
"""

from __future__ import annotations

from functools import partial

from skillruntime.adapters.mcp_proxy.answers import tool_result
from skillruntime.adapters.mcp_proxy.calls import cut
from skillruntime.adapters.mcp_proxy.json_text import (
    Malformed,
    Span,
    decode,
    elements,
    members,
    replaced,
    to_bytes,
)
from skillruntime.adapters.mcp_proxy.log import Write
from skillruntime.adapters.mcp_proxy.messages import Message
from skillruntime.adapters.mcp_proxy.tools import Tool

__all__ = ["checked_result", "folded_page"]

_UNFINISHED = ("input_required", "task")
MOST_PLACES = 5


def checked_result(
    message: Message, tool: Tool | None, mode: str, log: Write, *, modern: bool
) -> bytes | None:
    """Compare the result of a call with the tool's ``outputSchema``; return its
    replacement, or ``None`` to keep it.

    A result that says ``isError``, a task and an ``input_required`` result promise
    nothing about their content.
    """
    if tool is None or tool.output is None:
        return None
    span = message.parts.get("result", (0, 0))
    try:
        result = decode(message.raw[span[0] : span[1]])
    except Malformed:
        return None
    if not isinstance(result, dict) or result.get("isError") is True:
        return None
    # A task promises nothing yet; its result comes as the answer to another request,
    # and is not checked.
    if (
        "taskId" in result
        or "task" in result
        or result.get("resultType") in _UNFINISHED
    ):
        return None
    if "structuredContent" not in result:
        places = ["structuredContent is missing"]
    else:
        content = result["structuredContent"]
        try:
            if tool.output.is_valid(content):
                return None
            violations = tool.output.violations(content)
        except (ValueError, TypeError):  # a number that the engine cannot hold
            return None
        places = [
            f"{violation.pointer or 'the whole of it'} fails {violation.keyword}"
            for violation in violations[:MOST_PLACES]
        ]
    log({"event": "output", "tool": tool.name, "outcome": mode, "errors": places})
    if mode != "refuse":
        return None
    text = (
        f"{tool.name} ran, but its result does not match its outputSchema: "
        f"{'; '.join(places)}. Do not rely on it."
    )
    from skillruntime.catalog.visibility import visible_line

    # The names of a tool and of members are the server's.
    text = visible_line(cut(text))
    return replaced(message.raw, {span: to_bytes(tool_result(text, modern=modern))})


def folded_page(message: Message) -> bytes:
    """Return a ``tools/list`` answer whose input schemas have no reference and no
    alternatives at their root.

    Some providers reject those; the proxy still enforces the original. All other bytes
    stay.
    """
    from skillruntime.adapters.tools.schema_folding import fold_root
    from skillruntime.contract.schemas.references import referenced

    changes: dict[Span, bytes] = {}
    raw = message.raw
    try:
        tools = dict(members(raw, message.parts["result"][0])).get("tools")
        if tools is None:
            return raw
        for start, _ in elements(raw, tools[0]):
            span = dict(members(raw, start)).get("inputSchema")
            if span is None:
                continue
            schema = decode(raw[span[0] : span[1]])
            if not isinstance(schema, dict):
                continue
            folded = fold_root(schema, partial(referenced, schema))
            folded = {"type": "object", **folded}
            if folded != schema:
                changes[span] = to_bytes(folded)
    except Malformed:
        return raw
    if not changes:
        return raw
    return replaced(raw, changes)
