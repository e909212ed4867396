"""``python -m tests.mutants --seed 1 --count 60``: change one expression of the package
at a time, and see whether its tests notice: the files that name the changed module, and
those of its folder and of the public interface.

The changes are made in a copy of the checkout, whose tests must pass without them. A
mutant is killed if a test fails or does not end in time.
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

ROOT = Path(__file__).parents[1]
PACKAGES = ("contract", "catalog", "runtime", "server")
_SECONDS = 600.0  # for the tests of one folder
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


def is_killed(mutant: Mutant, copied: Path, package: str) -> bool:
    """Return whether a test notices *mutant* in the checkout *copied*: one in a file
    that names the changed module, or else one of *package* or of the public interface.
    """
    path = copied / mutant.path.relative_to(ROOT)
    original = path.read_text(encoding="utf-8")
    end = mutant.start + len(mutant.before)
    path.write_text(
        original[: mutant.start] + mutant.after + original[end:], encoding="utf-8"
    )
    named = [
        str(test)
        for test in sorted((copied / "tests").rglob("test_*.py"))
        if _names(test, mutant)
    ]
    try:
        return (bool(named) and _fails(named, copied)) or _fails(
            [f"tests/{package}", "tests/test_public_api.py"], copied
        )
    finally:
        path.write_text(original, encoding="utf-8")


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
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *tests],
            cwd=copied,
            env={**os.environ, "PYTHONPATH": str(copied)},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


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
        for package in packages:
            if _fails([f"tests/{package}"], copied):
                raise SystemExit(f"tests/{package} fails without any change")
        for number in range(options.count):
            package = packages[number % len(packages)]
            modules = sorted((ROOT / "skillruntime" / package).rglob("*.py"))
            mutants: list[Mutant] = []
            while not mutants:
                mutants = list(mutants_of(chosen.choice(modules)))
            mutant = chosen.choice(mutants)
            seen = is_killed(mutant, copied, package)
            killed += seen
            place = f"{mutant.path.relative_to(ROOT)}:{mutant.line}"
            verdict = "killed" if seen else "survived"
            sys.stdout.write(f"{verdict} {place}: {mutant.before} -> {mutant.after}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{killed} of {options.count} killed\n")


if __name__ == "__main__":
    main()
