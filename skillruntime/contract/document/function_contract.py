"""Convert a typed Python function to a contract: the signature gives the types, the
docstring the descriptions. pydantic reads the annotations, so parameters may be models,
dataclasses, TypedDicts, enums or dates.

A call's JSON arguments are converted to these types, and the result is converted back
to JSON.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from skillruntime.extras import missing_extra

try:
    from pydantic import TypeAdapter
    from pydantic import ValidationError as PydanticError
    from pydantic.fields import FieldInfo
    from pydantic_core import (
        PydanticSerializationError,
        PydanticUndefined,
        to_jsonable_python,
    )
except ModuleNotFoundError as _error:
    raise missing_extra(_error) from None

from skillruntime.contract.document.annotation_schema import (
    adapter_of,
    is_model,
    plain_default,
    raw_schema,
    schema_of,
    tidied,
    unusable,
)
from skillruntime.contract.response import SkillResponse, holds_iterator
from skillruntime.contract.schemas.plain_json import is_plain_json
from skillruntime.contract.schemas.pointer import Path, format_pointer
from skillruntime.errors import ErrorCode, SkillError, SkillInputError, SkillOutputError
from skillruntime.lazy_patterns import lazy_pattern

_EMPTY = inspect.Parameter.empty
# The types that JSON arguments already have: converting them would only cost time.
_PLAIN = (str, bool, Any, object, dict, list, _EMPTY)


def document_of_function(
    function: Callable[..., Any], *, name: str, version: str | None
) -> dict[str, Any]:
    """Return the contract document of calling *function* with keyword arguments, for
    `Contract.from_function`.

    Types come from the annotations, descriptions from the docstring (Google, NumPy and
    Sphinx forms), from ``Annotated[..., "text"]`` or from pydantic's ``Field``,
    defaults from the signature. ``self``, ``cls`` and the call's context are left out.
    If the only parameter is a model, its fields are the arguments; likewise if
    *function* is itself a model, a dataclass or a TypedDict.

    >>> def search(query: str, limit: int = 5) -> list[str]:
    ...     '''Search the notes.
    ...
    ...     Args:
    ...         query: Words to look for.
    ...     '''
    >>> document = document_of_function(search, name="", version=None)
    >>> properties = document["input"]["properties"]
    >>> properties["query"]
    {'type': 'string', 'description': 'Words to look for.'}
    >>> properties["limit"]
    {'type': 'integer', 'default': 5}

    Raises:
        InvalidSkillError: an annotation has no JSON Schema, or the function takes
            ``*args`` or is a generator.
    """
    if not is_model(function):
        return TypedFunction.of(function).document(name=name, version=version)
    document = document_of_model(function)
    if version:
        document["version"] = version
    if name:
        document["name"] = name
    return document


def document_of_model(model: Any) -> dict[str, Any]:
    """Return the contract document whose arguments are the fields of *model*.

    Raises:
        InvalidSkillError: a field's annotation has no JSON Schema.
    """
    schema = schema_of(adapter_of(model, model.__name__), "validation", model.__name__)
    return {
        "name": model.__name__,
        "description": schema.pop("description", ""),
        "input": schema,
    }


def to_skill_errors(
    error: PydanticError, value: Any, path: Path = ()
) -> list[SkillError]:
    """Return one error for each part of *value* that pydantic refused; *path* leads to
    the whole value.
    """
    errors: list[SkillError] = []
    for item in error.errors(
        include_url=False, include_input=False, include_context=False
    ):
        is_absent = item["type"] == "missing"
        part = _sent_part(item["loc"], value, is_absent=is_absent)
        pointer = format_pointer((*path, *part))
        # A validator of the model describes the fault in its own words.
        message = item["msg"].removeprefix("Value error, ")
        errors.append(
            SkillError(
                code=ErrorCode.INVALID_INPUT,
                message=f"{message} - at {pointer or '/'}",
                recoverable=True,
                details={"path": pointer},
                suggested_action="Send a value that satisfies this, and call again",
            )
        )
    return errors


@dataclass(frozen=True, slots=True)
class TypedFunction:
    """A function with its signature read once, which converts JSON arguments for a call
    and the result to JSON.

    ``whole`` names the parameter that receives all arguments as one model; ``context``
    names the parameter that receives the call's context. ``annotations`` are those of
    the other parameters. ``adapters`` convert the arguments, and ``output`` converts
    the result; None means that no conversion is needed.
    """

    function: Callable[..., Any]
    signature: inspect.Signature
    annotations: Mapping[str, Any]
    adapters: Mapping[str, TypeAdapter[Any] | None]
    output: TypeAdapter[Any] | None
    whole: str | None
    context: str | None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> TypedFunction:
        """Read the signature of *function*.

        Raises:
            InvalidSkillError: an annotation cannot be resolved, or pydantic cannot
                convert to it.
        """
        signature, hints = _read_signature(function)
        _require_callable_by_name(function, signature)
        context = _context_of(signature, hints)
        parameters = {
            name: parameter
            for name, parameter in signature.parameters.items()
            if _takes_argument(parameter, context)
        }
        annotations: dict[str, Any] = {}
        adapters: dict[str, TypeAdapter[Any] | None] = {}
        function_name = _named(function)
        for name, parameter in parameters.items():
            annotation = _annotated(hints[name], parameter.default)
            annotations[name] = annotation
            adapters[name] = None
            if annotation not in _PLAIN:
                label = f"parameter {name!r} of {function_name}"
                adapters[name] = adapter_of(annotation, label)
        return cls(
            function=function,
            signature=signature,
            annotations=annotations,
            adapters=adapters,
            output=_output_adapter(hints["return"], function_name),
            whole=_whole_of(parameters, hints),
            context=context,
        )

    def document(self, *, name: str = "", version: str | None = None) -> dict[str, Any]:
        """Return the contract document."""
        summary, described = _documented(inspect.getdoc(_written(self.function)) or "")
        document: dict[str, Any] = {
            "name": name or _named(self.function),
            "description": summary,
        }
        if version is not None:
            document["version"] = version
        document["input"] = self._input(described)
        _, hints = _read_signature(self.function)
        result = hints["return"]
        adapter = self.output
        if adapter is None and result in (str, int, bool, dict, list):
            adapter = TypeAdapter(result)
        if adapter is not None:
            label = f"the result of {_named(self.function)}"
            document["output"] = schema_of(adapter, "serialization", label)
        return document

    def bind(self, arguments: dict[str, Any], context: Any) -> inspect.BoundArguments:
        """Return the function's arguments for the JSON *arguments*, converted to its
        annotations.

        Raises:
            SkillInputError: a value violates a rule that JSON Schema cannot express,
                such as a validator of a model.
        """
        values: dict[str, Any] = {}
        errors: list[SkillError] = []
        if self.whole is not None:
            adapter = self.adapters[self.whole]
            assert adapter is not None
            values[self.whole] = _converted(adapter, arguments, (), errors)
        else:
            for name, value in arguments.items():
                adapter = self.adapters.get(name)
                if adapter is not None:
                    value = _converted(adapter, value, (name,), errors)
                values[name] = value
        if errors:
            raise SkillInputError("Input validation failed", skill_errors=errors)
        if self.context is not None:
            values[self.context] = context
        return self._bound(values)

    def to_plain(self, result: Any) -> Any:
        """Return *result* as JSON values.

        Raises:
            SkillOutputError: *result* has no JSON form.
        """
        if isinstance(result, Iterator):
            raise SkillOutputError(
                f"The function returned a {type(result).__name__}; return a list of "
                "its items"
            )
        is_json = type(result) in (dict, list) and is_plain_json(result)
        if is_json and self.output is None:
            return result
        try:
            # The search raises a RecursionError if the result contains itself.
            has_iterator = not is_json and holds_iterator(result)
            if not has_iterator:
                return self._converted_to_json(result)
        except (
            PydanticSerializationError,
            ValueError,
            TypeError,
            RecursionError,
        ) as error:
            if isinstance(result, dict | list) and is_plain_json(result):
                return result  # pydantic stops at 255 levels, whatever the value is
            reason = str(error)
            if isinstance(error, RecursionError):
                reason = "it is nested too deep, or contains itself"
            raise SkillOutputError(
                f"The function's result cannot be written as JSON: {reason}"
            ) from None
        raise SkillOutputError(
            "The function's result holds a generator or another iterator; return a list"
        )

    def _converted_to_json(self, result: Any) -> Any:
        if self.output is None:
            return to_jsonable_python(result)
        # No warnings, because the contract's check reports a result of another type,
        # with its place.
        return self.output.dump_python(
            result, mode="json", by_alias=True, warnings=False
        )

    def _bound(self, values: Mapping[str, Any]) -> inspect.BoundArguments:
        """Bind by name; `Signature.bind` cannot, because it refuses positional-only
        parameters by name.
        """
        bound = inspect.BoundArguments(self.signature, dict[str, Any]())
        remaining = dict(values)
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.arguments[name] = remaining
                continue
            if name in remaining:
                bound.arguments[name] = remaining.pop(name)
                continue
            default = _default_of(parameter, self.adapters.get(name))
            if default is not PydanticUndefined:
                bound.arguments[name] = default
        return bound

    def _input(self, described: Mapping[str, str]) -> dict[str, Any]:
        if self.whole is not None:
            adapter = self.adapters[self.whole]
            assert adapter is not None
            label = f"parameter {self.whole!r} of {_named(self.function)}"
            schema = schema_of(adapter, "validation", label)
            # The title is the parameter's name, so that {"trip": {...}} is also read as
            # the arguments.
            return {"title": self.whole, **schema}
        properties: dict[str, Any] = {}
        definitions: dict[str, Any] = {}
        required: list[str] = []
        for name, adapter in self.adapters.items():
            schema = self._property(name, described.get(name))
            definitions |= schema.pop("$defs", {})
            properties[name] = schema
            # A default_factory may return another value for a later call, so do not
            # declare a default.
            if _has_factory(self.annotations[name]):
                continue
            default = _default_of(self.signature.parameters[name], adapter)
            if default is PydanticUndefined:
                required.append(name)
                continue
            plain = plain_default(default, adapter and adapter.validate_python)
            if plain is not PydanticUndefined:
                schema["default"] = plain
        document: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            document["required"] = required
        kinds = [parameter.kind for parameter in self.signature.parameters.values()]
        document["additionalProperties"] = inspect.Parameter.VAR_KEYWORD in kinds
        return tidied({**document, "$defs": definitions}, closed=True)

    def _property(self, name: str, described: str | None) -> dict[str, Any]:
        """Return the schema of the parameter *name* without its default; *described* is
        the parameter's text in the docstring.
        """
        annotation = self.annotations[name]
        schema: dict[str, Any] = {}
        if annotation not in (_EMPTY, object):
            label = f"parameter {name!r} of {_named(self.function)}"
            schema = raw_schema(annotation, label)
        schema.pop("default", None)
        text = _annotated_text(annotation) or described
        # A class has its own docstring, but a text about this parameter is more
        # specific.
        if text and ("description" not in schema or isinstance(annotation, type)):
            schema["description"] = text
        return schema


def _context_of(signature: inspect.Signature, hints: Mapping[str, Any]) -> str | None:
    """Return the name of the parameter that receives the call's context."""
    for name, parameter in signature.parameters.items():
        if _is_context(parameter, hints):
            return name
    return None


