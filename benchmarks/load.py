"""How long it takes until ten thousand skills are known, against the least that any
loader must do.

Run ``python benchmarks/load.py``: prints a table, targets and measurements; ``--json
FILE`` writes it too. Every figure is CPU time (user and system) of a process of its own
on a warm file system; the minimal loaders and this library take turns, so that a busy
machine slows both. Ratios are the median of ``--rounds``; beside it is the worst. Where
the skills come from:

- by default they are made up, in the proportions of 729 well-kept real ones: half
  plain, a fifth quoted, the rest block text; 310 characters of description; a third
  with metadata;
- ``--corpus PATH`` copies the SKILL.md files of a directory, or of an archive
  (.tar.gz);
- ``--shapes FILE`` writes frontmatters of real files, broken ones too, one JSON object
  a line (``frontmatter``, ``name_is_directory``, ``file_bytes``; .jsonl or .jsonl.gz),
  each padded to the size of its file. A fifth of them hold JSON below ``metadata``, a
  twentieth is not YAML: the figures that count are these.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from load_steps import STEPS as MORE_STEPS
from skill_roots import skill_roots

SYLLABLES = "ba co de fi ga ho in ka lo me na or pa re si ta un vo we xi".split()  # noqa: SIM905
ENDINGS = ("", "n", "ring", "s", "tion")
SHORT = [a + b + c for a in SYLLABLES for b in SYLLABLES for c in ENDINGS]
WORDS = SHORT + [a + word for a in SYLLABLES[:6] for word in SHORT]
FREQUENCIES = [1 / rank for rank in range(3, len(WORDS) + 3)]
"""14,000 words, as frequent as words are in real text (Zipf), the shortest most.

Of 733 real files 26 % contain the hundredth most frequent word, 4 % the thousandth, and
there are 13,600 words; here it is 53 and 6 %. With two thousand words, every word of a
query would be a common one.
"""
CUMULATIVE = list(itertools.accumulate(FREQUENCIES))
FEW = 1_000
STOP_WORDS = 70
"""No query has one of this many most frequent words: search has as many English stop
words.
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    what: str
    measured: float
    target: float | None
    unit: str
    worst: float | None = None

    @property
    def ok(self) -> bool | None:
        return None if self.target is None else self.measured <= self.target


