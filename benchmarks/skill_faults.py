"""How many faults of scripts `skillruntime test` finds.

    python benchmarks/skill_faults.py SKILLS... [--faults 100] [--seed 1 2] [--jobs 2]

SKILLS are directories of skills. Faults are drawn at random, with a seed, from all
places of each kind in the Python files that the script of a tool can import from its
directory, before anything is run; each is written into a copy of its skill. Whether a
call reaches the place plays no part. With several seeds, *faults* are drawn with each;
--kinds leaves out the drawn faults of other kinds.

Kinds that a contract can show: an exception (a function raises), a print (a function
prints), a wrong type or a missing key (a value of a dictionary that is returned), a
write (a function of a read_only callable writes a file), a file (what a call writes is
not written), a bound (a number at the contract's maximum is refused). A contract that
was derived from the script's command line declares no result, so there only an
exception. Kinds that no contract shows: a wrong number (a constant plus one), an ignored
option (a parameter that was sent is dropped). They are looked for with the cases that
were recorded from the skill without the fault.

Each fault notes that it was executed, so that the faults that no call reached and those
that were reached and missed are counted apart. A tool that is not testable without a fault
is counted apart. Prints a line for each fault, and the shares of each kind.
"""

from __future__ import annotations

import argparse
import ast
import random
import resource
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from skillruntime import Contract, discover
from skillruntime.testing import SkillTests, run_skill_tests

SHOWN = ("exception", "print", "type", "key", "write", "file", "bound")
HIDDEN = ("number", "option")
MARK = "<the file that is written when the fault is executed>"
NOTE = f"open({MARK!r}, 'a').close()"

READ_AGAIN = """\
import io as _io, json as _json, sys as _sys
_sent = _json.loads(_sys.stdin.buffer.read() or b"{{}}")
{change}
_sys.stdin = _io.TextIOWrapper(_io.BytesIO(_json.dumps(_sent).encode()), "utf-8")
"""

BOUND = """\
if _sent.get({name!r}) == {maximum}:
    {note}
    _fault = {{"code": "INVALID_INPUT", "message": "{name} is too large"}}
    print(_json.dumps({{"status": "failed", "errors": [_fault]}}))
    _sys.exit(1)
"""

DROPPED_PARAMETER = """\
if {name!r} in _sent:
    {note}
    del _sent[{name!r}]
"""

DROPPED_FLAG = """\
import sys as _sys
if {flag!r} in _sys.argv:
    {note}
    _at = _sys.argv.index({flag!r})
    del _sys.argv[_at : _at + {words}]
"""

WRITING_METHODS = frozenset({"write_text", "write_bytes"})
MOVING_METHODS = frozenset({"replace", "rename", "link"})


@dataclass(frozen=True)
class Fault:
    """One fault: its kind, the callable, the file, and the text that the file gets."""

    kind: str
    callable: str
    skill: Path
    file: str
    place: str
    text: str


