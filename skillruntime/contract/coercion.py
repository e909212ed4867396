"""Arguments to arguments that the schema accepts, with a record of every mend.

The law: a value that fits is never touched; what fails is mended only where it fails, only without loss or invention,
and only if there is one way to do it. Two different mends that would both fit are a refusal. Every rule here is a row
of the table in the docs page "What is repaired and what is refused".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from skillruntime.contract.arguments import parse_container
from skillruntime.contract.keys import (
    ABSENT,
    declared_default,
    declared_properties,
    is_schema_echo,
    is_wrapper,
    renames,
)
from skillruntime.contract.pointer import Path, format_pointer, value_at
from skillruntime.contract.readings import booleans, is_listing, is_nothing, matches, number_in, number_text
from skillruntime.contract.schema import Schema, Violation

__all__ = ["LENIENT", "SAFE", "STRICT", "Coerced", "Policy", "Repair", "coerce", "policy_named", "without_decimals"]

MAX_STEPS = 20_000
MAX_NESTED_MENDS = 12


@dataclass(frozen=True, slots=True)
class Repair:
    """One mend: where (a JSON Pointer into what was sent), by which rule, from what, to what."""

    path: str
    rule: str
    before: Any
    after: Any

    def to_dict(self) -> dict[str, Any]:
        """Return the mend as a JSON object; ``after`` is null where something was left out."""
        return {"path": self.path, "rule": self.rule, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Policy:
    """How far mending goes.

    ``mend`` turns it on. ``on_unknown`` says what becomes of a key that the schema does not know: ``"refuse"``, or
    ``"drop"`` and record it. ``more_words`` also reads ``on``, ``off``, ``y``, ``n``, ``t``, ``f`` as booleans and
    ``n/a``, ``nil``, ``undefined`` as nothing.
    """

    mend: bool = True
    on_unknown: Literal["refuse", "drop"] = "refuse"
    more_words: bool = False


STRICT = Policy(mend=False)
SAFE = Policy()
LENIENT = Policy(on_unknown="drop", more_words=True)
_POLICIES = {"strict": STRICT, "safe": SAFE, "lenient": LENIENT}


def policy_named(policy: str | Policy) -> Policy:
    """Return the policy of that name; a ``Policy`` is returned as it is.

    Raises:
        ValueError: there is no policy of that name.
    """
    if isinstance(policy, Policy):
        return policy
    if policy not in _POLICIES:
        raise ValueError(f"policy is {policy!r}; known are {', '.join(_POLICIES)}, or a Policy")
    return _POLICIES[policy]


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
    with all that is wrong with it.

    >>> coerce({"n": "5"}, Schema({"properties": {"n": {"type": "integer"}}})).value
    {'n': 5}
    >>> coerce({"n": "5.7"}, Schema({"properties": {"n": {"type": "integer"}}})).violations[0].pointer
    '/n'
    """
    if schema.is_valid(value):
        return Coerced(value)
    if not policy.mend:
        return Coerced(value, (), tuple(schema.violations(value)))
    mender = _Mender(schema, policy)
    mended = mender.mend(value, (), (), 0)
    if mended is None:
        return Coerced(value, (), tuple(_still_wrong(value, mender.best, schema)))
    return Coerced(mended.value, mended.repairs)


@dataclass(frozen=True, slots=True)
class _Mended:
    """A value on its way, the mends so far, and the rank of the boldest: 0 converts, 1 wraps, 2 leaves out."""

    value: Any
    repairs: tuple[Repair, ...] = ()
    rank: int = 0

    def then(self, other: _Mended) -> _Mended:
        return _Mended(other.value, self.repairs + other.repairs, max(self.rank, other.rank))


