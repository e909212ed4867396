"""A test helper for authors: prove a contract's migrations on generated values of the
old schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from skillruntime.compatibility.normal_form import NotComparable, closed, normal_form
from skillruntime.compatibility.sampling import sample_objects
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

__all__ = ["Proof", "migration_diagnostics", "prove_migrations", "with_definitions"]


@dataclass(frozen=True, slots=True)
class Proof:
    """How many values were tried, and those that a migration does not convert to the
    new shape.

    ``failures`` are ``{"to": version, "input": value, "why": sentence}``: for each
    migration one input for each distinct cause, faults of structure before values
    beyond a bound. ``unproven`` are the targets of migrations without ``accepts``, for
    which no values can be generated.
    """

    cases: int
    failures: tuple[dict[str, Any], ...]
    unproven: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every migration was tried and no value broke a law."""
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
    that the next schema accepts, and the last one to what the contract accepts; the
    input is not changed. At most *examples* values are generated, always the same.
    *counterexamples*, such as those of `compare`, are tried too.

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
        tried, failures_of_one = _try_migration(
            contract, migration, examples, list(counterexamples)
        )
        cases += tried
        failures += failures_of_one
    return Proof(cases, tuple(failures), tuple(unproven))


def migration_diagnostics(
    contract: Contract, path: str, *, examples: int = 50
) -> list[Diagnostic]:
    """Return findings on the migrations of the contract in the file *path*."""
    diagnostics = []
    proof = prove_migrations(contract, examples=examples)
    for version in proof.unproven:
        text = f"the migration to {version} has no 'accepts', so it cannot be tried"
        hint = "add 'accepts', the input schema of the old version"
        diagnostics.append(
            Diagnostic("migration-unproven", Severity.ADVICE, path, text, hint=hint)
        )
    for failure in proof.failures:
        shown = json.dumps(failure["input"], ensure_ascii=False)
        text = (
            f"the migration to {failure['to']} fails for {shown[:200]}: "
            f"{failure['why']}"
        )
        hint = "correct its steps, or narrow its 'accepts' to what old callers send"
        diagnostics.append(
            Diagnostic("migration-fails", Severity.WARNING, path, text, hint=hint)
        )
    return diagnostics


def _try_migration(
    contract: Contract, migration: Migration, examples: int, counterexamples: list[Any]
) -> tuple[int, list[dict[str, Any]]]:
    """Try *migration* on values of its old schema; return how many were tried, and the
    failures.
    """
    old_schema = with_definitions(migration.accepts, contract)
    accepts = Schema(old_schema, where=f"migration to {migration.to}")
    try:
        sample_schema: Any = closed(normal_form(old_schema))
    except NotComparable:
        sample_schema = old_schema
    following = chain(contract.migrations, migration.to)
    last_version = following[-1].to if following else migration.to
    version = contract.version
    if version is not None and not same_line(Version.parse(version), last_version):
        why = (
            f"nothing leads on from {last_version} to {version}, so every call of an "
            "older version is refused"
        )
        return 0, [{"to": str(migration.to), "input": {}, "why": why}]
    tried = 0
    failures: dict[_Cause, dict[str, Any]] = {}
    # Known counterexamples first: they are small, and a generator would find them last.
    for value in [*counterexamples, *islice(sample_objects(sample_schema), examples)]:
        # Closing the objects may leave values that the schema itself refuses, and
        # arguments are always an object.
        if not isinstance(value, dict) or not accepts.is_valid(value):
            continue
        tried += 1
        broken = _broken_law(contract, migration, following, value)
        if broken is not None:
            failure = {"to": str(migration.to), "input": value, "why": broken.why}
            failures.setdefault(broken.cause, failure)
    causes = sorted(failures, key=lambda cause: cause.is_beyond_bound)
    return tried, [failures[cause] for cause in causes]


@dataclass(frozen=True, slots=True)
class _Cause:
    """The common cause of inputs that fail in the same way."""

    is_beyond_bound: bool
    law: str
    pointer: str
    type: str


@dataclass(frozen=True, slots=True)
class _Broken:
    """A broken law: *why* explains it to the author, and the cause distinguishes it
    from others.
    """

    cause: _Cause
    why: str


def _broken_law(
    contract: Contract,
    migration: Migration,
    following: list[Migration],
    value: dict[str, Any],
) -> _Broken | None:
    """Return the law that *migration* and the *following* ones break on *value*."""
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
    # None stands for the contract itself, which comes after the last migration.
    for index, next_migration in enumerate([*following, None]):
        shape = _shape(next_migration, contract)
        if shape is not None:
            # As `Contract.accept` does between the links of a chain: a null for what
            # may be absent is left out, say.
            coerced = coerce(result, shape)
            if not coerced.fits:
                return _not_accepted(result, coerced.violations, next_migration, index)
            result = without_decimals(coerced.value)
        if next_migration is None:
            continue
        try:
            result = next_migration.apply(result)
        except SkillInputError as error:
            path = error.path if isinstance(error, MigrationError) else ""
            cause = _cause(f"chain {index}", path, result)
            return _Broken(cause, f"further along the chain: {error}")
    return None


def _not_accepted(
    result: Any,
    violations: tuple[Violation, ...],
    next_migration: Migration | None,
    index: int,
) -> _Broken:
    """Return why *next_migration*, or the contract if that is None, refuses *result*.

    *index* is the position of the migration among the following ones.
    """
    if next_migration is None:
        subject = "the contract"
    elif index == 0:
        subject = "the next version"
    else:
        subject = str(next_migration.source)
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
    # Faults of different items of an array have one cause.
    pointer = re.sub(r"/\d+(?=/|$)", "/*", pointer)
    return _Cause(is_beyond_bound, law, pointer, kind)


def _shape(migration: Migration | None, contract: Contract) -> Schema | None:
    """Return the schema that *migration* starts from, if it has one; for None, the
    contract's own input.
    """
    if migration is None:
        return contract.input
    if migration.accepts is None:
        return None
    return Schema(with_definitions(migration.accepts, contract))


def with_definitions(schema: Any, contract: Contract) -> Any:
    """Return *schema* with the definitions of the contract's document around it."""
    if not isinstance(schema, dict):
        return schema
    document = contract.to_dict()
    definitions = {
        word: document[word]
        for word in ("$schema", "$defs", "definitions")
        if word in document
    }
    return {**definitions, **schema}
