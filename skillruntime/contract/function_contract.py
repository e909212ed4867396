"""A typed Python function as a contract: its signature gives the types, its docstring the descriptions.

pydantic reads the annotations, so parameters may be models, dataclasses, TypedDicts, enums or dates: a call's JSON
arguments arrive as such, and what the function returns becomes JSON again by the same annotations.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, Union

from pydantic import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
from pydantic import ValidationError as PydanticError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, PydanticUndefined, to_jsonable_python
from typing_extensions import TypedDict

from skillruntime.contract.plain_json import is_plain_json
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, InvalidSkillError, SkillError, SkillInputError, SkillOutputError

__all__ = ["TypedFunction", "document_of_function", "document_of_model", "is_model", "to_skill_errors"]

# What JSON arguments already are: converting them would only cost time.
_PLAIN = (str, int, bool, Any, object, dict, list, inspect.Parameter.empty)


def document_of_function(function: Callable[..., Any], *, name: str = "", version: str | None = None) -> dict[str, Any]:
    """Return the contract document of calling *function* with keyword arguments, for `Contract.from_function`.

    Types come from the annotations, descriptions from the docstring (Google, NumPy and Sphinx forms), from
    ``Annotated[..., "text"]`` or from pydantic's ``Field``, defaults from the signature. ``self``, ``cls`` and the
    call's context are left out. If the only parameter is a model, its fields are the arguments.

    >>> def search(query: str, limit: int = 5) -> list[str]:
    ...     '''Search the notes.
    ...
    ...     Args:
    ...         query: Words to look for.
    ...     '''
    >>> document_of_function(search)["input"]["properties"]
    {'query': {'type': 'string', 'description': 'Words to look for.'}, 'limit': {'type': 'integer', 'default': 5}}

    Raises:
        InvalidSkillError: an annotation has no JSON Schema, or the function takes ``*args`` or is a generator.
    """
    return TypedFunction.of(function).document(name=name, version=version)


def document_of_model(model: Any) -> dict[str, Any]:
    """Return the contract document whose arguments are the fields of *model*.

    Raises:
        InvalidSkillError: a field's annotation has no JSON Schema.
    """
    schema = _schema_of(_adapter(model, model.__name__), "validation", model.__name__)
    return {"name": model.__name__, "description": schema.pop("description", ""), "input": schema}


def is_model(annotation: Any) -> bool:
    """Whether *annotation* is a class of named fields: a pydantic model, a dataclass or a TypedDict."""
    if not isinstance(annotation, type):
        return False
    return (
        hasattr(annotation, "model_json_schema") or hasattr(annotation, "__dataclass_fields__") or _is_dict(annotation)
    )


def to_skill_errors(error: PydanticError, path: str = "") -> list[SkillError]:
    """Return one error for each value that pydantic refused; *path* is the JSON Pointer of the whole value."""
    found = []
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        where = path + "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in item["loc"])
        text = item["msg"].removeprefix("Value error, ")  # what a validator of the model says, as it says it
        action = "Send a value that satisfies this, and call again"
        found.append(SkillError(ErrorCode.INVALID_INPUT, f"{text} - at {where or '/'}", True, {"path": where}, action))
    return found


@dataclass(frozen=True, slots=True)
class TypedFunction:
    """A function whose signature was read once: how to call it with JSON arguments, and its result as JSON.

    ``whole`` names the parameter that takes all arguments as one model; ``context`` the one that takes the call's
    context. ``adapters`` convert the other parameters, ``output`` the result; a None needs no conversion.
    """

    function: Callable[..., Any]
    signature: inspect.Signature
    adapters: Mapping[str, TypeAdapter[Any] | None]
    output: TypeAdapter[Any] | None
    whole: str | None
    context: str | None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> TypedFunction:
        """Return the reading of *function*.

        Raises:
            InvalidSkillError: an annotation cannot be resolved, or pydantic cannot convert to it.
        """
        signature, hints = _read_signature(function)
        _require_callable_by_name(function, signature)
        context = next((each.name for each in signature.parameters.values() if _is_context(each, hints)), None)
        parameters = {name: each for name, each in signature.parameters.items() if _takes_argument(each, context)}
        adapters = {
            name: None if hints[name] in _PLAIN else _adapter(hints[name], f"parameter {name!r} of {_named(function)}")
            for name in parameters
        }
        only = next(iter(parameters), None) if len(parameters) == 1 else None
        # A root model has no fields: its value may be an array, and arguments are an object.
        is_root = only is not None and getattr(hints[only], "__pydantic_root_model__", False)
        is_whole = (
            only is not None
            and not is_root
            and is_model(hints[only])
            and parameters[only].default is inspect.Parameter.empty
        )
        result = hints.get("return", inspect.Parameter.empty)
        # An annotation `-> SkillResponse` says nothing about the data inside.
        has_output = result not in _PLAIN and getattr(result, "__origin__", result) is not SkillResponse
        output = _adapter(result, f"the result of {_named(function)}") if has_output else None
        return cls(function, signature, adapters, output, only if is_whole else None, context)

    def document(self, *, name: str = "", version: str | None = None) -> dict[str, Any]:
        """Return the contract document."""
        summary, described = _documented(inspect.getdoc(_written(self.function)) or "")
        document: dict[str, Any] = {"name": name or _named(self.function), "description": summary}
        if version is not None:
            document["version"] = version
        document["input"] = self._input(described)
        _, hints = _read_signature(self.function)
        result = hints.get("return", inspect.Parameter.empty)
        if self.output is not None or result in (str, int, bool, dict, list):
            adapter = self.output or TypeAdapter(result)
            schema = _schema_of(adapter, "serialization", f"the result of {_named(self.function)}")
            document["output"] = schema
        return document

    def bind(self, arguments: dict[str, Any], context: Any) -> inspect.BoundArguments:
        """Return the function's arguments for the JSON *arguments*, converted to its annotations.

        Raises:
            SkillInputError: a value breaks a rule that JSON Schema cannot express (a validator of a model, say).
        """
        values: dict[str, Any] = {}
        errors: list[SkillError] = []
        if self.whole is not None:
            adapter = self.adapters[self.whole]
            assert adapter is not None
            values[self.whole] = _converted(adapter, arguments, "", errors)
        else:
            for name, value in arguments.items():
                adapter = self.adapters.get(name)
                values[name] = value if adapter is None else _converted(adapter, value, f"/{name}", errors)
        if errors:
            raise SkillInputError("Input validation failed", skill_errors=errors)
        if self.context is not None:
            values[self.context] = context
        return self._bound(values)

    def to_plain(self, result: Any) -> Any:
        """Return *result* as JSON values.

        Raises:
            SkillOutputError: it has no JSON form.
        """
        try:
            if isinstance(result, Iterator):  # it can be read once, and the envelope is read more often
                raise SkillOutputError(f"The function returned a {type(result).__name__}; return a list of its items")
            if self.output is not None:
                # warnings=False: a result of another type is reported by the contract's check, with its place.
                return self.output.dump_python(result, mode="json", by_alias=True, warnings=False)
            return to_jsonable_python(result)
        except (PydanticSerializationError, ValueError, TypeError) as error:
            if isinstance(result, dict | list) and is_plain_json(result):
                return result  # pydantic stops at 255 levels, whatever the value is
            is_binary = "utf-8" in str(error)  # pydantic writes bytes as the text that they encode
            reason = "bytes that are not text; return base64 text, or write a file" if is_binary else error
            raise SkillOutputError(f"The function's result cannot be written as JSON: {reason}") from None

    def _bound(self, values: Mapping[str, Any]) -> inspect.BoundArguments:
        """Bind by name; `Signature.bind` cannot, because it refuses positional-only parameters by name."""
        bound = inspect.BoundArguments(self.signature, dict[str, Any]())
        extra = dict(values)
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.arguments[name] = extra
            elif name in extra:
                bound.arguments[name] = extra.pop(name)
            elif isinstance(parameter.default, FieldInfo):  # `limit: int = Field(5, ge=1)`: pydantic's own style
                bound.arguments[name] = parameter.default.get_default(call_default_factory=True)
        return bound

    def _input(self, described: Mapping[str, str]) -> dict[str, Any]:
        if self.whole is not None:
            adapter = self.adapters[self.whole]
            assert adapter is not None
            schema = _schema_of(adapter, "validation", f"parameter {self.whole!r} of {_named(self.function)}")
            # The parameter's name, so that {"trip": {...}} is understood as the arguments too.
            return {"title": self.whole, **schema}
        _, hints = _read_signature(self.function)
        properties: dict[str, Any] = {}
        definitions: dict[str, Any] = {}
        required: list[str] = []
        for name in self.adapters:
            parameter = self.signature.parameters[name]
            annotation = hints[name]
            if isinstance(parameter.default, FieldInfo):
                annotation = Annotated[annotation, parameter.default]
            label = f"parameter {name!r} of {_named(self.function)}"
            schema = {} if annotation in (inspect.Parameter.empty, object) else _raw_schema(annotation, label)
            definitions |= schema.pop("$defs", {})
            text = _annotated_text(annotation) or described.get(name)
            # A class brings its own docstring; what is said about this parameter is more specific.
            if text and ("description" not in schema or isinstance(annotation, type)):
                schema["description"] = text
            default = _default_of(parameter)
            if default is PydanticUndefined:
                required.append(name)
            elif (plain := _plain_default(default)) is not PydanticUndefined:
                schema["default"] = plain
            properties[name] = schema
        takes_more = any(each.kind is each.VAR_KEYWORD for each in self.signature.parameters.values())
        document: dict[str, Any] = {"type": "object", "properties": properties}
        document |= {"required": required} if required else {}
        document["additionalProperties"] = takes_more
        whole: dict[str, Any] = _with_naive_times(_tidy({**document, "$defs": definitions}, closed=True))
        return whole


def _read_signature(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    """Return the signature, and the resolved annotation of each parameter and of ``return``."""
    signature = inspect.signature(function)
    owner = _written(function)
    try:
        hints = typing.get_type_hints(owner, include_extras=True)
    except NameError:
        # With `from __future__ import annotations`, a class defined inside a function (a test, a notebook cell) is
        # known only to the frames that are running now.
        try:
            hints = typing.get_type_hints(owner, None, _names_in_frames(), include_extras=True)
        except NameError as error:
            raise InvalidSkillError(
                f"An annotation of {_named(function)} cannot be resolved: {error}; define or import the "
                "class at the top of the module",
                suggested_action="Define or import the class at the top of the module",
            ) from None
    empty = inspect.Parameter.empty
    return signature, {**dict.fromkeys(signature.parameters, empty), "return": empty, **hints}


def _require_callable_by_name(function: Callable[..., Any], signature: inspect.Signature) -> None:
    """Refuse a function that a call with named arguments cannot use, or whose result is not one value."""
    starred = next((each for each in signature.parameters.values() if each.kind is each.VAR_POSITIONAL), None)
    if starred is not None:
        raise InvalidSkillError(
            f"{_named(function)} takes *{starred.name}, and a call has named arguments only; write a parameter that is "
            f"a list, such as {starred.name}: list[str]",
            suggested_action="Write a parameter that is a list",
        )
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise InvalidSkillError(
            f"{_named(function)} is a generator, and a call has one result; return a list",
            suggested_action="Return a list",
        )


def _names_in_frames() -> dict[str, Any]:
    names: dict[str, Any] = {}
    frame = sys._getframe(1)
    for _ in range(12):  # the decorator's own frames, and the function that uses it
        names = {**frame.f_locals, **names}
        if frame.f_back is None:
            break
        frame = frame.f_back
    return names


def _is_context(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    """Whether *parameter* takes the call's context: by its type, or by its name where it has no annotation."""
    annotation = hints[parameter.name]
    if annotation is inspect.Parameter.empty:
        return parameter.name == "context"
    # By name, because the class itself is defined in a higher layer.
    return getattr(annotation, "__name__", "") == "CallContext"


