"""The news digest, on feeds from files and from a server on loopback."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError

pytestmark = pytest.mark.processes

SKILL = Path(__file__).resolve().parents[2] / "skills" / "daily-news-digest"
NOW = datetime.now(UTC)
AI = "Europe agrees on AI regulation"


def rss(*items: tuple[str, str, float | None, str], title: str = "Test News") -> bytes:
    """Return an RSS feed of (title, link, age in hours, description)."""
    entries = ""
    for name, link, hours, text in items:
        date = (
            ""
            if hours is None
            else f"<pubDate>{format_datetime(NOW - timedelta(hours=hours))}</pubDate>"
        )
        entries += (
            f"<item><title>{escape(name)}</title><link>{escape(link)}</link>{date}"
        )
        entries += f"<description>{escape(text)}</description></item>"
    return f'<rss version="2.0"><channel><title>{title}</title>{entries}</channel></rss>'.encode()


def atom(name: str, link: str, hours: float) -> bytes:
    """Return an Atom feed of one entry."""
    date = (NOW - timedelta(hours=hours)).isoformat()
    entry = (
        f"<entry><title>{name}</title><link "
        f'href="{link}"/><id>urn:1</id><updated>{date}</updated>'
    )
    entry += (
        "<summary type='html'>&lt;p&gt;A bill on AI was passed "
        "today.&lt;/p&gt;</summary></entry>"
    )
    return (
        '<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom'
        f" Post</title>{entry}</feed>".encode()
    )


def use(workspace: Path, *feeds: Any, **settings: Any) -> None:
    (workspace / "news_feeds.json").write_text(
        json.dumps({"feeds": list(feeds), **settings})
    )


def titles(document: dict[str, Any], topic: int = 0) -> list[str]:
    return [
        article["title"] for article in document["topics_covered"][topic]["articles"]
    ]


def test_rss_and_atom_become_one_digest(digest: Any, site: Any) -> None:
    """Articles of both kinds of feed are matched, title matches first, with source,
    link, date and key points.
    """
    text = "<p>The <b>AI</b> act passed with 80 votes. It takes effect in May.</p>"
    site.pages["/rss"] = (
        200,
        {},
        rss(
            (AI, "https://a.example/1", 3, text),
            ("Cup final", "https://a.example/2", 1, "x"),
        ),
    )
    site.pages["/atom"] = (
        200,
        {},
        atom(
            "Parliament votes on regulation",
            "https://b.example/vote?utm_source=feed",
            1,
        ),
    )
    use(digest.workspace, {"name": "Alpha", "url": site.url("/rss")}, site.url("/atom"))

    answer = digest.call({"topics": ["AI regulation", "volcano"]})

    assert (
        answer.exit_code == 0
        and answer.document["status"] == "success"
        and answer.stderr == ""
    )
    first, second = answer.document["topics_covered"][0]["articles"]
    assert (
        first["title"] == AI
        and first["source"] == "Alpha"
        and first["url"] == "https://a.example/1"
    )
    assert first["key_points"] == [
        "The AI act passed with 80 votes.",
        "It takes effect in May.",
    ]
    assert first["published_at"] == (NOW - timedelta(hours=3)).isoformat(
        timespec="seconds"
    )
    assert second["source"] == "Atom Post"
    empty = answer.document["topics_covered"][1]
    assert (
        empty["articles"] == []
        and empty["summary"] == "No article in the feeds matched in the past 24 hours."
    )
    assert answer.document["metadata"] == {
        "search_queries_used": ["AI + regulation", "volcano"],
        "sources_searched": 2,
        "articles_read": 3,
        "file_saved": None,
    }


def test_time_range_and_cap_are_kept(digest: Any) -> None:
    """Old articles are out, undated ones are out and said so, and the newest fill the
    cap.
    """
    rows = [
        (f"Bank news {hours}", f"https://a.example/{hours}", hours, "")
        for hours in (2, 30, 100, 300, 900)
    ]
    (digest.workspace / "feed.xml").write_bytes(
        rss(*rows, ("Bank undated", "https://a.example/u", None, ""))
    )
    use(digest.workspace, "feed.xml")
    calls = [
        {"topics": ["bank"], "time_range": name}
        for name in ("today", "24h", "this_week", "this_month")
    ]
    calls.append(
        {"topics": ["bank"], "time_range": "this_month", "max_articles_per_topic": 1}
    )

    *ranges, capped = [answer.document for answer in digest.call_each(calls)]

    assert [len(titles(document)) for document in ranges] == [1, 1, 3, 4]
    assert ranges[0]["metadata"]["notes"] == [
        "1 matching article(s) carry no date and were left out."
    ]
    assert titles(capped) == ["Bank news 2"]
    topic = capped["topics_covered"][0]
    assert (topic["article_count"], topic["articles_found"]) == (1, 4)
    assert topic["summary"].startswith(
        "4 articles from 1 source in the past 30 days. The 1 below come first."
    )


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (
            "structured",
            (
                "## AI\n"
                "\n"
                f"1 article from 1 source in the past 24 hours. Leading: “{AI}” (N).\n"
                "\n"
                f"- [{AI}]("
            ),
        ),
        ("bullets", f"**AI**\n\n- [{AI}](https://a.example/1) · N, "),
        (
            "prose",
            (
                f"**AI.** 1 article from 1 source in the past 24 hours. Leading: “{AI}”"
                f" (N).\n\n[{AI}]("
            ),
        ),
        ("brief", f"**AI**\n\n- [{AI}](https://a.example/1) (N, "),
    ],
)
def test_each_format_is_markdown_of_its_own(
    digest: Any, style: str, expected: str
) -> None:
    """The four formats of 31.1 differ in the text, not in the data."""
    (digest.workspace / "f.xml").write_bytes(
        rss((AI, "https://a.example/1", 1, "A long enough sentence about it."))
    )
    use(digest.workspace, {"name": "N", "url": "f.xml"})

    document = digest.call({"topics": ["AI"], "output_format": style}).document

    assert (
        document["digest"].startswith("# News digest · ")
        and expected in document["digest"]
    )
    assert titles(document) == [AI]


def test_feeds_that_fail_cost_only_themselves(digest: Any, site: Any) -> None:
    """Each failed feed is one error of 31.2's form with the right code, and shows no
    secret of its address.
    """
    site.pages |= {
        "/good": (200, {}, rss((AI, "https://a.example/1", 1, ""))),
        "/zipped": (
            200,
            {"Content-Encoding": "gzip"},
            gzip.compress(rss(("More AI", "https://a.example/9", 1, ""))),
        ),
        "/gone": (410, {}, b""),
        "/busy": (503, {}, b""),
        "/slow-down": (429, {"Retry-After": "60"}, b""),
        "/page": (
            200,
            {"Content-Type": "text/html"},
            b"<!doctype html><html><body>Hello</body></html>",
        ),
        "/huge": (200, {}, b" " * (3 * 1024 * 1024 + 1)),
        "/bomb": (
            200,
            {"Content-Encoding": "gzip"},
            gzip.compress(b" " * (40 * 1024 * 1024)),
        ),
        "/inward": (302, {"Location": "file:///etc/hostname"}, b""),
    }
    names = ["gone", "busy", "slow-down", "page", "huge", "bomb", "inward"]
    feeds = [
        {"name": name, "url": site.url(f"/{name}?key=secret")}
        for name in ("good", "zipped", *names)
    ]
    use(digest.workspace, *feeds, timeout_seconds=15)

    answer = digest.call({"topics": ["AI"]})

    assert answer.exit_code == 0 and answer.document["status"] == "partial_success"
    assert titles(answer.document) == [AI, "More AI"]
    found = [
        (error["message"].split()[0], error["code"], error["recoverable"])
        for error in answer.document["errors"]
    ]
    assert found == [
        ("gone", "FETCH_FAILED", False),
        ("busy", "FETCH_FAILED", True),
        ("slow-down", "RATE_LIMIT_EXCEEDED", True),
        ("page", "FETCH_FAILED", False),
        ("huge", "FETCH_FAILED", False),
        ("bomb", "FETCH_FAILED", False),
        ("inward", "FETCH_FAILED", False),
    ]
    assert "secret" not in json.dumps(answer.document["errors"])
    assert "*Feeds that could not be read: 7.*" in answer.document["digest"]


def test_a_feed_that_hangs_is_left_after_its_time(digest: Any, site: Any) -> None:
    """A feed that never answers is given up, may be tried again, and shows no secret of
    its address.
    """
    site.hanging.add("/hangs")
    use(
        digest.workspace,
        {"name": "hangs", "url": site.url("/hangs?key=secret")},
        timeout_seconds=1,
    )

    [error] = digest.call({"topics": ["AI"]}).document["errors"]

    assert (error["code"], error["recoverable"]) == ("FETCH_FAILED", True)
    assert "did not answer within 1 s" in error["message"]
    assert "secret" not in json.dumps(error)


def test_no_feed_at_all_is_a_failure(digest: Any, site: Any) -> None:
    """When every feed fails, the status is failed and the exit code 1; the document
    still fits the output schema.
    """
    use(
        digest.workspace,
        {"name": "Away", "url": site.url("/nothing")},
        {"name": "Lost", "url": "missing.xml"},
    )

    answer = digest.call({"topics": ["AI"]})

    assert answer.exit_code == 1 and answer.document["status"] == "failed"
    Contract.from_dict(digest.contract()).check(answer.document)
    assert [error["message"] for error in answer.document["errors"]] == [
        f"Away ({site.url('/nothing')}) answered HTTP 404",
        "Lost (missing.xml) does not exist",
    ]


def test_digest_is_saved_in_the_workspace(digest: Any) -> None:
    """The file has the digest's text, and a later digest may replace it."""
    (digest.workspace / "f.xml").write_bytes(rss((AI, "https://a.example/1", 1, "")))
    use(digest.workspace, "f.xml")

    named = digest.call(
        {"topics": ["AI"], "save_to_file": True, "file_path": "out/monday.md"}
    ).document
    again = digest.call(
        {"topics": ["AI"], "save_to_file": True, "file_path": "out/monday.md"}
    ).document
    default = digest.call({"topics": ["AI"], "save_to_file": True}).document

    assert (
        named["metadata"]["file_saved"]
        == again["metadata"]["file_saved"]
        == "out/monday.md"
    )
    assert (
        default["metadata"]["file_saved"]
        == f"news_digest_{default['generated_at'][:10]}.md"
    )
    text = (digest.workspace / "out" / "monday.md").read_text(encoding="utf-8")
    assert text == "<!-- daily-news-digest -->\n" + again["digest"]
    assert sorted(path.name for path in (digest.workspace / "out").iterdir()) == [
        "monday.md"
    ]


