"""json_repair for the syntax, then a pydantic model of the schema in lax mode."""

from __future__ import annotations

import json
from typing import Any

import json_repair
from adapter import serve, text_of
from models import model_of, plain


def answer(
    schema: dict[str, Any], payload: Any, tool: str | None, finish_reason: str | None
) -> Any:
    model = model_of(json.dumps(schema))
    return plain(model.model_validate(json_repair.loads(text_of(payload))))


serve(answer)
