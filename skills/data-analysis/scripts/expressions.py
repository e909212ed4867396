"""The figures of a query: ``sum(units * price)``, ``month(date)``, ``count()``: read,
checked, and written as SQL.

Not a tool: query.py imports it. Nothing that a caller sends is SQL: names are looked
up, the rest is this grammar::

    expression = term {("+" | "-") term};   term = factor {("*" | "/") factor}
    factor = number | "-" factor | "(" expression ")" | function "(" [expression {","
    expression}] ")" | column
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from column_types import Column
from script_call import Failure
from text_tables import named

PERIODS = {
    "year": "year({0})",
    "quarter": "year({0}) || '-Q' || quarter({0})",
    "month": "strftime({0}, '%Y-%m')",
    "week": "strftime({0}, '%G-W%V')",
    "day": "strftime({0}, '%Y-%m-%d')",
    "weekday": "dayname({0})",
    "hour": "hour({0})",
}
AGGREGATES = {
    "sum": "fsum",  # Kahan's summation: cents stay cents
    "mean": "favg",
    "median": "median",
    "min": "min",
    "max": "max",
    "count": "count",
    "distinct": "count",
    "stddev": "stddev_samp",
    "corr": "corr",
}
OTHER_NAMES = {
    "avg": "mean",
    "average": "mean",
    "total": "sum",
    "count_distinct": "distinct",
    "std": "stddev",
}
PERCENTILE = re.compile(r"p(\d{1,2})")
COUNT_DISTINCT = re.compile(r"\bcount\(\s*distinct\s+", re.IGNORECASE)  # as SQL has it
NUMBER = re.compile(r"\d+(\.\d+)?|\.\d+")
WORD = re.compile(r"[A-Za-z_]\w*")
LEFT, RIGHT = "left", "right"


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that an expression can name, each with the file that it comes from:
    ``left`` or ``right``.
    """

    columns: dict[str, tuple[Column, str]]
    file: str
    is_joined: bool = False


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression: its SQL, the kind of its values, the columns in it, and the files
    that these come from.

    *period* is ``month`` of ``month(x)``. *converted* are the text columns that are
    read as numbers or dates. Values that are *additive* give that of the whole when
    added; those that are *exact* are not rounded.
    """

    text: str
    sql: str
    kind: str
    columns: tuple[Column, ...] = ()
    sides: frozenset[str] = frozenset()
    is_aggregate: bool = False
    period: str = ""
    converted: tuple[tuple[Column, str], ...] = ()
    additive: bool = False
    exact: bool = True


def parse(text: str, scope: Scope, path: str) -> Expression:
    """Return what *text* means. *path* is the JSON Pointer of the parameter.

    Raises: Failure, where it is not an expression, or names a column that there is not.
    """
    reader = _Reader(COUNT_DISTINCT.sub("distinct(", text), scope, path)
    found = reader.whole_column()
    if found is None:
        found = reader.sum()
        if reader.rest():
            raise reader.failure(f"cannot read {reader.rest()[:30]!r}")
    return replace(found, text=text)


def as_number(found: Expression, path: str) -> Expression:
    """Return *found* as numbers. A text column converts where most of its values do."""
    if found.kind == "numeric":
        return found
    column = _text_column(found)
    if column and column.number:
        return replace(
            found, sql=column.number, kind="numeric", converted=((column, "number"),)
        )
    if column and column.mixed:
        action = (
            "Ask the user what the numbers mean, and send a file that has them in one "
            "unit."
        )
        raise Failure(
            "INVALID_INPUT",
            f"{found.text!r} is not one quantity: {column.mixed}",
            action,
            path=path,
        )
    action = "Use a numeric column; the summary tool lists them."
    raise Failure(
        "INVALID_INPUT",
        f"{found.text!r} is {found.kind}, not numeric",
        action,
        path=path,
    )


def as_moment(found: Expression, path: str) -> Expression:
    """Return *found* as dates. Raises: Failure, also where day and month could be
    either.
    """
    if found.kind == "temporal":
        return found
    column = _text_column(found)
    if column and column.undecided:
        message = (
            f"dates of {column.name!r} such as {column.undecided} can be read in two "
            "ways"
        )
        action = "Ask the user, then send date_format: 'day first' or 'month first'."
        raise Failure("INVALID_INPUT", message, action, path="/date_format")
    if column and column.moment:
        return replace(
            found, sql=column.moment, kind="temporal", converted=((column, "moment"),)
        )
    raise Failure(
        "INVALID_INPUT",
        f"{found.text!r} is {found.kind}, not a date",
        "Use a column of dates.",
        path=path,
    )


def as_ordered(found: Expression, path: str) -> Expression:
    """Return *found* as what it is before and after: texts that are mostly dates or
    numbers as these.
    """
    column = _text_column(found)
    if column is None:
        return found
    if column.moment or column.undecided:
        return as_moment(found, path)
    if column.number or column.mixed:
        return as_number(found, path)
    return found


def shown_sql(found: Expression) -> str:
    """Return SQL whose value is plain JSON: dates, lists and the like as text."""
    return (
        found.sql if found.kind in ("numeric", "boolean") else f"({found.sql})::VARCHAR"
    )


def _text_column(found: Expression) -> Column | None:
    plain = (
        found.kind == "text"
        and len(found.columns) == 1
        and found.sql == found.columns[0].sql
    )
    return found.columns[0] if plain else None


@dataclass(slots=True)
class _Reader:
    text: str
    scope: Scope
    path: str
    place: int = 0
    inside: str = ""  # the aggregate that is open

    def failure(self, message: str, action: str = "") -> Failure:
        action = (
            action
            or "Write a column, or a figure such as 'sum(amount)', 'sum(units * "
            "price)', 'month(date)'."
        )
        return Failure(
            "INVALID_INPUT", f"{message} in {self.text!r}", action, path=self.path
        )

    def rest(self) -> str:
        return self.text[self.place :].strip()

    def whole_column(self) -> Expression | None:
        """Return the column whose name is the whole text: ``price/unit`` can be a
        name.
        """
        exact = [
            name
            for name in self.scope.columns
            if name.casefold() == self.text.strip().strip('"`').casefold()
        ]
        return self._column(exact[0]) if exact else None

    def sum(self) -> Expression:
        left = self.product()
        while operator := self._take("+-"):
            left = self._joined(left, operator, self.product())
        return left

    def product(self) -> Expression:
        left = self.factor()
        while operator := self._take("*/"):
            left = self._joined(left, operator, self.factor())
        return left

    def factor(self) -> Expression:
        if self._take("-"):
            inner = as_number(self.factor(), self.path)
            return replace(inner, sql=f"(-{inner.sql})", period="")
        if self._take("("):
            inner = self.sum()
            self._expect(")")
            return inner
        return self._number() or self._call() or self._name()

    def _take(self, characters: str) -> str:
        rest = self.text[self.place :]
        found = rest.lstrip()[:1]
        if not found or found not in characters:
            return ""
        self.place += len(rest) - len(rest.lstrip()) + 1
        return found

    def _expect(self, character: str) -> None:
        if not self._take(character):
            raise self.failure(f"{character!r} is missing")

    def _start(self) -> int:
        """Return the place of the next character that is not blank."""
        return len(self.text) - len(self.text[self.place :].lstrip())

    def _number(self) -> Expression | None:
        rest = self.rest()
        found = NUMBER.match(rest)
        if (
            not found
            or self._longest_name(rest)
            or re.match(r"\w", rest[found.end() :])
        ):
            return None
        self.place = self._start() + found.end()
        return Expression(found[0], f"{found[0]}::DOUBLE", "numeric")

    def _call(self) -> Expression | None:
        rest = self.rest()
        word = WORD.match(rest)
        if (
            not word
            or not rest[word.end() :].lstrip().startswith("(")
            or len(self._longest_name(rest)) > word.end()
        ):
            return None
        name = OTHER_NAMES.get(word[0].casefold(), word[0].casefold())
        is_aggregate = name in AGGREGATES or PERCENTILE.fullmatch(name) is not None
        if not is_aggregate and name not in (*PERIODS, "bin"):
            known = ", ".join([*AGGREGATES, "p90", *PERIODS, "bin"])
            raise self.failure(
                f"there is no function {word[0]!r}", f"The functions: {known}."
            )
        if is_aggregate and self.inside:
            raise self.failure(f"{name}() cannot stand inside {self.inside}()")
        self.place = self._start() + word.end()
        self.inside = name if is_aggregate else self.inside
        arguments = self._arguments(name)
        self.inside = "" if is_aggregate else self.inside
        return (
            self._aggregate(name, arguments)
            if is_aggregate
            else self._grouping(name, arguments)
        )

    def _arguments(self, name: str) -> list[Expression]:
        arguments = []
        self._take("(")
        star = name == "count" and self._take("*")
        if not star and not self.rest().startswith(")"):
            arguments.append(self.sum())
            while self._take(","):
                arguments.append(self.sum())
        self._expect(")")
        return arguments

    def _aggregate(self, name: str, arguments: list[Expression]) -> Expression:
        wanted = {"corr": 2, "count": min(len(arguments), 1)}.get(name, 1)
        if len(arguments) != wanted:
            raise self.failure(
                f"{name}() takes {wanted} column(s), got {len(arguments)}"
            )
        if name in ("min", "max"):
            arguments = [as_ordered(argument, self.path) for argument in arguments]
        elif name not in ("count", "distinct"):
            arguments = [as_number(argument, self.path) for argument in arguments]
        merged = _merged(arguments)
        inner = ", ".join(argument.sql for argument in arguments) or "*"
        function = AGGREGATES.get(name, "quantile_cont")
        if name in ("sum", "mean") and all(
            _is_exact(argument) for argument in arguments
        ):
            function = {"sum": "sum", "mean": "avg"}[name]
        if percentile := PERCENTILE.fullmatch(name):
            inner += f", {int(percentile[1]) / 100}"
        sql = f"{function}({'DISTINCT ' if name == 'distinct' else ''}{inner})"
        sides = merged.sides or frozenset((LEFT,))
        if (
            self.scope.is_joined and len(sides) == 1
        ):  # a row that the join repeats counts once for its own file
            sql += f' FILTER ("·once {min(sides)}" = 1)'
        kind = arguments[0].kind if name in ("min", "max") else "numeric"
        additive = name in ("sum", "count")
        exact = name in ("sum", "count", "distinct", "min", "max")
        return replace(
            merged,
            sql=sql,
            kind=kind,
            sides=sides,
            is_aggregate=True,
            additive=additive,
            exact=exact,
        )

    def _grouping(self, name: str, arguments: list[Expression]) -> Expression:
        if name == "bin":
            if len(arguments) != 2 or arguments[1].columns:
                raise self.failure(
                    "bin() takes a column and a width",
                    "Write it like 'bin(amount, 100)'.",
                )
            value, width = as_number(arguments[0], self.path), arguments[1].sql
            return replace(
                value, sql=f"(floor({value.sql} / nullif({width}, 0)) * {width})"
            )
        if len(arguments) != 1:
            raise self.failure(f"{name}() takes one column of dates")
        moment = as_moment(arguments[0], self.path)
        kind = "numeric" if name in ("year", "hour") else "text"
        return replace(
            moment, sql=PERIODS[name].format(moment.sql), kind=kind, period=name
        )

    def _joined(self, left: Expression, operator: str, right: Expression) -> Expression:
        left, right = as_number(left, self.path), as_number(right, self.path)
        has_figure = left.is_aggregate or right.is_aggregate
        has_column = any(
            part.columns and not part.is_aggregate for part in (left, right)
        )
        if has_figure and has_column:
            raise self.failure(
                "a figure and a column are mixed",
                "Put the column into the figure: 'sum(a * b)'.",
            )
        below = f"nullif({right.sql}, 0)" if operator == "/" else right.sql
        if operator in "+-":
            additive = left.additive and right.additive
        else:
            additive = left.additive and not right.is_aggregate
        exact = left.exact and right.exact and operator in "+-"
        sql = f"({left.sql}::DOUBLE {operator} {below})"
        return replace(
            _merged([left, right]),
            sql=sql,
            kind="numeric",
            additive=additive,
            exact=exact,
        )

    def _longest_name(self, rest: str) -> str:
        """Return the longest name of a column that *rest* begins with: names can hold
        blanks and signs.
        """
        fits = [
            name
            for name in self.scope.columns
            if rest[: len(name)].casefold() == name.casefold()
        ]
        fits = [
            name
            for name in fits
            if not re.search(r"^\w\w$", name[-1:] + rest[len(name) : len(name) + 1])
        ]
        return max(fits, key=len, default="")

    def _name(self) -> Expression:
        rest, start = self.rest(), self._start()
        quoted = re.match(r'"([^"]+)"|`([^`]+)`', rest)
        name = "" if quoted else self._longest_name(rest)
        if name:
            self.place = start + len(name)
            return self._column(name)
        said = (
            (quoted[1] or quoted[2])
            if quoted
            else re.split(r"[()+*/,]| - ", rest)[0].strip()
        )
        if not said:
            raise self.failure("a column is missing")
        lacks = f"{self.scope.file} has no column"
        chosen = named(said, list(self.scope.columns), lacks, self.path)
        self.place = start + (quoted.end() if quoted else len(said))
        return self._column(chosen)

    def _column(self, name: str) -> Expression:
        column, side = self.scope.columns[name]
        return Expression(
            column.name, column.sql, column.kind, (column,), frozenset((side,))
        )


def _is_exact(found: Expression) -> bool:
    """Say whether the values are whole numbers or decimals of one column, which the
    database adds exactly.
    """
    is_column = len(found.columns) == 1 and found.sql == found.columns[0].sql
    return is_column and not found.columns[0].type.startswith(("DOUBLE", "FLOAT"))


def _merged(parts: list[Expression]) -> Expression:
    """Return an expression without SQL that has the columns of all *parts*."""
    # Dictionaries, as sets that keep the order.
    columns: dict[Column, None] = {}
    converted: dict[tuple[Column, str], None] = {}
    sides: set[str] = set()
    for part in parts:
        columns |= dict.fromkeys(part.columns)
        converted |= dict.fromkeys(part.converted)
        sides |= part.sides
    return Expression(
        "",
        "",
        "",
        tuple(columns),
        frozenset(sides),
        any(part.is_aggregate for part in parts),
        converted=tuple(converted),
    )
