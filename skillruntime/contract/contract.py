"""What a skill accepts and promises at one version: ``accept`` arguments, ``check`` output.

The path of the arguments is fixed: raw text -> one JSON object -> which version was it written for -> coerced to that
version's shape -> migrated, along the chain -> coerced to the current shape -> declared defaults. The steps share the
knowledge of whose shape is in force, so they are not separable.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from skillruntime.contract.arguments import FINISHED, Parsed, cut_off, parse_arguments, too_deep
from skillruntime.contract.coercion.coercion import Coerced, Policy, Repair, coerce, policy_named, without_decimals
from skillruntime.contract.coercion.scalars import is_same
from skillruntime.contract.coercion.subschemas import declared_properties, subschemas
from skillruntime.contract.defaults import Defaults
from skillruntime.contract.document import document_faults
from skillruntime.contract.document_schema import EDITOR_SCHEMA
from skillruntime.contract.envelopes import Call, calls_in, is_name_of
from skillruntime.contract.explanation import explain
from skillruntime.contract.migration.migration import Migration, chain, link
from skillruntime.contract.plain_json import find_fault, is_plain_json
from skillruntime.contract.pointer import parse_pointer
from skillruntime.contract.references import References
from skillruntime.contract.schema import Schema
from skillruntime.contract.versions import Version, same_line
from skillruntime.errors import (
    ErrorCode,
    InvalidSkillError,
    SkillError,
    SkillInputError,
    SkillOutputError,
    UnsupportedVersionError,
)

__all__ = ["Accepted", "Contract"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Arguments that fit, and what it took: the repairs, the version they were written for, warnings."""

    arguments: dict[str, Any]
    repairs: tuple[Repair, ...] = ()
    migrated_from: str | None = None
    warnings: tuple[str, ...] = ()


