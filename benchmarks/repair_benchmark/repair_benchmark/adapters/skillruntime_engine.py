"""skillruntime: `repair` with its defaults."""

from __future__ import annotations

from typing import Any

from adapter import serve

from skillruntime import repair


def answer(
    schema: dict[str, Any], payload: Any, tool: str | None, finish_reason: str | None
) -> Any:
    return repair(payload, schema, name=tool, finish_reason=finish_reason).arguments


serve(answer)
