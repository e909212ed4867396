"""What a call of a script comes to: its own functions are followed, its classes made, known libraries recorded."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from skillruntime.derive.expressions import Expressions
from skillruntime.derive.foreign_calls import call_foreign, call_method, changes, items_of
from skillruntime.derive.values import (
    UNKNOWN,
    BoundMethod,
    ClassValue,
    FunctionValue,
    InstanceValue,
    Later,
    Made,
    Model,
    Scope,
    Symbol,
    is_constant,
    make_open,
)

__all__ = ["Calls", "Early", "Left", "Library", "Neighbours", "Returned"]

MAX_CALL_DEPTH = 24
_DECLARES = ("add_argument", "add_parser", "add_argument_group", "add_mutually_exclusive_group", "add_subparsers")
_OBJECT = Symbol("builtins.object")
_HARMLESS = ("builtins.", "argcomplete.", "rich_argparse.", "sys.", "logging.")

Library = Mapping[str, Callable[[Any, list[Any], dict[str, Any], ast.AST], Any]]
"""Functions of a known library, by full name: reader, arguments, named arguments, node -> what the call comes to."""

Neighbours = Callable[[str], str | None]
"""The source of the module of that name beside the script, where there is one; it is read as the script is."""


class Returned(Exception):  # noqa: N818 - control flow
    """A function ends here, with *value*."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Left(Exception):  # noqa: N818 - control flow
    """A loop is left, or its round ended."""

    def __init__(self, is_break: bool) -> None:
        super().__init__()
        self.is_break = is_break


