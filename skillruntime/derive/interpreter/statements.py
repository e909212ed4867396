"""The effect of each kind of statement."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from skillruntime.derive.interpreter.assignments import bind, bind_name, remove
from skillruntime.derive.interpreter.expressions import defaults_of
from skillruntime.derive.interpreter.imports import follow_import, follow_import_from
from skillruntime.derive.interpreter.known_calls import items_of
from skillruntime.derive.interpreter.matching import fits
from skillruntime.derive.interpreter.operator_expressions import binary
from skillruntime.derive.interpreter.relevance import dotted
from skillruntime.derive.interpreter.state import (
    LoopLeft,
    Returned,
    ScriptError,
    ScriptExit,
    State,
    call,
    decide,
    doubting,
    evaluate,
    follow,
    fork,
    kept,
    perhaps,
    use,
)
from skillruntime.derive.interpreter.trace import Trace
from skillruntime.derive.interpreter.usage_errors import gives_up
from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    BoundMethod,
    ClassValue,
    EnumMember,
    FunctionValue,
    Imported,
    InstanceValue,
    Model,
    Scope,
    Symbol,
    same_value,
)
from skillruntime.derive.interpreter.words import Remaining, Word, Words

__all__ = ["STATEMENTS"]

ROUNDS = 40
"""Rounds of a loop that a trace follows."""

_ENUMS = tuple(f"enum.{name}" for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"))


def _expression(state: State, node: ast.Expr, scope: Scope) -> None:
    use(state, node.value, scope)


def _assign(state: State, node: ast.Assign, scope: Scope) -> None:
    value = evaluate(state, node.value, scope)
    for target in node.targets:
        bind(state, target, value, scope)


def _annotated(state: State, node: ast.AnnAssign, scope: Scope) -> None:
    if node.value is not None:
        bind(state, node.target, evaluate(state, node.value, scope), scope)


def _augmented(state: State, node: ast.AugAssign, scope: Scope) -> None:
    before = evaluate(state, node.target, scope)
    value = evaluate(state, node.value, scope)
    if state.trace is not None:
        if id(node.target) in state.trace.relevance.argv:
            state.trace.lose("the script changes sys.argv", node)
        result = binary(state, node.op, before, value, node)
        if isinstance(node.target, ast.Name):
            bind(state, node.target, result, scope)
    elif isinstance(before, list) and isinstance(
        node.op, ast.Add
    ):  # ``list.__iadd__`` changes the list that others hold
        call(state, BoundMethod(before, "extend"), [value], {}, node)
    else:
        bind(state, node.target, binary(state, node.op, before, value, node), scope)


def _delete(state: State, node: ast.Delete, scope: Scope) -> None:
    for target in node.targets:
        remove(state, target, scope)


def _global(state: State, node: ast.Global, scope: Scope) -> None:
    scope.outside |= set(node.names)


def _nonlocal(state: State, node: ast.Nonlocal, scope: Scope) -> None:
    for name in node.names:
        outer = scope.parent
        while outer is not None:
            if name in outer.names:
                outer.names[name] = UNKNOWN
                break
            outer = outer.parent


def _return(state: State, node: ast.Return, scope: Scope) -> None:
    raise Returned(use(state, node.value, scope))


def _break(state: State, node: ast.Break, scope: Scope) -> None:
    raise LoopLeft(True)


def _continue(state: State, node: ast.Continue, scope: Scope) -> None:
    raise LoopLeft(False)


def _raise(state: State, node: ast.Raise, scope: Scope) -> None:
    if state.trace is None:
        if isinstance(node.exc, ast.Call):
            for each in node.exc.args:  # raise SystemExit(main())
                evaluate(state, each, scope)
        return
    # A bare ``raise`` repeats the exception that is being handled.
    if node.exc is None:
        raise ScriptError("Exception")
    name = dotted(node.exc.func) if isinstance(node.exc, ast.Call) else dotted(node.exc)
    if isinstance(node.exc, ast.Call):
        evaluate(state, node.exc, scope)
    # ``raise SystemExit`` without a status ends the script with 0.
    if name == "SystemExit":
        raise ScriptExit(state.trace.usage_shown)
    raise ScriptError(name.rpartition(".")[2])


def _assert(state: State, node: ast.Assert, scope: Scope) -> None:
    if state.trace is not None and decide(state, evaluate(state, node.test, scope)) is False:
        raise ScriptError("AssertionError")


def _function(state: State, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
    if state.trace is not None:
        _traced_function(state, state.trace, node, scope)
        return
    value: Any = FunctionValue(node, scope, defaults=defaults_of(state, node.args, scope))
    for decorator in reversed(node.decorator_list):
        applied = evaluate(state, decorator, scope)
        # ``@contextmanager``, ``@lru_cache``, ``@retry``.
        if isinstance(applied, Symbol) and applied.name not in state.library:
            continue  # a decorator of another library is assumed to keep the signature
        result = call(state, applied, [value], {}, decorator)
        value = value if result is UNKNOWN or result is None else result
    bind_name(state, node.name, value, scope)


def _traced_function(state: State, trace: Trace, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
    if scope is state.module:
        return  # read on demand
    bind_name(state, node.name, FunctionValue(node, scope, defaults=defaults_of(state, node.args, scope)), scope)
    words = {name for name, value in scope.names.items() if isinstance(value, Words)}
    if words and trace.relevance.mentions(node, words):
        trace.nested.append(node)


def _class(state: State, node: ast.ClassDef, scope: Scope) -> None:
    kind = ClassValue(node.name, [evaluate(state, base, scope) for base in node.bases], {}, node=node)
    body = Scope(kind.names, Scope({"__class__": kind}, scope))
    follow(state, node.body, body)
    # `fork` may have replaced the dictionary of the scope.
    kind.names = body.names
    if kind.descends_from(*_ENUMS):
        kind.members |= _members(node, kind)
    for decorator in node.decorator_list:
        evaluate(state, decorator, scope)
    scope.names[node.name] = kind


def _if(state: State, node: ast.If, scope: Scope) -> None:
    known = decide(state, evaluate(state, node.test, scope))
    if known is UNKNOWN:
        fork(state, node, scope, [_block(state, each, scope) for each in (node.body, node.orelse)])
        return
    chosen, other = (node.body, node.orelse) if known else (node.orelse, node.body)
    if state.trace is not None and state.trace.only_complains(chosen, instead=other):
        state.trace.usage_shown = True
    follow(state, chosen, scope)


def _block(state: State, statements: list[ast.stmt], scope: Scope) -> Callable[[], bool]:
    """Return a way for `fork`: it follows *statements*, and says whether they leave their block."""

    def way() -> bool:
        follow(state, statements, scope)
        return state.trace is None and bool(statements) and _leaves(statements[-1])

    return way


def _for(state: State, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
    value = evaluate(state, node.iter, scope)
    items = items_of(value)
    if state.trace is not None:
        items = _traced_items(state.trace, node, value, items)
    if items is UNKNOWN:
        # After a loop of unknown rounds the target is unknown too.
        bind(state, node.target, UNKNOWN, scope)
        perhaps(state, node.body, scope, is_round=True)
        return
    outer, state.early.round, state.early.loop = (state.early.round, state.early.loop), False, False
    if isinstance(value, Remaining):
        items = _taken(value)
    for item in items:
        if state.trace is not None:
            state.trace.read(item, node)
        bind(state, node.target, item, scope)
        try:
            # An earlier round may have broken out of the loop: this one may not happen.
            if state.early.loop:
                perhaps(state, node.body, scope)
            else:
                follow(state, node.body, scope)
        except LoopLeft as left:
            if left.is_break:
                break
        state.early.round = False
    else:
        follow(state, node.orelse, scope)
    state.early.round, state.early.loop = outer


def _taken(words: Remaining) -> Iterator[Any]:
    while words:
        yield words.pop(0)


def _traced_items(trace: Trace, node: ast.For | ast.AsyncFor, value: Any, items: Any) -> Any:
    """Return the rounds that a trace follows: loops over plain numbers, or over too much, say nothing about words."""
    if isinstance(value, Word):
        trace.touch(value, node.iter)
    if items is UNKNOWN or isinstance(value, str) or len(items) > ROUNDS:
        return UNKNOWN
    counts = isinstance(node.target, ast.Name) and node.target.id in trace.relevance.counters
    return UNKNOWN if items and not counts and all(type(each) is int for each in items) else items


def _while(state: State, node: ast.While, scope: Scope) -> None:
    for _ in range(ROUNDS):
        known = decide(state, evaluate(state, node.test, scope))
        if known is False:
            follow(state, node.orelse if state.trace is not None else [], scope)
            return
        # ``while True:`` is a menu or a server: one round shows what it declares.
        if state.trace is None or known is UNKNOWN or isinstance(node.test, ast.Constant):
            perhaps(state, node.body, scope, is_round=True)
            return
        try:
            follow(state, node.body, scope)
        except LoopLeft as left:
            if left.is_break:
                return


def _with(state: State, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
    for item in node.items:
        value = use(state, item.context_expr, scope)
        if item.optional_vars is not None:
            bind(state, item.optional_vars, UNKNOWN if isinstance(value, Words) else value, scope)
    follow(state, node.body, scope)


def _try(state: State, node: ast.Try | ast.TryStar, scope: Scope) -> None:
    if state.trace is not None:
        _traced_try(state, node, scope)
        return
    before = dict(scope.names)
    follow(state, node.body, scope)
    if any(not handler.body or not _leaves(handler.body[-1]) for handler in node.handlers):
        for name, value in scope.names.items():
            if name in before and not isinstance(value, Model | InstanceValue):
                scope.names[name] = kept(value, before[name])
    # What is declared is declared on the way that works; a handler matters for the names that it gives instead:
    # ``except ImportError: yaml = None``.
    # Each handler starts from the names before the body: how far that came is unknown.
    for handler in node.handlers:
        inner = Scope(dict(before), scope.parent, scope.outside)
        if any(isinstance(each, ast.Import | ast.ImportFrom | ast.Assign) for each in handler.body):
            perhaps(state, [each for each in handler.body if not _leaves(each)], inner)
        for name, value in inner.names.items():
            known = scope.names.get(name, value)
            if value is before.get(name) or known is value or isinstance(known, Symbol | Imported):
                continue
            if not same_value(value, known):
                scope.names[name] = UNKNOWN
    follow(state, node.orelse, scope)
    follow(state, node.finalbody, scope)


def _traced_try(state: State, node: ast.Try | ast.TryStar, scope: Scope) -> None:
    """Follow the body; the handlers run where it raises, and may run where a foreign call could."""
    softened = any(_catches(each, "ValueError") and not gives_up(each.body) for each in node.handlers)
    try:
        if softened:  # ``try: int(word) except ValueError: pass``: the conversion is not required
            with doubting(state, node):
                follow(state, node.body, scope)
        else:
            follow(state, node.body, scope)
    except ScriptError as error:
        handler = next((each for each in node.handlers if _catches(each, error.name)), None)
        # ``finally`` runs on the way out too.
        if handler is None:
            follow(state, node.finalbody, scope)
            raise
        if handler.name:
            bind_name(state, handler.name, UNKNOWN, scope)
        follow(state, handler.body, scope)
    else:
        follow(state, node.orelse, scope)
        # Whether a place of the command line is there is known, so an IndexError is never a mere possibility.
        others = [each for each in node.handlers if each.type is None or dotted(each.type) != "IndexError"]
        if others:
            fork(state, node, scope, [lambda: None, *(_block(state, each.body, scope) for each in others)])
    follow(state, node.finalbody, scope)


def _match(state: State, node: ast.Match, scope: Scope) -> None:
    subject = evaluate(state, node.subject, scope)
    possible: list[ast.match_case] = []
    is_certain = False
    for case in node.cases:
        found = fits(state, case.pattern, subject, node, scope)
        if found is not False and case.guard is not None:
            guard = decide(state, evaluate(state, case.guard, scope))
            found = guard if found is True or guard is False else UNKNOWN
        if found is False:
            continue
        possible.append(case)
        if found is True:
            is_certain = True
            break
    if is_certain and len(possible) == 1:
        follow(state, possible[0].body, scope)
        return
    otherwise: list[Callable[[], object]] = [] if is_certain else [lambda: None]
    fork(state, node, scope, [*otherwise, *(_block(state, each.body, scope) for each in possible)])


def _import_from(state: State, node: ast.ImportFrom, scope: Scope) -> None:
    follow_import_from(state, node, scope)
    if state.trace is not None and node.module == "sys":
        for alias in node.names:
            if alias.name == "argv":
                bind_name(state, alias.asname or "argv", state.trace.words, scope)


def _members(node: ast.ClassDef, kind: ClassValue) -> dict[str, EnumMember]:
    """Return the members of the enumeration *kind*: what its body assigns, in that order, known or not."""
    is_text = kind.descends_from("builtins.str", "enum.StrEnum")
    found: dict[str, EnumMember] = {}
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        # Names with a leading underscore are not members (``enum``: sunder and private names).
        for name in [each.id for each in targets if isinstance(each, ast.Name) and not each.id.startswith("_")]:
            value = kind.names.get(name, UNKNOWN)
            if isinstance(statement, ast.Assign) and _is_auto(statement.value):
                # ``auto()``: `enum.StrEnum` gives the name in lower case, `enum.Enum` counts from one.
                value = name.lower() if kind.descends_from("enum.StrEnum") else len(found) + 1
            if not isinstance(value, FunctionValue):
                found[name] = EnumMember(node.name, name, value, is_text, _text(kind, name, value))
    return found


def _text(kind: ClassValue, name: str, value: Any) -> Any:
    """Return what ``str()`` makes of a member: its value or its name, where ``__str__`` returns just that."""
    try:
        shown = kind.find("__str__")
    except KeyError:
        # `enum.StrEnum.__str__` is ``str.__str__``.
        if kind.descends_from("enum.StrEnum"):
            return value
        return f"{kind.name}.{name}" if kind.bases == [Symbol("enum.Enum")] else UNKNOWN
    body = shown.node.body if isinstance(shown, FunctionValue) and isinstance(shown.node, ast.FunctionDef) else []
    match body[-1:]:
        case [ast.Return(value=ast.Attribute(value=ast.Name(id="self"), attr=attribute))]:
            return {"value": value, "_value_": value, "name": name, "_name_": name}.get(attribute, UNKNOWN)
    return UNKNOWN


def _is_auto(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "auto"


def _leaves(statement: ast.stmt) -> bool:
    """Whether the statements after *statement* are not reached, judged by its form."""
    if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        # ``parser.error()`` and ``ctx.exit()`` end the script too.
        if isinstance(function, ast.Attribute) and function.attr in ("exit", "error"):
            return True
        return dotted(function) in ("exit", "quit", "os._exit")
    return False


def _catches(handler: ast.ExceptHandler, name: str) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    known = {dotted(each).rpartition(".")[2] for each in kinds}
    # Both are subclasses of LookupError (Python's documentation, "Exception hierarchy").
    wide = {"Exception", "BaseException"} | ({"LookupError"} if name in ("IndexError", "KeyError") else set())
    return bool(known & (wide | {name}))


STATEMENTS: Mapping[type, Callable[[State, Any, Scope], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Return: _return,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Match: _match,
    ast.Import: follow_import,
    ast.ImportFrom: _import_from,
}
