"""Which feeds to read, and reading them: bounded in bytes and seconds, and never more
than feeds.

Not a tool: digest.py imports it. Fetching is urllib with http and https only;
feedparser gets bytes, never an address.
"""

from __future__ import annotations

import calendar
import http.client
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
ROOT = re.compile(rb"<([A-Za-z_][\w:.-]*+)")
ENTRY_END = re.compile(rb"</(?:\w+:)?(?:item|entry)\s*>", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What reading one feed gave: its articles, and an error where it was not read, or
    not whole.
    """

    articles: tuple[Article, ...] = ()
    error: dict[str, Any] | None = None

    @property
    def is_read(self) -> bool:
        """Return whether the feed gave what it has, or part of it."""
        return bool(self.articles) or self.error is None


@dataclass(frozen=True, slots=True)
class FeedsRead:
    """What all feeds gave: the distinct articles; how many feeds were read, and how
    many of these only in part; and the errors, in the order of the list.
    """

    articles: list[Article]
    read: int
    cut: int
    errors: list[dict[str, Any]]


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


def read_feeds(chosen: FeedList) -> FeedsRead:
    """Return what the feeds have, with one error for each that could not be read, or
    not whole.

    Feeds are read eight at a time. The threads are daemons: one that hangs is left
    behind when the time is up.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, Outcome]] = queue.SimpleQueue()
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
    results: dict[int, Outcome] = {}
    deadline = time.monotonic() + min(
        ALL_FEEDS_SECONDS, chosen.timeout * (1 + len(chosen.feeds) // WORKERS) + 1
    )
    while len(results) < len(chosen.feeds):
        try:
            index, result = done.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        results[index] = result
    outcomes = []
    for index, feed in enumerate(chosen.feeds):
        late = Outcome(error=_error(feed, "was not read in time", recoverable=True))
        outcomes.append(results.get(index, late))
    return _joined(outcomes)


def _joined(outcomes: list[Outcome]) -> FeedsRead:
    """Join what the feeds gave, in the list's order, so that the answer does not depend
    on speed.
    """
    articles: dict[str, Article] = {}
    errors = []
    read, cut = 0, 0
    for outcome in outcomes:
        if outcome.error is not None:
            errors.append(outcome.error)
        if outcome.is_read:
            read += 1
            cut += outcome.error is not None
        for article in outcome.articles:
            articles.setdefault(_identity(article.url), article)
    return FeedsRead(list(articles.values()), read, cut, errors)


def _read_feed(feed: Feed, timeout: float) -> Outcome:
    """Return the articles of *feed*, or the error that the digest reports."""
    try:
        fetched = _fetch(feed.address, timeout)
    except Exception as error:
        # a broken header, a reset, a bad gzip stream: the other feeds still count
        return Outcome(error=_fetch_error(feed, timeout, error))
    try:
        return _parse_fetched(feed, fetched)
    except Exception as error:
        what = f"could not be parsed: {type(error).__name__}"
        return Outcome(error=_error(feed, what, recoverable=False))


def _fetch_error(feed: Feed, timeout: float, error: Exception) -> dict[str, Any]:
    """Return the error for what ended the fetching of *feed*."""
    no_answer = f"did not answer within {timeout:g} s"
    match error:
        case urllib.error.HTTPError(code=status):
            error.close()
            code = "RATE_LIMIT_EXCEEDED" if status == 429 else "FETCH_FAILED"
            passing = status == 429 or status >= 500
            what = f"answered HTTP {status}"
            return _error(feed, what, recoverable=passing, code=code)
        case TimeoutError() | urllib.error.URLError(reason=TimeoutError()):
            return _error(feed, no_answer, recoverable=True)
        case urllib.error.URLError(reason=reason):
            return _error(feed, f"could not be reached: {reason}", recoverable=True)
        case OverflowError():
            what = f"is larger than {MAX_BYTES // 1024**2} MiB"
            return _error(feed, what, recoverable=False)
        case FileNotFoundError():
            return _error(feed, "does not exist", recoverable=False)
    what = f"could not be read: {type(error).__name__}"
    return _error(feed, what, recoverable=True)


def _parse_fetched(feed: Feed, fetched: Fetched) -> Outcome:
    """Return the articles in what was fetched of *feed*: of a feed that is cut, those
    that are whole, with an error that says so.
    """
    parsed = feedparser.parse(
        io.BytesIO(fetched.data), response_headers=fetched.headers
    )
    is_cut = fetched.is_cut or (bool(parsed.bozo) and _lacks_end(fetched.data))
    if not parsed.get("version") and not parsed.entries:
        what = "was cut in its head" if is_cut else "is not an RSS or Atom feed"
        return Outcome(error=_error(feed, what, recoverable=is_cut))
    source = feed.name
    if not feed.has_name:
        title = plain_text(parsed.feed.get("title") or "")
        source = _cut(title, 80) or feed.name
    entries = parsed.entries
    if is_cut:  # an entry that the cut goes through may have half a title or address
        entries = entries[: len(ENTRY_END.findall(fetched.data.replace(b"\0", b"")))]
    articles = []
    for entry in entries[:MAX_ENTRIES]:
        article = _article(entry, source)
        if article is not None:
            articles.append(article)
    error = None
    if is_cut:
        what = "was cut before its first article"
        if articles:
            what = f"was cut: only its first {len(articles)} article(s) could be read"
        error = _error(feed, what, recoverable=True)
    elif len(entries) > MAX_ENTRIES:
        what = f"has {len(entries)} entries: only the first {MAX_ENTRIES} were read"
        error = _error(feed, what, recoverable=False)
        error["suggested_action"] = (
            "Tell the user that articles of this feed may be missing."
        )
    return Outcome(tuple(articles), error)


def _lacks_end(data: bytes) -> bool:
    """Return whether the end tag of the document's root element is missing.

    >>> _lacks_end(b"<?xml version='1.0'?><rss><channel></channel></rss>")
    False
    >>> _lacks_end(b"<!-- a > b --><rss><channel><item><title>Rates ri")
    True
    """
    text = data.replace(b"\0", b"")  # the tags of UTF-16, as ASCII
    root = ROOT.search(text)
    if root is None:
        return False
    return not re.search(rb"</" + re.escape(root[1]) + rb"\s*>", text, re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class Fetched:
    """The bytes of a feed, the headers that feedparser wants, and whether the
    connection ended before the feed did.
    """

    data: bytes
    headers: dict[str, str]
    is_cut: bool = False


def _fetch(address: str | Path, timeout: float) -> Fetched:
    """Return at most MAX_BYTES. Raises: OverflowError, TimeoutError, OSError."""
    if isinstance(address, Path):
        with address.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise OverflowError
        return Fetched(data, {})
    headers = {
        "User-Agent": "daily-news-digest/2.0 (feed reader)",
        "Accept": "application/atom+xml, application/rss+xml, application/xml;q=0.9, "
        "text/xml;q=0.9, */*;q=0.1",
        "Accept-Encoding": "gzip",
    }
    end = time.monotonic() + timeout
    request = urllib.request.Request(address, headers=headers)
    with _opener().open(request, timeout=timeout) as response:
        body, is_cut = _read_body(response, end)
        kept = {
            "content-type": response.headers.get("Content-Type", ""),
            "content-location": response.url,
        }
    return Fetched(body, {name: value for name, value in kept.items() if value}, is_cut)


def _read_body(response: Any, end: float) -> tuple[bytes, bool]:
    """Return the body, unpacked, and whether the connection ended before the body did.
    *end* is the clock's time when reading must be over.
    """
    is_packed = response.headers.get("Content-Encoding", "").lower() == "gzip"
    unpack = zlib.decompressobj(wbits=31) if is_packed else None
    body = bytearray()
    try:
        while chunk := response.read1(65536):
            if unpack is not None:
                chunk = unpack.decompress(chunk, MAX_BYTES + 1 - len(body))
            body += chunk
            if len(body) > MAX_BYTES:
                raise OverflowError
            if time.monotonic() > end:
                raise TimeoutError
    except (http.client.IncompleteRead, ConnectionError):
        if not body:
            raise
        return bytes(body), True
    # read1 does not say that a connection ended too early; these count what is left.
    is_short = bool(response.length)
    return bytes(body), is_short or (unpack is not None and not unpack.eof)


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
