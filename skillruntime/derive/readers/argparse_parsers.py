"""The parsers of an argparse script: which calls declare arguments, on which parser,
and under which conditions.

The statements are read from the top. A function of the file that is called with a
parser, or that makes one, is read where it is called. The law: a call of
``add_argument`` whose parser is not known is reported, never passed over.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.derive.command import Unread
from skillruntime.derive.readers.python_values import (
    UNKNOWN,
    Function,
    Scope,
    Source,
    Symbol,
    dotted,
    evaluate,
    items_of,
    own_nodes,
)

__all__ = ["Asked", "Parser", "find_parsers"]

STEPS_LIMIT = 60_000
"""Statements and calls of a script that are read, functions as often as they are
called.
"""

DECLARED_LIMIT = 1_000
"""Commands and arguments of a script, those of a parent again for each parser that has
it.
"""

_ADDERS = ("add_argument", "add_parser", "add_subparsers")
_INSIDE = ("_actions", "_option_string_actions", "_defaults")
_ABOUT_PARSERS = frozenset(
    {
        "ArgumentParser",
        "add_argument_group",
        "add_mutually_exclusive_group",
        "set_defaults",
        *_ADDERS,
        *_INSIDE,
    }
    | {
        "parse_args",
        "parse_known_args",
        "parse_intermixed_args",
        "parse_known_intermixed_args",
    }
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
    """One call of ``add_argument``, and whether it is reached under every condition."""

    arguments: list[Any]
    named: dict[str, Any]
    line: int
    is_certain: bool
    group: int | None


@dataclass(slots=True, eq=False)
class Parser:
    """An ``ArgumentParser``; ``level`` is the number of conditions around the place
    that makes it.
    """

    named: dict[str, Any]
    level: int
    asked: list[Asked] = field(default_factory=list)
    groups: dict[int, bool] = field(default_factory=dict)
    commands: dict[str, Parser] | None = None
    chooser: dict[str, Any] = field(default_factory=dict)
    """What ``add_subparsers`` was called with."""
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
        """Note what cannot be read of it."""
        self.unread.append(Unread(what, reason, line, is_needed))


@dataclass(frozen=True, slots=True)
class _Handle:
    """What a name holds: a parser, a group of it (``number`` is that of an exclusive
    one), or its commands.
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
        name = f"self.{name[4:]}" if name.startswith("cls.") else name
        names: _Names | None = self
        while names is not None:
            if name in names.objects:
                return names.objects[name]
            names = names.parent
        return None

    def bind(self, name: str, value: Any) -> None:
        names: _Names = self
        while (
            name.startswith("self.") and not names.is_class and names.parent is not None
        ):
            names = names.parent
        names.objects[name] = value


class _TooLongError(Exception):
    """The script has more statements than are read."""


