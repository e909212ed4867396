"""A value that shows a break: the giving schema admits it, and the taking one refuses
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from skillruntime.compatibility.containment import Containment
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


class _Judge:
    """Which values one schema admits, as it is written or in normal form, and values
    that it may admit.
    """

    def __init__(self, schema: Any, budget: Budget) -> None:
        self.schema = schema
        self._budget = budget
        self._samples: dict[tuple[int, int], tuple[Any, list[Any]]] = {}

    def admits(self, value: Any) -> bool:
        """Return what the engine says; False, and the budget is exceeded, where asking
        it would take too long.
        """
        if not self._budget.take(
            _OF_A_CANDIDATE + 10 * self._parts + _OF_A_VALUE * _size(value)
        ):
            raise _TooCostlyError
        return bool(self._is_valid(value))

    def samples(self, node: Any, limit: int) -> list[Any]:
        """Return `samples` of *node*, a part of this schema, looked for once; not to be
        changed.
        """
        key = (id(node), limit)
        if key not in self._samples:
            self._samples[key] = (
                node,
                samples(node, limit),
            )  # keeping the node alive keeps its id unique
        return self._samples[key][1]

    @cached_property
    def _is_valid(self) -> Any:
        # without its wheel containment is unknown, and this is never reached
        import jsonschema_rs

        return jsonschema_rs.validator_for(
            self.schema, validate_formats=True, offline=True
        ).is_valid

    @cached_property
    def _parts(self) -> int:
        return measure(self.schema).parts


class _TooCostlyError(ValueError):
    """A value is not judged, because that would take too long."""


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
        """Of *written*, the two schemas as they are written, each that is there has a
        say on what is shown.

        Unless the reading *is_literal*, the taker as written may admit what the taker
        by this reading refuses.
        """
        self._budget = Budget(_STEPS)
        self._written = [
            None if each is None else _Judge(each, self._budget) for each in written
        ]
        self._is_literal = is_literal
        self.giver, self.taker = (
            _Judge(giver, self._budget),
            _Judge(taker, self._budget),
        )
        self._containment = containment
        self.is_output = is_output
        self._of_the_whole: Any = None

    def shows(self, value: Any) -> bool:
        """Whether the giver admits *value*, and the taker does not."""
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
        return taker is None or not self._is_literal or not taker.admits(value)

    def counterexample_of(self, finding: Finding) -> Any:
        """Return a value that shows what *finding* breaks, or else what the whole
        breaks, or ``NO_COUNTEREXAMPLE``.
        """
        counterexample = self._first(self._candidates(finding), _CANDIDATES)
        if counterexample is NO_COUNTEREXAMPLE:
            # Computed once, because every unproven finding asks for it.
            if self._of_the_whole is None:  # the same for every finding
                rest = samples(
                    self._containment.difference(self.giver.schema, self.taker.schema),
                    _OF_THE_WHOLE,
                )
                self._of_the_whole = self._first(iter(rest), _OF_THE_WHOLE)
            counterexample = self._of_the_whole
        return counterexample

    def _first(self, candidates: Iterator[Any], most: int) -> Any:
        for candidate in islice(candidates, most):
            if self.shows(candidate):
                return candidate
            if self._budget.is_exceeded:  # what exceeded it once will again
                break
        return NO_COUNTEREXAMPLE

    def _candidates(self, finding: Finding) -> Iterator[Any]:
        giver, difference = self.giver, self._containment.difference
        given, taken = (
            (finding.new, finding.old) if self.is_output else (finding.old, finding.new)
        )
        path = finding.path
        if finding.rule in _TAKEN_OUT:
            # The member's absence is what breaks, so it is taken out of an admitted
            # value.
            path, name = path[:-1], finding.details["name"]
            for value in giver.samples(given, 4):
                if isinstance(value, dict):
                    rest = {key: child for key, child in value.items() if key != name}
                    yield _placed(giver, giver.schema, path, rest)
        elif finding.rule in _AS_DECLARED:
            schema = finding.details.get(
                "schema", given.get("properties", {}).get(finding.details["name"], True)
            )
            yield from (
                _placed(giver, giver.schema, path, value)
                for value in samples(schema, 8)
            )
        elif finding.rule == "optional-parameter-added":
            rest = given.get("additionalProperties", True)
            # What old callers may have sent under the new name, and the new schema
            # refuses.
            left = difference(rest, finding.details["schema"])
            yield from (
                _placed(giver, giver.schema, path, value)
                for value in [*samples(left, 8), *samples(True)]
            )
        elif "undeclared" in finding.details:
            rest = given.get("additionalProperties", True)
            yield from (
                _placed(giver, giver.schema, path, value) for value in samples(rest, 6)
            )
        else:
            yield from (
                _placed(giver, giver.schema, path, value)
                for value in samples(difference(given, taken), 8)
            )
            yield from (
                _placed(giver, giver.schema, path, value) for value in samples(given, 8)
            )


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


def _placed(judge: _Judge, schema: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a small value of *schema* with *value* at *path*; it may not fit."""
    if not path:
        return value
    token, rest = path[0], path[1:]
    node = schema if isinstance(schema, dict) else {}
    base = next(iter(judge.samples(node, 1)), None)
    is_array = node.get("type") == "array" or (
        isinstance(base, list) and "properties" not in node
    )
    if is_array:
        items = list(base) if isinstance(base, list) else []
        prefix = node.get("prefixItems", [])
        index = (
            int(token)
            if token.isdecimal() and int(token) < len(prefix)
            else len(prefix)
        )
        inner = _placed(
            judge,
            prefix[index] if index < len(prefix) else node.get("items", True),
            rest,
            value,
        )
        for number in range(len(items), index):
            items.append(next(iter(samples(prefix[number], 1)), None))
        return [*items[:index], inner, *items[index + 1 :]]
    # `*` is any undeclared member; this name is not likely to be declared.
    name = "another" if token == "*" else token
    members = dict(base) if isinstance(base, dict) else {}
    members[name] = _placed(judge, _member(node, token), rest, value)
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
