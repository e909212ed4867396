"""A test helper for authors: prove a contract's migrations on generated values of the
old schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from skillruntime.compatibility.normal_form import NotComparable, closed, normal_form
from skillruntime.compatibility.sampling import samples
from skillruntime.contract.contract import Contract
from skillruntime.contract.migration.migration import Migration, MigrationError, chain
from skillruntime.contract.repairs.coercion import coerce
from skillruntime.contract.repairs.record import without_decimals
from skillruntime.contract.schemas.explanation import explain
from skillruntime.contract.schemas.plain_json import type_name
from skillruntime.contract.schemas.pointer import parse_pointer, value_at
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.violations import Violation
from skillruntime.contract.versions import Version, same_line
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import ErrorCode, SkillInputError

__all__ = ["Proof", "migration_diagnostics", "prove_migrations"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What was tried, and the values that a migration does not convert to the new
    shape.

    ``failures`` are ``{"to": version, "input": value, "why": sentence}``: of each
    migration one input for each distinct cause, what is wrong with the structure before
    values beyond a bound. ``unproven`` are the versions that a migration without
    ``accepts`` leads to: nothing says what to try it on.
    """

    cases: int
    failures: tuple[dict[str, Any], ...]
    unproven: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every migration was tried, and no value was found that breaks a
        law.
        """
        return not self.failures and not self.unproven


def prove_migrations(
    contract: Contract | Mapping[str, Any],
    *,
    examples: int = 200,
    counterexamples: Iterable[Any] = (),
) -> Proof:
    """Return whether every migration of *contract* converts generated values of its old
    version correctly.

    The laws: a value of the old schema (``accepts``, objects closed) migrates to one
    that the next schema accepts, at the end the contract's own; the input is not
    changed; the whole chain gives what the contract accepts. At most *examples* values
    are generated, always the same; *counterexamples* are tried too: those of `compare`,
    say.

    >>> closed = {"type": "object", "additionalProperties": False}
    >>> migration = {"from": "1.x", "to": "2.0.0", "steps": [{"wrap": "/topics"}]}
    >>> migration["accepts"] = closed | {"properties": {"topics": {"type": "string"}}}
    >>> proof = prove_migrations({
    ...     "version": "2.0.0",
    ...     "input": closed | {"properties": {"topics": {"type": "array"}}},
    ...     "migrations": [migration],
    ... })
    >>> proof.holds
    True
    """
    if not isinstance(contract, Contract):
        contract = Contract.from_dict(contract)
    cases, failures, unproven = 0, [], []
    for migration in contract.migrations:
        if migration.accepts is None:
            unproven.append(str(migration.to))
            continue
        tried, broken = _tried(contract, migration, examples, list(counterexamples))
        cases += tried
        failures += broken
    return Proof(cases, tuple(failures), tuple(unproven))


def migration_diagnostics(
    contract: Contract, path: str, *, examples: int = 50
) -> list[Diagnostic]:
    """Return findings on the migrations of the contract in the file *path*."""
    found = []
    proof = prove_migrations(contract, examples=examples)
    for version in proof.unproven:
        text = f"the migration to {version} has no 'accepts', so it cannot be tried"
        hint = "add 'accepts', the input schema of the old version"
        found.append(
            Diagnostic("migration-unproven", Severity.ADVICE, path, text, hint=hint)
        )
    for failure in proof.failures:
        shown = json.dumps(failure["input"], ensure_ascii=False)
        text = (
            f"the migration to {failure['to']} fails for {shown[:200]}: "
            f"{failure['why']}"
        )
        hint = "correct its steps, or narrow its 'accepts' to what old callers send"
        found.append(
            Diagnostic("migration-fails", Severity.WARNING, path, text, hint=hint)
        )
    return found


def _tried(
    contract: Contract, migration: Migration, examples: int, counterexamples: list[Any]
) -> tuple[int, list[dict[str, Any]]]:
    """Return how many values were tried on *migration*, and its failures."""
    old = _with_definitions(migration.accepts, contract)
    accepts = Schema(old, where=f"migration to {migration.to}")
    try:
        narrow: Any = closed(normal_form(old))
    except NotComparable:
        narrow = old
    rest = chain(contract.migrations, migration.to)
    end = rest[-1].to if rest else migration.to
    version = contract.version
    if version is not None and not same_line(Version.parse(version), end):
        why = (
            f"nothing leads on from {end} to {version}, so every call of an older "
            "version is refused"
        )
        return 0, [{"to": str(migration.to), "input": {}, "why": why}]
    tried = 0
    failures: dict[_Cause, dict[str, Any]] = {}
    # Known counterexamples first: they are small, and what a generator finds last.
    for value in [*counterexamples, *islice(_values(narrow), examples)]:
        # Closing the objects may leave values that the schema itself refuses, and
        # arguments are always an object.
        if not isinstance(value, dict) or not accepts.is_valid(value):
            continue
        tried += 1
        broken = _broken_law(contract, migration, rest, value)
        if broken is not None:
            failure = {"to": str(migration.to), "input": value, "why": broken.why}
            failures.setdefault(broken.cause, failure)
    causes = sorted(failures, key=lambda cause: cause.is_beyond_bound)
    return tried, [failures[cause] for cause in causes]


def _values(schema: Any) -> Iterator[Any]:
    """Yield a few values of the object *schema*, and then each value of each member in
    the first of them.
    """
    whole = [value for value in samples(schema, 20) if isinstance(value, dict)]
    yield from whole
    if not whole or not isinstance(schema, dict):
        return
    for name, part in schema.get("properties", {}).items():
        for value in samples(part, 20):
            yield {**whole[0], name: value}


@dataclass(frozen=True, slots=True)
class _Cause:
    """What two inputs have in common that fail alike."""

    is_beyond_bound: bool
    law: str
    pointer: str
    type: str


@dataclass(frozen=True, slots=True)
class _Broken:
    """Why a value breaks a law, for its author and to tell one cause from another."""

    cause: _Cause
    why: str


def _broken_law(
    contract: Contract,
    migration: Migration,
    rest: list[Migration],
    value: dict[str, Any],
) -> _Broken | None:
    """Return the law that *migration*, followed by the *rest* of the chain, breaks on
    *value*.
    """
    before = json.dumps(value, sort_keys=True)
    try:
        result = migration.apply(value)
    except MigrationError as error:
        cause = _cause(f"step {error.step}", error.path, value)
        return _Broken(cause, str(error))
    # A host's function gets a copy, but a bug in a step would change the caller's
    # arguments.
    if json.dumps(value, sort_keys=True) != before:
        cause = _cause("input", "", value)
        return _Broken(cause, "the migration changed its input")
    for index, following in enumerate([*rest, None]):
        shape = _shape(following, contract)
        if shape is not None:
            # As `Contract.accept` does between the links of a chain: a null for what
            # may be absent is left out, say.
            coerced = coerce(result, shape)
            if not coerced.fits:
                return _not_accepted(result, coerced.violations, following, index)
            result = without_decimals(coerced.value)
        if following is None:
            continue
        try:
            result = following.apply(result)
        except SkillInputError as error:
            path = error.path if isinstance(error, MigrationError) else ""
            cause = _cause(f"chain {index}", path, result)
            return _Broken(cause, f"further along the chain: {error}")
    return None


def _not_accepted(
    result: Any,
    violations: tuple[Violation, ...],
    following: Migration | None,
    index: int,
) -> _Broken:
    """Return why *result* is refused by what comes next: *following*, the migration
    *index* of the rest of the chain, or else the contract.
    """
    if following is None:
        subject = "the contract"
    elif index == 0:
        subject = "the next version"
    else:
        subject = str(following.source)
    error = explain(violations)[0]
    cause = _cause(
        f"{index} {violations[0].keyword}",
        str((error.details or {}).get("path", "")),
        result,
        is_beyond_bound=error.code is ErrorCode.PARAM_OUT_OF_RANGE,
    )
    end = " at the end of the chain" if index else ""
    return _Broken(cause, f"{subject} does not accept the result{end}: {error.message}")


def _cause(
    law: str, pointer: str, value: Any, *, is_beyond_bound: bool = False
) -> _Cause:
    try:
        kind = type_name(value_at(value, parse_pointer(pointer)))
    except LookupError:
        kind = "absent"
    # What is wrong with one item is wrong with each.
    pointer = re.sub(r"/\d+(?=/|$)", "/*", pointer)
    return _Cause(is_beyond_bound, law, pointer, kind)


def _shape(following: Migration | None, contract: Contract) -> Schema | None:
    """Return what the migration *following* starts from, or the contract's own input
    after the last one.
    """
    if following is None:
        return contract.input
    if following.accepts is None:
        return None
    return Schema(_with_definitions(following.accepts, contract))


def _with_definitions(schema: Any, contract: Contract) -> Any:
    """Return *schema* with the definitions of the contract's document around it."""
    if not isinstance(schema, dict):
        return schema
    document = contract.to_dict()
    around = {
        word: document[word]
        for word in ("$schema", "$defs", "definitions")
        if word in document
    }
    return {**around, **schema}
