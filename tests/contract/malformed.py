"""Schemas for the tables of malformed calls, and what becomes of a call by one of
them.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from skillruntime.contract import Contract
from skillruntime.contract.schemas.plain_json import is_same as is_same
from skillruntime.errors import SkillInputError, TruncatedInputError


class Refusal(Enum):
    """What a table says instead of a value; a name that every process prints alike."""

    REFUSED = "refused"
    CUT_OFF = "cut off"


REFUSED, CUT_OFF = Refusal.REFUSED, Refusal.CUT_OFF
INTEGER, NUMBER, TEXT, BOOLEAN = (
    {"type": name} for name in ("integer", "number", "string", "boolean")
)
OBJECT: dict[str, Any] = {"type": "object"}
DATE = {"type": "string", "format": "date"}
NULL = {"type": "null"}
COLOUR = {"enum": ["red", "dark_green", "light blue"]}


def array(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def closed(required: str = "", **properties: Any) -> dict[str, Any]:
    names = required.split()
    return {
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": False,
    }


def either(*branches: Any) -> dict[str, Any]:
    return {"anyOf": list(branches)}


def outcome(schema: dict[str, Any], raw: Any, **options: Any) -> Any:
    contract = Contract.from_dict({"input": schema})
    try:
        return contract.accept(raw, fill_defaults=False, **options).arguments
    except TruncatedInputError:
        return CUT_OFF
    except SkillInputError as error:
        assert all(len(each.message) < 300 for each in error.to_errors())
        return REFUSED


def assert_outcome(
    schema: dict[str, Any], raw: Any, expected: Any, **options: Any
) -> None:
    result = outcome(schema, raw, **options)
    if expected is REFUSED or expected is CUT_OFF:
        assert result is expected
    else:
        assert is_same(result, expected), result
