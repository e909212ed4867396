"""Descriptions tested with requests: `skillruntime/testing/skill_tests/triggers.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillruntime import InvalidSkillError, discover
from skillruntime.testing import Request, ask_model, rank_requests, read_requests
from tests import needs
from tests.in_process import run_command
from tests.skill_files import write_skill_files

DESCRIPTIONS = {
    "pdf-merge": "Merges several PDF files into one document.",
    "pdf-split": "Splits PDF files into pages.",
    "weather": "Reports the weather of a city.",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three skills, two of which are about PDF files."""
    for name, description in DESCRIPTIONS.items():
        write_skill_files(tmp_path, name, description, {})
    return tmp_path


def write(root: Path, path: str, document: Any) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document))


def test_the_forms_of_public_repositories_are_read_alike(root: Path) -> None:
    """A list of questions, of prompts, of queries that should trigger, and ours."""
    write(
        root,
        "pdf-merge/evals/evals.json",
        [
            {"question": "Join these PDFs", "expected_skill": "pdf-merge"},
            {"question": "Bake a cake", "expected_skill": None},
        ],
    )
    write(
        root,
        "pdf-split/evals/evals.json",
        {"skill_name": "pdf-split", "evals": [{"id": 1, "prompt": "Split it"}]},
    )
    write(
        root,
        "weather/evals/trigger_eval.json",
        [
            {"query": "Will it rain?", "should_trigger": True},
            {"query": "Is the climate changing?", "should_trigger": False},
        ],
    )
    (root / "weather" / "tests").mkdir()
    (root / "weather" / "tests" / "triggers.yaml").write_text(
        "- {request: How warm is Rome?, skill: weather}\n- {request: Sing, skill: null}\n"
    )

    found = {
        each.text: (each.skill, each.not_skill)
        for each in read_requests(discover(root))
    }

    assert found == {
        "Join these PDFs": ("pdf-merge", None),
        "Bake a cake": (None, "pdf-merge"),
        "Split it": ("pdf-split", None),
        "Will it rain?": ("weather", None),
        "Is the climate changing?": (None, "weather"),
        "How warm is Rome?": ("weather", None),
        "Sing": (None, "weather"),
    }


def test_a_file_that_is_not_json_is_refused_with_its_path(root: Path) -> None:
    """Silently skipped requests would look like requests that pass."""
    (root / "weather" / "evals.json").write_text("[")

    with pytest.raises(InvalidSkillError, match=r"weather/evals\.json cannot be read"):
        read_requests(discover(root))


def test_a_request_that_another_skill_wins_is_named_with_the_shared_words(
    root: Path,
) -> None:
    """The author reads which words make the two confusable."""
    requests = [
        Request("merge PDF files", "pdf-merge"),
        Request("merge this PDF document by pages", "pdf-split"),
    ]

    report = rank_requests(discover(root), requests)

    assert (report.requests, report.right) == (2, 1)
    assert [(lost.winner, lost.rank) for lost in report.lost] == [("pdf-merge", 2)]
    first = report.pairs[0]
    assert first.skills == ("pdf-merge", "pdf-split")
    assert first.lost == 1
    assert first.words == ("files", "pdf")


def test_words_of_requests_that_no_description_has_are_listed(root: Path) -> None:
    """The words that a user types are the ones that a description lacks."""
    requests = [
        Request("Is an umbrella needed for the city?", "weather"),
        Request("Do I need my umbrella?", "weather"),
    ]

    report = rank_requests(discover(root), requests)

    assert report.missing_words == {"weather": {"umbrella": 2}}


def test_a_request_for_a_skill_that_is_not_there_is_not_ranked(root: Path) -> None:
    """It is listed apart."""
    report = rank_requests(discover(root), [Request("Draw a cat", "painting")])

    assert (report.requests, report.ok) == (0, True)
    assert report.to_dict()["unknown_skills"] == ["painting"]


