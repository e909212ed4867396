"""How often search finds the right skill: task descriptions against a directory of real skills.

    python benchmarks/search.py PATH [--tasks FILE ...] [--json FILE] [--misses]

There are three kinds of tasks, each with one right skill: *short* ones of one sentence (``search_queries.jsonl``),
*long* requests of several sentences as users write them, and *paraphrases* of a few words that avoid those of the skill
(``search_tasks.jsonl``). All were written by one author who had read the name and the description, so they show how the
ways to search compare, not how good they are. Weights were chosen on the development half; the other was held back.

Compared are the substring search of simple loaders, and BM25 over name and description, and over name, description
and the whole body: plain (Okapi, k1 = 1.5, b = 0.75, every word counts, no stemming), and with stop words and Porter's
stemming (SQLite's FTS5). PATH is a directory of skills, or an archive (.tar.gz) of them; what lies in folders named
``malformed`` is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sqlite3
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from skill_roots import skill_roots

from skillruntime.catalog import STOP_WORDS, SearchIndex, SkillMetadata, discover

Search = Callable[[str], list[str]]
HERE = Path(__file__).parent


def main() -> None:
    """Measure each way to search, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    default = [HERE / "search_queries.jsonl", HERE / "search_tasks.jsonl"]
    parser.add_argument("--tasks", type=Path, nargs="+", default=default)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--misses", action="store_true", help="print the tasks for which catalog.search is not first")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(skill_roots([options.path], Path(folder)), options)


def measure(roots: list[Path], options: argparse.Namespace) -> None:
    """Measure each way to search below *roots*."""
    skills = [skill for skill in discover(*roots, use_index=False).values() if "malformed" not in skill.path]
    known = {skill.name for skill in skills}
    tasks = [json.loads(line) for path in options.tasks for line in path.read_text(encoding="utf-8").splitlines()]
    tasks = [task for task in tasks if task["skill"] in known]
    if not tasks:
        raise SystemExit(f"no task is about one of these {len(skills)} skills; write your own, and give --tasks")
    started = time.process_time()
    ours = SearchIndex(skills)
    index_time = (time.process_time() - started) / len(skills)
    metadata = {skill.name: f"{skill.name} {skill.description}" for skill in skills}
    whole = {skill.name: f"{metadata[skill.name]} {body_of(skill)}" for skill in skills}
    ways: dict[str, Search] = {
        "substring of name or description": lambda query: substring(query, skills),
        "plain BM25, name + description": PlainBM25(metadata).search,
        "plain BM25, name + description + body": PlainBM25(whole).search,
        "BM25, stop words and stems, whole body": StemmedBM25(whole).search,
        "catalog.search": lambda query: [hit.name for hit in ours.search(query)],
    }
    groups = grouped(tasks)
    print(f"{len(skills)} skills; indexing takes {index_time * 1e6:.0f} us a skill. First / among the first ten, in %:")
    print(f"{'':38}" + "".join(f"{f'{name} ({len(group)})':>24}" for name, group in groups.items()) + "   ms/query")
    rows = []
    for what, search in ways.items():
        started = time.process_time()
        found = {task["query"]: search(task["query"])[:10] for task in tasks}
        spent = (time.process_time() - started) / len(tasks) * 1e3
        row: dict[str, Any] = {"search": what, "ms_per_query": spent}
        for name, group in groups.items():
            first = sum(found[task["query"]][:1] == [task["skill"]] for task in group) / len(group)
            among = sum(task["skill"] in found[task["query"]] for task in group) / len(group)
            row[name] = {"hit_at_1": first, "recall_at_10": among}
        rows.append(row)
        shown = [f"{row[name]['hit_at_1']:.0%} / {row[name]['recall_at_10']:.0%}" for name in groups]
        print(f"{what:38}" + "".join(f"{cell:>24}" for cell in shown) + f"{spent:11.2f}")
        if what == "catalog.search" and options.misses:
            show_misses(tasks, found)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


def grouped(tasks: Iterable[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    """Return the tasks by kind, and the held back half of each kind that has one."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for task in tasks:
        found[task.get("kind", "short")].append(task)
        if task.get("half") == "held back":
            found[f"{task['kind']}, held back"].append(task)
    return dict(found)


def show_misses(tasks: Iterable[dict[str, str]], found: dict[str, list[str]]) -> None:
    for task in tasks:
        names = found[task["query"]]
        if names[:1] != [task["skill"]]:
            place = names.index(task["skill"]) + 1 if task["skill"] in names else "-"
            print(f"  {place:>3}  {task['skill']}: {', '.join(names[:3])}")


def body_of(skill: SkillMetadata) -> str:
    text = Path(skill.path).read_text(encoding="utf-8", errors="replace")
    return text.split("\n---", 1)[-1]


def substring(query: str, skills: list[SkillMetadata]) -> list[str]:
    """Search as simple loaders do: the whole query somewhere in the text."""
    return [skill.name for skill in skills if query.lower() in f"{skill.name} {skill.description}".lower()]


class PlainBM25:
    """Okapi BM25 as libraries have it: a word is a run of letters and digits in lower case, or one Han letter."""

    def __init__(self, texts: dict[str, str], k1: float = 1.5, b: float = 0.75) -> None:
        self.names = list(texts)
        counts = [Counter(self.words(text)) for text in texts.values()]
        lengths = [sum(count.values()) for count in counts]
        mean = sum(lengths) / len(lengths)
        self.k1 = k1
        self.norms = [k1 * (1 - b + b * length / mean) for length in lengths]
        self.postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, count in enumerate(counts):
            for word, times in count.items():
                self.postings[word].append((number, times))

    @staticmethod
    def words(text: str) -> list[str]:
        return re.findall(r"[\u3400-\u9fff]|[^\W_]+", text.lower())

    def search(self, query: str, limit: int = 10) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        for word in self.words(query):
            postings = self.postings.get(word, ())
            idf = math.log(1 + (len(self.names) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, times in postings:
                scores[number] += idf * times * (self.k1 + 1) / (times + self.norms[number])
        ranked = sorted(scores, key=lambda number: (-scores[number], self.names[number]))
        return [self.names[number] for number in ranked[:limit]]


class StemmedBM25:
    """The BM25 of SQLite's FTS5 over one column, with Porter's stemming and the stop words of `catalog.search`."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.names = list(texts)
        self.database = sqlite3.connect(":memory:")
        self.database.execute("create virtual table skills using fts5(text, tokenize = 'porter unicode61')")
        rows = ((number, " ".join(PlainBM25.words(text))) for number, text in enumerate(texts.values()))
        self.database.executemany("insert into skills(rowid, text) values (?, ?)", rows)

    def search(self, query: str, limit: int = 10) -> list[str]:
        words = [word for word in dict.fromkeys(PlainBM25.words(query)) if word not in STOP_WORDS]
        match = " OR ".join(f'"{word}"' for word in words) or '""'
        command = "select rowid from skills where skills match ? order by bm25(skills), rowid limit ?"
        return [self.names[number] for (number,) in self.database.execute(command, (match, limit))]


if __name__ == "__main__":
    main()
