"""The query tool on files as people have them: unclear dates, odd numbers, bad rows,
wrong names; joins and charts.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.processes

SALES = "day,region,amount,units\n" + "".join(
    f"2024-0{1 + index % 3}-01,{'North' if index % 2 else 'South'},{100 + index},"
    f"{'' if index == 3 else index}\n"
    for index in range(12)
)


def put(scripts: Any, name: str, text: str | bytes) -> None:
    (scripts.workspace / name).write_bytes(
        text if isinstance(text, bytes) else text.encode()
    )


def png(path: Path) -> tuple[int, int, int]:
    """Return width, height and the number of different bytes in the rows' pixels: 1
    would be a blank page.
    """
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    place, packed = 8, b""
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        packed += (
            data[place + 8 : place + 8 + size]
            if data[place + 4 : place + 8] == b"IDAT"
            else b""
        )
        place += 12 + size
    return width, height, len(set(zlib.decompress(packed)))


def by_month(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "group": ["month(date)"], "values": ["sum(amount)"], **more}


@pytest.mark.slow
def test_a_date_that_can_be_two_is_never_read_silently(data: Any) -> None:
    """01/02/2025 is refused where it matters and noted where it is shown; other values
    or the caller decide it.
    """
    put(data, "unclear.csv", "date,amount\n01/02/2025,5\n03/04/2025,7\n")
    put(data, "days.csv", "date,amount\n01/02/2025,5\n13/02/2025,7\n")
    put(data, "months.csv", "date,amount\n01/02/2025,5\n02/13/2025,7\n")
    put(data, "points.csv", "date,amount\n01.02.2025 10:30,5\n03.02.2025 11:00,7\n")
    put(data, "same.csv", "date,amount\n02/02/2025,5\n02/02/25,7\n")
    put(
        data,
        "words.csv",
        "date,amount\n1 Feb 2025,5\nFebruary 2025,7\n2025-02-03T10:00:00Z,1\n",
    )
    calls = [
        by_month("unclear.csv"),
        {"path": "unclear.csv", "values": ["max(date)"]},
        {
            "path": "unclear.csv",
            "where": [{"column": "date", "op": ">=", "value": "2025-02"}],
        },
        {"path": "unclear.csv"},
        {"path": "unclear.csv", "values": ["sum(amount)"]},
        by_month("unclear.csv", date_format="day first"),
        by_month("unclear.csv", date_format="month first"),
        *(
            by_month(f"{name}.csv")
            for name in ("days", "months", "points", "same", "words")
        ),
    ]

    answers = data.call_each(calls, "query")

    for answer in answers[:3]:
        assert (
            answer.error["message"]
            == "dates of 'date' such as 01/02/2025 can be read in two ways"
        )
        assert (
            answer.error["details"] == {"path": "/date_format"}
            and "Ask the user" in answer.error["suggested_action"]
        )
    listed, summed, *grouped = [answer.document for answer in answers[3:]]
    assert listed["notes"] == [
        "date: '01/02/2025' can be two dates; ask the user, then send date_format."
    ]
    assert summed == {
        "columns": ["sum(amount)"],
        "rows": [[12]],
        "row_count": 1,
        "rows_used": 2,
    }
    assert [answer["rows"] for answer in grouped] == [
        [["2025-02", 5], ["2025-04", 7]],
        [["2025-01", 5], ["2025-03", 7]],
        [["2025-02", 12]],
        [["2025-01", 5], ["2025-02", 7]],
        [["2025-02", 12]],
        [["2025-02", 12]],
        [["2025-02", 13]],
    ]
    assert [answer.get("notes") for answer in grouped] == [
        None,
        None,
        ["date: dates such as '01/02/2025' are read day first, as other values show."],
        [
            "date: dates such as '01/02/2025' are read month first, as other values "
            "show."
        ],
        [
            "date: dates such as '01.02.2025 10:30' are read day first, as is usual "
            "with points; else send date_format."
        ],
        None,
        None,
    ]


def test_a_first_row_that_is_data_is_noticed(data: Any) -> None:
    """Values of one form with those below are data; names, years and months above
    numbers are a header.
    """
    put(data, "data.csv", "2025-01-01,North,100\n2025-01-02,South,200\n")
    put(data, "years.csv", "region,2023,2024\nNorth,100,120\n")
    put(data, "months.csv", "region,2025-01,2025-02\nNorth,100,120\n")
    put(data, "twelve.csv", "1,2,3\n10,11,12\n")
    put(data, "again.csv", "North,Alice\nSouth,Bob\nNorth,Carl\nSouth,Alice\n")
    put(data, "mail.csv", "Ann,ann@x.org\nBob,bob@y.org\n")
    calls = [
        {"path": f"{name}.csv"}
        for name in ("data", "years", "months", "twelve", "again", "mail")
    ]
    calls += [
        {"path": "data.csv", "has_header": True},
        {"path": "twelve.csv", "has_header": False},
    ]

    documents = [answer.document for answer in data.call_each(calls, "query")]

    assert [(document["columns"], document["row_count"]) for document in documents] == [
        (["column1", "column2", "column3"], 2),
        (["region", "2023", "2024"], 1),
        (["region", "2025-01", "2025-02"], 1),
        (["1", "2", "3"], 1),
        (["North", "Alice"], 3),
        (["column1", "column2"], 2),
        (["2025-01-01", "North", "100"], 1),
        (["column1", "column2", "column3"], 2),
    ]
    assert documents[4]["notes"] == [
        "'North' of the first row is also a value below; send has_header: false if it "
        "is data."
    ]
    (note,) = documents[0]["notes"]
    assert (
        note.startswith("The first row looks like data (2025-01-01, North, 100)")
        and "has_header: true" in note
    )


def test_one_bad_row_is_counted_and_shown(data: Any) -> None:
    """A row of another length, a line that is not JSON, a word or a sign for a gap
    among numbers: left out, noted.
    """
    put(data, "row.csv", "a,b,c\n" + "1,2,3\n" * 20 + "4,5\n" + "7,8,9\n")
    put(data, "line.jsonl", '{"c": 3}\n' * 20 + '{"c": \n{"c": 9}\n')
    put(data, "word.csv", "c\n" + "3\n" * 20 + "much\n9\n")
    put(data, "gap.csv", "id,c\n1,10\n2,20\n3,n/a\n4,40\n")
    put(data, "rows.csv", "a,c\n1,2\n3\n4,5\n6,7,8\n9,10\n")
    put(data, "total.csv", "a,c\n" + "x,3\n" * 20 + "y,9\nTotal,69\n")
    names = ("row.csv", "line.jsonl", "word.csv", "gap.csv", "rows.csv", "total.csv")
    calls = [{"path": name, "values": ["sum(c)"]} for name in names]

    documents = [answer.document for answer in data.call_each(calls, "query")]

    assert [document["rows"] for document in documents] == [
        [[69]],
        [[69]],
        [[69]],
        [[70]],
        [[17]],
        [[138]],
    ]
    assert [document["notes"] for document in documents] == [
        [
            "1 of 22 rows could not be read and is left out: "
            "line 22: '4,5' (expected values: 3 found: 2, delimiter ',')."
        ],
        ["1 of 22 lines are not JSON and are left out: line 21: '{\"c\":'."],
        ["c: 1 value(s) are not numbers and are left out: 'much' (row 21)."],
        ["c: 1 value(s) such as 'n/a' are missing values."],
        [
            "2 of 5 rows could not be read and are left out: line 3: '3' (expected "
            "values: 2 found: 1, delimiter ',')."
        ],
        ["The last row looks like a total of 'c'; leave it out with where."],
    ]


def test_numbers_are_read_as_they_are_written(data: Any) -> None:
    """Currencies, units, thousands, decimal commas, identifiers; what could be either
    is noted, and can be sent.
    """
    put(
        data,
        "euro.csv",
        "price;share;id;mixed\n1.234,50 €;5%;007;5 €\n-7,25 €;1,5%;123;6 $\n",
    )
    put(data, "us.csv", 'price,big\n"$1,234.50",1e3\n$-7.25,2.5E2\n')
    put(data, "unclear.csv", 'price\n"1,234"\n"2,500"\n')
    figures = {"values": ["sum(price)", "count()"]}
    calls = [
        {"path": "euro.csv", "values": ["sum(price)", "sum(share)", "min(id)"]},
        {"path": "euro.csv", "values": ["sum(mixed)"]},
        {"path": "us.csv", "values": ["sum(price)", "sum(big)"]},
        {"path": "unclear.csv"} | figures,
        {"path": "unclear.csv", "decimal_comma": True} | figures,
    ]

    euro, mixed, dollar, unclear, sent = data.call_each(calls, "query")

    assert euro.document["rows"] == [[1227.25, 6.5, "007"]]
    assert euro.document["notes"] == [
        "price: the numbers are in '€'.",
        "share: the numbers are in '%'.",
    ]
    assert (
        mixed.error["message"]
        == "'mixed' is not one quantity: '6 $' and '5 €' are not in one unit"
    )
    assert dollar.document["rows"] == [[1227.25, 1250]]
    assert unclear.document["rows"] == [[3734, 2]]
    assert unclear.document["notes"] == [
        "price: '1,234' is read with a decimal point; if that is wrong, send "
        "decimal_comma: true."
    ]
    assert sent.document["rows"] == [[3.734, 2]] and "notes" not in sent.document


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            ["50%", "0.25"],
            "'0.25' and '50%' are not in one unit; 1 of 2 numbers have none",
        ),
        (
            ["1.5M", "300"],
            "'300' and '1.5M' are not in one unit; 1 of 2 numbers have none",
        ),
        (
            ["2 t", "500", "7"],
            "'500' and '2 t' are not in one unit; 2 of 3 numbers have none",
        ),
        (["$5", "300"], "'300' and '$5' are not in one unit; 1 of 2 numbers have none"),
    ],
)
@pytest.mark.quick_cases(
    ["values0-'0.25' and '50%' are not in one unit; 1 of 2 numbers have none"]
)
def test_numbers_with_and_without_a_unit_are_not_one_quantity(
    data: Any, values: list[str], said: str
) -> None:
    """No figure, order or comparison is made of them, and the summary says so; the rows
    can be listed and counted.
    """
    put(data, "mixed.csv", "k,v\n" + "".join(f"x,{value}\n" for value in values))
    calls = [{"values": [f"{figure}(v)"]} for figure in ("sum", "mean", "max")]
    calls += [
        {"sort": "v"},
        {"where": [{"column": "v", "op": ">", "value": 1}]},
        {"values": ["count(v)"]},
    ]

    *refused, counted = data.call_each(
        [{"path": "mixed.csv"} | call for call in calls], "query"
    )
    summary = data.call({"path": "mixed.csv"}, "summary").document

    assert {answer.error["message"] for answer in refused} == {
        f"'v' is not one quantity: {said}"
    }
    assert counted.document["rows"] == [[len(values)]]
    assert summary["columns"][1]["notes"] == [f"{said}."]


def test_one_unit_and_exponents_are_one_quantity(data: Any) -> None:
    """An exponent is not a unit; a gap has none."""
    put(data, "same.csv", "a,b\n2 t,1e3\n5 t,7\n-,2.5E1\n")

    document = data.call(
        {"path": "same.csv", "values": ["sum(a)", "sum(b)"]}, "query"
    ).document

    assert document["rows"] == [[7, 1032]]
    assert document["notes"] == [
        "a: the numbers are in 't'; 1 value(s) such as '-' are missing values."
    ]


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("=", "2025-02-01"),
        ("=", "2025-02"),
        ("=", "1/2/2025"),
        ("!=", "2025-02-01"),
        ("in", ["2025-Q1", "2025-02-01"]),
        ("not_in", ["2025"]),
    ],
)
@pytest.mark.quick_cases(["=-2025-02-01", "=-2025-02", "=-1/2/2025", "in-value4"])
def test_a_date_that_can_be_two_is_not_compared(
    data: Any, operator: str, value: Any
) -> None:
    """Equal or not, one or several, a day or a period: date_format decides first; other
    texts compare.
    """
    put(data, "unclear.csv", "date,n\n01/02/2025,1\n03/04/2025,2\n01/02/2025,4\n")
    call = {
        "path": "unclear.csv",
        "values": ["count()"],
        "where": [{"column": "date", "op": operator, "value": value}],
    }
    decided = {
        "where": [{"column": "date", "op": "=", "value": "2025-02"}],
        "date_format": "day first",
    }
    other = {"where": [{"column": "date", "op": "=", "value": "soon"}]}

    refused, known, text = data.call_each([call, call | decided, call | other], "query")

    assert (
        refused.error["message"]
        == "dates of 'date' such as 01/02/2025 can be read in two ways"
    )
    assert (known.document["rows"], text.document["rows"]) == ([[2]], [[0]])


def test_a_line_needs_an_axis_in_order(data: Any) -> None:
    """Dates that can be two have none, in groups and in rows; nothing is written."""
    put(data, "unclear.csv", "date,n\n01/02/2025,1\n03/04/2025,2\n")
    calls = [{"group": ["date"], "values": ["sum(n)"]}, {"values": ["date", "n"]}]
    sent = [{"path": "unclear.csv", "chart": "line"} | call for call in calls]

    refused = data.call_each(sent, "query")
    drawn = data.call(sent[0] | {"date_format": "month first"}, "query").document

    assert {answer.error["message"] for answer in refused} == {
        "dates of 'date' such as 01/02/2025 can be read in two ways"
    }
    assert drawn["rows"] == [["2025-01-02", 1], ["2025-03-04", 2]]


def test_growth_is_from_what_is_above_zero(data: Any) -> None:
    """Growth from -10 to 10, or from 0, has no meaning in per cent and is null; growth
    to 0 is -100 %.
    """
    put(
        data,
        "t.csv",
        "date,amount\n"
        "2025-01-01,-10\n"
        "2025-02-01,10\n"
        "2025-03-01,0\n"
        "2025-04-01,5\n"
        "2025-05-01,10\n",
    )

    document = data.call(by_month("t.csv", add=["growth"]), "query").document

    assert [row[2] for row in document["rows"]] == [None, None, -1, None, 1]
    assert document["notes"] == [
        "The period before has a value not above zero, so there is no growth for "
        "2025-02, 2025-04."
    ]


@pytest.mark.slow
def test_names_and_conditions_that_do_not_fit_are_explained(data: Any) -> None:
    """What is wrong, where, and the nearest that would be right; nothing that is sent
    is SQL.
    """
    put(data, "sales.csv", SALES)
    put(data, "other.csv", "area,boss\nEast,Ada\n")
    wrong: list[tuple[dict[str, Any], str, str]] = [
        ({"values": ["sum(amuont)"]}, "'sales.csv' has no column 'amuont'", "'amount'"),
        ({"group": ["month(dya)"]}, "'sales.csv' has no column 'dya'", "'day'"),
        (
            {"values": ["summe(amount)"]},
            "there is no function 'summe' in 'summe(amount)'",
            "sum, mean",
        ),
        (
            {"values": ["sum(region)"]},
            "'region' is text, not numeric",
            "numeric column",
        ),
        ({"group": ["month(region)"]}, "'region' is text, not a date", "dates"),
        (
            {"values": ["sum(sum(amount))"]},
            "sum() cannot stand inside sum() in 'sum(sum(amount))'",
            "sum(amount)",
        ),
        (
            {"values": ["amount / sum(amount)"]},
            "a figure and a column are mixed in 'amount / sum(amount)'",
            "sum(a * b)",
        ),
        ({"values": ["sum(amount"]}, "')' is missing in 'sum(amount'", "sum(amount)"),
        (
            {"values": ["amount; DROP TABLE data"]},
            "cannot read '; DROP TABLE data' in 'amount; DROP TABLE data'",
            "column",
        ),
        (
            {"values": ["amount"], "group": ["region"]},
            "'amount' has many values in each group",
            "sum(amount)",
        ),
        (
            {"group": ["sum(amount)"]},
            "'sum(amount)' is a figure, not a group",
            "values",
        ),
        (
            {"values": ["mean(units)"], "group": ["region"], "add": ["share"]},
            "share of 'mean(units)' has no meaning: its values do not add up",
            "sum",
        ),
        (
            {"values": ["sum(units)"], "group": ["region"], "add": ["growth"]},
            "growth and running totals need a group in time",
            "month(date)",
        ),
        (
            {"where": [{"column": "amount", "op": ">", "value": "much"}]},
            "'much' cannot be compared with 'amount', which is numeric",
            "1000",
        ),
        (
            {"where": [{"column": "day", "op": "=", "value": "1/2/24"}]},
            "'1/2/24' cannot be compared with 'day', which is temporal",
            "2025-Q1",
        ),
        ({"where": [{"column": "day", "op": "="}]}, "'=' needs a value", "empty"),
        (
            {"where": [{"colum": "day", "op": "="}]},
            "there is no parameter 'colum'",
            "'column'",
        ),
        (
            {"values": ["sum(units)"], "sort": "region"},
            "the result has no column 'region'",
            "sum(units)",
        ),
        (
            {"find": "outliers", "group": ["region"]},
            "find looks at rows, not at groups",
            "values",
        ),
        ({"output_path": "result.png"}, "'result.png' does not end in .csv", "chart"),
        (
            {"join": {"path": "other.csv", "on": ["region"]}},
            "'other.csv' has no column 'region'",
            "area",
        ),
        (
            {"join": {"path": "other.csv", "on": ["region = area"]}},
            (
                "no row of the two files fits: 'sales.csv' has 'North' and 'other.csv' "
                "has 'East'"
            ),
            "on",
        ),
        (
            {"join": {"path": "othr.csv", "on": ["region"]}},
            "'othr.csv' does not exist in the workspace",
            "other.csv",
        ),
    ]

    errors = [
        answer.error
        for answer in data.call_each(
            [{"path": "sales.csv"} | sent for sent, _, _ in wrong], "query"
        )
    ]

    assert [error["message"] for error in errors] == [
        message for _, message, _ in wrong
    ]
    for error, (_, _, hint) in zip(errors, wrong, strict=True):
        assert hint in error["suggested_action"] and error["code"] in (
            "INVALID_INPUT",
            "MISSING_REQUIRED_PARAM",
        )


def test_columns_of_any_name_can_be_used(data: Any) -> None:
    """Names with blanks, signs, brackets, other scripts, and names of functions; in
    other case too.
    """
    put(
        data,
        "odd.csv",
        'Unit price (EUR),price/unit,sum,销售额,a-b,"quoted ""name"""\n'
        "2,3,4,5,6,7\n"
        "8,9,10,11,12,13\n",
    )
    names = ["unit price (eur)", "price/unit", "sum", "销售额", "a-b", 'quoted "name"']
    figures = [f"sum({name})" for name in names]

    document = data.call(
        {
            "path": "odd.csv",
            "values": [*figures, "sum(a-b - sum)", "COUNT(DISTINCT a-b)"],
        },
        "query",
    ).document

    assert document["rows"] == [[10, 12, 14, 16, 18, 20, 4, 2]]


