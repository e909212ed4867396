"""A schema without alternatives at its root, for providers that reject them there.

The folded schema is only shown to the model; the contract keeps the original schema and enforces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

# Keywords that OpenAI and Anthropic reject at the root of a tool's parameters, in addition to oneOf, anyOf and allOf.
_DROPPED = ("not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies", "enum", "const")
_MAX_DEPTH = 8


def fold_root(
    schema: Mapping[str, Any], resolve: Callable[[str], Mapping[str, Any] | None] = lambda reference: None
) -> dict[str, Any]:
    """Return *schema* as one plain object: the properties of all alternatives, required what all of them require.

    *resolve* returns the schema that a local reference points to.

    >>> fold_root({"oneOf": [{"properties": {"url": {"type": "string"}}, "required": ["url"]},
    ...     {"properties": {"path": {"type": "string"}}, "required": ["path"]}]})
    {'properties': {'url': {'type': 'string'}, 'path': {'type': 'string'}}, 'description': 'Give url, or path.'}
    """
    if not any(key in schema for key in ("oneOf", "anyOf", "allOf", *_DROPPED)):
        return dict(schema)
    properties, required, sayings = _fold(schema, resolve, 0)
    folded = {key: value for key, value in schema.items() if key not in ("oneOf", "anyOf", "allOf", *_DROPPED)}
    folded["properties"] = properties
    folded.pop("required", None)
    if required:
        folded["required"] = required
    if sayings:
        folded["description"] = " ".join(filter(None, [schema.get("description"), *sayings]))
    return folded


def _fold(
    schema: Mapping[str, Any], resolve: Callable[[str], Mapping[str, Any] | None], depth: int
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the properties, the required names, and sentences for what one object cannot express."""
    properties = dict(schema.get("properties") or {})
    required = list(schema.get("required") or ())
    sayings: list[str] = []
    if depth > _MAX_DEPTH:  # alternatives may refer to themselves
        return properties, [], sayings
    for part in schema.get("allOf") or ():
        if (branch := _branch(part, resolve)) is not None:
            inner, needed, said = _fold(branch, resolve, depth + 1)
            _add(properties, inner.items())
            required += [name for name in needed if name not in required]
            sayings += said
    for keyword in ("oneOf", "anyOf"):
        branches = [_branch(part, resolve) for part in schema.get(keyword) or ()]
        folded = [_fold(branch, resolve, depth + 1) for branch in branches if branch is not None]
        if not folded:
            continue
        before = set(properties)
        for inner, _, _ in folded:
            _add(properties, ((name, part) for name, part in inner.items() if name not in before))
        common = [name for name in folded[0][1] if all(name in needed for _, needed, _ in folded)]
        choices = [[name for name in needed if name not in common] for _, needed, _ in folded]
        # A branch that is not an object (`true`, an unresolvable reference) requires nothing, so none is common.
        if len(folded) == len(branches):
            required += [name for name in common if name not in required]
        # One flat object cannot say "exactly one of these": the description says it to the model instead.
        if any(choices):
            sayings.append("Give " + ", or ".join(" with ".join(names) or "neither" for names in choices) + ".")
    return properties, required, sayings


def _branch(part: Any, resolve: Callable[[str], Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    for _ in range(_MAX_DEPTH):
        if not isinstance(part, Mapping):
            return None
        if not isinstance(reference := part.get("$ref"), str):
            return part
        part = resolve(reference)
    return None


def _add(properties: dict[str, Any], more: Iterable[tuple[str, Any]]) -> None:
    """Add *more* to *properties*; a name with two schemas accepts either."""
    for name, part in more:
        known = properties.get(name)
        if name not in properties or known == part:
            properties[name] = part
        # `const` in each branch is how discriminated unions name their kind: together they are an enum.
        elif isinstance(known, Mapping) and _constants(known) is not None and _constants(part) is not None:
            values = [*(_constants(known) or ()), *(_constants(part) or ())]
            kept = {key: value for key, value in known.items() if key not in ("const", "enum")}
            properties[name] = {**kept, "enum": [value for n, value in enumerate(values) if value not in values[:n]]}
        else:
            choices: list[Any] = known["anyOf"] if isinstance(known, Mapping) and set(known) == {"anyOf"} else [known]
            properties[name] = {"anyOf": [*choices, *([] if part in choices else [part])]}


def _constants(part: Any) -> list[Any] | None:
    if not isinstance(part, Mapping):
        return None
    return [part["const"]] if "const" in part else part.get("enum")
