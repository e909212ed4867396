"""From blocking code into an event loop: `skillruntime/runtime/blocking.py`."""

from __future__ import annotations

import contextvars
from functools import partial
from threading import get_ident

import anyio
import anyio.to_thread
import pytest

from skillruntime.runtime.blocking import run_to_end
from tests import needs

variable = contextvars.ContextVar("variable", default="unset")


async def read(suffix: str) -> str:
    """Wait for a moment, then read the context variable."""
    await anyio.lowlevel.checkpoint()
    return variable.get() + suffix


async def fail() -> None:
    """Raise."""
    raise KeyError("lost")


def test_a_coroutine_runs_to_its_end_with_our_context() -> None:
    """Context variables are seen inside."""
    token = variable.set("seen")
    try:
        assert run_to_end(read, "!") == "seen!"
    finally:
        variable.reset(token)


@pytest.mark.anyio
async def test_it_runs_inside_a_running_loop() -> None:
    """A blocking call made from a coroutine blocks it, as it must, and still gets its
    answer.
    """
    variable.set("outer")

    assert run_to_end(read, "!") == "outer!"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_it_leaves_the_thread_of_a_running_loop(backend: str) -> None:
    """Two event loops in one thread would wait for each other."""
    if backend == "trio":
        needs.package("trio")

    async def thread() -> int:
        return get_ident()

    async def main() -> int:
        return run_to_end(thread)

    assert anyio.run(main, backend=backend) != get_ident()
    assert run_to_end(thread) == get_ident()


def test_it_runs_in_a_worker_thread_of_a_loop() -> None:
    """A thread that a loop started, with the loop's context variables copied into it,
    has no loop of its own.
    """

    async def main() -> str:
        context = contextvars.copy_context()
        return await anyio.to_thread.run_sync(
            partial(context.run, run_to_end, read, "?")
        )

    assert anyio.run(main) == "unset?"


@pytest.mark.anyio
async def test_an_exception_comes_back() -> None:
    """What the coroutine raises is raised here, from another thread too."""
    with pytest.raises(KeyError, match="lost"):
        run_to_end(fail)