@pytest.mark.slow
def test_conditions_compare_as_a_person_means_it(data: Any) -> None:
    """Without regard to case, periods as a whole, rows without a value kept by !=; an
    unknown value is noted.
    """
    put(
        data,
        "t.csv",
        "name,at,n\n"
        "North,2025-03-31 23:59,1\n"
        "north ,2025-04-01 00:00,2\n"
        ",2025-12-31,3\n"
        "Süd,2024-12-31,4\n",
    )
    conditions: list[tuple[dict[str, Any], int]] = [
        ({"column": "name", "op": "=", "value": "NORTH"}, 3),
        ({"column": "name", "op": "!=", "value": "north"}, 7),
        ({"column": "name", "op": "in", "value": ["süd", "north"]}, 7),
        ({"column": "name", "op": "not_in", "value": ["north"]}, 7),
        ({"column": "name", "op": "contains", "value": "ÜD"}, 4),
        ({"column": "name", "op": "empty"}, 3),
        ({"column": "name", "op": "not_empty"}, 7),
        ({"column": "at", "op": "<=", "value": "2025-03"}, 5),
        ({"column": "at", "op": ">", "value": "2025-Q1"}, 5),
        ({"column": "at", "op": "=", "value": "2025"}, 6),
        ({"column": "at", "op": "<", "value": "2025-04-01"}, 5),
        ({"column": "at", "op": "=", "value": "2025-04-01 00:00"}, 2),
        ({"column": "month(at)", "op": "=", "value": "2025-03"}, 1),
        ({"column": "n", "op": ">=", "value": "3"}, 7),
        ({"column": "n * 2", "op": ">", "value": 7}, 4),
    ]
    calls = [
        {"path": "t.csv", "values": ["sum(n)"], "where": [entry]}
        for entry, _ in conditions
    ]
    calls += [
        {
            "path": "t.csv",
            "values": ["sum(n)"],
            "where": [{"column": "name", "op": "=", "value": "Nort"}],
        }
    ]
    calls += [{"path": "t.csv", "values": ["sum(n)"], "group": ["name"]}]

    *answers, missing, grouped = [
        answer.document for answer in data.call_each(calls, "query")
    ]

    assert [answer["rows"][0][0] for answer in answers] == [
        expected for _, expected in conditions
    ]
    assert missing["notes"] == [
        "No row has 'Nort' in name; it has values such as 'North', 'north'.",
        "No row fits where.",
    ]
    assert grouped["notes"] == ["name: 'North' and 'north' are two groups."]


