"""The query tool's top n of each group: of groups in groups, and of rows."""

from __future__ import annotations

import csv
from typing import Any

import pytest

pytestmark = pytest.mark.processes

ORDERS = """region,customer,order_id,month,amount
North,Ada,O1,2025-02,10
North,Ada,O2,2025-01,30
North,Bo,O3,2025-01,15
North,Cy,O4,2025-01,99
South,Ada,O5,2025-01,5
South,Bo,O6,2025-02,7
South,Di,O7,2025-02,
East,Bo,O8,2025-01,1
"""


@pytest.fixture
def orders(data: Any) -> Any:
    (data.workspace / "orders.csv").write_text(ORDERS)
    return data


def test_the_top_groups_of_each_group_stay_together(orders: Any) -> None:
    """Two customers with the largest sum in each region, in the order of the regions."""
    arguments = {
        "path": "orders.csv",
        "group": ["region", "customer"],
        "values": ["sum(amount)"],
        "limit_per_group": 2,
    }

    answer = orders.call(arguments, "query").document

    assert answer["rows"] == [
        ["East", "Bo", 1],
        ["North", "Cy", 99],
        ["North", "Ada", 40],
        ["South", "Bo", 7],
        ["South", "Ada", 5],
    ]
    assert (answer["row_count"], answer["rows_used"]) == (5, 8)


def test_shares_count_what_the_limit_of_a_group_leaves_out(orders: Any) -> None:
    """The share of the best customer is that of the whole region."""
    arguments = {
        "path": "orders.csv",
        "group": ["region", "customer"],
        "values": ["sum(amount)"],
        "add": ["share"],
        "limit_per_group": 1,
    }

    answer = orders.call(arguments, "query").document

    assert answer["rows"] == [
        ["East", "Bo", 1, 1],
        ["North", "Cy", 99, 0.642857],
        ["South", "Bo", 7, 0.583333],
    ]


def test_sort_decides_which_come_first_in_each_group(orders: Any) -> None:
    """By a figure the smallest can come first; by the outer group its order is that
    asked for, and in it the largest figure decides.
    """
    calls = [
        {
            "path": "orders.csv",
            "group": ["region", "customer"],
            "values": ["sum(amount)", "count()"],
            "limit_per_group": 1,
            "sort": sort,
        }
        for sort in ("sum(amount) asc", "-region")
    ]

    smallest, backwards = [
        answer.document["rows"] for answer in orders.call_each(calls, "query")
    ]

    assert smallest == [
        ["East", "Bo", 1, 1],
        ["North", "Bo", 15, 1],
        ["South", "Ada", 5, 1],
    ]
    assert backwards == [
        ["South", "Bo", 7, 1],
        ["North", "Cy", 99, 1],
        ["East", "Bo", 1, 1],
    ]


def test_the_top_rows_of_each_group_are_listed(orders: Any) -> None:
    """Columns in values give rows: the largest of each region, the group before them;
    the file has the whole answer.
    """
    arguments = {
        "path": "orders.csv",
        "group": ["region"],
        "values": ["order_id", "amount"],
        "sort": "amount",
        "limit_per_group": 2,
        "limit": 3,
        "output_path": "top.csv",
    }

    answer = orders.call(arguments, "query").document

    assert answer["columns"] == ["region", "order_id", "amount"]
    assert answer["rows"] == [
        ["East", "O8", 1],
        ["North", "O4", 99],
        ["North", "O2", 30],
    ]
    assert (answer["row_count"], answer["rows_used"]) == (5, 8)
    assert answer["notes"] == ["These are the first 3 of 5 rows."]
    with (orders.workspace / "top.csv").open(encoding="utf-8-sig") as file:
        assert [*csv.reader(file)][-2:] == [["South", "O6", "7"], ["South", "O5", "5"]]


def test_conditions_come_before_the_top_rows(orders: Any) -> None:
    """Rows that do not fit where take no place; without sort the answer says that the
    file's order decided.
    """
    arguments = {
        "path": "orders.csv",
        "where": [{"column": "amount", "op": "<", "value": 30}],
        "group": ["month(month)"],
        "values": ["order_id"],
        "limit_per_group": 1,
    }

    answer = orders.call(arguments, "query").document

    assert answer["rows"] == [["2025-01", "O3"], ["2025-02", "O1"]]
    assert answer["notes"] == [
        "Without sort these are the rows of each group that come first in the file."
    ]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"group": ["region"], "values": ["sum(amount)"]}, "/limit_per_group"),
        ({"values": ["order_id"]}, "/limit_per_group"),
        ({"values": ["sum(amount)"]}, "/limit_per_group"),
        ({"find": "duplicates"}, "/find"),
        ({"group": ["region"], "values": ["order_id"], "add": ["share"]}, "/add"),
    ],
)
def test_a_limit_that_limits_nothing_is_refused(
    orders: Any, arguments: dict[str, Any], path: str
) -> None:
    """One figure a group, rows without a group, findings: the message says what to
    send.
    """
    answer = orders.call(
        {"path": "orders.csv", "limit_per_group": 3} | arguments, "query"
    )

    assert answer.error["code"] == "INVALID_INPUT"
    assert answer.error["details"] == {"path": path}
