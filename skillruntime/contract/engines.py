"""The two engines that validate values by a JSON Schema, behind one protocol: jsonschema-rs, and jsonschema.

Neither ever fetches: a reference is looked up among the resources handed in, and nowhere else.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Protocol
from urllib.parse import quote, urljoin

from skillruntime.contract.harmless_pattern import longest_text, names_of, objects_in
from skillruntime.contract.pointer import Path, format_pointer
from skillruntime.contract.references import Document
from skillruntime.errors import InvalidSkillError

__all__ = ["BASE", "DIALECTS", "Engine", "ReferenceEngine", "RustEngine", "UnusableSchemaError"]

# How ``$schema`` is written (the contract document leaves out ``/schema``) -> the dialect's own URI.
DIALECTS = {
    "https://json-schema.org/draft/2020-12": "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2020-12/schema": "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09": "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2019-09/schema": "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema": "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema": "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema": "http://json-schema.org/draft-04/schema#",
}

# The URI of a document that does not name itself: one that relative references can be resolved against (RFC 6761).
BASE = "http://skillruntime.invalid/"

_DRAFTS = {
    "draft/2020-12": "Draft202012",
    "draft/2019-09": "Draft201909",
    "draft-07": "Draft7",
    "draft-06": "Draft6",
    "draft-04": "Draft4",
}
# One megabyte of compiled pattern: enough for any that a person writes, and a bound for `(a{1000}){1000}`.
_PATTERN_BYTES = 1 << 20


class UnusableSchemaError(ValueError):
    """This engine cannot use the document as a schema."""


class Engine(Protocol):
    """One compiled schema document; a *location* picks one of its subschemas.

    ``remembers`` says that a part of a value is judged once by what a reference leads to, and not once for each way to
    it: where a recursive schema has two ways to go on, the time would double with every level of the value.
    """

    @property
    def remembers(self) -> bool: ...

    def checker(self, location: Path) -> Callable[[Any], bool]:
        """Return the function that says whether a value fits the subschema."""
        ...

    def alone(self, schema: Mapping[str, Any]) -> Engine:
        """Return the engine of *schema*, which refers to nothing, in the same dialect."""
        ...


def _reference(location: Path, uri: str = BASE) -> str:
    if location and isinstance(location[0], Document):
        uri, location = str(location[0]).partition("#")[0], location[1:]
    return uri + "#" + quote(format_pointer(location), safe="/~!$&'()*+,;=:@?-._")


class RustEngine:
    """jsonschema-rs: fast, and its patterns are matched in linear time."""

    remembers = True

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
            # Nothing is fetched, whatever the schema says: it may be untrusted.
            "offline": True,
            "base_uri": BASE,
        }
        self._compile = jsonschema_rs.validator_for
        self._new_registry = jsonschema_rs.Registry
        # A dialect of the host's own is built on the newest draft.
        draft = next((name for part, name in _DRAFTS.items() if part in dialect), "Draft202012")
        self._draft = getattr(jsonschema_rs, draft)
        self._resources = dict(resources)
        self._registry: Any = None
        own = document.get("id" if "draft-04" in dialect else "$id") if isinstance(document, dict) else None
        try:  # the document's own identifier, against which its relative references are resolved
            self._uri = urljoin(BASE, own).partition("#")[0] if isinstance(own, str) else BASE
        except ValueError:
            self._uri = BASE
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
            self._registry = self._new_registry([(self._uri, document), *self._resources.items()], self._draft)
        return self._registry

    def _validator(self, location: Path) -> Any:
        validator = self._validators.get(location)
        if validator is None:
            schema = {"$schema": self._dialect, "$ref": _reference(location, self._uri)}
            try:
                options = self._options | {"registry": self._open_registry(), "base_uri": BASE + "part"}
                validator = self._compile(schema, **options)
            except self._refusals as error:
                raise UnusableSchemaError(_reason(error)) from None
            except BaseException as error:
                # jsonschema-rs 0.60.3 panics where a pointer leads through an embedded resource that refers back.
                if type(error).__name__ != "PanicException":
                    raise
                raise UnusableSchemaError(f"the part at {format_pointer(location)} cannot be compiled alone") from None
            self._validators[location] = validator
        return validator

    def alone(self, schema: Mapping[str, Any]) -> Engine:
        formats = bool(self._options["validate_formats"])
        document = {"$schema": self._dialect, **schema}
        # With the resources, for one of them may be the dialect itself.
        return RustEngine(document, dialect=self._dialect, resources=self._resources, assert_formats=formats)

    def checker(self, location: Path) -> Callable[[Any], bool]:
        check: Callable[[Any], bool] = self._validator(location).is_valid
        return check


class ReferenceEngine:
    """jsonschema: the reference implementation, used where the fast wheel is missing and as the oracle in tests.

    With *bounded* a text on which a pattern could take long is an error: `re` would hold the whole process.
    """

    def __init__(
        self, document: Any, *, dialect: str, resources: Mapping[str, Any], assert_formats: bool, bounded: bool = False
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
            raise UnusableSchemaError(_reason(error)) from None
        try:
            registry = registry.crawl()  # so that a document's own identifier is found as well as ours
        except Exception as error:  # it reads identifiers where the metaschema allows anything
            raise UnusableSchemaError(f"its identifiers cannot be read: {error}") from None
        documents = [document, *resources.values()]
        self.remembers = not any(_is_forgotten(each, dialect) for each in objects_in(documents))
        keywords: dict[str, Any] = {}
        if self.remembers:
            keywords["$ref"] = self._remembered(cls.VALIDATORS["$ref"], jsonschema.ValidationError)
        if bounded:
            keywords |= _bounded(cls.VALIDATORS, documents)
        cls = _extended(cls, keywords)
        checker: Any = jsonschema.FormatChecker() if assert_formats else None
        self._bounded = bounded
        self._known = _Known()
        self._dialect, self._assert_formats = dialect, assert_formats
        self._make: Callable[[Any], Any] = lambda schema: cls(schema, registry=registry, format_checker=checker)
        self._starts_by_reference = isinstance(document, dict) and document.keys().isdisjoint({"$id", "id"})

    def _validator(self, location: Path) -> Any:
        by_reference = location or self._starts_by_reference
        return self._make({"$ref": _reference(location)} if by_reference else self._document)

    def alone(self, schema: Mapping[str, Any]) -> Engine:
        formats, bounded = self._assert_formats, self._bounded
        return ReferenceEngine(schema, dialect=self._dialect, resources={}, assert_formats=formats, bounded=bounded)

    def checker(self, location: Path) -> Callable[[Any], bool]:
        validator = self._validator(location)

        def check(value: Any) -> bool:
            self._known.answers.clear()
            try:
                return bool(validator.is_valid(_with_floats(value)))
            except BaseException as error:
                # The library's registry is a map of rpds, which panics where Python's stack ends inside it (2026.9.1).
                if type(error).__name__ != "PanicException":
                    raise
            raise RecursionError("the value is nested deeper than Python's stack")

        return check

    def _remembered(self, judge: Callable[..., Any], refusal: Callable[[str], Exception]) -> Callable[..., Any]:
        """Return the keyword ``$ref``, judged by *judge* once for each part of a value."""

        def check(validator: Any, reference: Any, value: Any, schema: Any) -> Any:
            answers = self._known.answers
            key = id(schema), id(value)  # both live as long as the question that they are a part of
            if key not in answers:
                answers[key] = next(iter(judge(validator, reference, value, schema)), None) is None
            if not answers[key]:
                yield refusal(f"it does not fit {reference}")

        return check


class _Known(threading.local):
    """What a reference engine found out in the call that is running: by subschema and part of the value."""

    def __init__(self) -> None:
        self.answers: dict[tuple[int, int], bool] = {}


def _is_forgotten(schema: dict[str, Any], dialect: str) -> bool:
    """Whether what *schema* says of a part must not, or cannot, be remembered by its place."""
    # What a dynamic reference leads to depends on the way to it (2020-12, core, 8.2.3.2), and not on its place.
    if "$dynamicRef" in schema or "$recursiveRef" in schema:
        return True
    declared = schema.get("$schema")  # of a resource in another dialect, for which the library has a class of its own
    return isinstance(declared, str) and declared.rstrip("#") != dialect.rstrip("#")


def _extended(cls: Any, keywords: dict[str, Any]) -> Any:
    """Return the class of validators *cls* with these *keywords*, also below a schema that names its dialect.

    The library judges a schema with ``$schema`` by the class that it has for that dialect, without any extension.
    """
    import jsonschema

    extend: Any = jsonschema.validators.extend
    extended = extend(cls, keywords)
    evolve = extended.evolve

    def evolved(validator: Any, **changes: Any) -> Any:
        made = evolve(validator, **changes)
        if type(made) is not cls:
            return made
        rest = {"format_checker": made.format_checker, "registry": made._registry, "_resolver": made._resolver}
        return extended(made.schema, **rest)

    extended.evolve = evolved
    return extended


def _bounded(keywords: Mapping[str, Any], documents: list[Any]) -> dict[str, Any]:
    """Return the *keywords* that match patterns, such that each refuses a text that is too long for its pattern."""
    limit_of = cache(longest_text)
    names = {name for each in documents for name in names_of(each)}
    limit_of_names = min((limit_of(name) for name in names), default=None)

    def pattern(validator: Any, written: Any, value: Any, schema: Any) -> Any:
        if isinstance(value, str) and isinstance(written, str):
            _check_length(written, value, limit_of(written))
        return keywords["pattern"](validator, written, value, schema)

    def members(keyword: str) -> Callable[..., Any]:
        def check(validator: Any, written: Any, value: Any, schema: Any) -> Any:
            if isinstance(value, dict) and limit_of_names is not None:
                _check_length("patternProperties", max(value, key=len, default=""), limit_of_names)
            return keywords[keyword](validator, written, value, schema)

        return check

    by_name = ("patternProperties", "additionalProperties", "unevaluatedProperties")
    return {"pattern": pattern, **{each: members(each) for each in by_name if each in keywords}}


def _check_length(pattern: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise InvalidSkillError(
            f"a text of {len(text):,} characters is too long for the pattern {pattern[:60]!r} without jsonschema-rs, "
            f"which matches {limit:,}; install it"
        )


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
    # jsonschema-rs names the place `instance_path`, jsonschema `absolute_path`.
    place: Any = getattr(error, "instance_path", None) or getattr(error, "absolute_path", None)
    path = tuple(place or ())
    said = str(getattr(error, "message", error))
    message = _in_plain_words(path, getattr(error, "instance", None)) or _shortened(said)
    where = format_pointer(path)
    return f"{message} - at {where}" if where else message


def _in_plain_words(path: Path, value: Any) -> str:
    """Return what is wrong with *value* at *path* of a schema, where authors often err and the engine is unclear.

    The engine says of a misspelt type: "strin" is not valid under any of the schemas listed in the 'anyOf' keyword.
    """
    key, parent = (path[-1] if path else ""), (path[-2] if len(path) > 1 else "")
    shown = f"{value:.40}" if isinstance(value, str) else json.dumps(value, default=str)[:40]
    if parent in ("properties", "patternProperties", "$defs", "definitions"):
        if isinstance(value, str):
            kind = value if value in _TYPES else "string"
            return f'\'{shown}\' is not a schema; write {{"type": "{kind}"}}'
        return ""  # `key` is a name that the author chose
    if key == "type":
        shown = repr(shown) if isinstance(value, str) else shown
        return f"{shown} {_wrong_types(value)}; use one of {', '.join(_TYPES)}"
    if key == "required" and isinstance(value, bool | str):
        shown = repr(shown) if isinstance(value, str) else shown
        return f"{shown} is not an array; name the required properties in an array beside 'properties'"
    if key == "enum" and isinstance(value, str):
        return f"'{shown}' is not an array; list the choices in an array"
    return ""


def _wrong_types(value: Any) -> str:
    """Return what is wrong with *value* as the value of ``type``."""
    if not isinstance(value, list):
        return "is not a type"
    if not value:
        return "names no type"
    if all(isinstance(each, str) and each in _TYPES for each in value):
        return "names a type twice"
    return "names something that is not a type"


def _shortened(message: str) -> str:
    """Return an engine's message with its kinds in words and the value at its start, which may be long, cut off."""

    def in_words(found: re.Match[str]) -> str:
        kinds = re.findall(r"\w+", found.group(1))
        return " is not " + " or ".join(f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}" for kind in kinds)

    message = re.sub(r""" is not of types? ((?:["']\w+["'](?:, )?)+)$""", in_words, message)
    return message if len(message) <= 160 else f"{message[:80]}… {message[-60:].partition(' ')[2]}"


_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
