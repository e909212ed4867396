"""How large and how plain the package is: lines, tokens, decisions, and the forms that a
reader reads twice.

``python -m tests.proportion`` prints a line for each package; ``--against REV`` prints
the difference to another revision of the repository beside it. Nothing fails by it:
`tests/test_form.py` tests the form.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
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
    ast.Assert,
    ast.match_case,
)
_WITHOUT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True, slots=True)
class Size:
    """What one package, or all of them, consists of."""

    files: int = 0
    lines: int = 0
    """Lines with code: without blank lines, comments and docstrings."""
    tokens: int = 0
    decisions: int = 0
    """The cyclomatic complexity of all functions together."""
    statements: int = 0
    conditional_expressions: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(
            self.files + other.files,
            self.lines + other.lines,
            self.tokens + other.tokens,
            self.decisions + other.decisions,
            self.statements + other.statements,
            self.conditional_expressions + other.conditional_expressions,
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


def functions() -> Iterator[tuple[Path, str, _Function]]:
    """Yield every function and method of the package: its file, its name with those of
    the classes and functions around it, and its node.
    """
    for path, tree in sources().items():
        for name, node in _functions_in(tree, ""):
            yield path, name, node


def _functions_in(node: ast.AST, around: str) -> Iterator[tuple[str, _Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield f"{around}{child.name}", child
            yield from _functions_in(child, f"{around}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions_in(child, f"{around}{child.name}.")
        else:
            yield from _functions_in(child, around)


def complexity(function: _Function) -> int:
    """Return the cyclomatic complexity: one, one for each branch, and what the
    expressions decide.

    A function that is defined inside counts for itself alone.
    """
    total = 1
    pending = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, _Function):
            continue
        if isinstance(node, _BRANCHES):
            total += 1
        total += decisions(node)
        pending += ast.iter_child_nodes(node)
    return total


def decisions(node: ast.AST) -> int:
    """Return what one node of an expression decides: a conditional expression, each
    further operand of ``and`` and ``or``, each clause of a comprehension and each of its
    conditions.
    """
    if isinstance(node, ast.IfExp):
        return 1
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    return 0


def statement_decisions(statement: ast.stmt) -> int:
    """Return the decisions in the expressions of one statement, without those of the
    statements inside it.
    """
    return sum(
        decisions(node)
        for expression in _expressions(statement)
        for node in ast.walk(expression)
    )


def _expressions(statement: ast.stmt) -> list[ast.AST]:
    match statement:
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.For(iter=iterable) | ast.AsyncFor(iter=iterable):
            return [iterable]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [item.context_expr for item in items]
        case ast.Match(subject=subject):
            return [subject]
        case (
            ast.Return()
            | ast.Assign()
            | ast.AnnAssign()
            | ast.AugAssign()
            | ast.Expr()
            | ast.Assert()
            | ast.Raise()
            | ast.Delete()
        ):
            return [statement]
    return []


def size_of(text: str) -> Size:
    """Return how large the module with this *text* is."""
    tree = ast.parse(text)
    documented = _docstring_lines(tree)
    lines: set[int] = set()
    tokens = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _WITHOUT_CODE or token.start[0] in documented:
            continue
        tokens += 1
        lines.update(range(token.start[0], token.end[0] + 1))
    nodes = list(ast.walk(tree))
    return Size(
        files=1,
        lines=len(lines),
        tokens=tokens,
        decisions=sum(complexity(n) for n in nodes if isinstance(n, _Function)),
        statements=sum(isinstance(node, ast.stmt) for node in nodes),
        conditional_expressions=sum(isinstance(node, ast.IfExp) for node in nodes),
    )


def _docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | _Function):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            last = docstring.end_lineno or docstring.lineno
            found.update(range(docstring.lineno, last + 1))
    return found


def sizes(texts: Iterable[tuple[str, str]]) -> dict[str, Size]:
    """Return the size of each package, of the modules' paths below ``skillruntime`` and
    their *texts*; the package's single modules are ``.``.
    """
    found: dict[str, Size] = {}
    for path, text in texts:
        parts = path.split("/")
        name = parts[0] if len(parts) > 1 else "."
        found[name] = found.get(name, Size()) + size_of(text)
    return found


def _texts_now() -> Iterator[tuple[str, str]]:
    for path in modules().values():
        yield path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")


def _texts_at(revision: str) -> Iterator[tuple[str, str]]:
    command = ["git", "archive", "--format=tar", revision, "skillruntime"]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for member in members:
            content = members.extractfile(member)
            if content is not None and member.name.endswith(".py"):
                path = member.name.removeprefix("skillruntime/")
                yield path, content.read().decode("utf-8")


def files_walked(call: Callable[[], Any]) -> int:
    """Return in how many of the package's files a function runs during *call*."""
    walked: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and _is_ours(frame):
            walked.add(frame.f_code.co_filename)

    _profiled(call, note)
    return len(walked)


def returns_between_files(call: Callable[[], Any]) -> int:
    """Return how often a function of the package returns to a function in another of
    its files during *call*.
    """
    returns = Counter[tuple[str, str]]()

    def note(frame: FrameType, event: str, _: Any) -> None:
        caller = frame.f_back
        if event != "return" or caller is None:
            return
        if _is_ours(frame) and _is_ours(caller):
            returns[frame.f_code.co_filename, caller.f_code.co_filename] += 1

    _profiled(call, note)
    return sum(number for (one, other), number in returns.items() if one != other)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(str(PACKAGE))


def _profiled(
    call: Callable[[], Any], note: Callable[[FrameType, str, Any], None]
) -> None:
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)


def report(now: dict[str, Size], before: dict[str, Size] | None) -> str:
    """Return a line for each package, largest first, and one for all of them."""
    rows = []
    for name in sorted(now, key=lambda each: -now[each].lines):
        rows.append(_row(name, now[name], (before or {}).get(name)))
    total = sum(now.values(), Size())
    earlier = sum(before.values(), Size()) if before is not None else None
    rows.append(_row("sum", total, earlier))
    return "\n".join(rows)


def _row(name: str, now: Size, before: Size | None) -> str:
    row = (
        f"{name:14} {now.files:4} files {now.lines:6} lines {now.tokens:7} tokens "
        f"{now.decisions / max(now.lines, 1):.2f} decisions a line "
        f"{100 * now.decisions / max(now.tokens, 1):.1f} per 100 tokens "
        f"{1000 * now.conditional_expressions / max(now.statements, 1):.0f} conditional "
        "expressions per 1,000 statements"
    )
    if before is None:
        return row
    return (
        f"{row}  ({now.lines - before.lines:+} lines, {now.tokens - before.tokens:+} "
        f"tokens, {now.decisions - before.decisions:+} decisions)"
    )


def main() -> None:
    """Print the sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="REV", help="compare with this revision")
    options = parser.parse_args()
    before = None
    if options.against is not None:
        before = sizes(_texts_at(options.against))
    sys.stdout.write(f"{report(sizes(_texts_now()), before)}\n")


if __name__ == "__main__":
    main()
