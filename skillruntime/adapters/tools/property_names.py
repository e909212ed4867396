"""Replace the property names that a provider refuses in a tool's definition, and
restore the tool's own names in the arguments of a call.

Law: restored arguments have the names that the contract declares. A key is renamed only
where the schema declares the property that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal
from urllib.parse import unquote

from skillruntime.adapters.tools.tool_schema import to_tool_schema
from skillruntime.contract.contract import Contract
from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA, Location
from skillruntime.contract.schemas.references import References, children, properties_of
from skillruntime.contract.schemas.subschemas import (
    item_locations,
    property_locations,
    rest_locations,
)
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["Provider", "with_accepted_names", "with_declared_names"]

Provider = Literal["openai", "anthropic", "gemini"]

# Anthropic: the error "Property keys should match pattern", which names this one; it
# refuses the whole request. OpenAI publishes none; a name that Anthropic takes is in
# the alphabet of OpenAI's names of functions and schemas, but for the dot. Gemini:
# FunctionDeclaration, `parameters`, "Parameter names must start with a letter or an
# underscore and must only contain chars a-z, A-Z, 0-9, or underscores with a maximum
# length of 64".
_ACCEPTED: Mapping[str, re.Pattern[str]] = {
    "openai": lazy_pattern(r"[a-zA-Z0-9_.-]{1,64}"),
    "anthropic": lazy_pattern(r"[a-zA-Z0-9_.-]{1,64}"),
    "gemini": lazy_pattern(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}"),
}
# In the alphabet of all providers, so that a property has the same replacement for each
# of them.
_STRICTEST = _ACCEPTED["gemini"]
_LONGEST = 64
# Keywords whose values name properties, as strings.
_DEPENDENCIES = ("dependentRequired", "dependentSchemas", "dependencies")


def with_accepted_names(schema: dict[str, Any], provider: Provider) -> dict[str, Any]:
    """Return *schema*, the parameters of a tool, with another name for each property
    whose name *provider* refuses, at any depth.

    A refused character becomes ``_``, and a name that is already taken gets a number.

    >>> schema = {"properties": {"$filter": {}, "#filter": {}}, "required": ["$filter"]}
    >>> with_accepted_names(schema, "anthropic")
    {'properties': {'_filter': {}, '_filter_2': {}}, 'required': ['_filter']}
    """
    names = _other_names(schema, [provider])
    if not names:
        return schema
    renamed: dict[str, Any] = _renamed(schema, names)
    return renamed


def with_declared_names(
    contract: Contract, arguments: Any, providers: Collection[Provider]
) -> Any:
    """Return *arguments* with the names that *contract* declares, in place of those
    that `with_accepted_names` wrote for one of *providers*.

    Without anything to rename, the same object is returned.
    """
    references = contract.input.references
    # Cached for each contract: writing its schema takes longer than checking a call.
    own = references.once(
        ("names by other name", *sorted(providers)),
        lambda: _names_by_other_name(contract, providers),
    )
    if not own:
        return arguments
    return _restored(arguments, own, references, [WHOLE_SCHEMA])


def _names_by_other_name(
    contract: Contract, providers: Collection[Provider]
) -> dict[str, str]:
    others = _other_names(to_tool_schema(contract), providers)
    return {other: name for name, other in others.items()}


def _other_names(schema: Any, providers: Collection[Provider]) -> dict[str, str]:
    """Return the replacement for each property name of *schema* that one of *providers*
    refuses.
    """
    declared = dict.fromkeys(_declared_names(schema))
    taken = set(declared)
    others: dict[str, str] = {}
    for name in declared:
        if _STRICTEST.fullmatch(name):
            continue
        other = _free_name(name, taken)
        taken.add(other)
        if not all(_ACCEPTED[provider].fullmatch(name) for provider in providers):
            others[name] = other
    return others


def _declared_names(schema: Any) -> Iterable[str]:
    pending = [schema]
    while pending:
        part = pending.pop()
        yield from properties_of(part)
        pending += reversed([child.schema for child in children(part)])


def _free_name(name: str, taken: Collection[str]) -> str:
    plain = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    if not re.match(r"[a-zA-Z_]", plain):
        plain = f"_{plain}"
    free = plain[:_LONGEST]
    number = 2
    while free in taken:
        ending = f"_{number}"
        free = plain[: _LONGEST - len(ending)] + ending
        number += 1
    return free


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    """Return *schema* with the property names replaced by *names*."""
    if not isinstance(schema, dict):
        return schema
    renamed = dict(schema)
    for child in children(schema):
        keyword, *rest = child.location
        changed = _renamed(child.schema, names)
        if not rest:
            renamed[keyword] = changed
            continue
        [key] = rest
        if renamed[keyword] is schema[keyword]:
            renamed[keyword] = schema[keyword].copy()
        renamed[keyword][key] = changed
    reference = schema.get("$ref")
    if isinstance(reference, str):
        renamed["$ref"] = _followable(reference, names)
    for keyword in ("properties", *_DEPENDENCIES):
        if isinstance(renamed.get(keyword), dict):
            renamed[keyword] = {
                names.get(name, name): _listed(part, names)
                for name, part in renamed[keyword].items()
            }
    if "required" in renamed:
        renamed["required"] = _listed(renamed["required"], names)
    return renamed


def _followable(reference: str, names: Mapping[str, str]) -> str:
    """Return *reference* adapted to the renamed properties that it may lead through."""
    tokens = reference.split("/")
    for index in range(1, len(tokens)):
        if tokens[index - 1] == "properties":
            name = unquote(tokens[index]).replace("~1", "/").replace("~0", "~")
            tokens[index] = names.get(name, tokens[index])
    return "/".join(tokens)


def _listed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a list of property names with each name replaced by *names*; any other
    value unchanged.
    """
    if not isinstance(value, list):
        return value
    return [names.get(name, name) if isinstance(name, str) else name for name in value]


def _restored(
    value: Any, own: Mapping[str, str], references: References, places: list[Location]
) -> Any:
    """Return *value*, which the subschemas at *places* describe, with its keys renamed
    by *own*.
    """
    if isinstance(value, list):
        items = item_locations(references, places)
        return _if_changed(
            value, [_restored(item, own, references, items) for item in value]
        )
    if not isinstance(value, dict):
        return value
    declared = property_locations(references, places)
    restored: dict[str, Any] = {}
    for key, member in value.items():
        name = own.get(key, key)
        # Another key of the object, or a key of a map, is data.
        if name not in declared or name in value:
            name = key
        below = declared.get(name)
        if below is None:
            below = rest_locations(references, places)
        restored[name] = _restored(member, own, references, below)
    return _if_changed(value, restored)


def _if_changed(value: Any, restored: Any) -> Any:
    """Return *restored*, or *value* if nothing in it was renamed."""
    if isinstance(value, dict):
        keys_are_same = value.keys() == restored.keys()
        members = zip(value.values(), restored.values(), strict=True)
    else:
        keys_are_same = True
        members = zip(value, restored, strict=True)
    if keys_are_same and all(old is new for old, new in members):
        return value
    return restored
