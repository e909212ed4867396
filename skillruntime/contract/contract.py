"""What a skill accepts and promises at one version: ``accept`` arguments, ``check`` output.

The path of the arguments is fixed: raw text -> one JSON object -> which version was it written for -> mended to that
version's shape -> migrated, along the chain -> mended to the current shape -> declared defaults. The steps share one
secret, whose shape is in force, so they are not separable.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from skillruntime.contract.arguments import Parsed, cut_off, parse_arguments
from skillruntime.contract.coercion.coercion import Coerced, Policy, Repair, coerce, policy_named, without_decimals
from skillruntime.contract.defaults import Defaults
from skillruntime.contract.document import document_faults
from skillruntime.contract.explanation import explain
from skillruntime.contract.migration.migration import Migration, chain, link
from skillruntime.contract.plain_json import MAX_DEPTH, find_fault, is_plain_json
from skillruntime.contract.schema import Schema
from skillruntime.contract.versions import Version
from skillruntime.errors import (
    ErrorCode,
    InvalidSkillError,
    SkillError,
    SkillInputError,
    SkillOutputError,
    UnsupportedVersionError,
)

__all__ = ["Accepted", "Contract"]

CHAPTER_DIALECT = "https://json-schema.org/draft/2020-12"


@dataclass(frozen=True, slots=True)
class Accepted:
    """Arguments that fit, and what it took: the mends, the version they were written for, what to warn of."""

    arguments: dict[str, Any]
    repairs: tuple[Repair, ...] = ()
    migrated_from: str | None = None
    warnings: tuple[str, ...] = ()


class Contract:
    """The contract of one callable skill (contract chapter 31.6, and what DESIGN adds to it).

    >>> contract = Contract.from_dict({
    ...     "version": "1.0.0",
    ...     "input": {"type": "object", "required": ["topic"], "additionalProperties": False, "properties": {
    ...         "topic": {"type": "string"}, "count": {"type": "integer", "default": 5}}},
    ... })
    >>> contract.accept('{"topic": "AI", "count": "3",}').arguments
    {'topic': 'AI', 'count': 3}
    >>> contract.accept({"topic": "AI"}).arguments
    {'topic': 'AI', 'count': 5}
    """

    __slots__ = (
        *("name", "description", "version", "input", "output", "requires", "run", "annotations", "migrations"),
        *("policy", "_document", "_defaults", "_deprecated", "_depth", "_shapes"),
    )

    def __init__(self, document: Mapping[str, Any], *, name: str = "") -> None:
        faults = document_faults(document)
        if faults:
            raise InvalidSkillError(f"contract {name or '?'}: {faults[0]}", details={"faults": faults})
        self._document = document
        self.name = name or str(document.get("name") or document.get("title") or "")
        self.description = str(document.get("description") or "")
        self.version: str | None = document.get("version")
        self.input = self._schema(document.get("input", {"type": "object"}), "input")
        self.output = self._schema(document["output"], "output") if "output" in document else None
        self.requires: Mapping[str, Any] = document.get("requires", {})
        self.run: Mapping[str, Any] = document.get("run", {})
        self.annotations: Mapping[str, Any] = document.get("annotations", {})
        self.policy = policy_named(document.get("policy", "safe"))
        self._defaults = Defaults.of(self.input)
        self._depth = self.input.value_depth or MAX_DEPTH
        properties = _declared(self.input.document)
        self._deprecated = frozenset(name for name, schema in properties.items() if _is_deprecated(schema))
        self.migrations = link(_read_migrations(document), Version.parse(self.version) if self.version else None)
        self._shapes = tuple(self._shape(migration) for migration in self.migrations)

    @classmethod
    def from_dict(cls, document: Any, *, name: str = "") -> Contract:
        """Return the contract that *document* writes, under *name* or else its own ``name`` or ``title``.

        Raises:
            InvalidSkillError: it is no contract; ``details["faults"]`` lists all that is wrong.
        """
        if not isinstance(document, dict):
            raise InvalidSkillError(f"a contract is a JSON object, got {type(document).__name__}")
        return cls(document, name=name)

    @classmethod
    def from_function(cls, function: Callable[..., Any], *, name: str = "", version: str | None = None) -> Contract:
        """Return the contract of calling *function* with keyword arguments: from its signature and its docstring.

        >>> def greet(name: str, times: int = 1) -> str: ...
        >>> Contract.from_function(greet).accept({"name": "Ada", "times": "2"}).arguments
        {'name': 'Ada', 'times': 2}

        Raises:
            InvalidSkillError: its annotations make no usable schema.
        """
        from skillruntime.contract.function_contract import document_of_function  # what it needs is slow to import

        return cls.from_dict(document_of_function(function, name=name, version=version))

    def to_dict(self) -> dict[str, Any]:
        """Return the document, as it was written."""
        return copy.deepcopy(dict(self._document))

    def __repr__(self) -> str:
        return f"Contract({self.name!r}, version={self.version!r})"

    def with_migration(self, migration: Migration) -> Contract:
        """Return a contract that also takes the arguments that *migration* covers: the host's own function, say.

        >>> old = Migration.from_function(lambda v1: {"topics": [v1["topics"]]}, to="2.0.0", source="1.x")
        >>> schema = {"properties": {"topics": {"type": "array"}}}
        >>> contract = Contract.from_dict({"version": "2.0.0", "input": schema}).with_migration(old)
        >>> contract.accept({"topics": "AI"}, version="1.2.0").arguments
        {'topics': ['AI']}
        """
        extended = copy.copy(self)
        extended.migrations = link((*self.migrations, migration), Version.parse(self.version) if self.version else None)
        extended._shapes = tuple(extended._shape(each) for each in extended.migrations)
        return extended

    def accept(
        self,
        raw: Any,
        *,
        version: str | None = None,
        fill_defaults: bool = True,
        policy: str | Policy | None = None,
        finish_reason: str | None = None,
    ) -> Accepted:
        """Return the arguments that *raw* means, fit for this contract, and what it took to make them fit.

        *raw* is a mapping, or the text a model wrote. *version* is the one it was written for, where that is known.
        *policy* is ``"strict"``, ``"safe"``, ``"lenient"`` or a ``Policy``; by default the contract's own, which is
        safe. *finish_reason* is what the provider said of why the model stopped. A mapping that fits comes back
        untouched: the same object, unless a default was filled in. What is no JSON (NaN, a set, a cycle, a number of
        thousands of digits) is refused; half of a surrogate pair is looked for in a text, not in a mapping.

        Raises:
            SkillInputError: it does not fit; ``skill_errors`` has one error per offending parameter.
            TruncatedInputError: the text was cut off.
            UnsupportedVersionError: no migration covers *version*.
        """
        if version is None and finish_reason is None:
            parsed = parse_arguments(raw, quoting=not self.input.may_hold_secrets) if isinstance(raw, str) else None
            arguments = parsed.value if parsed else raw
            if type(arguments) is dict and not (parsed and parsed.mends) and self._fits(arguments):
                return self._accepted(arguments, (), None, fill_defaults)
        return self._accept_slowly(raw, version, fill_defaults, policy_named(policy or self.policy), finish_reason)

    def check(self, output: Any) -> None:
        """Check that *output* is what the contract promises.

        Raises:
            SkillOutputError: it is not; ``details["violations"]`` says where.
        """
        if self.output is None:
            return
        fault = find_fault(output, self.output.value_depth or MAX_DEPTH)
        if fault:
            raise SkillOutputError(f"The skill returned what is no JSON: {fault}")
        if not self.output.is_valid(output):
            errors = explain(self.output.violations(output), self.output)
            raise SkillOutputError(
                "The skill returned what its contract does not promise: "
                + "; ".join(error.message for error in errors[:3]),
                details={"violations": [{"message": error.message, **(error.details or {})} for error in errors]},
            )

    def output_for(self, output: Any, version: str | None) -> Any:
        """Return *output*, which this contract promises, in the shape that a caller of *version* knows.

        Only migrations that declare how the output changed (``output`` steps, all of them reversible) change it.

        >>> contract = Contract.from_dict({"version": "2.0.0", "migrations": [
        ...     {"from": "1.x", "to": "2.0.0", "steps": [], "output": [{"rename": {"from": "/n", "to": "/count"}}]}]})
        >>> contract.output_for({"count": 3}, "1.4.0"), contract.output_for({"count": 3}, None)
        ({'n': 3}, {'count': 3})

        Raises:
            SkillInputError: this output has no form in the old shape.
        """
        if version is None:
            return output
        for migration in reversed(chain(self.migrations, version)):
            if migration.output:
                output = migration.revert_output(output)
        return output

    def _schema(self, schema: Any, where: str) -> Schema:
        """Compile *schema* with the document's own definitions and dialect around it."""
        label = f"{self.name or 'contract'}: {where}"
        if isinstance(schema, dict):
            around = {key: self._document[key] for key in ("$schema", "definitions", "$defs") if key in self._document}
            schema = {**{key: value for key, value in around.items() if key not in schema}, **schema}
            for key in ("definitions", "$defs"):
                if key in around and isinstance(schema[key], dict):
                    schema[key] = {**around[key], **schema[key]}
        return Schema(schema, where=label)

    def _shape(self, migration: Migration) -> Schema | None:
        """Compile the schema of the arguments that *migration* starts from, where it is known."""
        return None if migration.accepts is None else self._schema(migration.accepts, f"migration to {migration.to}")

    def _fits(self, arguments: dict[str, Any]) -> bool:
        """Whether *arguments* fit as they are. An engine may choke on what is no JSON: then they do not."""
        if self.input.guarded and not is_plain_json(arguments, self._depth):
            return False
        try:
            return self.input.is_valid(arguments)
        except (ValueError, TypeError):
            return False

    def _accepted(
        self, arguments: dict[str, Any], repairs: tuple[Repair, ...], migrated_from: str | None, fill_defaults: bool
    ) -> Accepted:
        warnings: tuple[str, ...] = ()
        if self._deprecated and not self._deprecated.isdisjoint(arguments):
            used = sorted(self._deprecated & arguments.keys())
            warnings = tuple(f"the parameter {name!r} is deprecated" for name in used)
        if fill_defaults and self._defaults:
            arguments = self._defaults.filled(arguments)
        return Accepted(arguments, repairs, migrated_from, warnings)

    def _accept_slowly(
        self, raw: Any, version: str | None, fill_defaults: bool, policy: Policy, finish_reason: str | None
    ) -> Accepted:
        secret = self.input.may_hold_secrets
        parsed = _parse(raw, finish_reason, quoting=not secret)
        fault = find_fault(parsed.value, self._depth)
        if fault:
            raise SkillInputError(
                f"The arguments are no JSON: {fault}", suggested_action="Send the arguments as one plain JSON object"
            )
        if not policy.mend and "unclosed-object" in parsed.mends:
            raise cut_off("end inside an object")
        if parsed.mends and not policy.mend and parsed.mends != ("empty-text",):
            raise SkillInputError(
                f"The arguments are not JSON: {', '.join(parsed.mends)}",
                suggested_action="Send the arguments again as exactly one JSON object",
            )
        attempt = self._attempt(parsed.value, version, policy)
        arguments = without_decimals(attempt.coerced.value)
        repairs = _syntax_repairs(raw, parsed, secret) + attempt.coerced.repairs
        return self._accepted(arguments, repairs, attempt.migrated_from, fill_defaults)

    def _attempt(self, arguments: Any, version: str | None, policy: Policy) -> _Attempt:
        """Find out which version *arguments* were written for, and bring them to the current shape."""
        if version is not None:
            return self._as_version(arguments, version, policy)
        if self._is_untouched(arguments, self.input):
            return _Attempt(Coerced(arguments))
        newest_first = range(len(self.migrations) - 1, -1, -1)
        for index in newest_first:
            shape = self._shapes[index]
            if shape is not None and self._is_untouched(arguments, shape):
                return self._along(arguments, index, policy)
        attempts: list[_Attempt] = []
        refusal: SkillInputError | None = None
        for index in (None, *newest_first) if policy.mend else (None,):
            if index is not None and self._shapes[index] is None:
                continue
            try:
                attempts.append(self._along(arguments, index, policy))
            except SkillInputError as error:
                refusal = refusal or error
        if not attempts:
            assert refusal is not None
            raise refusal
        if any(attempt.coerced.value != attempts[0].coerced.value for attempt in attempts[1:]):
            raise SkillInputError(
                "The arguments could be of this version or of an older one, and would come to different results",
                suggested_action=f"Send them in the form of version {self.version}",
            )
        return attempts[0]

    def _is_untouched(self, arguments: Any, shape: Schema) -> bool:
        return isinstance(arguments, dict) and shape.is_valid(arguments)

    def _as_version(self, arguments: Any, stated: str, policy: Policy) -> _Attempt:
        try:
            version = Version.parse(stated)
        except ValueError as error:
            raise UnsupportedVersionError(f"{stated!r} is no version: {error}") from None
        covering = chain(self.migrations, version)
        if covering:
            start = self.migrations.index(covering[0])
            return replace(self._along(arguments, start, policy), migrated_from=stated)
        if self.version is None or _same_line(Version.parse(self.version), version):
            return self._along(arguments, None, policy)
        covered = [str(migration.source) for migration in self.migrations]
        raise UnsupportedVersionError(
            f"No contract covers version {stated}; this is {self.version}",
            details={"version": self.version, "migrates_from": covered},
            suggested_action=f"Send the arguments in the form of version {self.version}",
        )

    def _along(self, arguments: Any, start: int | None, policy: Policy) -> _Attempt:
        """Bring *arguments* from the shape before migration *start* to the current one; ``None`` is the current."""
        repairs: tuple[Repair, ...] = ()
        value = arguments
        if start is not None:
            first = self.migrations[start]
            for migration in (first, *chain(self.migrations, first.to)):
                shape = self._shapes[self.migrations.index(migration)]
                if shape is not None:
                    coerced = self._mended(value, shape, policy)
                    repairs += coerced.repairs
                    value = coerced.value
                value = migration.apply(value)
        coerced = self._mended(value, self.input, policy)
        source = None if start is None else str(self.migrations[start].source)
        return _Attempt(replace(coerced, repairs=repairs + coerced.repairs), source)

    def _mended(self, arguments: Any, shape: Schema, policy: Policy) -> Coerced:
        coerced = coerce(arguments, shape, policy)
        if not coerced.fits:
            raise SkillInputError("Input validation failed", skill_errors=explain(coerced.violations, shape))
        if not isinstance(coerced.value, dict):
            kind = type(coerced.value).__name__
            error = SkillError(ErrorCode.INVALID_INPUT, f"the arguments are a {kind}, not an object", True)
            raise SkillInputError("Input validation failed", skill_errors=[error])
        return coerced


