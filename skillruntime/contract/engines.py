"""The engine that validates values by a JSON Schema: jsonschema-rs.

It never fetches: a reference is looked up among the resources handed in, and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urljoin

from skillruntime.contract.pointer import Path, format_pointer

__all__ = ["BASE", "DIALECTS", "Engine", "UnusableSchemaError"]

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
    """The engine cannot use the document as a schema."""


def _reference(location: Path, uri: str = BASE) -> str:
    return uri + "#" + quote(format_pointer(location), safe="/~!$&'()*+,;=:@?-._")


class Engine:
    """One schema document compiled by jsonschema-rs, which matches patterns in linear time.

    A *location* picks one of its subschemas. A part of a value is judged once by what a reference leads to, and not
    once for each way to it: where a recursive schema has two ways to go on, the time would double with every level.
    """

    def __init__(self, document: Any, *, dialect: str, assert_formats: bool) -> None:
        import jsonschema_rs  # not needed before a schema is compiled

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
        self._draft = getattr(jsonschema_rs, next(name for part, name in _DRAFTS.items() if part in dialect))
        self._registry: Any = None
        own = document.get("id" if "draft-04" in dialect else "$id") if isinstance(document, dict) else None
        try:  # the document's own identifier, against which its relative references are resolved
            self._uri = urljoin(BASE, own).partition("#")[0] if isinstance(own, str) else BASE
        except ValueError:
            self._uri = BASE
        # ValueError and TypeError: numbers and texts that the library cannot read, such as half of a surrogate pair.
        self._refusals = (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError)
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
        """Return the engine of *schema*, which refers to nothing, in the same dialect."""
        formats = bool(self._options["validate_formats"])
        document = {"$schema": self._dialect, **schema}
        return Engine(document, dialect=self._dialect, assert_formats=formats)

    def checker(self, location: Path) -> Callable[[Any], bool]:
        """Return the function that says whether a value fits the subschema."""
        check: Callable[[Any], bool] = self._validator(location).is_valid
        return check


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