def test_other_files_are_never_replaced(digest: Any) -> None:
    """A file that is not a digest, a directory, and a path outside are refused before
    any feed is read.
    """
    (digest.workspace / "notes.md").write_text("mine")
    (digest.workspace / "folder.md").mkdir()
    use(digest.workspace, "missing.xml")
    paths = ["notes.md", "folder.md", "../out.md", "/etc/digest.md", "notes.md/x.md"]

    answers = digest.call_each(
        [{"topics": ["AI"], "save_to_file": True, "file_path": path} for path in paths]
    )

    assert {answer.error["code"] for answer in answers} == {"INVALID_INPUT"}
    assert {answer.error["details"]["path"] for answer in answers} == {"/file_path"}
    assert (digest.workspace / "notes.md").read_text() == "mine"


def test_hostile_feed_is_only_text(digest: Any) -> None:
    """Scripts, markup, javascript links and entity bombs in a feed reach neither the
    data nor the Markdown.
    """
    levels = (f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">' for level in range(1, 9))
    entities = f'<!ENTITY a0 "{"ha" * 50}">' + "".join(levels)
    items = (
        "<item><title>AI](javascript:x) &lt;img src=x&gt; *now* "
        "&a8;</title><link>https://a.example/%zz a(1)</link>"
    )
    items += (
        f"<pubDate>{format_datetime(NOW)}</pubDate><description>&lt;script&gt;"
        "steal()&lt;/script&gt;An AI story of"
    )
    items += (
        " some length.</description></item><item><title>AI "
        "evil</title><link>javascript:alert(1)</link></item>"
    )
    feed = (
        f'<?xml version="1.0"?><!DOCTYPE rss [{entities}]><rss '
        f'version="2.0"><channel>{items}</channel></rss>'
    )
    (digest.workspace / "f.xml").write_text(feed)
    use(digest.workspace, "f.xml")

    document = digest.call({"topics": ["AI"]}).document

    (article,) = document["topics_covered"][0]["articles"]
    assert article["url"] == "https://a.example/%25zz%20a(1)"
    assert article["key_points"] == ["An AI story of some length."]
    assert "steal" not in json.dumps(document) and len(article["title"]) <= 300
    assert (
        "[AI\\](javascript:x)" in document["digest"]
        and "](https://a.example/%25zz%20a%281%29)" in document["digest"]
    )


def test_one_article_in_two_feeds_appears_once(digest: Any) -> None:
    """Tracking parameters do not make another article; the first feed of the list is
    the source.
    """
    (digest.workspace / "a.xml").write_bytes(
        rss((AI, "https://a.example/1?id=7&utm_medium=rss", 1, ""))
    )
    (digest.workspace / "b.xml").write_bytes(
        rss((AI, "https://A.example/1?id=7&at_campaign=x#top", 1, ""))
    )
    use(digest.workspace, {"name": "A", "url": "a.xml"}, {"name": "B", "url": "b.xml"})

    document = digest.call({"topics": ["AI"]}).document

    assert [
        article["source"] for article in document["topics_covered"][0]["articles"]
    ] == ["A"]


def test_feed_list_of_the_environment_comes_first(
    digest: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """NEWS_DIGEST_FEEDS wins over the workspace's list, and may name files outside the
    workspace.
    """
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "f.xml").write_bytes(rss((AI, "https://a.example/1", 1, "")))
    (elsewhere / "list.json").write_text('["f.xml"]')
    use(digest.workspace, "missing.xml")

    answer = digest.call(
        {"topics": ["AI"]}, NEWS_DIGEST_FEEDS=str(elsewhere / "list.json")
    )

    assert titles(answer.document) == [AI]
    assert answer.document["topics_covered"][0]["articles"][0]["source"] == "Test News"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ('{"feeds": []}', "holds no list of 1 to 50 feeds"),
        ('{"feeds": [{"name": "x"}]}', "has an entry without a url"),
        (
            '{"feeds": ["ftp://example.org/feed"]}',
            "has 'ftp' addresses: only http, https and files are read",
        ),
        ('{"feeds": ["../../secret.xml"]}', "names a file outside the workspace"),
        (
            '{"feeds": ["f.xml"], "timeout_seconds": 600}',
            "has a timeout_seconds that is not between 0 and 20",
        ),
    ],
)
def test_wrong_feed_list_is_explained(digest: Any, text: str, said: str) -> None:
    """A feed list that cannot be used is an error that says what is wrong with it."""
    (digest.workspace / "news_feeds.json").write_text(text)

    assert said in digest.call({"topics": ["AI"]}).error["message"]