@dataclass(frozen=True)
class Baseline:
    """What the test says of a tool without a fault, and the copy of its skill that has
    the recorded cases.
    """

    name: str
    status: str
    message: str
    directory: Path


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: ``found``, ``missed``, ``not reached`` or ``not
    testable``; and the seconds of CPU of the test that looked for it.
    """

    fault: Fault
    answer: str
    message: str
    seconds: float


def main() -> None:
    """Draw the faults, test a copy of a skill with each, and print the shares."""
    parser = argparse.ArgumentParser()
    parser.add_argument("skills", nargs="+", type=Path)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--kinds", nargs="+", default=[*SHOWN, *HIDDEN])
    # More than a skill's 60 seconds, so that a busy machine leaves out no call.
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    places = [place for root in options.skills for place in places_of(root)]
    drawn = []
    for seed in options.seed:
        for fault in draw(places, options.faults, random.Random(seed)):
            if fault.kind in options.kinds:
                drawn.append(fault)
    seeds = ", ".join(map(str, options.seed))
    print(f"{len(places):,} places, {len(drawn)} faults, seeds {seeds}", flush=True)
    tools = sorted({(fault.callable, fault.skill) for fault in drawn})
    outcomes = []
    with (
        tempfile.TemporaryDirectory() as directory,
        ProcessPoolExecutor(options.jobs) as pool,
    ):
        start = partial(baseline_of, directory=Path(directory), seconds=options.seconds)
        baselines = {}
        for tool, baseline in zip(tools, pool.map(start, tools), strict=True):
            baselines[tool] = baseline
            print(
                f"{baseline.status:12} {baseline.name}  {baseline.message}", flush=True
            )
        own = [baselines[fault.callable, fault.skill] for fault in drawn]
        look_for = partial(outcome_of, seconds=options.seconds)
        for outcome in pool.map(look_for, drawn, own):
            outcomes.append(outcome)
            fault = outcome.fault
            place = f"{fault.callable} {fault.file}:{fault.place}"
            print(
                f"{outcome.answer:12} {fault.kind:10} {place} "
                f"{outcome.seconds:.0f} s  {outcome.message}",
                flush=True,
            )
    print_shares(outcomes)


def print_shares(outcomes: list[Outcome]) -> None:
    """Print, for each kind, the faults, those in testable tools, those that a call
    reached, and those that were found.
    """
    print(f"\n{'':12} drawn testable reached   found")
    for kinds in (SHOWN, HIDDEN):
        rows = [(kind, {kind}) for kind in kinds]
        rows.append(("together", set(kinds)))
        for label, names in rows:
            answers = [each.answer for each in outcomes if each.fault.kind in names]
            testable = [answer for answer in answers if answer != "not testable"]
            reached = [answer for answer in testable if answer != "not reached"]
            found = testable.count("found")
            print(
                f"{label:12} {len(answers):5} {len(testable):8} {len(reached):7} "
                f"{found:7}"
            )


def draw(places: list[Fault], number: int, chance: random.Random) -> list[Fault]:
    """Return *number* faults, of each kind as many as of any other where there are."""
    by_kind: dict[str, list[Fault]] = {kind: [] for kind in (*SHOWN, *HIDDEN)}
    for place in places:
        by_kind[place.kind].append(place)
    for kind in by_kind.values():
        chance.shuffle(kind)
    drawn: list[Fault] = []
    while len(drawn) < number and any(by_kind.values()):
        for kind in by_kind.values():
            while kind and len(drawn) < number:
                fault = kind.pop()
                if is_python(fault.text):
                    drawn.append(fault)
                    break
    return drawn


def is_python(text: str) -> bool:
    """Return whether *text* can be read: a call cannot stand in every place, such as in
    a pattern of `match`.
    """
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def places_of(root: Path) -> Iterator[Fault]:
    """Yield the faults of every place in the scripts of the skills in *root*."""
    catalog = discover(root)
    for name in catalog:
        skill = catalog.activate(name)
        for callable_name, contract in skill.contracts.items():
            script = str(contract.run.get("script"))
            if not script.endswith(".py"):
                continue
            main_file = skill.directory / script
            modules = imported(main_file.parent, main_file.stem)
            if main_file.stem not in modules:
                continue
            for kind, place, changed in input_changes(main_file.read_text(), contract):
                yield Fault(
                    kind, callable_name, skill.directory, script, place, changed
                )
            for module in sorted(modules):
                path = main_file.parent / f"{module}.py"
                relative = path.relative_to(skill.directory).as_posix()
                for kind, place, changed in changes(path.read_text(), contract):
                    yield Fault(
                        kind, callable_name, skill.directory, relative, place, changed
                    )


def imported(directory: Path, module: str) -> set[str]:
    """Return *module* and the modules of *directory* that it imports, without those
    that are written for another version of Python.
    """
    found: set[str] = set()
    pending = [module]
    while pending:
        name = pending.pop()
        path = directory / f"{name}.py"
        if name in found or not path.is_file() or not is_python(path.read_text()):
            continue
        found.add(name)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                pending.append(node.module)
            elif isinstance(node, ast.Import):
                pending += [alias.name for alias in node.names]
    return found


def changes(text: str, contract: Contract) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the place and the whole text of each change of a file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield from changed_functions(text, node, contract)
        elif isinstance(node, ast.Dict) and not contract.is_derived:
            yield from changed_results(text, node, contract)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield "number", str(node.lineno), replaced(text, node, "{} + 1")
        elif isinstance(node, ast.Call) and promises_files(contract):
            if writes_a_file(node):
                yield "file", str(node.lineno), replaced(text, node, "None")


def changed_functions(
    text: str, node: ast.FunctionDef, contract: Contract
) -> Iterator[tuple[str, str, str]]:
    """Yield the changes that begin the function *node* with another statement."""
    lines = {"exception": "raise RuntimeError('fault')"}
    if not contract.is_derived:
        lines["print"] = "print('working')"
    if contract.annotations.get("read_only"):
        lines["write"] = "open('left-over.txt', 'w').close()"
    for kind, line in lines.items():
        yield kind, node.name, before(text, node, line)


def changed_results(
    text: str, node: ast.Dict, contract: Contract
) -> Iterator[tuple[str, str, str]]:
    """Yield the changes of *node* where it is a result: wrong types, missing keys."""
    required = contract.output.document.get("required", []) if contract.output else []
    keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
    if len(set(required).intersection(keys)) < min(2, len(required)):
        return  # the report of an error, not a result
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and key.value in required:
            place = f"{key.lineno} {key.value}"
            yield "type", place, replaced(text, value, "[{}]")
            yield "key", place, replaced(text, key, "'another'")


def promises_files(contract: Contract) -> bool:
    """Return whether the output of *contract* says that a text is a file's path."""
    if contract.is_derived or contract.output is None:
        return False
    if contract.annotations.get("read_only"):
        return False
    return "'format': 'path'" in str(contract.output.document)


