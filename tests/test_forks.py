"""Processes that fork while threads of theirs use the library (`gunicorn --preload`,
`multiprocessing`): no child waits for a lock of a thread that it does not have.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import needs

pytestmark = pytest.mark.processes

PROGRAM = """
import os, signal, sys, threading, warnings

from skillruntime import Contract, SkillRuntime

warnings.simplefilter("ignore")  # Python 3.12 and later warn of each such fork
document = {
    "version": "1.0.0",
    "input": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "number": {"type": "integer"}},
        "required": ["text"],
    },
}
runtime = SkillRuntime()


@runtime.implements("echo", contract=Contract.from_dict(document, name="echo"))
async def echo(arguments):
    return {"said": arguments["text"] * 50}


session = runtime.session()


def call(number):
    with runtime.session() as own:
        response = own.call_sync("echo", {"text": "x", "number": str(number)})
        assert response.ok, response.errors
        own.ledger  # counts the tokens
    assert session.call_sync("echo", {"text": "a", "number": str(number)}).ok
    session.ledger


def fork():
    child = os.fork()
    if child == 0:
        signal.alarm(200)  # the deadline
        try:
            for number in range(3):
                call(number)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


def work(number):
    begun.release()
    while True:
        number += 7
        call(number)


begun = threading.Semaphore(0)
if sys.argv[1] == "warm":
    call(1)
for number in range(4):
    threading.Thread(target=work, args=(number,), daemon=True).start()
    begun.acquire()
ended = [os.waitpid(fork(), 0)[1] for _ in range(int(sys.argv[2]))]
print(ended, flush=True)
os._exit(0)
"""


def statuses_of(*arguments: str) -> str:
    """Return how the children of the program end, as it prints them."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
@pytest.mark.parametrize("start", ["cold", "warm"])
def test_a_child_calls_skills_although_threads_called_when_it_was_forked(
    start: str,
) -> None:
    """Also while they import what the first call needs, and count tokens."""
    assert statuses_of(start, "5") == "[0, 0, 0, 0, 0]"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
def test_many_children_end() -> None:
    """Fifty forks, while four threads call."""
    assert statuses_of("warm", "50") == str([0] * 50)


HOLDING = """
import os, signal, threading, warnings

from skillruntime import Contract, SkillRuntime
from skillruntime.runtime.files.workspace import Workspace
from skillruntime.tokens import count, counter, encodings, load

warnings.simplefilter("ignore")
runtime = SkillRuntime()
session = runtime.session()


@runtime.implements("echo", contract=Contract.from_dict({"input": {}}, name="echo"))
def echo(arguments):
    return 1


session.call_sync("echo", {})
held, done = threading.Event(), threading.Event()


def hold():
    state = session.state
    locks = [counter._keeping, encodings._loading, state.lock, state._counting]
    for lock in [*locks, session.workspace._making]:
        lock.acquire()
    held.set()
    done.wait()


threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(200)
    try:
        assert session.call_sync("echo", {}).ok
        assert session.ledger is not None
        assert session.workspace.directory.is_dir()
        assert count("a word").tokens == 2
        load("cl100k_base")
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
os._exit(0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason=needs.UNIX)
def test_no_lock_of_a_thread_is_held_in_the_child() -> None:
    """Each of the library's own locks is held by a thread when the process forks."""
    needs.package("tiktoken")
    done = subprocess.run(
        [sys.executable, "-c", HOLDING],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("0\n", "")