def main() -> int:
    """Make the skills, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skills", type=int, default=10_000)
    parser.add_argument(
        "--large", type=int, default=50_000, help="0 leaves the large directory out"
    )
    parser.add_argument("--rounds", type=int, default=5)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--corpus", type=Path)
    source.add_argument("--shapes", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--root", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(STEPS[options.step](options.root)))
        return 0
    with tempfile.TemporaryDirectory(prefix="skills-") as directory:
        figures = list(measure(Path(directory), options))
    for figure in figures:
        mark = {True: "ok", False: "OVER", None: ""}[figure.ok]
        target = f"<= {figure.target:g}" if figure.target is not None else ""
        worst = f"(worst {figure.worst:.2f})" if figure.worst is not None else ""
        print(
            f"{figure.what:58} {figure.measured:10.2f} {figure.unit:9} {target:>9} "
            f"{mark:4} {worst}".rstrip()
        )
    if options.json:
        documents = [{**asdict(figure), "ok": figure.ok} for figure in figures]
        options.json.write_text(json.dumps(documents, indent=2), encoding="utf-8")
    return 0 if all(figure.ok is not False for figure in figures) else 1


def measure(directory: Path, options: argparse.Namespace) -> Iterator[Figure]:
    """Yield every figure."""
    root = make_skills(directory / "small", options.skills, options)
    count, rounds = options.skills, options.rounds
    for step in ("warm", "cold"):
        run(step, root, directory)  # writes the index, and the compiled modules
    times = [
        {
            step: run(step, root, directory)["seconds"]
            for step in ("least-cold", "cold", "least-warm", "warm")
        }
        for _ in range(rounds)
    ]
    per_skill = {
        step: min(each[step] for each in times) / count * 1e6 for step in times[0]
    }
    yield Figure(
        "least work: scandir, first 4 KiB, PyYAML's C loader",
        per_skill["least-cold"],
        None,
        "us/skill",
    )
    yield Figure(
        "least work: scandir, stat, one index blob",
        per_skill["least-warm"],
        None,
        "us/skill",
    )
    yield Figure("discover, cold", per_skill["cold"], None, "us/skill")
    yield Figure("discover, warm", per_skill["warm"], None, "us/skill")
    yield ratio_of(
        "cold against its least work", times, "cold", 0.5 if count >= 10_000 else 0.75
    )
    yield ratio_of("warm against the cold least work", times, "warm", 0.15)
    yield Figure(
        "least work, warm against cold",
        per_skill["least-warm"] / per_skill["least-cold"],
        None,
        "x",
    )
    if count > FEW:
        few = make_skills(directory / "few", FEW, options)
        short = [
            {
                step: run(step, few, directory)["seconds"]
                for step in ("least-cold", "cold")
            }
            for _ in range(rounds)
        ]
        yield ratio_of(
            f"{FEW:,} skills: cold against its least work", short, "cold", 0.75
        )
    edit = run("edited", root, directory)
    yield Figure(
        "one edited skill, above a warm start",
        edit["median"] * 1e3,
        100,
        "ms",
        edit["worst"] * 1e3,
    )
    reads = run("cold-reads", root, directory)
    yield Figure("bytes read for a skill, cold", reads["bytes"] / count, 4096, "bytes")
    yield Figure(
        "SKILL.md files opened, warm",
        run("warm-opens", root, directory)["opened"],
        0,
        "files",
    )
    least = (
        min(run("least-memory", root, directory)["bytes"] for _ in range(3))
        / count
        / 1024
    )
    yield Figure(
        "least memory: name, description, path in a dict", least, None, "KiB/skill"
    )
    for step in ("cold-memory", "warm-memory"):
        grown = (
            min(run(step, root, directory)["bytes"] for _ in range(3)) / count / 1024
        )
        yield Figure(
            f"memory growth, {step.removesuffix('-memory')}", grown, 0.8, "KiB/skill"
        )
    activations = [run("activate", root, directory) for _ in range(3)]
    for what, title in (
        ("activate", "activate one skill"),
        ("body", "activate one skill and take its instructions"),
    ):
        ratios = sorted(each[what] / each["read"] for each in activations)
        yield Figure(f"{title}, against open + read", ratios[1], 2, "x", ratios[-1])
    hostile = run("hostile", root, directory)
    yield Figure("discover any SKILL.md of 100 KB", hostile["discover"] * 1e3, 50, "ms")
    yield Figure("load_skill of any 100 KB", hostile["load"] * 1e3, 50, "ms")
    rendering = run("rendered", root, directory)
    yield Figure("the list for a model in 4,000 tokens", rendering["first"], 0.2, "s")
    yield Figure("the same again", rendering["again"], None, "s")
    packages = run("installed", root, directory)
    yield Figure(
        "skills in 300 distributions",
        packages["seconds"] * 1e3,
        20,
        "ms",
        packages["worst"] * 1e3,
    )
    yield Figure(
        "the same, against Python's scan of their names",
        packages["seconds"] / packages["names"],
        2,
        "x",
    )
    search = run("search", root, directory)
    yield Figure(
        "the first search, by names and descriptions", search["first"], 0.3, "s"
    )
    yield Figure(
        "index one skill for searching, in a thread",
        search["index"] / count * 1e6,
        450,
        "us/skill",
    )
    yield Figure("search, one query", search["query"] * 1e3, 2, "ms")
    yield from imports(rounds, directory)
    if options.large:
        large = make_skills(directory / "large", options.large, options)
        run("warm", large, directory)
        cold = (
            min(run("cold", large, directory)["seconds"] for _ in range(2))
            / options.large
            * 1e6
        )
        warm = min(run("warm", large, directory)["seconds"] for _ in range(3))
        yield Figure(
            f"{options.large:,}: cold, a skill, against {count:,}",
            cold / per_skill["cold"],
            1.25,
            "x",
        )
        yield Figure(f"{options.large:,}: warm, whole", warm, 1.0, "s")
        grown = run("warm-memory", large, directory)["bytes"] / 1024**2
        yield Figure(f"{options.large:,}: memory growth, warm", grown, 60, "MB")


def make_skills(root: Path, count: int, options: argparse.Namespace) -> Path:
    """Write *count* skills, as different from each other as real ones are, an hour
    ago.
    """
    past = time.time() - 3600
    for name, data in itertools.islice(skills(options), count):
        (root / name).mkdir(parents=True)
        (root / name / "SKILL.md").write_bytes(data)
        os.utime(root / name / "SKILL.md", (past, past))
    return root


def skills(options: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    """Yield the directory and the SKILL.md of one skill after another, without end."""
    rng = random.Random(4)
    shapes = read_shapes(options.shapes) if options.shapes else []
    originals = read_originals(options.corpus) if options.corpus else []
    for number in itertools.count():
        name = f"{rng.choice(WORDS)}-{rng.choice(WORDS)}-{number}"
        if shapes:
            yield shaped(shapes[number % len(shapes)], name, rng)
        elif originals:
            original = originals[number % len(originals)]
            yield (
                name,
                re.sub(rb"(?m)^name:.*$", b"name: " + name.encode(), original, count=1),
            )
        else:
            yield name, made_up(name, rng).encode()


def read_shapes(path: Path) -> list[dict[str, Any]]:
    """Return the frontmatters of *path*, in an order that mixes their sources."""
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as file
    ):
        shapes = [json.loads(line) for line in file]
    random.Random(5).shuffle(shapes)
    return shapes


def shaped(shape: dict[str, Any], name: str, rng: random.Random) -> tuple[str, bytes]:
    """Return a skill with this frontmatter in the directory *name*, which it states if
    the original stated its own.
    """
    text = shape["frontmatter"]
    if shape["name_is_directory"]:
        text = re.sub(
            r"(?m)^(name: *[\"']?)[^\s\"'#]+",
            lambda start: start.group(1) + name,
            text,
            count=1,
        )
    data = text.encode("utf-8", "surrogatepass") + b"\n\n"
    missing = max(0, shape["file_bytes"] - len(data))
    body = " ".join(
        rng.choices(WORDS, cum_weights=CUMULATIVE, k=min(missing, 20_000) // 6)
    )
    return name, data + body.encode()[:missing]


def read_originals(corpus: Path) -> list[bytes]:
    """Return the SKILL.md files of *corpus*, a directory or an archive, that can be
    given another name.
    """
    with tempfile.TemporaryDirectory() as folder:
        roots = skill_roots([corpus], Path(folder))
        files = [
            path.read_bytes()
            for root in roots
            for path in sorted(root.rglob("SKILL.md"))
        ]
    return [
        data
        for data in files
        if data.startswith(b"---\n") and b"\nname:" in data[:4096]
    ]


def made_up(name: str, rng: random.Random) -> str:
    """Return a SKILL.md that looks like the average real one."""
    text = (
        " ".join(rng.choices(WORDS, cum_weights=CUMULATIVE, k=43)).capitalize()
        + ". Use when asked."
    )
    kind = rng.random()
    if kind < 0.5:
        description = f" {text}"
    elif kind < 0.71:
        description = f' "{text}"'
    else:
        description = " >-\n  " + "\n  ".join(
            text[at : at + 100].strip() for at in range(0, len(text), 100)
        )
    metadata = (
        '\nmetadata:\n  author: somebody\n  version: "1.0.0"'
        if rng.random() < 0.33
        else ""
    )
    body = "\n".join(
        f"## Step {step}\n"
        "\n"
        f"{' '.join(rng.choices(WORDS, cum_weights=CUMULATIVE, k=60))}\n"
        for step in range(12)
    )
    return (
        "---\n"
        f"name: {name}\n"
        f"description:{description}{metadata}\n"
        "---\n"
        "\n"
        f"# {name}\n"
        "\n"
        f"{body}"
    )


def run(step: str, root: Path, directory: Path) -> dict[str, float]:
    """Return what *step* measured, in a process of its own."""
    command = [sys.executable, __file__, "--step", step, "--root", str(root)]
    environment = environment_of(step, directory)
    answer: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, env=environment).stdout
    )
    return answer


def environment_of(step: str, directory: Path) -> dict[str, str]:
    """Return the environment of a process: its index, and modules that are compiled, as
    those of a wheel are.
    """
    cache = "off" if step.startswith(("cold", "least")) else str(directory / "cache")
    own = {
        "SKILLRUNTIME_CACHE": cache,
        "PYTHONPYCACHEPREFIX": str(directory / "compiled"),
    }
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE"
    }
    return {**kept, **own}


def ratio_of(
    what: str, times: list[dict[str, float]], step: str, target: float
) -> Figure:
    """Return the median and the worst ratio of *step* to the least work of the same
    round.
    """
    ratios = [each[step] / each["least-cold"] for each in times]
    return Figure(what, statistics.median(ratios), target, "x", max(ratios))


def imports(rounds: int, directory: Path) -> Iterator[Figure]:
    """Yield the CPU time of processes that import a public name, against one that
    imports two usual modules.
    """
    base = "import dataclasses, yaml"
    langchain = "from langchain_core.tools import BaseTool, StructuredTool"
    codes = {
        "skillruntime.discover": ("from skillruntime import discover", base, 1.2),
        "skillruntime.SkillRuntime": ("from skillruntime import SkillRuntime", base, 2),
        "skillruntime.Contract": ("from skillruntime import Contract", base, None),
    }
    found: dict[str, float] = {}
    toolkit = "from skillruntime.adapters.langchain import SkillToolkit"
    for _ in range(rounds * 2):  # in turns
        for code in (
            base,
            langchain,
            toolkit,
            *(code for code, _, _ in codes.values()),
        ):
            seconds = child_seconds(
                [sys.executable, "-c", code], environment_of("warm", directory)
            )
            found[code] = min(found.get(code, 1e9), seconds)
    for what, (code, other, target) in codes.items():
        yield Figure(
            f"import {what}, against `{other}`", found[code] / found[other], target, "x"
        )
    more = (found[toolkit] - found[langchain]) * 1e3
    yield Figure("import SkillToolkit, above LangChain's own tools", more, 100, "ms")


def child_seconds(command: list[str], environment: dict[str, str]) -> float:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timed(work: Callable[[], object]) -> dict[str, float]:
    started = time.process_time()
    kept = work()
    seconds = time.process_time() - started
    del kept
    return {"seconds": seconds}


def least_cold(root: str) -> dict[str, float]:
    """Measure the least work of a loader without an index: list, read 4 KiB, parse YAML
    with the C loader.
    """

    def load() -> object:
        import yaml  # counts, as what `cold` imports does

        found = []
        with os.scandir(root) as children:
            for child in children:
                with open(f"{child.path}/SKILL.md", "rb") as file:  # noqa: PTH123
                    head = file.read(4096)
                with contextlib.suppress(
                    yaml.YAMLError, ValueError
                ):  # real files hold broken YAML and dates
                    found.append(
                        yaml.load(
                            head[4 : head.find(b"\n---", 3)], Loader=yaml.CSafeLoader
                        )
                    )
        return found

    return timed(load)


def least_warm(root: str) -> dict[str, float]:
    """Measure the least work of a loader with an index: list, stat, read one file."""
    blob = f"{root}.blob"
    if not Path(blob).exists():
        Path(blob).write_bytes(b"x" * 400 * len(os.listdir(root)))  # noqa: PTH208

    def load() -> object:
        with open(blob, "rb") as file:  # noqa: PTH123
            data = file.read()
        with os.scandir(root) as children:
            return data, [os.stat(f"{child.path}/SKILL.md") for child in children]  # noqa: PTH116

    return timed(load)


def cold(root: str) -> dict[str, float]:
    """Measure the import of `discover` and a first discovery."""

    def load() -> object:
        from skillruntime.catalog import discover

        return discover(root)

    return timed(load)


def warm(root: str) -> dict[str, float]:
    """Measure a discovery from the index; the import of `discover` does not count."""
    from skillruntime.catalog import discover

    return timed(lambda: discover(root))


def cold_reads(root: str) -> dict[str, float]:
    """Count the bytes that a cold discovery reads from files."""
    from skillruntime.catalog import discover

    read, real = [0], os.read

    def counting(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        read[0] += len(data)
        return data

    os.read = counting
    discover(root)
    return {"bytes": read[0]}


def warm_opens(root: str) -> dict[str, float]:
    """Count the SKILL.md files that a warm discovery opens."""
    from skillruntime.catalog import discover

    opened = [0]

    def listen(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith("SKILL.md"):
            opened[0] += 1

    sys.addaudithook(listen)
    discover(root)
    return {"opened": opened[0]}


def resident() -> int:
    import gc

    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(root: str) -> dict[str, float]:
    """Measure by how much the process grows that holds the catalog."""
    from skillruntime.catalog import discover

    # Imports do not count, and a skill that is simple to read does not need all of
    # them.
    with tempfile.TemporaryDirectory() as broken:
        Path(broken, "SKILL.md").write_text(
            "---\nname: !!str broken\ndescription: Is not YAML: at all\n---\n"
        )
        discover(broken, use_index=False)
    before = resident()
    catalog = discover(root)
    grown = resident() - before
    return {"bytes": grown, "skills": len(catalog)}


def least_memory(root: str) -> dict[str, float]:
    """Measure by how much a process grows that holds names, descriptions and paths, and
    nothing else.
    """
    before = resident()
    held = {}
    for child in os.scandir(root):
        with open(f"{child.path}/SKILL.md", "rb") as file:  # noqa: PTH123
            head = file.read(4096)
        block = head[4 : head.find(b"\n---", 3)].decode(errors="replace")
        description = block.partition("description:")[2].partition("\nmetadata")[0]
        held[child.name] = (description, f"{child.path}/SKILL.md")
    return {"bytes": resident() - before, "skills": len(held)}


def activate(root: str) -> dict[str, float]:
    """Measure the activation of a hundred skills, and the bare reading of their files,
    in turns.
    """
    from skillruntime.catalog import discover

    catalog = discover(root)
    names = list(catalog)[:: max(1, len(catalog) // 100)]
    catalog.activate(names[0])
    found: dict[str, float] = {}
    for _ in range(7):
        for what, work in (
            ("read", lambda: [Path(catalog[name].path).read_bytes() for name in names]),
            ("activate", lambda: [catalog.activate(name) for name in names]),
            ("body", lambda: [catalog.activate(name).body for name in names]),
        ):
            found[what] = min(found.get(what, 1e9), timed(work)["seconds"])
    return found


def search(root: str) -> dict[str, float]:
    """Measure building the search index, and the mean of some queries."""
    from skillruntime.catalog import discover

    # Imports do not count, as in `memory`: they take 20 ms, whatever the number of
    # skills.
    discover(next(os.scandir(root)).path, use_index=False).search("nothing")
    catalog = discover(root)
    first = timed(lambda: catalog.search("nothing"))[
        "seconds"
    ]  # by names and descriptions
    index = timed(lambda: catalog.search("nothing", wait=True))[
        "seconds"
    ]  # from here on it is kept
    rng = random.Random(8)
    words, frequencies = WORDS[STOP_WORDS:], FREQUENCIES[STOP_WORDS:]
    queries = [" ".join(rng.choices(words, frequencies, k=8)) for _ in range(40)]
    times = [
        min(timed(partial(catalog.search, query))["seconds"] for _ in range(3))
        for query in queries
    ]
    return {"first": first, "index": index, "query": sum(times) / len(times)}


STEPS: dict[str, Callable[[str], dict[str, float]]] = {
    "least-cold": least_cold,
    "least-warm": least_warm,
    "cold": cold,
    "warm": warm,
    "cold-reads": cold_reads,
    "warm-opens": warm_opens,
    "cold-memory": memory,
    "warm-memory": memory,
    "least-memory": least_memory,
    "activate": activate,
    "search": search,
    **MORE_STEPS,
}


if __name__ == "__main__":
    sys.exit(main())
