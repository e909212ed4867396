"""The digest as Markdown: four formats, six languages for the digest's own words.

Not a tool: digest.py imports it. Articles stay in the language of their feed; nothing is translated or rephrased.
"""

from __future__ import annotations

import re
from typing import Any

# "1", "7" and "30" are the ranges in days; the rest says what it is.
LABELS: dict[str, dict[str, str]] = {
    "en": {
        "title": "News digest",
        "article": "1 article",
        "articles": "{} articles",
        "source": "1 source",
        "sources": "{} sources",
        "1": "the past 24 hours",
        "7": "the past 7 days",
        "30": "the past 30 days",
        "count": "{articles} from {sources} in {range}.",
        "shown": "The {} below come first.",
        "leading": "Leading: {}.",
        "none": "No article in the feeds matched in {range}.",
        "unread": "Feeds that could not be read: {}.",
    },
    "zh": {
        "title": "新闻摘要",
        "article": "1 篇文章",
        "articles": "{} 篇文章",
        "source": "1 个来源",
        "sources": "{} 个来源",
        "1": "过去 24 小时",
        "7": "过去 7 天",
        "30": "过去 30 天",
        "count": "{range}内共有{articles},来自{sources}。",
        "shown": "以下列出前 {} 篇。",
        "leading": "主要报道:{}。",
        "none": "{range}内没有匹配的文章。",
        "unread": "无法读取的订阅源数量:{}。",
    },
    "es": {
        "title": "Resumen de noticias",
        "article": "1 artículo",
        "articles": "{} artículos",
        "source": "1 fuente",
        "sources": "{} fuentes",
        "1": "las últimas 24 horas",
        "7": "los últimos 7 días",
        "30": "los últimos 30 días",
        "count": "{articles} de {sources} en {range}.",
        "shown": "Abajo, los {} primeros.",
        "leading": "Destacan: {}.",
        "none": "Ningún artículo de las fuentes coincide en {range}.",
        "unread": "Fuentes que no se pudieron leer: {}.",
    },
    "fr": {
        "title": "Revue de presse",
        "article": "1 article",
        "articles": "{} articles",
        "source": "1 source",
        "sources": "{} sources",
        "1": "les dernières 24 heures",
        "7": "les 7 derniers jours",
        "30": "les 30 derniers jours",
        "count": "{articles} de {sources} sur {range}.",
        "shown": "Les {} premiers figurent ci-dessous.",
        "leading": "À la une : {}.",
        "none": "Aucun article des flux ne correspond sur {range}.",
        "unread": "Flux illisibles : {}.",
    },
    "de": {
        "title": "Nachrichtenüberblick",
        "article": "1 Artikel",
        "articles": "{} Artikel",
        "source": "1 Quelle",
        "sources": "{} Quellen",
        "1": "den letzten 24 Stunden",
        "7": "den letzten 7 Tagen",
        "30": "den letzten 30 Tagen",
        "count": "{articles} aus {sources} in {range}.",
        "shown": "Die ersten {} stehen unten.",
        "leading": "An der Spitze: {}.",
        "none": "Kein Artikel der Quellen passt in {range}.",
        "unread": "Nicht lesbare Quellen: {}.",
    },
    "ja": {
        "title": "ニュースダイジェスト",
        "article": "1 件の記事",
        "articles": "{} 件の記事",
        "source": "1 件の情報源",
        "sources": "{} 件の情報源",
        "1": "過去 24 時間",
        "7": "過去 7 日間",
        "30": "過去 30 日間",
        "count": "{range}に{sources}から{articles}。",
        "shown": "以下は最初の {} 件です。",
        "leading": "主な記事:{}。",
        "none": "{range}に該当する記事はありません。",
        "unread": "読み込めなかったフィードの数:{}。",
    },
}


def summary(articles: list[dict[str, Any]], found: int, sources: int, days: int, language: str) -> str:
    """Return two or three sentences: how many articles from how many *sources*, and the leading titles.

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
    sentences = [said] + ([words["shown"].format(len(articles))] if found > len(articles) else [])
    leading = "; ".join(f"“{article['title']}” ({article['source']})" for article in articles[:2])
    return " ".join([*sentences, words["leading"].format(leading)])


def render(topics: list[dict[str, Any]], date: str, unread: int, style: str, language: str) -> str:
    """Return the whole digest as Markdown in one of the four formats."""
    words = LABELS[language]
    write = {"prose": _prose, "bullets": _bullets, "structured": _structured, "brief": _brief}[style]
    blocks = [f"# {words['title']} · {date}"]
    for topic in topics:
        blocks += write(topic) if topic["articles"] else [f"**{_plain(topic['topic'])}**: {topic['summary']}"]
    if unread:
        blocks.append("*" + words["unread"].format(unread) + "*")
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
        points = " ".join(_sentence(_plain(point)) for point in article.get("key_points", [])[:2])
        stories.append(f"{_link(article)} ({_origin(article)}). {points}".strip())
    return [f"**{_plain(topic['topic'])}.** {_plain(topic['summary'])}", *stories]


def _brief(topic: dict[str, Any]) -> list[str]:
    rows = [f"- {_sentence(f'{_link(article)} ({_origin(article)})')}" for article in topic["articles"]]
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
