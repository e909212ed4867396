"""toolproxy: `repair_arguments` for a model of the schema, and that model."""

from __future__ import annotations

import json
from typing import Any

from adapter import object_of, serve
from models import model_of, plain
from toolproxy.guardrails import repair_arguments


def answer(
    schema: dict[str, Any], payload: Any, tool: str | None, finish_reason: str | None
) -> Any:
    model = model_of(json.dumps(schema), named=True)
    return plain(model.model_validate(repair_arguments(model, object_of(payload))))


serve(answer)
