"""The conditions under which a Python script ends with an error: ``if not args.input: parser.error(...)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from skillruntime.derive.command import Command
from skillruntime.derive.readers.checks import ANYTHING, MACHINE, Test, least_call, names_in, refuse
from skillruntime.derive.readers.python_values import Function, Source, all_nodes, dotted, own_nodes

__all__ = ["Check", "apply_checks", "checks_of_arguments", "checks_of_function", "refuses"]

CHECKS_LIMIT = 200
CONDITIONS_LIMIT = 30
"""Conditions around a check; behind more of them nothing is decided."""

LONG = 20
"""Characters, or items: a check that there are no more of them refuses no minimal call."""

_ERRORS = (
    *("UsageError", "BadParameter", "BadArgumentUsage", "BadOptionUsage", "MissingParameter", "ClickException"),
    *("ArgumentError", "ArgumentTypeError", "ValueError"),
)
_EXITS = ("SystemExit", "exit", "quit", "Exit", "_exit")
_OUTPUT = ("print", "echo", "secho", "write", "error", "warning", "critical", "exception", "info")
_PARSES = ("parse_args", "parse_known_args", "parse_intermixed_args")
_MACHINE = frozenset(
    {"exists", "is_file", "is_dir", "isfile", "isdir", "access", "which", "isatty", "environ", "getenv"}
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


@dataclass(frozen=True, slots=True)
class Check:
    """Tests that together end the script, the last as it is written, and the function they are in."""

    tests: list[Test]
    shown: ast.expr
    function: str


@dataclass(slots=True)
class _Names:
    """What the names of a function, or of the module, hold: all that was parsed, or the value of one argument."""

    holders: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    doubtful: dict[str, str] = field(default_factory=dict)
    """Names that hold an argument's value, or something else."""
    problems: set[str] = field(default_factory=set)
    """Names of what a function of the script gave for all that was parsed: ``problems = validate(args)``."""

    def given(self, node: ast.AST) -> str | None:
        """Return the argument whose value *node* is."""
        match node:
            case ast.Name(id=name):
                return self.values.get(name)
            case ast.Attribute(value=owner, attr=name) if dotted(owner) in self.holders:
                return name
            # ``vars(parser.parse_args())``.
            case ast.Subscript(value=owner, slice=ast.Constant(value=str(name))) if dotted(owner) in self.holders:
                return name
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, name_, *_]) if dotted(owner) in self.holders:
                # ``for name in REQUIRED: if not getattr(args, name)`` may be any of them.
                return str(getattr(name_, "value", "an argument"))
        return None


