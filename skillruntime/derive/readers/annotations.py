"""What an annotation of a script's parameter says: its type, whether it may be missing, and whether it is a list."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from skillruntime.derive.command import TEXT, ValueType
from skillruntime.derive.interpreter.expressions import LITERALS
from skillruntime.derive.interpreter.state import State, evaluate
from skillruntime.derive.interpreter.values import ClassValue, ForeignCall, Scope, Symbol
from skillruntime.derive.readers.value_types import DATE_TIME, read_type

__all__ = ["Annotation", "read_annotation"]

_LISTS = (
    "List",
    "list",
    "Sequence",
    "Iterable",
    "Set",
    "set",
    "Tuple",
    "tuple",
    "FrozenSet",
    "frozenset",
    "Collection",
)
_NAMED = {
    "datetime.datetime": DATE_TIME,
    "datetime.date": ValueType({"type": "string", "format": "date"}),
    "typer.FileText": ValueType({"type": "string", "format": "path"}),
    "typer.FileTextWrite": ValueType({"type": "string", "format": "path"}),
    "typer.FileBinaryRead": ValueType({"type": "string", "format": "path"}),
    "typer.FileBinaryWrite": ValueType({"type": "string", "format": "path"}),
    "builtins.bool": ValueType({"type": "boolean"}),
    "builtins.dict": ValueType({"type": "object"}, "json"),
    "typing.Any": ValueType({}, "json"),
}


@dataclass(frozen=True, slots=True)
class Annotation:
    """``value`` is the type of one value; ``length`` that of a tuple of one type; ``made`` what ``Annotated`` adds."""

    value: ValueType
    name: str = ""
    optional: bool = False
    many: bool = False
    length: int | None = None
    made: tuple[ForeignCall, ...] = ()


def read_annotation(state: State, node: ast.expr | None, scope: Scope) -> Annotation:
    """Return what the annotation *node* says; text, and ``unsure``, where it is unknown."""
    match node:
        case None:
            return Annotation(TEXT)
        case ast.Constant(value=None):
            return Annotation(TEXT, "None", True)
        # A postponed annotation, ``"Path | None"`` (PEP 563).
        case ast.Constant(value=str(text)):
            try:
                return read_annotation(state, ast.parse(text, mode="eval").body, scope)
            except SyntaxError:
                return Annotation(ValueType(TEXT.schema, unsure="its type is computed"))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _either([read_annotation(state, each, scope) for each in (left, right)])
        case ast.Subscript(value=outer, slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _subscripted(state, _last_name(outer), parts, scope)
    value = evaluate(state, node, scope)
    if isinstance(value, Symbol):
        bare = value.name.rpartition(".")[2]
        # ``list`` without a type of its items: texts (typer).
        if bare in _LISTS and value.name.startswith(("builtins.", "typing.")):
            return Annotation(TEXT, value.name, many=True)
        if value.name in _NAMED:
            return Annotation(_NAMED[value.name], value.name)
        return Annotation(read_type(state, value), value.name)
    if isinstance(value, ClassValue):
        return Annotation(read_type(state, value), value.name)
    if (
        isinstance(value, ForeignCall)
        and value.symbol in LITERALS
        and all(isinstance(each, str) for each in value.arguments)
    ):
        return Annotation(ValueType({"type": "string", "enum": value.arguments}), "Literal")
    return Annotation(ValueType(TEXT.schema, unsure="its type is computed"))


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _either(parts: list[Annotation]) -> Annotation:
    kept = [part for part in parts if part.name != "None"]
    if len(kept) == 1:
        return replace(kept[0], optional=len(kept) < len(parts))
    return Annotation(
        ValueType(TEXT.schema, unsure="it may have one of several types"), optional=len(kept) < len(parts)
    )


def _subscripted(state: State, outer: str, parts: list[ast.expr], scope: Scope) -> Annotation:
    match outer:
        # ``Optional[int]`` is ``int | None`` (PEP 484).
        case "Optional":
            return replace(read_annotation(state, parts[0], scope), optional=True)
        case "Union":
            return _either([read_annotation(state, part, scope) for part in parts])
        # ``Annotated[int, typer.Option(...)]`` (PEP 593).
        case "Annotated":
            made = tuple(
                each for each in (evaluate(state, part, scope) for part in parts[1:]) if isinstance(each, ForeignCall)
            )
            return replace(read_annotation(state, parts[0], scope), made=made)
        case "Literal":
            values = [evaluate(state, part, scope) for part in parts]
            if all(isinstance(value, str) for value in values):
                return Annotation(ValueType({"type": "string", "enum": values}), "Literal")
        # ``tuple[int, int]`` takes two words, ``tuple[int, ...]`` any number.
        case "Tuple" | "tuple":
            kinds = [read_annotation(state, part, scope) for part in parts if not _is_ellipsis(part)]
            # One flag, several words of one type.
            if len({repr(kind.value) for kind in kinds}) == 1:
                length = None if any(_is_ellipsis(part) for part in parts) else len(kinds)
                return replace(kinds[0], many=True, length=length)
        case _ if outer in _LISTS:
            return replace(read_annotation(state, parts[0], scope), many=True)
        case "dict" | "Dict":
            return Annotation(_NAMED["builtins.dict"], "builtins.dict")
    return Annotation(ValueType(TEXT.schema, unsure="its type is not known"))


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis
