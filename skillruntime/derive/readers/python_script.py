"""Find the library with which a Python script reads its command line, and read the
arguments that the script declares.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings

from skillruntime.derive.command import Command, Reading, Unread
from skillruntime.derive.first_look import PYTHON_LIBRARIES
from skillruntime.derive.readers.any_script import read_any
from skillruntime.derive.readers.argparse_command import read_parser
from skillruntime.derive.readers.argparse_parsers import Parser, find_parsers
from skillruntime.derive.readers.python_checks import apply_checks, checks_of_arguments
from skillruntime.derive.readers.python_nodes import Function, all_nodes
from skillruntime.derive.readers.python_values import Source, dotted
from skillruntime.derive.readers.python_words import least_words
from skillruntime.derive.readers.usage import ScriptText
from skillruntime.derive.text_fields import first_paragraph
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["parse_python", "read_python"]

_PROGRAM = lazy_pattern(
    r"(?:^|_)(?:main|cli|app|console)(?:_|$)|^run(?:_module|_path)?$|^entry_point$"
)
"""Common names of the function that runs a package's program."""

_WITHOUT_PROGRAM = sys.stdlib_module_names - {"unittest", "runpy"}
"""Modules of the standard library that do not run a program with the words of this
script.
"""

_QUIET = (
    "print",
    "sys.exit",
    "SystemExit",
    "RuntimeError",
    "NotImplementedError",
    "ImportError",
)


def read_python(script: ScriptText) -> Reading | None:
    """Read the command line of the Python script; None if it is not a script or cannot
    be parsed.
    """
    text = script.source
    tree = parse_python(text)
    if tree is None or _only_raises(tree):
        return None
    source = Source.of(tree)
    modules = _imports(source)
    packages = {module.partition(".")[0] for module in modules.values()}
    reading = None
    if "argparse" in packages:
        reading = _read_argparse(source)
    if reading is not None:
        return reading
    reading = _read_undeclared(source, script, modules)
    if reading is not None:
        reading.command.description = first_paragraph(ast.get_docstring(tree))
    return reading


def _read_undeclared(
    source: Source, script: ScriptText, modules: dict[str, str]
) -> Reading | None:
    text = script.source
    attributes = source.nodes.own_of(source.tree, ast.Attribute)
    # A module that only defines functions uses the words in functions that other
    # modules call.
    if any(node.attr == "argv" for node in attributes):
        return read_any(script, least=least_words(source))
    if "__main__" not in text and not _calls_its_own(source):
        return None  # the module is not a program
    if re.search(r"\bargv\b", text):
        return read_any(script, least=least_words(source))
    library = _library(modules) or _other_program(source, modules)
    if library or "parse_args(" in text:
        reader = library or "another module"
        return read_any(script, reason=f"{reader} may read the command line")
    # What is typed, or sent on stdin, is not on the command line.
    if "sys.stdin" in text or "input(" in text:
        return None
    return Reading(Command("words"), "none", "medium")


def _calls_its_own(source: Source) -> bool:
    """Return whether a statement of the module calls one of its own definitions."""
    calls = {dotted(node.func) for node in source.nodes.own_of(source.tree, ast.Call)}
    return any(
        isinstance(statement, Function | ast.ClassDef) and statement.name in calls
        for statement in source.tree.body
    )


def _library(modules: dict[str, str]) -> str:
    """Return the first of the libraries that read a command line, if one is
    imported.
    """
    imported = modules.values()
    return next((library for library in PYTHON_LIBRARIES if library in imported), "")


def parse_python(text: str) -> ast.Module | None:
    """Return the syntax tree of *text*; None where it cannot be parsed."""
    # CPython warns of invalid escapes and of ``x is 1`` while it parses: on the host's
    # stderr, of another's script.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, MemoryError):
            return None


def _imports(source: Source) -> dict[str, str]:
    """Return, for each imported name, the module that it denotes or comes from."""
    modules: dict[str, str] = {}
    imports: list[ast.Import | ast.ImportFrom]
    imports = source.nodes.of(ast.Import, ast.ImportFrom)
    for node in imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                modules[name] = alias.name
        else:
            module = f"{'.' * node.level}{node.module or ''}"
            for alias in node.names:
                modules[alias.asname or alias.name] = module
    return modules


