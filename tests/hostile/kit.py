"""Run hostile cases against a loader, each in a process of its own with limits, and
judge what came of it.
"""

from __future__ import annotations

import ctypes
import fcntl
import io
import json
import os
import re
import resource
import select
import signal
import socket
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from skillruntime.runtime.sandbox.processes import descendants
from tests.hostile.cases import CANARY, Case, World, open_world, skill_text
from tests.hostile.schemas import schema_cases
from tests.hostile.scripts import script_cases
from tests.hostile.texts import FORGED, text_cases
from tests.runtime.parts import remove_tree

__all__ = [
    "MEMORY",
    "SECONDS",
    "Verdict",
    "all_cases",
    "attacks_page",
    "run_case",
    "write_cases",
]

SECONDS = 5.0
"""How long the loader may take for a case, its deadline of 2 seconds for a script
included.
"""
MEMORY = 512 * 1024**2
"""How many bytes the loader may hold, more than before the case."""

_DEADLINE = 2.0
_PATIENCE = 12  # times SECONDS on the clock, however busy the machine is
_READY = b"ready\n"
_NEIGHBOUR = "honest-neighbour"
# Characters that a reader does not see: controls, formats, private use, and the fillers
# that render as blanks.
_FILLERS = frozenset("\u3164\u2800\u034f\u115f\u1160\uffa0\u2028\u2029")
_HIDDEN_CATEGORIES = ("Cc", "Cf", "Co", "Cs")
_WIDE_MARK = re.compile("[\uff1c\ufe64][/\uff0f]?skill|[<\uff1c\ufe64]\uff5c")
_LONGEST = 500_000  # characters of one skill's instructions or file


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a case: ``contained``, ``leaked``, ``failed`` (crashed, too slow,
    too large) or ``not offered``.
    """

    case: Case
    outcome: str
    detail: str = ""
    seconds: float = 0.0
    megabytes: float = 0.0


def all_cases() -> list[Case]:
    """Return every case: scripts, skills, schemas and payloads."""
    return [*script_cases(), *text_cases(), *schema_cases()]


def write_cases(directory: Path) -> Path:
    """Write every skill below *directory*, each in one of its own, and return the
    manifest's path.
    """
    cases = all_cases()
    for case in cases:
        if case.kind != "schema":
            case.write(directory / "skills" / case.name, World(directory))
    manifest = directory / "manifest.json"
    manifest.write_text(
        json.dumps([case.to_dict() for case in cases], indent=2) + "\n", "utf-8"
    )
    return manifest


_PAGE = """---
orphan: true
---

# Every attack

