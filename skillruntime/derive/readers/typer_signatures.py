"""The parameters of a typer command, by its function's signature: each as click's
``option`` or ``argument``.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

from skillruntime.derive.command import TEXT, Unread, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.python_values import (
    Called,
    Enumeration,
    Function,
    Member,
    Scope,
    Symbol,
    dotted,
    evaluate,
)
from skillruntime.derive.readers.value_types import ranged, read_type

__all__ = ["WORDS", "typer_parameters"]

WORDS = ValueType({"type": "boolean"}, {"words": [[True, "true"], [False, "false"]]})
"""A boolean that is a word of its own: click's ``BOOL``."""

_LISTS = ("List", "list", "Sequence", "Set", "set", "Tuple", "tuple")
_DECLARED = ("typer.Option", "typer.Argument")
# typer passes these itself; they are not on the command line.
_CONTEXTS = ("typer.Context", "click.Context", "typer.CallbackParam")
_BOOLEAN = ValueType({"type": "boolean"})
_COMPUTED = ValueType(TEXT.schema, unsure="its type is computed")


@dataclass(frozen=True, slots=True)
class _Annotation:
    """``value`` is the type of one value; ``length`` that of a tuple of one type;
    ``made`` what ``Annotated`` adds.
    """

    value: ValueType = TEXT
    name: str = ""
    many: bool = False
    length: int | None = None
    made: tuple[Called, ...] = ()


def typer_parameters(
    function: Function, scope: Scope, unread: list[Unread]
) -> list[Called]:
    """Return the parameters of *function* as click declares them; what cannot be read
    is added to *unread*.
    """
    signature = function.args
    positional = [*signature.posonlyargs, *signature.args]
    # Defaults belong to the last positional parameters (``ast.arguments``).
    missing: list[ast.expr | None] = [None] * (
        len(positional) - len(signature.defaults)
    )
    pairs = list(zip(positional, [*missing, *signature.defaults], strict=True))
    pairs += list(zip(signature.kwonlyargs, signature.kw_defaults, strict=True))
    found: list[Called] = []
    for parameter, default_node in pairs:
        annotation = _read_annotation(parameter.annotation, scope)
        default = ABSENT if default_node is None else evaluate(default_node, scope)
        if annotation.name in _CONTEXTS:
            continue
        read = _as_click(parameter, annotation, default)
        if isinstance(read, Unread):
            unread.append(read)
        else:
            found.append(read)
    return found


def _as_click(
    parameter: ast.arg, annotation: _Annotation, default: Any
) -> Called | Unread:
    made = next((each for each in annotation.made if each.name in _DECLARED), None)
    declared = list(made.arguments) if made else []
    if isinstance(default, Called) and default.name in _DECLARED:
        made = default
        default, *declared = made.arguments or [made.named.get("default", ABSENT)]
    named = dict(made.named) if made else {}
    # ``typer.Option(...)``: typer's sign for "required".
    required = default in (Ellipsis, ABSENT)
    # A converter of the script's own: what it takes is not declared.
    if (
        not all(isinstance(each, str) for each in declared)
        or {"**", "parser", "click_type"} & named.keys()
    ):
        return Unread(
            parameter.arg,
            "its declaration is computed",
            parameter.lineno,
            is_needed=required,
        )
    named["required"] = required
    if not required:
        named["default"] = default.value if isinstance(default, Member) else default
    named["type"] = ranged(annotation.value, named)
    # typer: a parameter without a default is an argument, one with a default an option.
    is_option = made.name == "typer.Option" if made else not required
    return _called(parameter, annotation, named, declared, is_option=is_option)


def _called(
    parameter: ast.arg,
    annotation: _Annotation,
    named: dict[str, Any],
    declared: list[str],
    *,
    is_option: bool,
) -> Called:
    node = ast.copy_location(ast.Call(ast.Name(parameter.arg), [], []), parameter)
    is_bool = annotation.value.schema.get("type") == "boolean" and not annotation.many
    if not is_option:
        named["nargs"] = (annotation.length or -1) if annotation.many else 1
        named["type"] = WORDS if is_bool else named["type"]
        return Called("click.argument", [parameter.arg], named, node)
    # typer.main.get_click_param: the parameter's name with dashes, and the opposite
    # flag of a boolean option.
    long = parameter.arg.replace("_", "-")
    declared = declared or [f"--{long}/--no-{long}" if is_bool else f"--{long}"]
    named |= {"is_flag": is_bool, "nargs": annotation.length or 1}
    named["multiple"] = annotation.many and annotation.length is None
    return Called("click.option", [parameter.arg, *declared], named, node)


def _read_annotation(node: ast.expr | None, scope: Scope) -> _Annotation:
    """Return what the annotation *node* says; text, and ``unsure``, where it is
    unknown.
    """
    match node:
        case None:
            return _Annotation()
        case ast.Constant(value=None):
            return _Annotation(name="None")
        # A postponed annotation, ``"Path | None"`` (PEP 563).
        case ast.Constant(value=str(text)):
            try:
                return _read_annotation(ast.parse(text, mode="eval").body, scope)
            except (SyntaxError, ValueError):
                return _Annotation(_COMPUTED)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _either([left, right], scope)
        case ast.Subscript(value=outer, slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _subscripted(dotted(outer).rpartition(".")[2], parts, scope)
    value = evaluate(node, scope)
    if isinstance(value, Symbol):
        # ``list`` without a type of its items: texts (typer).
        if value.name.rpartition(".")[2] in _LISTS and value.name.startswith(
            ("builtins.", "typing.")
        ):
            return _Annotation(TEXT, value.name, many=True)
        return _Annotation(
            _BOOLEAN if value.name == "builtins.bool" else read_type(value), value.name
        )
    return _Annotation(
        read_type(value) if isinstance(value, Enumeration) else _COMPUTED
    )


def _either(parts: list[ast.expr], scope: Scope) -> _Annotation:
    kept = [
        each
        for each in (_read_annotation(part, scope) for part in parts)
        if each.name != "None"
    ]
    return kept[0] if len(kept) == 1 else _Annotation(_COMPUTED)


def _subscripted(outer: str, parts: list[ast.expr], scope: Scope) -> _Annotation:
    match outer:
        # ``Optional[int]`` is ``int | None`` (PEP 484).
        case "Optional" | "Union":
            return _either(parts, scope)
        # ``Annotated[int, typer.Option(...)]`` (PEP 593).
        case "Annotated":
            called = tuple(
                each
                for part in parts[1:]
                if isinstance(each := evaluate(part, scope), Called)
            )
            return replace(_read_annotation(parts[0], scope), made=called)
        case "Literal":
            values = [evaluate(part, scope) for part in parts]
            if all(isinstance(value, str) for value in values):
                return _Annotation(
                    ValueType({"type": "string", "enum": values}), "Literal"
                )
        # ``tuple[int, int]`` takes two words, ``tuple[int, ...]`` any number.
        case "Tuple" | "tuple":
            kinds = [
                _read_annotation(part, scope)
                for part in parts
                if evaluate(part, scope) is not Ellipsis
            ]
            if len({repr(kind.value) for kind in kinds}) == 1:
                return replace(
                    kinds[0],
                    many=True,
                    length=len(kinds) if len(kinds) == len(parts) else None,
                )
        case _ if outer in _LISTS:
            return replace(_read_annotation(parts[0], scope), many=True)
    return _Annotation(_COMPUTED)
