"""Find a value that proves a break: the giving schema admits it, and the taking schema
refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from skillruntime.compatibility.containment import Containment, for_item
from skillruntime.compatibility.finding import Finding
from skillruntime.compatibility.normal_form import BRANCHES
from skillruntime.compatibility.sampling import samples
from skillruntime.compatibility.schema_size import Budget, measure

__all__ = ["NO_COUNTEREXAMPLE", "Sides"]

NO_COUNTEREXAMPLE = object()
_CANDIDATES = 40
_OF_THE_WHOLE = 12
_STEPS = 2 * 10**8  # of about 10 ns, for all counterexamples by one reading
_OF_A_CANDIDATE = 5000
_OF_A_VALUE = 300
_TAKEN_OUT = {
    "required-parameter-added",
    "now-required",
    "no-longer-required",
    "field-removed",
}
_AS_DECLARED = {
    "parameter-removed",
    "parameter-renamed",
    "field-added",
    "field-renamed",
}


class _Side:
    """One schema, as written or in normal form. It validates values, and suggests
    values that it may admit.
    """

    def __init__(self, schema: Any, budget: Budget) -> None:
        self.schema = schema
        self._budget = budget
        self._samples: dict[tuple[int, int], tuple[Any, list[Any]]] = {}

    def admits(self, value: Any) -> bool:
        """Return whether the engine says that *value* is valid.

        Raises:
            _TooCostlyError: the budget does not cover the question.
        """
        steps = _OF_A_CANDIDATE + 10 * self._parts + _OF_A_VALUE * _size(value)
        if not self._budget.take(steps):
            raise _TooCostlyError
        return bool(self._is_valid(value))

    def samples(self, node: Any, limit: int) -> list[Any]:
        """Return the `samples` of *node*, a part of this schema. The list is cached, so
        callers must not change it.
        """
        key = (id(node), limit)
        if key not in self._samples:
            # Keeping the node alive keeps its id unique.
            self._samples[key] = (node, samples(node, limit))
        return self._samples[key][1]

    @cached_property
    def _is_valid(self) -> Any:
        # Without its wheel containment is unknown, and this is never reached.
        import jsonschema_rs

        return jsonschema_rs.validator_for(
            self.schema, validate_formats=True, offline=True
        ).is_valid

    @cached_property
    def _parts(self) -> int:
        return measure(self.schema).parts


class _TooCostlyError(ValueError):
    """A value was not validated, because that would take too long."""


class Sides:
    """The schemas of the giving and of the taking side, by one reading, and values that
    show where they disagree.
    """

    def __init__(
        self,
        giver: Any,
        taker: Any,
        containment: Containment,
        *,
        is_output: bool,
        written: tuple[Any, Any] = (None, None),
        is_literal: bool = True,
    ) -> None:
        """*written* are the two schemas as they are written, or None; what is shown
        must break them too.

        Unless the reading *is_literal*, the taker as written may admit what the taker
        by this reading refuses.
        """
        self._budget = Budget(_STEPS)
        self._written = [
            None if schema is None else _Side(schema, self._budget)
            for schema in written
        ]
        self._is_literal = is_literal
        self.giver: _Side = _Side(giver, self._budget)
        self.taker: _Side = _Side(taker, self._budget)
        self._containment = containment
        self.is_output = is_output
        self._of_the_whole: Any = None

    def shows(self, value: Any) -> bool:
        """Return whether the giver admits *value*, and the taker does not."""
        # A value is a guess; an engine that fails on it (a huge number, say) has only
        # ruled out that guess.
        try:
            return self._shows(value)
        except Exception:
            return False

    def _shows(self, value: Any) -> bool:
        if not self.giver.admits(value) or self.taker.admits(value):
            return False
        # A normal form that says something else than its schema must not lead to a
        # false claim.
        giver, taker = self._written
        if giver is not None and not giver.admits(value):
            return False
        if taker is not None and self._is_literal:
            return not taker.admits(value)
        return True

    def counterexample_of(self, finding: Finding) -> Any:
        """Return a value that breaks at *finding*, else one that breaks the complete
        schema, else ``NO_COUNTEREXAMPLE``.
        """
        counterexample = self._first(self._candidates(finding), _CANDIDATES)
        if counterexample is not NO_COUNTEREXAMPLE:
            return counterexample
        # Every finding without a counterexample of its own uses the one of the complete
        # schema; it is computed once.
        if self._of_the_whole is None:
            difference = self._containment.difference(
                self.giver.schema, self.taker.schema
            )
            candidates = iter(samples(difference, _OF_THE_WHOLE))
            self._of_the_whole = self._first(candidates, _OF_THE_WHOLE)
        return self._of_the_whole

    def _first(self, candidates: Iterator[Any], most: int) -> Any:
        for candidate in islice(candidates, most):
            if self.shows(candidate):
                return candidate
            if self._budget.is_exceeded:  # it will be exceeded again
                break
        return NO_COUNTEREXAMPLE

    def _candidates(self, finding: Finding) -> Iterator[Any]:
        """Yield values that may break at *finding*, the likeliest first."""
        given = finding.new if self.is_output else finding.old
        if finding.rule in _TAKEN_OUT:
            # The absence of the member breaks, so remove it from an admitted value.
            name = finding.details["name"]
            for value in self.giver.samples(given, 4):
                if isinstance(value, dict):
                    rest = {key: child for key, child in value.items() if key != name}
                    yield self._placed(finding.path[:-1], rest)
        else:
            for value in self._values(finding, given):
                yield self._placed(finding.path, value)

    def _values(self, finding: Finding, given: Any) -> Iterator[Any]:
        """Yield values for the place of *finding*, where *given* is the giver's schema
        of it.
        """
        details, difference = finding.details, self._containment.difference
        if finding.rule in _AS_DECLARED:
            schema = details.get("schema")
            if schema is None:
                schema = given.get("properties", {}).get(details["name"], True)
            yield from samples(schema, 8)
        elif finding.rule == "optional-parameter-added":
            # A value that old callers may have sent under the new name, and that the
            # new schema refuses.
            rest = given.get("additionalProperties", True)
            yield from samples(difference(rest, details["schema"]), 8)
            yield from samples(True)
        elif "undeclared" in details:
            yield from samples(given.get("additionalProperties", True), 6)
        else:
            taken = finding.old if self.is_output else finding.new
            yield from samples(difference(given, taken), 8)
            yield from samples(given, 8)

    def _placed(self, path: tuple[str, ...], value: Any) -> Any:
        return _with_value(self.giver, self.giver.schema, path, value)


def _size(value: Any) -> int:
    """Return how many values there are in *value*, and a hundredth of its
    characters.
    """
    pending, size = [value], 0
    while pending:
        part = pending.pop()
        size += 1
        if isinstance(part, str):
            size += len(part) // 100
        elif isinstance(part, list):
            pending += part
        elif isinstance(part, dict):
            pending += part.values()
    return size


def _with_value(side: _Side, schema: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a small value of *schema*, a part of that of *side*, with *value* at
    *path*; it may not fit.
    """
    if not path:
        return value
    token, rest = path[0], path[1:]
    node = schema if isinstance(schema, dict) else {}
    base = next(iter(side.samples(node, 1)), None)
    is_list = isinstance(base, list) and "properties" not in node
    if is_list or node.get("type") == "array":
        items = list(base) if isinstance(base, list) else []
        prefix = node.get("prefixItems", [])
        index = len(prefix)
        if token.isdecimal():
            index = min(int(token), index)
        item = _with_value(side, for_item(node, index), rest, value)
        for number in range(len(items), index):
            items.append(next(iter(samples(prefix[number], 1)), None))
        return [*items[:index], item, *items[index + 1 :]]
    # `*` is any undeclared member; this name is not likely to be declared.
    name = "another" if token == "*" else token
    members = dict(base) if isinstance(base, dict) else {}
    members[name] = _with_value(side, _member(node, token), rest, value)
    return members


def _member(node: Any, token: str) -> Any:
    """Return the schema of a member, wherever *node* declares it."""
    if not isinstance(node, dict):
        return True
    if token in node.get("properties", {}):
        return node["properties"][token]
    for keyword in BRANCHES:
        for branch in node.get(keyword, ()):
            schema = _member(branch, token)
            if schema is not True:
                return schema
    return node.get("additionalProperties", True)
