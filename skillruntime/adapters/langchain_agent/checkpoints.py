"""Store `SkillResponse` in LangGraph's checkpoints so that a message's artifact is read
back as the same value.

LangGraph writes a message with pydantic's ``model_dump``, which turns a dataclass
inside into a dictionary, and reads back only types that it knows to be safe. Both learn
about our three types here, once.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from pydantic_core import SchemaSerializer, core_schema

from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, SkillError

__all__ = ["CHECKPOINT_TYPES", "register_checkpoint_types", "storable"]

CHECKPOINT_TYPES: Final = (SkillResponse, SkillError, ErrorCode)
"""For a checkpointer's own list:
``JsonPlusSerializer(allowed_msgpack_modules=CHECKPOINT_TYPES)``.
"""


def register_checkpoint_types() -> None:
    """Let LangGraph's serializer, if it is loaded, read our types back without a
    warning, also in strict mode.
    """
    module: Any = sys.modules.get("langgraph.checkpoint.serde._msgpack")
    known = getattr(module, "SAFE_MSGPACK_TYPES", None)
    if isinstance(known, frozenset):
        names = {(kind.__module__, kind.__name__) for kind in CHECKPOINT_TYPES}
        if not names <= known:
            module.SAFE_MSGPACK_TYPES = known | names


def storable(value: Any, depth: int = 0) -> Any:
    """Return *value* in a form that a checkpoint can store; the same object if it
    already has this form.

    MessagePack's integers have at most 64 bits: a larger one becomes text, which a
    contract reads back as the number.

    Raises:
        ValueError: *value* is nested too deep, a text is not Unicode, or a number has
            thousands of digits.
    """
    if isinstance(value, str):
        # Half of a surrogate pair is a UnicodeEncodeError, which is a ValueError.
        value.encode()
    elif isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    elif isinstance(value, dict | list):
        # ormsgpack stops at a few hundred levels, and the message around the value
        # takes some of them.
        if depth > 100:
            raise ValueError("nested too deep")
        if isinstance(value, dict):
            parts = _storable_parts(list(value.values()), depth)
            storable("".join(map(str, value)))
            if parts is None:
                return value
            return dict(zip(value, parts, strict=True))
        parts = _storable_parts(value, depth)
        if parts is None:
            return value
        return parts
    return value


def _storable_parts(parts: list[Any], depth: int) -> list[Any] | None:
    """Return *parts* in a form that a checkpoint can store; ``None`` if all can be
    stored unchanged.
    """
    changed = [storable(part, depth + 1) for part in parts]
    if all(new is old for new, old in zip(changed, parts, strict=True)):
        return None
    return changed


def _keep_in_python_dumps() -> None:
    """Let ``model_dump()`` return a response as it is, and ``model_dump(mode="json")``
    its JSON object.
    """
    # A serializer for JSON only falls back to that of the inner schema; "to-string" for
    # JSON only returns the value itself in Python mode. Without the inner one pydantic
    # would ask the class for its serializer again, endlessly.
    as_it_is = core_schema.any_schema(
        serialization=core_schema.to_string_ser_schema(when_used="json")
    )
    to_json = core_schema.plain_serializer_function_ser_schema(
        SkillResponse.to_dict, when_used="json"
    )
    schema = core_schema.chain_schema([as_it_is], serialization=to_json)
    # The hook that pydantic reads.
    SkillResponse.__pydantic_serializer__ = SchemaSerializer(schema)  # type: ignore[attr-defined]


_keep_in_python_dumps()