def test_a_join_counts_each_row_once_and_says_what_is_left_over(data: Any) -> None:
    """Also where both files repeat a key; keys compare by their values, dates as the
    periods that are asked for.
    """
    put(
        data,
        "orders.csv",
        "id,shop,day,amount\n"
        "1,A,2025-01-05,10\n"
        "2,A,2025-01-09,20\n"
        "3,b,2025-02-01,40\n"
        "4,,2025-02-02,80\n",
    )
    put(
        data,
        "plans.csv",
        "shop,month,plan\nA,Jan 2025,100\nA,Feb 2025,7\nB,Feb 2025,50\nC,Feb 2025,1\n",
    )
    put(data, "kinds.csv", "shop,kind\na,big\nÜ,small\n")
    put(data, "visits.csv", "shop,visitors,amount\nA,5,1\nA,6,1\nB,7,1\n")
    months = {
        "join": {"path": "plans.csv", "on": ["shop", "month(day) = month"]},
        "group": ["shop"],
    }
    twice = {
        "join": {"path": "visits.csv", "on": ["shop"]},
        "group": ["shop"],
        "sort": "shop",
    }
    calls = [
        {
            "path": "orders.csv",
            "values": ["sum(amount)", "sum(plan)", "count()"],
            "sort": "shop asc",
        }
        | months,
        {
            "path": "orders.csv",
            "values": ["sum(amount)", "sum(visitors)", "sum(visits.amount)"],
        }
        | twice,
        {
            "path": "orders.csv",
            "join": {"path": "kinds.csv", "on": ["shop"]},
            "values": ["count()"],
        },
    ]

    plans, visits, kinds = [
        answer.document for answer in data.call_each(calls, "query")
    ]

    assert plans["rows"] == [["A", 30, 100, 2], ["b", 40, 50, 1], [None, 80, None, 1]]
    assert plans["notes"] == [
        "1 of 4 rows of orders.csv have no row in plans.csv: '2025-02'.",
        "2 of 4 rows of plans.csv have no row in orders.csv.",
    ]
    assert (
        kinds["notes"][0]
        == "2 of 4 rows of orders.csv have no row in kinds.csv: without a value, 'b'."
    )
    assert visits["rows"] == [["A", 30, 11, 2], ["b", 40, 7, 1], [None, 80, None, None]]
    assert visits["notes"][1].startswith(
        "Rows of orders.csv fit up to 2 rows of visits.csv"
    )


