"""Which library a Python script reads its command line with, and what it declares to it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import Any

from skillruntime.derive.command import Command, Unread
from skillruntime.derive.interpreter.attributes import bound
from skillruntime.derive.interpreter.imports import parse_module
from skillruntime.derive.interpreter.interpreter import new_reading, read_module
from skillruntime.derive.interpreter.relevance import dotted, nodes_of
from skillruntime.derive.interpreter.state import Exhausted, Found, Neighbours, State, call
from skillruntime.derive.interpreter.usage_errors import only_complains
from skillruntime.derive.interpreter.values import UNKNOWN, ClassValue, FunctionValue, InstanceValue
from skillruntime.derive.readers.argparse_command import read_parser
from skillruntime.derive.readers.argparse_demands import demanded, with_demands, without_proof
from skillruntime.derive.readers.argparse_model import ARGPARSE, ParserModel, parser_of
from skillruntime.derive.readers.argv_script import read_argv
from skillruntime.derive.readers.click_model import CLICK, ClickCommandModel, TyperModel
from skillruntime.derive.readers.click_reader import read_click
from skillruntime.derive.readers.docopt_reader import read_docopt
from skillruntime.derive.readers.fire_reader import read_fire
from skillruntime.derive.readers.optparse_reader import OPTPARSE, add_words
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.readers.stdin_script import read_stdin
from skillruntime.derive.readers.typer_reader import read_typer
from skillruntime.derive.text_fields import first_paragraph

__all__ = ["read_python"]

UNDECLARED_LIMIT = 100_000
"""Characters of a script that is read for its use of ``sys.argv`` or stdin; a longer one is a program, or generated."""

_LIBRARIES = ("argparse", "click", "typer", "fire", "docopt", "optparse", "absl", "tap", "cyclopts")
_FOREIGN = re.compile(rf"(?:import|from) (?:{'|'.join(_LIBRARIES)})")
_DECORATED = re.compile(r"^\s*(?:from|import)\s[^\n]*\b(?:click|typer)\b", re.MULTILINE)
_PARSES_WORDS = re.compile(r"\b(?:import|from)\b[^\n]*\bargparse\b|\bArgumentParser\b|\bimport_module\(.argparse")
_ABSL = re.compile(r"^\s*(?:from|import)\s+absl\b", re.MULTILINE)
_PROGRAM = re.compile(r"(?:^|_)(?:main|cli|app|console)(?:_|$)|^run(?:_module|_path)?$|^entry_point$")
"""Names that packages give the function that runs their program."""

_HELP = ("-h", "--help", "-V", "--version", "__main__")
_PARSES = ("parse_args", "parse_known_args", "parse_intermixed_args")


def read_python(text: str, neighbours: Neighbours | None = None) -> Reading | None:
    """Return what the Python script *text* takes, or None where it cannot be read or takes nothing."""
    # A plain search is many times faster than an expression, and most modules fail it.
    names_argparse = "argparse" in text or "ArgumentParser" in text
    may_parse = names_argparse and _PARSES_WORDS.search(text) is not None
    may_parse = may_parse or (neighbours is not None and "parse_args(" in text)
    is_decorated = ("click" in text or "typer" in text) and _DECORATED.search(text) is not None
    has_optparse = "optparse" in text and "OptionParser" in text
    has_docopt = "docopt(" in text
    has_fire = "fire" in text and "Fire(" in text
    is_declared = may_parse or is_decorated or has_optparse or has_docopt or has_fire
    # Nothing below reads a module without one of these, so it need not be parsed.
    uses_words = "argv" in text or "__main__" in text or "sys.stdin" in text
    if not is_declared and "OptionParser" not in text and (len(text) > UNDECLARED_LIMIT or not uses_words):
        return None
    is_absl = "app.run(" in text and _ABSL.search(text) is not None
    if not is_declared and not is_absl and _imports_library(text):
        return None
    tree = parse_module(text)
    if tree is None:
        return None
    # A script may mention argparse and use click: the first that declares something counts.
    if may_parse and (reading := _read_argparse(tree, text, neighbours)) is not None:
        return reading
    if is_decorated and (reading := _read_decorated(tree, neighbours)) is not None:
        return reading
    if has_optparse and (reading := _read_optparse(tree, text, neighbours)) is not None:
        return reading
    if has_docopt and (reading := read_docopt(tree)) is not None:
        return reading
    if has_fire and (reading := read_fire(tree)) is not None:
        return reading
    if is_absl and "__main__" in text:
        flags = " ".join(f"--{name}" for name in re.findall(r"\bDEFINE_\w+\(\s*[\"'](\w+)", text))
        command = Command("words", f"{first_paragraph(ast.get_docstring(tree))} Flags: {flags}".strip())
        command.unread.append(Unread("arguments", "absl's flags are not read: any imported module may declare more"))
        return Reading(command, "absl", "low")
    if is_declared and _imports_library(text):
        return None
    if "sys.stdin" in text and "json.load" in text and (reading := read_stdin(tree)) is not None:
        return reading
    if "argv" in text and (reading := read_argv(tree)) is not None:
        read = reading.command
        # ``sys.argv[0]`` alone says nothing of the words, which a program that is started may read.
        if not (read.arguments or read.commands or read.unread) and (other := _starts_other(tree, neighbours)):
            read.unread.append(_of_other(other))
        return reading
    if "__main__" not in text or "sys.stdin" in text or "input(" in text or "argv" in text:
        return None
    command = Command("words", first_paragraph(ast.get_docstring(tree)))
    if (other := _starts_other(tree, neighbours)) is not None:
        command.unread.append(_of_other(other))
    return Reading(command, "none", "medium")


def _of_other(call: ast.Call) -> Unread:
    return Unread("arguments", f"{ast.unparse(call.func)} may read the command line", call.lineno)


def _imports_library(text: str) -> bool:
    """Whether the script imports a library that declares arguments; most name none, which a plain search finds out."""
    return any(name in text for name in _LIBRARIES) and _FOREIGN.search(text) is not None


def _starts_other(tree: ast.Module, neighbours: Neighbours | None) -> ast.Call | None:
    """Return the call of another module's program, which may read ``sys.argv``: ``main()``, ``unittest.main()``."""
    modules: dict[str, str] = {}
    calls: list[ast.Call] = []
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name.partition(".")[0]: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {each.asname or each.name: f"{'.' * node.level}{node.module or ''}" for each in node.names}
        elif isinstance(node, ast.Call) and _PROGRAM.search(dotted(node.func).rpartition(".")[2]):
            calls.append(node)
    for each in calls:
        module = modules.get(dotted(each.func).partition(".")[0])
        if module is None or (each.args and isinstance(each.args[0], ast.List)):  # ``main(["--quiet"])``
            continue
        if module.partition(".")[0] in sys.stdlib_module_names:
            # Of the standard library these run a program with the words of this one.
            if module.partition(".")[0] in ("unittest", "runpy"):
                return each
            continue
        source = None if neighbours is None else neighbours(module.lstrip("."))
        if source is None or re.search(r"\bargv\b|argparse|click|typer|parse_args", source):
            return each
    return None


