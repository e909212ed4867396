"""Find the conditions under which a Python script ends with an error: ``if not
args.input: parser.error(...)``.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from skillruntime.derive.command import Command
from skillruntime.derive.readers.checks import (
    ANYTHING,
    MACHINE,
    Check,
    Test,
    Word,
    least_call,
    names_in,
    refuse,
)
from skillruntime.derive.readers.python_endings import Endings, leaves, refusal
from skillruntime.derive.readers.python_nodes import Function, Nodes
from skillruntime.derive.readers.python_values import Source, dotted

__all__ = ["HANDLERS", "apply_checks", "checks_of_arguments"]

_USUAL_HOLDERS = {"args", "options", "opts", "ns"}
"""Usual names of parameters that hold all parsed arguments."""

CHECKS_LIMIT = 200
CONDITIONS_LIMIT = 30
"""The most conditions around a check; behind more of them nothing is decided."""

HANDLERS = ("func", "handler", "fn", "run", "callback")
"""Names under which ``set_defaults`` stores the function of a command: if it is
present, a command was chosen.
"""

_TRIMS = ("strip", "lstrip", "rstrip", "lower", "upper", "split")
_PARSES = ("parse_args", "parse_known_args", "parse_intermixed_args")
_MACHINE = (
    "exists",
    "is_file",
    "is_dir",
    "isfile",
    "isdir",
    "access",
    "which",
    "isatty",
    "environ",
    "getenv",
)
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.Is: "==",
    ast.NotEq: "!=",
    ast.IsNot: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
}


@dataclass(slots=True)
class _Names:
    """The values of names in a function or in the module: all parsed arguments, or the
    value of one argument.
    """

    nodes: Nodes
    holders: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    tests: dict[str, Test] = field(default_factory=dict)
    """Tests of whether other names hold a non-empty value: ``source = args.file or
    args.url``.
    """
    derived: dict[str, frozenset[str]] = field(default_factory=dict)
    """The arguments from which other names are computed: ``files =
    read_list(args.list)``.
    """
    rebound: set[str] = field(default_factory=set)
    """Names that are bound more than once: ``if not name: name = args.vehicle``."""
    problems: set[str] = field(default_factory=set)
    """Names of the results of the script's functions, called with all parsed arguments:
    ``problems = validate(args)``.
    """

    def given(self, node: ast.AST) -> str | None:
        """Return the argument that *node* is the value of."""
        match node:
            case ast.Name(id=name):
                return self.values.get(name)
            case ast.Attribute(value=owner, attr=name) if dotted(owner) in self.holders:
                return name
            # ``vars(parser.parse_args())``.
            case ast.Subscript(value=owner, slice=ast.Constant(value=str(name))) if (
                dotted(owner) in self.holders
            ):
                return name
            case (
                ast.Call(func=ast.Name(id="getattr"), args=[owner, name_, *_])
                | ast.Call(
                    func=ast.Attribute(value=owner, attr="get"), args=[name_, *_]
                )
            ) if dotted(owner) in self.holders:
                # ``for name in REQUIRED: if not getattr(args, name)`` may be any of
                # them.
                return str(getattr(name_, "value", "an argument"))
        return None

    def made_of(self, node: ast.expr) -> frozenset[str]:
        """Return the arguments that *node* mentions, directly or through values
        computed from them.
        """
        arguments = set(filter(None, self.given_in(node)))
        if self.derived:
            for name in self.nodes.all_of(node, ast.Name):
                arguments |= self.derived.get(name.id, frozenset())
        return frozenset(arguments)

    def given_in(self, node: ast.expr) -> Iterator[str | None]:
        """Yield the arguments that parts of *node* are the values of."""
        if self.values:
            for name in self.nodes.all_of(node, ast.Name):
                yield self.values.get(name.id)
        # Without a name for all parsed arguments, no other part denotes one of them.
        if self.holders:
            for part in self.nodes.all_of(node, ast.Attribute, ast.Subscript, ast.Call):
                yield self.given(part)

    def may_be_given(self) -> bool:
        """Return whether an expression can be the value of an argument, or a test of
        some.
        """
        return bool(self.holders or self.values or self.tests)

    def forget_rebound(self, scope: ast.AST) -> None:
        """Forget the values of names that *scope*, a function or the module, binds
        again.
        """
        bound = Counter(
            node.id
            for node in self.nodes.own_of(scope, ast.Name)
            if not isinstance(node.ctx, ast.Load)
        )
        if isinstance(scope, Function):
            parameters = scope.args
            bound.update(
                parameter.arg
                for parameter in [
                    *parameters.posonlyargs,
                    *parameters.args,
                    *parameters.kwonlyargs,
                ]
            )
        self.rebound = {name for name, times in bound.items() if times > 1}
        for name in self.rebound:
            self.values.pop(name, None)
            self.tests.pop(name, None)

    def passed(self, function: Function, call: ast.Call) -> _Names:
        """Return the values of the parameters of *function* in *call*."""
        parameters = [parameter.arg for parameter in function.args.args]
        passed: list[tuple[str, ast.expr]] = []
        passed += zip(parameters, call.args, strict=False)
        passed += [(str(keyword.arg), keyword.value) for keyword in call.keywords]
        names = _Names(self.nodes)
        for parameter, value in passed:
            name = dotted(value)
            if name in self.holders:
                names.holders.add(parameter)
            if name in self.tests:
                names.tests[parameter] = self.tests[name]
            argument = self.given(value)
            if argument:
                names.values[parameter] = argument
        return names


@dataclass(slots=True)
class _Walk:
    """Walks statements in their order, with the conditions under which each is
    reached.
    """

    functions: Mapping[str, Function]
    endings: Endings
    names: _Names
    filled: set[str] = field(default_factory=set)
    """Arguments that the script itself assigns."""
    parsing: set[str] = field(default_factory=set)
    """Functions that return the parsed arguments."""
    about_arguments: set[Function] = field(default_factory=set)
    """Functions that may parse the arguments, themselves or in a function that they
    call.
    """
    function_stack: list[str] = field(default_factory=lambda: [""])
    """The functions that contain the current statement, the innermost last."""
    walked: set[str] = field(default_factory=set)

    def body(self, body: list[ast.stmt], before: list[Test]) -> Iterator[Check]:
        before = list(before)
        # The body of a ``with`` or ``try`` is treated as if it stood outside.
        pending = list(reversed(body))
        while pending:
            statement = pending.pop()
            if len(before) > CONDITIONS_LIMIT:
                before = [ANYTHING]
            match statement:
                case ast.Expr() | ast.Assign():  # most statements
                    yield from self.simple(statement, before)
                case (
                    ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=inner)
                    | ast.With(body=inner)
                    | ast.AsyncWith(body=inner)
                ):
                    pending += reversed(inner)
                case ast.Try(body=inner, orelse=rest):
                    pending += reversed([*inner, *rest])
                case ast.If():
                    yield from self.chain(statement, before)
                case ast.Match():
                    yield from self.cases(statement, before)
                    if self.endings.may_leave([statement]):
                        before.append(ANYTHING)
                case ast.For(body=inner) | ast.While(body=inner):
                    yield from self.body(inner, [*before, ANYTHING])
                    if self.endings.may_leave(inner):
                        before.append(ANYTHING)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    continue
                case ast.Return() | ast.Raise():
                    yield from self.calls(statement, before)
                    return
                case _:
                    yield from self.simple(statement, before)

    def simple(self, statement: ast.stmt, before: list[Test]) -> Iterator[Check]:
        """Yield the checks in the functions that *statement* calls; extend *before* by
        the conditions that hold behind it.
        """
        yield from self.calls(statement, before)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self.assign(statement.targets[0], statement.value)
        if self.endings.may_leave([statement]):
            before.append(ANYTHING)

    def cases(self, statement: ast.Match, before: list[Test]) -> Iterator[Check]:
        """Yield the checks of the cases that end the script; their patterns are not
        read.
        """
        subject = statement.subject
        test: Test = ("unknown", self.names.made_of(subject))
        for case in statement.cases:
            if refusal(case.body, self.functions):
                yield Check(
                    [*before, test],
                    ast.unparse(subject),
                    is_usage=False,
                    line=statement.lineno,
                    function=self.function_stack[-1],
                )

    def chain(self, statement: ast.If, before: list[Test]) -> Iterator[Check]:
        """Yield the checks of an ``if``, its ``elif`` and ``else``; extend *before* by
        the conditions that hold behind it.
        """
        earlier: list[Test] = []
        behind: list[Test] = []
        while True:
            yield from self.calls(statement.test, [*before, *earlier])
            test = self.test(statement.test)
            reached = [*before, *earlier]
            yield from self.branch(statement, statement.body, test, reached)
            behind += self.left_by(statement.body, [*earlier, test])
            earlier.append(("not", test))
            match statement.orelse:
                case [ast.If() as following]:
                    statement = following
                case _:
                    break
        if statement.orelse:
            last = earlier.pop()
            reached = [*before, *earlier]
            yield from self.branch(statement, statement.orelse, last, reached)
            behind += self.left_by(statement.orelse, [*earlier, last])
        before += behind

    def test(self, condition: ast.expr) -> Test:
        if isinstance(condition, ast.Name) and condition.id in self.names.problems:
            return ("unknown", frozenset({"arguments"}))
        return _to_test(condition, self.names)

    def left_by(self, body: list[ast.stmt], tests: list[Test]) -> list[Test]:
        """Return the conditions that hold behind *body*, which runs if all *tests*
        hold.
        """
        held: Test = tests[0] if len(tests) == 1 else ("and", tests)
        if refusal(body, self.functions):
            return [("checked", ("not", held))]
        if leaves(body) or self.endings.may_leave(body):
            return [("not", held)]
        return []

    def branch(
        self, statement: ast.If, body: list[ast.stmt], test: Test, before: list[Test]
    ) -> Iterator[Check]:
        """Yield *body*, which runs if *test* holds, as one check if it ends the script;
        else yield the checks in it.
        """
        end = refusal(body, self.functions)
        if not end:
            yield from self.body(body, [*before, test])
            return
        is_usage = end == "usage" or _mentions_usage(body)
        made_of = self.names.made_of(statement.test)
        # ``if not files: parser.error(...)``: the arguments from which `files` was
        # computed decide.
        if is_usage and made_of and not names_in(test):
            test, is_usage = ("unknown", made_of), False
        yield Check(
            [*before, test],
            ast.unparse(statement.test),
            is_usage,
            statement.lineno,
            self.function_stack[-1],
        )

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Record the value of *target* after the assignment: all parsed arguments, one
        of them, or a value computed from them.
        """
        names = self.names
        if isinstance(target, ast.Tuple | ast.List):
            self.unpack(target, value)
            return
        name = dotted(target)
        assigned = None
        if isinstance(target, ast.Attribute):
            assigned = names.given(target)
        # Before the branches, which change what the names in *value* hold.
        made_of = names.made_of(value)
        calls = self.calls_in(value)
        if self.is_all_parsed(calls):
            names.holders.add(name)
        elif self.is_result_of_check(calls):
            names.problems.add(name)
        elif assigned:
            self.fill(assigned, value)
        else:
            self._assign_name(name, value)
        if made_of:
            names.derived[name] = names.derived.get(name, frozenset()) | made_of

    def unpack(self, target: ast.Tuple | ast.List, value: ast.expr) -> None:
        """Record the values of the parts of *target*: ``args, left =
        parser.parse_known_args()``, ``lat, lon = locate(args.place)``.
        """
        made_of = self.names.made_of(value)
        if self.is_all_parsed(self.calls_in(value)):
            self.names.holders.add(dotted(target.elts[0]))
        for part in target.elts:
            name = dotted(part)
            derived = self.names.derived.get(name, frozenset())
            self.names.derived[name] = derived | made_of

    def _assign_name(self, name: str, value: ast.expr) -> None:
        """Record that *name* holds one argument, or a value described by a test; a name
        that is also bound elsewhere may hold anything.
        """
        names = self.names
        if not name or name in names.rebound or not names.may_be_given():
            return
        argument = names.given(value)
        if argument is not None:
            names.values[name] = argument
            return
        test = _to_test(value, names)
        if _is_of_arguments(test):
            names.tests[name] = test

    def fill(self, argument: str, value: ast.expr) -> None:
        """Record that the script assigns *value* to *argument*."""
        # ``args.command = args.command[1:]`` does not fill the argument.
        if _to_test(value, self.names) != ("given", argument):
            self.filled.add(argument)

    def is_all_parsed(self, calls: list[ast.Call]) -> bool:
        """Return whether a value with these *calls* holds all parsed arguments."""
        for call in calls:
            name = self.endings.called[call]
            if _is_parse(call) or name in self.parsing:
                return True
            if name in ("vars", "dict") and _given_all(call, self.names):
                return True
        return False

    def is_result_of_check(self, calls: list[ast.Call]) -> bool:
        """Return whether a value with these *calls* is the result of one of the
        script's functions, called with all parsed arguments.
        """
        return any(
            self.endings.called[call] in self.functions and _given_all(call, self.names)
            for call in calls
        )

    def calls(self, node: ast.AST, before: list[Test]) -> Iterator[Check]:
        """Yield the checks of the script's functions that *node* calls, each function
        at its first call.
        """
        for call in self.calls_in(node):
            name = self.endings.called[call]
            if name in self.functions and name not in self.walked:
                names = self.names.passed(self.functions[name], call)
                yield from self.function(name, names, before)

    def calls_in(self, node: ast.AST) -> list[ast.Call]:
        """Return *node* and the calls in it, without those in functions that it
        defines.
        """
        calls = self.names.nodes.own_of(node, ast.Call)
        return [node, *calls] if isinstance(node, ast.Call) else calls

    def function(self, name: str, names: _Names, before: list[Test]) -> Iterator[Check]:
        self.walked.add(name)
        # Real scripts do not nest fifty calls of their own functions.
        if len(self.function_stack) < 50:
            self.function_stack.append(name)
            outer, self.names = self.names, names
            function = self.functions[name]
            if names.may_be_given() or function in self.about_arguments:
                names.forget_rebound(function)
                yield from self.body(function.body, before)
            else:
                # It tests no argument, and neither do the functions that it calls:
                # they only count as walked.
                yield from self.calls(function, before)
            self.names = outer
            self.function_stack.pop()


