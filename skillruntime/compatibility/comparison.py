"""Two versions of one contract -> what changed, which part of the version that raises,
and a value that shows it.

Three readings are reported. The contract document (31.5) rules on some changes by name;
the practical reading decides the rest, and takes objects as closed on the giving side;
set theory takes the schemas literally. Containment is decided by jsonschema-rs's
canonical form; what it cannot decide counts as breaking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from skillruntime.compatibility.containment import Containment
from skillruntime.compatibility.counterexample import NO_COUNTEREXAMPLE, Sides
from skillruntime.compatibility.diff import Bump, Finding, differences, opened
from skillruntime.compatibility.normal_form import NotComparable, closed, normal_form
from skillruntime.contract.contract import Contract
from skillruntime.contract.migration.value_conversions import same_as, show
from skillruntime.contract.schemas.pointer import format_pointer
from skillruntime.contract.versions import Version, VersionRange

__all__ = ["NO_COUNTEREXAMPLE", "Bump", "Change", "Verdict", "compare"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two contracts.

    ``side`` is ``input``, ``output``, ``requires``, ``annotations`` or ``document``;
    ``path`` is the place in the values, as a JSON Pointer in which ``*`` is each item.
    ``ruling`` is the contract document's rule, where it has one, and then decides;
    otherwise ``practical`` decides; ``set_theory`` is reported too. ``counterexample``
    is a value that the giving side admits and the taking side refuses (on ``input`` the
    old and the new schema, on ``output`` the new and the old), verified by the reading
    named in ``counterexample_reading``; ``NO_COUNTEREXAMPLE`` where there is none to
    show.
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
        """What this change asks for: the contract document's rule, or else the
        practical reading.
        """
        return self.practical if self.ruling is None else self.ruling

    @property
    def is_breaking(self) -> bool:
        """Whether it asks for a new MAJOR version."""
        return self.bump is Bump.MAJOR

    def to_dict(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        document: dict[str, Any] = {
            "side": self.side,
            "path": self.path,
            "rule": self.rule,
            "bump": str(self.bump),
        }
        document["why"] = self.why
        document["readings"] = {
            "practical": str(self.practical),
            "set_theory": str(self.set_theory),
        }
        if self.ruling is not None:
            document["readings"]["ruling"] = str(self.ruling)
        if self.counterexample is not NO_COUNTEREXAMPLE:
            document |= {
                "counterexample": self.counterexample,
                "counterexample_reading": self.counterexample_reading,
            }
        return document


@dataclass(frozen=True, slots=True)
class Verdict:
    """What changed between two contracts, and the part of the version that it
    raises.
    """

    changes: tuple[Change, ...]

    @property
    def bump(self) -> Bump:
        """The part that must be raised: by the contract document where it has a rule,
        else by the practical reading.
        """
        return max((change.bump for change in self.changes), default=Bump.NONE)

    @property
    def practical(self) -> Bump:
        """The part by the practical reading alone."""
        return max((change.practical for change in self.changes), default=Bump.NONE)

    @property
    def set_theory(self) -> Bump:
        """The part by set theory alone."""
        return max((change.set_theory for change in self.changes), default=Bump.NONE)

    def next_version(self, old: Version) -> Version:
        """Return the lowest version that may follow *old*.

        Below 1.0.0, where anything may change (SemVer, section 4), a MAJOR change
        raises MINOR, as npm reads it.
        """
        if self.bump is Bump.NONE:
            return old
        # SemVer section 4 allows anything below 1.0.0; Cargo and npm both read the
        # MINOR there as the breaking part.
        if old.major == 0:
            return old.bump("minor" if self.bump is Bump.MAJOR else "patch")
        return old.bump(str(self.bump))

    def allows(self, old: Version, new: Version) -> bool:
        """Return whether *new* is raised far enough above *old*."""
        if self.bump is Bump.NONE:
            return new >= old
        wanted = self.next_version(old)
        # A prerelease of the wanted version sorts below it (SemVer section 11), and is
        # raised far enough.
        return new >= wanted or (
            new.is_prerelease and new > old and Version(*new.release) >= wanted
        )

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
    """Return how contract *new* differs from *old*, with a counterexample for what
    breaks.

    >>> old = {"input": {"type": "object", "required": ["topic"], "properties": {"topic": {"type": "string"}}}}
    >>> new = {"input": {"type": "object", "required": ["topics"], "properties": {"topics": {"type": "string"}}}}
    >>> verdict = compare(old, new)
    >>> str(verdict.bump), verdict.changes[0].rule, verdict.changes[0].counterexample
    ('major', 'parameter-renamed', {'topic': 'a'})

    Raises:
        InvalidSkillError: one of the two is not a contract.
    """
    before = old if isinstance(old, Contract) else Contract.from_dict(old)
    after = new if isinstance(new, Contract) else Contract.from_dict(new)
    changes = list(
        _schema_changes("input", before.input.document, after.input.document)
    )
    outputs = [
        True if contract.output is None else contract.output.document
        for contract in (before, after)
    ]
    changes += _schema_changes("output", *outputs)
    for side, finding in _outside_the_schemas(before, after):
        changes.append(_change(side, finding))
    # The sort is stable: within one bump, changes stay in the order of the document.
    changes.sort(key=lambda change: -change.bump)
    return Verdict(tuple(changes))


def _change(side: str, finding: Finding) -> Change:
    path = format_pointer(finding.path)
    readings = (finding.practical, finding.set_theory, finding.ruling)
    return Change(side, path, finding.rule, finding.why, *readings, finding=finding)


def _schema_changes(side: str, old: Any, new: Any) -> Iterator[Change]:
    # Most releases change one schema of many: equal ones need no engine.
    if old is new or same_as(old) == same_as(new):
        return
    is_output = side == "output"
    before, after = _older_draft(old), _older_draft(new)
    if before != after:
        why = "the schema's draft changed, and with it what keywords mean"
        yield _change(side, Finding((), "schema-changed", why, Bump.MAJOR, Bump.MAJOR))
        return
    if before:
        yield _as_a_whole(side, old, new, "it is of an older draft than 7")
        return
    try:
        before, after = normal_form(old), normal_form(new)
    except NotComparable as error:
        yield _as_a_whole(side, old, new, str(error))
        return
    # Findings say where; the readings then check each claim against the whole schemas,
    # in both directions.
    containment = Containment()
    found = differences(before, after, is_output=is_output, containment=containment)
    readings = _Readings(
        before, after, containment, is_output=is_output, written=(old, new)
    )
    changes = [readings.settled(_change(side, finding)) for finding in found]
    yield from changes
    overlooked = list(readings.overlooked(side, changes))
    yield from overlooked
    if not changes and not overlooked and _rewritten(old) != _rewritten(new):
        why = "the same values are described with other keywords"
        yield _change(
            side, Finding((), "schema-rewritten", why, Bump.PATCH, Bump.PATCH)
        )


def _older_draft(document: Any) -> str:
    """Return the draft of *document* if it is neither 2020-12 nor 7, the two that are
    compared part by part.
    """
    draft = str(document.get("$schema", "")) if isinstance(document, dict) else ""
    return (
        draft.rstrip("#")
        if any(word in draft for word in ("draft-04", "draft-06", "2019-09"))
        else ""
    )


def _parts(node: Any) -> Iterator[dict[str, Any]]:
    """Yield *node* and all that is in it, as far as they are objects."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
        pending += (
            part.values()
            if isinstance(part, dict)
            else part
            if isinstance(part, list)
            else []
        )


