"""Opening one data file as a table: CSV, Parquet or JSON, in DuckDB, in memory, offline.

Not a tool: summary.py and chart.py import it.
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb
from script_call import Failure, input_file, shown_path

SUFFIXES = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}
SUFFIXES |= {".jsonl": "json", ".ndjson": "json", ".json": "json"}
NUMERIC = re.compile(r"^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL|FLOAT|DOUBLE|REAL|NUMERIC|BIGNUM)\b")
TEMPORAL = re.compile(r"^(DATE|TIME)")
TEXT = re.compile(r"^(VARCHAR|ENUM|UUID)\b")
MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, DuckDB's type for it, and what can be done with it."""

    name: str
    type: str

    @property
    def kind(self) -> str:
        """Return "numeric", "boolean", "temporal", "text" or "other"."""
        if self.type == "BOOLEAN":
            return "boolean"
        if self.type.endswith("]"):  # a list of anything
            return "other"
        kinds = (("numeric", NUMERIC), ("temporal", TEMPORAL), ("text", TEXT))
        return next((kind for kind, pattern in kinds if pattern.match(self.type)), "other")

    @property
    def sql(self) -> str:
        """Return the name, quoted for SQL."""
        return '"' + self.name.replace('"', '""') + '"'

    @property
    def shown_sql(self) -> str:
        """Return an expression whose value is plain JSON: dates, lists and the like as text."""
        return self.sql if self.kind in ("numeric", "boolean") else f"CAST({self.sql} AS VARCHAR)"


@dataclass(frozen=True, slots=True)
class Table:
    """A file that was opened, as the table ``data`` of *connection*."""

    connection: duckdb.DuckDBPyConnection
    file: Path
    format: str
    columns: tuple[Column, ...]
    row_count: int

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of *query*."""
        return self.connection.execute(query).fetchall()

    def column(self, name: str, path: str) -> Column:
        """Return the column *name*, in its exact or else its only match in other case. *path* is a JSON Pointer."""
        exact = [column for column in self.columns if column.name == name]
        folded = [column for column in self.columns if column.name.casefold() == name.strip().casefold()]
        if exact or len(folded) == 1:
            return (exact or folded)[0]
        known = ", ".join(column.name for column in self.columns[:30])
        message = f"{shown_path(self.file)!r} has no column {name!r}"
        raise Failure("INVALID_INPUT", message, f"Its columns: {known}.", path=path)


@contextmanager
def open_table(arguments: dict[str, Any]) -> Iterator[Table]:
    """Open the file that *arguments* name. DuckDB's own temporary files stay out of the workspace.

    Raises: Failure, where the file is missing, empty, of another format, or not one table.
    """
    file = input_file(arguments["path"], "/path", (*SUFFIXES, ".csv.gz"))
    form = _format(file, arguments["format"])
    if not file.stat().st_size:
        raise Failure("INVALID_INPUT", f"{shown_path(file)!r} is empty (0 bytes)", "Send another file.", path="/path")
    with tempfile.TemporaryDirectory(prefix="data-analysis-") as temporary:
        settings = {
            "temp_directory": temporary,
            "memory_limit": "2GB",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "TimeZone": "UTC",
        }
        with duckdb.connect(":memory:") as connection:
            for name, value in settings.items():
                connection.execute(f"SET {name} = '{value}'")
            try:
                connection.execute(_create(file, form, arguments))
                if form == "csv" and (delimiter := _missed_delimiter(connection)):
                    connection.execute("DROP TABLE data")
                    connection.execute(_create(file, form, arguments, delimiter))
                described = connection.execute("DESCRIBE data").fetchall()
                (count,) = connection.execute("SELECT count(*) FROM data").fetchall()[0]
                columns = tuple(Column(row[0], str(row[1])) for row in described)
                yield Table(connection, file, form, columns, count)
            except duckdb.Error as error:
                raise _refusal(file, form, error, arguments) from error


def _format(file: Path, chosen: str) -> str:
    if chosen != "auto":
        return "json" if chosen == "jsonl" else chosen
    suffix = Path(file.stem).suffix if file.suffix.lower() == ".gz" else file.suffix
    if suffix.lower() in SUFFIXES:
        return SUFFIXES[suffix.lower()]
    message = f"the format of {shown_path(file)!r} is not known from its name"
    raise Failure("INVALID_INPUT", message, "Send format: csv, parquet or jsonl.", path="/format")


def _missed_delimiter(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return the delimiter of a table that was taken for one column because one of its rows is broken.

    Read again with it, the file gives the error that names the row.
    """
    names = [row[0] for row in connection.execute("DESCRIBE data").fetchall()]
    if len(names) != 1:
        return None
    column = Column(names[0], "VARCHAR").sql
    for delimiter in ",;\t|":
        query = f"SELECT count(*), count(*) FILTER (contains({column}::VARCHAR, '{delimiter}')) FROM data"
        rows, split = connection.execute(query).fetchall()[0]
        if delimiter in names[0] and split > rows / 2:
            return delimiter
    return None


