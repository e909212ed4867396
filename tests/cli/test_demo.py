"""The demo shows what it announces: `skillruntime/cli/demo.py`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from skillruntime.cli import demo, group

pytestmark = pytest.mark.processes


def test_every_scene_of_the_demo_has_the_expected_outcome() -> None:
    """Loaded, repaired, migrated, refused, called: by a real agent loop, offline."""
    result = CliRunner().invoke(group, ["demo", "--json"])

    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["as_expected"] is True
    assert [step["outcome"] for step in document["steps"]] == [
        "loaded",
        "repaired",
        "migrated",
        "refused",
        "succeeded",
    ]
    assert document["catalog_tokens"] > 100
    _, repaired, migrated, refused, called = (
        step["envelope"] for step in document["steps"]
    )
    assert {repair["path"] for repair in repaired["metadata"]["repairs"]} == {
        "/max_articles_per_topic",
        "/output_format",
    }
    assert len(repaired["data"]["topics_covered"][0]["articles"]) == 2
    assert migrated["metadata"]["migrated_from"]
    assert refused["errors"][0]["code"] == "MISSING_REQUIRED_PARAM"
    assert called["data"]["topics_covered"][0]["articles"][0]["source"] == "Sample Wire"


def test_the_demo_is_drawn_for_a_person() -> None:
    """The catalog with its tokens, each step, and how it ended."""
    result = CliRunner().invoke(group, ["demo"])

    assert result.exit_code == 0
    for words in (
        "tokens",
        "REPAIRED",
        "MIGRATED",
        "REFUSED",
        '"5" → 5',
        "no exception",
    ):
        assert words in result.stdout


def test_without_the_agents_extra_the_demo_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An envelope, not an import error."""
    monkeypatch.setattr(demo, "find_spec", lambda name: None)

    result = CliRunner().invoke(group, ["demo"])

    assert result.exit_code == 1
    assert "pip install 'skillruntime[agents,skills]'" in result.stderr
