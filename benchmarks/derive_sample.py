"""Which files below a directory are scripts, and which library each of them declares
its command line with.

A Python file is a script where it can be run by its path and does something then: it
has no relative import, and it either is guarded by ``__name__ == "__main__"``, or
parses at the top of the module. What it declares must be in its own code: a module that
only mentions a parser, or is passed one, does not count.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Script", "declares", "scripts_under"]

ELSEWHERE = {
    "node_modules",
    ".git",
    ".venv",
    "venv",
    "__pycache__",
    "tests",
    "test",
    "testing",
    "_vendor",
}
ASIDE = ("__init__.py", "conftest.py", "setup.py")
SUFFIXES = (".py", ".sh", ".bash", ".js", ".mjs", ".cjs")
PARSES = (
    "parse_args",
    "parse_known_args",
    "parse_intermixed_args",
    "parse_known_intermixed_args",
)
FOREIGN = ("fire", "docopt", "optparse", "getopt", "absl", "tap", "cyclopts")
SIZE_LIMIT = 400_000
"""Bytes; what is longer is data, or generated."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script, what it declares its arguments with, and whether it needs nothing of
    the package it lies in.
    """

    path: Path
    framework: str
    stands_alone: bool = True


def scripts_under(path: Path) -> Iterator[Script]:
    """Yield the scripts below *path*, each content once.

    Tests, packages' own files and virtual environments below *path* are left out; where
    *path* itself lies does not matter. A directory of *path* is one package, or one
    skill.
    """
    seen: set[bytes] = set()
    for each in [path] if path.is_file() else sorted(path.rglob("*")):
        inside = each.relative_to(path)
        aside = (
            each.name in ASIDE
            or each.name.startswith("test_")
            or ELSEWHERE & set(inside.parts)
        )
        if (
            aside
            or not each.is_file()
            or each.stat().st_size > SIZE_LIMIT
            or not _is_source(each)
        ):
            continue
        data = each.read_bytes()
        if (digest := hashlib.sha256(data).digest()) in seen:
            continue
        seen.add(digest)
        text = data.decode("utf-8", "replace")
        if framework := declares(text, each):
            root = path / inside.parts[0] if len(inside.parts) > 1 else each.parent
            yield Script(
                each,
                framework,
                each.suffix not in ("", ".py") or _stands_alone(text, each, root),
            )


def declares(text: str, path: Path) -> str:
    """Return what the script declares its arguments with; nothing where it is not a
    script.
    """
    if path.suffix in (".sh", ".bash"):
        return "shell"
    if path.suffix in (".js", ".mjs", ".cjs"):
        return next(
            (word for word in ("parseArgs", "commander", "yargs") if word in text),
            "node",
        )
    if not any(
        word in text
        for word in ("ArgumentParser", "click", "typer", "argv", "stdin", *FOREIGN)
    ):
        return ""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ""
    nodes = list(ast.walk(tree))
    if any(
        isinstance(each, ast.ImportFrom) and each.level for each in nodes
    ) or not _runs(tree):
        return ""
    called = {_last_name(each.func) for each in nodes if isinstance(each, ast.Call)}
    modules = {module.partition(".")[0] for each in nodes for module in _imported(each)}
    if "argparse" in modules and "ArgumentParser" in called and called & set(PARSES):
        return "argparse"
    decorated = "click" in modules and called & {"command", "group"}
    if decorated or ("typer" in modules and called & {"Typer", "run"}):
        return "typer" if "typer" in modules else "click"
    if other := next((name for name in FOREIGN if name in modules), ""):
        return other
    used = {each.attr for each in nodes if isinstance(each, ast.Attribute)}
    return "sys.argv" if "argv" in used else "stdin" if "stdin" in used else ""


def _stands_alone(text: str, path: Path, root: Path) -> bool:
    """Whether it imports no package of *root*, nor the one it lies in itself, but
    modules next to it at most.
    """
    own = {
        each.name for each in root.iterdir() if each.is_dir() and any(each.glob("*.py"))
    }
    directory = path.parent
    while (directory / "__init__.py").is_file():
        own.add(directory.name)
        directory = directory.parent
    own -= {each.name for each in path.parent.iterdir() if each.is_dir()}
    imported = {
        name.partition(".")[0]
        for each in ast.walk(ast.parse(text))
        for name in _imported(each)
    }
    return not own & imported


def _is_source(path: Path) -> bool:
    if path.suffix:
        return path.suffix.lower() in SUFFIXES
    with path.open("rb") as file:
        first = file.readline(200)
    return first.startswith(b"#!") and b"python" in first


def _runs(tree: ast.Module) -> bool:
    """Whether running the file does something: it is guarded, parses at its top, or
    calls a function of its own.
    """
    functions = {
        each.name
        for each in tree.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for each in tree.body:
        if (
            isinstance(each, ast.Expr)
            and isinstance(each.value, ast.Call)
            and _last_name(each.value.func) in functions
        ):
            return True
        if isinstance(each, ast.If) and "__name__" in ast.unparse(each.test):
            return True
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if any(
            isinstance(inner, ast.Attribute) and inner.attr in (*PARSES, "argv")
            for inner in ast.walk(each)
        ):
            return True
    return False


def _last_name(node: ast.expr) -> str:
    return (
        node.attr
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
    )


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
