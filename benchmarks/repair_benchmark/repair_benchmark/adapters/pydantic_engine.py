"""pydantic: a model of the schema, in lax mode."""

from __future__ import annotations

import json
from typing import Any

from adapter import serve
from models import model_of, plain


def answer(
    schema: dict[str, Any], payload: Any, tool: str | None, finish_reason: str | None
) -> Any:
    model = model_of(json.dumps(schema))
    is_text = isinstance(payload, str)
    return plain(
        model.model_validate_json(payload) if is_text else model.model_validate(payload)
    )


serve(answer)
