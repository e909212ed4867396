from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillruntime.tokens import Count, count, count_each, counter, load
from skillruntime.tokens.counter import method_for
from tests import needs

pytest.importorskip("tiktoken", reason=needs.to_install("tiktoken"))

CORPUS = needs.DATA / "skills_corpus/skills_corpus.tar.gz"


@pytest.mark.parametrize(
    ("model", "encoding", "exact"),
    [
        ("gpt-4o", "o200k_base", True),
        ("gpt-4o-mini-2024-07-18", "o200k_base", True),
        ("gpt-5.1", "o200k_base", True),
        ("o3", "o200k_base", True),
        ("gpt-oss-120b", "o200k_base", True),
        ("gpt-4", "cl100k_base", True),
        ("gpt-3.5-turbo", "cl100k_base", True),
        ("text-embedding-3-small", "cl100k_base", True),
        ("openai:gpt-4o", "o200k_base", True),
        ("azure_openai:gpt-4-turbo", "cl100k_base", True),
        ("openrouter/openai/gpt-4o", "o200k_base", True),
        ("ft:gpt-4o:acme::abc", "o200k_base", True),
        ("cl100k_base", "cl100k_base", True),
        ("davinci", "cl100k_base", False),
        ("llama-3.3-70b", "o200k_base", False),
        ("gemini-2.5-pro", "o200k_base", False),
    ],
)
def test_a_models_encoding(model: str, encoding: str, exact: bool) -> None:
    """Each model is counted by the encoding it uses, exactly only where that is
    known.
    """
    method = method_for(model)

    assert (method.encoding, method.exact) == (encoding, exact)


@pytest.mark.parametrize(
    ("model", "factor"),
    [
        ("claude-3-opus-20240229", 1.20),
        ("claude-3-5-sonnet-20241022", 1.20),
        ("claude-sonnet-4-20250514", 1.20),
        ("anthropic:claude-sonnet-4-5", 1.20),
        ("us.anthropic.claude-opus-4-6-v1:0", 1.20),
        ("claude-haiku-4-5", 1.20),
        ("claude-opus-4-7", 1.56),
        ("claude-opus-4.8", 1.56),
        ("claude-sonnet-5", 1.56),
        ("claude-mythos-preview", 1.56),
        ("claude", 1.56),
    ],
)
def test_a_claude_models_factor(model: str, factor: float) -> None:
    """Anthropic's two tokenizers have their own factors; a name that says nothing gets
    the larger.
    """
    assert method_for(model).factor == factor


def test_an_estimate_says_so_and_names_its_source() -> None:
    """A factor is rounded up, is not exact, and its method names the source of the
    measurement.
    """
    exact = count("The quick brown fox jumps.", "gpt-4o").tokens

    estimate = count("The quick brown fox jumps.", "claude-sonnet-4-5")

    assert exact == 6
    assert (estimate.tokens, estimate.exact) == (8, False)
    assert "VentureBeat" in estimate.method


def test_a_callers_function_is_asked_every_time_and_believed() -> None:
    """Claude's own counter can be handed in: its number is exact and named after it."""
    asked: list[str] = []

    def provider_counts(text: str) -> int:
        asked.append(text)
        return 42

    first = count("text", provider_counts)
    count("text", provider_counts)

    assert first == Count(42, True, "provider_counts")
    assert asked == ["text", "text"]


def test_the_same_content_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated count of a short or a long text does not reach the tokenizer again."""
    short, long = "kept by itself", "kept by its digest " * 100
    before = [count(short).tokens, count(long).tokens]

    def refuse(text: str, name: str) -> tuple[int, bool]:
        raise AssertionError("encoded twice")

    monkeypatch.setattr(counter, "count_ordinary", refuse)

    assert [count(short).tokens, count(long).tokens] == before


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache forgets the oldest content past its bound, and keeps no long text at
    all.
    """
    monkeypatch.setattr(counter, "_KEPT", 10)
    counter._kept.clear()

    for number in range(50):
        count(f"text {number}")
    count("long " * 1000)

    assert len(counter._kept) == 10
    assert all(not isinstance(key, str) or len(key) <= 256 for _, key in counter._kept)


def test_nothing_counts_as_nothing() -> None:
    """An empty text has no tokens in any method."""
    assert [
        count("", model).tokens
        for model in ("gpt-4o", "gpt-4", "claude-opus-5", "gemini-2.5-pro")
    ] == [0, 0, 0, 0]


def test_lone_surrogates_count_as_tiktoken_counts_them() -> None:
    """A text that is not valid Unicode is counted, as tiktoken does, with the
    replacement character.
    """
    assert count("a\ud800b").tokens == len(
        load("o200k_base").encode_ordinary("a\ud800b")
    )


@settings(max_examples=3 * settings.default.max_examples, deadline=None)
@given(st.text())
def test_random_unicode_counts_as_tiktoken_counts_it(text: str) -> None:
    """For any text, the count is the length of tiktoken's own encoding with special
    tokens as plain text.
    """
    assert count(text, "gpt-4o").tokens == len(
        load("o200k_base").encode(text, disallowed_special=())
    )
    assert count(text, "gpt-4").tokens == len(
        load("cl100k_base").encode(text, disallowed_special=())
    )


@needs.with_data("skills_corpus/skills_corpus.tar.gz")
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4"])
@pytest.mark.quick_cases(["gpt-4o"])
def test_every_file_of_the_corpus_counts_as_tiktoken_counts_it(model: str) -> None:
    """873 SKILL.md files, damaged ones too, give tiktoken's own counts, whole and in
    small pieces.
    """
    encode = load(method_for(model).encoding).encode_ordinary
    files = 0

    with tarfile.open(CORPUS) as archive:
        for member in archive:
            if (
                not member.name.endswith("SKILL.md")
                or (file := archive.extractfile(member)) is None
            ):
                continue
            text = file.read().decode("utf-8", "replace")
            assert count(text, model).tokens == len(encode(text)), member.name
            files += 1

    assert files >= 870


def test_a_count_adds_up_and_keeps_the_doubt() -> None:
    """A sum with an estimate in it is an estimate, and its JSON says so."""
    total = (
        Count(3, True, "o200k_base")
        + Count(4, False, "guess")
        + Count(1, True, "o200k_base")
    )

    assert json.loads(json.dumps(total.to_dict())) == {
        "tokens": 8,
        "exact": False,
        "method": "guess",
    }


def test_counts_of_many_texts_are_kept_for_later_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By text and encoding; what is damaged, or of another model, is counted."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path))
    texts = ["Extracts text from PDF files.", "", "one two", "one two", "x\ud800"]
    expected = [7, 0, 2, 2, count("x\ud800").tokens]
    assert count_each(texts) == expected
    monkeypatch.setattr(counter, "count", None)

    assert count_each(texts) == expected
    monkeypatch.undo()
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path))
    assert count_each(texts[:1], "claude-sonnet-4-5") == [9]
    for file in tmp_path.glob("tokens/*"):
        file.write_bytes(b"damaged")
    assert count_each(texts) == expected


def test_many_texts_are_counted_where_nothing_can_be_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As each by itself."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", "off")

    assert count_each(["one two", "one"]) == [2, 1]
