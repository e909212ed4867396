"""Coerce one value to one schema: its members where they fail, its keys, and the value as a whole.

Every function here returns a list of results: none where the value cannot be repaired, one where it is decided, and
several that differ where it is ambiguous. Ambiguity is kept until the whole is known: another part of the schema may
decide it, and if nothing does, the value is refused. In one branch of a union, impossible counts before ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from skillruntime.contract.coercion.conversions import NUMBERS, read_as, taken_out
from skillruntime.contract.coercion.edit import Edit
from skillruntime.contract.coercion.keys import (
    alike,
    is_schema_echo,
    is_wrapper,
    literal_names,
    may_wrap,
    renames,
    spellings,
    wrapped,
)
from skillruntime.contract.coercion.policy import Policy
from skillruntime.contract.coercion.repair import Repair, Repaired, least, plain
from skillruntime.contract.coercion.scalars import Options, bare, fold_name, is_nothing, listed, pieces, unquoted
from skillruntime.contract.coercion.subschemas import (
    ABSENT,
    declared_properties,
    default_at,
    discriminators,
    in_place,
    item_locations,
    places_of,
    properties_of,
    property_locations,
    subschemas,
)
from skillruntime.contract.pointer import Path, format_pointer, value_at
from skillruntime.contract.schema import Schema, Violation

__all__ = ["Coercer", "OverBudgetError", "is_close"]

BASE_WORK = 3_500
WORK_PER_PART = 4
ROUND_WORK = 3
MAX_NESTED_REPAIRS = 12
MAX_ROUNDS = 6
MAX_OPTIONS = 3
MAX_PLACES = 16
MAX_COMPARED = 40
MAX_LEVELS_TRIED = 16
MISSPELT = 0.75
LEFT_OUT = object()
"""The value of a member that is left out."""

_UNKNOWN = ("additionalProperties", "unevaluatedProperties")
_NEEDED = ("required", "dependentRequired", "dependencies")
_UNQUOTED = ("type", "enum", "const", "format", "pattern")


class OverBudgetError(Exception):
    """The value would take more validator calls than a repair is worth: it is refused."""


class Coercer:
    """The state of one coercion: its schema, its budget of validator calls, and what a refusal can report.

    ``best`` is the value as far as it was repaired; ``unclear`` has the values that one place could mean; ``nearly``
    the numbers that strings write, though they do not fit. *reserved* are the parameters of older versions.
    """

    def __init__(self, schema: Schema, policy: Policy, parts: int, reserved: frozenset[str] = frozenset()) -> None:
        self.schema = schema
        self.references = schema.references
        self.policy = policy
        self.reserved = reserved
        self.work = BASE_WORK + WORK_PER_PART * parts
        self.best: Repaired | None = None
        self.unclear: dict[Path, list[Any]] = {}
        self.nearly: dict[Path, Any] = {}
        self.wrapping: set[tuple[Path, Path]] = set()
        self.around: dict[Path, dict[str, Any]] = {}
        self.doubts = 0
        self.listings: dict[tuple[int, Path], tuple[Any, list[Violation]]] = {}
        self.sizes: dict[int, tuple[Any, int]] = {}
        self.chains: dict[tuple[Path, Path], tuple[int, Path] | None] = {}

    def coerce(self, value: Any, location: Path, path: Path, depth: int = 0) -> list[Repaired]:
        """Return *value*, which is at *path*, coerced to the subschema at *location*, in each way that is possible."""
        if self.fits(value, location):
            return [Repaired(value)]
        if depth > MAX_NESTED_REPAIRS:
            return []
        if not isinstance(value, list) or not value or not self.holds_arrays(location):
            return self.parts_or_whole(value, location, path, depth)
        return self.levels(value, location, path, depth)

    def fits(self, value: Any, location: Path) -> bool:
        """Whether *value* fits the subschema at *location*; each question counts, by the size of the value."""
        self.spend(1 + self.size(value) // 32)
        return self.schema.fits(value, location)

    def violations(self, value: Any, location: Path) -> list[Violation]:
        """Return what is wrong with *value*; each question that takes counts."""
        key = (id(value), location)
        if key in self.listings and self.listings[key][0] is value:
            return self.listings[key][1]
        found = self.schema.violations(value, location, fits=self.fits)
        self.spend(len(found))
        self.listings[key] = value, found
        return found

    def size(self, value: Any) -> int:
        """Return the number of parts of *value*; of one that was counted before without counting again."""
        if not isinstance(value, dict | list):
            return 0
        known = self.sizes.get(id(value))
        if known is None or known[0] is not value:
            members = value.values() if isinstance(value, dict) else value
            known = self.sizes[id(value)] = value, len(value) + sum(map(self.size, members))
        return known[1]

    def spend(self, work: int) -> None:
        """Take *work* from the budget of validator calls.

        Raises:
            OverBudgetError: nothing is left.
        """
        self.work -= work
        if self.work < 0:
            raise OverBudgetError

    def parts_or_whole(self, value: Any, location: Path, path: Path, depth: int) -> list[Repaired]:
        """Coerce the members of *value* as far as they can be, then *value* as a whole."""
        current = Repaired(value)
        violations: list[Violation] = []
        for attempt in range(MAX_ROUNDS):
            self.spend(ROUND_WORK + (5 + len(current.value) // 2 if isinstance(current.value, dict) else 0))
            if attempt and self.fits(current.value, location):
                return self.beside_wrapper(value, current, location, path, depth)
            violations = self.violations(current.value, location)
            options = self.members(current.value, violations, location, path, depth)
            if len(options) > 1:
                return self.decided(self.followed(current, options, location, path, depth), path)
            if not options:
                break
            current = current.then(options[0])
            if not path:
                self.best = current
        here = [violation for violation in violations if not violation.path and violation.location is not None]
        if not here and not (isinstance(current.value, dict) and len(current.value) == 1):
            return []  # what is wrong is in a member, and the object is not a wrapper
        if current.value is not value and isinstance(value, dict) and any(map(may_wrap, value)):
            unwrapped = self.whole(value, here, location, path, depth)
            if unwrapped:
                return unwrapped  # of the value as it was sent: what is wrapped may fit as it is
        return [current.then(each) for each in self.whole(current.value, here, location, path, depth)]

    def beside_wrapper(self, value: Any, repaired: Repaired, location: Path, path: Path, depth: int) -> list[Repaired]:
        """Return *repaired*, and what comes of the inside of *value* where a key of it may be a wrapper.

        ``{"kwargs": {"value": 5}}`` for an object that takes any integers is a wrapper too.
        """
        if path or not isinstance(value, dict) or len(value) > 2:
            return [repaired]
        declared = declared_properties(self.references, [location])
        if not any(may_wrap(name) for name in value):
            return [repaired]
        unwrapped = self.whole(value, [], location, path, depth)
        for name in value if len(value) == 1 else ():
            inside = wrapped(value[name])
            if name in declared and isinstance(inside, dict) and name in inside:
                unwrapped += self.coerce(inside, location, path, depth + 1)
        return self.decided([repaired, *unwrapped], path)

    def followed(
        self, current: Repaired, options: list[Repaired], location: Path, path: Path, depth: int
    ) -> list[Repaired]:
        """Return what *current* comes to with each of *options* for one of its members."""
        return [
            current.then(option).then(each)
            for option in options
            for each in self.coerce(option.value, location, path, depth + 1)
        ]

    def decided(self, results: list[Repaired], path: Path) -> list[Repaired]:
        """Return the *results* that differ; where there are several, note the values that *path* could mean."""
        distinct = least(results)[:MAX_OPTIONS]
        if len(distinct) > 1:
            self.unclear[path] = [result.value for result in distinct]
        return distinct

    # Arrays of arrays: where a level of brackets is missing, it may be missing at each array of the chain.

    def holds_arrays(self, location: Path) -> bool:
        """Whether the items of an array at *location* may be arrays themselves, directly or by a union."""
        for _, schema in in_place(self.references, item_locations(self.references, location)):
            types = schema.get("type")
            if types == "array" or (isinstance(types, list) and "array" in types):
                return True
        return False

    def array_chain(self, location: Path, where: Path) -> tuple[Path, Path] | None:
        """Return the outermost array of arrays on the way to *where*, inside a member, and the subschema of it."""
        key = (location, tuple(min(token, MAX_PLACES) if isinstance(token, int) else token for token in where))
        if key not in self.chains:
            self.chains[key] = None
            for length in range(1, len(where)):
                if isinstance(where[length], int):
                    places = places_of(self.references, location, key[1][:length])
                    place = next((each for each in places if self.holds_arrays(each)), None)
                    if place is not None:
                        self.chains[key] = length, place
                        break
        found = self.chains[key]
        return None if found is None else (where[: found[0]], found[1])

    def levels(self, value: list[Any], location: Path, path: Path, depth: int) -> list[Repaired]:
        """Coerce the array *value*, item by item or with one level of brackets around it.

        ``[1, 2]`` for an array of arrays is ``[[1], [2]]`` or ``[[1, 2]]``; only bounds of the schema can decide.
        """
        around: list[Repaired] = []
        if (path, location) not in self.wrapping:
            self.wrapping.add((path, location))
            repair = Repair(format_pointer(path), "scalar-for-array", value, [value])
            around = [
                Repaired([value], (repair,)).then(each)
                for each in self.coerce([value], location, path, depth + 1)
                if not any(inner.rule == "array-of-one" for inner in each.repairs)  # a level more, a level less
            ]
            self.wrapping.discard((path, location))
        if around and len(value) > MAX_LEVELS_TRIED:
            first = self.parts_or_whole(value[:MAX_LEVELS_TRIED], location, path, depth)
            if any(_changes_level(each, path, value, _ADDING) for each in first):
                return self.decided([*around, *first], path)
        by_items = self.parts_or_whole(value, location, path, depth)
        if len(value) == 1 and any(_changes_level(each, path, value, _REMOVING) for each in by_items):
            repair = Repair(format_pointer(path), "array-of-one", value, value[0])
            inside = self.coerce(value[0], location, path, depth + 1)
            return self.decided([*by_items, *(Repaired(value[0], (repair,)).then(each) for each in inside)], path)
        if by_items and not any(_changes_level(each, path, value, _ADDING) for each in by_items):
            return by_items
        if around and not by_items and (self.is_tuple(location) or not self.lacks_level(value, location)):
            return []
        return self.decided([*by_items, *around], path)

    def is_tuple(self, location: Path) -> bool:
        """Whether the items at *location* have places of their own."""
        return any(len(schema.get("prefixItems") or ()) > 1 for _, schema in in_place(self.references, [location]))

    def lacks_level(self, value: list[Any], location: Path) -> bool:
        """Whether an item of *value* is refused because it is not an array, and none may be several in a string."""
        lacking = [each.value for each in self.violations(value, location) if _lacks_level(each)]
        is_several = any(isinstance(item, str) and (len(pieces(item)) > 1 or _is_container(item)) for item in lacking)
        return bool(lacking) and not is_several

    # The members of an object or array: each is coerced by the subschema that refuses it.

    def members(
        self, value: Any, violations: list[Violation], location: Path, path: Path, depth: int
    ) -> list[Repaired]:
        """Return *value* with what can be repaired inside it: one result, or several if a member is ambiguous.

        The repairs that are certain come first, then ambiguous members, and defaults at the very end: a key that is
        renamed or left out may make a default needless.
        """
        if not isinstance(value, dict | list):
            return []
        edit = Edit(value)
        repairs: list[Repair] = []
        refusals: dict[tuple[Path, Path], list[Violation]] = {}
        for violation in violations:
            if violation.path and violation.location is not None:
                refusals.setdefault((violation.path, violation.location), []).append(violation)
        here = [violation for violation in violations if not violation.path]
        kept: set[str] = set()
        if isinstance(value, dict):
            misspelt = self.misspelt(value, violations, location)
            kept = {name for name in misspelt if self.fits_as_it_is_called(value, name, refusals, path, depth)}
            is_pair = len(value) == 2 and "value" in value
            if is_pair and _is_unclear_echo(value, declared_properties(self.references, [location])):
                return []
            repairs += self.keys(edit, here, location, path, misspelt - kept)
        ambiguous: list[tuple[Path, list[Repaired]]] = []
        is_impossible = False
        chains: set[Path] = set()
        for (where, refuser), same in refusals.items():
            if where[0] in kept:
                is_impossible = True
                self.doubts += 1
                continue
            if any(where[: len(chain)] == chain for chain in chains):
                continue
            chain = self.array_chain(location, where)
            if chain is not None:  # the outermost array decides where brackets are missing
                where, refuser = chain
                same = []
                chains.add(where)
            else:
                renamed = self.renamed(edit, where, refuser, path, depth)
                if renamed is not None:
                    repairs += renamed
                    is_impossible = is_impossible or not renamed
                    self.doubts += not renamed
                    continue
            found = self.member(edit, where, refuser, same, path, depth)
            if len(found) == 1:
                _put(edit, where, found[0])
                repairs += found[0].repairs
            elif found:
                ambiguous.append((where, found))
            else:
                is_impossible = True
        if not repairs and not ambiguous and isinstance(value, dict):
            repairs += self.defaults(edit, here, location, path)
        if repairs:
            return [Repaired(edit.value, tuple(repairs))]
        if ambiguous and not is_impossible:
            where, found = ambiguous[0]
            return [_with(value, where, option) for option in found]
        return []

    def misspelt(self, value: dict[str, Any], violations: list[Violation], location: Path) -> set[str]:
        """Return the undeclared keys whose values are refused and that are a declared one in other letters.

        ``maxItems`` in a map of strings, where ``max_items`` is declared.
        """
        names = {str(each.path[0]) for each in violations if each.path and _is_of_undeclared(each)}
        if not names:
            return names
        schemas = [schema for _, schema in in_place(self.references, [location])]
        declared = declared_properties(self.references, [location])
        return {name for name in names if name not in declared and self.may_mean(name, declared, value, schemas)}

    def may_mean(
        self, name: str, declared: Mapping[str, Any], present: Mapping[str, Any], schemas: Iterable[dict[str, Any]]
    ) -> bool:
        """Whether the undeclared *name* is a declared one in other letters, or close to one that is absent.

        A pattern of *schemas* declares names as well: ``X_rate`` in other letters is one of ``^x_``.
        """
        patterns = {pattern for schema in schemas for pattern in properties_of(schema, "patternProperties")}
        named = {*declared, *(each for pattern in patterns for each in literal_names(pattern))}
        if name in named:
            return False
        absent = [each for each in named if each not in present]
        self.spend(len(absent) // 2 + len(patterns))  # comparing two names takes about half as long as a validator call
        if alike([name], named) or any(is_close(name, each) for each in absent):
            return True
        matches = self.schema.name_matches
        return any(
            not matches(pattern, name) and any(matches(pattern, each) for each in spellings(name))
            for pattern in patterns
        )

    def fits_as_it_is_called(
        self,
        value: dict[str, Any],
        name: str,
        refusals: dict[tuple[Path, Path], list[Violation]],
        path: Path,
        depth: int,
    ) -> bool:
        """Whether the value under a misspelt key can be repaired under that key too: then either may be meant."""
        refusers = [refuser for where, refuser in refusals if where == (name,)]
        return not refusers or any(self.coerce(value[name], each, (*path, name), depth + 1) for each in refusers)

    def renamed(self, edit: Edit, where: Path, refuser: Path, path: Path, depth: int) -> list[Repair] | None:
        """Rename a misspelt key on the way to *where*, inside a member; ``None`` if there is none.

        Where the key can be an extra one as well, or could mean several, nothing is renamed.
        """
        if len(where) < 2 or _MEMBERS.isdisjoint(refuser):
            return None
        for length in range(1, len(where)):
            try:
                parent = value_at(edit.value, where[:length])
            except LookupError:
                return []  # left out or renamed by an earlier repair
            if not isinstance(parent, dict):
                continue
            schemas = subschemas(self.references, (*path, *where[:length]))
            declared: dict[str, Any] = {}
            for schema in schemas:
                declared |= properties_of(schema)
            name = str(where[length])
            if name in declared or name not in parent or not self.may_mean(name, declared, parent, schemas):
                continue
            meant = renames([key for key in parent if key not in declared], declared, parent)
            is_extra = length == len(where) - 1 and self.coerce(parent[name], refuser, (*path, *where), depth + 1)
            if name not in meant or is_extra:
                return []
            edit.rename(name, meant[name], where[:length])
            return [Repair(format_pointer((*path, *where[:length], name)), "key-name", name, meant[name])]
        return None

    def member(
        self, edit: Edit, where: Path, location: Path, same: list[Violation], path: Path, depth: int
    ) -> list[Repaired]:
        """Coerce what is at *where*, which the subschema at *location* refuses by the violations *same*."""
        try:
            part = value_at(edit.value, where)
        except LookupError:
            return [Repaired(LEFT_OUT)]  # left out or renamed by an earlier repair
        whole = (*path, *where)
        is_union = isinstance(part, dict) and all(each.keyword in ("anyOf", "oneOf") for each in same)
        if same and part is same[0].value and (is_union or not isinstance(part, dict | list)):
            results = self.whole(part, same, location, whole, depth + 1)  # its violations are known already
        else:
            results = self.coerce(part, location, whole, depth + 1)
        if results:
            return results
        is_null = is_nothing(part, more_words=self.policy.more_words)
        if is_null and self.is_property(whole) and (part is None or not self.fits(None, location)):
            return [Repaired(LEFT_OUT, (Repair(format_pointer(whole), "null-optional", part, None),))]
        return []

    def is_property(self, path: Path) -> bool:
        """Whether *path* leads to a declared property: not to an item, or to a key that is itself data."""
        return any(path[-1] in properties_of(schema) for schema in subschemas(self.references, path[:-1]))

    # The keys of an object: renamed, left out, filled by a default.

    def keys(
        self, edit: Edit, here: list[Violation], location: Path, path: Path, misspelt: set[str]
    ) -> Iterator[Repair]:
        """Rename the keys that mean a declared one, and leave out those that may be."""
        unknown = {name for violation in here if violation.keyword in _UNKNOWN for name in violation.names} | misspelt
        missing = _missing(here)
        if not unknown and not missing:
            return
        value = edit.value
        declared = declared_properties(self.references, [location, *(violation.location for violation in here)])
        candidates = unknown or {name for name in value if name not in declared}
        meant = renames(candidates, declared, value)
        for old, new in meant.items():
            if old in unknown or new in missing:
                edit.rename(old, new)
                yield Repair(format_pointer((*path, old)), "key-name", old, new)
        schemas = [schema for _, schema in in_place(self.references, [location])]
        stays = any(name in declared and not is_nothing(member) for name, member in edit.value.items())
        for name in sorted(unknown - meant.keys()):
            rule = None
            self.doubts += bool(alike([name], declared))
            may_stay = path or not stays or is_wrapper(value, name, declared)
            if name == "" and not path and value[name] in ("", None, {}, []):
                rule = "empty-key"
            elif may_stay or self.may_mean(name, declared, value, schemas):
                continue
            elif value[name] is None and name not in self.reserved:
                rule = "unknown-null"
            elif self.policy.on_unknown == "drop":
                rule = "unknown-key"
            if rule is not None:
                edit.leave_out((name,))
                yield Repair(format_pointer((*path, name)), rule, value[name], None)

    def defaults(self, edit: Edit, here: list[Violation], location: Path, path: Path) -> Iterator[Repair]:
        """Fill in the default of each required property that is absent, unless another key may be meant for it."""
        value = edit.value
        absent = sorted(_missing(here) - value.keys())
        locations = [location, *(violation.location for violation in here)]
        declared = declared_properties(self.references, locations)
        if not absent or any(is_wrapper(value, name, declared) for name in value):
            return  # what is wrapped may hold what is absent
        others = [key for key in value if key not in declared]
        if not path and any(key in self.reserved or self.is_reserved(key) for key in others):
            return  # the caller may mean a parameter of an older version
        places = property_locations(self.references, locations, choices=False)
        wrapping = [key for key in value if may_wrap(key)]
        for name in absent:
            default = default_at(self.references, places.get(name, ()))
            if default is ABSENT:
                continue
            self.spend(1 + len(others))  # each comparison of two names costs about as much as a validator call
            if any(_holds(value[key], name) for key in (*others, *wrapping)):
                continue  # the default's parameter may be in there
            if not any(is_close(key, name) for key in others):
                edit.put((name,), default)
                yield Repair(format_pointer((*path, name)), "default", None, default)

    def is_reserved(self, key: str) -> bool:
        """Whether *key* may be a misspelt parameter of an older version."""
        return any(is_close(key, name) for name in self.reserved)

    # The value as a whole: converted, wrapped, taken out of what is around it, or coerced by one branch of a union.

    def whole(self, value: Any, here: list[Violation], location: Path, path: Path, depth: int) -> list[Repaired]:
        """Return what *value* as a whole can become."""
        results: list[Repaired] = []
        for candidate in (
            *self.converted(value, here, path, depth),
            *self.reshaped(value, here, location, path, depth),
        ):
            found = self.coerce(candidate.value, location, path, depth + 1)
            rule = candidate.repairs[-1].rule
            if rule == "container-text":
                found = [each for each in found if not _converts_items(each, path)]
            results += [candidate.then(each) for each in found]
            if not found and rule in NUMBERS:
                self.nearly[path] = candidate.value
        return self.decided(results, path)

    def converted(self, value: Any, here: list[Violation], path: Path, depth: int) -> Iterator[Repaired]:
        """Yield *value* read as another type, as a member of an enum, or coerced by one branch of a union."""
        pointer = format_pointer(path)
        for violation in here:
            match violation.keyword:
                case "anyOf" | "oneOf" if isinstance(violation.expected, list):
                    yield from self.branches(value, violation, path, depth)
                case "enum" | "const":
                    for after in self.options(violation).meant_by(value):
                        yield Repaired(after, (Repair(pointer, "enum-value", plain(value), after),))
                case "type":
                    for wanted in _types(violation):
                        for rule, after in read_as(wanted, value, more_words=self.policy.more_words):
                            yield Repaired(after, (Repair(pointer, rule, plain(value), after),))
        if isinstance(value, str) and any(violation.keyword in _UNQUOTED for violation in here):
            inside = unquoted(value)
            if inside is not None:
                yield Repaired(inside, (Repair(pointer, "quoted-text", value, inside),))

    def branches(self, value: Any, union: Violation, path: Path, depth: int) -> Iterator[Repaired]:
        """Yield *value* as each branch of *union* can have it."""
        assert union.location is not None
        before = self.around.get(path)
        if isinstance(value, dict):
            self.around[path] = {**(before or {}), **declared_properties(self.references, [union.location])}
            if any(map(_may_hold_members, union.expected)):
                self.around[path].setdefault("value", {})  # {"value": 5} may be an object of another branch
        results: list[Repaired] = []
        is_doubtful = False
        for branch in self.possible_branches((*union.location, union.keyword), len(union.expected), value):
            doubts = self.doubts
            found = self.coerce(value, branch, path, depth + 1)
            results += [result for result in found if result.repairs]
            is_doubtful = is_doubtful or (not found and self.doubts > doubts)
        if not is_doubtful:  # a branch whose key could mean several is not ruled out, so another is not taken for it
            yield from results
        if before is None:
            self.around.pop(path, None)
        else:
            self.around[path] = before

    def possible_branches(self, union: Path, count: int, value: Any) -> list[Path]:
        """Return the branches of *union* that *value* may be of: not those where a member of it has another constant.

        A union of fifty tagged objects is decided by the tag, not by fifty attempts.
        """
        every = [(*union, index) for index in range(count)]
        if not isinstance(value, dict):
            return every
        known = self.references.known
        if ("constants", union) not in known:
            constants = [discriminators(self.references, branch) for branch in every]
            tags = [name for name in constants[0] if all(name in each for each in constants)]
            by_text: dict[str, list[int]] = {}
            for index, each in enumerate(constants if tags else ()):
                for text in dict.fromkeys(map(bare, each[tags[0]])):
                    by_text.setdefault(text, []).append(index)
            options = [{name: Options(allowed) for name, allowed in each.items()} for each in constants]
            known["constants", union] = options, tags[:1], by_text
        options, tags, by_text = known["constants", union]
        meant: Sequence[int] = range(count)
        if tags and isinstance(value.get(tags[0]), str):
            meant = by_text.get(bare(value[tags[0]]), ())
        return [
            every[index]
            for index in meant
            if all(
                each.meant_by(value[name]) for name, each in options[index].items() if isinstance(value.get(name), str)
            )
        ]

    def options(self, violation: Violation) -> Options:
        """Return the members of the enum that *violation* is of, or its one constant, ready to be asked."""
        allowed = violation.expected if violation.keyword == "enum" else [violation.expected]
        if violation.keyword == "const" or violation.location is None:
            return Options(allowed)
        known = self.references.known
        if ("options", violation.location) not in known:
            known["options", violation.location] = Options(allowed)
        found: Options = known["options", violation.location]
        return found

    def reshaped(self, value: Any, here: list[Violation], location: Path, path: Path, depth: int) -> Iterator[Repaired]:
        """Yield *value* in a container or out of one: wrapped into an array, taken out of an array or an object."""
        pointer = format_pointer(path)
        arrays = [each for each in here if each.keyword == "type" and "array" in _types(each)]
        wanted = {name for each in here if each.keyword == "type" for name in _types(each)}
        narrowed = any(violation.keyword in ("enum", "const") for violation in here)
        if value == [] and not path and "object" in wanted:
            yield Repaired({}, (Repair(pointer, "empty-arguments", value, {}),))
        elif isinstance(value, dict | list):
            yield from self.unwrapped(value, here, location, path, wanted, narrowed)
        for each in arrays:
            assert each.location is not None
            items = listed(value, self.item_schemas(each)) if isinstance(value, str) else None
            places = item_locations(self.references, each.location)
            if items is not None and not any(self.fits(value, place) for place in places):
                yield Repaired(items, (Repair(pointer, "comma-list", value, items),))
        if not isinstance(value, list) and any(self.is_item(value, each, path, depth) for each in arrays):
            yield Repaired([value], (Repair(pointer, "scalar-for-array", plain(value), [plain(value)]),))

    def unwrapped(
        self,
        value: dict[str, Any] | list[Any],
        here: list[Violation],
        location: Path,
        path: Path,
        wanted: set[str],
        narrowed: bool,
    ) -> Iterator[Repaired]:
        """Yield what *value* holds alone: the one item of an array, the inside of a wrapper or of an echoed schema."""
        inner = wanted - {"array"} if isinstance(value, list) else wanted
        locations = [location, *(each.location for each in here)]
        declared = declared_properties(self.references, locations)
        required = set[str]()
        schema: dict[str, Any] = {}
        for _, each in in_place(self.references, locations, choices=False):
            schema = {**each, **schema}
            names = each.get("required")
            required |= set(names) if isinstance(names, list) and not path else set()
        places = property_locations(self.references, locations, choices=False) if required else {}
        needed = {name for name in required if default_at(self.references, places.get(name, ())) is ABSENT}
        found = taken_out(
            value,
            {**declared, **self.around.get(path, {})},
            of_type=bool(inner) or narrowed,
            needed=None if path else needed,
            wants_text="string" in inner,
            schema=schema,
        )
        for rule, after, before in found:
            if rule != "schema-echo" or path[-1:] != ("value",) or len(value) > 1:  # else the inside of an echo
                yield Repaired(after, (Repair(format_pointer(path), rule, before, after),))

    def item_schemas(self, violation: Violation) -> list[dict[str, Any]]:
        """Return the subschemas that judge the items of the array that *violation* asks for."""
        assert violation.location is not None
        places = item_locations(self.references, violation.location)
        return [schema for _, schema in in_place(self.references, places)]

    def is_item(self, value: Any, violation: Violation, path: Path, depth: int) -> bool:
        """Whether *value* is one item and nothing else: not nothing, not several, not the whole array in a string."""
        assert violation.location is not None
        if len(violation.schema.get("prefixItems") or ()) > 1 or is_nothing(value, more_words=self.policy.more_words):
            return False
        match value:
            case dict():
                is_array = any(
                    isinstance(each, list) and self.fits(each, violation.location) for each in value.values()
                )
                return bool(value) and not is_array and _is_object_of(value, self.item_schemas(violation))
            case str() if _is_container(value):
                return False
            case str() if not value.strip(_QUOTES) or _is_container(value.strip(_QUOTES)):
                return False  # an empty string or an array, in quotes of its own
            case str():
                parts = pieces(value)
                items = (*violation.location, "items")
                return len(parts) == 1 or (
                    "items" in violation.schema and any(not self.coerce(part, items, path, depth + 1) for part in parts)
                )
        return True


def is_close(name: str, other: str) -> bool:
    """Whether one name may be a misspelling of the other.

    >>> is_close("limt", "limit"), is_close("Limit", "limit"), is_close("note", "limit")
    (True, True, False)
    """
    if fold_name(name) == fold_name(other):
        return True
    import difflib  # only for keys that do not fit

    if abs(len(name) - len(other)) > max(len(name), len(other)) // 2:
        return False  # a ratio of 0.75 needs the shorter to be three fifths of the longer
    pair = difflib.SequenceMatcher(None, name[:MAX_COMPARED].casefold(), other[:MAX_COMPARED].casefold())
    return pair.quick_ratio() >= MISSPELT and pair.ratio() >= MISSPELT


def _holds(value: Any, name: str) -> bool:
    """Whether *value*, under an undeclared key, has a member *name*: then it may wrap the arguments."""
    inside = wrapped(value) if isinstance(value, str | dict) else None
    return isinstance(inside, dict) and name in inside


_QUOTES = " \t\r\n\\\"'`\u2018\u2019\u201c\u201d\u300c\u300d"


def _is_container(text: str) -> bool:
    """Whether *text* may be an array or object in a string, whole or broken."""
    return text.lstrip()[:1] in ("[", "{", "(", "\uff3b", "\uff5b", "\u3010") or text.rstrip()[-1:] in ("]", "}")


def _may_hold_members(branch: Any) -> bool:
    """Whether *branch* of a union may take objects or arrays; a reference may."""
    types = branch.get("type") if isinstance(branch, dict) else None
    if types is None:
        return not (isinstance(branch, dict) and ("enum" in branch or "const" in branch))
    return not {"object", "array"}.isdisjoint(types if isinstance(types, list) else [types])


def _is_unclear_echo(value: dict[str, Any], declared: Mapping[str, Any]) -> bool:
    """Whether *value* echoes a schema around a value, or is an object with a member of that name."""
    return "value" in declared and "type" not in declared and is_schema_echo(value, {})


def _is_object_of(value: dict[str, Any], items: Iterable[dict[str, Any]]) -> bool:
    """Whether *value* is one of the objects that *items* describe, and not a map of them."""
    if all(map(str.isdecimal, value)):
        return False  # {"0": ..., "1": ...} is an array in another form
    if len(value) == 2 and is_schema_echo(value, {}):
        return False  # {"type": "integer", "value": 0} is a value in the form of its schema
    declared = {name for schema in items for name in properties_of(schema)}
    if declared:
        return any(name in declared or any(is_close(name, each) for each in declared) for name in value)
    types = [schema.get("type") for schema in items if "type" in schema]
    takes_objects = any(each == "object" or (isinstance(each, list) and "object" in each) for each in types)
    return takes_objects and not all(isinstance(member, dict) for member in value.values())


def _missing(here: list[Violation]) -> set[str]:
    return {name for violation in here if violation.keyword in _NEEDED for name in violation.names}


def _put(edit: Edit, where: Path, result: Repaired) -> None:
    """Write *result* to *where*; a member that was left out before has no repairs."""
    if result.value is not LEFT_OUT:
        if result.repairs:
            edit.put(where, result.value)
    elif result.repairs:
        edit.leave_out(where)


def _with(value: Any, where: Path, option: Repaired) -> Repaired:
    edit = Edit(value)
    _put(edit, where, option)
    return Repaired(edit.value, option.repairs)


_ADDING = frozenset({"scalar-for-array", "container-text"})
_REMOVING = frozenset({"array-of-one"})


def _changes_level(result: Repaired, path: Path, value: Any, rules: frozenset[str]) -> bool:
    """Whether *result* repairs something inside *value*, below nothing but arrays, by one of *rules*."""
    for repair in result.repairs:
        if repair.rule in rules:
            part, inside = value, repair.path[len(format_pointer(path)) :].split("/")[1:]
            for token in inside:
                if not isinstance(part, list) or not token.isdecimal() or int(token) >= len(part):
                    break
                part = part[int(token)]
            else:
                return bool(inside)
    return False


def _lacks_level(violation: Violation) -> bool:
    """Whether *violation* is of an item, below nothing but arrays, that should be an array."""
    if not violation.path or not all(isinstance(token, int) for token in violation.path):
        return False
    is_array = violation.keyword == "type" and "array" in _types(violation)
    return not isinstance(violation.value, list) and (is_array or violation.keyword in ("anyOf", "oneOf"))


def _converts_items(result: Repaired, path: Path) -> bool:
    """Whether the numbers of a list in a string became strings: ``"[1, 2]"`` may be a string of that list's own."""
    start = format_pointer(path) + "/"
    return any(
        repair.rule == "number-for-text"
        and repair.path.startswith(start)
        and repair.path[len(start) :].isdecimal()
        and isinstance(result.value, list)
        for repair in result.repairs
    )


def _types(violation: Violation) -> list[str]:
    expected = violation.expected
    return expected if isinstance(expected, list) else [expected]


def _is_of_undeclared(violation: Violation) -> bool:
    """Whether *violation* is of the schema of what an object holds beside what it declares."""
    return violation.location is not None and not _MEMBERS.isdisjoint(violation.location)


_MEMBERS = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties"})
