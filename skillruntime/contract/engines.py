"""The two engines that validate values by a JSON Schema, behind one protocol: jsonschema-rs, and jsonschema.

Neither ever fetches: a reference is looked up among the resources handed in, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote

from skillruntime.contract.pointer import Path, format_pointer, value_at
from skillruntime.contract.references import Document, References

__all__ = ["BASE", "DIALECTS", "Engine", "ReferenceEngine", "RustEngine", "UnusableSchemaError", "Violation"]

DIALECTS = {
    "https://json-schema.org/draft/2020-12": "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2020-12/schema": "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09": "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2019-09/schema": "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema": "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema": "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema": "http://json-schema.org/draft-04/schema#",
}
"""How ``$schema`` is written (the contract document leaves out ``/schema``) -> the dialect's own URI."""

BASE = "http://skillruntime.invalid/"
"""The URI of a document that does not name itself: one that relative references can be resolved against (RFC 6761)."""

_DRAFTS = {
    "draft/2020-12": "Draft202012",
    "draft/2019-09": "Draft201909",
    "draft-07": "Draft7",
    "draft-06": "Draft6",
    "draft-04": "Draft4",
}
_PATTERN_BYTES = 1 << 20


class UnusableSchemaError(ValueError):
    """This engine cannot use the document as a schema."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One keyword that a value breaks.

    ``path`` leads to the offending part of the value, ``location`` to the subschema that holds the keyword (``None``
    where it lies in another document), ``names`` are the properties that are missing or unexpected, ``branches`` are
    the violations of each branch of an ``anyOf`` or ``oneOf``: made by ``list_branches`` when they are asked for, since
    a union of fifty branches has hundreds of them and most are never looked at.
    """

    keyword: str
    path: Path
    location: Path | None
    schema: Any
    value: Any
    names: tuple[str, ...] = ()
    list_branches: Callable[[], tuple[tuple[Violation, ...], ...]] | None = None

    @property
    def branches(self) -> tuple[tuple[Violation, ...], ...]:
        """The violations of each branch; empty where several branches of a ``oneOf`` fit."""
        return self.list_branches() if self.list_branches is not None else ()

    @property
    def pointer(self) -> str:
        """The place in the value, as a JSON Pointer."""
        return format_pointer(self.path)

    @property
    def expected(self) -> Any:
        """What the keyword asks for, as the schema writes it."""
        return self.schema.get(self.keyword) if isinstance(self.schema, dict) else self.schema


class Engine(Protocol):
    """One compiled schema document; a *location* picks one of its subschemas."""

    def checker(self, location: Path) -> Callable[[Any], bool]:
        """Return the function that says whether a value fits the subschema."""
        ...

    def violations(self, value: Any, location: Path) -> Iterator[Violation]:
        """Yield what is wrong with *value* by the subschema."""
        ...

    def first_violation(self, value: Any) -> Violation:
        """Return one thing that is wrong with *value*, which does not fit, without looking for more."""
        ...

    def alone(self, schema: Mapping[str, Any]) -> Engine:
        """Return the engine of *schema*, which refers to nothing, in the same dialect."""
        ...


def _reference(location: Path) -> str:
    uri = BASE
    if location and isinstance(location[0], Document):
        uri, location = str(location[0]).partition("#")[0], location[1:]
    return uri + "#" + quote(format_pointer(location), safe="/~!$&'()*+,;=:@?-._")