This page is generated: `python -m tests.hostile --page`.
Each case runs in a process of its own, within {seconds:g} seconds and {memory} MiB, \
at both levels of the sandbox.
No case damages a machine whose loader contains nothing: settings are opened \
for writing and left alone.
A mount is undone at once, and the fork bomb stops at 512 processes.
"""
_TITLES = {
    "script": "Scripts",
    "skill": "Skills: text, contracts, files",
    "schema": "Schemas and payloads",
}


def attacks_page() -> str:
    """Return the page of the documentation that lists every case."""
    lines = [_PAGE.format(seconds=SECONDS, memory=MEMORY // 1024**2)]
    for kind, title in _TITLES.items():
        lines += [f"## {title}\n", "| case | attack | must happen |", "|---|---|---|"]
        lines += [
            f"| `{each.name}` | {each.attack} | {each.expected} |"
            for each in all_cases()
            if each.kind == kind
        ]
        lines.append("")
    return "\n".join(lines)


def run_case(
    case: Case, adapter: ModuleType, *, seconds: float = SECONDS, memory: int = MEMORY
) -> Verdict:
    """Run *case* against *adapter* in a forked process and return the verdict.

    The adapter is a module with any of ``load(root)``, ``listing(loaded)``,
    ``instructions(loaded, skill)``, ``read(loaded, skill, path)``, ``run(loaded, skill,
    workspace, seconds)`` and ``accept(schema, payload)``. Each returns text (``accept``
    whatever it accepted) or raises; ``run`` ends the script after *seconds*. With
    ``directory(loaded, skill)`` it says where a script works, if that is not the
    workspace.
    """
    # Made and removed here: a process that is killed at its deadline removes nothing.
    root = Path(tempfile.mkdtemp(prefix="hostile-")).resolve()
    try:
        return _run_below(root, case, adapter, seconds, memory)
    finally:
        remove_tree(root)


def _run_below(
    root: Path, case: Case, adapter: ModuleType, seconds: float, memory: int
) -> Verdict:
    reading, writing = os.pipe()
    sys.stdout.flush()  # or the child would print the buffer a second time
    child = os.fork()
    if child == 0:
        # Whatever happens: a child that goes on would run the rest of the tests, with
        # the limits of the case.
        try:
            os.close(reading)
            _in_child(root, case, adapter, writing, memory)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as file:
        # The kit's own work is not timed: it writes the skill's files first, and then a
        # line.
        said = _line_of(file, child, seconds * _PATIENCE)
        started, waited = time.perf_counter(), _waited(child)
        if said == _READY:
            said = _line_of(file, child, seconds)
        took = max(0.0, time.perf_counter() - started - (_waited(child) - waited))
    if said is None:
        for process in (*descendants(child), child):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    megabytes = used.ru_maxrss / 1024
    if said is None:
        return Verdict(
            case, "failed", f"did not end within {seconds:g} s", took, megabytes
        )
    try:
        outcome, detail = json.loads(said)
    except ValueError:
        code = os.waitstatus_to_exitcode(status)
        return Verdict(
            case, "failed", f"the loader's process ended with {code}", took, megabytes
        )
    return Verdict(case, outcome, detail, took, megabytes)


def _line_of(file: io.RawIOBase, child: int, seconds: float) -> bytes | None:
    """Return the next line of *file*, less if it ends before; None after *seconds*
    without one.

    The time in which *child* waited for a processor is not counted, so that the verdict
    does not depend on what else the machine does; but no more than `_PATIENCE` times
    *seconds* pass on the clock.
    """
    started, waited = time.monotonic(), _waited(child)
    said = b""
    while not said.endswith(b"\n"):
        passed = time.monotonic() - started
        left = min(seconds + _waited(child) - waited, seconds * _PATIENCE) - passed
        if left <= 0:
            return None
        if not select.select([file], [], [], left)[0]:
            continue
        if not (
            chunk := file.read(1)
        ):  # one byte: the next line belongs to the next reader
            break
        said += chunk
    return said


def _waited(process: int) -> float:
    """Return the seconds in which *process* was ready to run, but no processor was free
    for it.

    The second number of schedstat (Documentation/scheduler/sched-stats.rst); of its
    threads, the one that waited most.
    """
    longest = 0
    with suppress(OSError, ValueError):
        for task in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208
            with suppress(OSError, IndexError):
                longest = max(
                    longest,
                    int(
                        Path(f"/proc/{process}/task/{task}/schedstat")
                        .read_text()
                        .split()[1]
                    ),
                )
    return longest / 1e9


def _in_child(
    root: Path, case: Case, adapter: ModuleType, writing: int, memory: int
) -> None:
    os.setsid()
    ctypes.CDLL(None).prctl(
        36, 1, 0, 0, 0
    )  # PR_SET_CHILD_SUBREAPER: what a script leaves behind is given to this process
    answer = ("failed", "no answer")
    tempfile.tempdir = tempfile.mkdtemp(
        dir=root
    )  # this process ends without removing its own
    try:
        # Beyond what is in use already, so that a loader with many libraries is not
        # judged by its size at rest.
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (used + memory, used + memory))
        with open_world(root) as world:
            answer = _judged(case, adapter, world, lambda: os.write(writing, _READY))
    except MemoryError:
        answer = ("failed", f"needs more than {memory // 1024**2} MiB")
    except BaseException as error:
        answer = ("failed", f"{type(error).__name__}: {error}"[:300])
    os.write(writing, json.dumps(answer).encode("utf-8", "replace") + b"\n")
    _end_descendants()
    os._exit(0)


def _end_descendants() -> None:
    """Kill what the loader left running: a case must not outlive its verdict."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for process in descendants(os.getpid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)


