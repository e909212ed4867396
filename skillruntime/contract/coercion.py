"""Arguments to arguments that the schema accepts, with a record of every mend.

The law: a value that fits is never touched; what fails is mended only where it fails, only without loss or invention,
and only if there is one way to do it. Two different mends that would both fit are a refusal. Every rule here is a row
of the table in the docs page "What is repaired and what is refused".
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from skillruntime.contract.arguments import parse_container
from skillruntime.contract.explanation import AMBIGUOUS
from skillruntime.contract.mending.declarations import (
    ABSENT,
    declared_default,
    declared_properties,
    is_hidden,
    subschemas,
)
from skillruntime.contract.mending.edit import Edit
from skillruntime.contract.mending.keys import is_schema_echo, is_wrapper, renames
from skillruntime.contract.mending.policy import LENIENT, SAFE, STRICT, Policy, policy_named
from skillruntime.contract.mending.readings import (
    booleans,
    is_nothing,
    is_same,
    matches,
    number_in,
    number_text,
    pieces,
    unquoted,
)
from skillruntime.contract.pointer import Path, format_pointer, parse_pointer, value_at
from skillruntime.contract.schema import Schema, Violation

__all__ = ["LENIENT", "SAFE", "STRICT", "Coerced", "Policy", "Repair", "coerce", "policy_named", "without_decimals"]

MAX_PARTS = 20_000
MAX_STEPS = 20_000
MAX_NESTED_MENDS = 12
MAX_ROUNDS = 6
MAX_DROPPED = 200
MISSPELT = 0.75


@dataclass(frozen=True, slots=True, repr=False)
class Repair:
    """One mend: where (a JSON Pointer into what was sent), by which rule, from what, to what.

    A *secret* one keeps its values to itself: they are not in `to_dict`, nor in its text.
    """

    path: str
    rule: str
    before: Any
    after: Any
    secret: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the mend as a JSON object; ``after`` is null where something was left out.

        >>> Repair("/key", "number-for-text", 123, "123", secret=True).to_dict()
        {'path': '/key', 'rule': 'number-for-text', 'before': '(secret)', 'after': '(secret)'}
        """
        before, after = ("(secret)", "(secret)") if self.secret else (self.before, self.after)
        return {"path": self.path, "rule": self.rule, "before": before, "after": after}

    def __repr__(self) -> str:
        return f"Repair({', '.join(f'{key}={value!r}' for key, value in self.to_dict().items())})"


