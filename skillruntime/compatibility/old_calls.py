"""Try calls of an old contract on the new one, to find breaks that the schemas alone do
not show.

The calls are made from the old contract's own schema and those of its migrations, and
each is given to both contracts. No script is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from skillruntime.compatibility.comparison import Change, Verdict
from skillruntime.compatibility.counterexample import NO_COUNTEREXAMPLE
from skillruntime.compatibility.finding import Bump
from skillruntime.compatibility.migration_proof import with_definitions
from skillruntime.compatibility.normal_form import NotComparable, closed, normal_form
from skillruntime.compatibility.sampling import sample_objects
from skillruntime.contract.contract import Accepted, Contract
from skillruntime.contract.document.aliases import names_by_alias
from skillruntime.contract.migration.migration import Migration
from skillruntime.contract.migration.value_conversions import show
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.versions import Version
from skillruntime.errors import SkillInputError

__all__ = ["OldCall", "OldCalls", "try_old_calls"]

_MOST_CALLS = 100
"""The most calls that are generated from one schema."""


@dataclass(frozen=True, slots=True)
class OldCall:
    """One call that the old contract accepts, and the new contract's result for it.

    ``version`` is what the caller states, or ``None``. ``expected`` are the arguments
    that the old contract gives, in the new contract's shape; ``arguments`` those that
    the new one gives, or ``None`` where it refuses the call, as ``refusal`` says. A
    call ``is_of_older_shape`` if the old contract migrates it too.
    """

    sent: dict[str, Any]
    version: str | None
    expected: dict[str, Any]
    arguments: dict[str, Any] | None
    refusal: str = ""
    is_migrated: bool = False
    is_repaired: bool = False
    is_of_older_shape: bool = False

    @property
    def is_taken(self) -> bool:
        """Whether the new contract takes the call."""
        return self.arguments is not None

    @property
    def is_changed(self) -> bool:
        """Whether the new contract takes it with other arguments than expected."""
        return self.is_taken and not is_same(self.arguments, self.expected)


@dataclass(frozen=True, slots=True)
class OldCalls:
    """All calls that were tried."""

    calls: tuple[OldCall, ...]

    @property
    def are_taken(self) -> bool:
        """Whether calls were tried, and each is taken."""
        return bool(self.calls) and all(call.is_taken for call in self.calls)

    def __str__(self) -> str:
        numbers = self.to_dict()
        text = f"{numbers['taken']} of {numbers['tried']} old calls are taken"
        if not numbers["taken"]:
            return text
        changed = numbers["migrated"] + numbers["repaired"]
        text += f": {numbers['taken'] - changed} without a migration"
        for word in ("migrated", "repaired"):
            if numbers[word]:
                text += f", {numbers[word]} {word}"
        return text

    def to_dict(self) -> dict[str, int]:
        """Return the numbers as a JSON object: calls ``tried`` and ``taken``; of those
        taken, ``migrated``, ``repaired`` and ``changed`` ones.
        """
        taken = [call for call in self.calls if call.is_taken]
        return {
            "tried": len(self.calls),
            "taken": len(taken),
            "migrated": sum(call.is_migrated for call in taken),
            "repaired": sum(call.is_repaired for call in taken),
            "changed": sum(call.is_changed for call in taken),
        }

    def of(self, sent: Any) -> OldCall | None:
        """Return the call with the arguments *sent*, if it was tried."""
        for call in self.calls:
            if is_same(call.sent, sent):
                return call
        return None

    def added_to(self, verdict: Verdict) -> Verdict:
        """Return *verdict* with the findings of the calls added; no bump is lowered.

        A refused call is MAJOR, a changed one MINOR; a counterexample of the input that
        the new contract takes, as it is or migrated, is left out.
        """
        changes = [self._without_taken(change) for change in verdict.changes]
        changes += self._findings(is_broken=verdict.bump is Bump.MAJOR)
        changes.sort(key=lambda change: -change.bump)
        return Verdict(tuple(changes))

    def _without_taken(self, change: Change) -> Change:
        if change.side != "input" or change.counterexample is NO_COUNTEREXAMPLE:
            return change
        call = self.of(change.counterexample)
        if call is None or not call.is_taken or call.is_repaired:
            return change
        # An open schema takes what it no longer declares: that is still worth showing.
        if not call.is_migrated and change.counterexample_reading == "practical":
            return change
        return change.without_counterexample()

    def _findings(self, *, is_broken: bool) -> Iterator[Change]:
        refused = [call for call in self.calls if not call.is_taken]
        if is_broken:
            # The schemas say why calls of the old contract's own shape are refused.
            refused = [call for call in refused if call.is_of_older_shape]
        changed = [call for call in self.calls if call.is_changed]
        if refused:
            first = refused[0]
            why = (
                f"{_number(refused, self.calls)} refused now; the first one"
                f"{_stated(first)}: {first.refusal}"
            )
            yield _change("old-call-refused", why, Bump.MAJOR, first)
        if changed:
            first = changed[0]
            why = (
                f"{_number(changed, self.calls)} taken with other arguments; the "
                f"first one{_stated(first)} gave {show(first.expected)}, and gives "
                f"{show(first.arguments)}"
            )
            yield _change("old-call-changed", why, Bump.MINOR, first)


def try_old_calls(
    old: Contract | Mapping[str, Any],
    new: Contract | Mapping[str, Any],
    verdict: Verdict | None = None,
) -> OldCalls:
    """Return the results of contract *new* for calls that contract *old* accepts.

    Tried are the smallest call, each parameter alone, bounds and members of enums, the
    same calls at each run; and the counterexamples of *verdict*, if it is given.

    >>> text = {"type": "string"}
    >>> old = {"version": "1.0.0", "input": {"properties": {"topic": text}}}
    >>> new = {"version": "2.0.0", "input": {"properties": {"topics": text}}}
    >>> new["input"]["additionalProperties"] = False
    >>> new["migrations"] = [{"to": "2.0.0", "accepts": old["input"], "steps": [
    ...     {"rename": {"from": "/topic", "to": "/topics"}}]}]
    >>> str(try_old_calls(old, new))
    '19 of 19 old calls are taken: 0 without a migration, 19 migrated'
    """
    before = old if isinstance(old, Contract) else Contract.from_dict(old)
    after = new if isinstance(new, Contract) else Contract.from_dict(new)
    calls: list[OldCall] = []
    for sent, version in _calls_of(before, verdict):
        call = _tried(before, after, sent, version)
        if call is not None:
            calls.append(call)
    return OldCalls(tuple(calls))


def _calls_of(
    contract: Contract, verdict: Verdict | None
) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Yield calls that *contract* may take, each with the version that it states."""
    shown = verdict.changes if verdict else ()
    for change in shown:
        if change.side == "input" and isinstance(change.counterexample, dict):
            yield change.counterexample, contract.version
    for sent in _samples(contract.input.document):
        yield sent, contract.version
        yield from _under_aliases(contract, sent)
    for migration in contract.migrations:
        if migration.accepts is None:
            continue
        version = _version_of(migration)
        for sent in _samples(with_definitions(migration.accepts, contract)):
            yield sent, version
            yield sent, None