def _judged(
    case: Case, adapter: ModuleType, world: World, ready: Callable[[], object]
) -> tuple[str, str]:
    """Return the outcome and its detail; *ready* is called when all that is left is the
    loader's work.
    """
    if case.kind == "schema":
        return _judge_schema(case, adapter, ready)
    case.write(world.skills / case.name, world)
    neighbour = world.skills / _NEIGHBOUR
    neighbour.mkdir()
    (neighbour / "SKILL.md").write_text(skill_text(_NEIGHBOUR), "utf-8")
    before = _snapshot(world) if case.kind == "script" else {}
    ready()
    loaded = adapter.load(world.skills)
    if case.kind == "script":
        return _judge_script(case, adapter, world, loaded, before)
    return _judge_skill(case, adapter, loaded)


def _judge_schema(
    case: Case, adapter: ModuleType, ready: Callable[[], object]
) -> tuple[str, str]:
    accept = getattr(adapter, "accept", None)
    if accept is None:
        return "not offered", ""
    schema, payload = case.schema(), case.payload()
    ready()
    try:
        accept(schema, payload)
    except MemoryError:
        raise
    except RecursionError:
        return "failed", "RecursionError"
    except Exception as error:
        return "contained", f"refused: {type(error).__name__}"
    if case.expected == "refused":
        return "leaked", "it was accepted"
    return "contained", "accepted"


def _judge_skill(case: Case, adapter: ModuleType, loaded: Any) -> tuple[str, str]:
    listing = adapter.listing(loaded)
    # One bad skill must cost itself alone.
    if _NEIGHBOUR not in listing:
        return "failed", "the skill beside it is not listed any more"
    names = [case.name, "hostile", FORGED]
    shown = [("the listing", listing)]
    read: Callable[..., str] | None = getattr(adapter, "read", None)
    attempts: list[tuple[str, Callable[[], str]]] = [
        (f"the instructions of {name}", _bound(adapter.instructions, loaded, name))
        for name in names
    ]
    if read is not None:
        attempts += [
            (f"the file {path[:40]!r}", _bound(read, loaded, case.name, path))
            for path in case.paths
        ]
    for what, attempt in attempts:
        with suppress(Exception):
            shown.append((what, attempt()))
    for what, text in shown:
        if CANARY in text or "root:x:0" in text:
            return "leaked", f"{what} holds a secret of the host"
        if hidden := _hidden_in(text):
            return "leaked", f"{what} holds {hidden}"
        if _WIDE_MARK.search(text):
            return "leaked", f"{what} holds a mark that ends its frame"
        if len(text) > _LONGEST:
            return "leaked", f"{what} has {len(text):,} characters"
    if re.search(rf"(?m)^[\W_]*(<name>)?{FORGED}|<name>{FORGED}", listing):
        return "leaked", "the listing holds an entry that does not exist"
    if len(listing) > 100_000:
        return "leaked", f"the listing has {len(listing):,} characters"
    return "contained", ""


def _judge_script(
    case: Case, adapter: ModuleType, world: World, loaded: Any, before: dict[str, Any]
) -> tuple[str, str]:
    run = getattr(adapter, "run", None)
    if run is None:
        return "not offered", ""
    try:
        text = run(loaded, case.name, world.workspace, _DEADLINE)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    if hasattr(adapter, "directory"):
        place = adapter.directory(loaded, case.name)
    else:
        place = world.workspace
    succeeded = getattr(adapter, "succeeded", lambda text: False)(text)
    leak = (
        _escape(text, world, before)
        or _trace(place, world.workspace)
        or _wrong_answer(case, text, succeeded=succeeded)
    )
    if leak:
        return "leaked", leak
    return "contained", text[:100]


