"""Which library a Python script reads its command line with, and what it declares to
it.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings

from skillruntime.derive.command import Command, Reading, Unread
from skillruntime.derive.readers.any_script import read_any
from skillruntime.derive.readers.argparse_command import read_parser
from skillruntime.derive.readers.argparse_parsers import find_parsers
from skillruntime.derive.readers.click_reader import read_click
from skillruntime.derive.readers.python_checks import apply_checks, checks_of_arguments
from skillruntime.derive.readers.python_values import (
    Function,
    Source,
    all_nodes,
    dotted,
    own_nodes,
)
from skillruntime.derive.text_fields import first_paragraph

__all__ = ["read_python"]

_LIBRARIES = (
    "argparse",
    "click",
    "typer",
    "fire",
    "docopt",
    "optparse",
    "absl",
    "tap",
    "cyclopts",
    "plac",
    "getopt",
)
_PROGRAM = re.compile(
    r"(?:^|_)(?:main|cli|app|console)(?:_|$)|^run(?:_module|_path)?$|^entry_point$"
)
"""Names that packages give the function that runs their program."""


def read_python(text: str) -> Reading | None:
    """Return what the Python script *text* takes, or None where it is not a script, or
    cannot be parsed.
    """
    if not any(word in text for word in ("__main__", "argv", *_LIBRARIES)):
        return None
    tree = _parse(text)
    if tree is None or _only_raises(tree):
        return None
    source = Source.of(tree)
    modules = _imports(source)
    tops = {each.partition(".")[0] for each in modules.values()}
    reading = _read_argparse(source) if "argparse" in tops else None
    if reading is None and tops & {"click", "typer"}:
        reading = read_click(tree, source.scope)
    if reading is None:
        reading = _read_undeclared(source, text, modules)
        if reading is not None:
            reading.command.description = first_paragraph(ast.get_docstring(tree))
    return reading


def _read_undeclared(
    source: Source, text: str, modules: dict[str, str]
) -> Reading | None:
    top = own_nodes(source.tree)
    calls = {dotted(each.func) for each in top if isinstance(each, ast.Call)}
    functions = {
        each.name
        for each in source.tree.body
        if isinstance(each, Function | ast.ClassDef)
    }
    is_program = "__main__" in text or not functions.isdisjoint(calls)
    # A module that only defines things uses the words in functions that others call.
    uses_words = any(
        isinstance(each, ast.Attribute) and each.attr == "argv" for each in top
    )
    if uses_words or (is_program and re.search(r"\bargv\b", text)):
        return read_any(text, "sys.argv")
    library = next(
        (each for each in _LIBRARIES if each in modules.values()),
        _other_program(source, modules),
    )
    if is_program and (library or "parse_args(" in text):
        return read_any(
            text, "sys.argv", f"{library or 'another module'} may read the command line"
        )
    # What is typed, or sent on stdin, is not on the command line.
    is_alone = is_program and "sys.stdin" not in text and "input(" not in text
    return Reading(Command("words"), "none", "medium") if is_alone else None


def _parse(text: str) -> ast.Module | None:
    # CPython warns of invalid escapes and of ``x is 1`` while it parses: on the host's
    # stderr, of another's script.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, MemoryError):
            return None


def _imports(source: Source) -> dict[str, str]:
    """Return the module that each imported name is, or is of."""
    found: dict[str, str] = {}
    for node in source.nodes:
        if isinstance(node, ast.Import):
            found |= {
                each.asname or each.name.partition(".")[0]: each.name
                for each in node.names
            }
        elif isinstance(node, ast.ImportFrom):
            found |= {
                each.asname or each.name: f"{'.' * node.level}{node.module or ''}"
                for each in node.names
            }
    return found


def _only_raises(tree: ast.Module) -> bool:
    """Whether running the module only says that it is not to be run: then it is not a
    tool.
    """
    guards = [
        each
        for each in tree.body
        if isinstance(each, ast.If) and "__name__" in ast.unparse(each.test)
    ]
    if not guards:
        return False
    last = guards[0].body[-1]
    calls = [
        each
        for one in guards[0].body
        for each in all_nodes(one)
        if isinstance(each, ast.Call)
    ]
    is_exit = (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and dotted(last.value.func) == "sys.exit"
    )
    status = last.value.args[:1] if is_exit else []  # type: ignore[attr-defined]  # is_exit says so
    fails = isinstance(last, ast.Raise) or any(
        getattr(each, "value", None) not in (0, None) for each in status
    )
    # ``raise SystemExit(main())`` does its work first.
    quiet = (
        "print",
        "sys.exit",
        "SystemExit",
        "RuntimeError",
        "NotImplementedError",
        "ImportError",
    )
    return fails and all(dotted(each.func) in quiet for each in calls)


def _other_program(source: Source, modules: dict[str, str]) -> str:
    """Return the call of another module's program, which may read ``sys.argv``:
    ``main()``, ``unittest.main()``.
    """
    for node in source.nodes:
        name = dotted(node.func) if isinstance(node, ast.Call) else ""
        module = modules.get(name.partition(".")[0], "").partition(".")[0]
        # Of the standard library only these run a program with the words of this one;
        # ``main(["-q"])`` has its own.
        is_plain = module in sys.stdlib_module_names - {"unittest", "runpy"}
        has_words = (
            isinstance(node, ast.Call)
            and bool(node.args)
            and isinstance(node.args[0], ast.List)
        )
        if (
            name.partition(".")[0] in modules
            and _PROGRAM.search(name.rpartition(".")[2])
            and not (is_plain or has_words)
        ):
            return name
    return ""


def _read_argparse(source: Source) -> Reading | None:
    parsers = find_parsers(source)
    parsing = [each for each in parsers if each.parses] or parsers
    if not parsing:
        return None
    parser = max(
        parsing, key=lambda each: len(each.asked) + 100 * len(each.commands or ())
    )
    if not parser.parses and not parser.asked and parser.commands is None:
        parser.report("what its parser is passed to may add some", 0, is_needed=True)
    if len(parsing) > 1:
        parser.report("several parsers read the command line", 0, is_needed=True)
    command = read_parser(
        parser, description=first_paragraph(ast.get_docstring(source.tree))
    )
    flags = {
        flag
        for each in [command, *command.all_commands()]
        for one in each.arguments
        for flag in one.flags
    }
    command.unread += _words_beside(source, flags | {"-h", "--help", "--version", "-V"})
    _name_handlers(source, command)
    checks, filled = checks_of_arguments(source)
    apply_checks(command, checks, filled)
    return Reading(command, "argparse")


def _name_handlers(source: Source, command: Command) -> None:
    """Note which function does the work of each command: ``{"pack": cmd_pack, "list":
    cmd_list}[args.command]``.
    """
    for table in source.nodes:
        pairs = (
            zip(table.keys, table.values, strict=True)
            if isinstance(table, ast.Dict)
            else ()
        )
        for key, value in pairs:
            below = command.commands.get(str(getattr(key, "value", "")))
            if below is not None and not below.handler:
                below.handler = dotted(value)


def _words_beside(source: Source, flags: set[str]) -> list[Unread]:
    """Return the use of ``sys.argv`` beside the parser of *flags*: words that choose
    other work before it runs.
    """
    used = [
        each
        for each in source.nodes
        if isinstance(each, ast.Attribute) and dotted(each) == "sys.argv"
    ]
    if not used:
        return []
    harmless: set[int] = set()
    for node in source.nodes:
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
            # ``main(sys.argv)``, and words for another script that is run from here.
            case ast.Call(func=ast.Name(id="main"), args=[words]):
                harmless.add(id(words))
            case ast.Assign(targets=[ast.Attribute() as words], value=value) if (
                "sys.argv" not in ast.unparse(value)
            ):
                harmless.add(id(words))
    reason = "the script uses sys.argv beside its parser"
    needs_word = any(
        isinstance(each, ast.Slice) and ast.unparse(each) == "2:"
        for each in source.nodes
    )
    beside = [each for each in used if id(each) not in harmless]
    return [
        Unread("arguments", reason, each.lineno, is_needed=needs_word)
        for each in beside[:1]
    ]
