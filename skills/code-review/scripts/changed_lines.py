# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""List the files, hunks and line numbers of a change, so that findings name lines that
exist.

Reads one JSON object on standard input (the contract's ``input``), prints one JSON
object (its ``output``)::

    echo '{"revision": "main...HEAD"}' | python scripts/changed_lines.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from script_call import Failure, answer, input_file, shown_path
from unified_diff import add_ranges, parse_diff

SKILL = Path(__file__).resolve().parents[1]
MAX_BYTES = 20_000_000
MAX_UNTRACKED = 50
MARK = ("changedlines.settings", "true")
SETTINGS = [
    ("core.fsmonitor", ""),
    ("core.hooksPath", os.devnull),
    ("core.quotePath", "true"),
    MARK,
]
ENVIRONMENT = {
    "LC_ALL": "C",
    # the index is not written, so that no hook sees it change
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
FORM = [
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=all",
    "--no-color",
    "--find-renames",
    "--relative",
]
FORM += ["--src-prefix=a/", "--dst-prefix=b/"]


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the files of the diff that was sent, of a patch file, or of ``git diff``
    in the workspace.
    """
    notes: list[str] = []
    if arguments.get("diff") is not None:
        source, files = "diff", _parsed(arguments["diff"], "/diff")
    elif arguments.get("path"):
        file = input_file(arguments["path"], "/path", (".diff", ".patch"))
        with file.open("rb") as opened:
            text = _limited(opened.read(MAX_BYTES + 1)).decode("utf-8", "replace")
        source, files = shown_path(file), _parsed(text, "/path")
    else:
        source, files = _of_git(arguments.get("revision") or "HEAD", notes)
    wanted = [
        path.strip().removeprefix("./").rstrip("/")
        for path in arguments.get("only", [])
    ]
    if wanted:
        chosen = [
            file
            for file in files
            if any(f"{file['path']}/".startswith(f"{path}/") for path in wanted)
        ]
        if files and not chosen:
            known = ", ".join(file["path"] for file in files[:20])
            message = f"the change has no file {', '.join(map(repr, wanted))}"
            raise Failure(
                "INVALID_INPUT", message, f"Its files: {known}.", path="/only"
            )
        files = chosen
    if not files:
        notes.append("Nothing is changed.")
    left = arguments["max_characters"]
    for file in files:
        add_ranges(file)
        for hunk in file["hunks"]:
            left -= sum(map(len, hunk["lines"]))
            if left < 0:
                del hunk["lines"]
    if left < 0:
        notes.append(
            "Lines beyond max_characters are left out, not their numbers; send only "
            "to read a file."
        )
    counts = {
        f"{side}_count": sum(
            last - first + 1 for file in files for first, last in file[side]
        )
        for side in ("added", "removed")
    }
    result = {"source": source, "files": files} | counts
    return result | ({"notes": notes} if notes else {})


def _parsed(text: str, path: str) -> list[dict[str, Any]]:
    files = parse_diff(text)
    if not files and text.strip():
        action = (
            "Send the output of git diff, with its lines '--- a/name', '+++ b/name' "
            "and '@@'."
        )
        raise Failure(
            "INVALID_INPUT", "there is no unified diff in it", action, path=path
        )
    return files


def _limited(data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        action = "Compare fewer commits."
        raise Failure(
            "INVALID_INPUT",
            f"the diff is larger than {MAX_BYTES // 1_000_000} MB",
            action,
        )
    return data


def _of_git(revision: str, notes: list[str]) -> tuple[str, list[dict[str, Any]]]:
    """Return what ``git diff`` says below the working directory; new files too, if it
    compares with HEAD.
    """
    top = Path(os.fsdecode(_git([], "rev-parse", "--show-toplevel")).rstrip("\n"))
    if (
        not Path.cwd().resolve().is_relative_to(top.resolve())
    ):  # core.worktree can name any directory
        message = "the repository's files are not in the workspace"
        raise Failure("INVALID_INPUT", message, "Send diff instead.", recoverable=False)
    off = _filters()
    is_head, base = revision == "HEAD", revision
    if is_head and not _git(
        off, "rev-parse", "--verify", "--quiet", "HEAD", may_fail=True
    ):
        base = os.fsdecode(
            _git(off, "hash-object", "-t", "tree", "--stdin")
        ).strip()  # no commit yet: the empty tree
    text = _git(off, "diff", *FORM, "--end-of-options", base, "--").decode(
        "utf-8", "replace"
    )
    files = parse_diff(text)
    if is_head:
        names = os.fsdecode(
            _git(off, "ls-files", "--others", "--exclude-standard", "-z")
        ).split("\0")
        names = [
            name for name in names if name and not name.endswith("/")
        ]  # another repository is a directory
        files += [_untracked(Path(name)) for name in names[:MAX_UNTRACKED]]
        if len(names) > MAX_UNTRACKED:
            notes.append(
                f"{len(names)} files are untracked; the first {MAX_UNTRACKED} are "
                "listed."
            )
    return f"git diff {revision}", files


def _filters() -> list[tuple[str, str]]:
    """Return settings that switch off the programs with which git would convert each
    file that it compares.
    """
    names = os.fsdecode(_git([], "config", "--list", "--name-only", "-z")).split("\0")
    if (
        MARK[0] not in names
    ):  # git before 2.31 does not read settings from the environment
        raise Failure(
            "TOOL_NOT_AVAILABLE",
            "git is older than 2.31",
            "Send diff instead.",
            recoverable=False,
        )
    filters = {
        name.rsplit(".", 1)[0]
        for name in names
        if name.lower().startswith("filter.") and name.count(".") > 1
    }
    values = {"clean": "", "process": "", "smudge": "", "required": "false"}
    return [
        (f"{name}.{key}", value)
        for name in sorted(filters)
        for key, value in values.items()
    ]


def _git(off: list[tuple[str, str]], *command: str, may_fail: bool = False) -> bytes:
    """Run git and return what it prints. It runs no program that the repository
    configures, and uses no network.
    """
    import subprocess

    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    } | ENVIRONMENT
    settings = [*SETTINGS, *off]
    environment["GIT_CONFIG_COUNT"] = str(
        len(settings)
    )  # not -c: the name of a filter can hold "="
    for index, (name, value) in enumerate(settings):
        environment |= {
            f"GIT_CONFIG_KEY_{index}": name,
            f"GIT_CONFIG_VALUE_{index}": value,
        }
    try:
        done = subprocess.run(
            ["git", "--no-pager", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=50,
            check=False,
        )
    except FileNotFoundError as error:
        action = "Send diff instead."
        raise Failure(
            "TOOL_NOT_AVAILABLE", "git is not installed", action, recoverable=False
        ) from error
    except subprocess.TimeoutExpired as error:
        raise Failure(
            "TOOL_TIMEOUT", "git did not answer in 50 seconds", "Send diff instead."
        ) from error
    if done.returncode and not may_fail:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:200]
        action = "Send diff, or a revision that git knows, such as 'HEAD~1'."
        if "not a git repository" in said:
            action = "Send diff, since the workspace is not in a repository."
        raise Failure("INVALID_INPUT", f"git: {said}", action, path="/revision")
    return _limited(done.stdout)


def _untracked(file: Path) -> dict[str, Any]:
    """Return a file that git does not know yet, as a file whose lines are all added."""
    entry: dict[str, Any] = {
        "path": file.as_posix(),
        "status": "untracked",
        "added": [],
        "removed": [],
        "hunks": [],
    }
    if file.is_symlink() or not file.is_file() or file.stat().st_size > MAX_BYTES:
        return entry
    data = file.read_bytes()
    if b"\0" in data[:8000]:
        return entry | {"status": "binary"}
    lines = data.decode("utf-8", "replace").splitlines()
    if lines:
        numbered = [f"+{number} {line}" for number, line in enumerate(lines, 1)]
        counts = {
            "old_start": 0,
            "old_count": 0,
            "new_start": 1,
            "new_count": len(lines),
        }
        entry["hunks"] = [counts | {"lines": numbered}]
    return entry


if __name__ == "__main__":
    sys.exit(answer(run, SKILL / "contracts" / "changed-lines.json"))