@pytest.mark.slow
def test_malformed_arguments_on_the_command_line_are_refused(digest: Any) -> None:
    """Run without a runtime, the script checks its arguments against the contract
    itself.
    """
    calls = [
        "not json",
        "[]",
        "",
        {"topics": "AI"},
        {"topics": ["AI"], "max_articles": 3},
        {"topics": ["AI"], "max_articles_per_topic": 11},
        {"topics": ["AI"], "output_format": "html"},
        {"topics": ["A"]},
        {"topics": []},
        {"topics": ["AI"], "save_to_file": "yes"},
    ]

    answers = digest.call_each(calls)

    assert [answer.error["code"] for answer in answers] == [
        "INVALID_INPUT",
        "INVALID_INPUT",
        "MISSING_REQUIRED_PARAM",
        "INVALID_INPUT",
        "INVALID_INPUT",
        "PARAM_OUT_OF_RANGE",
        *["INVALID_INPUT"] * 4,
    ]
    assert (
        answers[4].error["suggested_action"] == "Did you mean 'max_articles_per_topic'?"
    )


def test_calls_for_version_1_are_migrated() -> None:
    """In 1.x topics was one string (contract document, 31.5): it becomes a list of
    one.
    """
    contract = Contract.from_dict(
        json.loads((SKILL / "contract.json").read_text(encoding="utf-8"))
    )

    accepted = contract.accept({"topics": "AI regulation"}, fill_defaults=False)

    assert accepted.arguments == {"topics": ["AI regulation"]}
    assert accepted.migrated_from is not None


