"""The conditions under which a Python script ends with an error: ``if not args.input:
parser.error(...)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from skillruntime.derive.command import Command
from skillruntime.derive.readers.checks import (
    ANYTHING,
    MACHINE,
    Check,
    Test,
    least_call,
    names_in,
    refuse,
)
from skillruntime.derive.readers.python_values import (
    Function,
    Source,
    all_nodes,
    dotted,
    own_nodes,
)

__all__ = [
    "HANDLERS",
    "apply_checks",
    "checks_of_arguments",
    "checks_of_function",
    "refusal",
]

CHECKS_LIMIT = 200
CONDITIONS_LIMIT = 30
"""Conditions around a check; behind more of them nothing is decided."""

HANDLERS = ("func", "handler", "fn", "run", "callback")
"""Names under which ``set_defaults`` keeps the function of a command: where it is
there, a command was chosen.
"""

_USAGE_ERRORS = (
    *(
        "UsageError",
        "BadParameter",
        "BadArgumentUsage",
        "BadOptionUsage",
        "MissingParameter",
        "ClickException",
    ),
    *("ArgumentError", "ArgumentTypeError"),
)
_EXITS = ("SystemExit", "exit", "quit", "Exit", "_exit")
_OUTPUT = (
    "print",
    "echo",
    "secho",
    "write",
    "error",
    "warning",
    "critical",
    "exception",
    "info",
)
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
    """What the names of a function, or of the module, hold: all that was parsed, or the
    value of one argument.
    """

    holders: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    tests: dict[str, Test] = field(default_factory=dict)
    """When other names hold something that is not empty: ``source = args.file or
    args.url``.
    """
    derived: dict[str, frozenset[str]] = field(default_factory=dict)
    """The arguments that other names are made of: ``files = read_list(args.list)``."""
    problems: set[str] = field(default_factory=set)
    """Names of what a function of the script gave for all that was parsed: ``problems =
    validate(args)``.
    """

    def given(self, node: ast.AST) -> str | None:
        """Return the argument whose value *node* is."""
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
        """Return the arguments that *node* mentions, or that what it mentions was made
        of.
        """
        nodes = all_nodes(node)
        own = frozenset(name for each in nodes if (name := self.given(each)))
        return own.union(
            *(
                self.derived.get(each.id, ())
                for each in nodes
                if isinstance(each, ast.Name)
            )
        )


@dataclass(slots=True)
class _Walk:
    """Walks statements in their order, with the conditions under which each is
    reached.
    """

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
                case (
                    ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=inner)
                    | ast.With(body=inner)
                ):
                    yield from self.body(inner, before)
                case ast.If():
                    yield from self.chain(each, before)
                case ast.Match(subject=subject, cases=cases):
                    decides = ("unknown", self.names.made_of(subject))
                    for one in cases:
                        if refusal(one.body, self.functions):
                            yield Check(
                                [*before, decides],
                                ast.unparse(subject),
                                False,
                                each.lineno,
                                self.inside[-1],
                            )
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
        """Yield the checks of an ``if`` and its ``else``; *before* is extended by what
        holds behind it.
        """
        yield from self.calls(statement.test, before)
        is_problem = (
            isinstance(statement.test, ast.Name)
            and statement.test.id in self.names.problems
        )
        test = (
            ("unknown", frozenset({"arguments"}))
            if is_problem
            else _to_test(statement.test, self.names)
        )
        for condition, body in (
            (test, statement.body),
            (("not", test), statement.orelse),
        ):
            how = refusal(body, self.functions) if body else ""
            if how:
                shown = ast.unparse(statement.test)
                is_usage = how == "usage" or any(
                    "usage" in ast.unparse(each).lower() for each in body
                )
                made_of = self.names.made_of(statement.test)
                # ``if not files: parser.error(...)``: the values that they are made of
                # decide it.
                if is_usage and made_of and not names_in(condition):
                    condition, is_usage = ("unknown", made_of), False
                yield Check(
                    [*before, condition],
                    shown,
                    is_usage,
                    statement.lineno,
                    self.inside[-1],
                )
            elif body:
                yield from self.body(body, [*before, condition])
        if refusal(statement.body, self.functions):
            before.append(("checked", ("not", test)))
        elif _leaves(statement.body):
            before.append(("not", test))

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Note what holds what was parsed, and what the script sets itself."""
        calls = [
            each for each in [value, *own_nodes(value)] if isinstance(each, ast.Call)
        ]
        made_of = self.names.made_of(value)
        name = dotted(target.elts[0] if isinstance(target, ast.Tuple) else target)
        copies = any(
            dotted(each.func) in ("vars", "dict") and _given_all(each, self.names)
            for each in calls
        )
        if copies or any(
            _is_parse(each) or dotted(each.func) in self.parsing for each in calls
        ):
            self.names.holders.add(name)
        elif any(
            dotted(each.func) in self.functions and _given_all(each, self.names)
            for each in calls
        ):
            self.names.problems.add(name)
        elif isinstance(target, ast.Attribute) and (own := self.names.given(target)):
            # ``args.command = args.command[1:]`` fills nothing.
            self.filled |= (
                {own} if _to_test(value, self.names) != ("given", own) else set()
            )
        elif (own := self.names.given(value)) is not None:
            self.names.values[name] = own
        # ``query = args.query``, and something else later: it may be either.
        elif name in self.names.values:
            self.names.tests[name] = (
                "unknown",
                frozenset({self.names.values.pop(name)}),
            )
        elif _is_of_arguments(test := _to_test(value, self.names)):
            self.names.tests[name] = test
        self.names.derived[name] = self.names.derived.get(name, frozenset()) | made_of

    def calls(self, node: ast.AST, before: list[Test]) -> Iterator[Check]:
        """Yield the checks of the script's functions that are called in *node*, each
        where it is called first.
        """
        for each in [node, *own_nodes(node)]:
            name = dotted(each.func) if isinstance(each, ast.Call) else ""
            if (
                isinstance(each, ast.Call)
                and name in self.functions
                and name not in self.walked
            ):
                parameters = [one.arg for one in self.functions[name].args.args]
                pairs = [
                    *zip(parameters, each.args, strict=False),
                    *((str(one.arg), one.value) for one in each.keywords),
                ]
                holders = {
                    parameter
                    for parameter, value in pairs
                    if dotted(value) in self.names.holders
                }
                values = {
                    parameter: own
                    for parameter, value in pairs
                    if (own := self.names.given(value))
                }
                tests = {
                    one: self.names.tests[dotted(each)]
                    for one, each in pairs
                    if dotted(each) in self.names.tests
                }
                yield from self.function(name, _Names(holders, values, tests), before)

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
    """Return the checks of what ``parse_args`` gave, and the names of arguments that
    the script itself assigns.
    """
    methods = {
        id(each)
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
        for each in node.body
    }
    # ``open(path)`` does not call a method of that name.
    functions = {
        f"self.{each.name}" if id(each) in methods else each.name: each
        for each in source.mentioned
    }
    parsing = {
        name
        for name, each in functions.items()
        if not source.mentioned[each].isdisjoint(_PARSES)
    }
    walk = _Walk(functions, _Names(), parsing=parsing)
    found = list(walk.body(source.tree.body, []))
    # A function that only a table, a class or another module calls: when is not known.
    for name, function in functions.items():
        held = {
            each.arg
            for each in function.args.args
            if each.arg in ("args", "options", "opts", "ns")
        }
        if name not in walk.walked and (held or name in parsing):
            found += walk.function(
                name, _Names(held), [ANYTHING] if name not in parsing else []
            )
    return found[:CHECKS_LIMIT], walk.filled