class RustEngine:
    """jsonschema-rs: fast, and its patterns are matched in linear time."""

    def __init__(
        self,
        document: Any,
        *,
        dialect: str,
        resources: Mapping[str, Any],
        assert_formats: bool,
    ) -> None:
        import jsonschema_rs  # the wheel may be missing: the caller falls back to the reference engine

        self._document = document
        self._dialect = dialect
        self._validators: dict[Path, Any] = {}
        self._options: dict[str, Any] = {
            "validate_formats": assert_formats,
            "pattern_options": jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES),
            "offline": True,
            "base_uri": BASE,
        }
        self._compile = jsonschema_rs.validator_for
        self._error = jsonschema_rs.ValidationError
        self._new_registry = jsonschema_rs.Registry
        draft = next((name for part, name in _DRAFTS.items() if part in dialect), "Draft202012")
        self._draft = getattr(jsonschema_rs, draft)
        self._resources = dict(resources)
        self._registry: Any = None
        # ValueError and TypeError: numbers and texts that the library cannot read, such as half of a surrogate pair.
        self._refusals = (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError)
        try:
            if resources:
                self._options["registry"] = self._open_registry()
            self._validators[()] = self._compile(document, **self._options)
        except self._refusals as error:
            raise UnusableSchemaError(_reason(error)) from None

    def _open_registry(self) -> Any:
        if self._registry is None:
            document = self._document
            if isinstance(document, dict):
                document = {**document, "$schema": self._dialect}
            self._registry = self._new_registry([(BASE, document), *self._resources.items()], self._draft)
        return self._registry

    def _validator(self, location: Path) -> Any:
        validator = self._validators.get(location)
        if validator is None:
            schema = {"$schema": self._dialect, "$ref": _reference(location)}
            try:
                options = self._options | {"registry": self._open_registry(), "base_uri": BASE + "part"}
                validator = self._compile(schema, **options)
            except self._refusals as error:
                raise UnusableSchemaError(_reason(error)) from None
            self._validators[location] = validator
        return validator

    def alone(self, schema: Mapping[str, Any]) -> Engine:
        formats = bool(self._options["validate_formats"])
        document = {"$schema": self._dialect, **schema}
        return RustEngine(document, dialect=self._dialect, resources={}, assert_formats=formats)

    def checker(self, location: Path) -> Callable[[Any], bool]:
        check: Callable[[Any], bool] = self._validator(location).is_valid
        return check

    def first_violation(self, value: Any) -> Violation:
        try:
            self._validators[()].validate(value)
        except self._error as error:
            return self._violation(error, value)
        raise AssertionError("the value fits")

    def violations(self, value: Any, location: Path) -> Iterator[Violation]:
        for error in self._validator(location).iter_errors(value):
            violation = self._violation(error, value)
            if violation.keyword == "required" and violation.names[0] in violation.value:
                continue  # the library also calls a required property missing that additionalProperties forbids
            yield violation

    def _violation(self, error: Any, value: Any) -> Violation:
        kind, path = error.kind, tuple(error.instance_path)
        keyword, location = kind.name, tuple(error.schema_path)
        names: tuple[str, ...] = ()
        list_branches: Callable[[], tuple[tuple[Violation, ...], ...]] | None = None
        match keyword:
            case "required":
                names = (kind.property,)
                keyword, location = str(location[-1]), location[:-1]
                if keyword not in ("required", "dependentRequired", "dependencies"):
                    keyword, location = "required", (*location, keyword)
            case "additionalProperties" | "unevaluatedProperties":
                names, location = tuple(kind.unexpected), location[:-1]
            case "anyOf" | "oneOf":
                location = location[:-1]
                context = getattr(kind, "context", ())
                if keyword == "anyOf" or all(context):
                    list_branches = partial(self._branches, context, value)
            case "falseSchema":
                keyword = str(location[-1]) if location else "false"
            case "contains":
                keyword, location = str(location[-1]), location[:-1]
            case "propertyNames" if keyword not in location:  # a reference leads back to the schema that holds it
                return Violation(keyword, path, None, {}, _part(value, path))
            case "propertyNames":
                location = location[: len(location) - 1 - location[::-1].index("propertyNames")]
            case _:
                location = location[:-1]
        found, schema = _lookup(self._document, location)
        return Violation(keyword, path, found, schema, _part(value, path), names, list_branches)

    def _branches(self, context: Any, value: Any) -> tuple[tuple[Violation, ...], ...]:
        return tuple(tuple(self._violation(each, value) for each in branch) for branch in context)