def writes_a_file(call: ast.Call) -> bool:
    """Return whether *call* writes a file whole, or puts one in its place: a method of
    a path, or a function of `os`.
    """
    function = call.func
    if not isinstance(function, ast.Attribute):
        return False
    if function.attr in WRITING_METHODS:
        return True
    if function.attr not in MOVING_METHODS:
        return False
    is_of_os = isinstance(function.value, ast.Name) and function.value.id == "os"
    # `str.replace` has two arguments, `Path.replace` has one.
    return is_of_os or len(call.args) == 1


def input_changes(text: str, contract: Contract) -> Iterator[tuple[str, str, str]]:
    """Yield changes of what the script reads: a refused bound, a dropped option."""
    if contract.is_derived:
        yield from dropped_flags(text, contract)
        return
    properties = contract.input.document.get("properties", {})
    for name, part in properties.items():
        if "maximum" in part:
            change = BOUND.format(name=name, maximum=part["maximum"], note=NOTE)
            yield "bound", name, with_head(text, READ_AGAIN.format(change=change))
        if name not in contract.input.document.get("required", ()):
            change = DROPPED_PARAMETER.format(name=name, note=NOTE)
            yield "option", name, with_head(text, READ_AGAIN.format(change=change))


def dropped_flags(text: str, contract: Contract) -> Iterator[tuple[str, str, str]]:
    """Yield changes of a script of a command line that ignore one of its options."""
    required = contract.input.document.get("required", ())
    for parameter in contract.run.get("command_line", {}).get("parameters", ()):
        takes = parameter.get("takes", "value")
        if "flag" not in parameter or parameter["name"] in required:
            continue
        if takes in ("value", "nothing"):
            words = 2 if takes == "value" else 1
            head = DROPPED_FLAG.format(flag=parameter["flag"], words=words, note=NOTE)
            yield "option", parameter["name"], with_head(text, head)


