"""What a skill accepts and promises at one version: ``accept`` arguments, ``check``
output.

The path of the arguments is fixed: raw text -> one JSON object -> which version was it
written for -> coerced to that version's shape -> migrated, along the chain -> coerced
to the current shape -> declared defaults. The steps share the knowledge of whose shape
is in force, so they are not separable.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skillruntime.contract.document.aliases import (
    alias_faults,
    names_by_alias,
    with_own_names,
)
from skillruntime.contract.document.defaults import Defaults
from skillruntime.contract.document.form import EDITOR_SCHEMA, document_faults
from skillruntime.contract.migration.readings import Reading, Shapes, read_as_version
from skillruntime.contract.reading.arguments import (
    FINISHED,
    Parsed,
    cut_off,
    parse_arguments,
    several_calls,
    too_deep,
)
from skillruntime.contract.reading.envelopes import (
    ENVELOPE_KEYS,
    calls_in,
    check_tool,
    opened,
)
from skillruntime.contract.reading.parameters import (
    may_have_swallowed,
    typed_parameters,
    with_swallowed,
)
from skillruntime.contract.repair_rules import (
    EMPTY_OBJECT,
    EMPTY_TEXT,
    SWALLOWED_PARAMETER,
    UNCLOSED_OBJECT,
    WRAPPER_OBJECT,
)
from skillruntime.contract.repairs.coercion import with_whole_numbers
from skillruntime.contract.repairs.policy import Policy, policy_named
from skillruntime.contract.repairs.record import Repair, without_decimals
from skillruntime.contract.response import to_plain
from skillruntime.contract.schemas.explanation import explain
from skillruntime.contract.schemas.plain_json import find_fault, is_plain_json
from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA, format_pointer
from skillruntime.contract.schemas.references import properties_of
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import declared_properties, secret_texts
from skillruntime.errors import InvalidSkillError, SkillInputError, SkillOutputError

if TYPE_CHECKING:
    from skillruntime.contract.migration.migration import Migration

__all__ = ["Accepted", "Contract", "Formats"]

Formats: TypeAlias = Literal["assert", "annotate"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Accepted arguments, with the repairs, the version they were written for, and
    warnings.

    ``sent`` is what was sent, read as JSON, and ``given`` the arguments before the
    defaults were filled in: `caller_texts` compares them.
    """

    arguments: dict[str, Any]
    repairs: tuple[Repair, ...] = ()
    migrated_from: str | None = None
    warnings: tuple[str, ...] = ()
    sent: Any = field(default=None, repr=False, compare=False)
    given: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class _Request:
    """What `Contract.accept` was called with."""

    raw: Any
    version: str | None
    policy: Policy
    finish_reason: str | None
    fill_defaults: bool


