"""How large and how dense the package is: code lines, decisions, and what a newcomer
has to walk through.

``python -m tests.proportion`` prints the measures that are wanted lower and not tested.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "skillruntime"

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.Assert,
    ast.match_case,
)


@cache
def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in sorted(PACKAGE.rglob("*.py"))
        if "bundled" not in path.parts
    }


@cache
def sources() -> dict[Path, ast.Module]:
    """Return the syntax tree of every module of the package."""
    return {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in modules().values()
    }


def code_lines(path: Path) -> int:
    """Return the lines of *path* that are neither blank nor comments nor of a
    docstring.
    """
    docstrings: set[int] = set()
    for node in ast.walk(sources()[path]):
        if (
            isinstance(node, ast.Module | ast.ClassDef | _Function)
            and ast.get_docstring(node, clean=False) is not None
        ):
            first = node.body[0]
            docstrings |= set(
                range(first.lineno, (first.end_lineno or first.lineno) + 1)
            )
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    return sum(
        1
        for number, line in lines
        if number not in docstrings and line.strip() and line.strip()[0] != "#"
    )


@cache
def lines_of_packages() -> Counter[str]:
    """Return the code lines of each package, the MCP proxy apart; single modules are
    ``modules``.
    """
    found: Counter[str] = Counter()
    for path in sources():
        parts = path.relative_to(PACKAGE).parts
        package = parts[0] if len(parts) > 1 else "modules"
        if parts[:2] == ("adapters", "mcp_proxy"):
            package = "adapters/mcp_proxy"
        found[package] += code_lines(path)
    return found


def functions() -> Iterator[tuple[Path, _Function]]:
    """Yield every function and method of the package with its file."""
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, _Function):
                yield path, node


def complexity(function: _Function) -> int:
    """Return the cyclomatic complexity: one, and one for each branch, Boolean operator
    and clause of a comprehension.

    A function defined inside counts for itself alone.
    """
    total, pending = 1, [*ast.iter_child_nodes(function)]
    while pending:
        node = pending.pop()
        if isinstance(node, _Function):
            continue
        total += isinstance(node, _BRANCHES)
        if isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        if isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
        pending += ast.iter_child_nodes(node)
    return total


def directions() -> str:
    """Return the measures that are wanted lower and not tested, in one line."""
    lines = sum(lines_of_packages().values())
    decisions = sum(complexity(function) for _, function in functions())
    nested = sum(
        _is_nested(node) for tree in sources().values() for node in ast.walk(tree)
    )
    return (
        f"{lines:,} code lines in {len(sources())} files, {decisions / lines:.2f} "
        f"decisions a line, {nested} nested conditional expressions, "
        f"{_with_one_importer()} modules with one importer"
    )


def files_walked(call: Callable[[], Any]) -> int:
    """Return in how many of the package's files a function runs during *call*."""
    walked: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            walked.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return len(walked)


def _is_nested(node: ast.AST) -> bool:
    return isinstance(node, ast.IfExp) and any(
        isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse)
    )


def _with_one_importer() -> int:
    importers: dict[str, set[Path]] = {}
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "skillruntime"
            ):
                importers.setdefault(node.module or "", set()).add(path)
    return sum(len(paths) == 1 for paths in importers.values())


if __name__ == "__main__":
    sys.stdout.write(f"{directions()}\n")
