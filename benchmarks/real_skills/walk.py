"""A walk through a collection of skills with this library's tools alone.

    python -m benchmarks.real_skills.walk SKILLS_DIR [--untrusted] [--only SKILL ...]
        [--json FILE]

SKILLS_DIR holds the skills of ``walked_skills.tsv``; the README says how to fill it.
An agent with ``SkillMiddleware`` and a scripted model takes each skill:

- It reads every file that SKILL.md names, by the name written there, and then every
  other file of the skill.
- It calls every script once that needs neither a network nor a key nor a browser, on
  an input that ``write_skill_input`` wrote, or that an earlier script made of one.
- It reads every file that the scripts made.

With ``--untrusted`` the skills run in the sandbox; each call is approved, and made once
more with the grants that its answer named.

What was read is compared with the file; what a script did is judged by what it made.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from langchain.agents import create_agent

from benchmarks.real_skills.model import SteppingModel, filled
from benchmarks.real_skills.named_files import named_files
from benchmarks.real_skills.run import CUT, versions
from benchmarks.real_skills.steps import Result
from benchmarks.real_skills.walk_plans import (
    PLANS,
    Edit,
    Imported,
    Item,
    Needs,
    OwnCode,
    Put,
    Run,
)
from benchmarks.real_skills.ways import shell_of
from skillruntime import Grants, SkillMiddleware, SkillRuntime, discover

SCRIPTS = (".py", ".sh", ".js", ".mjs", ".ts", ".rb", ".pl")
LIMIT = {"recursion_limit": 5_000}
DONE = ("done", "read", "binary", "listed", "imported")
"""The results that are as they should be."""

Steps = Generator[tuple[str, dict[str, Any]], Any, None]


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one file or script.

    ``kind`` is *named* (a file, as SKILL.md writes it), *file* (another file of the
    skill), *script* or *made* (a file that a script made).
    """

    skill: str
    kind: str
    name: str
    result: str
    cause: str = ""


