"""How many malformed tool calls each engine puts right, and how many wrong.

    python benchmarks/repair_benchmark/run.py --work DIRECTORY [--only ENGINE] [--page
    docs/repair-benchmark.md]

DIRECTORY gets an environment for each engine and the schemas of real servers, both with
network, once. An engine that cannot be installed is named as not run. What each gets
wrong or misses is in ``DIRECTORY/ENGINE.failures.jsonl``. Without ``--page`` the tables
go to stdout.

A case has a ``schema``, a ``payload`` (an object, or the text that a model wrote), the
name of the ``tool``, the ``finish_reason`` where it is known, and an ``answer``: the
arguments that were meant, or ``"refuse"``.

- wrong: other arguments came than those that were meant, or any where a refusal was
  right.
- right: the arguments that were meant.
- rightly refused: none came, and none should.
- missed: none came, where there was an answer.

Each engine is read as kindly as is fair: what it returns counts only if it fits the
schema, since a host checks that, and a default that it filled in does not count. 5
equals 5.0, and ``true`` never equals 1.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema_rs

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE)]

import damage  # noqa: E402
import schemas as tool_schemas  # noqa: E402

REFUSE = "refuse"
OUTCOMES = ("wrong", "right", "rightly refused", "missed")


@dataclass(frozen=True, slots=True)
class Engine:
    """What is measured: its packages (of npm, if its adapter is written in JavaScript),
    and its adapter.
    """

    name: str
    packages: tuple[str, ...]
    adapter: str
    arguments: tuple[str, ...] = ()

    @property
    def is_node(self) -> bool:
        return self.adapter.endswith(".mjs")


ENGINES = [
    Engine("skillruntime", (str(ROOT),), "skillruntime_engine.py"),
    Engine(
        "json_repair",
        ("json-repair", "jsonschema", "pydantic"),
        "json_repair_engine.py",
        ("standard",),
    ),
    Engine(
        "json_repair, salvage",
        ("json-repair", "jsonschema", "pydantic"),
        "json_repair_engine.py",
        ("salvage",),
    ),
    Engine("pydantic", ("pydantic",), "pydantic_engine.py"),
    Engine("BAML", ("baml-py", "pydantic"), "baml_engine.py"),
    Engine("toolproxy", ("toolproxy",), "toolproxy_engine.py"),
    Engine("agent-airlock", ("agent-airlock",), "airlock_engine.py"),
    Engine("ajv", ("ajv",), "ajv.mjs"),
    Engine("jsonrepair", ("jsonrepair",), "jsonrepair.mjs"),
]
SETS = {
    "threads": "payloads of public issue threads",
    "recorded": "recordings of a small open model",
    "generated": "calls of real servers' tools, most with one error made by program",
}


@dataclass(slots=True)
class Result:
    """What one engine did: its version, the counts for each set, and the cases that
    were not put right.
    """

    version: str
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[tuple[str, str, dict[str, Any], Any]] = field(default_factory=list)


def read(name: str) -> list[dict[str, Any]]:
    """Return the cases of a set that is stored."""
    lines = (HERE / "data" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 5 equals 5.0, and ``true`` never equals 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            is_same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


def verdict(case: dict[str, Any], found: Any) -> str:
    """Return the outcome of *case*, where an engine returned *found* (``REFUSE`` if it
    returned nothing that fits).
    """
    wanted = case["answer"]
    if found == REFUSE:
        return "rightly refused" if wanted == REFUSE else "missed"
    if wanted == REFUSE:
        return "wrong"
    return (
        "right"
        if is_same(without_defaults(found, wanted, case["schema"]), wanted)
        else "wrong"
    )


def without_defaults(found: Any, wanted: Any, schema: Any) -> Any:
    """Return *found* without the members that *wanted* does not have and that are the
    default *schema* declares.
    """
    if (
        isinstance(found, dict)
        and isinstance(wanted, dict)
        and isinstance(schema, dict)
    ):
        declared = schema.get("properties", {})
        kept = {}
        for key, value in found.items():
            member = declared.get(key, {})
            if key in wanted or "default" not in member or value != member["default"]:
                kept[key] = without_defaults(value, wanted.get(key), member)
        return kept
    if (
        isinstance(found, list)
        and isinstance(wanted, list)
        and isinstance(schema, dict)
        and len(found) == len(wanted)
    ):
        pairs = zip(found, wanted, strict=True)
        return [
            without_defaults(item, other, schema.get("items")) for item, other in pairs
        ]
    return found


def fitting(case: dict[str, Any], line: str) -> Any:
    """Return the arguments in an engine's answer, or ``REFUSE``: it refused, or they do
    not fit the schema.
    """
    try:
        answer = json.loads(line)
        is_valid = jsonschema_rs.validator_for(case["schema"]).is_valid
        found = answer["arguments"]
        return found if isinstance(found, dict) and is_valid(found) else REFUSE
    except (ValueError, KeyError, TypeError):
        return REFUSE


def command_of(engine: Engine, work: Path) -> list[str]:
    """Return the words that start the adapter, in an environment that is made where it
    is missing.

    Raises:
        subprocess.CalledProcessError: its packages cannot be installed.
    """
    place = (
        work / "environments" / "-".join(Path(each).name for each in engine.packages)
    )
    if engine.is_node:
        if not (place / "node_modules").exists():
            words = [
                "npm",
                "install",
                "--no-audit",
                "--no-fund",
                "--silent",
                "--prefix",
                place,
                *engine.packages,
            ]
            subprocess.run(words, check=True, capture_output=True)
        for each in HERE.glob(
            "engines/*.mjs"
        ):  # a module is looked for next to the file that imports it
            shutil.copy(each, place)
        return ["node", str(place / engine.adapter)]
    python = place / "bin" / "python"
    is_ready = (place / "ready").exists()
    if not is_ready:
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", place],
            check=True,
            capture_output=True,
        )
    if not is_ready or engine.packages == (
        str(ROOT),
    ):  # this library is installed as it is now
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *engine.packages],
            check=True,
            capture_output=True,
        )
        (place / "ready").touch()
    return [
        str(python),
        "-W",
        "ignore",
        str(HERE / "engines" / engine.adapter),
        *engine.arguments,
    ]


def version_of(engine: Engine, work: Path) -> str:
    """Return the version of the engine's first package that is installed."""
    place = (
        work / "environments" / "-".join(Path(each).name for each in engine.packages)
    )
    if engine.is_node:
        manifest = place / "node_modules" / engine.packages[0] / "package.json"
        return str(json.loads(manifest.read_text())["version"])
    package = "skillruntime" if engine.packages[0] == str(ROOT) else engine.packages[0]
    code = f"from importlib.metadata import version; print(version({package!r}))"
    said = subprocess.run(
        [place / "bin" / "python", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    return said.stdout.strip()


def run(engine: Engine, sets: dict[str, list[dict[str, Any]]], work: Path) -> Result:
    """Run every case through *engine*."""
    command = command_of(engine, work)
    result = Result(version_of(engine, work))
    for name, cases in sets.items():
        lines = []
        for case in cases:
            asked = {
                key: case.get(key)
                for key in ("schema", "payload", "tool", "finish_reason")
            }
            lines.append(json.dumps(asked) + "\n")
        with TemporaryDirectory() as place:  # agent-airlock writes files where it runs
            ran = subprocess.run(
                command,
                input="".join(lines),
                cwd=place,
                capture_output=True,
                text=True,
                timeout=3_600,
                check=False,
            )
        answers = ran.stdout.splitlines()
        if len(answers) < len(
            cases
        ):  # it died at this case; what comes after it is not answered either
            print(
                f"{engine.name} ended at {cases[len(answers)]['id']}: "
                f"{ran.stderr[-400:]}",
                file=sys.stderr,
            )
        result.counts[name] = Counter()
        for case, line in zip(
            cases, answers + [""] * (len(cases) - len(answers)), strict=True
        ):
            found = fitting(case, line)
            outcome = verdict(case, found)
            result.counts[name][outcome] += 1
            if outcome in ("wrong", "missed"):
                result.failures.append((name, outcome, case, found))
    kept = [
        {"set": name, "outcome": outcome, **case, "found": found}
        for name, outcome, case, found in result.failures
    ]
    lines = [json.dumps(each, ensure_ascii=False) + "\n" for each in kept]
    (work / f"{engine.name}.failures.jsonl").write_text(
        "".join(lines), encoding="utf-8"
    )
    return result


def table(results: dict[str, Result], name: str, total: int) -> str:
    """Return the Markdown table of one set."""
    rows = [f"| | {' | '.join(OUTCOMES)} |", "|---|---|---|---|---|"]
    for engine, result in results.items():
        counts = result.counts[name]
        cells = [
            f"**{counts[each]:,}**" if each == "wrong" else f"{counts[each]:,}"
            for each in OUTCOMES
        ]
        rows.append(f"| {engine} {result.version} | {' | '.join(cells)} |")
    return f"**{name.title()}**, {total:,} {SETS[name]}:\n\n" + "\n".join(rows) + "\n"


def page(
    results: dict[str, Result],
    not_run: dict[str, str],
    sets: dict[str, list[dict[str, Any]]],
) -> str:
    """Return the page with all tables."""
    text = (HERE / "page.md").read_text(encoding="utf-8")
    threads = sets["threads"]
    servers = sorted(
        {f"{each['server']} {each['version']}" for each in sets.get("schemas", [])}
    )
    tables = [table(results, name, len(sets[name])) for name in SETS if sets.get(name)]
    left = [
        f"{case['id'].split(' ')[0]}"
        for name, _, case, _ in results["skillruntime"].failures
        if name == "threads"
    ]
    return text.format(
        threads=len(threads),
        links=len({each["thread"] for each in threads}),
        refusals=sum(each["answer"] == REFUSE for each in threads),
        tables="\n".join(tables),
        not_run="; ".join(f"{name} ({why})" for name, why in not_run.items()) or "none",
        servers=", ".join(servers) or "none: they could not be installed",
        left=", ".join(left) or "none",
    )


def main() -> None:
    """Install, run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work",
        type=Path,
        required=True,
        help="the directory for environments and schemas",
    )
    parser.add_argument("--only", help="one engine, by name")
    parser.add_argument("--page", type=Path, help="write the page here")
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    fetched = tool_schemas.fetched(work)
    sets = {
        "threads": read("threads"),
        "recorded": read("recorded"),
        "generated": list(damage.cases(fetched)),
    }
    results: dict[str, Result] = {}
    not_run: dict[str, str] = {}
    for engine in ENGINES:
        if options.only not in (None, engine.name):
            continue
        try:
            results[engine.name] = run(engine, sets, work)
        except (subprocess.SubprocessError, OSError) as error:
            not_run[engine.name] = (
                f"{type(error).__name__}: it cannot be installed or run here"
            )
            print(
                f"{engine.name} is not run: {getattr(error, 'stderr', None) or error}",
                file=sys.stderr,
            )
            continue
        print(
            engine.name,
            {name: dict(each) for name, each in results[engine.name].counts.items()},
            flush=True,
        )
    for name in SETS if not options.page else ():
        print("\n" + table(results, name, len(sets[name])))
    if options.page:
        options.page.write_text(
            page(results, not_run, {**sets, "schemas": fetched}), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