def checks_of_function(function: Function, names: set[str]) -> list[Check]:
    """Return the checks of a function of click or typer, whose parameters *names* are
    the arguments.
    """
    stored = {
        each.id
        for each in own_nodes(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    walk = _Walk({}, _Names(values={each: each for each in names - stored}))
    return list(walk.body(function.body, []))[:CHECKS_LIMIT]


def apply_checks(
    command: Command,
    checks: list[Check],
    filled: set[str],
    outer: Mapping[str, object] | None = None,
) -> None:
    """Require in *command* and those below it what *checks* demand; what cannot be
    decided is unread.

    *filled* are arguments that the script itself may set, *outer* the values of those
    of the commands above.
    """
    outer = outer or {}
    handlers = {each.handler for each in command.all_commands()} - {command.handler, ""}
    below = {word: _names_below(inner) for word, inner in command.commands.items()}
    inside = (
        set().union(*below.values(), {command.chooser}, HANDLERS) if below else set()
    )
    inside -= {each.name for each in command.arguments}
    _apply_own(
        command,
        [each for each in checks if each.function not in handlers],
        inside,
        filled,
        outer,
    )
    values = {**outer, **least_call(command, filled)}
    for word, inner in command.commands.items():
        # No other command's arguments are there to be tested.
        others = inside - below[word] - values.keys() - {command.chooser}
        possible = [
            each
            for each in checks
            if each.function not in handlers or each.function == inner.handler
        ]
        possible = [each for each in possible if not each.used & others]
        apply_checks(inner, possible, filled, {**values, command.chooser: word})


def _apply_own(
    command: Command,
    checks: list[Check],
    inside: set[str],
    filled: set[str],
    outer: Mapping[str, object],
) -> None:
    """Require in *command* itself what those of *checks* demand that test nothing of
    the commands *inside* it.
    """
    own = {each.name for each in command.arguments}
    for check in checks:
        # What the outer command has was tested there, but for the word that chose this
        # one.
        is_outer = bool(outer) and all(
            not isinstance(outer.get(each, ""), str) for each in check.used
        )
        if not check.used & inside and (check.used & own or not is_outer):
            # Such a function is called for its command alone, under no other condition.
            is_own = bool(command.handler) and check.function == command.handler
            tests = (
                check.tests[1:]
                if is_own and check.tests[0] is ANYTHING
                else check.tests
            )
            refuse(command, replace(check, tests=tests), filled=filled, outer=outer)


def _names_below(command: Command) -> set[str]:
    return {
        name
        for each in (command, *command.all_commands())
        for name in (*(a.name for a in each.arguments), each.chooser)
    }


def _is_parse(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _PARSES
    )


def refusal(
    body: list[ast.stmt], functions: Mapping[str, Function] = MappingProxyType({})
) -> str:
    """Return how *body* ends the script with an error, ``"usage"`` or ``"work"``;
    nothing where it goes on.

    ``parser.error`` and ``ctx.fail`` do so by themselves; after ``print_help`` scripts
    exit or return.
    """
    calls = [
        each.value
        for each in body
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)
    ]
    for each in calls:
        owner, _, name = dotted(each.func).rpartition(".")
        if name in ("print_help", "print_usage", "fail") or (
            name == "error" and owner and "log" not in owner.lower()
        ):
            return "usage"
    last = body[-1]
    if isinstance(last, ast.Return):
        return _returned(last, len(body) - 1, calls)
    call = (
        last.value
        if isinstance(last, ast.Expr)
        else last.exc
        if isinstance(last, ast.Raise)
        else None
    )
    if not isinstance(call, ast.Call):
        return ""
    name = dotted(call.func).rpartition(".")[2]
    if name in _EXITS:
        return _exited(call)
    if name in functions:
        return refusal(functions[name].body)
    return "usage" if name in _USAGE_ERRORS else "work" if name == "ValueError" else ""


def _exited(call: ast.Call) -> str:
    """``raise SystemExit``, ``raise typer.Exit`` and ``sys.exit`` say by their status
    whether it is an error.
    """
    status = [*call.args, *(each.value for each in call.keywords), None][0]
    # ``sys.exit(run(args))``, ``sys.exit(0 if ok else 1)``: what the work came to.
    if (
        isinstance(status, ast.IfExp)
        or dotted(status.func if isinstance(status, ast.Call) else None).islower()
    ):
        return ""
    return (
        "work"
        if status is not None and getattr(status, "value", "") not in (0, None)
        else ""
    )


def _returned(last: ast.Return, before: int, calls: list[ast.Call]) -> str:
    status = (
        getattr(last.value, "value", None)
        if isinstance(last.value, ast.Constant | None)
        else 0
    )
    # ``print("--input is required"); return``; ``print(json.dumps(index)); return`` has
    # done its work.
    if status is None:
        messages = [
            each
            for each in calls
            if dotted(each.func).rpartition(".")[2] in _OUTPUT and each.args
        ]
        are_texts = all(
            isinstance(each.args[0], ast.Constant | ast.JoinedStr) for each in messages
        )
        return "work" if before > 0 and len(messages) == before and are_texts else ""
    # ``sys.exit(main())``: what ``main`` returns is the status.
    return "work" if type(status) is int and status != 0 else ""


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
            return (
                "and" if isinstance(op, ast.And) else "or",
                [_to_test(each, names) for each in values],
            )
        case ast.Call(
            func=ast.Name(id="any" | "all" as name),
            args=[ast.List(elts=values) | ast.Tuple(elts=values)],
        ):
            return (
                "and" if name == "all" else "or",
                [_to_test(each, names) for each in values],
            )
        case ast.Name(id=name) if name in names.tests:
            return names.tests[name]
        case ast.Constant(value=value):
            return ("and" if value else "or", [])
        # A text that was trimmed, and a part of a list, are empty where the whole is.
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
            how = _OPERATORS.get(type(op), "in")
            operands = _operand(left, names), _operand(right, names)
            if None not in operands:
                test: Test = ("compare", how, *operands)
                return ("not", test) if isinstance(op, ast.NotIn) else test
    return _unknown(node, names)


def _unknown(node: ast.expr, names: _Names) -> Test:
    """Return a test that cannot be read, with the arguments that it mentions."""
    nodes = all_nodes(node)
    if any(
        getattr(each, "attr", getattr(each, "id", "")) in _MACHINE for each in nodes
    ):
        return MACHINE
    used = {names.given(each) or "" for each in nodes} - {""}
    return (
        "unknown",
        frozenset(
            used.union(
                *(names_in(names.tests.get(dotted(each), ANYTHING)) for each in nodes)
            )
        ),
    )


def _is_of_arguments(test: Test) -> bool:
    """Whether only arguments that are given, or not, decide *test*; few, since names of
    names could double them.
    """
    parts = test[1] if test[0] == "or" else [test]
    return 0 < len(parts) < 6 and all(each[0] == "given" for each in parts)


def _operand(node: ast.expr, names: _Names) -> Test | None:
    if (name := names.given(node)) is not None:
        return ("name", name)
    if (
        isinstance(node, ast.Call)
        and dotted(node.func) == "len"
        and (name := names.given(node.args[0])) is not None
    ):
        return ("len", name)
    try:
        return ("value", ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError, MemoryError):
        return None
