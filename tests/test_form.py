"""The form of the code: one thing a line. What still has another form is listed, and the
lists may only get shorter.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.proportion import (
    PACKAGE,
    ROOT,
    complexity,
    functions,
    sources,
    statement_decisions,
)

MOST_DECISIONS = 3
MOST_POSITIONAL = 5
MOST_COMPLEX = 20
WIDEST = 100

DENSE: set[str] = set()
"""Functions with a statement of more than three decisions."""

NESTED: set[str] = set()
"""Functions with a conditional expression inside another."""

SPLATS: set[str] = set()
"""Functions that unpack a literal, ``*("a", "b")``, to please a formatter."""

ARGUMENTS: set[str] = set()
"""Functions with more than five positional parameters."""


def places(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Yield every node of a module with the place that contains it: the file, and the
    names of the classes and functions around the node.
    """
    file = path.relative_to(PACKAGE).as_posix()
    pending: list[tuple[str, ast.AST]] = [("", sources()[path])]
    while pending:
        around, node = pending.pop()
        yield f"{file}:{around}" if around else file, node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            around = f"{around}.{node.name}" if around else node.name
        pending += [(around, child) for child in ast.iter_child_nodes(node)]


def is_dense(node: ast.AST) -> bool:
    return isinstance(node, ast.stmt) and statement_decisions(node) > MOST_DECISIONS


def is_nested(node: ast.AST) -> bool:
    return isinstance(node, ast.IfExp) and any(
        isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse)
    )


def is_splat(node: ast.AST) -> bool:
    return isinstance(node, ast.Starred) and isinstance(
        node.value, ast.Tuple | ast.List | ast.Set
    )


@pytest.mark.parametrize(
    ("has_form", "listed"),
    [(is_dense, DENSE), (is_nested, NESTED), (is_splat, SPLATS)],
    ids=["dense", "nested", "splat"],
)
def test_only_listed_places_have_a_dense_form(
    has_form: Callable[[ast.AST], bool], listed: set[str]
) -> None:
    """A place that is rewritten leaves its list, and no place is added."""
    found = {
        place for path in sources() for place, node in places(path) if has_form(node)
    }

    assert sorted(found) == sorted(listed)


def test_only_listed_functions_take_many_positional_parameters() -> None:
    """What travels together through several functions is one value with a name."""
    found = set()
    for path, name, function in functions():
        parameters = [*function.args.posonlyargs, *function.args.args]
        named = [each for each in parameters if each.arg not in ("self", "cls")]
        if len(named) > MOST_POSITIONAL:
            found.add(f"{path.relative_to(PACKAGE).as_posix()}:{name}")

    assert sorted(found) == sorted(ARGUMENTS)


def test_no_function_is_too_complex() -> None:
    """A function that needs more decisions is a table, two functions, or a case that
    should be refused. Counted with ``and`` and ``or``, unlike C901, which allows 15.
    """
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}:{name}": complexity(function)
        for path, name, function in functions()
        if complexity(function) > MOST_COMPLEX
    }

    assert found == {}


def wide_lines(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        lines = path.read_text("utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            if len(line) > WIDEST:
                yield f"{path.relative_to(ROOT)}:{number}"


def test_no_line_is_wide() -> None:
    """Code is formatted at 88 columns; a text or a suppression may reach 100."""
    assert [*wide_lines(sources())] == []


def test_no_line_of_the_tests_is_wide() -> None:
    """The scripts that `derive` reads are data: other people wrote them so."""
    scripts = ROOT / "tests/derive/scripts"
    paths = sorted((ROOT / "tests").rglob("*.py"))

    assert [*wide_lines(path for path in paths if scripts not in path.parents)] == []


CHANGING_METHODS = frozenset(
    [
        "add",
        "append",
        "appendleft",
        "clear",
        "discard",
        "extend",
        "insert",
        "pop",
        "popleft",
        "remove",
        "setdefault",
        "update",
    ]
)


def changed_names(module: ast.AST) -> Iterator[str]:
    """Yield the name of each attribute that *module* assigns, or whose list, set or
    dictionary it changes.
    """
    for node in ast.walk(module):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Subscript(
                value=ast.Attribute(attr=name), ctx=ast.Store() | ast.Del()
            ):
                yield name
            case ast.Call(
                func=ast.Attribute(value=ast.Attribute(attr=name), attr=method)
            ) if method in CHANGING_METHODS:
                yield name


def dataclasses_of(module: ast.AST) -> Iterator[tuple[ast.ClassDef, bool]]:
    """Yield each dataclass of *module*, with whether it is frozen."""
    for node in ast.walk(module):
        if not isinstance(node, ast.ClassDef):
            continue
        for decorator in map(ast.unparse, node.decorator_list):
            if decorator.startswith("dataclass"):
                yield node, "frozen=True" in decorator


def test_a_dataclass_is_frozen_unless_a_field_is_changed() -> None:
    """In its own module, or in one that names it."""
    changed = {path: {*changed_names(module)} for path, module in sources().items()}
    texts = {path: path.read_text("utf-8") for path in changed}

    found = []
    for path, module in sources().items():
        for node, is_frozen in dataclasses_of(module):
            fields = {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            }
            naming = [other for other, text in texts.items() if node.name in text]
            if not is_frozen and not any(fields & changed[other] for other in naming):
                found.append(f"{path.relative_to(PACKAGE).as_posix()}:{node.name}")

    assert found == []
