"""Define the sessions that a contributor runs: ``nox -l`` lists them, ``nox`` runs the
quick ones.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nox

nox.options.sessions = ["quick", "lint", "types"]
nox.options.reuse_existing_virtualenvs = True
# A Python that is not installed is skipped and reported.
nox.options.error_on_missing_interpreters = False

PYTHONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))
"""The Python versions in the classifiers."""


@nox.session
def quick(session: nox.Session) -> None:
    """Run the tests that do not start other processes."""
    session.install("-e", ".[dev]")
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        "-m",
        "not slow and not processes",
        *session.posargs,
    )


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests as `python -m pytest` does, on every Python that is installed."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", "-q", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the slow tests, which the ordinary run leaves out."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", "-q", "-m", "slow", *session.posargs)


@nox.session
@nox.parametrize("dbos", ["3.2", "3.3", "3.4"])
def engine(session: nox.Session, dbos: str) -> None:
    """Run the laws of executions on each minor version of DBOS that the extra allows."""
    session.install("-e", ".[dev]", f"dbos=={dbos}.*")
    files = ("execution_laws", "engine_executions", "engine_recipes", "two_servers")
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        "-m",
        "",
        *[f"tests/server/test_{name}.py" for name in files],
        *session.posargs,
    )


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the ordinary tests with branch coverage."""
    session.install("-e", ".[dev]")
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        "--cov",
        "--cov-report=term:skip-covered",
        *session.posargs,
    )


@nox.session
def base(session: nox.Session) -> None:
    """Run the tests with a plain install, without extras; tests that need an extra are
    skipped.
    """
    session.install(
        "-e",
        ".",
        "hypothesis>=6.140,<6.164",
        "hypothesis-jsonschema>=0.23,<0.24",
        "pytest>=8.4,<10",
        "pytest-asyncio",
        "pytest-xdist>=3.8,<4",
        "trio>=0.30",
    )
    tests = [
        "tests/contract",
        "tests/compatibility",
        "tests/derive",
        "tests/catalog",
        "tests/tokens",
        "tests/runtime",
    ]
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        *(session.posargs or tests),
        env={"SKILLRUNTIME_TESTS_BASE": "1"},
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format, and print the size and density of the package."""
    session.install("ruff>=0.14,<0.18")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", "-m", "tests.proportion")


@nox.session
def types(session: nox.Session) -> None:
    """Check types in strict mode."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session
def verifytypes(session: nox.Session) -> None:
    """Check that all type checkers see the same types of the public names."""
    session.install("-e", ".[dev]", "basedpyright>=1.40,<1.41")
    session.run("basedpyright", "--verifytypes", "skillruntime", "--ignoreexternal")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site in docs/_build with warnings as errors; run every example and
    every guide.
    """
    session.install("-e", ".[dev]")
    session.run(
        "python",
        "-m",
        "sphinx",
        "--fail-on-warning",
        "--keep-going",
        "-b",
        "html",
        "docs",
        "docs/_build",
    )
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        "tests/test_documents.py",
        "tests/test_guides.py",
        "tests/adapters/test_examples.py",
    )


CHECKS = Path(__file__).parent / "tests" / "mcp_checks"
"""The skills and programs for the MCP checks."""

NODE = "node@22"
"""The Node version that the MCP checkers need (22.19), from npm's package `node`."""


@nox.session
def inspector(session: nox.Session) -> None:
    """Let MCP's Inspector check `serve --mcp` with the skills of this repository."""
    programs = install_from_npm(session, "@modelcontextprotocol/inspector@2.12.0")
    session.install("-e", ".[mcp,standard]")
    server = [f"{session.bin}/skillruntime", "serve", "--mcp", "--skills", "skills"]
    for method, check in (("skills/list", "--verify"), ("tools/list", "--strict")):
        session.run(
            str(programs / "mcp-inspector"),
            "--cli",
            "--protocol-era",
            "modern",
            # In milliseconds; on a busy machine the server starts in half a minute.
            "--connect-timeout",
            "120000",
            "--method",
            method,
            check,
            "--",
            *server,
            external=True,
            env=with_programs(programs),
        )


@nox.session
def conformance(session: nox.Session) -> None:
    """Let MCP's conformance suite check `serve --mcp --http` with skills of the tests.

    The scenarios in `tests/mcp_checks/expected_failures.yaml` must fail, and all others
    must pass.
    """
    programs = install_from_npm(session, "@modelcontextprotocol/conformance@0.1.16")
    session.install("-e", ".[mcp,serve]")
    with serving(session) as url:
        session.run(
            str(programs / "conformance"),
            "server",
            "--url",
            url,
            "--suite",
            "all",
            "--expected-failures",
            str(CHECKS / "expected_failures.yaml"),
            external=True,
            env=with_programs(programs),
        )


@nox.session
def fastmcp(session: nox.Session) -> None:
    """Let FastMCP's client read everything that `serve --mcp` offers, over stdio and
    over HTTP.

    This project's extras use an older FastMCP, because google-adk excludes the
    OpenTelemetry version that this one needs.
    """
    session.install("-e", ".[mcp,serve]", "fastmcp>=4.2.3,<4.3")
    client = ["python", str(CHECKS / "fastmcp_client.py"), "--call", "test_simple_text"]
    session.run(*client, *server_command(session))
    with serving(session) as url:
        session.run(*client, "--url", url)


@nox.session
def tasks(session: nox.Session) -> None:
    """Let the client of fastmcp-tasks follow the tasks of `serve --mcp --http`, one of
    them across a kill of the server.
    """
    session.install("-e", ".[mcp,serve]", "fastmcp-tasks>=4.1.4,<4.2")
    session.run(
        "python",
        str(CHECKS / "tasks_client.py"),
        *server_command(session),
        "--http",
        "--task-after",
        "1",
    )


def install_from_npm(session: nox.Session, package: str) -> Path:
    """Install *package* and Node in a directory that all sessions share, and return the
    directory of their programs. Skip the session if npm or a package is missing.
    """
    if shutil.which("npm") is None:
        session.skip(f"needs npm, for {NODE} and {package}")
    place = session.cache_dir.resolve() / "npm"
    install = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix"]
    done = subprocess.run([*install, str(place), NODE, package], check=False)
    if done.returncode:
        session.skip(f"npm could not install {NODE} and {package}")
    return place / "node_modules" / ".bin"


def with_programs(programs: Path) -> dict[str, str]:
    """Return an environment whose PATH begins with *programs*."""
    return {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def server_command(session: nox.Session) -> list[str]:
    """Return the command that serves the skills for these checks over stdio."""
    return [
        str(Path(session.bin).resolve() / "skillruntime"),
        "serve",
        "--mcp",
        "--trust",
        "--skills",
        str(CHECKS / "skills"),
    ]


@contextmanager
def serving(session: nox.Session) -> Iterator[str]:
    """Serve the skills for these checks over HTTP, and yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*server_command(session), "--http", "--port", str(port)]
    with subprocess.Popen(command) as server:
        try:
            wait_until_listening(session, port)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()


def wait_until_listening(session: nox.Session, port: int) -> None:
    """Wait until a server listens at *port*; fail after a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    session.error(f"nothing listens at port {port}")


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks that need no extra data."""
    session.install("-e", ".[dev,peers]")
    for name in ("accept", "call_overhead", "compatibility", "load"):
        session.run("python", f"benchmarks/{name}.py")
