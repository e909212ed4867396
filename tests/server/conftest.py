"""The databases of these tests: a PostgreSQL for all of them, and a new database for
each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.server.postgres import Postgres, running_postgres
from tests.server.serving import (
    EngineServing,
    Serving,
    serve_in_memory,
    serve_over_socket,
    wait_for_database,
)


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
    needs.package("dbos")
    return postgres.create_prepared()


@pytest.fixture(params=["sqlite", pytest.param("dbos", marks=pytest.mark.slow)])
def path(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Where executions are kept: a file's path, or the URL of a new database of the
    newest one.

    On PostgreSQL the tests are slow, except one, which asks for both.
    """
    if request.param == "sqlite":
        return str(tmp_path / "e.db")
    needs.package("dbos")
    server: Postgres = request.getfixturevalue("newest_postgres")
    wait_for_database(monkeypatch)
    return server.create_prepared()


@pytest.fixture(
    params=["memory", "sqlite", pytest.param("two-engines", marks=pytest.mark.slow)]
)
def serving(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Serving:
    """How the test skills are served: in memory, without a socket; on SQLite; and on
    the engine, by two servers.
    """
    return _serving(request, monkeypatch, 2)


@pytest.fixture(params=["sqlite", pytest.param("two-engines", marks=pytest.mark.slow)])
def on_sockets(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Serving:
    """The same, over loopback sockets alone."""
    return _serving(request, monkeypatch, 2)


@pytest.fixture(
    params=["memory", "sqlite", pytest.param("engine", marks=pytest.mark.slow)]
)
def one_server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Serving:
    """The same with one server, for what each counts by itself."""
    return _serving(request, monkeypatch, 1)


def _serving(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, number: int
) -> Serving:
    if request.param == "memory":
        return serve_in_memory
    if request.param == "sqlite":
        return serve_over_socket
    wait_for_database(monkeypatch)
    return EngineServing(request.getfixturevalue("url"), number)