_REWRITTEN = ("allOf", "unevaluatedProperties", "unevaluatedItems")


def _rewritten(node: Any) -> Counter[str]:
    """Return how often a schema uses the keywords that the normal form may write in
    another way.
    """
    return Counter(word for part in _parts(node) for word in _REWRITTEN if word in part)


def _is_coupled(node: Any) -> bool:
    """Whether a part of *node* means nothing without its neighbours, so that parts
    cannot be compared one by one.
    """
    if isinstance(node, list):
        return any(map(_is_coupled, node))
    if not isinstance(node, dict):
        return False
    return any(
        word in ("unevaluatedProperties", "unevaluatedItems") or _is_coupled(node[word])
        for word in node
    )


def _as_a_whole(side: str, old: Any, new: Any, reason: str) -> Change:
    giver, taker = (new, old) if side == "output" else (old, new)
    # Without a normal form there are no parts to compare, so one verdict covers the
    # whole.
    containment = Containment()
    is_covered = containment.covers(taker, giver)
    bump = (
        Bump.MAJOR
        if not is_covered
        else Bump.PATCH
        if containment.covers(giver, taker)
        else Bump.MINOR
    )
    why = f"the schemas were compared only as a whole: {reason}"
    change = Change(side, "", "schema-changed", why, bump, bump)
    if bump is Bump.MAJOR:
        finding = Finding((), "schema-changed", why, bump, bump, None, old, new)
        counterexample = Sides(
            giver, taker, containment, is_output=side == "output"
        ).counterexample_of(finding)
        if counterexample is not NO_COUNTEREXAMPLE:
            return replace(
                change, counterexample=counterexample, counterexample_reading="both"
            )
        change = replace(change, why=f"{why}; {_undecided(containment)}")
    return change


