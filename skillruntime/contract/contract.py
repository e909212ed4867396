"""Enforce one version of a skill's contract: ``accept`` arguments, ``check`` output.

The arguments pass these steps in a fixed order: raw text -> one JSON object -> the
version it was written for -> coerced to that version's shape -> migrated, along the
chain -> coerced to the current shape -> declared defaults. The steps cannot be
separated, because each must know which version's shape is in force.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from skillruntime.contract.document.aliases import (
    alias_faults,
    names_by_alias,
    with_own_names,
)
from skillruntime.contract.document.defaults import Defaults
from skillruntime.contract.document.deprecation import Deprecation
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
    looks_like_call,
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
    STRAY_BRACKET,
    SWALLOWED_PARAMETER,
    UNCLOSED_OBJECT,
    WRAPPER_OBJECT,
)
from skillruntime.contract.repairs.coercion import with_whole_numbers
from skillruntime.contract.repairs.policy import Policy, policy_named
from skillruntime.contract.repairs.record import Repair, without_decimals
from skillruntime.contract.response import to_plain
from skillruntime.contract.schemas.explanation import explain
from skillruntime.contract.schemas.misspelt_keys import (
    KnownKeys,
    are_declared,
    misspelt_keys,
)
from skillruntime.contract.schemas.names import fold_loosely
from skillruntime.contract.schemas.plain_json import (
    ANY_LEVELS,
    Plainness,
    find_fault,
    is_plain_json,
    plainness,
)
from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA, format_pointer
from skillruntime.contract.schemas.references import properties_of
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import (
    declared_properties,
    required_properties,
    secret_texts,
    takes_undeclared_keys,
)
from skillruntime.errors import InvalidSkillError, SkillInputError, SkillOutputError

if TYPE_CHECKING:
    from skillruntime.contract.migration.migration import Migration

__all__ = ["Accepted", "Contract", "Formats"]

Formats: TypeAlias = Literal["assert", "annotate"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Accepted arguments, with the repairs, the version they were written for, and
    warnings.

    ``sent`` are the sent arguments, read as JSON; ``given`` are the arguments before
    the defaults were filled in. `caller_texts` compares the two.
    """

    arguments: dict[str, Any]
    repairs: tuple[Repair, ...] = ()
    migrated_from: str | None = None
    warnings: tuple[str, ...] = ()
    sent: Any = field(default=None, repr=False, compare=False)
    given: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