@dataclass(slots=True)
class _Walk:
    """Walks statements in their order, with the conditions under which each is reached."""

    functions: Mapping[str, Function]
    names: _Names
    filled: set[str] = field(default_factory=set)
    """Arguments that the script assigns itself."""
    parsing: set[str] = field(default_factory=set)
    """Functions that give what was parsed."""
    inside: list[str] = field(default_factory=lambda: [""])
    walked: set[str] = field(default_factory=set)

    def body(self, body: list[ast.stmt], before: list[Test]) -> Iterator[Check]:
        before = list(before)
        for each in body:
            if len(before) > CONDITIONS_LIMIT:
                before = [ANYTHING]
            match each:
                case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=inner) | ast.With(body=inner):
                    yield from self.body(inner, before)
                case ast.If():
                    yield from self.chain(each, before)
                case ast.For(body=inner) | ast.While(body=inner):
                    yield from self.body(inner, [*before, ANYTHING])
                case ast.Try(body=inner, orelse=rest):
                    yield from self.body([*inner, *rest], before)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    continue
                case ast.Assign(targets=[target], value=value):
                    yield from self.calls(each, before)
                    self.assign(target, value)
                case _:
                    yield from self.calls(each, before)
            if isinstance(each, ast.Return | ast.Raise):
                return

    def chain(self, statement: ast.If, before: list[Test]) -> Iterator[Check]:
        """Yield the checks of an ``if`` and its ``else``; *before* is extended by what holds behind it."""
        yield from self.calls(statement.test, before)
        test = _to_test(statement.test, self.names)
        if isinstance(statement.test, ast.Name) and statement.test.id in self.names.problems:
            test = ("unknown", frozenset({"arguments"}))
        for condition, body in ((test, statement.body), (("not", test), statement.orelse)):
            if body and refuses(body, self.functions):
                yield Check([*before, condition], statement.test, self.inside[-1])
            elif body:
                yield from self.body(body, [*before, condition])
        if refuses(statement.body, self.functions):
            before.append(("checked", ("not", test)))
        elif _leaves(statement.body):
            before.append(("not", test))

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Note what holds what was parsed, and what the script sets itself."""
        calls = [each for each in [value, *own_nodes(value)] if isinstance(each, ast.Call)]
        name = dotted(target.elts[0] if isinstance(target, ast.Tuple) else target)
        if any(_is_parse(each) or dotted(each.func) in self.parsing for each in calls):
            self.names.holders.add(name)
        elif any(dotted(each.func) in self.functions and _given_all(each, self.names) for each in calls):
            self.names.problems.add(name)
        elif isinstance(target, ast.Attribute) and (own := self.names.given(target)):
            self.filled.add(own)
        elif (own := self.names.given(value)) is not None:
            self.names.values[name] = own
        # ``query = args.query``, and something else later: it may be either.
        elif name in self.names.values:
            self.names.doubtful[name] = self.names.values.pop(name)

    def calls(self, node: ast.AST, before: list[Test]) -> Iterator[Check]:
        """Yield the checks of the script's functions that are called in *node*, each where it is called first."""
        for each in [node, *own_nodes(node)]:
            name = dotted(each.func) if isinstance(each, ast.Call) else ""
            if isinstance(each, ast.Call) and name in self.functions and name not in self.walked:
                parameters = [one.arg for one in self.functions[name].args.args]
                pairs = [
                    *zip(parameters, each.args, strict=False),
                    *((str(one.arg), one.value) for one in each.keywords),
                ]
                holders = {parameter for parameter, value in pairs if dotted(value) in self.names.holders}
                values = {parameter: own for parameter, value in pairs if (own := self.names.given(value))}
                yield from self.function(name, _Names(holders, values), before)

    def function(self, name: str, names: _Names, before: list[Test]) -> Iterator[Check]:
        self.walked.add(name)
        # No script's author calls fifty functions from each other.
        if len(self.inside) < 50:
            self.inside.append(name)
            outer, self.names = self.names, names
            yield from self.body(self.functions[name].body, before)
            self.names = outer
            self.inside.pop()


def checks_of_arguments(source: Source) -> tuple[list[Check], set[str]]:
    """Return the checks of what ``parse_args`` gave, and the names of arguments that the script itself assigns."""
    methods = {id(each) for node in source.nodes if isinstance(node, ast.ClassDef) for each in node.body}
    # ``open(path)`` does not call a method of that name.
    functions = {f"self.{each.name}" if id(each) in methods else each.name: each for each in source.mentioned}
    parsing = {name for name, each in functions.items() if not source.mentioned[each].isdisjoint(_PARSES)}
    walk = _Walk(functions, _Names(), parsing=parsing)
    found = list(walk.body(source.tree.body, []))
    # A function that only a table, a class or another module calls: when is not known.
    for name, function in functions.items():
        held = {each.arg for each in function.args.args if each.arg in ("args", "options", "opts", "ns")}
        if name not in walk.walked and (held or name in parsing):
            found += walk.function(name, _Names(held), [ANYTHING] if name not in parsing else [])
    return found[:CHECKS_LIMIT], walk.filled


