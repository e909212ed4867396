"""The value of each kind of expression: a constant, a record, or UNKNOWN. Nothing is executed."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Mapping
from typing import Any

from skillruntime.derive.interpreter.assignments import bind
from skillruntime.derive.interpreter.attributes import attribute, bound
from skillruntime.derive.interpreter.comprehensions import comprehension, dict_comprehension
from skillruntime.derive.interpreter.imports import imported
from skillruntime.derive.interpreter.known_calls import MAX_TEXT, items_of
from skillruntime.derive.interpreter.operator_expressions import (
    attempt,
    binary_expression,
    boolean_expression,
    comparison,
    unary_expression,
)
from skillruntime.derive.interpreter.operators import (
    CONVERSIONS,
    are_hashable,
)
from skillruntime.derive.interpreter.relevance import nodes_of
from skillruntime.derive.interpreter.state import State, call, decide, doubting, evaluate, unknown
from skillruntime.derive.interpreter.trace import Trace
from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    BoundMethod,
    ClassValue,
    DeferredDefault,
    EnumMember,
    ForeignCall,
    FunctionValue,
    Imported,
    InstanceValue,
    Model,
    Scope,
    Symbol,
    is_constant,
    is_open,
    same_value,
)
from skillruntime.derive.interpreter.word_operations import item, part
from skillruntime.derive.interpreter.words import Converted, Count, Head, Word, Words, holds_words

__all__ = ["EXPRESSIONS", "LITERALS", "defaults_of"]

LITERALS = ("typing.Literal", "typing_extensions.Literal")

_PRINT = Symbol("builtins.print")
_BUILTINS = {name: Symbol(f"builtins.{name}") for name in dir(builtins)}


def _name(state: State, node: ast.Name, scope: Scope) -> Any:
    name = node.id
    inside: Scope | None = scope
    while inside is not None:
        if name in inside.names:
            found = inside.names[name]
            return imported(state, found) if isinstance(found, Imported) else found
        inside = inside.parent
    found = UNKNOWN if state.trace is None else _looked_up(state, state.trace, name)
    # A name that the script never assigns is Python's own, or an error.
    return _BUILTINS.get(name, UNKNOWN) if found is UNKNOWN else found


def _looked_up(state: State, trace: Trace, name: str) -> Any:
    """Return a function, constant or import of the module: a trace skips their statements, and reads them on demand."""
    relevance, module = trace.relevance, state.module
    if (function := relevance.functions.get(name)) is not None:
        return FunctionValue(function, module, defaults=defaults_of(state, function.args, module))
    if (value := relevance.constants.get(name)) is not None:
        module.names[name] = UNKNOWN  # for a constant that refers to itself
        module.names[name] = evaluate(state, value, module)
        return module.names[name]
    return relevance.imports.get(name, UNKNOWN)


def _attribute(state: State, node: ast.Attribute, scope: Scope) -> Any:
    if state.trace is not None and id(node) in state.trace.relevance.argv:
        state.trace.relevance.visited.add(id(node))
        return state.trace.words
    owner = evaluate(state, node.value, scope)
    if state.trace is not None:
        state.trace.touch(owner, node)
        if isinstance(owner, Word | Converted | Head):
            return UNKNOWN
    return attribute(state, owner, node.attr)


def _call(state: State, node: ast.Call, scope: Scope) -> Any:
    # ``super()`` without arguments finds ``self`` and ``__class__`` in the scope, as the compiler's cell does.
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
        return _above(scope)
    function = _function_of(state, node.func, scope)
    arguments: list[Any] = []
    for each in node.args:
        if isinstance(each, ast.Starred):
            value = evaluate(state, each.value, scope)
            # What is printed is seen, and goes nowhere else.
            is_followed = isinstance(function, FunctionValue) or function == _PRINT
            if isinstance(value, Words) and state.trace is not None and not is_followed:
                state.trace.lose(f"the words are passed on to {ast.unparse(node.func)[:40]}", node)
            items = items_of(value)
            arguments += [UNKNOWN] if items is UNKNOWN else items
        else:
            arguments.append(evaluate(state, each, scope))
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        value = evaluate(state, keyword.value, scope)
        if keyword.arg is not None:
            named[keyword.arg] = value
        elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
            named |= value
        else:
            # ``f(**options)`` with unknown options: any parameter may be given.
            named["**"] = UNKNOWN
    # ``OptionParser.__init__(self, ...)``, as classes wrote it before ``super()``.
    if isinstance(function, Symbol) and arguments and isinstance(receiver := arguments[0], InstanceValue):
        base, _, name = function.name.rpartition(".")
        if receiver.names.get("__library__") == base:
            return _Above(receiver, None).call_method(state, name, arguments[1:], named, node)
    return call(state, function, arguments, named, node)


def _function_of(state: State, node: ast.expr, scope: Scope) -> Any:
    """Return what is called; a method of a word is not yet a use of the word."""
    if state.trace is None or not isinstance(node, ast.Attribute) or id(node) in state.trace.relevance.argv:
        return evaluate(state, node, scope)
    owner = evaluate(state, node.value, scope)
    if isinstance(owner, Word | Converted | Head):
        return BoundMethod(owner, node.attr)
    return attribute(state, owner, node.attr)


def _above(scope: Scope) -> Any:
    """Return what ``super()`` gives."""
    try:
        receiver, kind = scope.find("self"), scope.find("__class__")
    except KeyError:
        return UNKNOWN
    return _Above(receiver, next((base for base in kind.bases if isinstance(base, ClassValue)), None))


class _Above(Model):
    """The object of ``super()``."""

    def __init__(self, receiver: Any, kind: ClassValue | None) -> None:
        self.receiver, self.kind = receiver, kind

    def call_method(self, state: State, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Call the method of the class above; of a library's class, on the model of its object."""
        if self.kind is not None:
            found = bound(state, self.receiver, self.kind, name)
            if found is not UNKNOWN:
                return call(state, found, arguments, named, node)
        if not isinstance(self.receiver, InstanceValue):
            return UNKNOWN
        base = self.receiver.names.get("__library__")
        if name == "__init__" and base is not None:
            self.receiver.names["__parser__"] = state.library[base](state, arguments, named, node)
            self.receiver.names["__parser__"].kind = self.receiver.kind
            return None
        parser = self.receiver.names.get("__parser__")
        return parser.call_method(state, name, arguments, named, node) if parser is not None else UNKNOWN


