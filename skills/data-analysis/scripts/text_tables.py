"""Delimited text and worksheets as a table of texts: encoding, delimiter, header, and
the rows that do not fit.

Not a tool: tables.py imports it. What is guessed is either certain from the form of the
file, or a note says it.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from script_call import Failure, shown_path

DELIMITERS = ",;\t|"
CHUNK = 1 << 20
SAMPLE = 1 << 16
GUESSES = (
    "cp1252",
    "gb18030",
    "shift_jis",
)  # what spreadsheets of Western, Chinese and Japanese systems write
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?")
NUMBER = re.compile(r"[€$£¥]?\s?[+-]?[\d.,']*\d\s?[%€$£¥]?")
EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
YEAR = re.compile(r"(19|20)\d\d")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a text is a table: its delimiter, the lines before its first row of values,
    and its columns' names.
    """

    delimiter: str
    skipped: int
    names: list[str]
    notes: list[str]


def load_text(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    text: Path,
    *,
    has_header: Any,
    shown: str,
    path: str,
) -> Layout:
    """Make *table* of the UTF-8 file *text*: columns c0, c1, ... of texts. Rows of
    another length are left out. Messages name the file *shown*; *path* is the JSON
    Pointer of the arguments that named it.

    Raises: Failure, where the file is not one table.
    """
    layout = _layout(text, has_header)
    columns = ", ".join(f"c{index}: 'VARCHAR'" for index in range(len(layout.names)))
    options = {
        "columns": f"{{{columns}}}",
        "delim": f"'{layout.delimiter}'",
        "skip": str(layout.skipped),
        "rejects_table": f"'rejected_{table}'",
        "rejects_scan": f"'scanned_{table}'",
    }
    fixed = (
        "auto_detect = false, header = false, quote = '\"', escape = '\"', "
        "store_rejects = true"
    )
    given = ", ".join(f"{name} = {value}" for name, value in options.items())
    connection.execute(
        f"CREATE TABLE {table} AS SELECT * FROM read_csv({quoted_path(text)}, "
        f"{fixed}, {given})"
    )
    rejected = connection.execute(
        "SELECT min(line), any_value(csv_line ORDER BY line), any_value(error_message "
        f"ORDER BY line) FROM rejected_{table} GROUP BY line_byte_position ORDER BY 1"
    ).fetchall()
    if rejected:
        (read,) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0]
        layout.notes.append(_rejected(rejected, read, shown, layout.delimiter, path))
    return layout


def named(name: str, names: list[str], lacks: str, path: str) -> str:
    """Return the one of *names* that *name* means: exactly, or in other case or
    spacing. A miss names the nearest.
    """
    folded = [known for known in names if _folded(known) == _folded(name)]
    if name in names or len(folded) == 1:
        return name if name in names else folded[0]
    import difflib

    close = difflib.get_close_matches(name, names, 2, 0.6)
    guess = f"Did you mean {' or '.join(map(repr, close))}? " if close else ""
    raise Failure(
        "INVALID_INPUT",
        f"{lacks} {name!r}",
        f"{guess}It has: {', '.join(names[:40])}.",
        path=path,
    )


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def quoted_path(file: Path) -> str:
    """Return the path for SQL: a name is a name, not a pattern."""
    return "'" + re.sub(r"([*?\[])", r"[\1]", str(file)).replace("'", "''") + "'"


def _rejected(
    rejected: list[tuple[Any, ...]], read: int, shown: str, delimiter: str, path: str
) -> str:
    """Return the note about the rows that do not fit. Raises: Failure, where these are
    too many.
    """
    line, text, message = rejected[0]
    said = (
        str(message)
        .replace("Expected Number of Columns:", "expected values:")
        .replace("Found:", "found:")
    )
    first = (
        f"line {line}: {str(text).strip()[:80]!r} ({said.strip()[:80]}, delimiter "
        f"{delimiter!r})"
    )
    bad = len(rejected)
    unclosed = (
        str(text).strip().count("\n") > 1
    )  # a quote that never closes takes the rest of the file with it
    if unclosed or bad > read:
        action = (
            "Correct the file: quote values that hold the delimiter, and close each "
            "quote."
        )
        raise Failure(
            "INVALID_INPUT",
            f"{shown!r} is not one table: {first}",
            action,
            path=f"{path}/path",
        )
    return (
        f"{bad} of {read + bad} rows could not be read and "
        f"{'is' if bad == 1 else 'are'} left out: {first}."
    )