@dataclass(frozen=True, slots=True)
class Coerced:
    """What coercion came to: the value, the mends that led to it, and what is still wrong with it."""

    value: Any
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the value is one that the schema accepts."""
        return not self.violations


def coerce(value: Any, schema: Schema, policy: Policy = SAFE) -> Coerced:
    """Return *value* with its slips mended so that *schema* accepts it.

    *value* is a JSON value and is never changed. Where it cannot be mended whole, the answer is *value* as it came,
    with all that is wrong with it. A value of more than 20,000 parts is not mended, and one thing is told of it.

    >>> coerce({"n": "5"}, Schema({"properties": {"n": {"type": "integer"}}})).value
    {'n': 5}
    >>> coerce({"n": "5.7"}, Schema({"properties": {"n": {"type": "integer"}}})).violations[0].pointer
    '/n'
    """
    if schema.is_valid(value):
        return Coerced(value)
    if _is_large(value):
        return Coerced(value, (), (schema.first_violation(value),))
    if not policy.mend:
        return Coerced(value, (), tuple(schema.violations(value)))
    mender = _Mender(schema, policy)
    mended = mender.mend(value, (), (), 0)
    if mended is None:
        return Coerced(value, (), _still_wrong(value, mender))
    return Coerced(mended.value, _marked(mended.repairs, schema))


def _is_large(value: Any) -> bool:
    """Whether *value* has more parts than are worth looking at one by one."""
    pending, seen = [value], 0
    while pending:
        part = pending.pop()
        if isinstance(part, dict | list):
            seen += len(part)
            if seen > MAX_PARTS:
                return True
            pending += part.values() if isinstance(part, dict) else part
    return False


def _marked(repairs: tuple[Repair, ...], schema: Schema) -> tuple[Repair, ...]:
    """Return *repairs*, those of secrets marked as such."""
    if not schema.may_hold_secrets:
        return repairs
    return tuple(
        replace(
            each, secret=each.rule != "key-name" and is_hidden(schema.document, parse_pointer(each.path), each.after)
        )
        for each in repairs
    )


@dataclass(frozen=True, slots=True)
class _Mended:
    """A value on its way, and the mends so far."""

    value: Any
    repairs: tuple[Repair, ...] = ()

    def then(self, other: _Mended) -> _Mended:
        return _Mended(other.value, self.repairs + other.repairs)


class _Mender:
    """Mends one value; counts its steps, so that no value can make it work without end."""

    def __init__(self, schema: Schema, policy: Policy) -> None:
        self.schema = schema
        self.document = schema.document
        self.policy = policy
        self.steps = MAX_STEPS
        self.best: _Mended | None = None
        self.unclear: dict[Path, list[Any]] = {}
        self.nearly: dict[Path, Any] = {}

    def mend(self, value: Any, location: Path, path: Path, depth: int) -> _Mended | None:
        """Return *value*, which stands at *path*, mended to fit the subschema at *location*; ``None`` if it cannot."""
        current = _Mended(value)
        violations: list[Violation] = []
        for _ in range(MAX_ROUNDS):
            if self.schema.fits(current.value, location):
                return current
            self.steps -= 1
            if self.steps < 0 or depth > MAX_NESTED_MENDS:
                return None
            violations = self.schema.violations(current.value, location)
            step = self.members(current.value, violations, location, path, depth)
            if step is None:
                break
            current = current.then(step)
            if not path:
                self.best = current
        here = [violation for violation in violations if not violation.path and violation.location is not None]
        replaced = self.whole(current.value, here, location, path, depth) if here else None
        return None if replaced is None else current.then(replaced)

    # The members of an object or array: each is mended by the subschema that refuses it.

    def members(
        self, value: Any, violations: list[Violation], location: Path, path: Path, depth: int
    ) -> _Mended | None:
        """Return *value* with what can be mended inside it; ``None`` if nothing can."""
        if not isinstance(value, dict | list):
            return None
        edit = Edit(value)
        repairs: list[Repair] = []
        refusals: dict[tuple[Path, Path], list[Violation]] = {}
        for violation in violations:
            if violation.path and violation.location is not None:
                refusals.setdefault((violation.path, violation.location), []).append(violation)
        if isinstance(value, dict):
            here = [violation for violation in violations if not violation.path]
            repairs += self.keys(edit, here, location, path)
        for (where, refuser), same in refusals.items():
            repairs += self.member(edit, where, refuser, same, path, depth)
        return _Mended(edit.value, tuple(repairs)) if repairs else None

    def member(
        self, edit: Edit, where: Path, location: Path, same: list[Violation], path: Path, depth: int
    ) -> tuple[Repair, ...]:
        """Mend what stands at *where*, which the subschema at *location* refuses by the violations *same*."""
        try:
            part = value_at(edit.value, where)
        except LookupError:
            return ()  # left out by an earlier mend
        if self.steps < 0:
            return ()
        whole = (*path, *where)
        if part is same[0].value and not isinstance(part, dict | list):
            self.steps -= 1
            mended = self.whole(part, same, location, whole, depth + 1)  # what mend would find out once more
        else:
            mended = self.mend(part, location, whole, depth + 1)
        if mended is not None:
            if mended.repairs:
                edit.put(where, mended.value)
            return mended.repairs
        if is_nothing(part, more_words=self.policy.more_words) and self.is_property(whole):
            edit.leave_out(where)
            return (Repair(format_pointer(whole), "null-optional", part, None),)
        return ()

    def is_property(self, path: Path) -> bool:
        """Whether *path* leads to a declared property: not to an item, or a key that is itself something said."""
        return any(path[-1] in schema.get("properties", ()) for schema in subschemas(self.document, path[:-1]))

    def keys(self, edit: Edit, here: list[Violation], location: Path, path: Path) -> Iterator[Repair]:
        """Mend the keys of an object: renamed, left out, filled by a default."""
        unknown = {name for violation in here if violation.keyword in _UNKNOWN for name in violation.names}
        missing = {name for violation in here if violation.keyword in _NEEDED for name in violation.names}
        if not unknown and not missing:
            return
        value = edit.value
        locations = [location, *(violation.location for violation in here)]
        declared = declared_properties(self.document, locations)
        strangers = unknown or {name for name in value if name not in declared}
        meant = renames(strangers, declared, value)
        for old, new in meant.items():
            if old in unknown or new in missing:
                edit.rename(old, new)
                yield Repair(format_pointer((*path, old)), "key-name", old, new)
        for name in sorted(unknown - meant.keys()):
            if name == "" and value[name] in ("", None, {}, []):
                edit.leave_out((name,))
                yield Repair(format_pointer((*path, name)), "empty-key", value[name], None)
            elif self.may_drop(value, name, declared):
                edit.leave_out((name,))
                yield Repair(format_pointer((*path, name)), "unknown-key", value[name], None)
        if any(is_wrapper(value, name, declared) for name in strangers):
            return
        for name in sorted(missing - edit.value.keys()):
            default = declared_default(self.document, locations, name)
            if default is not ABSENT:
                edit.put((name,), default)
                yield Repair(format_pointer((*path, name)), "default", None, default)

    def may_drop(self, value: dict[str, Any], name: str, declared: dict[str, Any]) -> bool:
        """Whether an unknown key may be left out: it wraps nothing, and is no misspelt name of an absent property."""
        if self.policy.on_unknown != "drop" or len(value) > MAX_DROPPED or is_wrapper(value, name, declared):
            return False
        absent = [known for known in declared if known not in value]
        return not difflib.get_close_matches(name, absent, n=1, cutoff=MISSPELT)

    # The value as a whole: converted, wrapped, unwrapped, or mended by one branch of a union.

    def whole(self, value: Any, here: list[Violation], location: Path, path: Path, depth: int) -> _Mended | None:
        """Return what *value* as a whole becomes, if there is one thing it can become."""
        results: list[_Mended] = []
        for candidate in (
            *self.converted(value, here, path, depth),
            *self.reshaped(value, here, location, path, depth),
        ):
            mended = self.mend(candidate.value, location, path, depth + 1)
            if mended is not None:
                results.append(candidate.then(mended))
            elif candidate.repairs[-1].rule in _NUMBERS:
                self.nearly[path] = candidate.value
        least = _least(results)
        if len(least) > 1:
            self.unclear[path] = [result.value for result in least]
            return None
        return least[0] if least else None

    def converted(self, value: Any, here: list[Violation], path: Path, depth: int) -> Iterator[_Mended]:
        """Yield *value* read as another type, as a member of an enum, or mended by one branch of a union."""
        pointer = format_pointer(path)
        for violation in here:
            match violation.keyword:
                case "anyOf" | "oneOf" if violation.branches:
                    assert violation.location is not None
                    for index in range(len(violation.expected or ())):
                        branch = (*violation.location, violation.keyword, index)
                        mended = self.mend(value, branch, path, depth + 1)
                        if mended is not None and mended.repairs:
                            yield mended
                case "enum" | "const":
                    allowed = violation.expected if violation.keyword == "enum" else [violation.expected]
                    self.steps -= len(allowed) // 16
                    for after in matches(value, allowed):
                        yield _Mended(after, (Repair(pointer, "enum-value", _plain(value), after),))
                case "type":
                    for wanted in _types(violation):
                        for rule, after in self.read_as(wanted, value):
                            yield _Mended(after, (Repair(pointer, rule, _plain(value), after),))
        if isinstance(value, str) and any(violation.keyword in _UNQUOTED for violation in here):
            inside = unquoted(value)
            if inside is not None:
                yield _Mended(inside, (Repair(pointer, "quoted-text", value, inside),))

    def read_as(self, wanted: str, value: Any) -> Iterator[tuple[str, Any]]:
        match wanted, value:
            case (("integer" | "number"), str()):
                number = number_in(value, whole=wanted == "integer")
                if number is not None:
                    yield "thousands" if "," in value else "number-text", number
            case "boolean", str():
                word = value.strip().casefold()
                words = booleans(more_words=self.policy.more_words)
                if word in words:
                    yield "boolean-text", words[word]
            case "boolean", int() | float() | Decimal() if value in (0, 1) and not isinstance(value, bool):
                yield "boolean-number", bool(value)
            case "string", int() | float() | Decimal() if not isinstance(value, bool):
                text = number_text(value)
                if text is not None:
                    yield "number-for-text", text
            case "null", str() if is_nothing(value, more_words=self.policy.more_words):
                yield "null-text", None
            case (("array" | "object"), str()):
                parsed = parse_container(value)
                if parsed is not None and isinstance(parsed.value, list if wanted == "array" else dict):
                    yield "container-text", parsed.value

    def reshaped(self, value: Any, here: list[Violation], location: Path, path: Path, depth: int) -> Iterator[_Mended]:
        """Yield *value* in a container or out of one: wrapped into an array, taken out of an array or an object."""
        pointer = format_pointer(path)
        arrays = [each for each in here if each.keyword == "type" and "array" in _types(each)]
        wanted = {name for each in here if each.keyword == "type" for name in _types(each)}
        narrowed = any(violation.keyword in ("enum", "const") for violation in here)
        match value:
            case [] if not path and "object" in wanted:
                yield _Mended({}, (Repair(pointer, "empty-arguments", value, {}),))
            case [item] if wanted - {"array"} or narrowed:
                yield _Mended(item, (Repair(pointer, "array-of-one", value, item),))
            case dict() if is_schema_echo(value) and (wanted or narrowed):
                yield _Mended(value["value"], (Repair(pointer, "schema-echo", value, value["value"]),))
            case dict():
                declared = declared_properties(self.document, [location, *(each.location for each in here)])
                for name, inside in value.items():
                    if is_wrapper(value, name, declared):
                        parsed = parse_container(inside) if isinstance(inside, str) else None
                        content = parsed.value if parsed else inside
                        if isinstance(content, dict):
                            yield _Mended(content, (Repair(pointer, "wrapper-object", {**value, name: "…"}, content),))
        if not isinstance(value, list) and any(self.is_item(value, each, path, depth) for each in arrays):
            yield _Mended([value], (Repair(pointer, "scalar-for-array", _plain(value), [_plain(value)]),))

    def is_item(self, value: Any, violation: Violation, path: Path, depth: int) -> bool:
        """Whether *value* is one item and nothing else: not nothing, not several, not the whole array in a text."""
        assert violation.location is not None
        if len(violation.schema.get("prefixItems", ())) > 1 or is_nothing(value, more_words=self.policy.more_words):
            return False
        match value:
            case dict():
                is_array = any(
                    isinstance(each, list) and self.schema.fits(each, violation.location) for each in value.values()
                )
                return bool(value) and not is_array and not all(map(str.isdecimal, value))
            case str() if value.lstrip()[:1] in ("[", "{", "(") or value.rstrip()[-1:] in ("]", "}"):
                return False
            case str():
                parts = pieces(value)
                items = (*violation.location, "items")
                return len(parts) == 1 or (
                    "items" in violation.schema
                    and any(self.mend(part, items, path, depth + 1) is None for part in parts)
                )
        return True


_UNKNOWN = ("additionalProperties", "unevaluatedProperties")
_NEEDED = ("required", "dependentRequired", "dependencies")
_NUMBERS = ("number-text", "thousands")
_UNQUOTED = ("type", "enum", "const", "format")


def _types(violation: Violation) -> list[str]:
    expected = violation.expected
    return expected if isinstance(expected, list) else [expected]


def _least(results: list[_Mended]) -> list[_Mended]:
    """Return those of *results* that differ and do not merely do more of the same; more than one is a doubt.

    Of ``5`` by reading ``"5"``, and ``[5]`` by reading it and wrapping it, only the first is left.
    """
    if len(results) < 2:
        return results
    done = [
        Counter((repair.rule, repr(repair.before), repr(repair.after)) for repair in each.repairs) for each in results
    ]
    least = [each for each, mine in zip(results, done, strict=True) if not any(other < mine for other in done)]
    distinct: list[_Mended] = []
    for result in least:
        if not any(is_same(result.value, other.value) for other in distinct):
            distinct.append(result)
    return distinct


def _still_wrong(value: Any, mender: _Mender) -> tuple[Violation, ...]:
    """Return what could not be mended, of the value as far as it was; what was left out counts as it was sent."""
    schema, best = mender.schema, mender.best
    told = original = schema.violations(value)
    if best is not None:
        sent = {violation.path: violation for violation in original}
        rest = schema.violations(best.value)
        told = [sent.get((*each.path, each.names[0]), each) if each.keyword == "required" else each for each in rest]
    return tuple(
        _unclear(each, mender.unclear) for violation in told or original for each in _nearly(violation, mender)
    )


def _nearly(violation: Violation, mender: _Mender) -> list[Violation]:
    """Return *violation*, or what is wrong with the number that its text writes: ``"11"`` where 10 is the most."""
    if violation.keyword != "type" or violation.path not in mender.nearly or violation.location is None:
        return [violation]
    rest = mender.schema.violations(mender.nearly[violation.path], violation.location)
    return [replace(each, path=(*violation.path, *each.path)) for each in rest] or [violation]


def _unclear(violation: Violation, unclear: dict[Path, list[Any]]) -> Violation:
    """Return *violation*, or that its value could mean several things."""
    if violation.path not in unclear or violation.keyword not in ("type", "enum", "anyOf", "oneOf"):
        return violation
    options = [without_decimals(option) for option in unclear[violation.path]]
    return replace(violation, keyword=AMBIGUOUS, schema={**violation.schema, AMBIGUOUS: options}, branches=())


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def without_decimals(value: Any) -> Any:
    """Return *value* with the numbers that remembered how they were written as plain floats.

    >>> without_decimals({"a": [Decimal("1.50"), 2]})
    {'a': [1.5, 2]}
    """
    match value:
        case dict():
            return {key: without_decimals(member) for key, member in value.items()}
        case list():
            return [without_decimals(item) for item in value]
        case _:
            return _plain(value)
