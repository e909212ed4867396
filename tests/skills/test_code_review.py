"""The tool that lists changed lines: on diffs as tools print them, and in real
repositories, hostile ones too.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.skills.conftest import Scripts

pytestmark = pytest.mark.processes

QUIET = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


@pytest.fixture
def review(tmp_path: Path) -> Scripts:
    """The review tools in an empty workspace."""
    return Scripts("code-review", tmp_path / "work")


@pytest.fixture
def repository(review: Scripts) -> Path:
    """A repository with one commit of four files."""
    review.workspace.mkdir()
    git(review.workspace, "init", "-q", "-b", "main")
    for name, text in (
        ("a b.txt", "one\ntwo\nthree\n"),
        ('café "q".py', "x\n"),
        ("gone.py", "y\n"),
        ("old.py", "1\n2\n3\n4\n"),
    ):
        (review.workspace / name).write_text(text)
    git(review.workspace, "add", "-A")
    git(
        review.workspace,
        "-c",
        "user.name=n",
        "-c",
        "user.email=e",
        "commit",
        "-qm",
        "first",
    )
    return review.workspace


def git(folder: Path, *command: str) -> str:
    done = subprocess.run(
        ["git", *command],
        cwd=folder,
        env=os.environ | QUIET,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def call(review: Scripts, **arguments: Any) -> Any:
    review.workspace.mkdir(exist_ok=True)
    return review.call(arguments, "changed-lines", **QUIET)


def test_what_is_not_committed_is_listed_with_line_numbers(
    review: Scripts, repository: Path
) -> None:
    """Changed, deleted, renamed, new and binary files, of names that git quotes; each
    line has its number.
    """
    (repository / "a b.txt").write_text("one\n2\nthree\nfour\n")
    (repository / 'café "q".py').write_text("x\n-- y\n++ z\n")
    (repository / "gone.py").unlink()
    git(repository, "mv", "old.py", "new.py")
    (repository / "fresh.py").write_text("a\nb\n")
    (repository / "data.bin").write_bytes(b"\0" * 9)

    document = call(review).document

    assert (document["source"], document["added_count"], document["removed_count"]) == (
        "git diff HEAD",
        6,
        2,
    )
    files = {file["path"]: file for file in document["files"]}
    assert {path: file["status"] for path, file in files.items()} == {
        "a b.txt": "modified",
        'café "q".py': "modified",
        "gone.py": "deleted",
        "new.py": "renamed",
        "data.bin": "binary",
        "fresh.py": "untracked",
    }
    assert files["a b.txt"]["added"] == [[2, 2], [4, 4]] and files["a b.txt"][
        "removed"
    ] == [[2, 2]]
    assert files["a b.txt"]["hunks"][0]["lines"] == [
        " 1 one",
        "-2 two",
        "+2 2",
        " 3 three",
        "+4 four",
    ]
    assert files['café "q".py']["hunks"][0]["lines"] == [" 1 x", "+2 -- y", "+3 ++ z"]
    assert (
        files["gone.py"]["removed"] == [[1, 1]]
        and files["new.py"]["old_path"] == "old.py"
    )
    assert files["fresh.py"]["added"] == [[1, 2]]


def test_each_line_that_is_named_exists(review: Scripts, repository: Path) -> None:
    """Every added line is that line of the file, over many hunks."""
    lines = [f"line {number}" for number in range(1, 201)]
    (repository / "long.py").write_text("\n".join(lines) + "\n")
    git(repository, "add", "-A")
    git(
        repository, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "second"
    )
    for place in (190, 120, 60, 3):
        lines[place : place + 2] = [f"new {place}", f"and {place}", f"more {place}"]
    (repository / "long.py").write_text("\n".join(lines) + "\n")

    (file,) = call(review, revision="HEAD").document["files"]

    assert len(file["hunks"]) == 4
    added = [
        line[1:].split(" ", 1)
        for hunk in file["hunks"]
        for line in hunk["lines"]
        if line.startswith("+")
    ]
    assert len(added) == 12 and all(
        lines[int(number) - 1] == text for number, text in added
    )
    assert [
        number for first, last in file["added"] for number in range(first, last + 1)
    ] == [int(n) for n, _ in added]


def test_revisions_directories_and_new_repositories(
    review: Scripts, repository: Path
) -> None:
    """Two commits compare; a workspace in a repository sees its part; without a commit
    all is new.
    """
    git(repository, "switch", "-qc", "topic")
    (repository / "sub").mkdir()
    (repository / "sub" / "m.py").write_text("m\n")
    (repository / "gone.py").write_text("y\nz\n")
    git(repository, "add", "-A")
    git(
        repository, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "second"
    )
    inside = Scripts("code-review", repository / "sub")
    fresh = Scripts("code-review", repository.parent / "fresh")
    fresh.workspace.mkdir()
    git(fresh.workspace, "init", "-q")
    (fresh.workspace / "f.py").write_text("1\n")
    git(fresh.workspace, "add", "-A")

    assert [
        file["path"] for file in call(review, revision="main...HEAD").document["files"]
    ] == ["gone.py", "sub/m.py"]
    assert [
        file["path"] for file in call(inside, revision="main").document["files"]
    ] == ["m.py"]
    assert call(review).document == {
        "source": "git diff HEAD",
        "files": [],
        "added_count": 0,
        "removed_count": 0,
        "notes": ["Nothing is changed."],
    }
    assert call(fresh).document["files"][0]["status"] == "added"


def test_nothing_that_a_repository_configures_is_run(
    review: Scripts, repository: Path
) -> None:
    """Monitor, external diff, textconv, filters, hooks: a hostile repository runs none;
    plain git runs some.
    """
    marks = repository.parent / "marks"
    marks.mkdir()
    hooks = repository.parent / "hooks"
    hooks.mkdir()
    (hooks / "post-index-change").write_text(f"#!/bin/sh\ntouch {marks}/hook\n")
    (hooks / "post-index-change").chmod(0o755)
    settings = {
        "core.fsmonitor": f"touch {marks}/monitor; false",
        "core.hooksPath": str(hooks),
        "core.pager": f"touch {marks}/pager",
        "diff.external": f"touch {marks}/external",
        "diff.d.command": f"touch {marks}/driver",
        "diff.d.textconv": f"touch {marks}/textconv; cat",
        "filter.f=x.clean": f"touch {marks}/clean; cat",
        "filter.f=x.required": "true",
    }
    for name, value in settings.items():
        git(repository, "config", name, value)
    (repository / ".gitattributes").write_text("*.txt diff=d filter=f=x\n")
    (repository / "a b.txt").write_text("one\n2\nthree\n")
    os.utime(repository / "gone.py", (1, 1))  # so that git would refresh the index

    document = call(review).document

    assert document["files"][0]["hunks"][0]["lines"] == [
        " 1 one",
        "-2 two",
        "+2 2",
        " 3 three",
    ]
    assert list(marks.iterdir()) == []
    subprocess.run(
        ["git", "diff", "HEAD"], cwd=repository, capture_output=True, check=False
    )
    assert {"monitor", "external", "clean"} & {path.name for path in marks.iterdir()}


def test_diffs_of_other_tools_are_read(review: Scripts) -> None:
    """GNU diff with times, without prefixes; text around; blanks cut from empty lines;
    CRLF; a missing last newline.
    """
    diff = (
        "Here it is:\n"
        "```diff\n"
        "--- old/x.c\t2024-01-01 10:00:00\n"
        "+++ new/x.c\t2024-01-02 10:00:00\n"
        "@@ -9,4 +9,4 @@ int main()\r\n"
        " {\r\n"
        "\n"
        "-  a;\r\n"
        "+  b;\r\n"
        " }\r\n"
        "\\ No newline at end of file\n"
        "```\n"
        "--- /dev/null\n"
        "+++ b/new.py\n"
        "@@ -0,0 +1 @@\n"
        "+x = 1\n"
        "-- \n"
        "2.47.0"
    )
    (review.workspace).mkdir()
    (review.workspace / "c.patch").write_text(diff)

    sent, file = call(review, diff=diff).document, call(review, path="c.patch").document

    assert sent["files"] == file["files"] and (sent["source"], file["source"]) == (
        "diff",
        "c.patch",
    )
    first, second = sent["files"]
    assert (first["path"], first["added"], first["hunks"][0]["section"]) == (
        "new/x.c",
        [[11, 11]],
        "int main()",
    )
    assert first["hunks"][0]["lines"] == [
        " 9 {",
        " 10 ",
        "-11   a;",
        "+11   b;",
        " 12 }",
    ]
    assert (second["path"], second["status"], second["added"]) == (
        "new.py",
        "added",
        [[1, 1]],
    )


def test_large_changes_keep_their_numbers(review: Scripts) -> None:
    """Beyond max_characters the lines are left out; only reads a file or a
    directory.
    """
    diff = "".join(
        f"--- a/d{n}/f.py\n+++ b/d{n}/f.py\n@@ -1 +1,2 @@\n a\n+{'b' * 100}\n"
        for n in range(3)
    )

    cut = call(review, diff=diff, max_characters=150).document
    one = call(review, diff=diff, only=["./d1/"]).document

    assert [file["added"] for file in cut["files"]] == [[[2, 2]]] * 3
    assert ["lines" in file["hunks"][0] for file in cut["files"]] == [
        True,
        False,
        False,
    ] and "only" in cut["notes"][0]
    assert [file["path"] for file in one["files"]] == ["d1/f.py"]


def test_what_cannot_be_read_is_explained(review: Scripts) -> None:
    """No repository, revision, file or diff, an option as revision, a hunk of too few
    or too many lines, a merge.
    """
    head = "--- a/x\n+++ b/x\n"
    calls: list[tuple[dict[str, Any], str]] = [
        ({}, "git: fatal: not a git repository"),
        ({"revision": "--output=x"}, '"--output=x" does not match'),
        ({"path": "no.patch"}, "'no.patch' does not exist in the workspace"),
        ({"diff": "hello"}, "there is no unified diff in it"),
        (
            {"diff": f"{head}@@ -1,3 +1,3 @@\n a\n-b\n"},
            "the hunk in line 3 of the diff does not have the lines",
        ),
        (
            {"diff": f"{head}@@ -1,1 +1,1 @@\n-a\n+b\n+c\n+d\n"},
            "the hunk before line 6 of the diff does not have the",
        ),
        (
            {"diff": f"{head}@@ -1 +1 @@\n-a\n+b\n--- c\n"},
            "the hunk before line 6 of the diff does not have the",
        ),
        (
            {"diff": f"{head}@@ -1 +1 @@\n-a\n+b\n\n c\n"},
            "the hunk before line 7 of the diff does not have the",
        ),
        (
            {"diff": f"diff --cc x\n{head}@@@ -1,1 -1,1 +1,1 @@@\n- a\n -b\n++c\n"},
            "line 1 begins a combined diff",
        ),
        (
            {"diff": f"{head}@@@ -1,1 -1,1 +1,1 @@@\n- a\n -b\n++c\n"},
            "line 3 begins a combined diff of a merge",
        ),
        (
            {"diff": "@@ -1 +1 @@\n-a\n+b\n"},
            "the hunk in line 1 of the diff is of no file",
        ),
        (
            {"diff": f"{head}@@ -1 +1 @@\n-a\n+b\n", "only": ["y"]},
            "the change has no file 'y'",
        ),
    ]

    errors = [call(review, **arguments).error for arguments, _ in calls]

    for error, (_, message) in zip(errors, calls, strict=True):
        assert error["message"].startswith(message) and error["suggested_action"]
    assert (
        errors[0]["suggested_action"]
        == "Send diff, since the workspace is not in a repository."
    )
    git(review.workspace, "init", "-q")
    assert call(review, revision="nowhere").error["details"] == {"path": "/revision"}
    git(review.workspace, "config", "core.worktree", "/etc")
    assert call(review).error["message"] in (
        "the repository's files are not in the workspace",
        "git: fatal: this operation must be run in a work tree",
    )