class _Request(NamedTuple):
    """The arguments of a call of `Contract.accept`."""

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
        "_keys",
        "_names",
        "_required",
        "_shapes",
        "_tool",
        "annotations",
        "deprecation",
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
        # Migrations and aliases may not fit the schema, so check them now; other
        # contracts are prepared at the first call.
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
        self.name: str = name or str(
            document.get("name") or document.get("title") or ""
        )
        self._tool = str(name or document.get("name") or "")
        # The command line gives this name to a contract.json; it is not a tool's name.
        if self._tool == "contract":
            self._tool = ""
        self.description: str = str(document.get("description") or "")
        self.version: str | None = document.get("version")
        self.input: Schema = self._schema(
            document.get("input", {"type": "object"}), "input", schema_of
        )
        self.output: Schema | None = None
        if "output" in document:
            self.output = self._schema(document["output"], "output", schema_of)
        self.requires: Mapping[str, Any] = document.get("requires", {})
        self.run: Mapping[str, Any] = document.get("run", {})
        self.annotations: Mapping[str, Any] = document.get("annotations", {})
        self.policy: Policy = policy_named(document.get("policy", "safe"))
        self._aliases = names_by_alias(document)
        self._is_prepared = False
        self.deprecation: Deprecation | None = Deprecation.of(document)
        self._deprecated = frozenset(
            name
            for name, declared in properties_of(self.input.document).items()
            if _is_deprecated(declared)
        )
        self.migrations: tuple[Migration, ...] = ()
        if document.get("migrations"):
            self.migrations = _linked(_read_migrations(document), self.version)

    def _prepare(self) -> None:
        """Compile the schemas, and read from them the defaults and the shapes of older
        versions.
        """
        self._defaults = Defaults.of(self.input) or None
        self._keys: KnownKeys | None = None
        if takes_undeclared_keys(self.input.references):
            self._keys = KnownKeys(self.input.references)
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
        """Return the contract of *document*, named *name*, or by default its own
        ``name`` or ``title``.

        *formats* says what ``format`` in a schema means. ``"assert"`` refuses a value
        without the format, as the contract document does. ``"annotate"`` only guides
        repairs and refuses no value, as in JSON Schema itself; use it for foreign
        schemas, whose authors may have meant either.

        Raises:
            InvalidSkillError: *document* is not a contract; ``details["faults"]`` lists
                all its faults.
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
        """Return a contract that consists only of *schema*, the schema of its
        arguments.

        *schema* is a JSON Schema, or a class with fields (a pydantic model, dataclass
        or TypedDict).

        >>> schema = {"properties": {"limit": {"type": "integer"}}}
        >>> Contract.from_schema(schema).accept({"limit": "5"}).arguments
        {'limit': 5}

        Raises:
            InvalidSkillError: *schema* is not a JSON Schema, or a field's annotation
                has no schema.
        """
        if isinstance(schema, type):
            # Imported here, because it needs pydantic.
            from skillruntime.contract.document.function_contract import (
                document_of_model,
            )

            return cls.from_dict(document_of_model(schema), name=name, formats=formats)
        return cls.from_dict({"input": schema}, name=name, formats=formats)

    @classmethod
    def from_known_dict(
        cls, document: Mapping[str, Any], *, name: str = ""
    ) -> Contract:
        """Return the contract of a *document* that `from_dict` accepted before, perhaps
        in an earlier process.

        The contract is compiled at its first use: a conversation calls only a few of a
        thousand tools.
        """
        contract = cls.__new__(cls)
        contract._read(document, name, Schema.known)
        return contract

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *, name: str = "", version: str | None = None
    ) -> Contract:
        """Return the contract of calling *function* with keyword arguments, read from
        its signature and docstring.

        >>> def greet(name: str, times: int = 1) -> str: ...
        >>> contract = Contract.from_function(greet)
        >>> contract.accept({"name": "Ada", "times": "2"}).arguments
        {'name': 'Ada', 'times': 2}

        Raises:
            InvalidSkillError: the annotations do not make a usable schema.
        """
        # Imported here, because its own imports are slow.
        from skillruntime.contract.document.function_contract import (
            document_of_function,
        )

        return cls.from_dict(document_of_function(function, name=name, version=version))

    @property
    def is_derived(self) -> bool:
        """Whether the contract was derived from a script, not written by the skill's
        author.
        """
        return "derived" in self._document

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the document as it was written."""
        return copy.deepcopy(dict(self._document))

    def __repr__(self) -> str:
        parameters = ", ".join(properties_of(self.input.document))
        return f"<Contract {self.name!r} {self.version or ''}: {parameters or '-'}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Contract:
        return self  # a contract never changes

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
        """Return a contract that also accepts the arguments covered by *migration*, for
        example by a function of the host.

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
        # Share the schemas and defaults, because compiling them is expensive.
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

        *raw* is a mapping, or the text that a model wrote. *version* is the contract's
        version that *raw* was written for, if it is known. *policy* is ``"strict"``,
        ``"safe"``, ``"lenient"`` or a ``Policy``; the default is the contract's own
        policy, which is safe unless it declares another. *finish_reason* is the
        provider's word for why the model stopped: a missing last brace is added only if
        this says that the model stopped by itself. A mapping that fits is returned
        untouched: the same object, unless a default was filled in. A value that is not
        JSON is refused: NaN, a set, a cycle, half of a surrogate pair, a number of
        thousands of digits.

        Raises:
            SkillInputError: *raw* does not fit; ``skill_errors`` has one error per
                offending parameter.
            TruncatedInputError: the text was cut off.
            UnsupportedVersionError: no migration covers *version*.
        """
        if not self._is_prepared:
            self._prepare()
        if policy is None:
            policy = self.policy
        else:
            # An unknown policy name is the caller's error, whatever the arguments are.
            policy = policy_named(policy)
        request = _Request(raw, version, policy, finish_reason, fill_defaults)
        try:
            parsed, accepted = self._accept_quickly(request)
            if accepted is not None:
                return accepted
            return self._accept_slowly(request, parsed)
        # Raised by a recursive step near the end of the host's own stack, or by the
        # engine, which compares items (`uniqueItems`) of at most 255 levels
        # (jsonschema-rs 0.60.3).
        except (RecursionError, ValueError) as error:
            if not _is_of_depth(error):
                raise
        # Raised outside the handler, where the caught error would become its context.
        raise too_deep()

    def check(self, output: Any) -> None:
        """Check that *output* fits the contract.

        Raises:
            SkillOutputError: *output* does not fit; ``details["violations"]`` says
                where.
        """
        if self.output is None:
            fault = find_fault(output)
            if fault:
                # Without a schema, a set or a date inside a result is converted to
                # JSON; NaN cannot be converted.
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
            reason = f"is not JSON: {error}"
            if _is_of_depth(error):
                reason = "is nested too deep to be checked"
            raise SkillOutputError(f"The output of the skill {reason}") from None
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
        """Compile *schema* with the definitions and the dialect of the document."""
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
        self._required = required_properties(
            self.input.references, [WHOLE_SCHEMA], choices=False
        )
        if not self._aliases:
            return
        faults = alias_faults(self._document, declared, reserved)
        if faults:
            raise InvalidSkillError(
                f"contract {self.name}: {faults[0]}", details={"faults": faults}
            )

    def _shape(self, migration: Migration) -> Schema | None:
        """Compile the schema of the arguments that *migration* starts from; ``None`` if
        it is not declared.
        """
        if migration.accepts is None:
            return None
        return self._schema(migration.accepts, f"migration to {migration.to}")

    def _accept_quickly(
        self, request: _Request
    ) -> tuple[Parsed | None, Accepted | None]:
        """Accept arguments that fit unchanged. Return the accepted arguments; otherwise
        return the parsed input, unless it must be parsed again.

        Every valid call takes this path: no copy, no coercion, one question to the
        engine.
        """
        raw, finish_reason = request.raw, request.finish_reason
        may_be_whole = finish_reason is None or str(finish_reason) in FINISHED
        if request.version is not None or not may_be_whole:
            return None, None
        levels = self.input.levels
        if type(raw) is dict:
            plain = plainness(raw, levels)
            accepted = self._accept_as_sent(raw, plain, request)
            if accepted is not None:
                return None, accepted
            return Parsed(raw, plain=plain), None
        if not isinstance(raw, str):
            return None, None
        parsed = self._parse(raw, finish_reason, literals=False)
        if parsed.rules:
            return parsed, None
        # Strict JSON that does not fit is parsed again, which keeps its numbers as they
        # were written.
        if type(parsed.value) is not dict:
            return None, None
        known = parsed.plain
        if known is None or levels < ANY_LEVELS:
            known = plainness(parsed.value, levels)
        return None, self._accept_as_sent(parsed.value, known, request)

    def _accept_as_sent(
        self, arguments: dict[str, Any], plain: Plainness, request: _Request
    ) -> Accepted | None:
        """Accept *arguments* if they fit unchanged; return ``None`` if they do not fit,
        or may contain a call or swallowed parameters.
        """
        if plain is Plainness.NOT_JSON or plain is Plainness.WITH_DECIMALS:
            return None
        if self._aliases and not self._aliases.keys().isdisjoint(arguments):
            return None
        if not self._engine_takes(arguments):
            return None
        if self._may_hold_more(arguments, is_text=isinstance(request.raw, str)):
            return None
        repairs: tuple[Repair, ...] = ()
        if plain is Plainness.WITH_WHOLE_FLOATS:
            arguments, repairs = with_whole_numbers(arguments, self.input)
        return self._accepted(arguments, repairs, None, request.fill_defaults)

    def _fits(self, arguments: dict[str, Any]) -> bool:
        """Return whether *arguments* are JSON and fit unchanged."""
        # An engine may raise on a value that is not JSON.
        if not is_plain_json(arguments, self.input.levels):
            return False
        return self._engine_takes(arguments)

    def _engine_takes(self, arguments: dict[str, Any]) -> bool:
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
        """Return the fitting *arguments* with defaults and warnings."""
        warnings = self._warnings(arguments, repairs, migrated_from)
        given = arguments
        without_default: list[tuple[str, str]] = []
        if fill_defaults and self._defaults is not None:
            arguments = self._defaults.filled(arguments, without_default)
        keys = self._keys
        has_others = keys is not None and not are_declared(given, keys)
        if has_others or without_default:
            warnings += _warnings_of_keys(given, self.input, without_default)
        if sent is None:
            sent = given
        return Accepted(arguments, repairs, migrated_from, tuple(warnings), sent, given)

    def _warnings(
        self,
        arguments: dict[str, Any],
        repairs: tuple[Repair, ...],
        migrated_from: str | None,
    ) -> list[str]:
        """Return the warnings on *arguments*, except those on their undeclared keys."""
        warnings: list[str] = []
        for repair in repairs:
            if repair.rule == SWALLOWED_PARAMETER:
                warnings.append(
                    f"the parameter {repair.path[1:]!r} held other parameters, which "
                    "are passed on as such"
                )
        deprecation = self.deprecation
        if deprecation and migrated_from and deprecation.covers(migrated_from):
            warnings.append(deprecation.warning(migrated_from))
        if not ENVELOPE_KEYS.isdisjoint(arguments):
            for call in calls_in(arguments)[:1]:
                if looks_like_call(call, self._tool, self._names):
                    warnings.append(f"the arguments look like a call of {call.name!r}")
        if self._deprecated and not self._deprecated.isdisjoint(arguments):
            for name in sorted(self._deprecated & arguments.keys()):
                warnings.append(f"the parameter {name!r} is deprecated")
        return warnings

    def _parse(self, text: str, finish_reason: str | None, *, literals: bool) -> Parsed:
        quoting = not self.input.may_hold_secrets
        return parse_arguments(
            text,
            finish_reason=finish_reason,
            literals=literals,
            quoting=quoting,
            names=self._names,
            required=self._required,
            tool=self._tool,
        )

    def _may_hold_more(self, arguments: dict[str, Any], *, is_text: bool) -> bool:
        """Return whether the fitting *arguments* may contain more: a whole call, or
        swallowed parameters.
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
        if parsed.plain is None:
            parsed = parsed._replace(
                plain=plainness((parsed.value,), self.input.levels)
            )
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
        arguments = reading.coerced.value
        whole: tuple[Repair, ...] = ()
        plain = parsed.plain
        if arguments is not parsed.value:
            plain = plainness(arguments)
        if plain is not Plainness.JSON:
            arguments, whole = with_whole_numbers(
                without_decimals(arguments), self.input
            )
        accepted = self._accepted(
            arguments,
            _syntax_repairs(request.raw, parsed, has_secret)
            + repairs
            + reading.coerced.repairs
            + whole,
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
            SkillInputError: *parsed* is not such a call.
        """
        fault = None
        if parsed.plain is Plainness.NOT_JSON:
            fault = find_fault(parsed.value, self.input.levels)
            if fault is None:
                fault = _fault_of_engine(self.input, parsed.value)
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
            raise several_calls(2)  # the empty object may be a call too
        check_tool(parsed.tool, self._tool)

    def _arguments(
        self, parsed: Parsed, policy: Policy, *, is_text: bool
    ) -> tuple[Any, tuple[Repair, ...]]:
        """Return the arguments in *parsed*, or those of the call in *parsed*, and the
        repairs.

        Raises:
            SkillInputError: there are several calls, the call is for another tool, or
                parameters do not fit.
        """
        value = parsed.value
        if parsed.strings is not None:
            return typed_parameters(value, parsed.strings, self.input), ()
        if not policy.repair:
            return value, ()
        is_secret = self.input.may_hold_secrets
        repairs: list[Repair] = []
        call = None
        if parsed.holds != "arguments":
            call = opened(
                value,
                self._tool,
                self._names,
                self._fits_call,
                is_text=is_text,
                is_envelope=parsed.holds == "envelope",
            )
        if call is not None:
            value = call.arguments
            repairs.append(Repair("", WRAPPER_OBJECT, call.sent, None, is_secret))
        elif STRAY_BRACKET in parsed.rules and isinstance(value, dict):
            self._check_beginning(value)
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

    def _check_beginning(self, value: dict[str, Any]) -> None:
        """Check that *value*, which an extra bracket follows, is not the end of
        arguments whose beginning was lost: ``{"id": 5}}`` of ``{"filter": {"id": 5}}``.

        Raises:
            SkillInputError: a key of *value* is not declared.
        """
        declared = set(map(fold_loosely, self._names))
        if all(fold_loosely(key) in declared for key in value):
            return
        raise SkillInputError(
            "The arguments end in a bracket too many: their beginning may be missing",
            suggested_action="Send the whole call again as one JSON object",
        )

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
        """Read *value* as a version of the contract. A format that is only an
        annotation guides the repairs if the value can be repaired to fit it.
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
        # Refuse a truncated call even if it is a mapping: the host may have closed its
        # brace.
        if finish_reason is not None:
            parse_arguments("", finish_reason=finish_reason)
        if isinstance(raw, Mapping) and type(raw) is not dict:
            return Parsed(dict(raw))
        return Parsed(raw)


def _warnings_of_keys(
    arguments: dict[str, Any], schema: Schema, without_default: list[tuple[str, str]]
) -> Iterator[str]:
    """Yield a warning for each key that may mean a parameter; *without_default* are the
    pairs of a key and the parameter whose default was left out because of it.
    """
    for key, name in without_default:
        yield (
            f"{key!r} is not declared; if {name!r} was meant, send it under that name "
            "(its default is not used)"
        )
    for misspelt in misspelt_keys(arguments, schema):
        if (misspelt.key, misspelt.name) not in without_default:
            yield (
                f"{misspelt.key!r} is not declared; if {misspelt.name!r} was meant, "
                "send it under that name"
            )


def _is_deprecated(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("deprecated") is True


def _fault_of_engine(schema: Schema, value: Any) -> str | None:
    """Return why the engine cannot validate *value*, or ``None``. The host may have
    built it from its own types: a subclass of ``str`` is text for Python but unknown to
    the engine.
    """
    try:
        schema.is_valid(value)
    except (ValueError, TypeError) as error:
        if not _is_of_depth(error):
            return str(error)
    return None


def _is_of_depth(error: Exception) -> bool:
    return isinstance(error, RecursionError) or "Recursion limit" in str(error)


def _syntax_repairs(raw: Any, parsed: Parsed, is_secret: bool) -> tuple[Repair, ...]:
    excerpt = raw if isinstance(raw, str) else ""
    if len(excerpt) > 200:
        excerpt = excerpt[:199] + "…"
    repairs: list[Repair] = []
    for rule in parsed.rules:
        # A repair does not repeat the value that the repaired text became, except for
        # an empty text, where only the repair shows it.
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
    """Read the declared migrations; their ``accepts`` schemas may refer to the
    contract's own definitions.
    """
    # Imported here, because most contracts have no migrations.
    from skillruntime.contract.migration.migration import Migration

    return [
        Migration.from_dict(declared, where=f"migrations/{index}")
        for index, declared in enumerate(document.get("migrations", []))
    ]