def test_a_period_without_rows_is_not_skipped(data: Any) -> None:
    """Growth is to the period before in the calendar, for each of the other groups,
    over years and weeks.
    """
    put(
        data,
        "gap.csv",
        "date,kind,amount\n"
        "2024-12-30,a,10\n"
        "2025-01-31,a,15\n"
        "2025-03-01,a,30\n"
        "2025-03-02,b,5\n",
    )
    calls = [
        by_month(
            "gap.csv",
            add=["growth"],
            where=[{"column": "kind", "op": "=", "value": "a"}],
        ),
        by_month("gap.csv", add=["growth", "share"])
        | {"group": ["month(date)", "kind"]},
        by_month("gap.csv") | {"group": ["week(date)"]},
    ]

    months, kinds, weeks = [
        answer.document for answer in data.call_each(calls, "query")
    ]

    assert months["rows"] == [
        ["2024-12", 10, None],
        ["2025-01", 15, 0.5],
        ["2025-03", 30, None],
    ]
    assert months["notes"] == [
        "The period before has no value, so there is no growth for 2025-03."
    ]
    assert [row[3:] for row in kinds["rows"]] == [
        [None, 1],
        [0.5, 1],
        [None, 0.857143],
        [None, 0.142857],
    ]
    assert [row[0] for row in weeks["rows"]] == ["2025-W01", "2025-W05", "2025-W09"]


