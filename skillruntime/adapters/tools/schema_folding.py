"""A schema without alternatives at its root, for providers that reject them there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["fold_root"]

# Keywords that OpenAI and Anthropic reject at the root of a tool's parameters.
_ALTERNATIVES = ("oneOf", "anyOf", "allOf")
_CONDITIONS = (
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "enum",
    "const",
)
_REJECTED = (*_ALTERNATIVES, *_CONDITIONS)
_DEPTH = 8  # alternatives may refer to themselves

Resolve = Callable[[str], Mapping[str, Any] | None]
"""Returns the schema that a local reference points to."""


def fold_root(
    schema: Mapping[str, Any], resolve: Resolve = lambda reference: None
) -> dict[str, Any]:
    """Return *schema* as one plain object: the properties of all alternatives, required
    what all of them require.

    It is only shown to a model; the contract keeps the original schema and enforces it.

    >>> url = {"properties": {"url": {"type": "string"}}, "required": ["url"]}
    >>> path = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
    >>> folded = fold_root({"oneOf": [url, path]})
    >>> folded["properties"]
    {'url': {'type': 'string'}, 'path': {'type': 'string'}}
    >>> folded["description"]
    'Give url, or path.'
    """
    if not any(key in schema for key in _REJECTED):
        return dict(schema)
    root = _fold(schema, resolve, 0)
    folded = {
        key: value
        for key, value in schema.items()
        if key not in (*_REJECTED, "required")
    }
    folded["properties"] = root.properties
    if root.required:
        folded["required"] = root.required
    if root.sentences:
        folded["description"] = " ".join(
            filter(None, [schema.get("description"), *root.sentences])
        )
    return folded


@dataclass(slots=True)
class _Object:
    """What one object schema says; *sentences* are for what it cannot express."""

    properties: dict[str, Any]
    required: list[str]
    sentences: list[str]

    def add(self, other: _Object) -> None:
        """Add the properties of *other*; one with two schemas accepts either."""
        for name, part in other.properties.items():
            known = self.properties.get(name, part)
            if known != part:
                part = _either(known, part)
            self.properties[name] = part

    def require(self, names: list[str]) -> None:
        """Require *names* too."""
        self.required += [name for name in names if name not in self.required]


def _fold(schema: Mapping[str, Any], resolve: Resolve, depth: int) -> _Object:
    found = _Object(
        dict(schema.get("properties") or {}), list(schema.get("required") or ()), []
    )
    if depth > _DEPTH:
        return _Object(found.properties, [], [])
    for part in schema.get("allOf") or ():
        branch = _branch(part, resolve)
        if branch is not None:
            inner = _fold(branch, resolve, depth + 1)
            found.add(inner)
            found.require(inner.required)
            found.sentences += inner.sentences
    for keyword in ("oneOf", "anyOf"):
        branches = [_branch(part, resolve) for part in schema.get(keyword) or ()]
        folded = [
            _fold(branch, resolve, depth + 1)
            for branch in branches
            if branch is not None
        ]
        _add_alternatives(found, folded, len(branches))
    return found


def _add_alternatives(found: _Object, folded: list[_Object], number: int) -> None:
    """Add alternatives, *number* of them with those that are not objects (`true`) and
    require nothing.
    """
    if not folded:
        return
    own = dict(found.properties)
    for inner in folded:
        found.add(inner)
    found.properties |= own  # the root's own properties hold in every alternative
    common = list(folded[0].required)
    for inner in folded:
        common = [name for name in common if name in inner.required]
    if len(folded) == number:
        found.require(common)
    # One flat object cannot say "exactly one of these": the description says it to the
    # model instead.
    choices = []
    for inner in folded:
        choices.append([name for name in inner.required if name not in common])
    if any(choices):
        texts = [" with ".join(names) or "neither" for names in choices]
        found.sentences.append(f"Give {', or '.join(texts)}.")


def _branch(part: Any, resolve: Resolve) -> Mapping[str, Any] | None:
    for _ in range(_DEPTH):
        if not isinstance(part, Mapping):
            return None
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return part
        part = resolve(reference)
    return None


def _either(one: Any, other: Any) -> dict[str, Any]:
    """Return the schema of a value that fits *one* or *other*."""
    choices = [one]
    if isinstance(one, Mapping) and set(one) == {"anyOf"}:
        choices = one["anyOf"]
    if other not in choices:
        choices = [*choices, other]
    return {"anyOf": choices}
