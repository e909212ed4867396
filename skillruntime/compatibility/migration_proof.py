"""A test helper for authors: prove a contract's migrations on generated values of the
old schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from skillruntime.compatibility.normal_form import NotComparable, closed, normal_form
from skillruntime.compatibility.sampling import samples
from skillruntime.contract.contract import Contract
from skillruntime.contract.migration.migration import Migration, MigrationError, chain
from skillruntime.contract.repairs.coercion import coerce, without_decimals
from skillruntime.contract.schemas.explanation import explain
from skillruntime.contract.schemas.plain_json import type_name
from skillruntime.contract.schemas.pointer import parse_pointer, value_at
from skillruntime.contract.schemas.schema import Schema
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

    >>> proof = prove_migrations({"version": "2.0.0",
    ...     "input": {"type": "object", "properties": {"topics": {"type": "array"}}, "additionalProperties": False},
    ...     "migrations": [{"from": "1.x", "to": "2.0.0", "steps": [{"wrap": "/topics"}], "accepts": {
    ...         "type": "object", "properties": {"topics": {"type": "string"}}, "additionalProperties": False}}]})
    >>> proof.holds
    True
    """
    subject = (
        contract if isinstance(contract, Contract) else Contract.from_dict(contract)
    )
    cases, failures, unproven = 0, [], []
    for migration in subject.migrations:
        if migration.accepts is None:
            unproven.append(str(migration.to))
            continue
        tried, found = _tried(subject, migration, examples, list(counterexamples))
        cases += tried
        failures += found
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
    old = _with_definitions(migration.accepts, contract)
    accepts = Schema(old, where=f"migration to {migration.to}")
    try:
        narrow: Any = closed(normal_form(old))
    except NotComparable:
        narrow = old
    rest = chain(contract.migrations, migration.to)
    end = (rest or [migration])[-1].to
    if contract.version is not None and not same_line(
        Version.parse(contract.version), end
    ):
        why = (
            f"nothing leads on from {end} to {contract.version}, so every call of an "
            "older version is refused"
        )
        return 0, [{"to": str(migration.to), "input": {}, "why": why}]
    tried = 0
    found: dict[_Cause, dict[str, Any]] = {}
    # Known counterexamples first: they are small, and what a generator finds last.
    for value in [*counterexamples, *islice(_values(narrow), examples)]:
        # Closing the objects may leave values that the schema itself refuses, and
        # arguments are always an object.
        if not isinstance(value, dict) or not accepts.is_valid(value):
            continue
        tried += 1
        broken = _broken_law(contract, migration, rest, value)
        if broken is not None:
            cause, why = broken
            found.setdefault(
                cause, {"to": str(migration.to), "input": value, "why": why}
            )
    return tried, [found[cause] for cause in sorted(found, key=lambda cause: cause[0])]


def _values(schema: Any) -> Iterator[Any]:
    """Yield a few values of the object *schema*, and then each value of each member in
    the first of them.
    """
    whole = [value for value in samples(schema, 20) if isinstance(value, dict)]
    yield from whole
    for name, part in (
        schema.get("properties", {}).items()
        if whole and isinstance(schema, dict)
        else ()
    ):
        yield from ({**whole[0], name: value} for value in samples(part, 20))


# Whether a value is beyond a bound; and what is wrong, where, and of which type it is:
# two inputs may have one cause.
_Cause: TypeAlias = tuple[bool, str, str, str]


def _broken_law(
    contract: Contract,
    migration: Migration,
    rest: list[Migration],
    value: dict[str, Any],
) -> tuple[_Cause, str] | None:
    before = json.dumps(value, sort_keys=True)
    try:
        result = migration.apply(value)
    except MigrationError as error:
        return _cause(f"step {error.step}", error.path, value), str(error)
    # A host's function gets a copy, but a bug in a step would change the caller's
    # arguments.
    if json.dumps(value, sort_keys=True) != before:
        return _cause("input", "", value), "the migration changed its input"
    for index, following in enumerate([*rest, None]):
        shape = _shape(following, contract)
        if shape is not None:
            # As `Contract.accept` does between the links of a chain: a null for what
            # may be absent is left out, say.
            coerced = coerce(result, shape)
            if not coerced.fits:
                wrong = explain(coerced.violations)[0]
                who = (
                    "the contract"
                    if following is None
                    else "the next version"
                    if index == 0
                    else str(following.source)
                )
                path = str((wrong.details or {}).get("path", ""))
                is_beyond = wrong.code is ErrorCode.PARAM_OUT_OF_RANGE
                cause = _cause(
                    f"{index} {coerced.violations[0].keyword}",
                    path,
                    result,
                    is_beyond=is_beyond,
                )
                end = " at the end of the chain" * bool(index)
                return cause, f"{who} does not accept the result{end}: {wrong.message}"
            result = without_decimals(coerced.value)
        if following is not None:
            try:
                result = following.apply(result)
            except SkillInputError as error:
                path = error.path if isinstance(error, MigrationError) else ""
                return _cause(
                    f"chain {index}", path, result
                ), f"further along the chain: {error}"
    return None


def _cause(what: str, pointer: str, value: Any, *, is_beyond: bool = False) -> _Cause:
    try:
        kind = type_name(value_at(value, parse_pointer(pointer)))
    except LookupError:
        kind = "absent"
    return is_beyond, what, re.sub(r"/\d+(?=/|$)", "/*", pointer), kind


def _shape(following: Migration | None, contract: Contract) -> Schema | None:
    """Return what the migration *following* starts from, or the contract's own input
    after the last one.
    """
    if following is None:
        return contract.input
    return (
        None
        if following.accepts is None
        else Schema(_with_definitions(following.accepts, contract))
    )


def _with_definitions(schema: Any, contract: Contract) -> Any:
    """Return *schema* with the definitions of the contract's document around it."""
    document = contract.to_dict()
    around = {
        word: document[word]
        for word in ("$schema", "$defs", "definitions")
        if word in document
    }
    return {**around, **schema} if isinstance(schema, dict) else schema
