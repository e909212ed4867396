"""Coerce one value to one schema: as a whole, and its keys and members where they fail.

Every function here returns a list of results: none where the value cannot be repaired,
one where it is decided, and several that differ where it is ambiguous. Ambiguity is
kept until the whole is known: another part of the schema may decide it, and if nothing
does, the value is refused. In one branch of a union, impossible counts before
ambiguous.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from skillruntime.contract.repairs.keys import (
    TYPES,
    close_names,
    fold_name,
    is_wrapper,
    may_wrap,
    renames,
    wrapped,
)
from skillruntime.contract.repairs.scalars import converted, is_nothing
from skillruntime.contract.repairs.state import Coercion, Edit, Policy, Repair, Repaired
from skillruntime.contract.repairs.unions import may_be_said
from skillruntime.contract.repairs.whole_value import whole
from skillruntime.contract.schemas.pointer import Path, format_pointer, value_at
from skillruntime.contract.schemas.references import properties_of
from skillruntime.contract.schemas.schema import Schema, Violation
from skillruntime.contract.schemas.subschemas import (
    ABSENT,
    EACH_ALONE,
    declared_properties,
    default_at,
    in_place,
    places_of,
    property_locations,
    subschemas,
)

MAX_DEPTH = 16
# How deep an unknown key is looked through for parameters before it is left out.
MAX_LEVELS_HELD = 3
# What one round costs beside its validator calls.
ROUND_WORK = 2
_UNKNOWN = ("additionalProperties", "unevaluatedProperties")
_NEEDED = ("required", "dependentRequired", "dependencies")
# What is refused below these may fit once the member that decides is repaired.
_CONDITIONAL = frozenset({"then", "else", "dependentSchemas"})
_LEFT_OUT = object()
# The keywords of a number or boolean that leave a text in its place one meaning: no
# enum, format or reference.
_OF_NUMBERS = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *EACH_ALONE,
    }
)


def with_texts_read(value: Any, schema: Schema) -> Repaired | None:
    """Return the arguments *value* with texts read as numbers and booleans; ``None``
    where that is not all they need.

    The commonest repair, where each property is judged alone and no key that was sent
    is one that may wrap all arguments: then such a text has no second meaning. A
    coercion comes to the same, in three times the time.
    """
    kinds = schema.references.once(_kinds_alone, lambda: _kinds_alone(schema.document))
    if not isinstance(value, dict) or not value.keys() <= kinds.keys():
        return None
    made, repairs = dict(value), list[Repair]()
    for name, member in value.items():
        if isinstance(member, str) and kinds[name] in ("integer", "number", "boolean"):
            for rule, after in converted(kinds[name], member):
                made[name] = after
                repairs.append(Repair(format_pointer((name,)), rule, member, after))
    return Repaired(made, tuple(repairs)) if repairs and schema.is_valid(made) else None


def _kinds_alone(document: Any) -> dict[str, Any]:
    """Return the type of each property, where properties are judged one by one;
    ``None`` if one asks for more.
    """
    if not isinstance(document, dict) or not document.keys() <= EACH_ALONE:
        return {}
    return {
        name: each.get("type")
        if isinstance(each, dict) and each.keys() <= _OF_NUMBERS
        else None
        for name, each in properties_of(document).items()
        if not may_wrap(name)
    }


def begin(
    schema: Schema, policy: Policy, parts: int, reserved: frozenset[str] = frozenset()
) -> Coercion:
    """Return a coercion by *schema* of a value of that many *parts*."""
    return Coercion(schema, policy, parts, reserved, _coerce)


def _coerce(
    state: Coercion, value: Any, location: Path, path: Path, depth: int
) -> list[Repaired]:
    """Return *value*, which is at *path*, coerced to the subschema at *location*, in
    each way that is possible.
    """
    if state.fits(value, location):
        return [Repaired(value)]
    # Each step inside a step needs a repair of its own; a chain of a dozen is a
    # coincidence, not a reading. A scalar that was converted there and back is where it
    # was.
    key = (
        None if isinstance(value, dict | list) else (location, path, type(value), value)
    )
    if depth > MAX_DEPTH or key in state.converting:
        return []
    if key is None:
        return _coerce_misfit(state, value, location, path, depth)
    state.converting.add(key)
    found = _coerce_misfit(state, value, location, path, depth)
    state.converting.discard(key)
    return found


def _coerce_misfit(
    state: Coercion, value: Any, location: Path, path: Path, depth: int
) -> list[Repaired]:
    violations = state.violations(value, location)
    here = [violation for violation in violations if not violation.path]
    results = whole(state, value, here, location, path, depth)
    if isinstance(value, dict | list):
        state.spend(ROUND_WORK)
        for option in _members(state, value, violations, location, path, depth):
            if not path:
                state.best = option
            results += [
                option.then(each)
                for each in state.coerce(option.value, location, path, depth + 1)
            ]
    if results and isinstance(value, dict) and len(value) == 1:
        results += _inside(state, value, location, path, depth)
    return state.decided(results)


def _inside(
    state: Coercion, value: dict[str, Any], location: Path, path: Path, depth: int
) -> list[Repaired]:
    """Return what the object under the one key of *value* becomes, if models may wrap
    all arguments in that key.

    ``{"kwargs": {"value": 5}}`` for an object that takes any integers is a wrapper too,
    or the entry ``kwargs``.
    """
    [(name, content)] = value.items()
    inside = wrapped(content)
    if not may_wrap(name) or not isinstance(inside, dict):
        return []
    repair = Repair(format_pointer(path), "wrapper-object", value, None)
    return [
        Repaired(inside, (repair,)).then(each)
        for each in state.coerce(inside, location, path, depth + 1)
    ]


def _members(
    state: Coercion,
    value: Any,
    violations: list[Violation],
    location: Path,
    path: Path,
    depth: int,
) -> list[Repaired]:
    """Return *value* with what can be repaired inside it; nothing if a member cannot
    be, or in several ways.

    Defaults come at the very end: a key that is renamed or left out may make one
    needless.
    """
    # A copy, made where something changes: the caller's value is never touched.
    edit = Edit(value)
    repairs: list[Repair] = []
    here = [violation for violation in violations if not violation.path]
    if isinstance(value, dict):
        if _is_typed_value(value, declared_properties(state.references, [location])):
            state.doubts += 1
            return []
        repairs += _repaired_keys(state, edit, here, location, path)
    is_impossible = False
    for (where, refuser), same in _refusals(state, value, violations, location).items():
        if _is_misspelt(state, value, where, path) or _may_be_unwrapped(
            state, value, where, location
        ):
            found = []
            state.doubts += 1
        else:
            found = _member(state, edit, where, refuser, same, path, depth)
        if len(found) == 1:
            _put(edit, where, found[0])
            repairs += found[0].repairs
        else:  # nothing, or several: which of them is meant is unknown
            is_impossible = True
            state.doubts += bool(found)
    if is_impossible:
        if repairs and not path:
            state.best = Repaired(edit.value)
        return []
    # After all other repairs: a renamed key may be the one that is missing.
    if not repairs and isinstance(value, dict):
        repairs += _fill_defaults(state, edit, here, location, path)
    return [Repaired(edit.value, tuple(repairs))] if repairs else []


def _is_typed_value(value: dict[str, Any], declared: Mapping[str, Any]) -> bool:
    """Whether *value* may be one value in the form of its schema, ``{"type": "integer",
    "value": 0}``: not repaired.
    """
    return (
        value.keys() == {"type", "value"}
        and "type" not in declared
        and value["type"] in TYPES
    )


def _refusals(
    state: Coercion, value: Any, violations: list[Violation], location: Path
) -> dict[tuple[Path, Path], list[Violation]]:
    """Return the parts inside *value* that are refused, each with the subschema that
    refuses it, and by what.

    An object on the way to a part that may be a wrapper is coerced itself: what is in
    it, or what it is, may be wrong.
    """
    inside = [violation for violation in violations if violation.path]
    found: dict[tuple[Path, Path], list[Violation]] = {}
    for violation in [
        each for each in inside if _CONDITIONAL.isdisjoint(each.location)
    ] or inside:
        where, refuser, same = violation.path, violation.location, [violation]
        for length in range(1, len(where)):
            part = value_at(value, where[:length])
            if isinstance(part, dict) and any(map(may_wrap, part)):
                places = places_of(state.references, location, where[:length])
                if places:
                    where, refuser, same = where[:length], places[0], []
                break
        found.setdefault((where, refuser), []).extend(same)
    return found


def _member(
    state: Coercion,
    edit: Edit,
    where: Path,
    location: Path,
    same: list[Violation],
    path: Path,
    depth: int,
) -> list[Repaired]:
    """Coerce what is at *where*, which the subschema at *location* refuses by the
    violations *same*.
    """
    try:
        part = value_at(edit.value, where)
    except LookupError:
        return [Repaired(_LEFT_OUT)]  # left out or renamed by an earlier repair
    inside = (*path, *where)
    if same and part is same[0].value and not isinstance(part, dict | list):
        results = whole(
            state, part, same, location, inside, depth + 1
        )  # its violations are known already
    else:
        results = state.coerce(part, location, inside, depth + 1)
    if results or not is_nothing(part):
        return results
    is_said = may_be_said(state.references, part, [location]) or _is_opposite(
        state, part, inside
    )
    is_optional = any(
        inside[-1] in properties_of(schema)
        for schema in subschemas(state.references, inside[:-1])
    )
    if is_optional and not is_said and (part is None or not state.fits(None, location)):
        return [
            Repaired(
                _LEFT_OUT,
                (Repair(format_pointer(inside), "null-optional", part, None),),
            )
        ]
    return []


def _is_opposite(state: Coercion, value: Any, path: Path) -> bool:
    """Whether *value*, at *path*, is the word ``none``, and its declared default is
    something.

    ``"None"`` is how Python writes null, so that it says nothing; ``"none"`` may mean
    none of them.
    """
    if not isinstance(value, str) or value.strip() != "none":
        return False
    defaults = [
        schema["default"]
        for schema in subschemas(state.references, path)
        if "default" in schema
    ]
    return any(
        default not in (None, "", [], {}) and default is not False
        for default in defaults
    )


def _put(edit: Edit, where: Path, result: Repaired) -> None:
    """Write *result* to *where*; a member that was left out before has no repairs."""
    if not result.repairs:
        return
    if result.value is _LEFT_OUT:
        edit.leave_out(where)
    else:
        edit.put(where, result.value)


def _is_misspelt(state: Coercion, value: Any, where: Path, path: Path) -> bool:
    """Whether a key on the way to *where* is not declared, and may be a declared one in
    other letters.

    ``maxItems`` in a map of strings, where ``max_items`` is declared. Beside patterns
    every key that matches none may be meant as one that matches.
    """
    for length, token in enumerate(where):
        parent = value_at(value, where[:length])
        if not isinstance(parent, dict):
            continue
        name = str(token)
        schemas = subschemas(state.references, (*path, *where[:length]))
        if any(name in properties_of(schema) for schema in schemas):
            continue
        declared = {each for schema in schemas for each in properties_of(schema)}
        patterns = {
            each
            for schema in schemas
            for each in properties_of(schema, "patternProperties")
        }
        is_of_no_pattern = bool(patterns) and not any(
            state.schema.name_matches(each, name) for each in patterns
        )
        if is_of_no_pattern or _may_mean(state, name, declared, parent):
            return True
    return False


def _may_be_unwrapped(state: Coercion, value: Any, where: Path, location: Path) -> bool:
    """Whether the part at *where* is an array that fits where the array of one around
    it is: either may be wrong.
    """
    part = value_at(value, where)
    if (
        not isinstance(part, list)
        or len(part) < 2
        or where[-1] != 0
        or len(value_at(value, where[:-1])) != 1
    ):
        return False
    return any(
        state.fits(part, place)
        for place in places_of(state.references, location, where[:-1])
    )


def _repaired_keys(
    state: Coercion, edit: Edit, here: list[Violation], location: Path, path: Path
) -> Iterator[Repair]:
    """Rename the keys that mean a declared one, and leave out those that may be."""
    unknown = {
        name
        for violation in here
        if violation.keyword in _UNKNOWN
        for name in violation.names
    }
    missing = _missing(here)
    if not unknown and not missing:
        return
    state.spend(5 + len(edit.value) // 2)
    declared = declared_properties(
        state.references, [location, *(violation.location for violation in here)]
    )
    # In the order of the value, so that the record of repairs has the same order in
    # every process.
    candidates = [
        name
        for name in edit.value
        if (name in unknown if unknown else name not in declared)
    ]
    meant = renames(candidates, declared, edit.value)
    for old, new in meant.items():
        if old in unknown or new in missing:
            edit.rename(old, new)
            yield Repair(format_pointer((*path, old)), "key-name", old, new)
    rest = sorted(unknown - meant.keys())
    known = set(map(fold_name, declared)) if rest else set()
    state.doubts += sum(fold_name(name) in known for name in rest)
    # Below the top level an unknown key may belong to a level that is missing, so
    # nothing is left out there.
    for name in rest if not path and _was_sent_any(state, edit.value, declared) else ():
        before = edit.value[name]
        if _is_dropped(state, name, edit.value, declared, location):
            edit.leave_out((name,))
            yield Repair(format_pointer((name,)), "unknown-key", before, None)


def _was_sent_any(
    state: Coercion, value: dict[str, Any], declared: Mapping[str, Any]
) -> bool:
    """Whether the caller sent anything that is declared."""
    return any(
        key in declared and key not in state.defaulted and not is_nothing(value[key])
        for key in value
    )


def _is_dropped(
    state: Coercion,
    name: str,
    value: dict[str, Any],
    declared: Mapping[str, Any],
    location: Path,
) -> bool:
    """Whether the unknown key *name* of the arguments *value* is left out: a null, or
    whatever the policy drops.
    """
    is_null = value[name] is None and name not in state.reserved
    if not is_null and state.policy.on_unknown != "drop":
        return False
    # What a pattern declares is not known by name.
    schemas = [schema for _, schema in in_place(state.references, [location])]
    if any("patternProperties" in schema for schema in schemas) or _may_mean(
        state, name, declared, value
    ):
        return False
    return not is_wrapper(value, name, declared) and not _holds_any(
        value[name], set(map(fold_name, declared)), 0
    )


def _may_mean(
    state: Coercion, name: str, declared: Collection[str], present: Mapping[str, Any]
) -> bool:
    """Whether the undeclared *name* is a declared one in other letters, or close to one
    that is absent.
    """
    if name in declared:
        return False
    absent = [each for each in declared if each not in present]
    state.spend(len(absent) // 2)
    return fold_name(name) in map(fold_name, declared) or any(
        close_names([name], absent)
    )


def _fill_defaults(
    state: Coercion, edit: Edit, here: list[Violation], location: Path, path: Path
) -> Iterator[Repair]:
    """Fill in the default of each required property that is absent, unless another key
    may be meant for it.
    """
    value = edit.value
    absent = sorted(_missing(here) - value.keys())
    locations = [location, *(violation.location for violation in here)]
    declared = declared_properties(state.references, locations)
    if not absent or any(is_wrapper(value, name, declared) for name in value):
        return  # what is wrapped may hold what is absent
    others = [key for key in value if key not in declared]
    state.spend((len(absent) + len(state.reserved)) * len(others) // 2)
    # `days` of version 1 must not be answered with the default of `hours` in version 2.
    if not path and (
        not state.reserved.isdisjoint(others)
        or any(close_names(others, state.reserved))
    ):
        return
    places = property_locations(state.references, locations, choices=False)
    elsewhere = {name for _, name in close_names(others, absent)} | _names_held(
        value, others
    )
    for name in absent:
        default = default_at(state.references, places.get(name, ()))
        if default is ABSENT or name in elsewhere:
            continue
        edit.put((name,), default)
        state.defaulted |= set() if path else {name}
        yield Repair(format_pointer((*path, name)), "default", None, default)


def _names_held(value: dict[str, Any], others: Collection[str]) -> set[str]:
    """Return the keys of the objects under *others*, undeclared keys of *value*, and
    under those that may wrap.

    ``{"options": {"limit": 5}}``: the 5 that the model sent must not be replaced by the
    default.
    """
    named = set(others)
    inside = [wrapped(value[key]) for key in value if key in named or may_wrap(key)]
    return {name for each in inside if isinstance(each, dict) for name in each}


def _holds_any(value: Any, declared: set[str], depth: int) -> bool:
    """Whether *value*, under an undeclared key, holds a member that is declared, which
    dropping it would lose.
    """
    inside = wrapped(value)
    if isinstance(inside, dict):
        if any(fold_name(name) in declared for name in inside):
            return True
        inside = list(inside.values())
    if not isinstance(inside, list) or depth == MAX_LEVELS_HELD:
        return False
    return any(_holds_any(each, declared, depth + 1) for each in inside)


def _missing(here: list[Violation]) -> set[str]:
    return {
        name
        for violation in here
        if violation.keyword in _NEEDED
        for name in violation.names
    }
