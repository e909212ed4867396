"""The parsers of an argparse script: which calls declare arguments, on which parser, and under which conditions.

The statements are read from the top. A function of the file that is called with a parser, or that makes one, is read
where it is called. The law: a call of ``add_argument`` whose parser is not known is reported, never passed over.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.derive.command import Unread
from skillruntime.derive.readers.python_values import (
    UNKNOWN,
    Scope,
    Symbol,
    dotted,
    evaluate,
    is_constant,
    items_of,
    own_nodes,
)

__all__ = ["Asked", "Group", "Parser", "Subparsers", "find_parsers"]

STEPS_LIMIT = 60_000
"""Statements and calls of a script that are read, functions as often as they are called."""

ARGUMENTS_LIMIT = 1_000
"""Arguments of a parser together with those of its parents."""

_ADDERS = ("add_argument", "add_parser", "add_subparsers")
_INSIDE = ("_actions", "_option_string_actions", "_defaults")
_PARSES = ("parse_args", "parse_known_args", "parse_intermixed_args", "parse_known_intermixed_args")
_HARMLESS = ("print", "isinstance", "len", "id", "argcomplete.autocomplete", "hasattr", "getattr", "type", "bool")


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
    """An ``ArgumentParser``; ``level`` is the number of conditions around the place that makes it."""

    named: dict[str, Any]
    level: int
    asked: list[Asked] = field(default_factory=list)
    groups: dict[int, bool] = field(default_factory=dict)
    subparsers: Subparsers | None = None
    defaults: dict[str, Any] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    parses: bool = False
    ignores_unknown: bool = False
    is_part: bool = False
    """Whether it is a command of another parser, or a parent of one."""


@dataclass(slots=True, eq=False)
class Group:
    """An argument group; ``number`` is that of a mutually exclusive one."""

    parser: Parser
    number: int | None


@dataclass(slots=True, eq=False)
class Subparsers:
    """What ``add_subparsers`` gives."""

    parser: Parser
    named: dict[str, Any]
    parsers: dict[str, Parser] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Function:
    node: ast.FunctionDef | ast.AsyncFunctionDef
    names: _Names
    scope: Scope
    was_read: bool = False
    returned: Any = None


@dataclass(slots=True)
class _Names:
    """The parsers and functions that names stand for; ``self.parser`` is a name of its class."""

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
        if name.startswith(("self.", "cls.")):
            while not names.is_class and names.parent is not None:
                names = names.parent
            name = f"self.{name.partition('.')[2]}"
        names.objects[name] = value


class _TooLongError(Exception):
    """The script has more statements than are read."""


def find_parsers(tree: ast.Module) -> list[Parser]:
    """Return the parsers that *tree* makes, without those that are parts of others, in their order."""
    reader = _Reader(tree)
    try:
        reader.read()
    except _TooLongError:
        for each in reader.parsers[:1]:
            each.unread.append(Unread("arguments", "the script is too long to be read to its end"))
        return reader.parsers[:1]
    found = [each for each in reader.parsers if not each.is_part]
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _ADDERS
        and id(node) not in reader.placed
    ]
    for each in found:
        each.unread += [Unread("arguments", "some are added to what cannot be read", line) for line in lines[:3]]
    return found


class _Reader:
    """Reads the statements of a module, and of its functions where they are called."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parsers: list[Parser] = []
        self.functions: list[_Function] = []
        self.placed: set[int] = set()
        self.conditions = 0
        self.steps = 0
        self.reading: list[_Function] = []

    def read(self) -> None:
        self._statements(self.tree.body, _Names(Scope.of(self.tree, None)))
        # What nothing here calls, an entry point or another module does.
        for function in self.functions:
            if not function.was_read:
                self._function(function, [], None)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > STEPS_LIMIT:
            raise _TooLongError

    def _statements(self, body: list[ast.stmt], names: _Names) -> None:
        conditions = self.conditions
        for statement in body:
            self._step()
            self._statement(statement, names)
            # ``if os.path.exists("f"): return``: whether what follows is reached depends on it.
            if isinstance(statement, ast.If) and any(isinstance(each, ast.Return) for each in own_nodes(statement)):
                self.conditions += 1
        self.conditions = conditions

    def _under_condition(self, parts: list[list[ast.stmt]], names: _Names) -> None:
        self.conditions += 1
        for body in parts:
            self._statements(body, names)
        self.conditions -= 1

    def _statement(self, statement: ast.stmt, names: _Names) -> None:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(statement, names, statement.name)
            case ast.ClassDef():
                self._class(statement, names)
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=inner, orelse=rest):
                self._statements(inner, names)
                self._under_condition([rest], names)
            case ast.If(test=test, body=inner, orelse=rest) | ast.While(test=test, body=inner, orelse=rest):
                self._value(test, names)
                self._under_condition([inner, rest], names)
            case ast.For():
                self._loop(statement, names)
            case ast.Try(body=inner, handlers=handlers, orelse=rest, finalbody=last):
                self._statements([*inner, *rest], names)
                self._under_condition([each.body for each in handlers], names)
                self._statements(last, names)
            case ast.With(body=inner, items=items) | ast.AsyncWith(body=inner, items=items):
                for each in items:
                    self._value(each.context_expr, names)
                self._statements(inner, names)
            case ast.Match(cases=cases):
                self._under_condition([each.body for each in cases], names)
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, value, names)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign([target], value, names)
            case ast.Return(value=value) if value is not None:
                known = self._value(value, names)
                if names.function is not None and known is not None:
                    names.function.returned = known
            case _:
                for child in ast.iter_child_nodes(statement):
                    self._value(child, names)

    def _class(self, node: ast.ClassDef, names: _Names) -> None:
        inner = _Names(Scope.of(node, names.scope), parent=names, is_class=True)
        for each in node.body:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                function = self._define(each, inner, f"self.{each.name}")
                names.objects[f"{node.name}.{each.name}"] = function

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, names: _Names, name: str) -> _Function:
        function = _Function(node, names, Scope.of(node, names.scope))
        names.objects[name] = function
        self.functions.append(function)
        return function

    def _loop(self, node: ast.For, names: _Names) -> None:
        items = items_of(evaluate(node.iter, names.scope))
        # ``for name, help in COMMANDS.items():``.
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        leaves = any(isinstance(each, ast.Continue | ast.Break) for each in own_nodes(node))
        if items is UNKNOWN or leaves or not all(isinstance(each, ast.Name) for each in targets):
            self._value(node.iter, names)
            self._under_condition([node.body], names)
            return
        inner = Scope.of(node, names.scope)
        for item in items:
            values = items_of(item) if len(targets) > 1 else [item]
            if values is UNKNOWN or len(values) != len(targets):
                values = [UNKNOWN] * len(targets)
            known = {dotted(target): value for target, value in zip(targets, values, strict=True)}
            scope = replace(inner, known=known)
            self._statements(node.body, _Names(scope, names.objects, names.parent, names.is_class, names.function))

    def _assign(self, targets: list[ast.expr], value: ast.expr, names: _Names) -> None:
        made = self._value(value, names)
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(made, tuple) and len(made) == len(target.elts):
                for one, part in zip(target.elts, made, strict=True):
                    names.bind(dotted(one), part)
                continue
            name = dotted(target)
            holder = names.find(name.rpartition(".")[0]) if "." in name else None
            if isinstance(holder, Asked):
                holder.named["**"] = UNKNOWN  # ``action.choices = [...]``, after it was added
            elif isinstance(holder, Subparsers | Parser):
                holder.named[name.rpartition(".")[2]] = evaluate(value, names.scope)
            elif isinstance(holder, Group) and holder.number is not None and name.endswith(".required"):
                holder.parser.groups[holder.number] = evaluate(value, names.scope) is True
            elif name and (made is not None or names.find(name) is not None):
                names.bind(name, made)

    def _value(self, node: ast.AST, names: _Names) -> Any:
        """Return the parser, group or function that *node* is; None where it is something else."""
        match node:
            case ast.Name() | ast.Attribute():
                name = dotted(node)
                if found := names.find(name):
                    return found
                if isinstance(node, ast.Attribute):
                    self._inside(node, self._value(node.value, names))
                return None
            case ast.Call():
                self._step()
                return self._call(node, names)
            case ast.Tuple(elts=parts):
                return tuple(self._value(each, names) for each in parts)
            case ast.Await(value=inner) | ast.NamedExpr(value=inner):
                made = self._value(inner, names)
                if isinstance(node, ast.NamedExpr):
                    names.bind(node.target.id, made)
                return made
            case ast.Lambda():
                return None
        for child in ast.iter_child_nodes(node):
            self._value(child, names)
        return None

    def _inside(self, node: ast.Attribute, receiver: Any) -> None:
        """Report the use of what argparse keeps inside, and of a method that is not called: ``add = p.add_argument``."""
        if isinstance(receiver, Parser | Group | Subparsers) and node.attr in (*_INSIDE, *_ADDERS):
            parser = receiver if isinstance(receiver, Parser) else receiver.parser
            is_needed = node.attr in _ADDERS
            reason = f"{node.attr} may be used to change them"
            parser.unread.append(Unread("arguments", reason, node.lineno, is_needed=is_needed))

    def _call(self, node: ast.Call, names: _Names) -> Any:
        receiver = self._value(node.func.value, names) if isinstance(node.func, ast.Attribute) else None
        if isinstance(receiver, Parser | Group | Subparsers):
            return self._method(receiver, node, names)
        function = names.find(dotted(node.func))
        symbol = evaluate(node.func, names.scope)
        if symbol == Symbol("argparse.ArgumentParser"):
            return self._make(node, names)
        given = [self._value(each, names) for each in node.args]
        named = {each.arg: self._value(each.value, names) for each in node.keywords}
        if isinstance(function, _Function):
            return self._function(function, given, node, named, names)
        for each in [*given, *named.values()]:
            self._leave(each, node)
        return None

    def _leave(self, value: Any, node: ast.Call) -> None:
        """Report that a function elsewhere may add arguments."""
        if isinstance(value, tuple):
            for each in value:
                self._leave(each, node)
        name = dotted(node.func) or "a function that cannot be read"
        if isinstance(value, Parser | Group | Subparsers) and name not in _HARMLESS:
            parser = value if isinstance(value, Parser) else value.parser
            parser.unread.append(Unread("arguments", f"{name} may add some", node.lineno))

    def _function(
        self,
        function: _Function,
        given: list[Any],
        node: ast.Call | None,
        named: dict[str | None, Any] | None = None,
        outer: _Names | None = None,
    ) -> Any:
        """Read *function*, which is called with these; it is read again only for other parsers or constants."""
        has_parser = any(isinstance(each, Parser | Group | Subparsers) for each in [*given, *(named or {}).values()])
        if function in self.reading or (function.was_read and not has_parser):
            return function.returned
        function.was_read = True
        # What an earlier run found out about the names of the function may not hold for this one.
        scope = replace(function.scope, known={})
        names = _Names(scope, parent=function.names, function=function)
        if node is not None and outer is not None:
            _bind_parameters(names, function.node, (node, given, named or {}), outer)
        self.reading.append(function)
        self._statements(function.node.body, names)
        self.reading.pop()
        return function.returned

    def _make(self, node: ast.Call, names: _Names) -> Parser:
        # The positional parameters of ``ArgumentParser.__init__`` (argparse.py 3.11, line 1737).
        order = ("prog", "usage", "description", "epilog")
        arguments, named = _evaluated(node, names.scope)
        parser = Parser(dict(zip(order, arguments, strict=False)) | named, self.conditions)
        self.parsers.append(parser)
        for keyword in node.keywords:
            if keyword.arg == "parents":
                listed = keyword.value.elts if isinstance(keyword.value, ast.List | ast.Tuple) else [keyword.value]
                for each in listed:
                    _inherit(parser, self._value(each, names))
        return parser

    def _method(self, receiver: Parser | Group | Subparsers, node: ast.Call, names: _Names) -> Any:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        parser = receiver if isinstance(receiver, Parser) else receiver.parser
        self.placed.add(id(node))
        arguments, named = _evaluated(node, names.scope)
        if isinstance(receiver, Subparsers):
            return self._add_parser(receiver, node, names, arguments) if name == "add_parser" else None
        number = receiver.number if isinstance(receiver, Group) else None
        match name:
            case "add_argument":
                certain = self.conditions <= parser.level
                parser.asked.append(Asked(arguments, named, node.lineno, certain, number))
                if len(parser.asked) > ARGUMENTS_LIMIT:
                    raise _TooLongError
                return parser.asked[-1]
            case "add_argument_group":
                return Group(parser, number)
            case "add_mutually_exclusive_group":
                # At most one of its arguments may be given (`take_action`, line 1960).
                parser.groups[len(parser.groups)] = named.get("required") is True
                return Group(parser, len(parser.groups) - 1)
            case "add_subparsers":
                parser.subparsers = Subparsers(parser, named)
                if self.conditions > parser.level:
                    parser.unread.append(
                        Unread("commands", "whether there are any depends on a condition", node.lineno)
                    )
                return parser.subparsers
            # Under a condition any of these may hold, so none is declared.
            case "set_defaults":
                is_certain = self.conditions <= parser.level
                parser.defaults |= named if is_certain else dict.fromkeys(named, UNKNOWN)
            case _ if name in _PARSES:
                parser.parses = True
                parser.ignores_unknown |= name.startswith("parse_known")
            case "register" | "_add_action" | "_remove_action" | "_handle_conflict_resolve" | "add_arguments":
                parser.unread.append(Unread("arguments", f"changed by {name}", node.lineno))
        return None

    def _add_parser(self, subparsers: Subparsers, node: ast.Call, names: _Names, arguments: list[Any]) -> Parser:
        parser = self._make(node, names)
        parser.is_part = True
        word = arguments[0] if arguments else parser.named.get("name", UNKNOWN)
        # The first parameter of ``add_parser`` is the command's name, not ``prog``.
        parser.named.pop("prog", None)
        if not isinstance(word, str):
            subparsers.parser.unread.append(Unread("a command", "its name is computed", node.lineno))
            return parser
        if self.conditions > subparsers.parser.level:
            reason = "whether the command is there depends on a condition"
            subparsers.parser.unread.append(Unread(word, reason, node.lineno))
        if "parser_class" in subparsers.named:
            parser.unread.append(Unread("arguments", "the class of its parser cannot be read", node.lineno))
        subparsers.parsers[word] = parser
        return parser


