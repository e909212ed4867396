"""Finding the one skill among thousands, in English and Chinese."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillruntime.catalog import SearchIndex, SkillMetadata, discover
from skillruntime.catalog.search.words import joined_words, stem, words_of
from tests.catalog.conftest import WriteSkill


@pytest.fixture
def index() -> SearchIndex:
    rows = {
        "pdf-processing": "Extract text and tables from PDF files, merge documents.",
        "news-digest": "Summarise the daily news from feeds.",
        "wen-dang": "从 PDF 文件中提取文本和表格,填写表单。",
        "fastapi-router": "Create FastAPI routers and OpenApi documents.",
    }
    return SearchIndex(
        [SkillMetadata(name, text, f"/{name}") for name, text in rows.items()],
        bodies=False,
    )


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
    """By words, their stems, the parts of joined words, and pairs of Chinese
    characters.
    """
    assert index.search(query)[0].name == first


@pytest.mark.parametrize(
    "query",
    [
        "",
        "  ",
        "???",
        '"',
        "zebra",
        "* OR NOT (",
        "name:x AND",
        "\0",
        "x" * 100_000,
        "\ud800",
    ],
)
def test_any_query_is_accepted(index: SearchIndex, query: str) -> None:
    """Operators of the engine are words like any other."""
    assert index.search(query) == []


def test_a_request_of_several_sentences_is_searched_by_its_topic(
    index: SearchIndex,
) -> None:
    """Words that every request contains do not count, however rare they are in
    skills.
    """
    request = (
        "Hello, I would like to know whether you could perhaps help me with "
        "something. My boss always wants everything today. There are thirty documents "
        "here which somebody should merge, and please take the tables as well."
    )
    assert index.search(request)[0].name == "pdf-processing"
    assert index.search("would you please") == []


def test_the_spellings_of_one_word_have_one_stem() -> None:
    """British and American, the verb and what is made of it."""
    words = ["optimize", "optimise", "optimizing", "optimization", "optimisation"]

    assert {stem(word) for word in words} == {"optimis"}


def test_the_limit_holds_and_ties_go_by_name() -> None:
    """The same query gives the same list."""
    skills = [SkillMetadata(f"skill-{n}", "the same words", "/") for n in (3, 1, 2)]
    index = SearchIndex(skills, bodies=False)

    assert [hit.name for hit in index.search("same words", 2)] == ["skill-1", "skill-2"]
    assert index.search("same", 0) == []


def test_instructions_are_searched_too(tmp_path: Path, write_skill: WriteSkill) -> None:
    """Their beginning, headings and tags; a file that no longer exists is not an
    error.
    """
    write_skill(
        "one",
        text="---\n"
        "name: one\n"
        "description: First\n"
        "tags: [zebra]\n"
        "---\n"
        "# Ghostscript\n"
        "\n"
        "Call gs.\n",
    )
    directory = write_skill(
        "two", text="---\nname: two\ndescription: Second\n---\nUses Ghostscript.\n"
    )
    catalog = discover(tmp_path / "skills")
    (directory / "SKILL.md").unlink()

    assert [hit.name for hit in catalog.search("ghostscript")] == ["one"]
    assert [hit.name for hit in catalog.search("zebra")] == ["one"]
    assert [hit.name for hit in catalog.search("second")] == ["two"]


def test_the_beginning_of_a_long_file_is_searched(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """A file has more bytes than are read; what is read counts."""
    text = "---\nname: one\ndescription: First\n---\nUses Ghostscript.\n"
    write_skill("one", text=text + "More.\n" * 10_000)

    hits = discover(tmp_path / "skills").search("ghostscript", wait=True)

    assert [hit.name for hit in hits] == ["one"]


def test_tags_are_searched_wherever_they_are_stated(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """In the frontmatter, below `metadata`, and in a descriptor; one that cannot be
    read has none.
    """
    write_skill(
        "one",
        text="---\n"
        "name: one\n"
        "description: First\n"
        "metadata:\n"
        "  tags: zebra, gnu\n"
        "---\n"
        "Body\n",
    )
    described = write_skill(
        "two", text="---\nname: two\ndescription: Second\n---\nBody\n"
    )
    (described / "descriptor.json").write_text('{"tags": ["zebra", 7, "okapi"]}')
    for name, text in (
        ("three", "not JSON"),
        ("four", '{"tags": "zebra"}'),
        ("five", "[" * 100_000),
    ):
        other = write_skill(
            name, text=f"---\nname: {name}\ndescription: Other\n---\nBody\n"
        )
        (other / "descriptor.json").write_text(text)
    catalog = discover(tmp_path / "skills")

    assert {hit.name for hit in catalog.search("zebra")} == {"one", "two"}
    assert [hit.name for hit in catalog.search("okapi")] == ["two"]


def test_common_words_find_skills_that_contain_several() -> None:
    """Even if every word of the query is in a third of all skills; also words that
    never occur together.
    """
    texts = ("alpha rest", "beta rest", "gamma rest")
    skills = [SkillMetadata(f"skill-{n}", texts[n % 3], "/") for n in range(3_600)]
    index = SearchIndex(
        [*skills, SkillMetadata("both", "alpha and beta", "/")], bodies=False
    )

    assert index.search("alpha beta")[0].name == "both"
    assert len(index.search("rest")) == len(index.search("alpha gamma")) == 10


def test_a_whole_name_comes_first(write_skill: WriteSkill, tmp_path: Path) -> None:
    """Before a skill that contains its words more often; in any spelling of separators
    and case.
    """
    write_skill("pdf", description="Reads files.")
    write_skill("pdf-pdf-tools", description="The pdf pdf pdf tool for every pdf.")
    catalog = discover(tmp_path / "skills")

    assert [
        catalog.search(query)[0].name for query in ("pdf", "PDF", "pdf_pdf tools")
    ] == ["pdf", "pdf", "pdf-pdf-tools"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("pdf-procesing", "pdf-processing"),
        ("NewsDigestMaker", "news-digest"),
        ("文档", None),
        ("powerpoint-make", None),
    ],
)
def test_an_unknown_name_is_searched_by_its_words(
    index: SearchIndex, query: str, first: str | None
) -> None:
    """What has no word in common with it is not found."""
    assert [hit.name for hit in index.search(query)][:1] == ([first] if first else [])


def test_every_word_of_a_long_query_counts() -> None:
    """The topic is found among hundreds of rare words, wherever it is in the text."""
    noise = [
        SkillMetadata(f"noise-{n}", f"word{n} word{n + 1}", "/") for n in range(3_000)
    ]
    wanted = SkillMetadata("wanted", "ferment cabbage brine kimchi sauerkraut", "/")
    index = SearchIndex([*noise, wanted], bodies=False)
    query = (
        " ".join(f"word{n}" for n in range(0, 900, 3))
        + " ferment cabbage and brine for kimchi and sauerkraut"
    )

    assert index.search(query)[0].name == "wanted"


def test_the_names_of_languages_are_words() -> None:
    """Short ones too, and where other words of the query are more frequent."""
    names = ("go-pro", "c-pro", "r-pro", "rust-pro")
    index = SearchIndex(
        [SkillMetadata(name, "Writes services.", "/") for name in names], bodies=False
    )

    assert [
        index.search(f"write a {name} service")[0].name
        for name in ("Go", "C", "R", "Rust")
    ] == [*names]


def test_a_query_may_have_thousands_of_words() -> None:
    """All of the rare ones count."""
    skills = [
        SkillMetadata(f"s{n}", f"word{n} common{n % 2}", "/") for n in range(3_000)
    ]
    index = SearchIndex(
        [*skills, SkillMetadata("both", "kimchi sauerkraut", "/")], bodies=False
    )
    query = " ".join(f"word{n}" for n in range(1_400)) + " common0 kimchi sauerkraut"

    assert index.search(query)[0].name == "both"
    assert len(index.search(query, 5_000)) >= 1_401


def test_a_repeated_word_counts_by_its_logarithm() -> None:
    """One word that is repeated ten times does not outweigh four others."""
    skills = [SkillMetadata(f"other-{n}", f"filler{n}", "/") for n in range(40)]
    skills += [
        SkillMetadata("one", "cat", "/"),
        SkillMetadata("four", "dog bird fish horse", "/"),
    ]
    index = SearchIndex(skills, bodies=False)

    assert index.search("cat " * 10 + "dog bird fish horse")[0].name == "four"
    assert index.search("cat cat dog")[0].name == "one"


def test_the_sums_hold_for_any_number_of_skills_and_frequent_words() -> None:
    """Frequent words are added by long integers: odd counts, and more than a hundred
    words, give the exact order.
    """
    words = [f"common{n}" for n in range(250)]
    for count in (1, 2, 3, 17, 333, 1_001):
        # The skill number n has the first n words, so the more, the better; and each is
        # in at least every second.
        skills = [
            SkillMetadata(f"s{n:04}", " ".join(words[: 1 + n * 249 // count]), "/")
            for n in range(count)
        ]
        index = SearchIndex(skills, bodies=False)
        found = [hit.name for hit in index.search(" ".join(words), count)]
        assert sorted(found) == [skill.name for skill in skills]
        assert found[0] == f"s{count - 1:04}" or count > 50


@given(st.lists(st.text(max_size=60), min_size=1, max_size=8), st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_any_text_can_be_indexed_and_searched(texts: list[str], query: str) -> None:
    """Every hit has a positive score and a word in common with the query."""
    skills = [SkillMetadata(f"skill-{n}", text, "/") for n, text in enumerate(texts)]
    wanted = _stems(query)
    for hit in SearchIndex(skills, bodies=False).search(query):
        own = f"{hit.name} {hit.description}"
        assert hit.score > 0
        assert wanted & _stems(own)


def _stems(text: str) -> set[str]:
    words = [*words_of(text), *chain(*joined_words(text).values())]
    return {*map(stem, words)}


def test_a_name_comes_first_whatever_its_skill_says() -> None:
    """Where the text of sixty others has its one word."""
    others = [
        SkillMetadata(f"deploy-{n}", "preset preset preset", "/") for n in range(60)
    ]
    index = SearchIndex(
        [*others, SkillMetadata("preset", "Chooses a region.", "/")], bodies=False
    )

    assert index.search("preset", 3)[0].name == "preset"


def test_hostile_queries_and_skills_are_answered() -> None:
    """A query of a megabyte, of ten thousand words, of stop words only; skills that
    repeat what is asked for.
    """
    words = [f"common{n}" for n in range(600)]
    spam = " ".join(words[:9] * 40)
    skills = [
        SkillMetadata(f"s{n:04}", " ".join(words[n % 20 :: 7]), "/")
        for n in range(1_200)
    ]
    index = SearchIndex([*skills, SkillMetadata("spam", spam, "/")], bodies=False)

    assert index.search(" ".join(words[:9]), 1)[0].name == "spam"
    for query in (
        "word " * 200_000,
        " ".join(f"common{n}" for n in range(10_000)),
        "the of and",
        "\u202eabc\0",
        "😀",
    ):
        hits = index.search(query, 1_300)
        assert all(hit.score > 0 for hit in hits)
        assert bool(hits) == ("common" in query)


def test_appended_skills_are_scored_as_in_a_new_index() -> None:
    """Above a thousand skills, where frequent words are stored in another way, with
    hidden skills too.
    """
    skills = [
        SkillMetadata(f"s{n:04}", f"alpha{n % 3} beta{n % 50} rare{n}", f"/{n}")
        for n in range(1_500)
    ]
    file = "search/own.index"
    SearchIndex(skills[20:], file=file)
    appended, fresh = (
        SearchIndex(skills[:-20], file=file, save=False),
        SearchIndex(skills[:-20]),
    )

    for query in ("alpha1", "beta7 alpha2", "rare3 beta3 alpha0", "rare1490 beta40"):
        assert appended.search(query, 50) == fresh.search(query, 50)
    assert [hit.name for hit in fresh.search("rare3")] == ["s0003"]


@pytest.mark.parametrize(
    "query",
    [
        "re\u0301sume\u0301s",
        "\u1112\u1161\u11ab\u1100\u1173\u11af",
        "\uff50\uff44\uff46",
        "\uff30\uff24\uff26\u3001",
    ],
)
def test_letters_are_found_in_any_form_of_unicode(query: str) -> None:
    """As macOS decomposes them, and as wide letters of East Asian keyboards."""
    skill = SkillMetadata("writer", "Résumés, 한글 and PDF", "/writer")

    assert [hit.name for hit in SearchIndex([skill], bodies=False).search(query)] == [
        "writer"
    ]


def test_a_trademark_sign_is_not_a_part_of_a_word() -> None:
    """Unicode's compatibility forms would make "tm" of it."""
    skill = SkillMetadata("tests", "Playwright™ tests", "/tests")

    assert SearchIndex([skill], bodies=False).search("playwright") != []