def _escape(text: str, world: World, before: dict[str, Any]) -> str:
    """Return what a script reached of the host, by what it answered and changed."""
    if "ESCAPED" in text:
        return text[:200]
    if CANARY in text:
        return "the result holds a secret of the host"
    if changed := _changed(before, _snapshot(world)):
        return f"changed: {', '.join(changed[:5])}"
    for listener in world.sockets:
        with suppress(BlockingIOError):
            if listener.type == socket.SOCK_STREAM:
                listener.accept()
            else:
                listener.recv(1)
            return f"reached a socket of the host ({listener.family.name})"
    return ""


def _trace(place: Path, workspace: Path) -> str:
    """Return what a script left in its directory *place*, or beside it in
    *workspace*, that outlives its run.
    """
    if place != workspace and (stray := _stray(workspace)):
        return f"{stray!r} came into the workspace"
    held = place / "held"
    if held.exists():
        with held.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return "a process is still running"
    for path in place.iterdir():
        if not path.is_file() or path.is_symlink():
            continue
        if path.stat().st_mode & 0o6000:
            return f"{path.name} would run as its owner"
    # Root may enter any directory, so the bits are looked at.
    if place.stat().st_mode & 0o700 != 0o700:
        return "the workspace is closed"
    return ""


def _wrong_answer(case: Case, text: str, *, succeeded: bool) -> str:
    """Return how the answer differs from what the case expects."""
    if case.expected.startswith("shown") and (hidden := _hidden_in(text)):
        return f"the answer holds {hidden}"
    if case.expected == "shortened" and len(text) > 50_000:
        return f"the answer has {len(text):,} characters"
    if case.expected.startswith("refused") and succeeded:
        return f"it was accepted: {text[:100]}"
    return ""


def _stray(workspace: Path) -> str:
    """Return what an untrusted script brought into *workspace* beside plain files in a
    directory of its own.
    """
    for path in sorted(workspace.rglob("*")):
        parts = path.relative_to(workspace).parts
        is_own = parts[0] == "skill-files" and not any(
            part.startswith(".") for part in parts
        )
        if (
            not is_own
            or path.is_symlink()
            or not (path.is_file() or path.is_dir())
            or path.stat().st_mode & 0o6000
        ):
            return str(path)
    return ""


def _snapshot(world: World) -> dict[str, Any]:
    """What the scripts must not change: everything outside the workspace."""
    found: dict[str, Any] = {}
    for root in (world.outside, world.home, world.skills):
        for path in sorted(root.rglob("*")):
            if ".cache" in path.parts:
                continue  # the loader's own
            status = path.lstat()
            found[str(path.relative_to(world.root))] = (
                status.st_mode,
                status.st_size,
                status.st_mtime_ns,
            )
    return found


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    # A directory's own size and time change with a cache that the loader itself writes;
    # its entries are compared.
    names = sorted(before.keys() | after.keys())
    return [
        name
        for name in names
        if before.get(name) != after.get(name)
        and not (
            name in before
            and name in after
            and before[name][0] == after[name][0]
            and before[name][0] & 0o40000
        )
    ]


_ESCAPED = re.compile("(?:(?<=[<\\[\uff1c\ufe64])|(?<=&lt;))\u2060")


def _hidden_in(text: str) -> str:
    """Return the first hidden characters of *text*, by number; the joiner that breaks a
    mark is not one.
    """
    text = _ESCAPED.sub("", text)
    return ", ".join(
        sorted({f"U+{ord(each):04X}" for each in set(text) if _is_hidden(each)})[:5]
    )


def _is_hidden(character: str) -> bool:
    if character in "\n\t":
        return False
    number = ord(character)
    selector = 0xFE00 <= number <= 0xFE0F or 0xE0100 <= number <= 0xE01EF
    return (
        selector
        or character in _FILLERS
        or unicodedata.category(character) in _HIDDEN_CATEGORIES
    )


def _bound(function: Callable[..., str], *arguments: Any) -> Callable[[], str]:
    return lambda: function(*arguments)