def checks_of_arguments(source: Source) -> tuple[list[Check], set[str]]:
    """Return the checks of the result of ``parse_args``, and the names of arguments
    that the script itself assigns.
    """
    functions = _functions_by_name(source)
    parse: set[Function] = set()
    for word in _PARSES:
        parse.update(source.mentioning.get(word, ()))
    parsing = {name for name, function in functions.items() if function in parse}
    about_arguments = source.functions_about(frozenset(_PARSES))
    names = _Names(source.nodes)
    names.forget_rebound(source.tree)
    endings = Endings.of(functions, source.nodes)
    walk = _Walk(
        functions, endings, names, parsing=parsing, about_arguments=about_arguments
    )
    checks = list(walk.body(source.tree.body, []))
    # If only a table, a class or another module calls a function, the time of the call
    # is unknown.
    for name, function in functions.items():
        if name in walk.walked:
            continue
        holders = _USUAL_HOLDERS.intersection(
            parameter.arg for parameter in function.args.args
        )
        if name in parsing:
            checks += walk.function(name, _Names(source.nodes, holders), [])
        elif holders:
            names = _Names(source.nodes, holders)
            checks += walk.function(name, names, [ANYTHING])
    return checks[:CHECKS_LIMIT], walk.filled


def _functions_by_name(source: Source) -> dict[str, Function]:
    """Return the functions of the script; methods as ``self.name``, because
    ``open(path)`` does not call a method of that name.
    """
    methods: set[int] = set()
    for node in source.nodes.of(ast.ClassDef):
        methods.update(map(id, node.body))
    functions: dict[str, Function] = {}
    for function in source.functions:
        is_method = id(function) in methods
        functions[f"self.{function.name}" if is_method else function.name] = function
    return functions


