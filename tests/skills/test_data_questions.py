"""Everyday questions on a sales table, a table of customers and one of targets: each
answered by one call, exactly.

Every expected figure is computed here in plain Python, with decimals and fractions,
from the same rows.
"""

from __future__ import annotations

import csv
import json
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.processes

Row = dict[str, Any]
WEEKDAYS = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
]


def _sales() -> list[Row]:
    """Return 600 orders of eighteen months: two lack a value, one is there twice, one
    is a hundred times too large.
    """
    chance = random.Random(31)
    rows = []
    for number in range(600):
        units, price = (
            chance.randrange(1, 20),
            Decimal(chance.choice(["9.99", "19.50", "4.25", "49.90", "120.00"])),
        )
        rows.append(
            {
                "order_id": f"O{number:05d}",
                "date": date(2024, 1, 1) + timedelta(days=chance.randrange(546)),
                "customer_id": f"C{chance.randrange(1, 41):03d}",
                "region": chance.choice(["North", "South", "East", "West"]),
                "product": chance.choice(["Tea", "Coffee", "Cups"]),
                "units": units,
                "price": price,
                "amount": units * price,
                "status": chance.choice(["paid", "paid", "paid", "cancelled"]),
            }
        )
    rows[5]["customer_id"] = None
    rows[9]["amount"] = None
    rows[17]["amount"] = Decimal("99999.00")
    return [*rows, rows[3]]


SALES = _sales()
CUSTOMERS = [
    {
        "id": f"C{number:03d}",
        "name": f"Name {number}",
        "segment": ["Retail", "Wholesale"][number % 2],
        "credit": 100 * number,
    }
    for number in range(1, 45)
]
TARGETS = [
    {"region": region, "month": f"{year}-{month:02d}", "target": 3000 + 100 * month}
    for region in ("North", "South", "East", "West")
    for year in (2024, 2025)
    for month in range(1, 13)
]


