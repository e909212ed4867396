"""Convert arguments written for an older version of a contract to arguments for a newer
one.

A migration is data (its steps: `skillruntime.contract.migration.steps`), because a
skill may come from an untrusted source, and reading a skill must not run code; only the
host program may register a Python function as a migration. Laws: the input is never
changed; arguments of the new shape are returned unchanged; a chain is the composition
of its migrations.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.contract.migration.locations import (
    StepRefused,
    copy_json,
    replace_each,
)
from skillruntime.contract.migration.steps import Step, parse_steps
from skillruntime.contract.reading.arguments import looks_like_container
from skillruntime.contract.schemas.plain_json import find_fault
from skillruntime.contract.schemas.pointer import parse_pointer, value_at
from skillruntime.contract.versions import Version, VersionRange, read_version
from skillruntime.errors import InvalidSkillError, SkillError, SkillInputError

__all__ = ["Migration", "MigrationError", "chain", "link"]


class MigrationError(SkillInputError):
    """Arguments of an older version cannot be converted to the newer one.

    ``step`` is the index of the step that failed (from 0), ``path`` the JSON Pointer of
    the value.
    """

    def __init__(self, message: str, *, step: int, path: str, to: Version) -> None:
        details = {"path": path, "step": step, "to": str(to)}
        action = (
            f"Send the arguments as version {to} describes them, or correct "
            f"{path or 'them'}"
        )
        error = SkillError(self.code, message, self.recoverable, details, action)
        super().__init__(
            message, skill_errors=[error], details=details, suggested_action=action
        )
        self.step = step
        self.path = path


@dataclass(frozen=True, slots=True)
class Migration:
    """The steps that convert arguments of the versions in *source* to version *to*.

    ``source`` is ``None`` until `link` has set it from the preceding migration;
    ``accepts`` is the input schema of the last old version, if the document gives one.

    >>> steps = [
    ...     {"wrap": "/topics"},
    ...     {"rename": {"from": "/count", "to": "/max_articles"}},
    ... ]
    >>> migration = Migration.from_dict({"from": "1.x", "to": "2.0.0", "steps": steps})
    >>> migration.apply({"topics": "AI", "count": 3})
    {'topics': ['AI'], 'max_articles': 3}
    """

    to: Version
    source: VersionRange | None = None
    accepts: Mapping[str, Any] | bool | None = None
    steps: tuple[Step, ...] = ()
    _function: Callable[[dict[str, Any]], Any] | None = field(default=None, repr=False)

    @classmethod
    def from_dict(cls, document: Any, *, where: str = "migration") -> Migration:
        """Parse *document* into a migration; its fields are ``from``, ``to``,
        ``accepts`` and ``steps``.

        Raises:
            InvalidSkillError: ``details["faults"]`` lists all faults, each with its
                path and a sentence.
        """
        migration, faults = _read(document)
        if migration is None or faults:
            raise _unusable(where, faults)
        return migration

    @classmethod
    def from_function(
        cls,
        function: Callable[[dict[str, Any]], dict[str, Any]],
        *,
        to: str | Version,
        source: str | VersionRange | None = None,
        accepts: Mapping[str, Any] | bool | None = None,
    ) -> Migration:
        """Return a migration that calls *function*, which the host program registers.

        The function gets a copy of the arguments.

        >>> def migrate_from_v1(v1_input: dict) -> dict:
        ...     return {**v1_input, "topics": [v1_input["topics"]]}
        >>> old = Migration.from_function(migrate_from_v1, to="2.0.0", source="1.x")
        >>> old.apply({"topics": "AI"})
        {'topics': ['AI']}
        """
        version = to if isinstance(to, Version) else Version.parse(to)
        versions = VersionRange.parse(source) if isinstance(source, str) else source
        return cls(version, versions, accepts, _function=function)

    def covers(self, version: Version | str) -> bool:
        """Return whether the migration converts arguments written for *version*;
        without a range, it covers every release below ``to``.
        """
        return version in (self.source or VersionRange.between(None, self.to))

    def apply(
        self,
        arguments: Mapping[str, Any],
        *,
        described_texts: Container[str] | None = None,
    ) -> dict[str, Any]:
        """Return *arguments* in the shape of version ``to``: a new dictionary that
        shares nothing with the old.

        With *described_texts*, a text that looks like a container does not become an
        item: ``"['a', 'b']"`` is not one topic. The texts in *described_texts* are
        exempt, because the old shape describes their content and they are therefore
        meant as strings.

        Raises:
            MigrationError: a step would overwrite or lose something, or the value has
                no new form.
        """
        # The steps work on a copy, because a migration must not change its input.
        value: dict[str, Any] = copy_json(dict(arguments))
        if self._function is None:
            _take_steps(self.steps, value, self.to, described_texts)
            return value
        try:
            result = self._function(value)
        except SkillInputError:
            raise
        except Exception as error:
            name = getattr(self._function, "__qualname__", "the function")
            kind = type(error).__name__
            message = f"cannot migrate to {self.to}: {name} raised {kind}"
            raise MigrationError(message, step=0, path="", to=self.to) from error
        if not isinstance(result, dict):
            kind = type(result).__name__
            message = (
                f"cannot migrate to {self.to}: the function returned {kind}, not an "
                "object"
            )
            raise MigrationError(message, step=0, path="", to=self.to)
        return result

    @property
    def converts(self) -> bool:
        """Whether a step may change a value, for example its unit."""
        if self._function is not None:
            return True
        return any(step.kind in ("convert", "map") for step in self.steps)

    @property
    def constants(self) -> list[Any]:
        """The values in the steps, which may replace values that the caller sent."""
        return [
            step.document[step.kind]
            for step in self.steps
            if step.kind in ("map", "set_default")
        ]

    def source_of(self, pointer: str) -> str:
        """Return the pointer, in the old arguments, of the value that the steps move to
        *pointer*.

        >>> steps = [{"rename": {"from": "/days", "to": "/hours"}}]
        >>> Migration.from_dict({"to": "2.0.0", "steps": steps}).source_of("/hours")
        '/days'
        """
        for step in reversed(self.steps):
            fields = step.document[step.kind]
            if step.kind not in ("rename", "move"):
                continue
            target = str(fields["to"])
            if pointer == target or pointer.startswith(f"{target}/"):
                pointer = str(fields["from"]) + pointer[len(target) :]
        return pointer

    def dropped(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the places of the values of *arguments* that the migration drops."""
        places = [step.place for step in self.steps if step.kind == "drop"]
        return tuple(place for place in places if _holds(arguments, place))


