"""What both engines say of a value by one schema: the fast one first, and the reference one where a claim is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from skillruntime.compatibility.sampling import samples
from skillruntime.compatibility.schema_size import Budget, measure
from skillruntime.contract.engines import DIALECTS
from skillruntime.contract.harmless_pattern import is_harmless, longest_text, patterns_of

__all__ = ["Judge", "is_by_members"]

# Steps of about 10 ns.
_OF_A_CANDIDATE = 5000
_OF_A_VALUE = 300
_BY_REFERENCE_ENGINE = 1500  # for each part of a schema and each part of a value
_LONGEST_TEXT = 1_000_000

_BY_MEMBERS = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "minProperties", "maxProperties"),
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"),
    }
)
"""The keywords of an object schema by which each declared member is judged by its own schema alone."""


class TooCostlyError(ValueError):
    """A value is not judged, because that would take too long."""


class Judge:
    """What both engines say of values by one schema, as it is written or in normal form, and values that it may admit.

    The reference engine is slow, and most members of the values it sees are those of a value it saw before: so a
    member of an object is judged once by its own subschema, and what is left of the object by itself.
    """

    def __init__(self, schema: Any, budget: Budget) -> None:
        self.schema = schema
        self._budget = budget
        self._fast: Any = None
        self._known: dict[tuple[int, int], tuple[Any, Any, bool]] = {}
        self._samples: dict[tuple[int, int], tuple[Any, list[Any]]] = {}

    def admits(self, value: Any) -> bool:
        """Return what the fast engine says.

        Raises:
            TooCostlyError: it would take more than what is left of the budget.
        """
        values, longest = _size(value)
        self._spend(_OF_A_CANDIDATE + 10 * self._parts + _OF_A_VALUE * (values + longest // 100))
        if self._fast is None:
            import jsonschema_rs  # without its wheel containment is unknown, and this is never reached

            self._fast = jsonschema_rs.validator_for(self.schema, validate_formats=True, offline=True).is_valid
        return bool(self._fast(value))

    def surely_admits(self, value: Any) -> bool:
        """Return what the reference engine says.

        Raises:
            TooCostlyError: it would take more than what is left of the budget, or a pattern could take too long.
        """
        # It matches with `re`, which tries every way to divide a text: `(a+)+b` takes years on 40 letters.
        values, longest = _size(value)
        self._spend(_OF_A_VALUE * values)
        if longest > self._longest_text:
            raise TooCostlyError("a text is too long for a pattern")
        return self._by_members(self.schema, value)

    @cached_property
    def _parts(self) -> int:
        return measure(self.schema).parts

    @cached_property
    def _longest_text(self) -> int:
        lengths = [longest_text(each) // 10 if is_harmless(each) else 12 for each in patterns_of(self.schema)]
        return min(lengths, default=_LONGEST_TEXT)

    def _spend(self, steps: int) -> None:
        if not self._budget.take(steps):
            raise TooCostlyError("the budget is spent")

    def samples(self, node: Any, limit: int) -> list[Any]:
        """Return `samples` of *node*, a part of this schema, looked for once; not to be changed."""
        key = (id(node), limit)
        if key not in self._samples:
            self._samples[key] = (node, samples(node, limit))  # keeping the node alive keeps its id unique
        return self._samples[key][1]

    def _by_members(self, schema: Any, value: Any) -> bool:
        key = (id(schema), id(value))
        if key not in self._known:
            # Candidates share most of their members, so each member is evaluated once by the slow engine.
            if isinstance(value, dict) and is_by_members(schema):
                answer = _shell(schema)(value) and all(
                    self._by_members(child, value[name])
                    for name, child in schema.get("properties", {}).items()
                    if name in value
                )
            else:
                self._spend(_BY_REFERENCE_ENGINE * (measure(schema).parts + _size(value)[0]))
                answer = _reference(schema)(value)
            self._known[key] = (schema, value, answer)  # both are kept, as above
        return self._known[key][2]


def is_by_members(schema: Any) -> bool:
    """Whether *schema* is of an object whose declared members are judged each by its own schema alone."""
    if not isinstance(schema, dict):
        return False
    return schema.keys() <= _BY_MEMBERS and isinstance(schema.get("additionalProperties", True), bool)


def _size(value: Any) -> tuple[int, int]:
    """Return how many values there are in *value*, and the length of its longest text or name."""
    pending, values, longest = [value], 0, 0
    while pending:
        part = pending.pop()
        values += 1
        if isinstance(part, str):
            longest = max(longest, len(part))
        elif isinstance(part, list):
            pending += part
        elif isinstance(part, dict):
            longest = max(longest, max(map(len, part), default=0))
            pending += part.values()
    return values, longest


@cache
def _engine() -> tuple[Any, Any, Callable[[Any, Any], Callable[[Any], bool]]]:
    import jsonschema  # slow to import, and needed only where something breaks
    from referencing import Registry

    formats, registry = jsonschema.FormatChecker(), Registry()
    whole: Any = jsonschema.Draft202012Validator
    extend: Any = jsonschema.validators.extend
    # The declared members are left out: their own results are already known.
    shell: Any = extend(whole, {"properties": lambda *_: ()})
    return whole, shell, lambda engine, schema: engine(schema, registry=registry, format_checker=formats).is_valid


def _reference(schema: Any) -> Callable[[Any], bool]:
    import jsonschema

    whole, _, made = _engine()
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    if isinstance(declared, str):  # as written, and not in normal form
        validator_for: Any = jsonschema.validators.validator_for
        whole = validator_for({"$schema": DIALECTS.get(declared.rstrip("#"), declared)}, default=whole)
    return made(whole, schema)


def _shell(schema: Any) -> Callable[[Any], bool]:
    """Return the reference engine's verdict by all keywords of *schema* except its declared members."""
    _, shell, made = _engine()
    return made(shell, schema)
