"""Ordinary programs in the sandbox: the list of system calls is long enough for them,
at each level.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from skillruntime.runtime import SandboxCommand, interpreter_paths, open_sandbox
from tests import needs
from tests.runtime.parts import Finished

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

ASYNCIO = """
import asyncio, multiprocessing, subprocess, tempfile, sqlite3, threading, shutil, tarfile
async def main():
    process = await asyncio.create_subprocess_exec(
        "/bin/echo", "from a child", stdout=asyncio.subprocess.PIPE
    )
    print((await process.communicate())[0].decode().strip())
    print(await asyncio.to_thread(lambda: "from a thread"))
asyncio.run(main())
connection = sqlite3.connect("made.db")
connection.execute("create table t (a)")
connection.commit()
with tempfile.TemporaryFile() as file: file.write(b"x")
shutil.copy2("made.db", "copied.db")
with tarfile.open("made.tar.gz", "w:gz") as archive: archive.add("made.db")
with tarfile.open("made.tar.gz") as archive:
    archive.extraction_filter = lambda member, path: member
    archive.extractall("unpacked")
context = multiprocessing.get_context("fork")
ours, theirs = context.Pipe()
child = context.Process(target=theirs.send, args=("from a process",))
child.start()
print(ours.recv())
child.join()
"""
NODE = """
const { execFileSync, spawn, fork } = require('child_process');
const fs = require('fs');
console.log(execFileSync('/bin/echo', ['from a child']).toString().trim());
fs.writeFileSync('made.txt', 'x'); fs.copyFileSync('made.txt', 'copied.txt');
fs.promises.readFile('copied.txt').then(() => {
  const shell = spawn('/bin/sh', ['-c', 'cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
  shell.stdout.on('data', (data) => console.log(data.toString().trim()));
  shell.stdin.end('through a pipe');
  new (require('worker_threads').Worker)("console.log('from a worker')", { eval: true });
});
"""
GIT = """
git init -q repository && cd repository && git config user.email a@b && git config user.name a
echo one > file && git add file && git commit -qm one && echo two > file
git status --short && git log --oneline | wc -l
git stash -q && git stash pop -q && git checkout -qb other && git diff --stat | tail -1
"""
TOOLS = """
set -e
printf 'b 2\\na 1\\n' > list; sort list | awk '{print $2}' | sed 's/1/one/' | tr '\\n' ' '; echo
mkdir -p x/y; cp -a list x/y/; mv x/y/list x/list; ln -s list link
find . -name 'l*' | sort | xargs ls -d | wc -l
tar czf t.tgz x; tar tzf t.tgz | wc -l; gzip -k list; gunzip -c list.gz | wc -c
grep -c a list; diff list x/list && cmp list x/list; stat -c %s list; touch -d 2020-01-01 list
chmod 600 list; du -s x > /dev/null
date -u -d @0 +%Y; seq 3 | paste -sd+ ; (sleep 0.01 & wait)
timeout 5 true; nice true; mktemp > /dev/null; head -c 3 list | od -c > /dev/null
trap 'echo trapped' USR1; kill -USR1 $$; echo "$(( 1 + 1 )) $(cat <<< here)"
cat <(echo substituted); flock list true; nproc > /dev/null; uname > /dev/null; id -u > /dev/null
"""


async def run(level: str, workspace: Path, program: str, *words: str) -> Finished:
    """Run *program* with *words* at *level*; skip where it is not installed."""
    found = needs.program(program)
    command = SandboxCommand(
        (found, *words),
        workspace,
        environment={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        readable=interpreter_paths(found),
        writable=(workspace,),
    )
    with anyio.fail_after(300):
        return await (await open_sandbox(level)).run(command)


@pytest.mark.processes
async def test_python_with_an_event_loop_children_and_archives_runs(
    level: str, tmp_path: Path
) -> None:
    """`asyncio.run` makes a pair of sockets; `multiprocessing` and `sqlite3` lock
    files.
    """
    finished = await run(level, tmp_path, sys.executable, "-I", "-c", ASYNCIO)

    assert (finished.stdout.decode().split("\n"), finished.stderr) == (
        ["from a child", "from a thread", "from a process", ""],
        b"",
    )


@pytest.mark.processes
async def test_node_with_a_child_process_and_a_worker_runs(
    level: str, tmp_path: Path
) -> None:
    """Its pipes to children are pairs of stream sockets."""
    finished = await run(level, tmp_path, "node", "-e", NODE)

    assert sorted(finished.stdout.decode().splitlines()) == [
        "from a child",
        "from a worker",
        "through a pipe",
    ]
    assert (finished.exit_code, finished.stderr) == (0, b"")


@pytest.mark.processes
async def test_git_runs(level: str, tmp_path: Path) -> None:
    """It commits, stashes and makes a branch."""
    needs.program("git")

    finished = await run(level, tmp_path, "sh", "-c", GIT)

    assert finished.stdout.decode().split("\n") == [
        " M file",
        "1",
        " 1 file changed, 1 insertion(+), 1 deletion(-)",
        "",
    ]
    assert finished.stderr == b""


@pytest.mark.processes
async def test_shells_and_common_command_line_tools_run(
    level: str, tmp_path: Path
) -> None:
    """Pipes, jobs, signals, here-documents, process substitution, archives."""
    finished = await run(level, tmp_path, "bash", "-c", TOOLS)

    assert (finished.exit_code, finished.stderr) == (0, b"")
    expected = [
        "one 2 ",
        "3",
        "3",
        "8",
        "1",
        "8",
        "1970",
        "1+2+3",
        "trapped",
        "2 here",
        "substituted",
        "",
    ]
    assert finished.stdout.decode().split("\n") == expected


@pytest.mark.processes
@pytest.mark.parametrize(
    ("program", "words", "expected"),
    [
        (
            "perl",
            (
                "-e",
                'print `echo hi`; open(my $f, "<", "/dev/null"); print fork() ? "" : '
                '"x"; wait',
            ),
            b"hi\nx",
        ),
        ("ruby", ("-e", "puts `echo hi`; Thread.new { puts 1 }.join"), b"hi\n1\n"),
        ("jq", ("-n", "-c", "{a: 1}"), b'{"a":1}\n'),
        (
            "sqlite3",
            ("made.db", "create table t(a); insert into t values (1); select * from t"),
            b"1\n",
        ),
        ("openssl", ("version",), None),
        ("make", ("-v",), None),
        ("gcc", ("--version",), None),
        ("pdftotext", ("-v",), None),
        ("ffmpeg", ("-version",), None),
        ("curl", ("--version",), None),
        ("rg", ("--version",), None),
        ("go", ("version",), None),
        ("php", ("-r", "echo 1;"), b"1"),
        ("Rscript", ("-e", "cat(1)"), b"1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_program_that_scripts_call_runs(
    level: str,
    tmp_path: Path,
    program: str,
    words: tuple[str, ...],
    expected: bytes | None,
) -> None:
    """Where it is installed."""
    finished = await run(level, tmp_path, program, *words)

    assert finished.exit_code == 0, finished.stderr
    assert expected is None or finished.stdout == expected


@pytest.mark.processes
async def test_libreoffice_starts_where_it_may_make_unix_sockets(
    level: str, tmp_path: Path
) -> None:
    """At the level of Landlock it ends at once, because it cannot read its
    configuration: with it, and without these sockets, it would wait for good.
    """
    if not Path("/etc/libreoffice").exists():
        pytest.skip("needs Debian's soffice, which reads /etc/libreoffice")

    finished = await run(level, tmp_path, "soffice", "--headless", "--version")

    if level == "bubblewrap":
        assert (finished.exit_code, finished.stdout[:12]) == (0, b"LibreOffice ")
    else:
        assert finished.exit_code != 0
        assert b"terminate called after throwing" in finished.stderr
