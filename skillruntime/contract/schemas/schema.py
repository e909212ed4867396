"""Compile a JSON Schema, and check whether a value fits or list its violations.

Draft 2020-12 and older drafts are supported; ``$schema`` may have the contract
document's form. ``format`` is asserted, as in 31.3 of that document. A ``$ref``
resolves inside the document only. A schema that could cost too much is refused before
it is compiled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skillruntime.contract.schemas.engines import (
    BASE,
    DIALECTS,
    Engine,
    UnusableSchemaError,
)
from skillruntime.contract.schemas.limits import SchemaTooCostlyError, measure
from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA, Location
from skillruntime.contract.schemas.references import References
from skillruntime.contract.schemas.secret_names import names_a_secret
from skillruntime.contract.schemas.violations import Fits, Lister, Violation
from skillruntime.errors import InvalidSkillError

__all__ = ["Schema", "Violation"]

DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Schema:
    """A JSON Schema, checked and bounded.

    The same content is compiled only once. *where* names the document in errors; a
    ``$ref`` resolves only inside the document.

    >>> Schema({"type": "integer", "minimum": 1}).is_valid(5)
    True
    >>> [violation.keyword for violation in Schema({"type": "integer"}).violations("5")]
    ['type']

    Raises:
        InvalidSkillError: the document is not a schema, or too costly, or has a
            reference that does not resolve.
    """

    __slots__ = (
        "_checkers",
        "_engine",
        "_lister",
        "document",
        "is_valid",
        "levels",
        "may_hold_formats",
        "may_hold_integers",
        "may_hold_secrets",
        "references",
        "where",
    )

    document: Mapping[str, Any] | bool
    is_valid: Callable[[Any], bool]

    def __init__(
        self,
        document: Mapping[str, Any] | bool,
        *,
        where: str = "schema",
        assert_formats: bool = True,
    ) -> None:
        self.document = document
        self.where: str = where
        self._compile(assert_formats)

    @classmethod
    def known(
        cls, document: Mapping[str, Any] | bool, *, where: str = "schema"
    ) -> Schema:
        """Return the schema of a *document* that was usable before; it is compiled at
        its first use.
        """
        schema = _UncompiledSchema.__new__(_UncompiledSchema)
        schema.document = document
        schema.where = where
        return schema

    def _compile(self, assert_formats: bool) -> None:
        document = self.document
        if not isinstance(document, dict | bool):
            kind = type(document).__name__
            raise InvalidSkillError(
                f"{self.where} is {kind}; a JSON Schema is an object, true or false"
            )
        try:
            bounds = measure(document, dialect=dialect_of(document), base=BASE)
            self.references: References = bounds.references
            self.levels: int = bounds.levels
            # The text is also the cache key of the engine, so that the same schema is
            # compiled once.
            text = bounds.text
            self.may_hold_secrets: bool = (
                '"writeOnly"' in text or '"password"' in text or names_a_secret(text)
            )
            self.may_hold_formats: bool = '"format"' in text
            self.may_hold_integers: bool = '"integer"' in text
            self._engine = _compile_once(text, assert_formats)
            self._lister = Lister(
                self.references, lambda schema: self._engine.alone(schema).checker(())
            )
            self._checkers: dict[Location, Callable[[Any], bool]] = {}
            self.is_valid = self._engine.checker(())
        except (SchemaTooCostlyError, UnusableSchemaError, RecursionError) as error:
            raise self._unusable(error) from None

    def __deepcopy__(self, memo: dict[int, Any]) -> Schema:
        return self  # a schema never changes, and the engine's objects cannot be copied

    def __repr__(self) -> str:
        return f"Schema({json.dumps(self.document)[:60]})"

    def _unusable(self, error: Exception) -> InvalidSkillError:
        return InvalidSkillError(f"{self.where} is not a usable JSON Schema: {error}")

    def violations(
        self,
        value: Any,
        location: Location = WHOLE_SCHEMA,
        *,
        most: int | None = None,
        fits: Fits | None = None,
    ) -> list[Violation]:
        """Return how *value* violates the subschema at *location*: at most *most*
        violations, none if it fits.

        *fits* replaces this schema's own method, for a caller that counts the questions
        and knows that *value* does not fit.
        """
        if fits is None:
            if self.fits(value, location):
                return []
            fits = self.fits
        return self._lister.listed(value, location, fits, most)

    def fits(self, value: Any, location: Location) -> bool:
        """Return whether *value* fits the subschema at *location* of the document."""
        check = self._checkers.get(location)
        if check is None:
            try:
                check = self._checkers[location] = self._engine.checker(location)
            except UnusableSchemaError as error:
                raise self._unusable(error) from None
        return check(value)

    def name_matches(self, pattern: str, name: str) -> bool:
        """Return whether the key *name* matches *pattern*, which is from this
        schema.
        """
        return self._lister.matches(pattern, name)


class _UncompiledSchema(Schema):
    """A schema that compiles itself when one of its other attributes is first read, and
    then becomes a `Schema`.

    This is a separate class, because `__getattr__` makes every attribute of a class
    slower to read (CPython 3.11).
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in Schema.__slots__ or name in ("document", "where"):
                raise AttributeError(name)
            self._compile(True)
            self.__class__ = Schema
            return getattr(self, name)


# The size is more than the number of tools in a usual catalog, so that none is compiled
# twice.
@lru_cache(maxsize=1024)
def _compile_once(text: str, assert_formats: bool) -> Engine:
    document = json.loads(text)
    dialect = dialect_of(document)
    if isinstance(document, dict) and "$schema" in document:
        document["$schema"] = dialect
    return Engine(document, dialect=dialect, assert_formats=assert_formats)


def dialect_of(document: Any) -> str:
    """Return the URI of the dialect that the ``$schema`` of *document* names; without
    ``$schema``, that of draft 2020-12.

    Raises:
        UnusableSchemaError: ``$schema`` is not a dialect of JSON Schema.
    """
    if not isinstance(document, dict) or "$schema" not in document:
        return DEFAULT_DIALECT
    declared = str(document["$schema"]).rstrip("#")
    if declared in DIALECTS:
        return DIALECTS[declared]
    known = ", ".join(sorted(set(DIALECTS.values())))
    raise UnusableSchemaError(f"$schema is {declared!r}; known are {known}")