def apply_checks(
    command: Command,
    checks: list[Check],
    filled: set[str],
    outer: Mapping[str, object] | None = None,
) -> None:
    """Require in *command* and the commands below it the arguments that *checks*
    demand; undecidable checks become unread parts.

    *filled* are arguments that the script itself may set, *outer* the values of
    arguments of the commands above.
    """
    outer = outer or {}
    handlers = {inner.handler for inner in command.all_commands()}
    handlers -= {command.handler, ""}
    below = {word: _names_below(inner) for word, inner in command.commands.items()}
    subcommand_names: set[str] = set()
    if below:
        subcommand_names = {command.chooser, *HANDLERS}.union(*below.values())
        subcommand_names -= {argument.name for argument in command.arguments}
    own = [check for check in checks if check.function not in handlers]
    _apply_own(command, own, subcommand_names, filled, outer)
    values = {**outer, **least_call(command, filled)}
    for word, inner in command.commands.items():
        # The arguments of the other commands do not exist in this one.
        others = subcommand_names - below[word] - values.keys() - {command.chooser}
        possible = [check for check in checks if check.used.isdisjoint(others)]
        other_handlers = handlers - {inner.handler}
        possible = [check for check in possible if check.function not in other_handlers]
        apply_checks(inner, possible, filled, {**values, command.chooser: Word(word)})


