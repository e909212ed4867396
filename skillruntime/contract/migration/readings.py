"""Find out which version arguments were written for, and bring them to the current
shape.

What fits an older shape as it is, is of that version; what fits none is read by each,
and refused where two readings differ. The repairs and the migrations share the
knowledge of whose shape is in force, so they are not separable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from skillruntime.contract.repair_rules import (
    CONTAINER_TEXT,
    WRAPPER_OBJECT,
    rules_that,
)
from skillruntime.contract.repairs.coercion import Coerced, coerce
from skillruntime.contract.repairs.containers import pieces
from skillruntime.contract.repairs.policy import Policy
from skillruntime.contract.repairs.record import Repair, without_decimals
from skillruntime.contract.schemas.explanation import explain
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA, ValuePath, parse_pointer
from skillruntime.contract.schemas.references import References, properties_of
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import declared_properties, subschemas
from skillruntime.errors import (
    ErrorCode,
    SkillError,
    SkillInputError,
    UnsupportedVersionError,
)

if TYPE_CHECKING:
    from skillruntime.contract.migration.migration import Migration
    from skillruntime.contract.versions import Version


class Shapes(NamedTuple):
    """The shapes of one contract's arguments: the *current* one of *version*, and the
    *older* ones.

    Each of *older* is what the migration of the same index starts from, where it is
    known; *reserved* are the names of all their parameters.
    """

    current: Schema
    version: str | None
    migrations: tuple[Migration, ...]
    older: tuple[Schema | None, ...]
    reserved: frozenset[str]

    @property
    def starts(self) -> tuple[int, ...]:
        """The migrations, newest first, from which the way leads to the current line of
        versions.
        """
        if not self.migrations:
            return ()
        from skillruntime.contract.migration.migration import chain

        ends = [
            (chain(self.migrations, each.to) or [each])[-1].to
            for each in self.migrations
        ]
        return tuple(
            index for index in reversed(range(len(ends))) if self.arrives(ends[index])
        )

    def arrives(self, version: Version) -> bool:
        """Whether arguments in the shape of *version* are of the current line."""
        from skillruntime.contract.versions import Version, same_line

        return self.version is None or same_line(Version.parse(self.version), version)


class Reading(NamedTuple):
    """Arguments brought to the current shape.

    ``sent`` are their keys in the shape that they were read by; ``dropped`` the places
    of what a migration left out.
    """

    coerced: Coerced
    migrated_from: str | None = None
    sent: frozenset[str] = frozenset()
    dropped: tuple[str, ...] = ()


def read_as_version(
    shapes: Shapes, arguments: Any, version: str | None, policy: Policy
) -> Reading:
    """Find out which version *arguments* were written for, and bring them to the
    current shape.
    """
    if version is not None:
        return _as_version(shapes, arguments, version, policy)
    if not shapes.migrations:
        return _along(shapes, arguments, None, policy)
    if _is_untouched(arguments, shapes.current):
        return Reading(Coerced(arguments))
    newest_first = shapes.starts
    for index in newest_first:
        shape = shapes.older[index]
        if shape is not None and _is_untouched(arguments, shape):
            return _of_old_caller(shapes, arguments, index, policy)
    formal = (
        _formally_repaired(shapes, arguments, policy)
        if newest_first and policy.repair
        else None
    )
    if formal is not None:
        reading = read_as_version(shapes, formal.value, None, policy)
        return reading._replace(
            coerced=reading.coerced._replace(
                repairs=formal.repairs + reading.coerced.repairs
            )
        )
    attempts: list[Reading] = []
    refusal: SkillInputError | None = None
    # The current shape first: most callers are current, and among old ones the newest
    # are the likeliest.
    for start in (None, *newest_first) if policy.repair else (None,):
        if start is not None and shapes.older[start] is None:
            continue
        try:
            attempts.append(_along(shapes, arguments, start, policy))
        except SkillInputError as error:
            refusal = refusal or error
    if not attempts:
        assert refusal is not None
        raise refusal
    for attempt in attempts[1:]:
        if not is_same(attempt.coerced.value, attempts[0].coerced.value):
            raise _unclear_version(shapes)
    return attempts[0]


def _formally_repaired(
    shapes: Shapes, arguments: Any, policy: Policy
) -> Coerced | None:
    """Return *arguments* in the form of the newest shape that they need only a wrapper
    taken off or quotes to fit.

    Then they are read as the same call without the wrapper or the quotes is, whatever
    version that is of.
    """
    for shape in (shapes.current, *(shapes.older[index] for index in shapes.starts)):
        coerced = (
            None
            if shape is None
            else coerce(arguments, shape, policy, reserved=shapes.reserved)
        )
        if coerced is None or not coerced.fits or not coerced.repairs:
            continue
        first = coerced.repairs[0]
        if first.rule == WRAPPER_OBJECT and not first.path:
            return Coerced(first.after, (first,))
        if all(repair.rule in _FORMAL for repair in coerced.repairs):
            return coerced
    return None


def _of_old_caller(
    shapes: Shapes, arguments: Any, index: int, policy: Policy
) -> Reading:
    """Bring *arguments*, which fit the shape before migration *index* as they are, to
    the current shape.

    They are also read by the current shape. A container written in a string is the
    commonest error of current callers: where the current shape needs no other repair
    and the old one says nothing about that string, it is the container. Where the two
    readings differ otherwise, the call is refused.
    """
    old = _along(shapes, arguments, index, policy, may_hold_containers=True)
    shape = shapes.older[index]
    assert shape is not None
    for start in (None, *(each for each in shapes.starts if each > index)):
        newer = shapes.current if start is None else shapes.older[start]
        if newer is None:
            continue
        try:
            reading = _along(shapes, arguments, start, policy)
        except SkillInputError:
            if _holds_container(arguments, shape, newer):
                # a broken list of a newer caller must not become the item of an older
                # one
                raise
            continue
        rules = {repair.rule for repair in reading.coerced.repairs}
        old_names = shapes.reserved - properties_of(newer.document).keys()
        if rules & _UNCOUNTED or not old_names.isdisjoint(reading.sent):
            continue
        if is_same(
            without_decimals(reading.coerced.value), without_decimals(old.coerced.value)
        ):
            continue
        if rules == {CONTAINER_TEXT} and not any(
            _describes_text(shape.references, parse_pointer(repair.path))
            for repair in reading.coerced.repairs
        ):
            return reading
        raise _unclear_version(shapes)
    _along(
        shapes, arguments, index, policy
    )  # refuses a container in a text that would become an item
    return old


def _holds_container(arguments: dict[str, Any], shape: Schema, newer: Schema) -> bool:
    """Whether a string of *arguments* looks like a container that *newer* asks for, and
    is only that.
    """
    for name, text in arguments.items():
        if not isinstance(text, str) or _describes_text(shape.references, (name,)):
            continue
        kinds = {
            str(each.get("type")) for each in subschemas(newer.references, ValuePath((name,)))
        }
        if (
            text.strip(" '\"`\n")[:1] in ("[", "{", "(")
            and kinds
            and kinds <= {"array", "object"}
        ):
            return True
        # "AI, space" may be two topics of a newer caller, or one of an older one.
        if len(pieces(text)) > 1 and kinds == {"array"}:
            return True
    return False


def _unclear_version(shapes: Shapes) -> SkillInputError:
    return SkillInputError(
        "The arguments could be of this version or of an older one, with different "
        "results",
        suggested_action=f"Send them in the form of version {shapes.version}, or state the version",
    )


def _is_untouched(arguments: Any, shape: Schema) -> bool:
    return isinstance(arguments, dict) and shape.is_valid(arguments)


def _as_version(shapes: Shapes, arguments: Any, stated: str, policy: Policy) -> Reading:
    from skillruntime.contract.migration.migration import chain
    from skillruntime.contract.versions import Version

    try:
        version = Version.parse(str(stated))
    except ValueError as error:
        raise UnsupportedVersionError(
            str(error),
            suggested_action="State a version such as 1.2.0, or leave the version out",
        ) from None
    covering = chain(shapes.migrations, version)
    if covering and shapes.arrives(covering[-1].to):
        start = shapes.migrations.index(covering[0])
        old = _along(shapes, arguments, start, policy, may_hold_containers=True)
        if _is_of_current(shapes, arguments, start) and not is_same(
            without_decimals(old.coerced.value), arguments
        ):
            raise _unclear_version(shapes)
        return old._replace(migrated_from=stated)
    if not covering and shapes.arrives(version):
        return _along(shapes, arguments, None, policy)
    covered = [str(migration.source) for migration in shapes.migrations]
    ends = f", and the migrations from it end at {covering[-1].to}" if covering else ""
    raise UnsupportedVersionError(
        f"No contract covers version {stated}; this is {shapes.version}{ends}",
        details={"version": shapes.version, "migrates_from": covered},
        suggested_action=f"Send the arguments in the form of version {shapes.version}",
    )


def _is_of_current(shapes: Shapes, arguments: Any, start: int) -> bool:
    """Whether *arguments* fit the current shape and use a name of it that the shape
    before *start* lacks.
    """
    shape = shapes.older[start]
    if shape is None or not _is_untouched(arguments, shapes.current):
        return False
    new = (
        properties_of(shapes.current.document).keys()
        - declared_properties(shape.references, [WHOLE_SCHEMA]).keys()
    )
    return not new.isdisjoint(arguments)


def _along(
    shapes: Shapes,
    arguments: Any,
    start: int | None,
    policy: Policy,
    *,
    may_hold_containers: bool = False,
) -> Reading:
    """Bring *arguments* from the shape before migration *start* to the current one;
    ``None`` is the current.
    """
    repairs: tuple[Repair, ...] = ()
    value = arguments
    sent: frozenset[str] | None = None
    dropped: tuple[str, ...] = ()
    if start is not None:
        from skillruntime.contract.migration.migration import chain

        first = shapes.migrations[start]
        for migration in (first, *chain(shapes.migrations, first.to)):
            shape = shapes.older[shapes.migrations.index(migration)]
            if shape is not None:
                coerced = _coerced(shapes, value, shape, policy)
                repairs += coerced.repairs
                value = coerced.value
                sent = frozenset(value) if sent is None else sent
            dropped += migration.dropped(value)
            value = migration.apply(
                value,
                meant=None if may_hold_containers else _described_texts(value, shape),
            )
    coerced = _coerced(shapes, value, shapes.current, policy)
    sent = frozenset(coerced.value) if sent is None else sent
    source = None if start is None else str(shapes.migrations[start].source)
    return Reading(
        coerced._replace(repairs=repairs + coerced.repairs), source, sent, dropped
    )


def _coerced(shapes: Shapes, arguments: Any, shape: Schema, policy: Policy) -> Coerced:
    coerced = coerce(arguments, shape, policy, reserved=shapes.reserved)
    if not coerced.fits:
        errors = explain(coerced.violations, shape, sent=arguments)
        if shape is shapes.current and shapes.migrations:
            errors = [_without_conversion(shapes, error) for error in errors]
        raise SkillInputError("Input validation failed", skill_errors=errors)
    if not isinstance(coerced.value, dict):
        kind = type(coerced.value).__name__
        error = SkillError(
            ErrorCode.INVALID_INPUT, f"the arguments are a {kind}, not an object", True
        )
        raise SkillInputError("Input validation failed", skill_errors=[error])
    return coerced


def _without_conversion(shapes: Shapes, error: SkillError) -> SkillError:
    """Return *error* without the suggestion of a name under which a migration puts
    another value.

    450.00 sent as ``max_price_cents`` because ``max_price`` was refused would be 4.50.
    """
    name = str((error.details or {}).get("path", ""))[1:]
    for index in shapes.starts:
        shape, migration = shapes.older[index], shapes.migrations[index]
        if (
            shape is not None
            and name in declared_properties(shape.references, [WHOLE_SCHEMA])
            and migration.converts
        ):
            action = (
                f"{name!r} is of version {migration.source}: send what version "
                f"{shapes.version} describes, converted, or state the version"
            )
            return replace(error, suggested_action=action)
    return error


# Rules of repair by which a value stays what it is, in another form.
_FORMAL = rules_that("rewrites")
# Keywords that say what a string holds.
_DESCRIBING = frozenset({"format", "pattern", "contentMediaType", "enum", "const"})
# Rules of repair that leave out or make up something: a reading that needs them says
# nothing about its version.
_UNCOUNTED = rules_that("omits")


def _describes_text(references: References, path: tuple[str, ...]) -> bool:
    """Whether an old shape says what the string at *path* holds, so that it is meant as
    a string.
    """
    return any(
        not _DESCRIBING.isdisjoint(schema)
        for schema in subschemas(references, ValuePath(path))
    )


def _described_texts(arguments: dict[str, Any], shape: Schema | None) -> set[str]:
    """Return the strings of *arguments* that *shape* describes, so that they are meant
    as strings.
    """
    if shape is None:
        return set()
    texts = {name: value for name, value in arguments.items() if isinstance(value, str)}
    return {
        text
        for name, text in texts.items()
        if _describes_text(shape.references, (name,))
    }