def as_utf8(file: Path, encoding: str | None, temporary: Path, path: str) -> Path:
    """Return *file*, or a copy that is not compressed and is UTF-8. Other encodings
    must be named: none is certain.
    """
    shown = shown_path(file)
    packed = file.suffix.lower() == ".gz"
    try:
        if next(_chunks(file), b"").startswith(
            (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        ):
            encoding = "utf-16"
        elif _is_utf8(file):
            encoding = "utf-8"
        elif encoding is None:
            tries = "; ".join(
                f"{guess} gives {text!r}" for guess, text in _previews(file)
            )
            action = f"Send encoding, the one that reads well: {tries}."
            raise Failure(
                "INVALID_INPUT",
                f"{shown!r} is not UTF-8 text",
                action,
                path="/encoding",
            )
        if encoding == "utf-8" and not packed:
            return file
        copy = temporary / "text.csv"
        decoder = codecs.getincrementaldecoder(encoding)()
        with copy.open("w", encoding="utf-8", newline="") as to:
            to.writelines(decoder.decode(chunk) for chunk in _chunks(file))
            to.write(decoder.decode(b"", final=True))
    except (UnicodeError, LookupError) as error:
        action = f"Send another encoding, such as {', '.join(GUESSES)}."
        raise Failure(
            "INVALID_INPUT",
            f"{shown!r} is not {encoding} text",
            action,
            path="/encoding",
        ) from error
    except (OSError, EOFError) as error:
        message = f"{shown!r} cannot be read: {error}"
        raise Failure(
            "INVALID_INPUT", message, "Send another file.", path=f"{path}/path"
        ) from error
    return copy


def _chunks(file: Path) -> Iterator[bytes]:
    with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as opened:
        while chunk := opened.read(CHUNK):
            yield chunk


def _is_utf8(file: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in _chunks(file):
            if b"\0" in chunk:
                return False
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _previews(file: Path) -> list[tuple[str, str]]:
    """Return the first line with other letters than ASCII as each usual encoding reads
    it.
    """
    lines = (line for chunk in _chunks(file) for line in chunk.splitlines())
    line = next((line for line in lines if not line.isascii()), b"")
    place = next((index for index, byte in enumerate(line) if byte > 127), 0)
    part = line[max(0, place - 20) :][:60]
    return [(guess, part.decode(guess, "ignore")[:40]) for guess in GUESSES]


def sheet_as_text(
    file: Path, sheet: str | None, temporary: Path, path: str
) -> tuple[Path, list[str]]:
    """Write one worksheet as CSV and return it with notes. Dates become ISO text, whole
    numbers have no point.
    """
    from python_calamine import CalamineError, load_workbook

    shown = shown_path(file)
    try:
        book = load_workbook(str(file))
        names = book.sheet_names
        chosen = (
            named(sheet, names, f"{shown!r} has no sheet", f"{path}/sheet")
            if sheet
            else names[0]
        )
        rows = book.get_sheet_by_name(chosen).to_python(skip_empty_area=False)
    except (CalamineError, IndexError) as error:
        message = f"{shown!r} cannot be read as a workbook: {str(error)[:100]}"
        action = "Send a .xlsx, .xls or .ods file without password."
        raise Failure("INVALID_INPUT", message, action, path=f"{path}/path") from error
    copy = temporary / "sheet.csv"
    with copy.open("w", encoding="utf-8", newline="") as to:
        csv.writer(to).writerows([_cell(value) for value in row] for row in rows)
    several = (
        f"Sheet {chosen!r} is read; the file has {', '.join(map(repr, names[:20]))} "
        "(parameter sheet)."
    )
    return copy, [several] if len(names) > 1 and not sheet else []


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return (
            str(int(value))
            if value.is_integer() and abs(value) < 2**53
            else repr(value)
        )
    return (
        value.strip()
        if isinstance(value, str)
        else str(value).removesuffix(" 00:00:00")
    )


def _layout(text: Path, has_header: Any) -> Layout:
    with text.open(encoding="utf-8-sig", newline="") as opened:
        sample = opened.read(SAMPLE)
        if opened.read(1):  # the last line of the sample is cut
            sample = sample[: max(sample.rfind("\n"), sample.rfind("\r")) + 1] or sample
    found = [_rows(sample, delimiter) for delimiter in DELIMITERS]
    best = max(range(len(DELIMITERS)), key=lambda index: _agreement(found[index]))
    rows, (_, width) = found[best], _agreement(found[best])
    start = next(
        (index for index, (_, row) in enumerate(rows) if _begins(row, width)), 0
    )
    if not rows:
        return Layout(",", 0, ["column1"], ["The file has no rows."])
    before = rows[start - 1][0] if start else 0
    notes = [f"{before} line(s) above the table are skipped."] if before else []
    end, first = rows[start]
    rest = [row for _, row in rows[start + 1 :] if len(row) == len(first)]
    is_data = _looks_like_data(first, rest) if has_header is None else not has_header
    if not is_data:
        if has_header is None:
            notes += _notes_on_header(first, rest)
        return Layout(DELIMITERS[best], end, _names(first), notes)
    names = [f"column{index}" for index in range(1, len(first) + 1)]
    if has_header is None:
        notes.append(
            f"The first row looks like data ({', '.join(first)[:60]}), so the columns "
            f"are named {names[0]} to {names[-1]}; send has_header: true if it has "
            "their names."
        )
    return Layout(DELIMITERS[best], before, names, notes)


def _rows(sample: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Return the rows that hold anything, each with the number of its last line."""
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
    rows: list[tuple[int, list[str]]] = []
    try:
        rows.extend((reader.line_num, [cell.strip() for cell in row]) for row in reader)
    except csv.Error:  # a value beyond the module's limit
        pass
    return [(line, row) for line, row in rows if any(row)]


def _agreement(rows: list[tuple[int, list[str]]]) -> tuple[int, int]:
    """Return how many rows have the commonest width above one, and that width."""
    widths = Counter(len(row) for _, row in rows if len(row) > 1)
    return max(((count, width) for width, count in widths.items()), default=(0, 1))


def _begins(row: list[str], width: int) -> bool:
    """Tell the first row of a table from a title above it, which fills one cell."""
    return width == 1 or sum(map(bool, row)) > 1 or len(row) == width == 2


def _looks_like_data(first: list[str], rest: list[list[str]]) -> bool:
    """Say whether *first* has values where a header has names: of one form with all
    below, in each column of these.
    """
    typed = []
    for index, cell in enumerate(first):
        forms = {_form(row[index]) for row in rest if row[index]}
        if cell and len(forms) == 1 and "" not in forms:
            typed.append(cell)
            if _form(cell) not in forms:
                return False
    if all(
        YEAR.fullmatch(cell) for cell in typed
    ):  # a header of years, or no column of numbers at all
        return False
    if len(typed) < 2 or not all(cell.isdecimal() for cell in typed):
        return True
    numbers = [int(cell) for cell in typed]  # a header of months from 1 to 12
    return numbers != list(range(numbers[0], numbers[-1] + 1))


def _notes_on_header(first: list[str], rest: list[list[str]]) -> list[str]:
    """Say so where a cell of the first row occurs in its column below, as values do."""
    for index, cell in enumerate(first):
        if cell and any(row[index] == cell for row in rest):
            return [
                f"{cell!r} of the first row is also a value below; send has_header: "
                "false if it is data."
            ]
    return []


def _form(value: str) -> str:
    forms = {"date": DATE, "number": NUMBER, "e-mail": EMAIL}
    return next(
        (name for name, pattern in forms.items() if pattern.fullmatch(value)), ""
    )


def _names(cells: list[str]) -> list[str]:
    names: list[str] = []
    for index, cell in enumerate(cells, 1):
        name = " ".join(cell.split()) or f"column{index}"
        while name.casefold() in {known.casefold() for known in names}:
            name += "_2"
        names.append(name)
    return names
