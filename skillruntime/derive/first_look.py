"""Decide whether a script looks like a tool, from its text alone: a hundred times as fast
as reading it. Law: a script that does not look like a tool has no contract. The
converse is a guess: of 2,053 scripts of real skills that look like tools, 22 turn out
not to be, such as shell libraries and modules that cannot be parsed.
"""

from __future__ import annotations

import re

from skillruntime.derive.script_kind import script_kind
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["PYTHON_LIBRARIES", "looks_like_tool", "script_source"]

SOURCE_LIMIT = 400_000
"""Characters of a script that is read; a longer one is data, or generated."""

PYTHON_LIBRARIES = (
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
"""The packages with which Python scripts read their command line."""

# The words of a command line in JavaScript, and packages that read it.
_NODE_WORDS = lazy_pattern(
    r"\b(?:process|Bun)\s*+\.\s*+argv\b|\bDeno\s*+\.\s*+args\b"
    r"|[\"'](?:commander|yargs)[\"']|\bparseArgs\(\{"
)
_LONG_TEXT = lazy_pattern(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+"""' r"|'''(?:[^'\\]++|\\.|'(?!''))*+'''", re.DOTALL
)
# A statement of a module, with the lines that belong to it.
_STATEMENT = lazy_pattern(
    r"^[^\s#\])}][^\n]*+(?:\n(?:[ \t\])}][^\n]*+|(?=\n)))*+", re.MULTILINE
)
_DEFINITION = lazy_pattern(r"(?:async +)?(?:def|class) +(\w++)")
_CALLED = lazy_pattern(r"\b(\w++) *+\(")
# A call that may run the program of another module: `from tool.cli import main`,
# `cli.run()`.
_OTHER_PROGRAM = lazy_pattern(
    r"^[ \t]*+(?:from|import)\b.*?(?:main|cli|app|console|entry_point)"
    r"|(?<!asyncio)(?<!subprocess)\.(?:\w*(?:main|cli|app|console)\w*|run\w*|entry_point)\(",
    re.MULTILINE,
)


def looks_like_tool(source: str | bytes, path: str) -> bool:
    """Return whether *source*, the script at *path* in its skill, may take a command
    line.

    >>> looks_like_tool("import sys\\nprint(sys.argv[1])", "scripts/show.py")
    True
    >>> looks_like_tool("def area(width, height): ...", "scripts/shapes.py")
    False
    """
    text = script_source(source)
    if len(text) > SOURCE_LIMIT:
        return False
    kind = script_kind(text, path)
    if kind == "python":
        return _is_python_tool(text)
    if kind == "node":
        # The output of a bundler has few and long lines, and no recognizable
        # declarations.
        if len(text) > 20_000 and len(text) > 300 * (text.count("\n") + 1):
            return False
        return text.startswith("#!") or _NODE_WORDS.search(text) is not None
    if kind == "other":
        return text.startswith("#!") or "ARGV" in text
    return kind == "shell"


def script_source(source: str | bytes) -> str:
    """Return the text of a script, without a byte-order mark."""
    if isinstance(source, bytes):
        return source.decode("utf-8-sig", "replace")
    return source.removeprefix("\ufeff")


def _is_python_tool(text: str) -> bool:
    is_program = "__main__" in text
    if is_program and ("argv" in text or "parse_args(" in text):
        return True
    # Searching plain strings is ten times as fast as a regular expression.
    imports_library = any(
        f"import {library}" in text or f"from {library}" in text
        for library in PYTHON_LIBRARIES
    )
    if not is_program:
        # A function that others call may make the parser.
        if imports_library and "ArgumentParser" in text:
            return True
        words = ("argv", *PYTHON_LIBRARIES)
        return any(word in text for word in words) and _runs_something(text)
    # Typed input and stdin are not on the command line.
    if not imports_library and ("sys.stdin" in text or "input(" in text):
        return _OTHER_PROGRAM.search(text) is not None
    return True


def _runs_something(text: str) -> bool:
    """Return whether a statement of the module reads the words of the command line, or
    calls a definition of the module.
    """
    defined: set[str] = set()
    called: set[str] = set()
    for statement in _STATEMENT.findall(_LONG_TEXT.sub('""', text)):
        definition = _DEFINITION.match(statement)
        if definition:
            defined.add(definition[1])
            continue
        if "argv" in statement:
            return True
        called.update(_CALLED.findall(statement))
    return not defined.isdisjoint(called)
