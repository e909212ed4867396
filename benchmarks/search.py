"""How often search finds the right skills among 30,000, what a query costs, and what
the index costs.

    python benchmarks/search.py PATH [--pool 30000] [--json FILE] [--misses]

PATH is a directory of real skills, or an archive (.tar.gz) of them; what lies in
folders named ``malformed`` is left out. Around them stand generated skills
(`search_pool`), and sixteen Chinese ones, written for this benchmark.

The tasks: *terminal*, requests as agents in a terminal get them, with file names,
numbers and several right skills; *long*, requests of several sentences; *short*, one
sentence; *keywords*, two or three words; *paraphrase*, which avoids the words of the
skill; *name*, exact names; *misspelt* and half-remembered names; *chinese*;
*languages*, Japanese, German, Spanish and Chinese requests; *identifiers* of code;
*errors*, messages of programs. They were written from names and descriptions, before
any ranking was tried on them. They are divided into halves by a hash: weights were
first chosen with one half, and later compared on both. Hit@1 is the share of tasks whose first
result is right, Recall@10 the mean share of a task's right skills that are among the
first ten.

Compared is BM25 as users of libraries have it (k1 = 1.5, b = 0.75, 179 English stop
words, Snowball stems, words of two letters or more, every word of the query), over name
and description, and over these and the first 2,500 characters of the instructions:
scores are computed when it is built, a query adds up lists. Where ``bm25s`` (NumPy and
C) is installed it is measured too. The stems of all words are known before the time of
building is taken.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import tempfile
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

from search_pool import write_pool
from skill_roots import skill_roots

from skillruntime.catalog import SearchIndex, SkillMetadata, discover

Search = Callable[[str], list[str]]
Task = dict[str, Any]
HERE = Path(__file__).parent
TASKS = [
    HERE / f"search_{name}.jsonl"
    for name in ("terminal_tasks", "other_tasks", "queries", "tasks", "more_tasks")
]

# The English stop words of NLTK, which bm25s has as "en_plus".
NLTK_STOP_WORDS = frozenset(
    """
    i me my myself we our ours ourselves you you're you've you'll you'd your yours
    yourself yourselves he him his himself she she's her hers herself it it's its itself
    they them their theirs themselves what which who whom this that that'll these those
    am is are was were be been being have has had having do does did doing a an the and
    but if or because as until while of at by for with about against between into
    through during before after above below to from up down in out on off over under
    again further then once here there when where why how all any both each few more
    most other some such no nor not only own same so than too very s t can will just don
    don't should should've now d ll m o re ve y ain aren aren't couldn couldn't didn
    didn't doesn doesn't hadn hadn't hasn hasn't haven haven't isn isn't ma mightn
    mightn't mustn mustn't needn needn't shan shan't shouldn shouldn't wasn wasn't weren
    weren't won won't wouldn wouldn't
    """.split()  # noqa: SIM905
)


def main() -> None:
    """Measure each way to search, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument(
        "--pool",
        type=int,
        default=30_000,
        help="how many skills there are, with generated ones",
    )
    parser.add_argument("--tasks", type=Path, nargs="+", default=TASKS)
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--misses",
        action="store_true",
        help="print the tasks for which catalog.search is not first",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(
            skill_roots([options.path], Path(folder, "real")), Path(folder), options
        )


