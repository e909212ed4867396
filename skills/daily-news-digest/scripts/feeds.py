"""Which feeds to read, and reading them: bounded in bytes and seconds, and never more
than feeds.

Not a tool: digest.py imports it. Fetching is urllib with http and https only;
feedparser gets bytes, never an address.
"""

from __future__ import annotations

import calendar
import io
import json
import os
import queue
import re
import threading
import time
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    ProxyHandler,
)

import feedparser
from script_call import Failure, shown_path

MAX_FEEDS = 50
MAX_BYTES = 3 * 1024 * 1024
MAX_ENTRIES = 500
ALL_FEEDS_SECONDS = (
    22.0  # below the contract's 30, so that a slow feed costs itself and not the digest
)
WORKERS = 8
WORKSPACE_LIST = "news_feeds.json"
TRACKING = re.compile(r"^(utm_|at_|fbclid$|gclid$|ref$|cmp$|rss$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Feed:
    """One feed: an http(s) address or a file. Without a name of its own it goes by its
    title.
    """

    name: str
    address: str | Path
    has_name: bool = True

    def shown(self) -> str:
        """Return the address without what may be secret in it: user, password and
        query.
        """
        if isinstance(self.address, Path):
            return shown_path(self.address)
        parts = urlsplit(self.address)
        return urlunsplit(
            (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")
        )


@dataclass(frozen=True, slots=True)
class FeedList:
    """The feeds to read, each within *timeout* seconds."""

    feeds: tuple[Feed, ...]
    timeout: float


@dataclass(frozen=True, slots=True)
class Article:
    """One entry of a feed, as plain text. ``published`` is UTC, or None where the feed
    does not say.
    """

    title: str
    source: str
    url: str
    published: datetime | None
    text: str


def feed_list(assets: Path) -> FeedList:
    """Return the configured feeds: ``NEWS_DIGEST_FEEDS`` (a file), else the workspace's
    list, else the bundled one.

    Files named in the workspace's own list must lie in the workspace, because a model
    may have written that list.
    """
    chosen = os.environ.get("NEWS_DIGEST_FEEDS")
    workspace_list = Path.cwd() / WORKSPACE_LIST
    if chosen:
        return _parse_list(Path(chosen).resolve(), confined=False)
    if workspace_list.is_file():
        return _parse_list(workspace_list.resolve(), confined=True)
    return _parse_list(assets / "feeds.json", confined=False)


def _parse_list(path: Path, *, confined: bool) -> FeedList:
    """Return the list in the JSON file *path*: ``{"timeout_seconds": 10, "feeds": [URL
    | {"name", "url"}]}``.
    """
    action = (
        'Write {"feeds": [{"name": "BBC", "url": "https://..."}]} to the feed list; '
        "see references/feeds.md."
    )

    def refuse(what: str) -> Failure:
        return Failure("INVALID_INPUT", f"the feed list {path.name} {what}", action)

    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise refuse(f"is not JSON: {error}") from error
    rows = document.get("feeds") if isinstance(document, dict) else document
    if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_FEEDS:
        raise refuse(f"holds no list of 1 to {MAX_FEEDS} feeds")
    timeout = document.get("timeout_seconds", 10) if isinstance(document, dict) else 10
    if (
        isinstance(timeout, bool)
        or not isinstance(timeout, int | float)
        or not 0 < timeout <= 20
    ):
        raise refuse("has a timeout_seconds that is not between 0 and 20")
    return FeedList(
        tuple(_parse_feed(row, path.parent, refuse, confined=confined) for row in rows),
        float(timeout),
    )


def _parse_feed(row: Any, folder: Path, refuse: Any, *, confined: bool) -> Feed:
    row = {"url": row} if isinstance(row, str) else row
    if (
        not isinstance(row, dict)
        or not isinstance(row.get("url"), str)
        or not row["url"].strip()
    ):
        raise refuse("has an entry without a url")
    url = row["url"].strip()
    if re.match(r"https?://", url, re.IGNORECASE):
        return Feed(
            str(row.get("name") or urlsplit(url).hostname or "feed"),
            _clean_url(url),
            bool(row.get("name")),
        )
    if "://" in url:
        raise refuse(
            f"has {url.split('://')[0]!r} addresses: only http, https and files are "
            "read"
        )
    file = (folder / url).resolve()
    if confined and not file.is_relative_to(Path.cwd().resolve()):
        raise refuse("names a file outside the workspace")
    return Feed(str(row.get("name") or file.stem), file, bool(row.get("name")))


def read_feeds(chosen: FeedList) -> tuple[list[Article], int, list[dict[str, Any]]]:
    """Return the distinct articles, the number of feeds that could be read, and one
    error per feed that could not.

    Feeds are read eight at a time. The threads are daemons: one that hangs is left
    behind when the time is up.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, list[Article] | dict[str, Any]]] = (
        queue.SimpleQueue()
    )
    for index in range(len(chosen.feeds)):
        waiting.put(index)

    def work() -> None:
        while True:
            try:
                index = waiting.get_nowait()
            except queue.Empty:
                return
            done.put((index, _read_feed(chosen.feeds[index], chosen.timeout)))

    for _ in range(min(WORKERS, len(chosen.feeds))):
        threading.Thread(target=work, daemon=True).start()
    results: dict[int, list[Article] | dict[str, Any]] = {}
    deadline = time.monotonic() + min(
        ALL_FEEDS_SECONDS, chosen.timeout * (1 + len(chosen.feeds) // WORKERS) + 1
    )
    while len(results) < len(chosen.feeds):
        try:
            index, result = done.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        results[index] = result
    articles: dict[str, Article] = {}
    errors = []
    for index, feed in enumerate(
        chosen.feeds
    ):  # in the list's order, so that the answer does not depend on speed
        result = results.get(
            index, _error(feed, "was not read in time", recoverable=True)
        )
        if isinstance(result, dict):
            errors.append(result)
            continue
        for article in result:
            articles.setdefault(_identity(article.url), article)
    return list(articles.values()), len(chosen.feeds) - len(errors), errors


def _read_feed(feed: Feed, timeout: float) -> list[Article] | dict[str, Any]:
    """Return the articles of *feed*, or the error that the digest reports."""
    try:
        data, headers = _fetch(feed.address, timeout)
    except urllib.error.HTTPError as error:
        error.close()
        code = "RATE_LIMIT_EXCEEDED" if error.code == 429 else "FETCH_FAILED"
        is_passing = error.code == 429 or error.code >= 500
        return _error(
            feed, f"answered HTTP {error.code}", recoverable=is_passing, code=code
        )
    except TimeoutError:
        return _error(feed, f"did not answer within {timeout:g} s", recoverable=True)
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            return _error(
                feed, f"did not answer within {timeout:g} s", recoverable=True
            )
        return _error(feed, f"could not be reached: {error.reason}", recoverable=True)
    except OverflowError:
        return _error(
            feed, f"is larger than {MAX_BYTES // 1024**2} MiB", recoverable=False
        )
    except FileNotFoundError:
        return _error(feed, "does not exist", recoverable=False)
    except Exception as error:
        # a broken header, a reset, a bad gzip stream: the other feeds still count
        return _error(
            feed, f"could not be read: {type(error).__name__}", recoverable=True
        )
    try:
        parsed = feedparser.parse(io.BytesIO(data), response_headers=headers)
        source = feed.name
        if not feed.has_name:
            title = plain_text(parsed.feed.get("title") or "")
            source = _cut(title, 80) or feed.name
        articles = []
        for entry in parsed.entries[:MAX_ENTRIES]:
            article = _article(entry, source)
            if article is not None:
                articles.append(article)
    except Exception as error:
        return _error(
            feed, f"could not be parsed: {type(error).__name__}", recoverable=False
        )
    if not parsed.get("version") and not parsed.entries:
        return _error(feed, "is not an RSS or Atom feed", recoverable=False)
    return articles


def _error(
    feed: Feed, what: str, *, recoverable: bool, code: str = "FETCH_FAILED"
) -> dict[str, Any]:
    action = (
        "Try again later."
        if recoverable
        else f"Correct or remove {feed.name!r} in the feed list."
    )
    message = f"{feed.name} ({feed.shown()}) {what}"
    return {
        "code": code,
        "message": message,
        "recoverable": recoverable,
        "suggested_action": action,
    }


class _HttpOnly(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        if not newurl.lower().startswith(("http://", "https://")):
            raise urllib.error.URLError("redirected away from http")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for http and https and nothing else: the default one also reads
    ``file:`` and ``ftp:``.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        ProxyHandler,
        HTTPHandler,
        HTTPSHandler,
        HTTPDefaultErrorHandler,
        HTTPErrorProcessor,
        _HttpOnly,
    ):
        opener.add_handler(handler())
    return opener


def _fetch(address: str | Path, timeout: float) -> tuple[bytes, dict[str, str]]:
    """Return at most MAX_BYTES and the headers feedparser wants. Raises: OverflowError,
    TimeoutError, OSError.
    """
    if isinstance(address, Path):
        with address.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise OverflowError
        return data, {}
    end = time.monotonic() + timeout
    headers = {
        "User-Agent": "daily-news-digest/2.0 (feed reader)",
        "Accept": "application/atom+xml, application/rss+xml, application/xml;q=0.9, "
        "text/xml;q=0.9, */*;q=0.1",
        "Accept-Encoding": "gzip",
    }
    body = bytearray()
    with _opener().open(
        urllib.request.Request(address, headers=headers), timeout=timeout
    ) as response:
        gzip = response.headers.get("Content-Encoding", "").lower() == "gzip"
        unpack = zlib.decompressobj(wbits=31) if gzip else None
        while chunk := response.read1(65536):
            body += (
                unpack.decompress(chunk, MAX_BYTES + 1 - len(body)) if unpack else chunk
            )
            if len(body) > MAX_BYTES:
                raise OverflowError
            if time.monotonic() > end:
                raise TimeoutError
        kept = {
            "content-type": response.headers.get("Content-Type", ""),
            "content-location": response.url,
        }
    return bytes(body), {name: value for name, value in kept.items() if value}


def _article(entry: Any, source: str) -> Article | None:
    """Return *entry* as an article, or None where it has no http(s) link."""
    link = str(entry.get("link") or entry.get("id") or "").strip()
    if not re.match(r"https?://[^/\s]", link, re.IGNORECASE):
        return None
    html = entry.get("summary")
    content = entry.get("content")
    if not html and content:
        html = content[0].get("value")
    text = plain_text(html or "")
    title = plain_text(entry.get("title") or "") or text[:80] or link
    return Article(
        _cut(title, 300), source, _clean_url(link), _published(entry), text[:4000]
    )


def _published(entry: Any) -> datetime | None:
    for name in ("published_parsed", "updated_parsed", "created_parsed"):
        try:
            if moment := entry.get(name):
                return datetime.fromtimestamp(calendar.timegm(moment), UTC)
        except (
            ValueError,
            OverflowError,
            OSError,
        ):  # a date no calendar has: as good as none
            continue
    return None


def _clean_url(url: str) -> str:
    """Return *url* with everything percent-encoded that RFC 3986 does not allow as it
    stands.
    """
    scheme, netloc, path, query, fragment = urlsplit(url.strip())
    lone = re.compile(r"%(?![0-9A-Fa-f]{2})")
    path, query, fragment = (
        quote(lone.sub("%25", part), safe="%/:?#@!$&'*+,;=~-._()")
        for part in (path, query, fragment)
    )
    return urlunsplit(
        (
            scheme.lower(),
            quote(netloc, safe="%:@[]!$&'()*+,;=~-._"),
            path,
            query,
            fragment,
        )
    )


def _identity(url: str) -> str:
    """Return what two addresses of the same article have in common: no fragment, no
    tracking, no last slash.
    """
    parts = urlsplit(url)
    kept = [
        pair
        for pair in parse_qsl(parts.query, keep_blank_values=True)
        if not TRACKING.match(pair[0])
    ]
    return urlunsplit(
        ("", parts.netloc.lower(), parts.path.rstrip("/"), urlencode(kept), "")
    )


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.hidden += tag in ("script", "style")
        if tag in ("p", "br", "div", "li", "td", "h1", "h2", "h3"):
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style") and self.hidden > 0
        if tag in ("p", "div", "li"):
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)


def plain_text(html: str) -> str:
    """Return *html* as one line of text without tags, scripts and control characters.

    >>> plain_text("<p>Rates <b>rise</b> again.</p><script>x()</script>&amp; more")
    'Rates rise again. & more'
    """
    parser = _Text()
    parser.feed(html)
    parser.close()
    text = "".join(
        char for char in "".join(parser.parts) if char.isprintable() or char.isspace()
    )
    return " ".join(text.split())


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