def _read_decorated(tree: ast.Module, neighbours: Neighbours | None) -> Reading | None:
    """Read click's and typer's declarations: the one that is called, or else the one with most below it."""
    state = new_reading(CLICK, ("click.", "typer."), neighbours)
    try:
        read_module(state, tree)
        model: Any = None
    except Found as found:
        model = found.value
    except Exhausted:
        return None
    if not isinstance(model, ClickCommandModel | TyperModel):
        known = [each for each in state.module.names.values() if isinstance(each, ClickCommandModel | TyperModel)]
        model = max(known, key=lambda each: len(each.commands), default=None)
    state.steps = max(state.steps, 5_000)
    description = first_paragraph(ast.get_docstring(tree))
    try:
        match model:
            case ClickCommandModel():
                return Reading(read_click(state, model, description), "click")
            case TyperModel():
                return Reading(read_typer(state, model, description), "typer")
    except Exhausted:
        command = Command("click", description, unread=[Unread("arguments", "there are too many commands to read")])
        return Reading(command, "click" if isinstance(model, ClickCommandModel) else "typer")
    return None


def _read_argparse(tree: ast.Module, text: str, neighbours: Neighbours | None) -> Reading | None:
    state = new_reading(ARGPARSE, ("argparse.",), neighbours)
    exhausted = False
    parser: ParserModel | None = None
    try:
        found = _follow(state, tree)
        parser = parser_of(found)
    except Exhausted:
        exhausted = True
    if parser is None:
        parser = max((each for each in state.models if isinstance(each, ParserModel)), key=_size, default=None)
    if parser is None:
        if exhausted:
            return Reading(
                Command(unread=[Unread("arguments", "the script is too long to be read to its parser")]), "argparse"
            )
        return None
    state.steps = max(state.steps, 5_000)
    description = first_paragraph(ast.get_docstring(tree))
    # The parser that was found first is only one of several.
    by_word = _parsers_by_word(state, tree, text) if "argv" in text else {}
    if len(by_word) > 1 and parser in by_word.values():
        command = Command("argparse", description, chooser="command")
        command.commands = {word: read_parser(state, each) for word, each in by_word.items()}
        return Reading(command, "argparse", "medium")
    if not (parser.asked or parser.subparsers or re.search(r"\bparse_(?:known_|intermixed_)?args\(", text)):
        parser.unread.append(Unread("arguments", "what its parser is passed to may add some"))
    aside = _read_aside(state, parser) if "argv" in text else []
    command = read_parser(state, parser, description=description)
    if exhausted:
        command.unread.append(Unread("arguments", "the script is too long to be read to its end"))
    command.unread += [
        Unread("arguments", "some are added to what cannot be read", line) for line in state.unread_lines
    ]
    command.unread += aside
    # Commands have namespaces of their own, and their conditions are inside others.
    if not command.commands:
        found = demanded(tree, text, parser)
        with_demands(command, found.groups)
        command.unread += without_proof(command, found)
    return Reading(command, "argparse")


