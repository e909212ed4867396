"""Reading a unified diff: its files, its hunks, and the number of each line.

Not a tool: changed_lines.py imports it. The form is that of GNU diff and of git; a hunk
has the lines that its header counts, so that a removed line ``-- a`` is not taken for
the header of a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from script_call import Failure

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}


def parse_diff(text: str) -> list[dict[str, Any]]:
    """Return the files of a diff, as the contract describes them. Text around the diffs
    is skipped.

    Raises: Failure, where a hunk has too few or too many lines, or no file, and for a
    combined diff.

    >>> diff = "--- a/f.py\\n+++ b/f.py\\n@@ -1,2 +1,2 @@\\n-x = 1\\n+x = 2\\n print(x)\\n"
    >>> parse_diff(diff)[0]["hunks"][0]["lines"]
    ['-1 x = 1', '+1 x = 2', ' 2 print(x)']
    """
    files: list[dict[str, Any]] = []
    listed = text.removesuffix("\n").split("\n")
    lines = enumerate(listed, 1)
    is_begun = after_hunk = False
    for number, line in lines:
        found = HUNK.match(line)
        if line.startswith(("diff --cc ", "diff --combined ", "@@@ ")):
            action = (
                "Send a diff against one parent, such as the output of git diff "
                "HEAD^1 HEAD."
            )
            raise Failure(
                "INVALID_INPUT",
                f"line {number} begins a combined diff of a merge",
                action,
                path="/diff",
            )
        if line.startswith("diff --git "):
            files.append(_file(_git_name(line)))
            is_begun = True
        elif line.startswith("--- ") and "".join(
            listed[number : number + 1]
        ).startswith("+++ "):
            if not is_begun:
                files.append(_file(""))
            _set_names(files[-1], _name(line[4:]), _name(next(lines)[1][4:]))
            is_begun = False
        elif found:
            if not files or not files[-1]["path"]:
                message = f"the hunk in line {number} of the diff is of no file"
                raise Failure(
                    "INVALID_INPUT",
                    message,
                    "Send its lines '--- a/name' and '+++ b/name'.",
                    path="/diff",
                )
            files[-1]["hunks"].append(_hunk(found, number, lines))
        elif (
            after_hunk and line[:1] in ("+", "-", " ") and line.rstrip() != "--"
        ):  # "-- " ends the patch of a mail
            raise _miscounted(f"the hunk before line {number}")
        elif files:
            _read_header(files[-1], line.rstrip("\r"))
        after_hunk = found is not None or (after_hunk and line[:1] in ("", "\\"))
    return [file for file in files if file["path"]]


def add_ranges(file: dict[str, Any]) -> None:
    """Set the numbers of the added and removed lines of *file*, as pairs of first and
    last.
    """
    numbers: dict[str, list[int]] = {"+": [], "-": []}
    for hunk in file["hunks"]:
        for line in hunk["lines"]:
            if line[0] in numbers:
                numbers[line[0]].append(int(line[1:].split(" ", 1)[0]))
    file["added"], file["removed"] = _ranges(numbers["+"]), _ranges(numbers["-"])


def _ranges(numbers: list[int]) -> list[list[int]]:
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def _file(path: str) -> dict[str, Any]:
    return {"path": path, "status": "modified", "added": [], "removed": [], "hunks": []}


def _set_names(file: dict[str, Any], old: str, new: str) -> None:
    file["path"] = old if new == "/dev/null" else new
    if new == "/dev/null":
        file["status"] = "deleted"
    elif old == "/dev/null":
        file["status"] = "added"


def _read_header(file: dict[str, Any], line: str) -> None:
    """Read one line of git's extended header."""
    if line.startswith("new file mode"):
        file["status"] = "added"
    elif line.startswith("deleted file mode"):
        file["status"] = "deleted"
    elif line.startswith("rename from "):
        file["status"], file["old_path"] = (
            "renamed",
            _unquoted(line[len("rename from ") :]),
        )
    elif line.startswith("rename to "):
        file["path"] = _unquoted(line[len("rename to ") :])
    elif line.startswith(("Binary files ", "GIT binary patch")):
        file["status"] = "binary"


def _hunk(
    found: re.Match[str], number: int, lines: Iterator[tuple[int, str]]
) -> dict[str, Any]:
    """Read as many lines as the header counts, and number them."""
    old, new = int(found[1]), int(found[3])
    old_left, new_left = int(found[2] or 1), int(found[4] or 1)
    hunk: dict[str, Any] = {
        "old_start": old,
        "old_count": old_left,
        "new_start": new,
        "new_count": new_left,
    }
    if found[5].strip():
        hunk["section"] = found[5].strip()
    hunk["lines"] = []
    while old_left > 0 or new_left > 0:
        at, line = next(lines, (0, "end"))
        sign = line[:1] or " "  # an empty line is one whose blank was cut off
        text = line[1:].rstrip("\r")
        if sign == "\\":  # "\ No newline at end of file"
            continue
        if sign not in "+- " or at == 0:
            raise _miscounted(f"the hunk in line {number}")
        is_in_old = sign != "+"
        is_in_new = sign != "-"
        if (is_in_old and old_left == 0) or (is_in_new and new_left == 0):
            raise _miscounted(f"the hunk in line {number}")
        shown = new if is_in_new else old
        hunk["lines"].append(f"{sign}{shown} {text}")
        if is_in_old:
            old += 1
            old_left -= 1
        if is_in_new:
            new += 1
            new_left -= 1
    return hunk


def _miscounted(hunk: str) -> Failure:
    message = f"{hunk} of the diff does not have the lines that its header counts"
    return Failure(
        "INVALID_INPUT",
        message,
        "Send the diff as git printed it, whole.",
        path="/diff",
    )


def _git_name(line: str) -> str:
    """Return the new name of ``diff --git a/x b/x``: both are equal, unless a later
    line names a rename.
    """
    rest = line.rstrip("\r").split(" ", 2)[2]
    return _stripped(_unquoted(rest[len(rest) // 2 + 1 :]))


def _name(text: str) -> str:
    """Return the name in a ``---`` or ``+++`` line: without the time that GNU diff
    adds, without ``a/``.
    """
    return _stripped(_unquoted(text.rstrip("\r").split("\t")[0].strip()))


def _stripped(name: str) -> str:
    return name[2:] if name.startswith(("a/", "b/")) else name


def _unquoted(name: str) -> str:
    """Return a name that git quoted as C does.

    >>> _unquoted('"caf\\\\303\\\\251 \\\\"x\\\\".py"')
    'café "x".py'
    """
    if len(name) < 2 or name[0] != '"' or name[-1] != '"':
        return name
    return ESCAPE.sub(_escaped, name[1:-1].encode()).decode("utf-8", "replace")


def _escaped(found: re.Match[bytes]) -> bytes:
    text = found[1]
    return bytes([int(text, 8) & 255]) if text.isdigit() else ESCAPED.get(text, text)
