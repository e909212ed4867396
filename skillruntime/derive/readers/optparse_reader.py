"""Scripts with optparse: its options as argparse's, and the words beside them, which the script counts itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from skillruntime.derive.command import Argument, Command, Unread
from skillruntime.derive.interpreter.relevance import dotted, nodes_of
from skillruntime.derive.interpreter.state import Found, Library, State
from skillruntime.derive.interpreter.usage_errors import exits_with_error
from skillruntime.derive.interpreter.values import UNKNOWN, ForeignCall, Model, Symbol
from skillruntime.derive.readers.argparse_model import ParserModel
from skillruntime.derive.text_fields import flattened

__all__ = ["OPTPARSE", "add_words"]

# optparse names its types by texts (`Option.TYPES`, optparse.py 3.11, line 488); these two need no converter.
_TYPES = {"int": Symbol("builtins.int"), "long": Symbol("builtins.int"), "float": Symbol("builtins.float")}
_TEXTS = ("string", "str", "choice")


class _OptionParserModel(ParserModel):
    """An ``OptionParser``: `ParserModel` with the names and the defaults of optparse."""

    def __init__(self, state: State, named: dict[str, Any]) -> None:
        super().__init__(state, named)
        # A class of the script's own may take words in any way.
        if "option_class" in named:
            self.unread.append(Unread("arguments", "its options are of a class of the script's own"))
        listed = named.get("option_list")
        if isinstance(listed, list | tuple):
            for each in listed:
                self.add(state, [each], {}, ast.Pass())
        elif listed is not None:
            self.unread.append(Unread("arguments", "its list of options is computed"))

    def add(self, state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> None:
        """Record one ``add_option``, of flags or of an option made before."""
        if len(arguments) == 1 and isinstance(arguments[0], ForeignCall):
            made = arguments[0]
            arguments, named, node = made.arguments, made.named, made.node
        self.ask(state, arguments, _as_argparse(named), node, None)

    def call_method(self, state: State, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Record a call on the parser; raise `Found` when it parses."""
        match name:
            case "add_option":
                self.add(state, arguments, named, node)
            case "add_options" if arguments and isinstance(arguments[0], list | tuple):
                for each in arguments[0]:
                    self.add(state, [each], {}, node)
            case "add_options" | "remove_option":
                self.unread.append(Unread("arguments", f"changed by {name}", getattr(node, "lineno", None)))
            # The text form makes a group of the parser's own (`add_option_group`, line 1349).
            case "add_option_group" if not arguments or not isinstance(arguments[0], _OptionGroupModel):
                return _OptionGroupModel(self)
            case "set_default" if len(arguments) == 2 and isinstance(arguments[0], str):
                self.defaults[arguments[0]] = arguments[1] if state.uncertain <= self.level else UNKNOWN
            case "set_defaults":
                return super().call_method(state, name, arguments, named, node)
            case "set_usage" if arguments:
                self.named["usage"] = arguments[0]
            case "set_description" if arguments:
                self.named["description"] = arguments[0]
            case "parse_args":
                raise Found(self)
        return arguments[0] if name == "add_option_group" and arguments else UNKNOWN


