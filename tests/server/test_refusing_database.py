"""A server does not start on a database that refuses it, and goes on if it runs."""

from __future__ import annotations

import logging

import anyio
import psycopg
import pytest

from skillruntime.errors import SkillRuntimeError
from skillruntime.server import add_key, durable_executions
from tests import needs
from tests.remote.parts import WireRequest
from tests.server.parts import Outcome, Report, Ticket
from tests.server.postgres import Postgres

pytestmark = [pytest.mark.processes, pytest.mark.anyio]


def change(url: str, *statements: str) -> None:
    """Change the database as its administrator."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["CREATE ROLE poor LOGIN"], "permission denied for database"),
        (
            [
                "CREATE SCHEMA skillruntime",
                "CREATE TABLE skillruntime.meta (other int)",
                "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = "
                "'poor') THEN CREATE ROLE poor LOGIN; END IF; END $$",
                "GRANT ALL ON SCHEMA skillruntime TO poor",
                "GRANT ALL ON skillruntime.meta TO poor",
            ],
            'column "value" does not exist',
        ),
    ],
)
def test_a_database_that_refuses_is_named(
    postgres: Postgres, statements: list[str], said: str
) -> None:
    """A missing privilege, and tables of another program: no later start succeeds."""
    url = postgres.create()
    change(url, *statements)

    with pytest.raises(SkillRuntimeError, match=f"The database refuses: .*{said}"):
        add_key(url.replace("postgres@", "poor@"), "ann")


@pytest.mark.slow
async def test_a_role_that_cannot_make_the_tables_is_refused(
    postgres: Postgres,
) -> None:
    """It may connect, and nothing else."""

    async def work(one: Ticket, report: Report) -> Outcome:
        raise AssertionError

    url = postgres.create()
    change(url, "CREATE ROLE guest LOGIN")

    with pytest.raises(SkillRuntimeError, match=r"The database refuses: .*permission"):
        async with durable_executions(work, url.replace("postgres@", "guest@")):
            pass


async def test_keys_stay_valid_while_the_database_refuses(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server goes on; the log says what is wrong."""
    key = add_key(url, "ann")
    store = needs.package("skillruntime.server.callers.key_store")
    keys = store.DatabaseKeys(url)
    change(url, "UPDATE skillruntime.meta SET value = '{}' WHERE name = 'keys'")
    request = WireRequest("GET", "http://h/", {"x-api-key": key}, b"")

    with caplog.at_level(logging.ERROR):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keys.refresh_every, 0.01)
            with anyio.fail_after(300):
                while "the keys could not be read again" not in caplog.text:
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    caller = await keys(request, None)

    assert caller is not None and caller.id == "ann"
