"""Two files as one table: which rows belong together, and what is left over.

Not a tool: query.py imports it.
"""

from __future__ import annotations

from dataclasses import replace

from column_types import Column, quoted_name
from expressions import LEFT, RIGHT, Expression, Scope, as_moment, parse, shown_sql
from script_call import Failure, shown_path
from tables import Table, plain

MAX_ROWS = 20_000_000


def joined(left: Table, right: Table | None, on: list[str], notes: list[str]) -> Scope:
    """Make the table ``base``: each row of *left* with those of *right* that fit it;
    return the columns it has.

    Every row of *left* stays. Raises: Failure, where no row fits, or nearly every row
    fits every other.
    """
    scope = Scope(
        {column.name: (column, LEFT) for column in left.columns},
        repr(shown_path(left.file)),
    )
    if right is None:
        left.connection.execute(
            f'CREATE TEMP VIEW base AS SELECT {left.row} AS "·left", * FROM data'
        )
        return scope
    other = Scope(
        {column.name: (column, RIGHT) for column in right.columns},
        repr(shown_path(right.file)),
    )
    pairs = [
        _pair(text, scope, other, f"/join/on/{index}") for index, text in enumerate(on)
    ]
    columns = dict(scope.columns)
    selected = ["l.*", 'r."·right"']
    same = {
        text.strip().casefold() for text in on
    }  # a key of this name is there already
    for column in right.columns:
        if column.name.casefold() in same:
            continue
        taken = column.name.casefold() in {name.casefold() for name in columns}
        name = f"{right.file.stem}.{column.name}" if taken else column.name
        columns[name] = (_renamed(column, name), RIGHT)
        selected.append(f"r.{column.sql} AS {quoted_name(name)}")
    keys = [f'"·k{index}"' for index in range(len(pairs))]
    for side, table in ((0, left), (1, right)):
        computed = ", ".join(
            f"{_comparable(pair, side)} AS {key}"
            for pair, key in zip(pairs, keys, strict=True)
        )
        row = f'{table.row} AS "·{(LEFT, RIGHT)[side]}"'
        left.connection.execute(
            f"CREATE TEMP TABLE side{side} AS SELECT *, {row}, {computed} FROM "
            f"{table.name}"
        )
    _check_size(left, right, pairs, keys)
    using = (
        "side0 l LEFT JOIN side1 r ON "
        f"{' AND '.join(f'l.{key} = r.{key}' for key in keys)}"
    )
    left.connection.execute(
        f"CREATE TEMP TABLE base AS SELECT {', '.join(selected)} FROM {using}"
    )
    _note_rest(left, right, [shown_sql(ours) for ours, _ in pairs], notes)
    return Scope(columns, f"{scope.file} with {other.file}", is_joined=True)


def _pair(
    text: str, scope: Scope, other: Scope, path: str
) -> tuple[Expression, Expression]:
    """Return both sides of ``customer_id``, ``customer_id = id`` or ``month(date) =
    month``.
    """
    first, _, second = (text, "", "") if text in scope.columns else text.partition("=")
    ours = parse(first.strip(), scope, path)
    theirs = parse(second.strip() or first.strip(), other, path)
    for one, two, names in ((ours, theirs, other), (theirs, ours, scope)):
        is_date = two.kind == "temporal" or any(
            column.moment or column.undecided for column in two.columns
        )
        if (
            one.period and not two.period and is_date
        ):  # their months are dates: compare months with months
            found = parse(f'{one.period}("{two.columns[0].name}")', names, path)
            ours, theirs = (ours, found) if one is ours else (found, theirs)
    if ours.kind == "temporal" and theirs.kind == "text" and theirs.columns[0].moment:
        theirs = as_moment(theirs, path)
    return ours, theirs


def _comparable(pair: tuple[Expression, Expression], side: int) -> str:
    """Return SQL for one side of a key, as both can be compared: texts without regard
    to case.
    """
    kinds = {expression.kind for expression in pair}
    if kinds == {"numeric"}:
        return f"{pair[side].sql}::DOUBLE"
    if kinds == {"temporal"}:
        return f"{pair[side].sql}::TIMESTAMP"
    return f"lower(trim({pair[side].sql}::VARCHAR))"


def _renamed(column: Column, name: str) -> Column:
    number, moment = (
        sql.replace(column.sql, quoted_name(name))
        for sql in (column.number, column.moment)
    )
    return replace(column, name=name, number=number, moment=moment)


def _check_size(
    left: Table,
    right: Table,
    pairs: list[tuple[Expression, Expression]],
    keys: list[str],
) -> None:
    by = ", ".join(keys)
    sides = [
        f"(SELECT {by}, count(*) AS n{side} FROM side{side} GROUP BY ALL)"
        for side in (0, 1)
    ]
    (size,) = left.rows(
        f"SELECT coalesce(sum(n0 * n1), 0) FROM {sides[0]} JOIN {sides[1]} USING ({by})"
    )[0]
    if not size and left.row_count and right.row_count:
        samples = []
        for side, table in enumerate((left, right)):
            found = left.rows(
                f"SELECT min({shown_sql(pairs[0][side])}) FROM side{side}"
            )
            samples.append(f"{shown_path(table.file)!r} has {plain(found[0][0])!r}")
        shown = " and ".join(samples)
        action = (
            "Send the columns that hold the same values, such as on: ['customer_id = "
            "id']."
        )
        raise Failure(
            "INVALID_INPUT",
            f"no row of the two files fits: {shown}",
            action,
            path="/join/on",
        )
    if size > MAX_ROWS:
        message = f"the join has {size} rows: both files have many rows for one value"
        raise Failure(
            "INVALID_INPUT", message, "Send more columns in on.", path="/join/on"
        )


def _note_rest(left: Table, right: Table, keys: list[str], notes: list[str]) -> None:
    """Say which rows have no match, by SQL for the *keys* of *left* as written, and
    where one row has several.
    """
    names = [shown_path(table.file) for table in (left, right)]
    unmatched, matched, most = left.rows(
        'SELECT count(*) FILTER (n = 0), (SELECT count(DISTINCT "·right") FROM base), '
        'max(n) FROM (SELECT count("·right") AS n FROM base GROUP BY "·left")'
    )[0]
    if unmatched:
        key = f"concat_ws(', ', {', '.join(keys)})"
        query = (
            f'SELECT DISTINCT {key} AS k FROM base WHERE "·right" IS NULL ORDER BY k '
            "LIMIT 3"
        )
        values = ", ".join(
            repr(plain(value)) if value else "without a value"
            for (value,) in left.rows(query)
        )
        notes.append(
            f"{unmatched} of {left.row_count} rows of {names[0]} have no row in "
            f"{names[1]}: {values}."
        )
    if matched < right.row_count:
        notes.append(
            f"{right.row_count - matched} of {right.row_count} rows of {names[1]} "
            f"have no row in {names[0]}."
        )
    if most > 1:
        notes.append(
            f"Rows of {names[0]} fit up to {most} rows of {names[1]}; a figure counts "
            "each row of its file once."
        )
