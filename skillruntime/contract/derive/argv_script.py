"""Python scripts that read ``sys.argv`` by hand, as far as places and a usage line tell: a best effort, and said so."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from skillruntime.contract.command_line import ABSENT
from skillruntime.contract.derive.command import TEXT, Argument, Command, Unread, ValueType
from skillruntime.contract.derive.reading import Reading
from skillruntime.contract.derive.usage import find_usages, read_usage
from skillruntime.contract.derive.wording import first_paragraph

__all__ = ["read_argv"]

_INTEGER = ValueType({"type": "integer"})
_NUMBER = ValueType({"type": "number"})


def read_argv(tree: ast.Module) -> Reading | None:
    """Return what the script takes from ``sys.argv``; None where it does not look at it."""
    nodes = list(ast.walk(tree))
    uses = [each for each in nodes if _is_argv(each)]
    if not uses:
        return None
    command = Command("places", first_paragraph(ast.get_docstring(tree)))
    places = _places(_near(nodes, uses))
    declared = _from_usage(nodes)
    plain = [each for each in declared or () if not each.flags]
    known = {id(node) for _, nodes in places.values() for node in nodes} | _only_counted(nodes)
    if declared is not None and _agree(declared, places, nodes):
        converted = {index - 1: argument.value for index, (argument, _) in places.items()}
        command.arguments = [
            replace(each, value=converted.get(plain.index(each), each.value)) if each in plain else each
            for each in declared
        ]
        return Reading(command, "sys.argv", "low")
    if any(id(each) not in known for each in uses):
        command.unread.append(Unread("arguments", "the script takes sys.argv apart by hand"))
        return Reading(command, "sys.argv", "low")
    if sorted(places) != list(range(1, len(places) + 1)):
        command.unread.append(Unread("arguments", "not every place of sys.argv is read"))
        return Reading(command, "sys.argv", "low")
    least = _least(nodes)
    for index, (argument, _) in sorted(places.items()):
        required = argument.required if least is None else index <= least
        command.arguments.append(replace(argument, required=required, default=ABSENT if required else argument.default))
    names = [each.name for each in command.arguments]
    if len(set(names)) != len(names):
        command.arguments = [replace(each, name=f"argument_{n}") for n, each in enumerate(command.arguments, 1)]
    return Reading(command, "sys.argv", "low")


def _is_argv(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="sys"), attr="argv") | ast.Name(id="argv", ctx=ast.Load()):
            return True
    return False


def _near(nodes: list[ast.AST], uses: list[ast.AST]) -> list[ast.AST]:
    """The statements and expressions that stand where ``sys.argv`` is used: all others say nothing of its places."""
    lines = {getattr(each, "lineno", 0) for each in uses}
    return [
        each
        for each in nodes
        if isinstance(each, ast.Assign | ast.Call | ast.IfExp | ast.Subscript)
        and not lines.isdisjoint(range(each.lineno, (each.end_lineno or each.lineno) + 1))
    ]


def _places(nodes: list[ast.AST]) -> dict[int, tuple[Argument, list[ast.AST]]]:
    """The places of ``sys.argv`` that are read one by one, with what their use says of them."""
    names: dict[int, str] = {}
    kinds: dict[int, ValueType] = {}
    optional: dict[int, Any] = {}
    used: dict[int, list[ast.AST]] = {}
    for node in nodes:
        match node:
            case ast.Subscript(value=argv, slice=ast.Constant(value=int(index))) if _is_argv(argv):
                used.setdefault(index, []).append(argv)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if (index_ := _index_in(value)) is not None:
                    names.setdefault(index_, name)
            case ast.Call(func=ast.Name(id=("int" | "float") as kind), args=[inner]):
                if (index_ := _direct_index(inner)) is not None:
                    kinds[index_] = _INTEGER if kind == "int" else _NUMBER
            case ast.IfExp(body=body, orelse=default, test=test) if any(_is_argv(each) for each in ast.walk(test)):
                if (index_ := _index_in(body)) is not None:
                    optional[index_] = default.value if isinstance(default, ast.Constant) else ABSENT
    used.pop(0, None)
    found = {}
    for index, where in used.items():
        default = optional.get(index, ABSENT)
        kind_ = kinds.get(index, TEXT)
        fits = isinstance(default, int | float) if kind_ is not TEXT else isinstance(default, str)
        name = names.get(index, f"argument_{index}").lower().strip("_")
        required = index not in optional
        argument = Argument(name, (), "value", kind_, required, default if fits else ABSENT)
        found[index] = (argument, where)
    return found


def _direct_index(node: ast.AST) -> int | None:
    match node:
        case ast.Subscript(value=argv, slice=ast.Constant(value=int(index))) if _is_argv(argv):
            return index
    return None


def _index_in(node: ast.AST) -> int | None:
    """The one place of ``sys.argv`` that the expression *node* is made of."""
    found = {index for each in ast.walk(node) if (index := _direct_index(each)) is not None}
    return found.pop() if len(found) == 1 and 0 not in found else None


def _only_counted(nodes: list[ast.AST]) -> set[int]:
    """The uses that ask for no more than the number of words, or the script's own name."""
    counted: set[int] = set()
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[argv]) if _is_argv(argv):
                counted.add(id(argv))
            case ast.Subscript(value=argv, slice=ast.Constant(value=0)) if _is_argv(argv):
                counted.add(id(argv))
    return counted


def _least(nodes: list[ast.AST]) -> int | None:
    """How many words the script asks for before it does anything."""
    for node in nodes:
        match node:
            case ast.If(
                test=ast.Compare(left=ast.Call(func=ast.Name(id="len"), args=[argv]), ops=[op], comparators=[right])
            ) if _is_argv(argv) and isinstance(right, ast.Constant) and isinstance(right.value, int):
                if not any(isinstance(each, ast.Raise | ast.Return) or _exits(each) for each in ast.walk(node)):
                    continue
                match op:
                    case ast.Lt() | ast.NotEq():
                        return right.value - 1
                    case ast.LtE():
                        return right.value
    return None


def _exits(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("sys.exit", "exit", "quit")


def _from_usage(nodes: list[ast.AST]) -> list[Argument] | None:
    """The arguments of the one usage line of the script, where it has one that is plain."""
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    joined = [node.values for node in nodes if isinstance(node, ast.JoinedStr)]
    texts += ["".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in each) for each in joined]
    lines = [line for text in texts if re.search(r"(?i)\busage\s*:", text) for line in find_usages(text)]
    read = [arguments for line in dict.fromkeys(lines) if (arguments := read_usage(line)) is not None]
    return read[0] if read and all(each == read[0] for each in read) and len(read) == len(set(lines)) else None


def _agree(declared: list[Argument], places: dict[int, Any], nodes: list[ast.AST]) -> bool:
    """Whether the code can read what the usage line promises: its flags are there, its places are not more."""
    flags = {each.flags[0] for each in declared if each.flags}
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    plain = [each for each in declared if not each.flags]
    if flags and any(not each.required for each in plain):
        return False  # what is left out would move a flag into its place
    if not flags <= words or sum(each.takes == "values" for each in plain) > 1:
        return False
    if any(each.takes == "values" for each in plain):
        return True
    return max(places, default=0) <= len(plain) and (bool(places) or bool(flags) or bool(plain))
