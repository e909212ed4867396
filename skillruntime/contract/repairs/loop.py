"""Repair a value part by part, within a budget.

A value that fits is not changed. For a value that does not fit, each applicable rule of
`scalars`, `containers` and `unions` is tried on the whole value, and its failing keys
and members are repaired. The result is repaired again, until it fits or no rule
applies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from skillruntime.contract.reading.arguments import wrapped
from skillruntime.contract.repair_rules import (
    CONTAINER_TEXT,
    NULL_OPTIONAL,
    WRAPPER_OBJECT,
)
from skillruntime.contract.repairs.containers import (
    UNIONS,
    container_in_text,
    makes_texts,
    reshapings,
)
from skillruntime.contract.repairs.keys import (
    KeyRules,
    is_on_misspelt_key,
    is_typed_value,
    with_defaults,
    with_keys_repaired,
)
from skillruntime.contract.repairs.outcomes import (
    AMBIGUOUS,
    IMPOSSIBLE,
    Ambiguous,
    Attempt,
    Misfit,
    Outcome,
    Place,
    Repaired,
    choose_outcome,
    without_repair,
)
from skillruntime.contract.repairs.record import Repair, recorded
from skillruntime.contract.repairs.scalars import (
    conversions,
    is_nothing,
    is_opposite,
    kinds_wanted,
    may_be_said,
)
from skillruntime.contract.repairs.siblings import with_keys_alike
from skillruntime.contract.repairs.unions import by_branches, is_doubtful_move
from skillruntime.contract.schemas.names import holds_wrapper, may_wrap
from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    Edit,
    Location,
    ValuePath,
    format_pointer,
    value_at,
)
from skillruntime.contract.schemas.references import References, properties_of
from skillruntime.contract.schemas.schema import Schema, Violation
from skillruntime.contract.schemas.subschemas import places_of, subschemas

# Each nested step needs another repair; a chain of a dozen repairs is a coincidence,
# not a reading.
MAX_DEPTH = 16
BASE_WORK = 3_000
# The validator calls allowed for each part of the value, in addition to BASE_WORK. A
# call was measured at 3 to 8 µs, so 8 KB, which have at most 2,000 parts, take less
# than 50 ms.
WORK_PER_PART = 4
# The cost of one round apart from its validator calls.
ROUND_WORK = 2
# A part that is refused below these keywords may fit after the deciding member is
# repaired.
_CONDITIONAL = frozenset({"then", "else", "dependentSchemas"})
_LEFT_OUT = object()


class OverBudgetError(Exception):
    """The repair would take more validator calls than its budget, so the value is
    refused.
    """


class RepairLoop:
    """The repair of one value of *parts* parts by *schema*, within a budget.

    The budget counts validator calls. ``best`` is the partly repaired value, for the
    report of a refusal.
    """

    def __init__(self, schema: Schema, rules: KeyRules, parts: int) -> None:
        self.schema = schema
        self.references: References = schema.references
        self.best: Repaired | None = None
        self._rules = rules
        self._work = BASE_WORK + WORK_PER_PART * parts
        self._converting: set[Any] = set()
        self._listings: dict[tuple[int, Location], tuple[Any, list[Violation]]] = {}

    def repair(self, place: Place) -> Outcome:
        """Return the outcome of repairing the value at *place* by its subschema."""
        value = place.value
        if self.fits(value, place.location):
            return Repaired(value)
        if place.depth > MAX_DEPTH:
            return IMPOSSIBLE
        if isinstance(value, (dict, list)):
            return self._repair_container(place)
        # Converting a scalar back to an earlier value makes no progress.
        step = (place.location, place.path, type(value), value)
        if step in self._converting:
            return IMPOSSIBLE
        self._converting.add(step)
        outcome = self._repair_whole(place, self.violations(value, place.location))
        self._converting.discard(step)
        return outcome

    def repair_siblings(self, place: Place, outcome: Outcome) -> Outcome:
        """Return *outcome*, of the whole value at *place*; if it renamed a key, also
        rename the other keys that are misspelt, although the schema accepts them.
        """
        for _ in range(MAX_DEPTH):
            if not isinstance(outcome, Repaired):
                break
            step = with_keys_alike(outcome, self.schema)
            if step is None:
                break
            outcome = self._continue_repair(place, step)
        return outcome

    def fits(self, value: Any, location: Location) -> bool:
        """Return whether *value* fits the subschema at *location*; a misfit counts
        against the budget.
        """
        fits = self.schema.fits(value, location)
        if not fits:  # a value that fits costs nothing, however large it is
            self.spend(1)
        return fits

    def violations(self, value: Any, location: Location) -> list[Violation]:
        """Return the violations of *value*, each of which counts against the budget."""
        # Keyed by identity, because equal values at two places may have different
        # repairs, and a dict is unhashable.
        key = (id(value), location)
        known = self._listings.get(key)
        if known is not None and known[0] is value:
            return known[1]
        violations = self.schema.violations(value, location, fits=self.fits)
        self.spend(len(violations))
        self._listings[key] = value, violations
        return violations

    def listing(self, value: Any) -> list[Violation] | None:
        """Return the known violations of the whole *value*; ``None`` if the budget ran
        out before they were listed.
        """
        known = self._listings.get((id(value), WHOLE_SCHEMA))
        if known is None or known[0] is not value:
            return None
        return known[1]

    def spend(self, work: int) -> None:
        """Take *work* from the budget of validator calls.

        Raises:
            OverBudgetError: the budget is used up.
        """
        self._work -= work
        if self._work < 0:
            raise OverBudgetError

    def grant(self, work: int) -> None:
        """Set the budget to *work*, so that a refusal can be explained after the budget
        ran out.
        """
        self._work = work

    def _repair_container(self, place: Place) -> Outcome:
        """Repair an array or object as a whole, or by its failing keys and members."""
        violations = self.violations(place.value, place.location)
        own = [violation for violation in violations if not violation.path]
        whole = self._repair_whole(place, own)
        self.spend(ROUND_WORK)
        members = self._repair_members(place, violations, own)
        if isinstance(members, Repaired):
            if not place.path:
                self.best = members
            members = self._continue_repair(place, members)
        if whole is IMPOSSIBLE and len(place.value) != 1:
            return members
        outcomes = [whole, members]
        is_repaired = isinstance(whole, Repaired) or isinstance(members, Repaired)
        if is_repaired and isinstance(place.value, dict) and len(place.value) == 1:
            outcomes.append(self._repair_wrapped(place))
        return choose_outcome(outcomes)

    def _repair_wrapped(self, place: Place) -> Outcome:
        """Repair the object under the one key of the value, if models may wrap all
        arguments in that key.

        For an object that accepts any integers, ``{"kwargs": {"value": 5}}`` may be a
        wrapper, or have an entry ``kwargs``.
        """
        [(name, member)] = place.value.items()
        content = wrapped(member) if may_wrap(name) else None
        if not isinstance(content, dict):
            return IMPOSSIBLE
        repair = Repair(place.pointer, WRAPPER_OBJECT, place.value, None)
        return self._continue_repair(place, Repaired(content, (repair,)))

    def _repair_whole(self, place: Place, violations: list[Violation]) -> Outcome:
        """Try each rule that replaces the whole value at *place*, and return the
        outcome on which they agree.

        *violations* are those of the value itself.
        """
        kinds = kinds_wanted(self.references, violations) if violations else set()
        misfit = Misfit(place, violations, kinds)
        outcomes: list[Outcome] = []
        for violation in violations:
            if violation.keyword in UNIONS and isinstance(violation.expected, list):
                outcome = by_branches(self, place, violation)
                if isinstance(outcome, Repaired):
                    # The rest of the schema may refuse a value that the branch accepts.
                    outcome = self._continue_repair(place, outcome)
                outcomes.append(outcome)
        for attempt in self._attempts(misfit):
            if isinstance(attempt, Ambiguous):
                outcomes.append(attempt)
            else:
                outcomes.append(self._try_attempt(place, attempt))
        if not outcomes:
            return IMPOSSIBLE
        outcome = outcomes[0]
        if len(outcomes) > 1:
            outcome = choose_outcome(outcomes)
        if isinstance(outcome, Repaired) and len(kinds) > 1:
            # The schema also accepts another kind, so the value may be meant to stay
            # where it is: `"5 days"` for a number or an array of texts.
            if is_doubtful_move(place, outcome, kinds):
                return AMBIGUOUS
        return outcome

    def _attempts(self, misfit: Misfit) -> list[Attempt | Ambiguous]:
        """Return the replacements that the rules propose for the whole value."""
        attempts: list[Attempt | Ambiguous] = []
        value = misfit.place.value
        if not isinstance(value, (dict, list)):
            attempts += conversions(self, misfit)
        if isinstance(value, str):
            attempts += container_in_text(self, misfit)
        attempts += reshapings(self, misfit)
        return attempts

    def _try_attempt(self, place: Place, attempt: Attempt) -> Outcome:
        """Replace the value by the value of *attempt*, and repair the result
        further.
        """
        repair = recorded(format_pointer(place.path), *attempt)
        step = Repaired(attempt.after, (repair,))
        outcome = self._continue_repair(place, step)
        # If the schema wants strings, a list of numbers in a string may be a text about
        # these numbers.
        if attempt.rule == CONTAINER_TEXT and isinstance(outcome, Repaired):
            if makes_texts(attempt.after, outcome):
                return without_repair(outcome.is_disputed)
        return outcome

    def _continue_repair(self, place: Place, step: Repaired) -> Outcome:
        """Repair the value of *step*, which replaced the value at *place* and may not
        fit yet.
        """
        further = Place(step.value, place.location, place.path, place.depth + 1)
        outcome = self.repair(further)
        is_disputed = step.is_disputed or outcome.is_disputed
        if isinstance(outcome, Repaired):
            repairs = step.repairs + outcome.repairs
            return Repaired(outcome.value, repairs, is_disputed)
        return without_repair(is_disputed)

    def _repair_members(
        self, place: Place, violations: list[Violation], own: list[Violation]
    ) -> Outcome:
        """Repair each failing key and member once, independently of the others.

        *own* are the violations of the container itself.
        """
        value = place.value
        misfit = Misfit(place, own, set())
        repairs: list[Repair] = []
        is_disputed = False
        if isinstance(value, dict):
            if "type" in value and is_typed_value(self.references, place):
                return AMBIGUOUS
            if own:
                keys = with_keys_repaired(self, self._rules, misfit)
                value, is_disputed = keys.value, keys.is_ambiguous
                repairs += keys.repairs
        edit = Edit(value)
        is_refused = False
        for part in self._refused_parts(place, violations):
            outcome = self._repair_part(place, edit.value, part)
            is_disputed = is_disputed or outcome.is_disputed
            if isinstance(outcome, Repaired):
                _put(edit, part.where, outcome)
                repairs += outcome.repairs
            else:
                is_refused = True
        if repairs and not is_refused:
            return Repaired(edit.value, tuple(repairs), is_disputed)
        if repairs and not place.path:
            self.best = Repaired(edit.value)
        # Defaults come after all other repairs, because renaming or leaving out a key
        # may make a default unnecessary.
        if isinstance(value, dict) and not is_refused:
            filled = self._repair_defaults(misfit)
            if filled is not None:
                return filled._replace(is_disputed=is_disputed)
        return without_repair(is_disputed)

    def _repair_defaults(self, misfit: Misfit) -> Repaired | None:
        """Fill in the defaults of absent required properties; return ``None`` if none
        was filled in.
        """
        filled = with_defaults(self, self._rules, misfit)
        if not filled.repairs:
            return None
        if not misfit.place.path:
            names = filled.value.keys() - misfit.place.value.keys()
            defaulted = self._rules.defaulted | names
            self._rules = replace(self._rules, defaulted=defaulted)
        return Repaired(filled.value, tuple(filled.repairs))

    def _refused_parts(
        self, place: Place, violations: list[Violation]
    ) -> list[_RefusedPart]:
        """Return the parts inside the value that the schema refuses.

        If an object around a part may be a wrapper, that object is returned in place of
        the part, because its content or its form may be wrong.
        """
        below = [violation for violation in violations if violation.path]
        certain = [
            violation
            for violation in below
            if _CONDITIONAL.isdisjoint(violation.location)
        ]
        parts: dict[tuple[ValuePath, Location], _RefusedPart] = {}
        for violation in certain or below:
            wrapper = self._wrapper_around(place, violation.path)
            if wrapper is None:
                key = violation.path, violation.location
                part = parts.setdefault(key, _RefusedPart(*key, []))
                part.violations.append(violation)
            else:
                parts.setdefault(wrapper, _RefusedPart(*wrapper, []))
        return list(parts.values())

    def _wrapper_around(
        self, place: Place, where: ValuePath
    ) -> tuple[ValuePath, Location] | None:
        """Return the outermost possible wrapper object around the part at *where*, as
        its path and the location of its subschema.
        """
        part = place.value
        for length, token in enumerate(where[:-1], start=1):
            part = part[token]
            if isinstance(part, dict) and holds_wrapper(part):
                around = ValuePath(where[:length])
                locations = places_of(self.references, place.location, around)
                return (around, locations[0]) if locations else None
        return None

    def _repair_part(self, place: Place, value: Any, part: _RefusedPart) -> Outcome:
        """Repair *part* of *value*, the value at *place* after the repair of its keys."""
        if is_on_misspelt_key(self, self.schema, place, part.where):
            return AMBIGUOUS
        if self._may_be_unwrapped(place, part.where):
            return AMBIGUOUS
        try:
            content = value_at(value, part.where)
        except LookupError:
            return Repaired(_LEFT_OUT)  # left out or renamed by an earlier repair
        path = ValuePath((*place.path, *part.where))
        inner = Place(content, part.location, path, place.depth + 1)
        is_known = bool(part.violations) and content is part.violations[0].value
        if is_known and not isinstance(content, (dict, list)):
            outcome = self._repair_whole(inner, part.violations)
        else:
            outcome = self.repair(inner)
        if isinstance(outcome, Repaired) or not is_nothing(content):
            return outcome
        if self._is_left_out(inner):
            repair = Repair(inner.pointer, NULL_OPTIONAL, content, None)
            return Repaired(_LEFT_OUT, (repair,), outcome.is_disputed)
        return outcome

    def _may_be_unwrapped(self, place: Place, where: ValuePath) -> bool:
        """Return whether `[[a, b]]` at the part could also mean `[a, b]`: the inner
        list, at *where*, fits in place of the outer one.
        """
        if where[-1] != 0:
            return False
        outer = value_at(place.value, where[:-1])
        if len(outer) != 1 or not isinstance(outer[0], list) or len(outer[0]) < 2:
            return False
        locations = places_of(self.references, place.location, ValuePath(where[:-1]))
        return any(self.fits(outer[0], location) for location in locations)

    def _is_left_out(self, place: Place) -> bool:
        """Return whether the value, which is null or a word for null, can only mean
        that the property is absent. The property must be declared and optional.
        """
        value, references = place.value, self.references
        if may_be_said(references, value, [place.location]):
            return False
        if is_opposite(references, value, place.path):
            return False
        around = subschemas(references, ValuePath(place.path[:-1]))
        if not any(place.path[-1] in properties_of(schema) for schema in around):
            return False
        return value is None or not self.fits(None, place.location)


class _RefusedPart(NamedTuple):
    """A part inside a value: its path *where*, the subschema that refuses it, and its
    known *violations*, which are empty for a possible wrapper.
    """

    where: ValuePath
    location: Location
    violations: list[Violation]


def _put(edit: Edit, where: ValuePath, outcome: Repaired) -> None:
    """Write *outcome* to *where*; the outcome of a member that is already left out has
    no repairs.
    """
    if not outcome.repairs:
        return
    if outcome.value is _LEFT_OUT:
        edit.leave_out(where)
    else:
        edit.put(where, outcome.value)
