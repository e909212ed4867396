"""json_repair: guided by the schema, in the mode that the command names."""

from __future__ import annotations

import sys
from typing import Any

import json_repair
from adapter import serve, text_of


def answer(
    schema: dict[str, Any], payload: Any, tool: str | None, finish_reason: str | None
) -> Any:
    return json_repair.loads(
        text_of(payload), schema=schema, schema_repair_mode=sys.argv[1]
    )  # type: ignore[arg-type]  # checked by it


serve(answer)
