"""``python -m tests.mutants --seed 1 --count 60``: change one expression of the package
at a time, and see whether the quick tests notice.

The changes are made in a copy of the checkout. Its tests must pass without a change;
that run notes which test executes which line. For each change, the test files that name
the module run first, then the tests that executed the changed line, then the tests of
the package, because a line may be executed in another process. A mutant is killed if a
test fails or does not end in time.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coverage import CoverageData

ROOT = Path(__file__).parents[1]
PACKAGES = ("contract", "catalog", "runtime", "server")
_SECONDS = 1_800.0  # for all quick tests
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a module: where the text *before* begins, and the text *after*."""

    path: Path
    line: int
    start: int
    before: str
    after: str


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every change that this module knows of the module at *path*.

    A comparison is turned round or moved by one, ``and`` becomes ``or``, a ``not`` is
    left out, a number is one larger, a function returns None, and a call whose result
    is not used is left out.
    """
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    for node in _expressions(ast.parse(source)):
        after = _changed(node)
        before = ast.get_source_segment(source, node)
        if after is None or before is None:
            continue
        # Columns count bytes of UTF-8.
        column = len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
        start = sum(map(len, lines[: node.lineno - 1])) + column
        yield Mutant(path, node.lineno, start, before, after)


def _expressions(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield the expressions and statements below *node*, except those in f-strings,
    whose places Python 3.11 does not know.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr):
            continue
        if isinstance(child, ast.expr | ast.stmt):
            yield child
        yield from _expressions(child)


def _changed(node: ast.AST) -> str | None:
    """Return the changed text of *node*; None if nothing is changed there."""
    changed: Any = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=[operator]):
            changed.ops = [_COMPARED[type(operator)]()]
        case ast.BoolOp(op=ast.And()):
            changed.op = ast.Or()
        case ast.BoolOp(op=ast.Or()):
            changed.op = ast.And()
        case ast.UnaryOp(op=ast.Not()):
            changed = changed.operand
        case ast.Constant(value=bool()):
            changed.value = not changed.value
        case ast.Constant(value=int() as number):
            changed.value = number + 1
        # For a caller that asks whether, both are alike.
        case ast.Return(value=ast.Constant(value=None | False)):
            return None
        case ast.Return(value=ast.expr()):
            return "return None"
        case ast.Expr(value=ast.Call()):
            return "pass"
        case _:
            return None
    # In parentheses, so that the text means the same in any expression.
    return f"({ast.unparse(changed)})"


def is_killed(mutant: Mutant, copied: Path, executed: CoverageData) -> bool:
    """Return whether a test notices *mutant* in the checkout *copied*; *executed* knows
    which test executes which line of it.
    """
    module = mutant.path.relative_to(ROOT)
    path = copied / module
    named = [
        str(test)
        for test in sorted((copied / "tests").rglob("test_*.py"))
        if _names(test, mutant)
    ]
    of_package = [f"tests/{module.parts[1]}", "tests/test_public_api.py"]
    tried = (named, _tests_that_execute(mutant, path, executed), of_package)

    original = path.read_text(encoding="utf-8")
    end = mutant.start + len(mutant.before)
    changed = original[: mutant.start] + mutant.after + original[end:]
    path.write_text(changed, encoding="utf-8")
    try:
        return any(tests and _fails(tests, copied) for tests in tried)
    finally:
        path.write_text(original, encoding="utf-8")


def _tests_that_execute(
    mutant: Mutant, path: Path, executed: CoverageData
) -> list[str]:
    """Return the ids of the tests that execute a line of *mutant* in the file *path*."""
    by_line = executed.contexts_by_lineno(str(path))
    last = mutant.line + mutant.before.count("\n")
    # A context is the id of a test and the part of it: `tests/test_x.py::test_y|run`.
    # It is empty for what is executed while a module is imported.
    return sorted(
        {
            context.rpartition("|")[0]
            for line in range(mutant.line, last + 1)
            for context in by_line.get(line, ())
            if context
        }
    )


def _names(test: Path, mutant: Mutant) -> bool:
    """Return whether the file *test* names the changed module: in its own name, in an
    import or, by its path, in a text.
    """
    module = mutant.path.relative_to(ROOT)
    text = test.read_text("utf-8")
    dotted = ".".join(module.with_suffix("").parts)
    return module.stem in test.stem or dotted in text or module.as_posix() in text


def _fails(tests: list[str], copied: Path) -> bool:
    """Return whether any of *tests* fails, or they do not end in time."""
    listed = copied / "tests-of-the-mutant.txt"  # too many for a command line
    listed.write_text("\n".join(tests), encoding="utf-8")
    try:
        return _run_tests(copied, "-x", f"@{listed}") != 0
    except subprocess.TimeoutExpired:
        return True


def _coverage_of(copied: Path) -> CoverageData:
    """Run the quick tests in *copied* and return which test executes which line."""
    report = ("--cov=skillruntime", "--cov-context=test", "--cov-report=")
    # The calls that coverage makes would be counted too.
    left_out = "--ignore=tests/test_counted_work.py"
    if _run_tests(copied, *report, left_out) != 0:
        raise SystemExit("the tests fail without any change")
    executed = CoverageData(str(copied / ".coverage"))
    executed.read()
    return executed


def _run_tests(copied: Path, *arguments: str) -> int:
    """Return the exit code of pytest in *copied*; raise TimeoutExpired at the end of
    the time.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *arguments],
        cwd=copied,
        env={**os.environ, "PYTHONPATH": str(copied)},
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    return done.returncode


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--package", choices=PACKAGES, action="append")
    options = parser.parse_args()
    chosen = random.Random(options.seed)
    packages = options.package or PACKAGES
    killed = 0
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)  # some tests run scripts as another user
        copied = Path(made) / "checkout"
        ignored = shutil.ignore_patterns(".git", "__pycache__", ".nox", ".*_cache")
        shutil.copytree(ROOT, copied, ignore=ignored)
        executed = _coverage_of(copied)
        for number in range(options.count):
            package = packages[number % len(packages)]
            modules = sorted((ROOT / "skillruntime" / package).rglob("*.py"))
            mutants: list[Mutant] = []
            while not mutants:
                mutants = list(mutants_of(chosen.choice(modules)))
            mutant = chosen.choice(mutants)
            seen = is_killed(mutant, copied, executed)
            killed += seen
            place = f"{mutant.path.relative_to(ROOT)}:{mutant.line}"
            verdict = "killed" if seen else "survived"
            sys.stdout.write(f"{verdict} {place}: {mutant.before} -> {mutant.after}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{killed} of {options.count} killed\n")


if __name__ == "__main__":
    main()
