"""Compare two versions of one contract: list the changes, the part of the version that
each requires to rise, and a value that shows the break.

Three readings are reported. The contract document (31.5) rules on some changes by name.
The practical reading decides the rest, and treats objects as closed on the giving side.
Set theory takes the schemas literally. The canonical form of jsonschema-rs decides
containment; a change that it cannot decide counts as breaking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from skillruntime.compatibility.containment import Containment
from skillruntime.compatibility.contract_diff import declared_differences
from skillruntime.compatibility.counterexample import NO_COUNTEREXAMPLE, Sides
from skillruntime.compatibility.diff import differences
from skillruntime.compatibility.finding import Bump, Finding
from skillruntime.compatibility.normal_form import (
    NotComparable,
    are_equal,
    closed,
    draft_of,
    normal_form,
    opened,
)
from skillruntime.contract.contract import Contract
from skillruntime.contract.schemas.pointer import format_pointer
from skillruntime.contract.versions import Version

__all__ = ["NO_COUNTEREXAMPLE", "Bump", "Change", "Verdict", "compare"]

_REWRITTEN = ("allOf", "unevaluatedProperties", "unevaluatedItems")
_READINGS = ("set theory", "practical")


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two contracts.

    ``side`` is ``input``, ``output``, ``requires``, ``annotations`` or ``document``;
    ``path`` is the place in the values, as a JSON Pointer in which ``*`` is each item.
    ``ruling`` is the contract document's rule, where it has one, and then decides;
    otherwise ``practical`` decides; ``set_theory`` is reported too. ``counterexample``
    is a value that the giving side admits and the taking side refuses (on ``input`` the
    old and the new schema, on ``output`` the new and the old), verified by the reading
    named in ``counterexample_reading``; ``NO_COUNTEREXAMPLE`` if none was found.
    """

    side: str
    path: str
    rule: str
    why: str
    practical: Bump
    set_theory: Bump
    ruling: Bump | None = None
    counterexample: Any = NO_COUNTEREXAMPLE
    counterexample_reading: str = ""
    finding: Finding | None = None

    @property
    def bump(self) -> Bump:
        """The part that this change raises: by the contract document's rule, or else by
        the practical reading.
        """
        if self.ruling is not None:
            return self.ruling
        return self.practical

    @property
    def is_breaking(self) -> bool:
        """Whether the change requires a new MAJOR version."""
        return self.bump is Bump.MAJOR

    def without_counterexample(self) -> Change:
        """Return the change without its counterexample."""
        return replace(
            self, counterexample=NO_COUNTEREXAMPLE, counterexample_reading=""
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        readings = {
            "practical": str(self.practical),
            "set_theory": str(self.set_theory),
        }
        if self.ruling is not None:
            readings["ruling"] = str(self.ruling)
        document: dict[str, Any] = {
            "side": self.side,
            "path": self.path,
            "rule": self.rule,
            "bump": str(self.bump),
            "why": self.why,
            "readings": readings,
        }
        if self.counterexample is not NO_COUNTEREXAMPLE:
            document["counterexample"] = self.counterexample
            document["counterexample_reading"] = self.counterexample_reading
        return document


@dataclass(frozen=True, slots=True)
class Verdict:
    """What changed between two contracts, and the part of the version that it
    raises.
    """

    changes: tuple[Change, ...]

    @property
    def bump(self) -> Bump:
        """The part of the version that must rise: by the contract document where it has
        a rule, else by the practical reading.
        """
        return max((change.bump for change in self.changes), default=Bump.NONE)

    @property
    def practical(self) -> Bump:
        """The part that must rise by the practical reading alone."""
        return max((change.practical for change in self.changes), default=Bump.NONE)

    @property
    def set_theory(self) -> Bump:
        """The part that must rise by set theory alone."""
        return max((change.set_theory for change in self.changes), default=Bump.NONE)

    def next_version(self, old: Version) -> Version:
        """Return the lowest version that may follow *old*.

        Below 1.0.0, where anything may change (SemVer, section 4), a MAJOR change
        raises MINOR, as npm reads it.
        """
        if self.bump is Bump.NONE:
            return old
        if old.major > 0:
            return old.bump(str(self.bump))
        # SemVer section 4 allows anything below 1.0.0; Cargo and npm both read the
        # MINOR there as the breaking part.
        if self.bump is Bump.MAJOR:
            return old.bump("minor")
        return old.bump("patch")

    def allows(self, old: Version, new: Version) -> bool:
        """Return whether version *new* is high enough for a change from version
        *old*.
        """
        if self.bump is Bump.NONE:
            return new >= old
        wanted = self.next_version(old)
        if new >= wanted:
            return True
        # A prerelease of the wanted version sorts below it (SemVer section 11), and is
        # raised far enough.
        is_raised = new.is_prerelease and new > old
        return is_raised and Version(*new.release) >= wanted

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        readings = {
            "practical": str(self.practical),
            "set_theory": str(self.set_theory),
        }
        return {
            "bump": str(self.bump),
            "readings": readings,
            "changes": [change.to_dict() for change in self.changes],
        }


def compare(
    old: Contract | Mapping[str, Any], new: Contract | Mapping[str, Any]
) -> Verdict:
    """Return how contract *new* differs from *old*, with a counterexample for each
    breaking change.

    >>> text = {"type": "string"}
    >>> old = {"type": "object", "required": ["topic"], "properties": {"topic": text}}
    >>> new = {"type": "object", "required": ["topics"], "properties": {"topics": text}}
    >>> verdict = compare({"input": old}, {"input": new})
    >>> str(verdict.bump), verdict.changes[0].rule, verdict.changes[0].counterexample
    ('major', 'parameter-renamed', {'topic': 'a'})

    Raises:
        InvalidSkillError: one of the two is not a contract.
    """
    before = old if isinstance(old, Contract) else Contract.from_dict(old)
    after = new if isinstance(new, Contract) else Contract.from_dict(new)
    changes = [
        *_schema_changes("input", before.input.document, after.input.document),
        *_schema_changes("output", _output_schema(before), _output_schema(after)),
    ]
    for side, finding in declared_differences(before, after):
        changes.append(_change(side, finding))
    # The sort is stable: within one bump, changes stay in the order of the document.
    changes.sort(key=lambda change: -change.bump)
    return Verdict(tuple(changes))


def _output_schema(contract: Contract) -> Any:
    if contract.output is None:
        return True
    return contract.output.document


def _change(side: str, finding: Finding) -> Change:
    return Change(
        side,
        format_pointer(finding.path),
        finding.rule,
        finding.why,
        finding.practical,
        finding.set_theory,
        finding.ruling,
        finding=finding,
    )


def _change_of_all(side: str, rule: str, why: str, bump: Bump) -> Change:
    """Return a change of the whole schema that both readings judge alike."""
    return _change(side, Finding((), rule, why, bump, bump))


def _schema_changes(side: str, old: Any, new: Any) -> Iterator[Change]:
    # Most releases change one schema of many: equal ones need no engine.
    if are_equal(old, new):
        return
    # In draft 4 the number 1.0 is not an integer; all later drafts agree on values.
    if (draft_of(old) == 4) != (draft_of(new) == 4):
        why = "the schema's draft changed, and with it what keywords mean"
        yield _change_of_all(side, "schema-changed", why, Bump.MAJOR)
        return
    try:
        before, after = normal_form(old), normal_form(new)
    except NotComparable as error:
        yield _compared_as_a_whole(side, old, new, str(error))
        return
    # Findings say where; the readings then check each claim against the whole schemas,
    # in both directions.
    is_output = side == "output"
    containment = Containment()
    findings = differences(before, after, is_output=is_output, containment=containment)
    readings = _Readings(
        before, after, containment, is_output=is_output, written=(old, new)
    )
    changes = [readings.settled(_change(side, finding)) for finding in findings]
    changes += readings.overlooked(side, changes)
    yield from changes
    if not changes and _rewritten_keywords(old) != _rewritten_keywords(new):
        why = "the same values are described with other keywords"
        yield _change_of_all(side, "schema-rewritten", why, Bump.PATCH)


def _rewritten_keywords(node: Any) -> Counter[str]:
    """Count the uses of each keyword that the normal form may rewrite."""
    keywords: Counter[str] = Counter()
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            keywords.update(word for word in _REWRITTEN if word in part)
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return keywords


def _is_coupled(node: Any) -> bool:
    """Return whether a part of *node* means nothing without its neighbours, so that
    parts cannot be compared one by one.
    """
    if isinstance(node, list):
        return any(map(_is_coupled, node))
    if not isinstance(node, dict):
        return False
    if "unevaluatedProperties" in node or "unevaluatedItems" in node:
        return True
    return any(map(_is_coupled, node.values()))


def _compared_as_a_whole(side: str, old: Any, new: Any, reason: str) -> Change:
    """Return the one change of two schemas that have no normal form, and so no parts to
    compare.
    """
    giver, taker = (new, old) if side == "output" else (old, new)
    why = f"the schemas were compared only as a whole: {reason}"
    containment = Containment()
    if containment.covers(taker, giver):
        bump = Bump.PATCH if containment.covers(giver, taker) else Bump.MINOR
        return Change(side, "", "schema-changed", why, bump, bump)
    bump = Bump.MAJOR
    finding = Finding((), "schema-changed", why, bump, bump, None, old, new)
    sides = Sides(giver, taker, containment, is_output=side == "output")
    counterexample = sides.counterexample_of(finding)
    change = Change(side, "", "schema-changed", why, bump, bump)
    if counterexample is NO_COUNTEREXAMPLE:
        undecided = _undecided(containment, breaks=True)
        return replace(change, why=f"{why}; {undecided}")
    return replace(change, counterexample=counterexample, counterexample_reading="both")


def _undecided(containment: Containment, *, breaks: bool) -> str:
    """Explain why a change is undecided; with *breaks*, add that it therefore counts as
    breaking.
    """
    reason = ""
    if containment.is_exceeded:
        reason = " because the schemas are too large to be compared in full"
    text = f"it cannot be proven harmless{reason}"
    return f"{text}, which counts as breaking" if breaks else text


class _Readings:
    """The two schemas under both readings, and the lookups that all of their changes
    share.
    """

    def __init__(
        self,
        old: Any,
        new: Any,
        containment: Containment,
        *,
        is_output: bool,
        written: tuple[Any, Any],
    ) -> None:
        self.is_output = is_output
        # A schema that is written in normal form needs no second look.
        old_written = None if are_equal(old, written[0]) else written[0]
        new_written = None if are_equal(new, written[1]) else written[1]
        if is_output:
            self._sides = (new, old)
            self._written = (new_written, old_written)
        else:
            self._sides = (old, new)
            self._written = (old_written, new_written)
        self._containment = containment
        self._sides_of: dict[str, Sides] = {}
        self._answers: dict[str, str] = {}

    def sides(self, reading: str) -> Sides:
        if reading not in self._sides_of:
            giver, taker = self._sides
            if reading == "practical":
                giver = closed(giver)
                taker = opened(taker) if self.is_output else closed(taker)
            self._sides_of[reading] = Sides(
                giver,
                taker,
                self._containment,
                is_output=self.is_output,
                written=self._written,
                is_literal=reading != "practical",
            )
        return self._sides_of[reading]

    def settled(self, change: Change) -> Change:
        """Return *change* with a counterexample, or without its claim if the complete
        schemas refute the claim.
        """
        if change.finding is None:
            return change
        for reading in _READINGS:
            if _claim(change, reading) is Bump.MAJOR:
                change = self._settled_by(reading, change, change.finding)
        return change

    def _settled_by(self, reading: str, change: Change, finding: Finding) -> Change:
        sides = self.sides(reading)
        is_shown = change.counterexample is not NO_COUNTEREXAMPLE
        # One value may break both readings; report it once.
        if is_shown and sides.shows(change.counterexample):
            return replace(change, counterexample_reading="both")
        counterexample = sides.counterexample_of(finding)
        if counterexample is not NO_COUNTEREXAMPLE:
            if self._breaks_set_theory_too(reading, change, counterexample):
                reading = "both"
            return replace(
                change, counterexample=counterexample, counterexample_reading=reading
            )
        # The complete schemas prove the part harmless: for example, a constraint moved
        # to a neighbouring place.
        if self._contained(reading) == "yes":
            why = f"{change.why}, though every value that was valid before still is"
            if reading == "practical":
                return replace(change, practical=Bump.MINOR, why=why)
            return replace(change, set_theory=Bump.MINOR, why=why)
        if is_shown or change.why != finding.why:
            return change  # the other reading gave its reason already
        why = _undecided(self._containment, breaks=change.is_breaking)
        return replace(change, why=f"{change.why}; {why}")

    def _breaks_set_theory_too(
        self, reading: str, change: Change, counterexample: Any
    ) -> bool:
        """Return whether the *counterexample* that the practical *reading* found also
        breaks by set theory.
        """
        if reading != "practical" or change.set_theory is not Bump.MAJOR:
            return False
        return self.sides("set theory").shows(counterexample)

    def overlooked(self, side: str, changes: list[Change]) -> list[Change]:
        """Return the break that only the complete schemas show, when no single change
        claims to break anything.
        """
        is_coupled = any(map(_is_coupled, self._sides))
        overlooking = [
            reading
            for reading in _READINGS
            if self._is_overlooking(reading, changes, is_coupled=is_coupled)
        ]
        if overlooking:
            practical = Bump.MAJOR if "practical" in overlooking else Bump.MINOR
            strict = Bump.MAJOR if "set theory" in overlooking else Bump.MINOR
            why = "taken together, the changes exclude values that were possible before"
            old, new = reversed(self._sides) if self.is_output else self._sides
            whole = Finding(
                (), "schema-changed", why, practical, strict, None, old, new
            )
            return [self.settled(_change(side, whole))]
        if not is_coupled or max(map(_largest_claim, changes), default=0) > Bump.PATCH:
            return []
        giver, taker = self._sides
        if self._containment.covers(giver, taker):
            return []
        # `prefixItems: [true]` admits nothing new, except next to
        # `unevaluatedItems: false`.
        why = "taken together, the changes admit values that were refused before"
        if self.is_output:
            why = "taken together, the changes refuse values that were admitted before"
        return [_change_of_all(side, "schema-changed", why, Bump.MINOR)]

    def _is_overlooking(
        self, reading: str, changes: list[Change], *, is_coupled: bool
    ) -> bool:
        """Return whether the complete schemas break by *reading* although no change
        says so.
        """
        if any(_claim(change, reading) is Bump.MAJOR for change in changes):
            return False
        if reading == "practical" and any(
            change.ruling is Bump.MINOR for change in changes
        ):
            return False  # the contract document rules it harmless
        contained = self._contained(reading)
        # `unknown` counts as clear only where parts can be compared one by one: those
        # comparisons found nothing.
        return contained == "no" or (contained == "unknown" and is_coupled)

    def _contained(self, reading: str) -> str:
        if reading not in self._answers:
            sides = self.sides(reading)
            self._answers[reading] = self._containment.answer(
                sides.taker.schema, sides.giver.schema
            )
        return self._answers[reading]


def _claim(change: Change, reading: str) -> Bump:
    return change.practical if reading == "practical" else change.set_theory


def _largest_claim(change: Change) -> Bump:
    return max(change.practical, change.set_theory)
