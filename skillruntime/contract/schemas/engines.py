"""Validate values by a JSON Schema with the engine jsonschema-rs.

The engine never fetches: it looks a reference up only among the resources passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urljoin

from skillruntime.contract.schemas.pointer import Path, format_pointer
from skillruntime.contract.schemas.wording import quoted, shortened

# The URI of each dialect -> its name in jsonschema-rs. The contract document omits
# ``/schema`` after a date.
_DRAFTS = {
    "https://json-schema.org/draft/2020-12/schema": "Draft202012",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909",
    "http://json-schema.org/draft-07/schema#": "Draft7",
    "http://json-schema.org/draft-06/schema#": "Draft6",
    "http://json-schema.org/draft-04/schema#": "Draft4",
}
DIALECTS: dict[str, str] = {}
for _uri in _DRAFTS:
    DIALECTS[_uri.rstrip("#")] = _uri
    DIALECTS[_uri.removesuffix("/schema")] = _uri

# The URI of a document without an identifier; relative references can be resolved
# against it (RFC 6761).
BASE = "http://skillruntime.invalid/"

# One megabyte for a compiled pattern: enough for any that a person writes, and a bound
# for `(a{1000}){1000}`.
_PATTERN_BYTES = 1 << 20


class UnusableSchemaError(ValueError):
    """The engine cannot use the document as a schema."""


def _reference(location: Path, uri: str = BASE) -> str:
    return uri + "#" + quote(format_pointer(location), safe="/~!$&'()*+,;=:@?-._")


class Engine:
    """One schema document compiled by jsonschema-rs, which matches patterns in linear
    time.

    A *location* picks one of its subschemas. The target of a reference judges a part of
    a value only once, not once for each path to the target: if a recursive schema
    refers to itself twice, the time would otherwise double with every level.
    """

    def __init__(self, document: Any, *, dialect: str, assert_formats: bool) -> None:
        import jsonschema_rs  # imported only when a schema is compiled

        self._document = document
        self._dialect = dialect
        self._validators: dict[Path, Any] = {}
        self._options: dict[str, Any] = {
            "validate_formats": assert_formats,
            "pattern_options": jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES),
            # Never fetch, whatever the schema says, because it may be untrusted.
            "offline": True,
            "base_uri": BASE,
        }
        self._compile = jsonschema_rs.validator_for
        self._new_registry = jsonschema_rs.Registry
        self._draft = getattr(jsonschema_rs, _DRAFTS[dialect])
        self._registry: Any = None
        self._uri = _uri_of(document, dialect)
        # jsonschema-rs raises ValueError or TypeError for numbers and texts that it
        # cannot read, such as half of a surrogate pair.
        self._refusals = (
            jsonschema_rs.ValidationError,
            jsonschema_rs.ReferencingError,
            ValueError,
            TypeError,
        )
        try:
            self._validators[()] = self._compile(document, **self._options)
        except self._refusals as error:
            raise UnusableSchemaError(_reason(error)) from None

    def _open_registry(self) -> Any:
        if self._registry is None:
            document = self._document
            if isinstance(document, dict):
                document = {**document, "$schema": self._dialect}
            self._registry = self._new_registry([(self._uri, document)], self._draft)
        return self._registry

    def _validator(self, location: Path) -> Any:
        validator = self._validators.get(location)
        if validator is not None:
            return validator
        schema = {"$schema": self._dialect, "$ref": _reference(location, self._uri)}
        try:
            options = self._options | {
                "registry": self._open_registry(),
                "base_uri": BASE + "part",
            }
            validator = self._compile(schema, **options)
        except self._refusals as error:
            raise UnusableSchemaError(_reason(error)) from None
        except BaseException as error:
            # jsonschema-rs 0.60.3 panics if a pointer leads through an embedded
            # resource that refers back.
            if type(error).__name__ != "PanicException":
                raise
            raise UnusableSchemaError(
                f"the part at {format_pointer(location)} cannot be compiled alone"
            ) from None
        self._validators[location] = validator
        return validator

    def alone(self, schema: Mapping[str, Any]) -> Engine:
        """Return the engine of *schema*, which has no references, in the same dialect."""
        formats = bool(self._options["validate_formats"])
        return Engine(
            {"$schema": self._dialect, **schema},
            dialect=self._dialect,
            assert_formats=formats,
        )

    def checker(self, location: Path) -> Callable[[Any], bool]:
        """Return a function from a value to whether it fits the subschema."""
        check: Callable[[Any], bool] = self._validator(location).is_valid
        return check


def _uri_of(document: Any, dialect: str) -> str:
    """Return the document's own identifier, the base of its relative references."""
    if not isinstance(document, dict):
        return BASE
    identifier = document.get("id" if "draft-04" in dialect else "$id")
    if not isinstance(identifier, str):
        return BASE
    try:
        return urljoin(BASE, identifier).partition("#")[0]
    except ValueError:
        return BASE


def _reason(error: Exception) -> str:
    """Return why the engine refuses the schema.

    The engine's own message does not name the correction. For a misspelled type it is:
    "strin" is not valid under any of the schemas listed in the 'anyOf' keyword.
    """
    path: Path = tuple(getattr(error, "instance_path", None) or ())
    if not path:
        return shortened(str(getattr(error, "message", error)), 160)
    keyword = path[-1]
    if len(path) > 1 and path[-2] in _OF_SCHEMAS:
        wanted = "a schema"
    else:
        wanted = _WANTED.get(str(keyword), f"a valid {keyword!r}")
    refused = quoted(getattr(error, "instance", None))
    return f"{refused} is not {wanted} - at {format_pointer(path)}"


# The keywords whose values map names to schemas.
_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")
# The mistakes that authors often make.
_WANTED = {
    "type": "a type; use one of array, boolean, integer, null, number, object, string",
    "required": "an array; name the required properties in an array beside "
    "'properties'",
    "enum": "an array; list the choices in an array",
    "pattern": "a regex of linear time, without look-around and references to groups",
}