def checks_of_function(function: Function, names: set[str]) -> list[Check]:
    """Return the checks of a function of click or typer, whose parameters *names* are the arguments."""
    stored = {each.id for each in own_nodes(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    walk = _Walk({}, _Names(values={each: each for each in names - stored}))
    return list(walk.body(function.body, []))[:CHECKS_LIMIT]


def apply_checks(
    command: Command, checks: list[Check], filled: set[str], outer: Mapping[str, object] | None = None
) -> None:
    """Require in *command* and those below it what *checks* demand; what cannot be decided is unread.

    *filled* are arguments that the script itself may set, *outer* the values of those of the commands above.
    """
    outer = outer or {}
    below = list(command.all_commands())
    handlers = {each.handler for each in below} - {command.handler, ""}
    for check in checks:
        if check.function not in handlers and _is_about(check, command, outer, below):
            # Such a function is called for its command alone, under no other condition.
            is_own = bool(command.handler) and check.function == command.handler
            tests = check.tests[1:] if is_own and check.tests[0] is ANYTHING else check.tests
            refuse(command, tests, ast.unparse(check.shown), filled=filled, outer=outer, line=check.shown.lineno)
    values = {**outer, **least_call(command, filled)}
    for word, inner in command.commands.items():
        others = [each for each in checks if each.function not in handlers or each.function == inner.handler]
        apply_checks(inner, others, filled, {**values, command.chooser: word})


def _is_about(check: Check, command: Command, outer: Mapping[str, object], below: list[Command]) -> bool:
    """Whether *check* is to be looked at for *command*, and not for one below or above it."""
    own = {each.name for each in command.arguments}
    used = set().union(*map(names_in, check.tests))
    if command.chooser in used or used & ({argument.name for each in below for argument in each.arguments} - own):
        return False
    # A test of what the outer command has was looked at there, but for one of the word that chose this one.
    return bool(used & own) or not outer or any(isinstance(outer.get(each, ""), str) for each in used)


def _is_parse(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARSES


def refuses(body: list[ast.stmt], functions: Mapping[str, Function] = MappingProxyType({})) -> bool:
    """Whether *body* ends the script as one that was called wrongly.

    ``parser.error`` and ``ctx.fail`` do so by themselves; after ``print_help`` scripts exit or return.
    """
    calls = [each.value.func for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)]
    for each in calls:
        owner, _, name = dotted(each).rpartition(".")
        if name in ("print_help", "print_usage", "fail") or (name == "error" and owner and "log" not in owner.lower()):
            return True
    last = body[-1]
    if isinstance(last, ast.Return):
        return _returns_error(last, len(body) - 1, [dotted(each).rpartition(".")[2] for each in calls])
    call = last.value if isinstance(last, ast.Expr) else last.exc if isinstance(last, ast.Raise) else None
    if not isinstance(call, ast.Call):
        return False
    name = dotted(call.func).rpartition(".")[2]
    # ``raise SystemExit``, ``raise typer.Exit`` and ``sys.exit`` say by their status whether it is an error.
    if name in _EXITS:
        status = [*call.args, *(each.value for each in call.keywords)][:1]
        return any(not (isinstance(each, ast.Constant) and each.value in (0, None)) for each in status)
    return name in _ERRORS or (name in functions and refuses(functions[name].body))


def _returns_error(last: ast.Return, before: int, called: list[str]) -> bool:
    status = getattr(last.value, "value", None) if isinstance(last.value, ast.Constant | None) else 0
    # ``print("--input is required"); return``.
    if status is None:
        return before > 0 and len(called) == before and set(called) <= set(_OUTPUT)
    # ``sys.exit(main())``: what ``main`` returns is the status.
    return type(status) is int and status != 0


def _leaves(body: list[ast.stmt]) -> bool:
    last = body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    if isinstance(call, ast.Call) and dotted(call.func).rpartition(".")[2] in _EXITS:
        return True
    return isinstance(last, ast.Return | ast.Raise | ast.Continue)


def _given_all(call: ast.Call, names: _Names) -> bool:
    return any(dotted(each) in names.holders for each in call.args)


def _to_test(node: ast.expr, names: _Names) -> Test:
    if (name := names.given(node)) is not None:
        return ("given", name)
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return ("not", _to_test(inner, names))
        case ast.BoolOp(op=op, values=values):
            return ("and" if isinstance(op, ast.And) else "or", [_to_test(each, names) for each in values])
        case ast.Call(func=ast.Name(id="any" | "all" as name), args=[ast.List(elts=values) | ast.Tuple(elts=values)]):
            return ("and" if name == "all" else "or", [_to_test(each, names) for each in values])
        # ``len(args.prompt) > 1500``: a value that is no longer than needed passes.
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="len")),
            ops=[ast.Gt() | ast.GtE()],
            comparators=[ast.Constant(value=int(most))],
        ) if most >= LONG:
            return MACHINE
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            how = _OPERATORS.get(type(op), "in")
            one, other = _operand(left, names), _operand(right, names)
            if one is not None and other is not None:
                test: Test = ("compare", how, one, other)
                return ("not", test) if isinstance(op, ast.NotIn) else test
    nodes = all_nodes(node)
    if any(getattr(each, "attr", getattr(each, "id", "")) in _MACHINE for each in nodes):
        return MACHINE
    used = {names.given(each) or names.doubtful.get(dotted(each), "") for each in nodes}
    return ("unknown", frozenset(used - {""}))


def _operand(node: ast.expr, names: _Names) -> Test | None:
    if (name := names.given(node)) is not None:
        return ("name", name)
    try:
        return ("value", ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return None