class _Mender:
    """Mends one value; counts its steps, so that no value can make it work without end."""

    def __init__(self, schema: Schema, policy: Policy) -> None:
        self.schema = schema
        self.policy = policy
        self.steps = MAX_STEPS
        self.best: _Mended | None = None

    def mend(self, value: Any, location: Path, path: Path, depth: int) -> _Mended | None:
        """Return *value*, which stands at *path*, mended to fit the subschema at *location*; ``None`` if it cannot."""
        current = _Mended(value)
        for _ in range(6):
            if self.schema.fits(current.value, location):
                return current
            self.steps -= 1
            if self.steps < 0 or depth > MAX_NESTED_MENDS:
                return None
            violations = self.schema.violations(current.value, location)
            step = self.members(current.value, violations, path, depth)
            if step is None:
                break
            current = current.then(step)
            if not path:
                self.best = current
        here = [violation for violation in violations if not violation.path and violation.location is not None]
        replaced = self.whole(current.value, here, location, path, depth) if here else None
        return None if replaced is None else current.then(replaced)

    # The members of an object or array: each is mended by the subschema that refuses it.

    def members(self, value: Any, violations: list[Violation], path: Path, depth: int) -> _Mended | None:
        """Return *value* with what can be mended inside it; ``None`` if nothing can."""
        if not isinstance(value, dict | list):
            return None
        edit = _Edit(value)
        done: dict[Path, set[Path | None]] = {}
        for violation in violations:
            if violation.path and violation.location not in done.setdefault(violation.path, set()):
                done[violation.path].add(violation.location)
                self.member(edit, violation, path, depth)
        if isinstance(value, dict):
            self.keys(edit, [violation for violation in violations if not violation.path], path)
        return edit.result()

    def member(self, edit: _Edit, violation: Violation, path: Path, depth: int) -> None:
        where = violation.path
        try:
            part = value_at(edit.value, where)
        except LookupError:
            return  # left out by an earlier mend
        if violation.location is None:
            return
        mended = self.mend(part, violation.location, (*path, *where), depth + 1)
        if mended is not None:
            if mended.repairs:
                edit.put(where, mended)
        elif isinstance(where[-1], str) and self.is_nothing(part):
            edit.leave_out(where, Repair(format_pointer((*path, *where)), "null-optional", part, None))

    def is_nothing(self, value: Any) -> bool:
        return is_nothing(value, more_words=self.policy.more_words)

    def keys(self, edit: _Edit, here: list[Violation], path: Path) -> None:
        """Mend the keys of an object: renamed, left out, filled by a default."""
        value = edit.value
        assert isinstance(value, dict)
        unknown = {name for violation in here if violation.keyword in _UNKNOWN for name in violation.names}
        missing = {
            name: violation
            for violation in here
            if violation.keyword in ("required", "dependentRequired", "dependencies")
            for name in violation.names
        }
        if not unknown and not missing:
            return
        declared: dict[str, Any] = {}
        for violation in here:
            declared |= declared_properties(self.schema.document, violation.location)
        strangers = unknown or {name for name in value if name not in declared}
        meant = renames(strangers, [name for name in declared if name not in value])
        for old, new in meant.items():
            if old in unknown or new in missing:
                repair = Repair(format_pointer((*path, old)), "key-name", old, new)
                edit.rename(old, new, repair)
        for name in unknown - meant.keys():
            if name == "" and value[name] in ("", None, {}, []):
                edit.leave_out((name,), Repair(format_pointer((*path, name)), "empty-key", value[name], None))
            elif self.policy.on_unknown == "drop" and not is_wrapper(value, name):
                edit.leave_out((name,), Repair(format_pointer((*path, name)), "unknown-key", value[name], None))
        for name, violation in missing.items():
            if name in edit.value:
                continue
            default = declared_default(self.schema.document, violation.location, name)
            if default is not ABSENT and not any(is_wrapper(value, key) for key in strangers):
                edit.fill(name, default, Repair(format_pointer((*path, name)), "default", None, default))

    # The value as a whole: converted, wrapped, unwrapped, or mended by one branch of a union.

    def whole(self, value: Any, here: list[Violation], location: Path, path: Path, depth: int) -> _Mended | None:
        """Return what *value* as a whole becomes: the one result of the gentlest kind of mend that gives any."""
        for tier in (self.converted, self.reshaped):
            results: list[_Mended] = []
            for candidate in tier(value, here, path, depth):
                mended = self.mend(candidate.value, location, path, depth + 1)
                if mended is not None:
                    results.append(candidate.then(mended))
            if results:
                return _the_one(results)
        return None

    def converted(self, value: Any, here: list[Violation], path: Path, depth: int) -> Iterator[_Mended]:
        """Yield *value* read as another type, as a member of an enum, or mended by one branch of a union."""
        pointer = format_pointer(path)
        for violation in here:
            match violation.keyword:
                case "anyOf" | "oneOf" if violation.branches:
                    yield from self.branches(value, violation, path, depth)
                case "enum" | "const":
                    allowed = violation.expected if violation.keyword == "enum" else [violation.expected]
                    for after in matches(value, allowed):
                        yield _Mended(after, (Repair(pointer, "enum-value", value, after),))
                case "type":
                    for wanted in _types(violation):
                        for rule, after in self.read_as(wanted, value):
                            yield _Mended(after, (Repair(pointer, rule, _plain(value), after),))

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
            case "boolean", bool():
                pass
            case "boolean", int() | float() | Decimal() if value in (0, 1):
                yield "boolean-number", bool(value)
            case "string", int() | float() | Decimal() if not isinstance(value, bool):
                text = number_text(value)
                if text is not None:
                    yield "number-for-text", text
            case "null", str() if self.is_nothing(value):
                yield "null-text", None
            case (("array" | "object"), str()):
                parsed = parse_container(value)
                if parsed is not None and isinstance(parsed.value, list if wanted == "array" else dict):
                    yield "container-text", parsed.value

    def branches(self, value: Any, violation: Violation, path: Path, depth: int) -> Iterator[_Mended]:
        results: list[_Mended] = []
        assert violation.location is not None
        for index in range(len(violation.expected or ())):
            branch = (*violation.location, violation.keyword, index)
            mended = self.mend(value, branch, path, depth + 1)
            if mended is not None and mended.repairs:
                results.append(mended)
        gentlest = min((result.rank for result in results), default=0)
        yield from (result for result in results if result.rank == gentlest)

    def reshaped(self, value: Any, here: list[Violation], path: Path, depth: int) -> Iterator[_Mended]:
        """Yield *value* in a container or out of one: wrapped into an array, taken out of an array or an object."""
        pointer = format_pointer(path)
        wanted = {name for violation in here if violation.keyword == "type" for name in _types(violation)}
        narrowed = any(violation.keyword in ("enum", "const") for violation in here)
        match value:
            case list() if len(value) == 1 and (wanted - {"array"} or narrowed):
                yield _Mended(value[0], (Repair(pointer, "array-of-one", value, value[0]),), 1)
            case dict() if is_schema_echo(value) and (wanted or narrowed):
                yield _Mended(value["value"], (Repair(pointer, "schema-echo", value, value["value"]),), 1)
            case dict():
                for name in value:
                    inside = value[name]
                    if isinstance(inside, str):
                        parsed = parse_container(inside)
                        inside = parsed.value if parsed else inside
                    if not isinstance(inside, dict) or not is_wrapper(value, name):
                        continue
                    if any(name in declared_properties(self.schema.document, violation.location) for violation in here):
                        continue
                    yield _Mended(inside, (Repair(pointer, "wrapper-object", {name: "…"}, inside),), 1)
        if "array" in wanted and not isinstance(value, list) and self.may_be_item(value, here):
            yield _Mended([value], (Repair(pointer, "scalar-for-array", _plain(value), [value]),), 1)

    def may_be_item(self, value: Any, here: list[Violation]) -> bool:
        """Whether *value* is one item and nothing else: not nothing, not a container in a text, not a list in prose."""
        if value is None or self.is_nothing(value):
            return False
        if not isinstance(value, str):
            return True
        if value.lstrip()[:1] in ("[", "{", "(") or value.rstrip()[-1:] in ("]", "}"):
            return False
        if not is_listing(value):
            return True
        items = (violation.schema.get("items") for violation in here if isinstance(violation.schema, dict))
        return any(isinstance(item, dict) and value in item.get("enum", ()) for item in items)