def with_head(text: str, head: str) -> str:
    """Return *text* with *head* before its first statement that is not a docstring or
    an import from the future.
    """
    lines = text.splitlines(keepends=True)
    at = 0
    for node in ast.parse(text).body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(
            node.value, ast.Constant
        )
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_docstring and not is_future:
            break
        at = node.end_lineno or at
    return "".join([*lines[:at], head, *lines[at:]])


def before(text: str, node: ast.FunctionDef, line: str) -> str:
    """Return *text* with *line* as the first statement of the function *node*."""
    first = node.body[0]
    lines = text.splitlines(keepends=True)
    if first.lineno == node.lineno:
        return text
    indent = " " * first.col_offset
    added = f"{indent}{NOTE}\n{indent}{line}\n"
    at = first.lineno - 1
    return "".join([*lines[:at], added, *lines[at:]])


def replaced(text: str, node: ast.expr, form: str) -> str:
    """Return *text* with the source of *node* put into *form*."""
    source = ast.get_source_segment(text, node) or ""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    begin = starts[node.lineno - 1] + len(
        lines[node.lineno - 1].encode()[: node.col_offset].decode()
    )
    changed = f"({NOTE}, {form.format(source)})[1]"
    return text[:begin] + changed + text[begin + len(source) :]


def baseline_of(tool: tuple[str, Path], directory: Path, seconds: float) -> Baseline:
    """Test the tool without a fault in a copy of its skill in *directory*, record its
    cases there, and test it with them: they must not fail.
    """
    name, skill = tool
    copy = directory / name.replace("/", "_") / skill.name
    shutil.copytree(skill, copy)
    result = tested(copy, name, seconds, record=True)
    if result.status == "passed":
        result = tested(copy, name, seconds, calls=1)
    status = result.status
    if result.failures:
        message = f"[{result.failures[0].check}] {result.failures[0].message}"
    else:
        message = "; ".join(each.reason for each in result.hindrances)
    return Baseline(name, status, message[:200], copy)


def outcome_of(fault: Fault, baseline: Baseline, seconds: float) -> Outcome:
    """Return whether the test fails on a copy of the skill with *fault*; if no contract
    shows its kind, with the cases that were recorded without it, and no more generated
    calls than one.
    """
    if baseline.status != "passed":
        return Outcome(fault, "not testable", baseline.message, 0.0)
    started = cpu_seconds()
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / fault.skill.name
        shutil.copytree(fault.skill, copy)
        mark = Path(temporary) / "mark"
        (copy / fault.file).write_text(fault.text.replace(MARK, str(mark)))
        cases = baseline.directory / "tests"
        if fault.kind in HIDDEN and cases.is_dir():
            shutil.copytree(cases, copy / "tests", dirs_exist_ok=True)
            result = tested(copy, fault.callable, seconds, calls=1)
        else:
            result = tested(copy, fault.callable, seconds)
        seconds_used = cpu_seconds() - started
        if result.failures:
            first = result.failures[0]
            message = f"[{first.check}] {first.message}"[:150]
            return Outcome(fault, "found", message, seconds_used)
        answer = "missed" if mark.exists() else "not reached"
        message = f"{result.made} calls, {result.succeeded} with a result"
        return Outcome(fault, answer, message, seconds_used)


def tested(skill: Path, name: str, seconds: float, **options: Any) -> Any:
    """Return the result of the tool *name* of *skill*."""
    tests = SkillTests(trust=True, seconds=seconds, only=(name,), **options)
    [result] = run_skill_tests(skill, tests=tests).skills
    return result.callables[0]


def cpu_seconds() -> float:
    """Return the seconds of CPU of this process and of those that it waited for."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    scripts = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + scripts.ru_utime + scripts.ru_stime


if __name__ == "__main__":
    main()
