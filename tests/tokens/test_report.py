from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillruntime.catalog import SkillCatalog, discover
from skillruntime.tokens import TokenReport, measure

CONTRACT = {
    "description": "Merge PDF files.",
    "version": "1.0.0",
    "input": {
        "type": "object",
        "title": "Not sent",
        "properties": {
            "paths": {
                "type": "array",
                "items": {"type": "string"},
                "x-documentation": "Not sent either.",
            }
        },
    },
}


@pytest.fixture
def catalog(tmp_path: Path) -> SkillCatalog:
    small, large = tmp_path / "small", tmp_path / "large"
    (large / "references").mkdir(parents=True)
    small.mkdir()
    (small / "SKILL.md").write_text(
        "---\nname: small\ndescription: Does little.\n---\nJust do it.\n",
        encoding="utf-8",
    )
    body = "# Use\n\nRun it.\n\n## API reference\n\n" + "`option` does a thing.\n" * 300
    (large / "SKILL.md").write_text(
        f"---\nname: large\ndescription: Does much.\n---\n\n{body}", encoding="utf-8"
    )
    (large / "references" / "more.md").write_text("Some more text.", encoding="utf-8")
    (large / "references" / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    (large / "contract.json").write_text(json.dumps(CONTRACT), encoding="utf-8")
    return discover(tmp_path)


@pytest.fixture
def report(catalog: SkillCatalog) -> TokenReport:
    return measure(catalog, with_advice=True)


def test_each_tier_of_a_skill_is_counted(report: TokenReport) -> None:
    """Name and description, body, each file and each tool's definition have their own
    tokens.
    """
    small, large = sorted(report.skills, key=lambda skill: skill.body)

    assert (small.name, small.metadata, small.body, small.resource, small.schema) == (
        "small",
        4,
        4,
        0,
        0,
    )
    assert (large.name, large.metadata) == ("large", 4)
    assert large.body == 2110
    assert {resource.path: resource.tokens for resource in large.resources}[
        "references/more.md"
    ] == 4
    assert [name for name, _ in large.schemas] == ["large"]


def test_a_binary_file_has_bytes_and_no_tokens(report: TokenReport) -> None:
    """A picture is not text: it is listed without tokens."""
    large = next(skill for skill in report.skills if skill.name == "large")

    picture = next(
        resource
        for resource in large.resources
        if resource.path.endswith("picture.png")
    )

    assert (picture.bytes, picture.tokens) == (10, None)


def test_what_is_for_people_costs_nothing(report: TokenReport) -> None:
    """Titles and x-documentation are not part of a tool's definition."""
    large = next(skill for skill in report.skills if skill.name == "large")

    assert dict(large.schemas)["large"] == 33


def test_the_largest_sections_come_first(report: TokenReport) -> None:
    """A body's sections are listed with their lines, the largest first."""
    large = next(skill for skill in report.skills if skill.name == "large")

    assert [section.title for section in large.sections] == ["API reference", "Use"]


def test_advice_points_into_the_file(report: TokenReport) -> None:
    """The line of a piece of advice is that of the SKILL.md, frontmatter included."""
    advice = report.advice

    assert [one.rule for one in advice] == ["section-to-reference"]
    lines = Path(advice[0].path).read_text(encoding="utf-8").splitlines()
    assert advice[0].line is not None
    assert lines[advice[0].line - 1] == "## API reference"


def test_a_session_costs_the_catalog_and_its_bodies(report: TokenReport) -> None:
    """K activations cost the catalog and K average bodies, never more skills than there
    are.
    """
    assert report.session(0) == report.catalog
    assert report.session(1) == report.catalog + 1057
    assert report.session(99) == report.catalog + 2114
    assert report.eager == 8 + 2114


def test_the_json_has_its_unit_and_its_method(report: TokenReport) -> None:
    """A machine reads what a person does, and how it was counted."""
    document = json.loads(json.dumps(report.to_dict()))

    assert (
        document["unit"],
        document["model"],
        document["method"],
        document["exact"],
    ) == ("tokens", "gpt-4o", "o200k_base", True)
    assert document["totals"]["skills"] == 2
    assert document["skills"][0].keys() >= {
        "name",
        "path",
        "metadata",
        "body",
        "resource",
        "schema",
    }


def test_a_skill_that_cannot_be_read_is_listed(catalog: SkillCatalog) -> None:
    """A skill whose file is gone since costs nothing and is named with the reason; the
    others are measured.
    """
    Path(catalog["large"].path).unlink()

    report = measure(catalog)

    assert [skill.name for skill in report.skills] == ["small"]
    assert [name for name, _ in report.unreadable] == ["large"]


def test_an_empty_catalog_costs_its_frame(tmp_path: Path) -> None:
    """No skills at all is a report of nothing, not an error."""
    report = measure(discover(tmp_path))

    assert (report.skills, report.eager, report.session(3)) == ((), 0, report.catalog)


def test_it_works_with_the_network_unplugged(
    catalog: SkillCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measuring everything, in every method, opens no socket."""
    import socket

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)

    for model in ("gpt-4o", "gpt-4", "claude-sonnet-4-5", "gemini-2.5-pro", "llama-3"):
        assert measure(catalog, model=model, with_advice=True).total("body") > 0
