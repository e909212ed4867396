"""The data of the repair benchmark, how answers are judged, and what this library makes
of the data.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from skillruntime import SkillInputError, repair

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks" / "repair_benchmark"
sys.path[:0] = [str(FOLDER)]

from repair_benchmark import cases, data_version  # noqa: E402
from repair_benchmark.cases import REFUSE, SETS, kind_of_answer  # noqa: E402
from repair_benchmark.ids import digest, recorded  # noqa: E402
from repair_benchmark.judging import fitting, outcome  # noqa: E402
from repair_benchmark.running import question  # noqa: E402

DATA = FOLDER / "repair_benchmark" / "data"
ALL = cases()
WRITTEN = [pytest.param(each, id=each["id"]) for each in ALL if "kind" not in each]
GENERATED = [each for each in ALL if "kind" in each]

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "default": 10},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def case(payload: Any, answer: Any, **others: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "payload": payload, "answer": answer, **others}


def test_there_are_160_payloads_of_public_threads() -> None:
    """Each has the address of its thread."""
    rows = [each for each in ALL if "thread" in each]

    assert len(rows) == 160
    assert all(row["thread"].startswith("https://github.com/") for row in rows)


def test_each_case_is_in_one_set() -> None:
    """The sets together have every case once."""
    ids = Counter(each["id"] for name in SETS for each in cases(name))

    assert set(ids.values()) == {1}
    assert sorted(ids) == sorted(each["id"] for each in ALL)


def test_an_id_always_means_the_same_case() -> None:
    """The schema and payload of each id are those that were recorded with it."""
    known = recorded()

    changed = [each["id"] for each in ALL if known.get(each["id"]) != digest(each)]

    assert changed == []


def test_an_id_that_was_given_is_never_lost() -> None:
    """An id without a case is marked as withdrawn."""
    lines = (DATA / "ids.tsv").read_text(encoding="utf-8").splitlines()
    ids = {each["id"] for each in ALL}

    lost = [
        line
        for line in lines
        if line.split("\t")[0] not in ids and not line.endswith("\twithdrawn")
    ]

    assert lost == []


def test_the_folder_carries_its_version_and_licence() -> None:
    """The data can be used without this repository."""
    document = json.loads((DATA / "data.json").read_text(encoding="utf-8"))

    assert document["version"] == data_version()
    assert document["license"] == "Apache-2.0"
    assert "Apache License" in (DATA / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", WRITTEN)
def test_an_answer_is_an_answer(case: dict[str, Any]) -> None:
    """It fits the schema, and a payload that fits as it is means what it says, or holds
    a tag of a call.
    """
    is_valid = jsonschema_rs.validator_for(case["schema"]).is_valid

    assert case["answer"] == REFUSE or is_valid(case["answer"])
    if (
        isinstance(case["payload"], dict)
        and is_valid(case["payload"])
        and case["payload"] != case["answer"]
    ):
        assert "<parameter" in str(case["payload"])


@pytest.mark.parametrize("case", WRITTEN)
def test_no_payload_gets_a_wrong_value(case: dict[str, Any]) -> None:
    """The arguments that were meant, with declared defaults, or a refusal; and a
    refusal where that is the answer.
    """
    assert outcome(case, _repaired(case)) != "wrong"


def test_no_generated_case_gets_a_wrong_value() -> None:
    """A valid call comes back as it was sent."""
    found = Counter()
    for each in GENERATED:
        kind = "valid" if each["kind"] == "valid" else "error"
        found[kind, outcome(each, _repaired(each))] += 1

    assert found["error", "wrong"] == 0
    assert found["valid", "wrong"] == 0
    assert found["valid", "refused"] == 0


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"path": "a", "limit": 5}, "right"),
        ({"path": "a", "limit": 5.0}, "right"),
        ({"path": "a"}, "wrong"),
        (REFUSE, "refused"),
    ],
)
def test_the_arguments_that_were_meant_are_right(found: Any, expected: str) -> None:
    """A part of them is wrong, and a refusal is neither."""
    sent = case({"path": "a", "limit": "5"}, {"path": "a", "limit": 5})

    assert outcome(sent, found) == expected


def test_a_default_that_an_engine_fills_in_is_ignored() -> None:
    """Hosts fill in defaults at different places."""
    sent = case('{"path": "a"', {"path": "a"})

    assert outcome(sent, {"path": "a", "limit": 10}) == "right"
    assert outcome(sent, {"path": "a", "limit": 11}) == "wrong"


def test_a_null_that_says_nothing_equals_no_value() -> None:
    """Some engines return the same for both; a null that could mean something else
    counts.
    """
    optional = {"type": ["string", "null"]}
    other_default = {"type": ["string", "null"], "default": "all"}
    schema = {"type": "object", "properties": {"a": optional, "b": other_default}}
    sent = {"schema": schema, "payload": "x", "answer": {}}

    assert outcome(sent, {"a": None}) == "right"
    assert outcome({**sent, "answer": {"a": None}}, {}) == "right"
    assert outcome(sent, {"b": None}) == "wrong"


def test_a_valid_payload_that_is_left_alone_is_not_wrong() -> None:
    """A validator cannot see that something else was meant."""
    sent = case({"path": "a</path><parameter name=limit>5"}, {"path": "a", "limit": 5})

    assert outcome(sent, sent["payload"]) == "refused"
    assert outcome(sent, {"path": "a"}) == "wrong"


def test_arguments_that_do_not_fit_count_as_refused() -> None:
    """A host checks what an engine returns."""
    sent = case("x", {"path": "a"})

    assert fitting(sent, '{"arguments": {"path": 1}}') == REFUSE
    assert fitting(sent, '{"refused": "why"}') == REFUSE
    assert fitting(sent, "") == REFUSE
    assert fitting(sent, '{"arguments": {"path": "a"}}') == {"path": "a"}


def test_a_refusal_may_be_as_right_as_the_answer() -> None:
    """Such a case is counted apart from those with one answer."""
    either = case("x", {"path": "a"}, or_refuse=True)

    assert kind_of_answer(either) == "answer or refusal"
    assert kind_of_answer(case("x", {"path": "a"})) == "answer"
    assert kind_of_answer(case("x", REFUSE)) == "refusal"


def test_no_engine_is_given_the_reason_of_a_text_that_was_cut_off() -> None:
    """A host that reads it runs the call with no engine; other reasons are given."""
    cut = json.loads(question(case("{", REFUSE, finish_reason="length")))
    ended = json.loads(question(case("{", REFUSE, finish_reason="stop")))

    assert cut["finish_reason"] is None
    assert ended["finish_reason"] == "stop"
    assert all("finish_reason" in each for each in cases("cut off"))


def test_the_page_was_written_from_these_cases() -> None:
    """Its tables have the numbers of cases of the sets, and the data's version."""
    page = (ROOT / "docs" / "repair-benchmark.md").read_text(encoding="utf-8")

    for name, title in SETS.items():
        assert f"**{name.capitalize()}**, {len(cases(name)):,} {title}:" in page
    assert f"with version {data_version()} of the data" in page


