"""toolpatch: the one call that it finds in a text, or else the text with its JSON
repaired; it reads no schema.
"""

from __future__ import annotations

import json
from typing import Any

from adapter import serve
from toolpatch import extract_tool_calls, heal_json


def answer(
    schema: dict[str, Any], payload: Any, tool: str | None, finish_reason: str | None
) -> Any:
    if not isinstance(payload, str):
        return payload
    found = extract_tool_calls(payload, {tool} if tool else None)
    if found is None:
        return json.loads(heal_json(payload) or "")
    if len(found.tool_calls) != 1:
        raise ValueError(f"{len(found.tool_calls)} calls")
    return json.loads(found.tool_calls[0]["function"]["arguments"])


serve(answer)
