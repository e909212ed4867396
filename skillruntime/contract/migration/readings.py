"""Determine which version arguments were written for, and convert them to the current
shape.

Arguments that fit an older shape unchanged belong to that version. Arguments that fit
no shape are read by every shape, and refused if two readings differ. Repairs and
migrations both depend on the shape that applies, so they cannot be separated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from skillruntime.contract.migration.value_conversions import show
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
from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    ValuePath,
    parse_pointer,
    value_at,
)
from skillruntime.contract.schemas.references import References, properties_of
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import (
    declared_properties,
    judging,
    kinds_taken_by,
    subschemas,
)
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

    Each item of *older* is the shape that the migration of the same index starts from,
    if it is known; *reserved* holds the names of all parameters of all shapes.
    """

    current: Schema
    version: str | None
    migrations: tuple[Migration, ...]
    older: tuple[Schema | None, ...]
    reserved: frozenset[str]

    @property
    def starts(self) -> tuple[int, ...]:
        """The indexes of the migrations, newest first, whose chain leads to the current
        line of versions.
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
        """Return whether *version* is on the current line of versions."""
        from skillruntime.contract.versions import Version, same_line

        return self.version is None or same_line(Version.parse(self.version), version)


class Reading(NamedTuple):
    """Arguments converted to the current shape.

    ``sent`` holds their keys in the shape by which they were read, ``dropped`` the
    places of the values that a migration dropped.
    """

    coerced: Coerced
    migrated_from: str | None = None
    sent: frozenset[str] = frozenset()
    dropped: tuple[str, ...] = ()


def read_as_version(
    shapes: Shapes, arguments: Any, version: str | None, policy: Policy
) -> Reading:
    """Determine which version *arguments* were written for, and convert them to the
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
    """Read *arguments*, which fit no shape unchanged, by the current shape and by the
    shapes before the migrations *starts*.

    Raises:
        SkillInputError: the arguments cannot be repaired to fit any shape, or two
            readings differ.
    """
    readings: list[Reading] = []
    refusal: SkillInputError | None = None
    # The current shape is tried first, then the newest, because newer callers are more
    # likely.
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
    """Return *arguments* without a wrapper or quotes, by the newest shape that they
    then fit.

    The result is then read like a call that was sent without the wrapper or the quotes,
    of whatever version.
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
    """Convert *arguments*, which fit the shape before migration *index* unchanged, to
    the current shape.

    The arguments are also read by every newer shape. A container written in a string is
    the most common error of current callers: if a newer shape needs no other repair and
    the old shape does not describe the string's content, the string is read as the
    container. If the two readings differ otherwise, the call is refused.
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
    # This second reading refuses a text that looks like a container and would become an
    # item.
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
        described = judging(newer.references, ValuePath((name,)))
        places = [location for location, _ in described]
        kinds = kinds_taken_by(newer.references, places) - {"null"}
        takes_only_containers = bool(kinds) and kinds <= {"array", "object"}
        begins_with_bracket = text.strip(" '\"`\n")[:1] in ("[", "{", "(")
        if takes_only_containers and begins_with_bracket:
            return True
        # "AI, space" may be two topics of a newer caller, or one topic of an older
        # caller.
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
    """Return whether *arguments* were written for the current shape: they fit it, and
    use a name that is not in the older shape, which migration *start* migrates.
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
    """Read *arguments* in the shape before migration *start* and convert them to the
    current shape; a *start* of ``None`` means that they are in the current shape.
    """
    repairs: tuple[Repair, ...] = ()
    value = arguments
    sent: frozenset[str] | None = None
    dropped: tuple[str, ...] = ()
    taken: list[Migration] = []
    if start is not None:
        from skillruntime.contract.migration.migration import chain

        first = shapes.migrations[start]
        taken = [first, *chain(shapes.migrations, first.to)]
        for migration in taken:
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
    try:
        coerced = _coerced(shapes, value, shapes.current, policy)
    except SkillInputError as refusal:
        if not taken:
            raise
        errors = [
            _as_sent(error, arguments, taken, shapes) for error in refusal.skill_errors
        ]
        raise SkillInputError(str(refusal), skill_errors=errors) from None
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


def _as_sent(
    error: SkillError, arguments: Any, taken: list[Migration], shapes: Shapes
) -> SkillError:
    """Return *error*, which is about migrated arguments, with the caller's pointer and
    value in its message.
    """
    details = error.details or {}
    pointer = str(details.get("path", ""))
    source = pointer
    for migration in reversed(taken):
        source = migration.source_of(source)
    try:
        value = value_at(arguments, parse_pointer(source))
    except (LookupError, ValueError):
        return error
    is_as_sent = source == pointer and details.get("received") == show(value)
    if not pointer or is_as_sent:
        return error
    shown = "" if shapes.current.may_hold_secrets else f" {show(value)}"
    message = f"{error.message} (from{shown} at {source} of {taken[0].source})"
    return replace(error, message=message)


def _without_conversion(shapes: Shapes, error: SkillError) -> SkillError:
    """Return *error* without the suggestion of a name under which a migration writes
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


# Repair rules that change the form of a value and not its meaning.
_FORMAL = rules_that("rewrites")
# Keywords that describe the content of a string.
_DESCRIBING = frozenset({"format", "pattern", "contentMediaType", "enum", "const"})
# Repair rules that drop or invent something. A reading that needs them says nothing
# about its version.
_UNCOUNTED = rules_that("omits")


def _describes_text(references: References, path: tuple[str, ...]) -> bool:
    """Return whether an old shape describes the content of the string at *path*, which
    is then meant as a string.
    """
    return any(
        not _DESCRIBING.isdisjoint(schema)
        for schema in subschemas(references, ValuePath(path))
    )


def _described_texts(arguments: dict[str, Any], shape: Schema | None) -> set[str]:
    """Return the strings of *arguments* whose content *shape* describes, which are then
    meant as strings.
    """
    texts: set[str] = set()
    if shape is None:
        return texts
    for name, value in arguments.items():
        if isinstance(value, str) and _describes_text(shape.references, (name,)):
            texts.add(value)
    return texts
