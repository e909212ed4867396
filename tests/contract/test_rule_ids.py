"""The rule ids of repairs are public: the page that explains them lists each, and no
other.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "skillruntime" / "contract"
OTHERS = (
    "contract.py",
    "document/aliases.py",
    "reading/arguments.py",
    "reading/call_forms.py",
    "reading/json_text.py",
    "reading/prose.py",
)
SOURCES = [
    *sorted((PACKAGE / "repairs").glob("*.py")),
    *(PACKAGE / name for name in OTHERS),
]
FORMATS = {"date-time"}
_HYPHENATED = re.compile(r"[a-z]+(-[a-z]+)+")
"""Rule ids are the only strings of this form in these modules; a few ids are a single
word.
"""


def strings() -> set[str]:
    """Return every string that the modules which repair write."""
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


def test_every_rule_id_is_documented() -> None:
    """`docs/repairs.md` has a row for each rule, and no row for a rule that does not
    exist.
    """
    written, listed = strings(), documented()

    assert {
        text for text in written if _HYPHENATED.fullmatch(text)
    } - listed - FORMATS == set()
    assert listed - written == set()
