"""Find out which version arguments were written for, and bring them to the current
shape.

Arguments that fit an older shape unchanged are of that version. Arguments that fit no
shape are read by each of them, and refused if two readings differ. Repairs and
migrations both depend on the shape that applies, so they cannot be separated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from skillruntime.contract.reading.arguments import pieces
from skillruntime.contract.repair_rules import (
    CONTAINER_TEXT,
    WRAPPER_OBJECT,
    rules_that,
)
from skillruntime.contract.repairs.coercion import Coerced, coerce
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

        starts: list[int] = []
        for index, migration in enumerate(self.migrations):
            *_, last = (migration, *chain(self.migrations, migration.to))
            if self.arrives(last.to):
                starts.append(index)
        return tuple(reversed(starts))

    def arrives(self, version: Version) -> bool:
        """Return whether arguments in the shape of *version* are of the current
        line.
        """
        from skillruntime.contract.versions import Version, same_line

        return self.version is None or same_line(Version.parse(self.version), version)


class Reading(NamedTuple):
    """Arguments brought to the current shape.

    ``sent`` are their keys in the shape that they were read by; ``dropped`` the places
    of the values that a migration left out.
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
        return _read_from(shapes, arguments, None, policy)
    if _is_untouched(arguments, shapes.current):
        return Reading(Coerced(arguments))
    newest_first = shapes.starts
    for index in newest_first:
        shape = shapes.older[index]
        if shape is not None and _is_untouched(arguments, shape):
            return _of_old_caller(shapes, arguments, index, policy)
    if not newest_first or not policy.repair:
        return _read_from(shapes, arguments, None, policy)
    formal = _formally_repaired(shapes, arguments, policy)
    if formal is not None:
        reading = read_as_version(shapes, formal.value, None, policy)
        repairs = formal.repairs + reading.coerced.repairs
        return reading._replace(coerced=reading.coerced._replace(repairs=repairs))
    return _read_by_each(shapes, arguments, newest_first, policy)


def _read_by_each(
    shapes: Shapes, arguments: Any, starts: tuple[int, ...], policy: Policy
) -> Reading:
    """Read *arguments*, which fit no shape as they are, by the current shape and those
    before *starts*.

    Raises:
        SkillInputError: they cannot be repaired to fit any shape, or two readings
            differ.
    """
    readings: list[Reading] = []
    refusal: SkillInputError | None = None
    # The current shape first: most callers are current, and among old ones the newest
    # are the likeliest.
    for start in (None, *starts):
        if start is not None and shapes.older[start] is None:
            continue
        try:
            readings.append(_read_from(shapes, arguments, start, policy))
        except SkillInputError as error:
            refusal = refusal or error
    if not readings:
        assert refusal is not None
        raise refusal
    for reading in readings[1:]:
        if not is_same(reading.coerced.value, readings[0].coerced.value):
            raise _unclear_version(shapes)
    return readings[0]


def _formally_repaired(
    shapes: Shapes, arguments: Any, policy: Policy
) -> Coerced | None:
    """Return *arguments* in the form of the newest shape that they fit once a wrapper
    or quotes are taken off.

    They are then read like the same call without the wrapper or the quotes, whatever
    version that is of.
    """
    for shape in (shapes.current, *(shapes.older[index] for index in shapes.starts)):
        if shape is None:
            continue
        coerced = coerce(arguments, shape, policy, reserved=shapes.reserved)
        if not coerced.fits or not coerced.repairs:
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
    old = _read_from(shapes, arguments, index, policy, may_hold_containers=True)
    shape = shapes.older[index]
    assert shape is not None
    newer_starts = [start for start in shapes.starts if start > index]
    for start in (None, *newer_starts):
        newer = shapes.current if start is None else shapes.older[start]
        if newer is None:
            continue
        try:
            reading = _read_from(shapes, arguments, start, policy)
        except SkillInputError:
            # A broken list of a newer caller must not become the item of an older one.
            if _may_hold_container(arguments, shape, newer):
                raise
            continue
        rules = {repair.rule for repair in reading.coerced.repairs}
        old_names = shapes.reserved - properties_of(newer.document).keys()
        if rules & _UNCOUNTED or not old_names.isdisjoint(reading.sent):
            continue
        if _have_same_value(reading, old):
            continue
        if rules == {CONTAINER_TEXT}:
            places = [parse_pointer(repair.path) for repair in reading.coerced.repairs]
            if not any(_describes_text(shape.references, place) for place in places):
                return reading
        raise _unclear_version(shapes)
    # Refuses a container in a text that would become an item.
    _read_from(shapes, arguments, index, policy)
    return old