def test_a_string_for_a_count_is_repaired_and_an_unknown_key_refused() -> None:
    """The contract takes what models really send, and no more."""
    contract = Contract.from_dict(
        json.loads((SKILL / "contract.json").read_text(encoding="utf-8"))
    )

    accepted = contract.accept(
        {"topics": ["AI"], "max_articles_per_topic": "5"}, fill_defaults=False
    )

    assert accepted.arguments == {"topics": ["AI"], "max_articles_per_topic": 5}
    with pytest.raises(SkillInputError):
        contract.accept({"topics": ["AI"], "tone": "cheerful"})


@pytest.mark.parametrize(
    ("topic", "text", "expected"),
    [
        ("bank policies", "The Bank's policy", True),
        ("regulation", "the regulator", False),
        ("São Paulo", "sao paulo floods", True),
        ("US economy", "The U.S. economy grew", True),
        ("US economy", "Tell us about the economy", False),
        ("WHO", "Who won?", False),
        ("LLM", "New LLMs arrive", True),
        ('"supreme court"', "The Supreme Court ruled", True),
        ('"supreme court"', "court supreme", False),
        ("人工智能", "欧盟通过人工智能法案", True),
        ("the news", "Any news of the day", True),
        ("art", "A start", False),
    ],
)
def test_topics_match_whole_words(
    monkeypatch: pytest.MonkeyPatch, topic: str, text: str, expected: bool
) -> None:
    """Matching is what references/matching.md says: whole words, all of them, acronyms
    in capitals.
    """
    monkeypatch.syspath_prepend(str(SKILL / "scripts"))
    from matching import Topic  # type: ignore[import-not-found]

    assert Topic.parse(topic).matches(text) is expected