@pytest.fixture
def sales(data: Any) -> Any:
    """The data tools in a workspace with the three files."""
    for name, rows in (
        ("sales", SALES),
        ("customers", CUSTOMERS),
        ("targets", TARGETS),
    ):
        with (data.workspace / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return data


def amounts(rows: Iterable[Row]) -> list[Decimal]:
    return [row["amount"] for row in rows if row["amount"] is not None]


def grouped(
    key: Callable[[Row], Any], rows: Iterable[Row] = SALES
) -> dict[Any, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return dict(sorted(found.items(), key=lambda pair: str(pair[0])))


def total(rows: Iterable[Row]) -> float:
    return float(sum(amounts(rows), Decimal(0)))


def short(number: Fraction | Decimal | float) -> float:
    """Return a quotient as the skill gives it: in ten digits."""
    return float(f"{float(number):.10g}")


def mean(rows: Iterable[Row]) -> float:
    values = amounts(rows)
    return short(Fraction(sum(values)) / len(values))


def change(now: float, before: float | None) -> float | None:
    return None if before is None else round((now - before) / before, 6)


def month(row: Row) -> str:
    return f"{row['date']:%Y-%m}"


def quarter(row: Row) -> str:
    return f"{row['date'].year}-Q{(row['date'].month + 2) // 3}"


def largest(rows: list[list[Any]], place: int = -1) -> list[list[Any]]:
    return sorted(rows, key=lambda row: -row[place])


def growing(groups: dict[str, list[Row]], back: int) -> list[list[Any]]:
    sums = [total(rows) for rows in groups.values()]
    before = [None] * back + sums[:-back] if back < len(sums) else [None] * len(sums)
    return [
        [key, now, change(now, then)]
        for key, now, then in zip(groups, sums, before, strict=True)
    ]


def running() -> list[list[Any]]:
    rows, so_far = [], Decimal(0)
    for key, group in grouped(month).items():
        so_far += sum(amounts(group), Decimal(0))
        rows.append([key, total(group), float(so_far)])
    return rows


def segment(row: Row) -> str | None:
    return next(
        (
            customer["segment"]
            for customer in CUSTOMERS
            if customer["id"] == row["customer_id"]
        ),
        None,
    )


def targets_reached() -> list[list[Any]]:
    """Every month's target counts once, however many orders it has; only months with
    orders in the first quarter.
    """
    rows = []
    for region, group in grouped(
        lambda row: row["region"], [row for row in SALES if quarter(row) == "2024-Q1"]
    ).items():
        months = {month(row) for row in group}
        target = sum(
            entry["target"]
            for entry in TARGETS
            if entry["region"] == region and entry["month"] in months
        )
        rows.append(
            [
                region,
                total(group),
                target,
                short(Fraction(sum(amounts(group))) / target),
            ]
        )
    return largest(rows, 1)


def quartiles(values: list[Decimal]) -> tuple[Decimal, Decimal]:
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third


def outliers() -> list[list[Any]]:
    values = amounts(SALES)
    first, third = quartiles(values)
    reach, middle = Decimal("1.5") * (third - first), (first + third) / 2
    found = [
        (abs(row["amount"] - middle), number, row)
        for number, row in enumerate(SALES, 1)
        if row["amount"] is not None
        and not first - reach <= row["amount"] <= third + reach
    ]
    found.sort(key=lambda entry: (-entry[0], entry[1]))
    return [
        [number, "amount", float(row["amount"]), row["order_id"]]
        for _, number, row in found
    ]


def correlation(one: str, other: str) -> float:
    pairs = [
        (float(row[one]), float(row[other]))
        for row in SALES
        if row[one] is not None and row[other] is not None
    ]
    return round(statistics.correlation(*zip(*pairs, strict=True)), 6)


def sum_by(key: str, rows: Iterable[Row] = SALES) -> list[list[Any]]:
    return largest(
        [
            [value, total(group)]
            for value, group in grouped(lambda row: row[key], rows).items()
        ]
    )


def where(column: str, op: str, value: Any = None) -> dict[str, Any]:
    return {"column": column, "op": op} | ({} if value is None else {"value": value})


QUESTIONS: dict[str, tuple[dict[str, Any], Callable[[], list[list[Any]]]]] = {
    "What did we sell in all, how many orders, and what is the average order?": (
        {"values": ["sum(amount)", "count()", "mean(amount)"]},
        lambda: [[total(SALES), 601, mean(SALES)]],
    ),
    "How much does each region sell?": (
        {"group": ["region"], "values": ["sum(amount)"]},
        lambda: sum_by("region"),
    ),
    "How much in each month?": (
        {"group": ["month(date)"], "values": ["sum(amount)"]},
        lambda: [[key, total(rows)] for key, rows in grouped(month).items()],
    ),
    "How much in each quarter, paid orders only?": (
        {
            "group": ["quarter(date)"],
            "values": ["sum(amount)", "count()"],
            "where": [where("status", "=", "Paid")],
        },
        lambda: [
            [key, total(rows), len(rows)]
            for key, rows in grouped(
                quarter, [row for row in SALES if row["status"] == "paid"]
            ).items()
        ],
    ),
    "Who are the five best customers?": (
        {"group": ["customer_id"], "values": ["sum(amount)"], "limit": 5},
        lambda: sum_by("customer_id")[:5],
    ),
    "Which two products sell the fewest units?": (
        {
            "group": ["product"],
            "values": ["sum(units)"],
            "sort": "sum(units) asc",
            "limit": 2,
        },
        lambda: largest(
            [
                [key, sum(row["units"] for row in rows)]
                for key, rows in grouped(lambda row: row["product"]).items()
            ]
        )[::-1][:2],
    ),
    "How did sales change from month to month?": (
        {"group": ["month(date)"], "values": ["sum(amount)"], "add": ["growth"]},
        lambda: growing(grouped(month), 1),
    ),
    "And against the same quarter of last year?": (
        {
            "group": ["quarter(date)"],
            "values": ["sum(amount)"],
            "add": ["growth_on_year"],
        },
        lambda: growing(grouped(quarter), 4),
    ),
    "What share has each product?": (
        {"group": ["product"], "values": ["sum(amount)"], "add": ["share"]},
        lambda: [
            [key, value, round(value / total(SALES), 6)]
            for key, value in sum_by("product")
        ],
    ),
    "How many different customers bought in 2025?": (
        {"values": ["distinct(customer_id)"], "where": [where("date", "=", "2025")]},
        lambda: [
            [
                len(
                    {row["customer_id"] for row in SALES if row["date"].year == 2025}
                    - {None}
                )
            ]
        ],
    ),
    "On which weekday are orders largest?": (
        {"group": ["weekday(date)"], "values": ["mean(amount)"]},
        lambda: [
            [name, mean(row for row in SALES if row["date"].weekday() == index)]
            for index, name in enumerate(WEEKDAYS)
        ],
    ),
    "Which orders of March 2025 are above 1000?": (
        {
            "values": ["order_id", "amount"],
            "where": [where("date", "=", "2025-03"), where("amount", ">", 1000)],
            "sort": "amount",
        },
        lambda: largest(
            [
                [row["order_id"], float(row["amount"])]
                for row in SALES
                if month(row) == "2025-03"
                and row["amount"] is not None
                and row["amount"] > 1000
            ]
        ),
    ),
    "What is the revenue from units and prices, by product?": (
        {"group": ["product"], "values": ["sum(units * price) as revenue"]},
        lambda: largest(
            [
                [key, float(sum(row["units"] * row["price"] for row in rows))]
                for key, rows in grouped(lambda row: row["product"]).items()
            ]
        ),
    ),
    "Which customers ordered more than twenty times?": (
        {
            "group": ["customer_id"],
            "values": ["count()"],
            "where": [where("count()", ">", 20)],
        },
        lambda: largest(
            [
                [key, len(rows)]
                for key, rows in grouped(lambda row: row["customer_id"]).items()
                if len(rows) > 20
            ]
        ),
    ),
    "What do retail and wholesale buy, and what credit have they?": (
        {
            "join": {"path": "customers.csv", "on": ["customer_id = id"]},
            "group": ["segment"],
            "values": ["sum(amount)", "sum(credit)"],
        },
        lambda: largest(
            [
                [
                    key,
                    total(rows),
                    sum(
                        c["credit"]
                        for c in CUSTOMERS
                        if c["id"] in {row["customer_id"] for row in rows}
                    )
                    or None,
                ]
                for key, rows in grouped(segment).items()
            ],
            1,
        ),
    ),
    "Did the regions reach their targets in the first quarter of 2024?": (
        {
            "join": {"path": "targets.csv", "on": ["region", "month(date) = month"]},
            "group": ["region"],
            "values": [
                "sum(amount)",
                "sum(target)",
                "sum(amount) / sum(target) as reached",
            ],
            "where": [
                where("date", ">=", "2024-01-01"),
                where("date", "<=", "2024-03"),
            ],
        },
        targets_reached,
    ),
    "Which customers never bought?": (
        {
            "path": "customers.csv",
            "join": {"path": "sales.csv", "on": ["id = customer_id"]},
            "values": ["id", "name"],
            "where": [where("order_id", "empty")],
        },
        lambda: [
            [customer["id"], customer["name"]]
            for customer in CUSTOMERS
            if customer["id"] not in {row["customer_id"] for row in SALES}
        ],
    ),
    "Is any order there twice?": (
        {"find": "duplicates", "values": ["order_id"]},
        lambda: [["O00003", 2, "4, 601"]],
    ),
    "Which rows lack something?": (
        {"find": "gaps"},
        lambda: [[6, "customer_id", "O00005"], [10, "amount", "O00009"]],
    ),
    "Which amounts look wrong?": (
        {"find": "outliers", "values": ["amount"], "limit": 1000},
        outliers,
    ),
    "Does the price go with the amount?": (
        {"find": "correlations", "values": ["price", "amount"]},
        lambda: [["price", "amount", correlation("price", "amount"), 600]],
    ),
    "What did we have by the end of each month?": (
        {"group": ["month(date)"], "values": ["sum(amount)"], "add": ["running_total"]},
        running,
    ),
    "What is a typical and what a large order in each region?": (
        {
            "group": ["region"],
            "values": ["median(amount)", "p90(amount)", "max(amount)"],
            "sort": "region",
        },
        lambda: [
            [
                key,
                short(statistics.median(amounts(rows))),
                short(
                    statistics.quantiles(amounts(rows), n=10, method="inclusive")[-1]
                ),
                float(max(amounts(rows))),
            ]
            for key, rows in grouped(lambda row: row["region"]).items()
        ],
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.quick_cases(
    [
        "What did we sell in all, how many orders, and what is the average order?",
        "Which amounts look wrong?",
    ]
)
def test_an_everyday_question_is_answered_exactly(sales: Any, question: str) -> None:
    """One call, and the same figures as plain Python."""
    arguments, expected = QUESTIONS[question]

    document = sales.call({"path": "sales.csv"} | arguments, "query").document

    rows = expected()
    assert rows
    assert [row[: len(rows[0])] for row in shown(document, arguments)] == rows


def shown(document: dict[str, Any], arguments: dict[str, Any]) -> list[list[Any]]:
    """Return the rows; of findings the first columns, since the rest show the row that
    was found.
    """
    return (
        [row[:4] for row in document["rows"]]
        if "find" in arguments
        else document["rows"]
    )


def test_at_least_twenty_questions_are_asked() -> None:
    """The promise of the skill's documentation."""
    assert len(QUESTIONS) >= 20


@pytest.mark.slow
def test_the_same_figures_come_from_every_format(sales: Any) -> None:
    """CSV with points or commas, tabs, a workbook, JSON, JSON lines and Parquet: one
    answer.
    """
    import duckdb

    folder: Path = sales.workspace
    rows = [
        {name: None if value is None else str(value) for name, value in row.items()}
        for row in SALES
    ]
    lines = [list(SALES[0]), *([row[name] or "" for name in SALES[0]] for row in rows)]
    comma = [
        [
            value.replace(".", ",") if index in (6, 7) else value
            for index, value in enumerate(line)
        ]
        for line in lines
    ]
    (folder / "a.tsv").write_text("\n".join("\t".join(line) for line in lines))
    (folder / "b.csv").write_bytes(
        b"\xef\xbb\xbf" + "\r\n".join(";".join(line) for line in comma).encode()
    )
    (folder / "c.json").write_text(
        json.dumps({"orders": [typed(row) for row in SALES]})
    )
    (folder / "d.jsonl").write_text("\n".join(json.dumps(typed(row)) for row in SALES))
    duckdb.sql(f"SELECT * FROM '{folder}/sales.csv'").write_parquet(
        str(folder / "e.parquet")
    )
    (folder / "f.xlsx").write_bytes(sales_workbook())
    names = ["sales.csv", "a.tsv", "b.csv", "c.json", "d.jsonl", "e.parquet", "f.xlsx"]
    question = {
        "group": ["quarter(date)"],
        "values": ["sum(amount)", "count(customer_id)"],
    }

    answers = [
        answer.document
        for answer in sales.call_each(
            [{"path": name} | question for name in names], "query"
        )
    ]

    expected = [
        [key, total(group), sum(row["customer_id"] is not None for row in group)]
        for key, group in grouped(quarter).items()
    ]
    assert [answer["rows"] for answer in answers] == [expected] * len(names)


def typed(row: Row) -> dict[str, Any]:
    return {
        name: (
            float(value)
            if isinstance(value, Decimal)
            else value
            if value is None or isinstance(value, int)
            else str(value)
        )
        for name, value in row.items()
    }


def sales_workbook() -> bytes:
    """Write a workbook by hand: a title, an empty row, the table with real dates, and a
    second sheet.
    """
    import io
    import zipfile

    def cell(value: Any) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, date):  # serial numbers, shown as dates by style 1
            return f'<c s="1"><v>{(value - date(1899, 12, 30)).days}</v></c>'
        if isinstance(value, int | Decimal):
            return f"<c><v>{value}</v></c>"
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'

    lines = [["Orders"], [], list(SALES[0]), *(list(row.values()) for row in SALES)]
    data = "".join(f"<row>{''.join(map(cell, line))}</row>" for line in lines)
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": (
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Override PartName="/xl/workbook.xml" '
            f'ContentType="{types}.sheet.main+xml"/></Types>'
        ),
        "_rels/.rels": (
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="a" '
            f'Type="{relations}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>'
        ),
        "xl/workbook.xml": (
            f'<workbook {main} xmlns:r="{relations}"><sheets><sheet name="Orders" '
            'sheetId="1" r:id="b"/><sheet name="Notes" sheetId="2" '
            'r:id="c"/></sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": (
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="b" '
            f'Type="{relations}/worksheet" Target="worksheets/orders.xml"/>'
            f'<Relationship Id="c" Type="{relations}/worksheet" '
            'Target="worksheets/notes.xml"/><Relationship Id="d" '
            f'Type="{relations}/styles" Target="styles.xml"/></Relationships>'
        ),
        "xl/styles.xml": (
            f'<styleSheet {main}><cellXfs><xf numFmtId="0"/><xf '
            'numFmtId="14"/></cellXfs></styleSheet>'
        ),
        "xl/worksheets/orders.xml": (
            f"<worksheet {main}><sheetData>{data}</sheetData></worksheet>"
        ),
        "xl/worksheets/notes.xml": f"<worksheet {main}><sheetData/></worksheet>",
    }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return target.getvalue()
