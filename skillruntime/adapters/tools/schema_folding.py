"""Rewrite a schema without a reference or alternatives at its root, for providers that
reject them there.
"""

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
    """Return *schema* as one plain object that has the properties of all alternatives,
    and requires only those that every alternative requires. A reference at the root is
    followed.

    It is only shown to a model; the contract keeps the original schema and enforces it.

    >>> url = {"properties": {"url": {"type": "string"}}, "required": ["url"]}
    >>> path = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
    >>> folded = fold_root({"oneOf": [url, path]})
    >>> folded["properties"]
    {'url': {'type': 'string'}, 'path': {'type': 'string'}}
    >>> folded["description"]
    'Give url, or path.'
    """
    schema = _followed(schema, resolve)
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


def _followed(schema: Mapping[str, Any], resolve: Resolve) -> Mapping[str, Any]:
    for _ in range(_DEPTH):  # references may form a loop, which accepts anything
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            break
        target = resolve(reference)
        if not isinstance(target, Mapping):
            break
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **beside}
    return schema


@dataclass(slots=True)
class _Object:
    """The content of one object schema; *sentences* state what its keywords cannot
    express.
    """

    properties: dict[str, Any]
    required: list[str]
    sentences: list[str]

    def add(self, other: _Object) -> None:
        """Add the properties of *other*; a property with two schemas accepts the values
        of either schema.
        """
        for name, part in other.properties.items():
            known = self.properties.get(name, part)
            if known != part:
                part = _either(known, part)
            self.properties[name] = part

    def require(self, names: list[str]) -> None:
        """Add *names* to the required properties."""
        self.required += [name for name in names if name not in self.required]


def _fold(schema: Mapping[str, Any], resolve: Resolve, depth: int) -> _Object:
    properties = dict(schema.get("properties") or {})
    # Too deep: require nothing, because the branches below are unknown.
    if depth > _DEPTH:
        return _Object(properties, [], [])
    folded = _Object(properties, list(schema.get("required") or ()), [])
    for part in schema.get("allOf") or ():
        branch = _branch(part, resolve)
        if branch is not None:
            inner = _fold(branch, resolve, depth + 1)
            folded.add(inner)
            folded.require(inner.required)
            folded.sentences += inner.sentences
    for keyword in ("oneOf", "anyOf"):
        branches = [_branch(part, resolve) for part in schema.get(keyword) or ()]
        alternatives = [
            _fold(branch, resolve, depth + 1)
            for branch in branches
            if branch is not None
        ]
        _add_alternatives(folded, alternatives, len(branches))
    return folded


def _add_alternatives(
    folded: _Object, alternatives: list[_Object], branch_count: int
) -> None:
    """Add *alternatives*, the branches that are objects, to *folded*.

    If there are fewer of them than *branch_count*, another branch (`true`, say)
    requires nothing, and so nothing is required.
    """
    if not alternatives:
        return
    own = dict(folded.properties)
    for alternative in alternatives:
        folded.add(alternative)
    folded.properties |= own  # the root's own properties hold in every alternative
    common = list(alternatives[0].required)
    for alternative in alternatives:
        common = [name for name in common if name in alternative.required]
    if len(alternatives) == branch_count:
        folded.require(common)
    # One flat object cannot say "exactly one of these", so the description says it to
    # the model.
    choices = []
    for alternative in alternatives:
        choices.append([name for name in alternative.required if name not in common])
    if any(choices):
        texts = [" with ".join(names) or "neither" for names in choices]
        folded.sentences.append(f"Give {', or '.join(texts)}.")


def _branch(part: Any, resolve: Resolve) -> Mapping[str, Any] | None:
    """Return the object schema that *part* is or refers to; ``None`` if it is not
    one.
    """
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