def find_parsers(source: Source) -> list[Parser]:
    """Return the parsers that *source* makes, without those that are parts of others,
    in their order.
    """
    reader = _Reader(source.functions_about(_ABOUT_PARSERS))
    try:
        reader.statements(source.tree.body, _Names(source.scope))
        # What nothing here calls, an entry point or another module does.
        for function in reader.functions:
            if not function.was_read:
                reader.function(function, {})
    except _TooLongError:
        for each in reader.parsers[:1]:
            each.report("the script is too long to be read to its end", 0)
        return reader.parsers[:1]
    for function in reader.functions:
        # a function leads to names and they to it: a circle, which only gc would remove
        del function.names
    found = [each for each in reader.parsers if not each.is_part]
    for node in source.nodes:
        is_adder = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _ADDERS
        )
        if isinstance(node, ast.Call) and is_adder and id(node) not in reader.placed:
            for each in found:
                each.report("some are added to what cannot be read", node.lineno)
            break
    return found


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
            self.conditions += isinstance(statement, ast.If) and self.returns > returns
        self.conditions = conditions

    def under_condition(self, body: list[ast.stmt], names: _Names) -> None:
        self.conditions += 1
        self.statements(body, names)
        self.conditions -= 1

    def statement(self, statement: ast.stmt, names: _Names) -> None:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.define(statement, names, statement.name)
            case ast.ClassDef(name=name, body=body):
                inner = _Names(
                    Scope.of(statement, names.scope), parent=names, is_class=True
                )
                for each in body:
                    if isinstance(each, Function):
                        names.objects[f"{name}.{each.name}"] = self.define(
                            each, inner, f"self.{each.name}"
                        )
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
                known = self.value(value, names) if value is not None else None
                if names.function is not None and known is not None:
                    names.function.returned = known
            case _:
                self.inside(statement, names)

    def define(self, node: Function, names: _Names, name: str) -> _Function:
        function = _Function(node, names, Scope.of(node, names.scope))
        names.objects[name] = function
        self.functions.append(function)
        return function

    def loop(self, node: ast.For, names: _Names) -> None:
        items = items_of(evaluate(node.iter, names.scope))
        # ``for name, help in COMMANDS.items():``.
        targets = [
            dotted(each)
            for each in (
                node.target.elts
                if isinstance(node.target, ast.Tuple)
                else [node.target]
            )
        ]
        leaves = any(
            isinstance(each, ast.Continue | ast.Break) for each in own_nodes(node)
        )
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
                holder.named["**"] = (
                    UNKNOWN  # ``action.choices = [...]``, after it was added
                )
            elif isinstance(holder, _Handle) and holder.number is not None:
                holder.parser.report("a group is changed", value.lineno)
            elif name and (made is not None or names.find(name) is not None):
                names.bind(name, made)

    def inside(self, node: ast.AST, names: _Names) -> None:
        for child in ast.iter_child_nodes(node):
            self.value(child, names)

    def value(self, node: ast.AST, names: _Names) -> Any:
        """Return the parser, group or function that *node* is; None where it is
        something else.
        """
        match node:
            case ast.Name(id=name):
                return names.find(name)
            case ast.Attribute(value=owner, attr=name):
                found = names.find(dotted(node))
                receiver = None if found else self.value(owner, names)
                # ``add = parser.add_argument``, ``parser._actions``: they may be used
                # to change its arguments.
                if isinstance(receiver, _Handle) and name in (*_INSIDE, *_ADDERS):
                    receiver.parser.report(
                        f"{name} may add some", node.lineno, is_needed=True
                    )
                return found
            case ast.Call():
                self.step()
                return self.call(node, names)
            case ast.Lambda():
                return None
        self.inside(node, names)
        return None

    def call(self, node: ast.Call, names: _Names) -> Any:
        receiver = (
            self.value(node.func.value, names)
            if isinstance(node.func, ast.Attribute)
            else None
        )
        if isinstance(receiver, _Handle):
            return self.method(
                receiver,
                dotted(node.func).rpartition(".")[2] or node.func.attr,  # type: ignore[attr-defined]  # it has a receiver
                node,
                names,
            )
        if evaluate(node.func, names.scope) == Symbol("argparse.ArgumentParser"):
            return _Handle(self.make(node, names))
        given = [self.value(each, names) for each in node.args]
        named = {each.arg: self.value(each.value, names) for each in node.keywords}
        function = names.find(dotted(node.func))
        if isinstance(function, _Function):
            return self.function(function, _parameters(function, given, named))
        for each in [*given, *named.values()]:
            name = dotted(node.func) or "a function that cannot be read"
            if isinstance(each, _Handle) and name not in _HARMLESS:
                each.parser.report(f"{name} may add some", node.lineno)
        return None

    def function(self, function: _Function, objects: dict[str, Any]) -> Any:
        """Read *function*, whose parameters are these; it is read again only for other
        parsers.
        """
        has_parser = any(isinstance(each, _Handle) for each in objects.values())
        if function in self.reading or (function.was_read and not has_parser):
            return function.returned
        # Most functions of a script only do its work.
        if not has_parser and function.node not in self.about_parsers:
            return None
        function.was_read = True
        scope = function.scope.again({})
        self.reading.append(function)
        returns = self.returns
        self.statements(
            function.node.body,
            _Names(scope, objects, function.names, function=function),
        )
        self.returns = returns
        self.reading.pop()
        return function.returned

    def make(self, node: ast.Call, names: _Names) -> Parser:
        # The positional parameters of ``ArgumentParser.__init__`` (argparse.py 3.11,
        # line 1737).
        order = ("prog", "usage", "description", "epilog")
        arguments, named = _evaluated(node, names.scope)
        parser = Parser(
            dict(zip(order, arguments, strict=False)) | named, self.conditions
        )
        self.parsers.append(parser)
        for parents in [each.value for each in node.keywords if each.arg == "parents"]:
            parser.report(
                "those of a parent parser are not followed", node.lineno, is_needed=True
            )
            for each in own_nodes(parents):
                if isinstance(parent := names.find(dotted(each)), _Handle):
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
                    parser.report(
                        "whether there are any depends on a condition",
                        node.lineno,
                        "commands",
                    )
                return _Handle(parser, holds_commands=True)
            # Under a condition any of these may hold, so none is declared.
            case "set_defaults":
                parser.defaults |= (
                    named if is_certain else dict.fromkeys(named, UNKNOWN)
                )
            case (
                "parse_args"
                | "parse_known_args"
                | "parse_intermixed_args"
                | "parse_known_intermixed_args"
            ):
                parser.parses = True
                parser.ignores_unknown |= name.startswith("parse_known")
            case (
                "register"
                | "_add_action"
                | "_remove_action"
                | "_handle_conflict_resolve"
                | "add_arguments"
            ):
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
    """Return the parsers that the parameters of *function* have where it is called; its
    constants are not followed.
    """
    arguments = function.node.args
    names = [
        each.arg
        for each in [*arguments.posonlyargs, *arguments.args]
        if each.arg not in ("self", "cls")
    ]
    return dict(zip(names, given, strict=False)) | {
        name: each for name, each in named.items() if name
    }


def _evaluated(node: ast.Call, scope: Scope) -> tuple[list[Any], dict[str, Any]]:
    arguments: list[Any] = []
    for each in node.args:
        inner = (
            items_of(evaluate(each.value, scope))
            if isinstance(each, ast.Starred)
            else [evaluate(each, scope)]
        )
        arguments += [UNKNOWN] if inner is UNKNOWN else inner
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        value = evaluate(keyword.value, scope)
        is_table = keyword.arg is None and isinstance(value, dict)
        named |= value if is_table else {keyword.arg or "**": value}
    return arguments, named
