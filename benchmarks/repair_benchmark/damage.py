"""Cases made by program: valid calls of real tools' schemas, and one error in each.

The errors are those of ``tests/contract/generated.py``, where the call that was meant
is known, and what must be refused: a call without something that is required, a number
with a word, a text that was cut off. An error after which the call is valid still is
left out, since no engine could see it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs

sys.path[:0] = [str(Path(__file__).parents[2])]

from tests.contract.generated import Case, make_value, places, replaced  # noqa: E402

CALLS_A_TOOL = 12
ERRORS_A_CALL = 4
REFUSE = "refuse"
FORMATS = {
    "uri": "https://example.com/a",
    "date-time": "2026-01-31T09:30:00Z",
    "email": "ana@example.com",
}


def cases(schemas: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the cases for *schemas*, the rows of `schemas.fetched`: the same ones at
    each run.
    """
    seed = 0
    for row in schemas:
        schema = row["schema"]
        if not schema.get("properties"):
            continue
        is_valid = jsonschema_rs.validator_for(schema).is_valid
        is_meant = jsonschema_rs.validator_for(schema, validate_formats=True).is_valid
        for _ in range(CALLS_A_TOOL):
            seed += 1
            value = _call(Random(seed), schema, is_meant)
            if value is None:
                continue
            made = {
                "tool": row["tool"],
                "schema": schema,
                "server": row["server"],
                "finish_reason": None,
            }
            yield {
                **made,
                "id": f"{seed} valid",
                "kind": "valid",
                "payload": value,
                "answer": value,
            }
            for number, (kind, payload) in enumerate(
                Case(seed, schema, value).errors(ERRORS_A_CALL)
            ):
                if not _is_still_valid(payload, is_valid):
                    id_ = f"{seed}.{number} {kind}"
                    yield {
                        **made,
                        "id": id_,
                        "kind": kind,
                        "payload": payload,
                        "answer": value,
                    }
            for kind, payload, reason in _refused(Random(seed), schema, value):
                if not _is_still_valid(payload, is_valid):
                    found = {
                        "id": f"{seed} {kind}",
                        "kind": kind,
                        "payload": payload,
                        "answer": REFUSE,
                    }
                    yield {**made, **found, "finish_reason": reason}


def _call(
    random: Random, schema: dict[str, Any], is_valid: Any
) -> dict[str, Any] | None:
    for _ in range(30):
        value: dict[str, Any] = make_value(random, schema, {})
        # A key that no schema declares tests nothing, and no word is of a format by
        # chance.
        value = {
            name: FORMATS.get(schema["properties"][name].get("format"), each)
            for name, each in value.items()
            if name in schema["properties"]
        }
        if value and is_valid(value):
            return value
    return None


def _is_still_valid(payload: Any, is_valid: Any) -> bool:
    if isinstance(payload, str):
        try:
            payload = json.loads(payload)
        except ValueError:
            return False
    return bool(is_valid(payload))


def _refused(
    random: Random, schema: dict[str, Any], value: dict[str, Any]
) -> Iterator[tuple[str, Any, str | None]]:
    required = [name for name in schema.get("required", ()) if name in value]
    if required:
        name = random.choice(required)
        if "default" not in schema["properties"][name]:
            yield (
                "missing",
                {key: each for key, each in value.items() if key != name},
                None,
            )
    numbers = [path for path in places(value) if type(_at(value, path)) in (int, float)]
    if numbers:
        path = random.choice(numbers)
        yield (
            "number with a word",
            replaced(value, path, f"{_at(value, path)} items"),
            None,
        )
    text = json.dumps(value)
    if len(text) > 8:
        yield "cut off", text[: random.randint(2, len(text) - 2)], "length"


def _at(value: Any, path: Any) -> Any:
    for part in path:
        value = value[part]
    return value
