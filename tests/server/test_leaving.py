"""Executions are left as any context is: by an error of the host, by a cancellation, or
at the end of the block.
"""

from __future__ import annotations

import anyio
import pytest

from skillruntime.errors import SkillNotFoundError
from skillruntime.server import memory_executions
from skillruntime.server.executions.outcomes import Outcome, broken
from tests.server.parts import Report, Ticket

pytestmark = pytest.mark.anyio


async def work(ticket: Ticket, report: Report) -> Outcome:
    """Run nothing."""
    return broken()


async def test_an_error_of_the_host_leaves_as_it_is() -> None:
    """A skill that does not exist, or a port that is in use, is not wrapped in a group
    of errors of tasks.
    """
    with pytest.raises(SkillNotFoundError, match=r"^No skill is named 'nope'$"):
        async with memory_executions(work):
            raise SkillNotFoundError("No skill is named 'nope'")


async def test_a_cancellation_of_the_host_ends_the_executions() -> None:
    """The scope around them swallows it, and nothing else comes out."""
    with anyio.move_on_after(0.01) as scope:
        async with memory_executions(work):
            await anyio.sleep_forever()

    assert scope.cancelled_caught