def _takes_argument(parameter: inspect.Parameter, context: str | None) -> bool:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return False
    return parameter.name not in ("self", "cls", context)


def _adapter(annotation: Any, label: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(_for_pydantic(annotation))
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        # Of an unknown class pydantic's text says how to configure a model, which does not help here.
        reason = "" if isinstance(error, PydanticSchemaGenerationError) else ": " + str(error).partition("\n")[0]
        raise InvalidSkillError(
            f"{label}: {getattr(annotation, '__name__', annotation)} cannot be made from JSON{reason}; "
            "annotate it with a JSON type, a pydantic model, a dataclass or a TypedDict",
            suggested_action="Annotate it with a JSON type, a pydantic model, a dataclass or a TypedDict",
        ) from None


def _for_pydantic(annotation: Any) -> Any:
    """Return *annotation* with each of typing's TypedDicts as one of typing_extensions.

    Before Python 3.12 pydantic refuses typing's, because they do not record which keys are required.
    """
    if sys.version_info >= (3, 12):
        return annotation
    if isinstance(annotation, type) and _is_dict(annotation) and type(annotation).__module__ == "typing":
        required: frozenset[str] = getattr(annotation, "__required_keys__", frozenset())
        fields = {
            name: _for_pydantic(hint) if name in required else NotRequired[_for_pydantic(hint)]
            for name, hint in typing.get_type_hints(annotation, include_extras=True).items()
        }
        make: Any = TypedDict  # in its functional form, which type checkers accept for literals only
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


def _converted(adapter: TypeAdapter[Any], value: Any, path: str, errors: list[SkillError]) -> Any:
    try:
        return adapter.validate_python(value)
    except PydanticError as error:
        errors += to_skill_errors(error, path)
        return None


def _raw_schema(annotation: Any, label: str, mode: Any = "validation") -> dict[str, Any]:
    adapter = annotation if isinstance(annotation, TypeAdapter) else _adapter(annotation, label)
    try:
        return adapter.json_schema(mode=mode)
    except (PydanticInvalidForJsonSchema, PydanticUserError):
        # pydantic's own text names its internal schemas, which a reader has never seen.
        shown = getattr(annotation, "__name__", annotation)
        raise InvalidSkillError(
            f"{label}: {str(shown)[:80]} has no JSON Schema; annotate it with a JSON type, a pydantic model, "
            "a dataclass or a TypedDict",
            suggested_action="Annotate it with a JSON type, a pydantic model, a dataclass or a TypedDict",
        ) from None


def _schema_of(adapter: TypeAdapter[Any], mode: str, label: str) -> dict[str, Any]:
    schema: dict[str, Any] = _with_naive_times(_tidy(_raw_schema(adapter, label, mode), closed=mode == "validation"))
    return schema


def _tidy(schema: dict[str, Any], *, closed: bool) -> dict[str, Any]:
    """Return *schema* as a person would write it: without generated titles, each definition where it is used once.

    With *closed*, objects refuse unknown keys unless their class allows them: pydantic ignores what it does not know,
    which would hide a misspelt argument.
    """
    definitions = schema.pop("$defs", {})
    uses = {name: _count(f"#/$defs/{name}", [schema, definitions]) for name in definitions}
    inline = {name for name, times in uses.items() if times == 1 and not _count(f"#/$defs/{name}", definitions[name])}

    def tidied(part: Any, *, is_schema: bool = True) -> Any:
        if isinstance(part, list):
            return [tidied(each) for each in part]
        if not isinstance(part, dict):
            return part
        if not is_schema:  # a map of names to schemas: a property may be called "title"
            return {name: tidied(each) for name, each in part.items()}
        reference = str(part.get("$ref", "")).removeprefix("#/$defs/")
        if reference in inline:
            part = {**definitions[reference], **{key: value for key, value in part.items() if key != "$ref"}}
        made: dict[str, Any] = {}
        for key, value in part.items():
            if key in ("title", "discriminator"):  # discriminator is OpenAPI's, not JSON Schema's
                continue
            made[key] = value if key in _VALUES else tidied(value, is_schema=key not in ("properties", "$defs"))
        if closed and "properties" in made and "additionalProperties" not in made:
            made["additionalProperties"] = False
        return made

    result: dict[str, Any] = tidied(schema)
    kept = {name: tidied(each) for name, each in definitions.items() if name not in inline}
    return {**result, "$defs": kept} if kept else result


_VALUES = ("default", "const", "enum", "examples", "required")


def _with_naive_times(schema: Any) -> Any:
    """Return *schema* with patterns for date-times that may lack an offset.

    The format ``date-time`` requires one (RFC 3339, section 5.6); a Python ``datetime`` is often naive, and an offset
    that is added here would be a guess. pydantic checks the rest of an argument, and refuses what the type excludes.
    """
    if isinstance(schema, list):
        return [_with_naive_times(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: each if key in _VALUES else _with_naive_times(each) for key, each in schema.items()}
    if made.get("type") == "string" and made.get("format") in _NAIVE and "pattern" not in made:
        made["pattern"], example = _NAIVE[made.pop("format")]
        made.setdefault("examples", [example])
    return made


_NAIVE = {
    "date-time": (r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}", "2026-01-31T09:30:00"),
    "time": (r"^\d{2}:\d{2}", "09:30:00"),
}


def _count(reference: str, part: Any) -> int:
    if isinstance(part, dict):
        own = part.get("$ref") == reference
        return own + sum(_count(reference, each) for each in part.values())
    return sum(_count(reference, each) for each in part) if isinstance(part, list) else 0


def _default_of(parameter: inspect.Parameter) -> Any:
    """Return the default, or ``PydanticUndefined`` for a required parameter."""
    default = parameter.default
    if isinstance(default, FieldInfo):
        return PydanticUndefined if default.is_required() else default.default
    return PydanticUndefined if default is inspect.Parameter.empty else default


def _plain_default(default: Any) -> Any:
    """Return the default as JSON, or ``PydanticUndefined`` for a value without a JSON form: the function fills it."""
    if default is PydanticUndefined:  # a Field with a default_factory
        return default
    try:
        return to_jsonable_python(default)
    except (PydanticSerializationError, ValueError):
        return PydanticUndefined


def _annotated_text(annotation: Any) -> str | None:
    """Return the text of ``Annotated[int, "In pixels"]``, which pydantic ignores."""
    metadata = getattr(annotation, "__metadata__", ())
    return next((part for part in metadata if isinstance(part, str)), None)


def _is_dict(annotation: Any) -> bool:
    # Both of typing's and typing_extensions' TypedDict; `typing.is_typeddict` knows only the first.
    return issubclass(annotation, dict) and hasattr(annotation, "__required_keys__")


def _written(function: Any) -> Any:
    """Return what has the annotations and the docstring: behind a partial, or inside an object that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _named(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _documented(text: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and what it says of each parameter."""
    summary = " ".join(re.split(r"\n\s*\n", text.strip())[0].split())
    described = {match[1]: " ".join(match[2].split()) for match in _SPHINX.finditer(text)}
    if section := re.search(
        r"^(?:Args|Arguments|Parameters)(?::|\n-{3,})[^\n]*\n((?:[ \t]+\S.*\n?|\w.*\n?|\n)+)", text, re.MULTILINE
    ):
        # Google's style indents the section, NumPy's underlines its heading with dashes.
        pattern = _NUMPY if "---" in section[0] else _GOOGLE
        described |= {match[1]: " ".join(match[2].split()) for match in pattern.finditer(section[1])}
    return summary, described


_SPHINX = re.compile(r"^:param (?:[\w\[\]., |]+ )?(\w+):\s*(.+?)(?=\n:|\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_GOOGLE = re.compile(
    r"^[ \t]{2,8}\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+?)"
    r"(?=\n[ \t]{2,8}\*{0,2}\w+\s*(?:\([^)]*\))?:|\n\s*\n|\n\w|\Z)",
    re.MULTILINE | re.DOTALL,
)
_NUMPY = re.compile(r"^(\w+)(?:\s*:[^\n]*)?\n[ \t]+(.+?)(?=\n\w|\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