@pytest.mark.slow
def test_an_empty_table_and_a_large_one_are_answered(data: Any) -> None:
    """A header without rows; a hundred thousand rows, with sums that are exact to the
    cent.
    """
    put(data, "head.csv", "date,amount\n")
    put(
        data,
        "large.csv",
        "date,amount\n"
        + "".join(
            f"2025-{1 + n % 12:02d}-01,{n % 997}.{n % 100:02d}\n"
            for n in range(100_000)
        ),
    )
    cents = [0] * 12
    for number in range(100_000):
        cents[number % 12] += number % 997 * 100 + number % 100

    head, large = [
        answer.document
        for answer in data.call_each(
            [
                {"path": "head.csv", "values": ["sum(amount)", "count()"]},
                by_month("large.csv"),
            ],
            "query",
        )
    ]

    assert head["rows"] == [[None, 0]]
    assert [row[1] for row in large["rows"]] == [amount / 100 for amount in cents]


@pytest.mark.parametrize(
    ("arguments", "columns", "rows"),
    [
        (
            {"chart": "bar", "group": ["region"], "values": ["sum(amount)"]},
            ["region", "sum(amount)"],
            [["North", 636], ["South", 630]],
        ),
        (
            {
                "chart": "line",
                "group": ["day"],
                "values": ["mean(amount)", "max(units) as most"],
            },
            ["day", "mean(amount)", "most"],
            [
                ["2024-01-01", 104.5, 9],
                ["2024-02-01", 105.5, 10],
                ["2024-03-01", 106.5, 11],
            ],
        ),
        (
            {
                "chart": "bar",
                "group": ["month(day)", "region"],
                "values": ["count()"],
                "title": "Rows, $ and 日",
            },
            ["month(day)", "region", "count()"],
            [
                [f"2024-0{month}", region, 2]
                for month in (1, 2, 3)
                for region in ("North", "South")
            ],
        ),
        (
            {
                "chart": "scatter",
                "values": ["units", "amount", "region"],
                "where": [{"column": "amount", "op": "<", "value": 102}],
            },
            ["units", "amount", "region"],
            [[0, 100, "South"], [1, 101, "North"]],
        ),
        (
            {"chart": "histogram", "values": ["amount"], "limit": 2},
            ["amount from", "count"],
            [[100, 1], [100.55, 1]],
        ),
    ],
    ids=["bar", "line", "series", "scatter", "histogram"],
)
@pytest.mark.quick_cases(["bar"])
def test_a_chart_shows_the_figures_of_the_answer(
    data: Any, arguments: dict[str, Any], columns: Any, rows: Any
) -> None:
    """Each kind gives a PNG with something on it, and the figures drawn."""
    put(data, "sales.csv", SALES)

    document = data.call(
        {"path": "sales.csv", "output_path": "out/c.png", **arguments}, "query"
    ).document

    assert (document["columns"], document["rows"], document["output_path"]) == (
        columns,
        rows,
        "out/c.png",
    )
    width, height, shades = png(data.workspace / "out" / "c.png")
    assert (width, height) == (1350, 780) and shades > 20


