"""Count the tokens of a text for a model: exactly if the tokenizer is public, otherwise
as a stated estimate.

Law: every count says whether it is exact and how it was made.
"""

from __future__ import annotations

import functools
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skillruntime.cache_files import read_cached, write_cached
from skillruntime.forks import renew_in_child
from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.tokens.encodings import ENCODINGS, count_ordinary, is_installed

__all__ = [
    "Count",
    "Method",
    "Model",
    "count",
    "count_each",
    "method_for",
    "tokenizer_of",
]

Model = str | Callable[[str], int]
"""A model's name, or the caller's own counter."""


@dataclass(frozen=True, slots=True)
class Count:
    """The tokens of a text, whether that is exact, and by which method it was counted.

    >>> Count(3, True, "o200k_base") + Count(4, False, "o200k_base x 1.20")
    Count(tokens=7, exact=False, method='o200k_base x 1.20')
    """

    tokens: int
    exact: bool
    method: str

    def __add__(self, other: Count) -> Count:
        """Return the sum: exact only if both are, with the method of the less exact."""
        less_exact = other if self.exact else self
        tokens = self.tokens + other.tokens
        return Count(tokens, self.exact and other.exact, less_exact.method)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object ``{tokens, exact, method}``."""
        return {"tokens": self.tokens, "exact": self.exact, "method": self.method}


@dataclass(frozen=True, slots=True)
class Method:
    """How a model's tokens are counted: an encoding's, times *factor*; *exact* if the
    model itself counts so.

    *family* is ``openai``, ``claude``, ``gemini`` or ``other``: it decides how messages
    and tools are serialised.
    """

    encoding: str
    exact: bool
    label: str
    factor: float = 1.0
    family: str = "openai"


def count(text: str, model: Model = "gpt-4o") -> Count:
    """Return the tokens of *text* for *model*, offline.

    *model* is a model's name, with or without a provider's prefix (``gpt-4o``,
    ``openai:gpt-4.1``, ``claude-sonnet-4-5``, ``gemini-2.5-pro``), an encoding's name
    (``cl100k_base``), or a function from text to tokens, whose result is taken as
    exact. Special tokens count as the plain text they are. Estimates are rounded up.
    Counts are cached by content, the last 4,096 of them; the caller's own function is
    called every time.

    >>> count("Extracts text from PDF files.")
    Count(tokens=7, exact=True, method='o200k_base')
    >>> count("Extracts text from PDF files.", "claude-sonnet-4-5").exact
    False
    >>> count("one two", lambda text: len(text.split())).tokens
    2
    """
    if not isinstance(text, str):
        raise TypeError(f"count takes a text; got {text!r:.80}")
    if not isinstance(model, str):
        if not callable(model):
            raise TypeError(
                "model is the name of a model, or a function from text to tokens; got "
                f"{model!r:.80}"
            )
        label = getattr(model, "__name__", type(model).__name__)
        return Count(int(model(text)), True, label)
    method = method_for(model)
    if method is _WITHOUT_TIKTOKEN:
        size = len(text.encode("utf-8", "surrogatepass"))
        return Count(math.ceil(size / 4), False, method.label)
    tokens, certain = _counted(text, method.encoding)
    if method.factor != 1.0:
        tokens = math.ceil(tokens * method.factor)
    if not certain:
        label = f"{method.label}, cut inside a run of over 999,998 characters"
        return Count(tokens, False, label)
    return Count(tokens, method.exact, method.label)


def count_each(texts: Sequence[str], model: str = "gpt-4o") -> list[int]:
    """Return the tokens of each of *texts*, as `count` does, and keep them on disk: a
    later process looks them up.

    >>> count_each(["Extracts text from PDF files.", "one two"])
    [7, 2]
    """
    kept = KeptCounts(model)
    tokens = [kept.count(text) for text in texts]
    kept.save()
    return tokens


class KeptCounts:
    """Counts that are kept on disk, by a digest of the text, for later processes."""

    def __init__(self, model: str) -> None:
        import json

        method = method_for(model)
        self._model = model
        self._file = f"tokens/{method.encoding or 'estimated'}-{method.factor}.json"
        data = read_cached(self._file, _MOST_KEPT_BYTES) or b"{}"
        self._kept: dict[str, int] = json.loads(data)
        self._new: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Return the tokens of *text*, as `count` does."""
        from hashlib import blake2b  # OpenSSL: not needed for an import

        data = f"{self._file}\n{text}".encode(errors="surrogatepass")
        key = blake2b(data, digest_size=12).hexdigest()
        known = self._kept.get(key)
        if known is None:
            known = self._new.get(key)
        if known is None:
            known = self._new[key] = count(text, self._model).tokens
        return known

    def save(self) -> None:
        """Write the new counts; a failure is ignored."""
        import json

        if not self._new:
            return
        # A file that has grown too large starts again with these texts.
        kept = self._new
        if len(self._kept) <= _MOST_KEPT:
            kept = self._kept | self._new
        write_cached(self._file, json.dumps(kept).encode())


_MOST_KEPT = 200_000
_MOST_KEPT_BYTES = 32 * 1024 * 1024


