"""What the texts of a table are: numbers, dates, booleans. A column keeps its texts
unless every one converts.

Not a tool: tables.py imports it. Where two readings are possible (01/02/2025; 1,234)
and the file does not decide, a date is not read at all, and a number is read as the
note of its column says; a parameter decides either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import duckdb

NUMERIC = re.compile(
    r"^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL|FLOAT|DOUBLE|REAL|NUMERIC|BIGNUM)\b"
)
TEMPORAL = re.compile(r"^(DATE|TIMESTAMP)")
TEXT = re.compile(r"^(VARCHAR|ENUM|UUID|TIME)\b")

SAMPLE = 2000
# what stands for a missing value among numbers, dates, true and false
GAP = r"(?i)n/?a|n\.a\.|nan|none|null|[-–—?]+"
INTEGER = r"[+-]?(0|[1-9]\d{0,17})"  # 007 stays a text: it is an identifier
ISO_DATE = r"\d{4}[-/]\d{1,2}[-/]\d{1,2}([ T]\d{1,2}:\d\d.*)?"
BEFORE, AFTER = (
    r"(?:[€$£¥₹]|[A-Z]{3} )?\s?[+-]?",
    r"\s?(?:[€$£¥₹%]|[A-Za-z]{1,4})?",
)  # a unit or currency
GROUPS = r"(?:[1-9]\d{{0,2}}(?:[{0} '\x{{a0}}\x{{202f}}]\d{{3}})+|0|[1-9]\d*)"
POINT = (
    BEFORE
    + r"(?:"
    + GROUPS.format(",")
    + r"(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
    + AFTER
)
COMMA = BEFORE + GROUPS.format(".") + r"(?:,\d+)?" + AFTER
NO_UNIT = r"[\d.][eE][+-]?\d+|[^€$£¥₹%A-Za-z]"
PARTS = r"(\d{1,2})[./-](\d{1,2})[./-](?:\d{4}|\d{2})(?:[ T]\d{1,2}:\d\d(?::\d\d)?)?"
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S")
DAY_FIRST = [
    f"%d{mark}%m{mark}%{year}{time}"
    for mark in "/.-"
    for year in "yY"
    for time in TIMES
]
MONTH_FIRST = [
    f"%m{mark}%d{mark}%{year}{time}"
    for mark in "/.-"
    for year in "yY"
    for time in TIMES
]
NAMED = [
    "%Y-%m",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%b %Y",
    "%B %Y",
]  # sure in any order


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, DuckDB's type for it, and what can be done with it.

    *number* and *moment* are SQL for its values as numbers and dates, where a text
    column mostly holds these; *undecided* is a date that can be read in two ways,
    *mixed* says which numbers are not in one unit; *note* is what a reader of its
    figures should know.
    """

    name: str
    type: str
    number: str = ""
    moment: str = ""
    undecided: str = ""
    note: str = ""
    mixed: str = ""

    @property
    def kind(self) -> str:
        """Return "numeric", "boolean", "temporal", "text" or "other"."""
        if self.type == "BOOLEAN":
            return "boolean"
        if self.type.endswith("]"):  # a list of anything
            return "other"
        kinds = (("numeric", NUMERIC), ("temporal", TEMPORAL), ("text", TEXT))
        return next(
            (kind for kind, pattern in kinds if pattern.match(self.type)), "other"
        )

    @property
    def sql(self) -> str:
        """Return the name, quoted for SQL."""
        return quoted_name(self.name)

    @property
    def shown_sql(self) -> str:
        """Return an expression whose value is plain JSON: dates, lists and the like as
        text.
        """
        return (
            self.sql
            if self.kind in ("numeric", "boolean")
            else f"CAST({self.sql} AS VARCHAR)"
        )


