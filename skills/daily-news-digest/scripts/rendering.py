"""The digest as Markdown: four formats, six languages for the digest's own words.

Not a tool: digest.py imports it. Articles stay in the language of their feed; nothing
is translated or rephrased.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

# Of each language: "1", "7" and "30" are the ranges in days; the rest says what it is.
LABELS: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).resolve().parents[1] / "assets" / "labels.json").read_text(
        encoding="utf-8"
    )
)


def summary(
    articles: list[dict[str, Any]], found: int, sources: int, days: int, language: str
) -> str:
    """Return two or three sentences: how many articles from how many *sources*, and the
    leading titles.

    >>> summary([{"title": "Rates rise", "source": "BBC"}], 1, 1, 7, "en")
    '1 article from 1 source in the past 7 days. Leading: “Rates rise” (BBC).'
    """
    words = LABELS[language]
    if not articles:
        return words["none"].format(range=words[str(days)])
    said = words["count"].format(
        articles=words["article"] if found == 1 else words["articles"].format(found),
        sources=words["source"] if sources == 1 else words["sources"].format(sources),
        range=words[str(days)],
    )
    sentences = [said] + (
        [words["shown"].format(len(articles))] if found > len(articles) else []
    )
    leading = "; ".join(
        f"“{article['title']}” ({article['source']})" for article in articles[:2]
    )
    return " ".join([*sentences, words["leading"].format(leading)])


def notices(unread: int, cut: int, language: str) -> list[str]:
    """Return what the digest says of feeds that were not read, or only in part.

    >>> notices(2, 0, "en")
    ['Feeds that could not be read: 2.']
    """
    words = LABELS[language]
    counts = {"unread": unread, "cut": cut}
    return [words[name].format(count) for name, count in counts.items() if count]


def render(
    topics: list[dict[str, Any]],
    date: str,
    notices: list[str],
    style: str,
    language: str,
) -> str:
    """Return the whole digest as Markdown in one of the four formats, with *notices* at
    its end.
    """
    words = LABELS[language]
    write = {
        "prose": _prose,
        "bullets": _bullets,
        "structured": _structured,
        "brief": _brief,
    }[style]
    blocks = [f"# {words['title']} · {date}"]
    for topic in topics:
        if topic["articles"]:
            blocks += write(topic)
        else:
            blocks.append(f"**{_plain(topic['topic'])}**: {topic['summary']}")
    blocks += [f"*{notice}*" for notice in notices]
    return "\n\n".join(blocks) + "\n"


def _structured(topic: dict[str, Any]) -> list[str]:
    lines = []
    for article in topic["articles"]:
        lines.append(f"- {_link(article)} · {_origin(article)}")
        lines += [f"  - {_plain(point)}" for point in article.get("key_points", [])]
    return [f"## {_plain(topic['topic'])}", _plain(topic["summary"]), "\n".join(lines)]


def _bullets(topic: dict[str, Any]) -> list[str]:
    rows = [f"- {_link(article)} · {_origin(article)}" for article in topic["articles"]]
    return [f"**{_plain(topic['topic'])}**", "\n".join(rows)]


def _prose(topic: dict[str, Any]) -> list[str]:
    stories = []
    for article in topic["articles"]:
        points = " ".join(
            _sentence(_plain(point)) for point in article.get("key_points", [])[:2]
        )
        stories.append(f"{_link(article)} ({_origin(article)}). {points}".strip())
    return [f"**{_plain(topic['topic'])}.** {_plain(topic['summary'])}", *stories]


def _brief(topic: dict[str, Any]) -> list[str]:
    rows = [
        f"- {_sentence(f'{_link(article)} ({_origin(article)})')}"
        for article in topic["articles"]
    ]
    return [f"**{_plain(topic['topic'])}**", "\n".join(rows)]


def _link(article: dict[str, Any]) -> str:
    url = article["url"].replace("(", "%28").replace(")", "%29")
    return f"[{_plain(article['title'])}]({url})"


def _origin(article: dict[str, Any]) -> str:
    day = article.get("published_at", "")[:10]
    return _plain(article["source"]) + (f", {day}" if day else "")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", "。")) else text + "."


def _plain(text: str) -> str:
    """Return *text* with the characters escaped that Markdown would take for markup."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", text)
