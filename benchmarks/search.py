"""How often search finds the right skill first: task descriptions against a directory of real skills.

    python benchmarks/search.py PATH [--queries search_queries.jsonl] [--json FILE]

The tasks were written by hand, without the words of the skill's name where that was possible, in English and Chinese;
each has one right skill. Beside ours stand the substring search of simple loaders, the overlap of keywords, and BM25
over name and description alone. PATH is a directory of skills, or an archive (.tar.gz) of them; what lies in folders
named ``malformed`` is left out.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from skill_roots import skill_roots

from skillruntime.catalog import SearchIndex, SkillMetadata, discover

Search = Callable[[str], list[str]]


def main() -> None:
    """Measure each way to search, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--queries", type=Path, default=Path(__file__).with_name("search_queries.jsonl"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(skill_roots([options.path], Path(folder)), options)


def measure(roots: list[Path], options: argparse.Namespace) -> None:
    """Measure each way to search below *roots*."""
    skills = [skill for skill in discover(*roots, use_index=False).values() if "malformed" not in skill.path]
    tasks = [json.loads(line) for line in options.queries.read_text(encoding="utf-8").splitlines()]
    tasks = [task for task in tasks if any(skill.name == task["skill"] for skill in skills)]
    if not tasks:
        raise SystemExit(f"no task is about one of these {len(skills)} skills; write your own, and give --queries")
    started = time.process_time()
    whole = SearchIndex(skills)
    index_time = (time.process_time() - started) / len(skills)
    short = SearchIndex(skills, bodies=False)
    ways: dict[str, Search] = {
        "substring of name or description": lambda query: substring(query, skills),
        "overlap of keywords": lambda query: overlap(query, skills),
        "BM25, name and description": lambda query: [hit.name for hit in short.search(query)],
        "catalog.search": lambda query: [hit.name for hit in whole.search(query)],
    }
    print(f"{len(tasks)} tasks, {len(skills)} skills; indexing takes {index_time * 1e6:.0f} us a skill")
    print(f"{'':36} {'Hit@1':>7} {'Recall@10':>10} {'ms/query':>9}")
    rows = []
    for what, search in ways.items():
        started = time.process_time()
        answers = [search(task["query"])[:10] for task in tasks]
        spent = (time.process_time() - started) / len(tasks) * 1e3
        first = sum(found[:1] == [task["skill"]] for found, task in zip(answers, tasks, strict=True)) / len(tasks)
        among = sum(task["skill"] in found for found, task in zip(answers, tasks, strict=True)) / len(tasks)
        rows.append({"search": what, "hit_at_1": first, "recall_at_10": among, "ms_per_query": spent})
        print(f"{what:36} {first:7.0%} {among:10.0%} {spent:9.2f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


def substring(query: str, skills: list[SkillMetadata]) -> list[str]:
    """Search as simple loaders do: the whole query somewhere in the text."""
    return [skill.name for skill in skills if query.lower() in f"{skill.name} {skill.description}".lower()]


def overlap(query: str, skills: list[SkillMetadata]) -> list[str]:
    """Search by the number of words that query and text share."""
    wanted = set(re.findall(r"\w+", query.lower()))
    texts = ((skill.name, set(re.findall(r"\w+", f"{skill.name} {skill.description}".lower()))) for skill in skills)
    scored = sorted((-len(wanted & words), name) for name, words in texts)
    return [name for score, name in scored if score]


if __name__ == "__main__":
    main()