def quoted_name(name: str) -> str:
    """Return *name* as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Return *text* as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Conventions:
    """How dates and numbers are written: what the caller says, else what the file
    shows.
    """

    date_format: str = "auto"
    decimal_comma: bool | None = None
    delimiter: str = ","

    @classmethod
    def of(cls, arguments: dict[str, Any], delimiter: str) -> Conventions:
        """Return what *arguments* say."""
        return cls(
            arguments.get("date_format", "auto"),
            arguments.get("decimal_comma"),
            delimiter,
        )


def typed_columns(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    names: dict[str, str],
    conventions: Conventions,
) -> dict[str, tuple[Column, str]]:
    """Return, for each text column of *table* (its name there, and the name to give),
    the column and SQL for it.
    """
    counts = {raw: _counts(connection, table, raw, whole=False) for raw in names}
    is_longer = _row(connection, f"SELECT count(*) > {SAMPLE} AS longer FROM {table}")[
        "longer"
    ]
    for raw, count in (
        counts.items() if is_longer else ()
    ):  # what begins as prose is text: the others are read whole
        forms = ("integers", "iso", "booleans", "point", "comma", "parts", "named")
        if (
            count["filled"] < SAMPLE / 10
            or sum(count.get(form, 0) for form in forms) * 2 >= count["filled"]
        ):
            counts[raw] = _counts(connection, table, raw, whole=True)
    if conventions.decimal_comma is None:
        points = sum(count["point"] - count["both"] for count in counts.values())
        commas = sum(count["comma"] - count["both"] for count in counts.values())
        decided = None if bool(points) == bool(commas) else commas > points
    else:
        decided = conventions.decimal_comma
    return {
        raw: _typed(raw, name, counts[raw], decided, conventions)
        for raw, name in names.items()
    }


def cleaned(raw: str) -> str:
    """Return SQL for a text without the blanks around it; a blank one is missing."""
    return (
        f"nullif(trim({quoted_name(raw)}, ' ' || chr(9) || chr(10) || chr(13) || "
        "chr(160)), '')"
    )


def _counts(
    connection: duckdb.DuckDBPyConnection, table: str, raw: str, *, whole: bool
) -> dict[str, Any]:
    """Count the forms of a column's values: over its different values, weighted, since
    most columns repeat.
    """
    part = table if whole else f"(FROM {table} LIMIT {SAMPLE})"
    texts = f"(SELECT {cleaned(raw)} AS t, count(*) AS n FROM {part} GROUP BY t)"
    values = (
        f"(SELECT t, n, CASE WHEN NOT regexp_full_match(t, '{GAP}') THEN t END AS v "
        f"FROM {texts} WHERE t IS NOT NULL)"
    )
    first = (
        "SELECT coalesce(sum(n) FILTER (v IS NULL), 0)::BIGINT AS gaps, min(t) FILTER "
        "(v IS NULL) AS gap, coalesce(sum(n) FILTER (v IS NOT NULL), 0)::BIGINT AS "
        f"filled, coalesce(sum(n) FILTER (regexp_full_match(v, '{INTEGER}')), "
        "0)::BIGINT AS integers, coalesce(sum(n) FILTER (regexp_full_match(v, "
        f"'{ISO_DATE}') AND TRY_CAST(v AS TIMESTAMP) IS NOT NULL), 0)::BIGINT AS iso, "
        "coalesce(sum(n) FILTER (lower(v) IN ('true', 'false')), 0)::BIGINT AS "
        f"booleans, coalesce(bool_or(contains(v, ':')), false) AS timed FROM {values}"
    )
    found = _row(connection, first) | dict.fromkeys(
        ("point", "comma", "both", "unsure", "days", "months", "parts"), 0
    )
    if not found["filled"] or found["filled"] in (
        found["integers"],
        found["iso"],
        found["booleans"],
    ):
        return found
    point, comma = (quoted_text(pattern) for pattern in (POINT, COMMA))
    second = (
        "SELECT coalesce(sum(n) FILTER (p), 0)::BIGINT AS point, coalesce(sum(n) "
        "FILTER (c), 0)::BIGINT AS comma, coalesce(sum(n) FILTER (p AND c), "
        "0)::BIGINT AS both, any_value(v ORDER BY v) FILTER (p AND c AND "
        "regexp_matches(v, '[.,]')) AS unsure, coalesce(sum(n) FILTER (p OR c), "
        "0)::BIGINT AS numbers, list(DISTINCT u) FILTER (p OR c) AS units, "
        "coalesce(sum(n) FILTER ((p OR c) AND u = ''), 0)::BIGINT AS bare, arg_min(v, "
        "[u, v]) FILTER (p OR c) AS low, arg_max(v, [u, v]) FILTER (p OR c) AS high, "
        "coalesce(sum(n) FILTER (d), 0)::BIGINT AS parts, coalesce(sum(n) FILTER (d "
        "AND day::INT > 12), 0)::BIGINT AS days, coalesce(sum(n) FILTER (d AND "
        "month::INT > 12), 0)::BIGINT AS months, any_value(v ORDER BY v) FILTER (d "
        "AND day <> month) AS part, coalesce(bool_and(contains(v, '.')) FILTER (d), "
        f"false) AS dotted, coalesce(sum(n) FILTER (try_strptime(v, {NAMED}) IS NOT "
        "NULL), 0)::BIGINT AS named FROM (SELECT v, n, regexp_replace(v, "
        f"'{NO_UNIT}', '', 'g') AS u, regexp_full_match(v, {point}) AS p, "
        f"regexp_full_match(v, {comma}) AS c, regexp_full_match(v, '{PARTS}') AS d, "
        f"nullif(regexp_extract(v, '^{PARTS}$', 1), '') AS day, "
        f"nullif(regexp_extract(v, '^{PARTS}$', 2), '') AS month FROM {values} WHERE "
        "v IS NOT NULL)"
    )
    return found | _row(connection, second)


def _row(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    cursor = connection.execute(query)
    names = [str(part[0]) for part in cursor.description or []]
    return dict(zip(names, cursor.fetchall()[0], strict=True))


def _typed(
    raw: str,
    name: str,
    count: dict[str, Any],
    decided: bool | None,
    conventions: Conventions,
) -> tuple[Column, str]:
    value, filled = cleaned(raw), count["filled"]
    gaps = (
        f"{count['gaps']} value(s) such as {count['gap']!r} are missing values"
        if count["gaps"]
        else ""
    )
    if not filled:  # of any kind
        return Column(name, "VARCHAR", "NULL::DOUBLE", "NULL::TIMESTAMP"), value
    kind = "TIMESTAMP" if count["timed"] else "DATE"
    for form, found in (("booleans", "BOOLEAN"), ("integers", "BIGINT"), ("iso", kind)):
        if filled == count[form]:
            return Column(name, found, note=gaps), f"TRY_CAST({value} AS {found})"
    number, numbers, note = _number(value, count, decided, conventions)
    moment, moments, undecided, dated = _moment(value, count, conventions)
    if filled == numbers:
        return Column(name, "DOUBLE", note=f"{note}; {gaps}".strip("; ")), number
    if filled == moments:
        return Column(
            name, kind, note=f"{dated}; {gaps}".strip("; ")
        ), f"CAST({moment} AS {kind})"
    # A column of texts that are mostly numbers or dates can still be used as these.
    mostly = filled * 0.9
    mixed = _mixed(count)
    if mixed and count["numbers"] >= mostly:
        return Column(name, "VARCHAR", note=mixed, mixed=mixed), value
    as_number = ""
    as_moment = ""
    remark = ""
    if numbers and numbers >= mostly:
        as_number = number.replace(value, quoted_name(name))
        remark = note
    if moments and moments >= mostly:
        as_moment = moment.replace(value, quoted_name(name))
        remark = dated
    if not undecided or count["parts"] < mostly:
        undecided = ""
    return Column(name, "VARCHAR", as_number, as_moment, undecided, remark), value


def _mixed(count: dict[str, Any]) -> str:
    """Say so where the numbers are not in one unit: 50 % and 0.25, or euros and
    dollars.
    """
    if len(count["units"] or []) < 2:
        return ""
    bare = (
        f"; {count['bare']} of {count['numbers']} numbers have none"
        if count["bare"]
        else ""
    )
    return f"{count['low']!r} and {count['high']!r} are not in one unit{bare}"


def _number(
    value: str, count: dict[str, Any], decided: bool | None, conventions: Conventions
) -> tuple[str, int, str]:
    """Return SQL for *value* as a number, how many values convert, and what to say
    about it.

    The decimal mark is the one that more values need; where none needs one, the file's.
    """
    units = count.get("units") or [""]
    if len(units) > 1:  # they have no sum
        return "NULL", 0, ""
    points, commas = count["point"] - count["both"], count["comma"] - count["both"]
    note = ""
    if conventions.decimal_comma is not None or points == commas:
        with_comma = conventions.delimiter == ";" if decided is None else decided
    else:
        with_comma = commas > points
    if (
        count["unsure"]
        and points == commas
        and decided is None
        and conventions.decimal_comma is None
    ):
        said, other = ("comma", "false") if with_comma else ("point", "true")
        note = (
            f"{count['unsure']!r} is read with a decimal {said}; if that is wrong, "
            f"send decimal_comma: {other}"
        )
    if units[0]:
        note += ("; " if note else "") + f"the numbers are in {units[0]!r}"
    pattern, groups = (COMMA, ".") if with_comma else (POINT, ",")
    digits = f"regexp_replace({value}, '[^0-9.,eE+-]|[A-DF-Za-df-z]+', '', 'g')"
    digits = (
        f"replace(regexp_extract({digits}, '[+-]?[0-9.,]+(?:[eE][+-]?[0-9]+)?'), "
        f"'{groups}', '')"
    )
    digits = f"replace({digits}, ',', '.')" if with_comma else digits
    sql = (
        f"CASE WHEN regexp_full_match({value}, {quoted_text(pattern)}) THEN "
        f"TRY_CAST({digits} AS DOUBLE) END"
    )
    return sql, count["comma" if with_comma else "point"], note


def _moment(
    value: str, count: dict[str, Any], conventions: Conventions
) -> tuple[str, int, str, str]:
    """Return SQL for *value* as a time, how many values convert, a date that is
    undecided, and what to say.
    """
    formats, found, note = list(NAMED), count["iso"] + count.get("named", 0), ""
    iso = (
        f"CASE WHEN regexp_full_match({value}, '{ISO_DATE}') THEN TRY_CAST({value} AS "
        "TIMESTAMP) END"
    )
    days, months = count["days"], count["months"]
    if count["parts"]:
        order = conventions.date_format
        if order == "auto" and days != months:
            order = "day first" if days > months else "month first"
            note = (
                f"dates such as {count['part']!r} are read {order}, as other values "
                "show"
            )
        elif order == "auto" and count["dotted"]:
            order = "day first"
            note = (
                f"dates such as {count['part']!r} are read day first, as is usual "
                "with points; else send date_format"
            )
        elif (
            order == "auto" and not count["part"]
        ):  # 05/05/2025 is one day in either order
            order = "day first"
        elif order == "auto":
            return "NULL", 0, count["part"] or "", ""
        formats += DAY_FIRST if order == "day first" else MONTH_FIRST
        found += count["parts"] - (months if order == "day first" else days)
    return f"coalesce({iso}, try_strptime({value}, {formats}))", found, "", note
