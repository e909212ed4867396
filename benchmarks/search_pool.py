"""Generates skills that are like the real ones of a corpus, but are the answer to no
task: the crowd around them.

A generated skill has parts of several real ones: half of a name from one and half from
another, phrases of three or four descriptions, and paragraphs of five to nine skills,
so that no generated skill is about one topic as a real one is. Every fifth word is
replaced by one drawn from all the text, and a few made-up product names are added,
because the vocabulary of real collections grows with their size. One in twelve is a
near-twin: the name of a real skill with another ending, one of its phrases and one of
its paragraphs. The same corpus and seed give the same files.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

__all__ = ["write_pool"]

_SYLLABLES = """
    ka ro mi tu ven zo lar pex dio fla qui nor bex sta vo lin gra tem hex u ra
    """.split()  # noqa: SIM905
_TWIN_ENDINGS = """
    lite v2 helper go kotlin legacy toolkit notes next plus cli team
    """.split()  # noqa: SIM905
_REPLACED = 1 / 5


def write_pool(
    documents: list[tuple[str, str, str]], folder: Path, count: int, seed: int = 21
) -> None:
    """Write *count* generated skills below *folder*, made of *documents*: name,
    description and body of real skills.
    """
    chance = random.Random(seed)
    paragraphs = [_paragraphs(body) for _, _, body in documents]
    phrases = [
        re.split(r"[.,:;!?]+ +", " ".join(text.split())) for _, text, _ in documents
    ]
    words = [
        word
        for _, text, body in documents
        for word in re.findall(r"[A-Za-z]{4,}", f"{text} {body[:3000]}")
    ]
    taken = {name for name, _, _ in documents}
    for number in range(count):
        first, second = chance.sample(range(len(documents)), 2)
        if number % 12:
            parts = documents[first][0].split("-"), documents[second][0].split("-")
            name = "-".join(
                [*parts[0][: (len(parts[0]) + 1) // 2], *parts[1][len(parts[1]) // 2 :]]
            )[:50]
        else:
            name = f"{documents[first][0][:40]}-{chance.choice(_TWIN_ENDINGS)}"
        while name in taken or not name:
            name = f"{name[:50]}-{chance.choice(_SYLLABLES)}"
        taken.add(name)
        sources = chance.sample(range(len(documents)), chance.randint(5, 9))
        described = [
            chance.choice(phrases[source])
            for source in (first, *sources[: chance.randint(2, 3)])
        ]
        body = [
            chance.choice(paragraphs[source])
            for source in (first, *sources)
            if paragraphs[source]
        ]
        chance.shuffle(body)
        products = [
            "".join(chance.choices(_SYLLABLES, k=3)).capitalize()
            for _ in range(chance.randint(2, 8))
        ]
        body.append(f"See also {', '.join(products)}.")
        description = _replaced(", ".join(described), words, chance)[:900].replace(
            '"', "'"
        )
        directory = folder / name
        directory.mkdir(parents=True)
        text = f'---\nname: {name}\ndescription: "{description}"\n---\n' + _replaced(
            "\n\n".join(body), words, chance
        )
        (directory / "SKILL.md").write_text(text, encoding="utf-8", errors="replace")


def _paragraphs(body: str) -> list[str]:
    return [each for each in re.split(r"\n\s*\n", body[:8000]) if len(each) > 40]


def _replaced(text: str, words: list[str], chance: random.Random) -> str:
    text = text.replace("\\", "/")
    return re.sub(
        r"[A-Za-z]{4,}",
        lambda found: (
            chance.choice(words) if chance.random() < _REPLACED else found.group()
        ),
        text,
    )
