"""Coerce one value to one schema: its members where they fail, its keys, and the value as a whole.

Every function here returns a list of results: none where the value cannot be repaired, one where it is decided, and
several that differ where it is ambiguous. Ambiguity is kept until the whole is known: another part of the schema may
decide it, and if nothing does, the value is refused. In one branch of a union, impossible counts before ambiguous.
"""

from __future__ import annotations

from typing import Any

from skillruntime.contract.coercion.array_levels import holds_arrays, levels
from skillruntime.contract.coercion.keys import may_wrap, wrapped
from skillruntime.contract.coercion.members import members
from skillruntime.contract.coercion.policy import Policy
from skillruntime.contract.coercion.repair import Repair, Repaired
from skillruntime.contract.coercion.state import Coercion
from skillruntime.contract.coercion.subschemas import declared_properties
from skillruntime.contract.coercion.whole_value import whole
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.contract.schema import Schema, Violation

__all__ = ["begin"]

MAX_NESTED_REPAIRS = 12
MAX_ROUNDS = 6
# What one round costs beside its validator calls; a round over an object costs more, for its keys are compared.
ROUND_WORK = 3


def begin(schema: Schema, policy: Policy, parts: int, reserved: frozenset[str] = frozenset()) -> Coercion:
    """Return a coercion by *schema* of a value of that many *parts*."""
    return Coercion(schema, policy, parts, reserved, coerce=_coerce, parts_or_whole=_parts_or_whole)


def _coerce(state: Coercion, value: Any, location: Path, path: Path, depth: int) -> list[Repaired]:
    """Return *value*, which is at *path*, coerced to the subschema at *location*, in each way that is possible."""
    if state.fits(value, location):
        return [Repaired(value)]
    # Each step inside a step needs a repair of its own; a chain of a dozen is a coincidence, not a reading.
    if depth > MAX_NESTED_REPAIRS:
        return []
    if not isinstance(value, list) or not value or not holds_arrays(state, location):
        return state.parts_or_whole(value, location, path, depth)
    return levels(state, value, location, path, depth)


def _parts_or_whole(state: Coercion, value: Any, location: Path, path: Path, depth: int) -> list[Repaired]:
    """Coerce the members of *value* as far as they can be, then *value* as a whole."""
    current = Repaired(value)
    violations: list[Violation] = []
    for attempt in range(MAX_ROUNDS):
        if attempt and state.fits(current.value, location):
            return _beside_wrapper(state, value, current, location, path, depth)
        state.spend(ROUND_WORK + (5 + len(current.value) // 2 if isinstance(current.value, dict) else 0))
        violations = state.violations(current.value, location)
        options = members(state, current.value, violations, location, path, depth)
        if len(options) > 1:
            # Which of the options is right may show only when the rest of the value fits.
            return state.decided(_followed(state, current, options, location, path, depth), path)
        if not options:
            break
        current = current.then(options[0])
        if not path:
            state.best = current
    here = [violation for violation in violations if not violation.path and violation.location is not None]
    if not here and not (isinstance(current.value, dict) and len(current.value) == 1):
        return []  # what is wrong is in a member, and the object is not a wrapper
    if current.value is not value and isinstance(value, dict) and any(map(may_wrap, value)):
        unwrapped = whole(state, value, here, location, path, depth)
        if unwrapped:
            return unwrapped  # of the value as it was sent: what is wrapped may fit as it is
    return [current.then(each) for each in whole(state, current.value, here, location, path, depth)]


def _beside_wrapper(
    state: Coercion, value: Any, repaired: Repaired, location: Path, path: Path, depth: int
) -> list[Repaired]:
    """Return *repaired*, and what comes of the inside of *value* where a key of it may be a wrapper.

    ``{"kwargs": {"value": 5}}`` for an object that takes any integers is a wrapper too.
    """
    if not isinstance(value, dict) or len(value) > 2:
        return [repaired]
    declared = declared_properties(state.references, [location])
    if not any(may_wrap(name) for name in value):
        return [repaired]
    unwrapped = whole(state, value, [], location, path, depth)
    for name in value if len(value) == 1 else ():
        inside = wrapped(value[name])
        if name in declared and isinstance(inside, dict) and name in inside:
            repair = Repair(format_pointer(path), "wrapper-object", value, None)
            found = state.coerce(inside, location, path, depth + 1)
            unwrapped += [Repaired(inside, (repair,)).then(each) for each in found]
    return state.decided([repaired, *unwrapped], path)


def _followed(
    state: Coercion, current: Repaired, options: list[Repaired], location: Path, path: Path, depth: int
) -> list[Repaired]:
    """Return what *current* comes to with each of *options* for one of its members."""
    return [
        current.then(option).then(each)
        for option in options
        for each in state.coerce(option.value, location, path, depth + 1)
    ]
