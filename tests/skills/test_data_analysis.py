"""The summary of data files: CSV, workbooks, Parquet and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

pytestmark = pytest.mark.processes

SALES = "day,region,amount,units\n" + "".join(
    f"2024-0{1 + index % 3}-01,{'North' if index % 2 else 'South'},{100 + index},"
    f"{'' if index == 3 else index}\n"
    for index in range(12)
)


def put(scripts: Any, name: str, text: str | bytes) -> Path:
    path: Path = scripts.workspace / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def column(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in document["columns"] if entry["name"] == name)


def test_csv_summary_has_the_right_figures(data: Any) -> None:
    """Counts, gaps, range, mean, spread, quantiles and frequent values of a small file,
    worked out by hand.
    """
    put(data, "sales.csv", SALES)

    document = data.call({"path": "sales.csv", "sample_rows": 1}, "summary").document

    assert (document["format"], document["row_count"], document["column_count"]) == (
        "csv",
        12,
        4,
    )
    assert document["sample"] == [
        {"day": "2024-01-01", "region": "South", "amount": 100, "units": 0}
    ]
    units = column(document, "units")
    assert units == {
        "name": "units",
        "type": "BIGINT",
        "kind": "numeric",
        "null_count": 1,
        "null_share": 0.0833,
        "distinct_count": 11,
        "min": 0,
        "max": 11,
        "mean": 5.727272727,
        "stddev": 3.690282078,
        "quantiles": {"p05": 0.5, "p25": 3, "p50": 6, "p75": 8.5, "p95": 10.5},
    }
    assert column(document, "region")["top_values"] == [
        {"value": "North", "count": 6, "share": 0.5},
        {"value": "South", "count": 6, "share": 0.5},
    ]
    day = column(document, "day")
    assert (day["kind"], day["min"], day["max"], day["distinct_count"]) == (
        "temporal",
        "2024-01-01",
        "2024-03-01",
        3,
    )


def test_parquet_of_every_type_is_summarised(data: Any) -> None:
    """Decimals, NaN, booleans, zoned times, lists, structs, bytes, huge numbers and
    nulls all become plain JSON.
    """
    select = """
        SELECT
            1.50::DECIMAL(9, 2) AS price, 'nan'::DOUBLE AS odd, true AS flag,
            [1, 2] AS list, TIMESTAMPTZ '2024-05-01 12:00:00+02' AS at,
            {'a': 1} AS struct, 'x'::BLOB AS raw, NULL::INTEGER AS nothing,
            9223372036854775807 AS huge, repeat('y', 500) AS long
        UNION ALL SELECT
            2.25, 4.0, false, [3], TIMESTAMPTZ '2024-05-02 00:00:00Z',
            {'a': 2}, 'z'::BLOB, NULL, 1, 'y'
    """
    duckdb.sql(select).write_parquet(str(data.workspace / "types.parquet"))

    document = data.call({"path": "types.parquet"}, "summary").document

    assert (document["format"], document["row_count"]) == ("parquet", 2)
    price = column(document, "price")
    assert (price["min"], price["max"], price["mean"]) == (1.5, 2.25, 1.875)
    odd = column(document, "odd")
    assert (odd["non_finite_count"], odd["max"], odd["stddev"]) == (1, 4, None)
    assert (
        column(document, "flag")["kind"] == "boolean"
        and len(column(document, "flag")["top_values"]) == 2
    )
    assert column(document, "at")["min"] == "2024-05-01 10:00:00+00"
    assert column(document, "nothing")["notes"] == ["Every value is missing."]
    assert column(document, "huge")["max"] == 2**63 - 1
    assert [column(document, name)["kind"] for name in ("list", "struct", "raw")] == [
        "other"
    ] * 3
    assert len(document["sample"][0]["long"]) == 200


def test_json_lines_and_text_formats_are_read(data: Any) -> None:
    """JSON lines with missing keys, a semicolon file, a tab file, cp1252, a preamble
    and a file without a header.
    """
    put(data, "a.jsonl", '{"id": 1, "tag": "x"}\n{"id": 2}\n')
    put(data, "b.csv", "id;price\n1;2,5\n2;3,5\n")
    put(data, "c.tsv", "id\tname\n1\tAda\n")
    put(data, "d.csv", "name,n\nMüller,1\n".encode("cp1252"))
    put(data, "e.csv", "Report of 2024\n\nid,n\n1,2\n")
    put(data, "f.csv", "1,2\n3,4\n")
    put(data, "data[1].csv", "right\n1\n")
    put(data, "data1.csv", "wrong\n1\n")
    calls = [
        {"path": "a.jsonl"},
        {"path": "b.csv"},
        {"path": "c.tsv"},
        {"path": "d.csv", "encoding": "cp1252"},
        {"path": "e.csv"},
        {"path": "f.csv", "has_header": False},
        {"path": "data[1].csv"},
    ]

    documents = [answer.document for answer in data.call_each(calls, "summary")]

    assert [
        [entry["name"] for entry in document["columns"]] for document in documents
    ] == [
        ["id", "tag"],
        ["id", "price"],
        ["id", "name"],
        ["name", "n"],
        ["id", "n"],
        ["column1", "column2"],
        ["right"],
    ]
    assert column(documents[0], "tag")["null_count"] == 1
    assert documents[3]["sample"] == [{"name": "Müller", "n": 1}]
    assert documents[1]["sample"] == [{"id": 1, "price": 2.5}, {"id": 2, "price": 3.5}]
    assert documents[4]["warnings"] == ["1 line(s) above the table are skipped."]
    assert documents[5]["row_count"] == 2


def test_dirty_columns_are_pointed_out(data: Any) -> None:
    """A column that is numeric but for a few words says so, with the words; a sign for
    a gap is a gap; a constant.
    """
    rows = "".join(
        f"{'much' if index == 7 else index},{'-' if index == 8 else 5},EUR\n"
        for index in range(20)
    )
    put(data, "dirty.csv", "amount,rate,currency\n" + rows)

    document = data.call({"path": "dirty.csv"}, "summary").document

    assert column(document, "amount")["notes"] == [
        "19 of 20 values are numbers, stored as text; others: 'much'."
    ]
    assert column(document, "rate")["null_count"] == 1
    assert column(document, "rate")["notes"] == [
        "1 value(s) such as '-' are missing values."
    ]
    assert column(document, "currency")["notes"] == ["Every row has the same value."]


def test_columns_can_be_chosen(data: Any) -> None:
    """Named columns only, in their order, in any case; of a wide file the first fifty,
    and a warning.
    """
    put(data, "sales.csv", SALES)
    names = [f"c{index}" for index in range(60)]
    put(data, "wide.csv", ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    put(data, "head.csv", "a,b\n")
    calls = [
        {"path": "sales.csv", "columns": ["units", "REGION"]},
        {"path": "wide.csv"},
        {"path": "head.csv"},
    ]

    chosen, wide, head = [
        answer.document for answer in data.call_each(calls, "summary")
    ]

    assert [entry["name"] for entry in chosen["columns"]] == ["units", "region"]
    assert len(wide["columns"]) == 50 and wide["column_count"] == 60
    assert wide["warnings"][0].endswith(
        "name others in columns: " + ", ".join(names[50:])
    )
    assert head["row_count"] == 0 and head["warnings"] == [
        "The file has columns and no rows."
    ]


def test_unusable_files_are_explained(data: Any) -> None:
    """Each wrong file or parameter is one error that says what would be right."""
    put(data, "sales.csv", SALES)
    put(data, "empty.csv", "")
    put(data, "open.csv", 'a,b\n1,"2\n3,4\n5,6\n7,8\n')
    put(data, "loose.csv", "a,b\n" + '1,"2,000"\n' + "1,2,000\n" * 9)
    put(data, "latin.csv", "name\nMüller\n".encode("latin-1"))
    put(data, "bad.parquet", "no parquet at all")
    put(data, "bad.jsonl", '{"a": 1}\n{"a":\n')
    put(data, "picture.csv", b"\x89PNG\r\n\x1a\n")
    put(data, "bad.xlsx", b"PK\x03\x04 and no more")
    put(data, "bad.csv.gz", b"\x1f\x8b and no more")
    names = [
        "sale.csv",
        "empty.csv",
        "open.csv",
        "loose.csv",
        "latin.csv",
        "bad.parquet",
        "bad.jsonl",
        "picture.csv",
    ]
    calls: list[dict[str, Any]] = [
        {"path": name} for name in [*names, "bad.xlsx", "bad.csv.gz"]
    ]
    calls += [{"path": "sales.csv", "columns": ["amuont"]}, {"path": "/etc/passwd"}]

    errors = [answer.error for answer in data.call_each(calls, "summary")]

    said = [error["message"] for error in errors]
    assert (
        said[0] == "'sale.csv' does not exist in the workspace"
        and "sales.csv" in errors[0]["suggested_action"]
    )
    assert said[1] == "'empty.csv' is empty (0 bytes)"
    assert (
        said[2].startswith("'open.csv' is not one table: line 2: '1,\"2")
        and "unterminated quote" in said[2]
    )
    assert said[3].startswith(
        "'loose.csv' is not one table: line 3: '1,2,000' (expected values: 2 found: 3"
    )
    assert (
        said[4] == "'latin.csv' is not UTF-8 text"
        and "cp1252 gives 'Müller'" in errors[4]["suggested_action"]
    )
    assert said[5] == "'bad.parquet' is not a data file"
    assert said[6].startswith("'bad.jsonl' cannot be read as json")
    assert said[7] == "'picture.csv' is not a data file"
    assert said[8].startswith("'bad.xlsx' cannot be read as a workbook")
    assert said[9].startswith("'bad.csv.gz' cannot be read")
    assert said[10] == "'sales.csv' has no column 'amuont'"
    assert (
        errors[10]["suggested_action"]
        == "Did you mean 'amount'? It has: day, region, amount, units."
    )
    assert said[11] == "'/etc/passwd' is not a file inside the workspace"
    assert {error["code"] for error in errors} == {"INVALID_INPUT"}


def test_summary_leaves_nothing_in_the_workspace(data: Any) -> None:
    """DuckDB's temporary files stay elsewhere: what appears in a workspace is reported
    as the skill's output.
    """
    put(data, "sales.csv", SALES)

    data.call({"path": "sales.csv"}, "summary")

    assert [path.name for path in data.workspace.iterdir()] == ["sales.csv"]


def test_answers_are_strict_json(data: Any) -> None:
    """No NaN or Infinity reaches the caller: not every JSON reader takes them."""
    duckdb.sql(
        "SELECT 'inf'::DOUBLE AS x UNION ALL SELECT 'nan'::DOUBLE"
    ).write_parquet(str(data.workspace / "odd.parquet"))

    document = data.call({"path": "odd.parquet"}, "summary").document

    assert (
        json.loads(json.dumps(document, allow_nan=False))["columns"][0][
            "non_finite_count"
        ]
        == 2
    )
