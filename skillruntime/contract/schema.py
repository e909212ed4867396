"""One compiled JSON Schema: whether a value fits, and if not, what is wrong and where.

Draft 2020-12 and older ones; ``$schema`` may be written as the contract document writes it. ``format`` is asserted, as
in 31.3 of that document. A ``$ref`` resolves inside the document only. A schema that could cost too much is refused
before it is compiled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from skillruntime.contract.engines import (
    BASE,
    DIALECTS,
    Engine,
    ReferenceEngine,
    RustEngine,
    UnusableSchemaError,
    Violation,
)
from skillruntime.contract.limits import SchemaTooCostlyError, measure
from skillruntime.contract.pointer import Path, value_at
from skillruntime.contract.references import Document
from skillruntime.contract.secret_names import names_a_secret
from skillruntime.contract.violation_cost import is_listable, narrowest_fault
from skillruntime.errors import InvalidSkillError

__all__ = ["Schema", "Violation"]

DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Schema:
    """A JSON Schema, checked, bounded and compiled once for the same content.

    *where* names the document in errors. *resources* maps URIs to schemas that a ``$ref`` may reach besides the
    document itself. *engine* is ``"rust"``, ``"reference"``, or ``"auto"`` for the fast one where its wheel is there.

    >>> Schema({"type": "integer", "minimum": 1}).is_valid(5)
    True
    >>> [violation.keyword for violation in Schema({"type": "integer"}).violations("5")]
    ['type']

    Raises:
        InvalidSkillError: the document is not a schema, or too costly, or has a reference that does not resolve.
    """

    __slots__ = (
        *("_checkers", "_engine", "_is_costly", "document", "guarded", "is_valid", "may_hold_secrets"),
        *("references", "where"),
    )

    document: Mapping[str, Any] | bool
    is_valid: Callable[[Any], bool]

    def __init__(
        self,
        document: Mapping[str, Any] | bool,
        *,
        where: str = "schema",
        resources: Mapping[str, Any] | None = None,
        assert_formats: bool = True,
        engine: str = "auto",
    ) -> None:
        self.document, self.where = document, where
        if not isinstance(document, dict | bool):
            kind = type(document).__name__
            raise InvalidSkillError(f"{where} is {kind}; a JSON Schema is an object, true or false")
        try:
            dialect = _dialect_of(document, resources or {})
            bounds = measure(document, resources=resources, dialect=dialect, base=BASE)
            self.references = bounds.references
            self.guarded, self._is_costly = bounds.guarded, bounds.is_costly
            text = json.dumps(document, ensure_ascii=False)
            self.may_hold_secrets = '"writeOnly"' in text or '"password"' in text or names_a_secret(text)
            if resources:
                self._engine = _compile(document, dict(resources), assert_formats, engine)
            else:
                self._engine = _compile_once(text, assert_formats, engine)
            if bounds.is_exponential and isinstance(self._engine, ReferenceEngine):
                raise SchemaTooCostlyError("it refers to itself by two ways for one value, which needs jsonschema-rs")
            self._checkers: dict[Path, Callable[[Any], bool]] = {}
            self.is_valid = self._engine.checker(())
        except (SchemaTooCostlyError, UnusableSchemaError, RecursionError) as error:
            raise InvalidSkillError(f"{where} is not a usable JSON Schema: {error}") from None

    def __repr__(self) -> str:
        return f"Schema({json.dumps(self.document)[:60]})"

    def violations(self, value: Any, location: Path = ()) -> list[Violation]:
        """Return what is wrong with *value* by the subschema at *location*; nothing if it fits.

        Where the whole list could cost too much, it is one violation, of the smallest part that is found to be wrong.
        """
        if self._is_costly and not is_listable(self.references, value, location):
            return [] if self.fits(value, location) else [self._narrowed(value, location)]
        return list(self._engine.violations(value, location))

    def first_violation(self, value: Any) -> Violation:
        """Return one thing that is wrong with *value*, which does not fit, without looking for more."""
        if self._is_costly and not is_listable(self.references, value):
            return self._narrowed(value, ())
        return self._engine.first_violation(value)

    def fits(self, value: Any, location: Path) -> bool:
        """Whether *value* fits the subschema at *location* of the document."""
        check = self._checkers.get(location)
        if check is None:
            try:
                check = self._checkers[location] = self._engine.checker(location)
            except UnusableSchemaError as error:
                raise InvalidSkillError(f"{self.where} is not a usable JSON Schema: {error}") from None
        return check(value)

    def _narrowed(self, value: Any, location: Path) -> Violation:
        """Return one violation, found by asking yes or no."""
        path, place = narrowest_fault(self.references, value, location, self.fits)
        schema, part = self.references.schema_at(place), value_at(value, path)
        found = None if place and isinstance(place[0], Document) else place
        if not isinstance(schema, dict):
            return Violation(str(place[-1]) if place else "false", path, found, schema, part)
        own = {keyword: schema[keyword] for keyword in schema if keyword in _ASSERTIONS}
        if not self._engine.alone(own).checker(())(part):
            violation = self._engine.alone(own).first_violation(part)
            return replace(violation, path=path, location=found, schema=schema)
        keyword = next((keyword for keyword in schema if keyword in _APPLICATORS), "schema")
        return Violation(keyword, path, found, schema, part)


_ASSERTIONS = frozenset(
    {
        *("type", "enum", "const", "required", "dependentRequired", "minProperties", "maxProperties", "format"),
        *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)
_APPLICATORS = (
    *("anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies", "propertyNames", "contains"),
    *("additionalProperties", "patternProperties", "unevaluatedProperties", "unevaluatedItems"),
)


@lru_cache(maxsize=1024)
def _compile_once(text: str, assert_formats: bool, engine: str) -> Engine:
    return _compile(json.loads(text), {}, assert_formats, engine)


def _dialect_of(document: Any, resources: Mapping[str, Any]) -> str:
    if not isinstance(document, dict) or "$schema" not in document:
        return DEFAULT_DIALECT
    declared = str(document["$schema"]).rstrip("#")
    if declared in DIALECTS:
        return DIALECTS[declared]
    if declared in resources:
        return declared
    known = ", ".join(sorted(set(DIALECTS.values())))
    raise UnusableSchemaError(f"$schema is {declared!r}; known are {known}")


def _compile(document: Any, resources: dict[str, Any], assert_formats: bool, engine: str) -> Engine:
    dialect = _dialect_of(document, resources)
    if isinstance(document, dict) and "$schema" in document:
        document = {**document, "$schema": dialect}
    options: dict[str, Any] = {"dialect": dialect, "resources": resources, "assert_formats": assert_formats}
    if engine == "reference":
        return ReferenceEngine(document, **options)
    try:
        return RustEngine(document, **options)
    except ImportError:
        if engine == "rust":
            raise
        return ReferenceEngine(document, **options)
