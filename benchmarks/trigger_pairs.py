"""Which pairs of skills `skillruntime test --triggers` names, beside a plain BM25.

    python benchmarks/trigger_pairs.py SKILLS

SKILLS is a directory of skills that bring requests along. The plain ranking is BM25
(k1 = 1.5, b = 0.75) over the words of names and descriptions, without stems or stop
words. It confuses a pair if it ranks one of the two first for a request that is for the
other. Prints how many of these pairs are named, and how many of the named pairs are
among the first five of no request.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from math import log

from skillruntime import discover
from skillruntime.testing import rank_requests, read_requests

FIRST = 5
K1, B = 1.5, 0.75
WORD = re.compile(r"\w+")


class PlainRanking:
    """BM25 as the textbook has it (Robertson and Zaragoza 2009, 3.4)."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.words = {name: Counter(words_of(text)) for name, text in texts.items()}
        self.lengths = {name: sum(words.values()) for name, words in self.words.items()}
        self.mean = sum(self.lengths.values()) / max(1, len(texts))
        self.holders = Counter(word for words in self.words.values() for word in words)

    def first(self, request: str, number: int) -> list[str]:
        """Return the *number* best names for *request*, without those that score 0."""
        scores: Counter[str] = Counter()
        for word in words_of(request):
            holders = self.holders[word]
            if not holders:
                continue
            weight = log(1 + (len(self.words) - holders + 0.5) / (holders + 0.5))
            for name, words in self.words.items():
                if word in words:
                    length = 1 - B + B * self.lengths[name] / self.mean
                    count = words[word]
                    scores[name] += weight * count * (K1 + 1) / (count + K1 * length)
        return [name for name, _ in scores.most_common(number)]


def words_of(text: str) -> list[str]:
    """Return the words of *text* in lower case."""
    return WORD.findall(text.lower())


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser()
    parser.add_argument("skills")
    catalog = discover(parser.parse_args().skills).for_model()
    requests = read_requests(catalog)
    ranking = PlainRanking(
        {name: f"{name} {skill.description}" for name, skill in catalog.items()}
    )
    report = rank_requests(catalog, requests)
    named = {frozenset(pair.skills) for pair in report.pairs}
    confused: set[frozenset[str]] = set()
    together: set[frozenset[str]] = set()
    for request in requests:
        if request.skill not in catalog:
            continue
        first = ranking.first(request.text, FIRST)
        if first and first[0] != request.skill:
            confused.add(frozenset((request.skill, first[0])))
        together |= {frozenset((one, two)) for one in first for two in first}
    apart = named - together
    hundred = len(catalog) / 100
    share = len(confused & named) / max(1, len(confused))
    print(f"{len(catalog):,} skills, {report.requests:,} requests")
    print(f"{report.right:,} won by their skill; {len(named):,} pairs named")
    print(f"plain BM25 confuses {len(confused):,} pairs, {share:.1%} of them are named")
    print(
        f"named, and among the first five of no request: {len(apart):,}, "
        f"{len(apart) / hundred:.1f} of 100 skills"
    )


if __name__ == "__main__":
    main()