def measure(roots: list[Path], folder: Path, options: argparse.Namespace) -> None:
    """Measure each way to search over the skills of *roots* and the generated ones."""
    real = [
        skill
        for skill in discover(*roots, use_index=False, first_only=True).values()
        if "malformed" not in skill.path
    ]
    chinese = [
        json.loads(line) for line in _lines(HERE / "search_chinese_skills.jsonl")
    ]
    for row in chinese:
        (folder / "chinese" / row["name"]).mkdir(parents=True)
        text = (
            "---\n"
            f"name: {row['name']}\n"
            f"description: {row['description']}\n"
            "---\n"
            f"{row['body']}\n"
        )
        (folder / "chinese" / row["name"] / "SKILL.md").write_text(
            text, encoding="utf-8"
        )
    documents = [
        (skill.name, skill.description, body_of(skill, 8_000)) for skill in real
    ]
    (folder / "pool").mkdir()
    write_pool(
        documents, folder / "pool", max(0, options.pool - len(real) - len(chinese))
    )
    crowd = discover(folder / "chinese", folder / "pool", use_index=False)
    skills = [*real, *crowd.values()]
    tasks = tasks_about({skill.name for skill in skills}, options.tasks)
    print(f"{len(skills)} skills, {len(real)} of them real; {len(tasks)} tasks")

    described = {skill.name: f"{skill.name} {skill.description}" for skill in skills}
    begun = {
        skill.name: f"{described[skill.name]} {body_of(skill, 2_500)}"
        for skill in skills
    }
    ways: dict[str, Callable[[], Search]] = {
        "BM25, name + description": lambda: BM25(described, NLTK_STOP_WORDS).search,
        "BM25, and 2,500 characters": lambda: BM25(begun, NLTK_STOP_WORDS).search,
        "bm25s, and 2,500 characters": lambda: library(begun),
        "catalog.search": lambda: ours(skills),
    }
    BM25(begun, frozenset())  # fills the table of stems
    rows = []
    for what, build in ways.items():
        started = time.process_time()
        try:
            search = build()
        except ImportError:
            continue
        built = time.process_time() - started
        rows.append(
            {
                "search": what,
                "build_s": built,
                **measured(search, tasks, show=options.misses and "cat" in what),
            }
        )
    show(rows, tasks)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


def tasks_about(known: set[str], files: Sequence[Path]) -> list[Task]:
    """Return the tasks that have a right skill among the *known* ones, each with its
    half.
    """
    tasks: list[Task] = []
    for task in (json.loads(line) for path in files for line in _lines(path)):
        right = [
            name for name in task.get("skills") or [task["skill"]] if name in known
        ]
        odd = int(hashlib.sha256(task["query"].encode()).hexdigest(), 16) % 2
        if right:
            half = "second" if odd else "first"
            tasks.append(
                {
                    "kind": task.get("kind", "short"),
                    "half": half,
                    "skills": right,
                    "query": task["query"],
                }
            )
    if not tasks:
        raise SystemExit(
            f"no task is about one of these {len(known)} skills; write your own, and "
            "give --tasks"
        )
    return tasks


def measured(search: Search, tasks: Sequence[Task], *, show: bool) -> dict[str, Any]:
    """Return Hit@1 and Recall@10 in percent for each kind and half, and the
    milliseconds for a query of each kind.
    """
    found: dict[tuple[str, str], list[tuple[bool, float]]] = defaultdict(list)
    spent: dict[str, float] = defaultdict(float)
    for task in tasks:
        started = time.process_time()
        names = search(task["query"])[:10]
        spent[task["kind"]] += time.process_time() - started
        right = set(task["skills"])
        found[task["kind"], task["half"]].append(
            (
                names[:1] != [] and names[0] in right,
                len(right & set(names)) / len(right),
            )
        )
        if show and names[:1] and names[0] not in right:
            print(
                f"  {task['kind']}: {', '.join(names[:3])} - not {', '.join(right)}: "
                f"{task['query'][:80]}"
            )
    scores = {
        f"{kind}, {half}": [
            100 * sum(column) / len(pairs) for column in zip(*pairs, strict=True)
        ]
        for (kind, half), pairs in found.items()
    }
    counts = Counter(task["kind"] for task in tasks)
    return {
        "scores": scores,
        "ms": {kind: 1e3 * spent[kind] / counts[kind] for kind in counts},
    }


def show(rows: Sequence[dict[str, Any]], tasks: Sequence[Task]) -> None:
    """Print Hit@1 / Recall@10 for each half, then times."""
    kinds = list(dict.fromkeys(task["kind"] for task in tasks))
    for half in ("first", "second"):
        sizes = Counter(task["kind"] for task in tasks if task["half"] == half)
        print(
            f"\n{f'Hit@1 / Recall@10 in %, {half} half':30}"
            + "".join(f"{f'{k} ({sizes[k]})':>17}" for k in kinds)
        )
        for row in rows:
            cells = [row["scores"].get(f"{kind}, {half}", (0, 0)) for kind in kinds]
            print(
                f"{row['search']:30}"
                + "".join(f"{f'{hit:.1f} / {recall:.1f}':>17}" for hit, recall in cells)
            )
    print(
        f"\n{'CPU ms a query':30}"
        + "".join(f"{kind:>17}" for kind in kinds)
        + "     s to build"
    )
    for row in rows:
        print(
            f"{row['search']:30}"
            + "".join(f"{row['ms'][k]:17.2f}" for k in kinds)
            + f"{row['build_s']:15.2f}"
        )