MOST_MIGRATIONS = 100
"""The maximum number of migrations of one contract."""


def link(
    migrations: Iterable[Migration], current: Version | None = None
) -> tuple[Migration, ...]:
    """Return *migrations* sorted by target; a migration without ``from`` starts at the
    previous target.

    *current* is the contract's own version, which no migration may exceed.

    Raises:
        InvalidSkillError: they do not form a chain; ``details["faults"]`` lists the
            faults.
    """
    listed = list(migrations)
    faults: list[str] = []
    # Each pair is compared below, so the number is limited.
    if len(listed) > MOST_MIGRATIONS:
        raise _unusable_list([f"it has {len(listed)}; at most {MOST_MIGRATIONS}"])
    # The document's order has no meaning; a chain always leads upwards.
    ordered = sorted(listed, key=lambda migration: migration.to)
    linked: list[Migration] = []
    previous: Version | None = None
    for migration in ordered:
        if migration.source is None:
            source = VersionRange.between(previous, migration.to)
            migration = replace(migration, source=source)
            if previous == migration.to:
                faults.append(
                    f"two migrations lead to {migration.to}; give each its own 'from'"
                )
        linked.append(migration)
        previous = migration.to
    for index, migration in enumerate(linked):
        # A duplicate would never be used.
        if any(_is_repeated(migration, earlier) for earlier in linked[:index]):
            faults.append(
                f"two migrations lead from {migration.source} to {migration.to}; "
                "keep one"
            )
        later = [other for other in linked[index + 1 :] if other.to > migration.to]
        # A gap would strand callers of the older versions in the middle of the chain.
        if later and not any(other.covers(migration.to) for other in later):
            faults.append(
                f"nothing leads on from {migration.to}; a later 'from' must include it"
            )
        if current is not None and migration.to > current:
            faults.append(
                f"one leads to {migration.to}, above the contract's version {current}"
            )
    if faults:
        raise _unusable_list(faults)
    return tuple(linked)


def _is_repeated(one: Migration, other: Migration) -> bool:
    if (one.to, one.source) != (other.to, other.source):
        return False
    return one.accepts == other.accepts


def _unusable_list(messages: list[str]) -> InvalidSkillError:
    faults = [("/migrations", message) for message in messages]
    return _unusable("the list of migrations", faults)