def _read_optparse(tree: ast.Module, text: str, neighbours: Neighbours | None) -> Reading | None:
    """Read optparse's declarations by the model of argparse's: they differ in names, and in the words beside them."""
    state = new_reading(OPTPARSE, ("optparse.",), neighbours)
    try:
        parser = parser_of(_follow(state, tree))
    except Exhausted:
        parser = None
    if parser is None:
        return None
    state.steps = max(state.steps, 5_000)
    command = read_parser(state, parser, description=first_paragraph(ast.get_docstring(tree)))
    command.parser = "optparse"
    command.unread += [
        Unread("arguments", "some are added to what cannot be read", line) for line in state.unread_lines
    ]
    found = demanded(tree, text, parser)
    with_demands(command, found.groups)
    command.unread += without_proof(command, found)
    add_words(command, tree, parser)
    return Reading(command, "optparse")


def _parsers_by_word(state: State, tree: ast.Module, text: str) -> dict[str, ParserModel]:
    """Return the parsers that the first word chooses: ``if sys.argv[1] == "build": ...``, with ``sys.argv[2:]``."""
    # Few scripts have such a branch, and writing a whole tree out takes ten times as long as parsing it.
    if not state.found_aside:
        return {}
    plain = text.replace(" ", "")
    if "argv[2:]" not in plain and "argv.pop(" not in plain and "argv[1:]=" not in plain:
        return {}  # a parser that is given the whole command line refuses the word itself
    source = ast.unparse(tree)
    found: dict[str, ParserModel] = {}
    for node, side, value in state.found_aside:
        parser = parser_of(value)
        if parser is None or side != 0 or not isinstance(node, ast.If):
            continue
        # Only a comparison with one literal decides by the word alone.
        match node.test:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=str(word))]):
                shown = ast.unparse(left)
                if "argv[1]" in shown or f"{shown} = sys.argv[1]" in source:
                    found.setdefault(word, parser)
    return found


def _read_aside(state: State, parser: ParserModel) -> list[Unread]:
    """Return the words that choose another parser, or other work, before *parser* sees them.

    ``if "--trending" in sys.argv: sys.exit(trending())`` in front of a parser that does not know ``--trending``.
    """
    others = {id(node): side for node, side, value in state.found_aside if parser_of(value) is not parser}
    unread: list[Unread] = []
    aside = [(node, side) for node, side, _ in state.found_aside]
    for node, side in [*aside, *state.ended_aside]:
        if not isinstance(node, ast.If) or side != 0 or "argv" not in (test := ast.unparse(node.test)):
            continue
        words = [each.value for each in ast.walk(node.test) if isinstance(each, ast.Constant)]
        shown = [each for each in words if isinstance(each, str) and each not in _HELP]
        # ``if "--help" in sys.argv: print(usage)`` is not other work.
        if id(node) in others or (shown and not only_complains(node.body, instead=[])):
            what = ", ".join(shown) or "arguments"
            unread.append(Unread(what, f"the script tests `{test[:60]}` before its parser runs", node.lineno))
    return list(dict.fromkeys(unread))


def _size(parser: ParserModel) -> int:
    return len(parser.asked) + 100 * len(parser.subparsers)


def _follow(state: State, tree: ast.Module) -> Any:
    """Follow the module to where it parses; if it does not by itself, what a caller of it would call first."""
    try:
        read_module(state, tree)
        if state.found_aside:  # ``if len(sys.argv) > 1: sys.exit(main())``, and nothing that parses otherwise
            return state.found_aside[-1][2]
        if (partial := _last_partial(state)) is not None:
            return partial
        for candidate in _candidates(state, tree):
            state.unread_lines.clear()
            arguments = [UNKNOWN] * (1 if isinstance(candidate, ClassValue) else 0)
            made = call(state, candidate, arguments, {}, tree)
            if isinstance(made, InstanceValue):
                for name, method in list(made.kind.names.items()):
                    if isinstance(method, FunctionValue) and _parses(method.node):
                        call(state, bound(state, made, made.kind, name), [], {}, tree)
            elif parser_of(made) is not None:
                return made
    except Found as found:
        return found.value
    return _last_partial(state)


def _last_partial(state: State) -> ParserModel | None:
    """Return the parser that parsed last, even if it ignores unknown arguments."""
    return next((each for each in reversed(state.models) if isinstance(each, ParserModel) and each.partial), None)


def _candidates(state: State, tree: ast.Module) -> Iterator[Any]:
    values = [value for value in state.module.names.values() if isinstance(value, FunctionValue | ClassValue)]
    functions = {value.name: value for value in values if isinstance(value, FunctionValue)}
    # Names that packages give the function of a console script.
    for name in ("main", "cli", "run", "_main", "entry_point"):
        if name in functions:
            yield functions.pop(name)
    yield from (value for value in functions.values() if _parses(value.node))
    yield from (value for value in functions.values() if "parser" in value.name.lower())
    yield from (value for value in values if isinstance(value, ClassValue) and value.node and _parses(value.node))


def _parses(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr in _PARSES for each in ast.walk(node))
