from __future__ import annotations

import random
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.tokens import compact_ranks, encodings, load
from skillruntime.tokens.compact_ranks import CompactRanks, read_packed
from skillruntime.tokens.encodings import ENCODINGS, count_ordinary
from tests.tokens.rank_tables import packed_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=sorted(ENCODINGS))
def pair(request: pytest.FixtureRequest) -> tuple[CompactRanks, str]:
    """The compact form of an encoding, and its name."""
    recipe = ENCODINGS[request.param]
    packed = read_packed(request.param, recipe.packed_sha256)
    assert packed is not None
    return CompactRanks(recipe.pattern, packed), request.param


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.quick_cases(["cl100k_base"])
def test_the_compact_form_is_that_of_the_rank_file(name: str) -> None:
    """It is in the package, with the digest that is stated."""
    assert read_packed(name, ENCODINGS[name].packed_sha256) == packed_of(name)


@given(
    text=st.text(st.characters(min_codepoint=1, max_codepoint=0x24F))
    | st.text("aA 1\n'sdé/\t.,-中。", max_size=60)
)
def test_a_count_is_tiktokens_own(pair: tuple[CompactRanks, str], text: str) -> None:
    """For any text of letters, signs and blanks that it counts at all."""
    compact, name = pair

    assert compact.count(text) in (None, len(load(name).encode_ordinary(text)))


def test_real_texts_are_counted_as_tiktoken_counts_them(
    pair: tuple[CompactRanks, str],
) -> None:
    """Excerpts of documents and code, cut anywhere."""
    compact, name = pair
    encode = load(name).encode_ordinary
    rng = random.Random(3)
    for path in [
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "skillruntime").glob("*.py")),
    ]:
        text = path.read_text(encoding="utf-8")
        start = rng.randrange(len(text))
        excerpt = text[start : start + 2_000]

        assert compact.count(excerpt) == len(encode(excerpt)), path


@pytest.mark.parametrize(
    "text",
    ["a" * 200, "\U0001fffe unassigned", "x\ud800"],
    ids=["long", "new", "surrogate"],
)
def test_what_may_be_split_otherwise_is_left_to_tiktoken(
    pair: tuple[CompactRanks, str], text: str
) -> None:
    """A piece whose merging would take long, and characters that a version of Unicode
    may not know.
    """
    compact, _ = pair

    assert compact.count(text) is None


def test_short_texts_are_counted_without_tiktokens_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a first run too."""
    monkeypatch.setattr(encodings, "_loaded", {})
    monkeypatch.setattr(encodings, "_compact", {})
    monkeypatch.setattr(encodings, "_counted", dict.fromkeys(ENCODINGS, 0))

    assert count_ordinary("Agent Skills", "o200k_base") == (2, True)
    assert encodings._loaded == {}


@pytest.mark.parametrize("content", [None, b"damaged", zlib.compress(b"another")])
def test_a_compact_form_that_is_not_the_one_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None
) -> None:
    """Then tiktoken itself counts."""
    monkeypatch.setattr(encodings, "_compact", {})
    monkeypatch.setattr(encodings, "_counted", dict.fromkeys(ENCODINGS, 0))
    monkeypatch.setattr(compact_ranks, "__file__", str(tmp_path / "compact_ranks.py"))
    if content is not None:
        (tmp_path / "o200k_base.ranks").write_bytes(content)

    assert read_packed("o200k_base", ENCODINGS["o200k_base"].packed_sha256) is None
    assert count_ordinary("Agent Skills", "o200k_base") == (2, True)
    assert "o200k_base" in encodings._loaded


def test_after_many_short_texts_tiktoken_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its tables are worth loading by then, and the compact form is dropped."""
    monkeypatch.setattr(encodings, "_loaded", {})
    monkeypatch.setattr(encodings, "_compact", {})
    monkeypatch.setattr(
        encodings, "_counted", {**dict.fromkeys(ENCODINGS, 0), "cl100k_base": 399_999}
    )

    assert count_ordinary("two words", "cl100k_base") == (2, True)
    assert list(encodings._loaded) == ["cl100k_base"]
    assert encodings._compact == {}
