"""Calls: functions of the script are followed, its classes instantiated, known libraries recorded."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from skillruntime.derive.interpreter.assignments import bind_name
from skillruntime.derive.interpreter.attributes import attribute
from skillruntime.derive.interpreter.known_calls import call_foreign, call_method, changes, items_of
from skillruntime.derive.interpreter.relevance import nodes_of
from skillruntime.derive.interpreter.state import (
    EarlyEnds,
    LoopLeft,
    Returned,
    ScriptError,
    State,
    call,
    evaluate,
    follow,
)
from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    BoundMethod,
    ClassValue,
    DeferredDefault,
    ForeignCall,
    FunctionValue,
    InstanceValue,
    Model,
    Scope,
    Symbol,
    is_constant,
    make_open,
)
from skillruntime.derive.interpreter.word_calls import call_method_on_words, call_on_words, leave_script, note_call
from skillruntime.derive.interpreter.word_operations import BY_HAND
from skillruntime.derive.interpreter.words import Words, holds_words

__all__ = ["call_value"]

MAX_CALL_DEPTH = 24
MAX_TRACE_DEPTH = 12
"""A trace is repeated for each number of words, and a recursive function over words never ends by itself."""

_DECLARES = ("add_argument", "add_parser", "add_argument_group", "add_mutually_exclusive_group", "add_subparsers")
_OBJECT = Symbol("builtins.object")
_HARMLESS = ("builtins.", "argcomplete.", "rich_argparse.", "sys.", "logging.")
"""Modules whose functions never add an argument to a parser that they are given."""


def call_value(state: State, function: Any, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """Return the result of calling *function*."""
    match function:
        case FunctionValue():
            return _call_function(state, function, arguments, named, node)
        case ClassValue():
            return _instantiate(state, function, arguments, named, node)
        case Model():
            return function.call(state, arguments, named, node)
        case BoundMethod(receiver=Model() as model):
            return model.call_method(state, function.name, arguments, named, node)
        case BoundMethod():
            return _call_bound(state, function, arguments, named, node)
        case ForeignCall():
            apply = state.library.get("decorate")
            return apply(state, [function, *arguments], named, node) if apply else UNKNOWN
        case Symbol():
            return _call_symbol(state, function.name, arguments, named, node)
    _leave(state, "a function that cannot be read", arguments, named, node)
    # ``unknown().add_argument(...)``: an argument of some parser, which one is unknown.
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _DECLARES:
        state.unread_lines.append(node.lineno)
    if state.trace is not None:
        note_call(state, "", arguments, node)
        state.trace.pass_on([*arguments, *named.values()], node)
    return UNKNOWN


def _call_bound(state: State, method: BoundMethod, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    receiver, name = method.receiver, method.name
    if state.trace is not None:
        values = [receiver, *arguments, *named.values()]
        if isinstance(receiver, list) or any(holds_words(each) for each in values):
            return call_method_on_words(state, receiver, name, arguments, named, node)
    elif changes(receiver, name) and state.is_doubtful(receiver):
        make_open(receiver)
    result = call_method(receiver, name, arguments, named)
    return result if name in ("get", "setdefault", "pop") else state.made_here(result)


def _call_function(
    state: State, function: FunctionValue, arguments: list[Any], named: dict[str, Any], node: ast.AST
) -> Any:
    trace = state.trace
    spread = isinstance(node, ast.Call) and any(isinstance(each, ast.Starred) for each in node.args)
    if trace is not None and isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
        at_module = function.scope is state.module and not spread
        if at_module and not trace.concerns(function.name, [*arguments, *named.values()]):
            return UNKNOWN
        # A function that is followed somewhere is not looked at aside.
        trace.entered.add(id(function.node))
    if state.depth >= (MAX_CALL_DEPTH if trace is None else MAX_TRACE_DEPTH):
        _leave(state, function.name, arguments, named, function.node)
        for each in (*arguments, *named.values()):
            if trace is not None and isinstance(each, Words):
                trace.lose(BY_HAND, node)
        return UNKNOWN
    scope = Scope(parent=function.scope, label=function.name)
    _bind_parameters(state, function, arguments, named, scope, spread=spread)
    if isinstance(function.node, ast.Lambda):
        return evaluate(state, function.node.body, scope)
    state.depth += 1
    level, branches, early = state.uncertain, state.branches, state.early
    state.early = EarlyEnds()
    try:
        follow(state, function.node.body, scope)
        _doubt_declarations(state)
        return _fallen_through(state, function.node)
    except Returned as returned:
        _doubt_declarations(state)
        return _settled(state, returned.value)
    except LoopLeft:  # ``break`` outside a loop, which Python itself refuses
        return UNKNOWN
    finally:
        state.early = early
        state.depth -= 1
        state.uncertain, state.branches = level, branches


def _doubt_declarations(state: State) -> None:
    """After a function that may have ended early, doubt what it declared since, on parsers older than that."""
    if state.early.values:
        for declared, made, doubt in state.doubts:
            if declared > state.early.since > made:
                doubt.append(True)


def _fallen_through(state: State, node: ast.AST) -> Any:
    """Return the result of a function that came to its end, though it may have returned something before."""
    models = [each for each in state.early.values if isinstance(each, Model | InstanceValue)]
    if models:
        return models[-1]
    if any(each is not None for each in state.early.values):
        return UNKNOWN
    return UNKNOWN if state.trace is None and _is_generator(state, node) else None


def _settled(state: State, value: Any) -> Any:
    """Return the result of a function that may have returned something else before: a constant must be the same."""
    if isinstance(value, Model | InstanceValue | FunctionValue | ClassValue):
        return value
    same = all(each is value or (is_constant(each) and each == value) for each in state.early.values)
    return value if same else UNKNOWN


def _is_generator(state: State, node: ast.AST) -> bool:
    if id(node) not in state.generators:
        state.generators[id(node)] = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in nodes_of(node))
    return state.generators[id(node)]


def _bind_parameters(
    state: State,
    function: FunctionValue,
    arguments: list[Any],
    named: dict[str, Any],
    scope: Scope,
    *,
    spread: bool,
) -> None:
    signature, trace = function.node.args, state.trace
    given = [*([function.receiver] if function.receiver is not None else []), *arguments]
    positional = [*signature.posonlyargs, *signature.args]
    names = [each.arg for each in positional]
    # The number of arguments decides only where words are spread: ``main(*sys.argv[1:])``.
    if trace is not None:
        if spread:
            trace.expect(len(names), len(given))
        if len(given) > len(names) and signature.vararg is None:
            raise ScriptError("TypeError")
    for index, name in enumerate([*names, *(each.arg for each in signature.kwonlyargs)]):
        if index < min(len(given), len(names)):
            value = given[index]
            if trace is not None and spread:
                trace.touch(value, positional[index])
                trace.read(value, positional[index])
        elif name in named:
            value = named[name]
        elif name in function.defaults:
            value = function.defaults[name]
            if isinstance(value, DeferredDefault):
                value = evaluate(state, value.node, function.scope)
        elif trace is not None and spread and index < len(names) and "**" not in named:
            raise ScriptError("TypeError")
        else:
            value = UNKNOWN
        bind_name(state, name, value, scope)
    if signature.vararg:
        rest = given[len(names) :]
        bind_name(state, signature.vararg.arg, Words(rest) if trace is not None and spread else rest, scope)
    if signature.kwarg:
        others = {key: value for key, value in named.items() if key not in scope.names}
        scope.names[signature.kwarg.arg] = UNKNOWN if "**" in others else others


def _instantiate(state: State, kind: ClassValue, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    # ``Colour("red")`` looks a member up by its value.
    if kind.members and arguments:
        return next((member for member in kind.members.values() if member.value == arguments[0]), UNKNOWN)
    instance = state.made_here(InstanceValue(kind))
    # ``class Parser(argparse.ArgumentParser)``: the object records through the model of the library's class.
    base = next((name for name in state.library if kind.descends_from(name)), None)
    if base is not None:
        instance.names["__library__"] = base
    try:
        constructor = kind.find("__init__")
    except KeyError:
        if base is not None:
            instance.names["__parser__"] = state.library[base](state, arguments, named, node)
            instance.names["__parser__"].kind = kind
        # A named tuple or a dataclass: the annotated names are the parameters, in their order.
        elif kind.descends_from("typing.NamedTuple") or (kind.node and kind.node.decorator_list):
            fields = kind.names.get("_fields") or _annotated_names(kind.node)
            instance.names |= {name: kind.names.get(name, UNKNOWN) for name in fields}
            instance.names |= dict(zip(fields, arguments, strict=False)) | named
        return instance
    if isinstance(constructor, FunctionValue):
        _call_function(state, replace(constructor, receiver=instance), arguments, named, node)
    return instance


def _call_symbol(state: State, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    known = state.library.get(name)
    if known is not None:
        return known(state, arguments, named, node)
    leave_script(state, name, arguments, node)
    note_call(state, name, arguments, node)
    match name, arguments:
        # Undefined is not a number, and is false like None.
        case "node.parseInt" | "node.Number", [None, *_]:
            return None
        case "node.isNaN" | "node.isFinite" | "node.isInteger", [None]:
            return name == "node.isNaN"
        case "node.item", [dict(), None]:
            return None
        case "types.SimpleNamespace", [] if state.trace is not None:
            return dict(named)
        case "node.reduce", [list() as listed, FunctionValue() as function, value]:
            for each in listed:
                value = call(state, function, [value, each], {}, node)
            return value
        case "node.item", [list() as listed, int(index)] if not holds_words(listed):
            return listed[index] if -len(listed) <= index < len(listed) else None
        # A default counts only for the script's own objects: an unknown owner may have the attribute.
        case "builtins.getattr", [owner, str(attribute_name), *default]:
            found = attribute(state, owner, attribute_name)
            return default[0] if found is UNKNOWN and default and isinstance(owner, InstanceValue) else found
        case "builtins.hasattr", [Symbol(name="argparse"), "BooleanOptionalAction"]:
            return True  # it is there since Python 3.9
        case "builtins.map", [FunctionValue() as function, items] if (listed := items_of(items)) is not UNKNOWN:
            return [call(state, function, [each], {}, node) for each in listed]
        case (("asyncio.run" | "anyio.run" | "trio.run" | "sys.exit" | "builtins.exit"), [FunctionValue() as main, *_]):
            return call(state, main, arguments[1:], {}, node)
        case (("typing.get_args" | "typing_extensions.get_args"), [ForeignCall(symbol="typing.Literal") as literal]):
            return tuple(literal.arguments)
        case "collections.namedtuple", [str(title), fields, *_]:
            return _named_tuple(title, fields)
        # Tables of actions are built from ``dir(Commands)``, filtered by a prefix.
        case "builtins.dir", [ClassValue() as kind] if not kind.members and kind.bases in ([], [_OBJECT]):
            return sorted({*kind.names, *dir(object), "__dict__", "__module__", "__weakref__"})
        case "functools.partial", [function, *bound]:
            return _Partial(function, bound, named)
        case (("typing.NewType" | "typing.cast"), [_, inner]):
            return inner
    if state.trace is not None and any(holds_words(each) for each in (*arguments, *named.values())):
        return call_on_words(state, name, arguments, named, node)
    if name == "builtins.map" and len(arguments) == 2 and (listed := items_of(arguments[1])) is not UNKNOWN:
        return [call(state, arguments[0], [each], {}, node) for each in listed]
    result = call_foreign(name, arguments, named)
    if result is not UNKNOWN:
        return state.made_here(result)
    # ``add_common_options(parser)`` of another package may add arguments.
    if not name.startswith(_HARMLESS):
        _leave(state, name, arguments, named, node)
    return ForeignCall(name, arguments, named, node) if name.startswith(state.recorded or ("\0",)) else UNKNOWN


def _leave(state: State, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> None:
    """Let each model know that it was passed to the function *name*, whose source is not available."""
    for value in (*arguments, *named.values()):
        if isinstance(value, Model):
            value.leave(name, node)


class _Partial(Model):
    """The result of ``functools.partial``."""

    def __init__(self, function: Any, arguments: list[Any], named: dict[str, Any]) -> None:
        self.function, self.arguments, self.named = function, arguments, named

    def call(self, state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Call the function with both."""
        return call(state, self.function, [*self.arguments, *arguments], self.named | named, node)


def _named_tuple(title: str, fields: Any) -> Any:
    """Return the class that ``collections.namedtuple`` makes."""
    names = fields.replace(",", " ").split() if isinstance(fields, str) else fields
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        return UNKNOWN
    return ClassValue(title, [Symbol("typing.NamedTuple")], {"_fields": tuple(names)})


def _annotated_names(node: ast.ClassDef | None) -> list[str]:
    body = node.body if node else []
    return [each.target.id for each in body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
