"""Make much data from little: more rows, columns, groups and characters than a script
shows, for the places at which it cuts, counts or samples.

The columns and members keep their names, so that a call that names them stays valid.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

__all__ = ["crowded_document", "crowded_lines", "crowded_rows", "crowded_table"]

_NUMBER_OF_ROWS = 120
_NUMBER_OF_GROUPS = 30
_NUMBER_OF_COLUMNS = 25
_REPEATED = 20
_EVERY_LONG = 10
_EVERY_ODD = 24
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,9})?")
_END_OF_TEXT = re.compile(r"(?m)^(?!```)(.*\w)([.:]?)$")
_LONG_TEXT = " ".join(f"word{number}" for number in range(36))


def crowded_table(data: bytes) -> bytes | None:
    """Return a table with the columns of the CSV file *data* and more, and with more
    rows; None if it has no rows.

    >>> crowded_table(b"name,day,sum\\nAnn,2024-11-20,3\\n").splitlines()[1][:26]
    b'Ann,2024-11-20,3,0,2024-01'
    """
    text = data.decode(errors="replace")
    head = text.partition("\n")[0]
    delimiter = max(",;\t|", key=head.count)
    rows = [*csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)]
    crowded = [*crowded_rows(rows)]
    if not crowded:
        return None
    written = io.StringIO()
    columns = [name for name in crowded[0] if name is not None]
    writer = csv.DictWriter(
        written,
        columns,
        delimiter=delimiter,
        extrasaction="ignore",
        lineterminator="\n",
    )
    writer.writeheader()
    writer.writerows(crowded)
    return written.getvalue().encode()


def crowded_document(data: bytes) -> bytes | None:
    """Return the JSON document *data* with more items in its list, or in each list of
    its members; None if it has no such list.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        crowded: Any = {key: _crowded_list(item) for key, item in value.items()}
    else:
        crowded = _crowded_list(value)
    if crowded == value:
        return None
    return json.dumps(crowded, indent=1, ensure_ascii=False).encode()


def crowded_lines(text: str) -> str:
    """Return *text* several times, with another number at the end of each line.

    >>> crowded_lines("# Title\\n\\n- one.\\n")[:36]
    '# Title\\n\\n- one.\\n# Title 1\\n\\n- one 1.\\n'
    """
    found = [text]
    for number in range(1, _REPEATED):
        found.append(_END_OF_TEXT.sub(rf"\1 {number}\2", text))
    return "".join(found)


def crowded_rows(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield many rows like *rows*, with further columns: numbers and days among which
    are a few texts, long texts, few values, and many more columns.
    """
    if not rows:
        return
    for number in range(_NUMBER_OF_ROWS):
        row = rows[number % len(rows)]
        yield {**_varied_object(row, number), **_further_columns(number)}


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


def _crowded_list(value: Any) -> Any:
    """Return *value* with many more items if it is a list with items."""
    if not isinstance(value, list) or not value:
        return value
    if all(isinstance(item, dict) for item in value):
        return [*crowded_rows(value)]
    return [
        _varied(value[number % len(value)], number) for number in range(_NUMBER_OF_ROWS)
    ]


def _varied_object(value: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return *value* as the row *number* has it; its first text differs in each row,
    its other texts form groups.
    """
    found = {}
    has_text = False
    for key, item in value.items():
        is_text = isinstance(item, str) and not _is_number_or_day(item)
        is_of_group = is_text and has_text
        found[key] = _varied(
            item, number % _NUMBER_OF_GROUPS if is_of_group else number
        )
        has_text = has_text or is_text
    return found


def _varied(value: Any, number: int) -> Any:
    """Return *value* as the row *number* has it: a number or a day is a greater one."""
    if isinstance(value, dict):
        return _varied_object(value, number)
    if isinstance(value, bool):
        return value == (number % 2 == 0)
    if isinstance(value, int | float):
        return value + number
    if not isinstance(value, str) or not value:
        return value
    if _DAY.fullmatch(value):
        return _later(value, number)
    if _NUMBER.fullmatch(value):
        whole, dot, digits = value.partition(".")
        return f"{int(whole) + number}{dot}{digits}"
    return _numbered(value, number)


def _is_number_or_day(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _DAY.fullmatch(text))


def _numbered(text: str, number: int) -> str:
    return f"{text} {number}" if number else text


def _later(day: str, days: int) -> str:
    try:
        return f"{date.fromisoformat(day) + timedelta(days=days)}"
    except (ValueError, OverflowError):
        return day