class Early:
    """What a function, or a round of a loop, may have ended with before its end, under a condition nobody can tell."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.since = 0
        self.round = False
        self.loop = False


class Calls(Expressions):
    """Evaluates expressions with their calls; what follows statements is left to the reader.

    *library* holds what is known of libraries; *made* are the prefixes of names whose calls are recorded as `Made`.
    """

    def __init__(self, library: Library, made: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.library = library
        self.made = made
        self.branches: tuple[tuple[ast.AST, int], ...] = ()
        self.depth = 0
        self.early = Early()
        self.clock = 0
        self.doubts: list[tuple[int, int, list[bool]]] = []
        """When each argument was asked for, when its parser was made, and where a doubt about it is noted."""
        self.lost: list[int] = []
        """The lines in which something is declared to a value that cannot be read."""
        self.generators: dict[int, bool] = {}

    def follow(self, statements: Iterable[ast.stmt], scope: Scope) -> None:
        """Follow *statements* in their order."""
        raise NotImplementedError

    def call(self, function: Any, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Return what calling *function* comes to."""
        match function:
            case FunctionValue():
                return self._call_function(function, arguments, named)
            case ClassValue():
                return self._make(function, arguments, named, node)
            case Model():
                return function.call(self, arguments, named, node)
            case BoundMethod(receiver=Model() as model):
                return model.call_method(self, function.name, arguments, named, node)
            case BoundMethod(receiver=receiver):
                if changes(receiver, function.name) and self.is_doubtful(receiver):
                    make_open(receiver)
                result = call_method(receiver, function.name, arguments, named)
                return result if function.name in ("get", "setdefault", "pop") else self.made_here(result)
            case Made():
                apply = self.library.get("decorate")
                return apply(self, [function, *arguments], named, node) if apply else UNKNOWN
            case Symbol():
                return self._call_symbol(function, arguments, named, node)
            case _:
                self._let_go("a function that cannot be read", arguments, named, node)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _DECLARES:
                    self.lost.append(node.lineno)
                return UNKNOWN

    def attribute(self, value: Any, name: str) -> Any:
        """Return the attribute *name* of *value*, or UNKNOWN."""
        if isinstance(value, Model):
            return value.attribute(name)
        if isinstance(value, InstanceValue) and "__parser__" in value.names and name not in value.names:
            found = self.bound(value, value.kind, name)
            return value.names["__parser__"].attribute(name) if found is UNKNOWN else found
        if isinstance(value, Made) and name in value.named:
            return value.named[name]
        return super().attribute(value, name)

    # expressions that only make sense while statements are followed

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return self._super(scope)
        function = self.evaluate(node.func, scope)
        arguments: list[Any] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                items = items_of(self.evaluate(each.value, scope))
                arguments += [UNKNOWN] if items is UNKNOWN else items
            else:
                arguments.append(self.evaluate(each, scope))
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, scope)
            if keyword.arg is not None:
                named[keyword.arg] = value
            elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
                named |= value
            else:
                named["**"] = UNKNOWN
        return self.call(function, arguments, named, node)

    def _super(self, scope: Scope) -> Any:
        try:
            receiver, kind = scope.find("self"), scope.find("__class__")
        except KeyError:
            return UNKNOWN
        above = next((base for base in kind.bases if isinstance(base, ClassValue)), None)
        return _Above(receiver, above)

    def _call_function(self, function: FunctionValue, arguments: list[Any], named: dict[str, Any]) -> Any:
        if self.depth >= MAX_CALL_DEPTH:
            self._let_go(function.name, arguments, named, function.node)
            return UNKNOWN
        scope = Scope(parent=function.scope)
        self._bind_parameters(function, arguments, named, scope)
        if isinstance(function.node, ast.Lambda):
            return self.evaluate(function.node.body, scope)
        self.depth += 1
        level, branches, early = self.uncertain, self.branches, self.early
        self.early = Early()
        try:
            self.follow(function.node.body, scope)
            self._doubt_what_followed()
        except Returned as returned:
            self._doubt_what_followed()
            return self._settled(returned.value)
        except Left:
            return UNKNOWN
        finally:
            self.early = early
            self.depth -= 1
            self.uncertain, self.branches = level, branches
        return scope.names.get("__maybe__", UNKNOWN if self._is_generator(function.node) else None)

    def tick(self) -> int:
        """Return the time, of which there is more at each call."""
        self.clock += 1
        return self.clock

    def _doubt_what_followed(self) -> None:
        """A function that may have ended early came to its end: what it asked older parsers for since is in doubt."""
        if self.early.values:
            for asked, made, doubt in self.doubts:
                if asked > self.early.since > made:
                    doubt.append(True)

    def _settled(self, value: Any) -> Any:
        """What the function gives, though it may have given something else before: a plain value is told by both."""
        if isinstance(value, Model | InstanceValue | FunctionValue | ClassValue):
            return value
        same = all(each is value or (is_constant(each) and each == value) for each in self.early.values)
        return value if same else UNKNOWN

    def _is_generator(self, node: ast.AST) -> bool:
        if id(node) not in self.generators:
            self.generators[id(node)] = _yields(node)
        return self.generators[id(node)]

    def _bind_parameters(
        self, function: FunctionValue, arguments: list[Any], named: dict[str, Any], scope: Scope
    ) -> None:
        signature = function.node.args
        given = [*([function.receiver] if function.receiver is not None else []), *arguments]
        positional = [*signature.posonlyargs, *signature.args]
        names = [each.arg for each in positional]
        for name in [*names, *(each.arg for each in signature.kwonlyargs)]:
            default = function.defaults.get(name, UNKNOWN)
            is_later = isinstance(default, Later) and name not in names[: len(given)] and name not in named
            scope.names[name] = self.evaluate(default.node, function.scope) if is_later else default
        scope.names |= dict(zip(names, given, strict=False))
        rest = {key: value for key, value in named.items() if key not in scope.names}
        scope.names |= {key: value for key, value in named.items() if key in scope.names}
        if signature.vararg:
            scope.names[signature.vararg.arg] = given[len(names) :]
        if signature.kwarg:
            scope.names[signature.kwarg.arg] = UNKNOWN if "**" in rest else rest

    def _make(self, kind: ClassValue, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        if kind.members and arguments:
            return next((member for member in kind.members.values() if member.value == arguments[0]), UNKNOWN)
        instance = self.made_here(InstanceValue(kind))
        base = next((name for name in self.library if kind.descends_from(name)), None)
        if base is not None:
            instance.names["__library__"] = base
        try:
            constructor = kind.find("__init__")
        except KeyError:
            if base is not None:
                instance.names["__parser__"] = self.library[base](self, arguments, named, node)
                instance.names["__parser__"].kind = kind
            elif kind.descends_from("typing.NamedTuple") or (kind.node and kind.node.decorator_list):
                fields = kind.names.get("_fields") or _annotated_names(kind.node)
                instance.names |= {name: kind.names.get(name, UNKNOWN) for name in fields}
                instance.names |= dict(zip(fields, arguments, strict=False)) | named
            return instance
        if isinstance(constructor, FunctionValue):
            bound = replace(constructor, receiver=instance)
            self._call_function(bound, arguments, named)
        return instance

    def _call_symbol(self, symbol: Symbol, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        known = self.library.get(symbol.name)
        if known is not None:
            return known(self, arguments, named, node)
        match symbol.name, arguments:
            case "builtins.getattr", [owner, str(name), *default]:
                found = self.attribute(owner, name)
                return default[0] if found is UNKNOWN and default and isinstance(owner, InstanceValue) else found
            case "builtins.hasattr", [Symbol(name="argparse"), "BooleanOptionalAction"]:
                return True
            case "builtins.map", [function, *lists] if len(lists) == 1:
                items = items_of(lists[0])
                return UNKNOWN if items is UNKNOWN else [self.call(function, [item], {}, node) for item in items]
            case (("asyncio.run" | "anyio.run" | "trio.run" | "sys.exit" | "builtins.exit"), [_, *_]):
                inner = arguments[0]
                return self.call(inner, arguments[1:], {}, node) if isinstance(inner, FunctionValue) else UNKNOWN
            case (("typing.get_args" | "typing_extensions.get_args"), [Made(symbol="typing.Literal") as literal]):
                return tuple(literal.arguments)
            case "collections.namedtuple", [str(title), fields, *_]:
                return _named_tuple(title, fields)
            case "builtins.dir", [ClassValue() as kind] if not kind.members and kind.bases in ([], [_OBJECT]):
                return sorted({*kind.names, *dir(object), "__dict__", "__module__", "__weakref__"})
            case "functools.partial", [function, *bound]:
                return _Partial(function, bound, named)
            case (("typing.NewType" | "typing.cast"), [_, inner]):
                return inner
        result = call_foreign(symbol.name, arguments, named)
        if result is not UNKNOWN:
            return self.made_here(result)
        if not symbol.name.startswith(_HARMLESS):
            self._let_go(symbol.name, arguments, named, node)
        return Made(symbol.name, arguments, named, node) if symbol.name.startswith(self.made) else UNKNOWN

    def _let_go(self, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> None:
        for value in (*arguments, *named.values()):
            if isinstance(value, Model):
                value.leave(name, node)


class _Above(Model):
    """What ``super()`` gives."""

    def __init__(self, receiver: Any, kind: ClassValue | None) -> None:
        self.receiver, self.kind = receiver, kind

    def call_method(self, reader: Calls, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Call the method of the class above; of a library's class, on what stands for its object."""
        if self.kind is not None:
            found = reader.bound(self.receiver, self.kind, name)
            if found is not UNKNOWN:
                return reader.call(found, arguments, named, node)
        if not isinstance(self.receiver, InstanceValue):
            return UNKNOWN
        base = self.receiver.names.get("__library__")
        if name == "__init__" and base is not None:
            self.receiver.names["__parser__"] = reader.library[base](reader, arguments, named, node)
            self.receiver.names["__parser__"].kind = self.receiver.kind
            return None
        parser = self.receiver.names.get("__parser__")
        return parser.call_method(reader, name, arguments, named, node) if parser is not None else UNKNOWN


class _Partial(Model):
    """What ``functools.partial`` gives."""

    def __init__(self, function: Any, arguments: list[Any], named: dict[str, Any]) -> None:
        self.function, self.arguments, self.named = function, arguments, named

    def call(self, reader: Calls, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Call the function with both."""
        return reader.call(self.function, [*self.arguments, *arguments], self.named | named, node)


def _named_tuple(title: str, fields: Any) -> Any:
    """The class that ``collections.namedtuple`` makes."""
    names = fields.replace(",", " ").split() if isinstance(fields, str) else fields
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) for each in names):
        return UNKNOWN
    return ClassValue(title, [Symbol("typing.NamedTuple")], {"_fields": tuple(names)})


def _annotated_names(node: ast.ClassDef | None) -> list[str]:
    body = node.body if node else []
    return [each.target.id for each in body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]


def _yields(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node))
