"""Decode strict JSON without losing anything: no number changes its value, and no key appears twice.

Python's own decoder keeps the last of two equal keys, reads NaN, and makes 0 of 1e-400; each is refused here.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from skillruntime.contract.coercion.scalars import is_same

__all__ = ["LITERAL_DECODER", "TOO_DEEP", "UnreadableError", "decode", "integer", "literal", "unique_members"]

TOO_DEEP = "it is nested too deep"


class UnreadableError(Exception):
    """The text cannot be parsed: why, what to do instead, and whether because it ends too early (*cut*).

    ``{}`` in *message* is replaced by *found*, quoted; ``unquoted`` is the message without it.
    """

    def __init__(self, message: str, found: str | None = None, *, cut: bool = False, action: str | None = None) -> None:
        super().__init__(message if found is None else message.replace("{}", _quote(found)))
        self.unquoted = message if found is None else message.replace("{}", "other text")
        self.cut, self.action = cut, action


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object.

    Raises:
        UnreadableError: a key appears twice, with different values.
    """
    members = dict(pairs)
    # RFC 8259, section 4: names SHOULD be unique; parsers differ in which one they take.
    if len(members) != len(pairs):
        for key, value in pairs:
            if not is_same(members[key], value):
                raise UnreadableError(f"the key {_quote(key)} appears twice, with different values")
    return members


def integer(text: str) -> int | Decimal:
    """Return the integer *text* writes; of ``-0`` a decimal, which keeps the sign for a string that wants it."""
    return Decimal(text) if text == "-0" else int(text)


def literal(text: str) -> float | Decimal:
    """Return the number *text* writes; one that a float would not keep as it was written is a decimal."""
    number = float(text)
    return number if repr(number) == text and not number.is_integer() else _decimal(text)


def _decimal(text: str) -> Decimal:
    """Return the number *text* writes, which a float can hold.

    Raises:
        UnreadableError: it is beyond 1.8e308, or its exponent is longer than even a decimal can have.
    """
    try:
        if math.isfinite(float(text)):
            return Decimal(text)
    except InvalidOperation:
        pass
    raise UnreadableError("{} cannot be held by a float", text)


def _quote(text: str) -> str:
    """Return *text* in quotes and on one line, shortened to 40 characters."""
    text = " ".join(text.split())
    return json.dumps(text if len(text) <= 40 else text[:39] + "…", ensure_ascii=False)


def _exact(text: str) -> float:
    """Return the number *text* writes, if a float does not lose it: neither to zero, nor to an integer."""
    number = float(text)
    # 2**53 is where floats stop holding every integer (IEEE 754, 53 bits of fraction).
    if number == 0 or abs(number) >= 2**53:
        written = _decimal(text)
        if (number == 0) != (written == 0) or (number and written != written.to_integral_value()):
            raise UnreadableError("{} cannot be held by a float", text)
    return number


def _literal(text: str) -> float | Decimal:
    _exact(text)
    return literal(text)


def _no_constant(name: str) -> NoReturn:
    raise UnreadableError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=unique_members, parse_constant=_no_constant, parse_float=_exact)
# With it, a number that a float would not keep as it was written is a decimal.
LITERAL_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_members, parse_constant=_no_constant, parse_float=_literal, parse_int=integer
)


def decode(text: str, *, literals: bool) -> Any:
    """Return the value that *text* writes in strict JSON; with *literals*, numbers remember how they were written.

    Raises:
        ValueError: it is not JSON.
        UnreadableError: it is, and says something twice or what Python cannot hold.
    """
    return (LITERAL_DECODER if literals else _DECODER).decode(text)