def _apply_own(
    command: Command,
    checks: list[Check],
    subcommand_names: set[str],
    filled: set[str],
    outer: Mapping[str, object],
) -> None:
    """Make *command* itself require the arguments that *checks* demand, except for
    checks of *subcommand_names*, the names of the commands below it.
    """
    own = {argument.name for argument in command.arguments}
    for check in checks:
        if not check.used.isdisjoint(subcommand_names):
            continue
        # The outer command has applied the tests of its own arguments, but not those of
        # the word that chose this command.
        if check.used.isdisjoint(own) and outer and not _tests_a_word(check, outer):
            continue
        # The handler is called for its command alone, under no other condition.
        is_own = bool(command.handler) and check.function == command.handler
        if is_own and check.tests[0] is ANYTHING:
            check = replace(check, tests=check.tests[1:])
        refuse(command, check, filled=filled, outer=outer)


def _tests_a_word(check: Check, outer: Mapping[str, object]) -> bool:
    """Return whether *check* tests a name that the commands above leave undecided, or
    set to a word.
    """
    return any(isinstance(outer.get(name, ""), str) for name in check.used)


def _names_below(command: Command) -> set[str]:
    names: set[str] = set()
    for inner in (command, *command.all_commands()):
        names.add(inner.chooser)
        names.update(argument.name for argument in inner.arguments)
    return names


