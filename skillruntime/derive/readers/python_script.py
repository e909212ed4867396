"""Which library a Python script reads its command line with, and what it declares to it."""

from __future__ import annotations

import ast
import re
import sys
import warnings

from skillruntime.derive.command import Command, Reading, Unread
from skillruntime.derive.readers.any_script import read_any, words_are_used
from skillruntime.derive.readers.argparse_command import read_parser
from skillruntime.derive.readers.argparse_parsers import Parser, find_parsers
from skillruntime.derive.readers.click_reader import read_click
from skillruntime.derive.readers.python_checks import apply_checks, checks_of_arguments
from skillruntime.derive.readers.python_values import Scope, dotted, own_nodes
from skillruntime.derive.readers.typer_reader import read_typer
from skillruntime.derive.text_fields import first_paragraph

__all__ = ["read_python"]

_LIBRARIES = ("argparse", "click", "typer", "fire", "docopt", "optparse", "absl", "tap", "cyclopts", "plac", "getopt")
_PROGRAM = re.compile(r"(?:^|_)(?:main|cli|app|console)(?:_|$)|^run(?:_module|_path)?$|^entry_point$")
"""Names that packages give the function that runs their program."""


def read_python(text: str) -> Reading | None:
    """Return what the Python script *text* takes, or None where it is not a script, or cannot be parsed."""
    if not any(word in text for word in ("__main__", "argv", *_LIBRARIES)):
        return None
    tree = _parse(text)
    if tree is None or _only_raises(tree):
        return None
    modules = _imported_modules(tree)
    reading: Reading | None = None
    if "argparse" in modules:
        reading = _read_argparse(tree, text)
    if reading is None and modules & {"click", "typer"}:
        scope = Scope.of(tree, None)
        reading = (read_typer(tree, scope) if "typer" in modules else None) or read_click(tree, scope)
    if reading is not None:
        return reading
    library = next((each for each in _LIBRARIES if each in modules), "")
    is_program = "__main__" in text or _calls_own_function(tree)
    if words_are_used(text, "sys.argv") and (is_program or not _is_module(tree)):
        reading = read_any(text, "sys.argv")
    elif is_program and (library or (other := _other_program(tree)) or "parse_args(" in text):
        reason = f"{library} is not read" if library else f"{other or 'another module'} may read the command line"
        reading = read_any(text, "sys.argv", reason)
    # What is typed, or sent on stdin, is not on the command line.
    elif is_program and "sys.stdin" not in text and "input(" not in text:
        reading = Reading(Command("words"), "none", "medium")
    if reading is not None:
        reading.command.description = first_paragraph(ast.get_docstring(tree))
    return reading


def _parse(text: str) -> ast.Module | None:
    # CPython warns of invalid escapes and of ``x is 1`` while it parses: on the host's stderr, of another's script.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, MemoryError):
            return None


