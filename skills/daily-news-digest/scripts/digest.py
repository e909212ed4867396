# /// script
# requires-python = ">=3.11"
# dependencies = ["feedparser>=6.0.11,<7"]
# ///
"""Collect recent news on given topics from RSS and Atom feeds.

Reads one JSON object on standard input (the contract's ``input``), prints one JSON
object (its ``output``)::

    echo '{"topics": ["climate summit"], "time_range": "this_week"}' | python
    scripts/digest.py
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from feeds import Article, feed_list, read_feeds
from matching import Topic
from rendering import LABELS, notices, render, summary
from script_call import (
    Failure,
    answer,
    check_output,
    inside_workspace,
    shown_path,
    write_output,
)

SKILL = Path(__file__).resolve().parents[1]
DAYS = {"today": 1, "24h": 1, "this_week": 7, "this_month": 30}
MARK = "<!-- daily-news-digest -->"
FUTURE = timedelta(days=1)  # feeds with a wrong time zone date their articles ahead
SENTENCE = re.compile(r"(?<=[.!?…])\s+(?=[^\sa-z])|(?<=[。!?])")


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the digest as the contract's output. A file that must not be replaced is
    refused before any fetch.
    """
    now = datetime.now(UTC)
    target = _target(arguments, now)
    chosen = feed_list(SKILL / "assets")
    feeds = read_feeds(chosen)
    articles, errors = feeds.articles, feeds.errors
    stamp = now.isoformat(timespec="seconds")
    if not feeds.read:
        return {
            "status": "failed",
            "generated_at": stamp,
            "topics_covered": [],
            "errors": errors,
        }

    language = (
        arguments["output_language"] if arguments["output_language"] in LABELS else "en"
    )
    days = DAYS[arguments["time_range"]]
    topics = [Topic.parse(name) for name in arguments["topics"]]
    recent = [article for article in articles if _is_recent(article, now, days)]
    undated = [article for article in articles if article.published is None]
    covered = [
        _cover(topic, recent, arguments["max_articles_per_topic"], days, language)
        for topic in topics
    ]
    digest = render(
        covered,
        stamp[:10],
        notices(len(chosen.feeds) - feeds.read, feeds.cut, language),
        arguments["output_format"],
        language,
    )
    saved = None
    if target is not None:
        try:
            write_output(
                target, f"{MARK}\n{digest}".encode(), "/file_path", overwrite=True
            )
            saved = shown_path(target)
        except Failure as failure:
            errors = [*errors, failure.error]
    metadata = {
        "search_queries_used": [" + ".join(topic.terms) for topic in topics],
        "sources_searched": feeds.read,
        "articles_read": len(articles),
        "file_saved": saved,
    }
    if notes := _notes(arguments, topics, undated):
        metadata["notes"] = notes
    result = {
        "status": "partial_success" if errors else "success",
        "generated_at": stamp,
        "topics_covered": covered,
        "digest": digest,
        "metadata": metadata,
    }
    return result | ({"errors": errors} if errors else {})


def _target(arguments: dict[str, Any], now: datetime) -> Path | None:
    """Return the file to write, or None. Refuses to replace what this skill did not
    write.
    """
    if not arguments["save_to_file"]:
        return None
    target = inside_workspace(
        arguments.get("file_path") or f"news_digest_{now:%Y-%m-%d}.md", "/file_path"
    )
    check_output(target, "/file_path", overwrite=True)
    if target.exists() and not target.read_bytes().startswith(MARK.encode()):
        message = f"{shown_path(target)!r} exists and is not a digest of this skill"
        raise Failure(
            "INVALID_INPUT", message, "Send another file_path.", path="/file_path"
        )
    return target


def _is_recent(article: Article, now: datetime, days: int) -> bool:
    return (
        article.published is not None
        and now - timedelta(days=days) <= article.published <= now + FUTURE
    )


def _cover(
    topic: Topic, articles: list[Article], most: int, days: int, language: str
) -> dict[str, Any]:
    """Return one entry of ``topics_covered``: title matches first, then the newest."""
    found = [
        article
        for article in articles
        if topic.matches(f"{article.title}\n{article.text}")
    ]
    found.sort(
        key=lambda article: (
            not topic.matches(article.title),
            -_seconds(article),
            article.url,
        )
    )
    shown = [_shown(article) for article in found[:most]]
    sources = len({article.source for article in found})
    return {
        "topic": topic.name,
        "article_count": len(shown),
        "articles_found": len(found),
        "summary": summary(shown, len(found), sources, days, language),
        "articles": shown,
    }


def _seconds(article: Article) -> float:
    return article.published.timestamp() if article.published else 0.0


def _shown(article: Article) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "title": article.title,
        "source": article.source,
        "url": article.url,
    }
    if article.published:
        entry["published_at"] = article.published.isoformat(timespec="seconds")
    sentences = [
        part.strip() for part in SENTENCE.split(article.text) if len(part.strip()) > 20
    ]
    points = [
        part if len(part) <= 300 else part[:299] + "…"
        for part in sentences
        if part != article.title
    ][:3]
    return entry | ({"key_points": points} if points else {})


def _notes(
    arguments: dict[str, Any], topics: list[Topic], undated: list[Article]
) -> list[str]:
    notes = []
    language = arguments["output_language"]
    if language not in ("auto", *LABELS):
        notes.append(
            f"The digest's own words are in English: there are none for {language!r}."
        )
    missed = sum(
        any(topic.matches(f"{article.title}\n{article.text}") for topic in topics)
        for article in undated
    )
    if missed:
        notes.append(f"{missed} matching article(s) carry no date and were left out.")
    return notes


if __name__ == "__main__":
    sys.exit(answer(run, SKILL / "contract.json"))
