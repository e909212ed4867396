"""One compiled JSON Schema: says whether a value fits, and if not, what is wrong and where.

Draft 2020-12 and its elders; ``$schema`` may be written as the contract chapter writes it. ``format`` is asserted, as
in chapter 31.3. A ``$ref`` leads inside the document only. A schema that could cost more than it is worth is refused
before it is compiled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from skillruntime.contract.engines import DIALECTS, Engine, ReferenceEngine, RustEngine, UnusableSchemaError, Violation
from skillruntime.contract.limits import SchemaTooCostlyError, measure
from skillruntime.contract.pointer import Path
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
        InvalidSkillError: the document is no schema, or too costly, or refers to what is not there.
    """

    __slots__ = ("_checkers", "_engine", "document", "guarded", "is_valid", "may_hold_secrets", "value_depth", "where")

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
            bounds = measure(document)
            self.value_depth, self.guarded = bounds.value_depth, bounds.guarded or bounds.value_depth is not None
            text = json.dumps(document, ensure_ascii=False)
            self.may_hold_secrets = '"writeOnly"' in text or '"password"' in text
            if resources:
                self._engine = _compile(document, dict(resources), assert_formats, engine)
            else:
                self._engine = _compile_once(text, assert_formats, engine)
        except (SchemaTooCostlyError, UnusableSchemaError, RecursionError) as error:
            raise InvalidSkillError(f"{where} is no usable JSON Schema: {error}") from None
        self._checkers: dict[Path, Callable[[Any], bool]] = {}
        self.is_valid = self._engine.checker(())

    def __repr__(self) -> str:
        return f"Schema({json.dumps(self.document)[:60]})"

    def violations(self, value: Any, location: Path = ()) -> list[Violation]:
        """Return what is wrong with *value* by the subschema at *location*; nothing if it fits."""
        return list(self._engine.violations(value, location))

    def first_violation(self, value: Any) -> Violation:
        """Return one thing that is wrong with *value*, which does not fit, without looking for more."""
        return self._engine.first_violation(value)

    def fits(self, value: Any, location: Path) -> bool:
        """Whether *value* fits the subschema at *location* of the document."""
        check = self._checkers.get(location)
        if check is None:
            check = self._checkers[location] = self._engine.checker(location)
        return check(value)


@lru_cache(maxsize=1024)
def _compile_once(text: str, assert_formats: bool, engine: str) -> Engine:
    return _compile(json.loads(text), {}, assert_formats, engine)


def _compile(document: Any, resources: dict[str, Any], assert_formats: bool, engine: str) -> Engine:
    dialect = DEFAULT_DIALECT
    if isinstance(document, dict) and "$schema" in document:
        declared = str(document["$schema"]).rstrip("#")
        if declared in DIALECTS:
            dialect = DIALECTS[declared]
        elif declared in resources:
            dialect = declared
        else:
            known = ", ".join(sorted({uri for uri in DIALECTS.values() if "draft-04" not in uri}))
            raise UnusableSchemaError(f"$schema is {declared!r}; known are {known}")
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