def _only_raises(tree: ast.Module) -> bool:
    """Return whether running the module only reports that it must not be run; then it
    is not a tool.
    """
    for statement in tree.body:
        if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
            guarded = statement.body
            break
    else:
        return False
    match guarded[-1]:
        case ast.Raise():
            pass
        case ast.Expr(value=ast.Call(func=function, args=[status, *_])) if (
            dotted(function) == "sys.exit"
        ):
            if getattr(status, "value", None) in (0, None):
                return False
        case _:
            return False
    # ``raise SystemExit(main())`` does its work first.
    for statement in guarded:
        for node in all_nodes(statement):
            if isinstance(node, ast.Call) and dotted(node.func) not in _QUIET:
                return False
    return True


def _other_program(source: Source, modules: dict[str, str]) -> str:
    """Return the call of another module's program, which may read ``sys.argv``:
    ``main()``, ``unittest.main()``.
    """
    for node in source.nodes.of(ast.Call):
        name = dotted(node.func)
        first, last = name.partition(".")[0], name.rpartition(".")[2]
        if first not in modules or not _PROGRAM.search(last):
            continue
        if modules[first].partition(".")[0] in _WITHOUT_PROGRAM:
            continue
        # ``main(["-q"])`` passes words of its own.
        if node.args and isinstance(node.args[0], ast.List):
            continue
        return name
    return ""


def _read_argparse(source: Source) -> Reading | None:
    parsers = find_parsers(source)
    parsing = [parser for parser in parsers if parser.parses] or parsers
    if not parsing:
        return None
    parser = max(parsing, key=_declared)
    if not parser.parses and not parser.asked and parser.commands is None:
        parser.report("what its parser is passed to may add some", 0, is_needed=True)
    if len(parsing) > 1:
        parser.report("several parsers read the command line", 0, is_needed=True)
    description = first_paragraph(ast.get_docstring(source.tree))
    command = read_parser(parser, description=description)
    flags = {"-h", "--help", "--version", "-V"}
    for inner in [command, *command.all_commands()]:
        for argument in inner.arguments:
            flags.update(argument.flags)
    command.unread += _words_beside(source, flags)
    _name_handlers(source, command)
    checks, filled = checks_of_arguments(source)
    apply_checks(command, checks, filled)
    return Reading(command, "argparse")


def _declared(parser: Parser) -> int:
    """Return the number of declarations in *parser*; a command counts as a hundred
    arguments.
    """
    return len(parser.asked) + 100 * len(parser.commands or ())


def _name_handlers(source: Source, command: Command) -> None:
    """Record the handler of each command: ``{"pack": cmd_pack, "list":
    cmd_list}[args.command]``.
    """
    for table in source.nodes.of(ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            below = command.commands.get(str(getattr(key, "value", "")))
            if below is not None and not below.handler:
                below.handler = dotted(value)


def _words_beside(source: Source, flags: set[str]) -> list[Unread]:
    """Return the use of ``sys.argv`` beside the parser of *flags*: words that select
    other work before the parser runs.
    """
    attributes = source.nodes.of(ast.Attribute)
    used = [node for node in attributes if node.attr == "argv"]
    used = [node for node in used if dotted(node) == "sys.argv"]
    if not used:
        return []
    harmless: set[int] = set()
    for node in source.nodes.of(ast.Call, ast.Subscript, ast.Compare, ast.Assign):
        match node:
            # ``if len(sys.argv) == 1: parser.print_help()``, ``" ".join(sys.argv)`` for
            # a log.
            case ast.Call(
                func=ast.Name(id="len") | ast.Attribute(attr="join" | "info" | "debug"),
                args=given,
            ):
                harmless |= set(map(id, given))
            # ``main(sys.argv[1:])``, ``Path(sys.argv[0])``;
            # ``parse_args(sys.argv[2:])`` needs a word before its own.
            case ast.Subscript(
                value=words,
                slice=ast.Constant(value=0)
                | ast.Slice(lower=ast.Constant(value=1), upper=None),
            ):
                harmless.add(id(words))
            case ast.Compare(
                left=ast.Constant(value=str(flag)), comparators=[words]
            ) if flag in flags:
                harmless.add(id(words))
            # ``main(sys.argv)``.
            case ast.Call(func=ast.Name(id="main"), args=[words]):
                harmless.add(id(words))
            # ``sys.argv = [...]`` sets the words for another script that this one runs.
            case ast.Assign(targets=[ast.Attribute() as words], value=value) if (
                "sys.argv" not in ast.unparse(value)
            ):
                harmless.add(id(words))
    beside = [node for node in used if id(node) not in harmless]
    if not beside:
        return []
    reason = "the script uses sys.argv beside its parser"
    slices = source.nodes.of(ast.Slice)
    needs_word = any(ast.unparse(node) == "2:" for node in slices)
    return [Unread("arguments", reason, beside[0].lineno, is_needed=needs_word)]