@dataclass(slots=True)
class Walk:
    """The walk through one skill, and what became of each part."""

    skill: Path
    plan: Sequence[Item]
    workspace: Path
    rows: list[Row] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """The files that answers listed, relative to the workspace."""
    directory: str = ""
    """Where the skill lies, as ``load_skill`` said."""
    granted: Grants | None = None
    """What the host grants to an untrusted skill: what answers asked for."""

    def note(self, kind: str, name: str, result: str, cause: str = "") -> None:
        """Add a row."""
        self.rows.append(Row(self.skill.name, kind, name, result, cause[:CUT]))

    def steps(self) -> Steps:
        """Yield each call as a model makes it; each answer is sent back."""
        answer = yield "load_skill", {"name": self.skill.name}
        shown = re.search(r"^Directory: (.+)$", answer.text, re.MULTILINE)
        if shown is not None:
            self.directory = shown[1].strip("'")
        yield from self.read_files()
        for item in self.plan:
            yield from self.carry_out(item)
        for script in sorted(scripts_of(self.skill) - covered(self.plan)):
            self.note("script", script, "no", "the plan does not name it")

    def read_files(self) -> Steps:
        """Read the named files, and then the others."""
        files = [
            path.relative_to(self.skill).as_posix()
            for path in sorted(self.skill.rglob("*"))
            if path.is_file() and path.name != "SKILL.md"
        ]
        instructions = (self.skill / "SKILL.md").read_text(encoding="utf-8")
        read = set()
        for named in named_files(instructions, files):
            read.add(named.path)
            if named.is_directory:
                yield from self.list_directory(named.written, named.path, files)
            else:
                yield from self.read_file("named", named.written, named.path)
        for path in files:
            if path not in read:
                yield from self.read_file("file", path, path)

    def list_directory(self, written: str, path: str, files: list[str]) -> Steps:
        """List a directory that SKILL.md names."""
        answer = yield self.reading(written)
        inside = {
            file.removeprefix(f"{path}/").partition("/")[0]
            for file in files
            if file.startswith(f"{path}/")
        }
        absent = sorted(name for name in inside if f"{path}/{name}" not in answer.text)
        if absent:
            self.note("named", written, "no", f"not listed: {', '.join(absent)}")
        else:
            self.note("named", written, "listed")

    def read_file(self, kind: str, written: str, path: str) -> Steps:
        """Read the file *path* of the skill by the name *written*."""
        answer = yield self.reading(written)
        result, cause = self.compare(answer, self.skill / path)
        self.note(kind, written, result, cause)

    def reading(self, path: str) -> tuple[str, dict[str, Any]]:
        """Return the call that reads *path*."""
        return "read_skill_resource", {"name": self.skill.name, "path": path}

    def compare(self, answer: Any, file: Path) -> tuple[str, str]:
        """Return what *answer* shows of *file*: its text, a copy, or its size."""
        data = file.read_bytes()
        copy = re.search(r"copied to (\S+) of the workspace", answer.text)
        if copy is not None:
            is_copied = (self.workspace / copy[1]).read_bytes() == data
            return ("binary", "") if is_copied else ("no", "the copy differs")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            is_named = f"{len(data):,} bytes" in answer.text
            return ("binary", "") if is_named else ("no", answer.text)
        shown = plain(answer.text)
        absent = [
            line for line in plain(text).splitlines() if line.strip() not in shown
        ]
        if absent:
            return "no", f"{len(absent)} lines are missing, such as {absent[0]!r}"
        return "read", ""

    def carry_out(self, item: Item) -> Steps:
        """Carry out one item of the plan."""
        match item:
            case Put():
                yield from self.put(item.path, item.text, overwrite=False)
            case Edit():
                yield from self.edit(item)
            case Run():
                yield from self.call(item)
            case OwnCode():
                yield from self.run_own_code(item)
            case Imported():
                self.note_imported(item)
            case Needs():
                for script in item.scripts:
                    self.note("script", script, "needs", item.what)

    def note_imported(self, item: Imported) -> None:
        """Add a row for each module: it ran if the scripts that import it are done."""
        done = {row.name for row in self.rows if row.result == "done"}
        failed = [script for script in item.by if script not in done]
        for script in item.scripts:
            if failed:
                self.note("script", script, "no", f"not done: {', '.join(failed)}")
            else:
                self.note("script", script, "imported", f"by {', '.join(item.by)}")

    def put(self, path: str, text: str, *, overwrite: bool) -> Steps:
        """Write *text* to *path* below ``skill-files``."""
        arguments: dict[str, Any] = {"path": path, "text": text}
        if overwrite:
            arguments["overwrite"] = True
        answer = yield "write_skill_input", arguments
        if answer.status == "error":
            self.note("input", path, "no", answer.text)

    def edit(self, item: Edit) -> Steps:
        """Read a made file, and write it with a text replaced."""
        path = self.place(item.path)
        answer = yield self.reading(path)
        text = answer.text.partition("\n")[2].rpartition("\n")[0]
        if item.old not in text:
            self.note("input", path, "no", answer.text)
        yield from self.put(path, text.replace(item.old, item.new, 1), overwrite=True)

    def call(self, item: Run) -> Steps:
        """Call a script, judge what it made, and read that."""
        before = self.files()
        arguments = self.filled(dict(item.arguments))
        call = "call_skill", {"name": item.name, "arguments": arguments}
        answer = yield call
        how = ""
        asked = asked_grants(answer.text)
        if asked is not None and not self.is_done(item, answer, before):
            self.granted, how = asked, f"with {asked}"
            answer = yield call
            self.granted = None
        made = self.list_made(answer.text)
        if self.is_done(item, answer, before):
            self.note("script", item.script, "done", how)
        else:
            self.note("script", item.script, "no", f"{how} {answer.text}".strip())
        for path in made:
            shown = yield self.reading(path)
            self.note("made", path, *self.compare(shown, self.workspace / path))

    def is_done(self, item: Run, answer: Any, before: Mapping[Path, bytes]) -> bool:
        """Return whether the call made what it should."""
        return item.is_done(Result(self.workspace, answer.text, before))

    def run_own_code(self, item: OwnCode) -> Steps:
        """Run code of the model in the shell, with the directory that was shown."""
        yield from self.put("own.py", item.code, overwrite=False)
        before = self.files()
        command = f"PYTHONPATH='{self.directory}' python3 skill-files/own.py"
        answer = yield "shell", {"command": command}
        is_done = bool(self.directory) and item.is_done(
            Result(self.workspace, answer.text, before)
        )
        for script in item.scripts:
            if is_done:
                self.note("script", script, "imported", "by the model's own code")
            else:
                self.note("script", script, "no", answer.text)

    def files(self) -> Mapping[Path, bytes]:
        """Return the files of the workspace."""
        paths = sorted(self.workspace.rglob("*"))
        return {path: path.read_bytes() for path in paths if path.is_file()}

    def list_made(self, answer: str) -> list[str]:
        """Return the files that *answer* lists, and remember them."""
        try:
            listed = json.loads(answer)["metadata"].get("files", [])
        except (ValueError, KeyError):
            return []
        paths = [file["path"] for file in listed]
        self.made += paths
        return paths

    def filled(self, value: Any) -> Any:
        """Return *value* with ``{made:PATH}`` replaced by the path that an answer gave
        for the file or directory PATH.
        """
        return filled(value, lambda word: self.place(word.removeprefix("made:")))

    def place(self, path: str) -> str:
        """Return where the file or directory *path* is that a script made."""
        parts = PurePosixPath(path).parts
        for made in reversed(self.made):
            there = PurePosixPath(made).parts
            for start in range(len(there) - len(parts) + 1):
                if there[start : start + len(parts)] == parts:
                    return "/".join(there[: start + len(parts)])
        return path


