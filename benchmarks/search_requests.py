"""How often search finds the skill that the author of a request meant, among real
skills only.

    python benchmarks/search_requests.py DIRECTORY [DIRECTORY ...]

Each DIRECTORY has a collection of skills, some with requests beside them (`evals.json`
and the other files that `skillruntime test --triggers` reads). Of skills with one name,
the first counts. Requests that name their skill are counted apart. The skills are
divided into halves by a hash of the name: the ranking was first chosen with one half,
and its weights were later compared on both, so neither half is unseen. Hit@1 and Hit@10
are the shares of requests whose skill is first, and among the first ten.

Compared are BM25 (`benchmarks/search.py`) and, where it is installed, ``bm25s`` over
name, description and the same part of the instructions. *p* is that of a sign test
between the first and the last row: how probable so different a number of requests that
only one of them ranks first would be, if both were equally good.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import re
import time
from collections.abc import Callable
from pathlib import Path

from search import BM25, NLTK_STOP_WORDS, Search, body_of, library, ours

from skillruntime.catalog import discover
from skillruntime.testing import Request, read_requests

_BODY = 12_000


def main() -> None:
    """Measure each way to search, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directories", type=Path, nargs="+")
    options = parser.parse_args()
    catalog = discover(*options.directories, use_index=False, first_only=True)
    requests = [
        request
        for request in read_requests(catalog)
        if request.skill is not None and request.skill in catalog
    ]
    skills = [*catalog.values()]
    texts = {
        skill.name: f"{skill.name} {skill.description} {body_of(skill, _BODY)}"
        for skill in skills
    }
    ways: dict[str, Callable[[], Search]] = {
        "catalog.search": lambda: ours(skills),
        "BM25": lambda: BM25(texts, NLTK_STOP_WORDS).search,
        "bm25s": lambda: library(texts),
    }
    groups: dict[str, list[Request]] = {}
    for request in requests:
        named, half = _group(request)
        for group in (named, f"{named}, {half} half"):
            groups.setdefault(group, []).append(request)
    print(f"{len(skills)} skills, {len(requests)} requests")
    found: dict[str, dict[str, list[list[str]]]] = {}
    for way, build in ways.items():
        started = time.process_time()
        try:
            search = build()
        except ImportError:
            continue
        print(f"{way}: built in {time.process_time() - started:.2f} s of CPU")
        found[way] = {
            group: [search(request.text)[:10] for request in members]
            for group, members in groups.items()
        }
    for group, members in sorted(groups.items()):
        print(f"\n{group}: {len(members)} requests")
        firsts: list[list[bool]] = []
        for way, by_group in found.items():
            pairs = [*zip(members, by_group[group], strict=True)]
            first = [names[:1] == [request.skill] for request, names in pairs]
            in_ten = [request.skill in names for request, names in pairs]
            firsts.append(first)
            print(
                f"  {way:15} Hit@1 {100 * sum(first) / len(pairs):5.1f}"
                f"  Hit@10 {100 * sum(in_ten) / len(pairs):5.1f}"
            )
        print(f"  p {_sign_test(firsts[0], firsts[-1]):.2g}")


def _group(request: Request) -> tuple[str, str]:
    """Return whether *request* names its skill, and the half of that skill."""
    skill = request.skill or ""
    is_odd = int(hashlib.sha256(skill.encode()).hexdigest(), 16) % 2
    half = "second" if is_odd else "first"
    named = "named" if _plain(skill) in _plain(request.text) else "not named"
    return named, half


def _plain(text: str) -> str:
    words = re.findall(r"[^\W_]+", text.lower())
    return f" {' '.join(words)} "


def _sign_test(left: list[bool], right: list[bool]) -> float:
    """Return the two-sided probability of so uneven a number of differences."""
    won = sum(a and not b for a, b in zip(left, right, strict=True))
    lost = sum(b and not a for a, b in zip(left, right, strict=True))
    differences = won + lost
    tail = sum(math.comb(differences, k) for k in range(min(won, lost) + 1))
    return min(1.0, 2 * tail / 2**differences)


if __name__ == "__main__":
    main()
