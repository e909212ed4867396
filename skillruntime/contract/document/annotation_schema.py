"""A Python annotation as a JSON Schema, by pydantic: the schema as a person would write
it.
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
    """Whether *annotation* is a class of named fields: a pydantic model, a dataclass or
    a TypedDict.
    """
    if not isinstance(annotation, type):
        return False
    has_fields = hasattr(annotation, "model_json_schema") or hasattr(
        annotation, "__dataclass_fields__"
    )
    return has_fields or _is_dict(annotation)


def adapter_of(annotation: Any, label: str) -> TypeAdapter[Any]:
    """Return pydantic's adapter of *annotation*; *label* says in an error what is
    annotated.

    Raises:
        InvalidSkillError: pydantic cannot convert to it.
    """
    try:
        return TypeAdapter(_for_pydantic(annotation))
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        # Of an unknown class pydantic's text says how to configure a model, which does
        # not help here.
        reason = (
            ""
            if isinstance(error, PydanticSchemaGenerationError)
            else ": " + str(error).partition("\n")[0]
        )
        shown = getattr(annotation, "__name__", annotation)
        raise unusable(
            f"{label}: {shown} cannot be made from JSON{reason}", _ANNOTATE
        ) from None


def raw_schema(annotation: Any, label: str, mode: Any = "validation") -> dict[str, Any]:
    """Return the JSON Schema that pydantic writes for *annotation*, which may be an
    adapter.

    Raises:
        InvalidSkillError: it has none.
    """
    adapter = (
        annotation
        if isinstance(annotation, TypeAdapter)
        else adapter_of(annotation, label)
    )
    try:
        return adapter.json_schema(mode=mode, schema_generator=SchemaWriter)
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        # pydantic's own text names its internal schemas, which a reader has never seen.
        shown = getattr(annotation, "__name__", annotation)
        raise unusable(
            f"{label}: {str(shown)[:80]} has no JSON Schema", _ANNOTATE
        ) from None


class SchemaWriter(GenerateJsonSchema):
    """pydantic's own, as wide as its types, without the defaults of fields that
    `plain_default` leaves to Python.
    """

    ignored_warning_kinds: set[Any] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  the base's way

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
            except SchemaError:  # it refers to a definition elsewhere
                validate = None
            if plain_default(schema["default"], validate) is PydanticUndefined:
                del made["default"]
        return made


def _widened(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("format") in WIDER:  # not so where a model writes times as numbers
        pattern, example = WIDER[schema.pop("format")]
        schema |= {"pattern": pattern, "examples": [example]}
    return schema


def plain_default(default: Any, validate: Callable[[Any], Any] | None) -> Any:
    """Return the default as JSON where a caller who sends that gives what one who
    leaves it out gives.

    Elsewhere ``PydanticUndefined``: of a ``SecretStr`` the JSON is ten asterisks, NaN
    and a marker object have none, and a path of the host is one that no caller may
    send. The function or the model fills these itself. *validate* converts an argument
    to the annotation; None where arguments are passed as they are.
    """
    if isinstance(default, PurePath) and default.is_absolute():
        return PydanticUndefined
    try:
        plain = to_jsonable_python(default)
        if find_fault(plain) is None and (
            validate is None or bool(validate(plain) == validate(default))
        ):
            return plain
    except Exception:  # validators and comparisons are the host's own code
        pass
    return PydanticUndefined


def schema_of(adapter: TypeAdapter[Any], mode: str, label: str) -> dict[str, Any]:
    """Return the JSON Schema of what *adapter* reads (``validation``) or writes
    (``serialization``).
    """
    return tidied(raw_schema(adapter, label, mode), closed=mode == "validation")


def tidied(schema: dict[str, Any], *, closed: bool) -> dict[str, Any]:
    """Return *schema* as a person would write it: without generated titles, each
    definition where it is used once.

    With *closed*, objects refuse unknown keys unless their class allows them: pydantic
    ignores what it does not know, which would hide a misspelt argument.
    """
    definitions = schema.pop("$defs", {})
    uses = {
        name: _count(f"#/$defs/{name}", [schema, definitions]) for name in definitions
    }
    inline = {
        name
        for name, times in uses.items()
        if times == 1 and not _count(f"#/$defs/{name}", definitions[name])
    }

    def tidy(part: Any, *, is_schema: bool = True) -> Any:
        if isinstance(part, list):
            return [tidy(each) for each in part]
        if not isinstance(part, dict):
            return part
        if not is_schema:  # a map of names to schemas: a property may be called "title"
            return {name: tidy(each) for name, each in part.items()}
        reference = str(part.get("$ref", "")).removeprefix("#/$defs/")
        if reference in inline:
            part = {
                **definitions[reference],
                **{key: value for key, value in part.items() if key != "$ref"},
            }
        made: dict[str, Any] = {}
        for key, value in part.items():
            if key in (
                "title",
                "discriminator",
            ):  # discriminator is OpenAPI's, not JSON Schema's
                continue
            made[key] = (
                value
                if key in _VALUES
                else tidy(value, is_schema=key not in ("properties", "$defs"))
            )
        if closed and "properties" in made and "additionalProperties" not in made:
            made["additionalProperties"] = False
        return made

    result: dict[str, Any] = tidy(schema)
    kept = {
        name: tidy(each) for name, each in definitions.items() if name not in inline
    }
    return {**result, "$defs": kept} if kept else result


_VALUES = ("default", "const", "enum", "examples", "required")


def _count(reference: str, part: Any) -> int:
    if isinstance(part, dict):
        return (part.get("$ref") == reference) + sum(
            _count(reference, each) for each in part.values()
        )
    return (
        sum(_count(reference, each) for each in part) if isinstance(part, list) else 0
    )


def unusable(what: str, action: str) -> InvalidSkillError:
    """Return the error of a function that cannot be a skill: *what* is wrong, and the
    next step.
    """
    return InvalidSkillError(
        f"{what}; {action[0].lower()}{action[1:]}", suggested_action=action
    )


def _for_pydantic(annotation: Any) -> Any:
    """Return *annotation* with each of typing's TypedDicts as one of typing_extensions.

    Before Python 3.12 pydantic refuses typing's, because they do not record which keys
    are required.
    """
    if sys.version_info >= (3, 12):
        return annotation
    if (
        isinstance(annotation, type)
        and _is_dict(annotation)
        and type(annotation).__module__ == "typing"
    ):
        required: frozenset[str] = getattr(annotation, "__required_keys__", frozenset())
        fields = {
            name: _for_pydantic(hint)
            if name in required
            else NotRequired[_for_pydantic(hint)]
            for name, hint in typing.get_type_hints(
                annotation, include_extras=True
            ).items()
        }
        # in its functional form, which type checkers accept for literals only
        make: Any = TypedDict
        made = make(annotation.__name__, fields)
        made.__doc__ = annotation.__doc__
        return made
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None or origin in (typing.Literal, Annotated):
        return annotation
    made_parts = tuple(_for_pydantic(part) for part in parts)
    if all(one is other for one, other in zip(parts, made_parts, strict=True)):
        return annotation
    if origin in (Union, types.UnionType):
        return functools.reduce(operator.or_, made_parts)
    return origin[made_parts]


def _is_dict(annotation: Any) -> bool:
    # Both of typing's and typing_extensions' TypedDict; `typing.is_typeddict` knows
    # only the first.
    return issubclass(annotation, dict) and hasattr(annotation, "__required_keys__")
