"""Run an engine on the cases."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

from repair_benchmark.cases import LIMIT_REASONS, SETS, cases, kind_of_answer
from repair_benchmark.engines import Engine, Installed
from repair_benchmark.judging import fitting, outcome

DEADLINE = 600
"""Seconds that an engine may take for all cases."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One case, and what an engine made of it."""

    set_name: str
    case: dict[str, Any]
    found: Any
    outcome: str


@dataclass(frozen=True, slots=True)
class Result:
    """What one engine did."""

    engine: Engine
    version: str
    size: int
    """Bytes of its packages."""
    microseconds: float
    """The median time of a call."""
    judged: tuple[Judged, ...]

    def counts(self, set_name: str) -> Counter[tuple[str, str]]:
        """Return the number of cases for each kind of answer and outcome."""
        return Counter(
            (kind_of_answer(each.case), each.outcome)
            for each in self.judged
            if each.set_name == set_name
        )


def run(engine: Engine, ready: Installed) -> Result:
    """Run every case through *engine*.

    Raises:
        subprocess.TimeoutExpired: it took longer than `DEADLINE`.
    """
    named = [(name, case) for name in SETS for case in cases(name)]
    answers = answers_of(engine, ready, [case for _, case in named])
    judged = []
    times = []
    for (name, case), line in zip(named, answers, strict=True):
        found = fitting(case, line)
        judged.append(Judged(name, case, found, outcome(case, found)))
        if line:
            times.append(json.loads(line)["microseconds"])
    median = statistics.median(times)
    return Result(engine, ready.version, ready.size, median, tuple(judged))


def answers_of(
    engine: Engine, ready: Installed, asked: list[dict[str, Any]]
) -> list[str]:
    """Return the line that *engine* wrote for each case; an empty one where its process
    ended.
    """
    answers: list[str] = []
    lines = [question(case) + "\n" for case in asked]
    while len(answers) < len(asked):
        with TemporaryDirectory() as place:  # agent-airlock writes files where it runs
            ran = subprocess.run(
                ready.command,
                input="".join(lines[len(answers) :]),
                cwd=place,
                capture_output=True,
                encoding="utf-8",
                timeout=DEADLINE,
                check=False,
            )
        answers += ran.stdout.split("\n")[:-1]
        if len(answers) < len(asked):
            ended_at = asked[len(answers)]["id"]
            print(
                f"{engine.name} ended at {ended_at}: {ran.stderr[-400:]}",
                file=sys.stderr,
            )
            answers.append("")
    return answers


def question(case: dict[str, Any]) -> str:
    """Return the line that an engine is given for *case*.

    A finish reason that says that the text was cut off is left out: a host that reads
    it does not run the call, with any engine.
    """
    names = ("schema", "payload", "tool", "finish_reason")
    asked = {name: case.get(name) for name in names}
    if asked["finish_reason"] in LIMIT_REASONS:
        asked["finish_reason"] = None
    return json.dumps(asked)
