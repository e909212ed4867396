"""Each case that the mark `quick_cases` names exists, so that a renamed case does not
leave the quick run unseen.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import case_of

TESTS = Path(__file__).parent


def marked(path: Path) -> dict[str, list[str]]:
    """Return the cases that the marks in a file name, by the name of the test."""
    found = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith(
                ".quick_cases"
            ):
                found[node.name] = ast.literal_eval(decorator.args[0])
    return found


def test_each_quick_case_exists(request: pytest.FixtureRequest) -> None:
    """Only the tests that this run collected can be compared: all, in a run of all."""
    collected: dict[str, set[str]] = {}
    for item in request.session.items:
        if item.get_closest_marker("quick_cases"):
            name = f"{item.path}::{item.nodeid.partition('[')[0].rpartition('::')[2]}"
            collected.setdefault(name, set()).add(case_of(item))

    unknown = {}
    for path in TESTS.rglob("test_*.py"):
        for test, cases in marked(path).items():
            present = collected.get(f"{path}::{test}")
            if present and (missing := set(cases) - present):
                unknown[test] = missing

    assert unknown == {}
