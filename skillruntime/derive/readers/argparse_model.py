"""Models of argparse's objects: parsers, groups and subparsers record the calls on them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.derive.command import Unread
from skillruntime.derive.interpreter.state import Found, Library, State, call
from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    BoundMethod,
    ClassValue,
    ForeignCall,
    InstanceValue,
    Model,
    Symbol,
)

__all__ = ["ARGPARSE", "Asked", "ParserModel", "SubparsersModel", "on_either_side"]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One call of ``add_argument``: what it was called with, in which exclusive group, and under which branches.

    It is certain where there are none: each branch is an undecidable condition and the side of it.
    """

    arguments: list[Any]
    named: dict[str, Any]
    line: int
    branches: tuple[tuple[ast.AST, int], ...] = ()
    group: int | None = None
    doubt: list[bool] = field(default_factory=list)
    """Holds something where the function that asked may have ended before."""

    @property
    def certain(self) -> bool:
        """Whether the script adds it under every condition."""
        return not self.branches and not self.doubt


def on_either_side(asked: list[Asked]) -> list[Asked]:
    """Bring together what both sides of a condition ask for in the same way: then the condition does not matter."""
    merged: list[Asked] = []
    # Both sides of a condition may declare the same argument in a different order. Those that may be sides of one are
    # found by their condition and name: comparing each with all others takes seconds for a thousand arguments.
    alike: dict[tuple[int, Any], list[int]] = {}
    for each in asked:
        numbers: list[int] = []
        if each.branches:
            name = next((one for one in each.arguments if isinstance(one, str)), None)
            numbers = alike.setdefault((id(each.branches[-1][0]), name), [])
        other = next((number for number in numbers if _are_sides(merged[number], each)), None)
        if other is None:
            numbers.append(len(merged))
            merged.append(each)
        else:
            merged[other] = _one_of(merged[other], each)
            numbers.remove(other)
    return merged if len(merged) == len(asked) else on_either_side(merged)


def _are_sides(one: Asked, other: Asked) -> bool:
    if not one.branches or not other.branches or (one.arguments, one.group) != (other.arguments, other.group):
        return False
    (node, side), (other_node, other_side) = one.branches[-1], other.branches[-1]
    # Only the innermost condition may differ, and only in its side.
    same = one.branches[:-1] == other.branches[:-1] and node is other_node and side != other_side
    return same and _shape(one) == _shape(other)


def _shape(asked: Asked) -> dict[str, Any]:
    return {key: value for key, value in asked.named.items() if key not in _DESCRIPTIVE}


def _one_of(one: Asked, other: Asked) -> Asked:
    """Return the argument that both sides add, without the help texts and defaults that differ between them."""
    named = _shape(one)
    for key in _DESCRIPTIVE:
        if key in one.named or key in other.named:
            same = one.named.get(key) == other.named.get(key)
            named[key] = one.named.get(key) if same else (UNKNOWN if key == "default" else None)
    return replace(one, named=named, branches=one.branches[:-1])


_INSIDE = ("_actions", "_option_string_actions", "_group_actions", "_mutually_exclusive_groups", "_defaults")
_DESCRIPTIVE = ("help", "metavar", "default")
_INHERITED_LIMIT = 1_000
"""Arguments of a parser together with those of its parents."""