def test_words_that_stand_side_by_side_count_more() -> None:
    """Where two skills have the same words, that with the pair of the query wins."""
    skills = [
        SkillMetadata("apart", "Rate the plan, then limit it.", "/"),
        SkillMetadata("beside", "Plan it, then rate limit the rest.", "/"),
    ]
    index = SearchIndex(skills, bodies=False)

    assert index.search("rate limit", 1)[0].name == "beside"
    assert index.search("plan a limit of a rate", 2)[0].score > 0


class _Counted(list[SkillMetadata | None]):
    """Skills that count how many of them are looked at."""

    looked_at = 0

    def __getitem__(self, number: Any) -> Any:
        self.looked_at += 1
        return super().__getitem__(number)

    def __iter__(self) -> Any:
        raise AssertionError("all skills were looked at")


def test_a_query_touches_only_skills_that_have_its_words() -> None:
    """Of three thousand, the two that contain them."""
    skills = [SkillMetadata(f"s{n:04}", f"word{n}", "/") for n in range(3_000)]
    index = SearchIndex(skills, bodies=False)
    index.search("warm")
    assert index._state is not None
    [part] = index._state.parts
    counted = _Counted(part.skills)
    index._state = index._state._replace(parts=[part._replace(skills=counted)])

    assert {hit.name for hit in index.search("word7 word1234")} == {"s0007", "s1234"}
    assert counted.looked_at == 2