def _have_same_value(one: Reading, other: Reading) -> bool:
    return is_same(
        without_decimals(one.coerced.value), without_decimals(other.coerced.value)
    )


def _may_hold_container(
    arguments: dict[str, Any], shape: Schema, newer: Schema
) -> bool:
    """Return whether a string of *arguments* could be a container for *newer*: it
    begins with a bracket, or is a comma-separated list where only an array is accepted.
    """
    for name, text in arguments.items():
        if not isinstance(text, str) or _describes_text(shape.references, (name,)):
            continue
        kinds = {
            str(schema.get("type"))
            for schema in subschemas(newer.references, ValuePath((name,)))
        }
        takes_only_containers = bool(kinds) and kinds <= {"array", "object"}
        begins_with_bracket = text.strip(" '\"`\n")[:1] in ("[", "{", "(")
        if takes_only_containers and begins_with_bracket:
            return True
        # "AI, space" may be two topics of a newer caller, or one of an older one.
        if len(pieces(text)) > 1 and kinds == {"array"}:
            return True
    return False


def _unclear_version(shapes: Shapes) -> SkillInputError:
    return SkillInputError(
        "The arguments could be of this version or of an older one, with different "
        "results",
        suggested_action=f"Send them in the form of version {shapes.version}, or state "
        "the version",
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
        old = _read_from(shapes, arguments, start, policy, may_hold_containers=True)
        if _is_of_current(shapes, arguments, start):
            if not is_same(without_decimals(old.coerced.value), arguments):
                raise _unclear_version(shapes)
        return old._replace(migrated_from=stated)
    if not covering and shapes.arrives(version):
        return _read_from(shapes, arguments, None, policy)
    covered = [str(migration.source) for migration in shapes.migrations]
    ends = f", and the migrations from it end at {covering[-1].to}" if covering else ""
    raise UnsupportedVersionError(
        f"No contract covers version {stated}; this is {shapes.version}{ends}",
        details={"version": shapes.version, "migrates_from": covered},
        suggested_action=f"Send the arguments in the form of version {shapes.version}",
    )


def _is_of_current(shapes: Shapes, arguments: Any, start: int) -> bool:
    """Return whether *arguments* fit the current shape and use a name of it that the
    shape before *start* lacks.
    """
    shape = shapes.older[start]
    if shape is None or not _is_untouched(arguments, shapes.current):
        return False
    current_names = properties_of(shapes.current.document).keys()
    old_names = declared_properties(shape.references, [WHOLE_SCHEMA]).keys()
    new_names = current_names - old_names
    return not new_names.isdisjoint(arguments)


def _read_from(
    shapes: Shapes,
    arguments: Any,
    start: int | None,
    policy: Policy,
    *,
    may_hold_containers: bool = False,
) -> Reading:
    """Read *arguments* in the shape before migration *start* and bring them to the
    current shape; ``None`` means that they are in the current shape.
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
                if sent is None:
                    sent = frozenset(value)
            dropped += migration.dropped(value)
            described: set[str] | None = None
            if not may_hold_containers:
                described = _described_texts(value, shape)
            value = migration.apply(value, described_texts=described)
    coerced = _coerced(shapes, value, shapes.current, policy)
    if sent is None:
        sent = frozenset(coerced.value)
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
        shape = shapes.older[index]
        migration = shapes.migrations[index]
        if shape is None or not migration.converts:
            continue
        if name in declared_properties(shape.references, [WHOLE_SCHEMA]):
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
    """Return whether an old shape describes the content of the string at *path*, so
    that it is meant as a string.
    """
    return any(
        not _DESCRIBING.isdisjoint(schema)
        for schema in subschemas(references, ValuePath(path))
    )


def _described_texts(arguments: dict[str, Any], shape: Schema | None) -> set[str]:
    """Return the strings of *arguments* that *shape* describes, so that they are meant
    as strings.
    """
    texts: set[str] = set()
    if shape is None:
        return texts
    for name, value in arguments.items():
        if isinstance(value, str) and _describes_text(shape.references, (name,)):
            texts.add(value)
    return texts