def _sequence(state: State, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Any:
    items: list[Any] = []
    of_words = False
    for each in node.elts:
        if isinstance(each, ast.Starred):
            value = evaluate(state, each.value, scope)
            inside = items_of(value)
            of_words |= isinstance(value, Words)
            if inside is UNKNOWN and state.trace is None:
                return UNKNOWN
            items += [UNKNOWN] if inside is UNKNOWN else inside
        else:
            items.append(evaluate(state, each, scope))
    if len(items) > MAX_TEXT:
        return UNKNOWN
    # ``[sys.argv[0], *sys.argv[2:]]`` has another length for another number of words.
    if of_words:
        return Words(items)
    if isinstance(node, ast.Set):
        return list(dict.fromkeys(items)) if is_constant(items) and are_hashable(items) else items
    return tuple(items) if isinstance(node, ast.Tuple) else state.made_here(items)


def _dict(state: State, node: ast.Dict, scope: Scope) -> Any:
    made: dict[Any, Any] = {}
    is_known = True
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        key = None if key_node is None else evaluate(state, key_node, scope)
        value = evaluate(state, value_node, scope)
        if key_node is None and isinstance(value, dict):
            made |= value
        elif key_node is None or key is UNKNOWN or holds_words(key) or not are_hashable([key]):
            is_known = False
            unknown(state, node, value)
        else:
            made[key] = value
    return state.made_here(made) if is_known else unknown(state, node, made)


def _joined_text(state: State, node: ast.JoinedStr, scope: Scope) -> Any:
    parts = [evaluate(state, each, scope) for each in node.values]
    if not all(isinstance(each, str) for each in parts):
        return UNKNOWN
    text = "".join(parts)
    return text if len(text) <= MAX_TEXT else UNKNOWN


def _formatted(state: State, node: ast.FormattedValue, scope: Scope) -> Any:
    value = evaluate(state, node.value, scope)
    spec = evaluate(state, node.format_spec, scope) if node.format_spec else ""
    # Python 3.12 changed how a mixed-in enumeration is formatted; only the plain case is the same everywhere.
    if isinstance(value, EnumMember):
        is_plain = not value.is_text and not spec and node.conversion in (-1, 115)
        return value.text if is_plain else UNKNOWN
    if not is_constant(value) or isinstance(value, Count) or not isinstance(spec, str):
        return unknown(state, node, value)
    # ``f"{x:>99999999}"`` would fill the memory.
    if re.search(r"\d{4}", spec) or len(str(value)) > MAX_TEXT:
        return UNKNOWN
    try:
        convert = CONVERSIONS.get(node.conversion, CONVERSIONS[-1])
        return format(convert(value), spec)
    except (TypeError, ValueError):
        return UNKNOWN


def _conditional(state: State, node: ast.IfExp, scope: Scope) -> Any:
    known = decide(state, evaluate(state, node.test, scope))
    if known is not UNKNOWN:
        return evaluate(state, node.body if known else node.orelse, scope)
    found = []
    for side, each in enumerate((node.body, node.orelse)):
        with doubting(state, node, side):
            found.append(attempt(state, each, scope))
    words = [each for each in found if isinstance(each, Word | Converted)]
    # ``int(word) if word.isdigit() else 5``: where the word is used, it is this one.
    if len(words) == 1:
        return words[0]
    return found[0] if same_value(*found) else UNKNOWN


def _subscript(state: State, node: ast.Subscript, scope: Scope) -> Any:
    value = evaluate(state, node.value, scope)
    if isinstance(node.slice, ast.Slice):
        edges = [evaluate(state, edge, scope) for edge in (node.slice.lower, node.slice.upper, node.slice.step)]
        return _slice(state, value, edges, node)
    key = evaluate(state, node.slice, scope)
    # ``Mode = Literal["a", "b"]``, later ``choices=get_args(Mode)``.
    if isinstance(value, Symbol) and value.name in LITERALS:
        return ForeignCall(LITERALS[0], list(key) if isinstance(key, tuple) else [key], {}, node)
    # ``Colour["RED"]``; a subscripted generic class is not a value that any reader needs.
    if isinstance(value, ClassValue):
        return value.members.get(key, UNKNOWN) if isinstance(key, str) else UNKNOWN
    if isinstance(value, InstanceValue) and value.is_tuple and isinstance(key, int):
        value = list(value.names.values())
    if state.trace is not None and (isinstance(value, list | tuple | dict) or holds_words(value) or holds_words(key)):
        return item(state.trace, value, key, node)
    if not isinstance(value, str | list | tuple | dict) or key is UNKNOWN or is_open(value):
        return UNKNOWN
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        return UNKNOWN


def _slice(state: State, value: Any, edges: list[Any], node: ast.AST) -> Any:
    if state.trace is not None and holds_words(value):
        return part(state.trace, value, edges, node)
    is_sequence = isinstance(value, str | list | tuple) and not is_open(value)
    if not is_sequence or not all(isinstance(edge, int | None) for edge in edges) or edges[2] == 0:
        return UNKNOWN
    return value[slice(*edges)]


def _named(state: State, node: ast.NamedExpr, scope: Scope) -> Any:
    value = evaluate(state, node.value, scope)
    bind(state, node.target, value, scope)
    return value


def _lambda(state: State, node: ast.Lambda, scope: Scope) -> Any:
    return FunctionValue(node, scope, defaults=defaults_of(state, node.args, scope))


def defaults_of(state: State, signature: ast.arguments, scope: Scope) -> dict[str, Any]:
    """Return the defaults of a function's parameters: Python evaluates them once, where the function is defined."""
    positional = [*signature.posonlyargs, *signature.args]
    last = positional[len(positional) - len(signature.defaults) :]
    pairs = [
        *zip(last, signature.defaults, strict=True),
        *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
    ]
    return {each.arg: _default(state, node, scope) for each, node in pairs if node is not None}


def _default(state: State, node: ast.expr, scope: Scope) -> Any:
    """A default made of names of other modules waits for a call that needs it: those modules may never be read."""
    if state.trace is not None:
        return DeferredDefault(node)
    if isinstance(node, ast.Constant):
        return node.value
    if any(isinstance(each, ast.Name) and _is_imported(each.id, scope) for each in nodes_of(node)):
        return DeferredDefault(node)
    return evaluate(state, node, scope)


def _is_imported(name: str, scope: Scope) -> bool:
    try:
        return isinstance(scope.find(name), Imported)
    except KeyError:
        return False


def _await(state: State, node: ast.Await, scope: Scope) -> Any:
    return evaluate(state, node.value, scope)


EXPRESSIONS: Mapping[type, Callable[[State, Any, Scope], Any]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.JoinedStr: _joined_text,
    ast.FormattedValue: _formatted,
    ast.BinOp: binary_expression,
    ast.BoolOp: boolean_expression,
    ast.UnaryOp: unary_expression,
    ast.Compare: comparison,
    ast.IfExp: _conditional,
    ast.Subscript: _subscript,
    ast.NamedExpr: _named,
    ast.Lambda: _lambda,
    ast.Await: _await,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.DictComp: dict_comprehension,
}
