"""The databases of these tests: a PostgreSQL for all of them, and a new database for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.postgres import Postgres, running_postgres


@pytest.fixture(scope="package")
def postgres() -> Iterator[Postgres]:
    """The oldest PostgreSQL that is installed."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="package")
def newest_postgres() -> Iterator[Postgres]:
    """The newest PostgreSQL that is installed."""
    with running_postgres(newest=True) as server:
        yield server


@pytest.fixture
def url(postgres: Postgres) -> str:
    """A new database of the oldest one, with the engine's tables."""
    pytest.importorskip("dbos", reason="needs the extra 'dbos'")
    return postgres.create_prepared()


@pytest.fixture(params=["sqlite", "dbos"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where executions are kept: a file's path, or the URL of a new database of the newest one."""
    if request.param == "sqlite":
        return str(tmp_path / "e.db")
    pytest.importorskip("dbos", reason="needs the extra 'dbos'")
    server: Postgres = request.getfixturevalue("newest_postgres")
    for limit in ("_SUBMIT", "_ASK"):  # the database is not away here, however busy the machine is
        monkeypatch.setattr(f"skillruntime.server.engine_executions.{limit}", 300.0)
    for limit in ("seconds", "seconds_to_connect"):
        monkeypatch.setattr(f"skillruntime.server.postgres_connections.PromptConnection.{limit}", 300)
    return server.create_prepared()
