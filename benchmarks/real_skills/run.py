"""Real tasks with downloaded skills: which are done, with this library and beside it.

    python -m benchmarks.real_skills.run SKILLS_DIR [--tasks FILE] [--only TASK ...]
        [--json FILE]

SKILLS_DIR holds the skills of ``skills.tsv``; the README beside it says how to fill it.
A scripted model carries out each task: in an agent with ``SkillMiddleware`` and over
``serve --mcp``, both with trusted and with untrusted skills, with a plain shell tool,
and with deepagents. A check looks at the file or the figure that was made.

A cell is *done*, *shell*, *no* or *wrong*. *shell*: done only by starting the skill's
script in a shell beside this library. *wrong*: not done, and no answer said so.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.real_skills.steps import Call, ReadMade, Result, Shell, Step, Task
from benchmarks.real_skills.ways import SHELL_END, WAYS, Answer, Place, Way

READ = (Call, Shell, ReadMade)
"""The steps whose answers a check reads."""
CUT = 200
"""The most characters of a cause."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of one task in one way."""

    task: str
    skill: str
    way: str
    result: str
    cause: str = ""


def carry_out(task: Task, way: Way, skills: Path) -> Cell:
    """Carry out *task* in a workspace of its own."""
    is_done, answers = attempt(task, task.steps, way, skills)
    if is_done:
        result = "done" if is_counted(task, way, skills) else "shell"
        return Cell(task.name, task.skill, way.name, result)
    failure = next((answer for answer in answers if has_failed(answer)), None)
    if failure is None:
        result, cause = "wrong", "no answer said that it failed"
    else:
        result, cause = "no", failure_text(failure)
    if way.is_ours and not task.own_code:
        detour = tuple(in_a_shell(step) for step in task.steps)
        is_done, _ = attempt(task, detour, way, skills)
        if is_done:
            result = "shell"
    return Cell(task.name, task.skill, way.name, result, cause)


def attempt(
    task: Task, steps: tuple[Step, ...], way: Way, skills: Path
) -> tuple[bool, list[Answer]]:
    """Return whether *steps* do *task*, and what each was answered."""
    with tempfile.TemporaryDirectory(prefix="task-") as directory:
        workspace = Path(directory).resolve()
        if task.setup is not None:
            task.setup(workspace)
        inputs = {
            path: path.read_bytes() for path in workspace.rglob("*") if path.is_file()
        }
        try:
            answers = way.run(task.request, steps, Place(skills, workspace))
        except Exception as error:
            return False, [Answer(steps[0], f"{type(error).__name__}: {error}", True)]
        read = [each.text for each in answers if isinstance(each.step, READ)]
        result = Result(workspace, "\n".join(read), inputs)
        return bool(task.check(result)), answers


def has_failed(answer: Answer) -> bool:
    """Return whether the model learned that a step failed."""
    if isinstance(answer.step, Shell):
        return SHELL_END in answer.text
    return answer.has_failed


def failure_text(answer: Answer) -> str:
    """Return in one line why a step failed: an error's messages, else its beginning, or
    the end of what a shell printed.
    """
    words = " ".join(answer.text.split())
    if isinstance(answer.step, Shell):
        return words[-CUT:]
    try:
        errors = json.loads(answer.text)["errors"]
        return "; ".join(error["message"] for error in errors)[:CUT]
    except (ValueError, KeyError, TypeError):
        return words[:CUT]


def is_counted(task: Task, way: Way, skills: Path) -> bool:
    """Return whether the result of *task* was made through the tools of *way*: a shell
    that reaches into a skill counts only for code of the model's own.
    """
    if not way.is_ours or task.own_code:
        return True
    commands = [step.command for step in task.steps if isinstance(step, Shell)]
    reaches = ("{directory:", "{skill:", str(skills))
    return not any(mark in command for command in commands for mark in reaches)


def in_a_shell(step: Step) -> Step:
    """Return *step* as a model carries it out that was shown the skill's directory."""
    if isinstance(step, Call):
        return Shell(step.command.replace("{skill:", "{directory:"))
    return step


def table(tasks: list[Task], ways: list[Way], cells: list[Cell]) -> str:
    """Return the cells as a Markdown table, with a line of sums."""
    found = {(cell.task, cell.way): cell.result for cell in cells}
    lines = [f"| task | skill | {' | '.join(way.name for way in ways)} |"]
    lines.append("|---" * (len(ways) + 2) + "|")
    for task in tasks:
        row = [found[task.name, way.name] for way in ways]
        lines.append(f"| {task.name} | {task.skill} | {' | '.join(row)} |")
    sums = []
    for way in ways:
        done = [task for task in tasks if found[task.name, way.name] == "done"]
        sums.append(f"{len(done)} of {len(tasks)}")
    lines.append(f"| done | | {' | '.join(sums)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, then the cause of each cell that is not *done*."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("skills", type=Path, metavar="SKILLS_DIR")
    parser.add_argument("--tasks", type=Path, help="a Python file with TASKS")
    parser.add_argument("--only", nargs="+", default=[], metavar="TASK")
    parser.add_argument("--json", type=Path, help="write the cells to this file too")
    options = parser.parse_args()
    file = options.tasks or Path(__file__).with_name("tasks.py")
    tasks = [
        task
        for task in runpy.run_path(str(file))["TASKS"]
        if not options.only or task.name in options.only
    ]
    skills = options.skills.resolve()
    absent = sorted({t.skill for t in tasks if not (skills / t.skill).is_dir()})
    if absent:
        sys.exit(f"Not in {skills}: {', '.join(absent)}; see the README")
    ways = [way for way in WAYS if not way.missing]
    cells = [carry_out(task, way, skills) for task in tasks for way in ways]
    print(table(tasks, ways, cells) + "\n")
    for cell in cells:
        if cell.result != "done":
            print(f"{cell.task}, {cell.way}: {cell.result}: {cell.cause}")
    for way in WAYS:
        if way.missing:
            print(f"{way.name} was not tried: {way.missing}")
    print(versions())
    if options.json:
        found: dict[str, Any] = {"versions": versions()}
        found["cells"] = [asdict(cell) for cell in cells]
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def versions() -> str:
    """Return what ran."""
    ran = [f"Python {sys.version.split()[0]}"]
    for name in ("langchain", "mcp", "deepagents"):
        try:
            ran.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(ran)


if __name__ == "__main__":
    main()