@pytest.mark.slow
def test_charts_keep_to_their_limits(data: Any) -> None:
    """More than 5,000 points are thinned, more than six series dropped, and both are
    said.
    """
    rows = "".join(
        f"{index},{index % 97},{'abcdefgh'[index % 8]}\n" for index in range(8000)
    )
    put(data, "many.csv", "x,y,s\n" + rows)

    document = data.call(
        {"path": "many.csv", "chart": "scatter", "values": ["x", "y", "s"], "limit": 1},
        "query",
    ).document

    assert document["notes"] == [
        "8000 points: one in 2 is drawn.",
        "These are the first 1 of 8000 rows.",
    ]
    series = {
        "path": "many.csv",
        "chart": "bar",
        "group": ["bin(x, 4000)", "s"],
        "values": ["sum(y)"],
        "overwrite": True,
    }
    assert (
        "8 series: the 6 largest are drawn."
        in data.call(series, "query").document["notes"]
    )


@pytest.mark.slow
def test_charts_that_make_no_sense_are_explained(data: Any) -> None:
    """A text as a number, a scatter of one column, several values of one x, nothing to
    draw; and no file is written.
    """
    put(data, "sales.csv", SALES)
    put(data, "none.csv", "a,b\nx,\ny,\n")
    calls = [
        {"chart": "histogram", "values": ["region"]},
        {"chart": "scatter", "values": ["units"]},
        {"chart": "bar", "values": ["region", "amount"]},
        {"chart": "bar", "group": ["region"], "values": ["min(day)"]},
        {"chart": "line", "find": "gaps"},
        {"chart": "pie", "group": ["region"]},
        {"chart": "bar", "group": ["region"], "output_path": "chart.csv"},
        {"path": "none.csv", "chart": "bar", "values": ["a", "b"]},
    ]

    errors = [
        answer.error
        for answer in data.call_each(
            [{"path": "sales.csv"} | call for call in calls], "query"
        )
    ]

    assert [error["message"] for error in errors] == [
        "'region' is text, not numeric",
        "a scatter shows 2 column(s) of rows",
        "one 'region' has several values",
        "'2024-01-01' is not a number",
        "what find returns is not drawn",
        '"pie" is not one of bar, line, scatter, histogram',
        "'chart.csv' does not end in .png",
        "there is nothing to draw: no row has all values",
    ]
    assert sorted(path.name for path in data.workspace.iterdir()) == [
        "none.csv",
        "sales.csv",
    ]