def test_bundled_feeds_are_well_formed() -> None:
    """The default list has named, distinct https feeds; no test fetches them."""
    feeds: Sequence[dict[str, str]] = json.loads(
        (SKILL / "assets" / "feeds.json").read_text()
    )["feeds"]

    assert len(feeds) >= 10
    assert all(
        set(feed) == {"name", "url"} and feed["url"].startswith("https://")
        for feed in feeds
    )
    assert (
        len({feed["url"] for feed in feeds})
        == len({feed["name"] for feed in feeds})
        == len(feeds)
    )


def test_a_feed_without_entries_is_a_feed(digest: Any) -> None:
    """It was read, and has nothing."""
    (digest.workspace / "empty.xml").write_text(
        "<rss version='2.0'><channel><title>Quiet</title></channel></rss>"
    )
    use(digest.workspace, {"name": "Quiet", "url": "empty.xml"})

    document = digest.call({"topics": ["AI"]}).document

    assert document["status"] == "success"
    assert document["metadata"]["sources_searched"] == 1


CUT = "was cut: only its first 1 article(s) could be read"


def two_articles() -> bytes:
    return rss(
        (AI, "https://a.example/first", 2, "One."),
        ("AI regulation is late", "https://a.example/second", 1, "Two."),
    )


@pytest.mark.parametrize(
    "end",
    ["</item></channel>", "description>Two.", "/second", " is late", "<item><title>AI"],
)
def test_a_feed_that_is_cut_makes_a_partial_success(digest: Any, end: str) -> None:
    """Wherever its last bytes are missing, the whole articles before them count, half a
    title or address never, and an error names the feed.
    """
    whole = two_articles()
    (digest.workspace / "cut.xml").write_bytes(whole[: whole.rindex(end.encode()) + 3])
    use(digest.workspace, {"name": "Alpha", "url": "cut.xml"})

    document = digest.call({"topics": ["AI regulation"]}).document

    assert document["status"] == "partial_success"
    assert titles(document) == [AI]
    assert document["metadata"]["sources_searched"] == 1
    (error,) = document["errors"]
    assert error["message"] == f"Alpha (cut.xml) {CUT}" and error["recoverable"]
    assert "*Feeds that were read only in part: 1.*" in document["digest"]


