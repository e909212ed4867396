"""How many minimal calls does a script refuse for usage? Each is run, confined, as its
derived contract says it.

    python benchmarks/derive_minimal_calls.py
        the scripts in benchmarks/derive_written_scripts.txt
    python benchmarks/derive_minimal_calls.py PATH ...
        the scripts below directories, and single ones
    python benchmarks/derive_minimal_calls.py PATH --whole
        only those that were read whole
    python benchmarks/derive_minimal_calls.py --more
        each further argument too, one in a call

A minimal call has the arguments that the contract requires, each with a value that its
schema allows; each command of a script has one. The words run in a bubblewrap sandbox
without network, in an empty directory. A call is refused for usage where the script
fails and its output says so (`_REFUSED`); a script that does not come to its command
line, for a module or a program that is not installed, counts apart. What was refused is
printed, to be judged by a reader.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.derive_calls import minimal_arguments, some_arguments
from skillruntime.derive import CommandLine, Derivation, derive, to_argv
from skillruntime.errors import SkillInputError
from skillruntime.runtime import (
    Limits,
    Sandbox,
    SandboxCommand,
    interpreter_paths,
    open_sandbox,
)

WRITTEN = Path(__file__).with_name("derive_written_scripts.txt")
SECONDS = 10
COMMANDS = 6
"""Commands of one script that are called."""

CALLS = 20
"""Calls of one script with ``--more``."""

# ``run: FILE`` in a help text is not a complaint, so a refusal needs an exit code of
# its own too.
_REFUSED = re.compile(
    r"(?i)\busage\b\s*:"
    r"|\bmissing\b.{0,40}"
    r"\b(?:arg|operand|option|param|command|file|input|name|value)"
    r"|\b(?:arguments?|parameters?|options?|flags?)\b.{0,60}"
    r"\b(?:is|are|were)? ?(?:required|missing|expected)"
    r"|\brequires?\b.{0,30}\b(?:arg|param|option|value|at least|one of)"
    r"|\b(?:not enough|too few|too many)\b.{0,20}\barg"
    r"|\b(?:is|are) required\b"
    r"|\bmust (?:be given|specify|provide|supply)\b"
    r"|\bplease (?:give|specify|provide|supply)\b"
    r"|unbound variable|parameter (?:null or )?not set"
    r"|list index out of range|unpack \(expected"
    r"|\b(?:unrecognized|unknown|invalid|illegal) (?:arg|option|command|flag)"
    r"|no such option|is not a valid"
    r"|\bspecify\b|expected .{0,20}argument|must be (?:of type )?string.{0,20}undefined"
    r"|no \w+ (?:given|specified|provided)"
)
_NOT_STARTED = re.compile(
    r"ModuleNotFoundError|ImportError|Cannot find (?:module|package)"
    r"|command not found|SyntaxError|not found in PATH|is not installed"
    r"|No such file or directory: '/(?:usr|etc)|can't open file"
    r"|attempted relative import"
)


@dataclass(frozen=True, slots=True)
class Tried:
    """One minimal call, and how it ended: ``"ran"``, ``"refused"``, ``"not started"``
    or ``"stopped"``.
    """

    name: str
    derivation: Derivation
    words: tuple[str, ...]
    ended: str
    output: str = ""


def scripts_of(path: Path) -> Iterator[Path]:
    """Yield the shell, Python and Node scripts below *path*: by suffix, or by the first
    line of a file without one.
    """
    for each in [path] if path.is_file() else sorted(path.rglob("*")):
        inside = each.relative_to(path).parts if each != path else ()
        if (
            not each.is_file()
            or each.is_symlink()
            or {"test", "tests", "__pycache__"} & set(inside)
        ):
            continue
        with each.open("rb") as file:
            first = file.readline(200)
        named = first.startswith(b"#!") and re.search(
            rb"\b(?:python[\d.]*|bash|sh|zsh|node)\b", first
        )
        if each.suffix in (".sh", ".bash", ".js", ".mjs", ".cjs"):
            if named or "bin" in each.parts or "scripts" in each.parts:
                yield each
        elif named or (each.suffix == ".py" and b"__main__" in each.read_bytes()):
            yield each


def written_scripts(directory: Path) -> Iterator[Path]:
    """Write the scripts of `WRITTEN` below *directory*, and yield them; each starts
    after a line ``=== NAME``.
    """
    for part in re.split(r"^=== ", WRITTEN.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = part.partition("\n")
        path = directory / name.strip()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        yield path


async def try_script(
    sandbox: Sandbox, path: Path, *, only_whole: bool, more: bool
) -> list[Tried]:
    """Run the minimal calls of the script at *path*; none where it has no contract."""
    source = path.read_text("utf-8", "replace")
    found = derive(source, path=path.name)
    if found is None or (only_whole and not found.complete):
        return []
    tried: list[Tried] = []
    schema = found.document["input"]
    all_calls = (
        minimal_arguments(schema)[:COMMANDS]
        if not more
        else list(some_arguments(schema))[:CALLS]
    )
    for arguments in all_calls:
        stdin, words = b"", []
        if "command_line" in found.document["run"]:
            accepted = found.to_contract().accept(arguments, policy="strict").arguments
            try:
                words = to_argv(
                    CommandLine.from_dict(found.document["run"]["command_line"]),
                    accepted,
                )
            except SkillInputError as error:
                tried.append(
                    Tried(path.name, found, (), "refused", f"no command line: {error}")
                )
                continue
        else:
            stdin = json.dumps(arguments).encode()
        tried.append(await _run(sandbox, path, source, found, words, stdin))
    return tried


async def _run(
    sandbox: Sandbox,
    path: Path,
    source: str,
    found: Derivation,
    words: list[str],
    stdin: bytes,
) -> Tried:
    interpreter = _interpreter(path, source.partition("\n")[0])
    with tempfile.TemporaryDirectory() as directory:
        # A value that names a file names one that is there: what is measured is the
        # command line.
        for name in ("text", "some.txt"):
            (Path(directory) / name).write_text("text\n", "utf-8")
        command = SandboxCommand(
            (interpreter, str(path), *words),
            Path(directory),
            stdin,
            {
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": directory,
                "LC_ALL": "C.UTF-8",
            },
            readable=(*interpreter_paths(interpreter), path.parent),
            writable=(Path(directory),),
            limits=Limits(file_size=10_000_000),
        )
        finished = None
        with anyio.move_on_after(SECONDS):
            finished = await sandbox.run(command)
    if finished is None:
        return Tried(path.name, found, tuple(words), "stopped")
    output = (
        (finished.stderr[-3000:] + b"\n" + finished.stdout[-1500:])
        .decode("utf-8", "replace")
        .strip()
    )
    ended = "ran"
    if finished.exit_code != 0:
        if _NOT_STARTED.search(output):
            ended = "not started"
        elif _REFUSED.search(output):
            ended = "refused"
    return Tried(path.name, found, tuple(words), ended, output)


def _interpreter(path: Path, first: str) -> str:
    if path.suffix in (".js", ".mjs", ".cjs") or "node" in first:
        return "/usr/bin/node"
    if path.suffix == ".py" or "python" in first:
        return sys.executable
    # ``/bin/sh`` and bash differ in what they refuse.
    return "/bin/sh" if re.match(r"#!\s*/bin/(?:sh|dash)", first) else "/bin/bash"


async def measure(
    paths: list[Path], *, only_whole: bool, more: bool, verbose: bool
) -> int:
    """Run all minimal calls, print the figures, and return the number refused."""
    sandbox = await open_sandbox("bubblewrap")
    results: list[Tried] = []
    limiter = anyio.CapacityLimiter(os.cpu_count() or 2)

    async def one(path: Path) -> None:
        async with limiter:
            results.extend(
                await try_script(sandbox, path, only_whole=only_whole, more=more)
            )

    async with anyio.create_task_group() as group:
        for path in paths:
            group.start_soon(one, path)
    by_kind: dict[str, list[Tried]] = defaultdict(list)
    for each in sorted(results, key=lambda each: each.name):
        kind = each.derivation.framework
        by_kind[
            kind
            if "args" not in each.derivation.document["input"].get("properties", {})
            else f"{kind}, args"
        ] += [each]
    print(
        f"{'kind':20} {'calls':>6} {'ran':>6} {'refused':>8} {'not started':>12} "
        f"{'stopped':>8}"
    )
    whole_ones = [each for each in results if each.derivation.complete]
    for kind, tried in [
        *sorted(by_kind.items()),
        ("all", results),
        ("read whole", whole_ones),
    ]:
        count = [
            sum(each.ended == ended for each in tried)
            for ended in ("ran", "refused", "not started", "stopped")
        ]
        print(
            f"{kind:20} {len(tried):6} {count[0]:6} {count[1]:8} {count[2]:12} "
            f"{count[3]:8}"
        )
    refused = [each for each in results if each.ended == "refused"]
    came = sum(each.ended in ("ran", "refused") for each in results)
    print(
        f"{len(refused)} of {came} calls that came to the command line were refused "
        "for usage: ",
        end="",
    )
    print(f"{len(refused) / came:.1%}" if came else "none ran")
    for each in sorted(refused if not verbose else results, key=lambda each: each.name):
        whole = (
            "whole"
            if each.derivation.complete
            else "; ".join(map(str, each.derivation.unread))[:80]
        )
        last = each.output.splitlines()[-1][:160] if each.output else ""
        print(
            f"! {each.ended} {each.name} {list(each.words)} "
            f"({each.derivation.framework}, {whole}): {last}"
        )
    return len(refused)


def main() -> int:
    """Run the minimal calls, and print what was refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument(
        "--whole", action="store_true", help="only scripts that were read whole"
    )
    parser.add_argument(
        "--more",
        action="store_true",
        help="one more argument in each call, and not only the least",
    )
    parser.add_argument("--verbose", action="store_true", help="print each call")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        # The sandbox runs as another user.
        Path(directory).chmod(0o755)
        paths = [each for path in options.paths for each in scripts_of(path)] or list(
            written_scripts(Path(directory))
        )
        anyio.run(
            lambda: measure(
                paths,
                only_whole=options.whole,
                more=options.more,
                verbose=options.verbose,
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