class ParserModel(Model):
    """An ``ArgumentParser``."""

    def __init__(self, state: State, named: dict[str, Any]) -> None:
        self.level = state.uncertain
        self.made = state.tick()
        self.kind: ClassValue | None = None
        self.named = named
        self.asked: list[Asked] = []
        self.groups: dict[int, bool] = {}
        self.subparsers: list[SubparsersModel] = []
        self.defaults: dict[str, Any] = {}
        self.unread: list[Unread] = []
        self.notes: list[str] = []
        self.partial = False
        self.registered: dict[tuple[Any, Any], Any] = {}
        parents = named.get("parents", [])
        for parent in parents if isinstance(parents, list | tuple) else [parents]:
            self._inherit(parent)

    def _inherit(self, value: Any) -> None:
        parent = parser_of(value)
        if parent is None:
            self.unread.append(Unread("parents", "a parent parser cannot be read"))
            return
        # ``parents=[base, base]``, again and again, doubles what a parser holds.
        if len(self.asked) + len(parent.asked) + len(parent.groups) + len(parent.unread) > _INHERITED_LIMIT:
            self.unread.append(Unread("parents", "the parent parsers have too many arguments"))
            return
        # `_add_container_actions` (line 1504) copies a parent's groups, so their numbers must not meet our own.
        shift = len(self.groups)
        self.asked += [each if each.group is None else replace(each, group=each.group + shift) for each in parent.asked]
        self.groups |= {number + shift: required for number, required in parent.groups.items()}
        self.subparsers += [each for each in parent.subparsers if each not in self.subparsers]
        self.defaults |= parent.defaults
        self.unread += parent.unread
        self.registered |= parent.registered

    def ask(self, state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST, group: int | None) -> None:
        """Record one ``add_argument``."""
        branches = state.branches[self.level :]
        asked = Asked(arguments, named, getattr(node, "lineno", 0), branches, group)
        state.doubts.append((state.tick(), self.made, asked.doubt))
        self.asked.append(asked)

    def call_method(self, state: State, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Record a call on the parser; raise `Found` when it parses."""
        match name:
            case "add_argument":
                self.ask(state, arguments, named, node, None)
                return ForeignCall("argparse.Action", arguments, named, node, self)
            case "add_argument_group":
                return GroupModel(self, None)
            # At most one of its arguments may be given (`take_action`, line 1960).
            case "add_mutually_exclusive_group":
                number = len(self.groups)
                self.groups[number] = named.get("required") is True
                return GroupModel(self, number)
            case "add_subparsers":
                subparsers = SubparsersModel(self, named)
                self.subparsers.append(subparsers)
                return subparsers
            # Under a condition any of these may hold, so none is declared.
            case "set_defaults":
                self.defaults |= named if state.uncertain <= self.level else dict.fromkeys(named, UNKNOWN)
                return None
            case "parse_args" | "parse_intermixed_args":
                raise Found(self)
            # Two-stage scripts read ``--config`` first and parse again; continue reading.
            case "parse_known_args" | "parse_known_intermixed_args":
                # Unknown arguments are ignored, so the contract cannot claim that they are refused.
                self.partial = True
                state.doubts.clear()  # whoever comes here was asked for all of it
                state.models.append(self)  # the last one that parses is the one that the script is called with
                return UNKNOWN
            # ``parser.register("type", "bool", str2bool)``: the registry names converters and actions (line 1390).
            case "register" if len(arguments) == 3 and all(isinstance(each, str | None) for each in arguments[:2]):
                self.registered[arguments[0], arguments[1]] = arguments[2]
                return None
            case "register" | "add_arguments":
                self.unread.append(Unread("arguments", f"added by {name}", getattr(node, "lineno", None)))
        # ``_add_action``, ``_remove_action``: the arguments may now differ from the declared ones.
        if name.startswith("_"):
            self.unread.append(Unread("arguments", f"changed by {name}", getattr(node, "lineno", None)))
        return UNKNOWN

    def attribute(self, name: str) -> Any:
        """Return what the parser was made with, one of its two own groups, or a method."""
        # ``parser._action_groups.pop()`` is a known trick to put required options first in the help.
        if name in ("_optionals", "_positionals"):
            return GroupModel(self, None)
        if name == "_action_groups":
            return [GroupModel(self, None), GroupModel(self, None)]
        if name in _INSIDE:
            self.unread.append(Unread("arguments", f"{name} may be used to change them"))
            return UNKNOWN
        if name in ("description", "prog", "epilog", "usage"):
            return self.named.get(name)
        return BoundMethod(self, name)

    def leave(self, name: str, node: ast.AST) -> None:
        """Record that a function elsewhere may have added arguments."""
        self.unread.append(Unread("arguments", f"{name} may add some", getattr(node, "lineno", None)))


class GroupModel(Model):
    """An argument group, exclusive or not."""

    def __init__(self, parser: ParserModel, group: int | None) -> None:
        self.parser, self.group = parser, group

    def call_method(self, state: State, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Record an argument of the group; all else is the parser's."""
        if name == "add_argument":
            self.parser.ask(state, arguments, named, node, self.group)
            return ForeignCall("argparse.Action", arguments, named, node, self.parser)
        if name == "add_argument_group":
            return GroupModel(self.parser, self.group)
        return self.parser.call_method(state, name, arguments, named, node)

    def bind(self, name: str, value: Any) -> None:
        """Record an assignment: whether one of an exclusive group is required may be said late."""
        if name == "required" and self.group is not None:
            self.parser.groups[self.group] = value is True
            if not isinstance(value, bool):
                self.parser.unread.append(Unread("arguments", "whether one of a group is required is computed"))

    def leave(self, name: str, node: ast.AST) -> None:
        """Record that a function elsewhere may have added arguments."""
        self.parser.leave(name, node)


class SubparsersModel(Model):
    """The object of ``add_subparsers``."""

    def __init__(self, parser: ParserModel, named: dict[str, Any]) -> None:
        self.parser, self.named = parser, named
        self.required = named.get("required", False)
        self.parsers: dict[str, ParserModel] = {}

    def call_method(self, state: State, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Record a subcommand."""
        if name != "add_parser":
            return UNKNOWN
        word = arguments[0] if arguments else named.get("name", UNKNOWN)
        line = getattr(node, "lineno", None)
        given = {key: value for key, value in named.items() if key != "name"}
        kind = self.named.get("parser_class", self.parser.kind)
        made = call(state, kind, [], given, node) if isinstance(kind, ClassValue) else None
        model = parser_of(made) or ParserModel(state, given)
        # ``add_subparsers(parser_class=...)`` with a class that cannot be read: it may add arguments of its own.
        if kind is not None and parser_of(made) is None and kind != Symbol("argparse.ArgumentParser"):
            model.unread.append(Unread("arguments", "the class of its parser cannot be read", line))
        if not isinstance(word, str):
            self.parser.unread.append(Unread("a command", "its name is computed", line))
            return made or model
        # ``if sys.platform == "linux": commands.add_parser("mount")``.
        if state.uncertain > self.parser.level:
            self.parser.unread.append(Unread(word, "whether the command is there depends on a condition", line))
        self.parsers[word] = model
        return made or model

    def bind(self, name: str, value: Any) -> None:
        """Record an assignment to one of its attributes."""
        if name == "required":
            self.required = value
        elif name in ("dest", "metavar", "help"):
            self.named[name] = value

    def leave(self, name: str, node: ast.AST) -> None:
        """Record that a function elsewhere may have added commands."""
        self.parser.unread.append(Unread("commands", f"{name} may add some", getattr(node, "lineno", None)))


def parser_of(value: Any) -> ParserModel | None:
    """Return the parser that *value* is, or is built around."""
    if isinstance(value, InstanceValue):
        value = value.names.get("__parser__")
    return value if isinstance(value, ParserModel) else None


def _make_parser(state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> ParserModel:
    # The positional parameters of ``ArgumentParser.__init__`` (line 1737).
    order = ("prog", "usage", "description", "epilog", "parents")
    # Positional arguments of a constructor are rare, and legal.
    model = ParserModel(state, dict(zip(order, arguments, strict=False)) | named)
    state.models.append(model)
    return model


ARGPARSE: Library = {"argparse.ArgumentParser": _make_parser}