class Contract:
    """The contract of one callable skill (section 31.6 of the contract document, and our additions).

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
        *("policy", "_document", "_defaults", "_deprecated", "_names", "_reserved", "_shapes", "_starts", "_tool"),
    )

    def __init__(self, document: Mapping[str, Any], *, name: str = "") -> None:
        faults = document_faults(document)
        if faults:
            raise InvalidSkillError(f"contract {name or '?'}: {faults[0]}", details={"faults": faults})
        self._document = document
        self.name = name or str(document.get("name") or document.get("title") or "")
        tool = str(name or document.get("name") or "")
        self._tool = "" if tool == "contract" else tool  # what the command line calls a contract.json
        self.description = str(document.get("description") or "")
        self.version: str | None = document.get("version")
        self.input = self._schema(document.get("input", {"type": "object"}), "input")
        self.output = self._schema(document["output"], "output") if "output" in document else None
        self.requires: Mapping[str, Any] = document.get("requires", {})
        self.run: Mapping[str, Any] = document.get("run", {})
        self.annotations: Mapping[str, Any] = document.get("annotations", {})
        self.policy = policy_named(document.get("policy", "safe"))
        self._defaults = Defaults.of(self.input)
        properties = _declared(self.input.document)
        self._deprecated = frozenset(name for name, schema in properties.items() if _is_deprecated(schema))
        self.migrations = link(_read_migrations(document), Version.parse(self.version) if self.version else None)
        self._link_shapes()

    @classmethod
    def from_dict(cls, document: Any, *, name: str = "") -> Contract:
        """Return the contract that *document* writes, under *name* or else its own ``name`` or ``title``.

        Raises:
            InvalidSkillError: it is not a contract; ``details["faults"]`` lists all that is wrong.
        """
        if not isinstance(document, dict):
            raise InvalidSkillError(f"a contract must be a JSON object, got {type(document).__name__}")
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
        # Schemas and defaults are shared: compiling them is what costs.
        extended = copy.copy(self)
        extended.migrations = link((*self.migrations, migration), Version.parse(self.version) if self.version else None)
        extended._link_shapes()
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
        safe. *finish_reason* is the provider's word for why the model stopped: only where it says that the model
        stopped by itself is a missing last brace added. A mapping that fits comes back untouched: the same object,
        unless a default was filled in. A value that is not JSON (NaN, a set, a cycle, a number of thousands of digits)
        is refused; half of a surrogate pair is looked for in a text, not in a mapping.

        Raises:
            SkillInputError: it does not fit; ``skill_errors`` has one error per offending parameter.
            TruncatedInputError: the text was cut off.
            UnsupportedVersionError: no migration covers *version*.
        """
        if policy is not None:
            policy = policy_named(policy)  # an unknown name is an error of the caller, whatever the arguments are
        # The way of every valid call: no copy, no coercion, one question to the engine.
        if version is None and (finish_reason is None or str(finish_reason) in FINISHED):
            parsed = self._parse(raw, finish_reason, literals=False) if isinstance(raw, str) else None
            arguments = parsed.value if parsed else raw
            if type(arguments) is dict and not (parsed and parsed.rules) and self._fits(arguments):
                return self._accepted(arguments, (), None, fill_defaults)
        return self._accept_slowly(raw, version, fill_defaults, policy_named(policy or self.policy), finish_reason)

    def check(self, output: Any) -> None:
        """Check that *output* fits the contract.

        Raises:
            SkillOutputError: it does not; ``details["violations"]`` says where.
        """
        if self.output is None:
            return
        fault = find_fault(output)
        if fault:
            raise SkillOutputError(f"The output of the skill is not JSON: {fault}")
        if not self.output.is_valid(output):
            errors = explain(self.output.violations(output), self.output)
            raise SkillOutputError(
                "The output of the skill does not fit its contract: "
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
            # "$schema": "contract.schema.json" is for editors: it describes the document, not the dialect of its parts.
            if str(around.get("$schema", "")).endswith(EDITOR_SCHEMA):
                del around["$schema"]
            schema = {**{key: value for key, value in around.items() if key not in schema}, **schema}
            for key in ("definitions", "$defs"):
                if key in around and isinstance(schema[key], dict):
                    schema[key] = {**around[key], **schema[key]}
        return Schema(schema, where=label)

    def _link_shapes(self) -> None:
        """Compile the shapes of older versions, and collect the names of all parameters, old and current."""
        ends = [chain(self.migrations, migration.to)[-1:] or [migration] for migration in self.migrations]
        # A call that states no version starts only where the migrations lead to the current line.
        self._starts = tuple(index for index, [last] in enumerate(ends) if self._arrives(last.to))
        self._shapes = tuple(self._shape(migration) for migration in self.migrations)
        old = [declared_properties(shape.references, [()]) for shape in self._shapes if shape is not None]
        self._reserved = frozenset(name for names in old for name in names)
        self._names = self._reserved | declared_properties(self.input.references, [()]).keys()

    def _shape(self, migration: Migration) -> Schema | None:
        """Compile the schema of the arguments that *migration* starts from, where it is known."""
        return None if migration.accepts is None else self._schema(migration.accepts, f"migration to {migration.to}")

    def _fits(self, arguments: dict[str, Any]) -> bool:
        """Whether *arguments* fit as they are. An engine may raise on a value that is not JSON: it does not fit."""
        if self.input.guarded and not is_plain_json(arguments):
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
            misspelt: list[tuple[str, str]] = []
            arguments = self._defaults.filled(arguments, misspelt)
            warnings += tuple(
                f"{sent!r} is not declared; if {name!r} was meant, send it under that name (its default is not used)"
                for sent, name in misspelt
            )
        return Accepted(arguments, repairs, migrated_from, warnings)

    def _parse(self, text: str, finish_reason: str | None, *, literals: bool) -> Parsed:
        quoting = not self.input.may_hold_secrets
        return parse_arguments(text, finish_reason=finish_reason, literals=literals, quoting=quoting, names=self._names)

    def _accept_slowly(
        self, raw: Any, version: str | None, fill_defaults: bool, policy: Policy, finish_reason: str | None
    ) -> Accepted:
        parsed = self._parse_anything(raw, finish_reason)
        fault = find_fault(parsed.value)
        if fault and fault.startswith("nested"):
            raise too_deep()
        if fault:
            raise SkillInputError(
                f"The arguments are not JSON: {fault}", suggested_action="Send the arguments as one plain JSON object"
            )
        if not policy.repair and "unclosed-object" in parsed.rules:
            raise cut_off("end inside an object")
        if parsed.rules and not policy.repair and parsed.rules != ("empty-text",):
            raise SkillInputError(
                f"The arguments are not JSON: {', '.join(parsed.rules)}",
                suggested_action="Send the arguments again as exactly one JSON object",
            )
        value, unwrapped = self._unwrapped(parsed.value) if policy.repair else (parsed.value, ())
        attempt = self._attempt(value, version, policy)
        arguments = without_decimals(attempt.coerced.value)
        syntax = _syntax_repairs(raw, parsed, self.input.may_hold_secrets)
        repairs = syntax + unwrapped + attempt.coerced.repairs
        return self._accepted(arguments, repairs, attempt.migrated_from, fill_defaults)

    def _unwrapped(self, value: Any) -> tuple[Any, tuple[Repair, ...]]:
        """Return the arguments of the call that *value* is a provider's form of, with the repair; else *value*.

        Raises:
            SkillInputError: there are several calls, or the call is one of another tool.
        """
        if isinstance(value, dict) and (self._fits(value) or not self._names.isdisjoint(value)):
            return value, ()
        calls = calls_in(value)
        if not calls and isinstance(value, dict) and len(value) == 1 and self._tool:
            [(name, inside)] = value.items()  # {"get_weather": {...}}
            calls = (
                [Call(name, (name,), inside, value)]
                if isinstance(inside, dict) and is_name_of(name, self._tool)
                else []
            )
        if not calls or not self._names.isdisjoint(calls[0].keys):
            return value, ()
        if len(calls) > 1:
            raise SkillInputError(
                f"The arguments are not one JSON object: there are {len(calls)} calls in one text",
                suggested_action="Send one call at a time, each as exactly one JSON object",
            )
        if self._tool and not is_name_of(calls[0].name, self._tool):
            raise SkillInputError(
                f"The arguments are those of a call of {calls[0].name!r}, and this is {self._tool!r}",
                suggested_action=f"Call {calls[0].name!r}, or send the arguments of {self._tool!r}",
            )
        is_secret = self.input.may_hold_secrets
        return calls[0].arguments, (Repair("", "wrapper-object", calls[0].sent, None, is_secret),)

    def _parse_anything(self, raw: Any, finish_reason: str | None) -> Parsed:
        match raw:
            case None:
                return Parsed({}, ("empty-text",))
            case str():
                return self._parse(raw, finish_reason, literals=True)
            case bytes() | bytearray():
                try:
                    return self._parse(bytes(raw).decode(), finish_reason, literals=True)
                except UnicodeDecodeError as error:
                    reason = error.reason  # raised below: the error would carry the bytes as its context
                raise SkillInputError(
                    f"The arguments are not UTF-8: {reason}", suggested_action="Send the arguments in UTF-8"
                )
        # A mapping may come from a host that closed the brace itself.
        parse_arguments("", finish_reason=finish_reason)  # a cut call is refused, in whatever form it comes
        return Parsed(dict(raw) if isinstance(raw, Mapping) and type(raw) is not dict else raw)

    def _attempt(self, arguments: Any, version: str | None, policy: Policy) -> _Attempt:
        """Find out which version *arguments* were written for, and bring them to the current shape."""
        if version is not None:
            return self._as_version(arguments, version, policy)
        if self._is_untouched(arguments, self.input):
            return _Attempt(Coerced(arguments))
        newest_first = self._starts[::-1]
        for index in newest_first:
            shape = self._shapes[index]
            if shape is not None and self._is_untouched(arguments, shape):
                return self._of_old_caller(arguments, index, policy)
        attempts: list[_Attempt] = []
        refusal: SkillInputError | None = None
        # The current shape first: most callers are current, and among old ones the newest are the likeliest.
        for start in (None, *newest_first) if policy.repair else (None,):
            if start is not None and self._shapes[start] is None:
                continue
            try:
                attempts.append(self._along(arguments, start, policy))
            except SkillInputError as error:
                refusal = refusal or error
        if not attempts:
            assert refusal is not None
            raise refusal
        for attempt in attempts[1:]:
            if not is_same(attempt.coerced.value, attempts[0].coerced.value):
                raise self._unclear_version(attempts[0])
        return attempts[0]

    def _of_old_caller(self, arguments: Any, index: int, policy: Policy) -> _Attempt:
        """Bring *arguments*, which fit the shape before migration *index* as they are, to the current shape.

        They are also read by the current shape. A container written in a string is the commonest error of current
        callers: where the current shape needs no other repair and the old one says nothing about that string, it is
        the container. Where the two readings differ otherwise, the call is refused.
        """
        old = self._along(arguments, index, policy, may_hold_containers=True)
        shape = self._shapes[index]
        assert shape is not None
        for start in (None, *(each for each in self._starts[::-1] if each > index)):
            newer = self.input if start is None else self._shapes[start]
            if newer is None:
                continue
            try:
                reading = self._along(arguments, start, policy)
            except SkillInputError:
                if self._holds_container(arguments, shape, newer):
                    raise  # a broken list of a newer caller must not become the item of an older one
                continue
            rules = {repair.rule for repair in reading.coerced.repairs}
            old_names = self._reserved - _declared(newer.document).keys()
            if rules & _UNCOUNTED or not old_names.isdisjoint(reading.sent):
                continue
            if is_same(without_decimals(reading.coerced.value), without_decimals(old.coerced.value)):
                continue
            if rules == {"container-text"} and not any(
                _describes_text(shape.references, parse_pointer(repair.path)) for repair in reading.coerced.repairs
            ):
                return reading
            raise self._unclear_version(reading)
        self._refuse_two_meanings(arguments, index, old, policy)
        self._along(arguments, index, policy)  # refuses a container in a text that would become an item
        return old

    def _refuse_two_meanings(self, arguments: Any, index: int, newer: _Attempt, policy: Policy) -> None:
        """Refuse arguments that fit a still older shape as well, and mean something else by it.

        What an older shape only adds, the default of a parameter that was new then, is no difference in what was sent.
        """
        taken = without_decimals(newer.coerced.value)
        for start in self._starts:
            shape = self._shapes[start]
            if start >= index or shape is None or not self._is_untouched(arguments, shape):
                continue
            try:
                reading = without_decimals(self._along(arguments, start, policy).coerced.value)
            except SkillInputError:
                continue
            if not all(name in reading and is_same(reading[name], value) for name, value in taken.items()):
                raise self._unclear_version(newer)

    def _holds_container(self, arguments: dict[str, Any], shape: Schema, newer: Schema) -> bool:
        """Whether a string of *arguments* looks like a container that *newer* asks for, and is only that."""
        for name, text in arguments.items():
            if isinstance(text, str) and text.strip(" '\"`\n")[:1] in ("[", "{", "("):
                kinds = {str(each.get("type")) for each in subschemas(newer.references, (name,))}
                if kinds and kinds <= {"array", "object"} and not _describes_text(shape.references, (name,)):
                    return True
        return False

    def _unclear_version(self, current: _Attempt) -> SkillInputError:
        """Return the error of arguments that an older version reads otherwise; it says how to send them."""
        sent = next((each for each in current.coerced.repairs if each.rule not in _UNCOUNTED and each.path), None)
        action = f"Send them in the form of version {self.version}, or state the version"
        if sent is not None and not sent.secret and not self.input.may_hold_secrets:
            value = without_decimals(sent.after)
            written = json.dumps(value, ensure_ascii=False)
            if len(written) <= 60 and sent.rule != "key-name":
                action = (
                    f"Send `{sent.path[1:]}` as the {_kind(value)} {written} ({self.version}), or state the version"
                )
        return SkillInputError(
            "The arguments could be of this version or of an older one, with different results",
            suggested_action=action,
        )

    def _is_untouched(self, arguments: Any, shape: Schema) -> bool:
        return isinstance(arguments, dict) and shape.is_valid(arguments)

    def _as_version(self, arguments: Any, stated: str, policy: Policy) -> _Attempt:
        try:
            version = Version.parse(str(stated))
        except ValueError as error:
            raise UnsupportedVersionError(
                str(error), suggested_action="State a version such as 1.2.0, or leave the version out"
            ) from None
        covering = chain(self.migrations, version)
        if covering and self._arrives(covering[-1].to):
            start = self.migrations.index(covering[0])
            old = self._along(arguments, start, policy, may_hold_containers=True)
            if self._is_of_current(arguments, start) and not is_same(without_decimals(old.coerced.value), arguments):
                raise self._unclear_version(old)
            return replace(old, migrated_from=stated)
        if not covering and self._arrives(version):
            return self._along(arguments, None, policy)
        covered = [str(migration.source) for migration in self.migrations]
        ends = f", and the migrations from it end at {covering[-1].to}" if covering else ""
        raise UnsupportedVersionError(
            f"No contract covers version {stated}; this is {self.version}{ends}",
            details={"version": self.version, "migrates_from": covered},
            suggested_action=f"Send the arguments in the form of version {self.version}",
        )

    def _arrives(self, version: Version) -> bool:
        """Whether arguments in the shape of *version* are of the current contract's line."""
        return self.version is None or same_line(Version.parse(self.version), version)

    def _is_of_current(self, arguments: Any, start: int) -> bool:
        """Whether *arguments* fit the current shape and use a name of it that the shape before *start* lacks."""
        shape = self._shapes[start]
        if shape is None or not self._is_untouched(arguments, self.input):
            return False
        new = _declared(self.input.document).keys() - declared_properties(shape.references, [()]).keys()
        return not new.isdisjoint(arguments)

    def _along(
        self, arguments: Any, start: int | None, policy: Policy, *, may_hold_containers: bool = False
    ) -> _Attempt:
        """Bring *arguments* from the shape before migration *start* to the current one; ``None`` is the current."""
        repairs: tuple[Repair, ...] = ()
        value = arguments
        sent: frozenset[str] | None = None
        if start is not None:
            first = self.migrations[start]
            for migration in (first, *chain(self.migrations, first.to)):
                shape = self._shapes[self.migrations.index(migration)]
                if shape is not None:
                    coerced = self._coerced(value, shape, policy)
                    repairs += coerced.repairs
                    value = coerced.value
                    sent = frozenset(value) if sent is None else sent
                if not may_hold_containers and isinstance(value, dict):
                    migration.check_texts(value, _described_texts(value, shape))
                value = migration.apply(value)
        coerced = self._coerced(value, self.input, policy)
        sent = frozenset(coerced.value) if sent is None else sent
        source = None if start is None else str(self.migrations[start].source)
        return _Attempt(replace(coerced, repairs=repairs + coerced.repairs), source, sent)

    def _coerced(self, arguments: Any, shape: Schema, policy: Policy) -> Coerced:
        coerced = coerce(arguments, shape, policy, reserved=self._reserved)
        if not coerced.fits:
            raise SkillInputError("Input validation failed", skill_errors=explain(coerced.violations, shape))
        if not isinstance(coerced.value, dict):
            kind = type(coerced.value).__name__
            error = SkillError(ErrorCode.INVALID_INPUT, f"the arguments are a {kind}, not an object", True)
            raise SkillInputError("Input validation failed", skill_errors=[error])
        return coerced


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Arguments brought to the current shape; ``sent`` are their keys in the shape that they were read by."""

    coerced: Coerced
    migrated_from: str | None = None
    sent: frozenset[str] = frozenset()


# Rules of repair that leave out or make up something: a reading that needs them says nothing about its version.
_UNCOUNTED = frozenset({"default", "null-optional", "null-text", "unknown-key", "unknown-null", "empty-key"})


def _describes_text(references: References, path: tuple[str, ...]) -> bool:
    """Whether an old shape says what the string at *path* holds, so that it is meant as a string."""
    return any(
        not {"format", "pattern", "contentMediaType", "enum", "const"}.isdisjoint(schema)
        for schema in subschemas(references, path)
    )


def _described_texts(arguments: dict[str, Any], shape: Schema | None) -> set[str]:
    """Return the strings of *arguments* that *shape* describes, so that they are meant as strings."""
    if shape is None:
        return set()
    texts = {name: value for name, value in arguments.items() if isinstance(value, str)}
    return {text for name, text in texts.items() if _describes_text(shape.references, (name,))}


def _kind(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "value")


def _syntax_repairs(raw: Any, parsed: Parsed, secret: bool) -> tuple[Repair, ...]:
    text = raw if isinstance(raw, str) else ""
    excerpt = text if len(text) <= 200 else text[:199] + "…"
    return tuple(Repair("", rule, excerpt, None, secret) for rule in parsed.rules)


def _read_migrations(document: Mapping[str, Any]) -> list[Migration]:
    """Read the declared migrations; a schema they accept may refer to the contract's own definitions."""
    declared = document.get("migrations", [])
    return [
        Migration.from_dict(each, where=f"migrations/{index}", contract=document) for index, each in enumerate(declared)
    ]


def _declared(document: Any) -> Mapping[str, Any]:
    properties = document.get("properties") if isinstance(document, dict) else None
    return properties if isinstance(properties, dict) else {}


def _is_deprecated(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("deprecated") is True
