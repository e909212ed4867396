"""How much of the engine is used that is not its public interface: each name or
statement that goes is taken from these lists, and none is added.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import skillruntime

PACKAGE = Path(skillruntime.__file__).parent
TABLES = {
    "application_versions",
    "notifications",
    "operation_outputs",
    "queues",
    "streams",
    "workflow_events",
    "workflow_events_history",
    "workflow_input",
    "workflow_output",
    "workflow_schedules",
    "workflow_status",
}
WRITES = re.compile(
    r"(INSERT INTO|UPDATE|DELETE FROM|MERGE INTO|TRUNCATE|COPY) (?:ONLY )?"
    r"(?:(?:skillruntime|\{SCHEMA\})\.)?(\w+)"
)


def test_of_the_engine_these_private_names_are_used() -> None:
    """No public name hands over the work of a dead server, or lets a server look at a
    queue when a place becomes free.
    """
    used = {
        (path.name, name)
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in private_names(path.read_text())
    }

    assert used == {
        ("handing_over.py", "DBOS._recover_pending_workflows"),
        ("instance.py", "client._build_enqueue_status"),
        ("instance.py", "client._sys_db"),
        ("instance.py", "dbos._core"),
        ("instance.py", "dbos._queue"),
    }


def private_names(source: str) -> list[str]:
    """Return the attributes of the engine's objects in *source* that begin with an
    underscore.
    """
    of_engine = ("dbos.", "DBOS.", "client.", "instance.engine.", "self.engine.")
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            names.append(ast.unparse(node))
    return [name for name in names if name.startswith(of_engine) and "__" not in name]


def test_these_statements_write_tables_of_the_engine() -> None:
    """They change with its versions: the mark of a beginning, an end that no run
    writes, and what a server took without hearing of it.
    """
    written = sorted(
        (path.name, verb, table)
        for path in sorted(PACKAGE.rglob("*.py"))
        for text in texts(path.read_text())
        for verb, table in WRITES.findall(text)
        if table in TABLES
    )

    assert written == [
        ("tables.py", "INSERT INTO", "operation_outputs"),
        ("tables.py", "INSERT INTO", "workflow_output"),
        ("tables.py", "UPDATE", "workflow_status"),
        ("tables.py", "UPDATE", "workflow_status"),
    ]


def texts(source: str) -> list[str]:
    """Return the texts in *source*, those with values in braces as they are written."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    ]