# Anthropic publishes no tokenizer. GPT-4o against Claude 3.5 Sonnet: 16 % more tokens
# on English articles, 21 % on mathematics, 30 % on Python ("Hidden costs in AI
# deployment", VentureBeat, 1 May 2025). A SKILL.md is prose with code.
_CLAUDE = Method(
    "o200k_base",
    False,
    "o200k_base x 1.20 (Claude 3.5 against GPT-4o: +16 % prose, +30 % code; "
    "VentureBeat, 2025-05-01)",
    1.20,
    "claude",
)
# "The same input text produces approximately 30 percent more tokens than on earlier
# models": Opus from 4.7, and the fifth generation
# (platform.claude.com/docs/en/build-with-claude/token-counting).
_CLAUDE_NEWER = Method(
    "o200k_base",
    False,
    "o200k_base x 1.56 (1.20 as for earlier Claude models, x 1.30: Anthropic's token "
    "counting page)",
    1.56,
    "claude",
)
# "A token is equivalent to about 4 characters" (ai.google.dev/gemini-api/docs/tokens),
# as OpenAI says of its own.
_GEMINI = Method(
    "o200k_base",
    False,
    "o200k_base x 1.00 (Google and OpenAI both state about 4 characters a token; "
    "ai.google.dev/gemini-api/docs/tokens)",
    1.0,
    "gemini",
)

# Four bytes, not characters: a Chinese character is three bytes and about a token.
_WITHOUT_TIKTOKEN = Method(
    "",
    False,
    "an estimate of 4 bytes a token (pip install 'skillruntime[standard]' to count)",
    family="other",
)

_PROVIDERS = frozenset({"azure", "azure_ai", "azure_openai", "openai"})
_CLAUDE_VERSION = lazy_pattern(
    r"(opus|sonnet|haiku)-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?"
)
_CLAUDE_EARLY = lazy_pattern(r"claude-(?:instant|v?[123](?!\d))")


@functools.lru_cache(maxsize=256)
def method_for(model: str) -> Method:
    """Return how the tokens of the model named *model* are counted.

    >>> method_for("openai:gpt-4-turbo").encoding
    'cl100k_base'
    >>> method_for("us.anthropic.claude-opus-4-8-v1:0").factor
    1.56
    >>> method_for("llama-3.3-70b").label
    "o200k_base (not verified for 'llama-3.3-70b')"
    """
    if not is_installed():
        return _WITHOUT_TIKTOKEN
    name = model.strip().lower()
    if name in ENCODINGS:
        return Method(name, True, name)
    # By substring: Bedrock, Vertex and gateways put regions and vendors around the
    # name.
    if "claude" in name:
        return _CLAUDE if _is_earlier_claude(name) else _CLAUDE_NEWER
    if "gemini" in name:
        return _GEMINI
    # The model of every default, without the import of tiktoken.
    if name == "gpt-4o":
        return Method("o200k_base", True, "o200k_base")
    # Not at the top: see encodings.load.
    import tiktoken

    bare = name.rpartition("/")[2]
    provider, _, rest = bare.partition(":")
    if provider in _PROVIDERS:
        bare = rest
    try:
        encoding = tiktoken.encoding_name_for_model(bare)
    except KeyError:
        return Method(
            "o200k_base",
            False,
            f"o200k_base (not verified for {model!r})",
            family="other",
        )
    if encoding == "o200k_harmony":  # o200k_base with more special tokens
        return Method("o200k_base", True, "o200k_base")
    if encoding not in ENCODINGS:
        return Method("cl100k_base", False, f"cl100k_base (in place of {encoding})")
    return Method(encoding, True, encoding)


def tokenizer_of(model: Model) -> tuple[str, float]:
    """Return the encoding and the factor of *model*: models for which they are equal
    have equal counts. A function has its own.

    >>> tokenizer_of("gpt-4o") == tokenizer_of("openai:gpt-4.1")
    True
    >>> tokenizer_of("claude-sonnet-4-5")
    ('o200k_base', 1.2)
    """
    if not isinstance(model, str):
        return f"function {id(model)}", 1.0
    method = method_for(model)
    return method.encoding, method.factor


def _is_earlier_claude(name: str) -> bool:
    """Return whether the model named *name* has the tokenizer from before Opus 4.7; an
    unknown model is taken as newer.
    """
    if _CLAUDE_EARLY.search(name):
        return True
    stated = _CLAUDE_VERSION.search(name)
    if stated is None:
        return False
    line, major, minor = stated.groups(default="0")
    first_newer = (4, 7) if line == "opus" else (5, 0)
    return (int(major), int(minor)) < first_newer


_KEPT = 4096
_SHORT = 256
_kept: OrderedDict[tuple[str, str | bytes], tuple[int, bool]] = OrderedDict()
_keeping = threading.Lock()


def _renew_lock() -> None:
    global _keeping
    _keeping = threading.Lock()


renew_in_child(_renew_lock)


def _counted(text: str, encoding: str) -> tuple[int, bool]:
    # A short text is its own key; for a long one a digest saves the memory.
    key: tuple[str, str | bytes] = (encoding, text)
    if len(text) > _SHORT:
        from hashlib import blake2b  # OpenSSL: not needed for an import

        data = text.encode("utf-8", "surrogatepass")
        key = (encoding, blake2b(data, digest_size=16).digest())
    with _keeping:
        known = _kept.get(key)
        if known is not None:
            _kept.move_to_end(key)
            return known
    # Outside the lock: two threads may count the same text twice, but none waits for
    # another's long text.
    counted = count_ordinary(text, encoding)
    with _keeping:
        _kept[key] = counted
        if len(_kept) > _KEPT:
            _kept.popitem(last=False)
    return counted