def _whole_of(
    parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]
) -> str | None:
    """Return the name of the only parameter, if it receives all arguments as a
    model.
    """
    if len(parameters) != 1:
        return None
    [(name, parameter)] = parameters.items()
    # A root model has no fields: its value may be an array, but arguments are an
    # object.
    if getattr(hints[name], "__pydantic_root_model__", False):
        return None
    if not is_model(hints[name]) or parameter.default is not _EMPTY:
        return None
    return name


def _output_adapter(result: Any, function_name: str) -> TypeAdapter[Any] | None:
    if result in _PLAIN:
        return None
    # An annotation `-> SkillResponse` says nothing about the data inside.
    if getattr(result, "__origin__", result) is SkillResponse:
        return None
    return adapter_of(result, f"the result of {function_name}")


def _read_signature(
    function: Callable[..., Any],
) -> tuple[inspect.Signature, dict[str, Any]]:
    """Return the signature, and the resolved annotation of each parameter and of
    ``return``.
    """
    signature = inspect.signature(function)
    owner = _written(function)
    try:
        try:
            hints = typing.get_type_hints(owner, include_extras=True)
        except NameError:
            # A class defined inside a function (a test, for example) is known only in
            # the frames that are running now.
            hints = typing.get_type_hints(
                owner, None, _names_in_frames(), include_extras=True
            )
    except NameError as error:
        what = f"An annotation of {_named(function)} cannot be resolved: {error}"
        raise unusable(
            what, "Define or import the class at the top of the module"
        ) from None
    unannotated = dict.fromkeys((*signature.parameters, "return"), _EMPTY)
    return signature, {**unannotated, **hints}