class _OptionGroupModel(Model):
    """An ``OptionGroup``: a heading in the help, and nothing else."""

    def __init__(self, parser: _OptionParserModel) -> None:
        self.parser = parser

    def call_method(self, state: State, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Record an option of the group; all else is the parser's."""
        return self.parser.call_method(state, name, arguments, named, node)

    def leave(self, name: str, node: ast.AST) -> None:
        """Record that a function elsewhere may have added options."""
        self.parser.leave(name, node)


def _as_argparse(named: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of ``add_option`` as those of ``add_argument``."""
    found = dict(named)
    # A callback without a type may take any number of words from ``parser.rargs`` itself.
    if found.get("action") == "callback":
        found["action"] = "store" if found.get("type") is not None else UNKNOWN
    kind = found.get("type")
    if isinstance(kind, str):
        found["type"] = None if kind in _TEXTS else _TYPES.get(kind, UNKNOWN)
    # One value is a value here, and a list of one in argparse.
    if found.get("nargs") in (1, None):
        found.pop("nargs", None)
    if isinstance(text := found.get("help"), str):
        # Only ``%default`` is replaced (`HelpFormatter.expand_default`, line 269); argparse would format every ``%``.
        found["help"] = text.replace("%", "%%").replace("%%default", "%(default)s")
    return found


def _make_parser(state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> _OptionParserModel:
    # The positional parameters of ``OptionParser.__init__`` (line 1161).
    order = ("usage", "option_list", "option_class", "version", "conflict_handler", "description")
    model = _OptionParserModel(state, dict(zip(order, arguments, strict=False)) | named)
    state.models.append(model)
    return model


def _make_group(state: State, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
    parser = arguments[0] if arguments else named.get("parser")
    return _OptionGroupModel(parser) if isinstance(parser, _OptionParserModel) else UNKNOWN


OPTPARSE: Library = {"optparse.OptionParser": _make_parser, "optparse.OptionGroup": _make_group}


def add_words(command: Command, tree: ast.Module, parser: ParserModel) -> None:
    """Add to *command* the words that are not options, ``args`` of ``options, args = parser.parse_args()``."""
    nodes = list(nodes_of(tree))
    names = set(_names_of_words(nodes))
    if None in names or len(names) != 1:
        command.unread.append(Unread("arguments", "how the words beside the options are used is not known"))
    name = next((each for each in names if each is not None), None)
    uses = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
    if name is not None and not any(isinstance(each.ctx, ast.Load) for each in uses):
        return  # the script ignores them
    least, most, is_sure = 0, None, all(not isinstance(each.ctx, ast.Del) for each in uses)
    highest = 0
    for node in nodes:
        if isinstance(node, ast.If) and exits_with_error(node.body) and name is not None:
            low, high, known = _bounds(node.test, name)
            least, most, is_sure = max(least, low), high if most is None else most, is_sure and known
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name:
            match node.slice:
                case ast.Constant(value=int(index)):
                    highest = max(highest, index + 1)
    usage = parser.named.get("usage")
    text = flattened(re.sub(r"(?i)^\s*usage:|%prog", "", usage).strip()) if isinstance(usage, str) else ""
    # ``args[1]`` behind a check for one word: whether a second one is needed depends on what the script does then.
    is_exact = most is not None and most == least
    if not is_sure or highest > least or not (is_exact or _are_only_counted(nodes, uses)):
        command.unread.append(Unread("args", "how many words the script needs is not known"))
    label = next(
        each for each in ("args", "words", "other_words") if all(each != one.name for one in command.arguments)
    )
    described = "The words beside the options, one item each." + (f" Usage: {text}" if text else "")
    length = least if is_exact and least else None
    command.arguments.append(
        Argument(label, (), "values", required=least > 0, description=described, least=least, length=length)
    )


def _are_only_counted(nodes: list[Any], uses: list[ast.Name]) -> bool:
    """Whether the script counts its words, takes them one by one or joins them: then any number of them is enough.

    ``source, target = args`` and ``copy(*args)`` need a number that no test says.
    """
    allowed: set[int] = set()
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="len") | ast.Attribute(attr="join"), args=[word]):
                allowed.add(id(word))
            case ast.For(iter=word) | ast.comprehension(iter=word) | ast.Subscript(value=word):
                allowed.add(id(word))
            case ast.If(test=word) | ast.UnaryOp(op=ast.Not(), operand=word):
                allowed.add(id(word))
    return all(id(each) in allowed or isinstance(each.ctx, ast.Store) for each in uses)


def _names_of_words(nodes: list[Any]) -> Iterator[str | None]:
    for node in nodes:
        match node:
            case ast.Assign(targets=[target], value=ast.Call(func=function)) if dotted(function).endswith("parse_args"):
                match target:
                    case ast.Tuple(elts=[_, ast.Name(id=name)]):
                        yield name
                    case _:
                        yield None
            case ast.Return(value=ast.Call(func=function)) if dotted(function).endswith("parse_args"):
                yield None


def _bounds(test: ast.expr, name: str) -> tuple[int, int | None, bool]:
    """Return how few and how many words pass *test*, which ends the script, and whether that is all it asks of them."""
    match test:
        case ast.BoolOp(op=ast.Or(), values=values):
            found = [_bounds(each, name) for each in values]
            most = next((high for _, high, _ in found if high is not None), None)
            return max(low for low, _, _ in found), most, all(known for _, _, known in found)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=known)) if known == name:
            return 1, None, True
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=known)]),
            ops=[op],
            comparators=[ast.Constant(value=int(number))],
        ) if known == name:
            match op:
                case ast.Lt():
                    return number, None, True
                case ast.LtE():
                    return number + 1, None, True
                case ast.NotEq():
                    return number, number, True
                case ast.Eq() if number == 0:
                    return 1, None, True
                case ast.Gt():
                    return 0, number, True
    return 0, None, all(not isinstance(each, ast.Name) or each.id != name for each in ast.walk(test))