def _imported_modules(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _guarded(tree: ast.Module) -> list[ast.stmt]:
    """Return what the module does where it is run: the body of its ``if __name__ == "__main__"``."""
    for each in tree.body:
        if isinstance(each, ast.If) and "__name__" in (dotted(node) for node in ast.walk(each.test)):
            return each.body
    return []


def _only_raises(tree: ast.Module) -> bool:
    """Whether running the module only says that it is not to be run: then it is not a tool."""
    body = _guarded(tree)
    if not body:
        return False
    calls = [each for each in ast.walk(ast.Module(body, [])) if isinstance(each, ast.Call)]
    last = body[-1]
    is_exit = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and dotted(last.value.func) == "sys.exit"
    status = calls[0].args[0] if is_exit and calls[0].args else None
    fails = isinstance(last, ast.Raise) or (isinstance(status, ast.Constant) and status.value not in (0, None))
    # ``raise SystemExit(main())`` does its work first.
    quiet = ("print", "sys.exit", "SystemExit", "RuntimeError", "NotImplementedError", "ImportError")
    return fails and all(dotted(each.func) in quiet for each in calls)


def _calls_own_function(tree: ast.Module) -> bool:
    functions = {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    statements = [each.value for each in tree.body if isinstance(each, ast.Expr)]
    return any(isinstance(each, ast.Call) and dotted(each.func) in functions for each in statements)


def _is_module(tree: ast.Module) -> bool:
    """Whether the file only defines things: its words are used in functions that others call."""
    return not any(isinstance(each, ast.Attribute) and each.attr == "argv" for each in own_nodes(tree))


def _other_program(tree: ast.Module) -> str:
    """Return the call of another module's program, which may read ``sys.argv``: ``main()``, ``unittest.main()``."""
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name.partition(".")[0]: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {each.asname or each.name: f"{'.' * node.level}{node.module or ''}" for each in node.names}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not _PROGRAM.search(dotted(node.func).rpartition(".")[2]):
            continue
        module = modules.get(dotted(node.func).partition(".")[0], "").partition(".")[0]
        # ``main(["--quiet"])`` has its words; of the standard library only these run a program with those of this one.
        has_words = bool(node.args) and isinstance(node.args[0], ast.List)
        is_plain = module in sys.stdlib_module_names and module not in ("unittest", "runpy")
        if dotted(node.func).partition(".")[0] in modules and not is_plain and not has_words:
            return dotted(node.func)
    return ""


def _read_argparse(tree: ast.Module, text: str) -> Reading | None:
    parsers = find_parsers(tree)
    if not parsers:
        return None
    parser = _chosen(parsers)
    command = read_parser(parser, description=first_paragraph(ast.get_docstring(tree)))
    if "argv" in text:
        command.unread += _words_beside(tree)
    checks, filled = checks_of_arguments(tree)
    apply_checks(command, checks, filled)
    return Reading(command, "argparse")


def _chosen(parsers: list[Parser]) -> Parser:
    """Return the parser that reads the command line; of several the one with most arguments, which is not all."""
    parsing = [each for each in parsers if each.parses] or parsers
    parser = max(
        parsing, key=lambda each: len(each.asked) + (100 * len(each.subparsers.parsers) if each.subparsers else 0)
    )
    if not parser.parses and not parser.asked and parser.subparsers is None:
        parser.unread.append(Unread("arguments", "what its parser is passed to may add some", is_needed=True))
    if len(parsing) > 1:
        parser.unread.append(Unread("arguments", "several parsers read the command line", is_needed=True))
    return parser


def _words_beside(tree: ast.Module) -> list[Unread]:
    """Return the use of ``sys.argv`` beside the parser: words that choose other work before it runs."""
    harmless: set[int] = set()
    found: list[Unread] = []
    for node in ast.walk(tree):
        match node:
            # ``if len(sys.argv) == 1: parser.print_help()``, ``main(sys.argv[1:])``, ``Path(sys.argv[0])``.
            case ast.Call(func=ast.Name(id="len"), args=[words]):
                harmless.add(id(words))
            case ast.Subscript(value=words, slice=ast.Constant(value=0)):
                harmless.add(id(words))
            case ast.Subscript(value=words, slice=ast.Slice(lower=ast.Constant(value=1), upper=None)):
                harmless.add(id(words))
            # ``" ".join(sys.argv)`` is for a log.
            case ast.Call(func=ast.Attribute(attr="join" | "info" | "debug"), args=given):
                harmless |= set(map(id, given))
            case ast.Compare(left=ast.Constant(value="-h" | "--help" | "--version" | "-V"), comparators=[words]):
                harmless.add(id(words))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and dotted(node) == "sys.argv" and id(node) not in harmless:
            found.append(Unread("arguments", "the script uses sys.argv beside its parser", node.lineno))
    # ``parse_args(sys.argv[2:])``: a word before those of the parser is needed.
    needed = [each for each in ast.walk(tree) if _drops_words(each)]
    if found and needed:
        return [Unread("arguments", "the script takes words before its parser does", found[0].line, is_needed=True)]
    return found[:1] or [Unread("arguments", "the script takes words before its parser does", is_needed=True)] * bool(
        needed
    )


def _drops_words(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(value=ast.Attribute(attr="argv"), slice=ast.Slice(lower=ast.Constant(value=int(first)))):
            return first > 1
    return False