def _bind_parameters(
    names: _Names,
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    call: tuple[ast.Call, list[Any], dict[str | None, Any]],
    outer: _Names,
) -> None:
    """Give the parameters of *node* the parsers and constants that the call hands over."""
    made, given, named = call
    parameters = [each.arg for each in [*node.args.posonlyargs, *node.args.args]]
    if parameters[:1] in (["self"], ["cls"]):
        parameters = parameters[1:]
    pairs: list[tuple[str, ast.expr, Any]] = list(zip(parameters, made.args, given, strict=False))
    pairs += [(each.arg, each.value, named.get(each.arg)) for each in made.keywords if each.arg]
    defaults = zip(parameters[::-1], node.args.defaults[::-1], strict=False)
    names.scope.known |= {name: evaluate(default, names.scope) for name, default in defaults}
    for name, expression, value in pairs:
        names.objects[name] = value
        names.scope.known[name] = evaluate(expression, outer.scope)


def _evaluated(node: ast.Call, scope: Scope) -> tuple[list[Any], dict[str, Any]]:
    arguments: list[Any] = []
    for each in node.args:
        if isinstance(each, ast.Starred):
            inner = items_of(evaluate(each.value, scope))
            arguments += [UNKNOWN] if inner is UNKNOWN else inner
        else:
            arguments.append(evaluate(each, scope))
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        value = evaluate(keyword.value, scope)
        if keyword.arg is not None:
            named[keyword.arg] = value
        elif isinstance(value, dict) and is_constant(list(value)):
            named |= value
        else:
            named["**"] = UNKNOWN
    return arguments, named


def _inherit(parser: Parser, parent: Any) -> None:
    if not isinstance(parent, Parser):
        parser.unread.append(Unread("parents", "a parent parser cannot be read"))
        return
    parent.is_part = True
    # ``parents=[base, base]``, again and again, doubles what a parser holds.
    if len(parser.asked) + len(parent.asked) > ARGUMENTS_LIMIT:
        raise _TooLongError
    # `_add_container_actions` (line 1504) copies a parent's groups, so their numbers must not meet our own.
    shift = len(parser.groups)
    for each in parent.asked:
        group = None if each.group is None else each.group + shift
        parser.asked.append(Asked(each.arguments, each.named, each.line, each.is_certain, group))
    parser.groups |= {number + shift: required for number, required in parent.groups.items()}
    parser.subparsers = parser.subparsers or parent.subparsers
    parser.defaults |= parent.defaults
    parser.unread += parent.unread
