"""A value that shows a break: the giving schema admits it, the taking one refuses it, and both engines say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any

from skillruntime.contract.comparison.difference import Finding
from skillruntime.contract.comparison.normal_form import BRANCHES
from skillruntime.contract.comparison.sampling import samples

__all__ = ["NO_WITNESS", "Judge", "find_witness"]

NO_WITNESS = object()
_CANDIDATES = 40
_TAKEN_OUT = {"required-parameter-added", "now-required", "no-longer-required", "field-removed"}
_AS_DECLARED = {"parameter-removed", "parameter-renamed", "field-added", "field-renamed"}


class Judge:
    """One schema in normal form, and what both engines say of a value by it."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self._fast: Any = None
        self._reference: Any = None

    def admits(self, value: Any) -> bool:
        """Return what the fast engine says."""
        if self._fast is None:
            import jsonschema_rs  # where its wheel is missing there is no containment to look for a witness of

            self._fast = jsonschema_rs.validator_for(self.schema, validate_formats=True, offline=True).is_valid
        return bool(self._fast(value))

    def surely_admits(self, value: Any) -> bool:
        """Return what the reference engine says."""
        if self._reference is None:
            self._reference = _reference(self.schema)
        return bool(self._reference(value))


@cache
def _reference_engine() -> Callable[[Any], Callable[[Any], bool]]:
    import jsonschema  # slow to import, and needed only where something breaks
    from referencing import Registry

    formats, closed_registry = jsonschema.FormatChecker(), Registry()
    engine: Any = jsonschema.Draft202012Validator
    return lambda schema: engine(schema, registry=closed_registry, format_checker=formats).is_valid


def _reference(schema: Any) -> Callable[[Any], bool]:
    return _reference_engine()(schema)


def find_witness(finding: Finding, giver: Judge, taker: Judge, *, is_output: bool) -> Any:
    """Return a value that *giver* admits and *taker* refuses because of *finding*, or ``NO_WITNESS``."""
    for candidate in islice(_candidates(finding, giver.schema, taker.schema, is_output), _CANDIDATES):
        try:
            if not giver.admits(candidate) or taker.admits(candidate):
                continue
            if giver.surely_admits(candidate) and not taker.surely_admits(candidate):
                return candidate
        except Exception:
            continue
    return NO_WITNESS


def _candidates(finding: Finding, giver: Any, taker: Any, is_output: bool) -> Iterator[Any]:
    given, taken = (finding.new, finding.old) if is_output else (finding.old, finding.new)
    path = finding.path
    if finding.rule in _TAKEN_OUT:
        path, name = path[:-1], finding.details["name"]
        for value in samples(given, 4):
            if isinstance(value, dict):
                rest = {key: child for key, child in value.items() if key != name}
                yield _placed(giver, path, rest)
    elif finding.rule in _AS_DECLARED:
        schema = finding.details.get("schema", given.get("properties", {}).get(finding.details["name"], True))
        yield from (_placed(giver, path, value) for value in samples(schema, 8))
    elif finding.rule == "optional-parameter-added":
        rest = given.get("additionalProperties", True)
        left = _difference(rest, finding.details["schema"])
        yield from (_placed(giver, path, value) for value in [*samples(left, 8), *samples(True)])
    elif "undeclared" in finding.details:
        yield from (_placed(giver, path, value) for value in samples(given.get("additionalProperties", True), 6))
    else:
        yield from (_placed(giver, path, value) for value in samples(_difference(given, taken), 8))
        yield from (_placed(giver, path, value) for value in samples(given, 8))
    yield from samples(_difference(giver, taker), 12)


def _difference(given: Any, taken: Any) -> Any:
    """Return a schema of what *given* admits and *taken* does not, as far as it can be written."""
    import jsonschema_rs

    try:
        left, right = (
            jsonschema_rs.canonicalize(node if isinstance(node, dict | bool) else True, validate_formats=True)
            for node in (given, taken)
        )
        return left.subtract(right).to_json_schema()
    except (ValueError, jsonschema_rs.ReferencingError, jsonschema_rs.ValidationError):
        return False


def _placed(schema: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a small value of *schema* in which *value* stands at *path*; whether it fits is for others to say."""
    if not path:
        return value
    token, rest = path[0], path[1:]
    node = schema if isinstance(schema, dict) else {}
    base = next(iter(samples(node, 1)), None)
    is_array = node.get("type") == "array" or (isinstance(base, list) and "properties" not in node)
    if is_array:
        items = list(base) if isinstance(base, list) else []
        prefix = node.get("prefixItems", [])
        index = int(token) if token.isdecimal() and int(token) < len(prefix) else len(prefix)
        inner = _placed(prefix[index] if index < len(prefix) else node.get("items", True), rest, value)
        for number in range(len(items), index):
            items.append(next(iter(samples(prefix[number], 1)), None))
        return [*items[:index], inner, *items[index + 1 :]]
    name = "another" if token == "*" else token
    members = dict(base) if isinstance(base, dict) else {}
    members[name] = _placed(_member(node, token), rest, value)
    return members


def _member(node: Any, token: str) -> Any:
    """Return the schema of a member, wherever *node* declares it."""
    if not isinstance(node, dict):
        return True
    if token in node.get("properties", {}):
        return node["properties"][token]
    for keyword in BRANCHES:
        for branch in node.get(keyword, ()):
            found = _member(branch, token)
            if found is not True:
                return found
    return node.get("additionalProperties", True)