def test_a_connection_that_ends_too_early_makes_a_partial_success(
    digest: Any, site: Any
) -> None:
    """A body shorter than its length, or packed and without its end, is cut too."""
    whole = two_articles()
    packed = gzip.compress(whole + b" " * 5000)
    short = whole[: whole.rindex(b"<description>")]
    site.pages["/short"] = (200, {"Content-Length": str(len(whole))}, short)
    site.pages["/packed"] = (200, {"Content-Encoding": "gzip"}, packed[:-8])
    for path in ("/short", "/packed"):
        use(digest.workspace, {"name": "Alpha", "url": site.url(path)})

        document = digest.call({"topics": ["AI regulation"]}).document

        assert document["status"] == "partial_success"
        assert AI in titles(document)
        assert "was cut: only its first" in document["errors"][0]["message"]


def test_a_feed_that_is_cut_before_its_first_article_was_not_read(digest: Any) -> None:
    """There is nothing of it to show: the only feed of a list, so the call fails."""
    whole = two_articles()
    (digest.workspace / "cut.xml").write_bytes(whole[: whole.index(b"</link>")])
    use(digest.workspace, {"name": "Alpha", "url": "cut.xml"})

    error = digest.call({"topics": ["AI regulation"]}).error

    assert error["message"] == "Alpha (cut.xml) was cut before its first article"
    assert error["recoverable"] is True


def test_a_feed_that_is_only_malformed_is_not_cut(digest: Any) -> None:
    """An entity that XML does not know, in a feed that has its end."""
    odd = two_articles().replace(b"One.", b"One&nbsp;two.")
    (digest.workspace / "odd.xml").write_bytes(odd)
    use(digest.workspace, {"name": "Alpha", "url": "odd.xml"})

    document = digest.call({"topics": ["AI regulation"]}).document

    assert document["status"] == "success"
    assert len(titles(document)) == 2


def test_a_feed_longer_than_the_limit_says_that_articles_may_be_missing(
    digest: Any,
) -> None:
    """The first 500 entries count, and the answer is a partial success."""
    items = [(AI, f"https://a.example/{index}", 1, "") for index in range(501)]
    (digest.workspace / "long.xml").write_bytes(rss(*items))
    use(digest.workspace, {"name": "Alpha", "url": "long.xml"})

    document = digest.call({"topics": ["AI regulation"]}).document

    assert document["status"] == "partial_success"
    assert document["topics_covered"][0]["articles_found"] == 500
    (error,) = document["errors"]
    assert error["message"] == (
        "Alpha (long.xml) has 501 entries: only the first 500 were read"
    )
    assert error["suggested_action"] == (
        "Tell the user that articles of this feed may be missing."
    )
