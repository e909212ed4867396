"""What an expression of a script comes to, as far as that can be read: a constant, a record, or UNKNOWN."""

from __future__ import annotations

import ast
import builtins
import re
from typing import Any

from skillruntime.derive.bindings import Bindings
from skillruntime.derive.foreign_calls import MAX_ITEMS, MAX_TEXT, call_method, items_of
from skillruntime.derive.operators import (
    ARITHMETIC,
    COMPARISONS,
    CONVERSIONS,
    SETS,
    are_hashable,
    is_costly,
    truth,
)
from skillruntime.derive.values import (
    UNKNOWN,
    ClassValue,
    EnumMember,
    FunctionValue,
    Imported,
    InstanceValue,
    Later,
    Made,
    PathText,
    Scope,
    Symbol,
    is_constant,
    is_open,
)

__all__ = ["LITERALS", "Exhausted", "Expressions"]

MAX_STEPS = 15_000

LITERALS = ("typing.Literal", "typing_extensions.Literal")

_BUILTINS = frozenset(dir(builtins))


class Exhausted(Exception):  # noqa: N818 - control flow: the script is too long-winded to be read to its end
    """The steps that one script may cost are used up."""


class Expressions(Bindings):
    """Evaluates expressions; what calls a function is left to who follows statements too."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = MAX_STEPS

    def evaluate(self, node: ast.expr | None, scope: Scope) -> Any:
        """Return what *node* comes to in *scope*."""
        self.steps -= 1
        if self.steps < 0:
            raise Exhausted
        if node is None:
            return None
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._name(node.id, scope)
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        return UNKNOWN if method is None else method(node, scope)

    def truth(self, node: ast.expr, scope: Scope) -> Any:
        """Return whether *node* is true, or UNKNOWN."""
        return truth(self.evaluate(node, scope))

    def imported(self, value: Imported) -> Any:
        """Return what an imported name stands for in the module that it comes from."""
        raise NotImplementedError

    def _name(self, name: str, scope: Scope) -> Any:
        try:
            found = scope.find(name)
        except KeyError:
            return Symbol(f"builtins.{name}") if name in _BUILTINS else UNKNOWN
        return self.imported(found) if isinstance(found, Imported) else found

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self.attribute(self.evaluate(node.value, scope), node.attr)

    def _list(self, node: ast.List, scope: Scope) -> Any:
        return self.made_here(self._items(node.elts, scope))

    def _set(self, node: ast.Set, scope: Scope) -> Any:
        items = self._items(node.elts, scope)
        return list(dict.fromkeys(items)) if is_constant(items) and are_hashable(items) else items

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Any:
        items = self._items(node.elts, scope)
        return UNKNOWN if items is UNKNOWN else tuple(items)

    def _items(self, nodes: list[ast.expr], scope: Scope) -> Any:
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inside = items_of(self.evaluate(node.value, scope))
                if inside is UNKNOWN:
                    return UNKNOWN
                items += inside
            else:
                items.append(self.evaluate(node, scope))
        return items if len(items) <= MAX_TEXT else UNKNOWN

    def _dict(self, node: ast.Dict, scope: Scope) -> Any:
        made: dict[Any, Any] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.evaluate(value_node, scope)
            if key_node is None:
                if not isinstance(value, dict):
                    return UNKNOWN
                made |= value
                continue
            key = self.evaluate(key_node, scope)
            if key is UNKNOWN or not are_hashable([key]):
                return UNKNOWN
            made[key] = value
        return self.made_here(made)

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Any:
        text = ""
        for part in node.values:
            value = self.evaluate(part, scope)
            if not isinstance(value, str):
                return UNKNOWN
            text += value
        return text if len(text) <= MAX_TEXT else UNKNOWN

    def _formattedvalue(self, node: ast.FormattedValue, scope: Scope) -> Any:
        value = self.evaluate(node.value, scope)
        spec = self.evaluate(node.format_spec, scope) if node.format_spec else ""
        if isinstance(value, EnumMember):
            is_plain = not value.is_text and not spec and node.conversion in (-1, 115)
            return value.text if is_plain else UNKNOWN
        if not is_constant(value) or not isinstance(spec, str):
            return UNKNOWN
        if re.search(r"\d{4}", spec) or len(str(value)) > MAX_TEXT:
            return UNKNOWN
        try:
            convert = CONVERSIONS.get(node.conversion, CONVERSIONS[-1])
            return format(convert(value), spec)
        except (TypeError, ValueError):
            return UNKNOWN

    def _binop(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        if isinstance(left, PathText) and isinstance(node.op, ast.Div):
            return PathText(f"{left}/{right}") if isinstance(right, str) else UNKNOWN
        if isinstance(left, list) and isinstance(right, list) and type(node.op) in SETS:
            return call_method(left, SETS[type(node.op)], [right], {})
        function = ARITHMETIC.get(type(node.op))
        is_sum = (
            isinstance(node.op, ast.Add | ast.BitOr) and type(left) is type(right) and isinstance(left, list | dict)
        )
        if function is None or not (is_sum or (is_constant(left) and is_constant(right))):
            return UNKNOWN
        if is_costly(left, node.op, right):
            return UNKNOWN
        try:
            return function(left, right)
        except Exception:
            return UNKNOWN

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Any:
        stops_at = isinstance(node.op, ast.Or)
        value: Any = UNKNOWN
        for each in node.values:
            value = self.evaluate(each, scope)
            known = truth(value)
            if known is UNKNOWN:
                return UNKNOWN
            if known is stops_at:
                return value
        return value

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Any:
        value = self.evaluate(node.operand, scope)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return UNKNOWN if known is UNKNOWN else not known
        if isinstance(value, int | float):
            match node.op:
                case ast.USub():
                    return -value
                case ast.UAdd():
                    return +value
        return UNKNOWN

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.evaluate(node.left, scope)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node, scope)
            if isinstance(op, ast.Is | ast.IsNot) and right is None and left is not UNKNOWN:
                result: Any = (left is None) is isinstance(op, ast.Is)
            elif isinstance(op, ast.In | ast.NotIn) and isinstance(right, dict) and is_constant(left):
                result = (left in right) is isinstance(op, ast.In)
            elif type(op) in COMPARISONS and is_constant(left) and is_constant(right):
                try:
                    result = bool(COMPARISONS[type(op)](left, right))
                except TypeError:
                    return UNKNOWN
            else:
                return UNKNOWN
            if not result:
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Any:
        known = self.truth(node.test, scope)
        if known is UNKNOWN:
            return UNKNOWN
        return self.evaluate(node.body if known else node.orelse, scope)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        value = self.evaluate(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            part = node.slice
            edges = [self.evaluate(edge, scope) for edge in (part.lower, part.upper, part.step)]
            if (
                isinstance(value, str | list | tuple)
                and not is_open(value)
                and all(isinstance(edge, int | None) for edge in edges)
            ):
                return value[slice(*edges)] if edges[2] != 0 else UNKNOWN
            return UNKNOWN
        key = self.evaluate(node.slice, scope)
        if isinstance(value, Symbol) and value.name in LITERALS:
            return Made(LITERALS[0], list(key) if isinstance(key, tuple) else [key], {}, node)
        if isinstance(value, ClassValue):
            return value.members.get(key, UNKNOWN) if isinstance(key, str) else UNKNOWN
        if isinstance(value, InstanceValue) and value.is_tuple and isinstance(key, int):
            value = list(value.names.values())
        if not isinstance(value, str | list | tuple | dict) or key is UNKNOWN or is_open(value):
            return UNKNOWN
        try:
            return value[key]
        except (KeyError, IndexError, TypeError):
            return UNKNOWN

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Any:
        value = self.evaluate(node.value, scope)
        scope.names[node.target.id] = value
        return value

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Any:
        return FunctionValue(node, scope, defaults=self.defaults_of(node.args, scope))

    def defaults_of(self, signature: ast.arguments, scope: Scope) -> dict[str, Any]:
        """Return the defaults of a function's parameters: what they come to where it is defined, once for all calls."""
        positional = [*signature.posonlyargs, *signature.args]
        last = positional[len(positional) - len(signature.defaults) :]
        pairs = [
            *zip(last, signature.defaults, strict=True),
            *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
        ]
        return {each.arg: self._default(node, scope) for each, node in pairs if node is not None}

    def _default(self, node: ast.expr, scope: Scope) -> Any:
        """What is made of names of other modules waits until it is needed: those modules may never be."""
        if any(isinstance(each, ast.Name) and _is_imported(each.id, scope) for each in ast.walk(node)):
            return Later(node)
        return self.evaluate(node, scope)

    def _starred(self, node: ast.Starred, scope: Scope) -> Any:
        return UNKNOWN

    def _await(self, node: ast.Await, scope: Scope) -> Any:
        return self.evaluate(node.value, scope)

    def _listcomp(self, node: ast.ListComp, scope: Scope) -> Any:
        found = self._comprehended(node.generators, Scope(parent=scope))
        return UNKNOWN if found is None else self.made_here([self.evaluate(node.elt, inner) for inner in found])

    def _setcomp(self, node: ast.SetComp, scope: Scope) -> Any:
        found = self._comprehended(node.generators, Scope(parent=scope))
        items = UNKNOWN if found is None else [self.evaluate(node.elt, inner) for inner in found]
        return list(dict.fromkeys(items)) if is_constant(items) and are_hashable(items) else UNKNOWN

    def _generatorexp(self, node: ast.GeneratorExp, scope: Scope) -> Any:
        found = self._comprehended(node.generators, Scope(parent=scope))
        return UNKNOWN if found is None else [self.evaluate(node.elt, inner) for inner in found]

    def _dictcomp(self, node: ast.DictComp, scope: Scope) -> Any:
        found = self._comprehended(node.generators, Scope(parent=scope))
        if found is None:
            return UNKNOWN
        pairs = [(self.evaluate(node.key, inner), self.evaluate(node.value, inner)) for inner in found]
        keys = [key for key, _ in pairs]
        return dict(pairs) if is_constant(keys) and are_hashable(keys) else UNKNOWN

    def _comprehended(self, generators: list[ast.comprehension], scope: Scope) -> list[Scope] | None:
        """Return a scope for each round, or None where the rounds cannot be told."""
        rounds = [scope]
        for generator in generators:
            following: list[Scope] = []
            for outer in rounds:
                items = items_of(self.evaluate(generator.iter, outer))
                if items is UNKNOWN:
                    return None
                for item in items:
                    inner = Scope(parent=outer)
                    self.bind(generator.target, item, inner)
                    kept = self._all_hold(generator.ifs, inner)
                    if kept is UNKNOWN or len(following) >= MAX_ITEMS:
                        return None
                    if kept:
                        following.append(inner)
            rounds = following
        return rounds

    def _all_hold(self, tests: list[ast.expr], scope: Scope) -> Any:
        """Return whether all *tests* hold, or UNKNOWN."""
        for test in tests:
            known = self.truth(test, scope)
            if known is UNKNOWN or not known:
                return known
        return True


def _is_imported(name: str, scope: Scope) -> bool:
    try:
        return isinstance(scope.find(name), Imported)
    except KeyError:
        return False