class ReferenceEngine:
    """jsonschema: the reference implementation, used where the fast wheel is missing and as the oracle in tests."""

    def __init__(
        self,
        document: Any,
        *,
        dialect: str,
        resources: Mapping[str, Any],
        assert_formats: bool,
    ) -> None:
        import jsonschema  # slow to import, and needed only where the fast engine is missing or a test asks for it
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
        from referencing import Registry, Resource
        from referencing.jsonschema import UnknownDialect, specification_with

        self._document = document
        try:
            specification: Any = specification_with(dialect)
        except UnknownDialect:
            raise UnusableSchemaError(f"the dialect {dialect!r} needs jsonschema-rs") from None
        registry: Any = Registry().combine(REGISTRY).with_resource(BASE, specification.create_resource(document))
        for uri, resource in resources.items():
            registry = registry.with_resource(uri, Resource.from_contents(resource, specification))
        cls: Any = jsonschema.validators.validator_for({"$schema": dialect}, default=jsonschema.Draft202012Validator)
        try:
            cls.check_schema(document)
        except jsonschema.SchemaError as error:
            raise UnusableSchemaError(error.message) from None
        checker: Any = jsonschema.FormatChecker() if assert_formats else None
        self._dialect, self._assert_formats = dialect, assert_formats
        self._make: Callable[[Any], Any] = lambda schema: cls(schema, registry=registry, format_checker=checker)
        self._references = References(document, resources=resources, dialect=dialect, base=BASE)
        self._starts_by_reference = isinstance(document, dict) and "$id" not in document

    def _validator(self, location: Path) -> Any:
        by_reference = location or self._starts_by_reference
        return self._make({"$ref": _reference(location)} if by_reference else self._document)

    def alone(self, schema: Mapping[str, Any]) -> Engine:
        return ReferenceEngine(schema, dialect=self._dialect, resources={}, assert_formats=self._assert_formats)

    def checker(self, location: Path) -> Callable[[Any], bool]:
        validator = self._validator(location)
        return lambda value: bool(validator.is_valid(_with_floats(value)))

    def first_violation(self, value: Any) -> Violation:
        return next(self.violations(value, ()))

    def violations(self, value: Any, location: Path) -> Iterator[Violation]:
        value = _with_floats(value)
        seen: set[tuple[str, Path, Any]] = set()
        for error in self._validator(location).iter_errors(value):
            for violation in self._violations(error, value, location):
                key = (violation.keyword, violation.path, (violation.location, violation.names))
                if key not in seen:
                    seen.add(key)
                    yield violation

    def _violations(self, error: Any, value: Any, start: Path) -> Iterator[Violation]:
        path, part = tuple(error.absolute_path), error.instance
        keyword, steps = error.validator, list(error.absolute_schema_path)
        if "propertyNames" in steps[:-1]:
            keyword, steps, part = "propertyNames", steps[: steps.index("propertyNames") + 1], _part(value, path)
        elif keyword is None:  # a schema that is plain false
            keyword = str(steps[-1]) if steps else "false"
            location = _follow(self._references, start, steps, False)
            if keyword in ("properties", "patternProperties") and location is not None:
                yield from self._forbidden(location, path, part)
            else:
                yield Violation(keyword, path, location, False, part)
            return
        elif keyword == "items" and error.schema.get("items") is False:
            beyond = range(len(error.schema.get("prefixItems", ())), len(part))
            location = _follow(self._references, start, steps, False)
            yield from (Violation("items", (*path, index), location, False, part[index]) for index in beyond)
            return
        if keyword == "propertyNames":
            location = (_follow(self._references, start, steps, None) or ())[:-1]
            schema = _lookup(self._document, location)[1]
        else:
            location, schema = _follow(self._references, start, steps[:-1], error.schema), error.schema
        if keyword == "minContains" and "minContains" not in schema:
            keyword = "contains"
        branches: tuple[tuple[Violation, ...], ...] = ()
        if keyword in ("anyOf", "oneOf") and error.context:
            groups: dict[int, list[Violation]] = {}
            for child in error.context:
                groups.setdefault(child.schema_path[0] if child.schema_path else 0, []).extend(
                    self._violations(child, value, start)
                )
            branches = tuple(tuple(groups[index]) for index in sorted(groups))
        for names in _names(keyword, schema, part):
            yield Violation(keyword, path, location, schema, part, names, (lambda: branches) if branches else None)

    def _forbidden(self, location: Path, path: Path, part: Any) -> Iterator[Violation]:
        """Yield a violation for each member of *part* that a ``false`` schema forbids; the library names only one."""
        members = value_at(self._document, location)
        for name in part if isinstance(part, dict) else ():
            if members.get(name) is False:
                yield Violation(name, (*path, name), (*location, name), False, part[name])


def _with_floats(value: Any) -> Any:
    """Return *value* with its decimals as floats, which is all that the library can divide by one another."""
    match value:
        case dict():
            return {key: _with_floats(member) for key, member in value.items()}
        case list():
            return [_with_floats(item) for item in value]
        case Decimal():
            return float(value)
        case _:
            return value


def _reason(error: Exception) -> str:
    message = str(getattr(error, "message", error))
    where = format_pointer(getattr(error, "instance_path", ()))
    return f"{message} - at {where}" if where else message


def _lookup(document: Any, location: Path) -> tuple[Path | None, Any]:
    try:
        return location, value_at(document, location)
    except LookupError:
        return None, {}


def _part(value: Any, path: Path) -> Any:
    try:
        return value_at(value, path)
    except LookupError:  # the path of a property's name, or of a value that is not JSON
        return value


def _follow(references: References, location: Path, steps: list[Any], holder: Any) -> Path | None:
    """Return where the path *steps* from *location* ends, at the schema *holder* (any, if that is ``None``).

    The library leaves ``$ref`` out of its paths: where a step does not resolve, or ends at another schema, follow it.
    """
    found, schema = _lookup(references.document, location)
    if found is None:
        return None
    if not steps and (holder is None or schema == holder):
        return location
    if steps:
        ending = _follow(references, (*location, steps[0]), steps[1:], holder)
        if ending is not None:
            return ending
    for target in references.targets(location):
        ending = _follow(references, target, steps, holder)
        if ending is not None:
            return ending
    return None


def _names(keyword: str, schema: Any, part: Any) -> Iterable[tuple[str, ...]]:
    """Return the property names a violation is about, one tuple for each violation to report."""
    if not isinstance(part, dict) or not isinstance(schema, dict):
        return [()]
    match keyword:
        case "required":
            return [(name,) for name in schema["required"] if name not in part] or [()]
        case "dependentRequired" | "dependencies":
            rules = schema[keyword].items()
            needed = (names for trigger, names in rules if trigger in part and isinstance(names, list))
            return [(name,) for names in needed for name in names if name not in part] or [()]
        case "additionalProperties":
            import re

            known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
            extra = (name for name in part if name not in known)
            return [tuple(name for name in extra if not any(re.search(pattern, name) for pattern in patterns))]
        case _:
            return [()]