class Contract:
    """The contract of one callable skill.

    >>> contract = Contract.from_dict({
    ...     "version": "1.0.0",
    ...     "input": {
    ...         "type": "object",
    ...         "required": ["topic"],
    ...         "additionalProperties": False,
    ...         "properties": {
    ...             "topic": {"type": "string"},
    ...             "count": {"type": "integer", "default": 5},
    ...         },
    ...     },
    ... })
    >>> contract.accept('{"topic": "AI", "count": "3",}').arguments
    {'topic': 'AI', 'count': 3}
    >>> contract.accept({"topic": "AI"}).arguments
    {'topic': 'AI', 'count': 5}
    """

    __slots__ = (
        "_aliases",
        "_defaults",
        "_deprecated",
        "_document",
        "_guide",
        "_is_prepared",
        "_names",
        "_shapes",
        "_tool",
        "annotations",
        "description",
        "formats",
        "input",
        "migrations",
        "name",
        "output",
        "policy",
        "requires",
        "run",
        "version",
    )

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        name: str = "",
        formats: Formats = "assert",
    ) -> None:
        if formats not in ("assert", "annotate"):
            raise ValueError(f"formats is {formats!r}; it is 'assert' or 'annotate'")
        faults = document_faults(document)
        if faults:
            label = f"contract {name or document.get('name') or ''}".rstrip()
            raise InvalidSkillError(f"{label}: {faults[0]}", details={"faults": faults})
        schema_of = partial(Schema, assert_formats=formats == "assert")
        self._read(document, name, schema_of, formats)
        # Migrations and aliases may not fit the schema; without them, the first call is
        # soon enough.
        if self.migrations or self._aliases:
            self._prepare()

    def _read(
        self,
        document: Mapping[str, Any],
        name: str,
        schema_of: Callable[..., Schema],
        formats: Formats = "assert",
    ) -> None:
        self._document = document
        self.formats = formats
        self.name = name or str(document.get("name") or document.get("title") or "")
        self._tool = str(name or document.get("name") or "")
        # The command line gives a contract.json this name, which is not a tool's.
        if self._tool == "contract":
            self._tool = ""
        self.description = str(document.get("description") or "")
        self.version: str | None = document.get("version")
        self.input = self._schema(
            document.get("input", {"type": "object"}), "input", schema_of
        )
        self.output: Schema | None = None
        if "output" in document:
            self.output = self._schema(document["output"], "output", schema_of)
        self.requires: Mapping[str, Any] = document.get("requires", {})
        self.run: Mapping[str, Any] = document.get("run", {})
        self.annotations: Mapping[str, Any] = document.get("annotations", {})
        self.policy = policy_named(document.get("policy", "safe"))
        self._aliases = names_by_alias(document)
        self._is_prepared = False
        self._deprecated = frozenset(
            name
            for name, declared in properties_of(self.input.document).items()
            if _is_deprecated(declared)
        )
        self.migrations: tuple[Migration, ...] = ()
        if document.get("migrations"):
            self.migrations = _linked(_read_migrations(document), self.version)

    def _prepare(self) -> None:
        """Read the defaults and the shapes of older versions, for which the schemas are
        compiled.
        """
        self._defaults = Defaults.of(self.input)
        self._guide: Schema | None = None
        if self.formats == "annotate" and self.input.may_hold_formats:
            self._guide = self._schema(
                self._document.get("input", {"type": "object"}), "input"
            )
        self._link_shapes()
        self._is_prepared = True

    @classmethod
    def from_dict(
        cls, document: Any, *, name: str = "", formats: Formats = "assert"
    ) -> Contract:
        """Return the contract of *document*, under *name* or else its own ``name`` or
        ``title``.

        *formats* says what ``format`` in a schema means: ``"assert"`` refuses a value
        that does not have the format, as the contract document does; ``"annotate"``
        refuses nothing, as JSON Schema itself, and still guides repairs. The second is
        for the schemas of others, whose authors may have meant either.

        Raises:
            InvalidSkillError: it is not a contract; ``details["faults"]`` lists all its
                faults.
        """
        if not isinstance(document, dict):
            raise InvalidSkillError(
                f"a contract must be a JSON object, got {type(document).__name__}"
            )
        return cls(document, name=name, formats=formats)

    @classmethod
    def from_schema(
        cls,
        schema: Mapping[str, Any] | type[Any],
        *,
        name: str = "",
        formats: Formats = "annotate",
    ) -> Contract:
        """Return the contract whose arguments are those that *schema* takes, and which
        has nothing else.

        *schema* is a JSON Schema, or a class with fields (a pydantic model, dataclass
        or TypedDict).

        >>> schema = {"properties": {"limit": {"type": "integer"}}}
        >>> Contract.from_schema(schema).accept({"limit": "5"}).arguments
        {'limit': 5}

        Raises:
            InvalidSkillError: it is not a JSON Schema, or a field's annotation has
                none.
        """
        if isinstance(schema, type):
            # It needs pydantic.
            from skillruntime.contract.document.function_contract import (
                document_of_model,
            )

            return cls.from_dict(document_of_model(schema), name=name, formats=formats)
        return cls.from_dict({"input": schema}, name=name, formats=formats)

    @classmethod
    def from_known_dict(
        cls, document: Mapping[str, Any], *, name: str = ""
    ) -> Contract:
        """Return the contract of a *document* that `from_dict` took before, perhaps in
        an earlier process.

        It is compiled when it is first used: a conversation calls a few of a thousand
        tools.
        """
        contract = cls.__new__(cls)
        contract._read(document, name, Schema.known)
        return contract

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *, name: str = "", version: str | None = None
    ) -> Contract:
        """Return the contract of calling *function* with keyword arguments: from its
        signature and its docstring.

        >>> def greet(name: str, times: int = 1) -> str: ...
        >>> contract = Contract.from_function(greet)
        >>> contract.accept({"name": "Ada", "times": "2"}).arguments
        {'name': 'Ada', 'times': 2}

        Raises:
            InvalidSkillError: its annotations make no usable schema.
        """
        # Its imports are slow.
        from skillruntime.contract.document.function_contract import (
            document_of_function,
        )

        return cls.from_dict(document_of_function(function, name=name, version=version))

    @property
    def is_derived(self) -> bool:
        """Whether it was read from a script, and not written by the skill's author."""
        return "derived" in self._document

    def to_dict(self) -> dict[str, Any]:
        """Return the document, as it was written."""
        return copy.deepcopy(dict(self._document))

    def __repr__(self) -> str:
        parameters = ", ".join(properties_of(self.input.document))
        return f"<Contract {self.name!r} {self.version or ''}: {parameters or '-'}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Contract:
        return self  # it never changes

    def __reduce__(self) -> tuple[Any, ...]:
        if len(self.migrations) > len(self._document.get("migrations", ())):
            raise TypeError(
                f"{self!r} cannot be pickled: with_migration added a function; add it "
                "in the other process"
            )
        own = self._document.get("name") or self._document.get("title")
        name = "" if self.name == own else self.name
        make = partial(Contract, name=name, formats=self.formats)
        return make, (dict(self._document),)

    def with_migration(self, migration: Migration) -> Contract:
        """Return a contract that also takes the arguments that *migration* covers: the
        host's own function, say.

        >>> from skillruntime.contract import Migration
        >>> old = Migration.from_function(
        ...     lambda v1: {"topics": [v1["topics"]]}, to="2.0.0", source="1.x"
        ... )
        >>> schema = {"properties": {"topics": {"type": "array"}}}
        >>> contract = Contract.from_dict({"version": "2.0.0", "input": schema})
        >>> contract = contract.with_migration(old)
        >>> contract.accept({"topics": "AI"}, version="1.2.0").arguments
        {'topics': ['AI']}
        """
        if not self._is_prepared:
            self._prepare()
        # Schemas and defaults are shared: compiling them is what costs.
        extended = Contract.__new__(Contract)
        for slot in self.__slots__:
            setattr(extended, slot, getattr(self, slot))
        extended.migrations = _linked((*self.migrations, migration), self.version)
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
        """Return the arguments of *raw*, repaired to fit this contract, and the
        repairs.

        *raw* is a mapping, or the text that a model wrote. *version* is the one it was
        written for, where that is known. *policy* is ``"strict"``, ``"safe"``,
        ``"lenient"`` or a ``Policy``; by default the contract's own, which is safe.
        *finish_reason* is the provider's word for why the model stopped: a missing last
        brace is added only where it says that the model stopped by itself. A mapping
        that fits is returned untouched: the same object, unless a default was filled
        in. A value that is not JSON (NaN, a set, a cycle, a number of thousands of
        digits) is refused; half of a surrogate pair is looked for in a text, not in a
        mapping.

        Raises:
            SkillInputError: it does not fit; ``skill_errors`` has one error per
                offending parameter.
            TruncatedInputError: the text was cut off.
            UnsupportedVersionError: no migration covers *version*.
        """
        if not self._is_prepared:
            self._prepare()
        if policy is None:
            policy = self.policy
        else:
            # An unknown name is an error of the caller, whatever the arguments are.
            policy = policy_named(policy)
        parsed: Parsed | None = None
        try:
            # The way of every valid call: no copy, no coercion, one question to the
            # engine.
            may_be_whole = finish_reason is None or str(finish_reason) in FINISHED
            if version is None and may_be_whole:
                arguments = raw
                is_text = isinstance(raw, str)
                if is_text:
                    parsed = self._parse(raw, finish_reason, literals=False)
                    arguments = parsed.value
                may_fit = type(arguments) is dict
                if parsed is not None and parsed.rules:
                    may_fit = False
                if may_fit and self._aliases:
                    may_fit = self._aliases.keys().isdisjoint(arguments)
                if may_fit and self._fits(arguments):
                    if not self._may_hold_more(arguments, is_text=is_text):
                        return self._accepted(arguments, (), None, fill_defaults)
            # Strict JSON that does not fit is parsed again, for its numbers as they
            # were written.
            if parsed is not None and not parsed.rules:
                parsed = None
            request = _Request(raw, version, policy, finish_reason, fill_defaults)
            return self._accept_slowly(request, parsed)
        # A step that walks the value by recursion, close to the end of the host's own
        # stack; or the engine, which compares items (`uniqueItems`) of at most 255
        # levels (jsonschema-rs 0.60.3).
        except (RecursionError, ValueError) as error:
            if not _is_of_depth(error):
                raise
        # Outside the handler: the error would carry the other one as its context.
        raise too_deep()

    def check(self, output: Any) -> None:
        """Check that *output* fits the contract.

        Raises:
            SkillOutputError: it does not; ``details["violations"]`` says where.
        """
        if self.output is None:
            fault = find_fault(output)
            if fault:
                # Without a schema a set or a date inside a result is written as JSON
                # has it; NaN cannot be.
                fault = find_fault(to_plain(output))
        else:
            fault = find_fault(output, self.output.levels)
        if fault:
            raise SkillOutputError(f"The output of the skill is not JSON: {fault}")
        if self.output is None:
            return
        try:
            fits = self.output.is_valid(output)
        except (RecursionError, ValueError) as error:
            if not _is_of_depth(error):
                raise
            raise SkillOutputError(
                "The output of the skill is nested too deep to be checked"
            ) from None
        if not fits:
            errors = explain(self.output.violations(output), self.output)
            messages = "; ".join(error.message for error in errors[:3])
            violations = [
                {"message": error.message, **(error.details or {})} for error in errors
            ]
            raise SkillOutputError(
                f"The output of the skill does not fit its contract: {messages}",
                details={"violations": violations},
            )

    def _schema(
        self, schema: Any, where: str, schema_of: Callable[..., Schema] = Schema
    ) -> Schema:
        """Return *schema* with the document's own definitions and dialect around it."""
        if isinstance(schema, dict):
            schema = self._with_definitions(schema)
        return schema_of(schema, where=f"{self.name or 'contract'}: {where}")

    def _with_definitions(self, schema: dict[str, Any]) -> dict[str, Any]:
        around = {
            key: self._document[key]
            for key in ("$schema", "definitions", "$defs")
            if key in self._document
        }
        # "$schema": "contract.schema.json" is for editors: it describes the document,
        # not the dialect of its parts.
        if str(around.get("$schema", "")).endswith(EDITOR_SCHEMA):
            del around["$schema"]
        missing = {key: value for key, value in around.items() if key not in schema}
        schema = {**missing, **schema}
        for key in ("definitions", "$defs"):
            if key in around and isinstance(schema[key], dict):
                schema[key] = {**around[key], **schema[key]}
        return schema

    def _link_shapes(self) -> None:
        """Compile the shapes of older versions, and collect the names of all
        parameters, old and current.
        """
        older = tuple(self._shape(migration) for migration in self.migrations)
        old_names: set[str] = set()
        for shape in older:
            if shape is not None:
                old_names.update(declared_properties(shape.references, [WHOLE_SCHEMA]))
        reserved = frozenset(old_names)
        self._shapes = Shapes(
            self.input, self.version, self.migrations, older, reserved
        )
        declared = declared_properties(self.input.references, [WHOLE_SCHEMA]).keys()
        self._names = reserved | declared | self._aliases.keys()
        if not self._aliases:
            return
        faults = alias_faults(self._document, declared, reserved)
        if faults:
            raise InvalidSkillError(
                f"contract {self.name}: {faults[0]}", details={"faults": faults}
            )

    def _shape(self, migration: Migration) -> Schema | None:
        """Compile the schema of the arguments that *migration* starts from, where it is
        known.
        """
        if migration.accepts is None:
            return None
        return self._schema(migration.accepts, f"migration to {migration.to}")

    def _fits(self, arguments: dict[str, Any]) -> bool:
        """Return whether *arguments* fit as they are."""
        # An engine may raise on a value that is not JSON.
        if not is_plain_json(arguments, self.input.levels):
            return False
        schema = self._guide or self.input
        try:
            return schema.is_valid(arguments)
        except (ValueError, TypeError):
            return False

    def _accepted(
        self,
        arguments: dict[str, Any],
        repairs: tuple[Repair, ...],
        migrated_from: str | None,
        fill_defaults: bool,
        sent: Any = None,
    ) -> Accepted:
        arguments, whole = with_whole_numbers(arguments, self.input)
        repairs += whole
        warnings: list[str] = []
        for repair in repairs:
            if repair.rule == SWALLOWED_PARAMETER:
                warnings.append(
                    f"the parameter {repair.path[1:]!r} held other parameters, which "
                    "are passed on as such"
                )
        if not ENVELOPE_KEYS.isdisjoint(arguments):
            undeclared = arguments.keys() - self._names
            if not ENVELOPE_KEYS.isdisjoint(undeclared):
                for call in calls_in(arguments)[:1]:
                    warnings.append(f"the arguments look like a call of {call.name!r}")
        if self._deprecated and not self._deprecated.isdisjoint(arguments):
            for name in sorted(self._deprecated & arguments.keys()):
                warnings.append(f"the parameter {name!r} is deprecated")
        given = arguments
        if fill_defaults and self._defaults:
            misspelt: list[tuple[str, str]] = []
            arguments = self._defaults.filled(arguments, misspelt)
            for key, name in misspelt:
                warnings.append(
                    f"{key!r} is not declared; if {name!r} was meant, send it under "
                    "that name (its default is not used)"
                )
        if sent is None:
            sent = given
        return Accepted(arguments, repairs, migrated_from, tuple(warnings), sent, given)

    def _parse(self, text: str, finish_reason: str | None, *, literals: bool) -> Parsed:
        quoting = not self.input.may_hold_secrets
        return parse_arguments(
            text,
            finish_reason=finish_reason,
            literals=literals,
            quoting=quoting,
            names=self._names,
            tool=self._tool,
        )

    def _may_hold_more(self, arguments: dict[str, Any], *, is_text: bool) -> bool:
        """Return whether *arguments*, which fit, may be more than they seem: a call in
        a text, or swallowed parameters.
        """
        if is_text:
            if not ENVELOPE_KEYS.isdisjoint(arguments):
                return True
            if len(arguments) == 1 and self._tool in arguments:
                return True
        return may_have_swallowed(arguments)

    def _accept_slowly(self, request: _Request, parsed: Parsed | None) -> Accepted:
        """Accept arguments that need a repair, a migration, or an explanation."""
        if parsed is None:
            parsed = self._parse_anything(request.raw, request.finish_reason)
        self._check_parsed(parsed, request.policy)
        is_text = isinstance(request.raw, str)
        value, repairs = self._arguments(parsed, request.policy, is_text=is_text)
        sent = value
        is_current = request.version in (None, self.version)
        if self._aliases and is_current and isinstance(value, dict):
            value, renamed = with_own_names(value, self._aliases)
            repairs += renamed
        reading = self._as_version(value, request.version, request.policy)
        has_secret = self.input.may_hold_secrets and bool(
            secret_texts(self.input.references, parsed.value)
        )
        accepted = self._accepted(
            without_decimals(reading.coerced.value),
            _syntax_repairs(request.raw, parsed, has_secret)
            + repairs
            + reading.coerced.repairs,
            reading.migrated_from,
            request.fill_defaults,
            sent,
        )
        if not reading.dropped:
            return accepted
        lost = tuple(
            f"{pointer[1:]!r} of version {reading.migrated_from} has no effect in "
            f"version {self.version}"
            for pointer in reading.dropped
        )
        return replace(accepted, warnings=accepted.warnings + lost)

    def _check_parsed(self, parsed: Parsed, policy: Policy) -> None:
        """Check that *parsed* is one call of this tool, written as *policy* allows.

        Raises:
            SkillInputError: it is not.
        """
        fault = find_fault(parsed.value, self.input.levels)
        if fault is not None:
            if fault.startswith("nested"):
                raise too_deep()
            raise SkillInputError(
                f"The arguments are not JSON: {fault}",
                suggested_action="Send the arguments as one plain JSON object",
            )
        if not policy.repair:
            if UNCLOSED_OBJECT in parsed.rules:
                raise cut_off("end inside an object")
            if parsed.rules not in ((), (EMPTY_TEXT,)):
                raise SkillInputError(
                    f"The arguments are not JSON: {', '.join(parsed.rules)}",
                    suggested_action="Send the arguments again as exactly one JSON "
                    "object",
                )
        if EMPTY_OBJECT in parsed.rules and self._fits({}):
            raise several_calls(2)  # the empty one may be a call too
        check_tool(parsed.tool, self._tool)

    def _arguments(
        self, parsed: Parsed, policy: Policy, *, is_text: bool
    ) -> tuple[Any, tuple[Repair, ...]]:
        """Return the arguments that *parsed* is, or of the call that it is, and the
        repairs.

        Raises:
            SkillInputError: there are several calls, or the call is one of another
                tool, or parameters do not fit.
        """
        value = parsed.value
        if parsed.strings is not None:
            return typed_parameters(value, parsed.strings, self.input), ()
        if not policy.repair:
            return value, ()
        is_secret = self.input.may_hold_secrets
        repairs: list[Repair] = []
        call = opened(value, self._tool, self._names, self._fits_call, is_text=is_text)
        if call is not None:
            value = call.arguments
            repairs.append(Repair("", WRAPPER_OBJECT, call.sent, None, is_secret))
        if isinstance(value, dict) and may_have_swallowed(value):
            sent = value
            value, recovered = with_swallowed(sent, self.input)
            for name in recovered:
                pointer = format_pointer((name,))
                before, after = sent[name], value[name]
                repairs.append(
                    Repair(pointer, SWALLOWED_PARAMETER, before, after, is_secret)
                )
        return value, tuple(repairs)

    def _fits_call(self, value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        if not self._aliases:
            return self._fits(value)
        try:
            value, _ = with_own_names(value, self._aliases)
        except SkillInputError:
            return False
        return self._fits(value)

    def _as_version(self, value: Any, version: str | None, policy: Policy) -> Reading:
        """Read *value* as a version of the contract; a format that only describes
        guides the repairs, if it can.
        """
        if self._guide is not None and policy.repair:
            shapes = self._shapes._replace(current=self._guide)
            try:
                return read_as_version(shapes, value, version, policy)
            except SkillInputError:
                pass
        return read_as_version(self._shapes, value, version, policy)

    def _parse_anything(self, raw: Any, finish_reason: str | None) -> Parsed:
        if raw is None:
            return Parsed({}, (EMPTY_TEXT,))
        if isinstance(raw, str):
            return self._parse(raw, finish_reason, literals=True)
        # A call that was cut off is refused as a mapping too: a host may have closed
        # its brace.
        if finish_reason is not None:
            parse_arguments("", finish_reason=finish_reason)
        if isinstance(raw, Mapping) and type(raw) is not dict:
            return Parsed(dict(raw))
        return Parsed(raw)


def _is_deprecated(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("deprecated") is True


def _is_of_depth(error: Exception) -> bool:
    return isinstance(error, RecursionError) or "Recursion limit" in str(error)


def _syntax_repairs(raw: Any, parsed: Parsed, is_secret: bool) -> tuple[Repair, ...]:
    excerpt = raw if isinstance(raw, str) else ""
    if len(excerpt) > 200:
        excerpt = excerpt[:199] + "…"
    repairs: list[Repair] = []
    for rule in parsed.rules:
        # What a repaired text became is not repeated in its repair, except for an empty
        # one: nothing else shows it.
        after: Any = {} if rule == EMPTY_TEXT else None
        repairs.append(Repair("", rule, excerpt, after, is_secret))
    return tuple(repairs)


def _linked(
    migrations: Iterable[Migration], version: str | None
) -> tuple[Migration, ...]:
    from skillruntime.contract.migration.migration import link
    from skillruntime.contract.versions import Version

    return link(migrations, Version.parse(version) if version else None)


def _read_migrations(document: Mapping[str, Any]) -> list[Migration]:
    """Read the declared migrations; a schema they accept may refer to the contract's
    own definitions.
    """
    # Most contracts have none.
    from skillruntime.contract.migration.migration import Migration

    return [
        Migration.from_dict(declared, where=f"migrations/{index}")
        for index, declared in enumerate(document.get("migrations", []))
    ]
