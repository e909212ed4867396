"""Stands for argparse while a script is read: parsers, groups and subparsers record what is asked of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from skillruntime.contract.derive.command import Unread
from skillruntime.contract.derive.reader import Found, Library, Reader
from skillruntime.contract.derive.values import UNKNOWN, BoundMethod, InstanceValue, Made, Model

__all__ = ["ARGPARSE", "Asked", "ParserModel", "SubparsersModel"]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One call of ``add_argument``: what it was called with, in which exclusive group, and whether it is certain."""

    arguments: list[Any]
    named: dict[str, Any]
    line: int
    certain: bool
    group: int | None = None


class ParserModel(Model):
    """Stands for an ``ArgumentParser``."""

    def __init__(self, reader: Reader, named: dict[str, Any]) -> None:
        self.level = reader.uncertain
        self.named = named
        self.asked: list[Asked] = []
        self.groups: dict[int, bool] = {}
        self.subparsers: list[SubparsersModel] = []
        self.defaults: dict[str, Any] = {}
        self.unread: list[Unread] = []
        self.notes: list[str] = []
        self.partial = False
        parents = named.get("parents", [])
        for parent in parents if isinstance(parents, list | tuple) else [parents]:
            self._inherit(parent)

    def _inherit(self, value: Any) -> None:
        parent = parser_of(value)
        if parent is None:
            self.unread.append(Unread("parents", "a parent parser cannot be read"))
            return
        shift = len(self.groups)
        for asked in parent.asked:
            group = None if asked.group is None else asked.group + shift
            self.asked.append(Asked(asked.arguments, asked.named, asked.line, asked.certain, group))
        self.groups |= {number + shift: required for number, required in parent.groups.items()}
        self.subparsers += parent.subparsers
        self.defaults |= parent.defaults
        self.unread += parent.unread

    def ask(
        self, reader: Reader, arguments: list[Any], named: dict[str, Any], node: ast.AST, group: int | None
    ) -> None:
        """Record one ``add_argument``."""
        certain = reader.uncertain <= self.level
        self.asked.append(Asked(arguments, named, getattr(node, "lineno", 0), certain, group))

    def call_method(self, reader: Reader, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Record what the parser is asked; raise `Found` where it parses."""
        match name:
            case "add_argument":
                self.ask(reader, arguments, named, node, None)
                return Made("argparse.Action", arguments, named, node, self)
            case "add_argument_group":
                return GroupModel(self, None)
            case "add_mutually_exclusive_group":
                number = len(self.groups)
                self.groups[number] = named.get("required") is True
                return GroupModel(self, number)
            case "add_subparsers":
                subparsers = SubparsersModel(self, named)
                self.subparsers.append(subparsers)
                return subparsers
            case "set_defaults":
                self.defaults |= named
                return None
            case "parse_args" | "parse_intermixed_args":
                raise Found(self)
            case "parse_known_args" | "parse_known_intermixed_args":
                self.partial = True
                return UNKNOWN
            case "_add_action" | "register" | "add_arguments" | "_add_container_actions":
                self.unread.append(Unread("arguments", f"added by {name}", getattr(node, "lineno", None)))
        return UNKNOWN

    def attribute(self, name: str) -> Any:
        """Return what the parser was made with, or a method."""
        if name in ("description", "prog", "epilog", "usage"):
            return self.named.get(name)
        return BoundMethod(self, name)

    def leave(self, name: str, node: ast.AST) -> None:
        """Take note that a function elsewhere may have added arguments."""
        self.unread.append(Unread("arguments", f"{name} may add some", getattr(node, "lineno", None)))


class GroupModel(Model):
    """Stands for an argument group, exclusive or not."""

    def __init__(self, parser: ParserModel, group: int | None) -> None:
        self.parser, self.group = parser, group

    def call_method(self, reader: Reader, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Record an argument of the group; all else is the parser's."""
        if name == "add_argument":
            self.parser.ask(reader, arguments, named, node, self.group)
            return Made("argparse.Action", arguments, named, node, self.parser)
        if name == "add_argument_group":
            return GroupModel(self.parser, self.group)
        return self.parser.call_method(reader, name, arguments, named, node)

    def leave(self, name: str, node: ast.AST) -> None:
        """Take note that a function elsewhere may have added arguments."""
        self.parser.leave(name, node)


class SubparsersModel(Model):
    """Stands for what ``add_subparsers`` gives."""

    def __init__(self, parser: ParserModel, named: dict[str, Any]) -> None:
        self.parser, self.named = parser, named
        self.required = named.get("required", False)
        self.parsers: dict[str, ParserModel] = {}

    def call_method(self, reader: Reader, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Record a subcommand."""
        if name != "add_parser":
            return UNKNOWN
        word = arguments[0] if arguments else named.get("name", UNKNOWN)
        line = getattr(node, "lineno", None)
        model = ParserModel(reader, {key: value for key, value in named.items() if key != "name"})
        if not isinstance(word, str):
            self.parser.unread.append(Unread("a command", "its name is computed", line))
            return model
        if reader.uncertain > self.parser.level:
            self.parser.unread.append(Unread(word, "whether the command is there depends on a condition", line))
        self.parsers[word] = model
        return model

    def bind(self, name: str, value: Any) -> None:
        """Take an assignment to one of its attributes."""
        if name == "required":
            self.required = value
        elif name in ("dest", "metavar", "help"):
            self.named[name] = value

    def leave(self, name: str, node: ast.AST) -> None:
        """Take note that a function elsewhere may have added commands."""
        self.parser.unread.append(Unread("commands", f"{name} may add some", getattr(node, "lineno", None)))


def parser_of(value: Any) -> ParserModel | None:
    """Return the parser that *value* is, or is built around."""
    if isinstance(value, InstanceValue):
        value = value.names.get("__parser__")
    return value if isinstance(value, ParserModel) else None


def _make_parser(reader: Reader, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> ParserModel:
    order = ("prog", "usage", "description", "epilog", "parents")
    model = ParserModel(reader, dict(zip(order, arguments, strict=False)) | named)
    reader.models.append(model)
    return model


ARGPARSE: Library = {"argparse.ArgumentParser": _make_parser}