def test_a_model_is_judged_by_the_skill_that_it_loads(root: Path) -> None:
    """Right skill, wrong skill, none where none was right, and one where none was."""
    needs.package("langchain_core")
    from skillruntime.testing import ScriptedChatModel, call_message

    model = ScriptedChatModel(
        replies=[
            call_message(("load_skill", {"name": "pdf-merge"})),
            call_message(("load_skill", {"name": "pdf-merge"})),
            call_message(("load_skill", {"name": "weather"})),
        ]
    )
    requests = [
        Request("merge", "pdf-merge"),
        Request("split", "pdf-split"),
        Request("sing", None),
    ]

    report = ask_model(model, discover(root), requests)

    assert report.right == 1
    assert [(lost.request.text, lost.winner) for lost in report.lost] == [
        ("split", "pdf-merge"),
        ("sing", "weather"),
    ]
    assert "pdf-split: Splits PDF files" in model.received[0][0].content


def test_the_command_prints_the_lost_requests_and_the_pairs(root: Path) -> None:
    """Nothing is run, and a ranking alone does not fail."""
    document = [
        {"question": "merge this PDF document by pages"},
        {"question": "Split PDF files"},
    ]
    write(root, "pdf-split/evals.json", document)

    ran = run_command("test", str(root), "--triggers")
    as_json = run_command("test", str(root), "--triggers", "--json")

    assert ran.exit_code == 0
    assert "pdf-merge instead of pdf-split: merge this PDF" in ran.stdout
    assert "1 of 2 requests are won by their skill (the ranking)" in ran.stdout
    assert json.loads(as_json.stdout)["confused_pairs"][0]["shared_words"] == [
        "files",
        "pdf",
    ]


def test_a_model_is_asked_for_triggers_only(root: Path) -> None:
    """Calls from a contract need no model."""
    ran = run_command("test", str(root), "--model", "openai:none")

    assert ran.exit_code == 2
    assert "--model is for --triggers" in ran.output


def test_no_request_is_sent_to_a_model_without_consent(root: Path) -> None:
    """The number of requests and tokens comes first."""
    write(root, "weather/evals.json", [{"question": "Will it rain?"}])

    ran = run_command(
        "test", str(root), "--triggers", "--model", "openai:none", stdin="n\n"
    )

    assert ran.exit_code == 1
    assert "1 requests, " in ran.stderr


def test_the_shared_words_of_a_pair_are_the_rarest_first(root: Path) -> None:
    """What all descriptions have says nothing about two of them."""
    for name, rest in (("csv-read", "tables quickly"), ("csv-sort", "tables slowly")):
        write_skill_files(root, name, f"Reads files of {rest}.", {})

    report = rank_requests(discover(root), [Request("sort tables", "csv-read")])

    [pair] = [pair for pair in report.pairs if pair.skills == ("csv-read", "csv-sort")]
    assert pair.words == ("csv", "reads", "tables", "files")


def test_descriptions_with_the_same_rare_words_are_a_pair_without_a_request(
    tmp_path: Path,
) -> None:
    """Two of thirty skills say the same; no request is for either of them."""
    for number in range(28):
        text = f"Draws subject{number} with pencil{number} carefully."
        write_skill_files(tmp_path, f"drawing-{number}", text, {})
    for name in ("bake-bread", "bread-bake"):
        write_skill_files(tmp_path, name, "Bakes sourdough bread overnight.", {})

    report = rank_requests(discover(tmp_path), [])

    assert [pair.skills for pair in report.pairs] == [("bake-bread", "bread-bake")]
    assert report.pairs[0].to_dict()["lost"] == 0


def test_pairs_that_no_request_has_among_its_first_five_are_few(tmp_path: Path) -> None:
    """At most four of a hundred skills, the worst ones: two lost requests come first."""
    names = [f"tool-{number:02}" for number in range(60)]
    for number, name in enumerate(names):
        text = f"Handles reports, and matter{number} alone."
        write_skill_files(tmp_path, name, text, {})
    requests = []
    for number in range(20):
        # Six others have the words of the request, the right one has none of them.
        others = " ".join(f"matter{number + step}" for step in range(1, 7))
        requests.append(Request(f"{others} matter{number + 1}", names[number]))
    requests.append(Request("matter4", names[3]))

    report = rank_requests(discover(tmp_path), requests)

    first_fives = [pair for pair in report.pairs if pair.lost]
    assert len(report.lost) == 21
    assert report.pairs[0].skills == ("tool-03", "tool-04")
    assert report.pairs[0].lost == 2
    assert len(first_fives) < 21