def ours(skills: Sequence[SkillMetadata]) -> Search:
    """Return the search of a catalog; it reads the files while the index is built,
    which the others had before.
    """
    index = SearchIndex(skills)
    index.search("", wait=True)
    return lambda query: [hit.name for hit in index.search(query)]


def library(texts: dict[str, str]) -> Search:
    """Return the search of bm25s with its own tokenizer, stop words and stemmer."""
    import bm25s  # type: ignore[import-not-found]  # not needed by anything else here
    import Stemmer  # type: ignore[import-not-found]

    stemmer = Stemmer.Stemmer("english")
    tokens = bm25s.tokenize(
        [*texts.values()], stopwords="en_plus", stemmer=stemmer, show_progress=False
    )
    retriever = bm25s.BM25()
    retriever.index(tokens, show_progress=False)
    names = list(texts)

    def search(query: str) -> list[str]:
        options = {
            "stopwords": "en_plus",
            "stemmer": stemmer,
            "show_progress": False,
            "return_ids": False,
        }
        words = bm25s.tokenize([query], **options)
        numbers, scores = retriever.retrieve(
            words, k=10, show_progress=False, n_threads=0
        )
        return [
            names[number]
            for number, score in zip(numbers[0], scores[0], strict=True)
            if score > 0
        ]

    return search


class BM25:
    """BM25 with the idf of Lucene, as bm25s and rank_bm25 have it; Python's lists
    instead of NumPy's arrays.
    """

    stems: ClassVar[dict[str, str]] = {}

    def __init__(
        self,
        texts: dict[str, str],
        stop_words: frozenset[str],
        k1: float = 1.5,
        b: float = 0.75,
    ) -> None:
        self.names, self.stop_words = list(texts), stop_words
        counts = [Counter(self.words(text)) for text in texts.values()]
        lengths = [count.total() for count in counts]
        mean = sum(lengths) / len(lengths)
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, count in enumerate(counts):
            for word, times in count.items():
                found[word].append((number, times))
        norms = [k1 * (1 - b + b * length / mean) for length in lengths]
        self.postings: dict[str, tuple[array[int], array[float]]] = {}
        for word, pairs in found.items():
            idf = math.log(1 + (len(counts) - len(pairs) + 0.5) / (len(pairs) + 0.5))
            scores = array(
                "f", [idf * times / (times + norms[number]) for number, times in pairs]
            )
            self.postings[word] = array("I", [number for number, _ in pairs]), scores

    def words(self, text: str) -> list[str]:
        words = [
            word
            for word in re.findall(r"\b\w\w+\b", text.lower())
            if word not in self.stop_words
        ]
        try:
            return [self.stems[word] for word in words]
        except KeyError:
            from snowballstemmer import stemmer as stemmer_of  # type: ignore[import-untyped]

            stemmer = stemmer_of("english")
            self.stems.update(
                (word, stemmer.stemWord(word))
                for word in words
                if word not in self.stems
            )
            return [self.stems[word] for word in words]

    def search(self, query: str) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        for word, times in Counter(self.words(query)).items():
            numbers, values = self.postings.get(word, ((), ()))
            for number, value in zip(numbers, values, strict=True):
                scores[number] += times * value
        return [
            self.names[number]
            for number, _ in nlargest(10, scores.items(), key=itemgetter(1))
        ]


def body_of(skill: SkillMetadata, characters: int) -> str:
    """Return the beginning of the instructions."""
    text = Path(skill.path).read_text(encoding="utf-8", errors="replace")
    return text.split("\n---", 1)[-1][:characters]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    main()