def _samples(document: Any) -> Iterator[dict[str, Any]]:
    try:
        schema = closed(normal_form(document))
    except NotComparable:
        schema = document
    yield from islice(sample_objects(schema), _MOST_CALLS)


def _under_aliases(
    contract: Contract, sent: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Yield *sent* once under each alias of its parameters; aliases are for calls that
    state no version.
    """
    for alias, name in names_by_alias(contract.to_dict()).items():
        if name in sent and alias not in sent:
            rest = {key: value for key, value in sent.items() if key != name}
            yield {alias: sent[name], **rest}, None


def _version_of(migration: Migration) -> str | None:
    """Return the lowest version that *migration* starts from, among the bounds of its
    range and 0.0.0; ``None`` if it has no range, or holds none of them.
    """
    if migration.source is None:
        return None
    candidates = [*migration.source.bounds, Version(0, 0, 0)]
    held = [version for version in candidates if version in migration.source]
    if not held:
        return None
    return str(min(held))


def _tried(
    old: Contract, new: Contract, sent: dict[str, Any], version: str | None
) -> OldCall | None:
    """Return the result of *new* for the call *sent*; ``None`` if *old* refuses it."""
    by_old = _accepted(old, sent, version)
    if isinstance(by_old, SkillInputError):
        return None
    # The new contract brings the old contract's answer into its own shape, as a call of
    # the old version: an older call must give the same, by whatever migrations.
    by_both = _accepted(new, by_old.arguments, old.version)
    expected = by_old.arguments
    if isinstance(by_both, Accepted):
        expected = by_both.arguments
    answer = _accepted(new, sent, version)
    arguments = None
    refusal = ""
    is_migrated = False
    is_repaired = False
    if isinstance(answer, Accepted):
        arguments = answer.arguments
        is_migrated = answer.migrated_from is not None
        is_repaired = not is_migrated and bool(answer.repairs)
    else:
        refusal = str(answer)
    is_of_older_shape = by_old.migrated_from is not None
    return OldCall(
        sent,
        version,
        expected,
        arguments,
        refusal=refusal,
        is_migrated=is_migrated,
        is_repaired=is_repaired,
        is_of_older_shape=is_of_older_shape,
    )


def _accepted(
    contract: Contract, sent: dict[str, Any], version: str | None
) -> Accepted | SkillInputError:
    try:
        return contract.accept(sent, version=version)
    except SkillInputError as error:
        return error


def _change(rule: str, why: str, bump: Bump, call: OldCall) -> Change:
    return Change(
        "input", "", rule, why, bump, bump, None, call.sent, "the old contract"
    )


def _number(some: list[OldCall], all_calls: tuple[OldCall, ...]) -> str:
    verb = "is" if len(some) == 1 else "are"
    return f"{len(some)} of {len(all_calls)} old calls {verb}"


def _stated(call: OldCall) -> str:
    return f" (version {call.version})" if call.version else ""