def _mentions_usage(body: list[ast.stmt]) -> bool:
    return any("usage" in ast.unparse(statement).lower() for statement in body)


def _is_parse(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _PARSES
    )


def _given_all(call: ast.Call, names: _Names) -> bool:
    return any(dotted(argument) in names.holders for argument in call.args)


def _to_test(node: ast.expr, names: _Names) -> Test:
    argument = names.given(node)
    if argument is not None:
        return ("given", argument)
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return ("not", _to_test(inner, names))
        case ast.BoolOp(op=op, values=values):
            kind = "and" if isinstance(op, ast.And) else "or"
            return (kind, [_to_test(value, names) for value in values])
        case ast.Call(
            func=ast.Name(id="any" | "all" as function),
            args=[ast.List(elts=values) | ast.Tuple(elts=values)],
        ):
            kind = "and" if function == "all" else "or"
            return (kind, [_to_test(value, names) for value in values])
        case ast.Name(id=name) if name in names.tests:
            return names.tests[name]
        case ast.Constant(value=value):
            return ("and" if value else "or", [])
        # A trimmed text, or a part of a list, is empty if the whole is empty.
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[]) if (
            name in _TRIMS
        ):
            return _to_test(owner, names)
        case ast.Subscript(value=owner, slice=ast.Slice()):
            return _to_test(owner, names)
        # ``args.command[1:] if args.command[:1] == ["--"] else args.command``.
        case ast.IfExp(body=one, orelse=other) if _to_test(one, names) == _to_test(
            other, names
        ):
            return _to_test(one, names)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            first, second = _operand(left, names), _operand(right, names)
            if first is not None and second is not None:
                how = _OPERATORS.get(type(op), "in")
                test: Test = ("compare", how, first, second)
                return ("not", test) if isinstance(op, ast.NotIn) else test
    return _unknown(node, names)


def _unknown(node: ast.expr, names: _Names) -> Test:
    """Return a test that cannot be read, with the arguments that it mentions."""
    attributes = names.nodes.all_of(node, ast.Attribute)
    plain_names = names.nodes.all_of(node, ast.Name)
    if any(attribute.attr in _MACHINE for attribute in attributes):
        return MACHINE
    if any(name.id in _MACHINE for name in plain_names):
        return MACHINE
    used = set(filter(None, names.given_in(node)))
    if names.tests:
        for part in [*attributes, *plain_names]:
            used |= names_in(names.tests.get(dotted(part), ANYTHING))
    return ("unknown", frozenset(used))


def _is_of_arguments(test: Test) -> bool:
    """Return whether only arguments that are given, or not, decide *test*; few, since
    names of names could double them.
    """
    parts = test[1] if test[0] == "or" else [test]
    return 0 < len(parts) < 6 and all(part[0] == "given" for part in parts)


def _operand(node: ast.expr, names: _Names) -> Test | None:
    argument = names.given(node)
    if argument is not None:
        return ("name", argument)
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[counted]):
            argument = names.given(counted)
            if argument is not None:
                return ("len", argument)
    try:
        return ("value", ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return None