@pytest.mark.slow
def test_results_are_written_whole_and_other_files_stay(data: Any) -> None:
    """The CSV has all rows, the answer the first; the same again changes nothing, other
    content needs overwrite.
    """
    put(data, "sales.csv", SALES)
    arguments = {
        "path": "sales.csv",
        "group": ["day"],
        "values": ["sum(amount)"],
        "limit": 1,
        "output_path": "r.csv",
    }

    first, again = (data.call(arguments, "query").document for _ in range(2))
    other = data.call({**arguments, "group": ["region"]}, "query")
    forced = data.call({**arguments, "group": ["region"], "overwrite": True}, "query")
    source = data.call({**arguments, "output_path": "sales.csv"}, "query")
    drawn = [
        data.call(
            {**arguments, "output_path": "c.png", "chart": "line"}, "query"
        ).document
        for _ in range(2)
    ]

    assert (
        first == again
        and first["rows"] == [["2024-01-01", 418]]
        and drawn[0] == drawn[1]
    )
    assert other.error["message"] == "'r.csv' exists already"
    assert (data.workspace / "r.csv").read_text("utf-8-sig").splitlines() == [
        "region,sum(amount)",
        "North,636",
        "South,630",
    ]
    assert (
        forced.exit_code == 0
        and source.error["message"] == "'sales.csv' exists already"
    )


@pytest.mark.processes
def test_a_query_that_draws_nothing_does_not_import_matplotlib(data: Any) -> None:
    """Nor the reader of workbooks, where there is none: matplotlib costs more than all
    the rest.
    """
    put(data, "sales.csv", SALES)
    script = (
        Path(__file__).resolve().parents[2] / "skills/data-analysis/scripts/query.py"
    )
    code = f"""if True:
        import atexit, runpy, sys
        atexit.register(lambda: print("|".join(sys.modules), file=sys.stderr))
        sys.path.insert(0, {str(script.parent)!r})
        runpy.run_path({str(script)!r}, run_name="__main__")"""
    text = (
        b'{"path": "sales.csv", "group": ["month(day)"], "values": ["sum(amount)"],'
        b' "add": ["growth"]}'
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        input=text,
        capture_output=True,
        cwd=data.workspace,
        check=False,
    )

    loaded = set(done.stderr.decode().split("|"))
    assert done.returncode == 0 and {"duckdb", "expressions"} <= loaded
    assert not loaded & {"matplotlib", "numpy", "python_calamine", "pandas", "pyarrow"}
