"""Opening data files as tables: CSV, workbooks, Parquet and JSON, in DuckDB, in memory,
offline.

Not a tool: summary.py and query.py import it.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb
from column_types import Column, Conventions, cleaned, quoted_name, typed_columns
from script_call import Failure, input_file, shown_path
from text_tables import as_utf8, load_text, named, quoted_path, sheet_as_text

SUFFIXES = (
    ".csv",
    ".tsv",
    ".txt",
    ".gz",
    ".xlsx",
    ".xls",
    ".ods",
    ".parquet",
    ".json",
    ".jsonl",
    ".ndjson",
)
ZIP, COMPOUND, PARQUET = b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"PAR1"
MAX_TEXT = 200
Opened = tuple[
    duckdb.DuckDBPyConnection, Path
]  # the database, and a directory for what is thrown away


@dataclass(frozen=True, slots=True)
class Table:
    """A file that was opened, as the table *name* of *connection*; *row* is SQL for the
    number of a row, from 1.
    """

    connection: duckdb.DuckDBPyConnection
    name: str
    file: Path
    format: str
    columns: tuple[Column, ...]
    row_count: int
    notes: tuple[str, ...]

    @property
    def row(self) -> str:
        """Return SQL for the number of a row: the first one below the header is 1."""
        return "file_row_number + 1" if self.format == "parquet" else "rowid + 1"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of *query*."""
        return self.connection.execute(query).fetchall()

    def column(self, name: str, path: str) -> Column:
        """Return the column that *name* means. *path* is a JSON Pointer."""
        chosen = named(
            name,
            [column.name for column in self.columns],
            f"{shown_path(self.file)!r} has no column",
            path,
        )
        return next(column for column in self.columns if column.name == chosen)


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is opened as the table *name*, as *arguments* say. *path* is the JSON
    Pointer of these.
    """

    name: str
    file: Path
    format: str
    arguments: dict[str, Any]
    path: str


@contextmanager
def database() -> Iterator[Opened]:
    """Give a database in memory and a directory for temporary files, which stay out of
    the workspace.
    """
    with (
        tempfile.TemporaryDirectory(prefix="data-analysis-") as temporary,
        duckdb.connect(":memory:") as connection,
    ):
        connection.execute(
            f"SET temp_directory = '{temporary}'; SET memory_limit = '2GB'; SET "
            "TimeZone = 'UTC'"
        )
        connection.execute(
            "SET autoinstall_known_extensions = false; SET autoload_known_extensions "
            "= false"
        )
        try:
            yield connection, Path(temporary)
        except duckdb.OutOfMemoryException as error:
            action = "Send fewer columns, or a smaller extract of the file."
            message = "the data does not fit in memory"
            raise Failure(
                "TOOL_EXECUTION_FAILED", message, action, recoverable=True
            ) from error
        except duckdb.Error as error:
            message = f"this cannot be computed: {' '.join(str(error).split())[:200]}"
            raise Failure(
                "TOOL_EXECUTION_FAILED", message, "Ask for less, or send another file."
            ) from error


def open_table(
    opened: Opened, arguments: dict[str, Any], name: str = "data", path: str = ""
) -> Table:
    """Read the file that *arguments* name as the table *name*. *path* is the JSON
    Pointer of *arguments*.

    Raises: Failure, where the file is missing, empty, of another format, or not one
    table.
    """
    connection, temporary = opened
    file = input_file(arguments["path"], f"{path}/path", SUFFIXES)
    form = _format(file, f"{path}/path")
    source = Source(name, file, form, arguments, path)
    (temporary / name).mkdir()
    try:
        if form == "parquet":
            columns, notes = _open_parquet(connection, source), []
        elif form == "json":
            columns, notes = _open_json(opened, source)
        else:
            columns, notes = _open_text(opened, source)
        (count,) = connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0]
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        first = re.sub(
            r"\s+",
            " ",
            str(error).split("\n\n")[0].replace(str(file), shown_path(file)),
        )[:240]
        message = f"{shown_path(file)!r} cannot be read as {form}: {first}"
        action = "Check that the file is one table, or send another file."
        raise Failure("INVALID_INPUT", message, action, path=f"{path}/path") from error
    return Table(connection, name, file, form, tuple(columns), count, tuple(notes))


def _format(file: Path, path: str) -> str:
    """Return the format, by the first bytes: names lie."""
    with file.open("rb") as opened:
        head = opened.read(64)
    if not head:
        raise Failure(
            "INVALID_INPUT",
            f"{shown_path(file)!r} is empty (0 bytes)",
            "Send another file.",
            path=path,
        )
    if head.startswith(PARQUET):
        return "parquet"
    if head.startswith((ZIP, COMPOUND)):
        return "workbook"
    if head.startswith((b"%PDF", b"\x89PNG", b"\xff\xd8")) or file.suffix.lower() in (
        ".parquet",
        ".pq",
    ):
        message = f"{shown_path(file)!r} is not a data file"
        raise Failure(
            "INVALID_INPUT",
            message,
            "Send a CSV, XLSX, Parquet or JSON file.",
            path=path,
        )
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "json" if text.startswith((b"{", b"[{", b"[\n", b"[ ", b"[\r")) else "csv"


def _open_parquet(
    connection: duckdb.DuckDBPyConnection, source: Source
) -> list[Column]:
    """Leave the file on disk: it can be larger than memory."""
    name = source.name
    options = "hive_partitioning = false, file_row_number = true"
    connection.execute(
        f"CREATE VIEW {name} AS SELECT * FROM read_parquet("
        f"{quoted_path(source.file)}, {options})"
    )
    described = connection.execute(f"DESCRIBE {name}").fetchall()
    return [
        Column(row[0], str(row[1])) for row in described if row[0] != "file_row_number"
    ]


def _open_json(opened: Opened, source: Source) -> tuple[list[Column], list[str]]:
    """Read one array of objects, objects line by line, or an object that holds one
    array of objects.
    """
    connection, temporary = opened[0], opened[1] / source.name
    name, file = source.name, source.file
    notes: list[str] = []
    read = (
        "CREATE OR REPLACE TABLE raw_{} AS SELECT * FROM read_json({}, sample_size = "
        "-1, hive_partitioning = false)"
    )
    try:
        connection.execute(read.format(name, quoted_path(file)))
    except duckdb.InvalidInputException:
        good = _good_lines(file, temporary / "lines.jsonl", notes)
        connection.execute(read.format(name, quoted_path(good)))
    described = connection.execute(f"DESCRIBE raw_{name}").fetchall()
    lists = [
        row[0]
        for row in described
        if str(row[1]).startswith("STRUCT") and str(row[1]).endswith("[]")
    ]
    (count,) = connection.execute(f"SELECT count(*) FROM raw_{name}").fetchall()[0]
    if count == 1 and len(lists) == 1:
        inner = (
            f"SELECT unnest({quoted_name(lists[0])}, max_depth := 2) FROM raw_{name}"
        )
        connection.execute(f"CREATE OR REPLACE TABLE raw_{name} AS {inner}")
        described = connection.execute(f"DESCRIBE raw_{name}").fetchall()
        notes.append(f"The rows are those of {lists[0]!r}.")
    texts = {row[0]: row[0] for row in described if row[1] == "VARCHAR"}
    typed = typed_columns(
        connection, f"raw_{name}", texts, Conventions.of(source.arguments, ",")
    )
    columns = [
        typed.get(row[0], (Column(row[0], str(row[1])), quoted_name(row[0])))
        for row in described
    ]
    _create(connection, name, columns)
    return [column for column, _ in columns], notes


def _good_lines(file: Path, copy: Path, notes: list[str]) -> Path:
    """Write the lines that are JSON objects to *copy*. Where most are not, the file is
    not JSON lines: return it.
    """
    bad, read = [], 0
    with (
        file.open(encoding="utf-8-sig", errors="replace") as lines,
        copy.open("w", encoding="utf-8") as to,
    ):
        for number, line in enumerate(lines, 1):
            try:
                if line.strip() and isinstance(json.loads(line), dict):
                    to.write(line if line.endswith("\n") else line + "\n")
                    read += 1
            except ValueError:
                bad.append(f"line {number}: {line.strip()[:60]!r}")
    if len(bad) >= read:
        return file
    notes.append(
        f"{len(bad)} of {read + len(bad)} lines are not JSON and are left out: "
        f"{bad[0]}."
    )
    return copy


def _open_text(opened: Opened, source: Source) -> tuple[list[Column], list[str]]:
    """Read delimited text, or one worksheet as such."""
    connection, temporary = opened[0], opened[1] / source.name
    name, file, arguments = source.name, source.file, source.arguments
    notes: list[str] = []
    if source.format == "workbook":
        sheet = arguments.get("sheet")
        text, notes = sheet_as_text(file, sheet, temporary, source.path)
    else:
        text = as_utf8(file, arguments.get("encoding"), temporary, source.path)
    layout = load_text(
        connection,
        f"raw_{name}",
        text,
        has_header=arguments.get("has_header"),
        shown=shown_path(file),
        path=source.path,
    )
    names = {f"c{index}": column for index, column in enumerate(layout.names)}
    filled = [f"count({cleaned(raw)})" for raw in names]
    counts = connection.execute(
        f"SELECT {', '.join(filled)} FROM raw_{name}"
    ).fetchall()[0]
    for (raw, column), count in zip(list(names.items()), counts, strict=True):
        if not count and re.fullmatch(r"column\d+", column) and len(names) > 1:
            del names[raw]  # a column without a name or a value is a delimiter too many
    columns = [
        *typed_columns(
            connection,
            f"raw_{name}",
            names,
            Conventions.of(arguments, layout.delimiter),
        ).values()
    ]
    empty = " AND ".join(f"{cleaned(raw)} IS NULL" for raw in names)
    _create(connection, name, columns, f"NOT ({empty})")
    notes += layout.notes
    _note_total(connection, name, [column for column, _ in columns], notes)
    return [column for column, _ in columns], notes


def _note_total(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    columns: list[Column],
    notes: list[str],
) -> None:
    """Say so where the last row is the sum of those above it: a total, which would
    count everything twice.
    """
    for column in columns:
        if column.kind == "numeric":
            parts = (
                f"count(*), max({column.sql}) FILTER (rowid = m), sum({column.sql}) "
                "FILTER (rowid < m)"
            )
            query = f"SELECT {parts} FROM {name}, (SELECT max(rowid) AS m FROM {name})"
            count, last, above = connection.execute(query).fetchall()[0]
            if (
                count > 3
                and last
                and above is not None
                and abs(last - above) < 1e-9 * abs(last)
            ):
                notes.append(
                    f"The last row looks like a total of {column.name!r}; leave it "
                    "out with where."
                )


def _create(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    columns: list[tuple[Column, str]],
    where: str = "true",
) -> None:
    selected = ", ".join(f"{sql} AS {column.sql}" for column, sql in columns)
    connection.execute(
        f"CREATE TABLE {name} AS SELECT {selected} FROM raw_{name} WHERE {where}"
    )
    connection.execute(f"DROP TABLE raw_{name}")


def plain(value: Any) -> Any:
    """Return *value* as JSON has it: no NaN, no infinity, no text beyond 200
    characters, no noise of binary fractions.

    >>> plain(Decimal("1.50")), plain(0.1 + 0.2), plain(3.0), plain(float("nan"))
    (1.5, 0.3, 3, 'nan')
    >>> plain("x" * 300)[-2:]
    'x…'
    """
    if isinstance(value, Decimal):
        # A float has 53 bits: a larger whole number would be rounded.
        if value == value.to_integral_value() and abs(value) > 2**53:
            value = int(value)
        else:
            value = float(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not isfinite(value):
            return str(value)
        if value.is_integer() and abs(value) < 2**53:
            return int(value)
        return float(f"{value:.15g}")
    text = str(value)
    if len(text) > MAX_TEXT:
        return text[: MAX_TEXT - 1] + "…"
    return text
