"""The command ``repair-benchmark``: install the engines, run them, print the tables.

What each engine gets wrong or refuses wrongly is in ``WORK/ENGINE.failures.jsonl``. An engine
that cannot be installed is named as not run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from repair_benchmark.cases import kind_of_answer
from repair_benchmark.engines import ENGINES, Engine, Installed, installed, with_sources
from repair_benchmark.page import page, tables
from repair_benchmark.running import Result, run

INSTALLED_AT_ONCE = 4


def main() -> None:
    """Install, run and print."""
    options = _parser().parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    sources = {}
    for each in options.use:
        package, _, source = each.partition("=")
        # A folder is named from where the command was started.
        sources[package] = (
            str(Path(source).resolve()) if Path(source).exists() else source
        )
    engines = with_sources(ENGINES, sources)
    if options.only:
        engines = [engine for engine in engines if engine.name in options.only]
    not_run: dict[str, str] = {}
    ready = _installed(engines, work, not_run)
    results = []
    for engine in engines:
        if engine.name not in ready:
            continue
        try:
            result = run(engine, ready[engine.name])
        except (subprocess.SubprocessError, OSError) as error:
            _report(engine, error, not_run)
            continue
        if not result.counts("valid")["answer", "right"]:
            # An adapter that fails must not look like an engine that refuses.
            _report(engine, ValueError("it answers no valid call"), not_run)
            continue
        print(f"{engine.name} {result.version} is run", file=sys.stderr, flush=True)
        _write_failures(result, work)
        results.append(result)
    if options.page:
        options.page.write_text(page(results, not_run), encoding="utf-8")
    else:
        print(tables(results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="repair-benchmark", description=__doc__)
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("repair-benchmark-work"),
        help="the directory for the engines' environments and their failures",
    )
    parser.add_argument(
        "--only", action="append", metavar="ENGINE", help="run this engine; repeatable"
    )
    parser.add_argument(
        "--use",
        action="append",
        default=[],
        metavar="PACKAGE=SOURCE",
        help="install a package from a folder or an address, or in a version: "
        "`skillruntime=.`, `json-repair=json-repair==0.64.6`",
    )
    parser.add_argument("--page", type=Path, help="write the page here")
    return parser


def _installed(
    engines: list[Engine], work: Path, not_run: dict[str, str]
) -> dict[str, Installed]:
    """Return the engines that could be installed; say in *not_run* which could not."""
    # Engines of the same packages have one environment, so they are installed in turn.
    groups: dict[tuple[str, ...], list[Engine]] = {}
    for engine in engines:
        groups.setdefault(engine.packages, []).append(engine)
    ready: dict[str, Installed] = {}

    def install(group: list[Engine]) -> None:
        for engine in group:
            try:
                ready[engine.name] = installed(engine, work)
            except (subprocess.SubprocessError, OSError) as error:
                _report(engine, error, not_run)

    with ThreadPoolExecutor(INSTALLED_AT_ONCE) as pool:
        list(pool.map(install, groups.values()))
    return ready


def _report(engine: Engine, error: Exception, not_run: dict[str, str]) -> None:
    not_run[engine.name] = "it cannot be installed or run here"
    said = getattr(error, "stderr", None) or error
    print(f"{engine.name} is not run: {said}", file=sys.stderr, flush=True)


def _write_failures(result: Result, work: Path) -> None:
    lines = []
    for each in result.judged:
        is_right = each.outcome == "right"
        if each.outcome == "refused":
            is_right = kind_of_answer(each.case) != "answer"
        if not is_right:
            kept = {"set": each.set_name, "outcome": each.outcome, **each.case}
            kept["found"] = each.found
            lines.append(json.dumps(kept, ensure_ascii=False) + "\n")
    file = work / f"{result.engine.name}.failures.jsonl"
    file.write_text("".join(lines), encoding="utf-8")
