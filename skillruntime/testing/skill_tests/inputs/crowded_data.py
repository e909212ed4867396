"""Enlarge a small file: more rows, columns, groups and characters than a script shows,
for the places at which it cuts, counts or samples.

The columns and members keep their names, so that a call that names them stays valid.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

__all__ = ["crowded_document", "crowded_lines", "crowded_rows", "crowded_table"]

_NUMBER_OF_ROWS = 120
_NUMBER_OF_GROUPS = 30
_NUMBER_OF_COLUMNS = 25
_REPEATED = 20
_SNIFFED = 4_000
_EVERY_LONG = 10
_EVERY_ODD = 24
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,9})?")
_END_OF_TEXT = re.compile(r"(?m)^(?!```)(.*\w)([.:]?)$")
_LONG_TEXT = " ".join(f"word{number}" for number in range(36))


def crowded_table(data: bytes) -> bytes | None:
    """Return a table with the columns of the CSV file *data* and more, and with more
    rows; None if it has no rows, or two columns of one name.

    >>> crowded_table(b"name,day,sum\\nAnn,2024-11-20,3\\n").splitlines()[1][:26]
    b'Ann,2024-11-20,3,0,2024-01'
    """
    text = data.decode(errors="replace").lstrip("\ufeff")
    try:
        dialect = csv.Sniffer().sniff(text[:_SNIFFED], delimiters=",;\t|")
        reader = csv.DictReader(io.StringIO(text, newline=""), dialect=dialect)
        columns = [*(reader.fieldnames or ())]
        rows = [*reader]
    except csv.Error:
        return None
    if not rows or len({*columns}) < len(columns):
        return None
    crowded = [*crowded_rows(rows)]
    columns += [name for name in crowded[0] if name not in columns]
    written = io.StringIO()
    writer = csv.DictWriter(
        written,
        columns,
        delimiter=dialect.delimiter,
        extrasaction="ignore",
        lineterminator="\n",
    )
    writer.writeheader()
    writer.writerows(crowded)
    return written.getvalue().encode()


def crowded_document(data: bytes) -> bytes | None:
    """Return the JSON document *data* with more items in its list, or in the first list
    of its members; None if it has no such list.
    """
    try:
        value = json.loads(data)
        crowded = _crowded_value(value)
        if crowded == value:
            return None
        # Without indentation, which multiplies in deep documents.
        return json.dumps(crowded, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, OverflowError, RecursionError):
        return None


def crowded_lines(text: str) -> str:
    """Return *text* several times, with another number at the end of each line that
    ends with a word.

    >>> crowded_lines("# Title\\n\\n- one.\\n")[:36]
    '# Title\\n\\n- one.\\n# Title 1\\n\\n- one 1.\\n'
    """
    lines = "".join(f"{line}\n" for line in text.splitlines())
    found = [lines]
    for number in range(1, _REPEATED):
        found.append(_END_OF_TEXT.sub(rf"\1 {number}\2", lines))
    return "".join(found)


def crowded_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield many rows like *rows*, with further columns: numbers and days among which
    are a few texts, long texts, a column with few values, and many columns of numbers.
    """
    if not rows:
        return
    for number in range(_NUMBER_OF_ROWS):
        row = _varied_object(rows[number % len(rows)], number)
        for name, value in _further_columns(number).items():
            row.setdefault(name, value)
        yield row


def _further_columns(number: int) -> dict[str, Any]:
    is_odd = number % _EVERY_ODD == _EVERY_ODD - 1
    odd = f"{number} or so: {_LONG_TEXT}"
    long_text = _LONG_TEXT[number:] if number % _EVERY_LONG == 0 else f"short {number}"
    columns = {
        "price": odd if is_odd else number * number,
        "started": odd if is_odd else _later("2024-01-01", number),
        "remark": long_text,
        "rare": number if number % _EVERY_LONG == 0 else "",
    }
    for place in range(_NUMBER_OF_COLUMNS):
        columns[f"column {place}"] = number * place
    return columns


def _crowded_value(value: Any) -> Any:
    """Return *value* with many more items in its list, or in its first member that is
    one.
    """
    if isinstance(value, list) and value:
        if all(isinstance(item, dict) for item in value):
            return [*crowded_rows(value)]
        numbers = range(_NUMBER_OF_ROWS)
        return [_varied(value[number % len(value)], number) for number in numbers]
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, list) and item:
                return {**value, key: _crowded_value(item)}
    return value


def _varied_object(value: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return *value* for row *number*; its first text is another one in each row, its
    other texts repeat after some rows.
    """
    found = {}
    has_text = False
    for key, item in value.items():
        own_number = number
        if isinstance(item, str) and not _is_number_or_day(item):
            if has_text:
                own_number = number % _NUMBER_OF_GROUPS
            has_text = True
        found[key] = _varied(item, own_number)
    return found


def _varied(value: Any, number: int) -> Any:
    """Return *value* for row *number*, which is added to a number, to a day as many
    days, and to a text as a word; a boolean changes in every second row.
    """
    if isinstance(value, dict):
        return _varied_object(value, number)
    if isinstance(value, bool):
        return not value if number % 2 else value
    if isinstance(value, int | float):
        return value + number
    if not isinstance(value, str) or not value or not number:
        return value
    if _DAY.fullmatch(value):
        return _later(value, number)
    if _NUMBER.fullmatch(value):
        return f"{Decimal(value) + number}"
    return f"{value} {number}"


def _is_number_or_day(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _DAY.fullmatch(text))


def _later(day: str, days: int) -> str:
    try:
        return f"{date.fromisoformat(day) + timedelta(days=days)}"
    except (ValueError, OverflowError):
        return day
