"""Models of click's and typer's objects: commands, groups and applications record what is added to them."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.interpreter.state import Found, Library, State
from skillruntime.derive.interpreter.values import UNKNOWN, BoundMethod, ForeignCall, FunctionValue, Model, Symbol

__all__ = ["CLICK", "ClickCommandModel", "TyperModel"]

_PARAMETERS = ("option", "argument")
_READY_MADE = ("version_option", "help_option", "password_option", "confirmation_option")


class ClickCommandModel(Model):
    """A click command, or a group of them; ``declared`` are its parameters, in the order of the source."""

    def __init__(self, function: FunctionValue | None, name: str, named: dict[str, Any], *, is_group: bool) -> None:
        self.function, self.name, self.named, self.is_group = function, name, named, is_group
        self.declared: list[Any] = list(reversed(function.declared)) if function else []
        self.commands: dict[str, ClickCommandModel | TyperModel] = {}
        self.unread: list[tuple[str, int | None]] = []

    def call(self, state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Called without parameters of its own, it parses the command line."""
        raise Found(self)

    def call_method(self, state: State, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Record a command of the group."""
        line = getattr(node, "lineno", None)
        match name:
            case "command" | "group":
                return ForeignCall(f"click.{name}", arguments, named, node, self)
            case "add_command":
                command = arguments[0] if arguments else named.get("cmd")
                word = arguments[1] if len(arguments) > 1 else named.get("name")
                if isinstance(command, ClickCommandModel | TyperModel):
                    # ``group.add_command(command, name=None)``.
                    word = command.name if word is None else word
                    if isinstance(word, str) and state.uncertain == 0:
                        self.commands[word] = command
                        return None
                self.unread.append(("a command", line))
            case "main" | "__call__":
                raise Found(self)
            case "result_callback" | "resultcallback":
                return Symbol("click.passed_over")
        return UNKNOWN

    def leave(self, name: str, node: ast.AST) -> None:
        """Record that a function elsewhere may have added commands."""
        if not name.startswith(("click.", "typer.", "asyncio.")):
            self.unread.append((f"what {name} may add", getattr(node, "lineno", None)))


class TyperModel(Model):
    """A ``typer.Typer``: functions and applications by the word that chooses them."""

    def __init__(self, named: dict[str, Any]) -> None:
        self.named = named
        self.name = "" if named.get("name") is None else named["name"]
        self.commands: dict[str, tuple[Any, dict[str, Any]]] = {}
        self.callback: FunctionValue | None = None
        self.callback_named: dict[str, Any] = {}
        self.unread: list[tuple[str, int | None]] = []

    def call(self, state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Called, it parses the command line."""
        raise Found(self)

    def call_method(self, state: State, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Record a command or an application below."""
        match name:
            case "command" | "callback":
                return ForeignCall(f"typer.{name}", arguments, named, node, self)
            case "add_typer":
                below = arguments[0] if arguments else named.get("typer_instance")
                word = named.get("name", "")
                if word in ("", None) and isinstance(below, TyperModel):
                    word = below.name
                if isinstance(below, TyperModel) and isinstance(word, str) and word and state.uncertain == 0:
                    self.commands[word] = (below, named)
                else:
                    self.unread.append(("commands", getattr(node, "lineno", None)))
                return None
            case "__call__":
                raise Found(self)
        return UNKNOWN

    def attribute(self, name: str) -> Any:
        """Every attribute that matters is a method."""
        return BoundMethod(self, name)


def _decorate(state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    """Apply what a decorator factory gave to a function."""
    made, target = arguments[0], arguments[1] if len(arguments) > 1 else None
    library, _, what = made.symbol.partition(".")
    # A decorator of common options wraps the function, and hands on its parameters (``__click_params__``).
    if what == "wraps" and made.arguments and isinstance(made.arguments[0], FunctionValue):
        original = made.arguments[0]
        if isinstance(target, FunctionValue):
            target.declared = [*original.declared, *target.declared]
            target.wrapped = original.wrapped or original
        return target
    if isinstance(target, ClickCommandModel) and what in _PARAMETERS:
        # ``@click.option`` above ``@click.command``: click prepends it to the command's parameters.
        target.declared.insert(0, made)
        return target
    if not isinstance(target, FunctionValue):
        return target
    if what in _PARAMETERS or what in _READY_MADE:
        uncertain = ForeignCall("click.uncertain", made.arguments, made.named, made.node)
        target.declared.append(made if state.uncertain == 0 else uncertain)
        return target
    if library == "typer":
        return _hang_on_typer(made, target, what)
    if what in ("command", "group"):
        return _click_command(made, target, is_group=what == "group")
    return target


def _click_command(made: ForeignCall, target: FunctionValue, *, is_group: bool) -> ClickCommandModel:
    given = made.arguments[0] if made.arguments else made.named.get("name")
    word = given if isinstance(given, str) else target.name.lower().replace("_", "-")
    if not isinstance(given, str):
        # Since click 8.2 these endings of a function's name are dropped.
        for ending in ("-command", "-cmd", "-group", "-grp"):
            word = word.removesuffix(ending) or word
    command = ClickCommandModel(target, word, made.named, is_group=is_group)
    if isinstance(made.receiver, ClickCommandModel):
        if given is UNKNOWN:
            made.receiver.unread.append(("a command", getattr(made.node, "lineno", None)))
        else:
            made.receiver.commands[word] = command
    return command


def _hang_on_typer(made: ForeignCall, target: FunctionValue, what: str) -> FunctionValue:
    application = made.receiver
    if what == "callback" and isinstance(application, TyperModel):
        application.callback, application.callback_named = target, made.named
    elif what == "command" and isinstance(application, TyperModel):
        given = made.arguments[0] if made.arguments else made.named.get("name")
        word = given if isinstance(given, str) else target.name.lower().replace("_", "-")
        application.commands[word] = (target, made.named)
    return target


def _make_typer(state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> TyperModel:
    model = TyperModel(named)
    state.models.append(model)
    return model


def _run_typer(state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    if arguments and isinstance(arguments[0], FunctionValue):
        model = TyperModel({})
        model.commands[arguments[0].name] = (arguments[0], {})
        raise Found(model)
    return UNKNOWN


def _decorator(symbol: str) -> Any:
    def make(state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        made = ForeignCall(symbol, arguments, named, node)
        is_bare = len(arguments) == 1 and symbol in ("click.command", "click.group")
        if is_bare and isinstance(arguments[0], FunctionValue):
            return _decorate(state, [ForeignCall(symbol, [], {}, node), arguments[0]], {}, node)  # @click.command, bare
        return made

    return make


def _make_group(state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> ClickCommandModel:
    name = arguments[0] if arguments else named.get("name")
    return ClickCommandModel(None, name if isinstance(name, str) else "", named, is_group=True)


CLICK: Library = {
    **{f"click.{name}": _decorator(f"click.{name}") for name in ("command", "group")},
    "click.Group": _make_group,
    "functools.wraps": _decorator("functools.wraps"),
    "functools.update_wrapper": _decorator("functools.passed_over"),
    "typer.Typer": _make_typer,
    "typer.run": _run_typer,
    "decorate": _decorate,
}
