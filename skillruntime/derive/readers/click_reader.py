"""The commands of click and typer, declared by decorators: the rules of ``option`` and
``argument``, one by one.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.derive.command import (
    TEXT,
    Argument,
    Command,
    Reading,
    Unread,
    ValueType,
)
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.python_checks import apply_checks, checks_of_function
from skillruntime.derive.readers.python_values import (
    UNKNOWN,
    Called,
    Enumeration,
    Function,
    Member,
    Scope,
    Symbol,
    all_nodes,
    dotted,
    evaluate,
    items_of,
    once_for_each,
    own_nodes,
)
from skillruntime.derive.readers.typer_signatures import WORDS, typer_parameters
from skillruntime.derive.readers.value_types import (
    INTEGER,
    NUMBER,
    PATH,
    fits,
    ranged,
    read_type,
    refuses_values,
    to_json,
)
from skillruntime.derive.text_fields import (
    first_paragraph,
    flattened,
    free_name,
    plain_name,
)

__all__ = ["read_click"]

DECLARED_LIMIT = 1_000
"""Commands and parameters of a script; a group that is below two others counts
twice.
"""

_TYPES = {
    "click.INT": INTEGER,
    "click.FLOAT": NUMBER,
    "click.STRING": TEXT,
    "click.BOOL": WORDS,
    "click.UUID": ValueType({"type": "string", "format": "uuid"}),
    "click.Path": PATH,
    "click.File": PATH,
    # click's BOOL takes words, not a switch: ``--cache true``
    # (click.types.BoolParamType).
    "builtins.bool": WORDS,
}


@dataclass(slots=True, eq=False)
class _Made:
    """A command or group: its function, what declared it, and its parameters in the
    order of the source.
    """

    word: str
    named: dict[str, Any]
    is_group: bool
    function: Function | None = None
    parameters: list[Called] = field(default_factory=list)
    below: dict[str, _Made] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)
    is_below: bool = False
    is_typer: bool = False


def read_click(tree: ast.Module, scope: Scope) -> Reading | None:
    """Return the command that is called, or else the one with most below it; None where
    none is declared.
    """
    made = _find_commands(tree, scope)
    calls = [each for each in own_nodes(tree) if isinstance(each, ast.Call)]
    called = [
        made[name]
        for each in calls
        if (name := dotted(each.func).removesuffix(".main")) in made
    ]
    for each in calls:
        function = evaluate(each.args[0], scope) if each.args else None
        if isinstance(function, Function) and evaluate(each.func, scope) == Symbol(
            "typer.run"
        ):
            called = [_of_signature(function, {}, scope)]
    tops = called or [each for each in made.values() if not each.is_below]
    if not tops:
        return None
    top = max(tops, key=lambda each: len(each.below))
    framework = "typer" if top.is_typer else "click"
    if _is_too_large(top):
        unread = Unread(
            "arguments", f"there are more than {DECLARED_LIMIT}", is_needed=True
        )
        return Reading(Command("click", unread=[unread]), framework)
    return Reading(
        _to_command(top, first_paragraph(ast.get_docstring(tree)), is_top=True),
        framework,
    )


def _is_too_large(top: _Made) -> bool:
    """Whether *top* declares more than is read, or is a group below itself."""
    size = 0
    pending = [top]
    while pending and size <= DECLARED_LIMIT:
        made = pending.pop()
        size += len(made.parameters) + len(made.below)
        pending += made.below.values()
    return size > DECLARED_LIMIT


def _find_commands(tree: ast.Module, scope: Scope) -> dict[str, _Made]:
    """Return the commands and groups by their names."""
    found: dict[str, _Made] = {}
    for statement in tree.body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if (made := _decorated(statement, scope, found)) is not None:
                    found[statement.name] = made
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known = evaluate(value, scope)
                if isinstance(known, Called) and known.name in (
                    "click.Group",
                    "typer.Typer",
                ):
                    is_typer = known.name == "typer.Typer"
                    found[name] = _Made(
                        str(known.named.get("name", "")),
                        known.named,
                        True,
                        is_typer=is_typer,
                    )
    for each in own_nodes(tree):
        owner, _, what = (
            dotted(each.func).rpartition(".")
            if isinstance(each, ast.Call)
            else ("", "", "")
        )
        if (
            isinstance(each, ast.Call)
            and owner in found
            and what in ("add_command", "add_typer")
        ):
            is_certain = any(getattr(one, "value", None) is each for one in tree.body)
            _add_below(each, scope, found, found[owner], is_certain=is_certain)
    return found


def _add_below(
    node: ast.Call,
    scope: Scope,
    found: dict[str, _Made],
    group: _Made,
    *,
    is_certain: bool,
) -> None:
    command = found.get(dotted(node.args[0])) if node.args else None
    named = {str(each.arg): evaluate(each.value, scope) for each in node.keywords}
    word = (
        evaluate(node.args[1], scope)
        if len(node.args) > 1
        else named.get("name", command.word if command else "")
    )
    if command is None or not isinstance(word, str) or not word or not is_certain:
        group.unread.append(Unread("a command", "it is computed", node.lineno))
        return
    group.below[word], command.is_below = command, True
    command.named = {**command.named, **named}


def _decorated(node: Function, scope: Scope, found: dict[str, _Made]) -> _Made | None:
    made: _Made | None = None
    parameters: list[Called] = []
    unread: list[Unread] = []
    for decorator in node.decorator_list:
        plain = ast.copy_location(ast.Call(decorator, [], []), decorator)
        call = decorator if isinstance(decorator, ast.Call) else plain
        owner, _, what = dotted(call.func).rpartition(".")
        known = evaluate(call, scope)
        name = known.name if isinstance(known, Called) else ""
        if owner in found and what in ("command", "group", "callback"):
            made = _below(found[owner], what, node, call, scope)
        elif isinstance(known, Called) and name in ("click.command", "click.group"):
            word = _command_word(node.name, known.arguments, known.named)
            made = _Made(word, known.named, name == "click.group", node)
        elif isinstance(known, Called) and name in ("click.option", "click.argument"):
            parameters.append(known)
        # ``password_option``, ``confirmation_option``; the two others print and exit
        # before anything else happens.
        elif name.endswith("_option") and not name.endswith(
            ("version_option", "help_option")
        ):
            unread.append(
                Unread(
                    "an option", "it asks at a terminal", node.lineno, is_needed=True
                )
            )
        elif _may_add(call, name, scope):
            unread.append(
                Unread(
                    "an option", f"{ast.unparse(call.func)} may add some", node.lineno
                )
            )
    if made is not None and not made.is_typer:
        made.parameters = parameters
    if made is not None:
        made.unread += unread
        if "cls" in made.named:
            made.unread.append(
                Unread(
                    "arguments",
                    "its class is its own",
                    node.lineno,
                    is_needed=made.is_group,
                )
            )
    return made


def _below(
    group: _Made, what: str, node: Function, call: ast.Call, scope: Scope
) -> _Made | None:
    """Hang what the decorator of a group makes of a function below it."""
    arguments = [evaluate(each, scope) for each in call.args]
    named = {str(each.arg): evaluate(each.value, scope) for each in call.keywords}
    if what == "callback":
        group.function, group.named = node, {**group.named, **named}
        group.parameters = typer_parameters(node, scope, group.unread)
        return None
    made = (
        _of_signature(node, named, scope)
        if group.is_typer
        else _Made("", named, what == "group", node)
    )
    made.word, made.is_below = _command_word(node.name, arguments, named), True
    group.below[made.word] = made
    if UNKNOWN in [*arguments, named.get("name")]:
        group.unread.append(Unread("a command", "its name is computed", node.lineno))
    return made


def _of_signature(function: Function, named: dict[str, Any], scope: Scope) -> _Made:
    made = _Made(function.name, named, False, function, is_typer=True)
    made.parameters = typer_parameters(function, scope, made.unread)
    return made


def _may_add(call: ast.Call, name: str, scope: Scope) -> bool:
    """Whether a decorator may add parameters: one of the script that names none does
    not, nor does Python's own.
    """
    function = evaluate(call.func, scope)
    if isinstance(function, ast.FunctionDef):
        return _names_parameters(function)
    return bool(name) and name.partition(".")[0] not in (
        "click",
        "typer",
        "builtins",
        *sys.stdlib_module_names,
    )


@once_for_each
def _names_parameters(function: Function) -> bool:
    return any(
        dotted(each).rpartition(".")[2] in ("option", "argument")
        for each in all_nodes(function)
    )


def _command_word(function: str, arguments: list[Any], named: dict[str, Any]) -> str:
    """Return the word that chooses a command: the one that is given, or the function's
    name.
    """
    given = arguments[0] if arguments else named.get("name")
    if isinstance(given, str):
        return given
    word = function.lower().replace("_", "-")
    # Since click 8.2 these endings of a function's name are dropped.
    for ending in ("-command", "-cmd", "-group", "-grp"):
        word = word.removesuffix(ending) or word
    return word


def _to_command(made: _Made, description: str, *, is_top: bool) -> Command:
    # A typer application with one command and no callback is that command
    # (typer.main.get_command).
    if (
        made.is_typer
        and made.is_group
        and is_top
        and len(made.below) == 1
        and made.function is None
    ):
        only = next(iter(made.below.values()))
        if not only.is_group:
            return _to_command(
                only,
                first_paragraph(made.named.get("help")) or description,
                is_top=False,
            )
    command = Command("click", first_paragraph(_help_text(made)) or description)
    command.unread += made.unread
    filled = _read_parameters(made, command)
    if made.function is not None and not made.is_group:
        apply_checks(
            command,
            checks_of_function(
                made.function, {each.name for each in command.arguments}
            ),
            filled,
        )
    if made.is_group:
        command.chooser = "command"
        for word, below in made.below.items():
            command.commands[word] = _to_command(below, "", is_top=False)
        if not command.commands:
            command.chooser = ""
            command.unread.append(
                Unread("commands", "none of them can be read", is_needed=True)
            )
    return command


def _help_text(made: _Made) -> str:
    documented = ast.get_docstring(made.function) if made.function is not None else None
    # The help option's text is ``help``, else the docstring (click.decorators.command),
    # up to a form feed.
    stated = [
        each
        for each in (made.named.get("help"), made.named.get("short_help"))
        if isinstance(each, str)
    ]
    return [*stated, documented or ""][0].split("\f")[0].replace("\b", "")


def _read_parameters(made: _Made, command: Command) -> set[str]:
    """Add the parameters of *made* to *command*; return those that may have a value
    from elsewhere.
    """
    filled: set[str] = set()
    taken: dict[str, int] = {}
    for each in made.parameters:
        found = _read_parameter(each, command)
        if isinstance(found, Unread):
            command.unread.append(found)
        elif found is not None:
            command.arguments.append(
                replace(found, name=free_name(plain_name(found.name), taken))
            )
            if {"envvar", "callback", "prompt"} & each.named.keys() or each.named.get(
                "default"
            ) not in (None, False):
                filled.add(command.arguments[-1].name)
            if found.required and refuses_values(each.named.get("callback")):
                command.unread.append(
                    Unread(
                        found.shown,
                        "its callback may refuse the value",
                        each.node.lineno,
                    )
                )
    return filled


def _split_flags(declarations: list[str]) -> tuple[str, tuple[str, ...], str | None]:
    """Return the name, the flags, and the flag that says no: ``["--shout/--no-shout",
    "-s"]``.
    """
    flags: list[str] = []
    off: str | None = None
    name = ""
    for each in declarations:
        if each.isidentifier():
            name = each
            continue
        yes, _, no = (part.strip() for part in each.partition("/"))
        flags += [yes] if yes else []
        off = no or off
    if not name and flags:
        # click.core.Option._parse_decls: the flag with the longest prefix names the
        # parameter.
        longest = max(flags, key=lambda flag: len(flag) - len(flag.lstrip("-")))
        name = longest.lstrip("-").replace("-", "_").lower()
    return name, tuple(flags), off


def _read_parameter(made: Called, command: Command) -> Argument | Unread | None:
    declarations = [each for each in made.arguments if isinstance(each, str)]
    # A class of its own may take any number of words.
    if (
        len(declarations) != len(made.arguments)
        or {"**", "cls"} & made.named.keys()
        or not declarations
    ):
        return Unread(
            next(iter(declarations), "a parameter"),
            "it is computed",
            made.node.lineno,
            is_needed=True,
        )
    # An eager callback usually prints and exits.
    if "callback" in made.named and made.named.get("is_eager") is True:
        return None
    if made.name.endswith("argument"):
        return _read_argument(made, declarations[0], command)
    return _read_option(made, declarations, command)


def _read_argument(made: Called, declared: str, command: Command) -> Argument | Unread:
    named = made.named
    value = _noted(
        command, declared, _read_click_type(named.get("type"), named.get("default"))
    )
    nargs = named.get("nargs", 1)
    if not isinstance(nargs, int):
        return Unread(
            declared,
            "the number of its values is computed",
            made.node.lineno,
            is_needed=True,
        )
    default = _fitting_default(named.get("default"), value, nargs != 1)
    # click.core.Argument: required unless it has a default or takes any number of
    # words.
    required = named.get("required", "default" not in named and nargs >= 0) is True
    description = flattened(named.get("help"))
    argument = Argument(
        declared.lower().replace("-", "_"),
        (),
        "value",
        value,
        required,
        default,
        description,
    )
    # ``nargs=-1`` takes all words that are left; click allows one such argument.
    if nargs == -1:
        return replace(argument, takes="values", least=int(required), default=ABSENT)
    return (
        argument
        if nargs == 1
        else replace(argument, takes="values", length=nargs, least=nargs)
    )


def _read_option(
    made: Called, declarations: list[str], command: Command
) -> Argument | Unread:
    named, line = made.named, made.node.lineno
    name, flags, off = _split_flags(declarations)
    if not flags:
        return Unread(declarations[0], "it has no flag", line)
    default, kind = named.get("default"), named.get("type")
    # ``prompt=True`` reads from the terminal, which a tool does not have.
    required = named.get("required") is True or named.get("prompt", False) not in (
        None,
        False,
    )
    argument = Argument(
        name,
        flags,
        required=required,
        description=flattened(named.get("help") or named.get("prompt")),
    )
    if named.get("count") is True:
        return replace(
            argument,
            takes="count",
            default=default if type(default) is int else 0,
            required=False,
        )
    is_flag = named.get("is_flag")
    if UNKNOWN in (is_flag, named.get("required")):
        return Unread(flags[0], "whether it takes a value is computed", line)
    # ``--upper`` with ``flag_value="upper"``: several flags set one parameter, and each
    # is a switch here.
    if named.get("flag_value", True) is not True:
        return replace(argument, name=flags[0], takes="nothing")
    if is_flag is None and kind is None:
        # click.core.Option.__init__: a slash in the declaration or a boolean default
        # makes a flag.
        is_flag = (type(default), "multiple" in named) == (bool, False)
    if is_flag or off is not None:
        known = default if isinstance(default, bool) and off else ABSENT
        return replace(argument, takes="nothing", off_flag=off, default=known)
    value = _noted(command, flags[0], _read_click_type(kind, default))
    nargs, multiple = named.get("nargs", 1), named.get("multiple", False)
    # ``type=(str, int)``: JSON Schema could say it, the command line of a contract
    # cannot.
    if (
        isinstance(kind, tuple)
        or not isinstance(nargs, int)
        or not isinstance(multiple, bool)
    ):
        return Unread(
            flags[0], "the number or the kinds of its values cannot be read", line
        )
    known = (
        ABSENT if required else _fitting_default(default, value, multiple or nargs != 1)
    )
    argument = replace(argument, value=value, default=known, repeat=multiple)
    return (
        argument
        if nargs == 1
        else replace(argument, takes="values", length=nargs, least=nargs)
    )


def _noted(command: Command, shown: str, value: ValueType) -> ValueType:
    if "choices" in value.unsure:
        command.unread.append(Unread(shown, value.unsure))
    elif value.unsure:
        command.notes.append(f"{shown}: {value.unsure}; it is passed on as text")
    return value


def _read_click_type(kind: Any, default: Any) -> ValueType:
    """Return what a click ``type=`` takes; without one, what the default is."""
    if kind is None:
        probe = default[0] if isinstance(default, list | tuple) and default else default
        # Without a type the default's type is the type (click.types.convert_type).
        return {bool: WORDS, int: INTEGER, float: NUMBER}.get(type(probe), TEXT)
    match kind:
        case ValueType():
            return kind
        case Symbol(name=name) | Called(name=name) if name in _TYPES:
            return _TYPES[name]
        case Called(name="click.Choice"):
            return _read_choice(kind)
        case Called(name="click.IntRange" | "click.FloatRange" as name):
            base = INTEGER if name == "click.IntRange" else NUMBER
            return ranged(
                base,
                dict(zip(("min", "max"), kind.arguments, strict=False)) | kind.named,
            )
    return read_type(kind)


def _read_choice(made: Called) -> ValueType:
    given = made.arguments[0] if made.arguments else made.named.get("choices")
    items = items_of(given)
    if (
        items is UNKNOWN
        or not items
        or not all(isinstance(item, str | Member) for item in items)
    ):
        return ValueType(TEXT.schema, unsure="its choices are computed")
    # ``Choice(Colour)`` takes the members' names (click 8.2).
    is_whole = isinstance(given, Enumeration)
    words = [
        str(item.name if is_whole else item.value) if isinstance(item, Member) else item
        for item in items
    ]
    return ValueType({"type": "string", "enum": list(dict.fromkeys(words))})


def _fitting_default(default: Any, value: ValueType, is_many: bool) -> Any:
    """Return the default as an argument; ABSENT if there is none, or if no argument
    expresses it.
    """
    if default is None or default is UNKNOWN:
        return ABSENT
    plain = to_json(default)
    if plain is ABSENT or is_many != isinstance(plain, list):
        return ABSENT
    items = plain if is_many else [plain]
    if not all(fits(item, value.schema) for item in items):
        return ABSENT
    return plain