class _Edit:
    """A copy of an object or array under repair: copied only where it is changed."""

    def __init__(self, value: dict[str, Any] | list[Any]) -> None:
        self.value: Any = value
        self.copied: set[Path] = set()
        self.repairs: list[Repair] = []
        self.rank = 0

    def result(self) -> _Mended | None:
        return _Mended(self.value, tuple(self.repairs), self.rank) if self.repairs else None

    def parent(self, where: Path) -> Any:
        """Return the container of *where*, copied with all that leads to it."""
        if () not in self.copied:
            self.value = self.value.copy()
            self.copied.add(())
        container = self.value
        for length, token in enumerate(where[:-1], start=1):
            if where[:length] not in self.copied:
                container[token] = container[token].copy()
                self.copied.add(where[:length])
            container = container[token]
        return container

    def put(self, where: Path, mended: _Mended) -> None:
        self.parent(where)[where[-1]] = mended.value
        self.copied = {path for path in self.copied if path[: len(where)] != where}
        self.repairs += mended.repairs
        self.rank = max(self.rank, mended.rank)

    def leave_out(self, where: Path, repair: Repair) -> None:
        del self.parent(where)[where[-1]]
        self.repairs.append(repair)
        self.rank = 2

    def rename(self, old: str, new: str, repair: Repair) -> None:
        self.parent((old,))
        self.value = {new if key == old else key: value for key, value in self.value.items()}
        self.repairs.append(repair)

    def fill(self, name: str, default: Any, repair: Repair) -> None:
        self.parent((name,))[name] = default
        self.repairs.append(repair)
        self.rank = 2


def _still_wrong(value: Any, best: _Mended | None, schema: Schema) -> list[Violation]:
    """Return what could not be mended, of the value as far as it was; what was left out counts as it was sent."""
    original = schema.violations(value)
    if best is None:
        return original
    rest = schema.violations(best.value)
    sent = {violation.path: violation for violation in original}
    told = [sent.get((*each.path, each.names[0]), each) if each.keyword == "required" else each for each in rest]
    return told or original


_UNKNOWN = ("additionalProperties", "unevaluatedProperties")


def _types(violation: Violation) -> list[str]:
    expected = violation.expected
    return expected if isinstance(expected, list) else [expected]


def _the_one(results: list[_Mended]) -> _Mended | None:
    """Return the result if there is but one value among *results*, by the gentlest mends; else ``None``."""
    gentlest = min(result.rank for result in results)
    best = [result for result in results if result.rank == gentlest]
    return best[0] if all(_same(result.value, best[0].value) for result in best[1:]) else None


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, with ``true`` apart from 1."""
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)


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