def _create(file: Path, form: str, arguments: dict[str, Any], delimiter: str | None = None) -> str:
    """Return the statement that makes ``data`` of *file*. Parquet stays on disk; text is read once, whole."""
    pattern = re.sub(r"([*?\[])", r"[\1]", str(file))  # a name is a name, not a pattern
    path = "'" + pattern.replace("'", "''") + "'"
    if form == "parquet":
        return f"CREATE VIEW data AS SELECT * FROM read_parquet({path}, hive_partitioning = false)"
    if form == "json":
        return f"CREATE TABLE data AS SELECT * FROM read_json({path}, sample_size = -1, hive_partitioning = false)"
    header = "true" if arguments["has_header"] else "false"
    header += f", delim = '{delimiter}'" if delimiter else ""
    return (
        f"CREATE TABLE data AS SELECT * FROM read_csv({path}, sample_size = -1, hive_partitioning = false, "
        f"header = {header}, skip = {int(arguments['skip_lines'])}, encoding = '{arguments['encoding']}')"
    )


def _refusal(file: Path, form: str, error: duckdb.Error, arguments: dict[str, Any]) -> Failure:
    """Return what went wrong in one line, with the parameter that could correct it."""
    said = str(error)
    shown = shown_path(file)
    if isinstance(error, duckdb.OutOfMemoryException):
        action = "Send fewer columns, or a smaller extract of the file."
        return Failure("TOOL_EXECUTION_FAILED", f"{shown!r} does not fit in memory", action, recoverable=True)
    if "not utf-8" in said.lower() or "invalid unicode" in said.lower():
        action = "Send encoding: latin-1 (or utf-16)."
        return Failure("INVALID_INPUT", f"{shown!r} is not {arguments['encoding']} text", action, path="/encoding")
    if form == "csv" and (ragged := _ragged_line(file, arguments)):
        action = "Correct that line (quote values that hold the delimiter); send skip_lines if the table starts later."
        return Failure("INVALID_INPUT", f"{shown!r} is not one table: {ragged}", action, path="/path")
    first = re.sub(r"\s+", " ", said.split("\n\n")[0].replace(str(file), shown))[:240]
    action = {
        "csv": "Check that the file is one table; send skip_lines if it starts with lines that are not part of it.",
        "parquet": "Send the format that the file really has, or another file.",
        "json": "Send JSON lines (one object per line) or one JSON array of objects.",
    }[form]
    return Failure("INVALID_INPUT", f"{shown!r} cannot be read as {form}: {first}", action, path="/path")


def _ragged_line(file: Path, arguments: dict[str, Any]) -> str | None:
    """Say which line is the first with more or fewer values than the one at the top."""
    if file.suffix.lower() == ".gz":
        return None
    with file.open(encoding=arguments["encoding"], errors="replace", newline="") as opened:
        lines = islice(opened, arguments["skip_lines"], 1_000_000)
        first = next(lines, "")
        delimiter = max(",;\t|", key=first.count)
        try:
            rows = csv.reader(chain([first], lines), delimiter=delimiter)
            wanted = len(next(rows, []))
            for row in rows:
                if row and len(row) != wanted:
                    line = arguments["skip_lines"] + rows.line_num
                    return f"line {line} has {len(row)} value(s), the first line {wanted} (delimiter {delimiter!r})"
        except csv.Error:
            return None
    return None


def plain(value: Any) -> Any:
    """Return *value* as JSON has it: no NaN, no infinity, no text beyond 200 characters.

    >>> plain(Decimal("1.50")), plain(float("nan")), plain("x" * 300)[-2:]
    (1.5, 'nan', 'x…')
    """
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() and abs(value) > 2**53 else float(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    text = str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
