"""The bundled skills work on a person's files, in every way in which an agent gets them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.catalog.discovery import discover
from skillruntime.runtime.runtime import SkillRuntime
from tests.adapters.test_every_adapter import ADAPTERS
from tests.skills.conftest import make_document

SKILLS = Path(__file__).parents[2] / "skills"
CALLS: dict[str, dict[str, Any]] = {
    "pdf-processing/extract": {"path": "report.pdf"},
    "data-analysis/chart": {
        "path": "sales.csv",
        "kind": "bar",
        "x": "month",
        "y": "amount",
        "output_path": "sales.png",
    },
    "daily-news-digest": {"topics": ["AI"]},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A person's files: a PDF, a table, and the news feeds that they read."""
    (tmp_path / "report.pdf").write_bytes(make_document(["Quarterly report"]))
    (tmp_path / "sales.csv").write_text("month,amount\n2026-01,10\n2026-02,30\n")
    now = format_datetime(datetime.now(UTC))
    (tmp_path / "feed.xml").write_text(
        f"<rss version='2.0'><channel><title>Wire</title><item><title>AI act passed</title>"
        f"<link>https://example.com/1</link><pubDate>{now}</pubDate></item></channel></rss>"
    )
    (tmp_path / "news_feeds.json").write_text(json.dumps({"feeds": [{"name": "Wire", "url": "feed.xml"}]}))
    return tmp_path


def require_done(answers: dict[str, Any], folder: Path) -> None:
    """Check that each task is done, and that what was made is where the person looks."""
    assert answers["pdf-processing/extract"]["pages"][0]["text"] == "Quarterly report"
    assert answers["data-analysis/chart"]["points"] == 2
    assert (folder / "sales.png").read_bytes().startswith(b"\x89PNG")
    assert answers["daily-news-digest"]["topics_covered"][0]["articles"][0]["title"] == "AI act passed"


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__.removeprefix("call_"))
def test_a_persons_files_are_reached(adapter: Callable[..., Awaitable[Any]], folder: Path) -> None:
    """The workspace of the runtime is that of every conversation."""
    runtime = SkillRuntime(discover(SKILLS, trusted=True), workspace=folder)

    async def run() -> dict[str, Any]:
        return {name: await adapter(runtime, name, arguments) for name, arguments in CALLS.items()}

    require_done(anyio.run(run), folder)
