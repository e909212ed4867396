"""How arguments written for an older version of a contract become arguments for a newer one.

A migration is data (its steps: `skillruntime.contract.migration.steps`), because a skill may come from an untrusted
source and reading one must run nothing; only the host program may register a Python function as one.
Laws: the input is never changed; arguments of the new shape come back as they are; a chain is the composition of its
migrations; what a reversible migration did is undone exactly by `Migration.revert`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.contract.arguments import looks_like_container
from skillruntime.contract.migration.locations import StepRefused, copy_json, each
from skillruntime.contract.migration.reachability import only_what_can_be_undone, taken_places
from skillruntime.contract.migration.steps import Step, parse_step, parse_steps
from skillruntime.contract.migration.value_conversions import show
from skillruntime.contract.plain_json import find_fault
from skillruntime.contract.pointer import parse_pointer, value_at
from skillruntime.contract.schema import Schema
from skillruntime.contract.versions import Version, VersionRange, read_version
from skillruntime.errors import InvalidSkillError, SkillError, SkillInputError

__all__ = ["Migration", "MigrationError", "chain", "link"]


class MigrationError(SkillInputError):
    """Arguments of an older version cannot become arguments of the newer one.

    ``step`` is the index of the step that could not be taken (from 0), ``path`` the JSON Pointer of the value.
    """

    def __init__(self, message: str, *, step: int, path: str, to: Version) -> None:
        details = {"path": path, "step": step, "to": str(to)}
        action = f"Send the arguments as version {to} describes them, or correct {path or 'them'}"
        error = SkillError(self.code, message, self.recoverable, details, action)
        super().__init__(message, skill_errors=[error], details=details, suggested_action=action)
        self.step, self.path = step, path


@dataclass(frozen=True, slots=True)
class Migration:
    """The steps that convert arguments of the versions in *source* to version *to*.

    ``source`` is ``None`` until `link` has set it from the migration before; ``accepts`` is the input schema of the
    last old version, if the document gives one; ``output`` is how the output changed in the same release.

    >>> migration = Migration.from_dict({"from": "1.x", "to": "2.0.0", "steps": [
    ...     {"wrap": "/topics"}, {"rename": {"from": "/count", "to": "/max_articles"}}]})
    >>> migration.apply({"topics": "AI", "count": 3})
    {'topics': ['AI'], 'max_articles': 3}
    >>> migration.revert({"topics": ["AI"], "max_articles": 3})
    {'topics': 'AI', 'count': 3}
    """

    to: Version
    source: VersionRange | None = None
    accepts: Mapping[str, Any] | bool | None = None
    steps: tuple[Step, ...] = ()
    output: tuple[Step, ...] = ()
    _function: Callable[[dict[str, Any]], Any] | None = field(default=None, repr=False)

    @classmethod
    def from_dict(
        cls, document: Any, *, where: str = "migration", contract: Mapping[str, Any] | None = None
    ) -> Migration:
        """Return the migration that *document* describes: ``from``, ``to``, ``accepts``, ``steps``, ``output``.

        *contract* is the contract's document around it, for its definitions. `link` then judges the ``output`` steps,
        because what they can undo depends on the other migrations too.

        Raises:
            InvalidSkillError: ``details["faults"]`` lists all that is wrong, each with its path and a sentence.
        """
        migration, faults = _read(document, contract)
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
        """Return a migration that calls *function*, as the host's program registers one (contract document, 31.5).

        The function gets a copy of the arguments. It has no way back.

        >>> def migrate_from_v1(v1_input: dict) -> dict:
        ...     return {**v1_input, "topics": [v1_input["topics"]]}
        >>> Migration.from_function(migrate_from_v1, to="2.0.0", source="1.x").apply({"topics": "AI"})
        {'topics': ['AI']}
        """
        version = to if isinstance(to, Version) else Version.parse(to)
        versions = VersionRange.parse(source) if isinstance(source, str) else source
        return cls(version, versions, accepts, _function=function)

    @property
    def is_reversible(self) -> bool:
        """Whether no step loses anything, so that `revert` gives back what there was."""
        return self._function is None and all(step.inverse is not None for step in self.steps)

    def covers(self, version: Version | str) -> bool:
        """Return whether arguments written for *version* start here; without a range, any release below ``to``."""
        versions = self.source or VersionRange.between(None, self.to)
        return version in versions

    def apply(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return *arguments* in the shape of version ``to``: a new dictionary that shares nothing with the old.

        Raises:
            MigrationError: a step would overwrite or lose something, or the value has no new form.
        """
        # The steps work on a copy: the law is that arguments are never changed.
        value: dict[str, Any] = copy_json(dict(arguments))
        if self._function is None:
            _take(self.steps, value, self.to)
            return value
        try:
            result = self._function(value)
        except SkillInputError:
            raise
        except Exception as error:
            name = getattr(self._function, "__qualname__", "the function")
            message = f"cannot migrate to {self.to}: {name} raised {type(error).__name__}"
            raise MigrationError(message, step=0, path="", to=self.to) from error
        if not isinstance(result, dict):
            message = f"cannot migrate to {self.to}: the function returned {type(result).__name__}, not an object"
            raise MigrationError(message, step=0, path="", to=self.to)
        return result

    @property
    def converts(self) -> bool:
        """Whether a value may be another one afterwards: in another unit, say."""
        return self._function is not None or any(step.kind in ("convert", "map") for step in self.steps)

    def dropped(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the places of the values of *arguments* that the migration leaves out."""
        places = []
        for step in self.steps:
            written = step.document[step.kind]
            if step.kind == "drop":
                pointer = written if isinstance(written, str) else str(written["at"])
                try:
                    value_at(arguments, parse_pointer(pointer))
                except LookupError:
                    continue
                places.append(pointer)
        return tuple(places)

    def check_texts(self, arguments: Mapping[str, Any], meant: Container[str] = ()) -> None:
        """Refuse a container written in a text that a step would make an item: ``"['a', 'b']"`` is not one topic.

        *meant* are the texts that the old shape describes, so that they are what they say.

        Raises:
            MigrationError: a text holds a container, or the beginning of one.
        """
        if self._function is not None or not any(_makes_items(step) for step in self.steps):
            return
        value: dict[str, Any] = copy_json(dict(arguments))
        for index, step in enumerate(self.steps):
            for text, path in _texts(step, value) if _makes_items(step) else ():
                if text not in meant and looks_like_container(text):
                    message = f"cannot migrate to {self.to}: the text at {path} looks like an array or object"
                    raise MigrationError(message, step=index, path=path, to=self.to)
            _take((step,), value, self.to)

    def revert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments of version ``to`` in the old shape.

        Raises:
            MigrationError: a step loses something, or this value has no old form.
        """
        value: dict[str, Any] = copy_json(dict(arguments))
        _take(_inverse(self.steps, self.to, has_function=self._function is not None), value, self.to)
        return value

    def revert_output(self, output: Any) -> Any:
        """Return an output of version ``to`` in the shape that a caller of the old version knows.

        Raises:
            MigrationError: this output has no old form.
        """
        value = copy_json(output)
        # An output may also be an array (places such as /*/name); in a text or number there is no place to change.
        if isinstance(value, dict | list):
            _take(_inverse(self.output, self.to), value, self.to)
        return value

    def to_dict(self) -> dict[str, Any]:
        """Return the document; of a Python function only what it leads from and to."""
        document: dict[str, Any] = {"from": str(self.source)} if self.source is not None else {}
        document["to"] = str(self.to)
        if self.accepts is not None:
            document["accepts"] = self.accepts
        document["steps"] = [dict(step.document) for step in self.steps]
        if self.output:
            document["output"] = [dict(step.document) for step in self.output]
        return document


MOST_MIGRATIONS = 100
"""How many migrations one contract may have."""


def link(
    migrations: Iterable[Migration], current: Version | None = None, output: Schema | None = None
) -> tuple[Migration, ...]:
    """Return *migrations* in the order of their targets, those without a ``from`` starting where the one before ends.

    *current* is the contract's own version: no migration leads above it. *output* is what the contract promises.

    Raises:
        InvalidSkillError: they do not lead on to one another, or their ``output`` steps cannot be undone together;
            ``details["faults"]`` lists where.
    """
    listed = list(migrations)
    if len(listed) > MOST_MIGRATIONS:  # each is compared with each
        raise _unusable("the list of migrations", [("/migrations", f"it has {len(listed)}; at most {MOST_MIGRATIONS}")])
    # The document's order has no meaning; a chain always leads upwards.
    ordered = sorted(listed, key=lambda migration: migration.to)
    faults, linked, previous = [], list[Migration](), None
    for migration in ordered:
        if migration.source is None:
            migration = replace(migration, source=VersionRange.between(previous, migration.to))
            if previous == migration.to:
                faults.append(("/migrations", f"two migrations lead to {migration.to}; give each its own 'from'"))
        linked.append(migration)
        previous = migration.to
    for index, migration in enumerate(linked):
        # The second would never be taken.
        if any(
            (each.to, each.source, each.accepts) == (migration.to, migration.source, migration.accepts)
            for each in linked[:index]
        ):
            faults.append(("/migrations", f"two migrations lead from {migration.source} to {migration.to}; keep one"))
        later = [other for other in linked[index + 1 :] if other.to > migration.to]
        # A gap would strand callers of the older versions in the middle of the chain.
        if later and not any(other.covers(migration.to) for other in later):
            faults.append(("/migrations", f"nothing leads on from {migration.to}; a later 'from' must include it"))
        if current is not None and migration.to > current:
            faults.append(("/migrations", f"one leads to {migration.to}, above the contract's version {current}"))
    faults = faults or _not_undone(linked, output)
    if faults:
        raise _unusable("the list of migrations", faults)
    return tuple(linked)


def chain(migrations: Iterable[Migration], version: Version | str) -> list[Migration]:
    """Return the migrations to apply, one after the other, to arguments written for *version*; empty if none covers it.

    Of several that cover a version, the one that leads furthest is taken: an author writes a shortcut to be used.

    >>> steps = link([Migration(Version(2, 0, 0)), Migration(Version(3, 0, 0))])
    >>> [str(migration.to) for migration in chain(steps, "1.4.0")], [str(one.to) for one in chain(steps, "2.1.0")]
    (['2.0.0', '3.0.0'], ['3.0.0'])
    """
    available, found = list(migrations), list[Migration]()
    here = version if isinstance(version, Version) else Version.parse(version)
    while True:
        candidates = [migration for migration in available if migration.to > here and migration.covers(here)]
        if not candidates:
            return found
        found.append(max(candidates, key=lambda migration: migration.to))
        here = found[-1].to


def _not_undone(linked: list[Migration], output: Schema | None) -> list[tuple[str, str]]:
    """Return a fault for each ``output`` step that cannot be undone, given the steps before and after it."""
    faults: dict[tuple[str, str], None] = {}
    for first in linked if any(migration.output for migration in linked) else ():
        path = [first, *chain(linked, first.to)]
        places = [(migration.to, index) for migration in path for index in range(len(migration.output))]
        steps = only_what_can_be_undone([step for each in path for step in each.output], new=output)
        for (to, index), step, taken in zip(places, steps, taken_places(steps), strict=True):
            if step.inverse is None or taken:
                taken_why = f"{taken} may hold a value before this step, so an old caller could get the wrong one"
                why = _why_not(step) if step.inverse is None else taken_why
                at = f"output step {index} ({step.kind}) of the migration to {to}"
                faults["/migrations", f"{at} cannot be undone: {why}"] = None
    return list(faults)


def _makes_items(step: Step) -> bool:
    """Whether *step* makes a text the item of an array, or cuts it into items."""
    return step.kind in ("wrap", "split")


def _texts(step: Step, arguments: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the texts that *step* is about to take, each with its pointer."""
    written = step.document[step.kind]
    places = written if isinstance(written, str) else written.get("at", written.get("from", ()))
    found: list[tuple[str, str]] = []

    def note(value: Any, path: str) -> Any:
        found.extend([(value, path)] if isinstance(value, str) else ())
        return value

    for pointer in [places] if isinstance(places, str) else places:
        each(parse_pointer(pointer), note)(arguments)
    return found


def _take(steps: Sequence[Step], value: Any, to: Version) -> None:
    """Take *steps* on *value* in place."""
    for index, step in enumerate(steps):
        try:
            step.change(value)
        except StepRefused as error:
            message = f"cannot migrate to {to}: {error} - in step {index} ({step.kind}), at {error.path}"
            raise MigrationError(message, step=index, path=error.path, to=to) from None


def _inverse(steps: Sequence[Step], to: Version, *, has_function: bool = False) -> list[Step]:
    if has_function:
        raise MigrationError(f"cannot migrate back from {to}: a function cannot be reversed", step=0, path="", to=to)
    inverted = []
    for index, step in reversed(list(enumerate(steps))):
        if step.inverse is None:
            message = f"cannot migrate back from {to}: step {index} ({step.kind}) discards values"
            raise MigrationError(message, step=index, path="", to=to)
        inverted.append(parse_step(step.inverse))
    return inverted


_FIELDS = ("from", "to", "accepts", "steps", "output", "description")


def _read(document: Any, contract: Mapping[str, Any] | None) -> tuple[Migration | None, list[tuple[str, str]]]:
    if not isinstance(document, dict):
        return None, [("", "must be an object with 'to' and 'steps'")]
    if fault := find_fault(document):  # a step would write it into arguments, where no engine can judge it
        return None, [("", f"must be JSON, but holds {fault}")]
    faults = [
        (f"/{name}", f"unknown field; the fields are {', '.join(_FIELDS)}") for name in document if name not in _FIELDS
    ]
    to, source = _read_versions(document, faults)
    accepts = document.get("accepts")
    if not isinstance(accepts, dict | bool | None):
        faults.append(("/accepts", "must be a JSON Schema"))
    if "steps" not in document and "output" not in document:
        faults.append(("", "needs 'steps', an array"))
    steps, wrong = parse_steps(document.get("steps", []), "/steps")
    output, wrong_output = parse_steps(document.get("output", []), "/output")
    faults += wrong + wrong_output
    if any(step.collisions for step in steps):  # compiling the schema is worth it only for a table
        steps = only_what_can_be_undone(steps, old=_schema(accepts, contract or {}))
    judged = output if contract else only_what_can_be_undone(output)
    faults += [(f"/output/{index}", _why_not(step)) for index, step in enumerate(judged) if step.inverse is None]
    return Migration(to, source, accepts, steps, output), faults


def _read_versions(document: dict[str, Any], faults: list[tuple[str, str]]) -> tuple[Version, VersionRange | None]:
    """Return what the migration leads to and from; what is wrong with them is added to *faults*."""
    to, source = Version(0, 0, 0), None
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
        faults.append(("/from", f"{source} includes {to}, the version that the migration leads to"))
    return to, source


def _schema(schema: Any, contract: Mapping[str, Any]) -> Schema | None:
    """Return *schema* with the contract's definitions around it, or nothing where it is not usable by itself."""
    if not isinstance(schema, dict):
        return None
    around = {word: contract[word] for word in ("$schema", "$defs", "definitions") if word in contract}
    try:
        return Schema({**around, **schema})
    except InvalidSkillError:  # the contract itself is about to say why
        return None


def _why_not(step: Step) -> str:
    if step.collisions and not step.is_lossy:
        return (
            f"an output may be {show(step.collisions[0])} without the table, so an old caller could get a wrong value"
            "; list every value in the table, and in an 'enum' of the output"
        )
    return f"{step.kind} loses information, so an old caller could not be answered"


def _unusable(where: str, faults: list[tuple[str, str]]) -> InvalidSkillError:
    sentences = "; ".join(f"{message} - at {path or '/'}" for path, message in faults[:5])
    more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
    listed = [{"path": path, "message": message} for path, message in faults]
    return InvalidSkillError(f"{where} is not usable: {sentences}{more}", details={"faults": listed})
