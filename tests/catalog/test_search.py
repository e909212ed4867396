"""Finding the one skill among thousands, in English and Chinese."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillruntime.catalog.discovery import discover
from skillruntime.catalog.search import SearchIndex
from skillruntime.catalog.skill import SkillMetadata
from tests.catalog.conftest import WriteSkill


@pytest.fixture
def index() -> SearchIndex:
    rows = {
        "pdf-processing": "Extract text and tables from PDF files, merge documents.",
        "news-digest": "Summarise the daily news from feeds.",
        "wen-dang": "从 PDF 文件中提取文本和表格,填写表单。",
        "fastapi-router": "Create FastAPI routers and OpenApi documents.",
    }
    return SearchIndex([SkillMetadata(name, text, f"/{name}") for name, text in rows.items()], bodies=False)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("merge two pdfs", "pdf-processing"),
        ("please summarize what happened in the news", "news-digest"),
        ("提取表格", "wen-dang"),
        ("填写一个表单", "wen-dang"),
        ("fast api router", "fastapi-router"),
        ("open api", "fastapi-router"),
        ("NEWS-DIGEST", "news-digest"),
    ],
)
def test_the_best_comes_first(index: SearchIndex, query: str, first: str) -> None:
    """By words, their stems, the parts of joined words, and pairs of Chinese characters."""
    assert index.search(query)[0].name == first


@pytest.mark.parametrize(
    "query", ["", "  ", "???", '"', "zebra", "* OR NOT (", "name:x AND", "\0", "x" * 100_000, "\ud800"]
)
def test_any_query_is_accepted(index: SearchIndex, query: str) -> None:
    """Operators of the engine are words like any other."""
    assert index.search(query) == []


def test_the_limit_holds_and_ties_go_by_name() -> None:
    """The same query gives the same list."""
    skills = [SkillMetadata(f"skill-{n}", "the same words", "/") for n in (3, 1, 2)]
    index = SearchIndex(skills, bodies=False)

    assert [hit.name for hit in index.search("same words", 2)] == ["skill-1", "skill-2"]
    assert index.search("same", 0) == []


def test_instructions_are_searched_too(tmp_path: Path, write_skill: WriteSkill) -> None:
    """Their beginning, headings and tags; a file that no longer exists is not an error."""
    write_skill("one", text="---\nname: one\ndescription: First\ntags: [zebra]\n---\n# Ghostscript\n\nCall gs.\n")
    directory = write_skill("two", text="---\nname: two\ndescription: Second\n---\nUses Ghostscript.\n")
    catalog = discover(tmp_path / "skills")
    (directory / "SKILL.md").unlink()

    assert [hit.name for hit in catalog.search("ghostscript")] == ["one"]
    assert [hit.name for hit in catalog.search("zebra")] == ["one"]
    assert [hit.name for hit in catalog.search("second")] == ["two"]


def test_common_words_find_skills_that_contain_several() -> None:
    """Where every word of a query is in more skills than can be ranked, and also where they never meet."""
    texts = ("alpha rest", "beta rest", "gamma rest")
    skills = [SkillMetadata(f"skill-{n}", texts[n % 3], "/") for n in range(3_600)]
    index = SearchIndex([*skills, SkillMetadata("both", "alpha and beta", "/")], bodies=False)

    assert [hit.name for hit in index.search("alpha beta")] == ["both"]
    assert len(index.search("rest")) == len(index.search("alpha gamma")) == 10
