"""The commonest errors, decided without a search: wrong numbers and booleans in an object of plain properties.

Where each property is judged alone, every key is declared and none may be a wrapper, a string for a number has one
reading at most, and a number that is out of its range has none. The coercer comes to the same, in five times the time.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from skillruntime.contract.coercion.conversions import read_as
from skillruntime.contract.coercion.keys import may_wrap
from skillruntime.contract.coercion.policy import Policy
from skillruntime.contract.coercion.repair import Repair, Repaired, plain
from skillruntime.contract.coercion.subschemas import EACH_ALONE
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.contract.references import References, properties_of
from skillruntime.contract.schema import Schema

__all__ = ["plain_scalars"]

_OF_NUMBERS = frozenset(
    {
        *("type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("title", "description", "default", "examples"),
    }
)


def plain_scalars(value: dict[str, Any], schema: Schema, policy: Policy) -> list[Repaired] | None:
    """Return what the arguments *value*, which do not fit, become: one result, or none; ``None`` if it takes a search.

    >>> count = Schema({"properties": {"n": {"type": "integer", "maximum": 10}}})
    >>> [plain_scalars(value, count, Policy()) for value in ({"n": 11}, {"n": [5]}, {"m": "5"})]
    [[], None, None]
    """
    properties = schema.references.once("plain scalars", lambda: _plain_properties(schema.references))
    if not value.keys() <= properties.keys():
        return None
    repaired: dict[str, Any] = {}
    repairs: list[Repair] = []
    is_possible = True
    for name, member in value.items():
        location, wanted = properties[name]
        if schema.fits(member, location):
            continue
        if not wanted or not isinstance(member, str | int | float | Decimal):
            return None
        found = list(read_as(wanted, member, more_words=policy.more_words))
        if found and schema.fits(found[0][1], location):
            [(rule, repaired[name])] = found
            repairs.append(Repair(format_pointer((name,)), rule, plain(member), repaired[name]))
        elif found or isinstance(member, str):
            return None  # "null" may be left out; of "11", where 10 is the most, the error names the limit
        else:
            is_possible = False
    result = {**value, **repaired}
    if is_possible and schema.is_valid(result):
        return [Repaired(result, tuple(repairs))]
    # A default for what is missing, and other repairs, change what the errors are about.
    is_changed = is_possible or repairs or not value.keys() >= set(schema.references.document.get("required", ()))
    return None if is_changed else []


def _plain_properties(references: References) -> dict[str, tuple[Path, str]]:
    """Return where each property is declared, and the number or boolean it is; none of an object that is not plain."""
    document = references.document
    if not isinstance(document, dict) or not document.keys() <= EACH_ALONE:
        return {}
    found: dict[str, tuple[Path, str]] = {}
    for name, declared in properties_of(document).items():
        if may_wrap(name) or name == "value":  # its value may be what is wrapped, or an echo of the schema
            continue
        kind = declared.get("type") if isinstance(declared, dict) and declared.keys() <= _OF_NUMBERS else None
        found[name] = ("properties", name), kind if kind in ("integer", "number", "boolean") else ""
    return found