def _require_callable_by_name(
    function: Callable[..., Any], signature: inspect.Signature
) -> None:
    """Refuse a function that a call with named arguments cannot use, or whose result is
    not one value.
    """
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise unusable(
                f"{_named(function)} takes *{name}, and a call has named arguments "
                "only",
                f"Write a parameter that is a list, such as {name}: list[str]",
            )
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise unusable(
            f"{_named(function)} is a generator, and a call has one result",
            "Return a list",
        )


def _names_in_frames() -> dict[str, Any]:
    """Return the local names of all frames that are running now; names of inner frames
    take precedence.
    """
    names: dict[str, Any] = {}
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names


def _is_context(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    """Return whether *parameter* receives the call's context, judged by its type, or by
    its name if it has no annotation.
    """
    annotation = hints[parameter.name]
    if annotation is _EMPTY:
        return parameter.name == "context"
    parts = [annotation]
    # `CallContext | None`.
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = list(typing.get_args(annotation))
    # Compare the class by name, because it is defined in a higher layer.
    return any(getattr(part, "__name__", "") == "CallContext" for part in parts)


def _takes_argument(parameter: inspect.Parameter, context: str | None) -> bool:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return False
    return parameter.name not in ("self", "cls", context)


def _annotated(annotation: Any, default: Any) -> Any:
    """Return *annotation* with the constraints of pydantic's own style of default,
    ``limit: int = Field(5, ge=1)``.
    """
    if isinstance(default, FieldInfo):
        return Annotated[annotation, default]
    return annotation


def _converted(
    adapter: TypeAdapter[Any], value: Any, path: Path, errors: list[SkillError]
) -> Any:
    try:
        # A strict model would refuse dates and enums, which are texts in JSON; the
        # schema has already checked the types.
        return adapter.validate_python(value, strict=False)
    except PydanticError as error:
        errors += to_skill_errors(error, value, path)
        return None


def _sent_part(
    location: tuple[int | str, ...], value: Any, *, is_absent: bool
) -> Iterator[int | str]:
    """Yield the steps of *location* that lead into *value*, without the names of union
    branches that pydantic puts between them.
    """
    for step in location:
        if _leads_into(value, step):
            value = value[step]
            yield step
    if is_absent:
        yield location[-1]


def _leads_into(value: Any, step: int | str) -> bool:
    if isinstance(value, list):
        return isinstance(step, int) and step < len(value)
    return isinstance(value, dict) and step in value


def _has_factory(annotation: Any) -> bool:
    return any(
        isinstance(part, FieldInfo) and part.default_factory
        for part in getattr(annotation, "__metadata__", ())
    )


def _default_of(parameter: inspect.Parameter, adapter: TypeAdapter[Any] | None) -> Any:
    """Return the default, or ``PydanticUndefined`` for a required parameter."""
    if parameter.default is not _EMPTY and not isinstance(parameter.default, FieldInfo):
        return parameter.default
    # `limit: Annotated[int, Field(default=5)]`, which pydantic also fills in.
    default = adapter.get_default_value() if adapter else None
    if default is None:
        return PydanticUndefined
    return default.value


def _annotated_text(annotation: Any) -> str | None:
    """Return the text of ``Annotated[int, "In pixels"]``, which pydantic ignores."""
    for part in getattr(annotation, "__metadata__", ()):
        if isinstance(part, str):
            return part
    return None


def _written(function: Any) -> Any:
    """Return the function that has the annotations and the docstring, also from inside
    a partial or a callable object.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function):
        return function
    return type(function).__call__


def _named(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and the text about each parameter.

    >>> _documented("Search the notes.\\n\\nArgs:\\n    query: Words to look for.\\n")
    ('Search the notes.', {'query': 'Words to look for.'})
    """
    summary = " ".join(re.split(r"\n\s*\n", text.strip())[0].split())
    described = _descriptions(_SPHINX, text)
    section = _SECTION.search(text)
    if section:
        # Google's style indents the section, NumPy's underlines its heading with
        # dashes.
        pattern = _NUMPY if "---" in section[0] else _GOOGLE
        described |= _descriptions(pattern, section[1])
    return summary, described


def _descriptions(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    return {match[1]: " ".join(match[2].split()) for match in pattern.finditer(text)}


_SECTION = lazy_pattern(
    r"^(?:Args|Arguments|Parameters)(?::|\n---)[^\n]*+\n"
    r"((?:[ \t]+\S.*\n?|\w.*\n?|\n)+)",
    re.MULTILINE,
)
_SPHINX = lazy_pattern(
    r"^:param (?:[\w\[\]., |]+ )?(\w+):\s*(.+?)(?=\n:|\n\s*\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_GOOGLE = lazy_pattern(
    r"^[ \t]{2,8}\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+?)"
    r"(?=\n[ \t]{2,8}\*{0,2}\w+\s*(?:\([^)]*\))?:|\n\s*\n|\n\w|\Z)",
    re.MULTILINE | re.DOTALL,
)
_NUMPY = lazy_pattern(
    r"^(\w+)(?:\s*:[^\n]*)?\n[ \t]+(.+?)(?=\n\w|\n\s*\n|\Z)", re.MULTILINE | re.DOTALL
)
