"""What a call in a script comes to, while the script is rehearsed: its own functions, methods, what is known."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.rehearsed_complaints import tells_usage
from skillruntime.derive.rehearsed_expressions import Expressions
from skillruntime.derive.rehearsed_source import EXITS, READERS, RehearsedSource, dotted
from skillruntime.derive.rehearsed_stage import Count, Frame, Function, Raised, plain_text
from skillruntime.derive.rehearsed_words import Converted, Word, Words
from skillruntime.derive.values import UNKNOWN

__all__ = ["Calls", "Left"]

DEPTH_LIMIT = 12
_CONVERTERS = {
    "int": "integer",
    "float": "number",
    "json.loads": "json",
    **dict.fromkeys(("Path", "pathlib.Path", "pathlib.PurePath"), "path"),
    **dict.fromkeys(("os.path.abspath", "os.path.realpath", "os.path.expanduser"), "path"),
}
_COPIES = ("list", "tuple", "sorted", "set", "reversed", "iter", "copy.copy", "deque", "collections.deque", "glob.glob")
_SEEN = ("print", "str", "repr", "any", "all", "max", "min", "sum", "pprint", "isinstance", "bool", "type")
_SAME = ("lower", "upper", "strip", "casefold", "lstrip", "rstrip")
_CHANGES = ("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse")


class Left(Exception):  # noqa: N818  # the script's way out, not an error of ours
    """The script ends: *refused* says that it did not take the words."""

    def __init__(self, refused: bool) -> None:
        super().__init__(refused)
        self.refused = refused


class Calls(Expressions):
    """The calls of one rehearsal."""

    def __init__(self, source: RehearsedSource, words: Words, steps: int) -> None:
        super().__init__(source, words, steps)
        self.depth = 0
        self.told_usage = False
        self.entered: set[int] = set()
        """The functions that were followed."""

    def run(self, function: Function, frame: Frame) -> Any:
        """Return what the body of *function* returns, with its parameters in *frame*."""
        raise NotImplementedError

    def call(self, node: ast.Call) -> Any:
        """Return what the call *node* comes to."""
        name = dotted(node.func)
        if name in EXITS:
            self._leave(node, name)
        if isinstance(node.func, ast.Attribute):
            receiver = self.evaluate(node.func.value)
            if receiver is not UNKNOWN:
                return self._method(receiver, node.func.attr, node)
        function = self.look_up(node.func.id) if isinstance(node.func, ast.Name) else UNKNOWN
        if function is UNKNOWN and not name:
            function = self.evaluate(node.func)
        values, named = self._arguments(node)
        if isinstance(function, Function):
            return self._enter(function, values, named, node)
        if tells_usage(node):
            self.told_usage = True
        return self._foreign(name, values, named, node)

    def _leave(self, node: ast.Call, name: str) -> None:
        status = self.evaluate(node.args[0]) if node.args else None
        self.touch(status, node)
        if node.args and tells_usage(node):
            self.told_usage = True
        fails = isinstance(status, str) or (isinstance(status, int) and status != 0)
        text = isinstance(node.args[0], ast.JoinedStr | ast.BinOp) if node.args else False
        raise Left(fails or text or self.told_usage)

    def _arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        values: list[Any] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                value = self.evaluate(each.value)
                if isinstance(value, Words) and not isinstance(self._known_function(node), Function):
                    self.lose(f"the words are passed on to {dotted(node.func) or 'a function'}", node)
                values += value if isinstance(value, list | tuple) else [UNKNOWN]
            else:
                values.append(self.evaluate(each))
        return values, {each.arg or "": self.evaluate(each.value) for each in node.keywords}

    def _known_function(self, node: ast.Call) -> Any:
        return self.look_up(node.func.id) if isinstance(node.func, ast.Name) else UNKNOWN

    def _enter(self, function: Function, values: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        name = function.node.name
        spread = any(isinstance(each, ast.Starred) for each in node.args)
        concerned = spread or any(_is_told(each) for each in (*values, *named.values()))
        shared = self.shared and not self.shared.isdisjoint(self.source.reach(name))
        if not concerned and not shared and not self.source.touches(name) and function.frame is self.module:
            return UNKNOWN
        self.entered.add(id(function.node))
        if self.depth >= DEPTH_LIMIT:
            for each in (*values, *named.values()):
                if isinstance(each, Words):
                    self.lose("the script takes sys.argv apart by hand", node)
            return UNKNOWN
        frame = Frame(name, {}, function.frame)
        outer, self.frame = self.frame, frame
        self.depth += 1
        try:
            self._bind_parameters(function.node.args, values, named, node)
            return self.run(function, frame)
        finally:
            self.depth -= 1
            self.frame = outer

    def _bind_parameters(
        self, arguments: ast.arguments, values: list[Any], named: dict[str, Any], node: ast.Call
    ) -> None:
        parameters = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip([each.arg for each in reversed(parameters)], reversed(arguments.defaults), strict=False))
        given = dict(zip([each.arg for each in parameters], values, strict=False))
        spread = any(isinstance(each, ast.Starred) for each in node.args)
        if spread:
            self.speak_of(len(parameters), len(values))
        if len(values) > len(parameters):
            if arguments.vararg is None:
                raise Raised("TypeError")
            self.bind(arguments.vararg.arg, Words(values[len(parameters) :]) if spread else values[len(parameters) :])
        elif arguments.vararg is not None:
            self.bind(arguments.vararg.arg, Words() if spread else [])
        for each in arguments.kwonlyargs:
            self.bind(each.arg, named.get(each.arg, UNKNOWN))
        for each in parameters:
            if each.arg in given:
                value = given[each.arg]
                if spread:
                    self.touch(value, each)
                    self.read(value, each)
            elif each.arg in named:
                value = named[each.arg]
            elif each.arg in defaults:
                value = self.evaluate(defaults[each.arg])
            elif "" in named or not spread:
                value = UNKNOWN
            else:
                raise Raised("TypeError")
            self.bind(each.arg, value)

    def _foreign(self, name: str, values: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        first = values[0] if values else UNKNOWN
        match name:
            case "len" if isinstance(first, Words):
                return Count(len(first))
            case "len" if isinstance(first, list | tuple | dict):
                return len(first)
            case "list" | "tuple" | "set" if not values:
                return []
            case "iter" if isinstance(first, Words):
                self.lose("the script takes sys.argv apart by hand", node)
                return UNKNOWN
            case _ if name in _COPIES and isinstance(first, Words):
                return Words(first)
            case "list" | "tuple" | "set" if isinstance(first, list | tuple):
                return list(first)
            case "enumerate" if isinstance(first, list | tuple):
                return [(UNKNOWN, each) for each in first]
            case "range" if values and all(isinstance(each, int) for each in values) and len(values) <= 3:
                return self._range(values)
            case "map" if len(values) == 2 and isinstance(values[1], list):
                kind = _CONVERTERS.get(dotted(node.args[0]))
                return [self._converted(each, kind, node) for each in values[1]]
            case "str" if isinstance(first, Word):
                return first
            case "isinstance":
                return UNKNOWN
            case _ if name in _CONVERTERS and isinstance(first, Word | Converted):
                return self._converted(first, _CONVERTERS[name], node)
        for each in (*values, *named.values()):
            if isinstance(each, Words) and name not in _SEEN:
                self.lose(f"the words are passed on to {name or 'a function'}", node)
            else:
                self.touch(each, node)
        if name in READERS:
            self.lose(f"{name} reads sys.argv itself", node)
        return UNKNOWN

    def _range(self, values: list[Any]) -> Any:
        found = range(*values) if values[2:] != [0] else range(0)
        if len(found) > 40:
            return UNKNOWN
        return [Count(each) for each in found] if any(isinstance(each, Count) for each in values) else list(found)

    def _converted(self, value: Any, kind: str | None, node: ast.AST) -> Any:
        word = value.word if isinstance(value, Converted) else value
        role = self.touch(word, node)
        if not isinstance(word, Word) or kind is None:
            return UNKNOWN
        if isinstance(value, Converted) and kind != value.kind:
            return UNKNOWN
        if role is not None and not self.doubt:
            role.kinds.add(kind)
        return Converted(word, kind)

    def _method(self, receiver: Any, name: str, node: ast.Call) -> Any:
        values, named = self._arguments(node)
        first = values[0] if values else None
        if isinstance(receiver, Converted) and name in ("resolve", "expanduser", "absolute"):
            return receiver
        if isinstance(receiver, Word):
            if name == "startswith":
                prefixes = first if isinstance(first, tuple) else (first,)
                found = [self.starts_with(receiver, each, node) for each in prefixes]
                return True if True in found else UNKNOWN if UNKNOWN in found else False
            if name in ("partition", "rpartition", "split", "rsplit") and first in ("=", ":="):
                self.lose("options are taken apart by hand", node)
            return receiver if name in _SAME and not values else self._used(receiver, values, named, node)
        if isinstance(receiver, dict) and name in ("get", "keys", "values", "items"):
            return self._of_table(receiver, name, values, node)
        if isinstance(receiver, list):
            return self._of_list(receiver, name, values, node)
        if isinstance(receiver, str) and name == "join" and isinstance(first, list):
            if any(isinstance(each, Word) and each.place == 0 for each in first):
                return UNKNOWN  # the whole command line, to be shown
            for each in first:
                role = self.touch(each, node)
                if role is not None and receiver == " ":
                    role.joined = True
            return UNKNOWN
        return self._used(receiver, values, named, node)

    def _used(self, receiver: Any, values: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        for each in (receiver, *values, *named.values()):
            if isinstance(each, Words) and each is not receiver:
                self.lose(f"the words are passed on to {ast.unparse(node.func)[:40]}", node)
            self.touch(each, node)
        return UNKNOWN

    def _of_table(self, table: dict[Any, Any], name: str, values: list[Any], node: ast.Call) -> Any:
        match name:
            case "keys":
                return list(table)
            case "values":
                return list(table.values())
            case "items":
                return list(table.items())
        try:
            return self.entry(table, values[0] if values else UNKNOWN, node)
        except Raised:
            return values[1] if len(values) > 1 else None

    def _of_list(self, items: list[Any], name: str, values: list[Any], node: ast.Call) -> Any:
        first = values[0] if values else None
        if name == "index" and isinstance(first, str):
            self.outcome.flags[first] = True
            for place, each in enumerate(items):
                if plain_text(each) == first:
                    return place
            raise Raised("ValueError")
        if name == "copy":
            return Words(items) if isinstance(items, Words) else list(items)
        if name == "count" and isinstance(first, str) and isinstance(items, Words):
            self.lose("the script takes sys.argv apart by hand", node)
        if name not in _CHANGES:
            return self._used(items, values, {}, node)
        if items is self.words:
            self.lose("the script changes sys.argv", node)
            return UNKNOWN
        if self.doubt and isinstance(items, Words):
            self.lose("whether a word is taken out depends on a condition", node)
            return UNKNOWN
        return self._changed(items, name, values, node)

    def _changed(self, items: list[Any], name: str, values: list[Any], node: ast.Call) -> Any:
        first = values[0] if values else None
        match name, first:
            case "append", _:
                items.append(first)
            case "extend", list() if not isinstance(first, Words):
                items.extend(first)
            case "remove", str() if isinstance(items, Words):
                self.outcome.flags.setdefault(first, False)
                place = next((index for index, each in enumerate(items) if plain_text(each) == first), None)
                if place is None:
                    raise Raised("ValueError")
                del items[place]
            case "pop", None | int():
                place = -1 if first is None else first
                if isinstance(items, Words):
                    self.speak_of(place + 1 if place >= 0 else 0, len(items))
                if not -len(items) <= place < len(items):
                    raise Raised("IndexError")
                self.touch(items[place], node)
                self.read(items[place], node)
                return items.pop(place)
            case _:
                for each in (items, *values):
                    if isinstance(each, Words):
                        self.lose("the script takes sys.argv apart by hand", node)
                self.touch(values, node)
        return UNKNOWN


def _is_told(value: Any) -> bool:
    """Whether *value* is, or holds, words or a number of them."""
    if isinstance(value, list | tuple):
        return isinstance(value, Words) or any(_is_told(each) for each in value)
    return isinstance(value, Word | Converted | Count)