def _undecided(containment: Containment) -> str:
    reason = (
        " because the schemas are too large to be compared in full"
        if containment.is_exceeded
        else ""
    )
    return f"it cannot be proven harmless{reason}, which counts as breaking"


_FIELDS = {"set theory": "set_theory", "practical": "practical"}


class _Readings:
    """The two schemas by either reading, and what is looked up once for all changes
    between them.
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
        old_text, new_text = (
            None if same_as(form) == same_as(text) else text
            for form, text in zip((old, new), written, strict=True)
        )
        self._written = (new_text, old_text) if is_output else (old_text, new_text)
        self._containment = containment
        self._sides = (new, old) if is_output else (old, new)
        self._read: dict[str, Sides] = {}
        self._answers: dict[str, str] = {}

    def sides(self, reading: str) -> Sides:
        if reading not in self._read:
            giver, taker = self._sides
            is_literal = reading != "practical"
            if not is_literal:
                giver, taker = (
                    closed(giver),
                    opened(taker) if self.is_output else closed(taker),
                )
            self._read[reading] = Sides(
                giver,
                taker,
                self._containment,
                is_output=self.is_output,
                written=self._written,
                is_literal=is_literal,
            )
        return self._read[reading]

    def settled(self, change: Change) -> Change:
        """Return *change* with a counterexample, or without its claim where the whole
        schemas refute that.
        """
        finding = change.finding
        if finding is None:
            return change
        for reading, field in _FIELDS.items():
            if getattr(change, field) is not Bump.MAJOR:
                continue
            # One value may break both readings; then it is shown once.
            if change.counterexample is not NO_COUNTEREXAMPLE and self.sides(
                reading
            ).shows(change.counterexample):
                change = replace(change, counterexample_reading="both")
                continue
            counterexample = self.sides(reading).counterexample_of(finding)
            if counterexample is not NO_COUNTEREXAMPLE:
                both = reading == "practical" and change.set_theory is Bump.MAJOR
                both = both and self.sides("set theory").shows(counterexample)
                change = replace(
                    change,
                    counterexample=counterexample,
                    counterexample_reading="both" if both else reading,
                )
            # The whole proves the part harmless: a constraint moved to a place next to
            # it, say.
            elif self._contained(reading) == "yes":
                why = f"{change.why}, though every value that was valid before still is"
                change = replace(change, **{field: Bump.MINOR, "why": why})  # type: ignore[arg-type]  # by name
            elif (
                change.counterexample is NO_COUNTEREXAMPLE and change.why == finding.why
            ):  # said once is enough
                change = replace(
                    change, why=f"{change.why}; {_undecided(self._containment)}"
                )
        return change

    def overlooked(self, side: str, changes: list[Change]) -> Iterator[Change]:
        """Yield what only the whole schemas show, where no single change claims to
        break anything.
        """
        ruled = any(change.ruling is Bump.MINOR for change in changes)
        is_coupled = any(map(_is_coupled, self._sides))
        # `unknown` counts as clear only where parts can be compared one by one: those
        # comparisons found nothing.
        clear = {"yes", "unknown"} - ({"unknown"} if is_coupled else set())
        claimed = [
            max((getattr(each, field) for each in changes), default=Bump.NONE)
            for field in _FIELDS.values()
        ]
        missing = [
            reading
            for reading, bump in zip(_FIELDS, claimed, strict=True)
            if bump is not Bump.MAJOR
            and not (ruled and reading == "practical")
            and self._contained(reading) not in clear
        ]
        if missing:
            strict, practical = (
                Bump.MAJOR if reading in missing else Bump.MINOR for reading in _FIELDS
            )
            why = "taken together, the changes exclude values that were possible before"
            old, new = reversed(self._sides) if self.is_output else self._sides
            whole = Finding(
                (), "schema-changed", why, practical, strict, None, old, new
            )
            yield self.settled(_change(side, whole))
        elif (
            is_coupled
            and max(claimed) <= Bump.PATCH
            and not self._containment.covers(*self._sides)
        ):
            # `prefixItems: [true]` admits nothing new, except next to
            # `unevaluatedItems: false`.
            why = "taken together, the changes admit values that were refused before"
            if self.is_output:
                why = (
                    "taken together, the changes refuse values that were admitted "
                    "before"
                )
            yield _change(
                side, Finding((), "schema-changed", why, Bump.MINOR, Bump.MINOR)
            )

    def _contained(self, reading: str) -> str:
        if reading not in self._answers:
            sides = self.sides(reading)
            self._answers[reading] = self._containment.answer(
                sides.taker.schema, sides.giver.schema
            )
        return self._answers[reading]


_PROMISES = ("read_only", "idempotent")


def _outside_the_schemas(old: Contract, new: Contract) -> Iterator[tuple[str, Finding]]:
    """Yield what changed outside the schemas, each with its side: tools, runtime,
    packages, promises, texts.
    """
    for finding in _requires(old.requires, new.requires):
        yield "requires", finding
    for finding in _annotations(old.annotations, new.annotations):
        yield "annotations", finding
    if old.description != new.description or old.run != new.run:
        why = "its description or the way it runs changed, which no caller sees"
        yield "document", Finding((), "document-changed", why, Bump.PATCH, Bump.PATCH)


def narrowed_version(old: str, new: str) -> Version | None:
    """Return a version that range *old* holds and range *new* does not, or nothing if
    there is none.

    >>> str(narrowed_version(">=1.0.0,<3.0.0", ">=1.0.0,<2.0.0"))
    '2.0.0'
    """
    before, after = VersionRange.parse(old), VersionRange.parse(new)
    # Membership changes only at a bound: the versions at and next to each are enough to
    # compare.
    candidates = {Version(0, 0, 0), Version(10**9, 0, 0), *before.bounds, *after.bounds}
    for edge in (*before.bounds, *after.bounds):
        candidates |= {
            Version(*edge.release),
            Version(edge.major, edge.minor, edge.patch + 1),
            _just_below(edge),
        }
    return min(
        (
            version
            for version in candidates
            if version in before and version not in after
        ),
        default=None,
    )


def _just_below(version: Version) -> Version:
    if version.patch:
        return Version(version.major, version.minor, version.patch - 1)
    if version.minor:
        return Version(version.major, version.minor - 1, 10**9)
    return Version(max(version.major - 1, 0), 10**9, 10**9)


def _requires(old: Any, new: Any) -> Iterator[Finding]:
    before, after = (
        set(map(str, old.get("tools", ()))),
        set(map(str, new.get("tools", ()))),
    )
    if before != after:
        lost, gained = sorted(before - after), sorted(after - before)
        parts = [f"removed {', '.join(lost)}"] * bool(lost) + [
            f"added {', '.join(gained)}"
        ] * bool(gained)
        # A tool that is no longer needed breaks no host in practice; 31.5 says MAJOR
        # for every change of tools.
        breaks = Bump.MAJOR if gained else Bump.MINOR
        why = "requires.tools changed: " + "; ".join(parts)
        # 31.5 rules on tools that are removed or replaced. That an added one is MAJOR
        # is our rule: a host that does not have it can no longer run the skill.
        yield Finding(
            ("tools",),
            "tools-changed",
            why,
            breaks,
            breaks,
            Bump.MAJOR if lost else None,
        )
    if old.get("runtime") != new.get("runtime"):
        try:
            lost_version = narrowed_version(
                str(old.get("runtime", "")), str(new.get("runtime", ""))
            )
        except ValueError:
            lost_version = Version(0, 0, 0)
        bump = Bump.MINOR if lost_version is None else Bump.MAJOR
        why = f"requires.runtime is {show(new.get('runtime', 'any version'))} now"
        why += (
            f"; {lost_version} was enough before"
            if lost_version is not None
            else ", which admits more versions"
        )
        yield Finding(("runtime",), "runtime-changed", why, bump, bump)
    # Packages are installed by the host; its callers do not see them.
    rest = [
        name
        for name in {*old, *new}
        if name not in ("tools", "runtime") and old.get(name) != new.get(name)
    ]
    for name in sorted(rest):
        why = f"what it needs to be installed changed ({name}), which no caller sees"
        yield Finding((name,), "requirement-changed", why, Bump.MINOR, Bump.MINOR)


def _annotations(old: Any, new: Any) -> Iterator[Finding]:
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if name in _PROMISES and bool(before) != bool(after):
            bump = Bump.MAJOR if before else Bump.MINOR
            rule = "promise-withdrawn" if before else "promise-made"
            why = (
                f"it {'no longer promises' if before else 'promises'} to be "
                f"{name.replace('_', ' ')}"
            )
            yield Finding((name,), rule, why, bump, bump)
        else:
            why = f"{name} was {show(before)} and is {show(after)}"
            yield Finding((name,), "annotation-changed", why, Bump.PATCH, Bump.PATCH)