def chain(migrations: Iterable[Migration], version: Version | str) -> list[Migration]:
    """Return the migrations to apply, in order, to arguments written for *version*;
    empty if none covers it.

    If several cover a version, the one that leads furthest is used: the author wrote it
    as a shortcut.

    >>> migrations = link([Migration(Version(2, 0, 0)), Migration(Version(3, 0, 0))])
    >>> [str(migration.to) for migration in chain(migrations, "1.4.0")]
    ['2.0.0', '3.0.0']
    >>> [str(migration.to) for migration in chain(migrations, "2.1.0")]
    ['3.0.0']
    """
    migrations = list(migrations)
    if not isinstance(version, Version):
        version = Version.parse(version)
    taken: list[Migration] = []
    while True:
        candidates = [
            migration
            for migration in migrations
            if migration.to > version and migration.covers(version)
        ]
        if not candidates:
            return taken
        furthest = max(candidates, key=lambda migration: migration.to)
        taken.append(furthest)
        version = furthest.to


def _holds(arguments: Mapping[str, Any], place: str) -> bool:
    try:
        value_at(arguments, parse_pointer(place))
    except LookupError:
        return False
    return True


def _take_steps(
    steps: Sequence[Step],
    value: Any,
    to: Version,
    described_texts: Container[str] | None,
) -> None:
    """Apply *steps* to *value* in place."""
    for index, step in enumerate(steps):
        try:
            if described_texts is not None and step.kind in ("wrap", "split"):
                _refuse_containers(step, value, described_texts)
            step.change(value)
        except StepRefused as error:
            message = (
                f"cannot migrate to {to}: {error} - in step {index} ({step.kind}), at "
                f"{error.path}"
            )
            raise MigrationError(message, step=index, path=error.path, to=to) from None


def _refuse_containers(
    step: Step, arguments: dict[str, Any], described_texts: Container[str]
) -> None:
    """Refuse the texts at the place of *step* that look like a container, except
    *described_texts*.
    """

    def check(value: Any, path: str) -> Any:
        if not isinstance(value, str) or value in described_texts:
            return value
        if looks_like_container(value):
            raise StepRefused(path, f"the text at {path} looks like an array or object")
        return value

    check_each = replace_each(parse_pointer(step.place), check)
    check_each(arguments)


_FIELDS = ("from", "to", "accepts", "steps", "description")


def _read(document: Any) -> tuple[Migration | None, list[tuple[str, str]]]:
    if not isinstance(document, dict):
        return None, [("", "must be an object with 'to' and 'steps'")]
    # A step would write a value that is not JSON into the arguments, where no schema
    # engine can validate it.
    fault = find_fault(document)
    if fault is not None:
        return None, [("", f"must be JSON, but holds {fault}")]
    unknown = f"unknown field; the fields are {', '.join(_FIELDS)}"
    faults = [(f"/{name}", unknown) for name in document if name not in _FIELDS]
    to, source = _read_versions(document, faults)
    accepts = document.get("accepts")
    if not isinstance(accepts, dict | bool | None):
        faults.append(("/accepts", "must be a JSON Schema"))
    if "steps" not in document:
        faults.append(("", "needs 'steps', an array"))
    steps, faults_of_steps = parse_steps(document.get("steps", []), "/steps")
    faults += faults_of_steps
    return Migration(to, source, accepts, steps), faults


def _read_versions(
    document: dict[str, Any], faults: list[tuple[str, str]]
) -> tuple[Version, VersionRange | None]:
    """Return the version that the migration leads to and the range that it starts from;
    add their faults to *faults*.
    """
    to = Version(0, 0, 0)
    source: VersionRange | None = None
    if "to" not in document:
        faults.append(("", "needs 'to', the version that it leads to"))
    else:
        try:
            to = read_version(document["to"]).version
        except ValueError as error:
            faults.append(("/to", str(error)))
    if "from" in document:
        try:
            source = VersionRange.parse(str(document["from"]))
        except ValueError as error:
            faults.append(("/from", str(error)))
    if source is not None and "to" in document and to in source:
        message = f"{source} includes {to}, the version that the migration leads to"
        faults.append(("/from", message))
    return to, source


def _unusable(where: str, faults: list[tuple[str, str]]) -> InvalidSkillError:
    sentences = "; ".join(
        f"{message} - at {path or '/'}" for path, message in faults[:5]
    )
    if len(faults) > 5:
        sentences += f"; and {len(faults) - 5} more"
    listed = [{"path": path, "message": message} for path, message in faults]
    return InvalidSkillError(
        f"{where} is not usable: {sentences}", details={"faults": listed}
    )
