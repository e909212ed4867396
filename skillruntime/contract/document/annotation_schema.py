"""Convert Python annotations to JSON Schemas with pydantic, in the form that a person
would write.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
import typing
from collections.abc import Callable
from pathlib import PurePath
from typing import Annotated, Any, NotRequired, Union

from pydantic import (
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import (
    PydanticUndefined,
    SchemaError,
    SchemaValidator,
    to_jsonable_python,
)
from typing_extensions import TypedDict

from skillruntime.contract.schemas.plain_json import find_fault
from skillruntime.contract.schemas.wording import WIDER
from skillruntime.errors import InvalidSkillError

_ANNOTATE = "Annotate it with a JSON type, a pydantic model, a dataclass or a TypedDict"


def is_model(annotation: Any) -> bool:
    """Return whether *annotation* is a class of named fields: a pydantic model, a
    dataclass or a TypedDict.
    """
    if not isinstance(annotation, type):
        return False
    if hasattr(annotation, "model_json_schema"):
        return True
    if hasattr(annotation, "__dataclass_fields__"):
        return True
    return _is_typed_dict(annotation)


def adapter_of(annotation: Any, label: str) -> TypeAdapter[Any]:
    """Return pydantic's adapter for *annotation*; in an error, *label* names the
    annotated thing.

    Raises:
        InvalidSkillError: pydantic cannot convert to *annotation*.
    """
    try:
        return TypeAdapter(_for_pydantic(annotation))
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        shown = getattr(annotation, "__name__", annotation)
        message = f"{label}: {shown} cannot be made from JSON"
        # For an unknown class, pydantic's message explains how to configure a model,
        # which does not help here.
        if not isinstance(error, PydanticSchemaGenerationError):
            message += ": " + str(error).partition("\n")[0]
        raise unusable(message, _ANNOTATE) from None


def raw_schema(annotation: Any, label: str, mode: Any = "validation") -> dict[str, Any]:
    """Return pydantic's JSON Schema for *annotation*, which may be an adapter.

    Raises:
        InvalidSkillError: *annotation* has no JSON Schema.
    """
    adapter: TypeAdapter[Any]
    if isinstance(annotation, TypeAdapter):
        adapter = annotation
    else:
        adapter = adapter_of(annotation, label)
    try:
        return adapter.json_schema(mode=mode, schema_generator=SchemaWriter)
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        # pydantic's own message names its internal schemas, which a reader does not
        # know.
        shown = getattr(annotation, "__name__", annotation)
        raise unusable(
            f"{label}: {str(shown)[:80]} has no JSON Schema", _ANNOTATE
        ) from None


class SchemaWriter(GenerateJsonSchema):
    """pydantic's schema generator with two changes: schemas accept as much as
    pydantic's types, and field defaults that `plain_default` leaves to Python are
    omitted.
    """

    ignored_warning_kinds: set[Any] = {  # noqa: RUF012  the base's way
        "skipped-choice",
        "non-serializable-default",
    }

    def datetime_schema(self, schema: Any) -> dict[str, Any]:
        return _widened(super().datetime_schema(schema))

    def time_schema(self, schema: Any) -> dict[str, Any]:
        return _widened(super().time_schema(schema))

    def timedelta_schema(self, schema: Any) -> dict[str, Any]:
        return _widened(super().timedelta_schema(schema))

    def url_schema(self, schema: Any) -> dict[str, Any]:
        return _widened(super().url_schema(schema))

    def default_schema(self, schema: Any) -> dict[str, Any]:
        made = super().default_schema(schema)
        if "default" in made:
            try:
                validate = SchemaValidator(schema["schema"]).validate_python
            except SchemaError:  # the schema refers to a definition elsewhere
                validate = None
            if plain_default(schema["default"], validate) is PydanticUndefined:
                del made["default"]
        return made


def _widened(schema: dict[str, Any]) -> dict[str, Any]:
    # The schema has no format if the model writes times as numbers.
    if schema.get("format") in WIDER:
        pattern, example = WIDER[schema.pop("format")]
        schema |= {"pattern": pattern, "examples": [example]}
    return schema


def plain_default(default: Any, validate: Callable[[Any], Any] | None) -> Any:
    """Return *default* as JSON if sending it has the same effect as omitting the
    parameter; else ``PydanticUndefined``.

    The function or the model itself fills in the other defaults: the JSON of a
    ``SecretStr`` is ten asterisks, NaN and marker objects have no JSON, and callers may
    not send a path of the host. *validate* converts an argument to the annotation; it
    is None if arguments are passed unconverted.
    """
    if isinstance(default, PurePath) and default.is_absolute():
        return PydanticUndefined
    try:
        plain = to_jsonable_python(default)
        if find_fault(plain) is not None:
            return PydanticUndefined
        if validate is None or validate(plain) == validate(default):
            return plain
    except Exception:  # validators and comparisons are the host's own code
        pass
    return PydanticUndefined


def schema_of(adapter: TypeAdapter[Any], mode: str, label: str) -> dict[str, Any]:
    """Return the JSON Schema of the values that *adapter* reads (``validation``) or
    writes (``serialization``).
    """
    return tidied(raw_schema(adapter, label, mode), closed=mode == "validation")


def tidied(schema: dict[str, Any], *, closed: bool) -> dict[str, Any]:
    """Return *schema* as a person would write it: without generated titles, and with
    each definition that is used once inlined.

    If *closed*, objects refuse unknown keys unless their class allows them: pydantic
    ignores unknown keys, which would hide a misspelled argument.
    """
    definitions = schema.pop("$defs", {})
    inline: set[str] = set()
    for name, definition in definitions.items():
        reference = f"#/$defs/{name}"
        uses = _count(reference, [schema, definitions])
        if uses == 1 and not _count(reference, definition):
            inline.add(name)

    def tidy(part: Any) -> Any:
        if isinstance(part, list):
            return [tidy(item) for item in part]
        if not isinstance(part, dict):
            return part
        name = str(part.get("$ref", "")).removeprefix("#/$defs/")
        if name in inline:
            beside = {key: value for key, value in part.items() if key != "$ref"}
            part = {**definitions[name], **beside}
        result: dict[str, Any] = {}
        for key, value in part.items():
            if key in _GENERATED:
                continue
            if key in _VALUES:
                result[key] = value
            elif key in ("properties", "$defs") and isinstance(value, dict):
                # The keys are names, not keywords: a property may be called "title".
                result[key] = {name: tidy(member) for name, member in value.items()}
            else:
                result[key] = tidy(value)
        if closed and "properties" in result:
            result.setdefault("additionalProperties", False)
        return result

    tidied_schema: dict[str, Any] = tidy(schema)
    kept = {
        name: tidy(definition)
        for name, definition in definitions.items()
        if name not in inline
    }
    if kept:
        tidied_schema["$defs"] = kept
    return tidied_schema


# `discriminator` is a keyword of OpenAPI, not of JSON Schema.
_GENERATED = ("title", "discriminator")
_VALUES = ("default", "const", "enum", "examples", "required")


def _count(reference: str, part: Any) -> int:
    """Return how often *reference* occurs in *part* of a schema."""
    if isinstance(part, list):
        return sum(_count(reference, item) for item in part)
    if not isinstance(part, dict):
        return 0
    count = sum(_count(reference, member) for member in part.values())
    if part.get("$ref") == reference:
        count += 1
    return count


def unusable(fault: str, action: str) -> InvalidSkillError:
    """Return the error for a function that cannot be a skill because of *fault*;
    *action* is the next step.
    """
    return InvalidSkillError(
        f"{fault}; {action[0].lower()}{action[1:]}", suggested_action=action
    )


def _for_pydantic(annotation: Any) -> Any:
    """Return *annotation* with each TypedDict of typing replaced by one of
    typing_extensions.

    Before Python 3.12 pydantic refuses the first kind, because it does not record which
    keys are required.
    """
    if sys.version_info >= (3, 12):
        return annotation
    if isinstance(annotation, type) and _is_typed_dict(annotation):
        return _typed_dict_for_pydantic(annotation)
    origin = typing.get_origin(annotation)
    if origin is None or origin in (typing.Literal, Annotated):
        return annotation
    parts = typing.get_args(annotation)
    new_parts = tuple(_for_pydantic(part) for part in parts)
    if all(new is old for new, old in zip(new_parts, parts, strict=True)):
        return annotation
    if origin in (Union, types.UnionType):
        return functools.reduce(operator.or_, new_parts)
    return origin[new_parts]


def _typed_dict_for_pydantic(annotation: type[Any]) -> Any:
    if type(annotation).__module__ != "typing":
        return annotation
    required: frozenset[str] = getattr(annotation, "__required_keys__", frozenset())
    fields: dict[str, Any] = {}
    for name, hint in typing.get_type_hints(annotation, include_extras=True).items():
        fields[name] = _for_pydantic(hint)
        if name not in required:
            fields[name] = NotRequired[fields[name]]
    # The functional form, which type checkers accept only for literals.
    make: Any = TypedDict
    typed_dict = make(annotation.__name__, fields)
    typed_dict.__doc__ = annotation.__doc__
    return typed_dict


def _is_typed_dict(annotation: Any) -> bool:
    # Recognizes the TypedDict of typing and of typing_extensions; `typing.is_typeddict`
    # recognizes only the first.
    return issubclass(annotation, dict) and hasattr(annotation, "__required_keys__")
