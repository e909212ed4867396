"""The rule ids of repairs are public: one table has them, and the page that explains
them has a row for each.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from skillruntime.contract import repair_rules
from skillruntime.contract.repair_rules import RULES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "skillruntime" / "contract"
RUNTIME = ROOT / "skillruntime" / "runtime"
SOURCES = [path for path in PACKAGE.rglob("*.py") if path.name != "repair_rules.py"]
HYPHENATED = {rule for rule in RULES if "-" in rule}
"""Ids of a single word, such as ``default``, are words of JSON Schema too."""


def strings() -> set[str]:
    """Return every string in the package, without the table."""
    nodes = (
        node
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def is_rule(value: object) -> bool:
    return isinstance(value, str) and value in RULES


def documented() -> set[str]:
    """Return the ids in the tables of the page."""
    page = ROOT / "docs" / "repairs.md"
    if not page.exists():
        pytest.skip("needs docs/: run the tests in a checkout")
    rows = [
        line.split("|")[1]
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    return {rule for row in rows for rule in re.findall(r"`([a-z]+(?:-[a-z]+)*)`", row)}


def test_every_rule_is_documented() -> None:
    """`docs/repairs.md` has a row for each rule of the table, and no other row."""
    assert documented() == RULES.keys()


def test_every_rule_is_applied() -> None:
    """A row of the table without code that names it repairs nothing."""
    # The path of a file is read where its workspace is known.
    files = [*SOURCES, *RUNTIME.rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    constants = [name for name, value in vars(repair_rules).items() if is_rule(value)]

    unused = [name for name in constants if not re.search(rf"\b{name}\b", code)]

    assert len(constants) == len(RULES)
    assert unused == []


def test_the_table_alone_writes_a_rule_id() -> None:
    """Code names a rule by the constant of the table, so that a rule has one place."""
    assert strings() & HYPHENATED == set()
