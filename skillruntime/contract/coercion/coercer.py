"""Mends one value by one schema: its members where they fail, its keys, and the value as a whole."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from skillruntime.contract.coercion.conversions import NUMBERS, read_as, taken_out
from skillruntime.contract.coercion.edit import Edit
from skillruntime.contract.coercion.keys import is_wrapper, renames
from skillruntime.contract.coercion.policy import Policy
from skillruntime.contract.coercion.repair import Mended, Repair, least, plain
from skillruntime.contract.coercion.scalars import is_nothing, matches, pieces, unquoted
from skillruntime.contract.coercion.subschemas import (
    ABSENT,
    declared_default,
    declared_properties,
    subschemas,
)
from skillruntime.contract.pointer import Path, format_pointer, value_at
from skillruntime.contract.schema import Schema, Violation

__all__ = ["Mender"]

MAX_STEPS = 20_000
MAX_NESTED_MENDS = 12
MAX_ROUNDS = 6
MAX_DROPPED = 200
MISSPELT = 0.75

_UNKNOWN = ("additionalProperties", "unevaluatedProperties")
_NEEDED = ("required", "dependentRequired", "dependencies")
_UNQUOTED = ("type", "enum", "const", "format", "pattern")


class Mender:
    """Mends one value; counts its steps, so that no value can make it work without end.

    Beside the answer it remembers what is worth telling of a failure: ``best``, the value as far as it was mended;
    ``unclear``, the values that one place could mean; ``nearly``, the numbers that texts write, though they do not fit.
    """

    def __init__(self, schema: Schema, policy: Policy) -> None:
        self.schema = schema
        self.document = schema.document
        self.policy = policy
        self.steps = MAX_STEPS
        self.best: Mended | None = None
        self.unclear: dict[Path, list[Any]] = {}
        self.nearly: dict[Path, Any] = {}

    def mend(self, value: Any, location: Path, path: Path, depth: int) -> Mended | None:
        """Return *value*, which stands at *path*, mended to fit the subschema at *location*; ``None`` if it cannot."""
        current = Mended(value)
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
        if not here and not (isinstance(current.value, dict) and len(current.value) == 1):
            return None  # what is wrong lies in a member, and the object is no wrapper
        replaced = self.whole(current.value, here, location, path, depth)
        return None if replaced is None else current.then(replaced)

    # The members of an object or array: each is mended by the subschema that refuses it.

    def members(self, value: Any, violations: list[Violation], location: Path, path: Path, depth: int) -> Mended | None:
        """Return *value* with what can be mended inside it; ``None`` if nothing can."""
        if not isinstance(value, dict | list):
            return None
        edit = Edit(value)
        repairs: list[Repair] = []
        refusals: dict[tuple[Path, Path], list[Violation]] = {}
        for violation in violations:
            if violation.path and violation.location is not None:
                refusals.setdefault((violation.path, violation.location), []).append(violation)
        kept: set[str] = set()
        if isinstance(value, dict):
            here = [violation for violation in violations if not violation.path]
            astray = self.astray(value, violations, location)
            kept = {name for name in astray if self.fits_as_it_is_called(value, name, refusals, path, depth)}
            repairs += self.keys(edit, here, location, path, astray - kept)
        rows: set[Path] = set()
        for (where, refuser), same in refusals.items():
            if where[0] in kept or where[:-1] in rows:
                continue
            if where[-1] == 0 and self.are_rows(edit, where[:-1], same):
                rows.add(where[:-1])
                repairs += self.rows(edit, where[:-1], refuser, (*path, *where[:-1]), depth)
            else:
                repairs += self.member(edit, where, refuser, same, path, depth)
        return Mended(edit.value, tuple(repairs)) if repairs else None

    def astray(self, value: dict[str, Any], violations: list[Violation], location: Path) -> set[str]:
        """Return the keys that nobody declares and whose values are refused, as ``maxItems`` in a map of texts."""
        names = {str(each.path[0]) for each in violations if each.path and _is_of_undeclared(each)}
        if not names:
            return names
        declared = declared_properties(self.document, [location])
        return names & renames([name for name in value if name not in declared], declared, value).keys()

    def fits_as_it_is_called(
        self,
        value: dict[str, Any],
        name: str,
        refusals: dict[tuple[Path, Path], list[Violation]],
        path: Path,
        depth: int,
    ) -> bool:
        """Whether the value under a key astray can also be mended where it stands: then nobody knows what is meant."""
        refusers = [refuser for where, refuser in refusals if where == (name,)]
        return not refusers or any(
            self.mend(value[name], refuser, (*path, name), depth + 1) is not None for refuser in refusers
        )

    def member(
        self, edit: Edit, where: Path, location: Path, same: list[Violation], path: Path, depth: int
    ) -> tuple[Repair, ...]:
        """Mend what stands at *where*, which the subschema at *location* refuses by the violations *same*."""
        try:
            part = value_at(edit.value, where)
        except LookupError:
            return ()  # left out or renamed by an earlier mend
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

    def are_rows(self, edit: Edit, where: Path, same: list[Violation]) -> bool:
        """Whether each of several items at *where* should be an array, by the violations *same* of one, and none is."""
        if not any(each.keyword == "type" and "array" in _types(each) for each in same):
            return False
        try:
            items = value_at(edit.value, where)
        except LookupError:
            return False  # left out or renamed by an earlier mend
        return isinstance(items, list) and len(items) > 1 and not any(isinstance(item, list) for item in items)

    def rows(self, edit: Edit, where: Path, location: Path, path: Path, depth: int) -> tuple[Repair, ...]:
        """Mend the array at *where*, whose items the subschema at *location* refuses.

        ``[1, 2]`` for an array of arrays is ``[[1], [2]]`` or ``[[1, 2]]``; which, only bounds of the schema can say.
        Where both fit, or the array around them cannot be judged, neither is made.
        """
        items = value_at(edit.value, where)
        each = [self.mend(item, location, (*path, index), depth + 1) for index, item in enumerate(items)]
        found = []
        if all(mended is not None for mended in each):
            repairs = [repair for mended in each if mended is not None for repair in mended.repairs]
            found.append(Mended([mended.value for mended in each if mended is not None], tuple(repairs)))
        around = location[:-1] if location[-1:] == ("items",) else None
        wrapped = self.mend([items], around, path, depth + 1) if around is not None else None
        if wrapped is not None:
            repair = Repair(format_pointer(path), "scalar-for-array", items, [items])
            found.append(Mended(wrapped.value, (repair, *wrapped.repairs)))
        if len(found) != 1 or around is None:
            self.unclear[path] = [mended.value for mended in found]
            return ()
        edit.put(where, found[0].value)
        return found[0].repairs

    def is_property(self, path: Path) -> bool:
        """Whether *path* leads to a declared property: not to an item, or a key that is itself something said."""
        return any(path[-1] in schema.get("properties", ()) for schema in subschemas(self.document, path[:-1]))

    def keys(self, edit: Edit, here: list[Violation], location: Path, path: Path, astray: set[str]) -> Iterator[Repair]:
        """Mend the keys of an object: renamed, left out, filled by a default."""
        unknown = {name for violation in here if violation.keyword in _UNKNOWN for name in violation.names} | astray
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
        absent = sorted(missing - edit.value.keys())
        if not absent or any(is_wrapper(value, name, declared) for name in value):
            return  # what is wrapped may hold what is absent
        for name in absent:
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

    # The value as a whole: converted, wrapped, taken out of what is around it, or mended by one branch of a union.

    def whole(self, value: Any, here: list[Violation], location: Path, path: Path, depth: int) -> Mended | None:
        """Return what *value* as a whole becomes, if there is one thing it can become."""
        results: list[Mended] = []
        for candidate in (
            *self.converted(value, here, path, depth),
            *self.reshaped(value, here, location, path, depth),
        ):
            mended = self.mend(candidate.value, location, path, depth + 1)
            if mended is not None:
                results.append(candidate.then(mended))
            elif candidate.repairs[-1].rule in NUMBERS:
                self.nearly[path] = candidate.value
        fewest = least(results)
        if len(fewest) > 1:
            self.unclear[path] = [result.value for result in fewest]
            return None
        return fewest[0] if fewest else None

    def converted(self, value: Any, here: list[Violation], path: Path, depth: int) -> Iterator[Mended]:
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
                        yield Mended(after, (Repair(pointer, "enum-value", plain(value), after),))
                case "type":
                    for wanted in _types(violation):
                        for rule, after in read_as(wanted, value, more_words=self.policy.more_words):
                            yield Mended(after, (Repair(pointer, rule, plain(value), after),))
        if isinstance(value, str) and any(violation.keyword in _UNQUOTED for violation in here):
            inside = unquoted(value)
            if inside is not None:
                yield Mended(inside, (Repair(pointer, "quoted-text", value, inside),))

    def reshaped(self, value: Any, here: list[Violation], location: Path, path: Path, depth: int) -> Iterator[Mended]:
        """Yield *value* in a container or out of one: wrapped into an array, taken out of an array or an object."""
        pointer = format_pointer(path)
        arrays = [each for each in here if each.keyword == "type" and "array" in _types(each)]
        wanted = {name for each in here if each.keyword == "type" for name in _types(each)}
        narrowed = any(violation.keyword in ("enum", "const") for violation in here)
        if value == [] and not path and "object" in wanted:
            yield Mended({}, (Repair(pointer, "empty-arguments", value, {}),))
        elif isinstance(value, dict | list):
            inner = wanted - {"array"} if isinstance(value, list) else wanted
            declared: dict[str, Any] = {}
            if isinstance(value, dict):
                declared = declared_properties(self.document, [location, *(each.location for each in here)])
            for rule, after, before in taken_out(value, declared, of_type=bool(inner) or narrowed, at_top=not path):
                yield Mended(after, (Repair(pointer, rule, before, after),))
        if not isinstance(value, list) and any(self.is_item(value, each, path, depth) for each in arrays):
            yield Mended([value], (Repair(pointer, "scalar-for-array", plain(value), [plain(value)]),))

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


def _types(violation: Violation) -> list[str]:
    expected = violation.expected
    return expected if isinstance(expected, list) else [expected]


def _is_of_undeclared(violation: Violation) -> bool:
    """Whether *violation* is of the schema of what an object holds beside what it declares."""
    return violation.location is not None and not _MEMBERS.isdisjoint(violation.location)


_MEMBERS = frozenset({"additionalProperties", "unevaluatedProperties"})
