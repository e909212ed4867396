"""agent-airlock: its decorator on a function with the schema's parameters; what the
function gets is the answer.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

from adapter import object_of, serve
from agent_airlock import Airlock
from models import is_name, model_of, plain
from pydantic import BaseModel


def answer(
    schema: dict[str, Any], payload: Any, tool: str | None, finish_reason: str | None
) -> Any:
    received: list[dict[str, Any]] = []
    unusable = [name for name in schema.get("properties", {}) if not is_name(name)]
    if unusable:
        raise ValueError(f"a function has no parameter of the name {unusable[0]!r}")
    fields = model_of(json.dumps(schema), named=True).model_fields
    sent = object_of(payload)

    def function(**arguments: Any) -> str:
        received.append({name: _plain(each) for name, each in arguments.items()})
        return "ran"

    parameters = []
    for name, field in fields.items():
        default = inspect.Parameter.empty if field.is_required() else field.default
        kind = field.rebuild_annotation()
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
        )
    # What pydantic reads.
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in parameters}
    said = Airlock()(function)(**sent)
    if not received:
        raise ValueError(str(said)[:200])
    # What was not sent is the default, as the function sees it.
    return {
        name: value
        for name, value in received[0].items()
        if name in sent or value != fields[name].default
    }


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return plain(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    return value


serve(answer)