def asked_grants(answer: str) -> Grants | None:
    """Return the grants that *answer* names as what the host can give."""
    named = re.search(r"grants=\{'[^']+': (Grants\([^{}]*?\))\}\)", answer)
    if named is None:
        return None
    call = ast.parse(named[1], mode="eval").body
    if not isinstance(call, ast.Call):
        return None
    return Grants(**{str(k.arg): ast.literal_eval(k.value) for k in call.keywords})


def plain(text: str) -> str:
    """Return *text* without the characters that the library removes or adds: those of
    the private use area, and the joiners that break the marks of chat templates.
    """
    return re.sub("[\u2060\ue000-\uf8ff]", "", text)


def scripts_of(skill: Path) -> set[str]:
    """Return the scripts of *skill*, those that only mark a package left out."""
    return {
        path.relative_to(skill).as_posix()
        for path in skill.rglob("*")
        if path.suffix in SCRIPTS and path.name != "__init__.py"
    }


def covered(plan: Iterable[Item]) -> set[str]:
    """Return the scripts that *plan* names."""
    found: set[str] = set()
    for item in plan:
        if isinstance(item, Run):
            found.add(item.script)
        elif isinstance(item, OwnCode | Imported | Needs):
            found.update(item.scripts)
    return found


def walk(skill: Path, plan: Sequence[Item], *, is_trusted: bool) -> list[Row]:
    """Walk through *skill*, with the scripts of *plan*, in a workspace of its own."""
    with tempfile.TemporaryDirectory(prefix="walk-") as directory:
        workspace = Path(directory).resolve()
        walked = Walk(skill, plan, workspace)
        if is_trusted:
            catalog = discover(skill.parent, trusted=True)
            runtime = SkillRuntime(catalog, workspace=workspace)
        else:
            runtime = SkillRuntime(
                discover(skill.parent),
                approve=lambda request: walked.granted or True,
                workspace=workspace,
            )
        agent = create_agent(
            SteppingModel(steps=walked.steps()),
            tools=[shell_of(workspace)],
            middleware=[SkillMiddleware(runtime)],
        )
        agent.invoke({"messages": [("user", f"Walk through {skill.name}")]}, LIMIT)
        return walked.rows


def table(rows: list[Row]) -> str:
    """Return one line a skill: how many files were read, and what of scripts is so."""
    lines = [
        "| skill | files named by SKILL.md | other files | scripts | what they made |",
        "|---|---|---|---|---|",
    ]
    for skill in sorted({row.skill for row in rows}):
        cells = [skill]
        for kind in ("named", "file", "script", "made"):
            results = [r for r in rows if (r.skill, r.kind) == (skill, kind)]
            cells.append(summary(results))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(rows: list[Row]) -> str:
    """Return the results of *rows* in a few words: ``7 done, 2 need a browser``."""
    words: Counter[str] = Counter()
    for row in rows:
        what = row.result
        if what == "needs":
            what = f"need {row.cause}"
        words[what] += 1
    return ", ".join(f"{count} {what}" for what, count in words.items())


def main() -> None:
    """Print the table, a line for each script, and the cause of each failure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("skills", type=Path, metavar="SKILLS_DIR")
    parser.add_argument("--untrusted", action="store_true", help="in the sandbox")
    parser.add_argument("--only", nargs="+", default=[], metavar="SKILL")
    parser.add_argument("--json", type=Path, help="write the rows to this file too")
    options = parser.parse_args()
    os.environ["SKILLRUNTIME_CACHE"] = "off"
    listed = Path(__file__).with_name("walked_skills.tsv").read_text().splitlines()[1:]
    names = [line.partition("\t")[0] for line in listed]
    skills = options.skills.resolve()
    absent = [name for name in names if not (skills / name).is_dir()]
    if absent:
        sys.exit(f"Not in {skills}: {', '.join(absent)}; see the README")
    rows: list[Row] = []
    for name in options.only or names:
        rows += walk(
            skills / name, PLANS.get(name, ()), is_trusted=not options.untrusted
        )
    print(table(rows) + "\n")
    for row in rows:
        if row.kind == "script" or row.result not in DONE:
            print(f"{row.skill}: {row.kind} {row.name}: {row.result} {row.cause}")
    print(versions())
    if options.json:
        document = {"versions": versions(), "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