def test_the_page_begins_with_what_others_do_better() -> None:
    """Each set in which this library refuses what another engine puts right is named."""
    page = (ROOT / "docs" / "repair-benchmark.md").read_text(encoding="utf-8")
    heading, first, *_ = re.findall(r"^#+ (.+)$", page, re.MULTILINE)

    assert heading == "Repair benchmark"
    assert first == "Where this library is not the best"
    assert "**Threads**, refused and put right by another engine" in page


def test_the_readme_has_the_figures_of_the_page() -> None:
    """The wrong values of each engine that it names, on the payloads of threads."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = next(line for line in readme.splitlines() if "repair-benchmark.md" in line)
    _, claim, own, others, _ = row.split("|")

    wrong = _wrong_values("threads")
    named = dict(each.strip().rsplit(" ", 1) for each in others.split(","))

    assert f"of {len(cases('threads'))} payloads" in claim
    assert int(own) == wrong["skillruntime"]
    assert {name: int(count) for name, count in named.items()} == {
        name: wrong[name] for name in named
    }


def _wrong_values(set_name: str) -> dict[str, int]:
    """Return the wrong values of each engine in the page's table of a set."""
    page = (ROOT / "docs" / "repair-benchmark.md").read_text(encoding="utf-8")
    table = page.split(f"**{set_name.capitalize()}**, {len(cases(set_name))}")[1]
    found = {}
    for line in table.split("\n\n")[1].splitlines()[2:]:
        name = line.split("|")[1].strip()
        found[name] = sum(int(each) for each in re.findall(r"\*\*(\d+)\*\*", line))
    return found


def _repaired(case: dict[str, Any]) -> Any:
    asked = json.loads(question(case))
    try:
        return repair(
            asked["payload"],
            asked["schema"],
            name=asked["tool"],
            finish_reason=asked["finish_reason"],
        ).arguments
    except SkillInputError:
        return REFUSE