@pytest.mark.parametrize(
    ("query", "most"),
    [
        ("left", 700),
        ("left upper", 700),
        ("left upper a1 a2", 1_400),
        (f"left upper {' '.join(f'a{n}' for n in range(20))}", 3_000),
    ],
)
def test_a_query_reads_a_bounded_number_of_postings(
    query: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many skills contain its words, and from the heaviest on."""
    skills = [SkillMetadata(f"s{n:04}", "left upper", "/") for n in range(4_000)]
    skills.append(SkillMetadata("left-upper", "left upper", "/"))
    index = SearchIndex(skills, bodies=False)
    index.search("warm")
    assert index._state is not None
    [part] = index._state.parts
    read: set[int] = set()
    kind = type(part.segment)
    real = kind.postings

    def postings(self: Any, *arguments: Any) -> Any:
        found = real(self, *arguments)
        read.add(len(found.packed))
        assert found.skills == 4_001
        return found

    monkeypatch.setattr(kind, "postings", postings)

    assert index.search(query, 1)[0].name == "left-upper"
    # Twenty are compared again, whatever a skill's score.
    assert read == {most + 20}


@pytest.mark.parametrize("indexed", [False, True])
def test_descriptions_are_found_before_and_after_their_words_are_indexed(
    indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole words alone, by their stem, wherever they stand in the text."""
    texts = [
        "Queries a database",
        "icing",
        "the API of GitHub, 提取表格",
        "apiary",
        "",
        "query",
    ]
    skills = [SkillMetadata(f"s{n}", text, "/") for n, text in enumerate(texts * 80)]
    index = SearchIndex(skills)
    monkeypatch.setattr(index, "_index_in_thread", lambda: None)
    if indexed:
        index.search(" ".join(f"w{n}" for n in range(30)))
        assert index._descriptions is not None
        assert index._descriptions._index is not None

    def found(query: str) -> set[str]:
        hits = index.search(query, 480)
        assert not hits.bodies_searched
        return {hit.description for hit in hits}

    assert found("query") == {"Queries a database", "query"}
    assert found("icing") == {"icing"}
    assert found("API") == {"the API of GitHub, 提取表格"}
    assert found("hub") == {"the API of GitHub, 提取表格"}
    assert found("取表") == {"the API of GitHub, 提取表格"}
    assert found("hubs data") == {"the API of GitHub, 提取表格"}
    assert found("base") == set()


def test_words_at_the_beginning_of_the_instructions_count_more(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Of instructions with the same words."""
    filler = " ".join(f"filler{n}" for n in range(400))
    head = "---\nname: {}\ndescription: One.\n---\n"
    write_skill("late", text=f"{head.format('late')}{filler} walrus")
    write_skill("soon", text=f"{head.format('soon')}walrus {filler}")

    hits = discover(tmp_path / "skills").search("walrus")

    assert [hit.name for hit in hits] == ["soon", "late"]
    assert hits[0].score > hits[1].score


def test_a_word_counts_more_in_a_description_than_in_instructions(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Even if long instructions repeat it."""
    head = "---\nname: {}\ndescription: {}\n---\n"
    write_skill("says", text=head.format("says", "Feeds a walrus.") + "Do it.")
    words = " ".join(f"filler{n}" for n in range(850)) + " walrus" * 6
    write_skill("uses", text=head.format("uses", "Feeds a seal.") + words)

    found = [hit.name for hit in discover(tmp_path / "skills").search("walrus")]

    assert found == ["says", "uses"]


def test_the_parts_of_a_joined_word_are_searched_if_no_skill_has_the_whole() -> None:
    """A known word says more than its parts."""
    skills = [
        SkillMetadata("hosting", "GitHub projects.", "/"),
        SkillMetadata("hubs", "Git and hub, hub and git.", "/"),
    ]

    def found(query: str) -> list[str]:
        hits = SearchIndex(skills, bodies=False).search(query)
        return [hit.name for hit in hits]

    assert found("GitHub") == ["hosting"]
    assert {*found("HubGit")} == {"hosting", "hubs"}


def test_numbers_and_letters_in_instructions_are_words(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Such as versions and the names of languages."""
    text = "---\nname: pro\ndescription: One.\n---\nWrites R for version 4.\n"
    write_skill("pro", text=text)
    catalog = discover(tmp_path / "skills")

    for query in ("R", "4"):
        assert [hit.name for hit in catalog.search(query)] == ["pro"]


def test_words_of_most_skills_do_not_count_if_others_are_found() -> None:
    """Of 3,080 skills, 1,840 have the word in question, and 1,760 the rarer words."""
    skills = [
        SkillMetadata(f"s{n:04}", f"topic{n % 7} {'usual' if n >= 1_240 else ''}", "/")
        for n in range(3_080)
    ]
    index = SearchIndex(skills, bodies=False)

    rare = "topic0 topic1 topic2 topic3"
    assert index.search(rare) == index.search(f"{rare} usual")
    assert len(index.search("usual", 3_000)) == 1_840