@dataclass(frozen=True, slots=True)
class _Attempt:
    coerced: Coerced
    migrated_from: str | None = None


def _parse(raw: Any, finish_reason: str | None, *, quoting: bool) -> Parsed:
    match raw:
        case None:
            return Parsed({}, ("empty-text",))
        case str():
            return parse_arguments(raw, finish_reason=finish_reason, literals=True, quoting=quoting)
        case bytes() | bytearray():
            try:
                text = bytes(raw).decode()
            except UnicodeDecodeError as error:
                raise SkillInputError(f"The arguments are not UTF-8: {error.reason}") from None
            return parse_arguments(text, finish_reason=finish_reason, literals=True, quoting=quoting)
    parse_arguments("", finish_reason=finish_reason)  # what was cut off is refused, in whatever form it comes
    return Parsed(dict(raw) if isinstance(raw, Mapping) and type(raw) is not dict else raw)


def _syntax_repairs(raw: Any, parsed: Parsed, secret: bool) -> tuple[Repair, ...]:
    text = raw if isinstance(raw, str) else ""
    excerpt = text if len(text) <= 200 else text[:199] + "…"
    return tuple(Repair("", rule, excerpt, None, secret) for rule in parsed.mends)


def _read_migrations(document: Mapping[str, Any]) -> list[Migration]:
    """Read the declared migrations; a schema they accept may refer to the contract's own definitions."""
    declared = document.get("migrations", [])
    return [Migration.from_dict(each, where=f"migrations/{index}") for index, each in enumerate(declared)]


def _same_line(current: Version, stated: Version) -> bool:
    """Whether *stated* is of the line that *current* continues: the same MAJOR; below 1.0.0, the same MINOR too."""
    if current.major != stated.major:
        return False
    return current.major > 0 or current.minor == stated.minor


def _declared(document: Any) -> Mapping[str, Any]:
    properties = document.get("properties") if isinstance(document, dict) else None
    return properties if isinstance(properties, dict) else {}


def _is_deprecated(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("deprecated") is True
