"""Find the parsers of an argparse script: the calls that declare arguments, their
parser, and their conditions.

The statements are read from the top. A function of the file that is called with a
parser, or that creates one, is read at its call. The law: a call of ``add_argument``
with an unknown parser is reported, never ignored.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.derive.command import Unread
from skillruntime.derive.readers.python_nodes import Function
from skillruntime.derive.readers.python_values import (
    UNKNOWN,
    Scope,
    Source,
    Symbol,
    dotted,
    evaluate,
    items_of,
)

__all__ = ["Asked", "Parser", "find_parsers"]

STEPS_LIMIT = 60_000
"""The most statements and calls of a script that are read; functions count as often as
they are called.
"""

DECLARED_LIMIT = 1_000
"""The most commands and arguments of a script; those of a parent count again for each
parser that has it.
"""

_ADDERS = ("add_argument", "add_parser", "add_subparsers")
_INSIDE = ("_actions", "_option_string_actions", "_defaults")
_PARSE = (
    "parse_args",
    "parse_known_args",
    "parse_intermixed_args",
    "parse_known_intermixed_args",
)
_CHANGE = (
    "register",
    "_add_action",
    "_remove_action",
    "_handle_conflict_resolve",
    "add_arguments",
)
_ABOUT_PARSERS = frozenset(
    [
        "ArgumentParser",
        "add_argument_group",
        "add_mutually_exclusive_group",
        "set_defaults",
        *_ADDERS,
        *_INSIDE,
        *_PARSE,
    ]
)
_HARMLESS = (
    "print",
    "isinstance",
    "len",
    "id",
    "argcomplete.autocomplete",
    "hasattr",
    "getattr",
    "type",
    "bool",
)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One call of ``add_argument``, and whether every run reaches it."""

    arguments: list[Any]
    named: dict[str, Any]
    line: int
    is_certain: bool
    group: int | None


@dataclass(slots=True, eq=False)
class Parser:
    """An ``ArgumentParser``; ``level`` is the number of conditions around its
    creation.
    """

    named: dict[str, Any]
    level: int
    asked: list[Asked] = field(default_factory=list)
    groups: dict[int, bool] = field(default_factory=dict)
    commands: dict[str, Parser] | None = None
    chooser: dict[str, Any] = field(default_factory=dict)
    """The arguments of ``add_subparsers``."""
    defaults: dict[str, Any] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    parses: bool = False
    ignores_unknown: bool = False
    is_part: bool = False
    """Whether it is a command of another parser, or a parent of one."""

    def report(
        self,
        reason: str,
        line: int,
        what: str = "arguments",
        *,
        is_needed: bool = False,
    ) -> None:
        """Record a part of the parser that cannot be read."""
        self.unread.append(Unread(what, reason, line, is_needed))


@dataclass(frozen=True, slots=True)
class _Handle:
    """The value of a name: a parser, one of its groups (``number`` identifies an
    exclusive group), or its commands.
    """

    parser: Parser
    number: int | None = None
    holds_commands: bool = False


@dataclass(slots=True, eq=False)
class _Function:
    node: Function
    names: _Names
    scope: Scope
    was_read: bool = False
    returned: Any = None


@dataclass(slots=True)
class _Names:
    """The parsers and functions that names stand for; ``self.parser`` is a name of its
    class.
    """

    scope: Scope
    objects: dict[str, Any] = field(default_factory=dict)
    parent: _Names | None = None
    is_class: bool = False
    function: _Function | None = None

    def find(self, name: str) -> Any:
        if name.startswith("cls."):
            name = f"self.{name[4:]}"
        names: _Names | None = self
        while names is not None:
            if name in names.objects:
                return names.objects[name]
            names = names.parent
        return None

    def bind(self, name: str, value: Any) -> None:
        names: _Names = self
        if name.startswith("self."):
            while not names.is_class and names.parent is not None:
                names = names.parent
        names.objects[name] = value


class _TooLongError(Exception):
    """The script has more statements than are read."""


