"""The project's texts use plain words: none of the private words that STYLE.md
lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

WORDS = {
    "mend": r"mend(?:s|ed|er|ers|ing)?",
    "slip": r"slip(?:s|ped|ping)?",
    "stranger": r"strangers?",
    "witness": r"witness(?:es|ed)?",
    "rehearse": r"rehears\w*",
    "anew": r"anew",
    "of whom": r"of whom",
    "on paper": r"on paper",
    "door": r"doors?",
    "room": r"rooms?",
    "floor": r"floors?",
    "desk": r"desks?",
    "house": r"houses?",
    "nobody": r"nobody",
    "told": r"told",
    "tells": r"tells",
    "the chapter": r"chapters?",
    "leads nowhere": r"leads? nowhere",
    # "There is no skill named x" is plain English; "x is no skill" is not.
    "is no": r"(?<!there )(?<!there's )(?:is|are|was|were) no(?! longer| more| less| such| fewer)",
}
"""Each private word with its forms. A name such as ``is_as_told`` counts as the words
that it is made of.
"""

SUFFIXES = {
    ".py",
    ".pyi",
    ".md",
    ".toml",
    ".html",
    ".css",
    ".js",
    ".json",
    ".jsonl",
    ".txt",
    ".sh",
    ".yaml",
    ".yml",
}
TEXTS = (
    *("skillruntime", "docs", "examples", "tests", "benchmarks", "skills"),
    *("README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"),
)

EXCEPTIONS: dict[str, dict[str, str]] = {
    # file or directory: {regular expression of what is allowed there: the reason}
    "tests/test_plain_words.py": {r"(?s).*": "this file lists the words"},
    "skills": {r"floor\(": "the function of SQL"},
    "benchmarks": {r"math\.floor": "the function of Python's math module"},
    "skillruntime": {
        r"math\.floor|import ceil, floor|\bfloor\(": "the function of Python's math module",
        r"NO_COUNTEREXAMPLE": "a name that stands after the operator 'is'",
    },
    "examples/translator/skills/translate/scripts/translate.py": {
        r"house: Haus": "a word of its dictionary"
    },
    "tests/compatibility": {
        r"NO_COUNTEREXAMPLE": "a name that stands after the operator 'is'"
    },
    "skillruntime/catalog/search/words.py": {
        r"\bnobody\b": "one of the English stop words"
    },
    "benchmarks/search_tasks.jsonl": {
        r"\b(?:nobody|room)\b": "a word of a task: the tasks are data"
    },
    "skills/data-analysis/scripts/expressions.py": {r"floor\(": "the function of SQL"},
    "skillruntime/derive": {r"FloorDiv|floordiv": "the node of Python's syntax tree"},
}
"""What may keep a listed word, and why. JSON keys and rule ids that users already have
belong here too.
"""

PENDING: set[str] = set()
"""Files and directories that are not clean yet; the list only shrinks."""

_ANY = "|".join(
    f"(?P<w{number}>{forms})" for number, forms in enumerate(WORDS.values())
)
# \b would not do: beside letters only, so that "floor2" and "x2told" are found too.
_FOUND = re.compile(rf"(?<![A-Za-z])(?:{_ANY})(?![A-Za-z])", re.IGNORECASE)
# In a name, "_" and a change of case divide words as blanks do.
_PARTS_OF_A_NAME = re.compile(r"_|(?<=[a-z0-9])(?=[A-Z])")


def test_no_private_word_is_used() -> None:
    """Every text of the project, its file names included, does without the listed
    words.
    """
    found = [hit for path in _texts() if not _is_pending(path) for hit in _hits(path)]

    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The arguments are no JSON", ["is no"]),
        ("There is no skill named 'x'", []),
        ("It is no longer read", []),
        (
            "def is_as_told(): NO_WITNESS = rehearsedCall",
            ["told", "witness", "rehearse"],
        ),
        ("recommended, slipstream, warehouse, desktop, mushroom, outdoors", []),
        ("Mended by nobody", ["mend", "nobody"]),
    ],
)
def test_the_words_are_found_as_whole_words(text: str, words: list[str]) -> None:
    """Names are read as the words that they are made of; longer words that contain a
    listed one are allowed.
    """
    assert list(_words(text)) == words


def _texts() -> Iterator[Path]:
    for name in TEXTS:
        paths = (
            sorted((ROOT / name).rglob("*"))
            if (ROOT / name).is_dir()
            else [ROOT / name]
        )
        yield from (
            path for path in paths if path.suffix in SUFFIXES and path.is_file()
        )


def _is_in(path: Path, entry: str) -> bool:
    relative = path.relative_to(ROOT)
    return relative == Path(entry) or Path(entry) in relative.parents


def _is_pending(path: Path) -> bool:
    return any(_is_in(path, entry) for entry in PENDING)


def _hits(path: Path) -> list[str]:
    relative = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8", errors="replace")
    for entry, allowed in EXCEPTIONS.items():
        if _is_in(path, entry):
            # Line ends stay, so that the numbers of the lines below stay right.
            text = re.sub(
                "|".join(allowed), lambda match: "\n" * match.group().count("\n"), text
            )
    lines = enumerate(text.splitlines() if any(_words(text)) else (), start=1)
    hits = [
        f"{relative}:{number}: {word!r} in {line.strip()[:120]}"
        for number, line in lines
        for word in _words(line)
    ]
    return hits + [
        f"{relative}: {word!r} in the file's name"
        for word in _words(path.name)
        if text.strip()
    ]


def _words(text: str) -> Iterator[str]:
    names = list(WORDS)
    for match in _FOUND.finditer(_PARTS_OF_A_NAME.sub(" ", text)):
        yield names[int((match.lastgroup or "w0")[1:])]