def find_parsers(source: Source) -> list[Parser]:
    """Return the parsers that *source* creates, in order, without those that are parts
    of others.
    """
    reader = _Reader(source.functions_about(_ABOUT_PARSERS))
    try:
        reader.statements(source.tree.body, _Names(source.scope))
        # A function that is not called in this module is called by an entry point or
        # another module.
        for function in reader.functions:
            if not function.was_read:
                reader.function(function, {})
    except _TooLongError:
        for parser in reader.parsers[:1]:
            parser.report("the script is too long to be read to its end", 0)
        return reader.parsers[:1]
    for function in reader.functions:
        # A function and its names refer to each other, a cycle that only the garbage
        # collector would free.
        del function.names
    parsers = [parser for parser in reader.parsers if not parser.is_part]
    unplaced = _unplaced(source, reader.placed)
    if unplaced is not None:
        for parser in parsers:
            parser.report("some are added to what cannot be read", unplaced.lineno)
    return parsers


def _unplaced(source: Source, placed: set[int]) -> ast.Call | None:
    """Return the first call that adds an argument to an unknown parser."""
    for node in source.nodes.of(ast.Call):
        if not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in _ADDERS and id(node) not in placed:
            return node
    return None


class _Reader:
    """Reads the statements of a module, and of its functions where they are called."""

    def __init__(self, about_parsers: set[Function]) -> None:
        self.about_parsers = about_parsers
        self.parsers: list[Parser] = []
        self.functions: list[_Function] = []
        self.placed: set[int] = set()
        self.conditions = 0
        self.steps = 0
        self.declared = 0
        self.returns = 0
        self.reading: list[_Function] = []

    def step(self) -> None:
        self.steps += 1
        if self.steps > STEPS_LIMIT:
            raise _TooLongError

    def declare(self) -> None:
        self.declared += 1
        if self.declared > DECLARED_LIMIT:
            raise _TooLongError

    def statements(self, body: list[ast.stmt], names: _Names) -> None:
        conditions = self.conditions
        for statement in body:
            self.step()
            returns = self.returns
            self.statement(statement, names)
            # ``if os.path.exists("f"): return``: whether what follows is reached
            # depends on it.
            if isinstance(statement, ast.If) and self.returns > returns:
                self.conditions += 1
        self.conditions = conditions

    def under_condition(self, body: list[ast.stmt], names: _Names) -> None:
        self.conditions += 1
        self.statements(body, names)
        self.conditions -= 1

    def statement(self, statement: ast.stmt, names: _Names) -> None:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.define(statement, names, statement.name)
            case ast.ClassDef():
                self.define_class(statement, names)
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=body):
                self.statements(body, names)
            case (
                ast.If(test=test, body=body, orelse=rest)
                | ast.While(test=test, body=body, orelse=rest)
            ):
                self.value(test, names)
                self.under_condition(body, names)
                self.under_condition(rest, names)
            case ast.For():
                self.loop(statement, names)
            case ast.Try(body=body, handlers=handlers, orelse=rest, finalbody=last):
                self.statements([*body, *rest, *last], names)
                for handler in handlers:
                    self.under_condition(handler.body, names)
            case ast.With(body=body):
                self.statements(body, names)
            case ast.Assign(targets=targets, value=value):
                self.assign(targets, value, names)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign([target], value, names)
            case ast.Return(value=value):
                self.returns += 1
                if value is not None:
                    self.returned(value, names)
            case _:
                self.inside(statement, names)

    def returned(self, value: ast.expr, names: _Names) -> None:
        known = self.value(value, names)
        if names.function is not None and known is not None:
            names.function.returned = known

    def define_class(self, node: ast.ClassDef, names: _Names) -> None:
        scope = Scope.of(node, names.scope)
        inside = _Names(scope, parent=names, is_class=True)
        for each in node.body:
            if isinstance(each, Function):
                method = self.define(each, inside, f"self.{each.name}")
                names.objects[f"{node.name}.{each.name}"] = method

    def define(self, node: Function, names: _Names, name: str) -> _Function:
        function = _Function(node, names, Scope.of(node, names.scope))
        names.objects[name] = function
        self.functions.append(function)
        return function

    def loop(self, node: ast.For, names: _Names) -> None:
        items = items_of(evaluate(node.iter, names.scope))
        # ``for name, help in COMMANDS.items():``.
        targets = [dotted(each) for each in _elements(node.target)]
        leaves = names.scope.nodes.own_of(node, ast.Continue, ast.Break)
        if items is UNKNOWN or leaves or "" in targets:
            self.value(node.iter, names)
            self.under_condition(node.body, names)
            return
        scope = Scope.of(node, names.scope)
        for item in items:
            values = items_of(item) if len(targets) > 1 else [item]
            if values is UNKNOWN or len(values) != len(targets):
                values = [UNKNOWN] * len(targets)
            known = dict(zip(targets, values, strict=True))
            self.statements(node.body, replace(names, scope=scope.again(known)))

    def assign(self, targets: list[ast.expr], value: ast.expr, names: _Names) -> None:
        made = self.value(value, names)
        for target in targets:
            name = dotted(target)
            holder = names.find(name.rpartition(".")[0])
            if isinstance(holder, Asked):
                # ``action.choices = [...]``, after it was added.
                holder.named["**"] = UNKNOWN
            elif isinstance(holder, _Handle) and holder.number is not None:
                holder.parser.report("a group is changed", value.lineno)
            elif name and (made is not None or names.find(name) is not None):
                names.bind(name, made)

    def inside(self, node: ast.AST, names: _Names) -> None:
        for child in names.scope.nodes.children(node):
            self.value(child, names)

    def value(self, node: ast.AST, names: _Names) -> Any:
        """Return the parser, group or function that *node* denotes; None if it is
        something else.
        """
        match node:
            case ast.Name(id=name):
                return names.find(name)
            case ast.Attribute(value=owner, attr=name):
                known = names.find(dotted(node))
                if known:
                    return known
                receiver = self.value(owner, names)
                # ``add = parser.add_argument``, ``parser._actions``: they may be used
                # to change its arguments.
                if isinstance(receiver, _Handle) and name in (*_INSIDE, *_ADDERS):
                    reason = f"{name} may add some"
                    receiver.parser.report(reason, node.lineno, is_needed=True)
                return None
            case ast.Call():
                self.step()
                return self.call(node, names)
            case ast.Constant() | ast.Lambda():
                return None
        self.inside(node, names)
        return None

    def call(self, node: ast.Call, names: _Names) -> Any:
        if isinstance(node.func, ast.Attribute):
            receiver = self.value(node.func.value, names)
            if isinstance(receiver, _Handle):
                return self.method(receiver, node.func.attr, node, names)
        if evaluate(node.func, names.scope) == Symbol("argparse.ArgumentParser"):
            return _Handle(self.make(node, names))
        given = [self.value(argument, names) for argument in node.args]
        named = {
            keyword.arg: self.value(keyword.value, names) for keyword in node.keywords
        }
        name = dotted(node.func)
        function = names.find(name)
        if isinstance(function, _Function):
            return self.function(function, _parameters(function, given, named))
        if name in _HARMLESS:
            return None
        for value in [*given, *named.values()]:
            if isinstance(value, _Handle):
                caller = name or "a function that cannot be read"
                value.parser.report(f"{caller} may add some", node.lineno)
        return None

    def function(self, function: _Function, objects: dict[str, Any]) -> Any:
        """Read *function* with these parameters; it is read again only for other
        parsers.
        """
        has_parser = any(isinstance(each, _Handle) for each in objects.values())
        if function in self.reading or (function.was_read and not has_parser):
            return function.returned
        # Most functions of a script do not declare arguments.
        if not has_parser and function.node not in self.about_parsers:
            return None
        function.was_read = True
        scope = function.scope.again({})
        names = _Names(scope, objects, function.names, function=function)
        self.reading.append(function)
        returns = self.returns
        self.statements(function.node.body, names)
        self.returns = returns
        self.reading.pop()
        return function.returned

    def make(self, node: ast.Call, names: _Names) -> Parser:
        # The positional parameters of ``ArgumentParser.__init__`` (argparse.py 3.11,
        # line 1737).
        order = ("prog", "usage", "description", "epilog")
        arguments, named = _evaluated(node, names.scope)
        named = dict(zip(order, arguments, strict=False)) | named
        parser = Parser(named, self.conditions)
        self.parsers.append(parser)
        for keyword in node.keywords:
            if keyword.arg == "parents":
                reason = "those of a parent parser are not followed"
                parser.report(reason, node.lineno, is_needed=True)
                for each in names.scope.nodes.own(keyword.value):
                    parent = names.find(dotted(each))
                    if isinstance(parent, _Handle):
                        parent.parser.is_part = True
        return parser

    def method(
        self, receiver: _Handle, name: str, node: ast.Call, names: _Names
    ) -> Any:
        parser = receiver.parser
        self.placed.add(id(node))
        arguments, named = _evaluated(node, names.scope)
        is_certain = self.conditions <= parser.level
        match name:
            case "add_parser":
                return self.add_parser(parser, node, names, arguments)
            case "add_argument":
                self.declare()
                parser.asked.append(
                    Asked(arguments, named, node.lineno, is_certain, receiver.number)
                )
                return parser.asked[-1]
            case "add_argument_group":
                return _Handle(parser, receiver.number)
            case "add_mutually_exclusive_group":
                # At most one of its arguments may be given (`take_action`, line 1960).
                parser.groups[len(parser.groups)] = named.get("required") is True
                return _Handle(parser, len(parser.groups) - 1)
            case "add_subparsers":
                parser.commands, parser.chooser = {}, named
                if not is_certain:
                    reason = "whether there are any depends on a condition"
                    parser.report(reason, node.lineno, "commands")
                return _Handle(parser, holds_commands=True)
            case "set_defaults":
                # Under a condition any of these values is possible, so none is
                # declared.
                if not is_certain:
                    named = dict.fromkeys(named, UNKNOWN)
                parser.defaults |= named
            case _ if name in _PARSE:
                parser.parses = True
                parser.ignores_unknown |= name.startswith("parse_known")
            case _ if name in _CHANGE:
                parser.report(f"changed by {name}", node.lineno)
        return None

    def add_parser(
        self, above: Parser, node: ast.Call, names: _Names, arguments: list[Any]
    ) -> _Handle:
        self.declare()
        parser = self.make(node, names)
        parser.is_part = True
        # The first parameter of ``add_parser`` is the command's name, where
        # ``ArgumentParser`` has ``prog``.
        word = parser.named.pop("prog", None) if arguments else parser.named.get("name")
        if not isinstance(word, str) or above.commands is None:
            above.report("its name is computed", node.lineno, "a command")
            return _Handle(parser)
        if self.conditions > above.level:
            above.report(
                "whether the command is there depends on a condition", node.lineno, word
            )
        above.commands[word] = parser
        return _Handle(parser)


def _parameters(
    function: _Function, given: list[Any], named: dict[str | None, Any]
) -> dict[str, Any]:
    """Return the parsers that the parameters of *function* have at this call; constants
    are not followed.
    """
    arguments = function.node.args
    names = [each.arg for each in [*arguments.posonlyargs, *arguments.args]]
    names = [name for name in names if name not in ("self", "cls")]
    by_position = dict(zip(names, given, strict=False))
    by_name = {name: value for name, value in named.items() if name}
    return by_position | by_name


def _elements(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple) else [target]


def _evaluated(node: ast.Call, scope: Scope) -> tuple[list[Any], dict[str, Any]]:
    """Return the values of the arguments of *node*, those by position and those by
    name.
    """
    arguments: list[Any] = []
    for each in node.args:
        if isinstance(each, ast.Starred):
            items = items_of(evaluate(each.value, scope))
            arguments += [UNKNOWN] if items is UNKNOWN else items
        else:
            arguments.append(evaluate(each, scope))
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        value = evaluate(keyword.value, scope)
        if keyword.arg is None and isinstance(value, dict):
            named |= value
        else:
            named[keyword.arg or "**"] = value
    return arguments, named
